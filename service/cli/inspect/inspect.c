/* `symloom inspect`: shows what a debug file is, whether it is usable, and what it contains. */
#include "cli/inspect/inspect.h"
#include "cli/progress.h"

#include "object/ar.h"
#include "object/embedded.h"

#include "cli/file_walk.h"
#include <stdio.h>
#include <stdlib.h>

static const struct option_spec specs[] = {
    {"check", 0, OPTION_FLAG, false, NULL, "Only check whether files are usable (status 1: one is not)"},
    {"type", 't', OPTION_VALUE, false, "TYPE",
     "Fail unless the file is a dsym, elf, pe, pdb, portablepdb, breakpad, wasm, minidump, "
     "proguard or sourcemap"},
    {"arch", 0, OPTION_VALUE, false, "ARCH", "Show only objects of this architecture"},
    {"id", 0, OPTION_VALUE, false, "ID", "Show only objects with this debug id or code id"},
    {"verify", 0, OPTION_FLAG, false, NULL, "Read everything; report counts and damage"},
    {"statistics", 0, OPTION_FLAG, false, NULL, "Same as --verify"},
    {"sections", 0, OPTION_FLAG, false, NULL, "List sections"},
    {"symbols", 0, OPTION_FLAG, false, NULL, "List function symbols"},
    {"functions", 0, OPTION_FLAG, false, NULL, "List functions and inlined calls"},
    {"files", 0, OPTION_FLAG, false, NULL, "List source files"},
    {"sources", 0, OPTION_FLAG, false, NULL, "List source files and whether they exist on this machine"},
    {"cfi", 0, OPTION_FLAG, false, NULL, "List unwind information as STACK records"},
    {"raw", 0, OPTION_FLAG, false, NULL, "List the streams of a minidump"},
    {"recursive", 'r', OPTION_FLAG, true, NULL, "Search directories for debug files"},
    {"demangle", 'C', OPTION_FLAG, true, NULL, "Demangle names"},
    {"json", 0, OPTION_FLAG, true, NULL, "Print one JSON array of objects"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Show more ids"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct inspection {
    const struct options *o;
    struct sl_buf out;
    struct sl_json_writer w;
    bool json;
    bool walking; /* in a directory: skip files of unknown kinds */
    enum sl_arch arch;
    struct sl_debug_id id;
    bool has_id;
    size_t shown, unusable;
    int status;
    struct progress progress;
};

/* Prints and empties the output buffer, after each object, so that the output of large directories appears early. */
static void inspect_flush(struct inspection *in)
{
    output_write(sl_buf_view(&in->out));
    sl_buf_clear(&in->out);
}

/* Reports a failure; the exit status of the command is that of the first one. Does nothing for a file found in a directory (`walking`):
 * most files there are no debug files. */
static void inspect_fail(struct inspection *in, const char *path, int status, const char *cause)
{
    char text[4200];
    if (in->walking)
        return;
    snprintf(text, sizeof text, "cannot inspect %s", path);
    report_error(status, text, cause);
    in->status = in->status ? in->status : status;
}

/* ---- which objects ---- */

/* True if the text is the object's code id, written in capital or small letters, with or without dashes. */
static bool has_code_id(const struct sl_object_info *info, const char *text)
{
    struct sl_arena arena = {0};
    struct sl_str id = sl_code_id_normalise(&arena, sl_str(text));
    bool same = id.size && (sl_str_equal(id, info->code_id) || sl_str_equal(id, info->raw_code_id));
    sl_arena_free(&arena);
    return same;
}

/* True if the object matches --arch and --id. */
static bool is_wanted(const struct inspection *in, const struct sl_object_info *info)
{
    const char *id = option_value(in->o, "id", NULL);
    if (in->arch != SL_ARCH_UNKNOWN && info->arch != in->arch)
        return false;
    return !id || (in->has_id && sl_debug_id_equal(&in->id, &info->debug_id)) || has_code_id(info, id);
}

static bool is_type(const struct inspection *in, const char *type)
{
    const char *wanted = option_value(in->o, "type", NULL);
    return !wanted || strcmp(wanted, type) == 0;
}

/* ---- showing ---- */

/* Shows one object, number `index` of `count` in its file, as JSON, text or, with --check, one line. `variants`: JSON text about all
 * objects of the file, which becomes the member `variants`. */
static void inspect_show(struct inspection *in, const char *path, struct input *input, size_t index, size_t count,
                         struct sl_buf *variants)
{
    struct inspect_results f = {
        .options = in->o,
        .path = path,
        .input = input,
        .index = index,
        .count = count,
        .json_variants = variants,
        .json = in->json,
        .lists = {option_given(in->o, "sections"), option_given(in->o, "symbols"), option_given(in->o, "functions"),
                  option_given(in->o, "files"), option_given(in->o, "sources"), option_given(in->o, "cfi")},
    };
    findings_make(&f);
    if (in->json)
        findings_json(&f, &in->w);
    else if (!option_given(in->o, "check"))
        findings_print(&f, &in->out);
    else
        inspect_put_usable(&in->out, path, f.problem);
    in->shown++;
    in->unusable += f.problem != NULL;
    findings_free(&f);
    inspect_flush(in);
}

/* The objects of a file. A Portable PDB embedded in a PE file counts as second object of that file. */
struct inspected_objects {
    struct sl_object **items;
    size_t count;
    struct sl_arena arena;
};

/* If the file's only object is a PE file with an embedded Portable PDB, opens that as the second object. False if there is none. */
static bool open_embedded(struct inspected_objects *all)
{
    struct sl_bytes bytes;
    return all->count == 1 && sl_object_embedded_ppdb(all->items[0], &all->arena, &bytes, NULL) == SL_OK &&
           sl_object_open(bytes, NULL, &all->items[1], NULL) == SL_OK;
}

/* Opens the objects of a file as all->items. Reports those that cannot be opened, and leaves them out. */
static void open_objects(struct inspection *in, const char *path, const struct sl_archive *archive,
                         struct inspected_objects *all)
{
    struct sl_error error = {0};
    /* + 1: an embedded PDB */
    *all = (struct inspected_objects){.items = calloc(archive->count + 1, sizeof *all->items)};
    for (size_t i = 0; all->items && i < archive->count; i++) {
        enum sl_code code = sl_archive_object(archive, i, NULL, &all->items[all->count], &error);
        if (code == SL_OK)
            all->count++;
        else
            inspect_fail(in, path, status_of_code(code), error.message);
    }
    if (all->items)
        all->count += open_embedded(all);
    else
        inspect_fail(in, path, 1, "out of memory");
}

/* Shows the objects of a file that --arch and --id select. With JSON, the text about all objects of the file is made first, since each
 * selected object lists them as its `variants`. An object that --type excludes is reported as a failure. */
static void inspect_objects(struct inspection *in, const char *path, struct input *input)
{
    struct sl_buf variants = {0};
    struct sl_json_writer w = sl_json_writer(&variants);
    struct inspected_objects all;
    open_objects(in, path, &input->archive, &all);
    for (size_t i = 0; i < all.count && in->json; i++)
        findings_variant(&w, sl_object_info(all.items[i]));
    for (size_t i = 0; i < all.count; i++) {
        const struct sl_object_info *info = sl_object_info(all.items[i]);
        input->object = all.items[i];
        if (!is_type(in, findings_type(info->format)))
            inspect_fail(in, path, 1, "the file is not of the type that --type requires");
        else if (is_wanted(in, info))
            inspect_show(in, path, input, i, all.count, &variants);
        input_close_object(input);
    }
    free(all.items);
    sl_arena_free(&all.arena);
    sl_buf_free(&variants);
}

/* Shows a file of a kind that has no objects: symbfile, minidump, ProGuard mapping or source map. False for other kinds, and for kinds that
 * the options exclude. */
static bool inspect_whole(struct inspection *in, const char *path)
{
    static const struct {
        const char *type;
        inspect_kind *show;
        bool has_id;
    } kinds[] = {{"symbfile", inspect_symbfile, false},
                 {"minidump", inspect_minidump, false},
                 {"proguard", inspect_mapping, true},
                 {"sourcemap", inspect_sourcemap, true}};
    /* with --id, only kinds whose files have a debug id are tried; with --arch none, as these files have no architecture */
    bool by_id = option_given(in->o, "id"), known = false;
    struct sl_mapping mapping;
    if (option_given(in->o, "arch") || sl_map_file(path, &mapping, NULL) != SL_OK)
        return false;
    struct inspected_file file = {.path = path,
                                  .bytes = mapping.bytes,
                                  .options = in->o,
                                  .wanted = by_id ? &in->id : NULL,
                                  .w = in->json ? &in->w : NULL,
                                  .out = &in->out};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !known; i++)
        known = is_type(in, kinds[i].type) && (!by_id || (kinds[i].has_id && in->has_id)) && kinds[i].show(&file);
    sl_unmap(&mapping);
    /* a file with another id than the wanted one was recognised, but not shown */
    in->shown += known && !file.other_id;
    in->unusable += known && !file.other_id && file.unusable;
    return known;
}

/* Shows the objects in the members of a static library, under names such as `lib.a(io.o)`. False if the file is none, or no object in it
 * was shown. */
static bool inspect_members(struct inspection *in, const char *path)
{
    struct sl_mapping mapping;
    struct sl_ar ar;
    struct sl_ar_member member;
    char name[4200];
    if (sl_map_file(path, &mapping, NULL) != SL_OK)
        return false;
    bool is_archive = sl_ar_detect(mapping.bytes);
    size_t shown = in->shown;
    sl_ar_open(mapping.bytes, &ar);                              /* only sets `ar`, so it does no harm to other files */
    while (is_archive && !ar.thin && sl_ar_next(&ar, &member)) { /* thin: the members are other files */
        /* alone: no companion files are searched beside it */
        struct input input = {.path = name, .mapping = {.bytes = member.bytes}, .alone = true};
        snprintf(name, sizeof name, "%s(" SL_STR_FMT ")", path, SL_STR_ARG(member.name));
        if (sl_format_detect(member.bytes) != SL_FORMAT_UNKNOWN &&
            sl_archive_open(member.bytes, &input.archive, NULL) == SL_OK)
            inspect_objects(in, name, &input);
        sl_buf_free(&input.notes);
    }
    sl_unmap(&mapping);
    return is_archive && in->shown > shown;
}

/* Shows a file of any kind: one without objects, a static library, a symcache, or the objects of a debug file; tried in this order. */
static void inspect_file(struct inspection *in, const char *path)
{
    struct input input;
    struct sl_error error = {0};
    progress_file(&in->progress, path);
    if (inspect_whole(in, path) || inspect_members(in, path))
        return;
    enum sl_code code = input_open_archive(path, &input, &error);
    if (code != SL_OK)
        inspect_fail(in, path, status_of_code(code), error.message);
    else if (!input.has_cache)
        inspect_objects(in, path, &input);
    else if (!is_type(in, "symcache"))
        inspect_fail(in, path, 1, "the file is not of the type that --type requires");
    else if (!option_given(in->o, "id") || (in->has_id && sl_debug_id_equal(&in->id, &input.cache.debug_id)))
        inspect_show(in, path, &input, 0, 1, NULL);
    input_close(&input);
}

/* Shows the files in a directory and below, or the file if `path` is one. Files of unknown kinds below it are skipped; the path itself and
 * all directories must be readable, or a failure is reported. */
static void inspect_directory(struct inspection *in, char *path)
{
    char *const paths[] = {path, NULL};
    FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, file_walk_by_name);
    for (FTSENT *entry; fts && (entry = fts_read(fts));) {
        bool named = entry->fts_level == FTS_ROOTLEVEL, unreadable = entry->fts_info == FTS_DNR;
        if (unreadable || (named && (entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR)))
            inspect_fail(in, entry->fts_path, 1, strerror(entry->fts_errno));
        in->walking = !named;
        if (entry->fts_info == FTS_F)
            inspect_file(in, entry->fts_path);
        in->walking = false;
    }
    if (fts)
        fts_close(fts);
}

/* ---- the command ---- */

/* Inspects all arguments, and prints what is left in the output buffer. Returns the exit status: that of the first failure; without one, 1
 * with --check if a file is unusable, and STATUS_NOTHING if --arch and --id match no object. */
static int inspect_all(struct inspection *in)
{
    in->w = sl_json_writer(&in->out);
    progress_begin(&in->progress, in->o, "inspecting");
    if (!option_given(in->o, "recursive")) /* else the number is unknown */
        progress_expect(&in->progress, in->o->argument_count);
    if (in->json)
        sl_json_begin_array(&in->w);
    for (size_t i = 0; i < in->o->argument_count; i++)
        if (option_given(in->o, "recursive"))
            inspect_directory(in, in->o->arguments[i]);
        else
            inspect_file(in, in->o->arguments[i]);
    if (in->json) {
        sl_json_end_array(&in->w);
        sl_buf_u8(&in->out, '\n');
    }
    progress_finish(&in->progress);
    if (in->shown || !in->status) /* no empty JSON list after a failure */
        inspect_flush(in);
    sl_buf_free(&in->out);
    if (in->status == 0 && !in->shown && (option_given(in->o, "id") || option_given(in->o, "arch")))
        return report_error(STATUS_NOTHING, "no object in the file matches --arch and --id", NULL);
    return in->status == 0 && option_given(in->o, "check") && in->unusable ? 1 : in->status;
}

/* The command: checks the options and inspects the files. An --id that is no debug id is compared with code ids only. Returns the exit
 * status. */
static int inspect_run(const struct options *o)
{
    struct inspection in = {.o = o, .json = option_given(o, "json")};
    const char *arch = option_value(o, "arch", NULL), *id = option_value(o, "id", NULL);
    if (!o->argument_count) {
        report_error(2, "no file given", NULL);
        return options_try_help("inspect");
    }
    in.arch = arch ? sl_arch_parse(sl_str(arch)) : SL_ARCH_UNKNOWN;
    if (arch && in.arch == SL_ARCH_UNKNOWN) {
        report_error(2, "unknown architecture", arch);
        return options_try_help("inspect");
    }
    in.has_id = id && sl_debug_id_parse(sl_str(id), &in.id);
    return inspect_all(&in);
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "show what a debug file contains",
    .usage = "inspect [OPTION...] FILE...",
    .about = "Shows what a debug file or symcache is and what it contains.",
    .examples = "symloom inspect app.debug\n"
                "symloom inspect --check -r build/",
    .options = specs,
    .groups = {{"Most used", "check recursive json symbols functions files sources arch id verbose"},
               {"More", "type verify statistics sections cfi raw demangle"}},
    .run = inspect_run,
};
