/* Names of cache entries: a key is a text, whose SHA-256 is the name of the entry's file. */
#include "cache/impl.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "id/id.h"

void cache_key_hash(struct sl_str text, uint8_t hash[CACHE_HASH_BYTES])
{
    /* It fails only when out of memory; a wrong hash would be the name of another entry, so the process must not go on. */
    if (EVP_Digest(text.data ? text.data : "", text.size, hash, NULL, EVP_sha256(), NULL) != 1)
        abort();
}

void cache_key_digits(struct sl_str text, char out[CACHE_KEY_DIGITS + 1])
{
    uint8_t hash[CACHE_HASH_BYTES];
    cache_key_hash(text, hash);
    sl_hex_encode(hash, CACHE_KEY_DIGITS / 2, out);
}

/* Writes the path of an entry below its kind's directory, for example "v2/ab/cd/ef0123...": the version, then the hash in hex, of which the
 * first and the second byte are directories. `format1`, the older format, has the first byte and the next three: "v2/ab/cdef01/23...". */
void cache_hash_path(const uint8_t hash[CACHE_HASH_BYTES], unsigned version, bool format1, char out[128])
{
    static const char digits[] = "0123456789abcdef";
    int at = snprintf(out, 128, "v%u/", version);
    for (unsigned i = 0; i < CACHE_HASH_BYTES; i++) {
        out[at++] = digits[hash[i] >> 4];
        out[at++] = digits[hash[i] & 15];
        if (i == 0 || i == (format1 ? 3 : 1))
            out[at++] = '/';
    }
    out[at] = '\0';
}

void cache_relative_path(struct sl_str key_text, unsigned version, bool format1, char out[128])
{
    uint8_t hash[CACHE_HASH_BYTES];
    cache_key_hash(key_text, hash);
    cache_hash_path(hash, version, format1, out);
}

bool cache_scope_global(struct sl_str scope)
{
    return scope.size == 0 || sl_str_equal(scope, SL_STR("global"));
}
