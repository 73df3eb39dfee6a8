/* Split debug information: packages, .dwo files, supplementary files, object files of debug maps. */
#include "cli/members.h"
#include "cli/split_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "dwarf/dwarf.h"

enum { COMPANION_DWP, COMPANION_DWZ }; /* indexes of input->companions: the package, the supplementary file */

/* Returns a companion of the input, opened from `path` at the first call; NULL if it cannot be opened. */
static struct sl_object *open_companion(struct input *input, int which, const char *path)
{
    struct sl_mapping *mapping = &input->companion_mappings[which];
    if (input->companions[which] || sl_map_file(path, mapping, NULL) != SL_OK)
        return input->companions[which];
    if (sl_object_open(mapping->bytes, NULL, &input->companions[which], NULL) != SL_OK)
        sl_unmap(mapping);
    return input->companions[which];
}

/* Returns the path of the file with the debug information: a separate debug file, if there is one, else the input. Packages, .dwo and
 * supplementary files are searched beside it. */
static const char *path_of_debug(const struct input *input)
{
    return input->debug.path ? input->debug.path : input->path;
}

/* Returns the length of the path's directory with its slash; 0 for a bare file name. */
static int directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* ---- the supplementary file ---- */

struct sl_bytes input_wants_supplementary(const struct input *input)
{
    struct sl_supplementary link;
    return input->object && sl_object_supplementary(input_debug(input), &link) ? link.id : (struct sl_bytes){NULL, 0};
}

void input_set_supplementary(struct input *input, struct sl_bytes bytes)
{
    if (!input->companions[COMPANION_DWZ] &&
        sl_object_open(bytes, NULL, &input->companions[COMPANION_DWZ], NULL) != SL_OK)
        input->companions[COMPANION_DWZ] = NULL;
}

bool input_supplementary_path(const struct input *input, char full[PATH_MAX])
{
    struct sl_supplementary link;
    if (!sl_object_supplementary(input_debug(input), &link))
        return false;
    struct sl_str name = link.name;
    const char *path = path_of_debug(input);
    bool absolute = name.size && name.data[0] == '/';
    /* a relative path starts at the file's directory; a fetched file (`alone`) has none */
    return (!input->alone || absolute) &&
           snprintf(full, PATH_MAX, "%.*s" SL_STR_FMT, absolute ? 0 : directory_size(path), path, SL_STR_ARG(name)) <
               PATH_MAX;
}

/* Opens the supplementary file: that of the options, or else the one that the debug information names. NULL if there is none; if the named
 * one cannot be opened, a note says so. */
static struct sl_object *open_dwz(struct input *input)
{
    char full[PATH_MAX];
    if (input->companions[COMPANION_DWZ])
        return input->companions[COMPANION_DWZ];
    if (input->options && input->options->supplementary)
        return open_companion(input, COMPANION_DWZ, input->options->supplementary);
    if (!input_supplementary_path(input, full))
        return NULL;
    struct sl_object *dwz = open_companion(input, COMPANION_DWZ, full);
    if (!dwz)
        input_note(input, "names and types are missing: supplementary file %s not found", full);
    return dwz;
}

/* ---- .dwo files ---- */

/* True if the file has units of split DWARF (a section .debug_info.dwo). */
static bool has_split_units(struct sl_object *object)
{
    struct sl_bytes info;
    return sl_object_section(object, "debug_info.dwo", &info, NULL);
}

/* Copies `path` to `first`, unless a path is there already. Several threads call this at the same time. */
static void keep_first_path(struct split_files *files, char first[PATH_MAX], const char *path)
{
    pthread_mutex_lock(&files->lock);
    if (!first[0])
        snprintf(first, PATH_MAX, "%s", path);
    pthread_mutex_unlock(&files->lock);
}

/* Opens the mapped .dwo file if it contains the split unit `dwo_id`, and keeps it open until split_files_close. Else stores its path in
 * `stale` or `unread`, unmaps it and returns NULL. Several threads call this at the same time. */
static struct sl_object *keep_dwo(struct split_files *files, struct sl_mapping mapping, const char *path,
                                  uint64_t dwo_id)
{
    struct sl_object *object = NULL;
    bool is_read = sl_object_open(mapping.bytes, NULL, &object, NULL) == SL_OK && has_split_units(object);
    bool usable = is_read && sl_dwarf_has_split_unit(object, dwo_id);
    if (!usable)
        keep_first_path(files, is_read ? files->stale : files->unread, path);
    pthread_mutex_lock(&files->lock);
    usable = usable && sl_grow(&files->items, &files->capacity, files->count + 1, sizeof *files->items);
    if (usable)
        files->items[files->count++] = (struct split_file){mapping, object};
    pthread_mutex_unlock(&files->lock);
    if (usable)
        return object;
    sl_object_close(object);
    sl_unmap(&mapping);
    return NULL;
}

bool split_dwo_path(const char *program, struct sl_str comp_dir, struct sl_str name, size_t index, char path[PATH_MAX])
{
    /* index 0: in the compilation directory; 1: in that directory below the program's; 2: the bare file name beside the program. is_in: the
     * name is relative to comp_dir. Index 1 is only usable if comp_dir is relative, too. */
    bool is_absolute = name.size && name.data[0] == '/', is_in = comp_dir.size && !is_absolute;
    int beside = index && program ? directory_size(program) : 0;
    path[0] = '\0';
    if (index == 2)
        name = path_file_name(name);
    bool is_usable = name.size && (index == 0 || (program && (index == 2 || (is_in && comp_dir.data[0] != '/'))));
    if (index == 2 || !is_in)
        comp_dir.size = 0;
    if (is_usable && snprintf(path, PATH_MAX, "%.*s" SL_STR_FMT "%s" SL_STR_FMT, beside, program ? program : "",
                              SL_STR_ARG(comp_dir), comp_dir.size ? "/" : "", SL_STR_ARG(name)) >= PATH_MAX)
        path[0] = '\0';
    return index < 3;
}

/* Called by the DWARF reader, on several threads: opens the .dwo file `name` at the first path that has one with the split unit `dwo_id`;
 * files of other builds do not have it. NULL if there is none. */
static struct sl_object *open_dwo(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id)
{
    struct split_files *files = arg;
    const char *program = files->input->alone ? NULL : path_of_debug(files->input);
    struct sl_object *object = NULL;
    struct sl_mapping mapping;
    char path[PATH_MAX];
    pthread_mutex_lock(&files->lock);
    files->asked = true;
    pthread_mutex_unlock(&files->lock);
    for (size_t i = 0; !object && split_dwo_path(program, comp_dir, name, i, path); i++) {
        if (path[0] && sl_map_file(path, &mapping, NULL) == SL_OK)
            object = keep_dwo(files, mapping, path, dwo_id);
        else if (path[0])
            keep_first_path(files, files->not_found_path, path);
    }
    return object;
}

/* ---- object files of debug maps ---- */

/* Closes the current object file of a debug map; only one is open at a time. */
static void close_map_object(struct split_files *files)
{
    sl_object_close(files->part.object);
    sl_unmap(&files->part.mapping);
    files->part = (struct split_file){.object = NULL};
}

/* Closes the current object file of a debug map, counts it as lost, and returns NULL. The path and reason of the first one are kept for a
 * note. */
static struct sl_object *fail_map_object(struct split_files *files, const char *path, const char *why)
{
    close_map_object(files);
    if (!files->lost_parts++)
        snprintf(files->lost, sizeof files->lost, "%s %s", path, why);
    return NULL;
}

/* Called by the DWARF reader: opens an object file that the debug map names, in place of the one before. `stamp`: its modification time
 * when the program was linked; 0: unknown. NULL if it cannot be used; the reason is kept for a note. */
static struct sl_object *open_map_object(void *arg, struct sl_str name, uint64_t stamp)
{
    struct split_files *files = arg;
    char path[PATH_MAX];
    struct stat st;
    uint64_t changed = 0;
    const struct sl_object_info *info = sl_object_info(files->input->object);
    struct sl_archive archive;
    close_map_object(files);
    files->asked = true;
    if (snprintf(path, sizeof path, SL_STR_FMT, SL_STR_ARG(name)) >= (int)sizeof path)
        return fail_map_object(files, path, "has a path that is too long");
    if (member_is_named(path) ? member_map_object(&files->archive, path, &files->part.mapping, &changed, NULL) != SL_OK
                              : sl_map_file(path, &files->part.mapping, NULL) != SL_OK)
        return fail_map_object(files, path, "was not found");
    if (stat(path, &st) == 0) /* fails for a member of a library: `changed` is then the member's own time */
        changed = (uint64_t)st.st_mtim.tv_sec;
    if (stamp && changed && stamp != changed) /* its code differs from the linked program's */
        return fail_map_object(files, path, "was changed since the program was linked");
    if (sl_archive_open(files->part.mapping.bytes, &archive, NULL) == SL_OK)
        for (size_t i = 0; i < archive.count; i++) {
            if (sl_archive_object(&archive, i, NULL, &files->part.object, NULL) == SL_OK &&
                sl_object_info(files->part.object)->arch == info->arch)
                return files->part.object;
            sl_object_close(files->part.object);
            files->part.object = NULL;
        }
    return fail_map_object(files, path, "cannot be read");
}

/* ---- packages ---- */

bool split_package_path(const struct input *input, size_t index, char path[PATH_MAX])
{
    const struct sl_str debug = SL_STR(".debug");
    char real[PATH_MAX];
    const char *const given = input->options ? input->options->dwp : NULL;
    const char *const bases[] = {input->alone ? NULL : input->path, input->debug.path,
                                 input->alone ? NULL : realpath(input->path, real)};
    path[0] = '\0';
    if (given) {
        bool fits = index == 0 && strlen(given) < PATH_MAX;
        strcpy(path, fits ? given : "");
        return index == 0;
    }
    /* two indexes for each base: one for `<base>.dwp`; one for the same without .debug, if the base ends in that */
    if (index >= 2 * sizeof bases / sizeof *bases)
        return false;
    struct sl_str base = sl_str(bases[index / 2] ? bases[index / 2] : "");
    if (index % 2 && sl_str_ends(base, debug))
        base.size -= debug.size;
    else if (index % 2)
        base.size = 0;
    if (base.size && base.size + sizeof ".dwp" <= PATH_MAX)
        snprintf(path, PATH_MAX, SL_STR_FMT ".dwp", SL_STR_ARG(base));
    return true;
}

/* Returns the input's package (.dwp), opened at the first path that has one; NULL if there is none. */
static struct sl_object *find_package(struct input *input)
{
    char path[PATH_MAX];
    struct sl_object *package = input->companions[COMPANION_DWP];
    for (size_t i = 0; !package && split_package_path(input, i, path); i++)
        package = path[0] ? open_companion(input, COMPANION_DWP, path) : NULL;
    return package;
}

/* ---- opening and closing ---- */

void split_files_open(struct input *input, struct split_files *files)
{
    *files = (struct split_files){.input = input, .lock = PTHREAD_MUTEX_INITIALIZER};
    files->companions = (struct sl_companions){.dwp = find_package(input),
                                               .dwz = open_dwz(input),
                                               .open_dwo = open_dwo,
                                               .open_object = open_map_object,
                                               .arg = files};
}

/* Adds a note about units of split DWARF that were not found, with the most precise reason that is known. */
static void note_missing(struct split_files *files, size_t count, const char *name)
{
    struct input *input = files->input;
    char more[64] = "";
    if (count > 1)
        snprintf(more, sizeof more, " (and the files of %zu more units)", count - 1);
    if (files->companions.dwp && !files->asked) /* the DWARF reader searched the package alone */
        input_note(input, "inlined calls are missing: the package has no unit %s%s", name, more);
    else if (files->unread[0])
        input_note(input, "inlined calls are missing: cannot read %s%s", files->unread, more);
    else if (files->stale[0])
        input_note(input, "inlined calls are missing: %s is from a different build%s", name, more);
    else if (files->not_found_path[0])
        input_note(
            input, "inlined calls are missing: %s%s not found at %s or next to the program, and there is no %s%s.dwp",
            name, more, files->not_found_path, files->companions.dwp ? "such unit in " : "", path_of_debug(input));
    else
        input_note(input, "inlined calls are missing: %s is from a different build%s", name, more);
}

struct split_search {
    struct split_files files;
    size_t missing;
    char first[SL_MISSING_NAME];
};

/* Called for each split unit: counts it as missing if its .dwo file cannot be opened. Always returns true: go on with the next unit. */
static bool look_for_split_unit(void *arg, struct sl_str comp_dir, struct sl_str name, uint64_t dwo_id)
{
    struct split_search *search = arg;
    if (!open_dwo(&search->files, comp_dir, name, dwo_id) && !search->missing++)
        snprintf(search->first, sizeof search->first, SL_STR_FMT, SL_STR_ARG(name));
    return true;
}

void input_add_note_split_units(struct input *input, size_t most)
{
    struct sl_object *object = input_debug(input);
    struct sl_dwarf_companions wants;
    struct split_search search = {.missing = 0};
    sl_dwarf_find_companions(object, &wants);
    if (!wants.dwp) /* it has no split units */
        return;
    split_files_open(input, &search.files);
    if (!search.files.companions.dwp)
        sl_dwarf_split_units(object, most, look_for_split_unit, &search);
    split_files_close(&search.files, search.missing, search.first);
}

void split_files_close(struct split_files *files, size_t missing_units, const char *first_missing)
{
    if (missing_units)
        note_missing(files, missing_units, first_missing);
    if (files->lost_parts)
        input_note(files->input, "lines are missing: %s, which has the debug information%s; there is no %s.dSYM",
                   files->lost, files->lost_parts > 1 ? ", and others" : "", files->input->path);
    close_map_object(files);
    member_archive_close(&files->archive);
    for (size_t i = 0; i < files->count; i++) {
        sl_object_close(files->items[i].object);
        sl_unmap(&files->items[i].mapping);
    }
    free(files->items);
}
