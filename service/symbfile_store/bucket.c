/* Uploaded symbfiles in a bucket: reads, writes and lists objects, and finds published "sets" (a set is all parts of one upload). */
#include "symbfile_store/bucket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/grow.h"
#include "core/log.h"
#include "core/loop.h"

enum {
    MAX_PAGES = 10000, /* of a list; a longer one is an error of the server */
    /* largest objects that are read, in bytes */
    INFO_BYTES = 64 << 10,
    MANIFEST_BYTES = 256 << 20,
    GENERATION_BYTES = 64,
};
#define POLL_NS UINT64_C(2000000000) /* time limit for reading the generation */

static struct {
    struct object_store store;
    const struct object_store *bucket; /* `store`; NULL: no bucket */
    struct sl_arena arena;
} remote;

/* ---- start and end ---- */

/* Opens the bucket of the configuration, if there is one and it is not open yet. A bucket that cannot be used is only
 * logged. */
void remote_open(const struct config *config)
{
    const char *key;
    struct sl_error error;
    const struct bucket_config *bucket = &config->symbfile.bucket;
    if (remote.bucket || !bucket_is_configured(bucket))
        return;
    /* "uploads" is the label of its requests in the metrics */
    if (object_store_open(&remote.store, bucket, "uploads", &remote.arena, &key, &error) == SL_OK)
        remote.bucket = &remote.store;
    else
        log_error("symbfile", "cannot use the configured bucket as the upload store", LOG_STR("key", key),
                  LOG_ERR(&error));
}

void remote_close(void)
{
    remote_clear_counts();
    remote.bucket = NULL;
    sl_arena_free(&remote.arena);
}

const struct object_store *remote_bucket(void)
{
    return remote.bucket;
}

/* Records for operators whether the store responds: it does if the result is SL_OK or SL_NOT_FOUND. SL_BUSY and SL_CANCELLED are conditions
 * of this process and change nothing; other codes mean that it does not. */
enum sl_code remote_note(enum sl_code code, const struct sl_error *error)
{
    if (code == SL_OK || code == SL_NOT_FOUND)
        store_note(NULL);
    else if (code != SL_BUSY && code != SL_CANCELLED)
        store_note(error->message);
    return code;
}

const struct object_contents remote_contents = {.media_type = "application/octet-stream", .no_transform = true};

enum sl_code remote_write(const char *name, struct sl_str text, struct sl_error *error)
{
    struct object_contents contents = remote_contents;
    contents.bytes = (struct sl_bytes){(const uint8_t *)text.data, text.size};
    return remote_note(object_put(remote.bucket, sl_str(name), &contents, NULL, error), error);
}

/* ---- names ---- */

void remote_root(const char *scope, char out[OBJECT_NAME])
{
    snprintf(out, OBJECT_NAME, *scope ? "symbfiles/scopes/%s/" : "symbfiles/", scope);
}

void remote_home(const struct symbfile_key *file_key, char out[OBJECT_NAME])
{
    char hex[FILE_ID_HEX], root[OBJECT_NAME];
    sl_hex_encode(file_key->file_id.bytes, sizeof file_key->file_id.bytes, hex);
    remote_root(file_key->scope, root);
    snprintf(out, OBJECT_NAME, "%.*s%.2s/%s/", OBJECT_NAME / 2, root, hex, hex); /* `root` is shorter, and never cut */
}

/* Parses the name of the object by which a set of this kind is published, "<kind>-<generation>-<parts>-<records>-<upload id>". False for
 * other names. The generation is the time of publication in microseconds since the epoch. */
static bool parse_marker(struct sl_str name, enum symbfile_kind kind, struct remote_marker *marker)
{
    struct symbfile_set *set = &marker->set;
    const char *word = symbfile_kind_names[kind];
    size_t size = strlen(word);
    int end = 0;
    *marker = (struct remote_marker){.set = {.kind = kind, .published = true}};
    if (name.size >= sizeof set->name || !sl_str_starts(name, sl_str(word)))
        return false;
    memcpy(set->name, name.data, name.size);
    if (sscanf(set->name + size, "-%" SCNu64 "-%" SCNu64 "-%" SCNu64 "%n", &set->generation, &set->parts, &set->records,
               &end) != 3 ||
        set->name[size + (size_t)end] != '-')
        return false;
    set->updated_s = (int64_t)(set->generation / 1000000);
    const char *upload_id = set->name + size + (size_t)end + 1;
    return snprintf(marker->upload_id, sizeof marker->upload_id, "%s", upload_id) < (int)sizeof marker->upload_id;
}

/* ---- lists ---- */

/* True if the names of the page are sorted and come after `last`, the last name of the page before; `last` becomes the last of them. False
 * for a server that repeats a page, whose list would never end. */
static bool page_follows(const struct object_list *objects, char last[OBJECT_NAME])
{
    for (size_t i = 0; i < objects->count; i++) {
        char name[OBJECT_NAME];
        snprintf(name, sizeof name, SL_STR_FMT, SL_STR_ARG(objects->items[i].name));
        if (objects->items[i].name.size >= sizeof name || strcmp(name, last) <= 0)
            return false;
        memcpy(last, name, sizeof name);
    }
    return true;
}

/* Lists page by page, and records after each page whether the store responds. A server that repeats names, or whose list does not end,
 * must not keep this fiber forever: SL_DOWNLOAD_ERROR. */
enum sl_code remote_list(const char *prefix, const char *after, remote_listener *each, void *arg,
                         struct sl_error *error)
{
    struct object_list *objects = malloc(sizeof *objects);
    char last[OBJECT_NAME];
    bool more = true;
    enum sl_code code = objects ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    snprintf(last, sizeof last, "%s", after);
    for (unsigned pages = 0; code == SL_OK && more; pages++) {
        code = object_list(remote.bucket, sl_str(prefix), sl_str(last), objects, error);
        if (code == SL_OK && (!page_follows(objects, last) || pages == MAX_PAGES))
            code = sl_fail(error, SL_DOWNLOAD_ERROR,
                           "the bucket of the upload store sends an object list that is unsorted or does not end");
        remote_note(code, error);
        more = code == SL_OK && objects->more && objects->count;
        for (size_t i = 0; code == SL_OK && i < objects->count; i++) {
            /* a server that ignores the prefix lists others too, but the callbacks cut it off unchecked */
            bool inside = sl_str_starts(objects->items[i].name, sl_str(prefix));
            if (inside && !each(arg, &objects->items[i])) {
                more = false;
                break;
            }
        }
        object_list_free(objects);
    }
    free(objects);
    return code;
}

struct removal {
    char (*names)[OBJECT_NAME];
    size_t count;
};

/* Callback of remote_list(): records the name of an object to be removed; stops the list when the array is full. */
static bool note_name(void *arg, const struct object_entry *object)
{
    struct removal *removal = arg;
    if (object->name.size < OBJECT_NAME)
        snprintf(removal->names[removal->count++], OBJECT_NAME, SL_STR_FMT, SL_STR_ARG(object->name));
    return removal->count < MAX_LISTED_OBJECTS;
}

/* Lists at most MAX_LISTED_OBJECTS names and removes these objects, again and again until fewer are listed. */
enum sl_code remote_remove(const char *prefix, size_t *count, struct sl_error *error)
{
    struct removal removal = {.names = malloc(MAX_LISTED_OBJECTS * sizeof *removal.names)};
    enum sl_code code = removal.names ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    do {
        removal.count = 0;
        code = code == SL_OK ? remote_list(prefix, "", note_name, &removal, error) : code;
        for (size_t i = 0; code == SL_OK && i < removal.count; i++)
            code = remote_note(object_delete(remote.bucket, sl_str(removal.names[i]), NULL, error), error);
        if (count)
            *count += removal.count;
    } while (code == SL_OK && removal.count == MAX_LISTED_OBJECTS);
    free(removal.names);
    return code;
}

/* ---- published sets ---- */

struct marker_list {
    size_t skip; /* length of the executable's prefix */
    enum symbfile_kind kind;
    struct remote_marker *markers;
    size_t count;
};

/* Callback of remote_list(): adds a published set of the wanted kind; stops the list after MARKERS sets. The object's name is parsed
 * without the prefix of its executable, list->skip bytes. */
static bool note_marker(void *arg, const struct object_entry *object)
{
    struct marker_list *list = arg;
    struct sl_str name = {object->name.data + list->skip, object->name.size - list->skip};
    if (parse_marker(name, list->kind, &list->markers[list->count]))
        list->count++;
    return list->count < MARKERS;
}

enum sl_code remote_markers(const struct symbfile_key *file_key, enum symbfile_kind kind,
                            struct remote_marker markers[MARKERS], size_t *count, struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    remote_home(file_key, prefix);
    struct marker_list list = {.skip = strlen(prefix), .kind = kind, .markers = markers};
    snprintf(prefix + list.skip, sizeof prefix - list.skip, "%s-", symbfile_kind_names[kind]);
    enum sl_code code = remote_list(prefix, "", note_marker, &list, error);
    *count = list.count;
    return code;
}

const struct remote_marker *remote_newest(const struct remote_marker *markers, size_t count)
{
    const struct remote_marker *newest = NULL;
    for (size_t i = 0; i < count; i++)
        if (!newest || markers[i].set.generation > newest->set.generation)
            newest = &markers[i];
    return newest;
}

struct published_list {
    size_t skip;               /* length of the executable's prefix */
    struct symbfile_set *sets; /* the newest one of each kind so far */
};

/* Callback of remote_list(): keeps the published set with the highest generation of each kind. Usually a kind has just one, as older ones
 * are removed. The object's name is parsed without the prefix of its executable, list->skip bytes. */
static bool note_published(void *arg, const struct object_entry *object)
{
    struct published_list *list = arg;
    struct sl_str name = {object->name.data + list->skip, object->name.size - list->skip};
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        struct remote_marker marker;
        if (parse_marker(name, (enum symbfile_kind)kind, &marker) &&
            marker.set.generation > list->sets[kind].generation)
            list->sets[kind] = marker.set;
    }
    return true;
}

/* Gets the published set of each kind by one list: the names of both kinds, "ranges" and "returnpads", begin with "r", and no other
 * object of an executable does. */
enum sl_code remote_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                              struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    remote_home(file_key, prefix);
    struct published_list list = {.skip = strlen(prefix), .sets = sets};
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++)
        sets[kind] = (struct symbfile_set){.kind = (enum symbfile_kind)kind};
    snprintf(prefix + list.skip, sizeof prefix - list.skip, "r");
    return remote_list(prefix, "", note_published, &list, error);
}

/* Reads the object of a published set: its first line is the directory of the parts, each further line the name of a part.
 * SL_DOWNLOAD_ERROR if the number of parts is not set->parts. On failure the set has no parts to free. */
enum sl_code remote_manifest(const struct symbfile_key *file_key, struct symbfile_set *set, char parts[SET_NAME],
                             struct sl_error *error)
{
    char name[OBJECT_NAME];
    struct sl_buf text = {0};
    size_t capacity = 0;
    remote_home(file_key, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "%s", set->name);
    struct object_store_call call = {.max_size = MANIFEST_BYTES};
    enum sl_code code = remote_note(object_read(remote.bucket, sl_str(name), &text, &call, error), error);
    struct sl_str rest = sl_buf_view(&text), whole;
    *parts = '\0';
    set->have = NULL;
    set->have_count = 0;
    for (bool first = true; code == SL_OK && sl_str_next_line(&rest, &whole); first = false) {
        char line[SET_NAME];
        /* a line that is too long becomes an empty one, which is no name of a part */
        snprintf(line, sizeof line, "%.*s", (int)(whole.size < sizeof line ? whole.size : 0), whole.data);
        if (first)
            memcpy(parts, line, sizeof line);
        else if (set->have_count == set->parts)
            code = sl_fail(error, SL_DOWNLOAD_ERROR,
                           "the list of a symbfile's parts in the bucket of the upload store is damaged: %s", name);
        else if (!sl_grow(&set->have, &capacity, set->have_count + 1, sizeof *set->have))
            code = sl_fail(error, SL_BUSY, "out of memory");
        else if (!store_parse_part_name(line, &set->have[set->have_count++]))
            code = sl_fail(error, SL_DOWNLOAD_ERROR,
                           "the list of a symbfile's parts in the bucket of the upload store is damaged: %s", name);
    }
    sl_buf_free(&text);
    if (code == SL_OK && set->have_count == set->parts)
        return SL_OK;
    free(set->have);
    set->have = NULL;
    set->have_count = 0;
    return code == SL_OK
               ? sl_fail(error, SL_DOWNLOAD_ERROR,
                         "the list of a symbfile's parts in the bucket of the upload store is damaged: %s", name)
               : code;
}

/* ---- ids ---- */

struct alias_list { /* executables with a build id or debug id */
    size_t skip;    /* length of "<root>by-id/<id>/" */
    struct sl_file_id ids[MAX_ALIASES];
    size_t count;
};

/* Callback of remote_list(): adds the file id at the end of the name "<root>by-id/<id>/<file id>"; stops the list after MAX_ALIASES. */
static bool note_alias(void *arg, const struct object_entry *object)
{
    struct alias_list *list = arg;
    struct sl_str name = {object->name.data + list->skip, object->name.size - list->skip};
    struct sl_file_id *id = &list->ids[list->count];
    size_t size;
    if (name.size == FILE_ID_HEX - 1 && sl_hex_decode(name, id->bytes, sizeof id->bytes, &size))
        list->count++;
    return list->count < MAX_ALIASES;
}

/* Several executables may have the same build id: sets file_key->file_id to the one whose symbfiles were published last. */
enum sl_code remote_find(const char *id, struct symbfile_key *file_key, struct sl_error *error)
{
    char prefix[OBJECT_NAME];
    uint64_t newest = 0;
    struct symbfile_key candidate = *file_key;
    if (!info_id_is_safe(id)) /* hidden, with a slash, or too long: no object has it in its name */
        return SL_NOT_FOUND;
    remote_root(file_key->scope, prefix);
    snprintf(prefix + strlen(prefix), sizeof prefix - strlen(prefix), "by-id/%s/", id);
    struct alias_list list = {.skip = strlen(prefix)};
    enum sl_code code = remote_list(prefix, "", note_alias, &list, error);
    for (size_t i = 0; code == SL_OK && i < list.count; i++) {
        struct symbfile_set sets[SYMBFILE_KINDS];
        candidate.file_id = list.ids[i];
        code = remote_published(&candidate, sets, error);
        for (int kind = 0; code == SL_OK && kind < SYMBFILE_KINDS; kind++) {
            if (sets[kind].generation > newest) {
                newest = sets[kind].generation;
                file_key->file_id = list.ids[i];
            }
        }
    }
    return code == SL_OK && newest == 0 ? SL_NOT_FOUND : code;
}

enum sl_code remote_info(const struct symbfile_key *file_key, struct symbfile_info *info, struct sl_error *error)
{
    char name[OBJECT_NAME];
    struct sl_buf text = {0};
    remote_home(file_key, name);
    snprintf(name + strlen(name), sizeof name - strlen(name), "info");
    *info = (struct symbfile_info){0};
    struct object_store_call call = {.max_size = INFO_BYTES};
    enum sl_code code = remote_note(object_read(remote.bucket, sl_str(name), &text, &call, error), error);
    if (code == SL_OK)
        info_parse(sl_buf_view(&text), info); /* sets nothing if the text is damaged */
    sl_buf_free(&text);
    return code == SL_NOT_FOUND ? SL_OK : code;
}

/* ---- changes ---- */

/* Announces a change by writing new random bytes to the object `generation`, which other nodes compare with those that they read before.
 * Not a counter: two nodes could write the same number at once. */
enum sl_code remote_changed(struct sl_error *error)
{
    uint8_t random[16];
    char hex[2 * sizeof random + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return sl_fail(error, SL_BUSY,
                       "cannot announce a change of the upload store: the system returned no random bytes");
    sl_hex_encode(random, sizeof random, hex);
    return remote_write("symbfiles/generation", sl_str(hex), error);
}

/* Reads the random bytes that announce changes. If nothing was ever uploaded `number` stays as it is: the caller sets it to zeros before.
 * Has a short time limit and makes one attempt, as look-ups wait for it. */
enum sl_code remote_generation(uint64_t number[2], struct sl_error *error)
{
    struct sl_buf text = {0};
    size_t size;
    struct object_store_call call = {.timeout_ns = POLL_NS, .attempts = 1, .max_size = GENERATION_BYTES};
    enum sl_code code =
        remote_note(object_read(remote.bucket, SL_STR("symbfiles/generation"), &text, &call, error), error);
    if (code == SL_OK && !sl_hex_decode(sl_buf_view(&text), (uint8_t *)number, 16, &size))
        code = sl_fail(error, SL_DOWNLOAD_ERROR,
                       "the object symbfiles/generation in the bucket of the upload store is damaged");
    sl_buf_free(&text);
    return code == SL_NOT_FOUND ? SL_OK : code;
}
