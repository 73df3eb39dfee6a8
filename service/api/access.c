#include "api/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "core/loop.h"
#include "symbfile/fileid.h"

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

/* "APIKey <base64 of id:key>" */
static bool split_header(struct sl_str header, char decoded[MAX_DECODED], struct sl_str *id, struct sl_str *secret)
{
    struct sl_str scheme = SL_STR("APIKey");
    size_t size;
    header = trim(header);
    if (header.size <= scheme.size || !sl_str_equal_nocase((struct sl_str){header.data, scheme.size}, scheme) ||
        (header.data[scheme.size] != ' ' && header.data[scheme.size] != '\t'))
        return false;
    struct sl_str rest = trim((struct sl_str){header.data + scheme.size, header.size - scheme.size});
    if (!sl_base64_decode(rest, (uint8_t *)decoded, MAX_DECODED, &size))
        return false;
    const char *colon = memchr(decoded, ':', size);
    if (!colon)
        return false;
    *id = (struct sl_str){decoded, (size_t)(colon - decoded)};
    *secret = (struct sl_str){colon + 1, size - id->size - 1};
    return is_printable(*id) && is_printable(*secret);
}

static bool has_right(const struct access_key *key, const char *const *rights)
{
    for (; *rights; rights++)
        for (size_t i = 0; i < key->right_count; i++)
            if (sl_str_equal(key->rights[i], sl_str(*rights)))
                return true;
    return false;
}

enum access access_check_api_key(const struct config *config, struct sl_str header, const char *const *rights,
                                 const struct access_key **granted)
{
    char decoded[MAX_DECODED];
    struct sl_str id, secret;
    if (!header.data)
        return ACCESS_MISSING;
    if (!split_header(header, decoded, &id, &secret))
        return ACCESS_MALFORMED;
    static const struct access_key nobody;
    const struct access_key *key = &nobody;
    for (size_t i = 0; i < config->auth.key_count; i++)
        if (sl_str_equal(config->auth.keys[i].id, id))
            key = &config->auth.keys[i];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256((const uint8_t *)secret.data, secret.size, digest);
    bool same = CRYPTO_memcmp(digest, key->sha256, sizeof digest) == 0;
    OPENSSL_cleanse(decoded, sizeof decoded);
    if (!same || key == &nobody || clock_wall_s() >= key->expires_s)
        return ACCESS_UNKNOWN;
    if (granted)
        *granted = key;
    return has_right(key, rights) ? ACCESS_GRANTED : ACCESS_DENIED;
}
