/* Structures shared by the files of this folder. Private to it. */
#pragma once

#include "base/account.h"
#include "base/map.h"
#include "pdb/pdb.h"
#include "ppdb/links.h"

/* ---- msf.c: the container ---- */

struct msf {
    struct sl_bytes file;
    unsigned page_shift;
    uint32_t page_count;
    uint32_t stream_count;
    const uint32_t *sizes;   /* per stream: its size in bytes; NO_STREAM_SIZE = absent */
    const uint32_t *pages;   /* page numbers of all streams, one list after the other */
    uint32_t *first;         /* per stream: index of its first page in `pages` */
    _Atomic bool *no_memory; /* set when out of memory: results are incomplete */
};

/* A stream of the container; valid as long as its `struct msf`. */
struct msf_stream {
    const struct msf *msf;
    const uint32_t *pages;
    uint32_t size;
    const uint8_t *flat; /* the stream's bytes in the file if its pages are contiguous there; else NULL */
};

enum { NO_STREAM = 0xFFFF, STREAM_INFO = 1, STREAM_TPI = 2, STREAM_DBI = 3, STREAM_IPI = 4 };

/* Returns the error for a part of the file that could not be read: SL_MALFORMED "invalid pdb file: <what>"; SL_BUSY, or the error of the
 * budget, if memory ran out (msf->no_memory). */
enum sl_code msf_invalid(const struct msf *msf, const struct sl_budget *budget, struct sl_error *error,
                         const char *what);
/* Opens the container. `*msf` is valid as long as `file` and `arena`. SL_MALFORMED "invalid pdb file: ...", or SL_BUSY. */
enum sl_code msf_open(struct sl_bytes file, struct sl_arena *arena, struct msf *msf, struct sl_error *error);

/* Finds a stream. False, with `*stream` empty, if it is absent or one of its pages is outside the file. Stream 0, an old copy of the
 * directory, always counts as absent: its size was not checked at opening. */
bool msf_stream(const struct msf *msf, uint32_t index, struct msf_stream *stream);

/* Sets `*bytes` to bytes [offset, offset + size) of the stream: a view of the file if their pages are contiguous there, else a copy in
 * `arena`. False if they are outside the stream, or when out of memory (msf.no_memory). */
bool msf_view(const struct msf_stream *stream, uint64_t offset, uint64_t size, struct sl_arena *arena,
              struct sl_bytes *bytes);

/* Sets `*bytes` to all bytes of the stream; false when out of memory (msf.no_memory). */
static inline bool msf_all(const struct msf_stream *stream, struct sl_arena *arena, struct sl_bytes *bytes)
{
    return msf_view(stream, 0, stream->size, arena, bytes);
}

/* ---- types.c: the type (TPI) and id (IPI) streams ---- */

/* Index of type records. It has the offset of every ANCHOR_STEP-th record only (`anchors`): a record is found by its number by reading the
 * records from the nearest of these on. */
struct type_table {
    struct msf_stream stream;
    uint32_t begin, end; /* type indexes: begin <= index < end */
    uint32_t records;    /* offset of the first record */
    uint32_t *anchors;   /* offset of every ANCHOR_STEP-th record (types.c) */
};

struct type_record {
    uint16_t leaf;
    struct sl_reader data; /* the rest of the record, after the leaf */
};

/* Makes the index of stream `stream` (types or ids). It is empty if the stream is absent or malformed. False when out of memory. */
bool type_table_open(const struct msf *msf, uint32_t stream, struct sl_arena *arena, struct type_table *table);

/* Makes the index of records that are one after the other in memory; the first one has the type index `begin`. False when out of memory. */
bool type_table_build(const struct msf *msf, struct sl_bytes records, uint32_t begin, struct sl_arena *arena,
                      struct type_table *table);

/* Reads a record. False if there is none with this index, or when out of memory: a record that lies across pages is copied into `arena`. */
bool type_table_get(const struct type_table *table, uint32_t index, struct sl_arena *arena, struct type_record *record);

/* ---- pdb.c: the parts that are read at opening ---- */

struct pdb_section {
    uint32_t address, size;
    bool executable;
};

struct pdb_module {
    struct sl_str name;
    uint16_t stream;
    uint32_t symbol_size, c11_size, c13_size;
};

/* Parts of a module's stream. */
struct module_bytes {
    struct sl_bytes symbols; /* symbol records, after the signature */
    struct sl_bytes c13;     /* line information */
};

struct srcsrv; /* srcsrv.c */

/* OMAP: how a tool rearranged a program after linking (omap.c). Symbols have *original* addresses, those before the rearrangement. Both
 * tables are pairs of addresses, u32 each, sorted by the first; a pair maps all addresses up to that of the next pair. */
struct omap {
    struct sl_bytes from; /* original address -> image address; 0 = removed */
    struct sl_bytes to; /* image address -> original address; 0 or past the last section: code that the tool inserted */
    uint64_t size;      /* of the original program */
    struct omap_copy *copies; /* further copies of original code, which only `to` maps; sorted by original address */
    size_t copy_count;
};

struct omap_copy {
    uint64_t original;      /* original address */
    uint64_t reach;         /* largest end, in original addresses, of this and all copies before it in the array */
    uint32_t size, address; /* address: in the image */
};

struct sl_pdb {
    struct msf msf;
    struct sl_arena *arena;
    struct sl_budget *budget;
    struct pdb_section *sections; /* to which section:offset pairs refer: the original ones if there is an OMAP */
    size_t section_count;
    struct omap omap;
    bool has_omap;
    bool no_addresses;     /* the program was rearranged, but the OMAP is missing: no address can be converted */
    struct sl_bytes names; /* text of the /names stream */
    uint16_t symbol_stream, fpo_stream, frame_stream;
    struct pdb_module *modules;
    size_t module_count;
    struct module_bytes object; /* object file: bytes of its only module, which has no stream */
    struct type_table types, ids;
    bool types_tried;           /* `types` and `ids` were made */
    struct sl_bytes info;       /* the info stream, which has the names of streams */
    struct srcsrv *srcsrv;      /* the source server stream; NULL = none */
    bool links_tried;           /* `links` was made */
    struct sl_ppdb_links links; /* Source Link */
};

enum { NOT_MAPPED = 0xFFFFFFFF };

/* Converts a section:offset pair (sections count from 1) to a relative address of the image, through OMAP; NOT_MAPPED if there is
 * none. */
uint32_t pdb_address(const struct sl_pdb *pdb, uint16_t section, uint32_t offset);

/* omap.c: converts an original address to the image address; NOT_MAPPED if there is none. */
uint32_t pdb_translate(const struct sl_pdb *pdb, uint32_t address);

/* A contiguous part of some code in the image: OMAP may have split the code. */
struct code_piece {
    uint32_t address, size; /* relative; bytes */
};

/* Iterates over the contiguous parts of code in the image: first where OMAP moved the code, then the copies that only "to" maps. */
struct code_pieces {
    uint32_t address, size; /* the code whose parts were not returned yet, in original addresses */
    uint64_t begin, end;    /* all of the code, in original addresses */
    size_t copies;          /* entries of omap.copies that are left: those before this index */
};
/* Begins the iteration over the code at section:offset; it has no parts if the code is not in the image. */
struct code_pieces pdb_pieces(const struct sl_pdb *pdb, uint16_t section, uint32_t offset, uint32_t size);
/* Sets `*piece` to the next part. False at the end, or when the work budget is used up. */
bool pdb_next_piece(const struct sl_pdb *pdb, struct code_pieces *pieces, struct sl_account *account,
                    struct code_piece *piece);

/* ---- omap.c ---- */

/* Fills omap.copies with the copies of original code that only "to" maps, sorted by original address. False when out of memory or
 * budget. */
bool omap_find_added(struct sl_pdb *pdb);
/* Begins the iteration over the code at an original address. */
struct code_pieces omap_pieces(const struct sl_pdb *pdb, uint32_t address, uint32_t size);
/* True if the tool that rearranged the program inserted all code in [begin, end) of the image, so that no part of it has an original
 * address. False also when the work budget is used up. */
bool omap_is_all_added(const struct sl_pdb *pdb, uint32_t begin, uint32_t end, struct sl_account *account);

/* Returns the text at an offset of the /names stream; empty if there is none or it is longer than 4096 bytes. The work of reading it is
 * charged to `account` by the length. */
struct sl_str pdb_name(const struct sl_pdb *pdb, uint32_t offset, struct sl_account *account);

/* Finds the parts of a module's stream; a module without a stream has none. False if the stream is damaged, or when out of memory. */
bool pdb_module_bytes(const struct sl_pdb *pdb, const struct pdb_module *module, struct sl_arena *arena,
                      struct module_bytes *bytes);

/* ---- c13.c: lines, files and inlinees of a module ---- */

enum {
    C13_LINES = 0xF2,
    C13_CHECKSUMS = 0xF4,
    C13_INLINEES = 0xF6,
    C13_IMPORTS = 0xF7,
    C13_EXPORTS = 0xF8,
};

/* Reads the next subsection of C13 line information; skips subsections with the flag "ignore". False at the end and at a damaged one. */
bool c13_next(struct sl_reader *r, uint32_t *kind, struct sl_bytes *data);

struct line_section { /* a lines subsection: the lines of the code at section:offset */
    uint32_t offset, size;
    uint16_t section;
    bool columns, converted; /* there are columns; `lines` was made */
    struct sl_bytes blocks;  /* the lines as they are in the file, a block for each source file */
    struct sl_line *lines;   /* made when the first function needs them */
    uint32_t line_count;
    uint32_t order;    /* position in the file, which orders subsections with the same start */
    uint32_t assigned; /* in the first of several with the same start: how many of these have been given to functions */
};

struct source_file { /* a source file: a record of the checksums subsection */
    uint32_t offset; /* of the record, by which lines refer to the file */
};

/* An inlined function. */
struct inlinee {
    uint32_t id, file, line; /* number in the id stream; offset of the file's checksums record; first line */
    uint32_t order;          /* position in the file */
    bool named, nameless;    /* named: `name` is set; nameless: no name can be made */
    struct sl_str name;
};

/* A line as in the file. raw_lines_convert() makes lines of it. */
struct raw_line {
    uint32_t offset; /* in the section; during conversion the relative address */
    uint32_t size;   /* bytes; 0 = unknown */
    uint32_t file;   /* offset of the file's record in the checksums subsection */
    uint32_t line;
    uint32_t order; /* position in the array before sorting */
};

struct pdb_line_table {
    const struct sl_pdb *pdb;
    struct sl_arena *arena;
    struct line_section *sections; /* sorted by section and offset */
    struct source_file *offsets;   /* sorted */
    struct sl_file *files;         /* parallel to `offsets`; the files of the batch */
    struct inlinee *inlinees;      /* sorted by id */
    struct sl_bytes imports;       /* the cross-module imports subsection */
    size_t section_count, file_count, inlinee_count;
    struct raw_line *raw; /* the lines that are being read; reused from module to module; the owner frees it */
    size_t raw_count, raw_capacity;
    struct sl_account account;
};

/* Reads the C13 line information of a module. Of the module before it keeps only the array `raw`, to use it again, and `account`, which
 * charges it. False when out of memory. */
bool line_table_open(struct pdb_line_table *table, const struct sl_pdb *pdb, struct sl_bytes c13,
                     struct sl_arena *arena);

/* Sets the lines of a function at section:offset; `pieces` are the `count` contiguous parts of its code. Call it once per function, in file
 * order: if the linker has folded functions (ICF), the n-th one at an address gets the n-th lines subsection there. False when out of
 * memory or budget. */
bool line_table_function(struct pdb_line_table *table, uint16_t section, uint32_t offset, struct sl_function *pieces,
                         size_t count);

/* Copies those of the sorted lines that overlap [begin, end) into a function, clipped to that range. False when out of memory. */
bool line_table_clip(struct pdb_line_table *table, const struct sl_line *lines, size_t count, uint64_t begin,
                     uint64_t end, struct sl_function *function);

/* Returns the inlined function with this number in the id stream; NULL if the module has none. */
struct inlinee *line_table_inlinee(struct pdb_line_table *table, uint32_t id);

/* Appends a line to table->raw, the lines that are being read. False when out of memory. */
bool raw_lines_add(struct pdb_line_table *table, struct raw_line line);

/* Makes lines of table->raw, whose offsets are in `section`: converts offsets to addresses (through OMAP, if any), sorts them, merges equal
 * lines and removes overlaps. False when out of memory or budget. */
bool raw_lines_convert(struct pdb_line_table *table, uint16_t section, struct sl_line **lines, uint32_t *count);

/* ---- inline.c ---- */

/* Sets table->raw to the lines of an inlined call by its binary annotations. `start` is the offset of the procedure in its section. False
 * when the annotations are malformed, or when out of memory. */
bool inline_lines(struct pdb_line_table *table, const struct inlinee *inlinee, uint32_t start,
                  struct sl_bytes annotations);

/* ---- imports.c: references to types of other modules, which link-time code generation leaves ---- */

struct module_exports {    /* the exports subsection of a module */
    bool tried;            /* it was read */
    const uint32_t *pairs; /* pairs of local and global type index, sorted by the local one */
    size_t count;
};

enum { MAX_IMPORTED_MODULES = 2048 }; /* a reference has eleven bits for the module */

struct imports {
    const struct sl_pdb *pdb;
    struct sl_bytes subsection; /* imports of the module being read: per imported module its name, a count, indexes */
    struct imported {           /* an imported module */
        uint32_t offset;        /* of its entry in `subsection` */
        bool looked_up;         /* `exports` is set; looked up once, because names may be long */
        struct module_exports *exports; /* NULL = the PDB has no such module */
    } imported[MAX_IMPORTED_MODULES];
    size_t count;
    struct sl_arena arena;          /* for the members below, which are kept from module to module */
    struct module_exports *exports; /* per module of the file */
    struct sl_map modules;          /* lower-cased name -> struct pdb_module */
};

void imports_free(struct imports *imports);
/* Call it before the records of a module are read: imports_resolve() then uses `subsection`, the imports of that module. */
void imports_begin_module(struct imports *imports, struct sl_bytes subsection);

/* Sets `*global` to the type index for a cross-module index (bit 31 set). False if it cannot be resolved. */
bool imports_resolve(struct imports *imports, uint32_t index, struct sl_account *account, uint32_t *global);

/* ---- sizes.c: types with names, and sizes of types ---- */

/* MAX_TYPE_DEPTH: deepest nesting of types that is followed. Reading a type record costs STEPS_PER_RECORD steps of the work budget, and one
 * more for each BYTES_PER_STEP bytes of it. */
enum { MAX_TYPE_DEPTH = 64, STEPS_PER_RECORD = 4, BYTES_PER_STEP = 16 };

enum {
    LF_MODIFIER = 0x1001,
    LF_POINTER = 0x1002,
    LF_ARRAY_ST = 0x1003,
    LF_CLASS_ST = 0x1004,
    LF_STRUCTURE_ST = 0x1005,
    LF_UNION_ST = 0x1006,
    LF_ENUM_ST = 0x1007,
    LF_PROCEDURE = 0x1008,
    LF_MFUNCTION = 0x1009,
    LF_ARGLIST = 0x1201,
    LF_ARRAY = 0x1503,
    LF_CLASS = 0x1504,
    LF_STRUCTURE = 0x1505,
    LF_UNION = 0x1506,
    LF_ENUM = 0x1507,
    LF_INTERFACE = 0x1519,
    LF_FUNC_ID = 0x1601,
    LF_MFUNC_ID = 0x1602,
    LF_STRING_ID = 0x1605,
    LF_CLASS2 = 0x1608,
    LF_STRUCTURE2 = 0x1609,
    LF_UNION2 = 0x160A,
    LF_INTERFACE2 = 0x160B,
};

enum { TYPE_NULLPTR = 0x103 }; /* std::nullptr_t is encoded as a 16-bit pointer to void */

/* A class, structure, interface, union or enumeration. */
struct named_type {
    struct sl_str name;
    uint64_t size;       /* bytes; 0 for enumerations and declarations */
    uint32_t underlying; /* underlying type of an enumeration */
    bool forward;        /* a declaration */
    bool has_unique;     /* the unique (mangled) name follows the name in the record */
};

bool is_named_type(uint16_t leaf); /* true for the kinds of records that read_named_type() reads */

/* Reads a record of a named type up to its name. If t->data.failed is set then, the record is damaged. */
struct named_type read_named_type(struct type_record *t);

/* Reads a "numeric leaf": a number of variable size. */
uint64_t read_numeric(struct sl_reader *r);

/* The definitions of named types, by which declarations get their sizes; read when the first one is needed. */
struct definitions {
    bool read;
    struct sl_map by_name; /* type index by unique name, else name */
    struct sl_arena names;
};
void definitions_free(struct definitions *definitions);

struct name_printer;

/* Returns the size of a type in bytes; 0 = unknown. For use while a name is printed: the records read for the size count towards the limits
 * of that name. */
uint64_t name_printer_value_size(struct name_printer *n, uint32_t index);

/* ---- names.c ---- */

/* Prints names; one per thread. */
struct name_printer {
    const struct sl_pdb *pdb;
    struct imports imports;
    struct definitions definitions;
    struct sl_arena scratch;   /* memory for the name being printed */
    struct sl_buf out;         /* the text of the name so far */
    unsigned depth;            /* nesting of the type being printed */
    unsigned steps;            /* records read for the name */
    struct sl_account account; /* charged for records and bytes of names */
};

void name_printer_free(struct name_printer *name_printer);

/* Returns the size of a variable of the type in bytes; 0 = unknown. Not for use while a name is printed. */
uint64_t name_printer_type_size(struct name_printer *name_printer, uint32_t type);

/* Reads a type record. False if there is none, or if the limits of records per name or the work budget are reached. */
bool name_printer_read_type(struct name_printer *n, uint32_t index, struct type_record *record);

/* True for a simple type, such as `int`, which has no record: the index itself describes it. */
static inline bool type_is_simple(const struct name_printer *n, uint32_t index)
{
    return index < 0x1000 && index < n->pdb->types.begin;
}

/* Call it before the names of a module are printed; `imports` is the module's subsection of cross-module imports. */
void name_printer_begin_module(struct name_printer *name_printer, struct sl_bytes imports);

/* Returns `name(arguments)` of a procedure. If `is_id`, `type` is a number in the id stream, whose record has the type. Returns the name
 * alone if there is no type or it cannot be printed. */
struct sl_str name_printer_print_procedure(struct name_printer *name_printer, struct sl_arena *arena,
                                           struct sl_str name, uint32_t type, bool is_id);

/* Sets `*name` to that of an inlined function, with scope and arguments; `id` is its number in the id stream. False if it cannot be
 * printed. */
bool name_printer_print_inlinee(struct name_printer *name_printer, struct sl_arena *arena, uint32_t id,
                                struct sl_str *name);

/* ---- functions.c ---- */

/* What a thread needs to read modules; its memory is reused from module to module. */
struct module_reader {
    const struct sl_pdb *pdb;
    struct pdb_line_table lines;
    struct name_printer name_printer;
    struct pdb_node *nodes; /* functions and inlined calls of the module */
    struct scope *scopes;   /* open scopes of the records being read */
    size_t node_count, node_capacity;
    struct sl_account account; /* charges the nodes */
};

void module_reader_init(struct module_reader *reader, const struct sl_pdb *pdb);
void module_reader_free(struct module_reader *reader);

/* Reads the functions of one module into `batch`, in the arena. False if the module cannot be read, and when out of memory, which is
 * recorded in the PDB (sl_pdb_status). */
bool module_read(struct module_reader *reader, const struct pdb_module *module, struct sl_arena *arena,
                 struct sl_function_batch *batch);

/* ---- read.c ---- */

/* Makes the index of types, if it is not made yet. False when out of memory. */
bool pdb_read_types(struct sl_pdb *pdb);

/* ---- srcsrv.c ---- */

/* Reads the text of a srcsrv stream up to the list of source files, and sets `*vcs` to the name of the version control system. NULL if it
 * is not such a stream. `*no_memory` must live as long as the result; it is set when memory runs out, now or later: origins may then be
 * missing. */
struct srcsrv *srcsrv_open(struct sl_str text, struct sl_arena *arena, _Atomic bool *no_memory, struct sl_str *vcs);

/* Finds the origin of a source file by its path at build time; texts are in the stream or in `arena`. False, with `*origin` unchanged, if
 * the stream has none. One thread at a time. */
bool srcsrv_origin(struct srcsrv *srcsrv, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin);

/* ---- origin.c ---- */

/* Sets `*stream` to the number of the stream with this name, by the map of names in the info stream; false if there is none. */
bool pdb_find_named_stream(struct sl_bytes info, const char *name, uint32_t *stream);
