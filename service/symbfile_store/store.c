/* Uploaded symbfiles in a directory: stores parts, publishes a "set" (all parts of one upload) when it is complete, and deletes sets. All
 * state is in the names of files and directories. */
#include "symbfile_store/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"

enum sl_code symbfile_store_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS])
{
    char home[STORE_PATH];
    size_t count = 0;
    errno = 0;
    struct symbfile_set *all = store_home(file_key, home) ? store_sets(home, &count) : NULL;
    enum sl_code code = store_code(errno);
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        sets[kind] = (struct symbfile_set){.kind = (enum symbfile_kind)kind};
        for (size_t i = 0; i < count; i++)
            if (all[i].published && (int)all[i].kind == kind && all[i].generation > sets[kind].generation)
                sets[kind] = all[i];
    }
    free(all);
    return code;
}

/* ---- sets ---- */

/* True if two sets have the same parts, with the same contents. */
bool store_same_content(const struct symbfile_set *a, const struct symbfile_set *b)
{
    if (a->have_count != b->have_count)
        return false;
    for (size_t i = 0; i < a->have_count; i++)
        if (a->have[i].number != b->have[i].number ||
            memcmp(a->have[i].sha256, b->have[i].sha256, sizeof a->have[i].sha256) != 0)
            return false;
    return true;
}

/* Reads a stored part and calls `take` with its bytes, at most 256 KiB at a time. False with `failure` if the part cannot be read or `take`
 * returns false. */
static bool read_part(const char *path,
                      bool (*take)(void *arg, struct sl_bytes bytes, struct symbfile_failure *failure), void *arg,
                      struct symbfile_failure *failure)
{
    enum { STEP = 256 * 1024 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *buffer = malloc(STEP);
    bool ok = fd >= 0 && buffer;
    if (!ok)
        store_fail(failure, "cannot read a symbfile part in the upload store");
    for (ssize_t n; ok && (n = read(fd, buffer, STEP)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        ok = n > 0 ? take(arg, (struct sl_bytes){buffer, (size_t)n}, failure)
                   : store_fail(failure, "cannot read a symbfile part in the upload store");
    }
    free(buffer);
    sl_close(fd);
    return ok;
}

/* Makes the path of the file of the part set->have[i], "<home>/<name of the set>/<name of the part>". */
static void part_path(const char *home, const struct symbfile_set *set, size_t i, char path[STORE_PATH + 400])
{
    char name[PART_NAME];
    store_part_name(&set->have[i], name);
    snprintf(path, STORE_PATH + 400, "%s/%s/%s", home, set->name, name);
}

bool store_is_split(const struct symbfile_set *set)
{
    for (size_t i = 0; i < set->have_count; i++)
        if (set->have[i].mode != SYMBFILE_WHOLE)
            return true;
    return false;
}

static bool feed_set_reader(void *arg, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    return set_reader_feed(arg, bytes, failure);
}

/* Counts the records of a set by decoding all its parts: each as a symbfile of its own, or all as pieces of one symbfile. False with
 * `failure` if they are invalid or cannot be read. */
static bool count_records(const char *home, struct symbfile_set *set, struct symbfile_failure *failure)
{
    struct set_reader reader = {.max_bytes = store_limits.max_set_bytes, .is_split = store_is_split(set)};
    bool ok = true;
    for (size_t i = 0; i < set->have_count && ok; i++) {
        char path[STORE_PATH + 400];
        part_path(home, set, i, path);
        ok = read_part(path, feed_set_reader, &reader, failure) &&
             set_reader_end_part(&reader, i + 1 == set->have_count, failure);
    }
    set_reader_close(&reader);
    set->records = reader.records;
    return ok;
}

bool store_check_set(const char *home, struct symbfile_set *set, struct symbfile_failure *failure)
{
    uint64_t inflated = 0;
    set->records = 0;
    for (size_t i = 0; i < set->have_count; i++) {
        inflated += set->have[i].inflated;
        set->records += set->have[i].records;
    }
    if (store_is_split(set) && !count_records(home, set, failure))
        return false;
    if (inflated <= store_limits.max_set_bytes && set->records <= store_limits.max_records)
        return true;
    symbfile_fail(failure, 413, "1108", "Upload is too large.");
    return false;
}

/* Publishes a complete set in place of the published one of its kind; if both have the same contents, the new one is removed instead.
 * The new generation is higher than all others, even if the clock was set back. The caller has the lock. False with `failure`. */
static bool symbfile_store_publish(const char *home, struct symbfile_set *set, bool *must_announce,
                                   struct symbfile_failure *failure)
{
    char from[STORE_PATH + 200], to[STORE_PATH + 200];
    size_t count;
    struct symbfile_set *all = store_sets(home, &count);
    uint64_t generation = clock_wall_us(), newest = 0;
    bool same = false, ok = true;
    *must_announce = true; /* also if unchanged: whoever published it may have crashed before announcing it */
    snprintf(from, sizeof from, "%s/%s", home, set->name);
    for (size_t i = 0; i < count; i++)
        if (all[i].published && all[i].kind == set->kind && all[i].generation > newest)
            newest = all[i].generation;
    /* compares the set with the newest published one; incomplete sets have generation 0 */
    for (size_t i = 0; i < count; i++) {
        if (all[i].kind != set->kind || all[i].generation != newest || !newest || all[i].parts != set->parts)
            continue;
        same = store_load_parts(home, &all[i]) && store_same_content(&all[i], set);
        free(all[i].have);
    }
    generation = generation > newest ? generation : newest + 1;
    snprintf(to, sizeof to, "%s/%s-%" PRIu64 "-%" PRIu64 "-%" PRIu64, home, symbfile_kind_names[set->kind], generation,
             set->parts, set->records);
    if (same)
        store_remove_tree(from);
    else if (!files_publish(-1, from, to, FILES_DURABLE))
        ok = store_fail(failure, "cannot publish a complete symbfile in the upload store");
    else
        metric_add(METRIC_SYMBFILE_SETS, 1, symbfile_kind_names[set->kind], NULL, NULL);
    for (size_t i = 0; ok && !same && i < count; i++) {
        if (!all[i].published || all[i].kind != set->kind)
            continue;
        snprintf(from, sizeof from, "%s/%s", home, all[i].name);
        store_remove_tree(from);
    }
    free(all);
    return ok;
}

/* Renames the received file into the set's directory `dir`, adds it to the table, and removes the file of an older part with the same
 * number and other contents. False with errno. */
static bool stage(const struct symbfile_upload_set *a, const char *dir, struct part_table *table)
{
    char name[PART_NAME], before[PART_NAME] = "", path[STORE_PATH + 400];
    struct symbfile_part_file old;
    store_part_name(&a->part, name);
    if (part_table_get(table, a->part.number, &old))
        store_part_name(&old, before);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!files_publish(-1, a->path, path, FILES_DURABLE)) /* -1: its contents are synced already */
        return false;
    if (*before && strcmp(before, name) != 0) {
        snprintf(path, sizeof path, "%s/%s", dir, before);
        unlink(path);
    }
    return part_table_put(table, &a->part);
}

/* Lists the parts of a set that is complete according to its table. Removes files of parts that the table does not have: a crash left
 * them when they were replaced. False with errno if the directory cannot be read. */
static bool load_complete(const char *home, struct symbfile_set *set, const struct part_table *table)
{
    size_t count = 0;
    if (!store_load_parts(home, set))
        return false;
    for (size_t i = 0; i < set->have_count; i++) {
        struct symbfile_part_file listed; /* in the table */
        char path[STORE_PATH + 400], name[PART_NAME];
        if (part_table_get(table, set->have[i].number, &listed) &&
            memcmp(listed.sha256, set->have[i].sha256, sizeof listed.sha256) == 0) {
            set->have[count++] = set->have[i];
            continue;
        }
        store_part_name(&set->have[i], name);
        snprintf(path, sizeof path, "%s/%s/%s", home, set->name, name);
        unlink(path);
    }
    set->have_count = count;
    return true;
}

/* Called when the set is complete according to its table: checks and publishes it. An invalid set is removed, so that it can be sent
 * again. If files are missing in spite of the table, the set stays incomplete. False with `failure`. */
static bool complete(const char *home, const char *dir, struct symbfile_set *set, struct part_table *table,
                     bool *must_announce, struct symbfile_failure *failure)
{
    if (!load_complete(home, set, table))
        return store_fail(failure, "cannot read the parts of a symbfile in the upload store");
    bool whole = set->have_count == set->parts, ok = true;
    /* A published set has no table. If files are missing, the next part rebuilds the table from the files. */
    part_table_remove(table, home, set);
    if (whole)
        ok = store_check_set(home, set, failure);
    if (whole && ok)
        ok = symbfile_store_publish(home, set, must_announce, failure);
    else if (!ok && failure->status < 500) /* invalid; not: the store failed */
        store_remove_tree(dir);
    free(set->have);
    return ok;
}

/* Stores a received part in the directory of its incomplete set, and publishes the set if all its parts are there now. Sets
 * `*must_announce` if cached answers of look-ups may be outdated now: a set was published, or the description of the executable has
 * changed. */
static bool add_part(const struct symbfile_upload_set *a, const char *home, const char *root, bool *must_announce,
                     struct symbfile_failure *failure)
{
    struct symbfile_set set = {.kind = a->kind, .parts = a->parts};
    struct part_table table;
    char dir[STORE_PATH + 200];
    snprintf(set.name, sizeof set.name, "staging-%s-%" PRIu64 "-%s", symbfile_kind_names[a->kind], a->parts,
             a->upload_id);
    snprintf(dir, sizeof dir, "%s/%s", home, set.name);
    if (!files_make_directory(dir, 0750, FILES_DURABLE) || !part_table_open(&table, home, &set))
        return store_fail(failure, "cannot store a received symbfile part");
    bool ok = (stage(a, dir, &table) && info_update(root, home, &a->file_key.file_id, a->info, must_announce)) ||
              store_fail(failure, "cannot store a received symbfile part");
    if (ok && table.complete == table.parts)
        ok = complete(home, dir, &set, &table, must_announce, failure);
    part_table_close(&table);
    return ok;
}

bool symbfile_store_add(const struct symbfile_upload_set *a, struct symbfile_failure *failure)
{
    char home[STORE_PATH], root[STORE_PATH], store[512];
    bool must_announce = false;
    struct stat st;
    if (!symbfile_store_dir(store) || !store_root(a->file_key.scope, root) || !store_home(&a->file_key, home)) {
        symbfile_fail(failure, 404, "1301", "Not found.");
        return false;
    }
    bool ok = add_part(a, home, root, &must_announce, failure);
    if (ok && fstat(a->fd, &st) == 0)
        store_grew((uint64_t)st.st_size); /* counts for the store's size limit */
    /* announced also if `ok` is false: the description may have changed before the failure */
    if (must_announce && !store_changed(store) && ok)
        ok = store_fail(failure, "cannot announce a new symbfile to other processes");
    return ok;
}

/* ---- look-ups ---- */
enum sl_code symbfile_store_info(const struct symbfile_key *file_key, struct symbfile_info *info)
{
    char home[STORE_PATH];
    *info = (struct symbfile_info){0};
    return !store_home(file_key, home) || info_read(home, info) ? SL_OK : SL_BUSY;
}

/* True if responses show the set `a` rather than `b`: a published set rather than an incomplete one, else the newer one. */
static bool shown_before(const struct symbfile_set *a, const struct symbfile_set *b)
{
    if (a->published != b->published)
        return a->published;
    return a->published ? a->generation > b->generation : a->updated_s > b->updated_s;
}

enum sl_code symbfile_store_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                                   bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any)
{
    char home[STORE_PATH], store[512];
    size_t count = 0;
    *any = false;
    errno = 0;
    if (!symbfile_store_dir(store) || !store_present(store))
        return SL_DOWNLOAD_ERROR;
    struct symbfile_set *all = store_home(file_key, home) ? store_sets(home, &count) : NULL;
    enum sl_code code = store_code(errno);
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        known[kind] = false;
        for (size_t i = 0; i < count; i++) {
            if ((int)all[i].kind != kind || (known[kind] && !shown_before(&all[i], &sets[kind])))
                continue;
            sets[kind] = all[i];
            known[kind] = true;
        }
        if (known[kind] && !store_load_parts(home, &sets[kind])) {
            code = code == SL_OK ? store_code(errno) : code; /* SL_OK if the set was replaced meanwhile (ENOENT) */
            known[kind] = false;
        }
        for (size_t i = 0; known[kind] && !sets[kind].published && i < sets[kind].have_count; i++)
            sets[kind].records += sets[kind].have[i].records;
        *any |= known[kind];
    }
    free(all);
    enum sl_code described = symbfile_store_info(file_key, info);
    return code == SL_OK ? described : code;
}

bool symbfile_store_delete(const struct symbfile_key *file_key)
{
    char home[STORE_PATH], store[512], path[STORE_PATH + 200];
    size_t count = 0;
    errno = 0;
    struct symbfile_set *all = store_home(file_key, home) ? store_sets(home, &count) : NULL;
    int reason = errno;
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", home, all[i].name);
        store_remove_tree(path);
    }
    free(all);
    if (count && symbfile_store_dir(store))
        store_changed(store);
    store_shrank(); /* the next upload measures the store's size again */
    errno = reason;
    return count > 0;
}

/* ---- a set as one file ---- */

/* Callback of read_part(): appends bytes of a part to the file pack->fd. */
static bool append_to_pack(void *arg, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    struct set_pack *pack = arg;
    if (!sl_write_all_at(pack->fd, bytes, (off_t)pack->size))
        return store_fail(failure, "cannot copy a symbfile part of the upload store to a temporary file");
    pack->size += bytes.size;
    return true;
}

/* Appends all parts of a set to the file pack->fd, and the length of each to pack->lengths. False with `failure`. */
static bool pack_parts(const char *home, const struct symbfile_set *set, struct set_pack *pack,
                       struct symbfile_failure *failure)
{
    pack->is_split = store_is_split(set);
    pack->lengths = calloc(set->have_count + 1, sizeof *pack->lengths); /* + 1, as the number may be 0 */
    bool ok = pack->lengths || store_fail(failure, "cannot read the parts of a symbfile in the upload store");
    for (size_t i = 0; i < set->have_count && ok; i++) {
        char path[STORE_PATH + 400];
        uint64_t before = pack->size;
        part_path(home, set, i, path);
        ok = read_part(path, append_to_pack, pack, failure);
        pack->lengths[pack->count++] = pack->size - before;
    }
    return ok;
}

enum sl_code store_failure_code(const struct symbfile_failure *failure, struct sl_error *error)
{
    return sl_fail(error, failure->kind, "%.230s", *failure->cause ? failure->cause : failure->text);
}

enum sl_code store_pack_set(const char *home, const struct symbfile_set *wanted, struct set_pack *pack,
                            struct sl_error *error)
{
    struct symbfile_set set = *wanted;
    struct symbfile_failure failure = {0};
    bool ok =
        store_load_parts(home, &set) || store_fail(&failure, "cannot read the parts of a symbfile in the upload store");
    if (ok && set.have_count != set.parts) { /* the set is being removed, as a newer one has replaced it */
        errno = ENOENT;
        ok = store_fail(&failure, "cannot read the parts of a symbfile in the upload store");
    }
    ok = ok && pack_parts(home, &set, pack, &failure);
    free(set.have);
    if (ok)
        return SL_OK;
    if (failure.kind == SL_NOT_FOUND)
        return sl_fail(error, SL_NOT_FOUND, "the symbfile was replaced by a newer upload while it was read");
    return store_failure_code(&failure, error);
}
