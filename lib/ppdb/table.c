/* Using the look-up table of a Portable PDB in place. Every id and offset is checked where it is used. */
#include "ppdb/format.h"

#include "base/map.h"

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const uint8_t *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* ---- opening ---- */

static bool place_sections(struct sl_ppdb_table *t, uint32_t names_size, uint32_t points_size, uint32_t links_size)
{
    struct sl_reader r = sl_reader(t->bytes, false);
    struct sl_bytes links;
    uint64_t groups = ((uint64_t)t->document_count + GROUP_NAMES - 1) / GROUP_NAMES;
    sl_reader_skip(&r, HEADER_SIZE);
    t->directory = sl_read_bytes(&r, (uint64_t)t->method_count * 4);
    t->documents = sl_read_bytes(&r, (uint64_t)t->document_count * DOCUMENT_SIZE);
    t->groups = sl_read_bytes(&r, (groups + 1) * 4);
    t->names = sl_read_bytes(&r, names_size);
    t->points = sl_read_bytes(&r, points_size);
    t->sources = sl_read_bytes(&r, (uint64_t)t->source_count * SOURCE_SIZE);
    links = sl_read_bytes(&r, links_size);
    return !r.failed && !sl_reader_left(&r) && sl_ppdb_links_open(links, &t->links);
}

enum sl_code sl_ppdb_table_open(struct sl_bytes bytes, struct sl_ppdb_table *t, struct sl_error *error)
{
    *t = (struct sl_ppdb_table){.bytes = bytes};
    if (bytes.size < HEADER_SIZE || memcmp(bytes.data, "SLPP", 4) != 0)
        return sl_fail(error, SL_MALFORMED, "not a look-up table of a Portable PDB");
    const uint8_t *h = bytes.data;
    if (h[AT_MAJOR] != FORMAT_MAJOR || h[AT_MAJOR + 1] != 0)
        return sl_fail(error, SL_MALFORMED, "look-up table of another version");
    if (sl_hash(h, AT_HEADER_HASH) != get64(h + AT_HEADER_HASH))
        return sl_fail(error, SL_MALFORMED, "look-up table: damaged header");
    memcpy(t->debug_id.uuid, h + AT_UUID, sizeof t->debug_id.uuid);
    t->debug_id.age = get32(h + AT_AGE);
    t->method_count = get32(h + AT_METHODS);
    t->document_count = get32(h + AT_DOCUMENTS);
    t->source_count = get32(h + AT_SOURCES);
    if (!place_sections(t, get32(h + AT_NAMES_SIZE), get32(h + AT_POINTS_SIZE), get32(h + AT_LINKS_SIZE)))
        return sl_fail(error, SL_MALFORMED, "look-up table: bad sections");
    return SL_OK;
}

/* ---- points ---- */

struct run {
    struct sl_reader r;
    uint64_t left; /* points */
    uint32_t il_offset, document, line;
    bool begun;
};

/* What a damaged file adds up to is cut to 32 bits: wrong, but within bounds. */
static bool next_point(struct run *run)
{
    struct sl_reader *r = &run->r;
    if (!run->left || r->failed)
        return false;
    run->left--;
    if (!run->begun) {
        run->begun = true;
        run->il_offset = (uint32_t)sl_read_uleb(r);
        run->document = (uint32_t)sl_read_uleb(r);
        run->line = (uint32_t)sl_read_uleb(r);
        return !r->failed;
    }
    run->il_offset += (uint32_t)sl_read_uleb(r);
    uint64_t line = sl_read_uleb(r);
    if (line == 0) {
        run->document = (uint32_t)sl_read_uleb(r);
        line = sl_read_uleb(r);
    }
    r->failed |= line == 0;
    line--;
    run->line += (uint32_t)(line >> 1 ^ -(line & 1));
    return !r->failed;
}

struct block {
    struct sl_bytes restarts, runs;
    uint64_t point_count, run_count;
};

static bool open_block(const struct sl_ppdb_table *t, uint32_t method, struct block *block)
{
    if (method == 0 || method > t->method_count)
        return false;
    uint32_t offset = get32(t->directory.data + (size_t)(method - 1) * 4);
    struct sl_reader r = sl_reader(t->points, false);
    sl_reader_seek(&r, offset);
    block->point_count = sl_read_uleb(&r);
    block->run_count = block->point_count / RUN_POINTS + (block->point_count % RUN_POINTS != 0);
    if (!offset || !block->point_count || block->run_count - 1 > sl_reader_left(&r) / RESTART_SIZE)
        return false;
    block->restarts = sl_read_bytes(&r, (block->run_count - 1) * RESTART_SIZE);
    block->runs = sl_read_bytes(&r, sl_reader_left(&r));
    return !r.failed;
}

static void open_run(const struct block *block, uint64_t index, struct run *run)
{
    uint64_t begin = index ? get32(block->restarts.data + (index - 1) * RESTART_SIZE + 4) : 0;
    uint64_t left = block->point_count - index * RUN_POINTS;
    *run = (struct run){.r = sl_reader(block->runs, false), .left = left < RUN_POINTS ? left : RUN_POINTS};
    sl_reader_seek(&run->r, begin);
}

/* The last run that begins at or before the offset; the first has no entry and begins before all. */
static uint64_t find_run(const struct block *block, uint32_t il_offset)
{
    uint64_t low = 0, high = block->run_count - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (get32(block->restarts.data + middle * RESTART_SIZE) <= il_offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sl_ppdb_table_lookup(const struct sl_ppdb_table *t, uint32_t method, uint32_t il_offset,
                          struct sl_ppdb_location *location)
{
    struct block block;
    struct run run;
    bool found = false;
    if (il_offset == UINT32_MAX || !open_block(t, method, &block))
        return false;
    open_run(&block, find_run(&block, il_offset), &run);
    while (next_point(&run) && run.il_offset <= il_offset) {
        *location = (struct sl_ppdb_location){run.document, run.line};
        found = true;
    }
    return found && location->document < t->document_count;
}

/* ---- documents ---- */

bool sl_ppdb_table_document(const struct sl_ppdb_table *t, uint32_t id, struct sl_ppdb_table_document *document)
{
    *document = (struct sl_ppdb_table_document){0};
    if (id >= t->document_count)
        return false;
    const uint8_t *at = t->documents.data + (size_t)id * DOCUMENT_SIZE;
    document->properties.language = at[0] <= SL_LANG_FSHARP ? (enum sl_language)at[0] : SL_LANG_UNKNOWN;
    document->embedded = at[1] & DOCUMENT_EMBEDDED;
    document->linked = at[1] & DOCUMENT_LINKED;
    document->properties.hash = at[2] <= SL_PPDB_HASH_SHA256 ? (enum sl_ppdb_hash)at[2] : SL_PPDB_HASH_NONE;
    memcpy(document->properties.digest, at + 4, sizeof document->properties.digest);
    return true;
}

static struct sl_reader open_group(const struct sl_ppdb_table *t, uint32_t group)
{
    const uint8_t *offsets = t->groups.data + (size_t)group * 4;
    uint32_t begin = get32(offsets), end = get32(offsets + 4);
    return sl_reader(sl_bytes_slice(t->names, begin, end >= begin ? end - begin : 0, NULL), false);
}

/* Turns the name before it (in `name` from `start` on) into the next one. */
static bool next_name(struct sl_reader *r, bool first, struct sl_buf *name, size_t start)
{
    uint64_t shared = first ? 0 : sl_read_uleb(r);
    struct sl_bytes rest = sl_read_bytes(r, sl_read_uleb(r));
    if (r->failed || shared > name->size - start || rest.size > SL_PPDB_MAX_NAME)
        return false;
    name->size = start + (size_t)shared;
    sl_buf_add(name, rest.data, rest.size);
    return !name->failed;
}

void sl_ppdb_table_name(const struct sl_ppdb_table *t, uint32_t id, struct sl_buf *name)
{
    size_t start = name->size;
    if (id >= t->document_count)
        return;
    struct sl_reader r = open_group(t, id / GROUP_NAMES);
    for (uint32_t i = 0; i <= id % GROUP_NAMES; i++)
        if (!next_name(&r, i == 0, name, start)) {
            name->size = start;
            return;
        }
}

static struct sl_str first_of_group(const struct sl_ppdb_table *t, uint32_t group)
{
    struct sl_reader r = open_group(t, group);
    struct sl_bytes name = sl_read_bytes(&r, sl_read_uleb(&r));
    return (struct sl_str){(const char *)name.data, name.size};
}

/* How many documents have a name before this one in byte order. */
static uint32_t lower_bound(const struct sl_ppdb_table *t, struct sl_str wanted)
{
    uint32_t low = 0, high = (uint32_t)(((uint64_t)t->document_count + GROUP_NAMES - 1) / GROUP_NAMES);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sl_str_compare(first_of_group(t, middle), wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    struct sl_reader r = open_group(t, low - 1);
    struct sl_buf name = {0};
    uint32_t id = (low - 1) * GROUP_NAMES, end = id + GROUP_NAMES;
    end = end < t->document_count ? end : t->document_count;
    for (bool first = true; id < end; id++, first = false)
        if (!next_name(&r, first, &name, 0) || sl_str_compare(sl_buf_view(&name), wanted) >= 0)
            break;
    sl_buf_free(&name);
    return id;
}

static bool is_named(const struct sl_ppdb_table *t, uint32_t id, struct sl_str wanted)
{
    struct sl_buf name = {0};
    sl_ppdb_table_name(t, id, &name);
    bool same = id < t->document_count && sl_str_equal(sl_buf_view(&name), wanted);
    sl_buf_free(&name);
    return same;
}

bool sl_ppdb_table_find(const struct sl_ppdb_table *t, struct sl_str name, uint32_t *id)
{
    *id = lower_bound(t, name);
    return is_named(t, *id, name);
}

/* ---- sources ---- */

static void source_at(const struct sl_ppdb_table *t, uint32_t index, struct sl_ppdb_source *source)
{
    const uint8_t *at = t->sources.data + (size_t)index * SOURCE_SIZE;
    *source = (struct sl_ppdb_source){
        .offset = get64(at),
        .document = get32(at + 8),
        .stored = get32(at + 12),
        .size = get32(at + 16),
        .deflated = get32(at + 20) & SOURCE_DEFLATED,
    };
}

static bool source_of(const struct sl_ppdb_table *t, uint32_t document, struct sl_ppdb_source *source)
{
    uint32_t low = 0, high = t->source_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        source_at(t, middle, source);
        if (source->document == document)
            return true;
        if (source->document < document)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool sl_ppdb_table_source(const struct sl_ppdb_table *t, struct sl_str name, struct sl_ppdb_source *source)
{
    uint32_t id;
    if (!sl_ppdb_table_find(t, name, &id))
        return false;
    while (!source_of(t, id, source))
        if (!is_named(t, ++id, name))
            return false;
    return true;
}

/* ---- verifying ---- */

static bool verify_method(const struct sl_ppdb_table *t, uint32_t method)
{
    struct block block;
    uint32_t last = 0;
    bool any = false;
    if (!get32(t->directory.data + (size_t)(method - 1) * 4))
        return true;
    if (!open_block(t, method, &block))
        return false;
    for (uint64_t i = 0; i < block.run_count; i++) {
        struct run run;
        open_run(&block, i, &run);
        for (bool first = true; run.left; first = false) {
            if (!next_point(&run) || run.document >= t->document_count || (any && run.il_offset <= last) ||
                (first && i && run.il_offset != get32(block.restarts.data + (i - 1) * RESTART_SIZE)))
                return false;
            last = run.il_offset;
            any = true;
        }
    }
    return true;
}

static bool verify_names(const struct sl_ppdb_table *t)
{
    struct sl_buf name = {0}, last = {0};
    struct sl_reader r = {0};
    bool ok = true;
    for (uint32_t id = 0; ok && id < t->document_count; id++) {
        bool first = id % GROUP_NAMES == 0;
        if (first) {
            r = open_group(t, id / GROUP_NAMES);
            sl_buf_clear(&name);
        }
        ok = next_name(&r, first, &name, 0) && sl_str_compare(sl_buf_view(&last), sl_buf_view(&name)) <= 0;
        sl_buf_clear(&last);
        sl_buf_str(&last, sl_buf_view(&name));
    }
    sl_buf_free(&name);
    sl_buf_free(&last);
    return ok;
}

static bool verify_sources(const struct sl_ppdb_table *t)
{
    struct sl_ppdb_source source, last = {0};
    for (uint32_t i = 0; i < t->source_count; i++, last = source) {
        source_at(t, i, &source);
        if (source.document >= t->document_count || (i && source.document <= last.document))
            return false;
    }
    return true;
}

enum sl_code sl_ppdb_table_verify(const struct sl_ppdb_table *t, struct sl_error *error)
{
    for (uint32_t m = 1; m <= t->method_count; m++)
        if (!verify_method(t, m))
            return sl_fail(error, SL_MALFORMED, "look-up table: bad points of method %u", m);
    if (!verify_names(t))
        return sl_fail(error, SL_MALFORMED, "look-up table: bad names");
    if (!verify_sources(t))
        return sl_fail(error, SL_MALFORMED, "look-up table: bad sources");
    return SL_OK;
}
