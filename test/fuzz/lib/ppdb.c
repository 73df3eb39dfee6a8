/* Portable PDB: what can be made into a look-up table must give one that verifies. Bytes that are a table themselves are
 * used as one. */
#include <stdlib.h>

#include "object/object.h"
#include "ppdb/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct sl_ppdb_table *table, struct sl_bytes file)
{
    struct sl_buf name = {0};
    struct sl_arena arena = {0};
    for (uint32_t m = 0; m <= table->method_count && m < 16; m++)
        for (uint32_t offset = 0; offset < 256; offset += 5) {
            struct sl_ppdb_location location;
            sl_ppdb_table_lookup(table, m, offset, &location);
        }
    for (uint32_t d = 0; d < table->document_count && d < 64; d++) {
        struct sl_ppdb_source source;
        struct sl_bytes text;
        sl_buf_clear(&name);
        sl_ppdb_table_name(table, d, &name);
        if (sl_ppdb_table_source(table, sl_buf_view(&name), &source))
            sl_ppdb_source_text(file, &source, 1 << 20, &arena, &text, NULL);
        struct sl_buf url = {0};
        sl_ppdb_links_resolve(&table->links, sl_buf_view(&name), &url);
        sl_buf_free(&url);
    }
    sl_buf_free(&name);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_bytes bytes = {data, size};
    struct sl_budget budget;
    sl_budget_init(&budget, size);
    struct sl_arena arena = {.budget = &budget};
    struct sl_buf out = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    struct sl_ppdb_table table;
    if (sl_ppdb_table_open(bytes, &table, NULL) == SL_OK) {
        look_up(&table, bytes);
        sl_ppdb_table_verify(&table, NULL);
    }
    if (sl_ppdb_open(bytes, &arena, &ppdb, &info, NULL) == SL_OK &&
        sl_ppdb_table_build(ppdb, &info, &out, NULL, NULL) == SL_OK) {
        if (sl_ppdb_table_open(sl_buf_bytes(&out), &table, NULL) != SL_OK ||
            sl_ppdb_table_verify(&table, NULL) != SL_OK)
            abort();
        look_up(&table, bytes);
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return 0;
}
