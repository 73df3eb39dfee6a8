/* Checks of the access keys that requests send, and the rate limit on guessing keys. */
#include "api/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include "api/impl.h"
#include "base/base64.h"
#include "core/loop.h"
#include "core/network.h"

enum { MAX_DECODED = 1024 }; /* bytes of a decoded "<id>:<secret>"; a longer one is a malformed key */

bool access_required(const struct config *config, const char *group)
{
    for (size_t i = 0; i < config->auth.require_count; i++)
        if (sl_str_equal(config->auth.require[i], sl_str(group)))
            return true;
    return false;
}

/* True if the text is not empty and all its bytes are printable ASCII. */
static bool is_printable(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < 0x20 || text.data[i] > 0x7E)
            return false;
    return text.size > 0;
}

/* Removes the authentication scheme `name` ("Bearer") and blanks from the value of an Authorization header; false if it has another
 * scheme. */
static bool strip_scheme(struct sl_str *header, const char *name)
{
    struct sl_str scheme = sl_str(name), text = sl_str_trimmed(*header);
    if (text.size <= scheme.size || !sl_str_equal_nocase((struct sl_str){text.data, scheme.size}, scheme) ||
        (text.data[scheme.size] != ' ' && text.data[scheme.size] != '\t'))
        return false;
    *header = sl_str_trimmed((struct sl_str){text.data + scheme.size, text.size - scheme.size});
    return true;
}

/* Splits "<id>:<secret>" at the first colon. False, and `id` and `secret` stay as they are, if one of them is empty or has characters other
 * than printable ASCII. */
static bool split_pair(struct sl_str pair, struct sl_str *id, struct sl_str *secret)
{
    const char *colon = pair.size ? memchr(pair.data, ':', pair.size) : NULL;
    if (!colon)
        return false;
    struct sl_str before = {pair.data, (size_t)(colon - pair.data)}, after = {colon + 1, pair.size - before.size - 1};
    if (!is_printable(before) || !is_printable(after))
        return false;
    *id = before;
    *secret = after;
    return true;
}

/* Decodes base64 into `decoded` and splits the result, "<id>:<secret>"; `id` and `secret` point into it. False if it is malformed. */
static bool split_base64(struct sl_str text, char decoded[MAX_DECODED], struct sl_str *id, struct sl_str *secret)
{
    size_t size;
    return sl_base64_decode(text, (uint8_t *)decoded, MAX_DECODED, &size) &&
           split_pair((struct sl_str){decoded, size}, id, secret);
}

/* True if the key has one of these rights (list ends with NULL). */
static bool has_right(const struct access_key *key, const char *const *rights)
{
    for (; *rights; rights++)
        for (size_t i = 0; i < key->right_count; i++)
            if (sl_str_equal(key->rights[i], sl_str(*rights)))
                return true;
    return false;
}

/* True if any configured key has one of these rights (list ends with NULL). */
static bool has_holder(const struct config *config, const char *const *rights)
{
    for (size_t i = 0; i < config->auth.key_count; i++)
        if (has_right(&config->auth.keys[i], rights))
            return true;
    return false;
}

/* ---- limit of wrong keys ----
 * A set-associative table of fixed size for clients that sent wrong keys: a client hashes to a group of SLOTS records; a new one replaces
 * the record of that group that was used least recently. */
enum { GUESSERS = 4096, SLOTS = 4, GUESSES = 20, WINDOW_MS = 60000, BLOCKED_MS = 60000 };

static struct guesser {
    uint8_t address[16];
    uint32_t key_id;           /* hash of the key id that the client sent, if such a key is configured; else 0 */
    unsigned failures;         /* wrong keys since `began_ms` */
    uint64_t began_ms;         /* start of the window in which wrong keys are counted */
    uint64_t blocked_until_ms; /* 0: not blocked */
    uint64_t last_ms;          /* time of the last wrong key; 0: the record is free */
} guessers[GUESSERS];

/* Makes a new record of a client. It consists of the address and, if the client sent the id of a configured key, that id: so wrong keys
 * with other ids from the same address are counted apart. IPv6 clients count by their /64 network, as one host has all of its addresses. */
static struct guesser guesser_new(struct sl_str client, struct sl_str key_id, uint64_t now)
{
    /* `| 1`: the hash of a key id must differ from 0, which means "no configured key" */
    struct guesser guesser = {.key_id = key_id.size ? (uint32_t)XXH3_64bits(key_id.data, key_id.size) | 1 : 0,
                              .began_ms = now};
    if (!network_address(client, guesser.address)) {
        /* a unix socket: all its clients count as one, with an address that no network has (100::) */
        memset(guesser.address, 0, sizeof guesser.address);
        guesser.address[0] = 1;
    } else if (!network_is_v4(guesser.address)) {
        memset(guesser.address + 8, 0, 8); /* the interface part of an IPv6 address */
    }
    return guesser;
}

/* Returns the SLOTS consecutive records of the table among which that of `wanted` must be. */
static struct guesser *guesser_set(const struct guesser *wanted)
{
    uint64_t hash = XXH3_64bits_withSeed(wanted->address, sizeof wanted->address, wanted->key_id);
    return &guessers[hash % (GUESSERS / SLOTS) * SLOTS];
}

/* Returns the client's record. A client's hash selects SLOTS records of the table (guesser_set), in one of which it is stored. A client
 * without one gets a free record (last_ms 0) or that of the client whose last wrong key is the oldest. */
static struct guesser *guesser_find(const struct guesser *wanted)
{
    struct guesser *slots = guesser_set(wanted), *oldest = slots;
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].last_ms && slots[i].key_id == wanted->key_id &&
            memcmp(slots[i].address, wanted->address, sizeof wanted->address) == 0)
            return &slots[i];
        if (slots[i].last_ms < oldest->last_ms)
            oldest = &slots[i];
    }
    *oldest = *wanted;
    return oldest;
}

/* Counts a wrong key of the client. After GUESSES wrong keys within WINDOW_MS it is blocked for BLOCKED_MS: then false, and nothing is
 * counted. */
bool access_note_wrong_key(const struct http_exchange *x, struct sl_str key_id)
{
    uint64_t now = loop_now_ms();
    struct guesser wanted = guesser_new(x->client, key_id, now), *guesser = guesser_find(&wanted);
    guesser->last_ms = now ? now : 1; /* 0 would mark the record as free */
    if (now < guesser->blocked_until_ms)
        return false;
    if (now - guesser->began_ms >= WINDOW_MS) {
        guesser->began_ms = now;
        guesser->failures = 0;
    }
    if (++guesser->failures >= GUESSES) {
        guesser->blocked_until_ms = now + BLOCKED_MS;
        guesser->began_ms = now;
        guesser->failures = 0;
    }
    return true;
}

/* ---- keys ---- */

struct sent_key { /* key data sent by a request */
    struct sl_str id, secret;
    bool any;    /* the request has a header or parameter for keys */
    bool is_key; /* its value has the form of a key */
    char decoded[MAX_DECODED];
};

/* Reads a key in any form: in the Authorization header, Bearer with "<id>:<secret>" or the secret alone, Basic or APIKey with
 * "<id>:<secret>" in base64; else in the header X-Api-Key or, for route families that allow it, in the query parameter `key`. */
static void read_any_form(const struct http_exchange *x, struct sent_key *sent)
{
    struct sl_str header = http_header(x, "authorization"), other = http_header(x, "x-api-key");
    if (!other.data && x->route->family->key_in_query)
        other = http_query(x, "key");
    sent->any = header.data || other.data; /* something was sent, though perhaps no key */
    if (header.data && strip_scheme(&header, "Bearer")) {
        sent->secret = header; /* the whole text, unless split_pair() finds an id in front of it */
        sent->is_key = split_pair(header, &sent->id, &sent->secret) || is_printable(header);
    } else if (header.data) {
        sent->is_key = (strip_scheme(&header, "Basic") || strip_scheme(&header, "APIKey")) &&
                       split_base64(header, sent->decoded, &sent->id, &sent->secret);
    } else {
        sent->secret = sl_str_trimmed(other);
        sent->is_key = is_printable(sent->secret);
    }
}

/* Reads a key from the header "Authorization: APIKey base64(id:secret)"; other forms do not count as keys. */
static void read_api_key(const struct http_exchange *x, struct sent_key *sent)
{
    struct sl_str header = http_header(x, "authorization");
    sent->any = header.data != NULL;
    sent->is_key = strip_scheme(&header, "APIKey") && split_base64(header, sent->decoded, &sent->id, &sent->secret);
}

/* Returns the configured key with the secret and id that were sent, or with the secret alone if no id was sent; NULL if there is none.
 * Compares with all keys, so that the time does not tell an attacker which one matches. */
static const struct access_key *find_key(const struct config *config, const struct sent_key *sent)
{
    const struct access_key *found = NULL;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256((const uint8_t *)sent->secret.data, sent->secret.size, digest);
    for (size_t i = 0; i < config->auth.key_count; i++) {
        const struct access_key *one = &config->auth.keys[i];
        bool same = CRYPTO_memcmp(digest, one->sha256, sizeof digest) == 0;
        if (same && (!sent->id.size || sl_str_equal(one->id, sent->id)))
            found = one;
    }
    return found;
}

/* Returns `id` if a key with this id is configured, else an empty text: a client can send any text as an id, and such texts must
 * not get into the log and the limit of wrong keys. */
static struct sl_str known_id(const struct config *config, struct sl_str id)
{
    for (size_t i = 0; i < config->auth.key_count; i++)
        if (sl_str_equal(config->auth.keys[i].id, id))
            return config->auth.keys[i].id;
    return (struct sl_str){NULL, 0};
}

/* The reason of a refusal goes to x->refused, for the log; the answer does not give it. */
enum access access_check(struct http_exchange *x, enum access_form form, const char *const *rights,
                         const struct access_key **granted)
{
    static const char *const reasons[] = {
        [ACCESS_GRANTED] = NULL,
        [ACCESS_MISSING] = "no key",
        [ACCESS_MALFORMED] = "malformed key",
        [ACCESS_UNKNOWN] = "wrong key",
        [ACCESS_BLOCKED] = "wrong key, too many from this address",
        [ACCESS_EXPIRED] = "expired key",
        [ACCESS_DENIED] = "the key does not have the required right",
    };
    const struct config *config = ((const struct service *)x->service)->config;
    struct sent_key sent = {.is_key = false};
    if (form == ACCESS_API_KEY)
        read_api_key(x, &sent);
    else
        read_any_form(x, &sent);
    const struct access_key *key = sent.is_key ? find_key(config, &sent) : NULL;
    /* for the log: the id of the key found, or the id that was sent if a key with it is configured (its secret is wrong), else empty */
    struct sl_str id = key ? key->id : sent.is_key ? known_id(config, sent.id) : (struct sl_str){NULL, 0};
    OPENSSL_cleanse(sent.decoded, sizeof sent.decoded);
    enum access access = !sent.any                          ? ACCESS_MISSING
                         : !sent.is_key                     ? ACCESS_MALFORMED
                         : !key                             ? ACCESS_UNKNOWN
                         : clock_wall_s() >= key->expires_s ? ACCESS_EXPIRED
                         : has_right(key, rights)           ? ACCESS_GRANTED
                                                            : ACCESS_DENIED;
    if ((access == ACCESS_MALFORMED || access == ACCESS_UNKNOWN) && !access_note_wrong_key(x, id))
        access = ACCESS_BLOCKED;
    /* a copy: `id` belongs to the configuration, which may be replaced while the request runs */
    if ((x->key_id.data = sl_arena_strndup(&x->arena, id.size ? id.data : "", id.size)))
        x->key_id.size = id.size;
    x->refused = reasons[access];
    if (granted && access == ACCESS_GRANTED)
        *granted = key;
    return access;
}

/* ---- routes ---- */

/* True if the key is valid for the cache scope that the request names (`scope`, by default `global`): keys may be limited to scopes. A
 * route that does no work uses no scope, so there any key will do. */
static bool may_name_scope(const struct http_exchange *x, const struct access_key *key)
{
    struct sl_str scope = http_query(x, "scope");
    if (!scope.data)
        scope = SL_STR("global");
    bool allowed = !key->scopes || !x->route->takes_work;
    for (size_t i = 0; !allowed && i < key->scope_count; i++)
        allowed = sl_str_equal(key->scopes[i], scope);
    return allowed;
}

/* False, with the answer set, if the client's key is limited to scopes and the request itself defines a public source: files of public
 * sources are cached for all scopes. */
bool access_may_use_sources(struct http_exchange *x, const struct source *sources, size_t count)
{
    for (size_t i = 0; x->key_has_scopes && i < count; i++)
        if (sources[i].is_public && !sources[i].configured) {
            http_reply_error(x, 403, "not allowed");
            return false;
        }
    return true;
}

/* Answers 401; the header tells which authentication schemes are accepted. */
static void reply_unauthorized(struct http_exchange *x)
{
    http_reply_error(x, 401, "authentication required");
    http_set_header(x, "WWW-Authenticate",
                    x->route->family->offers_basic_auth ? SL_STR("Bearer realm=\"symloom\", Basic realm=\"symloom\"")
                                                        : SL_STR("Bearer realm=\"symloom\""));
}

/* Sets an answer only if the request is refused. Routes of a family that always requires a key do not exist (404) as long as no configured
 * key has one of their rights. */
void access_authorize(struct http_exchange *x)
{
    const struct config *config = ((const struct service *)x->service)->config;
    const struct http_route *route = x->route;
    const struct http_family *family = route->family;
    const struct access_key *key = NULL;
    if (!family->always_requires_key && !access_required(config, family->group))
        return;
    if (family->always_requires_key && !has_holder(config, route->rights)) {
        http_reply_error(x, 404, NULL);
        return;
    }
    switch (access_check(x, ACCESS_ANY_FORM, route->rights, &key)) {
    case ACCESS_GRANTED:
        x->key_has_scopes = key->scopes != NULL;
        if (!may_name_scope(x, key)) {
            x->refused = "the key does not allow this scope";
            http_reply_error(x, 403, "not allowed");
        }
        return;
    case ACCESS_DENIED: http_reply_error(x, 403, "not allowed"); return;
    case ACCESS_BLOCKED:
        http_reply_error(x, 429, "too many wrong keys");
        http_set_header(x, "Retry-After", SL_STR("60"));
        return;
    case ACCESS_MALFORMED:
    case ACCESS_UNKNOWN:
    case ACCESS_EXPIRED:
    case ACCESS_MISSING: reply_unauthorized(x); return;
    }
}
