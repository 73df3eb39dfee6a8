/* The messages of a symbfile in the form that writers give them, read without building anything: a record has some thirty
 * bytes, and there are millions. What has another form - unknown fields, lists that are not packed or come in pieces,
 * numbers of more bytes than they need - is left to protobuf-c, and so is what is broken. Private to this folder.
 *
 * Both fill the structures that are generated from the schema, with the same values; a test and the fuzzer compare them. */
#pragma once

#include "base/bytes.h"
#include "symbfile/symbfile.pb-c.h"

struct columns { /* memory for the lists of numbers of one message; all zeros at first */
    uint32_t *numbers;
    size_t capacity;
    Symbfile__LineTable line_table;
};

void columns_free(struct columns *columns);

/* False: nothing is known, ask protobuf-c. True: `*message` is filled; its texts point into `body`, its lists and line
 * table into `columns`, valid until the next call. */
bool columns_read_range(struct columns *columns, struct sl_bytes body, Symbfile__RangeV1 *message);
bool columns_read_pad(struct columns *columns, struct sl_bytes body, Symbfile__ReturnPadV1 *message);
