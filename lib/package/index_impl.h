/* The format of indexes, for its reader and its writer. Private. */
#pragma once

#include "package/index.h"

enum { SECTION_OBJECTS = 1, SECTION_OFFSETS, SECTION_FILES, SECTION_SOURCES, SECTION_STRINGS, INDEX_SECTIONS = 5 };
enum { OBJECT_BYTES = 40, OFFSET_BYTES = 8, FILE_BYTES = 32, SOURCE_BYTES = 24 };
enum { AT_SECTION_COUNT = 8, AT_KEY = 16, INDEX_HEADER = 32 };
#define DERIVED_NAME UINT32_MAX

extern const struct sl_table_format index_format;
