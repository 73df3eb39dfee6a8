/* Symbols of an executable as symbfile records: from DWARF, from the line table of Go programs, from symbol tables; and
 * the return pads of its calls. ELF of 64 bits, little-endian. */
#pragma once

#include "symbfile/symbfile.h"

/* ---- executables ---- */
struct sl_symbfile_image;

/* The image of an object. SL_UNSUPPORTED when it is no little-endian ELF of 64 bits, SL_MALFORMED when its code segments
 * overlap. What the object was opened on must outlive the image. */
enum sl_code sl_symbfile_image_open(struct sl_object *object, struct sl_symbfile_image **image, struct sl_error *error);
void sl_symbfile_image_close(struct sl_symbfile_image *image);

/* Lowest address of a loaded segment, rounded down to a page; false when there is none. */
bool sl_symbfile_image_base(const struct sl_symbfile_image *image, uint64_t *base);

/* ---- ranges ---- */
enum sl_symbfile_source { SL_SOURCE_DWARF, SL_SOURCE_GO, SL_SOURCE_SYMBOLS, SL_SOURCES };
extern const char *const sl_symbfile_source_names[SL_SOURCES];

struct sl_symbfile_extraction {
    struct {
        uint64_t produced, accepted, rejected, unexpected;
        bool failed, absent; /* no such source in the file */
    } sources[SL_SOURCES];
    uint64_t skipped_units;
};

/* Gets a function (depth 0) and all that is inlined in it, in pre-order. */
struct sl_symbfile_tree_sink {
    enum sl_code (*tree)(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                         struct sl_error *error);
};

/* Every function of the object, once: sources in the order of their worth, what one has covered the next does not get.
 * `image` is that of the same file. `companions`, `parallel` may be NULL. A source that fails is counted; SL_MALFORMED
 * when one failed and none gave anything. */
enum sl_code sl_symbfile_extract(struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_tree_sink *sink, struct sl_symbfile_extraction *extraction,
                                 struct sl_error *error);

/* ---- return pads ---- */
struct sl_symbfile_pads; /* finds the calls in the code of an image */

/* Work and memory are the budget's (NULL = no limit). NULL when out of memory. `sl_symbfile_pads_supported`: whether the
 * architecture's calls are known. */
struct sl_symbfile_pads *sl_symbfile_pads_new(const struct sl_symbfile_image *image, struct sl_budget *budget);
void sl_symbfile_pads_free(struct sl_symbfile_pads *pads);
bool sl_symbfile_pads_supported(const struct sl_symbfile_pads *pads);

/* The pads of a tree as sl_symbfile_tree_sink gets it, each to `sink->pad`. SL_BUSY, what sl_budget_fail() says, or what the sink
 * answered. */
enum sl_code sl_symbfile_pads_of_tree(struct sl_symbfile_pads *pads, const struct sl_symbfile_range *ranges,
                                      size_t count, struct sl_symbfile_sink *sink, struct sl_error *error);
