#include "api/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "api/impl.h"
#include "base/base64.h"
#include "core/loop.h"
#include "core/network.h"

enum { MAX_DECODED = 1024 };

bool access_required(const struct config *config, const char *group)
{
    for (size_t i = 0; i < config->auth.require_count; i++)
        if (sl_str_equal(config->auth.require[i], sl_str(group)))
            return true;
    return false;
}

static bool is_printable(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < 0x20 || text.data[i] > 0x7E)
            return false;
    return text.size > 0;
}

/* What follows the scheme; false when it is another one. */
static bool strip_scheme(struct sl_str *header, const char *name)
{
    struct sl_str scheme = sl_str(name), text = sl_str_trimmed(*header);
    if (text.size <= scheme.size || !sl_str_equal_nocase((struct sl_str){text.data, scheme.size}, scheme) ||
        (text.data[scheme.size] != ' ' && text.data[scheme.size] != '\t'))
        return false;
    *header = sl_str_trimmed((struct sl_str){text.data + scheme.size, text.size - scheme.size});
    return true;
}

static bool split_pair(struct sl_str pair, struct sl_str *id, struct sl_str *secret)
{
    const char *colon = pair.size ? memchr(pair.data, ':', pair.size) : NULL;
    if (!colon)
        return false;
    *id = (struct sl_str){pair.data, (size_t)(colon - pair.data)};
    *secret = (struct sl_str){colon + 1, pair.size - id->size - 1};
    return is_printable(*id) && is_printable(*secret);
}

static bool split_base64(struct sl_str text, char decoded[MAX_DECODED], struct sl_str *id, struct sl_str *secret)
{
    size_t size;
    return sl_base64_decode(text, (uint8_t *)decoded, MAX_DECODED, &size) &&
           split_pair((struct sl_str){decoded, size}, id, secret);
}

static bool has_right(const struct access_key *key, const char *const *rights)
{
    for (; *rights; rights++)
        for (size_t i = 0; i < key->right_count; i++)
            if (sl_str_equal(key->rights[i], sl_str(*rights)))
                return true;
    return false;
}

static bool has_holder(const struct config *config, const char *const *rights)
{
    for (size_t i = 0; i < config->auth.key_count; i++)
        if (has_right(&config->auth.keys[i], rights))
            return true;
    return false;
}

/* An empty id: the key alone tells. All keys are compared whether one fits or not. */
static enum access api_access_check(const struct config *config, struct sl_str id, struct sl_str secret,
                                    const char *const *rights, const struct access_key **granted)
{
    static const struct access_key nobody;
    const struct access_key *key = &nobody;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256((const uint8_t *)secret.data, secret.size, digest);
    for (size_t i = 0; i < config->auth.key_count; i++) {
        const struct access_key *one = &config->auth.keys[i];
        bool same = CRYPTO_memcmp(digest, one->sha256, sizeof digest) == 0;
        if (same && (!id.size || sl_str_equal(one->id, id)))
            key = one;
    }
    if (key == &nobody || clock_wall_s() >= key->expires_s)
        return ACCESS_UNKNOWN;
    if (granted)
        *granted = key;
    return has_right(key, rights) ? ACCESS_GRANTED : ACCESS_DENIED;
}

enum access access_check_api_key(const struct config *config, struct sl_str header, const char *const *rights,
                                 const struct access_key **granted)
{
    char decoded[MAX_DECODED];
    struct sl_str id, secret;
    if (!header.data)
        return ACCESS_MISSING;
    enum access access = strip_scheme(&header, "APIKey") && split_base64(header, decoded, &id, &secret)
                             ? api_access_check(config, id, secret, rights, granted)
                             : ACCESS_MALFORMED;
    OPENSSL_cleanse(decoded, sizeof decoded);
    return access;
}

enum access access_check(const struct config *config, struct sl_str header, struct sl_str x_api_key,
                         const char *const *rights, const struct access_key **granted)
{
    char decoded[MAX_DECODED];
    struct sl_str id = {NULL, 0}, secret = sl_str_trimmed(x_api_key);
    bool ok = is_printable(secret);
    if (!header.data && !x_api_key.data)
        return ACCESS_MISSING;
    if (header.data && strip_scheme(&header, "Bearer")) {
        secret = header;
        ok = split_pair(header, &id, &secret) || is_printable(secret);
    } else if (header.data) {
        ok = (strip_scheme(&header, "Basic") || strip_scheme(&header, "APIKey")) &&
             split_base64(header, decoded, &id, &secret);
    }
    enum access access = ok ? api_access_check(config, id, secret, rights, granted) : ACCESS_MALFORMED;
    OPENSSL_cleanse(decoded, sizeof decoded);
    return access;
}

/* ---- the brake ----
 * A table of fixed size: an address has a few places where it may be, and takes that of who has been quiet longest. */
enum { GUESSERS = 4096, PLACES = 4, GUESSES = 20, WINDOW_MS = 60000, BLOCKED_MS = 60000 };

static struct guesser {
    uint8_t address[16];
    unsigned failures;                   /* since `began_ms` */
    uint64_t began_ms, blocked_until_ms; /* 0: not blocked */
    uint64_t last_ms;                    /* 0: free */
} guessers[GUESSERS];

static void guesser_key(struct sl_str client, uint8_t key[16])
{
    memset(key, 0, 16);
    if (!network_address(client, key)) /* all clients of unix sockets are one */
        key[0] = 1;
    else if (!network_is_v4(key))
        memset(key + 8, 0, 8);
}

static struct guesser *places(const uint8_t key[16])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < 16; i++)
        hash = (hash ^ key[i]) * 1099511628211u;
    return &guessers[(hash >> 20) % (GUESSERS / PLACES) * PLACES];
}

static struct guesser *guesser_find(const uint8_t key[16])
{
    struct guesser *place = places(key);
    for (size_t i = 0; i < PLACES; i++)
        if (place[i].last_ms && memcmp(place[i].address, key, 16) == 0)
            return &place[i];
    return NULL;
}

bool access_is_blocked(struct sl_str client)
{
    uint8_t key[16];
    guesser_key(client, key);
    const struct guesser *guesser = guesser_find(key);
    return guesser && loop_now_ms() < guesser->blocked_until_ms;
}

void access_note_wrong_key(struct sl_str client)
{
    uint8_t key[16];
    uint64_t now = loop_now_ms();
    guesser_key(client, key);
    struct guesser *guesser = guesser_find(key), *place = places(key);
    if (!guesser) {
        guesser = place;
        for (size_t i = 1; i < PLACES; i++)
            if (place[i].last_ms < guesser->last_ms)
                guesser = &place[i];
        *guesser = (struct guesser){.began_ms = now};
        memcpy(guesser->address, key, sizeof guesser->address);
    }
    if (now - guesser->began_ms >= WINDOW_MS) {
        guesser->began_ms = now;
        guesser->failures = 0;
    }
    guesser->last_ms = now ? now : 1;
    if (++guesser->failures < GUESSES)
        return;
    guesser->blocked_until_ms = now + BLOCKED_MS;
    guesser->began_ms = now;
    guesser->failures = 0;
}

/* ---- routes ---- */
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

bool access_may_bring(struct http_exchange *x, const struct source *sources, size_t count)
{
    for (size_t i = 0; x->key_has_scopes && i < count; i++)
        if (sources[i].is_public && !sources[i].configured) {
            http_reply_error(x, 403, "not allowed");
            return false;
        }
    return true;
}

static void reply_unauthorized(struct http_exchange *x)
{
    http_reply_error(x, 401, "authentication required");
    http_set_header(x, "WWW-Authenticate",
                    x->route->family->browsed ? SL_STR("Bearer realm=\"symloom\", Basic realm=\"symloom\"")
                                              : SL_STR("Bearer realm=\"symloom\""));
}

void access_authorize(struct http_exchange *x)
{
    const struct config *config = ((const struct service *)x->service)->config;
    const struct http_route *route = x->route;
    const struct http_family *family = route->family;
    const struct access_key *key = NULL;
    if (!family->guarded && !access_required(config, family->group))
        return;
    if (family->guarded && !has_holder(config, route->rights)) {
        http_reply_error(x, 404, NULL);
        return;
    }
    switch (access_check(config, http_header(x, "authorization"), http_header(x, "x-api-key"), route->rights, &key)) {
    case ACCESS_GRANTED:
        if ((x->key_id.data = sl_arena_strndup(&x->arena, key->id.data, key->id.size)))
            x->key_id.size = key->id.size;
        x->key_has_scopes = key->scopes != NULL;
        if (!may_name_scope(x, key))
            http_reply_error(x, 403, "not allowed");
        return;
    case ACCESS_DENIED: http_reply_error(x, 403, "not allowed"); return;
    case ACCESS_MALFORMED:
    case ACCESS_UNKNOWN:
        if (access_is_blocked(x->client)) {
            http_reply_error(x, 429, "too many wrong keys");
            http_set_header(x, "Retry-After", SL_STR("60"));
            return;
        }
        access_note_wrong_key(x->client);
        reply_unauthorized(x);
        return;
    case ACCESS_MISSING: reply_unauthorized(x); return;
    }
}
