/* Shared by the files of the cache; other folders include cache.h.
 *
 *     key.c      names                    memory.c   the layer in memory
 *     errors.c   errors as bytes, text    disk.c     the layer on disk: pool jobs
 *     meta.c     side files               cache.c    look-ups; engine.h: flights, queues, computing
 *     expiry.c   ages                     cleanup.c  walking the directory
 *     tmp.c      temporary files          evict.c    keeping to the budget, and to that of one kind
 *     stamp.c    invalidation stamps      invalidate.c  invalidating entries
 *     space.c    a full disk              shared.h   the shared layer behind the disk
 *     quarantine.c  files that crashed processes      residency.c  resident pages of mappings
 *
 * cache.c, the files of engine.h, memory.c, space.c and invalidate.c run on the loop thread; the others do not use the engine's state
 * and may run on any thread. */
#pragma once

#include <sys/stat.h>

#include "base/map.h"
#include "cache/cache.h"
#include "core/lru.h"

enum {
    CACHE_HASH_BYTES = 32,
    CACHE_HEAD_BYTES = 1024, /* enough for a stored error with its message; files up to this are copied, not mapped */
    CACHE_PATH_BYTES = 1024,
    CACHE_VERSIONS_MAX = 16, /* limit of the versions of a kind that are looked up */
};
#define CACHE_SECOND_NS       1000000000ll
#define CACHE_TOUCH_EVERY_NS  (3600 * CACHE_SECOND_NS)
#define CACHE_INTERNAL_FOR_NS (30 * CACHE_SECOND_NS)

int64_t cache_now_ns(void); /* wall clock, nanoseconds since the epoch */

/* Returns the time of the first call, which counts as the start of this process for restart_retries_malformed. */
int64_t cache_start_ns(void);

/* Returns the mtime in nanoseconds since the epoch. */
static inline int64_t cache_mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * CACHE_SECOND_NS + st->st_mtim.tv_nsec;
}

/* ---- key.c ---- */
void cache_key_hash(struct sl_str text, uint8_t hash[CACHE_HASH_BYTES]);
enum { CACHE_KEY_DIGITS = 16 };
/* Writes the first hex digits of the key's hash, by which logs name it: the key itself may contain secrets of a URL. */
void cache_key_digits(struct sl_str text, char out[CACHE_KEY_DIGITS + 1]);
/* Writes the path of an entry whose key has this hash, as cache_relative_path does. */
void cache_hash_path(const uint8_t hash[CACHE_HASH_BYTES], unsigned version, bool format1, char out[128]);
/* True for the global scope: "global" or an empty text. */
bool cache_scope_global(struct sl_str scope);

/* ---- stamp.c: any thread; times are nanoseconds since the epoch, 0 = never ----
 * An invalidation stamp is an empty file whose mtime says when a source file, or a whole source, was replaced: entries that were made
 * from it before are invalid. */

/* Takes the next source file that a key names from the front of `rest`, the key or what is left of it; false if there is none. */
bool cache_key_next(struct sl_str *rest, struct cache_file *file);
bool cache_key_names_file(struct sl_str key, const struct cache_file *file); /* true if the key names this file */
/* Returns when the last invalidation stamp of any file was written: changes with every new stamp. 0 if `dir` is NULL. */
int64_t cache_generation(const char *dir);
/* Returns the time of the newest invalidation stamp of the files that the key names. */
int64_t cache_newest_stamp(const char *dir, struct sl_str key);
/* When to read the time of the last invalidation stamp (cache_generation) again: after a second, or at once when a process of this service
 * has written stamps. */
struct cache_watch {
    uint64_t due_ms;
    unsigned counter_seen; /* at the last reading: how often processes of this service had written stamps */
};
/* invalidate.c: true if the time of the last invalidation stamp should be read now; then that is due again after a second. */
bool cache_watch_is_due(struct cache_watch *watch, uint64_t now_ms);
struct cache_generations {  /* cache_generation before and after invalidation stamps were written */
    int64_t previous, made; /* 0 = none */
};
/* Writes an invalidation stamp with the time `at_ns` for each file; stamps that are newer stay. SL_BUSY while another process writes
 * stamps: retry. SL_MALFORMED, SL_INTERNAL: a stamp could not be written. */
enum sl_code cache_write_stamp(const char *dir, const struct cache_file *files, size_t count, int64_t at_ns,
                               struct cache_generations *generations, struct sl_error *error);
/* Removes the invalidation stamps that are older than `before_ns`. */
void cache_sweep_stamps(const char *dir, int64_t before_ns);

/* ---- meta.c: side files, `<entry>.metadata` ---- */
struct cache_meta {     /* contents of a side file */
    bool is_public;     /* the scope is null: global */
    int64_t created_s;  /* seconds since the epoch */
    int64_t created_ns; /* with the fraction of the second; 0 = unknown */
    bool has_status;
    enum sl_code status; /* of the entry; SL_OK = contents */
    bool has_size;
    uint64_t size;               /* of the entry */
    bool incomplete;             /* cache_tmp.incomplete */
    char note[CACHE_NOTE_BYTES]; /* empty if there is none */
    int64_t mtime_ns;            /* of the side file itself */
};
enum cache_meta_result { CACHE_META_READ, CACHE_META_MISSING, CACHE_META_BAD, CACHE_META_BUSY };

/* Reads the side file of the entry `name` below the directory `at`. BAD: exists, but is invalid; BUSY: no descriptor or memory
 * to read it, see errno. */
enum cache_meta_result cache_meta_read(int at, const char *name, struct cache_meta *meta);
void cache_meta_encode(struct sl_str key, struct sl_str scope, int64_t created_ns, enum sl_code status, uint64_t size,
                       bool incomplete, const char *note, struct sl_buf *out);
/* Writes the side file of the published entry `path` by a rename. False when it could not be written. For example (one line):
 *
 *     {"scope":null,"time_created":1700000000,"debug":null,"status":"ok","size":3,
 *      "key":"scope: global\n\nsource: foo\nlocation: file://bar.baz\n","nanoseconds":5} */
bool cache_meta_write(const char *path, struct sl_bytes json);
/* Writes the name of the side file of an entry to `out`, of `size` bytes; false if it does not fit. */
bool cache_meta_name(const char *entry, char *out, size_t size);
bool cache_is_side_file(const char *name);

/* ---- expiry.c ---- */
/* How long an entry lives depends on its class: contents, the error of a malformed file, or another error (negative). */
enum cache_class { CACHE_CONTENTS, CACHE_NEGATIVE, CACHE_MALFORMED };

/* Returns the birth time (statx(2)) of the file `name` in the directory `at`, or of the open file `at` itself if the name is empty; 0 if
 * the file system has no birth times. */
int64_t cache_creation_ns(int at, const char *name);

struct cache_facts { /* what the expiry of an entry depends on */
    enum cache_class class;
    bool is_public;   /* its scope is global */
    int64_t mtime_ns; /* last use of contents, to an hour */
    int64_t created_ns;
    bool created_in_seconds; /* created_ns is from a side file, truncated to seconds */
    int64_t exact_ns;        /* time of creation with its fraction of a second, from a side file; 0 = unknown */
};
struct cache_freshness {
    bool expired;
    bool touch;       /* contents that were not used for an hour: set the mtime to now, which marks them as used */
    uint64_t left_ns; /* how long it may be used from memory without asking the disk again; DURATION_NEVER = no limit */
};
const struct cache_lifetimes *cache_get_lifetimes(const struct config *config, enum cache_section section);
/* Returns whether the entry has expired, by the lifetimes of its kind's section, and if not, how long it may be used without a new
 * check. */
struct cache_freshness cache_expiry(const struct cache_lifetimes *lifetimes, const struct cache_facts *facts,
                                    int64_t now_ns, int64_t start_ns, bool restart_retries_malformed);
enum cache_class cache_get_class(enum sl_code code);

/* Finds out whether an entry is contents (SL_OK) or an error, from its first bytes (all of them if it is shorter than CACHE_HEAD_BYTES),
 * its size and its side file `*meta` (NULL = none). Sets `*meta` to NULL if the side file belongs to an older file of this name. */
enum sl_code cache_entry_decode(struct sl_bytes head, uint64_t size, const struct cache_meta **meta,
                                struct sl_error *error);
/* True if the entry has another size than its side file says: it was truncated by a crash or by someone. False if the entry was made
 * (`born_ns`; 0 = unknown) and changed after the side file was: then that belongs to an older file of this name. */
bool cache_entry_damaged(uint64_t size, int64_t mtime_ns, int64_t born_ns, const struct cache_meta *meta);
/* Collects what expiry depends on. Without a side file (`meta` NULL) the mtime counts as the time of creation. */
void cache_entry_facts(enum sl_code code, int64_t mtime_ns, const struct cache_meta *meta, struct cache_facts *facts);

/* ---- tmp.c ---- */
/* Makes this process's directory for temporary files below the cache directory; NULL = the system's directory is used instead. */
enum sl_code cache_tmp_open(const char *cache_dir, struct sl_error *error);
void cache_tmp_close(void);
/* Tries to create a file in the cache directory; if that succeeds, cache_writable is true again. Pool. */
void cache_tmp_probe(void *unused);
/* Removes what ended processes have left below `<cache_dir>/tmp`. */
void cache_tmp_sweep(const char *cache_dir);

/* ---- quarantine.c: any thread ---- */
#define CACHE_QUARANTINE_NS (24 * 3600 * CACHE_SECOND_NS)
/* Counts a death of the process for each file that it was working on; after two crashes or three kills a file is quarantined for a day. */
struct journal_record;
void quarantine_note(const char *cache_dir, const struct journal_record *death);

/* ---- disk.c ---- */
struct cache_disk {  /* constant after the start of the process */
    const char *dir; /* NULL = no disk layer */
    int64_t start_ns;
};

/* A look-up on disk: finds the first entry that has not expired, of the present version of the kind or of one of its fallbacks. SL_BUSY
 * counts as found: this process lacks descriptors or memory, but the entry may well exist, so it must not be computed. */
struct cache_disk_lookup {
    const struct cache_disk *disk;
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    bool restart_retries_malformed;
    struct sl_str key;
    int64_t renew_before_ns; /* ignore misses made before this; 0 = use all */
    uint64_t renew_after_ns; /* minimum age at which incomplete contents are computed again */

    int64_t generation, stamp_ns; /* cache_generation; cache_newest_stamp of the key */
    bool found;
    bool incomplete;         /* contents made without some input */
    bool renewable;          /* incomplete and old enough to be computed again */
    bool touched;            /* contents that are used for the first time in an hour */
    unsigned version;        /* version of the entry that was found */
    enum sl_code code;       /* when found: SL_OK: `item` is set; else the entry's error, or SL_BUSY */
    struct cache_item *item; /* one reference */
    struct sl_error error;
    int64_t created_ns;
    uint64_t left_ns;                        /* cache_freshness.left_ns */
    unsigned corrupt;                        /* entries removed because the kind refused them or their size was wrong */
    uint64_t replaced_files, replaced_bytes; /* entries removed because their sources were replaced */
    int io_errno;                            /* an unexpected I/O error, 0 = none; the entry counts as absent */
};
void cache_disk_lookup(void *lookup); /* pool */
/* Tells whether core dumps are enabled: then mapped entries are excluded from them. Call before other threads exist. */
void cache_disk_dumps(bool made);

/* Publishes the result of a computation on disk. Takes over `tmp`: closes it, and renames or removes its file. For an error `tmp` may be
 * closed already. */
struct cache_disk_publish {
    const struct cache_disk *disk;
    const struct cache_kind *kind;
    struct sl_str key, scope;
    struct cache_tmp *tmp;
    enum sl_code code;     /* SL_OK: contents */
    int64_t created_s;     /* 0 = now */
    bool incomplete;       /* contents made without some input */
    int64_t begun_ns;      /* when its computation began; see `outdated` */
    struct sl_error error; /* in: the error of the result; out: why `code` became SL_INTERNAL or SL_BUSY */

    struct cache_item *item; /* one reference, when `code` is SL_OK */
    bool published;
    bool outdated; /* an invalidation stamp is later than begun_ns: the result is neither published nor cached */
    int64_t generation;
    uint64_t outdated_files, outdated_bytes; /* entries of previous versions that were removed */
    int io_errno;
};
void cache_disk_publish(void *publish); /* pool */

void cache_item_destroy(struct cache_item *item);

/* Counts removed entries by reason: "age", "size", "version", "invalidated". Any thread. */
void cache_count_removed(const struct cache_kind *kind, const char *reason, uint64_t files, uint64_t bytes);

/* ---- memory.c: one per kind; loop thread ---- */
struct cache_memory_entry {
    struct lru_entry lru;    /* its key follows the struct; expires_ms is in time of loop_now_ms */
    struct cache_item *item; /* one reference; NULL: an error */
    struct sl_error *error;  /* owned */
    uint64_t used_ms;        /* last use, in time of loop_now_ms */
    int64_t created_ns;      /* of an error: since the epoch */
    int64_t generation;
    size_t slot; /* its index in `slots` */
};
struct cache_slot {
    struct cache_memory_entry *entry; /* NULL = free */
    uint64_t serial; /* of the entry, never reused; for a free slot: the index of the next free one plus 1, 0 = none */
};
struct cache_memory {
    struct lru lru;
    struct cache_slot *slots;                    /* slots where handles find entries, used and free ones */
    size_t slot_count, slot_capacity, free_slot; /* free_slot: index of the first free one plus 1; 0 = none */
    uint64_t serial;                             /* the last one given out */
    uint64_t mapped;                             /* number of entries with a mapped file */
    const char *name;
};
#define CACHE_MEMORY_OLDEST(memory) LRU_OLDEST(&(memory)->lru, struct cache_memory_entry, lru)
#define CACHE_MEMORY_NEWEST(memory) LRU_NEWEST(&(memory)->lru, struct cache_memory_entry, lru)
void cache_memory_init(struct cache_memory *memory, const char *name); /* stores nothing until lru.max_size is set */
struct cache_memory_entry *cache_memory_find(struct cache_memory *memory, struct sl_str key, uint64_t now_ms);
/* Stores a new reference of `item`, or a copy of `error`, until the deadline; replaces an older entry. */
void cache_memory_put(struct cache_memory *memory, struct sl_str key, struct cache_item *item,
                      const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t deadline_ms);
void cache_memory_drop(struct cache_memory *memory, struct sl_str key);
/* Finds an entry by its slot and serial number, and makes it the most recently used. NULL: it is not in memory any more, or has expired. */
struct cache_memory_entry *cache_memory_at(struct cache_memory *memory, size_t slot, uint64_t serial, uint64_t now_ms);
/* Drops entries with a mapped file that were last used before `used_before_ms` and for which `matches` returns true. */
void cache_memory_drop_mapped(struct cache_memory *memory,
                              bool (*matches)(const struct cache_item *item, const void *arg), const void *arg,
                              uint64_t used_before_ms);
/* Drops the least recently used entry with a mapped file; false if there is none. */
bool cache_memory_evict_mapped(struct cache_memory *memory);
void cache_memory_free(struct cache_memory *memory);
/* How many files may be mapped: as configured, or half of vm.max_map_count, less if the stacks of fibers (two maps each) would
 * not fit as well. */
uint64_t cache_mapped_limit(const struct config *config);

/* ---- cache.c ---- */
typedef void cache_dropped_fn(void *arg, const struct cache_kind *kind, struct sl_str key);
/* Drops the entries of the files from memory, and marks their running computations as outdated; calls `tell` for each key. */
void cache_drop_files(const struct cache_file *files, size_t count, cache_dropped_fn *tell, void *arg);
const char *cache_dir_of_process(void); /* NULL = no disk layer */
/* Call the first before this process writes invalidation stamps (one fiber at a time), the second after it, with the values of
 * cache_generation before and after: so the engine knows that these stamps are its own, and need not check all entries in memory. */
void cache_invalidation_begin(void);
void cache_invalidation_end(int64_t previous, int64_t made);

/* ---- invalidate.c ---- */
/* Invalidates the entries of files that changed at that time, as another machine reports: writes invalidation stamps and drops the entries
 * from memory. */
void cache_invalidate_remote(const struct cache_file *files, size_t count, int64_t at_ns) SL_SUSPENDS;

/* ---- space.c: loop thread ---- */
void space_init(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                struct fiber_group *group);
void space_configure(const struct config *config);
/* Call after a write that failed with errno `number`: if that means that the disk or a quota is full, starts a cleanup, at most once a
 * minute. */
void space_reclaim(int number);
/* If the cache directory takes no files (cache_writable), starts a fiber that tries every 5 s until it does. */
void space_retry(void);
/* Call after a computation failed with SL_INTERNAL, before its temporary file is removed. True if the disk is full, which computations
 * report as SL_INTERNAL; then a cleanup is started. */
bool space_is_disk_full(void) SL_SUSPENDS;

enum { CACHE_TREE_DEPTH = 8 }; /* so many levels of directories are walked below the directory of a kind */

/* ---- evict.c ---- */

struct cache_budget {
    const char *cache_dir;
    uint64_t max_size, min_free; /* bytes; UINT64_MAX = no limit */
    bool full, dry_run;
};
/* If the cache exceeds the budget, evicts contents of the `wanted` kinds, the least recently used first, until it uses 90 % of the budget.
 * The files of all kinds count as used. Updates `totals`, one for each kind. */
void cache_evict(const struct cache_budget *budget, const char *const *names, const bool *wanted, size_t count,
                 struct cleanup_totals *totals);
