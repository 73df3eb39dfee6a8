/* Behind object.h: the object itself and the operations that a format provides. Private to this folder. */
#pragma once

#include "object/object.h"

/* Operations of a format. Only `open` is required; the others may be NULL: no sections, no symbols ... */
struct object_format {
    /* Fills object->info and object->impl (in object->arena); `object` is otherwise ready. */
    enum sl_code (*open)(struct sl_object *object, struct sl_error *error);
    void (*close)(struct sl_object *object);
    bool (*section)(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
    bool (*section_info)(struct sl_object *object, size_t index, struct sl_section_info *info);
    bool (*segment)(const struct sl_object *object, size_t index, struct sl_segment *segment);
    /* sl_object_holds_code(); NULL: it is always false, as the format has no code at the addresses that linkers give dropped code. */
    bool (*holds_code)(const struct sl_object *object, uint64_t address);
    struct sl_bytes (*at)(const struct sl_object *object, uint64_t address); /* NULL: the segments are searched */
    /* Gets part `index`, in file order, of the contents that sl_object_make_id() hashes for a program without id. A part may be empty.
     * False past the last one. */
    bool (*contents)(const struct sl_object *object, size_t index, struct sl_bytes *part);
    enum sl_code (*symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                            struct sl_error *error);
    enum sl_code (*data_symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*symbol_files)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*symbol_table)(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*mapping_symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_mapping_symbol **marks,
                                    size_t *count, struct sl_error *error);
    /* sl_object_read_own_functions(), for formats with debug information other than DWARF; NULL: DWARF sections are read. */
    enum sl_code (*read_functions)(struct sl_object *object, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error);
    bool (*file_origin)(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                        struct sl_file_origin *origin);
    void (*relate)(struct sl_object *debug,
                   const struct sl_object *program); /* sl_object_align_addresses; both are of this format */
};

struct sl_object {
    struct sl_object_info info;
    struct sl_bytes bytes;
    uint64_t max_section_size, max_unwind_chain;
    uint64_t inflated, granted;       /* bytes requested to be inflated so far; bytes that the budget grew by */
    struct object_block *blocks;      /* decompressed sections */
    struct sl_error failure;          /* the first failure for lack of memory or budget; SL_OK: none */
    struct sl_error debug_info_error; /* the first reason why debug information cannot be used; SL_OK: none */
    struct sl_symbol *symbols;        /* cache of sl_object_cached_symbols */
    size_t symbol_count;
    bool has_symbols;                     /* `symbols` is filled */
    bool identity;                        /* sl_object_limits.identity */
    struct sl_mapping mapping;            /* sl_object_limits.mapping */
    bool is_inner;                        /* lies inside another object; objects inside it are not opened */
    struct sl_budget *budget, own_budget; /* `budget` is the caller's or points to own_budget */
    struct sl_arena arena;
    const struct object_format *format;
    void *impl;
};

struct object_block { /* memory made on demand, such as a decompressed section; in a list of the object */
    struct object_block *next, **link; /* link: the pointer in the list that points to this block */
    size_t size;
    _Alignas(16) uint8_t data[];
};

extern const struct object_format sl_object_elf;
extern const struct object_format sl_object_macho;
extern const struct object_format sl_object_breakpad;
extern const struct object_format sl_object_wasm;
extern const struct object_format sl_object_pe;
extern const struct object_format sl_object_coff; /* its `open` changes the format to sl_object_codeview if needed */
extern const struct object_format sl_object_codeview; /* COFF with CodeView and no DWARF */
extern const struct object_format sl_object_pdb;
extern const struct object_format sl_object_ppdb;
extern const struct object_format sl_object_bundle;

/* formats.c: returns the operations of a format; NULL for SL_FORMAT_UNKNOWN. */
const struct object_format *object_format_ops(enum sl_format format);

/* pe.c: converts the machine number of PE headers and PDB files (PE Format, "Machine Types"); SL_ARCH_UNKNOWN if it is not known. */
enum sl_arch object_machine_arch(uint16_t machine);

/* ---- object.c ---- */

/* Returns an id as lower-case hex text, in the object's arena; empty when out of memory. */
struct sl_str object_hex(struct sl_object *object, struct sl_bytes bytes);

/* Records that memory or budget ran out, for sl_object_open and sl_object_status to report. Returns the error's code. */
enum sl_code object_no_memory(struct sl_object *object);

/* Returns the error to fill if debug information of the file cannot be used (sl_object_debug_info_error); NULL if it holds a reason
 * already. */
static inline struct sl_error *object_debug_info_error(struct sl_object *object)
{
    return object->debug_info_error.code == SL_OK ? &object->debug_info_error : NULL;
}

/* Clips symbols from `first` on, whose sizes reach to the ends of their sections, to the start of the next symbol (of all `count`).
 * False when out of memory. */
bool object_clip_to_next(struct sl_symbol *symbols, size_t first, size_t count);

/* Sets debug_link and debug_link_crc of object->info by the contents of .gnu_debuglink: a name with its NUL, padding to a multiple of 4,
 * a CRC-32 (GDB manual, "Separate Debug Files"). Bytes after the CRC are ignored: sections of PE files are padded. */
void object_set_debug_link(struct sl_object *object, struct sl_bytes section);

/* Opens one slice of a file as sl_object_open does. The file has `objects` slices: their budgets share the base amount of work. */
enum sl_code object_open_slice(struct sl_bytes bytes, const struct sl_object_limits *limits, size_t objects,
                               struct sl_object **object, struct sl_error *error);

/* Opens an object inside `outer`, charged to the budget of `outer`; the caller closes it. NULL if the bytes are no object, or when out
 * of memory or budget, which is recorded in `outer`. */
struct sl_object *object_open_inner(struct sl_object *outer, struct sl_bytes bytes);

/* Returns the checksum in .debug_sup by which a supplementary file identifies itself; empty for any other object. */
struct sl_bytes object_supplementary_id(struct sl_object *object);

/* ---- go.c ---- */
bool object_has_go_table(struct sl_object *object); /* true if there is a pclntab, the function table of Go programs */

/* ---- inflate.c ---- */

/* Allocates memory that lives until object_block_free() or the end of the object. NULL when out of memory, which the object records. */
uint8_t *object_block(struct sl_object *object, size_t size);
void object_block_free(struct sl_object *object, uint8_t *block);

/* True if `in` bytes may be inflated to `out` bytes: `out` is not 0 and within the limits, and the work could be charged to the budget. */
bool object_may_inflate(struct sl_object *object, uint64_t in, uint64_t out);

/* Grows the work budget, which was made for the size of the file, as if the file were `size` bytes larger: inflated data is more to
 * read. All calls for an object together grow it by at most the size of the file. */
void object_grow_budget(struct sl_object *object, uint64_t size);

/* Inflates to at most `size` bytes at `out`; negative `window_bits`: raw deflate, without the zlib header. Returns the number of bytes;
 * 0 on error. `*ended` is true if the stream was read to its end and fits into `out`. */
size_t object_inflate(struct sl_bytes in, uint8_t *out, size_t size, int window_bits, bool *ended);

/* A compressed debug section: the stream, its inflated size, and whether it is zstd or zlib. */
struct object_compressed {
    struct sl_bytes stream;
    uint64_t size;
    bool zstd;
};

/* Reads the header of a section `.zdebug_*` or `__zdebug_*`, the older form of compression: `ZLIB`, the inflated size as big-endian u64,
 * the stream. False if it is malformed. */
bool object_read_zdebug(struct sl_bytes raw, struct object_compressed *compressed);

/* Inflates a section; the contents live as long as the object. Empty if they cannot be read or are over the limits. */
struct sl_bytes object_inflate_section(struct sl_object *object, const struct object_compressed *compressed);

/* ---- object.c ---- */

/* Returns the number of bytes of empty lines in front of a text's first record. At most 16 are skipped, so that files of other formats do
 * not pass for text. */
static inline size_t object_blank_lines(struct sl_bytes text)
{
    enum { MAX_BLANK_LINES = 16 };
    size_t size = 0;
    while (size < text.size && size < MAX_BLANK_LINES && (text.data[size] == '\n' || text.data[size] == '\r'))
        size++;
    return size;
}
