/* Extracts symbfile records from an executable: symbols from DWARF, from the line table of Go programs and from
 * symbol tables; and the return pads of its calls. Supports 64-bit little-endian ELF. */
#pragma once

#include "symbfile/symbfile.h"

/* ---- executables ---- */
struct sl_symbfile_image;

/* Opens the image of an object. SL_UNSUPPORTED if it is not a 64-bit little-endian ELF file, SL_MALFORMED if its
 * executable segments overlap. The bytes that the object was opened on must outlive the image. */
enum sl_code sl_symbfile_image_open(struct sl_object *object, struct sl_symbfile_image **image, struct sl_error *error);
void sl_symbfile_image_close(struct sl_symbfile_image *image);

/* Sets `*base` to the lowest address of a loaded segment, rounded down to a page. False if there is no such segment. */
bool sl_symbfile_image_base(const struct sl_symbfile_image *image, uint64_t *base);

/* ---- ranges ---- */
enum sl_symbfile_source { SL_SOURCE_DWARF, SL_SOURCE_GO, SL_SOURCE_SYMBOLS, SL_SOURCES };
extern const char *const sl_symbfile_source_names[SL_SOURCES];

struct sl_symbfile_extraction {
    struct {
        /* numbers of ranges: read, passed on, left out; inlined calls that extend beyond their function */
        uint64_t produced, accepted, rejected, unexpected;
        bool failed, absent; /* `absent`: the file has no such source */
    } sources[SL_SOURCES];
    uint64_t skipped_units; /* DWARF units that could not be read to their end */
};

/* Receives a function (depth 0) and all calls inlined in it, in pre-order. */
struct sl_symbfile_tree_sink {
    enum sl_code (*tree)(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                         struct sl_error *error);
};

/* Extracts each function of the object once: reads the sources in order of quality and skips code that an earlier source
 * covers. `image` is of the same file. `companions` and `parallel` may be NULL. A source that cannot be read is marked as `failed`
 * in `extraction`; SL_MALFORMED if one failed and no other could be read. */
enum sl_code sl_symbfile_extract(struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_tree_sink *sink, struct sl_symbfile_extraction *extraction,
                                 struct sl_error *error);

/* ---- return pads ---- */
struct sl_symbfile_pads; /* finds return pads: the last bytes of the call instructions in the code of an image */

/* Makes a finder of return pads, the addresses of the last bytes of call instructions; NULL if out of memory. Free it with
 * sl_symbfile_pads_free(), before the image is closed. Work and memory are charged to `budget` (NULL = no limit).
 * sl_symbfile_pads_supported() is true for images of x86-64 and ARM64, whose call instructions are known. */
struct sl_symbfile_pads *sl_symbfile_pads_new(const struct sl_symbfile_image *image, struct sl_budget *budget);
void sl_symbfile_pads_free(struct sl_symbfile_pads *pads);
bool sl_symbfile_pads_supported(const struct sl_symbfile_pads *pads);

/* For each call instruction in the function `ranges[0]` passes a return pad, the address of its last byte, to `sink->pad`; ranges[1..] are
 * the calls inlined in the function, in pre-order. Does nothing if the architecture is not supported. Decoding ends at the first invalid
 * instruction. Fails with the code of sl_budget_fail() (work, memory or time used up, SL_BUSY when out of memory), or with the sink's. */
enum sl_code sl_symbfile_pads_of_tree(struct sl_symbfile_pads *pads, const struct sl_symbfile_range *ranges,
                                      size_t count, struct sl_symbfile_sink *sink, struct sl_error *error);
