/* Builds Portable PDBs byte by byte, since no compiler of the distribution writes them (Mono's writes a format of its
 * own). Widths are worked out from what was added, by the rules of ECMA-335, II.24.2.6. */
#pragma once

#include "base/buf.h"

enum {
    IMAGE_WIDE_HEAPS = 1,  /* indexes into heaps take four bytes */
    IMAGE_EXTRA_DATA = 2,  /* four bytes behind the row counts */
    IMAGE_PDB_LAST = 4,    /* #Pdb behind the tables that depend on it */
    IMAGE_UNCOMPRESSED = 8 /* the tables stream is called #- */
};

/* Parents of custom debug information: tags of HasCustomDebugInformation. */
enum { PARENT_METHOD = 0, PARENT_MODULE = 7, PARENT_DOCUMENT = 22 };

struct image_row {
    uint32_t columns[4];
};

struct image {
    unsigned options;
    uint8_t id[20];
    uint32_t module_rows; /* of table 00 in the assembly */
    uint32_t method_rows; /* of table 06 in the assembly */
    struct sl_buf blobs, guids;
    struct image_row *documents, *methods, *customs;
    uint32_t document_count, method_count, custom_count;
    uint32_t unknown_rows; /* claimed of table 3F, which does not exist */
    uint32_t scope_rows;   /* of LocalScope, zeros */
    const char *leave_out; /* name of a stream */
    const char *add;       /* name of an empty stream of no meaning */
};

extern const uint8_t guid_csharp[16], guid_visualbasic[16], guid_fsharp[16], guid_sha1[16], guid_sha256[16],
    guid_embedded[16], guid_source_link[16];

void image_compressed(struct sl_buf *out, uint32_t value);
uint32_t image_blob(struct image *image, const void *data, size_t size); /* its offset */
uint32_t image_guid(struct image *image, const uint8_t guid[16]);        /* its index; always a new one */

/* Each adds a row and returns its number. */
uint32_t image_document(struct image *image, const char *name, const uint8_t *language); /* parts at each of / or \ */
uint32_t image_document_row(struct image *image, uint32_t name, uint32_t algorithm, uint32_t hash, uint32_t language);
uint32_t image_method(struct image *image, uint32_t document, const void *points, size_t size); /* size 0: none */
uint32_t image_custom(struct image *image, unsigned tag, uint32_t parent, const uint8_t kind[16], const void *blob,
                      size_t size);

/* An embedded source: raw, or deflated and said to be `stated` bytes long. */
void image_source(struct image *image, uint32_t document, const char *text);
void image_deflated(struct image *image, uint32_t document, const char *text, int32_t stated);

/* The file; owned by the caller. The image can go on being changed. */
struct sl_buf image_file(struct image *image);
void image_free(struct image *image);
