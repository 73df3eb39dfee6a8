/* Hand-made program databases: streams of bytes laid out as a multi-stream file, with or without their pages in order.
 *
 * The numbers of the streams are fixed; a stream that nothing was added to is empty. */
#pragma once

#include "../check.h"

#include "base/buf.h"

enum {
    IMAGE_INFO = 1,
    IMAGE_TYPES = 2,
    IMAGE_DEBUG = 3,
    IMAGE_IDS = 4,
    IMAGE_NAMES,
    IMAGE_SECTIONS,
    IMAGE_PUBLICS,
    IMAGE_MODULE_A,
    IMAGE_MODULE_B,
    IMAGE_ORIGINAL,
    IMAGE_OMAP_TO,
    IMAGE_OMAP_FROM,
    IMAGE_SRCSRV,
    IMAGE_LINKS,
    IMAGE_FPO,
    IMAGE_FRAMES,
    IMAGE_STREAMS,
};

struct image_module {
    struct sl_buf symbols, checksums, lines, inlinees, imports, exports;
};

struct image {
    struct sl_buf streams[IMAGE_STREAMS];
    struct sl_buf names; /* text of the /names stream */
    struct sl_buf types, ids;
    uint32_t type_count, id_count;
    struct image_module modules[2];
    bool has_omap, same_sections /* OMAP without the original ones */, has_srcsrv, has_links /* and a source server */;
    unsigned page_size; /* 0 = 512 */
    bool scattered;
};

void image_free(struct image *image);

/* The whole file; the image can be changed and written again. */
void image_write(struct image *image, struct sl_buf *file);

/* Offset of a text in /names. */
uint32_t image_text(struct image *image, const char *text);

/* A record of the type or id stream: its index. `format`: 'w' u32, 'h' u16, 'b' u8, 's' text with its end. */
uint32_t image_type(struct image *image, uint16_t leaf, const char *format, ...);
uint32_t image_id(struct image *image, uint16_t leaf, const char *format, ...);

/* A source file of the module: what line records refer to. */
uint32_t image_file(struct image *image, unsigned module, const char *path);

/* One symbol record. */
void image_symbol(struct sl_buf *symbols, uint16_t kind, const char *format, ...);
void image_procedure(struct image *image, unsigned module, const char *name, uint32_t offset, uint32_t size,
                     uint32_t type);
void image_inlinee(struct image *image, unsigned module, uint32_t id, uint32_t file, uint32_t line);
void image_site(struct image *image, unsigned module, uint32_t id, const void *annotations, size_t size);
void image_end(struct image *image, unsigned module, uint16_t kind);

/* A line subsection of one file: `count` pairs of (delta, line). */
void image_lines(struct image *image, unsigned module, uint32_t offset, uint32_t size, uint32_t file,
                 const uint32_t (*lines)[2], size_t count);
