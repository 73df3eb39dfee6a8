/* Reads the sources that requests send. */
#pragma once

#include "api/json_document.h"
#include "config/config.h"
#include "origin/origin.h"

struct request_sources {
    const struct config *config; /* its policy says what requests may name */
    const struct source *items;
    size_t count;
    uint64_t number; /* source_list_number; 0 when the list is not cached */
};

/* Reads a list of sources into struct request_sources. A sl_field_read. */
bool request_sources_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* Does the same as request_sources_read, directly into the members of a request; `number` may be NULL. */
bool request_sources_read_into(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                               const struct source **items, size_t *count, uint64_t *number);

/* Puts the configured sources before those of the request (option `configured_sources`); the new list is in the arena. False
 * when out of memory. */
bool request_sources_add_configured(const struct config *config, struct sl_arena *arena, const struct source **items,
                                    size_t *count);

/* Reads the one Sentry source of a request, at a NUL-terminated key. */
bool request_sentry_read(struct sl_fields *s, const struct sl_json_path *at, const struct config *config,
                         struct source *source);
