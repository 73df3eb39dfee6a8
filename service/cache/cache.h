/* The cache: one mechanism for every kind of file that is fetched or computed.
 *
 * An entry is named by a kind and a key (a text; its SHA-256 is the file name) and holds contents or an error. A look-up
 * asks memory, disk, the shared layer and then computes: into a temporary file, published by rename, used through a
 * read-only mapping. Equal look-ups join one computation, which belongs to the key and not to the request. Any number of
 * processes may share one directory, and any file in it may vanish at any moment. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/list.h"
#include "config/config.h"
#include "core/fiber.h"
#include "core/ledger.h"

enum cache_section { CACHE_DOWNLOADED, CACHE_DERIVED, CACHE_INDEX, CACHE_DIAGNOSTICS, CACHE_BOUNDED, CACHE_TRANSCODED };

struct cache_key {
    struct sl_str text;  /* "scope: <scope>\n\n..." ; must live as long as the call */
    struct sl_str scope; /* empty or "global" = global (metadata null) */
};

/* A file being computed: opened read-write at offset 0 in the process's temporary directory. compute may replace it by
 * another one of cache_tmp_create, discarding the old one; one without a name can be served but not published. */
enum { CACHE_NOTE_BYTES = 512 };

struct cache_tmp {
    int fd;
    char path[256]; /* empty when unlinked */
    /* Set by a computation that succeeded without something that may be had later: used like any other contents, noted in
     * the side file, kept from the shared layer, and computed anew after `caches.upgrade_fallback_after`. */
    bool incomplete;
    /* What a computation has to say of the contents beside them, UTF-8: kept in the side file, not in the shared layer. */
    char note[CACHE_NOTE_BYTES];
};

/* A published or unpublished entry in memory: reference-counted, immutable. Files of up to 1 KiB are copied instead of
 * mapped; their bytes are 16-aligned. Loop thread only. */
struct cache_item {
    struct sl_mapping mapping;
    void *loaded;         /* made by the kind's load or open; NULL when the kind has none */
    uint64_t weight;      /* bytes of `loaded` beyond the handle */
    char *note;           /* as the computation left it; NULL = nothing */
    int64_t time_created; /* seconds since the epoch */
    uint32_t references;
    const struct cache_kind *kind;
    _Atomic uint64_t looked_ms; /* pages.c: when its pages were looked at, and whether all were in memory then */
    _Atomic bool all_there;
};

struct cache_kind {   /* one static row per kind */
    const char *name; /* directory, metric label */
    enum cache_section section;
    unsigned version;                                  /* current; path format 2 */
    const unsigned *fallbacks, *previous;              /* versions, 0 terminated; may be NULL */
    unsigned format1_up_to;                            /* versions up to this use the old path shape */
    uint64_t (*capacity)(const struct config *config); /* memory layer, bytes; NULL = default_capacity */
    bool random_access; /* a lookup table: reading one page says nothing about the next */
    /* Computations ask for other entries of the same kind: as many run at once as are asked for. Of all other kinds the
     * number is bounded, and the kinds that they ask for in `compute` must not lead back to them. */
    bool recursive;
    /* The entry that this one is made from: it is got before the computation gets a fiber, and its error is the error of
     * this entry. False: there is none. NULL = never. `key` and `*context` may refer to `arena` and to what `context`
     * refers to. */
    bool (*base)(const void *context, struct sl_arena *arena, const struct cache_kind **kind, struct cache_key *key,
                 const void **base_context);
    /* What a computation will wait for, a host or a store: those of one place wait in one line. NULL = the kind's own. */
    struct sl_str (*place)(const void *context);
    /* In a fiber of the key's own: fills `tmp`. SL_OK = contents. `context` is what cache_get was given, valid until
     * compute returns (the engine calls `retain`, copying it into the flight's arena; without `retain` the pointer
     * itself is kept and must stay valid). SL_INTERNAL is never written to disk and remembered for 30 s; a
     * SL_DOWNLOAD_ERROR or SL_UNSUPPORTED whose `duration_ns` is set is remembered for that long, in memory only; SL_CANCELLED and SL_BUSY
     * are not remembered at all. It may run twice, when a file that it read was cut under its mapping. */
    enum sl_code (*compute)(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                            struct sl_error *error) SL_SUSPENDS;
    void *(*retain)(const void *context, struct sl_arena *arena);
    /* Whether the entry may be in the shared layer; NULL = always. */
    bool (*shareable)(const void *context);
    /* Validates a mapping, no parsing: O(1). May be NULL. An error makes the entry corrupt: removed and computed anew
     * once. On the pool. */
    enum sl_code (*load)(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
    void (*free_loaded)(void *loaded);
    /* Or, of a kind whose files are opened into a struct of `opened_size` bytes, which nothing has to end: opens them, as `load`. */
    enum sl_code (*open)(struct sl_bytes bytes, void *opened, struct sl_error *error);
    size_t opened_size;
};

/* `kinds` is the table of catalog/catalog.c; both it and the configuration must outlive the cache. Makes `cache_dir` when it
 * is missing and removes temporary files that processes before this one left. SL_INTERNAL, SL_MALFORMED (path too long)
 * when the directory cannot be used. */
enum sl_code cache_init(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                        struct sl_error *error);

/* Life times, capacities and limits of another configuration from now on; the one of cache_init must outlive the cache all
 * the same, since directory and shared layer stay as it has them. */
void cache_configure(const struct config *config);

/* Cancels the running computations and waits for their end, and for what is still to be stored in the shared layer, for
 * a few seconds. Before the loop stops. */
void cache_drain(void) SL_SUSPENDS;
void cache_close(void); /* removes the process's temporary directory; no fiber of the cache may run again */

/* Contents: SL_OK and a reference (`*item`, give back with cache_release). Otherwise the entry's error, fresh or kept.
 * SL_CANCELLED when the caller's group was cancelled while waiting: as cache_withdraw. */
enum sl_code cache_get(const struct cache_kind *kind, const struct cache_key *key, const void *context,
                       struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* The very entry that answered from memory, to ask for it again without its key. Zeros: none. */
struct cache_mark {
    uint64_t serial;
    uint32_t place, kind;
};

/* A look-up without a fiber: a record that waits. Zeros but for the question; it stays where it is until it is answered
 * or withdrawn. */
struct cache_look {
    const struct cache_kind *kind;
    const struct cache_key *key;           /* as long as the call of cache_ask */
    const void *context;                   /* the same */
    struct sl_error *error;                /* gets the error; may be NULL */
    void (*done)(struct cache_look *look); /* when it is answered later; must not suspend. The record is free then */
    /* the answer, as that of cache_get */
    enum sl_code code;
    struct cache_item *item; /* a reference */
    struct cache_mark mark;  /* of what memory answered at once */
    /* private */
    struct flight *flight;
    struct sl_link link;
    bool joined;
};

/* True: answered from memory, or because nothing can be computed any more; `done` is not called. False: it will be. Loop
 * thread, from a fiber or from a callback. */
bool cache_ask(struct cache_look *look);

/* Nobody waits for the answer any more; downloads go on, what is computed of them may end early. Nothing happens to one that is
 * answered. */
void cache_withdraw(struct cache_look *look);

/* After something failed in guard_run or as SL_INTERNAL of pool_run: entries whose mappings could not be read are
 * forgotten, so that they are made anew. True when a mapping was at fault: another try may succeed. */
bool cache_mend(void);

/* Work that reads cache items and can be done again: `run` looks its items up and uses them; `reset` releases what it got
 * and puts `arg` back to the state before `run`. */
struct cache_reader {
    enum sl_code (*run)(void *arg, struct sl_error *error) SL_SUSPENDS;
    void (*reset)(void *arg);
};
/* Runs `reader->run`. When it fails as SL_INTERNAL because a file was damaged under its mapping (truncated, or a bad disk),
 * forgets the damaged entries, resets and runs again, at most CACHE_MAX_RUNS times in all; each run may meet another damaged
 * file. Returns what the last run returned. */
enum { CACHE_MAX_RUNS = 8 };
enum sl_code cache_run_reader(const struct cache_reader *reader, void *arg, struct sl_error *error) SL_SUSPENDS;

/* Lets go of mappings of files that are no longer in the directory, whoever removed them, so that the disk has the room. After a
 * cleaning. */
void cache_drop_deleted(void) SL_SUSPENDS;
/* A fiber that does so every few seconds, and lets go of mappings that nobody asked for in `caches.memory_idle`, until it is cancelled.
 * `unused` is NULL. */
void cache_unmap_repeatedly(void *unused) SL_SUSPENDS;

/* Logs what is being looked up and computed, the oldest of each kind, for people who ask. */
void cache_log_state(void);

/* Whether the directory takes files, as far as is known: false after one could not be made, until a probe could. */
bool cache_writable(void);

/* What is known of the shared Redis: 0 = nothing bad, or there is none. */
enum { CACHE_REDIS_DOWN = 1, CACHE_REDIS_KEEPS = 2 /* it never evicts: when it is full, nothing can be stored */ };
unsigned cache_redis_state(void);

/* As cache_get when the memory layer has the answer: true, and `*code` with `*item` or `*error`. Never suspends. */
bool cache_peek(const struct cache_kind *kind, const struct cache_key *key, enum sl_code *code,
                struct cache_item **item, struct sl_error *error);

/* As cache_peek of the marked entry; `item` may be NULL. False when memory does not hold it any more, or not as an answer: then
 * it is to be asked for by its key. With `is_renewed` also when cache_renew would have it asked for again. */
bool cache_peek_mark(const struct cache_mark *mark, bool is_renewed, struct cache_item **item);

/* For an entry that would have been better than what its caller now uses: when the memory layer holds a miss for it
 * that is older than `caches.upgrade_fallback_after`, it is asked for again in the background, once at a time, and so are
 * the misses of this age that its computation meets. The caller goes on with what it has; the new answer, whatever it
 * is, takes the place of the old one. Does nothing when enough of these run. */
void cache_renew(const struct cache_kind *kind, const struct cache_key *key, const void *context);
/* Whether the loop may read the item: its pages were in memory a moment ago. If not, a job of the pool is to read it, which may
 * have to wait for the disk, and to call cache_look_at_pages; so one of those who come looks again every few seconds, and the
 * others go on. */
bool cache_at_hand(struct cache_item *item);
/* Looks whether all pages of the item are in memory; those of one that is not large begin to be read. Any thread but the loop's:
 * of 100 MB it takes a millisecond. */
void cache_look_at_pages(struct cache_item *item);

/* An item that is in no cache and gone with its last reference: as the kind would load these bytes, which are taken over.
 * SL_MALFORMED: they are none of the kind. */
enum sl_code cache_item_own(const struct cache_kind *kind, struct sl_buf *bytes, struct cache_item **item,
                            struct sl_error *error);

struct cache_item *cache_retain(struct cache_item *item);
void cache_release(struct cache_item *item);

/* A remote file as keys name it; without a location, all files of the source. */
struct cache_file {
    struct sl_str source, location;
};
/* The files have changed: entries of any kind and scope that come from them are absent from now on, in memory, on disk and
 * in the shared layer; of those made of them right now, callers get the result, and nobody else. Other processes learn of
 * it through the directory within a second, other machines through Redis. SL_INTERNAL when the directory or Redis could
 * not be told (this process has forgotten them all the same); SL_CANCELLED. */
enum sl_code cache_invalidate(const struct cache_file *files, size_t count, struct sl_error *error) SL_SUSPENDS;

/* Processes that this one forks from now on, and it, learn of each other's invalidations at once. False: no memory, a second it is. */
bool cache_share_bell(void);
/* Whether an invalidation that the directory knows of was made since, and names the key. */
bool cache_replaced(struct sl_str key, int64_t created_s) SL_SUSPENDS;

/* ---- quarantine ----
 * What was worked on when a process died (core/ledger.h) is counted in `<cache_dir>/quarantine`: after two crashes or three kills
 * within a day the service does not touch it for a day. SL_UNSUPPORTED when `work` is held so. Any thread. */
void cache_quarantine_name(const char *kind, struct sl_str key, struct sl_str about, struct ledger_work *work);
enum sl_code cache_quarantine_check(const struct ledger_work *work, struct sl_error *error);
struct cache_suspect {
    char kind[28], key[36], about[188];
    unsigned crashes, kills;
    int64_t until_s; /* seconds since the epoch; 0 = not held */
};
/* Tells of everything that was counted and is not a day old, held or not. Returns how many are held. */
size_t cache_quarantine_list(const char *cache_dir, void (*tell)(void *arg, const struct cache_suspect *suspect),
                             void *arg);
size_t cache_quarantine_clear(const char *cache_dir); /* forgets all; how many were held */

/* A further temporary file for use inside compute, or for uploads (unlinked at once if `unlinked`). */
enum sl_code cache_tmp_create(struct cache_tmp *tmp, bool unlinked, struct sl_error *error); /* any thread */
void cache_tmp_discard(struct cache_tmp *tmp);
/* Of a process that a signal ends, and on purpose: its temporary files go, and what it worked on is not to blame. The cache is not
 * used any more. Async-signal-safe. */
void cache_tmp_abandon(void);
const char *cache_tmp_dir(void); /* of this process; the system's when there is no cache_dir */

/* "v<N>/<b0>/<b1>/<rest>" (or the old shape). `out` gets at most 128 bytes with the NUL. */
void cache_relative_path(struct sl_str key_text, unsigned version, bool format1, char out[128]);

/* The marker file of an error, and back. cache_error_decode: SL_OK = the bytes are contents. */
void cache_error_encode(const struct sl_error *error, struct sl_buf *out);
enum sl_code cache_error_decode(struct sl_bytes bytes, struct sl_error *error);

/* `not found`, `permission denied: ...`, `download timed out after 300s` ...: the text clients see. */
void cache_error_text(const struct sl_error *error, struct sl_buf *out);

/* The i-th back end of the shared layer; false behind the last. */
struct cache_shared_state {
    const char *name;
    bool up;
    const char *last_error; /* NULL = none */
};
bool cache_shared_state(size_t i, struct cache_shared_state *state);

/* What cache_init would refuse in the configuration of the shared layer, found by the same functions; nothing is begun, and
 * nobody asked. SL_MALFORMED: `*key` is the key at fault. */
enum sl_code cache_check_shared(const struct config *config, const char **key, struct sl_error *error);

/* Whether the bucket of the shared layer answers, for who only looks at a configuration: instead of cache_init, in a fiber.
 * SL_NOT_FOUND when there is none; the error says what was wrong. */
enum sl_code cache_ask_bucket(const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Sets the metrics of what each kind has on disk, which runs of the cleanup set too. Blocks: pool work. */
void cache_measure(const char *cache_dir, const struct cache_kind *const *kinds, size_t count);

struct cleanup_options {
    bool dry_run, all;
    bool full; /* the disk is: something has to go even if there is no budget */
    const char *const *only;
    size_t only_count; /* kind names; 0 = every kind */
};
struct cleanup_totals {    /* entries; side files are not counted. A dry run counts as if it had removed */
    uint64_t files, bytes; /* that stay */
    uint64_t removed_files, removed_bytes;
    uint64_t errors; /* files and directories that could not be examined or removed */
};
/* One run over cache_dir: removes what has expired, and then, while there is more than `caches.max_size` or less free than
 * `caches.min_free_space`, the contents unused for longest, of all kinds in one order. `by_kind` (NULL, or one for each
 * kind) gets what became of each. Blocks: pool work or a command. SL_NOT_FOUND when there is no cache_dir; SL_MALFORMED
 * for an unknown name in `only`; SL_INTERNAL with the first failure when the directory of a kind could not be walked (the
 * others were). Malformed entries older than the process (the first run, or cache_init) go whatever their age. */
enum sl_code cache_cleanup(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                           const struct cleanup_options *options, struct cleanup_totals *totals,
                           struct cleanup_totals *by_kind, struct sl_error *error);
