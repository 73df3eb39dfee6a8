/* `symloom bundle`: packs the sources that a debug file names into a source bundle. */
#include "cli/bundle/bundle.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "core/duration.h"

static const struct option_spec specs[] = {
    {"output", 'o', OPTION_VALUE, false, "PATH",
     "Write to this directory, or with one FILE to this file (default: beside FILE)"},
    {"root", 0, OPTION_VALUE, true, "FROM=TO", "Look below TO for source paths that start with FROM"},
    {"embedded", 0, OPTION_FLAG, false, NULL, "Also pack sources embedded in the debug file"},
    {"il2cpp", 0, OPTION_FLAG, false, NULL, "Also pack the C# files that generated C++ refers to"},
    {"il2cpp-mapping", 0, OPTION_VALUE, false, "FILE", "Write a mapping of C++ lines to C# lines"},
    {"max-file-size", 0, OPTION_VALUE, false, "SIZE", "Skip larger sources (default: 10 MiB)"},
    {"arch", 0, OPTION_VALUE, false, "ARCH", "Use only objects of this architecture"},
    {"id", 0, OPTION_VALUE, false, "ID", "Use only objects with this debug id or code id"},
    {"list", 'n', OPTION_FLAG, false, NULL, "List what would be packed; write nothing"},
    {"json", 0, OPTION_FLAG, false, NULL, "Report packed and skipped files as JSON"},
    {"jvm", 0, OPTION_VALUE, false, "DIR", "Pack the sources of a JVM project (needs --debug-id)"},
    {"debug-id", 0, OPTION_VALUE, false, "UUID", "Give the JVM bundle this debug id"},
    {"exclude", 0, OPTION_VALUE, true, "GLOB", "Leave out matching files of the JVM project"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Print each skipped file with the reason"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct bundle_run {
    const struct options *o;
    struct path_prefix_rule *roots;
    size_t root_count;
    uint64_t max_size;
    enum sl_arch arch; /* SL_ARCH_UNKNOWN: any */
    struct sl_debug_id id;
    bool has_id, list, json;
    size_t seen;       /* objects that matched --arch and --id */
    struct sl_buf out; /* standard output */
    struct sl_arena arena;
    struct sl_map written; /* paths of the bundles so far, in the arena */
    struct sl_json_writer w;
    struct progress progress;
};

/* ---- names of the results ---- */

/* Returns the last component of a path of this system. */
static const char *get_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Appends the bundle's name, which replaces the last extension: `app.so` -> `app.src.zip`, for slice 1 of a fat file `app.1.src.zip`. The
 * dot of a hidden file (`.app`) begins no extension. */
static void add_name(struct sl_buf *out, struct sl_str base, size_t slice)
{
    size_t dot = base.size;
    while (dot > 1 && base.data[dot - 1] != '.')
        dot--;
    sl_buf_add(out, base.data, dot > 1 ? dot - 1 : base.size);
    if (slice)
        sl_buf_printf(out, ".%zu", slice);
    sl_buf_cstr(out, ".src.zip");
}

/* Returns the directory for a file's bundle, with its last slash: that of the file or, for a file in a .dSYM, that of the .dSYM. */
static struct sl_str get_directory(const char *path)
{
    const char *inside = strstr(path, ".dSYM/Contents/Resources/DWARF/");
    size_t size = inside ? (size_t)(inside - path) : strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    return (struct sl_str){path, size};
}

/* True if --output is a directory: it exists or ends with a slash, or several files need one. */
static bool into_directory(const struct bundle_run *b, const char *output)
{
    return output &&
           (b->o->argument_count > 1 || path_is_directory(output) || sl_str_ends(sl_str(output), SL_STR("/")));
}

/* Returns the path of the bundle: beside the file, in the directory --output, or the path --output itself. Bundles of the objects of a fat
 * file after the first (`slice` > 0) get the slice number before `.src.zip`. NULL when out of memory. The caller frees. */
static char *result_path(const struct bundle_run *b, const char *file, size_t slice)
{
    const char *output = option_value(b->o, "output", NULL);
    struct sl_buf path = {0};
    struct sl_str whole = sl_str(file), directory = get_directory(file), name;
    while (whole.size > 1 && whole.data[whole.size - 1] == '/')
        whole.size--;
    name = path_file_name(whole);
    if (output && !into_directory(b, output)) { /* --output is no directory, but the name of the first slice's bundle */
        directory = (struct sl_str){output, (size_t)(get_base_name(output) - output)};
        name = sl_str(get_base_name(output));
        if (!slice)
            sl_buf_cstr(&path, output);
        else if (sl_str_ends(name, SL_STR(".src.zip")))
            name.size -= 4; /* `.zip`: add_name then replaces `.src`, so that `.src.zip` does not occur twice */
    } else if (output) {
        directory = (struct sl_str){NULL, 0};
        sl_buf_printf(&path, "%s/", output);
    }
    if (!output || slice || into_directory(b, output)) { /* else `path` is complete: it is --output itself */
        sl_buf_str(&path, directory);
        add_name(&path, name, slice);
    }
    sl_buf_u8(&path, 0);
    if (!path.failed)
        return (char *)path.data;
    sl_buf_free(&path);
    return NULL;
}

/* ---- results ---- */

/* Writes a file of results; returns the exit status: 1 after a report. */
static int bundle_publish(const char *path, struct sl_bytes bytes)
{
    struct sl_error error;
    return output_file_put(path, bytes, &error) == SL_OK ? 0 : report_error(1, error.message, NULL);
}

/* Adds an object to the array that --json prints: the bundle that was written for it (null: none), packed and skipped files. */
static void report_object(struct bundle_run *b, const char *input, const char *output, const struct bundle_packing *p,
                          const struct sl_object_info *info)
{
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&info->debug_id, id);
    sl_json_begin_object(&b->w);
    sl_json_member_str(&b->w, "path", sl_str(input));
    sl_json_member_str(&b->w, "debug_id", sl_str(id));
    sl_json_member_or_null(&b->w, "bundle", sl_str(output));
    sl_json_member_array(&b->w, "files");
    for (size_t i = 0; i < p->packed_count; i++)
        sl_json_put_str(&b->w, p->packed[i]);
    sl_json_end_array(&b->w);
    sl_json_member_array(&b->w, "skipped");
    for (size_t i = 0; i < p->skipped_count; i++) {
        sl_json_begin_object(&b->w);
        sl_json_member_str(&b->w, "path", p->skipped[i].path);
        sl_json_member_str(&b->w, "reason", sl_str(p->skipped[i].reason));
        sl_json_end_object(&b->w);
    }
    sl_json_end_array(&b->w);
    sl_json_end_object(&b->w);
}

/* Adds to the output: with --list the sources that would be packed, otherwise the path of the bundle (NULL: none was written). */
static void print_object(struct bundle_run *b, const char *input, const char *output, const struct bundle_packing *p)
{
    for (size_t i = 0; b->list && i < p->packed_count; i++) {
        sl_buf_str(&b->out, p->packed[i]);
        sl_buf_u8(&b->out, '\n');
    }
    if (output)
        sl_buf_printf(&b->out, "%s\n", output);
    else if (!p->packed_count)
        print_note("skipped %s (no files found)\n", input);
}

/* Completes a bundle with the attributes that tell which object it belongs to. */
static enum sl_code bundle_finish(struct sl_bundle_writer *writer, const char *path, const struct sl_object_info *info,
                                  struct sl_error *error)
{
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&info->debug_id, id);
    struct sl_bundle_attribute attributes[4] = {{SL_STR("arch"), sl_str(sl_arch_name(info->arch))}};
    size_t count = 1;
    if (info->code_id.size)
        attributes[count++] = (struct sl_bundle_attribute){SL_STR("code_id"), info->code_id};
    attributes[count++] = (struct sl_bundle_attribute){SL_STR("debug_id"), sl_str(id)};
    attributes[count++] = (struct sl_bundle_attribute){SL_STR("object_name"), sl_str(get_base_name(path))};
    return sl_bundle_finish(writer, attributes, count, error);
}

/* ---- one object ---- */

/* Writes the file of --il2cpp-mapping, unless it would have no lines. Does nothing without this option or with --list. Returns the exit
 * status. */
static int write_mapping(struct bundle_run *b, struct bundle_packing *p, const struct source_paths *paths,
                         const struct sl_debug_id *id)
{
    const char *path = option_value(b->o, "il2cpp-mapping", NULL);
    struct sl_buf json = {0};
    int status = 0;
    if (path && !b->list && pack_line_mapping(p, paths, id, &json))
        status = bundle_publish(path, sl_buf_bytes(&json));
    sl_buf_free(&json);
    return status;
}

/* Reserves the path for a bundle. Reports it if another object's bundle has been written to it, or memory is out. Returns the exit
 * status. */
static int reserve_path(struct bundle_run *b, const char *output)
{
    char *copy = sl_arena_strndup(&b->arena, output, strlen(output));
    bool is_new = false;
    if (!copy || !sl_map_find_or_add(&b->written, sl_str(copy), &is_new))
        return report_no_memory();
    return is_new ? 0
                  : report_error(1, "another file's bundle already has this name; choose a different --output", output);
}

/* Completes and writes the bundle of an object, if any source was packed, and reports the object. Returns the exit status. */
static int write_bundle(struct bundle_run *b, const char *path, struct input *input, size_t slice,
                        struct bundle_packing *p, struct sl_buf *bytes)
{
    const struct sl_object_info *info = sl_object_info(input->object);
    struct sl_error error = {0};
    char *output = NULL;
    int status = 0;
    if (p->failed)
        return report_no_memory();
    if (p->packed_count && p->writer) { /* writer: NULL with --list */
        enum sl_code code = bundle_finish(p->writer, input->path, info, &error);
        output = result_path(b, path, slice);
        if (code != SL_OK || !output)
            status = output ? report_file_error(path, code, &error) : report_no_memory();
        else if ((status = reserve_path(b, output)) == 0)
            status = bundle_publish(output, sl_buf_bytes(bytes));
    }
    if (status == 0 && b->json)
        report_object(b, path, output, p, info);
    else if (status == 0)
        print_object(b, path, output, p);
    free(output);
    return status;
}

/* Packs the sources of one object. `slice`: its index in a fat file, else 0. Returns the exit status. */
static int bundle_object(struct bundle_run *b, const char *path, struct input *input, size_t slice)
{
    struct source_paths paths;
    struct sl_error error = {0};
    struct sl_buf bytes = {0};
    enum sl_code code = source_paths_read(input, &paths, &error);
    int status = code == SL_OK ? 0 : report_file_error(path, code, &error);
    struct bundle_packing p = {
        .roots = b->roots,
        .root_count = b->root_count,
        .max_size = b->max_size,
        .embedded = option_given(b->o, "embedded"),
        .il2cpp = option_given(b->o, "il2cpp"),
        .verbose = option_given(b->o, "verbose"),
        .writer = b->list ? NULL : sl_bundle_writer_new(&bytes),
    };
    if (status == 0 && !p.writer && !b->list)
        status = report_no_memory();
    if (status == 0) {
        pack_sources(&p, &paths);
        status = write_bundle(b, path, input, slice, &p, &bytes);
    }
    if (status == 0)
        status = write_mapping(b, &p, &paths, &sl_object_info(input->object)->debug_id);
    sl_bundle_writer_free(p.writer);
    packing_free(&p);
    source_paths_free(&paths);
    sl_buf_free(&bytes);
    return status;
}

/* Reports a skipped source if its reason matters to the user: precompiled headers, embedded and oversized sources. Files that are merely
 * not on this machine are usual. */
static void print_skipped(const struct bundle_packing *p, const struct skipped *skipped)
{
    static const char *const sentences[][2] = {{"precompiled header", "Skipping precompiled header: "},
                                               {"embedded source", "Skipping embedded source file: "}};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(skipped->reason, sentences[i][0]) == 0)
            print_note("%s" SL_STR_FMT "\n", sentences[i][1], SL_STR_ARG(skipped->path));
    if (strcmp(skipped->reason, "file is too large") == 0)
        print_note("Source exceeded maximum item size limit (%llu). " SL_STR_FMT "\n", (unsigned long long)p->max_size,
                   SL_STR_ARG(skipped->path));
}

enum sl_code bundle_object_sources(const char *path, struct input *input, bool tell, struct sl_buf *bytes, bool *some,
                                   struct sl_error *error)
{
    struct source_paths paths;
    /* 10 MiB: the default of `symloom bundle --max-file-size` */
    struct bundle_packing p = {.max_size = UINT64_C(10) << 20, .writer = sl_bundle_writer_new(bytes)};
    enum sl_code code = source_paths_read(input, &paths, error);
    if (code == SL_OK && !p.writer)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK) {
        pack_sources(&p, &paths);
        *some = p.packed_count > 0;
        if (p.failed)
            code = sl_fail(error, SL_BUSY, "out of memory");
        else if (*some)
            code = bundle_finish(p.writer, path, sl_object_info(input->object), error);
    }
    for (size_t i = 0; tell && i < p.skipped_count; i++)
        print_skipped(&p, &p.skipped[i]);
    sl_bundle_writer_free(p.writer);
    packing_free(&p);
    source_paths_free(&paths);
    return code;
}

/* True if --arch and --id select the object. */
static bool is_wanted(const struct bundle_run *b, const struct sl_object_info *info)
{
    const char *id = option_value(b->o, "id", NULL);
    if (b->arch != SL_ARCH_UNKNOWN && info->arch != b->arch)
        return false;
    return !id || (b->has_id && sl_debug_id_equal(&b->id, &info->debug_id)) ||
           (info->code_id.size && sl_str_equal_nocase(info->code_id, sl_str(id)));
}

/* Packs the sources of each object in a file that --arch and --id select, up to the first failure. Returns the exit status. */
static int bundle_file(struct bundle_run *b, const char *path)
{
    struct input input;
    struct sl_error error = {0};
    int status = 0;
    enum sl_code code = input_open_archive(path, &input, &error);
    if (code == SL_OK && input.has_cache)
        code = sl_fail(&error, SL_MALFORMED, "a symcache contains no source references; pass the debug file");
    if (code != SL_OK)
        status = report_file_error(path, code, &error);
    for (size_t i = 0; status == 0 && i < input.archive.count; i++) {
        code = sl_archive_object(&input.archive, i, NULL, &input.object, &error);
        if (code != SL_OK) {
            status = report_file_error(path, code, &error);
        } else if (is_wanted(b, sl_object_info(input.object))) {
            b->seen++;
            status = bundle_object(b, path, &input, i);
        }
        input_close_object(&input);
    }
    input_close(&input);
    return status;
}

/* ---- the command ---- */

/* Packs the sources of all files of the command line, up to the first failure; returns the exit status. With --json, prints the list only
 * after success, as it would be incomplete. STATUS_NOTHING when --arch and --id match no object. */
static int bundle_all(struct bundle_run *b)
{
    const char *output = option_value(b->o, "output", NULL);
    int status = into_directory(b, output) ? output_directory(output) : 0;
    if (status)
        return status;
    b->w = sl_json_writer(&b->out);
    if (b->json)
        sl_json_begin_array(&b->w);
    progress_begin(&b->progress, b->o, "bundling");
    progress_expect(&b->progress, b->o->argument_count);
    for (size_t i = 0; i < b->o->argument_count && status == 0; i++) {
        progress_file(&b->progress, b->o->arguments[i]);
        status = bundle_file(b, b->o->arguments[i]);
    }
    progress_finish(&b->progress);
    if (b->json) {
        sl_json_end_array(&b->w);
        sl_buf_u8(&b->out, '\n');
    }
    if (status == 0 && !b->seen)
        status = report_error(STATUS_NOTHING, "no object in the file matches --arch and --id", NULL);
    if (!b->json || status == 0)
        output_write(sl_buf_view(&b->out));
    return status;
}

/* Packs the sources of a JVM project into one bundle: the file --output or, in the directory --output (default: the current one), the file
 * `<debug id>.zip`. Returns the exit status. */
static int bundle_project(struct bundle_run *b, const char *directory)
{
    const char *id = option_value(b->o, "debug-id", NULL), *output = option_value(b->o, "output", NULL);
    char text[SL_DEBUG_ID_TEXT], path[4200]; /* PATH_MAX and the name of the bundle */
    struct sl_error error = {0};
    struct sl_buf bytes = {0};
    size_t exclude_count, count = 0;
    if (!id || !sl_debug_id_parse(sl_str(id), &b->id))
        return report_error(2, id ? "--debug-id is not a debug id" : "--jvm needs --debug-id", id);
    sl_debug_id_format(&b->id, text);
    const char *const *exclude = option_values(b->o, "exclude", &exclude_count);
    struct sl_bundle_writer *writer = sl_bundle_writer_new(&bytes);
    progress_begin(&b->progress, b->o, "bundling");
    progress_file(&b->progress, directory);
    int status = writer ? bundle_jvm(directory, exclude, exclude_count, b->max_size, option_given(b->o, "verbose"),
                                     writer, &count)
                        : report_no_memory();
    struct sl_bundle_attribute attribute = {SL_STR("debug_id"), sl_str(text)};
    bool into = !output || path_is_directory(output);
    progress_finish(&b->progress);
    if (into)
        snprintf(path, sizeof path, "%s%s%s.zip", output ? output : "", output ? "/" : "", text);
    if (status == 0 && !count)
        print_note("skipped %s (no files found)\n", directory);
    else if (status == 0 && sl_bundle_finish(writer, &attribute, 1, &error) != SL_OK)
        status = report_error(1, error.message, NULL);
    else if (status == 0 && (status = bundle_publish(into ? path : output, sl_buf_bytes(&bytes))) == 0)
        sl_buf_printf(&b->out, "Created %s\n", into ? path : output);
    output_write(sl_buf_view(&b->out));
    sl_bundle_writer_free(writer);
    sl_buf_free(&bytes);
    return status;
}

/* Reads the FROM=TO values of --root into b->roots. False after a report, or when out of memory. */
static bool read_roots(struct bundle_run *b)
{
    const char *const *values = option_values(b->o, "root", &b->root_count);
    b->roots = calloc(b->root_count + 1, sizeof *b->roots); /* + 1: never 0 items, so that NULL means out of memory */
    for (size_t i = 0; b->roots && i < b->root_count; i++) {
        const char *equals = strchr(values[i], '=');
        if (!equals || equals == values[i]) {
            report_error(2, "--root must be FROM=TO", values[i]);
            return false;
        }
        b->roots[i] = (struct path_prefix_rule){{values[i], (size_t)(equals - values[i])}, sl_str(equals + 1)};
    }
    return b->roots != NULL;
}

/* Parses a size such as `10 MiB`; also accepts `1K` for `1KiB`. False if it is invalid. */
static bool read_size(const char *text, uint64_t *bytes)
{
    char whole[32];
    size_t size = strlen(text);
    bool is_short = size && strchr("KMG", text[size - 1]);
    return snprintf(whole, sizeof whole, "%s%s", text, is_short ? "iB" : "") < (int)sizeof whole &&
           size_parse(sl_str(whole), bytes);
}

/* The command: checks the options, and packs the sources of the given files or, with --jvm, of a JVM project. An --id that is no debug id
 * is compared with code ids only. Returns the exit status; after a usage error (2) it has also printed where to find help. */
static int bundle_run(const struct options *o)
{
    struct bundle_run b = {.o = o, .list = option_given(o, "list"), .json = option_given(o, "json")};
    const char *arch = option_value(o, "arch", NULL), *id = option_value(o, "id", NULL);
    const char *jvm = option_value(o, "jvm", NULL);
    b.arch = arch ? sl_arch_parse(sl_str(arch)) : SL_ARCH_UNKNOWN;
    b.has_id = id && sl_debug_id_parse(sl_str(id), &b.id);
    int status = 2;
    if (!o->argument_count == !jvm) /* both or none of FILE and --jvm */
        report_error(2, jvm ? "--jvm cannot be combined with FILE arguments" : "no file given", NULL);
    else if (arch && b.arch == SL_ARCH_UNKNOWN)
        report_error(2, "unknown architecture", arch);
    else if (!read_size(option_value(o, "max-file-size", "10 MiB"), &b.max_size))
        report_error(2, "--max-file-size is not a valid size", option_value(o, "max-file-size", NULL));
    else if (read_roots(&b))
        status = jvm ? bundle_project(&b, jvm) : bundle_all(&b);
    free(b.roots);
    sl_buf_free(&b.out);
    sl_map_free(&b.written);
    sl_arena_free(&b.arena);
    return status == 2 ? options_try_help("bundle") : status;
}

const struct command command_bundle = {
    .name = "bundle",
    .summary = "pack source files that a debug file refers to",
    .usage = "bundle [OPTION...] FILE...",
    .about = "Packs the source files that a debug file refers to into a source bundle.",
    .examples = "symloom bundle app.debug\n"
                "symloom bundle --jvm . --debug-id a5619cbd-33f1-4ac2-9ef8-b6a0a3dbd4b6",
    .options = specs,
    .groups = {{"Most used", "output root embedded exclude list json jvm debug-id verbose"},
               {"More", "il2cpp il2cpp-mapping max-file-size arch id"}},
    .run = bundle_run,
};
