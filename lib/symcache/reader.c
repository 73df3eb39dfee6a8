/* Reads a symcache in place. Every id and offset is checked where it is used. */
#include "function/position.h"
#include "symcache/format.h"

static inline uint64_t column(const struct sl_symcache *c, enum symcache_column id, uint64_t index)
{
    return sl_column_get(&c->columns[id], index);
}

/* Opens the `count` columns of a section as the columns of *c from `first` on; false unless the section has `rows` rows. */
static bool open_columns(struct sl_symcache *c, enum symcache_section_id section, enum symcache_column first,
                         unsigned count, uint64_t rows)
{
    return sl_table_columns(c->table.sections[section], rows, count, &c->columns[first]);
}

/* Opens every section, and checks that its size fits the counts of the header. Sections of origins and variables exist only with their
 * flags. */
static bool open_sections(struct sl_symcache *c)
{
    const struct sl_bytes *sections = c->table.sections;
    c->block_count = (c->entry_count + BLOCK_ENTRIES - 1) / BLOCK_ENTRIES;
    return c->entry_count <= UINT32_MAX &&
           sections[SECTION_DIRECTORY].size / (c->flags & FLAG_WIDE ? 8 : 4) == c->block_count &&
           sl_table_units(sections[SECTION_OFFSETS], sections[SECTION_BLOCKS], c->block_count, &c->blocks) &&
           sl_table_strings(sections[SECTION_GROUPS], sections[SECTION_STRINGS], c->string_count, &c->strings) &&
           open_columns(c, SECTION_CONTEXTS, COLUMN_CONTEXT_FUNCTION, 5, c->context_count) &&
           open_columns(c, SECTION_FUNCTIONS, COLUMN_FUNCTION_NAME, function_columns(c->flags), c->function_count) &&
           open_columns(c, SECTION_FILES, COLUMN_FILE_PATH, 1, c->file_count) &&
           (!(c->flags & FLAG_ORIGINS) || open_columns(c, SECTION_ORIGINS, COLUMN_ORIGIN_PATH, 3, c->file_count)) &&
           (!(c->flags & FLAG_VARIABLES) ||
            open_columns(c, SECTION_VARIABLES, COLUMN_VARIABLE_NAME, 2, c->variable_count));
}

enum sl_code sl_symcache_open(struct sl_bytes bytes, struct sl_symcache *c, struct sl_error *error)
{
    const uint8_t *h = bytes.data;
    *c = (struct sl_symcache){.block_count = 0};
    enum sl_code code = sl_table_open(bytes, &symcache_format, &c->table, error);
    if (code != SL_OK)
        return code;
    c->flags = sl_table_u32(h + AT_FLAGS);
    c->arch = (enum sl_arch)sl_table_u32(h + AT_ARCH);
    c->debug_id.age = sl_table_u32(h + AT_AGE);
    memcpy(c->debug_id.uuid, h + AT_UUID, sizeof c->debug_id.uuid);
    c->image_size = sl_table_u64(h + AT_IMAGE_SIZE);
    c->load_address = sl_table_u64(h + AT_LOAD_ADDRESS);
    c->entry_count = sl_table_u64(h + AT_ENTRIES);
    c->context_count = sl_table_u64(h + AT_CONTEXTS);
    c->function_count = sl_table_u64(h + AT_FUNCTIONS);
    c->file_count = sl_table_u64(h + AT_FILES);
    c->string_count = sl_table_u64(h + AT_STRINGS);
    c->variable_count = sl_table_u64(h + AT_VARIABLES);
    return open_sections(c)
               ? SL_OK
               : sl_fail(error, SL_MALFORMED, "symcache: the sections have other sizes than its header says");
}

/* ---- blocks ---- */

struct symcache_unit_entry { /* a decoded entry */
    uint64_t address;
    uint32_t context, file, line; /* file: id + 1; UINT32_MAX = the context's default */
    bool hole;                    /* the code from here on has no symbol */
};

/* Decoder of a block of entries; faster than sl_reader. */
struct symcache_decoder {
    const uint8_t *at, *end;
    uint64_t address;          /* of the entry */
    uint32_t context, highest; /* the last context and the highest one of the block so far */
    bool failed;
    uint32_t lines[LINE_SLOTS];
};

/* Reads an unsigned LEB128 number. One that is cut off or has more than ten bytes sets d->failed and gives 0. */
static inline uint64_t read_uleb(struct symcache_decoder *d)
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

static uint64_t block_address(const struct sl_symcache *c, uint64_t block)
{
    const uint8_t *directory = c->table.sections[SECTION_DIRECTORY].data;
    return c->flags & FLAG_WIDE ? sl_table_u64(directory + block * 8) : sl_table_u32(directory + block * 4);
}

/* Starts decoding a block: `d` is at its first entry. False if the block is empty or not inside the file. */
static bool open_block(const struct sl_symcache *c, uint64_t block, struct symcache_decoder *d)
{
    struct sl_bytes unit = sl_table_unit(&c->blocks, block);
    *d = (struct symcache_decoder){.at = unit.data, .end = unit.data + unit.size, .address = block_address(c, block)};
    return unit.size > 0;
}

/* Decodes an entry from its control byte on (format.h). For a hole only address and `hole` are set. e->file is UINT32_MAX for the default
 * file of the context. Each of LINE_SLOTS slots, chosen by the context's low bits, has the last line, to which a line is stored as a
 * difference. */
static inline void symcache_reader_read_entry(struct symcache_decoder *d, struct symcache_unit_entry *e)
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
        d->context = (uint32_t)(d->context + sl_unzigzag(read_uleb(d)));
    else if (how == CONTEXT_NEW)
        d->context = d->highest + 1;
    if (d->context > d->highest)
        d->highest = d->context;
    e->file = control & CONTROL_FILE ? (uint32_t)read_uleb(d) : UINT32_MAX;
    uint32_t *slot = &d->lines[d->context % LINE_SLOTS];
    unsigned code = control >> LINE_SHIFT;
    if (code == LINE_ESCAPE)
        *slot = (uint32_t)(*slot + sl_unzigzag(read_uleb(d)));
    else
        *slot = (uint32_t)(*slot + code - LINE_BIAS);
    e->line = *slot;
    e->context = d->context;
}

/* Finds the last block that begins at or before the address; false if there is none. The search has no branches that depend on the data:
 * they would be mispredicted. Without FLAG_WIDE all addresses of blocks fit 32 bits, so a larger address is in or after the last one. */
static bool find_block(const struct sl_symcache *c, uint64_t address, uint64_t *block)
{
    if (!c->block_count || block_address(c, 0) > address)
        return false;
    const uint8_t *directory = c->table.sections[SECTION_DIRECTORY].data;
    uint64_t low = 0, count = c->block_count;
    if (c->flags & FLAG_WIDE) {
        for (; count > 1; count -= count / 2)
            low += sl_table_u64(directory + (low + count / 2) * 8) <= address ? count / 2 : 0;
    } else {
        if (address > UINT32_MAX)
            address = UINT32_MAX;
        for (; count > 1; count -= count / 2)
            low += sl_table_u32(directory + (low + count / 2) * 4) <= address ? count / 2 : 0;
    }
    *block = low;
    return true;
}

/* Finds the last entry at or before the address, by decoding its block up to there. False if there is none, if the block is damaged, and if
 * the entry is a hole (no symbol), which `*found` then describes. */
static bool find_entry(const struct sl_symcache *c, uint64_t address, struct symcache_unit_entry *found)
{
    uint64_t block;
    struct symcache_decoder d;
    struct symcache_unit_entry e = {0};
    if (!find_block(c, address, &block) || !open_block(c, block, &d))
        return false;
    uint64_t left = c->entry_count - block * BLOCK_ENTRIES;
    left = left < BLOCK_ENTRIES ? left : BLOCK_ENTRIES;
    symcache_reader_read_entry(&d, &e);
    while (!d.failed && --left) {
        d.address += read_uleb(&d);
        if (d.address > address)
            break;
        symcache_reader_read_entry(&d, &e);
    }
    *found = e;
    return !d.failed && !e.hole;
}

bool sl_symcache_entry_start(const struct sl_symcache *c, uint64_t address, uint64_t *start)
{
    struct symcache_unit_entry e;
    bool found = find_entry(c, address, &e);
    *start = found ? e.address : 0;
    return found;
}

/* Sets line and column from a stored line, which with FLAG_POSITIONS is both in one number. */
static void set_position(const struct sl_symcache *c, uint64_t line, struct sl_location *location)
{
    bool is_position = c->flags & FLAG_POSITIONS;
    location->line = is_position ? sl_position_line((uint32_t)line) : (uint32_t)line;
    location->column = is_position ? sl_position_column((uint32_t)line) : 0;
}

size_t sl_symcache_lookup(const struct sl_symcache *c, uint64_t address, struct sl_location *chain, size_t capacity)
{
    struct symcache_unit_entry e;
    size_t count = 0;
    if (!find_entry(c, address, &e) || e.context >= c->context_count)
        return 0;
    uint64_t context = e.context, line = e.line;
    /* ids of files and parents are stored plus 1; 0 = none */
    uint64_t file = e.file == UINT32_MAX ? column(c, COLUMN_CONTEXT_FILE, context) : e.file;
    for (;;) {
        if (count < capacity) {
            chain[count].function = (uint32_t)column(c, COLUMN_CONTEXT_FUNCTION, context);
            chain[count].file = file && file <= c->file_count ? (uint32_t)(file - 1) : SL_SYMCACHE_NONE;
            set_position(c, line, &chain[count]);
        }
        count++;
        uint64_t parent = column(c, COLUMN_CONTEXT_PARENT, context);
        /* the limit ends a cycle in a damaged file */
        if (!parent || parent > c->context_count || count >= SL_SYMCACHE_MAX_CHAIN)
            return count;
        file = column(c, COLUMN_CONTEXT_CALL_FILE, context);
        line = column(c, COLUMN_CONTEXT_CALL_LINE, context);
        context = parent - 1;
    }
}

/* Finds the outermost function of the code at the address or, if that is in a hole, of the code in front of the hole. False if there is
 * none. */
bool sl_symcache_function_before(const struct sl_symcache *c, uint64_t address, struct sl_location *function)
{
    struct symcache_unit_entry e = {0};
    /* in a hole: the entry in front of it */
    if (!find_entry(c, address, &e) && (!e.hole || !e.address || !find_entry(c, e.address - 1, &e)))
        return false;
    uint64_t context = e.context;
    for (unsigned depth = 0; context < c->context_count && depth < SL_SYMCACHE_MAX_CHAIN; depth++) {
        uint64_t parent = column(c, COLUMN_CONTEXT_PARENT, context);
        *function = (struct sl_location){(uint32_t)column(c, COLUMN_CONTEXT_FUNCTION, context), SL_SYMCACHE_NONE, 0, 0};
        if (!parent)
            return true;
        context = parent - 1;
    }
    return false;
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

uint32_t sl_symcache_variables(const struct sl_symcache *c, uint32_t id, uint32_t *first)
{
    *first = 0;
    if (!(c->flags & FLAG_VARIABLES) || id >= c->function_count)
        return 0;
    uint64_t begin = column(c, COLUMN_FUNCTION_FIRST_VARIABLE, id), count = column(c, COLUMN_FUNCTION_VARIABLES, id);
    if (begin > c->variable_count || count > c->variable_count - begin)
        return 0;
    *first = (uint32_t)begin;
    return (uint32_t)count;
}

bool sl_symcache_variable(const struct sl_symcache *c, uint32_t number, struct sl_symcache_variable *variable)
{
    if (!(c->flags & FLAG_VARIABLES) || number >= c->variable_count)
        return false;
    *variable = (struct sl_symcache_variable){(uint32_t)column(c, COLUMN_VARIABLE_NAME, number),
                                              (uint32_t)column(c, COLUMN_VARIABLE_TYPE, number)};
    return variable->name < c->string_count && variable->type < c->string_count;
}

/* Returns the outermost function of the inline chain that `context` belongs to. `*steps` is counted down by the links of the chain; returns
 * SL_SYMCACHE_NONE if it becomes 0 or the chain is damaged. */
static uint32_t outermost(const struct sl_symcache *c, uint64_t context, unsigned *steps)
{
    while (context < c->context_count && *steps) {
        uint64_t parent = column(c, COLUMN_CONTEXT_PARENT, context);
        if (!parent)
            return (uint32_t)column(c, COLUMN_CONTEXT_FUNCTION, context);
        context = parent - 1;
        --*steps;
    }
    return SL_SYMCACHE_NONE;
}

struct extent {                 /* state of finding the end of a function */
    uint64_t entry, end;        /* end: 0 = not found yet */
    uint32_t function, context; /* context: the last one that belongs to the function; UINT32_MAX = none */
    unsigned steps;             /* entries and links of chains that may still be read; 0 = give up */
};

/* Searches the entries of a block for the first one at or after x->entry that is not code of the function, and sets x->end to its address.
 * Sets x->steps to 0 if the block is damaged. */
static void extent_in_block(const struct sl_symcache *c, uint64_t block, struct extent *x)
{
    struct symcache_decoder d;
    struct symcache_unit_entry e = {0};
    uint64_t left = c->entry_count - block * BLOCK_ENTRIES;
    if (!open_block(c, block, &d))
        x->steps = 0;
    for (left = left < BLOCK_ENTRIES ? left : BLOCK_ENTRIES; left && x->steps && !x->end; left--) {
        symcache_reader_read_entry(&d, &e);
        bool known = !e.hole && e.context == x->context; /* most entries have the context of the last one */
        if (e.address >= x->entry && !known) {
            if (e.hole || outermost(c, e.context, &x->steps) != x->function)
                x->end = e.address;
            x->context = e.context;
        }
        if (left > 1)
            d.address += read_uleb(&d);
        x->steps = d.failed || !x->steps ? 0 : x->steps - 1;
    }
}

/* Walks the entries from the function's start to the first one that belongs to another function or is a hole. `steps` limits the walk in
 * damaged files; if it is used up the size is unknown (0). */
uint64_t sl_symcache_function_size(const struct sl_symcache *c, uint32_t id)
{
    struct extent x = {.function = id, .context = UINT32_MAX, .steps = 1 << 16};
    struct sl_symcache_function function;
    struct symcache_unit_entry first;
    uint64_t block;
    if (!sl_symcache_function(c, id, &function) || function.entry == UINT64_MAX ||
        !find_entry(c, function.entry, &first) || outermost(c, first.context, &x.steps) != id ||
        !find_block(c, function.entry, &block))
        return 0;
    x.entry = function.entry;
    for (; !x.end && x.steps && block < c->block_count; block++)
        extent_in_block(c, block, &x);
    return x.steps && x.end > x.entry ? x.end - x.entry : 0;
}

void sl_symcache_string(const struct sl_symcache *c, uint32_t id, struct sl_buf *out)
{
    sl_table_string(&c->strings, id, out);
}

void sl_symcache_file(const struct sl_symcache *c, uint32_t file, struct sl_buf *out)
{
    if (file < c->file_count)
        sl_symcache_string(c, (uint32_t)column(c, COLUMN_FILE_PATH, file), out);
}

/* Converts a number that counts from 1 to an id; SL_SYMCACHE_NONE for 0. */
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
    struct sl_bytes name = c->table.sections[SECTION_MODULE];
    return (struct sl_str){(const char *)name.data, name.size};
}

/* ---- walking ---- */

/* Decodes entry number `index` of the file, by decoding its block from the start, as entries are differences to the one before. False if
 * there is no such entry or the block is damaged. */
static bool entry_at(const struct sl_symcache *c, uint64_t index, struct symcache_unit_entry *e)
{
    struct symcache_decoder d;
    if (index >= c->entry_count || !open_block(c, index / BLOCK_ENTRIES, &d))
        return false;
    symcache_reader_read_entry(&d, e);
    for (uint64_t i = index % BLOCK_ENTRIES; i && !d.failed; i--) {
        d.address += read_uleb(&d);
        symcache_reader_read_entry(&d, e);
    }
    return !d.failed;
}

void sl_symcache_first(const struct sl_symcache *c, struct sl_symcache_cursor *cursor)
{
    (void)c;
    *cursor = (struct sl_symcache_cursor){.index = UINT64_MAX}; /* sl_symcache_next() increments it to 0 */
}

bool sl_symcache_next(const struct sl_symcache *c, struct sl_symcache_cursor *cursor)
{
    struct symcache_unit_entry e = {0};
    if (!entry_at(c, ++cursor->index, &e)) /* from UINT64_MAX, set by sl_symcache_first(), to 0 */
        return false;
    cursor->address = e.address;
    cursor->hole = e.hole;
    return true;
}

bool sl_symcache_is_partial(const struct sl_symcache *c)
{
    return c->flags & FLAG_PARTIAL;
}

bool sl_symcache_lacks_units(const struct sl_symcache *c)
{
    return c->flags & FLAG_LACKS_UNITS;
}

/* True if all variables and the functions' references to them are valid. */
static bool variables_decode(const struct sl_symcache *c)
{
    struct sl_symcache_variable variable;
    uint32_t first;
    if (!(c->flags & FLAG_VARIABLES))
        return true;
    for (uint64_t i = 0; i < c->function_count; i++) /* sl_symcache_variables() gives 0 for an invalid range */
        if (sl_symcache_variables(c, (uint32_t)i, &first) != column(c, COLUMN_FUNCTION_VARIABLES, i))
            return false;
    for (uint64_t i = 0; i < c->variable_count; i++)
        if (!sl_symcache_variable(c, (uint32_t)i, &variable))
            return false;
    return true;
}

enum sl_code sl_symcache_verify(const struct sl_symcache *c, struct sl_error *error)
{
    if (!sl_table_is_intact(&c->table))
        return sl_fail(error, SL_MALFORMED, "symcache: the contents do not match their checksum");
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct sl_symcache_function function;
    struct sl_symcache_cursor cursor;
    uint64_t count = 0;
    for (sl_symcache_first(c, &cursor); sl_symcache_next(c, &cursor); count++) {
        size_t n = sl_symcache_lookup(c, cursor.address, chain, SL_SYMCACHE_MAX_CHAIN);
        if (!n != cursor.hole)
            return sl_fail(error, SL_MALFORMED, "symcache: invalid entry for address 0x%llx",
                           (unsigned long long)cursor.address);
        for (size_t i = 0; i < n; i++)
            if (!sl_symcache_function(c, chain[i].function, &function) || function.name >= c->string_count)
                return sl_fail(error, SL_MALFORMED, "symcache: the entry for address 0x%llx names no valid function",
                               (unsigned long long)cursor.address);
    }
    if (count != c->entry_count)
        return sl_fail(error, SL_MALFORMED, "symcache: cannot decode entry %llu", (unsigned long long)count);
    return variables_decode(c) ? SL_OK : sl_fail(error, SL_MALFORMED, "symcache: the variables cannot be decoded");
}
