/* The store of uploaded symbfiles in a bucket, which several nodes share. There are no locks in a bucket, so a change that must be atomic
 * is the writing of one object; and the state is in the names of objects, as in a directory (symbfile_store.h).
 *
 * A "set" is all parts of one upload for an executable: `count` parts of a kind (ranges or returnpads) with the same upload id.
 *
 *     symbfiles/generation                         random bytes, replaced after every change
 *     symbfiles/open/<scope>/<file id>/<parts>     an incomplete upload; rewritten with each part
 *     <root>by-id/<build id or debug id>/<file id>
 *     <root><aa>/<file id>/info
 *                         /parts/<parts>/<number>.<SHA-256>.<mode>.<records>.<inflated bytes>
 *                         /<kind>-<generation>-<parts>-<records>-<upload id>    published; the highest generation counts
 *
 * <root> is "symbfiles/" or "symbfiles/scopes/<scope>/"; <parts> is "<kind>-<count>-<upload id>-<generation>". Its generation is that of
 * the published set with the same count and upload id (0: there is none), so that parts of a set that is uploaded again are not mixed with
 * those of the published one. The object of a published set lists its parts: first the line "<parts>", then a name per line. Publishing a
 * set copies nothing. Of two parts with the same number the newer one counts. For example ranges-1700000000000000-2-7-build7 contains:
 *
 *     ranges-2-build7-0
 *     0000000000.9f86d081884c...0a08.s.3.128
 *     0000000001.60303ae22b99...8752.s.4.160
 *
 * To find out whether a set is complete, a node remembers up to which number no part is missing, and lists only the parts after it. So the
 * work for a set grows linearly with its parts.
 *
 * Private to this folder. Call these functions in fibers, as they wait for the bucket. SL_NOT_FOUND: the object does not exist; SL_BUSY and
 * SL_CANCELLED: a condition of this node; any other error: the store does not respond correctly. */
#pragma once

#include "objectstore/objectstore.h"
#include "symbfile_store/impl.h"

/* sizes of arrays for texts, with the NUL: the name of an object; that of a set's object or of the directory of its parts */
enum { OBJECT_NAME = 700, SET_NAME = 160 };

/* ---- bucket.c ---- */

/* Opens the bucket of the configuration, once for the lifetime of the process. */
void remote_open(const struct config *config);
void remote_close(void);
const struct object_store *remote_bucket(void); /* NULL: the store is a directory */

/* Records, for /status and the log, by the result of a request whether the store responds; returns `code`. */
enum sl_code remote_note(enum sl_code code, const struct sl_error *error);

/* Media type and other attributes of all objects that are written. Copy it and set the bytes in the copy. */
extern const struct object_contents remote_contents;
/* Writes an object, or replaces it. */
enum sl_code remote_write(const char *name, struct sl_str text, struct sl_error *error) SL_SUSPENDS;

/* Gets the published set of each kind (generation 0 = none), without its parts. */
enum sl_code remote_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                              struct sl_error *error) SL_SUSPENDS;
/* Finds the executable with this build id or debug id whose symbfiles were published last. file_key->scope is given; file_key->file_id is
 * set. */
enum sl_code remote_find(const char *id, struct symbfile_key *file_key, struct sl_error *error) SL_SUSPENDS;
/* Reads the description of the executable. SL_OK with an empty `info` if nothing is known. */
enum sl_code remote_info(const struct symbfile_key *file_key, struct symbfile_info *info,
                         struct sl_error *error) SL_SUSPENDS;
/* Tells all nodes that something in the store has changed, by changing its generation. */
enum sl_code remote_changed(struct sl_error *error) SL_SUSPENDS;
/* Reads the generation, which changes whenever something in the store has changed. */
enum sl_code remote_generation(uint64_t number[2], struct sl_error *error) SL_SUSPENDS;

/* Make prefixes of object names: remote_root() "symbfiles/" or "symbfiles/scopes/<scope>/", called <root>; remote_home() that of an
 * executable, "<root><aa>/<file id>/". */
void remote_root(const char *scope, char out[OBJECT_NAME]);
void remote_home(const struct symbfile_key *file_key, char out[OBJECT_NAME]);

struct remote_marker {       /* a published set */
    struct symbfile_set set; /* without its list of parts */
    char upload_id[65];
};
enum { MARKERS = 16 };
/* Gets the published sets of a kind, at most MARKERS. There may be several, as older ones are removed after a new one was published. */
enum sl_code remote_markers(const struct symbfile_key *file_key, enum symbfile_kind kind,
                            struct remote_marker markers[MARKERS], size_t *count, struct sl_error *error) SL_SUSPENDS;
/* Returns the set with the highest generation; NULL if there is none. */
const struct remote_marker *remote_newest(const struct remote_marker *markers, size_t count);

/* Reads the object of a published set: `parts` gets the name of the directory of its parts, set->have its parts (free them). */
enum sl_code remote_manifest(const struct symbfile_key *file_key, struct symbfile_set *set, char parts[SET_NAME],
                             struct sl_error *error) SL_SUSPENDS;

typedef bool remote_listener(void *arg, const struct object_entry *object);
/* Calls `each` for all objects whose names begin with `prefix` and sort after `after`, in order, until it returns false. */
enum sl_code remote_list(const char *prefix, const char *after, remote_listener *each, void *arg,
                         struct sl_error *error) SL_SUSPENDS;
/* Removes all objects whose names begin with `prefix`, and adds their number to `*count` (unless it is NULL). */
enum sl_code remote_remove(const char *prefix, size_t *count, struct sl_error *error) SL_SUSPENDS;

/* ---- bucket_parts.c ---- */

/* Make the name of the directory of a set's parts, "<kind>-<count>-<upload id>-<generation>"; and parse kind and count of such a name. */
void remote_parts_name(enum symbfile_kind kind, uint64_t count, const char *upload_id, uint64_t generation,
                       char out[SET_NAME]);
bool remote_parse_parts_name(const char *name, enum symbfile_kind *kind, uint64_t *count);
/* Makes the object name "<root><aa>/<file id>/parts/<name>/<rest>". */
void remote_in_parts(const struct symbfile_key *file_key, const char *name, const char *rest, char out[OBJECT_NAME]);
/* Makes the last component of the name of a part's object. */
void remote_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);

struct remote_part_list {
    size_t skip;   /* length of the prefix that the objects' names have before the parts' names */
    uint64_t most; /* number of parts of the set; parts with this number and higher ones are ignored */
    struct symbfile_part_file *parts; /* by number; the newest one of each number */
    char (*modified)[40];             /* of each part: when its object was written */
    size_t count, capacity, modified_capacity;
    bool failed; /* out of memory */
};
remote_listener remote_note_part; /* callback of remote_list(): adds a part to the struct remote_part_list `arg` */
/* Lists the parts in the directory `name`; free the list also on failure. */
enum sl_code remote_list_parts(const struct symbfile_key *file_key, const char *name, struct remote_part_list *list,
                               struct sl_error *error) SL_SUSPENDS;
void remote_part_list_free(struct remote_part_list *list);

/* Sets `*complete` to the number of consecutive parts in the directory `name`, from part 0 on. The count of the last call is cached: only
 * later parts are listed. */
enum sl_code remote_count_parts(const struct symbfile_key *file_key, const char *name, uint64_t *complete,
                                struct sl_error *error) SL_SUSPENDS;
/* Drop the cached count of one directory, or of all. */
void remote_drop_count(const struct symbfile_key *file_key, const char *name);
void remote_clear_counts(void);

/* Downloads the parts of a published set to "<home>/<name of the set>/", named as in a store that is a directory. `home` gets the path of a
 * new temporary directory; remove it by remote_remove_copy(). */
enum sl_code remote_copy(const struct symbfile_key *file_key, const struct symbfile_set *set, char home[STORE_PATH],
                         struct sl_error *error) SL_SUSPENDS;
/* Downloads the parts in set->have, published or not, from the bucket's directory `parts` to a new temporary directory, `home`, which
 * remote_remove_copy() removes. */
enum sl_code remote_copy_set(const struct symbfile_key *file_key, const char *parts, const struct symbfile_set *set,
                             char home[STORE_PATH], struct sl_error *error) SL_SUSPENDS;
void remote_remove_copy(const char *home) SL_SUSPENDS;

/* ---- bucket_sets.c: what the functions symbfile_add, _status and _delete in symbfile_store.h do, for a bucket ---- */
bool remote_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
enum sl_code remote_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                           bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                           struct sl_error *error) SL_SUSPENDS;
enum sl_code remote_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error) SL_SUSPENDS;
/* Removes uploads that were not completed within symbfile.staging_ttl. */
enum sl_code remote_sweep(struct sl_error *error) SL_SUSPENDS;
