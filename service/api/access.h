/* Access keys as requests present them. */
#pragma once

#include "config/config.h"
#include "http/http.h"
#include "origin/origin.h"

enum access { ACCESS_GRANTED, ACCESS_MISSING, ACCESS_MALFORMED, ACCESS_UNKNOWN, ACCESS_DENIED };

/* Whether the group of routes needs a key at all. */
bool access_required(const struct config *config, const char *group);

/* Answers 401, 403 or 429, in the form of the route's family, when the family's group needs a key and the request has none
 * with one of the route's rights, or names a scope that is not the key's; 404 while a guarded family has no holder. */
void access_authorize(struct http_exchange *x);

/* Whether a request may bring these sources (or has those of the configuration): the files of public ones are everybody's, and
 * who is held to scopes writes to no others. False: 403 is the answer. */
bool access_may_bring(struct http_exchange *x, const struct source *sources, size_t count);

/* A brake on guessing: behind 20 wrong keys from one address within a minute all wrong ones of it are answered 429 for a minute,
 * and not counted. Right keys pass: many clients may share the address of a proxy. An IPv6 network of 64 bits counts as one
 * address. */
bool access_is_blocked(struct sl_str client);
void access_note_wrong_key(struct sl_str client);

/* Any form of a key: `Authorization: Bearer <key>`, `Bearer <id>:<key>`, `Basic base64(id:key)`, `APIKey base64(id:key)`,
 * or `X-Api-Key: <key>`; data NULL = absent. As access_check_api_key. */
enum access access_check(const struct config *config, struct sl_str authorization, struct sl_str x_api_key,
                         const char *const *rights, const struct access_key **key);

/* `Authorization: APIKey base64(id:key)`, the only form of uploads; `header` data NULL = absent. ACCESS_GRANTED when the
 * key has one of the rights (ends with NULL); `*key` (may be NULL) is then the entry. An unknown id takes as long as a
 * wrong key. */
enum access access_check_api_key(const struct config *config, struct sl_str header, const char *const *rights,
                                 const struct access_key **key);
