/* The converters of the kinds (conversion/converter.h): their options and results. Where nothing else is said, options are
 * struct reader_limits, and there is no result. */
#pragma once

#include "conversion/converter.h"
#include "symcache/symcache.h"

/* Whether a file is an object, and the wanted one, whose code id, if it has one, is INPUT_CODE_ID; writes nothing. */
extern const struct converter converter_object_check;
enum { SHA256_SIZE = 32 };
struct object_check_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
    uint8_t checksum[SHA256_SIZE]; /* SHA-256 of the wanted Portable PDB */
    bool has_debug_id, has_checksum;
};
struct object_check_result {
    bool same_id, same_checksum;       /* true also when that cannot be told */
    bool is_fat;                       /* the object is a slice of the file: */
    uint64_t slice_offset, slice_size; /* bytes */
    struct sl_debug_id debug_id;       /* of the object */
};

/* Whether a file can be read; they write nothing. Without options. */
extern const struct converter converter_uuidmap;
extern const struct converter converter_bcsymbolmap;
extern const struct converter converter_il2cpp;

/* The table of a mapping of ProGuard or R8. Without options. */
extern const struct converter converter_proguard;

/* The table of INPUT_SCRIPT (none: it is empty) and INPUT_SOURCE_MAP, or the map in INPUT_DATA_URL, or that in the script's comment. */
extern const struct converter converter_sourcemap;
struct sourcemap_options {
    bool partial_scopes, compat_names; /* struct sl_smcache_options */
};
struct sourcemap_result {
    uint64_t bad_scopes; /* as in struct sl_smcache */
};

/* ---- what is made of INPUT_FILE, an object ---- */

extern const struct converter converter_object_meta;
extern const struct converter converter_embedded_sources;

extern const struct converter converter_cficache;
struct cficache_result {
    enum sl_arch arch; /* of the object, if it could be opened */
};

extern const struct converter converter_ppdb_cache;
struct ppdb_cache_result {
    uint64_t dropped; /* methods and documents that could not be read */
};

/* Besides INPUT_SYMBOL_MAP, INPUT_LINE_MAP, INPUT_DWP and INPUT_DWZ, if there are some. */
extern const struct converter converter_symcache;
struct symcache_options {
    struct reader_limits limits;
    bool variables;
    bool complete; /* there are no companions but those given; else the object is converted only if it wants none */
};
struct companion_wants {
    bool package; /* DWARF package of split units */
    uint8_t dwz_id[64];
    size_t dwz_id_size; /* 0 = no supplementary file */
};
struct symcache_result {
    enum sl_arch arch; /* of the object, if it could be opened */
    bool wanting;      /* nothing was written: the object wants companions */
    bool damaged;      /* the file is not quite as its format wants it */
    struct companion_wants wants;
    struct sl_symcache_gaps gaps;
};
