/* Scraping: which URLs of the web a request may fetch, and which of them get the request's headers. */
#pragma once

#include "api/json_document.h"
#include "fetch/fetch.h"

struct scraping { /* the rules in a request's member "scraping" */
    enum sl_opt_bool enabled, verify_ssl;
    const struct sl_str *allowed_origins;
    size_t allowed_origin_count;
    const struct fetch_header *headers;
    size_t header_count;
};

/* The rules of a request without "scraping": any URL, no headers. */
extern const struct scraping scraping_default;

/* Reads the member "scraping" into a struct scraping. Has the type sl_field_read. */
bool scraping_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* Normalizes the URL (lower-case host, no default port, no "..", unusual characters percent-encoded; RFC 3986, section 6.2.2);
 * NUL-terminated, in the arena. data NULL if it is not an http or https URL. */
struct sl_str scraping_url(struct sl_arena *arena, struct sl_str url);

/* True if `url` matches one of the origins:
 *
 *     star | URL | [scheme://]host[:port][/path]
 *
 * Without a scheme any scheme matches. The host is a star (any host), a name, or "*." and a domain, which matches the domain and all
 * its subdomains on any port, even if the origin has one. Otherwise an origin without a port matches any port. The URL's path must
 * begin with that of the origin, whose final star is dropped. Names are compared in ASCII form (IDNA). */
bool scraping_origin_allowed(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url);

/* Computes the start of the period that contains `now_s` (seconds since 1970). The periods of a URL are shifted by an offset made of
 * its SHA-256, so that not all URLs are fetched again at once. False when out of memory. */
bool scraping_period_begin(struct sl_str url, int64_t period_s, int64_t now_s, int64_t *begin_s);
