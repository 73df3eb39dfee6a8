#include "api/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/base64.h"
#include "core/loop.h"

enum { MAX_DECODED = 1024 };

bool access_required(const struct config *config, const char *group)
{
    for (size_t i = 0; i < config->auth.require_count; i++)
        if (sl_str_equal(config->auth.require[i], sl_str(group)))
            return true;
    return false;
}

static struct sl_str trim(struct sl_str text)
{
    while (text.size && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
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
    struct sl_str scheme = sl_str(name), text = trim(*header);
    if (text.size <= scheme.size || !sl_str_equal_nocase((struct sl_str){text.data, scheme.size}, scheme) ||
        (text.data[scheme.size] != ' ' && text.data[scheme.size] != '\t'))
        return false;
    *header = trim((struct sl_str){text.data + scheme.size, text.size - scheme.size});
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

bool access_has_holder(const struct config *config, const char *right)
{
    const char *const rights[] = {right, NULL};
    for (size_t i = 0; i < config->auth.key_count; i++)
        if (has_right(&config->auth.keys[i], rights))
            return true;
    return false;
}

/* An empty id: the key alone tells. All keys are compared whether one fits or not. */
static enum access check(const struct config *config, struct sl_str id, struct sl_str secret, const char *const *rights,
                         const struct access_key **granted)
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
                             ? check(config, id, secret, rights, granted)
                             : ACCESS_MALFORMED;
    OPENSSL_cleanse(decoded, sizeof decoded);
    return access;
}

enum access access_check(const struct config *config, struct sl_str header, struct sl_str x_api_key,
                         const char *const *rights, const struct access_key **granted)
{
    char decoded[MAX_DECODED];
    struct sl_str id = {NULL, 0}, secret = trim(x_api_key);
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
    enum access access = ok ? check(config, id, secret, rights, granted) : ACCESS_MALFORMED;
    OPENSSL_cleanse(decoded, sizeof decoded);
    return access;
}
