/* SymCache files for Windows Performance Analyzer. External programs ("transcoders") convert PDB files to them,
 * because the format is not documented. The kind `ms_symcaches`: keys consist of the version, the PDB's name in
 * lower case and its id. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "id/id.h"

extern const struct cache_kind kind_ms_symcaches;

struct ms_symcache_query {
    const struct config *config; /* results hold a reference to it */
    const struct transcoder *transcoder;
    unsigned version[3]; /* the transcoder's, or an older one of the same major version, which is only looked up */
    struct sl_str pdb_name;
    struct sl_debug_id id; /* including the age */
    bool is_cached_only;   /* true: look up only, do not convert */
};

/* Returns a reference to the cache entry. SL_NOT_FOUND: no source has the PDB; SL_MALFORMED: the transcoder gave no
 * result. SL_BUSY also if is_cached_only and there is no entry. */
enum sl_code ms_symcache_get(const struct ms_symcache_query *query, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;

/* Returns the cache key of the question, in the arena; data NULL if out of memory. */
struct sl_str ms_symcache_key(const struct ms_symcache_query *query, struct sl_arena *arena);

/* Lists older versions of the same major version that cached files may have, newest first, at most `max`. */
size_t ms_symcache_get_older(const struct config *config, const unsigned version[3], unsigned (*versions)[3],
                             size_t max) SL_SUSPENDS;

void ms_symcaches_close(void);

/* ---- transcode.c: one run of a program ---- */
struct transcode {
    const struct config *config;
    const struct transcoder *transcoder;
    const char *pdb_name, *id; /* "<PDBID><AGE>" */
    struct sl_bytes pdb;
};

/* Runs the transcoder and writes its result to `fd`. SL_MALFORMED: no result; SL_CANCELLED, SL_BUSY, SL_INTERNAL.
 * All its processes have ended when this returns. */
enum sl_code transcode_run(const struct transcode *job, int fd, struct sl_error *error) SL_SUSPENDS;
