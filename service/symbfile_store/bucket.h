/* The store of uploads in a bucket, which several nodes share. Nobody locks anything there: what has to be seen by all at once is one
 * object, and names say the rest, as in a directory (symbfile_store.h).
 *
 *     symbfiles/generation                         random bytes, others after every change
 *     symbfiles/open/<scope>/<file id>/<parts>     an upload on its way; as old as its last part
 *     <root>by-id/<build id or debug id>/<file id>
 *     <root><aa>/<file id>/info
 *                         /parts/<parts>/<number>.<SHA-256>.<mode>.<records>.<inflated bytes>
 *                         /<kind>-<generation>-<parts>-<records>-<upload id>    published; the highest generation counts
 *
 * <root> is "symbfiles/" or "symbfiles/scopes/<scope>/"; <parts> is "<kind>-<count>-<upload id>-<generation>", in which the generation is
 * that of the published set of this count and upload id (0: none), so that a set that is uploaded once more is not mixed with it.
 * A published set lists its parts: the line "<parts>", then a name a line. Nothing is copied to publish it. Of two parts with one
 * number the younger one counts.
 *
 * Whether a set is complete is found by lists that begin behind the last part in a row that this node knows of: all parts of a set
 * cost a node as many steps as there are.
 *
 * Private to this folder. Fibers, as all of it waits for the bucket. SL_NOT_FOUND means that something is not there; SL_BUSY and
 * SL_CANCELLED are this node's; every other error, that the store does not answer as it should. */
#pragma once

#include "objectstore/objectstore.h"
#include "symbfile_store/impl.h"

enum { OBJECT_NAME = 700, SET_NAME = 160 };

/* ---- bucket.c ---- */

/* The bucket of the configuration, once for the life of the process. */
void remote_open(const struct config *config);
void remote_close(void);
const struct object_store *remote_bucket(void); /* NULL: the store is a directory */

/* Notes how a request ended, for /status and the log; returns `code`. */
enum sl_code remote_note(enum sl_code code, const struct sl_error *error);

/* What an object is, but for its bytes. */
extern const struct object_contents remote_contents;
/* Writes an object; what was there before is replaced. */
enum sl_code remote_write(const char *name, struct sl_str text, struct sl_error *error) SL_SUSPENDS;

/* As the functions of symbfile_store.h whose names end the same way. */
enum sl_code remote_published(const struct symbfile_place *place, struct symbfile_set sets[SYMBFILE_KINDS],
                              struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_find(const char *id, struct symbfile_place *place, struct sl_error *error) SL_SUSPENDS;
/* SL_OK with nothing in it when nothing is known. */
enum sl_code remote_info(const struct symbfile_place *place, struct symbfile_info *info,
                         struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_changed(struct sl_error *error) SL_SUSPENDS;
/* Whether something has changed is another number. */
enum sl_code remote_generation(uint64_t number[2], struct sl_error *error) SL_SUSPENDS;

void remote_root(const char *scope, char out[OBJECT_NAME]);
void remote_home(const struct symbfile_place *place, char out[OBJECT_NAME]);

struct remote_marker {       /* a published set */
    struct symbfile_set set; /* without its parts */
    char upload_id[65];
};
/* The published sets of a kind, at most `most` of them. */
enum { MARKERS = 16 };
enum sl_code remote_markers(const struct symbfile_place *place, enum symbfile_kind kind,
                            struct remote_marker markers[MARKERS], size_t *count, struct sl_error *error) SL_SUSPENDS;
/* The one that counts; NULL: there is none. */
const struct remote_marker *remote_newest(const struct remote_marker *markers, size_t count);

/* What a published set lists: `parts` gets the name of the directory of its parts, the set its parts (free them). */
enum sl_code remote_manifest(const struct symbfile_place *place, struct symbfile_set *set, char parts[SET_NAME],
                             struct sl_error *error) SL_SUSPENDS;

/* Calls `each` for all objects whose names begin with `prefix` and come behind `after`, in their order, until it says false. */
typedef bool remote_listener(void *arg, const struct object_entry *object);
enum sl_code remote_list(const char *prefix, const char *after, remote_listener *each, void *arg,
                         struct sl_error *error) SL_SUSPENDS;
/* Removes all objects whose names begin with it; `*count` of them (may be NULL). */
enum sl_code remote_remove(const char *prefix, size_t *count, struct sl_error *error) SL_SUSPENDS;

/* ---- bucket_parts.c ---- */

/* "<kind>-<count>-<upload id>-<generation>", and the kind and the count of that name. */
void remote_parts_name(enum symbfile_kind kind, uint64_t count, const char *upload_id, uint64_t generation,
                       char out[SET_NAME]);
bool remote_parse_parts_name(const char *name, enum symbfile_kind *kind, uint64_t *count);
/* "<home>parts/<name>/<rest>" */
void remote_in_parts(const struct symbfile_place *place, const char *name, const char *rest, char out[OBJECT_NAME]);
void remote_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);

struct remote_part_list {
    size_t skip;                      /* of the objects' names */
    uint64_t most;                    /* parts of the set: higher numbers are none of it */
    struct symbfile_part_file *parts; /* by number; those that count */
    char (*modified)[40];
    size_t count, capacity, modified_capacity;
    bool failed; /* out of memory */
};
remote_listener remote_note_part; /* into the list */
enum sl_code remote_list_parts(const struct symbfile_place *place, const char *name, struct remote_part_list *list,
                               struct sl_error *error) SL_SUSPENDS;
void remote_part_list_free(struct remote_part_list *list);

/* How many parts in a row are there; goes on from the last one that this node knows of. */
enum sl_code remote_count_parts(const struct symbfile_place *place, const char *name, uint64_t *complete,
                                struct sl_error *error) SL_SUSPENDS;
void remote_forget_count(const struct symbfile_place *place, const char *name);
void remote_forget_counts(void);

/* Brings the parts of a published set to this machine: `home` gets the path of a directory in which the set's own is. The caller
 * removes it by remote_remove_copy. */
enum sl_code remote_copy(const struct symbfile_place *place, const struct symbfile_set *set, char home[STORE_PATH],
                         struct sl_error *error) SL_SUSPENDS;
/* The same of a set that has its parts, which are in the directory `parts`. */
enum sl_code remote_copy_set(const struct symbfile_place *place, const char *parts, const struct symbfile_set *set,
                             char home[STORE_PATH], struct sl_error *error) SL_SUSPENDS;
void remote_remove_copy(const char *home) SL_SUSPENDS;

/* ---- bucket_sets.c ---- */
bool remote_add(const struct symbfile_arrival *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
enum sl_code remote_status(const struct symbfile_place *place, struct symbfile_set sets[SYMBFILE_KINDS],
                           bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                           struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_delete(const struct symbfile_place *place, bool *any, struct sl_error *error) SL_SUSPENDS;
/* Removes uploads that nobody completed within symbfile.staging_ttl. */
enum sl_code remote_sweep(struct sl_error *error) SL_SUSPENDS;
