/* Breakpad: reads all functions, in windows of several chunks (parts of the file) that are read in parallel. */
#include "object/breakpad_reader.h"

#include <stdlib.h>

/* CHUNK: smallest size of a chunk in bytes. DENSE_IDS: names with smaller numbers are in an array, not in a map, however small the file is.
 * SMALLEST_NAME: bytes of the shortest record with a name. */
enum { CHUNK = 128 * 1024, CHUNKS_PER_WORKER = 4, DENSE_IDS = 65536, SMALLEST_NAME = 8 /* "FILE 0 a" */ };

/* A task of sl_parallel_run(): reads chunk `index`. */
static void read_chunk(void *arg, size_t index, unsigned worker)
{
    struct breakpad_reader *r = arg;
    breakpad_chunk_read(r, &r->chunks[index], &r->workers[worker]);
}

/* A task of sl_parallel_run(): lets the sink prepare the functions of chunk `index`. */
static void prepare_chunk(void *arg, size_t index, unsigned worker)
{
    struct breakpad_reader *r = arg;
    struct breakpad_chunk *chunk = &r->chunks[index];
    if (r->sink->prepare && !chunk->failed)
        r->sink->prepare(r->sink, &chunk->batch, &chunk->arena, worker);
}

/* Returns the end of the chunk that begins at `at`: the first FUNC line at least CHUNK bytes after `at`, or the end of the file. */
static const char *chunk_end(const char *at, const char *end)
{
    if (end - at <= CHUNK)
        return end;
    at += CHUNK;
    while ((at = memchr(at, '\n', (size_t)(end - at))) && end - at > 5) /* 5: room for "FUNC " after the newline */
        if (memcmp(++at, "FUNC ", 5) == 0)
            return at;
    return end;
}

/* Divides the file from `at` into at most r->chunk_count chunks, a window; returns their number. */
static size_t plan_window(struct breakpad_reader *r, const char *at, const char *end)
{
    size_t count = 0;
    for (; count < r->chunk_count && at < end; count++) {
        r->chunks[count].begin = at;
        at = r->chunks[count].end = chunk_end(at, end);
    }
    return count;
}

/* Reads `count` chunks and returns how many of them can be used. An INLINE_ORIGIN between functions is valid from its line on, so a chunk
 * with one must be read before the chunks after it. Then only the chunks before it can be used, and one worker reads the rest of the file
 * in order (r->ordered). */
static size_t read_window(struct breakpad_reader *r, const struct sl_parallel *parallel, size_t count)
{
    if (r->ordered) {
        for (size_t i = 0; i < count; i++)
            read_chunk(r, i, 0); /* 0: the first worker */
        return count;
    }
    sl_parallel_run(parallel, count, read_chunk, r);
    for (size_t i = 0; i < count; i++)
        /* the next window begins with this chunk, which is then read again in order */
        if (r->chunks[i].defines_origin) {
            r->ordered = true;
            return i;
        }
    return count;
}

/* Passes the functions of `count` chunks to the sink in file order, and adds up the malformed lines. The first one of the file becomes
 * sink->first_skipped, unless lines of the header were malformed: only their number is known. Returns the first error: of the sink, or lack
 * of memory or budget in a chunk. */
static enum sl_code consume_window(struct breakpad_reader *r, const struct sl_parallel *parallel, size_t count,
                                   struct sl_error *error)
{
    enum sl_code code = SL_OK;
    sl_parallel_run(parallel, count, prepare_chunk, r); /* what the sink can do with each chunk by itself */
    for (size_t i = 0; i < count && code == SL_OK; i++) {
        struct breakpad_chunk *chunk = &r->chunks[i];
        if (chunk->failed)
            return sl_budget_fail(r->object->budget, error);
        if (chunk->skipped && !r->skipped)
            sl_fail(&r->sink->first_skipped, SL_MALFORMED, "invalid line at offset %zu of the Breakpad file",
                    (size_t)(chunk->begin - (const char *)r->object->bytes.data) + chunk->first_skipped);
        r->skipped += chunk->skipped;
        r->functions += chunk->function_count;
        if (chunk->function_count)
            code = r->sink->consume(r->sink, &chunk->batch, error);
    }
    return code;
}

/* Reads all records from the first FUNC or PUBLIC record to the first STACK record, and passes the functions to the sink. */
static enum sl_code breakpad_functions_read_all(struct breakpad_reader *r, const struct sl_parallel *parallel,
                                                struct sl_error *error)
{
    const struct breakpad *b = r->object->impl;
    const char *begin = (const char *)r->object->bytes.data, *at = begin + b->records, *end = begin + b->end;
    enum sl_code code = SL_OK;
    while (at < end && code == SL_OK) {
        size_t count = read_window(r, parallel, plan_window(r, at, end));
        at = count ? r->chunks[count - 1].end : at; /* 0: the first chunk must be read again in order */
        code = r->origins.failed ? sl_budget_fail(r->object->budget, error) : consume_window(r, parallel, count, error);
        for (size_t i = 0; i < r->chunk_count; i++)
            sl_arena_reset(&r->chunks[i].arena); /* the sink needs them no longer */
    }
    return code;
}

/* Adds the file of a FILE record to the table. `<unknown>` is left out: writers use it for lines that have no file. */
static void define_file(struct breakpad_names *files, struct breakpad_fields f)
{
    struct breakpad_fields rest = f;
    uint64_t number;
    if (!breakpad_decimal(&rest, &number) || !sl_str_equal(breakpad_rest(&rest), SL_STR("<unknown>")))
        breakpad_names_define(files, f);
}

/* Reads the names of files (FILE) and inlined functions (INLINE_ORIGIN) in front of the first FUNC or PUBLIC record. Malformed
 * INLINE_ORIGIN records are counted in r->skipped; malformed FILE records are ignored. */
static void breakpad_functions_read_header(struct breakpad_reader *r)
{
    const struct breakpad *b = r->object->impl;
    const char *begin = (const char *)r->object->bytes.data, *end = begin + b->records;
    for (const char *at = begin; at < end;) {
        struct breakpad_fields f = breakpad_line(at, end, &at);
        if (breakpad_word(&f, SL_STR("FILE")))
            define_file(&r->files, f);
        else if (breakpad_word(&f, SL_STR("INLINE_ORIGIN")))
            r->skipped += !breakpad_names_define(&r->origins, f);
    }
}

/* Initialises tables of names, chunks and workers, and reads the header; false when out of memory. Names with a number below `names` are
 * stored in an array, others in a map, because a crafted file may use any numbers. `names` is the most names that a file of this size has
 * room for, but at least DENSE_IDS. */
static bool reader_init(struct breakpad_reader *r, unsigned workers)
{
    r->chunk_count = workers == 1 ? 1 : (size_t)workers * CHUNKS_PER_WORKER;
    r->ordered = workers == 1; /* a single worker reads chunks in order anyway */
    size_t names = r->object->bytes.size / SMALLEST_NAME;
    struct sl_budget *budget = r->object->budget;
    names = names < DENSE_IDS ? DENSE_IDS : names;
    breakpad_names_init(&r->files, names, budget);
    breakpad_names_init(&r->origins, names, budget);
    r->chunks = calloc(r->chunk_count, sizeof *r->chunks);
    r->workers = calloc(workers, sizeof *r->workers);
    if (!r->chunks || !r->workers)
        return false;
    for (size_t i = 0; i < r->chunk_count; i++)
        r->chunks[i].account.budget = r->chunks[i].arena.budget = budget;
    breakpad_functions_read_header(r);
    if (r->files.failed || r->origins.failed)
        return false;
    size_t files = breakpad_names_count(&r->files);
    for (unsigned i = 0; i < workers; i++) {
        struct breakpad_worker *w = &r->workers[i];
        w->account.budget = w->assembler.account.budget = budget;
        w->indexes = sl_account_alloc(&w->account, files, sizeof *w->indexes);
        if (!w->indexes)
            return false;
        memset(w->indexes, 0, files * sizeof *w->indexes);
        w->index_count = files;
    }
    return true;
}

/* Frees tables, chunks and workers, also those of a reader_init that failed half-way. */
static void reader_free(struct breakpad_reader *r, unsigned workers)
{
    for (size_t i = 0; r->chunks && i < r->chunk_count; i++) {
        sl_arena_free(&r->chunks[i].arena);
        free(r->chunks[i].lines);
        free(r->chunks[i].functions);
        free(r->chunks[i].flats);
        free(r->chunks[i].inlinees);
        free(r->chunks[i].files);
        sl_account_release(&r->chunks[i].account);
    }
    for (unsigned i = 0; r->workers && i < workers; i++) {
        sl_assembler_free(&r->workers[i].assembler);
        free(r->workers[i].sorted);
        free(r->workers[i].indexes);
        sl_account_release(&r->workers[i].account);
    }
    free(r->chunks);
    free(r->workers);
    breakpad_names_free(&r->files);
    breakpad_names_free(&r->origins);
}

/* Reads functions with lines and inlined calls. SL_NOT_FOUND if the file has no FUNC record; SL_MALFORMED if no
 * function could be read and there are no PUBLIC records either. Malformed lines are counted in sink->skipped_units. */
enum sl_code breakpad_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                     struct sl_function_sink *sink, struct sl_error *error)
{
    if (!object->info.features.has_debug_info)
        return sl_fail(error, SL_NOT_FOUND, "no debug information");
    unsigned workers = sl_parallel_workers(parallel);
    struct breakpad_reader r = {.object = object, .sink = sink};
    enum sl_code code = reader_init(&r, workers) ? breakpad_functions_read_all(&r, parallel, error)
                                                 : sl_budget_fail(object->budget, error);
    sink->skipped_units += r.skipped;
    if (code == SL_OK && !r.functions && !object->info.features.has_symbols) /* has_symbols: PUBLIC records */
        code = sl_fail(error, SL_MALFORMED, "bad debug file: no FUNC record of the Breakpad file can be read");
    reader_free(&r, workers);
    return code;
}
