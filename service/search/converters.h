/* The converters of the kind `mozilla_syms`, and of debug files that come with a request (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* Makes the symcache of INPUT_FILE, a Breakpad file that must have the debug id of the options. */
extern const struct converter converter_mozilla_syms;
struct mozilla_syms_options {
    struct reader_limits limits;
    struct sl_debug_id debug_id;
};
struct mozilla_syms_result {
    bool has_table, is_written; /* the file was converted; its symcache was written */
    uint64_t written_ns;        /* duration of writing */
};

/* Finds the objects in INPUT_FILE, a debug file that came with a request. One that is compressed, and the members of a ZIP archive, are
 * unpacked into `out`. Behind them `out` has the ids of the objects, and at last a struct supplied_record for each object:
 *
 *     contents | name, code id, raw code id | contents | ... | records
 *
 * Files that are no objects, and those that cannot be unpacked, are left out. */
extern const struct converter converter_supplied;
struct supplied_options {
    uint64_t max_unpacked; /* bytes, of all contents together */
    uint64_t max_ratio;    /* of a compressed file's contents to its size (unpack_options) */
};
struct supplied_result {
    uint64_t records, count; /* where they begin in `out`; how many */
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
    /* numbers, because any of their values can be read: 0 is false */
    uint8_t is_unpacked, is_pdb20, has_debug_info, has_unwind_info, has_symbols, has_sources, is_fixed;
    uint8_t vcs; /* index of supplied_vcs_names */
};
enum { SUPPLIED_VCS_NAMES = 4 };
extern const struct sl_str supplied_vcs_names[SUPPLIED_VCS_NAMES];
