/* Using a symcache in place. Every id and offset is checked where it is used. */
#include "symcache/format.h"

#include "base/map.h"

static uint64_t get(const uint8_t *at, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap32(value) : value;
}

static inline uint64_t get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(value) : value;
}

static inline uint64_t column(const struct sl_symcache *c, enum column id, uint64_t index)
{
    const struct sl_symcache_column *column = &c->columns[id];
    uint64_t bit = index * column->width;
    return get64(column->data + bit / 8) >> (bit & 7) & ((UINT64_C(1) << column->width) - 1);
}

/* Finds the columns of a section: eight widths, then the columns, each 8-aligned with eight bytes of tail. */
static bool open_columns(struct sl_symcache *c, enum section_id section, enum column first, unsigned count,
                         uint64_t rows)
{
    struct sl_bytes bytes = c->sections[section];
    uint64_t at = 8;
    if (bytes.size < 8 || rows > UINT32_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        uint8_t width = bytes.data[i];
        uint64_t size = (rows * width + 7) / 8 + 8;
        at = (at + 7) & ~UINT64_C(7);
        if (width > 56 || at > bytes.size || size > bytes.size - at)
            return false;
        c->columns[first + i] = (struct sl_symcache_column){bytes.data + at, rows, width};
        at += size;
    }
    return true;
}

static bool open_sections(struct sl_symcache *c, uint32_t count)
{
    const uint8_t *table = c->bytes.data + HEADER_SIZE;
    for (uint32_t i = 0; i < count; i++, table += SECTION_ENTRY) {
        uint32_t id = get32(table);
        bool inside;
        struct sl_bytes section = sl_bytes_slice(c->bytes, get64(table + 8), get64(table + 16), &inside);
        if (!inside || get64(table + 8) % 8)
            return false;
        if (id < MAX_SECTIONS)
            c->sections[id] = section;
    }
    uint64_t blocks = (c->entry_count + BLOCK_ENTRIES - 1) / BLOCK_ENTRIES;
    uint64_t groups = (c->string_count + GROUP_STRINGS - 1) / GROUP_STRINGS;
    c->block_count = blocks;
    return c->sections[SECTION_DIRECTORY].size / (c->flags & FLAG_WIDE ? 8 : 4) == blocks &&
           c->sections[SECTION_OFFSETS].size / 4 == blocks + 1 && c->sections[SECTION_GROUPS].size / 4 == groups + 1 &&
           open_columns(c, SECTION_CONTEXTS, COLUMN_CONTEXT_FUNCTION, 5, c->context_count) &&
           open_columns(c, SECTION_FUNCTIONS, COLUMN_FUNCTION_NAME, 3, c->function_count) &&
           open_columns(c, SECTION_FILES, COLUMN_FILE_PATH, 1, c->file_count) &&
           (!(c->flags & FLAG_ORIGINS) || open_columns(c, SECTION_ORIGINS, COLUMN_ORIGIN_PATH, 3, c->file_count));
}

enum sl_code sl_symcache_open(struct sl_bytes bytes, struct sl_symcache *c, struct sl_error *error)
{
    uint8_t head[HEADER_SIZE + MAX_SECTIONS * SECTION_ENTRY];
    *c = (struct sl_symcache){.bytes = bytes};
    if (bytes.size < HEADER_SIZE || memcmp(bytes.data, "SLSC", 4) != 0)
        return sl_fail(error, SL_MALFORMED, "not a symcache");
    const uint8_t *h = bytes.data;
    if (get(h + AT_MAJOR, 2) != FORMAT_MAJOR || get32(h + AT_HEADER_SIZE) != HEADER_SIZE)
        return sl_fail(error, SL_MALFORMED, "symcache of another version");
    uint32_t count = get32(h + AT_SECTION_COUNT);
    size_t content = HEADER_SIZE + (size_t)count * SECTION_ENTRY;
    if (count > MAX_SECTIONS || content > bytes.size)
        return sl_fail(error, SL_MALFORMED, "symcache: bad section table");
    memcpy(head, h, content);
    memset(head + AT_HEADER_HASH, 0, 8);
    if (sl_hash(head, content) != get64(h + AT_HEADER_HASH))
        return sl_fail(error, SL_MALFORMED, "symcache: damaged header");
    c->flags = get32(h + AT_FLAGS);
    c->arch = (enum sl_arch)get32(h + AT_ARCH);
    c->debug_id.age = get32(h + AT_AGE);
    memcpy(c->debug_id.uuid, h + AT_UUID, 16);
    c->image_size = get64(h + AT_IMAGE_SIZE);
    c->entry_count = get64(h + AT_ENTRIES);
    c->context_count = get64(h + AT_CONTEXTS);
    c->function_count = get64(h + AT_FUNCTIONS);
    c->file_count = get64(h + AT_FILES);
    c->string_count = get64(h + AT_STRINGS);
    if (c->entry_count > UINT32_MAX || c->string_count > UINT32_MAX || !open_sections(c, count))
        return sl_fail(error, SL_MALFORMED, "symcache: bad sections");
    return SL_OK;
}

/* ---- blocks ---- */

struct entry {
    uint64_t address;
    uint32_t context, file, line; /* file: id + 1 */
    bool hole;
};

struct decoder {
    const uint8_t *at, *end;
    uint64_t address;
    uint32_t context, highest;
    bool failed;
    uint32_t lines[LINE_SLOTS];
};

static inline uint64_t read_uleb(struct decoder *d)
{
    if (d->at < d->end && *d->at < 0x80)
        return *d->at++;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (d->at >= d->end)
            break;
        uint8_t byte = *d->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    d->failed = true;
    return 0;
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint64_t block_address(const struct sl_symcache *c, uint64_t block)
{
    const uint8_t *directory = c->sections[SECTION_DIRECTORY].data;
    return c->flags & FLAG_WIDE ? get64(directory + block * 8) : get32(directory + block * 4);
}

static bool open_block(const struct sl_symcache *c, uint64_t block, struct decoder *d)
{
    const uint8_t *offsets = c->sections[SECTION_OFFSETS].data + block * 4;
    uint32_t begin = get32(offsets), end = get32(offsets + 4);
    struct sl_bytes blocks = c->sections[SECTION_BLOCKS];
    if (begin > end || end > blocks.size)
        return false;
    *d = (struct decoder){.at = blocks.data + begin, .end = blocks.data + end, .address = block_address(c, block)};
    return true;
}

/* The entry behind its address. `file` of the result is UINT32_MAX when it is the context's default. */
static inline void read_entry(struct decoder *d, struct entry *e)
{
    if (d->at >= d->end) {
        d->failed = true;
        return;
    }
    uint8_t control = *d->at++;
    unsigned how = control & 3;
    e->address = d->address;
    e->hole = how == CONTEXT_HOLE;
    if (e->hole)
        return;
    if (how == CONTEXT_DELTA)
        d->context = (uint32_t)((int64_t)d->context + unzigzag(read_uleb(d)));
    else if (how == CONTEXT_NEW)
        d->context = d->highest + 1;
    if (d->context > d->highest)
        d->highest = d->context;
    e->file = control & CONTROL_FILE ? (uint32_t)read_uleb(d) : UINT32_MAX;
    uint32_t *slot = &d->lines[d->context % LINE_SLOTS];
    unsigned code = control >> LINE_SHIFT;
    if (code == LINE_ESCAPE)
        *slot = (uint32_t)(*slot + unzigzag(read_uleb(d)));
    else
        *slot = (uint32_t)(*slot + code - LINE_BIAS);
    e->line = *slot;
    e->context = d->context;
}

static bool find_block(const struct sl_symcache *c, uint64_t address, uint64_t *block)
{
    if (!c->block_count || block_address(c, 0) > address)
        return false;
    const uint8_t *directory = c->sections[SECTION_DIRECTORY].data;
    uint64_t low = 0, count = c->block_count;
    if (c->flags & FLAG_WIDE) {
        for (; count > 1; count -= count / 2)
            low += get64(directory + (low + count / 2) * 8) <= address ? count / 2 : 0;
    } else {
        if (address > UINT32_MAX)
            address = UINT32_MAX;
        for (; count > 1; count -= count / 2)
            low += get32(directory + (low + count / 2) * 4) <= address ? count / 2 : 0;
    }
    *block = low;
    return true;
}

static bool find_entry(const struct sl_symcache *c, uint64_t address, struct entry *found)
{
    uint64_t block;
    struct decoder d;
    struct entry e = {0};
    if (!find_block(c, address, &block) || !open_block(c, block, &d))
        return false;
    uint64_t left = c->entry_count - block * BLOCK_ENTRIES;
    left = left < BLOCK_ENTRIES ? left : BLOCK_ENTRIES;
    read_entry(&d, &e);
    while (!d.failed && --left) {
        d.address += read_uleb(&d);
        if (d.address > address)
            break;
        read_entry(&d, &e);
    }
    *found = e;
    return !d.failed && !e.hole;
}

size_t sl_symcache_lookup(const struct sl_symcache *c, uint64_t address, struct sl_location *chain, size_t capacity)
{
    struct entry e;
    size_t count = 0;
    if (!find_entry(c, address, &e) || e.context >= c->context_count)
        return 0;
    uint64_t context = e.context, line = e.line;
    uint64_t file = e.file == UINT32_MAX ? column(c, COLUMN_CONTEXT_FILE, context) : e.file;
    for (;;) {
        if (count < capacity)
            chain[count] = (struct sl_location){
                .function = (uint32_t)column(c, COLUMN_CONTEXT_FUNCTION, context),
                .file = file && file <= c->file_count ? (uint32_t)(file - 1) : SL_SYMCACHE_NONE,
                .line = (uint32_t)line,
            };
        count++;
        uint64_t parent = column(c, COLUMN_CONTEXT_PARENT, context);
        if (!parent || parent > c->context_count || count >= SL_SYMCACHE_MAX_CHAIN)
            return count;
        file = column(c, COLUMN_CONTEXT_CALL_FILE, context);
        line = column(c, COLUMN_CONTEXT_CALL_LINE, context);
        context = parent - 1;
    }
}

bool sl_symcache_function(const struct sl_symcache *c, uint32_t id, struct sl_symcache_function *function)
{
    if (id >= c->function_count)
        return false;
    uint64_t entry = column(c, COLUMN_FUNCTION_ENTRY, id);
    *function = (struct sl_symcache_function){
        .name = (uint32_t)column(c, COLUMN_FUNCTION_NAME, id),
        .language = (enum sl_language)column(c, COLUMN_FUNCTION_LANGUAGE, id),
        .entry = entry ? entry - 1 : UINT64_MAX,
    };
    return true;
}

void sl_symcache_string(const struct sl_symcache *c, uint32_t id, struct sl_buf *out)
{
    if (id >= c->string_count)
        return;
    const uint8_t *groups = c->sections[SECTION_GROUPS].data + (size_t)(id / GROUP_STRINGS) * 4;
    uint32_t begin = get32(groups), end = get32(groups + 4);
    struct sl_bytes strings = c->sections[SECTION_STRINGS];
    if (begin > end || end > strings.size)
        return;
    struct decoder d = {.at = strings.data + begin, .end = strings.data + end};
    size_t start = out->size;
    for (uint32_t i = 0; i <= id % GROUP_STRINGS; i++) {
        uint64_t shared = i ? read_uleb(&d) : 0, rest = read_uleb(&d);
        if (d.failed || shared > out->size - start || rest > (uint64_t)(d.end - d.at)) {
            out->size = start;
            return;
        }
        out->size = start + (size_t)shared;
        sl_buf_add(out, d.at, (size_t)rest);
        d.at += rest;
    }
}

void sl_symcache_file(const struct sl_symcache *c, uint32_t file, struct sl_buf *out)
{
    if (file < c->file_count)
        sl_symcache_string(c, (uint32_t)column(c, COLUMN_FILE_PATH, file), out);
}

static uint32_t optional(uint64_t number)
{
    return number && number < SL_SYMCACHE_NONE ? (uint32_t)(number - 1) : SL_SYMCACHE_NONE;
}

bool sl_symcache_origin(const struct sl_symcache *c, uint32_t file, struct sl_symcache_origin *origin)
{
    if (!(c->flags & FLAG_ORIGINS) || file >= c->file_count)
        return false;
    *origin = (struct sl_symcache_origin){
        .path = optional(column(c, COLUMN_ORIGIN_PATH, file)),
        .revision = optional(column(c, COLUMN_ORIGIN_REVISION, file)),
        .url = optional(column(c, COLUMN_ORIGIN_URL, file)),
    };
    return origin->path != SL_SYMCACHE_NONE || origin->url != SL_SYMCACHE_NONE;
}

struct sl_str sl_symcache_module_file(const struct sl_symcache *c)
{
    struct sl_bytes name = c->sections[SECTION_MODULE];
    return (struct sl_str){(const char *)name.data, name.size};
}

/* ---- walking ---- */

static bool entry_at(const struct sl_symcache *c, uint64_t index, struct entry *e)
{
    struct decoder d;
    if (index >= c->entry_count || !open_block(c, index / BLOCK_ENTRIES, &d))
        return false;
    read_entry(&d, e);
    for (uint64_t i = index % BLOCK_ENTRIES; i && !d.failed; i--) {
        d.address += read_uleb(&d);
        read_entry(&d, e);
    }
    return !d.failed;
}

void sl_symcache_first(const struct sl_symcache *c, struct sl_symcache_cursor *cursor)
{
    (void)c;
    *cursor = (struct sl_symcache_cursor){.index = UINT64_MAX};
}

bool sl_symcache_next(const struct sl_symcache *c, struct sl_symcache_cursor *cursor)
{
    struct entry e = {0};
    if (!entry_at(c, ++cursor->index, &e))
        return false;
    cursor->address = e.address;
    cursor->hole = e.hole;
    return true;
}

bool sl_symcache_is_partial(const struct sl_symcache *c)
{
    return c->flags & FLAG_PARTIAL;
}

enum sl_code sl_symcache_verify(const struct sl_symcache *c, struct sl_error *error)
{
    size_t content = HEADER_SIZE + (size_t)get32(c->bytes.data + AT_SECTION_COUNT) * SECTION_ENTRY;
    if (sl_hash(c->bytes.data + content, c->bytes.size - content) != get64(c->bytes.data + AT_CONTENT_HASH))
        return sl_fail(error, SL_MALFORMED, "symcache: damaged contents");
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct sl_symcache_function function;
    struct sl_symcache_cursor cursor;
    uint64_t count = 0;
    for (sl_symcache_first(c, &cursor); sl_symcache_next(c, &cursor); count++) {
        size_t n = sl_symcache_lookup(c, cursor.address, chain, SL_SYMCACHE_MAX_CHAIN);
        if (!n != cursor.hole)
            return sl_fail(error, SL_MALFORMED, "symcache: bad entry at 0x%llx", (unsigned long long)cursor.address);
        for (size_t i = 0; i < n; i++)
            if (!sl_symcache_function(c, chain[i].function, &function) || function.name >= c->string_count)
                return sl_fail(error, SL_MALFORMED, "symcache: bad function at 0x%llx",
                               (unsigned long long)cursor.address);
    }
    if (count != c->entry_count)
        return sl_fail(error, SL_MALFORMED, "symcache: entry %llu does not decode", (unsigned long long)count);
    return SL_OK;
}
