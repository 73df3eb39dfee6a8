/* Fast decoder for the messages of a symbfile in the form that writers produce; it allocates nothing per message,
 * because a record has some thirty bytes and there are millions of them. Other forms are left to protobuf-c: unknown
 * fields, lists that are not packed or come in pieces, numbers that use more bytes than needed, and malformed
 * messages. Private to this folder.
 *
 * Both decoders fill the structures generated from the schema, with the same values; a test and the fuzzer compare them. */
#pragma once

#include "base/bytes.h"
#include "symbfile/symbfile.pb-c.h"

struct columns { /* memory for the number lists of one message; zero-initialise */
    uint32_t *numbers;
    size_t capacity;
    Symbfile__LineTable line_table;
};

void columns_free(struct columns *columns);

/* Returns true if `*message` is filled: its texts point into `body`, its lists and line table into `columns`, valid
 * until the next call. Returns false if the message must be decoded by protobuf-c. */
bool columns_read_range(struct columns *columns, struct sl_bytes body, Symbfile__RangeV1 *message);
bool columns_read_pad(struct columns *columns, struct sl_bytes body, Symbfile__ReturnPadV1 *message);
