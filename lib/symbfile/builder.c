/* Collects the records of all symbfiles of an executable, then builds the index. Texts and the index are in memory; arrays of records are
 * in files when they are large. */
#include "symbfile/builder.h"

#include <stdlib.h>

/* Return pads at or above this address are left out: symcaches hold addresses of at most 56 bits, and the end of a pad, which occupies one
 * byte, must be such an address, too. */
static const uint64_t widest = (UINT64_C(1) << 56) - 2;

/* Grows the array in `memory` to `count` records of `item` bytes, in a file if it is large, and sets `*pointer` to its data, which may
 * move. False, with b->failed set, when out of memory or disk space. */
static bool builder_reserve(struct sl_symbfile_builder *b, struct sl_spill *memory, void *pointer, size_t count,
                            size_t item)
{
    if (!sl_spill_reserve(memory, count * item)) {
        b->failed = true;
        return false;
    }
    *(void **)pointer = memory->data;
    return true;
}

void builder_checkpoint(struct sl_symbfile_builder *b, size_t step)
{
    enum { RECORDS_IN_MEMORY = 1 << 16 };
    if ((step & (RECORDS_IN_MEMORY - 1)) != RECORDS_IN_MEMORY - 1) /* only every RECORDS_IN_MEMORY-th step */
        return;
    sl_spill_drop_pages(&b->range_memory);
    sl_spill_drop_pages(&b->line_memory);
    sl_spill_drop_pages(&b->pad_memory);
    sl_spill_drop_pages(&b->frame_memory);
    b->failed |= !sl_budget_spend(b->limit, RECORDS_IN_MEMORY);
}

/* Returns the id of a text, its index in b->texts; stores a copy if it is new. Out of memory: sets b->failed and returns 0. */
static uint32_t intern(struct sl_symbfile_builder *b, struct sl_str str)
{
    uintptr_t index = (uintptr_t)sl_map_get(&b->map, str);
    if (index)
        return (uint32_t)index - 1;
    char *copy = sl_arena_strndup(&b->arena, str.data ? str.data : "", str.size);
    void **slot = copy ? sl_map_find_or_add(&b->map, (struct sl_str){copy, str.size}, NULL) : NULL;
    if (!slot || !sl_account_grow(&b->account, &b->texts, &b->text_capacity, b->text_count + 1, sizeof *b->texts)) {
        b->failed = true;
        return 0;
    }
    b->texts[b->text_count] = (struct sl_str){copy, str.size};
    b->text_bytes += str.size;
    index = ++b->text_count;
    *slot = (void *)index;
    return (uint32_t)index - 1;
}

/* Returns the id of a text. A text of the symbfile's string table is looked up only once per table: b->memo has the id for each index in
 * the table. Out of memory: sets b->failed and returns 0. */
static uint32_t text_id(struct sl_symbfile_builder *b, const struct sl_symbfile_text *text)
{
    if (text->ref == SL_SYMBFILE_INLINE)
        return intern(b, text->str);
    size_t known = b->memo_capacity;
    if (!sl_account_grow(&b->account, &b->memo, &b->memo_capacity, (size_t)text->ref + 1, sizeof *b->memo)) {
        b->failed = true;
        return 0;
    }
    if (b->memo_capacity > known)
        memset(b->memo + known, 0, (b->memo_capacity - known) * sizeof *b->memo);
    if (b->memo[text->ref].table != b->table)
        b->memo[text->ref] = (struct symbfile_last_hit){b->table, intern(b, text->str)};
    return b->memo[text->ref].text;
}

/* Returns the id of a file's text: FOREST_NO_TEXT (unknown) for an empty text, and `absent` for an absent one. For a call file `absent` is
 * INHERITED, because an absent call file is the file of the enclosing function. */
static uint32_t file_id(struct sl_symbfile_builder *b, const struct sl_symbfile_text *text, uint32_t absent)
{
    return !text->str.data ? absent : !text->str.size ? FOREST_NO_TEXT : text_id(b, text);
}

/* Callback of the reader: a new string table begins, so references have new meanings. */
static void on_table(struct sl_symbfile_sink *sink)
{
    struct sl_symbfile_builder *b = (struct sl_symbfile_builder *)sink;
    if (++b->table) /* makes older memo entries invalid without clearing them: there may be many small tables */
        return;
    /* the number has wrapped around to 0, so entries of old tables could seem valid */
    if (b->memo)
        memset(b->memo, 0, b->memo_capacity * sizeof *b->memo);
    b->table = 1;
}

/* Callback of the reader: stores a range, the code of a function or of an inlined call. Ignores ranges without code or with too large a
 * depth, and lines beyond the range's end. */
static enum sl_code on_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *r, struct sl_error *error)
{
    struct sl_symbfile_builder *b = (struct sl_symbfile_builder *)sink;
    if (!r->length || r->depth > SL_SYMBFILE_MAX_DEPTH)
        return SL_OK;
    if (!builder_reserve(b, &b->range_memory, &b->ranges, b->range_count + 1, sizeof *b->ranges) ||
        !builder_reserve(b, &b->line_memory, &b->lines, b->line_count + r->line_count, sizeof *b->lines))
        return sl_fail(error, SL_BUSY, "not enough temporary disk space or memory for the records of the symbfile");
    builder_checkpoint(b, b->range_count);
    struct builder_range *out = &b->ranges[b->range_count++];
    *out = (struct builder_range){
        .start = r->va,
        .end = r->length > UINT64_MAX - r->va ? UINT64_MAX : r->va + r->length,
        .function = text_id(b, &r->function),
        .file = file_id(b, &r->file, FOREST_NO_TEXT),      /* FOREST_NO_TEXT: unknown */
        .call_file = file_id(b, &r->call_file, INHERITED), /* INHERITED: the file of the enclosing function */
        .call_line = r->call_line,
        .depth = r->depth,
        .first_line = b->line_count,
    };
    for (size_t i = 0; i < r->line_count && r->lines[i].offset < r->length; i++)
        b->lines[b->line_count++] = r->lines[i];
    out->line_count = (uint32_t)(b->line_count - out->first_line);
    b->has_lines |= out->line_count > 0;
    b->has_functions |= r->depth == 0;
    b->lowest = r->va < b->lowest ? r->va : b->lowest;
    return b->failed ? sl_budget_fail(b->limit, error) : SL_OK;
}

/* Callback of the reader: stores a return pad, the address of the last byte of a call instruction, with its chain of inlined calls. Ignores
 * pads without frames or with too deep a chain. */
static enum sl_code on_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *p, struct sl_error *error)
{
    struct sl_symbfile_builder *b = (struct sl_symbfile_builder *)sink;
    if (!p->count || p->count > SL_SYMBFILE_MAX_DEPTH)
        return SL_OK;
    if (!builder_reserve(b, &b->pad_memory, &b->pads, b->pad_count + 1, sizeof *b->pads) ||
        !builder_reserve(b, &b->frame_memory, &b->frames, b->frame_count + p->count, sizeof *b->frames))
        return sl_fail(error, SL_BUSY, "not enough temporary disk space or memory for the records of the symbfile");
    builder_checkpoint(b, b->pad_count);
    b->pads[b->pad_count++] = (struct builder_pad){p->va, b->frame_count, (uint32_t)p->count};
    for (size_t i = 0; i < p->count; i++)
        b->frames[b->frame_count++] = (struct inline_chain_link){
            text_id(b, &p->frames[i].function), file_id(b, &p->frames[i].file, FOREST_NO_TEXT), p->frames[i].line};
    b->lowest = p->va < b->lowest ? p->va : b->lowest;
    return b->failed ? sl_budget_fail(b->limit, error) : SL_OK;
}

struct sl_symbfile_builder *sl_symbfile_builder_new(int scratch)
{
    struct sl_symbfile_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->sink = (struct sl_symbfile_sink){.range = on_range, .pad = on_pad, .table = on_table};
    struct sl_spill *const arrays[] = {&b->range_memory, &b->line_memory, &b->pad_memory, &b->frame_memory};
    /* all four arrays share the file `scratch`; without one they stay in memory */
    for (unsigned i = 0; scratch >= 0 && i < sizeof arrays / sizeof *arrays; i++)
        sl_spill_into(arrays[i], scratch, i);
    b->table = 1;                      /* not 0, so that no cleared entry of b->memo seems valid */
    sl_budget_init(&b->own_budget, 0); /* grows with the input in sl_symbfile_builder_finish() */
    b->lowest = UINT64_MAX;
    return b;
}

void sl_symbfile_builder_limit(struct sl_symbfile_builder *b, struct sl_budget *budget)
{
    b->limit = b->arena.budget = b->map.budget = b->account.budget = budget;
}

void sl_symbfile_builder_free(struct sl_symbfile_builder *b)
{
    if (!b)
        return;
    sl_arena_free(&b->arena);
    sl_map_free(&b->map);
    free(b->texts);
    free(b->memo);
    sl_account_release(&b->account);
    sl_spill_free(&b->range_memory);
    sl_spill_free(&b->line_memory);
    sl_spill_free(&b->pad_memory);
    sl_spill_free(&b->frame_memory);
    free(b);
}

struct sl_symbfile_sink *sl_symbfile_builder_sink(struct sl_symbfile_builder *b)
{
    return &b->sink;
}

/* ---- return pads ---- */
/* Orders return pads (addresses in call instructions). Only the first one of several at the same address gets into the index. */
static bool pad_before(const struct sl_symbfile_builder *builder, uint32_t left, uint32_t right)
{
    const struct builder_pad *a = &builder->pads[left], *b = &builder->pads[right];
    if (a->va != b->va)
        return a->va < b->va;
    if (a->count != b->count) /* at one address the longer call chain comes first */
        return a->count > b->count;
    return left > right; /* of equally long ones the one that was added later comes first */
}

/* Adds each return pad to `forest`, which makes functions of call chains. A pad is the last byte of a call instruction: it is added as one
 * byte of code with the pad's call chain, at its address minus `base`. Pads at the address of an earlier one are skipped, and so are
 * addresses that are too large for a symcache (`widest`). */
static enum sl_code add_pads(struct sl_symbfile_builder *b, uint64_t base, struct tree_writer *forest,
                             struct sl_error *error)
{
    uint32_t *order = b->pad_count < UINT32_MAX ? builder_order(b, b->pad_count, pad_before) : NULL;
    enum sl_code code = order ? SL_OK : sl_budget_fail(b->limit, error);
    for (size_t i = 0; i < b->pad_count && code == SL_OK; i++) {
        const struct builder_pad *pad = &b->pads[order[i]];
        uint64_t at = pad->va - base;
        builder_checkpoint(b, i);
        if ((i && b->pads[order[i - 1]].va == pad->va) || at >= widest)
            continue;
        code = tree_writer_add(forest, at, at + 1, b->frames + pad->first, pad->count, error);
    }
    sl_account_free(&b->account, order, b->pad_count, sizeof *order);
    return code;
}

/* ---- the index file ----
 *
 *     symcache of the ranges | symcache of the pads | trailer
 *
 *     trailer, 40 bytes:  u64 end of the ranges | u64 start of the pads | u64 end of the pads | u64 base | u32 flags | "SLSX" */
enum { TRAILER = 40, FLAG_LINES = 1, FLAG_FUNCTIONS = 2 };

/* Returns the budget of the symcache writer, which needs one even if the caller has set no limit. */
static struct sl_budget *index_budget(struct sl_symbfile_builder *b)
{
    return b->limit ? b->limit : &b->own_budget;
}

/* Appends a symcache to `out`: that of the return pads if `pads`, else that of the ranges. Its addresses are relative to `base`. Code and
 * its call chains go to `forest`, which makes functions with inlined calls of them and passes these to the symcache writer `w`. */
static enum sl_code write_symcache(struct sl_symbfile_builder *b, uint64_t base, bool pads, struct sl_buf *out,
                                   struct sl_error *error)
{
    struct sl_symcache_options options = {.load_address = base, .budget = index_budget(b)};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    /* return pads are written as calls inlined in one nameless function: functions that many of them share are then stored once */
    struct tree_writer *forest = w ? tree_writer_new(sl_symcache_writer_sink(w), &b->texts, pads, b->limit) : NULL;
    enum sl_code code = forest ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = pads ? add_pads(b, base, forest, error) : builder_sweep(b, base, forest, error);
    if (code == SL_OK)
        code = tree_writer_finish(forest, error);
    if (code == SL_OK)
        code = sl_symcache_writer_finish(w, out, error);
    tree_writer_free(forest);
    sl_symcache_writer_free(w);
    return code;
}

enum sl_code sl_symbfile_builder_finish(struct sl_symbfile_builder *b, struct sl_buf *out, struct sl_error *error)
{
    uint64_t base = b->range_count + b->pad_count ? b->lowest : 0;
    if (b->failed)
        return sl_budget_fail(b->limit, error);
    /* The budget's work limit follows the input's size. Records are in memory, and each may refer to a long text, so both the records and
     * the texts count as input. */
    sl_budget_grow(index_budget(b), b->range_count * sizeof *b->ranges + b->line_count * sizeof *b->lines +
                                        b->frame_count * sizeof *b->frames + b->text_bytes);
    enum sl_code code = write_symcache(b, base, false, out, error);
    if (code != SL_OK)
        return code;
    uint64_t ranges_end = out->size;
    sl_buf_align(out, 8);
    uint64_t pads_start = out->size;
    if ((code = write_symcache(b, base, true, out, error)) != SL_OK)
        return code;
    uint64_t pads_end = out->size;
    sl_buf_align(out, 8);
    sl_buf_u64(out, ranges_end);
    sl_buf_u64(out, pads_start);
    sl_buf_u64(out, pads_end);
    sl_buf_u64(out, base);
    sl_buf_u32(out, (b->has_lines ? FLAG_LINES : 0) | (b->has_functions ? FLAG_FUNCTIONS : 0));
    sl_buf_add(out, "SLSX", 4);
    return out->failed || b->failed ? sl_budget_fail(b->limit, error) : SL_OK;
}

enum sl_code sl_symbfile_index_open(struct sl_bytes bytes, struct sl_symbfile_index *index, struct sl_error *error)
{
    *index = (struct sl_symbfile_index){0};
    if (bytes.size < TRAILER || memcmp(bytes.data + bytes.size - 4, "SLSX", 4) != 0)
        return sl_fail(error, SL_MALFORMED, "not a symbfile index");
    struct sl_reader r = sl_reader((struct sl_bytes){bytes.data + bytes.size - TRAILER, TRAILER}, false);
    uint64_t ranges_end = sl_read_u64(&r), pads_start = sl_read_u64(&r), pads_end = sl_read_u64(&r);
    index->base = sl_read_u64(&r);
    uint32_t flags = sl_read_u32(&r);
    bool inside = pads_start % 8 == 0 && pads_start <= pads_end;
    /* sl_bytes_slice() sets `inside`, but what is false already must stay false */
    struct sl_bytes ranges = sl_bytes_slice(bytes, 0, ranges_end, inside ? &inside : NULL);
    struct sl_bytes pads = sl_bytes_slice(bytes, pads_start, pads_end - pads_start, inside ? &inside : NULL);
    if (!inside)
        return sl_fail(error, SL_MALFORMED, "symbfile index: the offsets in its trailer are outside of the file");
    index->has_lines = flags & FLAG_LINES;
    index->has_functions = flags & FLAG_FUNCTIONS;
    enum sl_code code = sl_symcache_open(ranges, &index->ranges, error);
    return code == SL_OK ? sl_symcache_open(pads, &index->pads, error) : code;
}

/* `va` is an ELF virtual address; the symcaches have addresses relative to the lowest one of the file, index->base. */
size_t sl_symbfile_lookup_range(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                                size_t capacity)
{
    return va < index->base ? 0 : sl_symcache_lookup(&index->ranges, va - index->base, chain, capacity);
}

size_t sl_symbfile_lookup_pad(const struct sl_symbfile_index *index, uint64_t va, struct sl_location *chain,
                              size_t capacity)
{
    size_t count = va < index->base ? 0 : sl_symcache_lookup(&index->pads, va - index->base, chain, capacity);
    return count ? count - 1 : 0; /* without the outermost function: one without a name, which is around all pads */
}
