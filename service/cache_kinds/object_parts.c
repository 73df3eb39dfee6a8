/* Finds parts of objects that clients may request: sections, and source files, of which only the object's line tables know the paths. */
#include "cache_kinds/impl.h"

#include <stdio.h>

#include "dwarf/listing.h"
#include "function/path.h"
#include "object/stored.h"

/* ---- sections ---- */

/* Runs in a worker: finds a section as it is stored in the file, by its name (INPUT_NAME). */
static enum sl_code find_section(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    struct raw_section_result *found = result;
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE), name = converter_input_bytes(call, INPUT_NAME),
                    bytes;
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, file, converter_options(call), &object, error);
    if (code != SL_OK)
        return code;
    found->store = sl_object_raw_section(object, (struct sl_str){(const char *)name.data, name.size}, &bytes);
    if (found->store == SL_SECTION_STORED) {
        found->offset = (uint64_t)(bytes.data - file.data);
        found->size = bytes.size;
    }
    sl_object_close(object);
    return SL_OK;
}

static bool check_section(const void *result)
{
    const struct raw_section_result *found = result;
    return found->store == SL_SECTION_ABSENT || found->store == SL_SECTION_EMPTY || found->store == SL_SECTION_STORED;
}

const struct converter converter_raw_section = {"raw_section", sizeof(struct reader_limits),
                                                sizeof(struct raw_section_result), find_section, check_section};

/* Runs a converter that writes no file on the object; `name` is its INPUT_NAME, and `result` receives its result. */
static enum sl_code run_on_object(struct cache_item *object, const struct converter *converter, struct sl_str name,
                                  void *result, struct sl_error *error)
{
    struct reader_limits limits = current_reader_limits();
    struct conversion_description about = {.location = SL_STR("a cached debug file")}; /* for log messages */
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits), .out = -1};
    converter_add_item(&call, INPUT_FILE, object);
    converter_add_text(&call, INPUT_NAME, name);
    return conversion_run(&about, converter, &call, result, error);
}

enum sl_code object_raw_section(struct cache_item *object, struct sl_str name, enum sl_section_store *store,
                                struct sl_bytes *bytes, struct sl_error *error)
{
    struct raw_section_result found = {.store = SL_SECTION_ABSENT};
    enum sl_code code = run_on_object(object, &converter_raw_section, name, &found, error);
    bool inside = true;
    *store = found.store;
    /* a worker's numbers may be wrong */
    *bytes = sl_bytes_slice(object->mapping.bytes, found.offset, found.size, &inside);
    return code == SL_OK && !inside ? sl_fail(error, SL_INTERNAL, "the section found lies outside of the debug file")
                                    : code;
}

/* ---- source files ---- */

/* Longest path that is joined, in bytes; requests never have longer ones. The files of a hostile line table may share one long directory,
 * so joining is also charged to the work budget. */
enum { LONGEST_JOINED = 16 * 1024 };

struct path_search {
    struct sl_str wanted;
    struct sl_account account;
    struct sl_buf path;
    struct source_path_result *found;
};

/* Stores the path of the file in the result as the line table has it, without the compilation directory. An absolute or too long path is
 * not stored. */
static void keep_relative(struct path_search *p, const struct sl_file *file)
{
    sl_buf_clear(&p->path);
    sl_path_full(&p->path, SL_STR(""), file->directory, file->name);
    struct sl_str path = sl_buf_view(&p->path);
    if (!p->path.failed && path.size < sizeof p->found->relative && path.size && path.data[0] != '/')
        snprintf(p->found->relative, sizeof p->found->relative, SL_STR_FMT, SL_STR_ARG(path));
}

/* Tells whether this file of a line table is the one that is searched for, and if so records it in p->found. Compares the file name first,
 * as joining the whole path costs more. Also false when the work budget is used up (p->account.failed). */
static bool is_wanted_file(struct path_search *p, const struct sl_file *file)
{
    struct sl_str directory, name;
    size_t size = file->comp_dir.size + file->directory.size + file->name.size;
    sl_path_split(file->name, &directory, &name);
    if (!sl_str_ends(p->wanted, name) || size > LONGEST_JOINED || !sl_account_spend(&p->account, size + 1))
        return false; /* another name, longer than any wanted path, or over the budget */
    sl_buf_clear(&p->path);
    sl_path_full(&p->path, file->comp_dir, file->directory, file->name);
    if (p->path.failed || !sl_str_equal(sl_buf_view(&p->path), p->wanted))
        return false;
    p->found->named = true;
    keep_relative(p, file);
    return true;
}

/* Reads the files of one compilation unit after the other until one is the wanted file. Of a damaged unit, the files before the damage are
 * searched. */
static enum sl_code search_units(struct conversion *conversion, struct sl_dwarf_listing *listing, struct path_search *p,
                                 struct sl_error *error)
{
    for (size_t i = 0; i < sl_dwarf_listing_count(listing) && !p->found->named; i++) {
        struct sl_arena arena = {.budget = &conversion->budget};
        struct sl_dwarf_unit unit = {.file_count = 0};
        enum sl_code code = sl_dwarf_listing_read(listing, i, &arena, &unit, error);
        for (size_t f = 0; unit.files && f < unit.file_count && !p->found->named; f++)
            is_wanted_file(p, &unit.files[f]); /* if so, sets p->found->named, which ends the loops */
        sl_arena_free(&arena);
        if (code != SL_OK && code != SL_MALFORMED)
            return code;
    }
    return SL_OK;
}

/* Runs in a worker: finds the path (INPUT_NAME) among the source files that the object's DWARF names. If it is not there, `named` in the
 * result stays false. */
static enum sl_code find_source_path(struct conversion *conversion, const struct converter_call *call, void *result,
                                     struct sl_error *error)
{
    struct sl_bytes name = converter_input_bytes(call, INPUT_NAME);
    struct path_search p = {
        .wanted = {(const char *)name.data, name.size}, .account = {.budget = &conversion->budget}, .found = result};
    struct sl_object *object;
    enum sl_code code =
        conversion_open(conversion, converter_input_bytes(call, INPUT_FILE), converter_options(call), &object, error);
    if (code != SL_OK)
        return code;
    struct sl_dwarf_listing *listing = sl_dwarf_listing_new(object, NULL);
    if (listing) /* NULL: no .debug_info, or out of memory */
        code = search_units(conversion, listing, &p, error);
    if (code == SL_OK && !p.found->named && (p.account.failed || p.path.failed)) /* not every file was compared */
        code = sl_budget_fail(&conversion->budget, error);
    if (code == SL_OK && !p.found->named)
        code = sl_object_status(object, error); /* an exhausted budget does not mean that the path is unknown */
    sl_dwarf_listing_free(listing);
    sl_object_close(object);
    sl_buf_free(&p.path);
    return code;
}

static bool check_source_path(const void *result)
{
    const struct source_path_result *found = result;
    return converter_bool_is_valid(&found->named) && memchr(found->relative, '\0', sizeof found->relative);
}

const struct converter converter_source_path = {"source_path", sizeof(struct reader_limits),
                                                sizeof(struct source_path_result), find_source_path, check_source_path};

enum sl_code object_names_source(struct cache_item *object, struct sl_str path, struct sl_arena *arena, bool *named,
                                 struct sl_str *relative, struct sl_error *error)
{
    struct source_path_result found = {.named = false};
    enum sl_code code = run_on_object(object, &converter_source_path, path, &found, error);
    /* strnlen, as a worker that a hostile file has taken over may leave out the NUL */
    const char *copy = sl_arena_strndup(arena, found.relative, strnlen(found.relative, sizeof found.relative));
    *named = code == SL_OK && found.named;
    *relative = sl_str(copy ? copy : "");
    return copy ? code : sl_fail(error, SL_BUSY, "out of memory");
}
