/* What the files of this folder share. Private to it. */
#pragma once

#include "base/account.h"
#include "base/map.h"
#include "btf/btf.h"

/* What a record says of the code from `address` on. */
struct btf_record {
    uint64_t address, section_end; /* relative to the load address */
    uint32_t text;                 /* offset of the function's name or the file's path in the strings; 0 = none */
    uint32_t line;                 /* of line_info */
};

struct btf_records {
    struct btf_record *items;
    size_t count, capacity;
};

struct btf_section {
    struct sl_section_info info;
    bool is_double; /* another one is called so: records do not say which they mean */
};

struct btf_tables {
    struct sl_object *object;
    struct sl_account account;
    struct sl_bytes strings;
    uint64_t text_size; /* bytes of all texts that were read */
    struct btf_section *sections;
    size_t section_count, section_capacity;
    struct sl_map by_name; /* index in `sections` + 1 */
    uint32_t *names;       /* by type: of functions the offset of the name, else 0 */
    size_t type_count, type_capacity;
    struct btf_records functions, lines; /* in file order */
    size_t skipped;
    struct sl_error first_skipped;
};

/* Reads both sections. Fields of `tables` that are not NULL are freed by btf_tables_close in any case. SL_NOT_FOUND when the
 * object has not both; SL_BUSY, SL_MALFORMED or SL_UNSUPPORTED when memory or the budget is used up. */
enum sl_code btf_tables_open(struct btf_tables *tables, struct sl_object *object, struct sl_error *error);
void btf_tables_close(struct btf_tables *tables);

/* The text at that offset of the strings; empty when there is none, or the budget is used up. */
struct sl_str btf_text(struct btf_tables *tables, uint32_t offset);
