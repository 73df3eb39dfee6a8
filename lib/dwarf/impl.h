/* Structures shared by the files of this folder.
 *
 *     file ──index──▶ unit headers          (serial, headers only)
 *     unit ──walk──▶ subprograms, inlinees, their variables if the sink takes them  (one worker per unit)
 *          ──line program──▶ rows           (once per unit)
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

enum {
    MAX_DIE_DEPTH = 4096, /* of nested entries: only hostile files nest deeper */
    MAX_REFERENCES = 16,  /* in a chain from entry to entry: hostile files may have loops */
    MAX_ADDRESS_SIZE = 8,
};

struct dwarf_unit_header {
    uint64_t offset, end;           /* in .debug_info */
    uint64_t die;                   /* offset of the root entry */
    uint64_t abbrev_offset, dwo_id; /* dwo_id: version 5 only */
    uint16_t version;
    uint8_t address_size, offset_size, type;
};

/* One set of .debug_aranges: the tuples (address, length) of one unit. */
struct aranges_set {
    uint64_t unit;       /* offset of the unit's header in .debug_info */
    uint64_t begin, end; /* of the tuples in .debug_aranges */
    uint8_t address_size;
};

struct dwarf_file {
    const struct sl_object *object;
    struct sl_bytes info, abbrev, str, line_str, str_offsets, line, ranges, rnglists, addr;
    struct sl_bytes cu_index;
    struct sl_bytes aranges;
    struct aranges_set *sets; /* those of .debug_aranges, sorted by unit */
    size_t set_count;
    bool big_endian, relocatable, split; /* split: a package or .dwo file */
    bool code_at_zero;                   /* linked file with code at 0: address 0 is not always a tombstone */
    uint64_t dead[MAX_ADDRESS_SIZE + 1]; /* by address size: addresses from here on are tombstones of dropped code */
    uint64_t mode_bit; /* 1 for ARM and MIPS: assemblers set it in low_pc of Thumb and microMIPS functions; else 0 */
    bool decorates;    /* linkage names may have C decoration of 32-bit Windows, without the underscore: f@8, @f@8 */
    struct dwarf_unit_header *units;
    size_t unit_count;
    const struct dwarf_file *sup; /* supplementary file; NULL = none, or not available */
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

/* One step of reading an entry: skips bytes, or reads a wanted attribute. */
struct abbrev_step {
    uint8_t op;   /* enum abbrev_op */
    uint8_t read; /* enum read_op, for STEP_READ */
    uint8_t slot; /* enum entry_slot that gets the value */
    uint16_t attribute, form;
    int64_t value; /* STEP_SKIP: bytes; STEP_READ: value of DW_FORM_implicit_const */
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
    SLOT_CALL_COLUMN, /* only for workers with `positions` or `row_list` */
    SLOT_COUNT
};

/* Fast readers of forms, for little-endian files; READ_FORM is the general one. */
enum read_op { READ_FORM, READ_CONSTANT, READ_1, READ_2, READ_4, READ_8, READ_ULEB };

/* One step of skipping an entry: an attribute of variable size, then attributes of fixed size. */
struct skip_step {
    uint8_t op; /* enum abbrev_op */
    uint16_t form;
    uint32_t then; /* bytes of fixed size */
};

enum abbrev_kind {
    KIND_OTHER,
    KIND_SUBPROGRAM,
    KIND_INLINED,
    KIND_LEAF_TYPE, /* a type or parameter whose children have no code */
    /* only for workers with `variables` */
    KIND_VARIABLE,
    KIND_SCOPE, /* a class, namespace and the like: variables below it do not belong to the enclosing function */
};

/* How the walk over a unit handles an entry. */
enum abbrev_walk {
    WALK_PASS, /* skip its attributes */
    WALK_NOCODE, /* a subprogram without code: skip its attributes; inlined calls below do not belong to the enclosing function */
    WALK_JUMP,     /* skip its children by DW_AT_sibling */
    WALK_CODE,     /* may have code: read it */
    WALK_VARIABLE, /* read it if the enclosing function lists variables */
    WALK_SCOPE,    /* skip its attributes, but open a frame for its children */
};

struct abbrev {
    uint32_t first_step, step_count; /* for reading it */
    uint32_t first_skip, skip_count; /* for skipping it: `lead` bytes, then the steps */
    uint32_t lead;
    uint16_t tag;
    uint8_t kind, walk;   /* enum abbrev_kind, abbrev_walk */
    bool children, known; /* known: all forms are known, so that entries can be read */
};

/* How to skip an entry: the common cases in eight bytes, indexed by abbreviation code. Code 0 is the end of children. */
enum quick_op {
    QUICK_SKIP,   /* `lead` bytes */
    QUICK_NOCODE, /* `lead` bytes; a subprogram without code that has children */
    QUICK_BLOCK,  /* `lead` bytes, a block with an ULEB size, `then` bytes */
    QUICK_ULEB,   /* `lead` bytes, an ULEB, `then` bytes */
    QUICK_OTHER,  /* none of these: see struct abbrev */
};
struct quick_abbrev {
    uint16_t lead, then;
    int16_t open; /* change of the depth: 1 = has children, 0 = none, -1 = end of a list of children */
    uint16_t op;
};

enum { COMMON_FORMS = 0x30 }; /* all standard forms are below; GNU forms are far above */

struct abbrev_table {
    struct dwarf_worker *w; /* its account is charged */
    const struct dwarf_file *file;
    uint64_t offset;
    uint8_t address_size, offset_size;
    uint16_t version;
    int8_t sizes[COMMON_FORMS]; /* bytes of each form; -1 = variable */
    struct abbrev *items;       /* by code, if code < dense_count */
    struct quick_abbrev *quick; /* how to skip entries; by code, for the codes of `items` */
    size_t dense_count;
    struct sparse_abbrev {
        uint64_t code;
        struct abbrev abbrev;
    } * sparse; /* sorted by code */
    size_t sparse_count;
    struct abbrev_step *steps;
    struct skip_step *skips;
    bool has_functions; /* has a subprogram with code */
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
    uint64_t dwo_id;  /* from the header or, in version 4, the root entry */
    uint64_t high_pc; /* by its form an address, or an offset from low_pc */
    uint16_t ranges_form, high_pc_form;
    uint16_t tag;           /* of the root entry */
    uint16_t language_code; /* DW_AT_language; 0 = absent */
    bool has_low_pc, has_ranges, has_stmt_list, has_language, is_dart;
    bool is_assembler;
    bool counts_from_one; /* in its language the first index of an array is 1 by default, not 0 */
    enum sl_language language;
    struct sl_str name, comp_dir, dwo_name, producer;
    /* the file with .debug_addr, .debug_ranges and .debug_line: `file`, or of a split unit that of its skeleton */
    const struct dwarf_file *address_file;
};

enum {
    FOREIGN_UNITS = 16, /* size of a worker's cache of units that entries of other units refer to */
    ABBREV_TABLES = 24, /* size of a worker's cache of abbreviation tables */
};

struct dwarf_row {
    uint64_t address;
    uint32_t file, line;
};
struct sequence {
    uint64_t start, end;
    uint32_t first, count;
};
struct dwarf_range {
    uint64_t begin, end;
};

struct dwarf_line_table {
    struct dwarf_row *rows;
    struct sequence *sequences;
    struct sl_file *files;
    size_t row_count, row_capacity, sequence_count, sequence_capacity, file_count, file_capacity;
};

/* Rows of a line program as they are written, in its order. */
struct row_list {
    struct sl_dwarf_row *rows;
    size_t count, capacity;
    struct sl_str directory; /* first directory of the line table; up to version 4 the compilation directory */
    uint16_t version;
};

/* The name of a function; the text may be empty. */
struct entry_name {
    struct sl_str text;
    bool linkage; /* a linkage name, not DW_AT_name */
};

struct dwarf_known_name { /* cached name of an entry that others refer to */
    uint64_t key;
    struct entry_name name;
    int language; /* -1 = unknown */
};

/* Variables of the unit that is walked: variables.c. Keys and values of the maps are in the batch's arena. */
struct variable_reader {
    struct sl_variable *open;               /* variables of the open functions and calls, a stack */
    struct dwarf_variable_list *gatherings; /* the open functions and calls, a stack */
    struct sl_variables *lists; /* finished: one for each function or call with variables; equal ones are stored once */
    struct sl_str *texts;       /* names of variables and types */
    struct type_parameter *parameters; /* of the function types whose names are being built, a stack */
    size_t open_count, open_capacity, gathering_count, gathering_capacity, list_count, list_capacity, text_count,
        text_capacity;
    size_t parameter_count, parameter_capacity;
    struct sl_map list_map; /* by contents: number in `lists` */
    struct sl_map text_map; /* by address: number in `texts` */
    struct sl_map types;    /* by reference: struct dwarf_type */
    struct sl_arena *arena; /* the batch's */
};

/* Arrays and caches of one worker thread, reused from unit to unit so that few allocations are needed. */
struct dwarf_worker {
    struct sl_account account; /* charges all arrays */
    bool positions;            /* lines and columns are packed into positions (function/position.h) */
    bool variables;            /* read variables */
    struct row_list *row_list; /* not NULL: rows go there, not into `lines`, and declarations are read (listing.c) */
    struct variable_reader variable_reader;
    struct abbrev_table tables[ABBREV_TABLES];
    struct abbrev_table root; /* for dwarf_unit_peek: has only what a root entry needs */
    unsigned table_next;
    /* the table of the unit being walked, which must not be replaced; NULL between units */
    const struct abbrev_table *pinned;
    struct dwarf_unit foreign[FOREIGN_UNITS];
    bool foreign_used[FOREIGN_UNITS];
    struct dwarf_line_table lines;
    struct sl_str *directories; /* of the line table being read */
    size_t directory_capacity;
    struct sl_assembler assembler;
    struct dwarf_range *ranges;
    size_t range_capacity;
    struct sl_flat_inlinee *inlinees;
    size_t inlinee_count, inlinee_capacity;
    struct sl_ordered *order; /* scratch for sorting `inlinees` */
    size_t order_capacity;
    struct sl_flat_inlinee *by_address; /* sorted inlined calls of a function with several ranges */
    size_t by_address_capacity;
    struct sl_line *function_lines;
    size_t function_line_capacity;
    struct sl_function *functions;
    size_t function_count, function_capacity;
    struct dwarf_range *pending; /* ranges of open subprograms, a stack */
    size_t pending_count, pending_capacity;
    struct dwarf_range *covered; /* code of the unit's subprograms, relative to the load address */
    size_t covered_count, covered_capacity;
    struct dwarf_frame *frames;
    size_t frame_capacity;
    struct dwarf_known_name *names;
    size_t name_capacity, name_count;
    struct sl_id_table name_table;
};

/* The named symbols of the object sorted by address; those at one address in file order. */
struct symbol_index {
    const struct sl_symbol *symbols;
    const struct sl_ordered *order;
    size_t count;
    /* around[i]: index in `order` of the symbol that encloses order[i], or NO_POSITION; NULL if no symbols are nested. */
    const uint32_t *around;
};
enum { NO_POSITION = UINT32_MAX };

/* A set of function ranges, each stored as its dwarf_range_key() (repeated.c). */
struct range_set {
    struct range_table *_Atomic table;
    struct sl_budget *budget; /* charged for memory, and for long probes (crafted collisions) */
};

struct dwarf_reader {
    struct sl_object *object;
    struct sl_budget *budget;
    uint64_t load_address;
    struct dwarf_file main, sup, dwp;
    const struct sl_companions *companions;
    struct symbol_index symbols;
    struct sl_str *zero_symbols; /* names of the symbols at 0 (zero.c) */
    size_t zero_symbol_count;
    uint64_t zero_size;      /* size of the largest symbol at 0 */
    uint64_t next_code;      /* lowest address above 0 at which a root entry has code; UINT64_MAX = none */
    struct range_set ranges; /* of the functions emitted so far */
    bool has_dwp;
    bool has_symbols; /* the object has code symbols; set only if it has code at 0 */
    bool nameless;    /* also emit functions for lines that no symbol covers */
};

/* Grows the reader's budget by the size of the companion, as work and memory for reading the companion are charged to the object's
 * budget. */
void dwarf_charge_to(struct dwarf_reader *reader, struct sl_object *companion);

/* Indexes the first `most` unit headers of the file, into the arena; counts unreadable ones in `skipped`. False when out of memory. */
bool dwarf_index_units(struct dwarf_file *file, size_t most, struct sl_arena *arena, size_t *skipped);
/* Call while reading .debug_info in order; `to` is the offset reached. If the bytes from `*passed` to there are 8 MiB or more, releases
 * their pages, so that a large section that is read once does not stay in memory, and sets `*passed` to `to`. */
void dwarf_drop_pages(const struct dwarf_file *file, uint64_t *passed, uint64_t to);
/* Finds the sections; `split`: the object is a package or .dwo file. */
void dwarf_file_open(struct dwarf_file *file, struct sl_object *object, bool split);
const struct dwarf_unit_header *dwarf_unit_at(const struct dwarf_file *file, uint64_t offset);

/* Opens a unit: finds its abbreviations and reads its root entry. False if they cannot be read. */
bool dwarf_unit_open(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit);
/* Opens a unit only for its code ranges: reads no texts; `unit` is valid until the next call. False if the root entry cannot be read. */
bool dwarf_unit_peek(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit);
void dwarf_unit_bases(struct dwarf_unit *unit);
bool dwarf_read_root(struct dwarf_worker *w, struct dwarf_unit *unit);
/* Returns the language of a DW_LANG code; SL_LANG_UNKNOWN for languages whose names need no special treatment. */
enum sl_language dwarf_language(uint64_t code);

/* ---- attributes ---- */

struct attribute {
    uint64_t value;     /* address, constant, offset, index */
    struct sl_str text; /* DW_FORM_string */
    uint16_t form;
};

/* Reads one attribute value; `implicit`: that of DW_FORM_implicit_const, from the abbreviation. False past the end or for an unknown
 * form. */
bool dwarf_read_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form, int64_t implicit,
                     struct attribute *out);
bool dwarf_skip_step(struct sl_reader *r, const struct dwarf_unit *unit, const struct abbrev_step *step);

/* Iterates the wanted attributes of an entry; the reader is past the abbreviation code. */
struct attribute_walk {
    const struct dwarf_unit *unit;
    const struct abbrev_step *step, *end;
    bool failed; /* an attribute could not be read */
};

static inline struct attribute_walk dwarf_attributes(const struct dwarf_unit *unit, const struct abbrev *abbrev)
{
    const struct abbrev_step *step = &unit->abbrevs->steps[abbrev->first_step];
    return (struct attribute_walk){unit, step, step + abbrev->step_count, false};
}

/* Reads the next wanted attribute into `a` and returns its step; NULL at the end and after a failure. */
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

/* Skips the attribute of a skip_step that begins at `at`; returns the position after it, NULL past `end`. */
const uint8_t *dwarf_skip_rare_form(const struct dwarf_unit *unit, const struct skip_step *step, const uint8_t *at,
                                    const uint8_t *end);
bool dwarf_skip_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form);

/* Returns a name or path of less than SL_MAX_NAME bytes. Empty if absent, too long, or the work budget is exhausted. */
struct sl_str dwarf_text(struct sl_account *account, const struct dwarf_unit *unit, const struct attribute *a);

/* Returns the start of the text without reading it; NULL if it is absent or outside its section. */
const char *dwarf_text_address(const struct dwarf_unit *unit, const struct attribute *a);

/* Returns the text of a string attribute, of any length; empty if it is absent or outside its section. */
struct sl_str dwarf_whole_text(const struct dwarf_unit *unit, const struct attribute *a);
bool dwarf_address(const struct dwarf_unit *unit, const struct attribute *a, uint64_t *address);
bool dwarf_indexed_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address);

struct reference {
    const struct dwarf_file *file; /* NULL = no reference */
    uint64_t offset;               /* in .debug_info */
};
struct reference dwarf_reference(const struct dwarf_unit *unit, const struct attribute *a);

/* ---- ranges, lines, names, functions ---- */

/* Indexes .debug_aranges, if the file has units whose root entries may not list all of their code (aranges.c). False when out of memory. */
bool dwarf_index_aranges(struct dwarf_file *file, struct sl_object *object, struct sl_arena *arena);

/* Returns the unit's sets in .debug_aranges and their number, if its root entry may not list all of its code; else NULL. */
const struct aranges_set *dwarf_find_aranges(const struct dwarf_unit *unit, size_t *count);

/* Reads the unit's code ranges, by its root entry and .debug_aranges, into worker->ranges; returns their number. They may overlap. */
size_t dwarf_unit_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit);

/* Reads the ranges of an entry, by these three attributes (form 0 = absent), into worker->ranges, without those of code that the linker
 * dropped; returns their number. */
size_t dwarf_ranges(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *ranges,
                    const struct attribute *low_pc, const struct attribute *high_pc);

/* Returns the first tombstone address: linkers give dropped code addresses from here to the end of the address space. */
static inline uint64_t dwarf_dead(const struct dwarf_file *file, unsigned address_size)
{
    return file->dead[address_size && address_size < MAX_ADDRESS_SIZE ? address_size : MAX_ADDRESS_SIZE];
}

/* True if address 0 of an entry or row may be live code. */
static inline bool dwarf_may_have_code_at_zero(const struct dwarf_file *file)
{
    return file->relocatable || file->code_at_zero;
}

/* Removes ranges from worker->ranges that begin where worker->lines has no row, and returns the new count. For subprograms of
 * assemblers: GNU as writes an entry for every function that a file refers to, also for those of other files. */
size_t dwarf_ranges_with_lines(struct dwarf_worker *w, size_t count);

/* Decodes the unit's line program into worker->lines. */
void dwarf_read_lines(struct dwarf_worker *w, const struct dwarf_unit *unit);

/* True if the unit has a line program that is not empty, according to its header. */
bool dwarf_has_rows(const struct dwarf_unit *unit);

/* Reads the entry format of a line table's list of directories or files (DWARF 5, 6.2.4.1); returns the number of fields, 0 on
 * error. */
enum { MAX_FORMATS = 255 };
struct entry_format {
    uint64_t content;
    uint16_t form;
};
size_t dwarf_read_formats(struct sl_reader *r, struct entry_format formats[MAX_FORMATS]);

/* Returns a linkage name, without the decoration of 32-bit Windows. */
struct sl_str dwarf_linkage_name(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a);

/* Returns the unit that contains the referenced entry: `from` itself, or another one, valid until the next call. NULL if not found. */
const struct dwarf_unit *dwarf_find_unit(struct dwarf_worker *w, const struct dwarf_unit *from,
                                         struct reference reference);

/* Returns the name of the referenced entry; sets `*language` if the entry is in another unit that has a language. */
struct entry_name dwarf_find_name(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference reference,
                                  enum sl_language *language);

/* Walks the unit and fills worker->functions, which point into `arena` and the file. False if the entries could not be read to
 * their end. */
bool dwarf_read_functions(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                          struct sl_arena *arena);

/* The subprograms of a unit with address 0: live ones and dropped ones (zero.c). */
struct zero_claims {
    size_t count; /* subprograms at 0, live or not */
    uint64_t end; /* end of the largest live one; 0 = none is live */
};

/* Counts the unit's subprograms at address 0. False if the unit's entries could not be read to their end. */
bool dwarf_find_zero(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                     struct sl_arena *arena, struct zero_claims *claims);

/* Appends the function, with the unit's lines and the inlined calls, to worker->functions. False when out of memory or budget. */
bool dwarf_add_function(struct dwarf_reader *reader, struct dwarf_worker *w, struct sl_arena *arena,
                        struct sl_function *function, const struct sl_flat_inlinee *inlinees, size_t inlinee_count);

/* Call after dwarf_read_functions. Appends code that has lines but no subprogram, as functions named by symbols. `unit`
 * has the line table: the skeleton of a split unit. False when out of memory or budget. */
bool dwarf_add_uncovered(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                         enum sl_language language, struct sl_arena *arena);

/* ---- variables.c, types.c: for workers with `variables` ---- */

/* Attributes of a variable or a type. */
struct description {
    struct sl_str name; /* may be empty */
    struct reference type, origin;
    bool has_type; /* DW_AT_type is present; type.file is NULL if it cannot be resolved */
    bool declaration;
};

void variables_begin(struct dwarf_worker *w, struct sl_arena *arena); /* starts a unit */
void variables_end(struct dwarf_worker *w); /* ends the unit: frees the maps, keeps lists and texts */
void variables_free(struct variable_reader *v);

/* Starts to collect the variables of a function or inlined call. The ranges of a call are worker->inlinees from `first_inlinee` on. False
 * when out of memory or budget. */
bool variables_open(struct dwarf_worker *w, size_t first_inlinee);

/* Adds a variable to the function or call for which variables_open() was called last; `r` is past the abbreviation code of its entry. False
 * if the entry cannot be read, or when out of memory or budget. */
bool variables_add(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev,
                   struct sl_reader *r);

/* Makes a list of the variables added since the matching variables_open(); for an inlined call also sets its number in worker->inlinees.
 * Returns the number of the list, from 1; 0 if it is empty, or when out of memory or budget (account.failed). */
uint32_t variables_close(struct dwarf_worker *w);

/* Copies lists and texts into the batch. False when out of memory. */
bool variables_copy_to_batch(const struct dwarf_worker *w, struct sl_function_batch *batch, struct sl_arena *arena);

/* Returns a name of less than SL_MAX_NAME bytes, as dwarf_text does, but reads each text only once per unit. */
struct sl_str variables_text(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a);

/* Reads the attributes of an entry; `r` is past its abbreviation code. False if they cannot be read, or if the budget is used up. */
bool types_read(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev, struct sl_reader *r,
                struct description *out);

/* Completes missing attributes from the entries that the description refers to. */
void types_complete(struct dwarf_worker *w, const struct dwarf_unit *from, struct description *description);

/* Returns the type as C writes it: `char*`, `int[4]`, `void(*)(int)`; names are DW_AT_name, without enclosing namespaces. `<unknown>`
 * if it cannot be resolved, `<not implemented>` for kinds of types that C does not have. `has` false: there is no DW_AT_type, so `void`. */
struct sl_str types_name(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference type, bool has);

/* ---- symbols ---- */

/* Indexes the object's symbols. If they cannot be read the index is empty, and functions keep the names of their entries. */
enum sl_code dwarf_index_symbols(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error);

/* Returns the first symbol at exactly this address, or NULL. */
const struct sl_symbol *dwarf_symbol_at(const struct symbol_index *index, uint64_t address);

/* True if the symbol looks like the mangled form of the name: the symbol is mangled and contains the name. */
bool dwarf_mangles(struct sl_str symbol, struct sl_str name);

/* Returns the name of a function with its entry point at `entry`: mostly `name`. It is the symbol there if `name` is empty, was hidden by
 * Apple's bitcode builds (`__hidden#`), or is a source name of which the symbol is the mangled form. */
struct sl_str dwarf_symbol_name(const struct symbol_index *index, uint64_t entry, struct entry_name name,
                                enum sl_language language);

/* The symbol that covers an address, and its end. A symbol without size reaches to the next one. */
struct symbol_span {
    const struct sl_symbol *symbol; /* NULL = no symbol covers it */
    uint64_t end;                   /* of the symbol, or of the gap; at most the next symbol */
};
struct symbol_span dwarf_find_symbol_span(struct dwarf_worker *w, const struct symbol_index *index, uint64_t address);

/* Opens the split unit of a skeleton, in a package or a .dwo file. False if it is not available, comes from another build, cannot be read,
 * or when out of memory or budget (account.failed). `file` receives the sections of `split` and must live as long. */
bool dwarf_open_split(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *skeleton,
                      struct dwarf_file *file, struct sl_arena *arena, struct dwarf_unit *split);

uint64_t dwarf_range_key(uint64_t address, uint64_t size);
bool dwarf_has_range(const struct range_set *set, uint64_t key);
/* Results of dwarf_range_add(): the key was already in the set, was added, or could not be added. */
enum range_novelty { RANGE_KNOWN, RANGE_NEW, RANGE_NO_MEMORY };
/* Adds the key. One thread at a time, in file order; other threads may call dwarf_has_range meanwhile. */
enum range_novelty dwarf_range_add(struct range_set *set, uint64_t key);
void dwarf_range_free(struct range_set *set);

void dwarf_worker_free(struct dwarf_worker *w);

/* Reads the abbreviations up to that of the unit's root entry into worker->root. NULL if the root entry has none. */
const struct abbrev_table *dwarf_root_abbrev(struct dwarf_worker *w, const struct dwarf_file *file,
                                             const struct dwarf_unit_header *header);

/* Invalidates the worker's cached abbreviation tables and units of `file`. Must be called before `file` goes out of scope. */
void dwarf_invalidate_caches(struct dwarf_worker *w, const struct dwarf_file *file);
const struct abbrev_table *dwarf_abbrevs(struct dwarf_worker *w, const struct dwarf_file *file,
                                         const struct dwarf_unit_header *header);

/* Read little-endian integers, without checks and faster than by a struct sl_reader. */
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

/* Reads item `index` of a table of integers of `size` bytes at `base` in a section; false if it is outside. */
bool dwarf_table_at(struct sl_bytes section, bool big_endian, uint64_t base, uint64_t index, unsigned size,
                    uint64_t *value);

/* Reads a ULEB128; one or two bytes without a call. */
static inline uint64_t dwarf_uleb(struct sl_reader *r)
{
    const uint8_t *at = r->at;
    if (r->end - at < 2 || ((at[0] & 0x80) && (at[1] & 0x80)))
        return sl_read_uleb(r);
    unsigned two = at[0] >> 7;
    r->at += 1 + two;
    return (at[0] & 0x7Fu) | ((unsigned)at[1] << 7 & -two);
}

/* Reads an SLEB128; one byte without a call. */
static inline int64_t dwarf_sleb(struct sl_reader *r)
{
    if (r->at == r->end || (*r->at & 0x80))
        return sl_read_sleb(r);
    return (int64_t)((*r->at++ ^ 0x40u) & 0x7Fu) - 0x40;
}

/* ---- zero.c ---- */

/* If the file has code at 0, collects the symbols there and sets reader->next_code. */
enum sl_code dwarf_index_zero(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error);

/* True if a subprogram of this name with address 0 is the live one, not one that the linker dropped. */
bool dwarf_is_at_zero(const struct dwarf_reader *reader, struct dwarf_worker *w, struct entry_name name);

/* Removes the sequences at address 0 from worker->lines; keeps the live code's sequence if it is of this unit. `walked` has the entries:
 * the split unit if `unit` is a skeleton, else `unit`. False if the entries cannot be read. */
bool dwarf_keep_zero_lines(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                           const struct dwarf_unit *walked, struct sl_arena *arena);

/* ---- read.c ---- */

/* True if an address that the sink wants, plus the bias, is in [begin, end). */
bool dwarf_is_wanted(const struct sl_function_sink *sink, uint64_t bias, uint64_t begin, uint64_t end);

/* ---- debug_map.c ---- */

/* Streams the functions of the object files that the object's debug map names to `sink`, with their addresses in the object. Object files
 * that cannot be opened are left out. SL_NOT_FOUND if the map names no object file with a wanted function. */
enum sl_code dwarf_read_debug_map(struct sl_object *object, const struct sl_companions *companions,
                                  const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                  struct sl_error *error);
