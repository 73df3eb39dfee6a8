#include "symbfile/fileid.h"

#include <openssl/sha.h>

struct sl_file_id sl_file_id_compute(struct sl_bytes file)
{
    enum { BLOCK = 4096 };
    size_t block = file.size < BLOCK ? file.size : BLOCK;
    struct sl_buf input = {0};
    uint8_t digest[SHA256_DIGEST_LENGTH];
    struct sl_file_id id;
    sl_buf_add(&input, file.data, block);
    sl_buf_add(&input, file.data + file.size - block, block);
    for (int shift = 56; shift >= 0; shift -= 8)
        sl_buf_u8(&input, (uint8_t)((uint64_t)file.size >> shift));
    SHA256(input.data, input.size, digest);
    memcpy(id.bytes, digest, sizeof id.bytes);
    sl_buf_free(&input);
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

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void sl_file_id_format_base64(const struct sl_file_id *id, char out[SL_FILE_ID_BASE64])
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        bits = bits << 8 | id->bytes[i];
        for (held += 8; held >= 6; held -= 6)
            *out++ = alphabet[bits >> (held - 6) & 63];
    }
    *out++ = alphabet[bits << (6 - held) & 63];
    *out = '\0';
}

static int digit(char c)
{
    if (c == '+' || c == '/')
        return c == '+' ? 62 : 63;
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

bool sl_base64_decode(struct sl_str text, uint8_t *out, size_t capacity, size_t *size)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t digits = text.size;
    *size = 0;
    while (digits && text.data[digits - 1] == '=')
        digits--;
    if (digits % 4 == 1 || (digits < text.size && (text.size % 4 || text.size - digits > 2)))
        return false;
    for (size_t i = 0; i < digits; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (*size == capacity)
                return false;
            out[(*size)++] = (uint8_t)(bits >> held);
        }
    }
    return (bits & ((1u << held) - 1)) == 0;
}

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
    if (text.size <= 24)
        return sl_base64_decode(text, id->bytes, sizeof id->bytes, &size) && size == sizeof id->bytes;
    return parse_hex(text, id);
}
