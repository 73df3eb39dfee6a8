/* Compressed integers and the heaps (ECMA-335, II.23.2 and II.24.2). */
#include "ppdb/impl.h"

enum { GUID_SIZE = 16 };

/* Reads a compressed integer (ECMA-335, II.23.2) of 1, 2 or 4 bytes. Sets `*bits` to how many of their bits hold the value: 7, 14 or 29. */
static uint32_t read_compressed(struct sl_reader *r, unsigned *bits)
{
    uint32_t first = sl_read_u8(r);
    if (first < 0x80) {
        *bits = 7;
        return first;
    }
    if (first < 0xC0) {
        *bits = 14;
        return (first & 0x3F) << 8 | sl_read_u8(r);
    }
    *bits = 29;
    if (first >= 0xE0) { /* not an encoding: fail, and leave nothing to read for loops that run to the end */
        r->failed = true;
        r->at = r->end;
        return 0;
    }
    uint32_t second = sl_read_u8(r), third = sl_read_u8(r);
    return (first & 0x1F) << 24 | second << 16 | third << 8 | sl_read_u8(r);
}

uint32_t ppdb_read_unsigned(struct sl_reader *r)
{
    unsigned bits;
    uint32_t value = read_compressed(r, &bits);
    return r->failed ? 0 : value;
}

/* The lowest bit of a signed number's encoding is its sign: two's complement of the encoding's width (7, 14 or 29 bits), rotated left by
 * one. */
int32_t ppdb_read_signed(struct sl_reader *r)
{
    unsigned bits;
    uint32_t value = read_compressed(r, &bits);
    if (r->failed)
        return 0;
    return (int32_t)(value >> 1) - (value & 1 ? INT32_C(1) << (bits - 1) : 0);
}

/* Offset 0 is valid in any file: the empty blob. */
enum sl_code ppdb_blob(const struct sl_ppdb *ppdb, uint64_t offset, struct sl_bytes *blob, struct sl_error *error)
{
    *blob = (struct sl_bytes){NULL, 0};
    if (offset == 0)
        return SL_OK;
    struct sl_reader r = sl_reader(ppdb->blobs, false);
    sl_reader_seek(&r, offset);
    if (r.failed || sl_reader_left(&r) == 0)
        return sl_fail(error, SL_MALFORMED, "invalid blob offset");
    uint32_t size = ppdb_read_unsigned(&r);
    *blob = sl_read_bytes(&r, size);
    return r.failed ? sl_fail(error, SL_MALFORMED, "invalid blob data") : SL_OK;
}

const uint8_t *ppdb_guid(const struct sl_ppdb *ppdb, uint64_t index)
{
    return index && index <= ppdb->guids.size / GUID_SIZE ? ppdb->guids.data + (index - 1) * GUID_SIZE : NULL;
}
