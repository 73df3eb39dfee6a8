/* The executables to push: named files, files below a directory, files that a process has mapped. */
#include "cli/push_symbols/push.h"

#include <errno.h>
#include "cli/file_walk.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

/* How many files below a directory are opened: a directory with more is probably not the one that was meant. */
enum { MAX_WALKED = 200000 };

/* Adds a copy of `path`. `hidden`: length of its prefix that messages leave out (`/proc/PID/root`). `named`: the user named the file. False
 * when out of memory. */
static bool push_list_add(struct push_list *list, const char *path, size_t hidden, bool named)
{
    char *copy = strdup(path);
    if (!copy || !sl_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        free(copy);
        return false;
    }
    list->items[list->count++] = (struct push_item){copy, copy + hidden, named};
    return true;
}

void push_list_free(struct push_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
}

/* Reports an error of a file or directory; returns `status`. */
static int push_list_fail(int status, const char *path, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", path, why);
    return status;
}

/* True if the file is a program or library of the only format whose symbols can be sent: 64-bit little-endian ELF. */
static bool is_executable(const char *path)
{
    struct sl_mapping mapping;
    struct sl_symbfile_image *image = NULL;
    struct sl_object *object = NULL;
    bool executable = false;
    if (sl_map_file(path, &mapping, NULL) != SL_OK)
        return false;
    if (sl_format_detect(mapping.bytes) == SL_FORMAT_ELF &&
        sl_object_open(mapping.bytes, NULL, &object, NULL) == SL_OK &&
        sl_symbfile_image_open(object, &image, NULL) == SL_OK) {
        enum sl_object_kind kind = sl_object_info(object)->kind;
        /* a statically linked program may be detected as a debug file (SL_KIND_DBG), but a debug file has no code */
        struct sl_bytes code;
        executable = kind == SL_KIND_EXE || kind == SL_KIND_LIB ||
                     (kind == SL_KIND_DBG && sl_object_section(object, "text", &code, NULL) && code.size);
    }
    sl_symbfile_image_close(image);
    sl_object_close(object);
    sl_unmap(&mapping);
    return executable;
}

/* Adds all programs and libraries below a directory; what cannot be read is skipped with a warning. Returns a push_status; errors are
 * reported. */
static int add_below(struct push_list *list, const char *path)
{
    char *roots[] = {(char *)path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, file_walk_by_name);
    int status = walk ? PUSH_OK : push_list_fail(PUSH_FAILED, path, strerror(errno));
    size_t walked = 0;
    for (FTSENT *entry; status == PUSH_OK && walk && (entry = fts_read(walk));) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
            fprintf(stderr, "warning: cannot read %s: %s\n", entry->fts_path, strerror(entry->fts_errno));
        if (entry->fts_info != FTS_F)
            continue;
        if (walked++ == MAX_WALKED)
            status = push_list_fail(PUSH_FAILED, path, "more than 200000 files in the directory");
        else if (is_executable(entry->fts_path) && !push_list_add(list, entry->fts_path, 0, false))
            status = push_list_fail(PUSH_FAILED, path, "out of memory");
    }
    if (walk)
        fts_close(walk);
    return status;
}

int push_list_path(struct push_list *list, const char *path)
{
    if (path_is_directory(path))
        return add_below(list, path);
    return push_list_add(list, path, 0, true) ? PUSH_OK : push_list_fail(PUSH_FAILED, path, "out of memory");
}

/* True if the path is in the list already: a process maps a library several times. */
static bool is_listed(const struct push_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return true;
    return false;
}

/* Builds the path through which the deleted file `name`, still mapped at `range`, can be opened. For the program of the process that is
 * /proc/PID/exe, for other files their entry in map_files. Returns the length of the path, as snprintf does. */
static int path_of_deleted(const char *pid, const char *range, struct sl_str name, char *path, size_t size)
{
    char link[64], target[4200];
    snprintf(link, sizeof link, "/proc/%s/exe", pid);
    ssize_t length = readlink(link, target, sizeof target);
    if (length > 0 && sl_str_equal((struct sl_str){target, (size_t)length}, name))
        return snprintf(path, size, "%s", link);
    return snprintf(path, size, "/proc/%s/map_files/%s", pid, range);
}

/* Adds the file of a line of /proc/PID/maps (proc(5)), `range permissions offset device inode path`, if it is a program or library. It is
 * opened below /proc/PID/root, because the process may have another root directory, or, if deleted, through the mapping. False when out
 * of memory. */
static bool add_mapping(struct push_list *list, const char *pid, const char *line)
{
    char path[4200], range[64], rights[8];
    int at = 0, hidden = 0;
    /* skips memory without a file, or without code */
    if (sscanf(line, "%63s %7s %*s %*s %*s %n", range, rights, &at) != 2 || !at || line[at] != '/' || rights[2] != 'x')
        return true;
    struct sl_str name = {line + at, strcspn(line + at, "\n")};
    bool deleted = sl_str_ends(name, SL_STR(" (deleted)"));
    int size = deleted ? path_of_deleted(pid, range, name, path, sizeof path)
                       : snprintf(path, sizeof path, "/proc/%s/root%n" SL_STR_FMT, pid, &hidden, SL_STR_ARG(name));
    if (size >= (int)sizeof path || is_listed(list, path))
        return true;
    if (access(path, R_OK) != 0)
        fprintf(stderr, "warning: cannot read " SL_STR_FMT ": %s\n", SL_STR_ARG(name), strerror(errno));
    if (!is_executable(path))
        return true;
    return push_list_add(list, path, (size_t)hidden, false);
}

int push_list_process(struct push_list *list, const char *pid)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    /* a number of 32 bits has at most 10 digits */
    if (!*pid || strspn(pid, "0123456789") != strlen(pid) || strlen(pid) > 10) {
        fprintf(stderr, "error: --pid: '%.60s' is not a process id\n", pid);
        options_try_help("push-symbols");
        return PUSH_USAGE;
    }
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return push_list_fail(PUSH_FAILED, path, strerror(errno));
    bool ok = true;
    while (ok && getline(&line, &capacity, maps) > 0)
        ok = add_mapping(list, pid, line);
    free(line);
    fclose(maps);
    return ok ? PUSH_OK : push_list_fail(PUSH_FAILED, path, "out of memory");
}
