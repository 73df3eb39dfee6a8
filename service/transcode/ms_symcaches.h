/* SymCache files for Windows Performance Analyzer. External programs ("transcoders") make them from PDB files, because the format is not
 * documented. They are entries of the cache kind `ms_symcaches`; the key consists of the transcoder's version, the PDB's name in lower
 * case, and its id. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "id/id.h"

extern const struct cache_kind kind_ms_symcaches;

struct ms_symcache_query {
    const struct config *config;         /* a computation retains it */
    const struct transcoder *transcoder; /* of `config` */
    /* that of the transcoder, or an older one with the same major number: then set is_cached_only */
    unsigned version[3];
    struct sl_str pdb_name;
    struct sl_debug_id id; /* including the age */
    bool is_cached_only;   /* true: do not convert the PDB if the SymCache file is not in the cache */
};

/* Gets the SymCache file from the cache, or makes it; `*item` is a reference to its cache entry. SL_NOT_FOUND: no source has the PDB;
 * SL_MALFORMED: the transcoder gave no result. SL_BUSY also with is_cached_only if there is no entry. */
enum sl_code ms_symcache_get(const struct ms_symcache_query *query, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;

/* Returns the cache key of the query, in the arena; data NULL if out of memory. */
struct sl_str ms_symcache_key(const struct ms_symcache_query *query, struct sl_arena *arena);

/* Lists the versions of transcoders, older than `version` but with the same major number, whose files may be in the cache: the newest
 * first, at most `max`. Returns their number. */
size_t ms_symcache_get_older(const struct config *config, const unsigned version[3], unsigned (*versions)[3],
                             size_t max) SL_SUSPENDS;

/* Clears the list of known versions, at the end of the process. */
void ms_symcaches_close(void);

/* ---- transcode.c: one run of a transcoder ---- */
struct transcode {
    const struct config *config;
    const struct transcoder *transcoder;
    const char *pdb_name, *id; /* "<PDBID><AGE>" */
    struct sl_bytes pdb;
};

/* Runs the transcoder on the PDB and writes the SymCache file to `fd`. SL_MALFORMED: it gave none, failed, or took too long; SL_CANCELLED,
 * SL_BUSY, SL_INTERNAL. All its processes have ended when this returns. */
enum sl_code transcode_run(const struct transcode *job, int fd, struct sl_error *error) SL_SUSPENDS;
