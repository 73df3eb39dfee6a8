/* The converters (conversion/converter.h) that read uploaded files: which kind of file it is, and by which release and debug ids an
 * artifact bundle is found. */
#pragma once

#include "conversion/converter.h"
#include "origin/origin.h"

/* How much a file tells about code, ascending. */
enum debug_file_quality {
    QUALITY_CODE,            /* neither symbols nor lines */
    QUALITY_DYNAMIC_SYMBOLS, /* only symbols of the dynamic linker */
    QUALITY_SYMBOLS,
    QUALITY_BREAKPAD,
    QUALITY_LINES /* DWARF, PDB */
};

enum { CHECKED_OBJECTS = 6, CHECKED_CODE_ID = 132, CHECKED_NAME = 160 };

struct checked_object {
    enum file_type type;
    enum object_type program; /* type of the module that the file belongs to; OBJECT_UNKNOWN: any */
    enum debug_file_quality quality;
    enum sl_arch arch;
    enum sl_object_kind kind;
    bool has_code, has_debug_info, has_symbols, has_unwind_info, has_sources;
    struct sl_debug_id debug_id;   /* nil: the file has none */
    char code_id[CHECKED_CODE_ID]; /* empty: the file has none */
};

struct upload_check_result {
    uint32_t count; /* number of objects: several in a fat Mach-O file, else 1 */
    struct checked_object objects[CHECKED_OBJECTS];
    char name[CHECKED_NAME]; /* debug file name that the file contains; may be empty */
};

/* Finds out which kind of file INPUT_FILE is. Options: struct reader_limits. The result is struct upload_check_result; there is no output.
 * SL_MALFORMED: the file is damaged, or of no kind that the store keeps. */
extern const struct converter converter_upload_check;

/* Writes the debug ids of the files in an artifact bundle (INPUT_FILE), sorted, each once, as lines of 32 hex digits. No options. The
 * result is struct artifact_index_result. */
extern const struct converter converter_artifact_index;
enum { ARTIFACT_RELEASE = 512, ARTIFACT_DIST = 128 };
struct artifact_index_result {
    char release[ARTIFACT_RELEASE], dist[ARTIFACT_DIST]; /* as the manifest has them; empty: none, or too long */
};
