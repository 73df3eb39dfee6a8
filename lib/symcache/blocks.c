/* The blocks of the address map (format.h): delta-codes entries as they come, and numbers contexts (functions with their chain of callers),
 * functions and files by first use. */
#include "symcache/encoder.h"

/* Size of the longest entry: address, context, file and line of at most 10, 5, 5 and 5 bytes, and the control byte. */
enum { MAX_ENTRY = 26 };

/* Writes an unsigned LEB128 number; returns the end. */
static inline uint8_t *put_uleb(uint8_t *at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)v | 0x80;
    *at++ = (uint8_t)v;
    return at;
}

/* Writes the number if `wanted`, and returns the end. A number of one byte is stored in any case, but the end is after it only if it is
 * wanted: this takes no branch. */
static inline uint8_t *put_uleb_if(uint8_t *at, uint64_t v, bool wanted)
{
    if ((v >= 0x80) & wanted)
        return put_uleb(at, v);
    *at = (uint8_t)v;
    return at + wanted;
}

/* ---- ids by first use ---- */

/* Gives the next new id to the item with the id `old` in the writer, unless it has one already. Ids in order of use make the differences in
 * the file small. */
static void assign_id(struct renumbering *r, uint32_t old)
{
    if (r->id[old] == UINT32_MAX) {
        r->id[old] = r->count;
        r->order[r->count++] = old;
    }
}

static inline uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Gives a new id to a function, and updates the largest values of its columns, which decide their widths. */
static void use_function(struct encoder *e, uint32_t function)
{
    const struct function_row *f = &e->w->functions[function];
    if (f->entry != UINT64_MAX && f->entry >= e->max_entry)
        e->max_entry = f->entry + 1; /* stored plus 1, as 0 means none */
    e->max_language = larger(e->max_language, f->language);
    assign_id(&e->functions, function);
}

/* Gives a new id to a file, unless it is SL_NO_FILE. */
static void use_file(struct encoder *e, uint32_t file)
{
    if (file != SL_NO_FILE)
        assign_id(&e->files, file);
}

/* Gives new ids to a file, and to a context (a function with its chain of callers) with its parents, functions and files. A parent gets its
 * id after its child. The loop ends because chains have no cycles: a context is only made after its parent. Not inlined by the compiler,
 * because most locations have ids already. */
static __attribute__((noinline)) void use_location(struct encoder *e, uint32_t file, uint32_t context)
{
    use_file(e, file);
    for (uint32_t c = context; c != NO_CONTEXT && e->contexts.id[c] == UINT32_MAX; c = e->w->contexts[c].parent) {
        const struct context *link = &e->w->contexts[c];
        assign_id(&e->contexts, c);
        use_function(e, link->function);
        e->max_call_line = larger(e->max_call_line, link->call_line);
        use_file(e, link->call_file);
        use_file(e, link->file);
    }
}

/* Grows the arrays for items with up to `count` old ids; new items have no new id yet (UINT32_MAX). False when out of memory. */
static bool renumbering_grow(struct sl_account *account, struct renumbering *r, size_t count)
{
    size_t known = r->id_capacity;
    if (!sl_account_grow(account, &r->id, &r->id_capacity, count, sizeof *r->id) ||
        !sl_account_grow(account, &r->order, &r->order_capacity, count, sizeof *r->order))
        return false;
    if (r->id_capacity > known)
        memset(r->id + known, 0xFF, (r->id_capacity - known) * sizeof *r->id);
    return true;
}

/* ---- entries ---- */

/* State while entries are written. It has copies of the encoder's pointers: a store of a byte may alias any memory, so the compiler would
 * load the originals again for each entry. */
struct symcache_block_writing {
    struct encoder *e;
    uint8_t *at;                            /* where the next byte goes */
    const uint32_t *context_ids, *file_ids; /* new ids by old ones */
    const struct context *contexts;
    uint32_t *lines; /* the last line of each slot (format.h); a pointer, so that the rest can live in registers */
    struct symcache_block block;
    uint32_t old_context;  /* context of the last location, before renumbering; NO_CONTEXT at the start of a block */
    uint32_t default_file; /* default file of that context: an entry with it stores no file */
};

/* Reserves memory for `count` entries, and copies the encoder's state to `*out`, where the compiler can keep it in registers;
 * symcache_blocks_end copies it back. False when out of memory. */
static bool symcache_blocks_begin(struct encoder *e, size_t count, struct symcache_block_writing *out)
{
    struct sl_symcache_writer *w = e->w;
    struct sl_account *account = &w->account;
    size_t blocks = count / BLOCK_ENTRIES + 1;
    if (!renumbering_grow(account, &e->contexts, w->context_count) ||
        !renumbering_grow(account, &e->functions, w->function_count) ||
        !renumbering_grow(account, &e->files, w->file_count) ||
        !sl_account_grow(account, &e->starts, &e->start_capacity, e->block_count + blocks, sizeof *e->starts) ||
        !sl_account_grow(account, &e->offsets, &e->offset_capacity, e->block_count + blocks, sizeof *e->offsets) ||
        !sl_buf_reserve(&e->table.file, count * MAX_ENTRY))
        return false;
    *out = (struct symcache_block_writing){
        .e = e,
        .at = e->table.file.data + e->table.file.size,
        .context_ids = e->contexts.id,
        .file_ids = e->files.id,
        .contexts = w->contexts,
        .lines = e->lines,
        .block = e->block,
        .old_context = NO_CONTEXT, /* none yet: change_context() compares that of the first entry */
        .default_file = SL_NO_FILE,
    };
    return true;
}

/* Stores the copied state back into the encoder. False if the section is larger than 4 GiB, which its offsets cannot express. */
static bool symcache_blocks_end(const struct symcache_block_writing *w)
{
    struct encoder *e = w->e;
    e->table.file.size = (size_t)(w->at - e->table.file.data);
    e->block = w->block;
    e->table.too_large = e->table.file.size > UINT32_MAX;
    return !e->table.too_large;
}

/* Writes the address of an entry as the difference to the one before. Every BLOCK_ENTRIES-th entry begins a block, which readers decode
 * alone: its address is in the directory, and contexts and lines start from 0. */
static inline void put_address(struct symcache_block_writing *w, uint64_t address)
{
    struct encoder *e = w->e;
    if (w->block.count++ % BLOCK_ENTRIES) {
        w->at = put_uleb(w->at, address - w->block.address);
    } else {
        e->starts[e->block_count] = address;
        e->offsets[e->block_count++] = (uint32_t)(w->at - e->table.file.data - e->table.sections[0].offset);
        w->block = (struct symcache_block){.count = 1};
        w->old_context = NO_CONTEXT;
        memset(w->lines, 0, LINE_SLOTS * sizeof *w->lines);
    }
    w->block.address = address;
}

/* The code of an entry's context: `how` is the context bits of the control byte; for CONTEXT_DELTA `delta`, zigzag coded, follows. */
struct context_code {
    unsigned how;
    uint64_t delta;
};

/* Changes the block's context to `old_context` (its id in the writer), and returns its code: CONTEXT_SAME if its new id is that of the last
 * entry, CONTEXT_NEW if it is one more than the highest of the block, else CONTEXT_DELTA with the signed difference. The codes are the
 * numbers 1, 3 and 2, so they are computed. A context that is met for the first time gets its new id here; `file` is the entry's file. */
static inline struct context_code change_context(struct symcache_block_writing *w, uint32_t old_context, uint32_t file)
{
    struct symcache_block *b = &w->block;
    uint32_t context = w->context_ids[old_context];
    if (context == UINT32_MAX) {
        use_location(w->e, file, old_context);
        context = w->context_ids[old_context];
    }
    int64_t delta = (int64_t)context - b->context;
    bool fresh = context == b->highest + 1, same = delta == 0; /* unpredictable: no branches */
    b->context = context;
    b->highest = context > b->highest ? context : b->highest;
    w->old_context = old_context;
    w->default_file = w->contexts[old_context].file;
    return (struct context_code){CONTEXT_DELTA + fresh - same, sl_zigzag(delta)};
}

/* Writes the control byte (context, file and line of the entry, as far as they fit) and what does not fit. Each of LINE_SLOTS slots, chosen
 * by the context's low bits, keeps the last line: a line is written as the difference to that, which is mostly small. */
static inline void put_location(struct symcache_block_writing *w, uint32_t old_context, uint32_t file, uint32_t line)
{
    bool change = old_context != w->old_context;
    struct context_code context = {CONTEXT_SAME, 0};
    if (change)
        context = change_context(w, old_context, file);
    uint32_t *slot = &w->lines[w->block.context % LINE_SLOTS];
    int64_t line_delta = (int64_t)line - *slot;
    /* fits into the control byte; else that has LINE_ESCAPE, and the difference comes last */
    bool small = line_delta >= -LINE_BIAS && line_delta < LINE_ESCAPE - LINE_BIAS;
    bool other_file = file != w->default_file;
    *slot = line;
    *w->at++ = (uint8_t)(context.how | (other_file ? CONTROL_FILE : 0) |
                         (unsigned)(small ? line_delta + LINE_BIAS : LINE_ESCAPE) << LINE_SHIFT);
    if (change)
        w->at = put_uleb_if(w->at, context.delta, context.how == CONTEXT_DELTA);
    if (other_file) {
        use_file(w->e, file);
        w->at = put_uleb(w->at, file == SL_NO_FILE ? 0 : (uint64_t)w->file_ids[file] + 1);
    }
    if (!small)
        w->at = put_uleb(w->at, sl_zigzag(line_delta));
}

/* An entry says what holds from its address to that of the next: a location or, for OP_HOLE, no symbol. */
bool symcache_encoder_add(struct encoder *e, const struct op *ops, size_t count)
{
    struct symcache_block_writing w;
    if (!symcache_blocks_begin(e, count, &w))
        return false;
    for (const struct op *op = ops; op < ops + count; op++) {
        put_address(&w, op->address);
        if (op_kind(op->kind_and_line) == OP_HOLE)
            *w.at++ = CONTEXT_HOLE;
        else
            put_location(&w, op->context, op->file, op_line(op->kind_and_line));
    }
    return symcache_blocks_end(&w);
}

/* True if the operation has the same location as the one before it: then it needs no entry. OP_SET and OP_ENTRY make equal entries. */
static inline bool is_same_location(const struct short_op *before, const struct short_op *op)
{
    return ((before->context ^ op->context) | (before->file ^ op->file) |
            op_entry(before->kind_and_line ^ op->kind_and_line)) == 0;
}

bool symcache_encoder_add_run(struct encoder *e, const struct symcache_op_run *run, const struct run_ids *ids)
{
    struct symcache_block_writing w;
    const struct short_op *last = run->ops + run->count - 1;
    const struct run_ids local = *ids;
    uint64_t base = run->base;
    if (!symcache_blocks_begin(e, run->count, &w))
        return false;
    /* The caller folds the first and the last operation, because other functions or symbols may have operations at these addresses, too.
     * All others become entries here. */
    for (const struct short_op *op = run->ops + 1; op < last; op++) {
        if (is_same_location(op - 1, op)) /* the entry before goes on */
            continue;
        put_address(&w, base + op->offset);
        if (op_kind(op->kind_and_line) == OP_HOLE)
            *w.at++ = CONTEXT_HOLE;
        else
            put_location(&w, local.first_context + op->context, symcache_global_file(&local, op->file),
                         op_line(op->kind_and_line));
    }
    return symcache_blocks_end(&w);
}
