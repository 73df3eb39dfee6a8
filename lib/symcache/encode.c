/* Writing the file: ids in order of first use, columns packed to the width they need, texts front-coded. */
#include "symcache/build.h"

#include "base/map.h"

#include <stdlib.h>

/* New ids by first use in address order; order[] lists the old ids in the new order. */
struct renumbering {
    uint32_t *id, *order;
    uint32_t count;
};

struct encoder {
    struct sl_symcache_writer *w;
    const struct op *ops;
    size_t op_count;
    struct renumbering contexts, functions, files;
    uint32_t *text_order, *text_rank;
    size_t text_count;
    struct sl_buf *out;
    size_t start; /* of the file in `out` */
    struct {
        uint32_t id;
        uint64_t offset, size;
    } sections[MAX_SECTIONS];
    uint32_t section_count;
    uint32_t flags;
};

static bool renumbering_init(struct renumbering *r, size_t count)
{
    r->id = malloc((count + 1) * sizeof *r->id);
    r->order = malloc((count + 1) * sizeof *r->order);
    if (r->id)
        memset(r->id, 0xFF, (count + 1) * sizeof *r->id);
    return r->id && r->order;
}

static void use(struct renumbering *r, uint32_t old)
{
    if (r->id[old] == UINT32_MAX) {
        r->id[old] = r->count;
        r->order[r->count++] = old;
    }
}

static void use_file(struct encoder *e, uint32_t file)
{
    if (file != SL_NO_FILE)
        use(&e->files, file);
}

/* Gives ids to everything an entry leads to. Parents come after their children: chains have no cycles by construction. */
static void collect_used(struct encoder *e)
{
    for (size_t i = 0; i < e->op_count; i++) {
        if (e->ops[i].kind == OP_HOLE)
            continue;
        use_file(e, e->ops[i].file);
        for (uint32_t c = e->ops[i].context; c != NO_CONTEXT && e->contexts.id[c] == UINT32_MAX;
             c = e->w->contexts[c].parent) {
            const struct context *context = &e->w->contexts[c];
            use(&e->contexts, c);
            use(&e->functions, context->function);
            use_file(e, context->call_file);
            use_file(e, context->file);
        }
    }
}

static bool sort_texts(struct encoder *e)
{
    struct sl_symcache_writer *w = e->w;
    uint8_t *used = calloc(w->text_count + 1, 1);
    e->text_order = malloc((w->text_count + 1) * sizeof *e->text_order);
    e->text_rank = malloc((w->text_count + 1) * sizeof *e->text_rank);
    bool ok = used && e->text_order && e->text_rank;
    for (uint32_t i = 0; ok && i < e->functions.count; i++)
        used[w->functions[e->functions.order[i]].name] = 1;
    for (uint32_t i = 0; ok && i < e->files.count; i++)
        used[w->files[e->files.order[i]]] = 1;
    if (ok) {
        e->text_count = symcache_sort_texts(w->parallel, w->texts, w->text_count, used, e->text_order, e->text_rank);
        ok = e->text_count != SIZE_MAX;
    }
    free(used);
    return ok;
}

/* ---- sections ---- */

static void begin(struct encoder *e, uint32_t id)
{
    sl_buf_align(e->out, 8);
    e->sections[e->section_count].id = id;
    e->sections[e->section_count].offset = e->out->size - e->start;
}

static void end(struct encoder *e)
{
    e->sections[e->section_count].size = e->out->size - e->start - e->sections[e->section_count].offset;
    e->section_count++;
}

static unsigned width_of(uint64_t max)
{
    return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

/* A column of `count` values, each `get(e, i)`, packed to `width` bits, with room to read eight bytes at any value. */
static void write_column(struct encoder *e, uint32_t count, unsigned width,
                         uint64_t (*get)(const struct encoder *, uint32_t))
{
    size_t size = ((size_t)count * width + 7) / 8 + 8;
    sl_buf_align(e->out, 8);
    if (!sl_buf_reserve(e->out, size))
        return;
    uint8_t *data = e->out->data + e->out->size;
    memset(data, 0, size);
    e->out->size += size;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = get(e, i), at = (uint64_t)i * width;
        unsigned shift = at & 7;
        for (unsigned bit = 0, byte = 0; bit < width + shift; bit += 8, byte++)
            data[at / 8 + byte] |= (uint8_t)(byte == 0 ? value << shift : value >> (8 * byte - shift));
    }
}

struct column_spec {
    uint64_t (*get)(const struct encoder *, uint32_t);
};

static void write_columns(struct encoder *e, uint32_t id, uint32_t count, const struct column_spec *columns,
                          unsigned column_count)
{
    uint8_t widths[8] = {0};
    for (unsigned c = 0; c < column_count; c++) {
        uint64_t all = 0;
        for (uint32_t i = 0; i < count; i++)
            all |= columns[c].get(e, i);
        widths[c] = (uint8_t)width_of(all);
    }
    begin(e, id);
    sl_buf_add(e->out, widths, sizeof widths);
    for (unsigned c = 0; c < column_count; c++)
        write_column(e, count, widths[c], columns[c].get);
    end(e);
}

static const struct context *context_at(const struct encoder *e, uint32_t i)
{
    return &e->w->contexts[e->contexts.order[i]];
}

static uint64_t file_plus_one(const struct encoder *e, uint32_t file)
{
    return file == SL_NO_FILE ? 0 : (uint64_t)e->files.id[file] + 1;
}

static uint64_t context_function(const struct encoder *e, uint32_t i)
{
    return e->functions.id[context_at(e, i)->function];
}
static uint64_t context_parent(const struct encoder *e, uint32_t i)
{
    uint32_t parent = context_at(e, i)->parent;
    return parent == NO_CONTEXT ? 0 : (uint64_t)e->contexts.id[parent] + 1;
}
static uint64_t context_call_file(const struct encoder *e, uint32_t i)
{
    return file_plus_one(e, context_at(e, i)->call_file);
}
static uint64_t context_call_line(const struct encoder *e, uint32_t i)
{
    return context_at(e, i)->call_line;
}
static uint64_t context_file(const struct encoder *e, uint32_t i)
{
    return file_plus_one(e, context_at(e, i)->file);
}

static const struct function_row *function_at(const struct encoder *e, uint32_t i)
{
    return &e->w->functions[e->functions.order[i]];
}
static uint64_t function_name(const struct encoder *e, uint32_t i)
{
    return e->text_rank[function_at(e, i)->name];
}
static uint64_t function_entry(const struct encoder *e, uint32_t i)
{
    uint64_t entry = function_at(e, i)->entry;
    return entry == UINT64_MAX ? 0 : entry + 1;
}
static uint64_t function_language(const struct encoder *e, uint32_t i)
{
    return function_at(e, i)->language;
}
static uint64_t file_path(const struct encoder *e, uint32_t i)
{
    return e->text_rank[e->w->files[e->files.order[i]]];
}

/* ---- blocks ---- */

struct state { /* of one block; format.h */
    uint64_t address;
    uint32_t context, highest;
    bool any; /* a context was seen: `highest` counts */
    uint32_t lines[LINE_SLOTS];
};

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static void write_entry(struct encoder *e, struct state *s, const struct op *op, bool first)
{
    if (!first)
        sl_buf_uleb(e->out, op->address - s->address);
    s->address = op->address;
    if (op->kind == OP_HOLE) {
        sl_buf_u8(e->out, CONTEXT_HOLE);
        return;
    }
    uint32_t context = e->contexts.id[op->context], *slot = &s->lines[context % LINE_SLOTS];
    int64_t line_delta = (int64_t)op->line - *slot, context_delta = (int64_t)context - s->context;
    bool fresh = s->any && context == s->highest + 1;
    bool other_file = op->file != e->w->contexts[op->context].file;
    bool small = line_delta >= -LINE_BIAS && line_delta < LINE_ESCAPE - LINE_BIAS;
    unsigned control = s->any && context_delta == 0 ? CONTEXT_SAME : fresh ? CONTEXT_NEW : CONTEXT_DELTA;
    control |= other_file ? CONTROL_FILE : 0;
    control |= (unsigned)(small ? line_delta + LINE_BIAS : LINE_ESCAPE) << LINE_SHIFT;
    sl_buf_u8(e->out, (uint8_t)control);
    if ((control & 3) == CONTEXT_DELTA)
        sl_buf_uleb(e->out, zigzag(context_delta));
    if (other_file)
        sl_buf_uleb(e->out, file_plus_one(e, op->file));
    if (!small)
        sl_buf_uleb(e->out, zigzag(line_delta));
    *slot = op->line;
    s->context = context;
    s->highest = !s->any || context > s->highest ? context : s->highest;
    s->any = true;
}

static bool write_map(struct encoder *e)
{
    size_t blocks = (e->op_count + BLOCK_ENTRIES - 1) / BLOCK_ENTRIES;
    uint64_t *offsets = malloc((blocks + 1) * sizeof *offsets);
    if (!offsets)
        return false;
    begin(e, SECTION_DIRECTORY);
    for (size_t i = 0; i < blocks; i++) {
        uint64_t address = e->ops[i * BLOCK_ENTRIES].address;
        if (e->flags & FLAG_WIDE)
            sl_buf_u64(e->out, address);
        else
            sl_buf_u32(e->out, (uint32_t)address);
    }
    end(e);
    begin(e, SECTION_BLOCKS);
    size_t base = e->out->size;
    for (size_t i = 0; i < blocks; i++) {
        struct state state = {0};
        offsets[i] = e->out->size - base;
        for (size_t j = i * BLOCK_ENTRIES; j < (i + 1) * BLOCK_ENTRIES && j < e->op_count; j++)
            write_entry(e, &state, &e->ops[j], j == i * BLOCK_ENTRIES);
    }
    offsets[blocks] = e->out->size - base;
    end(e);
    begin(e, SECTION_OFFSETS);
    for (size_t i = 0; i <= blocks; i++)
        sl_buf_u32(e->out, (uint32_t)offsets[i]);
    end(e);
    bool fits = offsets[blocks] <= UINT32_MAX;
    free(offsets);
    return fits;
}

static size_t shared_prefix(struct sl_str a, struct sl_str b)
{
    size_t max = a.size < b.size ? a.size : b.size, n = 0;
    while (n < max && a.data[n] == b.data[n])
        n++;
    return n;
}

static bool write_strings(struct encoder *e)
{
    size_t groups = (e->text_count + GROUP_STRINGS - 1) / GROUP_STRINGS;
    uint64_t *offsets = malloc((groups + 1) * sizeof *offsets);
    if (!offsets)
        return false;
    begin(e, SECTION_STRINGS);
    size_t base = e->out->size;
    struct sl_str previous = {NULL, 0};
    for (size_t i = 0; i < e->text_count; i++) {
        struct sl_str text = e->w->texts[e->text_order[i]].str;
        size_t shared = 0;
        if (i % GROUP_STRINGS == 0) {
            offsets[i / GROUP_STRINGS] = e->out->size - base;
        } else {
            shared = shared_prefix(previous, text);
            sl_buf_uleb(e->out, shared);
        }
        sl_buf_uleb(e->out, text.size - shared);
        sl_buf_add(e->out, text.data + shared, text.size - shared);
        previous = text;
    }
    offsets[groups] = e->out->size - base;
    end(e);
    begin(e, SECTION_GROUPS);
    for (size_t i = 0; i <= groups; i++)
        sl_buf_u32(e->out, (uint32_t)offsets[i]);
    end(e);
    bool fits = offsets[groups] <= UINT32_MAX;
    free(offsets);
    return fits;
}

/* ---- the file ---- */

static void put(uint8_t *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void write_header(struct encoder *e)
{
    const struct sl_symcache_options *o = &e->w->options;
    uint8_t *h = e->out->data + e->start, *table = h + HEADER_SIZE;
    size_t content = HEADER_SIZE + (size_t)e->section_count * SECTION_ENTRY;
    memcpy(h + AT_MAGIC, "SLSC", 4);
    put(h + AT_MAJOR, FORMAT_MAJOR, 2);
    put(h + AT_MINOR, FORMAT_MINOR, 2);
    put(h + AT_HEADER_SIZE, HEADER_SIZE, 4);
    put(h + AT_FLAGS, e->flags, 4);
    put(h + AT_ARCH, o->arch, 4);
    put(h + AT_AGE, o->debug_id.age, 4);
    memcpy(h + AT_UUID, o->debug_id.uuid, 16);
    put(h + AT_IMAGE_SIZE, o->image_size, 8);
    put(h + AT_ENTRIES, e->op_count, 8);
    put(h + AT_CONTEXTS, e->contexts.count, 8);
    put(h + AT_FUNCTIONS, e->functions.count, 8);
    put(h + AT_FILES, e->files.count, 8);
    put(h + AT_STRINGS, e->text_count, 8);
    put(h + AT_SECTION_COUNT, e->section_count, 4);
    for (uint32_t i = 0; i < e->section_count; i++) {
        put(table + i * SECTION_ENTRY, e->sections[i].id, 4);
        put(table + i * SECTION_ENTRY + 8, e->sections[i].offset, 8);
        put(table + i * SECTION_ENTRY + 16, e->sections[i].size, 8);
    }
    put(h + AT_CONTENT_HASH, sl_hash(h + content, e->out->size - e->start - content), 8);
    put(h + AT_HEADER_HASH, sl_hash(h, content), 8);
}

static bool write_file(struct encoder *e)
{
    static const struct column_spec contexts[] = {
        {context_function}, {context_parent}, {context_call_file}, {context_call_line}, {context_file}};
    static const struct column_spec functions[] = {{function_name}, {function_entry}, {function_language}};
    static const struct column_spec files[] = {{file_path}};
    enum { SECTIONS = 9 };
    bool module = e->w->options.module_file.size > 0;
    size_t head = HEADER_SIZE + (SECTIONS - !module) * SECTION_ENTRY;
    sl_buf_align(e->out, 8);
    e->start = e->out->size;
    sl_buf_fill(e->out, 0, head);
    bool ok = write_map(e);
    write_columns(e, SECTION_CONTEXTS, e->contexts.count, contexts, 5);
    write_columns(e, SECTION_FUNCTIONS, e->functions.count, functions, 3);
    write_columns(e, SECTION_FILES, e->files.count, files, 1);
    ok = write_strings(e) && ok;
    if (module) {
        begin(e, SECTION_MODULE);
        sl_buf_str(e->out, e->w->options.module_file);
        end(e);
    }
    sl_buf_align(e->out, 8);
    if (!ok || e->out->failed)
        return false;
    write_header(e);
    return true;
}

enum sl_code symcache_encode(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    struct encoder e = {.w = w, .ops = w->ops, .op_count = w->op_count, .out = out};
    bool ok = renumbering_init(&e.contexts, w->context_count) && renumbering_init(&e.functions, w->function_count) &&
              renumbering_init(&e.files, w->file_count);
    if (e.op_count && e.ops[e.op_count - 1].address > UINT32_MAX)
        e.flags |= FLAG_WIDE;
    if (w->sink.skipped_units)
        e.flags |= FLAG_PARTIAL;
    if (ok)
        collect_used(&e);
    ok = ok && sort_texts(&e) && write_file(&e);
    free(e.contexts.id);
    free(e.contexts.order);
    free(e.functions.id);
    free(e.functions.order);
    free(e.files.id);
    free(e.files.order);
    free(e.text_order);
    free(e.text_rank);
    return ok ? SL_OK : sl_fail(error, SL_INTERNAL, "out of memory while writing the symcache");
}
