/* The index of a directory of debug files and packages: from ids to files and members (magic "SLIX"; a table, table/table.h).
 *
 *     section 1   objects, 40 bytes each: u8 size of the id, u8 contents, u8 format, u8 type of the id, 20 bytes of the id
 *                 (longer ones are cut, shorter ones padded with zeros), u32 file, u32 name, u64 size.
 *                 Sorted by type and bytes of the id, then newest file first
 *     section 2   u64 offset of each object's member (sl_package_member)
 *     section 3   files, 32 bytes each: u32 path, u32 source, u64 size, i64 mtime in nanoseconds, u8 kind, 3 zero bytes,
 *                 u32 number of source texts
 *     section 4   source texts, 24 bytes each, those of a file together and in the order of files: u32 file, u32 name, u64 size,
 *                 u64 offset. Only in the record of one file; the index of a directory only has their number (section 3)
 *     section 5   strings, NUL-terminated; path, source and name above are offsets here; offset 0 is the empty string.
 *                 A name of 0xFFFFFFFF stands for the path that debug packages use, made from the id:
 *                 /usr/lib/debug/.build-id/ab/cdef.debug
 *
 * The record of one scanned file is an index with one file; the index of a directory is made of such records. Readers check everything
 * where they use it: a damaged file gives wrong or no results, never a crash. */
#pragma once

#include "base/map.h"
#include "object/object.h"
#include "package/package.h"
#include "table/table.h"

enum { SL_INDEX_ID_BYTES = 20, SL_INDEX_RECORD_VERSION = 1002 };

/* What a file has, as bits. */
enum sl_index_content {
    SL_INDEX_DEBUG = 1, /* debug information: DWARF, lines of a PDB ... */
    SL_INDEX_SYMBOLS = 2,
    SL_INDEX_UNWIND = 4,
    SL_INDEX_SOURCES = 8,
    SL_INDEX_CODE = 16, /* a program or library with its code */
};

enum sl_index_id_type {
    SL_INDEX_CODE_ID,   /* the bytes of a code id: GNU build id, Mach-O UUID, WASM build id */
    SL_INDEX_CODE_TEXT, /* a code id that is text, as it is: time stamp and size of a PE file */
    SL_INDEX_DEBUG_ID,  /* UUID and big-endian age */
    SL_INDEX_FILE_ID,   /* hash of the file's first and last bytes and its size (symbfile/fileid.h) */
    SL_INDEX_NAME,      /* hash of the last component of the path, for files without an id: DWARF packages (".dwp") */
    SL_INDEX_ID_TYPES
};

struct sl_index_id {
    uint8_t bytes[SL_INDEX_ID_BYTES];
    uint8_t size; /* of the whole id, at most 255; may be larger than SL_INDEX_ID_BYTES */
    uint8_t type; /* enum sl_index_id_type */
};
/* Makes an id from `bytes`. All of them count in its size, but only the first SL_INDEX_ID_BYTES are stored. */
struct sl_index_id sl_index_id(enum sl_index_id_type type, struct sl_bytes bytes);
struct sl_index_id sl_index_name(struct sl_str name);               /* SL_INDEX_NAME */
struct sl_index_id sl_index_debug_id(const struct sl_debug_id *id); /* SL_INDEX_DEBUG_ID */
/* Makes the id of a code id in normal form (hex digits): SL_INDEX_CODE_ID; or SL_INDEX_CODE_TEXT if it has at most 16 digits or an odd
 * number of them. */
struct sl_index_id sl_index_code_id(struct sl_str code_id);

struct sl_index_object {
    struct sl_index_id id;
    uint8_t content; /* bits of enum sl_index_content */
    uint8_t format;  /* enum sl_format */
    uint32_t file;
    struct sl_str member; /* path in the package; empty: the file is no package, or is_derived is set */
    bool is_derived;      /* the path in the package is /usr/lib/debug/.build-id/... and follows from the id */
    uint64_t size, offset;
};

struct sl_index_file {
    struct sl_str path;   /* relative to the scanned directory */
    struct sl_str source; /* what the package was built from (sl_package_source); may be empty */
    uint64_t size;
    int64_t mtime_ns;
    enum sl_package_kind kind;
    uint32_t source_texts;
};

struct sl_index_source {
    struct sl_str path;
    uint64_t size, offset;
};

/* ---- reading: an index is a view of its bytes ---- */

struct sl_index {
    struct sl_table table;
    size_t object_count, file_count, source_count;
    uint64_t key; /* the number that was given to sl_index_finish() */
};

/* Opens an index. SL_MALFORMED if it is none. O(1). */
enum sl_code sl_index_open(struct sl_bytes bytes, struct sl_index *index, struct sl_error *error);

/* Returns the number of objects whose id has the type of `id` and begins with its first `size` bytes. These objects are adjacent; `*first`
 * becomes the index of the first one. The caller compares the rest of the ids. */
size_t sl_index_find(const struct sl_index *index, const struct sl_index_id *id, size_t size, size_t *first);

/* Read object, file or source text `at` of the index; false if there is none, or it is damaged. */
bool sl_index_object(const struct sl_index *index, size_t at, struct sl_index_object *object);
bool sl_index_file(const struct sl_index *index, size_t at, struct sl_index_file *file);
bool sl_index_source(const struct sl_index *index, size_t at, struct sl_index_source *source);

/* Appends the path in the package; nothing if the object's file is no package. */
void sl_index_member_path(const struct sl_index_object *object, struct sl_buf *out);

/* ---- writing ---- */

struct sl_index_builder { /* all zeros is empty; one thread */
    struct index_entry *objects;
    struct index_file_entry *files;
    struct index_source_entry *sources;
    size_t object_count, object_capacity, file_count, file_capacity, source_count, source_capacity;
    struct sl_buf strings;
    struct sl_map source_names; /* to offsets in `strings` */
    bool failed;                /* out of memory, or more than 4 GiB of strings */
};

/* Adds a file; returns its number. All functions that add set builder->failed when out of memory. */
uint32_t sl_index_add_file(struct sl_index_builder *builder, const struct sl_index_file *file);
/* Add an object or a source text. Its `file` is a number that sl_index_add_file() returned. */
void sl_index_add_object(struct sl_index_builder *builder, const struct sl_index_object *object);
void sl_index_add_source(struct sl_index_builder *builder, uint32_t file, const struct sl_index_source *source);

/* Adds the objects of another index. `numbers` has for each file of `from` its number in the builder; UINT32_MAX: its objects are left
 * out. */
void sl_index_copy_objects(struct sl_index_builder *builder, const struct sl_index *from, const uint32_t *numbers);

/* Appends the finished index to `out`. `key` is stored in it (sl_index.key); the caller chooses it to identify what was indexed. False,
 * with nothing appended, when out of memory. More can be added to the builder afterwards. */
bool sl_index_finish(struct sl_index_builder *builder, uint64_t key, struct sl_buf *out);
void sl_index_builder_free(struct sl_index_builder *builder);
