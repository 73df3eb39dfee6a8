/* The converters (conversion/converter.h) that check files for the cache or make cache entries, with their options and results. Unless a
 * comment says otherwise, a converter's options are a struct reader_limits, and it has no result. */
#pragma once

#include "conversion/converter.h"
#include "object/stored.h"
#include "symcache/symcache.h"

/* Checks that INPUT_FILE is an object, and reports whether its ids are the wanted ones (INPUT_CODE_ID: optional). Writes nothing. */
extern const struct converter converter_object_check;
enum { SHA256_SIZE = 32 };
struct object_check_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
    uint8_t checksum[SHA256_SIZE]; /* SHA-256 of the wanted Portable PDB with zeros in place of its id */
    bool has_debug_id, has_checksum;
};
struct object_check_result {
    bool same_id, same_checksum;       /* true also if there is nothing to compare */
    bool is_fat;                       /* the file is a fat Mach-O file, and the object one of its slices */
    uint64_t slice_offset, slice_size; /* if `is_fat`: where the slice is, in bytes */
    struct sl_debug_id debug_id;       /* of the object */
};

/* Check that INPUT_FILE is a valid UUID map, BCSymbolMap or il2cpp line mapping. They have no options and write nothing. */
extern const struct converter converter_uuidmap;
extern const struct converter converter_bcsymbolmap;
extern const struct converter converter_il2cpp;

/* Makes the look-up table (jvm/mapping.h) of a ProGuard or R8 mapping. No options. */
extern const struct converter converter_proguard;

/* Makes the look-up table of INPUT_SCRIPT (missing = empty) and its source map: INPUT_SOURCE_MAP, else the one in INPUT_DATA_URL, else the
 * one in a data URL in the script's sourceMappingURL comment. */
extern const struct converter converter_sourcemap;
struct sourcemap_options {
    bool partial_scopes, compat_names; /* struct sl_smcache_options */
};
struct sourcemap_result {
    uint64_t bad_scopes; /* number of the first malformed item in the map's `scopes`, from 1; 0 = none */
};

/* Decodes a source text: writes it to `out` as UTF-8, or nothing if INPUT_FILE is UTF-8 already. SL_NOT_FOUND if INPUT_FILE is empty,
 * SL_MALFORMED if it is not text. */
extern const struct converter converter_source_text;
struct source_text_options {
    bool is_utf8; /* true: must be UTF-8 (a byte order mark is skipped); false: the encoding is detected */
};
struct source_text_result {
    bool is_written; /* `out` has the text */
};

/* Finds the debug id and the source map reference in a script's comments, and hashes the script. Writes the reference to `out`, unless it
 * is a data URL. No options. */
extern const struct converter converter_script_facts;
struct script_facts_result {
    bool has_map, embeds_map, has_debug_id; /* as in struct script_facts */
    struct sl_debug_id debug_id;
    uint8_t sha256[SHA256_SIZE]; /* of the script */
};

/* ---- converters of an object, INPUT_FILE ---- */

/* Writes the Portable PDB that a PE file contains, inflated. SL_NOT_FOUND: it contains none. */
extern const struct converter converter_embedded_ppdb;

/* Writes the features of an object as JSON (struct object_meta). */
extern const struct converter converter_object_meta;
/* Writes the source texts in an object's DWARF as a source bundle. SL_NOT_FOUND: it has none. */
extern const struct converter converter_embedded_sources;

/* Finds where in the file the section of the name INPUT_NAME is stored. Writes nothing. */
extern const struct converter converter_raw_section;
struct raw_section_result {
    enum sl_section_store store;
    uint64_t offset, size; /* in the file, bytes; if `store` is SL_SECTION_STORED */
};

/* Tells whether a line table of the object names the source file with the path INPUT_NAME, which must be clean (without "." and "..": see
 * function/path.h). Writes nothing. */
extern const struct converter converter_source_path;
enum { MAX_RELATIVE_PATH = 1024 };
struct source_path_result {
    bool named;
    /* The path in the line table, NUL-terminated, if it is relative to the compilation directory. Empty if it is absolute or too long. */
    char relative[MAX_RELATIVE_PATH];
};

/* Makes the table of unwind rules (unwind/cfi.h) of an object. */
extern const struct converter converter_cficache;
struct cficache_result {
    enum sl_arch arch; /* of the object, if it could be opened */
};

/* Makes the look-up table of a Portable PDB, also of one inside a PE file. */
extern const struct converter converter_ppdb_cache;
struct ppdb_cache_result {
    uint64_t dropped; /* number of methods and documents that could not be read */
};

/* Makes the symcache of an object. Optional inputs: INPUT_SYMBOL_MAP, INPUT_LINE_MAP, INPUT_DWP, INPUT_DWZ. */
extern const struct converter converter_symcache;
struct symcache_options {
    struct reader_limits limits;
    bool variables, columns;
    /* True: the inputs have all companions (DWP, dwz) that are available, so convert in any case. False: convert only if the object refers
     * to no companion, else just say which it refers to (`wanting`). */
    bool complete;
};
struct companion_wants {
    bool package; /* DWARF package of split units */
    uint8_t dwz_id[64];
    size_t dwz_id_size; /* 0 = no supplementary file */
};
struct symcache_result {
    enum sl_arch arch; /* of the object, if it could be opened */
    bool wanting;      /* nothing was written: the object refers to companions (`wants`) */
    bool damaged;      /* malformed but usable (`partial` of struct sl_object_info) */
    struct companion_wants wants;
    struct sl_symcache_gaps gaps;
};
