/* Access keys as requests present them. */
#pragma once

#include "config/config.h"
#include "http/http.h"
#include "origin/origin.h"

enum access {
    ACCESS_GRANTED,
    ACCESS_MISSING,   /* no key is shown */
    ACCESS_MALFORMED, /* what is shown is none */
    ACCESS_UNKNOWN,
    ACCESS_BLOCKED, /* as the two before, and the brake is on */
    ACCESS_EXPIRED,
    ACCESS_DENIED /* the key has none of the rights */
};

/* Whether the group of routes needs a key at all. */
bool access_required(const struct config *config, const char *group);

/* Answers 401, 403 or 429, in the form of the route's family, when the family's group needs a key and the request has none
 * with one of the route's rights, or names a scope that is not the key's; 404 while a guarded family has no holder. */
void access_authorize(struct http_exchange *x);

/* Whether a request may bring these sources (or has those of the configuration): the files of public ones are everybody's, and
 * who is held to scopes writes to no others. False: 403 is the answer. */
bool access_may_bring(struct http_exchange *x, const struct source *sources, size_t count);

/* What a request shows: any form of a key (`Authorization: Bearer <key>`, `Bearer <id>:<key>`, `Basic base64(id:key)`,
 * `APIKey base64(id:key)`, or `X-Api-Key: <key>`), or `APIKey base64(id:key)` alone, the form of uploads. */
enum access_form { ACCESS_ANY_FORM, ACCESS_API_KEY };

/* Whether the request shows a key with one of the rights (NULL ends them): `*granted` (may be NULL) is then its entry. Sets the
 * exchange's key_id and refused. An unknown id takes as long as a wrong key. */
enum access access_check(struct http_exchange *x, enum access_form form, const char *const *rights,
                         const struct access_key **granted);

/* A brake on guessing: behind 20 wrong keys of an address within a minute all wrong ones of it are answered 429 for a minute, and not
 * counted. Right keys pass: many clients may share the address of a proxy, and those that name the id of a key count for that id
 * alone, so that one with an old secret does not hide what is wrong with the others. An IPv6 network of 64 bits counts as one
 * address. Notes a wrong key, `key_id` empty when it names none that is known; false when the brake is on. */
bool access_note_wrong_key(const struct http_exchange *x, struct sl_str key_id);
