/* Structures shared by the files of this folder. Private to it. */
#pragma once

#include "go/go.h"

enum go_version { GO_116, GO_118, GO_120 }; /* first Go version with the layout */

struct go_table {
    struct sl_object *object;
    struct sl_account *account;
    struct sl_bytes bytes; /* from the header on */
    uint64_t address;      /* absolute address of the header */
    enum go_version version;
    bool big_endian;
    uint8_t quantum, pointer_size;
    uint64_t count;            /* number of functions */
    uint64_t text;             /* since GO_118: base of the entries */
    uint64_t tree_base;        /* since GO_118: base of the trees of inlined calls; 0 = unknown */
    uint64_t names_at, cus_at; /* offsets in `bytes` */
    /* parts of the table, each from its first byte to the end of the table; `cus` has, by unit and number of a file, the offset of its name
     * in `files` */
    struct sl_bytes names, cus, files, values, functions;
};

/* Reads the header, and moduledata if it is found. */
enum sl_code go_table_open(struct go_table *table, struct sl_object *object, struct sl_account *account,
                           struct sl_error *error);

struct go_function {
    uint64_t entry; /* absolute address */
    struct sl_str name;
    uint32_t lines, files, calls; /* offsets of the value lists in go_table.values; 0 = none */
    uint32_t cu;                  /* index of its unit's first file in go_table.cus */
    struct sl_bytes tree;         /* tree of inlined calls, to the end of its segment; empty = unknown */
};

/* Reads the record of a function. False if it cannot be read. */
bool go_function_read(const struct go_table *table, uint64_t index, struct go_function *function);

struct go_call { /* an inlined call */
    struct sl_str name;
    uint32_t call_offset; /* offset in the function: its line and file there are those of the call (parentPc) */
};
/* Reads node `index` of the function's tree of inlined calls. False if it is outside of the tree or has no name. */
bool go_call_read(const struct go_table *table, const struct go_function *function, uint32_t index,
                  struct go_call *call);

/* Converts a function's number of a file to an index in `table->cus`, for go_file_name. */
uint64_t go_file_index(const struct go_function *function, int32_t number);

/* Returns the name of a file; may be empty. */
struct sl_str go_file_name(const struct go_table *table, uint64_t index);

/* ---- module.c ---- */

/* Finds the runtime's moduledata and sets `text` and `tree_base` from it; leaves them unchanged if it is not found. */
void go_module_find(struct go_table *table);
