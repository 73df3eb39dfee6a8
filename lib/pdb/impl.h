/* What the files of this folder share. Private to it. */
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
    const uint32_t *sizes;   /* per stream, bytes; NO_STREAM_SIZE = absent */
    const uint32_t *pages;   /* page numbers of all streams, one list after the other */
    uint32_t *first;         /* per stream: index of its first page in `pages` */
    _Atomic bool *no_memory; /* it ran out somewhere: what was read has less in it than the file */
};

/* One stream; valid as long as its `struct msf`. */
struct msf_stream {
    const struct msf *msf;
    const uint32_t *pages;
    uint32_t size;
    const uint8_t *flat; /* not NULL: the pages lie together */
};

enum { NO_STREAM = 0xFFFF, STREAM_INFO = 1, STREAM_TPI = 2, STREAM_DBI = 3, STREAM_IPI = 4 };

enum sl_code msf_open(struct sl_bytes file, struct sl_arena *arena, struct msf *msf, struct sl_error *error);

/* False (and an empty stream) when it is absent or one of its pages is outside of the file. Stream 0, whose size nothing
 * bounds, is absent to all. */
bool msf_stream(const struct msf *msf, uint32_t index, struct msf_stream *stream);

/* The bytes [offset, offset + size) of the stream: in place when their pages lie together, else copied into `arena`.
 * False when outside or out of memory. */
bool msf_view(const struct msf_stream *stream, uint64_t offset, uint64_t size, struct sl_arena *arena,
              struct sl_bytes *bytes);

static inline bool msf_all(const struct msf_stream *stream, struct sl_arena *arena, struct sl_bytes *bytes)
{
    return msf_view(stream, 0, stream->size, arena, bytes);
}

/* ---- types.c: the type (TPI) and id (IPI) streams ---- */

/* Offsets of every ANCHOR_STEP-th record: a lookup walks the few records in between. */
struct type_table {
    struct msf_stream stream;
    uint32_t begin, end; /* type indexes: begin <= index < end */
    uint32_t records;    /* offset of the first record */
    uint32_t *anchors;
};

struct type_record {
    uint16_t leaf;
    struct sl_reader data; /* after the leaf */
};

/* Walks the whole stream once. An absent or malformed stream gives an empty table. */
bool type_table_open(const struct msf *msf, uint32_t stream, struct sl_arena *arena, struct type_table *table);

/* The same of records that lie together; their first index is `begin`. False when out of memory. */
bool type_table_of(const struct msf *msf, struct sl_bytes records, uint32_t begin, struct sl_arena *arena,
                   struct type_table *table);

/* False when there is no such record. What lies across pages is copied into `arena`. */
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

/* Bytes of one module's stream. */
struct module_bytes {
    struct sl_bytes symbols; /* after the signature */
    struct sl_bytes c13;
};

struct srcsrv; /* srcsrv.c */

/* OMAP: how a program was rearranged after it had been linked. Both tables are pairs of u32, sorted by the first; a pair
 * holds up to the next one. */
struct omap {
    struct sl_bytes from;     /* from the address that symbols speak of to the image's; 0 = taken out */
    struct sl_bytes to;       /* the other way round; beyond the sections, or 0 = put in, of no source */
    uint64_t size;            /* of the program that symbols speak of */
    struct omap_added *added; /* what was put in and belongs to source, by that */
    size_t added_count;
};

struct omap_added {
    uint64_t original; /* what symbols speak of */
    uint64_t reach;    /* where the last ends of those up to here */
    uint32_t size, address;
};

struct sl_pdb {
    struct msf msf;
    struct sl_arena *arena;
    struct sl_budget *budget;
    struct pdb_section *sections; /* those that section:offset pairs refer to */
    size_t section_count;
    struct omap omap;
    bool has_omap, no_addresses /* translation is needed, but missing */;
    struct sl_bytes names; /* text of the /names stream */
    uint16_t symbol_stream, fpo_stream, frame_stream;
    struct pdb_module *modules;
    size_t module_count;
    struct module_bytes object; /* of an object file: those of its only module, which has no stream */
    struct type_table types, ids;
    bool types_tried;
    struct sl_bytes info;  /* the info stream, for the named streams */
    struct srcsrv *srcsrv; /* NULL = none */
    bool links_tried;
    struct sl_ppdb_links links; /* Source Link */
};

enum { NOT_MAPPED = 0xFFFFFFFF };

/* Relative address of a section:offset pair (sections count from 1), through OMAP; NOT_MAPPED when there is none. */
uint32_t pdb_address(const struct sl_pdb *pdb, uint16_t section, uint32_t offset);

/* omap.c: the same of an address that the symbols speak of. */
uint32_t pdb_translate(const struct sl_pdb *pdb, uint32_t address);

/* Code that lies together in the image. */
struct code_piece {
    uint32_t address, size; /* relative; bytes */
};

/* Where code lies in the image, piece by piece: first where OMAP has moved it, then what was put in for it. */
struct code_pieces {
    uint32_t address, size; /* what is left, as symbols speak of it */
    uint64_t begin, end;    /* all of it */
    size_t added;           /* of the entries of that list those before this one are left */
};
struct code_pieces pdb_pieces(const struct sl_pdb *pdb, uint16_t section, uint32_t offset, uint32_t size);
/* False when there is none any more, or the work budget is used up. */
bool pdb_next_piece(const struct sl_pdb *pdb, struct code_pieces *pieces, struct sl_account *account,
                    struct code_piece *piece);

/* ---- omap.c ---- */

/* Lists what was put in for source. False when the budget or memory does not last. */
bool omap_find_added(struct sl_pdb *pdb);
struct code_pieces omap_pieces(const struct sl_pdb *pdb, uint32_t address, uint32_t size);
/* Whether [begin, end) of the image was put in and belongs to no source. */
bool omap_only_put_in(const struct sl_pdb *pdb, uint32_t begin, uint32_t end, struct sl_account *account);

/* A text of the /names stream: empty when there is none, or none of a sensible length. */
struct sl_str pdb_name(const struct sl_pdb *pdb, uint32_t offset, struct sl_account *account);

/* False when the module's stream is damaged; a module without a stream gives empty bytes. */
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

/* The next subsection: false at the end. Ignored ones are passed over. */
bool c13_next(struct sl_reader *r, uint32_t *kind, struct sl_bytes *data);

struct line_section {
    uint32_t offset, size;
    uint16_t section;
    bool columns, converted;
    struct sl_bytes blocks;
    struct sl_line *lines; /* once converted */
    uint32_t line_count;
    uint32_t order; /* in the file */
    uint32_t told;  /* of the first of those that begin together: how many functions had one */
};

struct source_file { /* a record of the checksum subsection; its index is the batch's file index */
    uint32_t offset;
};

struct inlinee {
    uint32_t id, file, line;
    uint32_t order;
    bool named, nameless; /* `name` was made; it could not be */
    struct sl_str name;
};

/* A line before its address is known. */
struct raw_line {
    uint32_t offset; /* in the section */
    uint32_t size;   /* 0 = not known */
    uint32_t file;   /* offset in the checksum subsection */
    uint32_t line;
    uint32_t order;
};

struct line_table {
    const struct sl_pdb *pdb;
    struct sl_arena *arena;
    struct line_section *sections; /* sorted by section and offset */
    struct source_file *offsets;   /* sorted */
    struct sl_file *files;
    struct inlinee *inlinees; /* sorted by id */
    struct sl_bytes imports;  /* the cross-module imports subsection */
    size_t section_count, file_count, inlinee_count;
    struct raw_line *raw; /* scratch, malloc'ed, kept from module to module */
    size_t raw_count, raw_capacity;
    struct sl_account account;
};

bool line_table_open(struct line_table *table, const struct sl_pdb *pdb, struct sl_bytes c13, struct sl_arena *arena);

/* Sets the lines of `count` functions, which are the pieces of one that begins at section:offset; into the arena. To be asked
 * once for each function, in the order of the file: folded ones begin together, as their lines do. */
bool line_table_function(struct line_table *table, uint16_t section, uint32_t offset, struct sl_function *pieces,
                         size_t count);

/* Gives a function those of the sorted lines that are in [begin, end), cut to it. False when out of memory. */
bool line_table_clip(struct line_table *table, const struct sl_line *lines, size_t count, uint64_t begin, uint64_t end,
                     struct sl_function *function);

struct inlinee *line_table_inlinee(struct line_table *table, uint32_t id);

bool raw_add(struct line_table *table, struct raw_line line);

/* The collected raw lines as addresses: sorted, mapped, merged, without overlaps. False when out of memory. */
bool raw_convert(struct line_table *table, uint16_t section, struct sl_line **lines, uint32_t *count);

/* ---- inline.c ---- */

/* Collects the lines of an inlined call as raw lines (table->raw). `start` is the offset of the procedure in its
 * section. False when the annotations are malformed. */
bool inline_lines(struct line_table *table, const struct inlinee *inlinee, uint32_t start, struct sl_bytes annotations);

/* ---- imports.c: types of other modules, which link-time code generation leaves behind ---- */

struct module_exports { /* pairs of (local, global) indexes, sorted */
    bool tried;
    const uint32_t *pairs;
    size_t count;
};

enum { MAX_IMPORTED_MODULES = 2048 }; /* an index has eleven bits for them */

struct imports {
    const struct sl_pdb *pdb;
    struct sl_bytes subsection; /* of the module being read: per imported module its name, count, indexes */
    struct imported {           /* a module in it */
        uint32_t offset;
        bool looked_up;                 /* so that its name, which may be long, is read once */
        struct module_exports *exports; /* NULL = there is no such module */
    } imported[MAX_IMPORTED_MODULES];
    size_t count;
    struct sl_arena arena;          /* of what follows, kept from module to module */
    struct module_exports *exports; /* per module of the file */
    struct sl_map modules;          /* lower-cased name -> struct pdb_module */
};

void imports_free(struct imports *imports);
void imports_begin_module(struct imports *imports, struct sl_bytes subsection);

/* The global index behind a cross-module one (bit 31 set). */
bool imports_resolve(struct imports *imports, uint32_t index, struct sl_account *account, uint32_t *global);

/* ---- sizes.c: types with names, and sizes of types ---- */

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

enum { TYPE_NULLPTR = 0x103 }; /* a pointer of 16 bits to nothing, which is of no use otherwise */

/* A class, structure, interface, union or enumeration. */
struct named_type {
    struct sl_str name;
    uint64_t size;       /* bytes; 0 of enumerations, and of what is only declared */
    uint32_t underlying; /* type of an enumeration */
    bool forward;        /* only declared */
    bool has_unique;     /* a name of its own follows */
};

bool is_named_type(uint16_t leaf);

/* Reads it up to the name; check `t->data.failed`. */
struct named_type read_named_type(struct type_record *t);

uint64_t read_numeric(struct sl_reader *r);

/* The types that are defined, by name: read when first asked for. */
struct definitions {
    bool read;
    struct sl_map by_name; /* to the index */
    struct sl_arena names;
};
void definitions_free(struct definitions *definitions);

struct namer;

/* Bytes of a value of the type; 0 when not known. */
uint64_t namer_size_of(struct namer *n, uint32_t index);

/* ---- names.c ---- */

/* Prints names; one per thread. */
struct namer {
    const struct sl_pdb *pdb;
    struct imports imports;
    struct definitions definitions;
    struct sl_arena scratch;   /* of one name */
    struct sl_buf out;         /* the name being made */
    unsigned depth;            /* of the type being printed */
    unsigned steps;            /* records read for this name */
    struct sl_account account; /* for records, and bytes of names */
};

void namer_free(struct namer *namer);

/* Bytes of a variable of the type; 0 when not known. */
uint64_t namer_type_size(struct namer *namer, uint32_t type);

/* False when there is no such type, or the name or the file has had its share of records. */
bool namer_type(struct namer *n, uint32_t index, struct type_record *record);

static inline bool type_is_simple(const struct namer *n, uint32_t index)
{
    return index < 0x1000 && index < n->pdb->types.begin;
}

/* Names of a module follow; `imports` is its subsection of cross-module imports. */
void namer_begin_module(struct namer *namer, struct sl_bytes imports);

/* `name(arguments)` of a procedure; with `is_id` the type is an index of the id stream. The bare name when the type says
 * nothing or cannot be printed. */
struct sl_str namer_procedure(struct namer *namer, struct sl_arena *arena, struct sl_str name, uint32_t type,
                              bool is_id);

/* The name of an id (inlined function). False when it cannot be printed. */
bool namer_inlinee(struct namer *namer, struct sl_arena *arena, uint32_t id, struct sl_str *name);

/* ---- functions.c ---- */

/* Scratch of one thread, kept from module to module. */
struct module_reader {
    const struct sl_pdb *pdb;
    struct line_table lines;
    struct namer namer;
    struct node *nodes;
    struct scope *scopes;
    size_t node_count, node_capacity;
    struct sl_account account; /* of the nodes */
};

void module_reader_init(struct module_reader *reader, const struct sl_pdb *pdb);
void module_reader_free(struct module_reader *reader);

/* The functions of one module into `batch` (in the arena). False when the module cannot be read. */
bool module_read(struct module_reader *reader, const struct pdb_module *module, struct sl_arena *arena,
                 struct sl_function_batch *batch);

/* ---- read.c ---- */

/* Makes the index of types, once. False when out of memory. */
bool pdb_read_types(struct sl_pdb *pdb);

/* ---- srcsrv.c ---- */

/* Reads the text of a srcsrv stream, up to the source files. NULL when it is none. `*no_memory`, which lives as long, is set,
 * also later, when memory ran out: what is told has less in it then. */
struct srcsrv *srcsrv_open(struct sl_str text, struct sl_arena *arena, _Atomic bool *no_memory, struct sl_str *vcs);

/* What the stream says of a build path; texts are in the stream or in `arena`. False (and `*origin` as it was) when it says
 * nothing. One thread at a time. */
bool srcsrv_origin(struct srcsrv *srcsrv, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin);

/* ---- origin.c ---- */

/* The named stream with just this name. */
bool pdb_named(struct sl_bytes info, const char *name, uint32_t *stream);
