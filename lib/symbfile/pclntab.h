/* The line table that every Go program carries, stripped or not (debug/gosym of Go's library; "Go 1.2 Runtime Symbol
 * Information" and its later versions). Private to this folder. */
#pragma once

#include "symbfile/image.h"

/* Calls `sink` for every function, each a tree of one range without lines, in the order of the table. SL_NOT_FOUND when
 * the file is no Go program; SL_UNSUPPORTED for tables before Go 1.16; SL_MALFORMED. `object` is that of the image. */
enum sl_code pclntab_read(struct sl_object *object, const struct sl_symbfile_image *image,
                          struct sl_symbfile_tree_sink *sink, struct sl_error *error);
