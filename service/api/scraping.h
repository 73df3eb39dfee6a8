/* Files that requests let symloom fetch from the web: which URLs are good, and which get the request's headers. */
#pragma once

#include "api/json_document.h"
#include "fetch/fetch.h"

struct scraping { /* as requests have it */
    enum sl_opt_bool enabled, verify_ssl;
    const struct sl_str *allowed_origins;
    size_t allowed_origin_count;
    const struct fetch_header *headers;
    size_t header_count;
};

/* When nothing is said. */
extern const struct scraping scraping_default;

/* The member "scraping" of requests, into struct scraping. A sl_field_read. */
bool scraping_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* The URL in its usual form (lower-case host, no default port, no "..", strange characters percent-encoded; RFC 3986,
 * section 6.2.2), terminated, in the arena. data NULL when it is no URL of http or https. */
struct sl_str scraping_url(struct sl_arena *arena, struct sl_str url);

/* Whether `url` belongs to one of the origins:
 *
 *     star | URL | [scheme://]host[:port][/path]
 *
 * Without a scheme any will do. The host is a star (with a port: any host on that port), a name, or with "*." before it a
 * domain and all below it, on any port. The URL's path begins with the pattern's. Names are compared as ASCII (IDNA). */
bool scraping_origin_allowed(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url);

/* When the period began that `now_s` is in (seconds since 1970): those of a URL begin at a time of their own, which its SHA-256
 * says, so that not everything is asked for anew at once. False when out of memory. */
bool scraping_period_begin(struct sl_str url, int64_t period_s, int64_t now_s, int64_t *begin_s);
