/* The store of uploads in a bucket, which several nodes share. There are no locks in a bucket: a change that must be atomic is
 * one object, and the state is in the names of objects, as in a directory (symbfile_store.h).
 *
 *     symbfiles/generation                         random bytes, replaced after every change
 *     symbfiles/open/<scope>/<file id>/<parts>     an incomplete upload; as old as its last part
 *     <root>by-id/<build id or debug id>/<file id>
 *     <root><aa>/<file id>/info
 *                         /parts/<parts>/<number>.<SHA-256>.<mode>.<records>.<inflated bytes>
 *                         /<kind>-<generation>-<parts>-<records>-<upload id>    published; the highest generation counts
 *
 * <root> is "symbfiles/" or "symbfiles/scopes/<scope>/"; <parts> is "<kind>-<count>-<upload id>-<generation>", where the
 * generation is that of the published set with this count and upload id (0: none), so that a set that is uploaded again is not
 * mixed with it. The object of a published set lists its parts: the line "<parts>", then a name per line. Nothing is copied to
 * publish it. Of two parts with the same number the newer one counts. For example ranges-1700000000000000-2-7-build7:
 *
 *     ranges-2-build7-0
 *     0000000000.9f86d081884c...0a08.s.3.128
 *     0000000001.60303ae22b99...8752.s.4.160
 *
 * To find out if a set is complete a node lists the objects after the last consecutive part that it knows of: so all parts of a
 * set together cost it as many steps as there are parts.
 *
 * Private to this folder. In fibers, as everything waits for the bucket. SL_NOT_FOUND: the object does not exist; SL_BUSY and
 * SL_CANCELLED: a condition of this node; any other error: the store does not answer correctly. */
#pragma once

#include "objectstore/objectstore.h"
#include "symbfile_store/impl.h"

enum { OBJECT_NAME = 700, SET_NAME = 160 };

/* ---- bucket.c ---- */

/* Opens the bucket of the configuration, once for the lifetime of the process. */
void remote_open(const struct config *config);
void remote_close(void);
const struct object_store *remote_bucket(void); /* NULL: the store is a directory */

/* Records the result of a request, for /status and the log; returns `code`. */
enum sl_code remote_note(enum sl_code code, const struct sl_error *error);

/* Attributes of the objects, without their bytes. */
extern const struct object_contents remote_contents;
/* Writes an object, or replaces it. */
enum sl_code remote_write(const char *name, struct sl_str text, struct sl_error *error) SL_SUSPENDS;

/* Like the functions of symbfile_store.h with the same suffix. */
enum sl_code remote_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                              struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_find(const char *id, struct symbfile_key *file_key, struct sl_error *error) SL_SUSPENDS;
/* Reads the description of the executable. SL_OK with an empty `info` if nothing is known. */
enum sl_code remote_info(const struct symbfile_key *file_key, struct symbfile_info *info,
                         struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_changed(struct sl_error *error) SL_SUSPENDS;
/* Reads the generation, which changes whenever something in the store has changed. */
enum sl_code remote_generation(uint64_t number[2], struct sl_error *error) SL_SUSPENDS;

void remote_root(const char *scope, char out[OBJECT_NAME]);
void remote_home(const struct symbfile_key *file_key, char out[OBJECT_NAME]);

struct remote_marker {       /* a published set */
    struct symbfile_set set; /* without its list of parts */
    char upload_id[65];
};
/* Gets the published sets of a kind, at most MARKERS. */
enum { MARKERS = 16 };
enum sl_code remote_markers(const struct symbfile_key *file_key, enum symbfile_kind kind,
                            struct remote_marker markers[MARKERS], size_t *count, struct sl_error *error) SL_SUSPENDS;
/* Returns the set with the highest generation; NULL if there is none. */
const struct remote_marker *remote_newest(const struct remote_marker *markers, size_t count);

/* Reads the list of a published set: `parts` gets the name of the directory of its parts, the set its parts (free them). */
enum sl_code remote_manifest(const struct symbfile_key *file_key, struct symbfile_set *set, char parts[SET_NAME],
                             struct sl_error *error) SL_SUSPENDS;

/* Calls `each` for all objects whose names begin with `prefix` and sort after `after`, in order, until it returns false. */
typedef bool remote_listener(void *arg, const struct object_entry *object);
enum sl_code remote_list(const char *prefix, const char *after, remote_listener *each, void *arg,
                         struct sl_error *error) SL_SUSPENDS;
/* Removes all objects whose names begin with `prefix`; `*count` is their number (may be NULL). */
enum sl_code remote_remove(const char *prefix, size_t *count, struct sl_error *error) SL_SUSPENDS;

/* ---- bucket_parts.c ---- */

/* Writes "<kind>-<count>-<upload id>-<generation>", and parses kind and count of such a name. */
void remote_parts_name(enum symbfile_kind kind, uint64_t count, const char *upload_id, uint64_t generation,
                       char out[SET_NAME]);
bool remote_parse_parts_name(const char *name, enum symbfile_kind *kind, uint64_t *count);
/* "<home>parts/<name>/<rest>" */
void remote_in_parts(const struct symbfile_key *file_key, const char *name, const char *rest, char out[OBJECT_NAME]);
void remote_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);

struct remote_part_list {
    size_t skip;                      /* length of the prefix that the objects' names have before the parts' names */
    uint64_t most;                    /* parts of the set: ignores higher numbers */
    struct symbfile_part_file *parts; /* by number; the newest ones */
    char (*modified)[40];
    size_t count, capacity, modified_capacity;
    bool failed; /* out of memory */
};
remote_listener remote_note_part; /* adds a part to the list `arg` */
enum sl_code remote_list_parts(const struct symbfile_key *file_key, const char *name, struct remote_part_list *list,
                               struct sl_error *error) SL_SUSPENDS;
void remote_part_list_free(struct remote_part_list *list);

/* Counts consecutive parts from the first one; starts at the last one that this node knows of. */
enum sl_code remote_count_parts(const struct symbfile_key *file_key, const char *name, uint64_t *complete,
                                struct sl_error *error) SL_SUSPENDS;
void remote_drop_count(const struct symbfile_key *file_key, const char *name);
void remote_clear_counts(void);

/* Downloads the parts of a published set: `home` gets the path of a directory that contains the set's directory. Remove it with
 * remote_remove_copy. */
enum sl_code remote_copy(const struct symbfile_key *file_key, const struct symbfile_set *set, char home[STORE_PATH],
                         struct sl_error *error) SL_SUSPENDS;
/* Does the same for a set whose list of parts is loaded; they are in the directory `parts`. */
enum sl_code remote_copy_set(const struct symbfile_key *file_key, const char *parts, const struct symbfile_set *set,
                             char home[STORE_PATH], struct sl_error *error) SL_SUSPENDS;
void remote_remove_copy(const char *home) SL_SUSPENDS;

/* ---- bucket_sets.c ---- */
bool remote_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
enum sl_code remote_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                           bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                           struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error) SL_SUSPENDS;
/* Removes uploads that were not completed within symbfile.staging_ttl. */
enum sl_code remote_sweep(struct sl_error *error) SL_SUSPENDS;
