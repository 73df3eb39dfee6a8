/* Structures shared by the files of this folder.
 *
 *     file ──index──▶ unit headers          (serial, headers only)
 *     unit ──walk──▶ subprograms, inlinees, their variables if somebody wants them  (one worker a unit)
 *          ──line program──▶ rows           (once a unit)
 *
 * A `struct dwarf_file` is one set of sections: the object itself, its supplementary (dwz) file, a package or a .dwo. */
#pragma once

#include "base/grow.h"
#include "base/idtable.h"
#include "base/map.h"
#include "dwarf/constants.h"
#include "dwarf/dwarf.h"
#include "dwarf/listing.h"
#include "function/assemble.h"
#include "function/position.h"

#include <stdatomic.h>

enum { MAX_DIE_DEPTH = 4096, MAX_REFERENCES = 16, MAX_ADDRESS_SIZE = 8 };

struct dwarf_unit_header {
    uint64_t offset, end;           /* in .debug_info */
    uint64_t die;                   /* offset of the root entry */
    uint64_t abbrev_offset, dwo_id; /* dwo_id: of version 5 */
    uint16_t version;
    uint8_t address_size, offset_size, type;
};

/* One set of .debug_aranges. */
struct aranges_set {
    uint64_t unit;       /* offset of its header in .debug_info */
    uint64_t begin, end; /* of the tuples, in .debug_aranges */
    uint8_t address_size;
};

struct dwarf_file {
    const struct sl_object *object;
    struct sl_bytes info, abbrev, str, line_str, str_offsets, line, ranges, rnglists, addr;
    struct sl_bytes cu_index;
    struct sl_bytes aranges;
    struct aranges_set *sets; /* by unit */
    size_t set_count;
    bool big_endian, relocatable, split; /* split: a package or .dwo file */
    bool code_at_zero;                   /* a linked file: 0 need not be the address of what the linker has dropped */
    uint64_t dead[MAX_ADDRESS_SIZE + 1]; /* by the size of addresses: from there on they are of what was dropped */
    uint64_t mode_bit; /* 1: of Thumb and microMIPS functions assemblers write it into the begin; else 0 */
    bool decorates;    /* linkage names have C decoration */
    struct dwarf_unit_header *units;
    size_t unit_count;
    const struct dwarf_file *sup;
};

/* ---- abbreviations ---- */

enum abbrev_op {
    STEP_SKIP,
    STEP_ULEB,
    STEP_BLOCK1,
    STEP_BLOCK2,
    STEP_BLOCK4,
    STEP_BLOCK,
    STEP_STRING,
    STEP_INDIRECT,
    STEP_READ
};

/* One step of reading an entry: skip, or read an attribute that somebody asks for. */
struct abbrev_step {
    uint8_t op;   /* enum abbrev_op */
    uint8_t read; /* enum read_op: how STEP_READ does it */
    uint8_t slot; /* enum entry_slot: where its value goes */
    uint16_t attribute, form;
    int64_t value; /* STEP_SKIP: bytes; STEP_READ of an implicit constant: the constant */
};

/* The attributes that the walk over a unit reads. */
enum entry_slot {
    SLOT_OTHER,
    SLOT_SIBLING,
    SLOT_DECLARATION,
    SLOT_LOW_PC,
    SLOT_HIGH_PC,
    SLOT_RANGES,
    SLOT_NAME,
    SLOT_LINKAGE,
    SLOT_ORIGIN,
    SLOT_CALL_FILE,
    SLOT_CALL_LINE,
    SLOT_CALL_COLUMN, /* only of workers with `positions` */
    SLOT_COUNT
};

/* Forms by what is to be read, for entries read by the million; little-endian files only. */
enum read_op { READ_FORM, READ_CONSTANT, READ_1, READ_2, READ_4, READ_8, READ_ULEB };

/* One step of passing over an entry: something of variable size, then bytes of fixed size. */
struct skip_step {
    uint8_t op; /* enum abbrev_op */
    uint16_t form;
    uint32_t then;
};

enum abbrev_kind {
    KIND_OTHER,
    KIND_SUBPROGRAM,
    KIND_INLINED,
    KIND_LEAF_TYPE,
    /* of workers with `variables` */
    KIND_VARIABLE,
    KIND_SCOPE, /* variables below do not belong to the function around */
};

/* What the walk over a unit does with an entry. */
enum abbrev_walk {
    WALK_PASS,   /* none of its attributes matters */
    WALK_NOCODE, /* the same, of a subprogram: inlined calls below do not belong to the one around */
    WALK_JUMP,   /* its children may be jumped over */
    WALK_CODE,   /* may have code */
    WALK_VARIABLE,
    WALK_SCOPE, /* none of its attributes matters, but where it ends does */
};

struct abbrev {
    uint32_t first_step, step_count; /* to read it */
    uint32_t first_skip, skip_count; /* to pass over it: `lead` bytes, then the steps */
    uint32_t lead;
    uint16_t tag;
    uint8_t kind, walk; /* enum abbrev_kind, abbrev_walk */
    bool children, known;
};

/* How to pass over an entry: the common cases, in eight bytes. By code, 0 (the end of children) among them. */
enum quick_op {
    QUICK_SKIP,   /* `lead` bytes */
    QUICK_NOCODE, /* the same, WALK_NOCODE with children */
    QUICK_BLOCK,  /* `lead` bytes, a block with an ULEB size, `then` bytes */
    QUICK_ULEB,   /* `lead` bytes, an ULEB, `then` bytes */
    QUICK_OTHER,  /* anything else, to be looked up */
};
struct quick {
    uint16_t lead, then;
    int16_t open; /* entries it opens: 1, 0, -1 */
    uint16_t op;
};

enum { COMMON_FORMS = 0x30 };

struct abbrev_table {
    struct dwarf_worker *w; /* who pays for it */
    const struct dwarf_file *file;
    uint64_t offset;
    uint8_t address_size, offset_size;
    uint16_t version;
    int8_t sizes[COMMON_FORMS]; /* of the forms; -1: not always the same */
    struct abbrev *items;       /* by code, if code < dense_count */
    struct quick *quick;        /* the same */
    size_t dense_count;
    struct sparse_abbrev {
        uint64_t code;
        struct abbrev abbrev;
    } * sparse; /* sorted by code */
    size_t sparse_count;
    struct abbrev_step *steps;
    struct skip_step *skips;
    bool has_functions; /* with code */
    size_t step_count, skip_count, item_capacity, sparse_capacity, step_capacity, skip_capacity;
    size_t quick_capacity;
    bool used;
};

void abbrev_table_free(struct abbrev_table *table);
const struct abbrev *abbrev_find(const struct abbrev_table *table, uint64_t code);

/* ---- units ---- */

struct dwarf_unit {
    const struct dwarf_file *file;
    const struct dwarf_unit_header *header;
    const struct abbrev_table *abbrevs;
    uint64_t low_pc, ranges, stmt_list, str_offsets_base, addr_base, rnglists_base, gnu_ranges_base;
    uint64_t dwo_id;  /* of the header or, in version 4, of the root entry */
    uint64_t high_pc; /* of the form: an address, or how much is behind low_pc */
    uint16_t ranges_form, high_pc_form;
    uint16_t tag;           /* of the root entry */
    uint16_t language_code; /* DW_AT_language; 0: none */
    bool has_low_pc, has_ranges, has_stmt_list, has_language, is_dart;
    bool is_assembler;
    bool counts_from_one; /* indices of arrays, where nothing else is said */
    enum sl_language language;
    struct sl_str name, comp_dir, dwo_name, producer;
    const struct dwarf_file *address_file; /* where .debug_addr, .debug_ranges and .debug_line are: the skeleton's */
};

enum { FOREIGN_UNITS = 16, ABBREV_TABLES = 24 };

struct row {
    uint64_t address;
    uint32_t file, line;
};
struct sequence {
    uint64_t start, end;
    uint32_t first, count;
};
struct range {
    uint64_t begin, end;
};

struct line_table {
    struct row *rows;
    struct sequence *sequences;
    struct sl_file *files;
    size_t row_count, row_capacity, sequence_count, sequence_capacity, file_count, file_capacity;
};

/* Rows of a line program in its order, as they are written. */
struct row_list {
    struct sl_dwarf_row *rows;
    size_t count, capacity;
    struct sl_str directory; /* the first one; of versions up to 4 the compilation directory */
    uint16_t version;
};

/* The name of a function; the text may be empty. */
struct entry_name {
    struct sl_str text;
    bool linkage; /* the linker's, as against the source's */
};

struct known_name { /* of what entries of the unit refer to */
    uint64_t key;
    struct entry_name name;
    int language; /* -1: not known */
};

/* Variables of the unit that is walked: variables.c. What the maps lead to is in the batch's arena. */
struct variable_reader {
    struct sl_variable *open;     /* of the open functions and calls, a stack */
    struct gathering *gatherings; /* these, a stack */
    struct sl_variables *lists;
    struct sl_str *texts;
    struct type_parameter *parameters; /* of the function types that are being described, a stack */
    size_t open_count, open_capacity, gathering_count, gathering_capacity, list_count, list_capacity, text_count,
        text_capacity;
    size_t parameter_count, parameter_capacity;
    struct sl_map list_map; /* by contents: number in `lists` */
    struct sl_map text_map; /* by address: number in `texts` */
    struct sl_map types;    /* by reference: struct type */
    struct sl_arena *arena; /* of the batch */
};

/* Scratch of one worker: reused from unit to unit. */
struct dwarf_worker {
    struct sl_account account; /* of all arrays */
    bool positions;            /* lines are positions */
    bool variables;            /* functions and calls have theirs */
    struct row_list
        *row_list; /* not NULL: rows go there instead of into `lines`, and entries say where they are declared */
    struct variable_reader variable_reader;
    struct abbrev_table tables[ABBREV_TABLES];
    struct abbrev_table root; /* of a unit that is looked at: what its root entry needs */
    unsigned table_next;
    const struct abbrev_table *pinned; /* of the unit being walked: not replaced */
    struct dwarf_unit foreign[FOREIGN_UNITS];
    bool foreign_used[FOREIGN_UNITS];
    struct line_table lines;
    struct sl_str *directories; /* of the line table being read */
    size_t directory_capacity;
    struct sl_assembler assembler;
    struct range *ranges;
    size_t range_capacity;
    struct sl_flat_inlinee *inlinees;
    size_t inlinee_count, inlinee_capacity;
    struct sl_ordered *order; /* scratch of sorting these */
    size_t order_capacity;
    struct sl_flat_inlinee *by_address; /* the calls of a function of several ranges, sorted */
    size_t by_address_capacity;
    struct sl_line *function_lines;
    size_t function_line_capacity;
    struct sl_function *functions;
    size_t function_count, function_capacity;
    struct range *pending; /* ranges of open subprograms, a stack */
    size_t pending_count, pending_capacity;
    struct range *covered; /* by the unit's subprograms, relative */
    size_t covered_count, covered_capacity;
    struct frame *frames;
    size_t frame_capacity;
    struct known_name *names;
    size_t name_capacity, name_count;
    struct sl_id_table name_table;
};

/* The named symbols of the object by address, those of one address in file order. */
struct symbol_index {
    const struct sl_symbol *symbols;
    const struct sl_ordered *order;
    size_t count;
    const uint32_t
        *around; /* by place in `order`: the place of the symbol that those of its address are within; NULL: none is */
};
enum { NO_PLACE = UINT32_MAX };

/* Keys of (begin, size). */
struct range_set {
    struct range_table *_Atomic table;
    struct sl_budget *budget; /* what its memory, and probing where keys were made to meet, are paid from */
};

struct dwarf_reader {
    struct sl_object *object;
    struct sl_budget *budget;
    uint64_t load_address;
    struct dwarf_file main, sup, dwp;
    const struct sl_companions *companions;
    struct symbol_index symbols;
    struct sl_str *zero_symbols; /* names of the code at 0, where the file has some */
    size_t zero_symbol_count;
    uint64_t zero_size;      /* of the largest of them */
    uint64_t next_code;      /* the lowest one above 0 at which a unit has code; UINT64_MAX: none says so */
    struct range_set ranges; /* of the functions emitted so far */
    bool has_dwp;
    bool has_symbols; /* of code; told apart only where code is at 0 */
    bool nameless;    /* lines that no symbol covers are kept */
};

/* What is read of a companion is charged to the object, whose budget grows by it. */
void dwarf_pay_with(struct dwarf_reader *reader, struct sl_object *companion);

/* Indexes the first unit headers of the file, at `most` so many, into the arena. False when out of memory. */
bool dwarf_index_units(struct dwarf_file *file, size_t most, struct sl_arena *arena, size_t *skipped);
/* A pass over .debug_info that was at `*passed` has come to the offset `to`. */
void dwarf_passed(const struct dwarf_file *file, uint64_t *passed, uint64_t to);
void dwarf_file_open(struct dwarf_file *file, struct sl_object *object, bool split);
const struct dwarf_unit_header *dwarf_unit_at(const struct dwarf_file *file, uint64_t offset);

/* Reads the root entry. False when it cannot be read. */
bool dwarf_unit_open(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit);
/* The same for those who ask where its code is alone: no texts are read, and `unit` is good until the next call. */
bool dwarf_unit_peek(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit);
void dwarf_unit_bases(struct dwarf_unit *unit);
bool dwarf_read_root(struct dwarf_worker *w, struct dwarf_unit *unit);
enum sl_language dwarf_language(uint64_t code);

/* ---- attributes ---- */

struct attribute {
    uint64_t value;     /* address, constant, offset, index */
    struct sl_str text; /* DW_FORM_string */
    uint16_t form;
};

/* Reads one attribute value; false past the end or for an unknown form. */
bool dwarf_read_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form, int64_t implicit,
                     struct attribute *out);
bool dwarf_skip_step(struct sl_reader *r, const struct dwarf_unit *unit, const struct abbrev_step *step);

/* The attributes of an entry that its table wants read, one after the other; the reader is behind the entry's code. */
struct attribute_walk {
    const struct dwarf_unit *unit;
    const struct abbrev_step *step, *end;
    bool failed; /* one could not be read */
};

static inline struct attribute_walk dwarf_attributes(const struct dwarf_unit *unit, const struct abbrev *abbrev)
{
    const struct abbrev_step *step = &unit->abbrevs->steps[abbrev->first_step];
    return (struct attribute_walk){unit, step, step + abbrev->step_count, false};
}

/* Which one `*a` is; NULL behind the last, and after a failure. */
static inline const struct abbrev_step *dwarf_next_attribute(struct attribute_walk *walk, struct sl_reader *r,
                                                             struct attribute *a)
{
    while (walk->step < walk->end && !walk->failed) {
        const struct abbrev_step *step = walk->step++;
        bool read = step->op == STEP_READ;
        walk->failed =
            read ? !dwarf_read_form(r, walk->unit, step->form, step->value, a) : !dwarf_skip_step(r, walk->unit, step);
        if (read && !walk->failed)
            return step;
    }
    return NULL;
}

/* The same for a step of passing over an entry, from `at`; NULL past `end`. */
const uint8_t *dwarf_skip_rare(const struct dwarf_unit *unit, const struct skip_step *step, const uint8_t *at,
                               const uint8_t *end);
bool dwarf_skip_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form);

/* Names and paths, SL_MAX_NAME bytes at most. Empty when there is none, it is too long, or the work budget is used up. */
struct sl_str dwarf_text(struct sl_account *account, const struct dwarf_unit *unit, const struct attribute *a);

/* Where the text begins, without a look at it; NULL when it is outside of its section, or there is none. */
const char *dwarf_text_address(const struct dwarf_unit *unit, const struct attribute *a);

/* Text of any length. */
struct sl_str dwarf_whole_text(const struct dwarf_unit *unit, const struct attribute *a);
bool dwarf_address(const struct dwarf_unit *unit, const struct attribute *a, uint64_t *address);
bool dwarf_indexed_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address);

struct reference {
    const struct dwarf_file *file; /* NULL: none */
    uint64_t offset;
};
struct reference dwarf_reference(const struct dwarf_unit *unit, const struct attribute *a);

/* ---- ranges, lines, names, functions ---- */

/* Finds the sets of .debug_aranges where there are units that need them. False when out of memory. */
bool dwarf_index_aranges(struct dwarf_file *file, struct sl_object *object, struct sl_arena *arena);

/* Those of a unit that needs them; NULL for none. */
const struct aranges_set *dwarf_aranges_of(const struct dwarf_unit *unit, size_t *count);

/* Those of the unit, by its root entry and .debug_aranges; they may overlap. */
size_t dwarf_unit_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit);

/* Appends the live ranges of an entry to worker->ranges; returns their number. */
size_t dwarf_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *ranges,
                    const struct attribute *low_pc, const struct attribute *high_pc);

/* The first address of that size that linkers give to code that they drop, at the end of the address space. */
static inline uint64_t dwarf_dead(const struct dwarf_file *file, unsigned address_size)
{
    return file->dead[address_size && address_size < MAX_ADDRESS_SIZE ? address_size : MAX_ADDRESS_SIZE];
}

/* Whether an entry or a row at 0 may be that of code. */
static inline bool dwarf_keeps_zero(const struct dwarf_file *file)
{
    return file->relocatable || file->code_at_zero;
}

/* Of the ranges in worker->ranges, of an assembler's subprogram, leaves out those that begin where worker->lines have no row: GNU as
 * has an entry for every function that a file refers to, also for those of other files. Returns how many are left. */
size_t dwarf_ranges_with_lines(struct dwarf_worker *w, size_t count);

/* Decodes the unit's line program into worker->lines. */
void dwarf_read_lines(struct dwarf_worker *w, const struct dwarf_unit *unit);

/* Whether the unit's line program has anything in it: decides by its header. */
bool dwarf_has_rows(const struct dwarf_unit *unit);

/* What the entries of a line table's lists of directories and files consist of (DWARF 5, 6.2.4.1); their number, 0 when
 * they cannot be read. */
enum { MAX_FORMATS = 255 };
struct entry_format {
    uint64_t content;
    uint16_t form;
};
size_t dwarf_read_formats(struct sl_reader *r, struct entry_format formats[MAX_FORMATS]);

/* Text of a linkage name, without the decoration that it has for 32-bit Windows. */
struct sl_str dwarf_linkage_name(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a);

/* The unit that the entry referred to is in: `from` itself, or another one, good until the next call. NULL for none. */
const struct dwarf_unit *dwarf_unit_of(struct dwarf_worker *w, const struct dwarf_unit *from,
                                       struct reference reference);

/* Name (and, when another unit owns it, language) of the entry referred to. */
struct entry_name dwarf_name_of(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference reference,
                                enum sl_language *language);

/* Walks the unit and fills worker->functions; everything they point to is in `arena` or in the file. False when the
 * unit's entries could not be read to their end. */
bool dwarf_read_functions(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                          struct sl_arena *arena);

/* The subprograms of a unit that say that they are at 0. */
struct zero_claims {
    size_t count; /* also those that are not there */
    uint64_t end; /* of the largest that is; 0: none */
};

/* Finds them. False when the unit's entries could not be read to their end. */
bool dwarf_find_zero(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                     struct sl_arena *arena, struct zero_claims *claims);

/* Appends the function, with the unit's lines and the inlined calls, to worker->functions. */
bool dwarf_add_function(struct dwarf_reader *reader, struct dwarf_worker *w, struct sl_arena *arena,
                        struct sl_function *function, const struct sl_flat_inlinee *inlinees, size_t inlinee_count);

/* After dwarf_read_functions: appends the code that has lines but no subprogram, under the names of symbols. `unit`: the one
 * with the line table. False when the work budget is used up. */
bool dwarf_add_uncovered(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                         enum sl_language language, struct sl_arena *arena);

/* ---- variables.c, types.c: for workers with `variables` ---- */

/* What is said of a variable or a type. */
struct description {
    struct sl_str name; /* empty: none */
    struct reference type, origin;
    bool has_type; /* `type` may be of no file all the same: it cannot be resolved */
    bool declaration;
};

void variables_begin(struct dwarf_worker *w, struct sl_arena *arena); /* a unit */
void variables_end(struct dwarf_worker *w);                           /* of it: what was gathered stays */
void variables_free(struct variable_reader *v);

/* A function or inlined call is opened, which are the worker's inlinees from this one on. False when the work budget is used up. */
bool variables_open(struct dwarf_worker *w, size_t first_inlinee);

/* A variable of what was opened last: its entry, behind the code. False when that cannot be read, or the work budget is used up. */
bool variables_add(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev,
                   struct sl_reader *r);

/* Ends what was opened last, whose inlinees get the list: its number, counted from 1; 0: it is empty. */
uint32_t variables_close(struct dwarf_worker *w);

/* Copies lists and texts into the batch. False when out of memory. */
bool variables_give(const struct dwarf_worker *w, struct sl_function_batch *batch, struct sl_arena *arena);

/* dwarf_text, of which each is measured once in a unit. */
struct sl_str variables_text(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a);

/* Reads the attributes of an entry, behind the code. */
bool types_read(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev, struct sl_reader *r,
                struct description *out);

/* Where the description is silent, those that it refers to count. */
void types_complete(struct dwarf_worker *w, const struct dwarf_unit *from, struct description *description);

/* How C would write the type: `char*`, `int[4]`, `void(*)(int)`; names are those of the entries, without the namespaces around
 * them. `<unknown>` where it cannot be resolved, `<not implemented>` for other kinds of types without a name. `has`: false for no
 * type at all, which is `void`. */
struct sl_str types_name(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference type, bool has);

/* ---- symbols ---- */

/* Without symbols, functions keep the names of their entries. */
enum sl_code dwarf_index_symbols(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error);

/* The first symbol of that address; NULL for none. */
const struct sl_symbol *dwarf_symbol_at(const struct symbol_index *index, uint64_t address);

/* Whether the symbol is what compilers make of a name: it is mangled and has the name in it. */
bool dwarf_mangles(struct sl_str symbol, struct sl_str name);

/* What a function is called whose code is entered at the address: `name`, or the symbol there, where the entry has no name, a
 * hidden one, or not the one that its language's compilers mangle. */
struct sl_str dwarf_symbol_name(const struct symbol_index *index, uint64_t entry, struct entry_name name,
                                enum sl_language language);

/* The symbol that covers the address, and where it, or what no symbol covers, ends. Without a size it goes on to the next. */
struct symbol_span {
    const struct sl_symbol *symbol; /* NULL: none */
    uint64_t end;
};
struct symbol_span dwarf_symbol_over(struct dwarf_worker *w, const struct symbol_index *index, uint64_t address);

/* The split unit of a skeleton, in a package or a .dwo file; false when it is not to be had. `file` is storage. */
bool dwarf_open_split(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *skeleton,
                      struct dwarf_file *file, struct sl_arena *arena, struct dwarf_unit *split);

uint64_t dwarf_range_key(uint64_t address, uint64_t size);
bool dwarf_range_known(const struct range_set *set, uint64_t key);
/* Whether the key is new. By one thread at a time, in file order; dwarf_range_known may be asked meanwhile. */
enum range_novelty { RANGE_KNOWN, RANGE_NEW, RANGE_NO_MEMORY };
enum range_novelty dwarf_range_add(struct range_set *set, uint64_t key);
void dwarf_range_free(struct range_set *set);

void dwarf_worker_free(struct dwarf_worker *w);

/* Reads into worker->root the abbreviations up to that of the unit's root entry. NULL when it has none. */
const struct abbrev_table *dwarf_root_abbrev(struct dwarf_worker *w, const struct dwarf_file *file,
                                             const struct dwarf_unit_header *header);

/* Forgets tables and units that point to `file`. */
void dwarf_forget_file(struct dwarf_worker *w, const struct dwarf_file *file);
const struct abbrev_table *dwarf_abbrevs(struct dwarf_worker *w, const struct dwarf_file *file,
                                         const struct dwarf_unit_header *header);

/* Little-endian integers, for what is read too often to go through a reader. */
static inline uint64_t dwarf_load_2(const uint8_t *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8;
}
static inline uint64_t dwarf_load_4(const uint8_t *at)
{
    return dwarf_load_2(at) | dwarf_load_2(at + 2) << 16;
}
static inline uint64_t dwarf_load_8(const uint8_t *at)
{
    return dwarf_load_4(at) | dwarf_load_4(at + 4) << 32;
}

/* Item `index` of a table of integers of `size` bytes at `base` in a section; false when it is outside. */
bool dwarf_table_at(struct sl_bytes section, bool big_endian, uint64_t base, uint64_t index, unsigned size,
                    uint64_t *value);

/* An ULEB128 of one or two bytes without a call. */
static inline uint64_t dwarf_uleb(struct sl_reader *r)
{
    const uint8_t *at = r->at;
    if (r->end - at < 2 || ((at[0] & 0x80) && (at[1] & 0x80)))
        return sl_read_uleb(r);
    unsigned two = at[0] >> 7;
    r->at += 1 + two;
    return (at[0] & 0x7Fu) | ((unsigned)at[1] << 7 & -two);
}

/* An SLEB128 of one byte without a call. */
static inline int64_t dwarf_sleb(struct sl_reader *r)
{
    if (r->at == r->end || (*r->at & 0x80))
        return sl_read_sleb(r);
    return (int64_t)((*r->at++ ^ 0x40u) & 0x7Fu) - 0x40;
}

/* ---- zero.c ---- */

/* Gathers the symbols at 0 of a file that has code there. */
enum sl_code dwarf_index_zero(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error);

/* Whether the subprogram of that name, which says that it is at 0, is the one there, and not one that the linker has dropped. */
bool dwarf_is_at_zero(const struct dwarf_reader *reader, struct dwarf_worker *w, struct entry_name name);

/* Of the sequences at 0 in worker->lines keeps that of the code there, if it is of this unit. `walked`: the unit with the entries.
 * False when the entries cannot be read. */
bool dwarf_keep_zero_lines(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                           const struct dwarf_unit *walked, struct sl_arena *arena);

/* ---- read.c ---- */

/* Whether one of the addresses that the sink wants, plus the bias, is in [begin, end). */
bool dwarf_is_wanted(const struct sl_function_sink *sink, uint64_t bias, uint64_t begin, uint64_t end);

/* ---- debug_map.c ---- */

/* As sl_dwarf_read, of the object files that the object's debug map names. SL_NOT_FOUND when it has none. */
enum sl_code dwarf_read_debug_map(struct sl_object *object, const struct sl_companions *companions,
                                  const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                  struct sl_error *error);
