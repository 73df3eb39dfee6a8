/* The parts of uploaded symbfiles in a bucket: names of their objects, lists and counts of them, and local copies. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "core/lru.h"
#include "core/pool.h"

/* ---- names ---- */

/* Makes the name "<kind>-<count>-<upload id>-<generation>". */
void remote_parts_name(enum symbfile_kind kind, uint64_t count, const char *upload_id, uint64_t generation,
                       char out[SET_NAME])
{
    snprintf(out, SET_NAME, "%s-%" PRIu64 "-%s-%" PRIu64, symbfile_kind_names[kind], count, upload_id, generation);
}

/* Parses kind and count of a name "<kind>-<count>-<upload id>-<generation>"; false for other names. */
bool remote_parse_parts_name(const char *name, enum symbfile_kind *kind, uint64_t *count)
{
    for (int i = 0; i < SYMBFILE_KINDS; i++) {
        size_t size = strlen(symbfile_kind_names[i]);
        int end = 0;
        if (strncmp(name, symbfile_kind_names[i], size) != 0)
            continue;
        *kind = (enum symbfile_kind)i;
        return sscanf(name + size, "-%" SCNu64 "%n", count, &end) == 1 && name[size + (size_t)end] == '-';
    }
    return false;
}

/* Makes the object name "<root><aa>/<file id>/parts/<name>/<rest>" of an executable. */
void remote_in_parts(const struct symbfile_key *file_key, const char *name, const char *rest, char out[OBJECT_NAME])
{
    char home[OBJECT_NAME];
    remote_home(file_key, home);
    snprintf(out, OBJECT_NAME, "%.*sparts/%s/%s", OBJECT_NAME / 3, home, name, rest); /* `home` is never cut */
}

/* Makes the name of a part's object. Numbers have ten digits, so that lists, which are sorted by name, are in numeric order. */
void remote_part_name(const struct symbfile_part_file *part, char out[PART_NAME])
{
    char name[PART_NAME];
    store_part_name(part, name);
    snprintf(out, PART_NAME, "%010" PRIu32 "%s", part->number, strchr(name, '.'));
}

/* ---- lists of parts ---- */

void remote_part_list_free(struct remote_part_list *list)
{
    free(list->parts);
    free(list->modified);
    *list = (struct remote_part_list){0};
}

/* Callback of remote_list(): adds a part to the list. Objects with the same number follow each other; the one written last is kept: their
 * times are ISO 8601 texts, which are compared as texts. Other names, and numbers from list->most on, are skipped. False, which ends the
 * list, only when out of memory (list->failed). */
bool remote_note_part(void *arg, const struct object_entry *object)
{
    struct remote_part_list *list = arg;
    struct symbfile_part_file part;
    char name[PART_NAME];
    struct sl_str rest = {object->name.data + list->skip, object->name.size - list->skip};
    snprintf(name, sizeof name, SL_STR_FMT, SL_STR_ARG(rest));
    if (rest.size >= sizeof name || !store_parse_part_name(name, &part) || part.number >= list->most)
        return true;
    bool again = list->count && list->parts[list->count - 1].number == part.number;
    if (!sl_grow(&list->parts, &list->capacity, list->count + 1, sizeof *list->parts) ||
        !sl_grow(&list->modified, &list->modified_capacity, list->count + 1, sizeof *list->modified)) {
        list->failed = true;
        return false;
    }
    char modified[sizeof *list->modified];
    snprintf(modified, sizeof modified, SL_STR_FMT, SL_STR_ARG(object->modified));
    size_t at = again ? list->count - 1 : list->count++;
    if (again && strcmp(modified, list->modified[at]) < 0)
        return true;
    list->parts[at] = part;
    memcpy(list->modified[at], modified, sizeof modified);
    return true;
}

enum sl_code remote_list_parts(const struct symbfile_key *file_key, const char *name, struct remote_part_list *list,
                               struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    enum symbfile_kind kind;
    remote_in_parts(file_key, name, "", prefix);
    *list = (struct remote_part_list){.skip = strlen(prefix)};
    if (!remote_parse_parts_name(name, &kind, &list->most))
        return sl_fail(error, SL_DOWNLOAD_ERROR,
                       "the bucket of the upload store has parts of a symbfile below an invalid name: \"%s\"", name);
    enum sl_code code = remote_list(prefix, "", remote_note_part, list, error);
    return code == SL_OK && list->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

/* ---- cached numbers of consecutive parts, from part 0 on; after eviction the parts are counted again ---- */

struct part_count {
    struct lru_entry entry; /* its key is `prefix` */
    uint64_t complete;      /* all parts with lower numbers exist */
    char prefix[];          /* of the names of the parts' objects */
};

static void part_count_release(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    free(LRU_ITEM(entry, struct part_count, entry));
}

static struct lru part_counts = {.max_size = UINT64_MAX, .max_count = 1024, .release = part_count_release};

/* Returns the cached number of consecutive parts; 0 if none is cached. */
static uint64_t part_count_get(const char *prefix)
{
    struct lru_entry *entry = lru_get(&part_counts, sl_str(prefix), 0);
    return entry ? LRU_ITEM(entry, struct part_count, entry)->complete : 0;
}

/* Caches the number of consecutive parts. Does nothing when out of memory: then they are counted again from part 0. */
static void part_count_put(const char *prefix, uint64_t complete)
{
    size_t size = strlen(prefix) + 1;
    struct part_count *known = malloc(sizeof *known + size);
    if (!known)
        return;
    *known = (struct part_count){.complete = complete};
    memcpy(known->prefix, prefix, size);
    known->entry.key = sl_str(known->prefix);
    if (!lru_put(&part_counts, &known->entry))
        free(known);
}

/* Drops the cached number of consecutive parts in the directory `name`, so that they are counted again from part 0. */
void remote_drop_count(const struct symbfile_key *file_key, const char *name)
{
    char prefix[OBJECT_NAME];
    remote_in_parts(file_key, name, "", prefix);
    struct lru_entry *entry = lru_find(&part_counts, sl_str(prefix));
    if (entry)
        lru_remove(&part_counts, entry);
}

void remote_clear_counts(void)
{
    lru_clear(&part_counts);
}

struct part_counting {
    size_t skip;       /* length of the prefix of the parts' names */
    uint64_t complete; /* all parts with lower numbers exist */
};

/* Callback of remote_list(), which lists the parts in numeric order: counts them; stops the list at the first missing number. */
static bool count_part(void *arg, const struct object_entry *object)
{
    struct part_counting *counting = arg;
    struct symbfile_part_file part;
    char name[PART_NAME];
    struct sl_str rest = {object->name.data + counting->skip, object->name.size - counting->skip};
    snprintf(name, sizeof name, SL_STR_FMT, SL_STR_ARG(rest));
    if (rest.size >= sizeof name || !store_parse_part_name(name, &part) || part.number < counting->complete)
        return true;
    if (part.number > counting->complete)
        return false;
    counting->complete++;
    return true;
}

/* Counts on from the cached number N of consecutive parts, by listing the names that sort after the ten digits of N. The names of part N
 * begin with these digits and a dot, so they are the first ones listed. */
enum sl_code remote_count_parts(const struct symbfile_key *file_key, const char *name, uint64_t *complete,
                                struct sl_error *error)
{
    char prefix[OBJECT_NAME], after[OBJECT_NAME];
    remote_in_parts(file_key, name, "", prefix);
    struct part_counting counting = {.skip = strlen(prefix), .complete = part_count_get(prefix)};
    snprintf(after, sizeof after, "%.*s%010" PRIu64, OBJECT_NAME - 32, prefix, counting.complete); /* never cut */
    enum sl_code code = remote_list(prefix, after, count_part, &counting, error);
    if (code == SL_OK)
        part_count_put(prefix, counting.complete);
    *complete = counting.complete;
    return code;
}

/* ---- local copies ---- */

struct part_copy { /* pool work on the local copy of a set of parts */
    const char *home;
    char path[STORE_PATH + 400]; /* of the file or directory to make */
    int fd;                      /* result: of the file; -1: failed */
};

/* Pool work: makes the directory of the copy. Sets copy->fd to 0 for success, -1 for failure: there is no file to be opened yet. */
static void copy_begin(void *arg)
{
    struct part_copy *copy = arg;
    errno = 0;
    copy->fd = files_make_directory(copy->path, 0750, FILES_DURABLE) ? 0 : -1;
}

static void copy_file(void *arg)
{
    struct part_copy *copy = arg;
    copy->fd = open(copy->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
}

static void copy_close(void *arg)
{
    close(((struct part_copy *)arg)->fd);
}

static void copy_remove(void *arg)
{
    store_remove_tree(arg);
}

/* Removes the copy, on the pool or, if that does not accept the work, on this thread: it must not be left behind. */
void remote_remove_copy(const char *home)
{
    if (pool_run(POOL_IO, copy_remove, (void *)home, NULL) != SL_OK)
        store_remove_tree(home);
}

/* Downloads the part set->have[index] from the bucket's directory `parts` into a new file "<home>/<name of the set>/<part>", named as in a
 * store that is a directory. */
static enum sl_code copy_part(const struct symbfile_key *file_key, const char *parts, const struct symbfile_set *set,
                              size_t index, const char *home, struct sl_error *error)
{
    char name[OBJECT_NAME], part[PART_NAME];
    struct part_copy copy = {.fd = -1};
    remote_part_name(&set->have[index], part);
    remote_in_parts(file_key, parts, part, name);
    store_part_name(&set->have[index], part);
    snprintf(copy.path, sizeof copy.path, "%s/%s/%s", home, set->name, part);
    enum sl_code code = pool_run(POOL_IO, copy_file, &copy, error);
    if (code == SL_OK && copy.fd < 0)
        code = sl_fail(error, SL_BUSY, "cannot create a temporary file for a symbfile part: %s", copy.path);
    if (code == SL_OK)
        code = remote_note(object_get(remote_bucket(), sl_str(name), copy.fd, NULL, error), error);
    if (copy.fd >= 0 && pool_run(POOL_IO, copy_close, &copy, NULL) != SL_OK)
        copy_close(&copy); /* the pool did not accept the work */
    return code;
}

/* Makes a new directory `home` and downloads the parts in set->have to "<home>/<name of the set>/". Removes it on failure. */
enum sl_code remote_copy_set(const struct symbfile_key *file_key, const char *parts, const struct symbfile_set *set,
                             char home[STORE_PATH], struct sl_error *error)
{
    static uint64_t number; /* makes the names of this process's directories unique */
    char tmp[STORE_PATH];
    struct part_copy copy = {.fd = -1};
    if (!store_tmp(tmp))
        return sl_fail(error, SL_BUSY,
                       "no temporary directory for symbfile parts: neither cache_dir nor symbfile.store_dir is set");
    snprintf(home, STORE_PATH, "%.*s/set-%ld-%" PRIu64, STORE_PATH - 64, tmp, (long)getpid(), ++number);
    snprintf(copy.path, sizeof copy.path, "%s/%s", home, set->name);
    enum sl_code code = pool_run(POOL_IO, copy_begin, &copy, error);
    if (code == SL_OK && copy.fd < 0)
        code = sl_fail(error, SL_BUSY, "cannot create a temporary directory for symbfile parts: %s", copy.path);
    for (size_t i = 0; code == SL_OK && i < set->have_count; i++)
        code = copy_part(file_key, parts, set, i, home, error);
    if (code != SL_OK)
        remote_remove_copy(home);
    return code;
}

enum sl_code remote_copy(const struct symbfile_key *file_key, const struct symbfile_set *wanted, char home[STORE_PATH],
                         struct sl_error *error)
{
    char parts[SET_NAME];
    struct symbfile_set set = *wanted;
    enum sl_code code = remote_manifest(file_key, &set, parts, error);
    if (code == SL_OK)
        code = remote_copy_set(file_key, parts, &set, home, error);
    free(set.have);
    return code;
}
