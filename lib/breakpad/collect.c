/* Converts functions to records. The threads that read functions also flatten them (flatten.c) and demangle their names; then, on one
 * thread and in the order of the file, names and files are numbered and the functions encoded. */
#include "breakpad/impl.h"

#include "function/path.h"
#include "function/undecorate.h"

#include <stdlib.h>

/* Results of breakpad_collect_prepare() for a batch of functions. Names and files are numbered within the batch. */
struct breakpad_prepared {
    struct flat_function flat;
    struct prepared_function {
        const struct sl_function *function;
        size_t line_end, inline_end; /* ends of its lines and inlined calls in `flat` */
        uint32_t name;
    } * functions;
    size_t function_count;
    struct breakpad_texts names;
    struct sl_map stored; /* from the name of an inlined function, as in the file, to struct breakpad_known_text */
    struct sl_str *files; /* full paths, empty if there is none */
    size_t file_count;
    struct sl_arena *arena;
    bool failed;
};

uint32_t breakpad_text_number(struct breakpad_texts *t, struct sl_arena *arena, struct sl_str text, bool *failed)
{
    uintptr_t known = (uintptr_t)sl_map_get(&t->map, text); /* its number plus 1; 0 if it is new */
    if (known)
        return (uint32_t)known - 1;
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    struct sl_str key = {copy, text.size};
    void **slot = copy && t->count < UINT32_MAX - 1 ? sl_map_find_or_add(&t->map, key, NULL) : NULL;
    if (!slot || !sl_account_grow(&t->account, &t->items, &t->capacity, t->count + 1, sizeof *t->items)) {
        *failed = true;
        return 0;
    }
    t->items[t->count++] = key;
    *slot = (void *)(uintptr_t)t->count;
    return (uint32_t)t->count - 1;
}

/* ---- prepare ---- */

/* Returns the number of the function's demangled name in p->names, and adds it there if it is new. Sets p->failed when out of memory. */
static uint32_t number_name(struct breakpad_prepared *p, const struct sl_function *function)
{
    struct sl_buf text = {0};
    breakpad_render_name(&text, function->name, function->language);
    p->failed = p->failed || text.failed;
    uint32_t number = breakpad_text_number(&p->names, p->arena, sl_buf_view(&text), &p->failed);
    sl_buf_free(&text);
    return number;
}

/* Returns the number of an inlined function's demangled name. A function is often inlined many times, so the number is kept in p->stored,
 * by the mangled name. If a name occurs with a second language, which is rare, it is demangled each time for that. */
static uint32_t inlinee_name(void *arg, const struct sl_function *function)
{
    struct breakpad_prepared *p = arg;
    struct breakpad_known_text {
        uint32_t number;
        enum sl_language language;
    } *known = sl_map_get(&p->stored, function->name);
    if (known && known->language == function->language)
        return known->number;
    uint32_t number = number_name(p, function);
    void **slot = known ? NULL : sl_map_find_or_add(&p->stored, function->name, NULL);
    /* if this fails, the name is only demangled again the next time */
    if (slot && (*slot = known = SL_ARENA_NEW(p->arena, struct breakpad_known_text)))
        *known = (struct breakpad_known_text){number, function->language};
    return number;
}

/* Sets p->files to the full paths of the batch's files; p->failed when out of memory. */
static void prepare_files(struct breakpad_prepared *p, const struct sl_function_batch *batch)
{
    struct sl_buf path = {0};
    p->file_count = batch->file_count;
    p->files = SL_ARENA_ARRAY(p->arena, struct sl_str, p->file_count + 1); /* + 1: never an array of 0 bytes */
    for (size_t i = 0; p->files && i < p->file_count; i++) {
        const struct sl_file *file = &batch->files[i];
        sl_buf_clear(&path);
        sl_path_full(&path, file->comp_dir, file->directory, file->name);
        char *copy = path.size ? sl_arena_strndup(p->arena, (char *)path.data, path.size) : NULL;
        p->failed |= path.size && !copy;
        if (copy)
            p->files[i] = (struct sl_str){copy, path.size};
    }
    p->failed = p->failed || !p->files || path.failed;
    sl_buf_free(&path);
}

/* Copies `size` bytes of an array to the arena and frees the array. Returns the copy, which is not NULL for an empty array because of the
 * additional byte; NULL, with p->failed set, when out of memory. */
static void *copy_to_arena(struct breakpad_prepared *p, void *array, size_t size)
{
    void *copy = sl_arena_alloc(p->arena, size + 1, 8);
    p->failed = p->failed || !copy;
    if (copy && size)
        memcpy(copy, array, size);
    free(array);
    return copy;
}

/* Copies the results into the batch's arena and frees all memory of malloc. So nothing leaks if the batch is never consumed. */
static void move_results(struct breakpad_prepared *p)
{
    p->flat.lines = copy_to_arena(p, p->flat.lines, p->flat.line_count * sizeof *p->flat.lines);
    p->flat.inlines = copy_to_arena(p, p->flat.inlines, p->flat.inline_count * sizeof *p->flat.inlines);
    p->names.items = copy_to_arena(p, p->names.items, p->names.count * sizeof *p->names.items);
    sl_account_release(&p->flat.account);
    sl_account_release(&p->names.account);
    sl_map_free(&p->names.map);
    sl_map_free(&p->stored);
}

/* The sink's `prepare`, on a worker thread: makes names and paths, and flattens each function into lines and inlined calls. A failure sets
 * p->failed, or leaves batch->prepared NULL; breakpad_collect_consume() reports it. */
static void breakpad_collect_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch,
                                     struct sl_arena *arena, unsigned worker)
{
    (void)worker;
    const struct sl_breakpad_options *o = ((struct sl_breakpad_writer *)sink)->options;
    struct breakpad_prepared *p = SL_ARENA_NEW(arena, struct breakpad_prepared);
    batch->prepared = p;
    if (!p)
        return;
    p->arena = arena;
    p->flat.account.budget = p->names.account.budget = p->names.map.budget = p->stored.budget = o->budget;
    p->functions = SL_ARENA_ARRAY(arena, struct prepared_function, batch->function_count + 1);
    p->failed = !p->functions;
    prepare_files(p, batch);
    for (size_t i = 0; i < batch->function_count && !p->failed; i++) {
        const struct sl_function *f = &batch->functions[i];
        struct prepared_function *out = &p->functions[p->function_count];
        if (!f->size || f->size > UINT64_MAX - f->address) /* empty, or beyond the address space */
            continue;
        *out = (struct prepared_function){.function = f, .name = number_name(p, f)};
        p->failed = p->failed || !breakpad_flatten(&p->flat, f, o->inlines ? inlinee_name : NULL, p, arena);
        out->line_end = p->flat.line_count;
        out->inline_end = p->flat.inline_count;
        p->function_count++;
    }
    move_results(p);
}

/* ---- consume ---- */

/* Encoding of a record's lines and inlined calls:
 *
 *     uleb count, { sleb address delta, uleb size, uleb line, sleb file delta }
 *     uleb count, { uleb depth, uleb line, uleb file, uleb name, uleb count, { sleb address delta, uleb size } }
 *
 * Address deltas are relative to the end of the previous range, at first to the function's address. Example: line 5 at 0x1000 (8
 * bytes) and line 6 at 0x1008 (4 bytes), both in file 0, of a function at 0x1000 without calls:
 *
 *     02   00 08 05 00   00 04 06 00   00 */
struct numbers { /* from a batch's numbers of names and files to those of the writer */
    const uint32_t *names, *files;
    size_t file_count;
};

/* Returns the writer's number of a file of the batch; SL_NO_FILE if it has none. */
static uint32_t file_number(const struct numbers *n, uint32_t file)
{
    return file < n->file_count ? n->files[file] : SL_NO_FILE;
}

/* Encodes the lines of a record, whose function begins at `start`. An address is the difference to the end of the line before, a file the
 * difference to the file before: small numbers need few bytes. write.c decodes them. `n` has the writer's numbers of the batch's files. */
static void encode_lines(struct sl_buf *out, uint64_t start, const struct flat_line *lines, size_t count,
                         const struct numbers *n)
{
    uint64_t at = start;
    uint32_t file = 0;
    sl_buf_uleb(out, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = file_number(n, lines[i].file);
        sl_buf_sleb(out, (int64_t)(lines[i].address - at));
        sl_buf_uleb(out, lines[i].size);
        sl_buf_uleb(out, lines[i].line);
        sl_buf_sleb(out, (int64_t)number - (int64_t)file);
        at = lines[i].address + lines[i].size;
        file = number;
    }
}

/* True if two ranges belong to one inlined call. */
static bool same_call(const struct flat_inline *a, const struct flat_inline *b)
{
    return a->depth == b->depth && a->call_line == b->call_line && a->call_file == b->call_file && a->name == b->name;
}

/* Encodes the inlined calls of a record, whose function begins at `start`. The ranges of one call follow each other and are written
 * together, as in an INLINE record. `n` has the writer's numbers of the batch's files and names. */
static void encode_inlines(struct sl_buf *out, uint64_t start, const struct flat_inline *inlines, size_t count,
                           const struct numbers *n)
{
    size_t groups = 0;
    for (size_t i = 0; i < count; i++)
        groups += i == 0 || !same_call(&inlines[i - 1], &inlines[i]);
    sl_buf_uleb(out, groups);
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t at = start;
        for (end = i + 1; end < count && same_call(&inlines[i], &inlines[end]);)
            end++;
        sl_buf_uleb(out, inlines[i].depth);
        sl_buf_uleb(out, inlines[i].call_line);
        sl_buf_uleb(out, file_number(n, inlines[i].call_file));
        sl_buf_uleb(out, n->names[inlines[i].name]);
        sl_buf_uleb(out, end - i);
        for (size_t j = i; j < end; j++) {
            sl_buf_sleb(out, (int64_t)(inlines[j].address - at));
            sl_buf_uleb(out, inlines[j].size);
            at = inlines[j].address + inlines[j].size;
        }
    }
}

/* Encodes the lines and inlined calls of function `index` of the batch and adds it to the records of the writer. Sets w->failed when out of
 * memory. */
static void add_record(struct sl_breakpad_writer *w, const struct breakpad_prepared *p, size_t index,
                       const struct numbers *n)
{
    const struct prepared_function *f = &p->functions[index];
    /* its lines and inlined calls begin where those of the function before end */
    size_t line = index ? f[-1].line_end : 0, call = index ? f[-1].inline_end : 0;
    struct sl_buf *out = &w->scratch;
    sl_buf_clear(out);
    encode_lines(out, f->function->address, p->flat.lines + line, f->line_end - line, n);
    encode_inlines(out, f->function->address, p->flat.inlines + call, f->inline_end - call, n);
    uint8_t *data = sl_arena_alloc(&w->arena, out->size + 1, 1);
    if (!data || out->failed || out->size > UINT32_MAX || w->record_count >= UINT32_MAX ||
        !sl_account_grow(&w->account, &w->records, &w->record_capacity, w->record_count + 1, sizeof *w->records)) {
        w->failed = true;
        return;
    }
    memcpy(data, out->data, out->size);
    w->records[w->record_count] = (struct breakpad_record){
        .address = f->function->address,
        .size = f->function->size,
        .data = data,
        .data_size = (uint32_t)out->size,
        .name = n->names[f->name],
        .order = (uint32_t)w->record_count,
        .parameters = f->function->parameters,
        .multiple = f->function->multiple,
    };
    w->record_count++;
}

/* The sink's `consume`: replaces the batch's numbers of names and files by those of the writer, and adds its functions to the writer's
 * records. Fails, also at every later call, when the budget or memory is exhausted. */
static enum sl_code breakpad_collect_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                             struct sl_error *error)
{
    struct sl_breakpad_writer *w = (struct sl_breakpad_writer *)sink;
    struct breakpad_prepared *p = batch->prepared;
    if (!p)
        return sl_budget_fail(w->options->budget, error);
    w->failed =
        w->failed || p->failed ||
        !sl_account_grow(&w->account, &w->map, &w->map_capacity, p->file_count + p->names.count + 1, sizeof *w->map);
    if (!w->failed) {
        /* by the number in the batch: the number in the writer */
        uint32_t *files = w->map, *names = w->map + p->file_count;
        struct numbers numbers = {names, files, p->file_count};
        for (size_t i = 0; i < p->file_count; i++)
            files[i] =
                p->files[i].size ? breakpad_text_number(&w->files, &w->arena, p->files[i], &w->failed) : SL_NO_FILE;
        for (size_t i = 0; i < p->names.count; i++)
            names[i] = breakpad_text_number(&w->names, &w->arena, p->names.items[i], &w->failed);
        for (size_t i = 0; i < p->function_count && !w->failed; i++)
            add_record(w, p, i, &numbers);
    }
    return w->failed ? sl_budget_fail(w->options->budget, error) : SL_OK;
}

/* ---- the writer ---- */

struct sl_breakpad_writer *sl_breakpad_writer_new(const struct sl_breakpad_options *options)
{
    struct sl_breakpad_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    struct sl_budget *budget = options->budget;
    w->options = options;
    w->arena.budget = w->account.budget = w->scratch.budget = budget;
    w->names.account.budget = w->names.map.budget = w->files.account.budget = w->files.map.budget = budget;
    w->sink = (struct sl_function_sink){.prepare = breakpad_collect_prepare, .consume = breakpad_collect_consume};
    return w;
}

void sl_breakpad_writer_free(struct sl_breakpad_writer *w)
{
    if (!w)
        return;
    sl_arena_free(&w->arena);
    sl_map_free(&w->names.map);
    sl_map_free(&w->files.map);
    sl_buf_free(&w->scratch);
    free(w->names.items);
    free(w->files.items);
    free(w->records);
    free(w->unnamed);
    free(w->symbols);
    free(w->map);
    sl_account_release(&w->names.account);
    sl_account_release(&w->files.account);
    sl_account_release(&w->account);
    free(w);
}

struct sl_function_sink *sl_breakpad_writer_sink(struct sl_breakpad_writer *w)
{
    return &w->sink;
}

bool sl_breakpad_writer_symbols(struct sl_breakpad_writer *w, const struct sl_symbol *symbols, size_t count)
{
    if (count > UINT32_MAX - w->symbol_count ||
        !sl_account_grow(&w->account, &w->symbols, &w->symbol_capacity, w->symbol_count + count, sizeof *w->symbols))
        return false;
    /* each gets its index as `order`: of several symbols at one address the writer names the first */
    for (size_t i = 0; i < count; i++) {
        const struct sl_symbol *s = &symbols[i];
        struct breakpad_symbol symbol = {s->address,    s->size,    s->name, (uint32_t)w->symbol_count,
                                         s->parameters, s->multiple};
        uint32_t size = 0; /* of the parameters, which stdcall and fastcall names have: "_f@8" */
        if (!s->name.size)
            continue;
        if (w->options->decorates)
            symbol.name = sl_undecorate(s->name, &size);
        if (size)
            symbol.parameters = size & INT32_MAX; /* a field of 31 bits */
        w->symbols[w->symbol_count++] = symbol;
    }
    return true;
}
