/* Opens debug files, symbfiles and symcaches by name, and reads or converts them with the companion files beside them. */
#include "cli/cli.h"
#include "cli/members.h"
#include "cli/split_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "crash/crash.h"
#include "symbfile/symbfile.h"

struct sl_str path_file_name(struct sl_str path)
{
    return sl_crash_file_name(path);
}

/* ---- choosing an object ---- */

void input_list_archs(const struct sl_archive *archive, struct sl_buf *out)
{
    for (size_t i = 0; i < archive->count; i++) {
        struct sl_object *object;
        if (sl_archive_object(archive, i, NULL, &object, NULL) != SL_OK)
            continue;
        sl_buf_printf(out, "%s%s", out->size ? ", " : "", sl_arch_name(sl_object_info(object)->arch));
        sl_object_close(object);
    }
}

/* True if the object is of the wanted architecture. `arm` and `arm64` stand for all their variants, such as armv7s or arm64e. */
static bool has_arch(const struct sl_object *object, enum sl_arch wanted)
{
    enum sl_arch arch = sl_object_info(object)->arch;
    return arch == wanted || (wanted != SL_ARCH_UNKNOWN && sl_arch_family(arch) == sl_arch_family(wanted) &&
                              (wanted == SL_ARCH_ARM || wanted == SL_ARCH_ARM64));
}

/* Opens the first object of an architecture as input->object. Skips objects that cannot be read; if none can be read, returns the error of
 * the first. SL_UNSUPPORTED if no object has the architecture. */
static enum sl_code open_arch(struct input *input, enum sl_arch wanted, struct sl_error *error)
{
    const struct sl_archive *archive = &input->archive;
    struct sl_error reason;
    size_t unreadable = 0;
    for (size_t i = 0; i < archive->count; i++) {
        enum sl_code code = sl_archive_object(archive, i, NULL, &input->object, unreadable ? NULL : &reason);
        if (code == SL_OK && has_arch(input->object, wanted))
            return SL_OK;
        unreadable += code != SL_OK;
        sl_object_close(input->object);
        input->object = NULL;
    }
    if (unreadable == archive->count)
        return sl_fail(error, reason.code, "%s", reason.message);
    struct sl_buf names = {0};
    input_list_archs(archive, &names);
    enum sl_code code = sl_fail(error, SL_UNSUPPORTED, "the file has no object for %s; it has: " SL_STR_FMT,
                                sl_arch_name(wanted), SL_STR_ARG(sl_buf_view(&names)));
    sl_buf_free(&names);
    return code;
}

enum sl_arch machine_arch(void)
{
    struct utsname name;
    if (uname(&name) != 0)
        return SL_ARCH_UNKNOWN;
    return strcmp(name.machine, "aarch64") == 0 ? SL_ARCH_ARM64 : sl_arch_parse(sl_str(name.machine));
}

/* Opens the object that the options select by id or architecture. Without either: the only object or, of several, that of this machine's
 * architecture. */
static enum sl_code open_object(struct input *input, struct sl_error *error)
{
    const struct input_options *o = input->options;
    if (o && o->wanted)
        return sl_archive_find(&input->archive, o->wanted, NULL, &input->object, NULL, error);
    if (o && o->arch) {
        enum sl_arch arch = sl_arch_parse(sl_str(o->arch));
        if (arch == SL_ARCH_UNKNOWN)
            return sl_fail(error, SL_UNSUPPORTED, "unknown architecture '%s'", o->arch);
        return open_arch(input, arch, error);
    }
    if (input->archive.count == 1)
        /* .mapping: pages that were read are dropped from memory */
        return sl_archive_object(&input->archive, 0, &(struct sl_object_limits){.mapping = input->mapping},
                                 &input->object, error);
    return open_arch(input, machine_arch(), error);
}

/* ---- opening ---- */

enum sl_code read_stream(int fd, const char *path, struct sl_buf *out, struct sl_error *error)
{
    for (;;) {
        if (!sl_buf_reserve(out, 1 << 20))
            return sl_fail(error, SL_BUSY, "out of memory");
        ssize_t n = read(fd, out->data + out->size, 1 << 20);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sl_fail(error, SL_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            return SL_OK;
        out->size += (size_t)n;
    }
}

/* Maps the file; reads it instead if it is standard input, a FIFO or a device, which cannot be mapped. */
static enum sl_code cli_files_read_file(struct input *input, struct sl_error *error)
{
    struct stat st;
    bool standard = strcmp(input->path, "-") == 0;
    bool stream = standard || (stat(input->path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)));
    if (!stream)
        return sl_map_file(input->path, &input->mapping, error);
    int fd = standard ? STDIN_FILENO : open(input->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sl_fail(error, SL_INTERNAL, "cannot open %s: %s", input->path, strerror(errno));
    enum sl_code code = read_stream(fd, input->path, &input->read, error);
    input->mapping.bytes = sl_buf_bytes(&input->read);
    if (!standard)
        close(fd);
    return code;
}

/* Unpacks the file if it is compressed or an archive with one debug file, and finds out whether it is a symcache, a symbfile, or has
 * objects. */
static enum sl_code detect_contents(struct input *input, struct sl_error *error)
{
    char *member = NULL;
    enum sl_code code = SL_OK;
    if (!input->alone) /* a downloaded file was unpacked before */
        code = member_unpack(input->path, &input->mapping, &member, error);
    /* an archive was replaced by its only debug file, `lib.a(io.o)`: messages use that name */
    if (member) {
        free(input->path);
        input->path = member;
    }
    if (code != SL_OK)
        return code;
    input->has_cache = sl_symcache_open(input->mapping.bytes, &input->cache, NULL) == SL_OK;
    input->is_symbfile = sl_symbfile_detect(input->mapping.bytes);
    return input->has_cache || input->is_symbfile ? SL_OK
                                                  : sl_archive_open(input->mapping.bytes, &input->archive, error);
}

/* Opens a file by its name, which may be that of a .dSYM bundle or of an archive's member, `file(member)`. Opens no object in it. */
static enum sl_code open_file(const char *path, struct input *input, struct sl_error *error)
{
    *input = (struct input){0};
    input->path = path_is_directory(path) ? find_dsym_file(path) : strdup(path);
    if (!input->path) /* a directory without a DWARF file, or no memory */
        return sl_fail(error, SL_INTERNAL, "%s is a directory", path);
    enum sl_code code =
        member_is_named(path) ? member_map(path, &input->mapping, NULL, error) : cli_files_read_file(input, error);
    return code == SL_OK ? detect_contents(input, error) : code;
}

enum sl_code input_open_archive(const char *path, struct input *input, struct sl_error *error)
{
    enum sl_code code = open_file(path, input, error);
    return code == SL_OK && input->is_symbfile ? sl_fail(error, SL_UNSUPPORTED, "a symbfile contains no objects")
                                               : code;
}

enum sl_code input_open(const char *path, const struct input_options *options, struct input *input,
                        struct sl_error *error)
{
    enum sl_code code = open_file(path, input, error);
    input->options = options;
    if (code != SL_OK || input->has_cache || input->is_symbfile)
        return code;
    code = open_object(input, error);
    if (code == SL_OK && options && options->find_debug && !sl_object_info(input->object)->features.has_debug_info)
        /* if it finds none, input->notes say so */
        debug_file_find(input->object, input->path, options->debug_directories, options->dsym_hints, &input->debug,
                        input);
    return code;
}

enum sl_code input_open_bytes(const char *name, struct sl_bytes bytes, const struct input_options *options,
                              struct input *input, struct sl_error *error)
{
    *input = (struct input){.path = strdup(name), .mapping = {.bytes = bytes}, .alone = true, .options = options};
    enum sl_code code = input->path ? detect_contents(input, error) : sl_fail(error, SL_BUSY, "out of memory");
    return code == SL_OK && !input->has_cache && !input->is_symbfile ? open_object(input, error) : code;
}

bool input_set_debug(struct input *input, struct sl_bytes bytes)
{
    return !input->debug.object && debug_file_select_object(input->object, bytes, &input->debug.object);
}

struct sl_object *input_debug(const struct input *input)
{
    return input->debug.object ? input->debug.object : input->object;
}

/* ---- reading ---- */

void input_note(struct input *input, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text - 1, format, arguments); /* - 1: room for the line end */
    va_end(arguments);
    for (char *at = text; (at = strchr(at, '\n'));) /* a note is one line */
        *at = ' ';
    size_t size = strlen(text);
    text[size++] = '\n';
    if (!input->notes.size || !memmem(input->notes.data, input->notes.size, text, size))
        sl_buf_add(&input->notes, text, size);
}

/* Adds a note that `units` parts of the debug information could not be read, with the error of the first; none if `units` is 0. */
static void note_unread(struct input *input, size_t units, const struct sl_error *first)
{
    if (units == 1)
        input_note(input, "%s", first->message[0] ? first->message : "cannot read a part of the debug information");
    else if (units)
        input_note(input, "cannot read %zu parts of the debug information; first error: %s", units, first->message);
}

enum sl_code input_read_functions(struct input *input, const struct sl_parallel *parallel,
                                  struct sl_function_sink *sink, struct sl_error *error)
{
    struct split_files files;
    split_files_open(input, &files);
    enum sl_code code = sl_object_read_functions(input_debug(input), &files.companions, parallel, sink, error);
    split_files_close(&files, sink->missing_units, sink->first_missing);
    note_unread(input, sink->skipped_units, &sink->first_skipped);
    return code;
}

/* Converts a symbfile to a symcache (input->cache): its address ranges or, if it has none, its return pads (the frames of single return
 * addresses). In the table of return pads an empty function encloses all others (has_root). */
static enum sl_code convert_symbfile(struct input *input, struct sl_error *error)
{
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(-1); /* -1: without a scratch file, in memory */
    struct sl_symbfile_index index;
    struct sl_budget budget;
    sl_budget_init(&budget, input->mapping.bytes.size);
    if (builder)
        sl_symbfile_builder_limit(builder, &budget);
    enum sl_code code = builder ? sl_symbfile_read(input->mapping.bytes, sl_symbfile_builder_sink(builder), error)
                                : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = sl_symbfile_builder_finish(builder, &input->converted, error);
    sl_symbfile_builder_free(builder);
    if (code == SL_OK)
        code = sl_symbfile_index_open(sl_buf_bytes(&input->converted), &index, error);
    if (code != SL_OK)
        return code;
    input->has_root = !index.ranges.entry_count;
    input->cache = input->has_root ? index.pads : index.ranges;
    input->has_cache = true;
    return SL_OK;
}

bool input_has_parts(const struct input *input)
{
    return input->object && !sl_object_reads_own_functions(input_debug(input));
}

bool input_has_positions(const struct input *input)
{
    return input->options && input->options->positions && input_has_parts(input);
}

/* Makes the path of a source file relative: removes the compilation directory, which DWARF up to version 4 may also give as the directory
 * of the file. */
static void without_directory(void *arg, struct sl_file *file)
{
    (void)arg;
    if (sl_str_equal(file->directory, file->comp_dir))
        file->directory = (struct sl_str){NULL, 0};
    file->comp_dir = (struct sl_str){NULL, 0};
}

/* Removes a relative compilation directory that is also the directory of the file, as in DWARF up to version 4: it would occur twice in the
 * path. The service keeps such paths, because crash grouping depends on them; only commands call this function. */
static void directory_once(void *arg, struct sl_file *file)
{
    (void)arg;
    if (file->comp_dir.size && file->comp_dir.data[0] != '/' && sl_str_equal(file->directory, file->comp_dir))
        file->comp_dir = (struct sl_str){NULL, 0};
}

/* Returns the options of a conversion to a symcache. */
static struct sl_symcache_options make_conversion_options(const struct input *input)
{
    const struct sl_object_info *info = sl_object_info(input_debug(input));
    return (struct sl_symcache_options){
        .arch = info->arch,
        .debug_id = info->debug_id,
        .image_size = info->image_size,
        .load_address = sl_object_info(input->object)->load_address,
        .positions = input_has_positions(input),
        .nameless = input->options && input->options->nameless_lines,
        .written_paths = input->options && input->options->written_paths,
        .map_file = input->options && input->options->relative_names ? without_directory : directory_once,
    };
}

enum sl_code input_convert(struct input *input, unsigned jobs, struct sl_error *error)
{
    if (input->has_cache)
        return SL_OK;
    if (input->is_symbfile)
        return convert_symbfile(input, error);
    struct split_files files;
    struct sl_symcache_gaps gaps = {0};
    split_files_open(input, &files);
    struct sl_symcache_options options = make_conversion_options(input);
    options.gaps = &gaps;
    enum sl_code code = sl_symcache_convert(input_debug(input), &files.companions, &options, threads_parallel(jobs),
                                            &input->converted, error);
    input->has_dwo = files.asked; /* .dwo files or object files were read, or looked for */
    split_files_close(&files, gaps.missing_units, gaps.first_missing);
    note_unread(input, gaps.units, &gaps.first);
    if (code == SL_OK)
        code = sl_symcache_open(sl_buf_bytes(&input->converted), &input->cache, error);
    input->has_cache = code == SL_OK;
    return code;
}

enum sl_code input_convert_around(struct input *input, const uint64_t *addresses, size_t count, unsigned jobs,
                                  struct sl_buf *bytes, struct sl_symcache *cache, struct sl_error *error)
{
    struct split_files files;
    struct sl_symcache_gaps gaps = {0};
    split_files_open(input, &files);
    struct sl_symcache_options options = make_conversion_options(input);
    options.gaps = &gaps;
    struct sl_object *object = input_debug(input);
    /* raises the object's work limit: earlier calls used it up for the same parts of the file */
    sl_budget_grow(sl_object_budget(object), sl_object_file(object).size);
    enum sl_code code = sl_symcache_convert_around(object, &files.companions, &options, addresses, count,
                                                   threads_parallel(jobs), bytes, error);
    split_files_close(&files, gaps.missing_units, gaps.first_missing);
    return code == SL_OK ? sl_symcache_open(sl_buf_bytes(bytes), cache, error) : code;
}

void input_close_object(struct input *input)
{
    for (size_t i = 0; i < sizeof input->companions / sizeof *input->companions; i++) {
        sl_object_close(input->companions[i]);
        sl_unmap(&input->companion_mappings[i]);
        input->companions[i] = NULL;
    }
    sl_object_close(input->object);
    input->object = NULL;
    debug_file_close(&input->debug);
}

void input_close(struct input *input)
{
    input_close_object(input);
    sl_buf_free(&input->converted);
    sl_buf_free(&input->notes);
    sl_unmap(&input->mapping);
    sl_buf_free(&input->read);
    free(input->path);
    *input = (struct input){0};
}
