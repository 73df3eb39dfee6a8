/* Functions shared by the kinds of cache entries. Private to this folder. */
#pragma once

#include "cache_kinds/converters.h"
#include "cache_kinds/listing.h"
#include "cache_kinds/sources.h"
#include "conversion/conversion.h"

/* ---- entry.c ---- */

/* Gets the request's object and runs the converter, whose options must be a struct reader_limits, on it. The output goes to `fd`, the
 * converter's result to `result` (NULL: it has none). `kind` is for metrics (NULL: none are written). */
enum sl_code convert_to_entry(const struct object_request *request, const struct cache_kind *kind,
                              const struct converter *converter, void *result, int fd, struct sl_arena *arena,
                              struct sl_error *error) SL_SUSPENDS;

/* For cache_kind.shareable: always false, for entries that are useful on this machine only, or are made from an entry that is shared. */
bool kinds_never_shared(const void *context);

/* ---- auxiliary.c ---- */

/* Downloads the request's file into `fd` and validates it with the converter `check`, which has no options and no result. Returns the
 * error of the download or of `check`. */
enum sl_code auxiliary_fetch(const struct object_request *request, const struct converter *check, int fd,
                             struct sl_error *error) SL_SUSPENDS;

/* ---- listing.c ---- */
/* Removes from `files` those that the source's index does not list, and changes the case of the others to that of the index. If there is
 * no index, `*count` becomes 0; if it cannot be had now, `*failed` becomes true as well. Fails only with SL_CANCELLED, SL_BUSY and
 * SL_INTERNAL. */
enum sl_code source_index_filter(const struct source *source, struct sl_str scope, struct sl_arena *arena,
                                 struct remote_file *files, size_t *count, bool *failed) SL_SUSPENDS;

extern const struct cache_kind kind_source_index;
extern const struct cache_kind kind_source_files;  /* the context is a struct source_request; loaded by script_load */
extern const struct cache_kind kind_bundled_files; /* the context is a struct source_request with `entry` set */
extern const struct cache_kind kind_embedded_sources; /* loaded by source_load */
extern const struct cache_kind kind_sourcemap_caches; /* loaded: struct sl_smcache */

/* For cache_kind.load: `*loaded` is an open struct sl_bundle, or NULL for other files and damaged bundles. Fails only with SL_BUSY. */
enum sl_code source_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
void source_unload(void *loaded);
/* Memory limit for open source bundles of one kind, in bytes: they stay open between requests. */
enum { OPEN_BUNDLES_BYTES = 64 << 20 };

/* ---- source_files.c ---- */
void *source_request_retain(const void *request, struct sl_arena *arena);

/* ---- scripts.c: `loaded` of text files ---- */
enum sl_code script_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error);
void script_free(void *loaded);

/* ---- companions.c: files with other parts of an object's debug information ---- */
struct companion_items { /* references; NULL = none */
    struct cache_item *package, *dwz;
    bool incomplete; /* a file could not be had now, but may exist: not for "not found" or "access denied" */
};

/* Finds out which companion files the object refers to; true if it refers to any. Runs on the pool or in a worker. */
bool companions_wanted(struct sl_object *object, struct companion_wants *wants);
/* Gets the companion files from the source of the request's file; leaves out those that cannot be had. Fails only with SL_CANCELLED
 * and SL_BUSY. */
enum sl_code companions_get(const struct object_request *request, const struct companion_wants *wants,
                            struct sl_arena *arena, struct companion_items *items, struct sl_error *error) SL_SUSPENDS;
void companions_release(struct companion_items *items);
/* Opens the companion files among a conversion's inputs; leaves out missing and damaged ones. Fails when out of memory (SL_BUSY) or when
 * the budget is used up. */
enum sl_code companions_open(struct conversion *conversion, const struct converter_call *call,
                             const struct reader_limits *limits, struct sl_companions *companions,
                             struct sl_error *error);
void companions_close(struct sl_companions *companions);
