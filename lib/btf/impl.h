/* Private to lib/btf. */
#pragma once

#include "base/account.h"
#include "base/map.h"
#include "btf/btf.h"

/* A record of func_info or line_info: applies to code from `address` on. */
struct btf_record {
    uint64_t address, section_end; /* relative to the load address */
    uint32_t text;                 /* offset of the function's name or the file's path in the strings; 0 = none */
    uint32_t line;                 /* line_info only */
};

struct btf_records {
    struct btf_record *items;
    size_t count, capacity;
};

struct btf_section {
    struct sl_section_info info;
    bool is_double; /* another section has the same name: records that refer to this name are not used */
};

struct btf_tables {
    struct sl_object *object;
    struct sl_account account;
    struct sl_bytes strings;
    uint64_t text_size; /* bytes of all texts read so far */
    struct btf_section *sections;
    size_t section_count, section_capacity;
    struct sl_map by_name; /* index in `sections` + 1, by name */
    uint32_t *names;       /* by type: offset of the name for FUNC, else 0 */
    size_t type_count, type_capacity;
    struct btf_records functions, lines; /* in file order */
    size_t skipped;
    struct sl_error first_skipped;
};

/* Reads the sections .BTF and .BTF.ext. Damaged parts are left out and counted in `skipped`. Call btf_tables_close() in any case, also
 * after an error. SL_NOT_FOUND unless the object has both sections. SL_MALFORMED if they need more work than the budget allows,
 * SL_UNSUPPORTED for more memory or time, SL_BUSY when the process is out of memory. */
enum sl_code btf_tables_open(struct btf_tables *tables, struct sl_object *object, struct sl_error *error);
void btf_tables_close(struct btf_tables *tables);

/* Returns the text at an offset of the string table; empty if there is none; also empty, with account.failed set, if the budget is
 * exhausted. */
struct sl_str btf_text(struct btf_tables *tables, uint32_t offset);
