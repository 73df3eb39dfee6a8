/* SymCache files, which Windows Performance Analyzer reads: made of PDB files by programs ("transcoders"), as nobody else knows
 * what is in them. The kind `ms_symcaches`: keys are the version, the PDB's name in lower case and its id. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "id/id.h"

extern const struct cache_kind kind_ms_symcaches;

struct ms_symcache_question {
    const struct config *config; /* is held by what is made */
    const struct transcoder *transcoder;
    unsigned version[3]; /* the transcoder's, or an older one of its major version, which is only looked for */
    struct sl_str pdb_name;
    struct sl_debug_id id; /* with the age */
    bool is_cached_only;   /* nothing is made */
};

/* SL_OK and a reference; SL_NOT_FOUND: no source has the PDB; SL_MALFORMED: the transcoder made nothing of it. SL_BUSY also when
 * nothing is known and nothing may be made. */
enum sl_code kinds_get_ms_symcache(const struct ms_symcache_question *question, struct sl_arena *arena,
                                   struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* The text that stands for the question; in the arena. data NULL when out of memory. */
struct sl_str kinds_ms_symcache_key(const struct ms_symcache_question *question, struct sl_arena *arena);

/* Versions before this one, of the same major, that files may be of in the cache: newest first. At most `max`. */
size_t kinds_ms_symcache_older(const struct config *config, const unsigned version[3], unsigned (*versions)[3],
                               size_t max) SL_SUSPENDS;

void ms_symcaches_close(void);

/* ---- transcode.c: one run of a program ---- */
struct transcode {
    const struct config *config;
    const struct transcoder *transcoder;
    const char *pdb_name, *id; /* "<PDBID><AGE>" */
    struct sl_bytes pdb;
};

/* The result, which the file `fd` gets. SL_MALFORMED: there is none; SL_CANCELLED, SL_BUSY, SL_INTERNAL. No process of it is left. */
enum sl_code transcode_run(const struct transcode *job, int fd, struct sl_error *error) SL_SUSPENDS;
