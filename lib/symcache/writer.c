/* Collecting: functions and symbols become operations on the address map. */
#include "symcache/build.h"

#include "base/map.h"
#include "dwarf/dwarf.h"
#include "function/path.h"

#include <stdlib.h>

/* What prepare makes of a batch: ids are local to it. */
struct prepared {
    struct op *ops;
    struct context *contexts;
    struct local_function {
        struct sl_str name;
        uint64_t hash, entry;
        enum sl_language language;
    } * functions;
    struct text *files; /* full paths; data NULL = none */
    size_t op_count, op_capacity, context_count, context_capacity, function_count, function_capacity, file_count;
    const struct sl_function_batch *batch;
    const struct sl_symcache_writer *writer;
    struct sl_arena *arena;
    bool failed;
};

struct call { /* from `address` on, the callee's parent is this location */
    uint64_t address;
    uint32_t context, file, line;
};

struct span {
    uint64_t start, end;
};

bool symcache_grow(struct sl_symcache_writer *w, void *pointer, size_t *capacity, size_t need, size_t item)
{
    void **array = pointer;
    if (need <= *capacity)
        return true;
    size_t size = *capacity ? *capacity + *capacity / 2 : 1024;
    if (size < need)
        size = need;
    void *grown = realloc(*array, size * item);
    if (!grown) {
        w->failed = true;
        return false;
    }
    *array = grown;
    *capacity = size;
    return true;
}

static bool grow_local(struct prepared *p, void *pointer, size_t *capacity, size_t need, size_t item)
{
    void **array = pointer;
    if (need <= *capacity)
        return true;
    size_t size = *capacity ? *capacity * 2 : 256;
    void *grown = sl_arena_alloc(p->arena, size * item, 8);
    if (!grown) {
        p->failed = true;
        return false;
    }
    if (*capacity)
        memcpy(grown, *array, *capacity * item);
    *array = grown;
    *capacity = size;
    return true;
}

static void add_op(struct prepared *p, enum op_kind kind, uint64_t address, uint32_t context, uint32_t file,
                   uint32_t line)
{
    if (address <= max_address && grow_local(p, &p->ops, &p->op_capacity, p->op_count + 1, sizeof *p->ops))
        p->ops[p->op_count++] = (struct op){address, context, file, line > MAX_LINE ? 0 : line, kind};
}

static uint32_t add_context(struct prepared *p, struct context context)
{
    if (!grow_local(p, &p->contexts, &p->context_capacity, p->context_count + 1, sizeof *p->contexts))
        return 0;
    p->contexts[p->context_count] = context;
    return (uint32_t)p->context_count++;
}

static uint32_t add_function(struct prepared *p, const struct sl_function *function, bool inlinee)
{
    if (!grow_local(p, &p->functions, &p->function_capacity, p->function_count + 1, sizeof *p->functions))
        return 0;
    const struct sl_symcache_options *o = &p->writer->options;
    struct sl_str name = o->map_name ? o->map_name(o->map_arg, function->name) : function->name;
    if (o->is_windows)
        name = symcache_undecorate(name);
    p->functions[p->function_count] = (struct local_function){
        name, sl_hash(name.data, name.size), inlinee ? UINT64_MAX : function->address, function->language};
    return (uint32_t)p->function_count++;
}

static uint64_t end_of(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

static int by_start(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* The code that direct inlinees cover, sorted by start. */
static struct span *inlinee_spans(struct prepared *p, const struct sl_function *function, size_t *count)
{
    size_t total = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < function->inlinee_count; i++)
        total += function->inlinees[i].line_count;
    struct span *spans = total ? sl_arena_alloc(p->arena, total * sizeof *spans, 8) : NULL;
    *count = 0;
    if (!spans)
        return NULL;
    for (uint32_t i = 0; i < function->inlinee_count; i++) {
        const struct sl_function *inlinee = &function->inlinees[i];
        for (uint32_t j = 0; j < inlinee->line_count; j++) {
            const struct sl_line *line = &inlinee->lines[j];
            spans[*count] = (struct span){line->address, end_of(line->address, line->size ? line->size : 1)};
            sorted = sorted && (*count == 0 || spans[*count - 1].start <= line->address);
            ++*count;
        }
    }
    if (!sorted)
        qsort(spans, *count, sizeof *spans, by_start);
    return spans;
}

struct location {
    uint32_t file, line;
};

static struct location mapped(struct prepared *p, const struct sl_line *line)
{
    struct location l = {line->file < p->file_count ? line->file : SL_NO_FILE, line->line};
    return l;
}

static void add_function_ops(struct prepared *p, const struct sl_function *f, const struct call *calls,
                             size_t call_count, bool inlinee)
{
    if (!f->size || f->address > max_address)
        return;
    uint32_t id = add_function(p, f, inlinee), context = NO_CONTEXT, base = NO_CONTEXT;
    size_t span_count, next_span = 0, at_call = 0, context_call = SIZE_MAX, callee_count = 0;
    struct span *spans = inlinee_spans(p, f, &span_count);
    struct call *callees = span_count ? sl_arena_alloc(p->arena, span_count * sizeof *callees, 8) : NULL;
    if (span_count && !callees) {
        p->failed = true;
        return;
    }
    uint64_t covered = 0;
    bool any = false;
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        uint64_t cur = line->address, end = end_of(cur, line->size ? line->size : 1);
        if (any && cur < covered)
            continue;
        while (at_call + 1 < call_count && calls[at_call + 1].address <= cur)
            at_call++;
        struct location l = mapped(p, line);
        if (context_call != at_call) {
            context_call = at_call;
            context = add_context(
                p, (struct context){id, calls[at_call].context, calls[at_call].file, calls[at_call].line, l.file});
            if (base == NO_CONTEXT)
                base = context;
        }
        while (cur < end) {
            if (next_span >= span_count || spans[next_span].start > cur)
                add_op(p, OP_SET, cur, context, l.file, l.line);
            if (next_span < span_count && spans[next_span].start < end) {
                callees[callee_count++] = (struct call){spans[next_span].start, context, l.file, l.line};
                if (spans[next_span].end > cur)
                    cur = spans[next_span].end;
                next_span++;
            } else {
                cur = end;
            }
        }
        covered = cur;
        any = true;
    }
    if (!inlinee) {
        if (base == NO_CONTEXT)
            base = add_context(p, (struct context){id, NO_CONTEXT, SL_NO_FILE, 0, SL_NO_FILE});
        add_op(p, OP_ENTRY, f->address, base, SL_NO_FILE, 0);
    }
    for (uint32_t i = 0; callee_count && i < f->inlinee_count; i++)
        add_function_ops(p, &f->inlinees[i], callees, callee_count, true);
    add_op(p, OP_HOLE, end_of(f->address, f->size), NO_CONTEXT, SL_NO_FILE, 0);
}

static void prepare_files(struct prepared *p)
{
    struct sl_buf path = {0};
    p->file_count = p->batch->file_count;
    p->files = SL_ARENA_ARRAY(p->arena, struct text, p->file_count + 1);
    for (size_t i = 0; p->files && i < p->file_count; i++) {
        const struct sl_file *file = &p->batch->files[i];
        sl_buf_clear(&path);
        sl_path_full(&path, file->comp_dir, file->directory, file->name);
        char *copy = path.size ? sl_arena_strndup(p->arena, (char *)path.data, path.size) : NULL;
        if (copy)
            p->files[i] = (struct text){{copy, path.size}, sl_hash(copy, path.size)};
    }
    p->failed = p->failed || !p->files;
    sl_buf_free(&path);
}

static void prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                    unsigned worker)
{
    (void)worker;
    static const struct call outermost = {0, NO_CONTEXT, SL_NO_FILE, 0};
    struct prepared *p = SL_ARENA_NEW(arena, struct prepared);
    batch->prepared = p;
    if (!p)
        return;
    p->batch = batch;
    p->writer = (const struct sl_symcache_writer *)sink;
    p->arena = arena;
    prepare_files(p);
    for (size_t i = 0; i < batch->function_count && !p->failed; i++)
        add_function_ops(p, &batch->functions[i], &outermost, 1, false);
}

/* ---- interning ---- */

/* The slot of an item with `hash`, for which `same` says yes; a free one if there is none. */
static struct table_slot *find_slot(struct table *t, uint64_t hash, bool (*same)(const void *arg, uint32_t index),
                                    const void *arg)
{
    size_t mask = t->capacity - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct table_slot *slot = &t->slots[at];
        if (!slot->index || (slot->hash == (uint32_t)hash && same(arg, slot->index - 1)))
            return slot;
    }
}

static bool make_room(struct sl_symcache_writer *w, struct table *t)
{
    if ((t->count + 1) * 2 <= t->capacity)
        return true;
    size_t capacity = t->capacity ? t->capacity * 4 : 4096;
    struct table_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots) {
        w->failed = true;
        return false;
    }
    for (size_t i = 0; i < t->capacity; i++) {
        if (!t->slots[i].index)
            continue;
        size_t at = t->slots[i].hash & (capacity - 1);
        while (slots[at].index)
            at = (at + 1) & (capacity - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    return true;
}

/* Fills the free slot with the item just appended and returns its index. */
static uint32_t take_slot(struct table *t, struct table_slot *slot, uint64_t hash, size_t count)
{
    *slot = (struct table_slot){(uint32_t)hash, (uint32_t)count};
    t->count++;
    return (uint32_t)count - 1;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ 0x9E3779B97F4A7C15u) * 0xC2B2AE3D27D4EB4Fu;
    h = (h ^ (h >> 29) ^ b) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

struct text_query {
    const struct sl_symcache_writer *w;
    struct text text;
};

static bool same_text(const void *arg, uint32_t i)
{
    const struct text_query *q = arg;
    const struct text *t = &q->w->texts[i];
    return t->hash == q->text.hash && sl_str_equal(t->str, q->text.str);
}

static uint32_t intern_text(struct sl_symcache_writer *w, struct sl_str str, uint64_t hash)
{
    struct text_query query = {w, {str, hash}};
    if (!make_room(w, &w->text_table))
        return 0;
    struct table_slot *slot = find_slot(&w->text_table, hash, same_text, &query);
    if (slot->index)
        return slot->index - 1;
    char *copy = sl_arena_strndup(&w->arena, str.data, str.size);
    if (!copy || !symcache_grow(w, &w->texts, &w->text_capacity, w->text_count + 1, sizeof *w->texts)) {
        w->failed = true;
        return 0;
    }
    w->texts[w->text_count] = (struct text){{copy, str.size}, hash};
    return take_slot(&w->text_table, slot, hash, ++w->text_count);
}

struct function_query {
    const struct sl_symcache_writer *w;
    struct function_row row;
};

static bool same_function(const void *arg, uint32_t i)
{
    const struct function_query *q = arg;
    const struct function_row *f = &q->w->functions[i];
    return f->name == q->row.name && f->entry == q->row.entry && f->language == q->row.language;
}

static uint32_t intern_function(struct sl_symcache_writer *w, struct function_row row)
{
    struct function_query query = {w, row};
    if (!make_room(w, &w->function_table))
        return 0;
    uint64_t hash = mix((uint64_t)row.name << 8 | row.language, row.entry);
    struct table_slot *slot = find_slot(&w->function_table, hash, same_function, &query);
    if (slot->index)
        return slot->index - 1;
    if (!symcache_grow(w, &w->functions, &w->function_capacity, w->function_count + 1, sizeof *w->functions))
        return 0;
    w->functions[w->function_count] = row;
    return take_slot(&w->function_table, slot, hash, ++w->function_count);
}

static uint64_t context_key_hash(const struct context *c)
{
    return mix((uint64_t)c->function << 32 | c->parent, (uint64_t)c->call_file << 32 | c->call_line);
}

struct context_query {
    const struct sl_symcache_writer *w;
    struct context context;
};

static bool same_context(const void *arg, uint32_t i)
{
    const struct context_query *q = arg;
    const struct context *c = &q->w->contexts[i];
    return c->function == q->context.function && c->parent == q->context.parent &&
           c->call_file == q->context.call_file && c->call_line == q->context.call_line;
}

static uint32_t intern_context(struct sl_symcache_writer *w, struct context context)
{
    struct context_query query = {w, context};
    if (!make_room(w, &w->context_table))
        return 0;
    uint64_t hash = context_key_hash(&context);
    struct table_slot *slot = find_slot(&w->context_table, hash, same_context, &query);
    if (slot->index)
        return slot->index - 1;
    if (!symcache_grow(w, &w->contexts, &w->context_capacity, w->context_count + 1, sizeof *w->contexts))
        return 0;
    w->contexts[w->context_count] = context;
    return take_slot(&w->context_table, slot, hash, ++w->context_count);
}

struct file_query {
    const struct sl_symcache_writer *w;
    uint32_t path;
};

static bool same_file(const void *arg, uint32_t i)
{
    const struct file_query *q = arg;
    return q->w->files[i] == q->path;
}

static uint32_t intern_file(struct sl_symcache_writer *w, const struct text *path)
{
    if (!path->str.size || !make_room(w, &w->file_table))
        return SL_NO_FILE;
    struct file_query query = {w, intern_text(w, path->str, path->hash)};
    uint64_t hash = mix(query.path, 1);
    struct table_slot *slot = find_slot(&w->file_table, hash, same_file, &query);
    if (slot->index)
        return slot->index - 1;
    if (!symcache_grow(w, &w->files, &w->file_capacity, w->file_count + 1, sizeof *w->files))
        return SL_NO_FILE;
    w->files[w->file_count] = query.path;
    return take_slot(&w->file_table, slot, hash, ++w->file_count);
}

/* Local ids of the batch to global ones, in the order of the batch. */
static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    struct sl_symcache_writer *w = (struct sl_symcache_writer *)sink;
    struct prepared *p = batch->prepared;
    if (!p || p->failed)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    size_t need = p->file_count + p->function_count + p->context_count + 1;
    if (!symcache_grow(w, &w->map, &w->map_capacity, need, sizeof *w->map) ||
        !symcache_grow(w, &w->ops, &w->op_capacity, w->op_count + p->op_count, sizeof *w->ops))
        return sl_fail(error, SL_INTERNAL, "out of memory");
    uint32_t *files = w->map, *functions = files + p->file_count, *contexts = functions + p->function_count;
    for (size_t i = 0; i < p->file_count; i++)
        files[i] = intern_file(w, &p->files[i]);
    for (size_t i = 0; i < p->function_count; i++) {
        const struct local_function *f = &p->functions[i];
        functions[i] =
            intern_function(w, (struct function_row){f->entry, intern_text(w, f->name, f->hash), (uint8_t)f->language});
    }
    for (size_t i = 0; i < p->context_count; i++) {
        struct context c = p->contexts[i]; /* a parent stands before its children */
        c.function = functions[c.function];
        c.parent = c.parent == NO_CONTEXT ? NO_CONTEXT : contexts[c.parent];
        c.call_file = c.call_file == SL_NO_FILE ? SL_NO_FILE : files[c.call_file];
        c.file = c.file == SL_NO_FILE ? SL_NO_FILE : files[c.file];
        contexts[i] = intern_context(w, c);
    }
    for (size_t i = 0; i < p->op_count; i++) {
        struct op op = p->ops[i];
        if (op.context != NO_CONTEXT)
            op.context = contexts[op.context];
        if (op.file != SL_NO_FILE)
            op.file = files[op.file];
        w->ops[w->op_count++] = op;
    }
    return w->failed ? sl_fail(error, SL_INTERNAL, "out of memory") : SL_OK;
}

/* ---- the writer ---- */

struct sl_symcache_writer *sl_symcache_writer_new(const struct sl_symcache_options *options,
                                                  const struct sl_parallel *parallel)
{
    struct sl_symcache_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->options = *options;
    w->parallel = parallel;
    w->sink = (struct sl_function_sink){.prepare = prepare, .consume = consume};
    return w;
}

void sl_symcache_writer_free(struct sl_symcache_writer *w)
{
    if (!w)
        return;
    sl_arena_free(&w->arena);
    free(w->ops);
    free(w->contexts);
    free(w->functions);
    free(w->files);
    free(w->texts);
    free(w->map);
    free(w->context_table.slots);
    free(w->function_table.slots);
    free(w->file_table.slots);
    free(w->text_table.slots);
    free(w);
}

struct sl_function_sink *sl_symcache_writer_sink(struct sl_symcache_writer *w)
{
    return &w->sink;
}

void sl_symcache_writer_symbols(struct sl_symcache_writer *w, const struct sl_symbol *symbols, size_t count)
{
    const struct sl_symcache_options *o = &w->options;
    if (!symcache_grow(w, &w->ops, &w->op_capacity, w->op_count + 2 * count, sizeof *w->ops))
        return;
    for (size_t i = 0; i < count && !w->failed; i++) {
        struct sl_str name = o->map_name ? o->map_name(o->map_arg, symbols[i].name) : symbols[i].name;
        if (!name.size || symbols[i].address > max_address)
            continue;
        if (o->is_windows)
            name = symcache_undecorate(name);
        uint32_t text = intern_text(w, name, sl_hash(name.data, name.size));
        uint32_t function = intern_function(w, (struct function_row){symbols[i].address, text, SL_LANG_UNKNOWN});
        uint32_t context = intern_context(w, (struct context){function, NO_CONTEXT, SL_NO_FILE, 0, SL_NO_FILE});
        w->ops[w->op_count++] = (struct op){symbols[i].address, context, SL_NO_FILE, 0, OP_ENTRY};
        if (symbols[i].size && symbols[i].size <= max_address - symbols[i].address)
            w->ops[w->op_count++] =
                (struct op){symbols[i].address + symbols[i].size, NO_CONTEXT, SL_NO_FILE, 0, OP_HOLE};
    }
}

enum sl_code sl_symcache_writer_finish(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    struct encoded encoded = {0};
    if (w->failed || !symcache_fold(w, &encoded))
        return sl_fail(error, SL_INTERNAL, "out of memory");
    return symcache_encode(w, &encoded, out, error);
}

enum sl_code sl_symcache_convert(struct sl_object *object, const struct sl_companions *companions,
                                 const struct sl_symcache_options *options, const struct sl_parallel *parallel,
                                 struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache_writer *w = sl_symcache_writer_new(options, parallel);
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    enum sl_code code = w ? SL_OK : sl_fail(error, SL_INTERNAL, "out of memory");
    if (code == SL_OK) {
        code = sl_object_read_functions(object, companions, parallel, sl_symcache_writer_sink(w), error);
        code = code == SL_NOT_FOUND ? SL_OK : code;
    }
    if (code == SL_OK)
        code = sl_object_symbols(object, &arena, &symbols, &count, error);
    if (code == SL_OK) {
        sl_symcache_writer_symbols(w, symbols, count);
        code = sl_symcache_writer_finish(w, out, error);
    }
    sl_arena_free(&arena);
    sl_symcache_writer_free(w);
    return code;
}
