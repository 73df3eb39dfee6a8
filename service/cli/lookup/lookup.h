/* `symloom lookup`: declarations that its files share.
 *
 *     line or argument ──request.c──▶ request ──tables.c──▶ chain ──print.c──▶ text */
#pragma once

#include "cli/locator/locator.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

#include "base/json_write.h"
#include "function/order.h"
#include "demangle/style.h"

enum output_style { STYLE_GNU, STYLE_LLVM, STYLE_JSON, STYLE_TABLE };

/* Which tool the command is: `symloom lookup`, or the emulation of addr2line, llvm-addr2line or llvm-symbolizer. */
enum command_compatibility { PERSONA_LOOKUP, PERSONA_ADDR2LINE, PERSONA_LLVM_ADDR2LINE, PERSONA_LLVM_SYMBOLIZER };

enum { MAX_CHAIN = 600 }; /* functions of an inline chain; the outermost ones of a longer chain are left out */

/* Direct-mapped cache of texts by id: of demangled names by the function's id in the symcache, or of paths by the file's id. The slot is
 * the id modulo the number of slots. Making a name costs more than the rest of an answer. */
struct text_cache {
    struct sl_str *texts; /* data NULL: empty slot */
    uint32_t *ids;
    uint32_t *used; /* numbers of the filled slots: freeing visits only these, since most slots are never touched */
    size_t count, capacity;
};

/* The symcache that answers come from: of the whole file, or a partial one of the code around some addresses. */
struct lookup_table {
    struct sl_symcache cache;
    struct sl_buf bytes; /* partial symcache: owns the bytes of `cache` */
    uint64_t *addresses; /* partial symcache: the addresses it answers, relative to the load address, ascending */
    size_t address_count;
    struct text_cache names, files;
    struct lookup_table *next;
};

/* `order`: the indices of the symbols, sorted by address; NULL: not read yet. */
struct lookup_symbols {
    const struct sl_symbol *symbols;
    struct sl_ordered *order;
    size_t count;
};

/* Identity and times of a file, to detect changes. Stamps are compared with memcmp, so it must have no padding. */
struct file_stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns, status_s, status_ns; /* mtime and ctime */
};

/* A file in which addresses are looked up. */
struct lookup_module {
    char *name; /* as requested */
    struct input input;
    struct sl_error error;   /* SL_OK: usable */
    uint64_t load;           /* load address, added to the symcache's addresses */
    bool is_32bit, is_whole; /* is_whole: `whole` was made, or that failed (`error`) */
    bool lacks_lines;        /* an answer had no line: print the input's notes, which say what is missing */
    struct file_stamp stamp; /* taken before opening; zeros: not a regular file */
    struct lookup_table whole,
        *parts; /* whole: of the whole file, valid if is_whole and no error; parts: partial ones */
    unsigned part_count;
    struct sl_arena arena;
    struct lookup_symbols code, data;
    const struct sl_symbol_file **files; /* source files of symbols (STT_FILE), sorted by address; NULL: not read yet */
    size_t file_count;
    struct dwarf_unit_index *written; /* DWARF by address, for the emulated tools (dwarf_index.c); NULL: not read yet */
    struct gnu_tables *gnu;           /* symbols and DWARF for GNU addr2line (gnu.c); NULL: not built yet */
    struct llvm_tables *llvm;         /* symbols for LLVM's tools (llvm.c); NULL: not built yet */
    struct lookup_module *next;
};

struct table_row {
    size_t ends[4]; /* where the texts of the row's four cells end in the buffer lookup.cells */
};

struct lookup {
    enum command_compatibility persona;
    enum output_style style;
    bool functions, short_names, inlines, demangle, addresses, pretty, basenames, relative, return_addresses, verbose,
        colour;
    bool has_reported;   /* the file of -e was reported as unusable */
    bool keep_symcaches; /* --cache: symcaches are cached even if the file is small */
    uint64_t adjust;     /* --adjust-vma: subtracted from every requested address */
    unsigned context_lines, jobs;
    unsigned table_width; /* columns; 0: unlimited */
    const char *section;
    const char *file;       /* the file of -e or --build-id; NULL: each input line names its file */
    struct sl_str build_id; /* --build-id */
    struct input_options open;
    const struct options *options;
    struct locator *locator; /* searches symbol sources and the disk cache; NULL: not needed so far */
    struct lookup_module *modules;
    struct sl_buf out, scratch, cells, symbol_name, declaration;
    struct table_row *rows;
    size_t row_count, row_capacity;
    struct progress
        progress; /* shown while files are read; not by the emulated tools, whose callers may use the terminal */
};

/* Returns the demangling style of the emulated tool, or that of crash reports for `symloom lookup`. */
enum sl_demangle_style lookup_demangle_style(const struct lookup *l);

/* True if llvm-symbolizer or llvm-addr2line is emulated, whatever its --output-style. */
static inline bool lookup_is_llvm(const struct lookup *l)
{
    return l->persona == PERSONA_LLVM_ADDR2LINE || l->persona == PERSONA_LLVM_SYMBOLIZER;
}

/* True if answers follow the rules of GNU addr2line (gnu.h): it is emulated, without options that only LLVM's tools have. */
static inline bool lookup_is_gnu(const struct lookup *l)
{
    return l->persona == PERSONA_ADDR2LINE && l->style == STYLE_GNU && !l->open.relative_names;
}

struct lookup_result {        /* one function of an inline chain */
    struct sl_str name, file; /* empty: unknown */
    uint32_t line, column;    /* 0: unknown */
    uint64_t entry;
    bool has_entry;
    uint32_t discriminator, start_line; /* only LLVM's tools print them; 0: none. start_line: of the declaration */
    struct sl_str start_file;
};

/* An answer: an inline chain, innermost function first. The function and file ids in `links` are those of the symcache `table`. */
struct lookup_chain {
    struct lookup_table *table;
    struct sl_location links[MAX_CHAIN];
    size_t all; /* length of the whole chain, even if only one of its functions is printed */
};

struct lookup_request {
    enum { REQUEST_CODE, REQUEST_DATA, REQUEST_FRAME, REQUEST_BAD } kind;
    struct lookup_module *module; /* may be NULL with REQUEST_BAD */
    uint64_t address;
    struct sl_str text; /* as typed */
};

/* ---- module.c ---- */

/* Returns the module `name`, opened at the first call with this name; NULL only when out of memory. If it cannot be opened, its `error`
 * says why. `BUILDID:hex` is searched in the debug directories, then in the symbol sources of the command line. */
struct lookup_module *lookup_module_find(struct lookup *l, struct sl_str name);
void lookup_modules_free(struct lookup *l);

/* Returns the code symbol with the greatest address not above `address` (relative to the load address); NULL when there is
 * none. */
const struct sl_symbol *lookup_symbol_at(struct lookup_module *m, uint64_t address);
/* Returns the name, as stored in the file, of the symbol exactly at an address relative to the load address; empty when there is none. Of
 * several the one that sorts last: LLVM chooses it, because PDB's public symbols are in that order. */
struct sl_str lookup_stored_name(struct lookup_module *m, uint64_t address);
/* Returns the source file (STT_FILE) of the symbol `name` at an address relative to the load address; empty when there is none.
 * `as_llvm`: only of local symbols, as LLVM's tools do; GNU addr2line takes that of global ones too. */
struct sl_str lookup_symbol_file(struct lookup_module *m, uint64_t address, struct sl_str name, bool as_llvm);
/* Returns the data symbol, else the code symbol, that contains an address relative to the load address; NULL when there is none. */
const struct sl_symbol *lookup_data_at(struct lookup_module *m, uint64_t address);
/* Finds the address (as in the file's headers) and size (0: unknown) of a function or variable: in the symbol tables, else in the symcache
 * of the whole file, which is converted for it. False when the file is unusable or has none of that name. */
bool lookup_symbol_named(struct lookup *l, struct lookup_module *m, struct sl_str name, uint64_t *address,
                         uint64_t *size);

/* Converts a requested address to one relative to the load address, by --section, --adjust-vma and --return-addresses. False when it is
 * below the load address, or the file lacks the section. */
bool lookup_relative(const struct lookup *l, const struct lookup_module *m, uint64_t address, uint64_t *relative);

/* ---- tables.c ---- */

/* Makes `m->whole`, from the symcache of the whole file. False: the module's `error` says why not. */
bool lookup_load_whole_file(struct lookup *l, struct lookup_module *m);
/* Makes what lookup_chain needs for those of the `count` requests that are for code of this module: a partial symcache for a few addresses
 * in a large file, else the symcache of the whole file. */
void lookup_build_tables(struct lookup *l, struct lookup_module *m, const struct lookup_request *requests,
                         size_t count);
void lookup_tables_free(struct lookup_module *m);

/* Finds the inline chain at a requested address. Returns the number of its functions that are to be printed, 0 when none is known. */
size_t lookup_chain(struct lookup *l, struct lookup_module *m, uint64_t address, struct lookup_chain *chain);
/* Reads function `index` of an inline chain, 0 is the innermost; its texts live until the next call. */
void lookup_result_at(struct lookup *l, struct lookup_module *m, const struct lookup_chain *chain, size_t index,
                      struct lookup_result *element);

/* ---- stored_table.c ---- */

/* Reads identity and times of a file. False when the path is not a regular file; all fields are then 0. */
bool lookup_stamp(const char *path, struct file_stamp *stamp);

/* Loads the whole file's symcache from the user's disk cache; if `make`, a missing one is converted and stored. False: the cache has none,
 * or symcaches of this file are not cached; the caller then converts the file itself. True with `*code` SL_OK: m->input.cache is the
 * symcache; with another code: the conversion failed, and m->error says why. */
bool lookup_stored_table(struct lookup *l, struct lookup_module *m, bool make, enum sl_code *code);

/* ---- request.c ---- */

/* Parses one input line (without its newline) as the emulated tool, or the output style of `symloom lookup`, wants it (request.c). */
void lookup_parse(struct lookup *l, struct sl_str line, struct lookup_request *request);
/* Parses an argument. With -e, `symloom lookup` takes hexadecimal addresses and symbol names in every output style, and anything else is
 * REQUEST_BAD; otherwise the argument is parsed as an input line. */
void lookup_parse_argument(struct lookup *l, const char *text, struct lookup_request *request);

/* ---- print.c ---- */

/* Appends the answer to a request to l->out, or adds its rows to the table (STYLE_TABLE). `w` is used by STYLE_JSON only. */
void lookup_answer(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *request);
/* Formats the table's rows into l->out and empties the table. */
void lookup_table_flush(struct lookup *l);
