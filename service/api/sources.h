/* Reads the sources that requests send. */
#pragma once

#include "api/json_document.h"
#include "config/config.h"
#include "origin/origin.h"

struct request_sources {
    const struct config *config; /* says which sources requests may name; set by the caller */
    const struct source *items;
    size_t count;
    uint64_t number; /* of the cached list (source_list.number): results of searches are cached by it; 0: not cached */
};

/* Reads a JSON member that is a list of sources (sl_field_read). `out`: a struct request_sources with `config` set. False: `s` says why. */
bool request_sources_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* Reads a list of sources into `*items` and `*count`, and its number (see request_sources.number) into `*number`, which may be NULL. */
bool request_sources_read_into(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                               const struct source **items, size_t *count, uint64_t *number);

/* For requests with the option `configured_sources`: replaces their list of sources by the configured sources, followed by the request's
 * own. The new list is in the arena. False when out of memory. */
bool request_sources_add_configured(const struct config *config, struct sl_arena *arena, const struct source **items,
                                    size_t *count);

/* Reads the one source of a request that may name only one, always as a Sentry source, whatever its `type`. `at->key`, which problems
 * name, must end with NUL. False: `s` says why. */
bool request_sentry_read(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                         struct source *source);
