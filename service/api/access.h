/* Checks of the access keys that requests send. */
#pragma once

#include "config/config.h"
#include "http/http.h"
#include "origin/origin.h"

enum access {
    ACCESS_GRANTED,
    ACCESS_MISSING,   /* the request sends no key */
    ACCESS_MALFORMED, /* the header has not the form of a key */
    ACCESS_UNKNOWN,
    ACCESS_BLOCKED, /* malformed or unknown key, and the address is over the limit of access_note_wrong_key */
    ACCESS_EXPIRED,
    ACCESS_DENIED /* the key lacks every right of the route */
};

/* True if the routes of the group need a key. */
bool access_required(const struct config *config, const char *group);

/* Checks the key of a request if its family is guarded or the family's group needs a key. Answers, in the error format of
 * the family: 401 without a valid key; 403 if the key has none of the route's rights or, on a route that takes work, is
 * limited to other scopes than the request's (default `global`); 429 after too many wrong keys. A guarded route answers 404
 * while no configured key has one of its rights. */
void access_authorize(struct http_exchange *x);

/* True if the request may use these sources (its own or configured ones). Files of public sources are cached for everybody, so
 * a client whose key is limited to scopes may not name public sources itself. False: 403 is answered. */
bool access_may_use_sources(struct http_exchange *x, const struct source *sources, size_t count);

/* Headers that may contain the key. ACCESS_ANY_FORM: `Authorization: Bearer <key>`, `Bearer <id>:<key>`,
 * `Basic base64(id:key)`, `APIKey base64(id:key)` and `X-Api-Key: <key>`. ACCESS_API_KEY: only `APIKey base64(id:key)`
 * (uploads of symbfiles). */
enum access_form { ACCESS_ANY_FORM, ACCESS_API_KEY };

/* Checks that the request has a key with one of the rights (list ends with NULL); `*granted` (may be NULL) is then the
 * entry of the configuration. Sets key_id and refused of the exchange. Checking an unknown id takes as long as checking a
 * wrong secret. */
enum access access_check(struct http_exchange *x, enum access_form form, const char *const *rights,
                         const struct access_key **granted);

/* Rate limit on guessing keys. After 20 wrong keys from one address within a minute, further wrong keys from it get 429 for a
 * minute and are not counted. Right keys still pass, as many clients may share the address of a proxy. Wrong secrets of a known
 * key id are counted per address and id: so a client with an outdated secret does not cause 429 for others at its address. An
 * IPv6 /64 network counts as one address.
 *
 * Records a wrong key; `key_id` is empty when it names no known key. False: the limit is reached. */
bool access_note_wrong_key(const struct http_exchange *x, struct sl_str key_id);
