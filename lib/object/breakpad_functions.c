/* Breakpad: FUNC, INLINE and line records into the stream of functions.
 *
 * The records are cut into chunks that begin with a FUNC line; a chunk becomes a batch. Windows of chunks are read in
 * parallel. Line records are nearly all of a file, so they are scanned in one go, without looking for the line's end
 * first: every chunk ends in a newline, which no number contains. */
#include "object/breakpad.h"

#include "base/map.h"
#include "function/assemble.h"

#include <stdlib.h>

enum { CHUNK = 128 * 1024, CHUNKS_PER_WORKER = 4, SMALLEST_LINE = 8, DENSE_IDS = 65536 };

/* Names by number. Numbers count from zero in practice and index an array; what lies far above is looked up. */
struct names {
    struct sl_str *items; /* data NULL: not defined */
    size_t count, capacity;
    struct sl_map sparse; /* keys: `struct sparse_name`'s id */
    struct sl_arena arena;
    bool failed; /* out of memory */
};

struct sparse_name {
    uint64_t id;
    struct sl_str name;
    uint32_t index; /* among all sparse names */
};

struct slot {
    const char *begin, *end;      /* in the file */
    const uint8_t *text, *behind; /* what is read: the same, or a copy that ends in a newline */
    struct sl_arena arena;
    struct sl_function_batch batch;
    struct sl_line *lines;
    struct sl_function *functions;
    struct sl_file *files;
    size_t line_count, line_capacity, function_count, function_capacity, file_count, file_capacity;
    size_t skipped;
    bool defines_origin, failed;
};

/* Scratch of one worker. */
struct worker {
    struct sl_assembler assembler;
    struct sl_flat_inlinee *inlinees;
    size_t inlinee_count, inlinee_capacity;
    struct sl_line *sorted;
    size_t sorted_capacity;
    struct file_index { /* a file's index in the batch of this number */
        uint32_t batch, index;
    } * indexes;
    size_t index_capacity;
    uint32_t batch;
    uint64_t last_id; /* of the latest file asked for, and its index */
    uint32_t last_index;
};

struct reader {
    const struct sl_object *object;
    struct names files, origins;
    size_t dense_limit;
    struct worker *workers;
    struct slot *slots;
    size_t slot_count;
    struct sl_function_sink *sink;
    size_t skipped, functions;
    bool ordered; /* chunks are read one after the other: an INLINE_ORIGIN holds from its place on */
};

static bool grow(void *pointer, size_t *capacity, size_t need, size_t item)
{
    void **array = pointer;
    if (need <= *capacity)
        return true;
    size_t size = *capacity ? *capacity * 2 : 64;
    while (size < need)
        size *= 2;
    void *grown = realloc(*array, size * item);
    if (!grown)
        return false;
    *array = grown;
    *capacity = size;
    return true;
}

/* ---- names ---- */

static struct sl_str id_key(const uint64_t *id)
{
    return (struct sl_str){(const char *)id, sizeof *id};
}

static bool set_dense(struct names *names, size_t id, struct sl_str name)
{
    size_t old = names->capacity;
    if (!grow(&names->items, &names->capacity, id + 1, sizeof *names->items))
        return false;
    if (names->capacity > old)
        memset(names->items + old, 0, (names->capacity - old) * sizeof *names->items);
    names->items[id] = name;
    names->count = id >= names->count ? id + 1 : names->count;
    return true;
}

static bool set_sparse(struct names *names, uint64_t id, struct sl_str name)
{
    struct sparse_name *sparse = sl_map_get(&names->sparse, id_key(&id));
    if (!sparse) {
        sparse = SL_ARENA_NEW(&names->arena, struct sparse_name);
        if (!sparse)
            return false;
        *sparse = (struct sparse_name){.id = id, .index = (uint32_t)names->sparse.count};
        void **slot = sl_map_slot(&names->sparse, id_key(&sparse->id), NULL);
        if (!slot)
            return false;
        *slot = sparse;
    }
    sparse->name = name;
    return true;
}

/* Empty (data NULL) when there is none; `*index` numbers the names of the table without gaps above the dense ones. */
static struct sl_str names_get(const struct names *names, uint64_t id, size_t *index)
{
    *index = (size_t)id;
    if (id < names->count)
        return names->items[id];
    const struct sparse_name *sparse = names->sparse.count ? sl_map_get(&names->sparse, id_key(&id)) : NULL;
    *index = sparse ? names->count + sparse->index : SIZE_MAX;
    return sparse ? sparse->name : (struct sl_str){NULL, 0};
}

static void names_free(struct names *names)
{
    free(names->items);
    sl_map_free(&names->sparse);
    sl_arena_free(&names->arena);
}

/* `FILE number name`, `INLINE_ORIGIN number name`. False when malformed. */
static bool define(struct names *names, size_t dense_limit, struct breakpad_fields f)
{
    uint64_t id;
    if (!breakpad_decimal(&f, &id))
        return false;
    struct sl_str name = breakpad_rest(&f);
    if (!name.size || !breakpad_is_utf8(name))
        return false;
    bool ok = id < dense_limit ? set_dense(names, (size_t)id, name) : set_sparse(names, id, name);
    names->failed = names->failed || !ok;
    return true;
}

static void read_header(struct reader *r)
{
    const struct breakpad *b = r->object->impl;
    const char *begin = (const char *)r->object->bytes.data, *end = begin + b->records;
    for (const char *at = begin; at < end;) {
        struct breakpad_fields f = breakpad_line(at, end, &at);
        if (breakpad_word(&f, "FILE"))
            define(&r->files, r->dense_limit, f);
        else if (breakpad_word(&f, "INLINE_ORIGIN"))
            r->skipped += !define(&r->origins, r->dense_limit, f);
    }
}

/* Index of the file in the batch of the slot, which gets it if it is new there. */
static uint32_t file_index(const struct reader *r, struct worker *w, struct slot *slot, uint64_t id)
{
    if (id == w->last_id)
        return w->last_index;
    size_t index;
    struct sl_str name = names_get(&r->files, id, &index);
    w->last_id = id;
    w->last_index = SL_NO_FILE;
    if (!name.data || index >= w->index_capacity)
        return SL_NO_FILE;
    struct file_index *known = &w->indexes[index];
    if (known->batch != w->batch) {
        if (!grow(&slot->files, &slot->file_capacity, slot->file_count + 1, sizeof *slot->files)) {
            slot->failed = true;
            return SL_NO_FILE;
        }
        slot->files[slot->file_count] = (struct sl_file){.name = name};
        *known = (struct file_index){w->batch, (uint32_t)slot->file_count++};
    }
    return w->last_index = known->index;
}

/* ---- records ---- */

/* Values of hexadecimal digits; 16 and above: none. */
static const uint8_t digits[256] = {
    ['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15, ['6'] = 0x16, ['7'] = 0x17,
    ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1A, ['b'] = 0x1B, ['c'] = 0x1C, ['d'] = 0x1D, ['e'] = 0x1E, ['f'] = 0x1F,
    ['A'] = 0x1A, ['B'] = 0x1B, ['C'] = 0x1C, ['D'] = 0x1D, ['E'] = 0x1E, ['F'] = 0x1F,
};

/* The scanners below stop at the newline at the latest. NULL: no number, or more digits than 64 bits surely hold. */
static inline const uint8_t *scan_hex(const uint8_t *at, uint64_t *value)
{
    const uint8_t *start = at;
    uint64_t v = 0;
    for (uint8_t d; (d = digits[*at]) != 0; at++)
        v = v << 4 | (d & 15);
    *value = v;
    return at > start && at - start <= 16 ? at : NULL;
}

static inline const uint8_t *scan_decimal(const uint8_t *at, uint64_t *value)
{
    const uint8_t *start = at;
    uint64_t v = 0;
    for (unsigned d; (d = (unsigned)*at - '0') < 10; at++)
        v = v * 10 + d;
    *value = v;
    return at > start && at - start <= 19 ? at : NULL;
}

static inline const uint8_t *scan_blanks(const uint8_t *at)
{
    if (*at != ' ' && *at != '\t')
        return NULL;
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

struct line_record {
    uint64_t address, size, line, file;
};

/* `address size [-]line file`. Returns what follows the newline, NULL when the line is something else. */
static inline const uint8_t *scan_line(const uint8_t *at, struct line_record *out)
{
    if (!(at = scan_hex(at, &out->address)) || !(at = scan_blanks(at)) || !(at = scan_hex(at, &out->size)) ||
        !(at = scan_blanks(at)))
        return NULL;
    bool negative = *at == '-';
    if (!(at = scan_decimal(at + negative, &out->line)) || !(at = scan_blanks(at)) ||
        !(at = scan_decimal(at, &out->file)))
        return NULL;
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    if (negative || out->line > UINT32_MAX)
        out->line = 0;
    return *at == '\n' ? at + 1 : NULL;
}

/* `INLINE depth call-line call-file origin (address size)+`. */
static bool read_inline(const struct reader *r, struct worker *w, struct slot *slot, struct breakpad_fields f)
{
    uint64_t depth, call_line, call_file, origin;
    size_t index, first = w->inlinee_count;
    if (!breakpad_decimal(&f, &depth) || !breakpad_decimal(&f, &call_line) || !breakpad_decimal(&f, &call_file) ||
        !breakpad_decimal(&f, &origin) || f.at == f.end)
        return false;
    struct sl_flat_inlinee inlinee = {
        .name = names_get(&r->origins, origin, &index),
        .depth = depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth,
        .call_file = file_index(r, w, slot, call_file),
        .call_line = call_line > UINT32_MAX ? 0 : (uint32_t)call_line,
    };
    while (f.at < f.end) {
        if (!breakpad_hex(&f, &inlinee.address) || !breakpad_hex(&f, &inlinee.size)) {
            w->inlinee_count = first;
            return false;
        }
        if (!grow(&w->inlinees, &w->inlinee_capacity, w->inlinee_count + 1, sizeof inlinee)) {
            slot->failed = true;
            return true;
        }
        w->inlinees[w->inlinee_count++] = inlinee;
    }
    return true;
}

/* `FUNC [m] address size parameter-size [name]`. */
static bool read_func(struct breakpad_fields f, struct sl_function *function)
{
    uint64_t parameters;
    breakpad_word(&f, "m");
    *function = (struct sl_function){0};
    if (!breakpad_hex(&f, &function->address) || !breakpad_hex(&f, &function->size) || !breakpad_hex(&f, &parameters))
        return false;
    function->name = breakpad_rest(&f);
    if (!function->name.size)
        function->name = SL_STR("<unknown>");
    return breakpad_is_utf8(function->name);
}

/* ---- functions ---- */

static uint64_t end_of(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

/* Stable merge sort by address, for the rare function whose lines are out of order. */
static bool sort_lines(struct worker *w, struct sl_line *lines, size_t count)
{
    if (!grow(&w->sorted, &w->sorted_capacity, count, sizeof *lines))
        return false;
    struct sl_line *from = lines, *to = w->sorted;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - middle < width ? count : middle + width;
            size_t a = start, b = middle;
            for (size_t i = start; i < end; i++)
                to[i] = b >= end || (a < middle && from[a].address <= from[b].address) ? from[a++] : from[b++];
        }
        struct sl_line *swap = from;
        from = to;
        to = swap;
    }
    if (from != lines)
        memcpy(lines, from, count * sizeof *lines);
    return true;
}

/* Without inlinees there is nothing to assemble: the lines stay where they were read, cut to the function. */
static void take_lines(struct sl_function *function, struct sl_line *lines, size_t count, uint64_t lines_end)
{
    uint64_t end = end_of(function->address, function->size);
    while (count && lines->address < function->address) {
        lines++;
        count--;
    }
    while (count && lines[count - 1].address >= end)
        count--;
    for (size_t i = 0; lines_end > end && i < count; i++)
        if (lines[i].size > end - lines[i].address)
            lines[i].size = end - lines[i].address;
    function->lines = lines;
    function->line_count = (uint32_t)count;
}

struct open_function {
    struct sl_function function;
    size_t first_line;
    uint64_t last_address, lines_end;
    bool open, sorted;
};

static void close_function(struct worker *w, struct slot *slot, struct open_function *open)
{
    struct sl_line *lines = slot->lines + open->first_line;
    size_t count = slot->line_count - open->first_line;
    if (!open->open)
        return;
    open->open = false;
    if ((!open->sorted && !sort_lines(w, lines, count)) || count > UINT32_MAX ||
        !grow(&slot->functions, &slot->function_capacity, slot->function_count + 1, sizeof open->function)) {
        slot->failed = true;
        return;
    }
    if (!w->inlinee_count) {
        take_lines(&open->function, lines, count, open->lines_end);
    } else {
        slot->failed = slot->failed || !sl_assemble(&w->assembler, &slot->arena, &open->function, w->inlinees,
                                                    w->inlinee_count, lines, count);
        slot->line_count = open->first_line; /* they were copied */
    }
    slot->functions[slot->function_count++] = open->function;
}

/* Anything but a line record. Returns what follows the line. */
static const uint8_t *read_record(struct reader *r, struct worker *w, struct slot *slot, const uint8_t *at,
                                  struct open_function *open)
{
    const char *next;
    struct breakpad_fields f = breakpad_line((const char *)at, (const char *)slot->behind, &next);
    if (f.at == f.end)
        return (const uint8_t *)next;
    if (breakpad_word(&f, "FUNC")) {
        close_function(w, slot, open);
        w->inlinee_count = 0;
        *open = (struct open_function){.first_line = slot->line_count, .sorted = true};
        open->open = read_func(f, &open->function);
        slot->skipped += !open->open;
    } else if (breakpad_word(&f, "PUBLIC")) {
        close_function(w, slot, open);
    } else if (breakpad_word(&f, "INLINE_ORIGIN")) {
        if (!r->ordered)
            slot->defines_origin = true;
        else
            slot->skipped += !define(&r->origins, r->dense_limit, f);
    } else if (open->open) {
        slot->skipped += !breakpad_word(&f, "INLINE") || !read_inline(r, w, slot, f);
    }
    return (const uint8_t *)next;
}

static void read_lines(struct reader *r, struct worker *w, struct slot *slot)
{
    struct open_function open = {.open = false};
    struct line_record record;
    const uint8_t *at = slot->text, *next;
    while (at < slot->behind && !slot->defines_origin && !slot->failed) {
        while (*at == ' ' || *at == '\t')
            at++;
        if (!digits[*at] || !(next = scan_line(at, &record))) {
            at = read_record(r, w, slot, at, &open);
            continue;
        }
        at = next;
        if (!record.size || !open.open)
            continue;
        open.sorted = open.sorted && record.address >= open.last_address;
        open.last_address = record.address;
        uint64_t record_end = end_of(record.address, record.size);
        open.lines_end = record_end > open.lines_end ? record_end : open.lines_end;
        slot->lines[slot->line_count++] = (struct sl_line){
            .address = record.address,
            .size = record.size,
            .file = file_index(r, w, slot, record.file),
            .line = (uint32_t)record.line,
        };
    }
    close_function(w, slot, &open);
}

/* Puts a newline behind a file that has none. */
static bool set_text(struct slot *slot)
{
    size_t size = (size_t)(slot->end - slot->begin);
    slot->text = (const uint8_t *)slot->begin;
    slot->behind = (const uint8_t *)slot->end;
    if (slot->end[-1] == '\n')
        return true;
    uint8_t *copy = sl_arena_alloc(&slot->arena, size + 1, 1);
    if (!copy)
        return false;
    memcpy(copy, slot->begin, size);
    copy[size] = '\n';
    slot->text = copy;
    slot->behind = copy + size + 1;
    return true;
}

static void read_chunk(void *arg, size_t index, unsigned worker)
{
    struct reader *r = arg;
    struct worker *w = &r->workers[worker];
    struct slot *slot = &r->slots[index];
    slot->line_count = slot->function_count = slot->file_count = slot->skipped = 0;
    slot->defines_origin = slot->failed = false;
    w->inlinee_count = 0;
    w->last_id = UINT64_MAX;
    w->last_index = SL_NO_FILE;
    if (++w->batch == 0) { /* the numbers are used up: none of the old ones may be met again */
        memset(w->indexes, 0, w->index_capacity * sizeof *w->indexes);
        w->batch = 1;
    }
    if (!set_text(slot) || !grow(&slot->lines, &slot->line_capacity,
                                 (size_t)(slot->behind - slot->text) / SMALLEST_LINE + 1, sizeof *slot->lines)) {
        slot->failed = true;
        return;
    }
    read_lines(r, w, slot);
    slot->batch = (struct sl_function_batch){
        .files = slot->files,
        .file_count = slot->file_count,
        .functions = slot->functions,
        .function_count = slot->function_count,
    };
}

static void prepare_chunk(void *arg, size_t index, unsigned worker)
{
    struct reader *r = arg;
    struct slot *slot = &r->slots[index];
    if (r->sink->prepare && !slot->failed)
        r->sink->prepare(r->sink, &slot->batch, &slot->arena, worker);
}

/* ---- windows ---- */

/* The end of the chunk that begins at `at`: the next FUNC line behind its usual size. */
static const char *chunk_end(const char *at, const char *end)
{
    if (end - at <= CHUNK)
        return end;
    at += CHUNK;
    while ((at = memchr(at, '\n', (size_t)(end - at))) && end - at > 5)
        if (memcmp(++at, "FUNC ", 5) == 0)
            return at;
    return end;
}

static size_t plan_window(struct reader *r, const char *at, const char *end)
{
    size_t count = 0;
    for (; count < r->slot_count && at < end; count++) {
        r->slots[count].begin = at;
        at = r->slots[count].end = chunk_end(at, end);
    }
    return count;
}

/* Reads a window of chunks and returns how many can be used: those before the first that has to be read in order. */
static size_t read_window(struct reader *r, const struct sl_parallel *parallel, size_t count)
{
    if (r->ordered) {
        for (size_t i = 0; i < count; i++)
            read_chunk(r, i, 0);
        return count;
    }
    sl_parallel_run(parallel, count, read_chunk, r);
    for (size_t i = 0; i < count; i++)
        if (r->slots[i].defines_origin) {
            r->ordered = true;
            return i;
        }
    return count;
}

static enum sl_code consume_window(struct reader *r, const struct sl_parallel *parallel, size_t count,
                                   struct sl_error *error)
{
    enum sl_code code = SL_OK;
    sl_parallel_run(parallel, count, prepare_chunk, r);
    for (size_t i = 0; i < count && code == SL_OK; i++) {
        struct slot *slot = &r->slots[i];
        if (slot->failed)
            return sl_fail(error, SL_INTERNAL, "out of memory");
        r->skipped += slot->skipped;
        r->functions += slot->function_count;
        if (slot->function_count)
            code = r->sink->consume(r->sink, &slot->batch, error);
    }
    return code;
}

static enum sl_code read_all(struct reader *r, const struct sl_parallel *parallel, struct sl_error *error)
{
    const struct breakpad *b = r->object->impl;
    const char *begin = (const char *)r->object->bytes.data, *at = begin + b->records, *end = begin + b->end;
    enum sl_code code = SL_OK;
    while (at < end && code == SL_OK) {
        size_t count = read_window(r, parallel, plan_window(r, at, end));
        at = count ? r->slots[count - 1].end : at;
        code = r->origins.failed ? sl_fail(error, SL_INTERNAL, "out of memory")
                                 : consume_window(r, parallel, count, error);
        for (size_t i = 0; i < r->slot_count; i++)
            sl_arena_reset(&r->slots[i].arena);
    }
    return code;
}

static bool reader_init(struct reader *r, unsigned workers)
{
    r->slot_count = workers == 1 ? 1 : (size_t)workers * CHUNKS_PER_WORKER;
    r->ordered = workers == 1;
    r->dense_limit = r->object->bytes.size / SMALLEST_LINE;
    r->dense_limit = r->dense_limit < DENSE_IDS ? DENSE_IDS : r->dense_limit;
    r->slots = calloc(r->slot_count, sizeof *r->slots);
    r->workers = calloc(workers, sizeof *r->workers);
    if (!r->slots || !r->workers)
        return false;
    read_header(r);
    if (r->files.failed || r->origins.failed)
        return false;
    size_t files = r->files.count + r->files.sparse.count;
    for (unsigned i = 0; i < workers; i++) {
        r->workers[i].indexes = calloc(files ? files : 1, sizeof *r->workers[i].indexes);
        r->workers[i].index_capacity = files;
        if (!r->workers[i].indexes)
            return false;
    }
    return true;
}

static void reader_free(struct reader *r, unsigned workers)
{
    for (size_t i = 0; r->slots && i < r->slot_count; i++) {
        sl_arena_free(&r->slots[i].arena);
        free(r->slots[i].lines);
        free(r->slots[i].functions);
        free(r->slots[i].files);
    }
    for (unsigned i = 0; r->workers && i < workers; i++) {
        sl_assembler_free(&r->workers[i].assembler);
        free(r->workers[i].inlinees);
        free(r->workers[i].sorted);
        free(r->workers[i].indexes);
    }
    free(r->slots);
    free(r->workers);
    names_free(&r->files);
    names_free(&r->origins);
}

enum sl_code breakpad_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                     struct sl_function_sink *sink, struct sl_error *error)
{
    if (!object->info.features.has_debug_info)
        return sl_fail(error, SL_NOT_FOUND, "no debug information");
    unsigned workers = sl_parallel_workers(parallel);
    struct reader r = {.object = object, .sink = sink};
    enum sl_code code =
        reader_init(&r, workers) ? read_all(&r, parallel, error) : sl_fail(error, SL_INTERNAL, "out of memory");
    sink->skipped_units += r.skipped;
    if (code == SL_OK && !r.functions && !object->info.features.has_symbols)
        code = sl_fail(error, SL_MALFORMED, "bad debug file: parsing error");
    reader_free(&r, workers);
    return code;
}
