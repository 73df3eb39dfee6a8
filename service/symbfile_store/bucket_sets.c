/* Uploaded symbfiles in a bucket: stores parts, publishes a "set" (all parts of one upload) when it is complete, and deletes sets. The
 * caller holds the lock of the executable, but that excludes other fibers of this process only: other processes and nodes may do the same
 * concurrently. */
#include "symbfile_store/bucket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

/* Sets the failure of an upload: this node is busy (SL_BUSY, SL_CANCELLED), or the store does not respond. Always returns false. */
static bool refuse(struct symbfile_failure *failure, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_BUSY || code == SL_CANCELLED)
        symbfile_fail_with_cause(failure, SL_BUSY, error->message);
    else
        symbfile_fail_unreachable(failure, error->message);
    return false;
}

/* ---- objects ---- */

/* Makes the name of the object below symbfiles/open/ that stands for an incomplete upload; its age decides when the upload expires.
 * `name` is the directory of the upload's parts; "" gives the prefix for all uploads of the executable. */
static void open_name(const struct symbfile_key *file_key, const char *name, char out[OBJECT_NAME])
{
    char hex[FILE_ID_HEX];
    sl_hex_encode(file_key->file_id.bytes, sizeof file_key->file_id.bytes, hex);
    snprintf(out, OBJECT_NAME, "symbfiles/open/%s/%s/%s", *file_key->scope ? file_key->scope : "global", hex, name);
}

static enum sl_code delete_object(const char *name, struct sl_error *error)
{
    return remote_note(object_delete(remote_bucket(), sl_str(name), NULL, error), error);
}

/* ---- publishing ---- */

struct bucket_set_publishing { /* a set of parts that is stored, published or removed */
    const struct symbfile_key *file_key;
    const char *upload_id;
    char parts[SET_NAME]; /* name of the directory of its parts */
    struct symbfile_set set;
    bool must_announce; /* look-ups may have another answer now: other nodes must be told */
};

struct bucket_set_check { /* store_check_set() on the pool */
    const char *home;
    struct symbfile_set *set;
    struct symbfile_failure *failure;
    bool good;
};

static void check_job(void *arg)
{
    struct bucket_set_check *check = arg;
    check->good = store_check_set(check->home, check->set, check->failure);
}

/* Checks that the parts of a set are valid together. Pieces of one split symbfile are downloaded and decoded. A part that is a symbfile
 * of its own was checked when it arrived: for such parts only the sizes in their names are checked against the limits. False with
 * `failure`: the upload is invalid or, with a status of 500 and above, the store has failed. */
static bool check_parts(struct bucket_set_publishing *p, struct symbfile_failure *failure)
{
    char home[STORE_PATH] = "";
    struct sl_error error;
    struct bucket_set_check check = {home, &p->set, failure, false};
    if (store_is_split(&p->set)) {
        enum sl_code code = remote_copy_set(p->file_key, p->parts, &p->set, home, &error);
        if (code != SL_OK)
            return refuse(failure, code, &error);
    }
    enum sl_code code = pool_run(POOL_CONVERT, check_job, &check, &error);
    if (*home)
        remote_remove_copy(home);
    return code == SL_OK ? check.good : refuse(failure, SL_BUSY, &error);
}

/* Deletes the object that stands for the set as an incomplete upload. */
static enum sl_code remove_open(const struct bucket_set_publishing *p, struct sl_error *error)
{
    char name[OBJECT_NAME];
    open_name(p->file_key, p->parts, name);
    return delete_object(name, error);
}

/* Removes the parts of a set, then its object below open/: if this ends in between, remote_sweep() still finds the set by that object. */
static enum sl_code drop_parts(const struct bucket_set_publishing *p, struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    remote_in_parts(p->file_key, p->parts, "", prefix);
    enum sl_code code = remote_remove(prefix, NULL, error);
    return code == SL_OK ? remove_open(p, error) : code;
}

/* Writes the object whose name and contents describe the published set. This one write publishes it. */
static enum sl_code write_marker(struct bucket_set_publishing *p, uint64_t generation, struct sl_error *error)
{
    char name[OBJECT_NAME];
    struct sl_buf text = {0};
    remote_home(p->file_key, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "%s-%" PRIu64 "-%" PRIu64 "-%" PRIu64 "-%s",
             symbfile_kind_names[p->set.kind], generation, p->set.parts, p->set.records, p->upload_id);
    sl_buf_printf(&text, "%s\n", p->parts);
    for (size_t i = 0; i < p->set.have_count; i++) {
        char part[PART_NAME];
        remote_part_name(&p->set.have[i], part);
        sl_buf_printf(&text, "%s\n", part);
    }
    enum sl_code code =
        text.failed ? sl_fail(error, SL_BUSY, "out of memory") : remote_write(name, sl_buf_view(&text), error);
    sl_buf_free(&text);
    return code;
}

/* Removes a published set that was replaced: first the object that describes it, so that no published set lacks parts; then its parts.
 * The parts stay if the new set uses them too, and also if their list could not be read, as it is not known then whether it uses them. */
static enum sl_code remove_published(const struct bucket_set_publishing *p, const struct remote_marker *marker,
                                     struct sl_error *error)
{
    char parts[SET_NAME], name[OBJECT_NAME];
    struct symbfile_set set = marker->set;
    enum sl_code code = remote_manifest(p->file_key, &set, parts, error);
    free(set.have);
    if (code == SL_NOT_FOUND)
        return SL_OK; /* another node has removed it */
    bool shared = code != SL_OK || strcmp(parts, p->parts) == 0;
    remote_home(p->file_key, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "%s", marker->set.name);
    enum sl_code removed = delete_object(name, error);
    if (shared || removed != SL_OK)
        return removed;
    remote_in_parts(p->file_key, parts, "", name);
    return remote_remove(name, NULL, error);
}

/* Publishes the set in place of the published one, if there is one. If both have the same contents the new one is dropped instead.
 * Errors of removing the old set are ignored: it has a lower generation, so it is no longer used. */
static enum sl_code publish(struct bucket_set_publishing *p, struct sl_error *error)
{
    struct remote_marker markers[MARKERS];
    size_t count = 0;
    char parts[SET_NAME] = "";
    enum sl_code code = remote_markers(p->file_key, p->set.kind, markers, &count, error);
    const struct remote_marker *newest = remote_newest(markers, count);
    bool same = false; /* the published set has the same parts with the same contents */
    if (code == SL_OK && newest && newest->set.parts == p->set.parts) {
        struct symbfile_set before = newest->set;
        code = remote_manifest(p->file_key, &before, parts, error);
        same = code == SL_OK && store_same_content(&before, &p->set);
        free(before.have);
        code = code == SL_NOT_FOUND ? SL_OK : code;
    }
    if (code != SL_OK)
        return code;
    p->must_announce = true; /* also if unchanged: whoever published it may have crashed before announcing it */
    /* if it is the published set itself, left as incomplete by a crash, its parts must stay */
    if (same)
        return strcmp(parts, p->parts) == 0 ? remove_open(p, error) : drop_parts(p, error);
    uint64_t generation = clock_wall_us(), before = newest ? newest->set.generation : 0;
    code = write_marker(p, generation > before ? generation : before + 1, error);
    if (code != SL_OK)
        return code;
    metric_add(METRIC_SYMBFILE_SETS, 1, symbfile_kind_names[p->set.kind], NULL, NULL);
    for (size_t i = 0; i < count; i++)
        remove_published(p, &markers[i], error);
    remove_open(p, error);
    return SL_OK;
}

/* Called when all parts seem to be there: lists them again, as another node may have removed some meanwhile. If all are there, checks them
 * and publishes the set; else does nothing and returns true. An invalid set is removed; if the store failed, the parts stay. False with
 * `failure`. */
static bool complete(struct bucket_set_publishing *p, struct symbfile_failure *failure)
{
    struct remote_part_list list;
    struct sl_error error;
    enum sl_code code = remote_list_parts(p->file_key, p->parts, &list, &error);
    p->set.have = list.parts;
    p->set.have_count = list.count;
    bool whole = code == SL_OK && list.count == p->set.parts, good = code == SL_OK || refuse(failure, code, &error);
    /* the cached count may be too high now, as parts were removed meanwhile or will be */
    remote_drop_count(p->file_key, p->parts);
    if (whole) {
        good = check_parts(p, failure);
        code = good ? publish(p, &error) : failure->status < 500 ? drop_parts(p, &error) : SL_OK; /* < 500: invalid */
        if (good && code != SL_OK)
            good = refuse(failure, code, &error);
    }
    remote_part_list_free(&list);
    return good;
}

/* ---- adding ---- */

/* Stores the received part below the directory `parts`, unless it is there already, and removes an older part with the same number. The
 * object below open/ is written first, by which remote_sweep() finds a set that stays incomplete. */
static enum sl_code stage(const struct symbfile_upload_set *a, const char *parts, struct sl_error *error)
{
    char prefix[OBJECT_NAME], number[32], name[OBJECT_NAME], part[PART_NAME];
    struct remote_part_list list = {.most = a->parts};
    snprintf(number, sizeof number, "%010" PRIu32 ".", a->part.number);
    remote_in_parts(&a->file_key, parts, "", prefix);
    list.skip = strlen(prefix);
    remote_in_parts(&a->file_key, parts, number, prefix);
    enum sl_code code = remote_list(prefix, "", remote_note_part, &list, error);
    open_name(&a->file_key, parts, name);
    if (code == SL_OK)
        code = remote_write(name, SL_STR(""), error);
    remote_part_name(&a->part, part);
    remote_in_parts(&a->file_key, parts, part, name);
    bool there = list.count && memcmp(list.parts[0].sha256, a->part.sha256, sizeof a->part.sha256) == 0;
    if (code == SL_OK && !there)
        code = remote_note(object_put_file(remote_bucket(), sl_str(name), a->fd, remote_contents, NULL, error), error);
    if (code == SL_OK && list.count && !there) { /* after the new part is stored, so that one of them always exists */
        remote_part_name(&list.parts[0], part);
        remote_in_parts(&a->file_key, parts, part, name);
        code = delete_object(name, error);
    }
    remote_part_list_free(&list);
    return code;
}

/* Writes the empty object "<root>by-id/<id>/<file id>", by which the executable is found by its build id or debug id. Does nothing for an
 * empty id. */
static enum sl_code write_id(const struct symbfile_key *file_key, const char *id, struct sl_error *error)
{
    char name[OBJECT_NAME], hex[FILE_ID_HEX];
    if (!*id)
        return SL_OK;
    sl_hex_encode(file_key->file_id.bytes, sizeof file_key->file_id.bytes, hex);
    remote_root(file_key->scope, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "by-id/%s/%s", id, hex);
    return remote_write(name, SL_STR(""), error);
}

/* Merges the description in an upload into the stored one of the executable. Writes the by-id objects before the description, so that the
 * executable can be found by every id in a stored description. Sets `*must_announce` if the description changes. */
static enum sl_code update_info(const struct symbfile_upload_set *a, bool *must_announce, struct sl_error *error)
{
    struct symbfile_info info;
    char name[OBJECT_NAME];
    struct sl_buf json = {0};
    enum sl_code code = remote_info(&a->file_key, &info, error);
    if (code != SL_OK || !info_merge(&info, a->info))
        return code;
    *must_announce = true;
    code = write_id(&a->file_key, info.build_id, error);
    if (code == SL_OK)
        code = write_id(&a->file_key, info.debug_id, error);
    info_format(&info, &json);
    remote_home(&a->file_key, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "info");
    if (code == SL_OK)
        code = json.failed ? sl_fail(error, SL_BUSY, "out of memory") : remote_write(name, sl_buf_view(&json), error);
    sl_buf_free(&json);
    return code;
}

/* Makes the name of the directory for the set's parts. If the newest published set has the same number of parts and the same upload id,
 * the name contains the generation of that set, so that it differs from the name of that set's directory; otherwise it contains 0. */
static enum sl_code find_parts_name(const struct symbfile_upload_set *a, char out[SET_NAME], struct sl_error *error)
{
    struct remote_marker markers[MARKERS];
    size_t count = 0;
    enum sl_code code = remote_markers(&a->file_key, a->kind, markers, &count, error);
    const struct remote_marker *newest = remote_newest(markers, count);
    bool again = newest && newest->set.parts == a->parts && strcmp(newest->upload_id, a->upload_id) == 0;
    remote_parts_name(a->kind, a->parts, a->upload_id, again ? newest->set.generation : 0, out);
    return code;
}

/* Stores the part and publishes its set if all parts are there now. Other nodes are told only if look-ups may have another answer: a set
 * was published, or the description of the executable has changed. */
bool remote_add(const struct symbfile_upload_set *a, struct symbfile_failure *failure)
{
    struct bucket_set_publishing p = {
        .file_key = &a->file_key, .upload_id = a->upload_id, .set = {.kind = a->kind, .parts = a->parts}};
    struct sl_error error;
    uint64_t count = 0;
    bool good = true;
    enum sl_code code = find_parts_name(a, p.parts, &error);
    if (code == SL_OK)
        code = stage(a, p.parts, &error);
    if (code == SL_OK)
        code = update_info(a, &p.must_announce, &error);
    if (code == SL_OK)
        code = remote_count_parts(&a->file_key, p.parts, &count, &error);
    if (code == SL_OK && count >= a->parts)
        good = complete(&p, failure);
    if (code == SL_OK && good && p.must_announce)
        code = remote_changed(&error);
    return code == SL_OK ? good : refuse(failure, code, &error);
}

/* ---- look-ups ---- */

struct staged_upload { /* among the incomplete sets of one kind, the one that got a part last */
    size_t skip;       /* length of "<root><aa>/<file id>/parts/" */
    enum symbfile_kind kind;
    char name[SET_NAME], modified[40]; /* name of its directory; time when it got the part */
};

/* Callback of remote_list(): keeps the directory of the part that was stored last. Times are ISO 8601 texts, so they can be compared as
 * texts. */
static bool note_staged(void *arg, const struct object_entry *object)
{
    struct staged_upload *staged = arg;
    struct sl_str rest = {object->name.data + staged->skip, object->name.size - staged->skip};
    const char *slash = memchr(rest.data, '/', rest.size);
    char modified[sizeof staged->modified];
    snprintf(modified, sizeof modified, SL_STR_FMT, SL_STR_ARG(object->modified));
    if (slash && slash - rest.data < SET_NAME && strcmp(modified, staged->modified) >= 0) {
        memcpy(staged->modified, modified, sizeof modified);
        snprintf(staged->name, sizeof staged->name, "%.*s", (int)(slash - rest.data), rest.data);
    }
    return true;
}

/* Converts the time of an object, an ISO 8601 text, to seconds since the epoch; 0 if it has another format. */
static int64_t parse_seconds(const char *modified)
{
    struct tm tm = {0};
    return strptime(modified, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

/* Among the incomplete sets of this kind, takes the one that got a part last, and fills in `set` and its parts. `*known` is set to true
 * only if there is one. */
static enum sl_code staged_status(const struct symbfile_key *file_key, enum symbfile_kind kind,
                                  struct symbfile_set *set, bool *known, struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    struct staged_upload staged = {.kind = kind};
    struct remote_part_list list = {0};
    enum symbfile_kind found;
    remote_home(file_key, prefix);
    snprintf(prefix + strlen(prefix), sizeof prefix - strlen(prefix), "parts/");
    staged.skip = strlen(prefix);
    snprintf(prefix + staged.skip, sizeof prefix - staged.skip, "%s-", symbfile_kind_names[kind]);
    *set = (struct symbfile_set){.kind = kind};
    enum sl_code code = remote_list(prefix, "", note_staged, &staged, error);
    if (code != SL_OK || !remote_parse_parts_name(staged.name, &found, &set->parts)) /* empty name: there is none */
        return code;
    code = remote_list_parts(file_key, staged.name, &list, error);
    set->have = list.parts;
    set->have_count = list.count;
    set->updated_s = parse_seconds(staged.modified);
    for (size_t i = 0; i < list.count; i++)
        set->records += list.parts[i].records;
    free(list.modified);
    *known = code == SL_OK && set->have_count;
    return code;
}

/* Gets the published set of each kind or, if there is none, the incomplete one, with its parts. known[kind]: there is a set of this kind,
 * published or incomplete. `*any`: there is a set of at least one kind; then `info` is read too. */
enum sl_code remote_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                           bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any, struct sl_error *error)
{
    enum sl_code code = remote_published(file_key, sets, error);
    *any = false;
    for (int kind = 0; code == SL_OK && kind < SYMBFILE_KINDS; kind++) {
        char parts[SET_NAME];
        known[kind] = sets[kind].generation != 0;
        code = known[kind] ? remote_manifest(file_key, &sets[kind], parts, error)
                           : staged_status(file_key, (enum symbfile_kind)kind, &sets[kind], &known[kind], error);
        *any |= known[kind];
    }
    if (code == SL_OK && *any)
        code = remote_info(file_key, info, error);
    return code;
}

/* Removes all uploads of an executable: first the objects of published sets ("r...": ranges and returnpads), so that no published set lacks
 * parts; then the parts, then the objects of incomplete uploads. `*any`: there were some. */
enum sl_code remote_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error)
{
    char home[OBJECT_NAME], prefix[OBJECT_NAME];
    size_t count = 0;
    remote_home(file_key, home); /* much shorter than OBJECT_NAME, so it is not cut below */
    snprintf(prefix, sizeof prefix, "%.*sr", OBJECT_NAME - 8, home);
    enum sl_code code = remote_remove(prefix, &count, error);
    if (code == SL_OK && count) /* look-ups find only published sets, so only these can be in cached answers */
        code = remote_changed(error);
    snprintf(prefix, sizeof prefix, "%.*sparts/", OBJECT_NAME - 8, home);
    if (code == SL_OK)
        code = remote_remove(prefix, &count, error);
    open_name(file_key, "", prefix);
    if (code == SL_OK)
        code = remote_remove(prefix, NULL, error);
    *any = count > 0;
    return code;
}

/* ---- incomplete uploads ---- */

struct expired { /* objects below symbfiles/open/ that are too old */
    char (*names)[OBJECT_NAME];
    size_t count;
    int64_t before_s; /* too old: written at this time or before */
};

/* Callback of remote_list(): records an object that is too old; one whose time cannot be read is kept. Stops the list when the array is
 * full. */
static bool note_expired(void *arg, const struct object_entry *object)
{
    struct expired *expired = arg;
    char modified[40];
    snprintf(modified, sizeof modified, SL_STR_FMT, SL_STR_ARG(object->modified));
    int64_t seconds = parse_seconds(modified);
    if (seconds && seconds <= expired->before_s && object->name.size < OBJECT_NAME)
        snprintf(expired->names[expired->count++], OBJECT_NAME, SL_STR_FMT, SL_STR_ARG(object->name));
    return expired->count < MAX_LISTED_OBJECTS;
}

/* Parses "symbfiles/open/<scope>/<file id>/<parts>"; the scope "global" stands for the empty one. False for other names. */
static bool parse_open_name(const char *name, struct symbfile_key *file_key, char parts[SET_NAME])
{
    char scope[SYMBFILE_SCOPE] = "", hex[FILE_ID_HEX] = "", rest[SET_NAME] = "";
    size_t size;
    *file_key = (struct symbfile_key){.scope = ""};
    /* the widths are the sizes of the three arrays, less one for the NUL */
    if (sscanf(name, "symbfiles/open/%35[^/]/%32[0-9a-f]/%159s", scope, hex, rest) != 3 ||
        !sl_hex_decode(sl_str(hex), file_key->file_id.bytes, sizeof file_key->file_id.bytes, &size) ||
        size != sizeof file_key->file_id.bytes)
        return false;
    if (strcmp(scope, "global") != 0)
        memcpy(file_key->scope, scope, sizeof scope);
    memcpy(parts, rest, sizeof rest);
    return true;
}

/* Removes an expired incomplete upload, by the name of its object below open/. If its parts are those of a published set, a crash has
 * left only that object behind: then the parts stay. An object whose name cannot be parsed is removed. */
static enum sl_code drop_expired(const char *name, struct sl_error *error)
{
    struct bucket_set_publishing p = {.set = {.parts = 0}};
    struct symbfile_key file_key;
    struct remote_marker markers[MARKERS];
    size_t count = 0;
    bool published = false;
    if (!parse_open_name(name, &file_key, p.parts) || !remote_parse_parts_name(p.parts, &p.set.kind, &p.set.parts))
        return delete_object(name, error);
    p.file_key = &file_key;
    enum sl_code code = remote_markers(&file_key, p.set.kind, markers, &count, error);
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        char parts[SET_NAME];
        code = remote_manifest(&file_key, &markers[i].set, parts, error);
        free(markers[i].set.have);
        published |= code == SL_OK && strcmp(parts, p.parts) == 0;
        code = code == SL_NOT_FOUND ? SL_OK : code;
    }
    if (code != SL_OK)
        return code;
    return published ? remove_open(&p, error) : drop_parts(&p, error);
}

enum sl_code remote_sweep(struct sl_error *error)
{
    int64_t ttl_s = (int64_t)(store_limits.staging_ttl_ns / 1000000000);
    struct expired expired = {.names = malloc(MAX_LISTED_OBJECTS * sizeof *expired.names),
                              .before_s = clock_wall_s() - ttl_s};
    enum sl_code code = expired.names ? remote_list("symbfiles/open/", "", note_expired, &expired, error)
                                      : sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; code == SL_OK && i < expired.count; i++) /* more than MAX_LISTED_OBJECTS: the next time */
        code = drop_expired(expired.names[i], error);
    free(expired.names);
    return code;
}
