/* The converters of the kind `mozilla_syms`, and of debug files that come with a request (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* Makes the symcache of INPUT_FILE, which must be a Breakpad file with the debug id of the options: SL_MALFORMED if it is not. */
extern const struct converter converter_mozilla_syms;
struct mozilla_syms_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
};
struct mozilla_syms_result {
    bool has_table;      /* the conversion to a symcache succeeded, and maybe writing it too */
    bool is_written;     /* the symcache was also written to `out` */
    uint64_t written_ns; /* duration of writing */
};

/* Finds the object files in INPUT_FILE, a debug file that came with a request, which may be compressed or a ZIP archive: then its contents
 * are unpacked into `out`. `out` also gets the name and ids of each object and, at its end, a struct supplied_record for each:
 *
 *     unpacked member | its name | code id, raw code id | unpacked member | ... | records
 *
 * Members that are not object files, or cannot be unpacked, have no record. */
extern const struct converter converter_supplied;
struct supplied_options {
    uint64_t max_unpacked; /* bytes, of all contents together */
    uint64_t max_ratio;    /* of a compressed file's contents to its size (unpack_options) */
};
struct supplied_result {
    uint64_t records, count; /* offset of the first record in `out`; number of records */
    uint64_t unpacked;       /* bytes */
};
struct supplied_text {
    uint64_t offset, size; /* in `out` */
};
struct supplied_record {
    struct supplied_text bytes; /* of the object: in `out` if it is_unpacked, else in INPUT_FILE */
    struct supplied_text name;  /* of the archive's member; empty: the object is not of an archive */
    struct supplied_text code_id, raw_code_id;
    uint64_t load_address;
    uint8_t uuid[16];
    uint32_t age;
    /* Each is true if not 0. Not of type bool: the worker process that writes them is not trusted, and a bool must be 0 or 1. */
    uint8_t is_unpacked, is_pdb20, has_debug_info, has_unwind_info, has_symbols, has_sources, is_fixed;
    uint8_t vcs; /* index of supplied_vcs_names */
};
enum { SUPPLIED_VCS_NAMES = 4 };
extern const struct sl_str supplied_vcs_names[SUPPLIED_VCS_NAMES];
