/* Checks of the access keys that requests send. */
#pragma once

#include "config/config.h"
#include "http/http.h"
#include "origin/origin.h"

enum access {
    ACCESS_GRANTED,
    ACCESS_MISSING,   /* the request sends no key */
    ACCESS_MALFORMED, /* the header does not have the form of a key */
    ACCESS_UNKNOWN,   /* no configured key has this id and secret */
    ACCESS_BLOCKED,   /* malformed or unknown key, and the client has sent too many of those (access_note_wrong_key) */
    ACCESS_EXPIRED,
    ACCESS_DENIED /* the key has none of the required rights */
};

/* True if the configuration (auth.require) demands a key for the routes of this group, as "symbolicate" or "metrics". */
bool access_required(const struct config *config, const char *group);

/* Checks the key of a request if its route family always requires one (`always_requires_key`) or the configuration demands one for the
 * family's group. If it is refused, answers in the error format of the family: 401 without a valid key; 403 if the key has none of the
 * route's rights or, on a route that takes work, is limited to other cache scopes than the request's; 429 after too many wrong keys. A
 * route that always requires a key answers 404 while no configured key has one of its rights. */
void access_authorize(struct http_exchange *x);

/* True if the request may use these symbol sources, which it defines itself or which are configured. Files of public sources are cached for
 * everybody, so a client whose key is limited to scopes may not define public sources. False: 403 is answered. */
bool access_may_use_sources(struct http_exchange *x, const struct source *sources, size_t count);

/* Where a key may be. ACCESS_ANY_FORM: `Authorization` with `Bearer <secret>`, `Bearer <id>:<secret>`, `Basic base64(id:secret)` or `APIKey
 * base64(id:secret)`; the header `X-Api-Key: <secret>`; the query parameter `key` if the route family allows it. ACCESS_API_KEY: only
 * `Authorization: APIKey base64(id:secret)`, for uploads of symbfiles. */
enum access_form { ACCESS_ANY_FORM, ACCESS_API_KEY };

/* Checks that the request has a key with one of the rights (list ends with NULL). On ACCESS_GRANTED `*granted` (`granted` may be NULL) is
 * the configured key. Sets x->key_id, for the log, and x->refused: the reason of a refusal, or NULL. Counts wrong keys
 * (access_note_wrong_key). An unknown id takes as long as a wrong secret. */
enum access access_check(struct http_exchange *x, enum access_form form, const char *const *rights,
                         const struct access_key **granted);

/* Rate limit on guessing keys. After 20 wrong keys from one address within a minute, further wrong keys from it get 429 for a
 * minute and are not counted. Right keys still pass, as many clients may share the address of a proxy. Wrong secrets of a known
 * key id are counted per address and id: so a client with an outdated secret does not cause 429 for others at its address. An
 * IPv6 /64 network counts as one address.
 *
 * Records a wrong key; `key_id` is its id if a key with that id is configured, else empty. False: the limit is reached. */
bool access_note_wrong_key(const struct http_exchange *x, struct sl_str key_id);
