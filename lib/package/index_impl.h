/* The format of indexes, for its reader and its writer. Private. */
#pragma once

#include "package/index.h"

/* Section numbers; sizes of items in bytes; positions in the header (index.h describes the format). */
enum { SECTION_OBJECTS = 1, SECTION_OFFSETS, SECTION_FILES, SECTION_SOURCES, SECTION_STRINGS, INDEX_SECTIONS = 5 };
enum { OBJECT_BYTES = 40, OFFSET_BYTES = 8, FILE_BYTES = 32, SOURCE_BYTES = 24 };
enum { AT_SECTION_COUNT = 8, AT_KEY = 16, INDEX_HEADER = 32 };
#define DERIVED_NAME UINT32_MAX /* in place of a name's offset: the path follows from the id */

extern const struct sl_table_format index_format;
