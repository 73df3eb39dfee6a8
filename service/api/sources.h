/* Sources that requests bring with them. */
#pragma once

#include "api/json_document.h"
#include "config/config.h"
#include "origin/origin.h"

struct request_sources {
    const struct config *config; /* says what requests may name */
    const struct source *items;
    size_t count;
    uint64_t number; /* source_list_number; 0 when it is not kept */
};

/* A list of sources, into struct request_sources. A sl_field_read. */
bool request_sources_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* The same, straight to where a request has them; `number` may be NULL. */
bool request_sources_read_into(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                               const struct source **items, size_t *count, uint64_t *number);

/* Puts the sources of the configuration in front of those of the request, as the option `configured_sources` asks; the arena has
 * the list. False when out of memory. */
bool request_sources_add_configured(const struct config *config, struct sl_arena *arena, const struct source **items,
                                    size_t *count);

/* The one source of Sentry that a request is about, at a key that is terminated. */
bool request_sentry_read(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                         struct source *source);
