/* What the files of the cache share among themselves; other folders include cache.h.
 *
 *     key.c      names                    memory.c   the layer in memory
 *     errors.c   errors as bytes, text    disk.c     the layer on disk: pool jobs
 *     meta.c     side files               cache.c    the algorithm, flights
 *     expiry.c   ages                     cleanup.c  walking the directory
 *     tmp.c      temporary files          evict.c    keeping to the budget
 *     shared.h   the layer behind the disk
 *
 * Everything but memory.c and cache.c is free of engine state and may run on any thread. */
#pragma once

#include "base/map.h"
#include "cache/cache.h"

enum {
    CACHE_HASH_BYTES = 32,
    CACHE_HEAD_BYTES = 1024, /* enough for a marker and every detail an error can hold; smaller files are copied */
    CACHE_PATH_BYTES = 1024,
    CACHE_VERSIONS_MAX = 16, /* versions of one kind that are looked at */
};
#define CACHE_SECOND_NS       1000000000ll
#define CACHE_TOUCH_EVERY_NS  (3600 * CACHE_SECOND_NS)
#define CACHE_INTERNAL_FOR_NS (30 * CACHE_SECOND_NS)

int64_t cache_now_ns(void); /* wall clock, nanoseconds since the epoch */

/* When this process started, as far as the restart rule is concerned: set by the first caller. */
int64_t cache_start_ns(void);

/* ---- key.c ---- */
void cache_key_hash(struct sl_str text, uint8_t hash[CACHE_HASH_BYTES]);
void cache_hash_path(const uint8_t hash[CACHE_HASH_BYTES], unsigned version, bool format1, char out[128]);
bool cache_scope_global(struct sl_str scope);
/* Makes the directories that `path` goes through, from the first slash after `keep` bytes on. The path is as before
 * afterwards. */
bool cache_make_parents(char *path, size_t keep);

/* ---- meta.c: `<entry>.metadata` ---- */
struct cache_meta {
    bool is_public;    /* scope is null */
    int64_t created_s; /* seconds since the epoch */
    bool has_status;
    enum sl_code status;
    bool has_size;
    uint64_t size;    /* of the entry */
    int64_t mtime_ns; /* of the side file itself */
};
enum cache_meta_result { CACHE_META_READ, CACHE_META_MISSING, CACHE_META_BAD };

/* Reads the side file of the entry `name` below the directory `at`. BAD: there, but unusable. */
enum cache_meta_result cache_meta_read(int at, const char *name, struct cache_meta *meta);
void cache_meta_encode(struct sl_str key, struct sl_str scope, int64_t created_s, enum sl_code status, uint64_t size,
                       struct sl_buf *out);
/* Puts the side file of the published entry `path` into place by a rename. False when it could not be written. */
bool cache_meta_write(const char *path, struct sl_bytes json);
bool cache_meta_name(const char *entry, char *out, size_t size);

/* ---- expiry.c ---- */
enum cache_class { CACHE_CONTENTS, CACHE_NEGATIVE, CACHE_MALFORMED };

struct cache_facts { /* all that expiry depends on */
    enum cache_class class;
    bool is_public;
    int64_t mtime_ns;
    int64_t created_ns;
    bool created_in_seconds; /* from a side file: whole seconds */
};
struct cache_verdict {
    bool expired;
    bool touch;       /* contents: the mtime is to be set to now */
    uint64_t left_ns; /* until the next look at the disk is due; DURATION_NEVER = no limit */
};
const struct cache_lifetimes *cache_lifetimes_of(const struct config *config, enum cache_section section);
struct cache_verdict cache_expiry(const struct cache_lifetimes *lifetimes, const struct cache_facts *facts,
                                  int64_t now_ns, int64_t start_ns, bool restart_retries_malformed);
enum cache_class cache_class_of(enum sl_code code);

/* What an entry is, from its first bytes (all of them when it is shorter than CACHE_HEAD_BYTES) and its side file
 * (NULL = none). SL_OK = contents. `*meta` becomes NULL when it cannot belong to this entry. */
enum sl_code cache_entry_decode(struct sl_bytes head, uint64_t size, int64_t mtime_ns, const struct cache_meta **meta,
                                struct sl_error *error);
/* True when the entry is shorter or longer than its own side file says: what a crash left. */
bool cache_entry_damaged(uint64_t size, int64_t mtime_ns, const struct cache_meta *meta);
void cache_entry_facts(enum sl_code code, int64_t mtime_ns, const struct cache_meta *meta, struct cache_facts *facts);

/* ---- tmp.c ---- */
enum sl_code cache_tmp_open(const char *cache_dir, struct sl_error *error); /* NULL = the system's directory */
void cache_tmp_close(void);
/* Removes what processes that are gone have left below `<cache_dir>/tmp`. */
void cache_tmp_sweep(const char *cache_dir);

/* ---- disk.c ---- */
struct cache_disk {  /* of the process; constant after start */
    const char *dir; /* NULL = no disk layer */
    int64_t start_ns;
    bool restart_retries_malformed;
};

/* A look-up: in the versions of the kind, the first unexpired entry; or a temporary file to compute into. */
struct cache_disk_lookup {
    const struct cache_disk *disk;
    const struct cache_kind *kind;
    const struct cache_lifetimes *lifetimes;
    struct sl_str key;
    int64_t renew_before_ns; /* misses made before this count as absent; 0 = none */

    bool found;
    bool touched;            /* contents of the current version, for the first time in an hour */
    unsigned version;        /* of what was found */
    enum sl_code code;       /* when found: SL_OK = item */
    struct cache_item *item; /* one reference */
    struct sl_error error;
    int64_t created_s;
    uint64_t left_ns;
    unsigned corrupt;     /* entries removed since load refused them or their size was wrong */
    int io_errno;         /* an unexpected failure of the directory, 0 = none; acted on as "not there" */
    struct cache_tmp tmp; /* open unless found; fd -1 when none could be made */
    struct sl_error tmp_error;
};
void cache_disk_lookup(void *lookup); /* pool */

/* Publishing one result. Takes over `tmp`: it is closed, and renamed or removed. */
struct cache_disk_publish {
    const struct cache_disk *disk;
    const struct cache_kind *kind;
    struct sl_str key, scope;
    struct cache_tmp *tmp;
    enum sl_code code;     /* SL_OK: contents */
    int64_t created_s;     /* 0 = now */
    struct sl_error error; /* in: the result's; out: SL_INTERNAL in `code` when contents were not usable */

    struct cache_item *item; /* one reference, when `code` is SL_OK */
    bool published;
    uint64_t outdated_files, outdated_bytes; /* entries of previous versions that were removed */
    int io_errno;
};
void cache_disk_publish(void *publish); /* pool */

void cache_item_destroy(struct cache_item *item);

/* ---- memory.c: one per kind; loop thread ---- */
struct cache_memory_entry {
    struct cache_memory_entry *newer, *older;
    struct cache_item *item; /* one reference; NULL: an error */
    struct sl_error *error;  /* owned */
    uint64_t deadline_ms;    /* of loop_now_ms; UINT64_MAX = none */
    uint64_t weight;
    int64_t created_s; /* of an error: seconds since the epoch */
    struct sl_str key; /* owned, behind the struct */
};
struct cache_memory {
    struct sl_map map;
    struct cache_memory_entry *newest, *oldest;
    uint64_t bytes, capacity;
    uint64_t mapped; /* entries that hold an mmap */
    const char *name;
};
struct cache_memory_entry *cache_memory_find(struct cache_memory *memory, struct sl_str key, uint64_t now_ms);
/* Keeps a further reference of `item`, or a copy of `error`, until the deadline; replaces what was there. */
void cache_memory_put(struct cache_memory *memory, struct sl_str key, struct cache_item *item,
                      const struct sl_error *error, int64_t created_s, uint64_t deadline_ms);
bool cache_memory_evict_mapped(struct cache_memory *memory); /* the oldest mapped entry; false when there is none */
void cache_memory_free(struct cache_memory *memory);

/* ---- evict.c ---- */

struct cache_budget {
    const char *cache_dir;
    uint64_t max_size, min_free; /* bytes; UINT64_MAX = none */
    bool full, dry_run;
};
/* Removes contents until 90 % of the budget are left: of the kinds that are `wanted`, those unused for longest first. All
 * kinds count as used. `totals`, one for each kind, is brought up to date. */
void cache_evict(const struct cache_budget *budget, const char *const *names, const bool *wanted, size_t count,
                 struct cleanup_totals *totals);
