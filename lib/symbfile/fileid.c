/* Computes, formats and parses file ids. */
#include "symbfile/fileid.h"

#include "base/base64.h"

#include <openssl/sha.h>

/* Only the first and the last 4 KiB of the file and its size are hashed, so that the id of a large file is cheap. Of a file of less than
 * 4 KiB both are the whole file. */
struct sl_file_id sl_file_id_compute(struct sl_bytes file)
{
    enum { BLOCK = 4096 };
    size_t block = file.size < BLOCK ? file.size : BLOCK, size = 2 * block;
    uint8_t input[2 * BLOCK + sizeof(uint64_t)], digest[SHA256_DIGEST_LENGTH];
    struct sl_file_id id;
    if (block) {
        memcpy(input, file.data, block);
        memcpy(input + block, file.data + file.size - block, block);
    }
    for (int shift = 56; shift >= 0; shift -= 8)
        input[size++] = (uint8_t)((uint64_t)file.size >> shift);
    SHA256(input, size, digest);
    memcpy(id.bytes, digest, sizeof id.bytes);
    return id;
}

void sl_file_id_format_hex(const struct sl_file_id *id, char out[SL_FILE_ID_HEX])
{
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        *out++ = "0123456789abcdef"[id->bytes[i] >> 4];
        *out++ = "0123456789abcdef"[id->bytes[i] & 15];
    }
    *out = '\0';
}

void sl_file_id_format_base64(const struct sl_file_id *id, char out[SL_FILE_ID_BASE64])
{
    out[sl_base64url_encode((struct sl_bytes){id->bytes, sizeof id->bytes}, out)] = '\0';
}

/* Parses 32 hex digits, optionally after "0x", with hyphens anywhere (as in a UUID). */
static bool parse_hex(struct sl_str text, struct sl_file_id *id)
{
    char digits[32];
    size_t count = 0;
    if (text.size > 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x') {
        text.data += 2;
        text.size -= 2;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '-')
            continue;
        if (count == sizeof digits)
            return false;
        digits[count++] = text.data[i];
    }
    return count == sizeof digits && sl_hex_decode((struct sl_str){digits, count}, id->bytes, sizeof id->bytes, NULL);
}

bool sl_file_id_parse_any(struct sl_str text, struct sl_file_id *id)
{
    size_t size;
    /* 16 bytes are 22 characters in base64, 24 with padding; in hex they are at least 32 */
    if (text.size <= 24)
        return sl_base64_decode(text, id->bytes, sizeof id->bytes, &size) && size == sizeof id->bytes;
    return parse_hex(text, id);
}
