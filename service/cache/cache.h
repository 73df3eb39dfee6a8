/* The cache: one mechanism for every kind of file that is fetched or computed.
 *
 * An entry is named by a kind and a key (a text; its SHA-256 is the file name) and is contents or an error. A look-up searches
 * memory, then the directory on disk, then the shared layer (Redis or a bucket, shared by machines); at last the entry is computed:
 * into a temporary file, published by rename, used through a read-only mapping. Equal look-ups join one computation, which belongs
 * to the key and not to the request. Any number of processes may share one directory, and any file in it may vanish at any moment.
 * An entry of kind `objects`, version 2:
 *
 *     key                              scope: global\n\nsource: foo\nlocation: file://bar.baz\n
 *     <cache_dir>/objects/v2/f5/e0/8b92a55c...           contents, or for an error its marker: "malformedbad magic"
 *     <cache_dir>/objects/v2/f5/e0/8b92a55c....metadata  side file: {"scope":null,"time_created":1700000000,...} */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/list.h"
#include "config/config.h"
#include "core/fiber.h"
#include "core/files.h"
#include "core/journal.h"

/* Entries of a section share lifetimes: those of `caches.<section>` in the configuration. */
enum cache_section { CACHE_DOWNLOADED, CACHE_DERIVED, CACHE_INDEX, CACHE_DIAGNOSTICS, CACHE_BOUNDED, CACHE_TRANSCODED };

struct cache_key {
    struct sl_str text;  /* "scope: <scope>\n\n..."; must live as long as the call */
    struct sl_str scope; /* empty or "global" = global (null in the side file) */
};

enum { CACHE_NOTE_BYTES = 2048 };

/* The file of an entry that is being computed: open for reading and writing in the process's temporary directory. cache_kind.compute
 * may replace it by another file of cache_tmp_create and discard the old one. A file without a name can be used, but not published. */
struct cache_tmp {
    int fd;
    char path[256]; /* empty when unlinked */
    /* Set by a computation that succeeded without an input that may become available later. The entry is used like any other, but
     * marked in its side file, not put into the shared layer, and computed again after `caches.upgrade_fallback_after`. */
    bool incomplete;
    /* A remark of the computation about the contents, UTF-8: stored in the side file, not in the shared layer. */
    char note[CACHE_NOTE_BYTES];
};

/* The contents of an entry in memory, whether they were published on disk or not: reference-counted, immutable. Files of up to 1 KiB
 * are copied instead of mapped; their bytes are 16-aligned. Loop thread only. */
struct cache_item {
    struct sl_mapping mapping;
    struct file_place *place; /* file of the mapping (core/files.h); NULL = unknown, or the contents are a copy */
    void *loaded;             /* made by the kind's load or open; NULL if it has neither */
    uint64_t weight;          /* bytes that `loaded` occupies: they count against the limit of the memory layer */
    char *note;               /* remark of the computation; NULL = none */
    int64_t time_created;     /* seconds since the epoch */
    uint32_t references;
    const struct cache_kind *kind;
    /* residency.c: when the residency of its pages was last checked, and whether all were resident */
    _Atomic uint64_t residency_checked_ms;
    _Atomic bool is_resident;
};

struct cache_kind {   /* one static table per kind */
    const char *name; /* name of the directory and metric label */
    enum cache_section section;
    unsigned version; /* present version of its entries, which their paths contain */
    /* Older versions, as lists that end with 0; may be NULL. `fallbacks`: their entries are used until there is one of the present version;
     * `previous`: their entries are removed when one is published. */
    const unsigned *fallbacks, *previous;
    unsigned format1_up_to; /* versions up to this use the old path format (see cache_relative_path); 0 = none */
    /* Returns the limit of the memory layer in bytes; NULL = config.default_capacity. */
    uint64_t (*capacity)(const struct config *config);
    bool random_access; /* a look-up table, read at random: its mappings are not read ahead */
    /* Computations look up other entries of the same kind, so any number of them may run at once. Of other kinds a limited number
     * runs, so their `compute` must not look up entries whose computation leads, over any number of kinds, back to the same kind. */
    bool recursive;
    /* Names the base: the entry that this one is made from. The base is looked up before the computation gets a fiber; if it is an
     * error, this entry becomes the same error. False: this entry has no base. NULL = no entry of the kind has one. `key` and
     * `*base_context` may refer to `arena` and to data of `context`. */
    bool (*base)(const void *context, struct sl_arena *arena, const struct cache_kind **kind, struct cache_key *key,
                 const void **base_context);
    /* The host or store that a computation waits for: computations with the same name share a queue. NULL = one queue for the
     * kind. */
    struct sl_str (*queue_name)(const void *context);
    /* Computes the contents into `tmp`, in a fiber that works only for this key. SL_OK = contents; else the entry is this error.
     * `context` is that of the look-up, as copied by `retain`, or the caller's pointer if there is no `retain`. SL_INTERNAL is never
     * written to disk and cached for 30 s; SL_DOWNLOAD_ERROR or SL_UNSUPPORTED with error->duration_ns is cached for that long, in
     * memory only; SL_CANCELLED and SL_BUSY are never cached. May run again, when a file that it reads was damaged under its
     * mapping (cache_run_reader). */
    enum sl_code (*compute)(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                            struct sl_error *error) SL_SUSPENDS;
    /* Copies the context of a look-up into the arena, where it stays until `compute` has returned; NULL when out of memory. Without
     * this function the caller's context must stay valid until then. */
    void *(*retain)(const void *context, struct sl_arena *arena);
    /* True if the entry may be in the shared layer; NULL = always. */
    bool (*shareable)(const void *context);
    /* Validates contents without parsing them, in O(1), and makes `*loaded` of them, which occupies `*weight` bytes. May be NULL. If it
     * fails (except with SL_BUSY), the entry counts as damaged: it is removed and computed again, once. Runs on the pool. */
    enum sl_code (*load)(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
    void (*free_loaded)(void *loaded);
    /* Alternative to `load`: validates contents and fills a struct of `opened_size` bytes, which free() frees. */
    enum sl_code (*open)(struct sl_bytes bytes, void *opened, struct sl_error *error);
    size_t opened_size;
};

/* Starts the cache. `kinds`, the table of catalog/catalog.c, and the configuration must outlive it. Makes `cache_dir` if it is missing and
 * removes temporary files of processes that have ended. SL_INTERNAL, SL_MALFORMED (path too long) when the directory cannot be used;
 * SL_BUSY when out of memory. */
enum sl_code cache_init(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                        struct sl_error *error);

/* Applies lifetimes, capacities and limits of a new configuration. The configuration of cache_init must still outlive the cache: its
 * directory and shared layer stay in use. */
void cache_configure(const struct config *config);

/* Cancels the running computations and waits for them, and a few seconds for pending writes to the shared layer. Call it before the loop
 * stops. */
void cache_drain(void) SL_SUSPENDS;
void cache_close(void); /* removes the process's temporary directory; no fiber may use the cache afterwards */

/* Gets an entry. SL_OK: contents; `*item` is a reference, to be released with cache_release. Otherwise the entry's error, new or
 * cached, or SL_CANCELLED: the caller's fiber was cancelled while it waited, and the look-up is withdrawn as by cache_lookup_cancel. */
enum sl_code cache_get(const struct cache_kind *kind, const struct cache_key *key, const void *context,
                       struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* Handle of an entry in the memory layer: finds it again without hashing its key. All zero = none. */
struct cache_handle {
    uint64_t serial;
    uint32_t slot, kind;
};

/* A look-up that needs no fiber. Zero it and set kind, key, context, error and done; it must not move until it is answered or
 * cancelled. */
struct cache_lookup {
    const struct cache_kind *kind;
    const struct cache_key *key; /* valid during the call of cache_lookup_async */
    const void *context;         /* likewise */
    struct sl_error *error;      /* receives the error; may be NULL */
    /* called when the answer comes later; must not suspend. The cache does not use the struct any more then */
    void (*done)(struct cache_lookup *look);
    /* the answer, as from cache_get */
    enum sl_code code;
    struct cache_item *item;    /* a reference */
    struct cache_handle handle; /* set if memory answered at once */
    /* private */
    struct flight *flight;
    struct sl_link link;
    bool joined;
};

/* Looks up an entry. True: it is answered at once, from memory or with an error, as memory is short or the cache is being closed; `done`
 * is not called. False: `done` will be called with the answer. Loop thread, from a fiber or a callback. */
bool cache_lookup_async(struct cache_lookup *look);

/* Cancels a look-up; no effect if it is answered already. Its computation may end early if nobody else waits for that; downloads go on. */
void cache_lookup_cancel(struct cache_lookup *look);

/* Call after a fault in sigbus_guard_run or SL_INTERNAL of pool_run. If these were caused by mappings of entries that could not be read,
 * drops the entries, so that they are made again, and returns true: a retry may succeed. */
bool cache_drop_faulted(void);

/* Work that reads cache items and can be repeated: `run` looks its items up and uses them; `reset` releases them and restores
 * `arg` to its state before `run`. */
struct cache_reader {
    enum sl_code (*run)(void *arg, struct sl_error *error) SL_SUSPENDS;
    void (*reset)(void *arg);
};
/* Runs `reader->run`. When it fails with SL_INTERNAL because a file was damaged under its mapping (truncated, or a bad disk),
 * drops the damaged entries, resets and runs again, at most CACHE_MAX_RUNS times in all, as each run may meet another damaged
 * file. Returns the result of the last run. */
enum { CACHE_MAX_RUNS = 8 };
enum sl_code cache_run_reader(const struct cache_reader *reader, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Unmaps files that were deleted from the directory, by any process, so that their disk space is freed. Call after a cleanup. */
void cache_drop_deleted(void) SL_SUSPENDS;
/* A fiber that, every few seconds until it is cancelled, unmaps files that were deleted from the directory or not looked up within
 * `caches.memory_idle`. `unused` is NULL. */
void cache_unmap_repeatedly(void *unused) SL_SUSPENDS;

/* Logs the number of running look-ups and computations and the oldest of each kind, for operators. */
void cache_log_state(void);

/* False after a file could not be created in the cache directory, until an attempt succeeds (space_retry). */
bool cache_writable(void);

/* Known problems of the shared Redis, as flags; 0 = none, or there is no Redis. */
enum { CACHE_REDIS_DOWN = 1, CACHE_REDIS_KEEPS = 2 /* noeviction: when it is full, nothing can be stored */ };
unsigned cache_redis_state(void);

/* If the memory layer has the answer to a look-up, returns true and sets `*code` (that of cache_get) with `*item` or `*error`. False: look
 * it up with cache_get. Never suspends. */
bool cache_peek(const struct cache_kind *kind, const struct cache_key *key, enum sl_code *code,
                struct cache_item **item, struct sl_error *error);

/* True if the entry of the handle is still in memory and usable; `*item` gets a reference to its contents (`item` may be NULL). False: look
 * it up by its key. With `is_renewed` also false for a cached miss that is so old that cache_renew would compute it again. */
bool cache_peek_handle(const struct cache_handle *handle, bool is_renewed, struct cache_item **item);

/* For a caller that uses a worse entry because this one is missing. If memory has a miss (an error) for the key that is older than
 * `caches.upgrade_fallback_after`, computes the entry again in the background, and also the entries that this computation looks up, if they
 * are misses of that age. The caller goes on with what it has; the new result, contents or error, replaces the miss. Does nothing if such a
 * computation of the key runs already, or too many of other keys. */
void cache_renew(const struct cache_kind *kind, const struct cache_key *key, const void *context);
/* True if the loop may read the item: all pages of its mapping were in memory at the last check. When the next check is due, after 10 s or
 * more, one caller gets false: it must read on the pool, where reading may wait for the disk, and call cache_check_residency there. */
bool cache_is_resident(struct cache_item *item);
/* Checks whether all pages of the item are resident (mincore(2)) and starts reading those of a small item. Any thread except
 * the loop's: it takes a millisecond for 100 MB. */
void cache_check_residency(struct cache_item *item);

/* Creates an item outside the cache, as if `bytes` were an entry of the kind, and takes over the bytes; it is freed with its last
 * reference. SL_MALFORMED if the kind refuses the contents. */
enum sl_code cache_item_from_bytes(const struct cache_kind *kind, struct sl_buf *bytes, struct cache_item **item,
                                   struct sl_error *error);
/* Creates an item outside the cache from a file's contents, which are mapped unless they are small; the descriptor stays the caller's. */
enum sl_code cache_item_from_file(const struct cache_kind *kind, int fd, struct cache_item **item,
                                  struct sl_error *error) SL_SUSPENDS;

/* Adds a reference and returns the item. */
struct cache_item *cache_retain(struct cache_item *item);
/* Drops a reference, and frees the item with the last one. Does nothing for NULL. */
void cache_release(struct cache_item *item);

/* A remote file as named in keys; without a location, all files of the source. */
struct cache_file {
    struct sl_str source, location;
};
/* Invalidates entries of any kind and scope that are made from changed files, in memory, on disk and in the shared layer.
 * Computations that use them now still answer their callers, but are not cached. Other processes notice through the directory
 * within a second, other machines through Redis. SL_INTERNAL when the directory or Redis could not be written (this process has
 * dropped the entries nevertheless); SL_CANCELLED. */
enum sl_code cache_invalidate(const struct cache_file *files, size_t count, struct sl_error *error) SL_SUSPENDS;

/* From now on this process and those it forks notice each other's invalidations at once. False: out of memory; they notice them within a
 * second. */
bool cache_share_change_counter(void);
/* True if a file that the key names was invalidated in the second `created_s` (since the epoch) or later, or if that cannot be found
 * out. */
bool cache_was_invalidated(struct sl_str key, int64_t created_s) SL_SUSPENDS;

/* ---- quarantine: any thread ----
 * What a process worked on when it died (core/journal.h) is counted in `<cache_dir>/quarantine`: after two crashes or three
 * kills within a day the service does not process it for a day. */

/* Sets `work` to the description of work on the key of a kind, by which it is recognised; `about` is for people. */
void cache_quarantine_name(const char *kind, struct sl_str key, struct sl_str about, struct journal_work *work);
/* SL_UNSUPPORTED if `work` is quarantined; else SL_OK. */
enum sl_code cache_quarantine_check(const struct journal_work *work, struct sl_error *error);
struct cache_suspect { /* record of work during which processes have died */
    char kind[28], key[36], about[188];
    unsigned crashes, kills;
    int64_t until_s; /* seconds since the epoch; 0 = counted but not quarantined */
};
/* Calls `tell` for every record less than a day old, quarantined or not. Returns how many are quarantined. */
size_t cache_quarantine_list(const char *cache_dir, void (*tell)(void *arg, const struct cache_suspect *suspect),
                             void *arg);
size_t cache_quarantine_clear(const char *cache_dir); /* removes all records; returns how many were quarantined */

/* Creates a temporary file, for use inside cache_kind.compute or for uploads; with `unlinked` it has no name. SL_BUSY, SL_INTERNAL. */
enum sl_code cache_tmp_create(struct cache_tmp *tmp, bool unlinked, struct sl_error *error); /* any thread */
void cache_tmp_discard(struct cache_tmp *tmp);
/* For a process that a signal ends on purpose: removes its temporary files, and records in its journal that it ended normally, so that
 * nothing it worked on is quarantined. The cache must not be used afterwards. Async-signal-safe. */
void cache_tmp_abandon(void);
const char *cache_tmp_dir(void); /* of this process; the system's if there is no cache_dir */

/* Writes the path of a key's entry below the directory of its kind: "v<version>/<b0>/<b1>/<rest>" (format 1:
 * "v<version>/<b0>/<b1b2b3>/<rest>"), b0... being the bytes of the key's SHA-256 in hex. */
void cache_relative_path(struct sl_str key_text, unsigned version, bool format1, char out[128]);

/* Appends the contents of the file that stands for an error on disk, its marker: "malformedbad magic". */
void cache_error_encode(const struct sl_error *error, struct sl_buf *out);
/* Decodes the contents of an entry's file: the code and `*error` of its marker, or SL_OK if it is none, but contents. */
enum sl_code cache_error_decode(struct sl_bytes bytes, struct sl_error *error);

/* Appends the text for clients: `not found`, `permission denied: ...`, `download timed out after 300s` ... */
void cache_error_text(const struct sl_error *error, struct sl_buf *out);

/* State of the i-th back end of the shared layer; false after the last. */
struct cache_shared_state {
    const char *name;
    bool up;
    const char *last_error; /* NULL = none */
};
bool cache_shared_state(size_t i, struct cache_shared_state *state);

/* Validates the configuration of the shared layer as cache_init does, without connecting. SL_MALFORMED: `*key` is the invalid
 * key. */
enum sl_code cache_check_shared(const struct config *config, const char **key, struct sl_error *error);

/* Checks if the bucket of the shared layer answers, for commands that only check a configuration: instead of cache_init, in a
 * fiber. SL_NOT_FOUND if none is configured; otherwise the error says what is wrong. */
enum sl_code cache_check_bucket(const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Measures each kind's files in the directory, and sets the metrics of disk use, as a cleanup does too. Blocks: pool work. */
void cache_measure(const char *cache_dir, const struct cache_kind *const *kinds, size_t count);

struct cleanup_options {
    bool dry_run, all; /* dry_run: remove nothing, only count; all: also remove entries that have not expired */
    bool full;         /* the disk is full: evict something even if no limit is configured */
    const char *const *only;
    size_t only_count; /* kind names; 0 = every kind */
};
struct cleanup_totals {    /* counts entries, not side files; a dry run counts as if it had removed them */
    uint64_t files, bytes; /* that remain */
    uint64_t removed_files, removed_bytes;
    uint64_t errors; /* files and directories that could not be examined or removed */
};
/* Cleans cache_dir once: removes expired entries; then, if the files exceed `caches.max_size` or less than `caches.min_free_space` is free,
 * the least recently used contents of all kinds together. Malformed entries that are older than the process are removed at any age, if the
 * configuration says so (restart_retries_malformed). `by_kind` (NULL, or one for each kind) gets the totals of each kind. Blocks: pool work
 * or a command. SL_NOT_FOUND without a cache_dir; SL_MALFORMED for an unknown name in `only`; SL_INTERNAL, with the first failure, if the
 * directories of some kinds could not be read: the other kinds were cleaned. */
enum sl_code cache_cleanup(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                           const struct cleanup_options *options, struct cleanup_totals *totals,
                           struct cleanup_totals *by_kind, struct sl_error *error);
