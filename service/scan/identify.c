/* Makes the record of a scanned file: an index of the debug files and source texts that are in it (converter_scan_file). */
#include "config/config.h"
#include "function/path.h"
#include "object/archive.h"
#include "package/index.h"
#include "scan/impl.h"
#include "symbfile/fileid.h"

#include <stdlib.h>

#include "base/spill.h"

enum {
    DETECT_BYTES = 64, /* enough to recognise a debug file */
    MAX_OBJECTS = 100000,
    MAX_SOURCES = 500000,
};

struct identifying {
    struct conversion *conversion;
    const struct scan_file_options *options;
    struct sl_index_builder builder;
    struct scan_file_result *result;
    uint32_t file;
    struct sl_str name; /* path of the scanned file */
    /* the member of a package that is being read; empty path: the scanned file itself is examined */
    struct member_place {
        char path[SL_PACKAGE_MAX_PATH + 2];
        size_t path_size;
        uint64_t size, offset;
    } member;
    struct sl_spill contents;
    size_t held;       /* bytes of the member in `contents` so far */
    enum sl_code code; /* the error by which a callback ended the reading of the package; SL_OK = none */
    struct sl_error *error;
};

/* ---- objects ---- */

/* False for files that no search asks for: core dumps, COFF files, object files without an id of their own, and files
 * without any id. */
static bool is_wanted(const struct sl_object_info *info)
{
    return info->kind != SL_KIND_DUMP && (info->kind != SL_KIND_REL || info->code_id.size) &&
           info->format != SL_FORMAT_COFF && (info->code_id.size || sl_debug_id_has_uuid(&info->debug_id));
}

/* Returns what the file contains, as bits of enum sl_index_content. Breakpad files describe a program but have no code. */
static uint8_t index_content_bits(const struct sl_object_info *info)
{
    const struct sl_features *f = &info->features;
    bool is_program = info->kind == SL_KIND_EXE || info->kind == SL_KIND_LIB || info->kind == SL_KIND_REL;
    return (uint8_t)((f->has_debug_info ? SL_INDEX_DEBUG : 0) | (f->has_symbols ? SL_INDEX_SYMBOLS : 0) |
                     (f->has_unwind_info ? SL_INDEX_UNWIND : 0) | (f->has_sources ? SL_INDEX_SOURCES : 0) |
                     (is_program && info->format != SL_FORMAT_BREAKPAD ? SL_INDEX_CODE : 0));
}

/* True if the debug id is made from the code id (build id): then a search by debug id finds the object under its code id, and needs no
 * entry for the debug id. In other formats the two ids are independent. */
static bool debug_id_follows(const struct sl_object_info *info)
{
    return info->code_id.size &&
           (info->format == SL_FORMAT_ELF || info->format == SL_FORMAT_MACHO || info->format == SL_FORMAT_WASM);
}

/* Adds the object to the record under one id. */
static void add_id(struct identifying *s, struct sl_index_object *object, struct sl_index_id id)
{
    object->id = id;
    sl_index_add_object(&s->builder, object);
    s->result->objects++;
}

/* True for DWARF packages (DWARF 5, 7.3.5: split units of a program), which have no id of their own. A search looks for them by name,
 * "<name of the program>.dwp". */
static bool is_dwarf_package(const struct identifying *s, const struct sl_object_info *info)
{
    struct sl_str path = s->member.path_size ? (struct sl_str){s->member.path, s->member.path_size} : s->name;
    return info->format == SL_FORMAT_ELF && sl_str_ends(path, SL_STR(".dwp"));
}

/* Adds a DWARF package (app.dwp) under its file name, as it has no id: it is searched as the file beside the program. */
static void add_dwarf_package(struct identifying *s, uint64_t size)
{
    struct sl_str member = {s->member.path, s->member.path_size}, directory, name;
    struct sl_index_object object = {
        .format = SL_FORMAT_ELF, .file = s->file, .member = member, .size = size, .offset = s->member.offset};
    sl_path_split(member.size ? member : s->name, &directory, &name);
    add_id(s, &object, sl_index_name(name));
}

/* Adds an object under each of its ids: code id, debug id unless it is made from the code id, and for programs the file id, a hash of the
 * file (symbfile/fileid.h). */
static void add_object(struct identifying *s, struct sl_bytes bytes, const struct sl_object_info *info)
{
    struct sl_index_object object = {.content = index_content_bits(info),
                                     .format = (uint8_t)info->format,
                                     .file = s->file,
                                     .member = {s->member.path, s->member.path_size},
                                     .size = bytes.size,
                                     .offset = s->member.offset};
    if (info->code_id.size)
        add_id(s, &object, sl_index_code_id(info->code_id));
    if (sl_debug_id_has_uuid(&info->debug_id) && !debug_id_follows(info))
        add_id(s, &object, sl_index_debug_id(&info->debug_id));
    if (object.content & SL_INDEX_CODE) {
        struct sl_file_id id = sl_file_id_compute(bytes);
        add_id(s, &object, sl_index_id(SL_INDEX_FILE_ID, (struct sl_bytes){id.bytes, sizeof id.bytes}));
    }
}

/* Adds the objects in `bytes`, the contents of a debug file; a universal Mach-O file has several objects. Damaged objects are skipped,
 * which is no error. Fails when the budget of work is used up, or when out of memory. */
static enum sl_code add_objects(struct identifying *s, struct sl_bytes bytes)
{
    struct sl_archive archive;
    struct sl_object *object;
    struct sl_object_limits limits = make_object_limits(&s->options->limits, &s->conversion->budget);
    limits.identity = true; /* only what sl_object_info returns is needed */
    enum sl_code code = sl_archive_open(bytes, &archive, s->error);
    for (size_t i = 0, count = code == SL_OK ? archive.count : 0;
         code != SL_BUSY && i < count && s->result->objects < MAX_OBJECTS; i++) {
        code = sl_archive_object(&archive, i, &limits, &object, s->error);
        if (code != SL_OK)
            continue;
        if (is_dwarf_package(s, sl_object_info(object)))
            add_dwarf_package(s, bytes.size);
        else if (is_wanted(sl_object_info(object)))
            add_object(s, bytes, sl_object_info(object));
        sl_object_close(object);
    }
    if (sl_budget_exhausted(&s->conversion->budget))
        return sl_budget_fail(&s->conversion->budget, s->error);
    return code == SL_BUSY ? code : SL_OK;
}

/* ---- members ---- */

/* Called at each member of a package. A source text is added to the record by its path, and its contents are skipped. Members that are
 * too small or too large for a debug file are skipped, too. All others are read. */
static enum sl_package_choice begin_member(void *arg, const struct sl_package_member *member)
{
    struct identifying *s = arg;
    if (sl_package_is_source_path(member->path)) {
        struct sl_index_source source = {member->path, member->size, member->offset};
        if (s->result->sources < MAX_SOURCES && member->size) {
            sl_index_add_source(&s->builder, s->file, &source);
            s->result->sources++;
        }
        return SL_PACKAGE_SKIP;
    }
    if (member->size < DETECT_BYTES || member->size > s->options->max_member || s->result->objects >= MAX_OBJECTS)
        return SL_PACKAGE_SKIP;
    memcpy(s->member.path, member->path.data, member->path.size);
    s->member.path_size = member->path.size;
    s->member.size = member->size;
    s->member.offset = member->offset;
    s->held = 0;
    return SL_PACKAGE_READ;
}

/* Called with each piece of a member: collects it in `contents`. As soon as there are DETECT_BYTES bytes, skips the rest of a member whose
 * format is unknown. */
static enum sl_package_choice add_piece(void *arg, struct sl_bytes piece)
{
    struct identifying *s = arg;
    bool was_known = s->held >= DETECT_BYTES;
    if (!sl_spill_reserve(&s->contents, s->held + piece.size)) {
        s->code = sl_fail(s->error, SL_BUSY, "not enough temporary disk space or memory for a file of the package");
        return SL_PACKAGE_STOP;
    }
    memcpy((uint8_t *)s->contents.data + s->held, piece.data, piece.size);
    s->held += piece.size;
    struct sl_bytes begin = {s->contents.data, s->held};
    bool unknown = !was_known && s->held >= DETECT_BYTES && sl_format_detect(begin) == SL_FORMAT_UNKNOWN;
    return unknown ? SL_PACKAGE_SKIP : SL_PACKAGE_READ;
}

/* Called at the end of a member that was read: adds the objects in it. */
static enum sl_package_choice end_member(void *arg)
{
    struct identifying *s = arg;
    struct sl_bytes bytes = {s->contents.data, s->held};
    s->code = add_objects(s, bytes);
    return s->code == SL_OK ? SL_PACKAGE_READ : SL_PACKAGE_STOP;
}

/* ---- the file ---- */

/* True if the scan is configured to look into packages of this kind (`kinds`: bits SCAN_*). */
static bool is_kind_wanted(enum sl_package_kind kind, unsigned kinds)
{
    static const unsigned bits[SL_PACKAGE_KINDS] = {[SL_PACKAGE_DEB] = SCAN_DEB,
                                                    [SL_PACKAGE_RPM] = SCAN_RPM,
                                                    [SL_PACKAGE_TAR] = SCAN_TAR,
                                                    [SL_PACKAGE_CPIO] = SCAN_TAR, /* has no kind of its own */
                                                    [SL_PACKAGE_ZIP] = SCAN_ZIP};
    return kinds & bits[kind];
}

/* Adds the scanned file to the record; the objects that follow refer to it by its number, s->file. `name` is its path. */
static void begin_file(struct identifying *s, struct sl_bytes bytes, struct sl_str name, enum sl_package_kind kind)
{
    struct sl_package_source source = {""};
    s->name = name;
    if (kind != SL_PACKAGE_NONE)
        sl_package_source(bytes, name, &source);
    struct sl_index_file file = {.path = name.size ? name : SL_STR("?"), /* sl_index_file refuses an empty path */
                                 .source = sl_str(source.text),
                                 .size = bytes.size,
                                 .kind = kind};
    s->file = sl_index_add_file(&s->builder, &file);
}

/* Reads all members of a package. If it is damaged after objects or sources were found, the record keeps them and the result states the
 * damage. */
static enum sl_code read_package(struct identifying *s, struct sl_bytes bytes)
{
    const struct sl_package_visitor visitor = {s, begin_member, add_piece, end_member};
    const struct sl_package_limits limits = {&s->conversion->budget, s->options->max_ratio};
    enum sl_code code = sl_package_walk(bytes, 0, &visitor, &limits, s->error);
    s->result->is_package = true;
    if (code == SL_OK)
        code = s->code;
    if ((code == SL_MALFORMED || code == SL_UNSUPPORTED) && s->result->objects + s->result->sources > 0) {
        s->result->is_damaged = true;
        memcpy(s->result->damage, s->error->message, sizeof s->result->damage - 1);
        return SL_OK;
    }
    return code;
}

/* Adds what is in the scanned file: as a debug file if it is one, else as a package. A ZIP file can be both: a source bundle is a debug
 * file; if that adds no object, the file is read as a package. */
static enum sl_code read_file(struct identifying *s, struct sl_bytes bytes, struct sl_str name)
{
    enum sl_package_kind kind = sl_package_detect(bytes);
    bool is_object = sl_format_detect(bytes) != SL_FORMAT_UNKNOWN, is_zip = kind == SL_PACKAGE_ZIP;
    begin_file(s, bytes, name, is_object && !is_zip ? SL_PACKAGE_NONE : kind);
    if (is_object && s->options->kinds & SCAN_FILES) {
        enum sl_code code = add_objects(s, bytes);
        if (code != SL_OK || !is_zip || s->result->objects)
            return code;
    }
    if (kind != SL_PACKAGE_NONE && is_kind_wanted(kind, s->options->kinds))
        return read_package(s, bytes);
    return sl_fail(s->error, SL_MALFORMED, "neither a debug file nor a package of a kind that is scanned");
}

/* Finds the debug files in a file or package and writes a record of them: an index (package/index.h) of this file alone. Large members of
 * a package are collected in INPUT_SCRATCH instead of memory. */
static enum sl_code make_record(struct conversion *conversion, const struct converter_call *call, void *result,
                                struct sl_error *error)
{
    struct identifying *s = calloc(1, sizeof *s);
    const struct converter_input *scratch = converter_input(call, INPUT_SCRATCH);
    struct sl_bytes name = converter_input_bytes(call, INPUT_NAME);
    struct sl_buf record = {.budget = &conversion->budget};
    if (!s)
        return sl_fail(error, SL_BUSY, "out of memory");
    s->conversion = conversion;
    s->options = converter_options(call);
    s->result = result;
    s->error = error;
    if (scratch)
        sl_spill_into(&s->contents, scratch->fd, 0);
    enum sl_code code =
        read_file(s, converter_input_bytes(call, INPUT_FILE), (struct sl_str){(const char *)name.data, name.size});
    if (code == SL_OK) /* 0: the index of a single file needs no key */
        code = sl_index_finish(&s->builder, 0, &record) ? conversion_write(conversion, call, &record, error)
                                                        : sl_budget_fail(&conversion->budget, error);
    sl_buf_free(&record);
    sl_index_builder_free(&s->builder);
    sl_spill_free(&s->contents);
    free(s);
    return code;
}

static bool check_result(const void *result)
{
    const struct scan_file_result *found = result;
    return converter_bool_is_valid(&found->is_package) && converter_bool_is_valid(&found->is_damaged) &&
           memchr(found->damage, '\0', sizeof found->damage);
}

const struct converter converter_scan_file = {"scan_file", sizeof(struct scan_file_options),
                                              sizeof(struct scan_file_result), make_record, check_result};
