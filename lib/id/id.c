#include "id/id.h"

#include <stdio.h>

/* A digit's value plus 1; 0 for other characters. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

static inline int hex_value(char c)
{
    return hex_values[(uint8_t)c] - 1;
}

void sl_hex_encode(const uint8_t *bytes, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

bool sl_hex_decode(struct sl_str hex, uint8_t *out, size_t capacity, size_t *size)
{
    if (hex.size % 2 || hex.size / 2 > capacity)
        return false;
    for (size_t i = 0; i < hex.size; i += 2) {
        int high = hex_value(hex.data[i]), low = hex_value(hex.data[i + 1]);
        if ((high | low) < 0)
            return false;
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    if (size)
        *size = hex.size / 2;
    return true;
}

/* Parses one to eight hex digits; false for any other text. */
static bool parse_hex32(struct sl_str text, uint32_t *value)
{
    uint64_t number;
    if (text.size > 8 || !sl_parse_hex_u64(text, &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

static struct sl_str id_part(struct sl_str text, size_t from)
{
    return (struct sl_str){text.data + from, text.size - from};
}

bool sl_debug_id_is_nil(const struct sl_debug_id *id)
{
    static const uint8_t zeros[16];
    return memcmp(id->uuid, zeros, sizeof zeros) == 0 && id->age == 0;
}

bool sl_debug_id_has_uuid(const struct sl_debug_id *id)
{
    static const uint8_t zeros[16];
    return memcmp(id->uuid, zeros, sizeof zeros) != 0;
}

bool sl_debug_id_equal(const struct sl_debug_id *a, const struct sl_debug_id *b)
{
    return sl_debug_id_has_uuid(a) && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0 && a->age == b->age &&
           a->pdb20 == b->pdb20;
}

/* Parses the id of a PDB 2.0 file: a time stamp of 8 hex digits, then the age. Such files have no GUID. `text` has at least 9 characters;
 * `hyphen`: a hyphen separates the two. False for any other text. */
static bool parse_pdb20(struct sl_str text, bool hyphen, struct sl_debug_id *id)
{
    struct sl_str stamp = {text.data, 8};
    if (!sl_hex_decode(stamp, id->uuid, 4, NULL) || !parse_hex32(id_part(text, 8 + hyphen), &id->age))
        return false;
    id->pdb20 = true;
    return true;
}

/* Parses 8, 4, 4, 4 and 12 hex digits, with a hyphen between the groups if `hyphen`. False if the text begins otherwise. */
static bool parse_uuid(struct sl_str text, bool hyphen, uint8_t uuid[16])
{
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    size_t at = 0, out = 0;
    for (size_t g = 0; g < sizeof groups; g++) {
        if (g && hyphen && (at >= text.size || text.data[at++] != '-'))
            return false;
        if (text.size - at < groups[g] ||
            !sl_hex_decode((struct sl_str){text.data + at, groups[g]}, uuid + out, 16 - out, NULL))
            return false;
        at += groups[g];
        out += groups[g] / 2;
    }
    return true;
}

/* At most 16 characters without hyphen are a PDB 2.0 id (8 digits and an age of up to 8), longer texts are a GUID and an optional age.
 * Of the age only the first 8 characters count; the rest must be ASCII. */
bool sl_debug_id_parse(struct sl_str text, struct sl_debug_id *id)
{
    *id = (struct sl_debug_id){0};
    struct sl_debug_id parsed = {0};
    if (text.size < 9)
        return false;
    bool hyphen = text.data[8] == '-';
    if (text.size <= (hyphen ? 17u : 16u)) {
        if (!parse_pdb20(text, hyphen, &parsed))
            return false;
        *id = parsed;
        return true;
    }
    size_t length = hyphen ? 36 : 32;
    if (text.size < length || !parse_uuid(text, hyphen, parsed.uuid))
        return false;
    struct sl_str rest = id_part(text, length);
    if (rest.size) {
        if ((rest.data[0] == '-') != hyphen) /* a hyphen before the age if, and only if, the GUID has hyphens */
            return false;
        rest = id_part(rest, hyphen);
        for (size_t i = 0; i < rest.size; i++)
            if ((unsigned char)rest.data[i] >= 0x80)
                return false;
        if (rest.size > 8)
            rest.size = 8;
        if (!parse_hex32(rest, &parsed.age))
            return false;
    }
    *id = parsed;
    return true;
}

bool sl_debug_id_parse_breakpad(struct sl_str text, struct sl_debug_id *id)
{
    *id = (struct sl_debug_id){0};
    struct sl_debug_id parsed = {0};
    if (memchr(text.data ? text.data : "", '-', text.size))
        return false;
    bool ok = text.size >= 9 && text.size <= 16 ? parse_pdb20(text, false, &parsed)
              : text.size >= 33 && text.size <= 40
                  ? parse_uuid(text, false, parsed.uuid) && parse_hex32(id_part(text, 32), &parsed.age)
                  : false;
    if (ok)
        *id = parsed;
    return ok;
}

/* Writes the bytes as hexadecimal digits; returns the end. */
static char *put_hex(char *at, const uint8_t *bytes, size_t count, const char *digits)
{
    for (size_t i = 0; i < count; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    return at;
}

static const char lower_digits[] = "0123456789abcdef", upper_digits[] = "0123456789ABCDEF";

void sl_debug_id_format(const struct sl_debug_id *id, char out[SL_DEBUG_ID_TEXT])
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    const uint8_t *bytes = id->uuid;
    char *at = id->pdb20 ? put_hex(out, bytes, 4, upper_digits) : out;
    for (size_t i = 0; !id->pdb20 && i < sizeof groups; bytes += groups[i++]) {
        if (i)
            *at++ = '-';
        at = put_hex(at, bytes, groups[i], lower_digits);
    }
    *at = '\0';
    if (id->age)
        snprintf(at, SL_DEBUG_ID_TEXT - (size_t)(at - out), "-%x", id->age);
}

void sl_debug_id_format_breakpad(const struct sl_debug_id *id, char out[SL_DEBUG_ID_TEXT])
{
    char *at = put_hex(out, id->uuid, id->pdb20 ? 4 : 16, upper_digits);
    snprintf(at, SL_DEBUG_ID_TEXT - (size_t)(at - out), "%x", id->age);
}

static void swap_bytes(uint8_t *a, uint8_t *b)
{
    uint8_t t = *a;
    *a = *b;
    *b = t;
}

/* Treats the first 16 bytes as a GUID. In little-endian files its first three fields are little-endian, so they are swapped to the order
 * of the text, as Breakpad does. */
struct sl_debug_id sl_debug_id_from_build_id(struct sl_bytes build_id, bool big_endian)
{
    struct sl_debug_id id = {0};
    if (build_id.size)
        memcpy(id.uuid, build_id.data, build_id.size < 16 ? build_id.size : 16);
    if (!big_endian) {
        swap_bytes(&id.uuid[0], &id.uuid[3]);
        swap_bytes(&id.uuid[1], &id.uuid[2]);
        swap_bytes(&id.uuid[4], &id.uuid[5]);
        swap_bytes(&id.uuid[6], &id.uuid[7]);
    }
    return id;
}

struct sl_str sl_code_id_normalise(struct sl_arena *arena, struct sl_str text)
{
    char *out = sl_arena_alloc(arena, text.size + 1, 1);
    size_t size = 0;
    if (!out)
        return (struct sl_str){NULL, 0};
    for (size_t i = 0; i < text.size; i++)
        if (hex_value(text.data[i]) >= 0)
            out[size++] = (char)(text.data[i] | 0x20);
    out[size] = '\0';
    return (struct sl_str){out, size};
}

/* False for an id of zeros only. The id of a PE file is a time stamp and a size: without a time stamp (eight zeros) it identifies
 * nothing. */
bool sl_code_id_is_set(struct sl_str code_id)
{
    enum { STAMP = 8, MAX_PE_CODE_ID = 16 }; /* digits of a PE time stamp; of a time stamp and size */
    size_t zeros = 0;
    while (zeros < code_id.size && code_id.data[zeros] == '0')
        zeros++;
    return zeros < code_id.size && (zeros < STAMP || code_id.size > MAX_PE_CODE_ID);
}
