/* Directory layouts: convert an object id and a file type to relative paths, and back.
 *
 * These functions build paths; the layout and the tables of file types and object types (names.c) tell which of them is used:
 *
 *     gdb         ab/cdef0123.debug                          a tree by build id
 *     lldb        0123/4567/89AB/CDEF/0123/456789ABCDEF      a tree by UUID
 *     pdb, pe     crash.pdb/<GUID><age>/crash.pdb            a symbol store
 *     breakpad    crash.pdb/<GUID><age>/crash.sym */
#include "origin/impl.h"

#include <stdarg.h>
#include <stdio.h>

/* Components of paths; data NULL = not available. */
struct layout_parts {
    struct sl_arena *arena;
    const struct object_id *id;
    struct sl_str code_file, debug_file; /* base names */
    struct sl_str code_id, mach_uuid;    /* lower case */
    bool dotnet;
    bool no_memory; /* a path or a part of one could not be allocated */
};

struct paths {
    struct sl_str *items;
    size_t count;
};

static struct sl_str text(struct layout_parts *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns formatted text in the arena; data NULL when out of memory. Nearly all of it fits the buffer on the stack, so it is formatted
 * once. */
static struct sl_str text(struct layout_parts *p, const char *format, ...)
{
    char likely[256], *out = NULL;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(likely, sizeof likely, format, args);
    if (size >= 0 && size < (int)sizeof likely)
        out = sl_arena_strndup(p->arena, likely, (size_t)size);
    else if (size >= 0 && (out = sl_arena_alloc(p->arena, (size_t)size + 1, 1)))
        vsnprintf(out, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    p->no_memory |= !out;
    return out ? (struct sl_str){out, (size_t)size} : (struct sl_str){NULL, 0};
}

/* Returns a copy in upper or lower case, ASCII only. */
static struct sl_str cased(struct layout_parts *p, struct sl_str s, bool upper)
{
    char *out = s.data ? sl_arena_strndup(p->arena, s.data, s.size) : NULL;
    p->no_memory |= s.data && !out;
    for (size_t i = 0; out && i < s.size; i++) {
        if (upper && out[i] >= 'a' && out[i] <= 'z')
            out[i] = (char)(out[i] - 32);
        else if (!upper && out[i] >= 'A' && out[i] <= 'Z')
            out[i] = (char)(out[i] + 32);
    }
    return out ? (struct sl_str){out, s.size} : (struct sl_str){NULL, 0};
}

/* Returns s[from, to); `to` may lie beyond the end. */
static struct sl_str layout_part(struct sl_str s, size_t from, size_t to)
{
    return (struct sl_str){s.data + from, (to < s.size ? to : s.size) - from};
}

/* Adds a path. Does nothing if it is missing (data NULL) or empty, or if there are LAYOUT_MAX_PATHS already. */
static void origin_layout_add(struct paths *paths, struct sl_str path)
{
    if (path.data && path.size && paths->count < LAYOUT_MAX_PATHS)
        paths->items[paths->count++] = path;
}

/* Returns the last component of a path, if it is valid as a path component: not "." or "..", shorter than 256 bytes, without control
 * characters. Else data NULL. */
static struct sl_str base_name(struct sl_str name)
{
    struct sl_str none = {NULL, 0};
    while (name.size && (name.data[name.size - 1] == '/' || name.data[name.size - 1] == '\\'))
        name.size--;
    size_t at = name.size;
    while (at && name.data[at - 1] != '/' && name.data[at - 1] != '\\')
        at--;
    struct sl_str base = {name.data + at, name.size - at};
    if (!base.size || base.size >= 256 || sl_str_equal(base, SL_STR(".")) || sl_str_equal(base, SL_STR("..")))
        return none;
    for (size_t i = 0; i < base.size; i++)
        if ((unsigned char)base.data[i] < 0x20 || base.data[i] == 0x7F)
            return none;
    return base;
}

/* ---- functions that build one path; data NULL if the id or name for it is missing ---- */

/* Returns the 32 hex digits of the debug id's UUID; data NULL if there is none. The formatted id ends with the age, here a 0, which
 * is cut off. */
static struct sl_str uuid_hex(struct layout_parts *p, bool upper)
{
    char out[SL_DEBUG_ID_TEXT];
    struct sl_debug_id id = p->id->debug_id;
    id.age = 0;
    if (!p->id->has_debug_id)
        return (struct sl_str){NULL, 0};
    sl_debug_id_format_breakpad(&id, out);
    struct sl_str hex = text(p, "%.*s", (int)strlen(out) - 1, out);
    return upper ? hex : cased(p, hex, false);
}

/* Returns the age of the debug id in hex. For .NET modules returns ffffffff, by which symbol stores name their portable PDBs, as these
 * have no age; with `real` returns the id's own age for them, too, as some layouts need it. */
static struct sl_str age_hex(struct layout_parts *p, bool upper, bool real)
{
    if (p->dotnet && !real)
        return upper ? SL_STR("FFFFFFFF") : SL_STR("ffffffff");
    return text(p, upper ? "%X" : "%x", p->id->debug_id.age);
}

/* Makes GDB's path by build id: ab/cdef0123<suffix>. */
static struct sl_str gdb(struct layout_parts *p, const char *suffix)
{
    struct sl_str c = p->code_id;
    if (c.size < 2)
        return (struct sl_str){NULL, 0};
    return text(p, "%.2s/" SL_STR_FMT "%s", c.data, SL_STR_ARG(layout_part(c, 2, c.size)), suffix);
}

/* Makes LLDB's path by UUID, in groups of four digits: 0123/4567/89AB/CDEF/0123/456789ABCDEF<suffix>. */
static struct sl_str lldb(struct layout_parts *p, const char *suffix)
{
    struct sl_str m = cased(p, p->mach_uuid, true);
    if (!m.data)
        return m;
    return text(p, "%.4s/%.4s/%.4s/%.4s/%.4s/%.12s%s", m.data, m.data + 4, m.data + 8, m.data + 12, m.data + 16,
                m.data + 20, suffix);
}

/* Makes `crash.pdb/<GUID><age>/crash.pdb`. SSQP (Simple Symbol Query Protocol) has names and GUIDs in lower case. */
static struct sl_str pdb(struct layout_parts *p, bool ssqp)
{
    struct sl_str name = ssqp ? cased(p, p->debug_file, false) : p->debug_file, id = uuid_hex(p, !ssqp);
    if (!name.data || !id.data)
        return (struct sl_str){NULL, 0};
    struct sl_str age = age_hex(p, ssqp, false);
    return text(p, SL_STR_FMT "/" SL_STR_FMT SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(name), SL_STR_ARG(id),
                SL_STR_ARG(age), SL_STR_ARG(name));
}

/* Makes `crash.exe/<timestamp><size>/crash.exe`; the code id is both in hex. Symbol stores write the timestamp, 8 digits, in
 * upper case; SSQP writes all in lower case. */
static struct sl_str pe(struct layout_parts *p, bool ssqp)
{
    struct sl_str name = ssqp ? cased(p, p->code_file, false) : p->code_file, c = p->code_id;
    if (!name.data || !c.size || (!ssqp && c.size < 8))
        return (struct sl_str){NULL, 0};
    size_t stamp = ssqp ? 0 : 8; /* digits to write in upper case */
    struct sl_str upper = cased(p, layout_part(c, 0, stamp), true);
    return text(p, SL_STR_FMT "/" SL_STR_FMT SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(name), SL_STR_ARG(upper),
                SL_STR_ARG(layout_part(c, stamp, c.size)), SL_STR_ARG(name));
}

/* Makes `crash.pdb/<GUID><age>/crash.sym`; other names keep their extension: `libc.so/<ID>/libc.so.sym`. */
static struct sl_str breakpad(struct layout_parts *p, const char *suffix)
{
    struct sl_str name = p->debug_file, id = uuid_hex(p, true), stem = name;
    if (!name.data || !id.data || p->id->type == OBJECT_WASM) /* Breakpad does not know WASM */
        return (struct sl_str){NULL, 0};
    if (sl_str_ends(stem, SL_STR(".pdb")))
        stem.size -= 4;
    return text(p, SL_STR_FMT "/" SL_STR_FMT SL_STR_FMT "/" SL_STR_FMT "%s", SL_STR_ARG(name), SL_STR_ARG(id),
                SL_STR_ARG(age_hex(p, false, true)), SL_STR_ARG(stem), suffix);
}

/* Returns the path of a source bundle: that of the PDB, with the extension of source bundles. */
static struct sl_str pdb_bundle(struct layout_parts *p, bool ssqp)
{
    struct sl_str path = pdb(p, ssqp);
    const char *dot = path.data ? memrchr(path.data, '.', path.size) : NULL;
    const char *slash = path.data ? memrchr(path.data, '/', path.size) : NULL;
    if (dot && dot > slash)
        path.size = (size_t)(dot - path.data);
    return path.data ? text(p, SL_STR_FMT ".src.zip", SL_STR_ARG(path)) : path;
}

/* ---- layouts ---- */

/* Adds the paths of a source bundle in the native layout: beside the debug file of this object type, and beside the Breakpad file unless
 * that is the same path. Adds none for object types whose source bundles the layout does not store. */
static void native_bundle(struct layout_parts *p, struct paths *out)
{
    switch (object_type_rows[p->id->type].bundle) {
    case BLOCK_PDB: origin_layout_add(out, pdb_bundle(p, false)); break;
    case BLOCK_LLDB: origin_layout_add(out, lldb(p, ".src.zip")); break;
    case BLOCK_GDB: origin_layout_add(out, gdb(p, ".src.zip")); break;
    default: return;
    }
    struct sl_str second = breakpad(p, ".src.zip");
    if (!out->count || !sl_str_equal(out->items[out->count - 1], second))
        origin_layout_add(out, second);
}

/* Adds the paths of the native layout: the one that debuggers of the file's platform use. */
static void native(struct layout_parts *p, const struct file_type_row *row, struct paths *out)
{
    switch (row->native) {
    case BLOCK_NONE: break;
    case BLOCK_PE: origin_layout_add(out, pe(p, false)); break;
    case BLOCK_PDB: origin_layout_add(out, pdb(p, false)); break;
    case BLOCK_GDB: origin_layout_add(out, gdb(p, row->native_suffix)); break;
    case BLOCK_LLDB: origin_layout_add(out, lldb(p, row->native_suffix)); break;
    case BLOCK_BREAKPAD: origin_layout_add(out, breakpad(p, row->native_suffix)); break;
    case BLOCK_BUNDLE: native_bundle(p, out); break;
    }
}

/* Adds the path `<name>/<kind><id>/<name>` of a symbol store, such as `_.debug/elf-buildid-sym-<id>/_.debug`. */
static void store_path(struct layout_parts *p, struct paths *out, struct sl_str name, const char *kind,
                       struct sl_str id)
{
    if (name.data && id.data && id.size)
        origin_layout_add(out, text(p, SL_STR_FMT "/%s" SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(name), kind,
                                    SL_STR_ARG(id), SL_STR_ARG(name)));
}

/* Adds the paths of a symbol store; `ssqp`: with names in lower case (Simple Symbol Query Protocol). ELF and Mach-O files are stored under
 * a key with a prefix, such as elf-buildid-<id>. */
static void symstore(struct layout_parts *p, const struct file_type_row *row, bool ssqp, struct paths *out)
{
    struct sl_str name = ssqp ? cased(p, p->code_file, false) : p->code_file;
    bool by_build_id = row->native == BLOCK_GDB; /* ELF; Mach-O files are stored by their UUID */
    if (row->native == BLOCK_PE)
        origin_layout_add(out, pe(p, ssqp));
    else if (row->native == BLOCK_PDB)
        origin_layout_add(out, pdb(p, ssqp));
    else if (row->native == BLOCK_BUNDLE && p->id->type == OBJECT_PE)
        origin_layout_add(out, pdb_bundle(p, ssqp));
    if (!row->store_key)
        return;
    if (row->store_name)
        name = sl_str(row->store_name);
    store_path(p, out, name, row->store_key, by_build_id ? p->code_id : p->mach_uuid);
    if (by_build_id && p->code_id.size &&
        p->code_id.size < 40) /* some stores pad short build ids with zeros to 40 digits: SymStore's key conventions */
        store_path(p, out, name, row->store_key,
                   text(p, SL_STR_FMT "%0*d", SL_STR_ARG(p->code_id), 40 - (int)p->code_id.size, 0));
}

/* Adds the paths of a symbol store with two levels of directories: the first is named by the first two bytes of the file's name, or by one
 * if the second is a dot or separator, as in `cr/crash.pdb/<id>/crash.pdb`. */
static void index2(struct layout_parts *p, const struct file_type_row *row, struct paths *out)
{
    symstore(p, row, false, out);
    for (size_t i = 0; i < out->count; i++) {
        struct sl_str path = out->items[i];
        bool one = path.size > 1 && (path.data[1] == '/' || path.data[1] == '.');
        /* a path whose second byte is in the middle of a UTF-8 character stays as it is */
        bool cuts = path.size > 2 && !one && ((unsigned char)path.data[2] & 0xC0) == 0x80;
        if (!cuts)
            out->items[i] = text(p, "%.*s/" SL_STR_FMT, one ? 1 : 2, path.data, SL_STR_ARG(path));
    }
}

/* Adds `<build id>/executable` or `<build id>/debuginfo`; debuginfod serves ELF files only. */
static void debuginfod(struct layout_parts *p, const struct file_type_row *row, struct paths *out)
{
    if (p->code_id.size && row->format == SL_FORMAT_ELF)
        origin_layout_add(out, text(p, SL_STR_FMT "/%s", SL_STR_ARG(p->code_id), row->suffix));
}

/* True if the module has a debug id and nothing else, as JVM code with a ProGuard mapping has. */
static bool is_jvm(const struct layout_parts *p)
{
    return p->id->type == OBJECT_UNKNOWN && p->id->has_debug_id && !p->code_id.size && !p->debug_file.data &&
           !p->code_file.data;
}

/* Adds `ab/cdef.../<suffix>` of the unified layout, where `abcdef...` is the code id or the debug id: the file type tells which or, for
 * types that many formats share, the object type. Debug ids of ProGuard mappings and of source bundles of JVM code are written without age.
 * Without such an id nothing is added. */
static void unified(struct layout_parts *p, enum file_type type, struct paths *out)
{
    enum unified_id how = file_type_rows[type].unified;
    struct sl_str id = {NULL, 0};
    if (how == UNIFIED_BY_TYPE)
        how = object_type_rows[p->id->type].unified;
    if (how == UNIFIED_CODE_ID || (how == UNIFIED_CODE_ID_OR_UUID && p->code_id.size))
        id = p->code_id;
    else if (how == UNIFIED_CODE_ID_OR_UUID)
        id = uuid_hex(p, false);
    else if ((how == UNIFIED_DEBUG_ID && p->id->has_debug_id && type == FILE_PROGUARD) ||
             (type == FILE_SOURCEBUNDLE && is_jvm(p)))
        id = uuid_hex(p, false);
    else if (how == UNIFIED_DEBUG_ID && p->id->has_debug_id)
        id = text(p, SL_STR_FMT "%x", SL_STR_ARG(uuid_hex(p, false)), p->id->debug_id.age);
    if (id.size >= 2)
        origin_layout_add(out, text(p, "%.2s/" SL_STR_FMT "/%s", id.data, SL_STR_ARG(layout_part(id, 2, id.size)),
                                    file_type_rows[type].suffix));
}

/* Adds the path `ab/cdef.../<suffix>` by the debug id, unless unified() has added it, as it does for some types. Age 0 is written, so that
 * the path differs from one by the UUID alone. */
static void by_debug_id(struct layout_parts *p, enum file_type type, struct paths *out)
{
    if (!p->id->has_debug_id)
        return;
    struct sl_str id = text(p, SL_STR_FMT "%x", SL_STR_ARG(uuid_hex(p, false)), p->id->debug_id.age);
    if (id.size < 2)
        return;
    struct sl_str path = text(p, "%.2s/" SL_STR_FMT "/%s", id.data, SL_STR_ARG(layout_part(id, 2, id.size)),
                              file_type_rows[type].suffix);
    for (size_t i = 0; i < out->count; i++)
        if (sl_str_equal(out->items[i], path))
            return;
    origin_layout_add(out, path);
}

/* Adds `<code file>/<CODE ID>/symbols`, with the code id in upper case and, if that differs, as it is. */
static void slashsymbols(struct layout_parts *p, struct paths *out)
{
    if (!p->code_file.data || !p->code_id.size)
        return;
    struct sl_str upper = cased(p, p->code_id, true);
    origin_layout_add(out, text(p, SL_STR_FMT "/" SL_STR_FMT "/symbols", SL_STR_ARG(p->code_file), SL_STR_ARG(upper)));
    if (!sl_str_equal(upper, p->code_id))
        origin_layout_add(
            out, text(p, SL_STR_FMT "/" SL_STR_FMT "/symbols", SL_STR_ARG(p->code_file), SL_STR_ARG(p->code_id)));
}

/* Adds `<debug file>/<DEBUG ID>/<file>` or, for programs, `<code file>/<CODE ID>/<code file>`. Ids are in upper case. */
static void mozilla(struct layout_parts *p, enum file_type type, struct paths *out)
{
    struct sl_str name = p->debug_file, id = uuid_hex(p, true), stem = name;
    const char *suffix = file_type_rows[type].mozilla;
    bool is_code = type == FILE_PE;
    if (is_code) {
        name = stem = p->code_file;
        id = cased(p, p->code_id, true);
    }
    if (!name.data || !id.size || !suffix)
        return;
    if (type == FILE_BREAKPAD && sl_str_ends(stem, SL_STR(".pdb")))
        stem.size -= 4;
    origin_layout_add(out, text(p, SL_STR_FMT "/" SL_STR_FMT SL_STR_FMT "/" SL_STR_FMT "%s", SL_STR_ARG(name),
                                SL_STR_ARG(id), SL_STR_ARG(is_code ? SL_STR("") : age_hex(p, true, true)),
                                SL_STR_ARG(stem), suffix));
}

/* Adds the paths of a file type in a layout. */
static void layout_add(struct layout_parts *p, enum layout_type layout, enum file_type type, struct paths *out)
{
    const struct file_type_row *row = &file_type_rows[type];
    switch (layout) {
    case LAYOUT_NATIVE: native(p, row, out); break;
    case LAYOUT_SYMSTORE: symstore(p, row, false, out); break;
    case LAYOUT_SSQP: symstore(p, row, true, out); break;
    case LAYOUT_SYMSTORE_INDEX2: index2(p, row, out); break;
    case LAYOUT_DEBUGINFOD: debuginfod(p, row, out); break;
    case LAYOUT_UNIFIED: unified(p, type, out); break;
    case LAYOUT_SLASHSYMBOLS: slashsymbols(p, out); break;
    case LAYOUT_MOZILLA: mozilla(p, type, out); break;
    case LAYOUT_UPLOADS:
        unified(p, type, out);
        by_debug_id(p, type, out);
        break;
    }
}

/* Returns the code id without a length prefix: WASM build ids may be stored raw, with the number of bytes that follow as first byte. Data
 * NULL if there is no prefix. */
static struct sl_str without_length_prefix(struct sl_str code_id)
{
    uint8_t length;
    bool prefixed = code_id.size >= 4 && sl_hex_decode(layout_part(code_id, 0, 2), &length, 1, NULL) &&
                    code_id.size == 2u + 2u * length;
    return prefixed ? layout_part(code_id, 2, code_id.size) : (struct sl_str){NULL, 0};
}

/* Returns the UUID of a Mach-O file: the code id or, without one, the UUID of the debug id. Data NULL if the code id is no UUID. */
static struct sl_str mach_uuid(struct layout_parts *p)
{
    if (p->code_id.size)
        return p->code_id.size == 32 ? p->code_id : (struct sl_str){NULL, 0};
    return uuid_hex(p, false);
}

/* Makes the paths, also by a WASM code id without its length prefix, then applies the casing of the source. PDB and PE files may be stored
 * compressed, under a name whose last character is "_". */
size_t layout_paths(struct sl_arena *arena, enum layout_type layout, enum layout_casing casing,
                    const struct object_id *id, enum file_type type, struct sl_str out[LAYOUT_MAX_PATHS])
{
    struct sl_str base[LAYOUT_MAX_PATHS];
    struct paths paths = {base, 0}, result = {out, 0};
    struct object_id known = *id;
    known.has_debug_id = id->has_debug_id && sl_debug_id_has_uuid(&id->debug_id); /* zeros are no id */
    struct layout_parts p = {
        .arena = arena,
        .id = &known,
        .code_file = base_name(id->code_file),
        .debug_file = base_name(id->debug_file),
        .code_id = id->code_id,
        .dotnet = id->type == OBJECT_PE_DOTNET,
    };
    p.mach_uuid = mach_uuid(&p);
    layout_add(&p, layout, type, &paths);
    struct sl_str stripped = id->type == OBJECT_WASM ? without_length_prefix(id->code_id) : (struct sl_str){NULL, 0};
    if (stripped.data) {
        p.code_id = stripped;
        p.mach_uuid = mach_uuid(&p);
        layout_add(&p, layout, type, &paths);
    }
    for (size_t i = 0; i < paths.count; i++) {
        bool as_it_is = casing == CASING_DEFAULT || casing == CASING_INSENSITIVE;
        struct sl_str path = as_it_is ? base[i] : cased(&p, base[i], casing == CASING_UPPERCASE);
        origin_layout_add(&result, path);
        if (type == FILE_PDB || type == FILE_PE) /* symbol stores name compressed files `crash.pd_` */
            origin_layout_add(&result, text(&p, SL_STR_FMT "_", SL_STR_ARG(layout_part(path, 0, path.size - 1))));
    }
    return p.no_memory ? SIZE_MAX : result.count;
}

/* ---- from path to id ---- */

static bool starts_nocase(struct sl_str s, const char *prefix)
{
    size_t size = strlen(prefix);
    return s.size >= size && sl_str_equal_nocase(layout_part(s, 0, size), sl_str(prefix));
}

static bool ends_nocase(struct sl_str s, const char *suffix)
{
    size_t size = strlen(suffix);
    return s.size >= size && sl_str_equal_nocase(layout_part(s, s.size - size, s.size), sl_str(suffix));
}

/* True if a file is named as a module's Breakpad file: `crash.sym` or `crash.pdb.sym` for crash.pdb, `libc.so.6.sym` for libc.so.6. */
static bool is_breakpad_name(struct sl_str module, struct sl_str name)
{
    if (!ends_nocase(name, ".sym"))
        return false;
    name.size -= 4;
    struct sl_str stem = {module.data, module.size - (ends_nocase(module, ".pdb") ? 4 : 0)};
    return sl_str_equal_nocase(name, module) || sl_str_equal_nocase(name, stem);
}

/* Parses a path of a symbol store, `<name>/<signature>/<file>`, to the id and the type of the file. False if it has another
 * form. */
bool layout_reverse(struct sl_arena *arena, struct sl_str path, struct object_id *id, enum file_type *type)
{
    static const struct {
        const char *suffix, *prefix;
        enum file_type type;
        enum object_type object;
    } rows[] = {
        /* suffix of <name> and prefix of <signature>, as in _.debug/elf-buildid-sym-<id>/_.debug */
        {".debug", "elf-buildid-sym-", FILE_ELF_DEBUG, OBJECT_ELF},
        {"", "elf-buildid-", FILE_ELF_CODE, OBJECT_ELF},
        {".dwarf", "mach-uuid-sym-", FILE_MACH_DEBUG, OBJECT_MACHO},
        {"", "mach-uuid-", FILE_MACH_CODE, OBJECT_MACHO},
    };
    const char *one = memchr(path.data ? path.data : "", '/', path.size);
    if (!one)
        return false;
    size_t first_size = (size_t)(one - path.data);
    struct sl_str first = layout_part(path, 0, first_size), rest = layout_part(path, first_size + 1, path.size);
    const char *two = memchr(rest.data, '/', rest.size);
    if (!two)
        return false;
    struct sl_str signature = layout_part(rest, 0, (size_t)(two - rest.data));
    struct sl_str third = layout_part(rest, signature.size + 1, rest.size);
    if (is_breakpad_name(first, third)) {
        *type = FILE_BREAKPAD;
        *id = (struct object_id){.debug_file = first};
        id->has_debug_id = sl_debug_id_parse_breakpad(signature, &id->debug_id);
        return id->has_debug_id;
    }
    if (!sl_str_equal_nocase(first, third)) /* files other than Breakpad's have the name of the directory */
        return false;
    *id = (struct object_id){.type = OBJECT_PE, .code_file = first};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ends_nocase(first, rows[i].suffix) && starts_nocase(signature, rows[i].prefix)) {
            *type = rows[i].type;
            id->type = rows[i].object;
            id->code_id = sl_code_id_normalise(arena, layout_part(signature, strlen(rows[i].prefix), signature.size));
            return true;
        }
    if (ends_nocase(first, ".pdb")) {
        *type = FILE_PDB;
        id->debug_file = first;
        id->code_file = (struct sl_str){NULL, 0};
        id->has_debug_id = sl_debug_id_parse_breakpad(signature, &id->debug_id);
        return id->has_debug_id;
    }
    *type = FILE_PE;
    id->code_id = sl_code_id_normalise(arena, signature);
    return true;
}
