/* WebAssembly modules (WebAssembly Core Specification, "Binary Format"; tool conventions "Build ID", "Debugging",
 * "ExternalDWARF").
 *
 * Reads where sections and function bodies begin and end, never instructions, so modules with instructions of newer proposals work.
 * Addresses are file offsets. */
#include "object/impl.h"

#include "base/grow.h"

#include <inttypes.h>

enum { SECTION_CUSTOM = 0, SECTION_IMPORT = 2, SECTION_FUNCTION = 3, SECTION_CODE = 10, NAME_FUNCTIONS = 1 };

struct wasm_section {
    struct sl_str name; /* custom sections only */
    uint8_t id;
    uint64_t offset; /* of the contents, after the name of a custom section */
    struct sl_bytes contents;
};

struct wasm {
    struct wasm_section *sections;
    size_t section_count, section_capacity;
    uint32_t imported_functions;
    /* added to addresses of code in a debug companion: offset of the code section in the program's file minus that in this file */
    uint64_t address_bias;
};

static enum sl_code wasm_invalid(struct sl_error *error, const char *what, uint64_t offset)
{
    return sl_fail(error, SL_MALFORMED, "invalid wasm file: %s at 0x%" PRIx64, what, offset);
}

static uint32_t read_u32(struct sl_reader *r)
{
    uint64_t value = sl_read_uleb(r);
    if (value > UINT32_MAX)
        r->failed = true;
    return r->failed ? 0 : (uint32_t)value;
}

static struct sl_str read_name(struct sl_reader *r)
{
    struct sl_bytes bytes = sl_read_bytes(r, read_u32(r));
    return (struct sl_str){(const char *)bytes.data, bytes.size};
}

static struct sl_bytes rest(struct sl_reader *r)
{
    return sl_read_bytes(r, sl_reader_left(r));
}

/* Adds a section; returns NULL when out of memory. */
static struct wasm_section *add_section(struct sl_object *object, struct wasm *wasm)
{
    if (!sl_grow_in_arena(&object->arena, &wasm->sections, &wasm->section_capacity, wasm->section_count + 1,
                          sizeof *wasm->sections))
        return NULL;
    return &wasm->sections[wasm->section_count++];
}

/* Lists the sections in file order. The contents of a custom section begin after its name; a section whose name is damaged is left out, and
 * the object is marked as partial. SL_MALFORMED if a section extends beyond the file. */
static enum sl_code wasm_read_sections(struct sl_object *object, struct wasm *wasm, struct sl_error *error)
{
    struct sl_reader r = sl_reader(object->bytes, false);
    sl_reader_skip(&r, 4);    /* magic */
    if (sl_read_u32(&r) != 1) /* components have other versions */
        return wasm_invalid(error, "not a module of version 1", 4);
    while (sl_reader_left(&r)) {
        uint64_t offset = sl_reader_offset(&r);
        uint8_t id = sl_read_u8(&r);
        struct sl_bytes contents = sl_read_bytes(&r, read_u32(&r));
        if (r.failed)
            return wasm_invalid(error, "section outside of the file", offset);
        struct sl_reader in = sl_reader(contents, false);
        struct sl_str name = id == SECTION_CUSTOM ? read_name(&in) : (struct sl_str){NULL, 0};
        if (in.failed) {
            object->info.partial = true;
            continue;
        }
        struct wasm_section *section = add_section(object, wasm);
        if (!section)
            return object_no_memory(object);
        *section = (struct wasm_section){.name = name, .id = id};
        section->contents = rest(&in);
        section->offset = sl_reader_offset(&r) - section->contents.size;
    }
    return SL_OK;
}

static const struct wasm_section *wasm_find(const struct wasm *wasm, uint8_t id, struct sl_str name)
{
    for (size_t i = 0; i < wasm->section_count; i++)
        if (wasm->sections[i].id == id && sl_str_equal(wasm->sections[i].name, name))
            return &wasm->sections[i];
    return NULL;
}

static const struct wasm_section *find_custom(const struct wasm *wasm, const char *name)
{
    return wasm_find(wasm, SECTION_CUSTOM, sl_str(name));
}

/* Returns the section of a standard kind; these have no names. */
static const struct wasm_section *find_known(const struct wasm *wasm, uint8_t id)
{
    return wasm_find(wasm, id, (struct sl_str){NULL, 0});
}

/* Skips a value type: one byte, with a number after it for the types (ref ht) and (ref null ht) of the function references proposal. */
static void skip_value_type(struct sl_reader *r)
{
    uint8_t type = sl_read_u8(r);
    if (type == 0x63 || type == 0x64)
        sl_read_sleb(r);
}

/* Skips the limits of a memory or table: flags, minimum, a maximum if bit 0 is set, a page size if bit 3 is set. */
static void skip_limits(struct sl_reader *r)
{
    uint8_t flags = sl_read_u8(r);
    sl_read_uleb(r);
    if (flags & 1)
        sl_read_uleb(r);
    if (flags & 8) /* custom page sizes */
        sl_read_uleb(r);
}

/* Counts imported functions, which come before all others in the numbering of functions. An import has the names of a module and of the
 * item, then its kind: 0 function, 1 table, 2 memory, 3 global, 4 tag. An unknown kind ends the count, as its size is unknown, and marks
 * the object as partial. */
static void count_imports(struct sl_object *object, struct wasm *wasm)
{
    const struct wasm_section *section = find_known(wasm, SECTION_IMPORT);
    struct sl_reader r = sl_reader(section ? section->contents : (struct sl_bytes){NULL, 0}, false);
    uint32_t count = section ? read_u32(&r) : 0;
    for (uint32_t i = 0; i < count && !r.failed; i++) {
        read_name(&r);
        read_name(&r);
        switch (sl_read_u8(&r)) {
        case 0:
            read_u32(&r); /* type */
            wasm->imported_functions += !r.failed;
            break;
        case 1:
            skip_value_type(&r);
            skip_limits(&r);
            break;
        case 2: skip_limits(&r); break;
        case 3:
            skip_value_type(&r);
            sl_read_u8(&r); /* whether it can be changed */
            break;
        case 4:
            sl_read_u8(&r); /* attribute */
            read_u32(&r);   /* type */
            break;
        default: r.failed = true;
        }
    }
    object->info.partial = object->info.partial || r.failed;
}

/* Sets the ids from the custom section `build_id`. Linkers write the length of the id in front of it, other tools do not: if the first
 * number equals the length of the rest, the rest is the id. raw_code_id is then the whole section, which some clients send. */
static void set_ids(struct sl_object *object, const struct wasm *wasm)
{
    const struct wasm_section *section = find_custom(wasm, "build_id");
    if (!section || !section->contents.size)
        return;
    struct sl_bytes id = section->contents;
    struct sl_reader r = sl_reader(id, false);
    uint64_t length = sl_read_uleb(&r);
    if (!r.failed && length && length == sl_reader_left(&r)) {
        object->info.raw_code_id = object_hex(object, id);
        id = rest(&r);
    }
    object->info.code_id = object_hex(object, id);
    if (id.size >= 16)
        memcpy(object->info.debug_id.uuid, id.data, 16);
}

/* Sets kind, features and addresses. A module without functions is the debug companion of another one. DWARF addresses are relative to the
 * code section, so dwarf_bias is the offset of that. */
static void set_info(struct sl_object *object, const struct wasm *wasm)
{
    struct sl_object_info *info = &object->info;
    const struct wasm_section *functions = find_known(wasm, SECTION_FUNCTION), *code = find_known(wasm, SECTION_CODE),
                              *external = find_custom(wasm, "external_debug_info");
    struct sl_reader r = sl_reader(functions ? functions->contents : (struct sl_bytes){NULL, 0}, false);
    info->arch = SL_ARCH_WASM32;
    info->kind = functions && read_u32(&r) ? SL_KIND_LIB : SL_KIND_DBG;
    info->features.has_symbols = true; /* each function body is one, even without a name */
    info->features.has_debug_info = find_custom(wasm, ".debug_info") != NULL;
    info->features.has_unwind_info = find_custom(wasm, ".debug_frame") != NULL;
    info->dwarf_bias = code ? code->offset : 0;
    info->image_size = code ? code->offset + code->contents.size : 0;
    if (external) {
        r = sl_reader(external->contents, false);
        info->debug_link = read_name(&r);
    }
}

/* Opens a module. Its sections are listed first, because ids and addresses are read from them. */
static enum sl_code wasm_open(struct sl_object *object, struct sl_error *error)
{
    struct wasm *wasm = SL_ARENA_NEW(&object->arena, struct wasm);
    if (!wasm)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = wasm;
    enum sl_code code = wasm_read_sections(object, wasm, error);
    if (code != SL_OK)
        return code;
    count_imports(object, wasm);
    set_ids(object, wasm);
    set_info(object, wasm);
    return SL_OK;
}

/* Finds the first custom section called `.` and `name`, such as `.debug_info`. False if there is none. */
static bool wasm_section(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    const struct wasm *wasm = object->impl;
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < wasm->section_count; i++) {
        const struct wasm_section *s = &wasm->sections[i];
        if (s->id != SECTION_CUSTOM || s->name.size != wanted.size + 1 || s->name.data[0] != '.' ||
            !sl_str_ends(s->name, wanted))
            continue;
        *bytes = s->contents;
        if (address)
            *address = s->offset;
        return true;
    }
    return false;
}

/* Describes section `index`. Sections that are not custom have no name in the file, so they get that of the specification. The address is
 * the offset in the file, as for code. False behind the last one. */
static bool wasm_section_info(struct sl_object *object, size_t index, struct sl_section_info *info)
{
    static const char *const names[] = {"",       "type",  "import",  "function", "table", "memory",     "global",
                                        "export", "start", "element", "code",     "data",  "data_count", "tag"};
    const struct wasm *wasm = object->impl;
    if (index >= wasm->section_count)
        return false;
    const struct wasm_section *s = &wasm->sections[index];
    bool known = s->id != SECTION_CUSTOM && s->id < sizeof names / sizeof *names;
    *info = (struct sl_section_info){
        .name = known ? sl_str(names[s->id]) : s->name,
        .address = s->offset,
        .offset = s->offset,
        .size = s->contents.size,
    };
    return true;
}

/* Makes a symbol for each function body of the code section, at most `capacity`; returns their number. A function begins after the size
 * field of its body and ends where the next one begins; the last one ends with its body. In a debug companion address_bias makes addresses
 * those of its program (wasm_relate). */
static size_t read_bodies(const struct sl_object *object, const struct wasm_section *code, struct sl_symbol *symbols,
                          size_t capacity)
{
    struct sl_reader r = sl_reader(code->contents, false);
    uint32_t count = read_u32(&r);
    size_t found = 0;
    uint64_t end = 0;
    while (found < count && found < capacity) {
        struct sl_bytes body = sl_read_bytes(&r, read_u32(&r));
        if (r.failed)
            break;
        uint64_t address =
            (uint64_t)(r.at - body.size - object->bytes.data) + ((const struct wasm *)object->impl)->address_bias;
        if (found)
            symbols[found - 1].size = address - symbols[found - 1].address;
        end = address + body.size;
        symbols[found++] = (struct sl_symbol){.address = address};
    }
    if (found)
        symbols[found - 1].size = end - symbols[found - 1].address;
    return found;
}

/* Sets the names of the symbols by the name section. Numbers of functions there count the imported functions, too, which come first and
 * have no symbols. */
static void read_names(const struct wasm *wasm, struct sl_symbol *symbols, size_t count)
{
    const struct wasm_section *section = find_custom(wasm, "name");
    struct sl_reader r = sl_reader(section ? section->contents : (struct sl_bytes){NULL, 0}, false);
    while (sl_reader_left(&r)) {
        uint8_t id = sl_read_u8(&r);
        struct sl_reader in = sl_reader(sl_read_bytes(&r, read_u32(&r)), false);
        if (r.failed || id != NAME_FUNCTIONS)
            continue;
        for (uint32_t left = read_u32(&in); left && sl_reader_left(&in); left--) {
            uint32_t index = read_u32(&in);
            struct sl_str name = read_name(&in);
            if (in.failed)
                break;
            if (index >= wasm->imported_functions && index - wasm->imported_functions < count)
                symbols[index - wasm->imported_functions].name = name;
        }
    }
}

/* Returns a symbol for each function body, in file order, with its name in the name section, if any. A body that extends beyond the section
 * ends the list. */
static enum sl_code wasm_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                 size_t *count, struct sl_error *error)
{
    const struct wasm *wasm = object->impl;
    const struct wasm_section *code = find_known(wasm, SECTION_CODE);
    struct sl_reader r = sl_reader(code ? code->contents : (struct sl_bytes){NULL, 0}, false);
    uint32_t bodies = code ? read_u32(&r) : 0;
    size_t capacity = bodies < sl_reader_left(&r) ? bodies : sl_reader_left(&r); /* a body has at least one byte */
    *symbols = SL_ARENA_ARRAY(arena, struct sl_symbol, capacity ? capacity : 1);
    if (!*symbols)
        return sl_budget_fail(object->budget, error);
    if (code)
        *count = read_bodies(object, code, *symbols, capacity);
    read_names(wasm, *symbols, *count);
    return SL_OK;
}

/* Makes addresses of a debug companion those of its program. Addresses are file offsets, and the code section may have different offsets
 * in the two files. The companion may have no code section (dwarf_bias 0): then it has no addresses of symbols to change. */
static void wasm_relate(struct sl_object *debug, const struct sl_object *program)
{
    struct wasm *wasm = debug->impl;
    uint64_t bias = program->info.dwarf_bias;
    if (!bias)
        return;
    /* added up, because after an earlier call dwarf_bias is that of another program */
    wasm->address_bias += debug->info.dwarf_bias ? bias - debug->info.dwarf_bias : 0;
    debug->info.dwarf_bias = bias;
    debug->info.image_size = program->info.image_size;
}

/* Gets the contents of section `index` for the hash of sl_object_make_id(); empty for custom sections, which tools may strip. False behind
 * the last one. */
static bool wasm_contents(const struct sl_object *object, size_t index, struct sl_bytes *part)
{
    const struct wasm *wasm = object->impl;
    if (index >= wasm->section_count)
        return false;
    *part = wasm->sections[index].id == SECTION_CUSTOM ? (struct sl_bytes){NULL, 0} : wasm->sections[index].contents;
    return true;
}

const struct object_format sl_object_wasm = {
    .open = wasm_open,
    .section = wasm_section,
    .section_info = wasm_section_info,
    .contents = wasm_contents,
    .relate = wasm_relate,
    .symbols = wasm_symbols,
};
