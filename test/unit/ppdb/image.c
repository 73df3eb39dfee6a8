#include "image.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const uint8_t guid_csharp[16] = {0xF8, 0x62, 0x51, 0x3F, 0xC6, 0x07, 0xD3, 0x11,
                                 0x90, 0x53, 0x00, 0xC0, 0x4F, 0xA3, 0x02, 0xA1};
const uint8_t guid_visualbasic[16] = {0xB8, 0xD0, 0x12, 0x3A, 0x6C, 0xC2, 0xD0, 0x11,
                                      0xB4, 0x42, 0x00, 0xA0, 0x24, 0x4A, 0x1D, 0xD2};
const uint8_t guid_fsharp[16] = {0xC9, 0x38, 0x4F, 0xAB, 0xE6, 0xB6, 0xBA, 0x43,
                                 0xBE, 0x3B, 0x58, 0x08, 0x0B, 0x2C, 0xCC, 0xE3};
const uint8_t guid_sha1[16] = {0xEC, 0x16, 0x18, 0xFF, 0x5E, 0xAA, 0x10, 0x4D,
                               0x87, 0xF7, 0x6F, 0x49, 0x63, 0x83, 0x34, 0x60};
const uint8_t guid_sha256[16] = {0x0F, 0xD0, 0x29, 0x88, 0xB8, 0x11, 0x13, 0x42,
                                 0x87, 0x8B, 0x77, 0x0E, 0x85, 0x97, 0xAC, 0x16};
const uint8_t guid_embedded[16] = {0x1B, 0x57, 0x8A, 0x0E, 0x26, 0x69, 0x6E, 0x46,
                                   0xB4, 0xAD, 0x8A, 0xB0, 0x46, 0x11, 0xF5, 0xFE};
const uint8_t guid_source_link[16] = {0x56, 0x05, 0x11, 0xCC, 0x91, 0xA0, 0x38, 0x4D,
                                      0x9F, 0xEC, 0x25, 0xAB, 0x9A, 0x35, 0x1A, 0x6A};

/* ---- heaps ---- */

void image_compressed(struct sl_buf *out, uint32_t value)
{
    if (value < 0x80) {
        sl_buf_u8(out, (uint8_t)value);
    } else if (value < 0x4000) {
        sl_buf_u8(out, (uint8_t)(0x80 | value >> 8));
        sl_buf_u8(out, (uint8_t)value);
    } else {
        for (int shift = 24; shift >= 0; shift -= 8)
            sl_buf_u8(out, (uint8_t)((value | 0xC0000000) >> shift));
    }
}

uint32_t image_blob(struct image *image, const void *data, size_t size)
{
    if (!image->blobs.size)
        sl_buf_u8(&image->blobs, 0); /* offset 0 is the empty blob */
    uint32_t offset = (uint32_t)image->blobs.size;
    image_compressed(&image->blobs, (uint32_t)size);
    sl_buf_add(&image->blobs, data, size);
    return offset;
}

uint32_t image_guid(struct image *image, const uint8_t guid[16])
{
    sl_buf_add(&image->guids, guid, 16);
    return (uint32_t)(image->guids.size / 16);
}

/* ---- rows ---- */

static uint32_t add_row(struct image_row **rows, uint32_t *count, struct image_row row)
{
    *rows = realloc(*rows, (*count + 1) * sizeof **rows);
    (*rows)[(*count)++] = row;
    return *count;
}

uint32_t image_document_row(struct image *image, uint32_t name, uint32_t algorithm, uint32_t hash, uint32_t language)
{
    return add_row(&image->documents, &image->document_count, (struct image_row){{name, algorithm, hash, language}});
}

uint32_t image_document(struct image *image, const char *name, const uint8_t *language)
{
    struct sl_buf parts = {0};
    const char *separator = strpbrk(name, "/\\");
    sl_buf_u8(&parts, separator ? (uint8_t)*separator : 0);
    for (const char *at = name; at;) {
        const char *end = separator ? strchr(at, *separator) : NULL;
        size_t size = end ? (size_t)(end - at) : strlen(at);
        image_compressed(&parts, size ? image_blob(image, at, size) : 0);
        at = end ? end + 1 : NULL;
    }
    uint32_t blob = image_blob(image, parts.data, parts.size);
    sl_buf_free(&parts);
    return image_document_row(image, blob, 0, 0, language ? image_guid(image, language) : 0);
}

uint32_t image_method(struct image *image, uint32_t document, const void *points, size_t size)
{
    uint32_t blob = size ? image_blob(image, points, size) : 0;
    return add_row(&image->methods, &image->method_count, (struct image_row){{document, blob}});
}

uint32_t image_custom(struct image *image, unsigned tag, uint32_t parent, const uint8_t kind[16], const void *blob,
                      size_t size)
{
    struct image_row row = {{parent << 5 | tag, image_guid(image, kind), image_blob(image, blob, size)}};
    return add_row(&image->customs, &image->custom_count, row);
}

static void add_source(struct image *image, uint32_t document, int32_t format, const void *data, size_t size)
{
    struct sl_buf blob = {0};
    sl_buf_u32(&blob, (uint32_t)format);
    sl_buf_add(&blob, data, size);
    image_custom(image, PARENT_DOCUMENT, document, guid_embedded, blob.data, blob.size);
    sl_buf_free(&blob);
}

void image_source(struct image *image, uint32_t document, const char *text)
{
    add_source(image, document, 0, text, strlen(text));
}

void image_deflated(struct image *image, uint32_t document, const char *text, int32_t stated)
{
    size_t size = strlen(text), room = size + 64;
    uint8_t *out = malloc(room);
    z_stream z = {.next_in = (Bytef *)text, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room};
    deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    add_source(image, document, stated, out, z.total_out);
    free(out);
}

/* ---- the file ---- */

static void put(struct sl_buf *out, uint32_t value, bool wide)
{
    if (wide)
        sl_buf_u32(out, value);
    else
        sl_buf_u16(out, (uint16_t)value);
}

static void put_tables(const struct image *image, struct sl_buf *out)
{
    bool heaps = image->options & IMAGE_WIDE_HEAPS, documents = image->document_count >= 65536;
    /* Five tag bits leave eleven for the row. */
    bool parents = image->document_count >= 2048 || image->method_rows >= 2048 || image->scope_rows >= 2048;
    const struct {
        unsigned table;
        uint32_t count;
    } counts[] = {{0x30, image->document_count},
                  {0x31, image->method_count},
                  {0x32, image->scope_rows},
                  {0x37, image->custom_count},
                  {0x3F, image->unknown_rows}};
    uint64_t valid = 0;
    for (size_t i = 0; i < 5; i++)
        valid |= counts[i].count ? UINT64_C(1) << counts[i].table : 0;
    sl_buf_u32(out, 0);
    sl_buf_u8(out, 2);
    sl_buf_u8(out, 0);
    sl_buf_u8(out, (uint8_t)((heaps ? 0x07 : 0) | (image->options & IMAGE_EXTRA_DATA ? 0x40 : 0)));
    sl_buf_u8(out, 1);
    sl_buf_u64(out, valid);
    sl_buf_u64(out, 0);
    for (size_t i = 0; i < 5; i++)
        if (counts[i].count)
            sl_buf_u32(out, counts[i].count);
    if (image->options & IMAGE_EXTRA_DATA)
        sl_buf_u32(out, 0xDEADBEEF);
    for (uint32_t i = 0; i < image->document_count; i++)
        for (unsigned c = 0; c < 4; c++)
            put(out, image->documents[i].columns[c], heaps);
    for (uint32_t i = 0; i < image->method_count; i++) {
        put(out, image->methods[i].columns[0], documents);
        put(out, image->methods[i].columns[1], heaps);
    }
    sl_buf_fill(out, 0, image->scope_rows * ((image->method_rows >= 65536 ? 4u : 2u) + 6 + 8));
    for (uint32_t i = 0; i < image->custom_count; i++) {
        put(out, image->customs[i].columns[0], parents);
        put(out, image->customs[i].columns[1], heaps);
        put(out, image->customs[i].columns[2], heaps);
    }
}

static void put_pdb(const struct image *image, struct sl_buf *out)
{
    sl_buf_add(out, image->id, sizeof image->id);
    sl_buf_u32(out, 0x06000001);
    sl_buf_u64(out, 1 << 0x00 | 1 << 0x06);
    sl_buf_u32(out, image->module_rows);
    sl_buf_u32(out, image->method_rows);
}

struct sl_buf image_file(struct image *image)
{
    struct sl_buf tables = {0}, pdb = {0}, nothing = {0}, out = {0};
    put_tables(image, &tables);
    put_pdb(image, &pdb);
    bool last = image->options & IMAGE_PDB_LAST;
    const char *tables_name = image->options & IMAGE_UNCOMPRESSED ? "#-" : "#~";
    struct {
        const char *name;
        const struct sl_buf *bytes;
    } streams[] = {{last ? tables_name : "#Pdb", last ? &tables : &pdb},
                   {image->add, &nothing},
                   {"#Strings", &nothing},
                   {"#GUID", &image->guids},
                   {"#Blob", &image->blobs},
                   {last ? "#Pdb" : tables_name, last ? &pdb : &tables}};
    uint16_t count = 0;
    uint32_t at = 32;
    for (size_t i = 0; i < 6; i++) {
        if (image->leave_out && streams[i].name && strcmp(image->leave_out, streams[i].name) == 0)
            streams[i].name = NULL;
        if (!streams[i].name)
            continue;
        at += 8 + (uint32_t)(strlen(streams[i].name) / 4 * 4 + 4);
        count++;
    }
    sl_buf_u32(&out, 0x424A5342);
    sl_buf_u16(&out, 1);
    sl_buf_u16(&out, 1);
    sl_buf_u32(&out, 0);
    sl_buf_u32(&out, 12);
    sl_buf_add(&out, "PDB v1.0\0\0\0\0", 12);
    sl_buf_u16(&out, 0);
    sl_buf_u16(&out, count);
    for (size_t i = 0; i < 6; i++)
        if (streams[i].name) {
            sl_buf_u32(&out, at);
            sl_buf_u32(&out, (uint32_t)streams[i].bytes->size);
            sl_buf_add(&out, streams[i].name, strlen(streams[i].name) + 1);
            sl_buf_align(&out, 4);
            at += (uint32_t)streams[i].bytes->size;
        }
    for (size_t i = 0; i < 6; i++)
        if (streams[i].name)
            sl_buf_add(&out, streams[i].bytes->data, streams[i].bytes->size);
    sl_buf_free(&tables);
    sl_buf_free(&pdb);
    return out;
}

void image_free(struct image *image)
{
    sl_buf_free(&image->blobs);
    sl_buf_free(&image->guids);
    free(image->documents);
    free(image->methods);
    free(image->customs);
    *image = (struct image){0};
}
