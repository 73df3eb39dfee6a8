/* The converters of scanned files (conversion/converter.h). */
#pragma once

#include "conversion/converter.h"

/* Makes the record of INPUT_FILE: an index (package/index.h) of this file alone, with the debug files and source texts in it. INPUT_NAME
 * is its path. INPUT_SCRATCH is an empty file for package members that do not fit in memory. SL_MALFORMED: INPUT_FILE is neither a
 * debug file nor a package, or damaged before anything was found. */
extern const struct converter converter_scan_file;
struct scan_file_options {
    struct reader_limits limits;
    uint64_t max_member; /* bytes; larger members are left out */
    uint64_t max_ratio;  /* highest accepted ratio of decompressed to compressed bytes */
    unsigned kinds;      /* bits SCAN_.. of config.h */
};
struct scan_file_result {
    uint32_t objects, sources;
    bool is_package;
    bool is_damaged; /* what was found before the damage is in the record */
    char damage[160];
};

/* Writes a member of the package INPUT_FILE to the output. INPUT_NAME is the member's path. If members in front of it have to be
 * decompressed anyway, those that are debug files are written to INPUT_SCRATCH, one after the other. SL_NOT_FOUND: there is no member
 * of this path and size at the offset. */
extern const struct converter converter_package_member;
struct package_member_options {
    uint64_t offset, size; /* of the member, as the record of the package (converter_scan_file) states them */
    uint64_t max_ratio;
    uint64_t prefetch_bytes, max_prefetched_size; /* limits of INPUT_SCRATCH, and of one member in it; 0: none */
};
enum { MAX_PREFETCHED_MEMBERS = 64 };
struct package_member_result {
    uint32_t count;
    struct prefetched_member {
        uint64_t offset, size; /* in the package */
        uint64_t at;           /* in INPUT_SCRATCH */
    } members[MAX_PREFETCHED_MEMBERS];
};
