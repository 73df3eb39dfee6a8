/* Makes functions with lines from the records of .BTF.ext, and passes them to the sink in one batch. */
#include "btf/impl.h"

#include "function/assemble.h"
#include "object/symbols.h"

#include <stdlib.h>

/* Steps of the budget for each record, which cover sorting it. */
enum { STEPS_PER_RECORD = 4 };

struct sorted { /* indexes of records or symbols, with their addresses, sorted by address */
    struct sl_ordered *items;
    size_t count;
};

struct btf_reader {
    struct btf_tables tables;
    struct sorted functions, lines, symbols;
    const struct sl_symbol *all_symbols;
    size_t next_line, next_symbol; /* indexes of the first line and symbol that may belong to the next function */
    struct sl_line *rows;          /* lines of the current function */
    size_t row_count, row_capacity;
    struct sl_assembler assembler;
    struct sl_arena arena;
    struct sl_function *batch;
    size_t function_count;
    struct sl_file *files;
    size_t file_count, file_capacity;
    uint32_t *file_at; /* by offset of a path in the strings: index in `files` + 1 */
};

/* Allocates a list for `count` indexes, with one more, so that an empty list is not NULL; takes the steps for sorting it from the budget.
 * False, with account.failed set, if memory or budget is exhausted. */
static bool allocate(struct btf_reader *b, struct sorted *list, size_t count)
{
    list->items = sl_account_alloc(&b->tables.account, count + 1, sizeof *list->items);
    b->tables.account.failed = b->tables.account.failed || !list->items || count > UINT32_MAX ||
                               !sl_budget_spend(b->tables.account.budget, count * STEPS_PER_RECORD);
    return !b->tables.account.failed;
}

/* Sorts the list; account.failed is set when out of memory. */
static void sort(struct btf_reader *b, struct sorted *list)
{
    struct sl_ordered *scratch = sl_account_alloc(&b->tables.account, list->count + 1, sizeof *scratch);
    if (scratch)
        sl_order(list->items, scratch, list->count);
    sl_account_free(&b->tables.account, scratch, list->count + 1, sizeof *scratch);
}

/* Fills `list` with the indexes of the records, sorted by address; the records themselves stay in file order. */
static void sort_records(struct btf_reader *b, const struct btf_records *records, struct sorted *list)
{
    if (!allocate(b, list, records->count))
        return;
    for (; list->count < records->count; list->count++)
        list->items[list->count] =
            (struct sl_ordered){.key = records->items[list->count].address, .index = (uint32_t)list->count};
    sort(b, list);
}

/* Fills b->symbols with the indexes, sorted by address, of the symbols that can name a function: not labels inside functions, nor symbols
 * without a name. Lack of memory or budget sets account.failed; the returned error is that of reading the symbols. */
static enum sl_code sort_symbols(struct btf_reader *b, struct sl_error *error)
{
    size_t count;
    enum sl_code code = sl_object_cached_symbols(b->tables.object, &b->all_symbols, &count, error);
    if (code != SL_OK || !allocate(b, &b->symbols, count))
        return code;
    for (size_t i = 0; i < count; i++)
        if (!b->all_symbols[i].is_label && b->all_symbols[i].name.size)
            b->symbols.items[b->symbols.count++] =
                (struct sl_ordered){.key = b->all_symbols[i].address, .index = (uint32_t)i};
    sort(b, &b->symbols);
    return code;
}

/* Returns the index of the file whose path is at offset `path` of the string table; adds it to b->files at its first use. SL_NO_FILE if
 * there is no path; also, with account.failed set, when out of memory. */
static uint32_t intern_file(struct btf_reader *b, uint32_t path)
{
    if (!path || path >= b->tables.strings.size)
        return SL_NO_FILE;
    if (b->file_at[path])
        return b->file_at[path] - 1; /* stored plus 1: 0 is a path that is not used yet */
    struct sl_str name = btf_text(&b->tables, path);
    b->tables.account.failed =
        b->tables.account.failed ||
        !sl_account_grow(&b->tables.account, &b->files, &b->file_capacity, b->file_count + 1, sizeof *b->files);
    if (!name.size || b->tables.account.failed)
        return SL_NO_FILE;
    b->files[b->file_count] = (struct sl_file){.name = name};
    b->file_at[path] = (uint32_t)++b->file_count;
    return b->file_at[path] - 1;
}

/* Collects the lines of [address, end) into b->rows; adjacent equal ones are joined. A line ends where the next one begins. Lines before
 * `address` belong to no function and are dropped. Of several at one address the last one counts: the others end where they begin. Call it
 * with ascending addresses: b->next_line only moves forward. */
static void collect_rows(struct btf_reader *b, uint64_t address, uint64_t end)
{
    const struct sorted *lines = &b->lines;
    b->row_count = 0;
    while (b->next_line < lines->count && lines->items[b->next_line].key < address)
        b->next_line++;
    for (; b->next_line < lines->count && lines->items[b->next_line].key < end && !b->tables.account.failed;
         b->next_line++) {
        const struct sl_ordered *at = &lines->items[b->next_line];
        uint64_t stop = b->next_line + 1 < lines->count && at[1].key < end ? at[1].key : end;
        const struct btf_record *record = &b->tables.lines.items[at->index];
        if (stop == at->key || !record->line) /* line 0: code without a line */
            continue;
        struct sl_line row = {at->key, stop - at->key, intern_file(b, record->text), record->line};
        struct sl_line *last = b->row_count ? &b->rows[b->row_count - 1] : NULL;
        if (last && last->address + last->size == row.address && last->file == row.file && last->line == row.line) {
            last->size += row.size;
            continue;
        }
        if (sl_account_grow(&b->tables.account, &b->rows, &b->row_capacity, b->row_count + 1, sizeof row))
            b->rows[b->row_count++] = row;
    }
}

/* Returns the symbol at `address` with the name `name`, else the first symbol there, or NULL. `*next` becomes the address of the first
 * symbol after `address`, UINT64_MAX if there is none. Call it with ascending addresses: b->next_symbol only moves forward. */
static const struct sl_symbol *find_symbol(struct btf_reader *b, uint64_t address, struct sl_str name, uint64_t *next)
{
    const struct sl_symbol *found = NULL;
    const struct sorted *symbols = &b->symbols;
    size_t *i = &b->next_symbol;
    while (*i < symbols->count && symbols->items[*i].key < address)
        ++*i;
    for (; *i < symbols->count && symbols->items[*i].key == address; ++*i) {
        const struct sl_symbol *symbol = &b->all_symbols[symbols->items[*i].index];
        if (!found || (sl_str_equal(symbol->name, name) && !sl_str_equal(found->name, name)))
            found = symbol;
    }
    *next = *i < symbols->count ? symbols->items[*i].key : UINT64_MAX;
    return found;
}

/* Adds the function of a record of func_info to the batch. It ends at `next` (the begin of the next function), its section's end, or its
 * symbol's end, whichever comes first; without a symbol at its address it ends at the next symbol at the latest. It is left out if it has
 * neither a symbol nor a name. */
static void read_function(struct btf_reader *b, const struct btf_record *record, uint64_t next)
{
    struct sl_str name = {NULL, 0};
    uint64_t end = next < record->section_end ? next : record->section_end, next_symbol;
    if (record->text) /* the offset of its name in the string table; 0 = none */
        name = btf_text(&b->tables, record->text);
    const struct sl_symbol *symbol = find_symbol(b, record->address, name, &next_symbol);
    if (symbol && symbol->size && symbol->size < end - record->address)
        end = record->address + symbol->size;
    if (!symbol && next_symbol < end)
        end = next_symbol;
    name = symbol ? symbol->name : name;
    collect_rows(b, record->address, end); /* may set account.failed */
    if (!name.size || b->tables.account.failed)
        return;
    struct sl_function *function = &b->batch[b->function_count++];
    *function = (struct sl_function){.address = record->address, .size = end - record->address, .name = name};
    b->tables.account.failed = !sl_assemble(&b->assembler, &b->arena, function, NULL, 0, b->rows, b->row_count);
}

/* Reads all functions, in the order of their addresses, into b->batch. Sets account.failed if memory or budget is exhausted. */
static void read_functions(struct btf_reader *b)
{
    size_t strings = b->tables.strings.size;
    b->batch = sl_account_alloc(&b->tables.account, b->functions.count + 1, sizeof *b->batch);
    b->file_at = sl_account_alloc(&b->tables.account, strings + 1, sizeof *b->file_at);
    b->tables.account.failed = b->tables.account.failed || !b->batch || !b->file_at;
    if (b->tables.account.failed)
        return;
    memset(b->file_at, 0, (strings + 1) * sizeof *b->file_at);
    for (size_t i = 0; i < b->functions.count && !b->tables.account.failed; i++) {
        const struct sl_ordered *at = &b->functions.items[i];
        size_t next = i + 1; /* of several records at one address only the first counts */
        while (next < b->functions.count && b->functions.items[next].key == at->key)
            next++;
        read_function(b, &b->tables.functions.items[at->index],
                      next < b->functions.count ? b->functions.items[next].key : UINT64_MAX);
        i = next - 1;
    }
}

/* Passes all functions to the sink in one batch; SL_NOT_FOUND if there are none. `lasting` tells the sink that names and paths live as long
 * as the object. */
static enum sl_code deliver(struct btf_reader *b, struct sl_function_sink *sink, struct sl_error *error)
{
    struct sl_function_batch batch = {
        .files = b->files,
        .file_count = b->file_count,
        .functions = b->batch,
        .function_count = b->function_count,
        .lasting = true,
    };
    if (!batch.function_count)
        return sl_fail(error, SL_NOT_FOUND, "section .BTF.ext has no functions");
    if (sink->prepare)
        sink->prepare(sink, &batch, &b->arena, 0); /* 0: the only worker */
    return sink->consume(sink, &batch, error);
}

/* Reads the tables and passes their functions to the sink. Damaged parts are skipped and counted in the sink. SL_NOT_FOUND if there are no
 * tables or no functions. */
static enum sl_code read_all(struct btf_reader *b, struct sl_object *object, struct sl_function_sink *sink,
                             struct sl_error *error)
{
    enum sl_code code = btf_tables_open(&b->tables, object, error);
    if (code != SL_OK)
        return code;
    sort_records(b, &b->tables.functions, &b->functions);
    sort_records(b, &b->tables.lines, &b->lines);
    code = sort_symbols(b, error);
    if (code == SL_OK && !b->tables.account.failed)
        read_functions(b);
    if (b->tables.account.failed || sl_budget_exhausted(b->tables.account.budget))
        return code != SL_OK ? code : sl_budget_fail(b->tables.account.budget, error);
    /* first_skipped of the sink is the error of the first part skipped, here or by an earlier reader */
    if (b->tables.skipped && !sink->skipped_units)
        sink->first_skipped = b->tables.first_skipped;
    sink->skipped_units += b->tables.skipped;
    return code == SL_OK ? deliver(b, sink, error) : code;
}

enum sl_code sl_btf_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error)
{
    struct btf_reader *b = calloc(1, sizeof *b);
    if (!b)
        return sl_fail(error, SL_BUSY, "out of memory");
    b->arena.budget = b->assembler.account.budget = sl_object_budget(object);
    enum sl_code code = read_all(b, object, sink, error);
    sl_assembler_free(&b->assembler);
    sl_arena_free(&b->arena);
    free(b->functions.items);
    free(b->lines.items);
    free(b->symbols.items);
    free(b->rows);
    free(b->batch);
    free(b->files);
    free(b->file_at);
    btf_tables_close(&b->tables);
    free(b);
    return code;
}
