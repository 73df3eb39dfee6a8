/* The converters of the kinds (conversion/converter.h), their options and results. Unless stated otherwise, the options of a converter
 * are a struct reader_limits, and it has no result. */
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
    uint8_t checksum[SHA256_SIZE]; /* SHA-256 of the wanted Portable PDB */
    bool has_debug_id, has_checksum;
};
struct object_check_result {
    bool same_id, same_checksum;       /* true also if there is nothing to compare */
    bool is_fat;                       /* the object is a slice of the file: */
    uint64_t slice_offset, slice_size; /* bytes */
    struct sl_debug_id debug_id;       /* of the object */
};

/* Check that a file is valid. They have no options and write nothing. */
extern const struct converter converter_uuidmap;
extern const struct converter converter_bcsymbolmap;
extern const struct converter converter_il2cpp;

/* Makes the table of a ProGuard or R8 mapping. No options. */
extern const struct converter converter_proguard;

/* Makes the table of INPUT_SCRIPT (missing = empty) and its map: INPUT_SOURCE_MAP, else INPUT_DATA_URL, else the script's comment. */
extern const struct converter converter_sourcemap;
struct sourcemap_options {
    bool partial_scopes, compat_names; /* struct sl_smcache_options */
};
struct sourcemap_result {
    uint64_t bad_scopes; /* as in struct sl_smcache */
};

/* Decodes a source text: `out` gets it as UTF-8, unless INPUT_FILE is that already. SL_NOT_FOUND: it is empty; SL_MALFORMED: it is not
 * text. */
extern const struct converter converter_source_text;
struct source_text_options {
    bool is_utf8; /* must be UTF-8, but may contain any character; its byte order mark is skipped */
};
struct source_text_result {
    bool is_written; /* `out` has the text */
};

/* Finds what a script says of its source map; `out` gets the reference to the map, if it is not a data URL. No options. */
extern const struct converter converter_script_facts;
struct script_facts_result {
    bool has_map, embeds_map, has_debug_id; /* as in struct script_facts */
    struct sl_debug_id debug_id;
    uint8_t sha256[SHA256_SIZE]; /* of the script */
};

/* ---- converters of an object, INPUT_FILE ---- */

/* Writes the Portable PDB that a PE file contains, inflated. SL_NOT_FOUND: it contains none. */
extern const struct converter converter_embedded_ppdb;

extern const struct converter converter_object_meta;
extern const struct converter converter_embedded_sources;

/* Finds the section INPUT_NAME, as in the file. Writes nothing. */
extern const struct converter converter_raw_section;
struct raw_section_result {
    enum sl_section_store store;
    uint64_t offset, size; /* in the file, bytes; if `store` is SL_SECTION_STORED */
};

/* Tells whether a line table names the source file of the path INPUT_NAME, which is clean (function/path.h). Writes nothing. */
extern const struct converter converter_source_path;
enum { MAX_RELATIVE_PATH = 1024 };
struct source_path_result {
    bool named;
    /* The path as the table has it, if that is relative to the compilation directory; NUL-terminated. Empty: it is not, or is longer. */
    char relative[MAX_RELATIVE_PATH];
};

extern const struct converter converter_cficache;
struct cficache_result {
    enum sl_arch arch; /* of the object, if it could be opened */
};

extern const struct converter converter_ppdb_cache;
struct ppdb_cache_result {
    uint64_t dropped; /* methods and documents that could not be read */
};

/* Optional inputs: INPUT_SYMBOL_MAP, INPUT_LINE_MAP, INPUT_DWP, INPUT_DWZ. */
extern const struct converter converter_symcache;
struct symcache_options {
    struct reader_limits limits;
    bool variables, columns;
    /* All available companions are given: always convert. False: convert only if the object refers to none. */
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
