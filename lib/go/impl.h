/* What the files of this folder share. Private to it. */
#pragma once

#include "go/go.h"

enum go_version { GO_116, GO_118, GO_120 }; /* the first that has the layout */

struct go_table {
    struct sl_object *object;
    struct sl_account *account;
    struct sl_bytes bytes; /* from the header on */
    uint64_t address;      /* of the header, as the program's pointers have it */
    enum go_version version;
    bool big_endian;
    uint8_t quantum, pointer_size;
    uint64_t count;            /* functions */
    uint64_t text;             /* what entries are relative to, since GO_118 */
    uint64_t tree_base;        /* what trees of inlined calls are relative to, since GO_118; 0 = not known */
    uint64_t names_at, cus_at; /* offsets in `bytes` */
    struct sl_bytes names, cus, files, values, functions;
};

/* Reads the header, and the module's data where it is found. */
enum sl_code go_table_open(struct go_table *table, struct sl_object *object, struct sl_account *account,
                           struct sl_error *error);

struct go_function {
    uint64_t entry; /* as the program's pointers have it */
    struct sl_str name;
    uint32_t lines, files, calls; /* offsets of their values; 0 = none */
    uint32_t cu;
    struct sl_bytes tree; /* of inlined calls, from its first on; empty = not known */
};

/* False when the record cannot be read. */
bool go_function_read(const struct go_table *table, uint64_t index, struct go_function *function);

struct go_call { /* one that is inlined */
    struct sl_str name;
    uint32_t place; /* offset in the function of code whose location is that of the call */
};
bool go_call_read(const struct go_table *table, const struct go_function *function, uint32_t index,
                  struct go_call *call);

/* Where the file that a function calls by that number has its name: an index in `table->cus`, for go_file_name. */
uint64_t go_file_place(const struct go_function *function, int32_t number);

/* Empty when there is none. */
struct sl_str go_file_name(const struct go_table *table, uint64_t place);

/* ---- module.c ---- */

/* Finds the data that the runtime keeps of the program, and in it `text` and `tree_base`; leaves them where it does not. */
void go_module_find(struct go_table *table);
