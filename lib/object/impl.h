/* What the formats share behind object.h: the object itself and the operations a format provides. Private to this
 * folder. */
#pragma once

#include "object/object.h"

/* Only `open` is needed: a format without the others has no sections, no symbols. */
struct object_format {
    /* Fills object->info and object->impl (in object->arena); `object` is otherwise ready. */
    enum sl_code (*open)(struct sl_object *object, struct sl_error *error);
    void (*close)(struct sl_object *object);
    bool (*section)(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
    bool (*section_info)(struct sl_object *object, size_t index, struct sl_section_info *info);
    bool (*segment)(const struct sl_object *object, size_t index, struct sl_segment *segment);
    /* NULL: it has none at the ends of the address space. */
    bool (*holds_code)(const struct sl_object *object, uint64_t address);
    struct sl_bytes (*at)(const struct sl_object *object, uint64_t address); /* NULL: the segments are searched */
    /* The pieces of the file by which a program without id is told from others, in file order; some may be empty. False past the
     * last one. */
    bool (*contents)(const struct sl_object *object, size_t index, struct sl_bytes *piece);
    enum sl_code (*symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                            struct sl_error *error);
    enum sl_code (*data_symbols)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*symbol_files)(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*symbol_table)(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                                 size_t *count, struct sl_error *error);
    enum sl_code (*code_marks)(struct sl_object *object, struct sl_arena *arena, struct sl_code_mark **marks,
                               size_t *count, struct sl_error *error);
    /* Formats that describe code in a way of their own; NULL: it is DWARF in sections. As sl_object_read_functions. */
    enum sl_code (*read_functions)(struct sl_object *object, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error);
    bool (*file_origin)(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                        struct sl_file_origin *origin);
    void (*relate)(struct sl_object *debug, const struct sl_object *program); /* both of this format */
};

struct sl_object {
    struct sl_object_info info;
    struct sl_bytes bytes;
    uint64_t max_section_size, max_unwind_chain;
    uint64_t inflated, granted;  /* bytes that were to be inflated so far; that the budget grew by */
    struct object_block *blocks; /* what was made of parts of the file */
    struct sl_error failure;     /* the first lack of memory; code SL_OK: none */
    struct sl_error unused;      /* why debug information cannot be used, the first reason; code SL_OK: there is none */
    struct sl_symbol *symbols;   /* once they were asked for with sl_object_kept_symbols */
    size_t symbol_count;
    bool has_symbols;                     /* they were */
    bool identity;                        /* is all that is asked for */
    struct sl_mapping mapping;            /* of limits */
    bool is_inner;                        /* lies inside of another object, and nothing inside of it is looked for */
    struct sl_budget *budget, own_budget; /* `budget` is the caller's or points to the other */
    struct sl_arena arena;
    const struct object_format *format;
    void *impl;
};

struct object_block { /* what was made of a part of the file */
    struct object_block *next, **link;
    size_t size;
    _Alignas(16) uint8_t data[];
};

extern const struct object_format sl_object_elf;
extern const struct object_format sl_object_macho;
extern const struct object_format sl_object_breakpad;
extern const struct object_format sl_object_wasm;
extern const struct object_format sl_object_pe;
extern const struct object_format sl_object_coff;     /* opens both of them */
extern const struct object_format sl_object_codeview; /* COFF that CodeView describes, not DWARF */
extern const struct object_format sl_object_pdb;
extern const struct object_format sl_object_ppdb;
extern const struct object_format sl_object_bundle;

/* formats.c: what opens files of the format; NULL: nothing. */
const struct object_format *object_opens(enum sl_format format);

/* pe.c: what PE headers and PDB files call the machine (PE Format, "Machine Types"). */
enum sl_arch object_machine_arch(uint16_t machine);

/* ---- object.c ---- */

/* An id as lower-case hex text, in the object's arena; empty when out of memory. */
struct sl_str object_hex(struct sl_object *object, struct sl_bytes bytes);

/* Remembers that memory ran out: opening fails with it, sl_object_complete() tells later. Returns its code. */
enum sl_code object_no_memory(struct sl_object *object);

/* Where to put why debug information that the file has cannot be used (sl_object_unused); NULL when there is a reason already. */
static inline struct sl_error *object_unused(struct sl_object *object)
{
    return object->unused.code == SL_OK ? &object->unused : NULL;
}

/* Symbols from `first` on, whose sizes reach to the ends of their sections, end where the next of all begins. False when out of
 * memory. */
bool object_end_at_next(struct sl_symbol *symbols, size_t first, size_t count);

/* Takes the contents of .gnu_debuglink: a name with its NUL, padding to a multiple of 4, a CRC-32 (GDB manual, "Separate Debug
 * Files"). What is behind it, sections of PE files are padded, does not count. */
void object_set_debug_link(struct sl_object *object, struct sl_bytes section);

/* As sl_object_open, for one of `objects` of a file. */
enum sl_code object_open_slice(struct sl_bytes bytes, const struct sl_object_limits *limits, size_t objects,
                               struct sl_object **object, struct sl_error *error);

/* Opens what lies inside of `outer` and is paid for by its budget. NULL when it is no object. */
struct sl_object *object_open_inner(struct sl_object *outer, struct sl_bytes bytes);

/* The checksum of a supplementary file, which names itself by it; empty for any other object. */
struct sl_bytes object_supplementary_id(struct sl_object *object);

/* ---- go.c ---- */
bool object_has_go_table(struct sl_object *object);

/* ---- inflate.c ---- */

/* Memory that lives as long as the object, unless it is dropped. NULL (and remembered) when out of memory. */
uint8_t *object_block(struct sl_object *object, size_t size);
void object_drop(struct sl_object *object, uint8_t *block);

/* Whether `in` bytes may be inflated to `out`: within the limits, and paid for. */
bool object_may_inflate(struct sl_object *object, uint64_t in, uint64_t out);

/* So many bytes were inflated: the budget grows by them, in all by the size of the file at most. */
void object_grant(struct sl_object *object, uint64_t size);

/* Inflates to at most `size` bytes at `out`; negative `window_bits`: without the zlib header. Returns the number of bytes, 0
 * on error. `*ended`: the stream ends there. */
size_t object_inflate(struct sl_bytes in, uint8_t *out, size_t size, int window_bits, bool *ended);

/* How a debug section is compressed: the stream, its inflated size, and which library reads it. */
struct object_compressed {
    struct sl_bytes stream;
    uint64_t size;
    bool zstd;
};

/* The older form, of sections named `.zdebug_*`, `__zdebug_*`: `ZLIB`, the size as big-endian u64, the stream. */
bool object_read_zdebug(struct sl_bytes raw, struct object_compressed *compressed);

/* The contents, which live as long as the object; empty when they cannot be read, or are over the limits. */
struct sl_bytes object_inflate_section(struct sl_object *object, const struct object_compressed *compressed);

/* ---- object.c ---- */

/* How many bytes of line ends a text may have in front of its first record: a few, so that nothing else looks like one. */
static inline size_t object_blank_lines(struct sl_bytes text)
{
    enum { MOST = 16 };
    size_t size = 0;
    while (size < text.size && size < MOST && (text.data[size] == '\n' || text.data[size] == '\r'))
        size++;
    return size;
}
