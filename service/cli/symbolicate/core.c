/* `symloom symbolicate` for ELF core files. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/locator/locator.h"
#include "elfcore/elfcore.h"

/* Writes a smaller core, which has the same stacks but not all memory, into an unlinked temporary file, and maps that. */
static enum sl_code map_trimmed(struct sl_bytes bytes, struct sl_mapping *trimmed, struct sl_error *error)
{
    int fd = temporary_file();
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create a temporary file");
    enum sl_code code = sl_elfcore_trim(bytes, fd, error);
    if (code == SL_OK)
        code = sl_map_fd(fd, trimmed, error);
    close(fd);
    return code;
}

static int report_core_error(enum sl_code code, const struct sl_error *error)
{
    return report_error(code == SL_MALFORMED ? STATUS_NOTHING : 1, error->message, NULL);
}

/* Runs --trim: writes a smaller core with the same stacks to the file `path`. Returns the exit status. */
static int trim_core(const char *path, struct sl_bytes bytes)
{
    struct sl_mapping trimmed;
    struct sl_error error;
    enum sl_code code = map_trimmed(bytes, &trimmed, &error);
    if (code != SL_OK)
        return report_core_error(code, &error);
    code = output_file_put(path, trimmed.bytes, &error);
    sl_unmap(&trimmed);
    return code == SL_OK ? 0 : report_error(1, path, error.message);
}

/* ---- modules whose ids are not in the core ---- */

/* The search for files of modules whose build id is not in the core. */
struct id_search {
    struct sl_bytes bytes; /* the core */
    const struct sl_elfcore *core;
    struct sl_json_writer w; /* gets the modules whose file was found, with its id */
    size_t found;            /* their number */
};

/* Writes the module with the code id of the file `path`, if that can be the file that was mapped: an ELF file for the processor, whose
 * contents fit the memory in the core. False if it cannot. */
static bool write_if_mapped(struct id_search *search, const struct sl_crash_module *module, const char *path)
{
    static const struct input_options options = {.arch = NULL};
    struct input input;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    bool fits = input_open(path, &options, &input, NULL) == SL_OK && input.object;
    const struct sl_object_info *info = fits ? sl_object_info(input.object) : NULL;
    fits = fits && info->format == SL_FORMAT_ELF && info->code_id.size &&
           sl_arch_family(info->arch) == search->core->dump.family &&
           sl_elfcore_fits(search->bytes, module->address, input.object);
    if (fits) {
        sl_json_begin_object(&search->w);
        sl_json_member_str(&search->w, "type", SL_STR("elf"));
        sl_json_member_str(&search->w, "code_file", module->code_file);
        sl_json_member_str(&search->w, "code_id", info->code_id);
        sl_json_end_object(&search->w);
        search->found++;
    }
    input_close(&input);
    return fits;
}

/* True if the path, which comes from the core, can be appended to a directory without leading out of it: it has no `..`. */
static bool is_below(struct sl_str path)
{
    return !memmem(path.data, path.size, "..", 2);
}

/* Searches one path of the user, `given`, for the module's file: a file with the module's name, or a directory that has the file at its
 * whole path ("usr/bin/app") or directly ("app"). If the file can be the mapped one, writes the module with its id and returns true. */
static bool search_path(struct id_search *search, const struct sl_crash_module *module, const char *given)
{
    struct sl_str name = sl_crash_file_name(module->code_file);
    char path[4200];
    if (!path_is_directory(given))
        return sl_str_equal(path_file_name(sl_str(given)), name) && write_if_mapped(search, module, given);
    const struct sl_str tails[] = {module->code_file, name};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        int size = snprintf(path, sizeof path, "%s/" SL_STR_FMT, given, SL_STR_ARG(tails[i]));
        if (is_below(tails[i]) && size < (int)sizeof path && write_if_mapped(search, module, path))
            return true;
    }
    return false;
}

/* Searches the paths one after the other for the module's file; true, and the module is written with its id, once one of them has it. */
static bool search_paths(struct id_search *search, const struct sl_crash_module *module, const char *const *paths,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (search_path(search, module, source_path_without_layout(paths[i]))) /* a path may be LAYOUT:PATH */
            return true;
    return false;
}

/* Finds the files of modules whose ids are not in the core, but only among those that the user names as symbols, as with
 * `gdb PROGRAM CORE`: the core has nothing that proves that such a file is the right one. Appends their ids as JSON (struct
 * crash_file) with a NUL, or nothing if no file was found. False when out of memory. */
static bool find_ids(const struct options *o, const struct sl_elfcore *core, struct sl_bytes bytes, struct sl_buf *json)
{
    struct id_search search = {.bytes = bytes, .core = core, .w = sl_json_writer(json)};
    size_t count, more;
    const char *const *symbols = option_values(o, "symbols", &count);
    const char *const *paths = symbolicate_symbol_paths(o, &more);
    sl_json_begin_array(&search.w);
    for (size_t i = 0; i < core->dump.crash.module_count; i++) {
        const struct sl_crash_module *module = &core->dump.crash.modules[i];
        if (!sl_crash_has_id(module) && module->code_file.size && !search_paths(&search, module, symbols, count))
            search_paths(&search, module, paths, more);
    }
    sl_json_end_array(&search.w);
    sl_buf_u8(json, 0);
    bool good = !json->failed;
    if (!search.found || !good)
        sl_buf_free(json);
    return good;
}

/* ---- symbolication ---- */

/* Symbolicates the core by the service at --server. Sends a smaller core with the same stacks, since the whole one may be as large as the
 * memory of the process. Returns the exit status. */
static int send_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes,
                     const char *modules)
{
    struct sl_mapping trimmed;
    struct sl_error error;
    enum sl_code code = map_trimmed(bytes, &trimmed, &error);
    if (code != SL_OK)
        return report_core_error(code, &error);
    int status = symbolicate_core_with_ids(o, project, trimmed.bytes, modules);
    sl_unmap(&trimmed);
    return status;
}

/* Warns why stacks may be missing: the core is truncated, or of a processor that is not supported. */
static void warn_missing_stacks(const struct options *o, const struct sl_elfcore *core)
{
    if (option_given(o, "quiet"))
        return;
    if (core->dump.unread_processor)
        print_note("warning: no stacks: registers of this processor (%s, ELF machine %u) are not supported; supported "
                   "are x86, x86-64, ARM, AArch64, MIPS (o32) and RISC-V\n",
                   core->dump.unread_processor, core->dump.cpu);
    if (core->missing)
        print_note("warning: the core file is truncated: %llu bytes of memory are missing, and stacks in them end "
                   "early; raise the size limit of core files (ulimit -c, ProcessSizeMax of systemd-coredump)\n",
                   (unsigned long long)core->missing);
}

int symbolicate_core(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    const char *path = option_value(o, "trim", NULL);
    struct sl_arena arena = {0};
    struct sl_elfcore core;
    struct sl_buf modules = {0};
    bool good = true;
    if (path)
        return trim_core(path, bytes);
    if (sl_elfcore_read(bytes, &arena, &core, NULL) == SL_OK) { /* else symbolicate_core_with_ids reports the error */
        warn_missing_stacks(o, &core);
        good = find_ids(o, &core, bytes, &modules);
    }
    const char *ids = modules.size ? (const char *)modules.data : NULL;
    int status = !good                       ? report_no_memory()
                 : option_given(o, "server") ? send_core(o, project, bytes, ids)
                                             : symbolicate_core_with_ids(o, project, bytes, ids);
    sl_buf_free(&modules);
    sl_arena_free(&arena);
    return status;
}
