/* The functions of an object as text, one line each:
 *
 *     name 1000+20 [1000+8 a.c:3, 1008+18 a.c:4] { inlined 1008+4 [1008+4 b.h:7] } */
#pragma once

#include "dwarf/dwarf.h"

struct dump {
    struct sl_function_sink sink;
    struct sl_buf out;
    size_t functions;
    struct sl_object *object;
    struct sl_buf source_server; /* "path revision" per line, and <URL> behind it if there is one */
};

void dump_init(struct dump *dump);
void dump_free(struct dump *dump);

/* Opens `file` and reads its functions into `dump`. */
enum sl_code dump_file(struct dump *dump, struct sl_bytes file, struct sl_error *error);
