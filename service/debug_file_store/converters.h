/* The converter that tells what an uploaded file is (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"
#include "origin/origin.h"

/* How much a file tells about code, ascending. */
enum debug_file_quality {
    QUALITY_CODE,
    QUALITY_DYNAMIC_SYMBOLS,
    QUALITY_SYMBOLS,
    QUALITY_BREAKPAD,
    QUALITY_LINES /* DWARF, PDB */
};

enum { CHECKED_OBJECTS = 6, CHECKED_CODE_ID = 132, CHECKED_NAME = 160 };

struct checked_object {
    enum file_type type;
    enum object_type program; /* OBJECT_UNKNOWN: any */
    enum debug_file_quality quality;
    enum sl_arch arch;
    enum sl_object_kind kind;
    bool has_code, has_debug_info, has_symbols, has_unwind_info, has_sources;
    struct sl_debug_id debug_id;   /* nil: the file has none */
    char code_id[CHECKED_CODE_ID]; /* empty: the file has none */
};

struct upload_check_result {
    uint32_t count; /* several in a fat Mach-O file */
    struct checked_object objects[CHECKED_OBJECTS];
    char name[CHECKED_NAME]; /* debug file as the file states it; may be empty */
};

/* Tells what INPUT_FILE is. Options: struct reader_limits. Writes nothing. SL_MALFORMED: it is none of the kinds of files that the
 * store keeps, or damaged. */
extern const struct converter converter_upload_check;

/* Writes the debug ids of the files in an artifact bundle, sorted, as lines of 32 hex digits. No options. */
extern const struct converter converter_artifact_index;
enum { ARTIFACT_RELEASE = 512, ARTIFACT_DIST = 128 };
struct artifact_index_result {
    char release[ARTIFACT_RELEASE],
        dist[ARTIFACT_DIST]; /* of the manifest; empty: it names none, or one that is too long */
};
