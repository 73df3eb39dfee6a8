/* `symloom lookup`: what its files share.
 *
 *     line or argument ──request.c──▶ request ──tables.c──▶ chain ──print.c──▶ text */
#pragma once

#include "cli/by_id/by_id.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"

#include "base/json_write.h"
#include "function/order.h"
#include "demangle/style.h"

enum style { STYLE_GNU, STYLE_LLVM, STYLE_JSON, STYLE_TABLE };

/* Whose command line it is. */
enum persona { PERSONA_LOOKUP, PERSONA_ADDR2LINE, PERSONA_LLVM_ADDR2LINE, PERSONA_LLVM_SYMBOLIZER };

enum { MAX_CHAIN = 600 };

/* Texts by the ids of a symcache, modulo the number of slots: making one costs more than all the rest of an answer. */
struct text_cache {
    struct sl_str *texts; /* data NULL = none yet */
    uint32_t *ids;
    uint32_t *used; /* the slots that have had a text: most pages of the slots are never touched */
    size_t count, capacity;
};

/* What answers come from: of the whole file, or of what is around some addresses. */
struct lookup_table {
    struct sl_symcache cache;
    struct sl_buf bytes; /* of a part: the cache's */
    uint64_t *addresses; /* of a part: what it answers for, relative, ascending */
    size_t address_count;
    struct text_cache names, files;
    struct lookup_table *next;
};

/* Symbols and their order by address; `order` NULL: not read yet. */
struct lookup_symbols {
    const struct sl_symbol *symbols;
    struct sl_ordered *order;
    size_t count;
};

/* When and where a file was written; no padding. */
struct file_stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns, status_s, status_ns;
};

/* A file that addresses are looked up in. */
struct lookup_module {
    char *name; /* as it was asked for */
    struct input input;
    struct sl_error error; /* SL_OK when it can be used */
    uint64_t load;         /* added to the symcache's addresses */
    bool is_32bit, is_whole;
    bool lacks_lines;                  /* an answer had no line: the notes of the input may say why */
    struct file_stamp stamp;           /* before it was opened; zeros: it is no regular file */
    struct lookup_table whole, *parts; /* whole: of use when is_whole */
    unsigned part_count;
    struct sl_arena arena;
    struct lookup_symbols code, data;
    const struct sl_symbol_file **files; /* of symbols, sorted by address; NULL: they were not asked for */
    size_t file_count;
    struct written *written;  /* written.c */
    struct gnu_tables *gnu;   /* gnu.c */
    struct llvm_tables *llvm; /* llvm.c */
    struct lookup_module *next;
};

struct table_row {
    size_t ends[4]; /* of the cells, in `cells` */
};

struct lookup {
    enum persona persona;
    enum style style;
    bool functions, short_names, inlines, demangle, addresses, pretty, basenames, relative, return_addresses, verbose,
        colour, told, keep; /* told: that the given file is of no use; keep: symcaches, whatever their size */
    uint64_t adjust;
    unsigned context_lines, jobs;
    unsigned table_width; /* columns; 0: as wide as it gets */
    const char *section;
    const char *file;       /* -e; NULL: each line names its own */
    struct sl_str build_id; /* --build-id */
    struct input_options open;
    const struct options *options;
    struct by_id *by_id; /* when the first file was wanted that is not installed */
    struct lookup_module *modules;
    struct sl_buf out, scratch, cells, symbol_name, declaration;
    struct table_row *rows;
    size_t row_count, row_capacity;
    struct progress progress; /* of conversions, under its own name: others may have the terminal for themselves */
};

/* How the tool that it stands for writes names. */
enum sl_demangle_style lookup_demangle_style(const struct lookup *l);

/* Whether it answers as LLVM's tools do, also in GNU's style. */
static inline bool lookup_is_llvm(const struct lookup *l)
{
    return l->persona == PERSONA_LLVM_ADDR2LINE || l->persona == PERSONA_LLVM_SYMBOLIZER;
}

/* Whether it answers by the rules of GNU's addr2line. */
static inline bool lookup_is_gnu(const struct lookup *l)
{
    return l->persona == PERSONA_ADDR2LINE && l->style == STYLE_GNU && !l->open.relative_names;
}

struct element {              /* one link of an answer, innermost first */
    struct sl_str name, file; /* empty = not known */
    uint32_t line, column;    /* 0 = not known */
    uint64_t entry;
    bool has_entry;
    uint32_t discriminator, start_line; /* of LLVM's tools: 0 = none; of the function's declaration */
    struct sl_str start_file;
};

/* An answer: links of the table that it came from. */
struct chain {
    struct lookup_table *table;
    struct sl_location links[MAX_CHAIN];
    size_t all; /* links that there are, also when only one of them is asked for */
};

struct request {
    enum { REQUEST_CODE, REQUEST_DATA, REQUEST_FRAME, REQUEST_BAD } kind;
    struct lookup_module *module; /* NULL with REQUEST_BAD */
    uint64_t address;
    struct sl_str text; /* as it was asked */
};

/* ---- module.c ---- */

/* The module of that name, opened at its first use; never NULL but when out of memory. What went wrong is in its `error`.
 * `BUILDID:hex` is looked for in the debug directories and then by_id. */
struct lookup_module *lookup_module_find(struct lookup *l, struct sl_str name);
void lookup_modules_free(struct lookup *l);

/* The symbol of code with the greatest address not above `address` (relative to the load address); NULL when there is none. */
const struct sl_symbol *lookup_symbol_at(struct lookup_module *m, uint64_t address);
/* The name of the symbol that is at the address (relative), as the file has it; empty when there is none. */
struct sl_str lookup_stored_name(struct lookup_module *m, uint64_t address);
/* The source file that the symbol table tells of the symbol at the address (relative), as GNU's addr2line or LLVM's tools see it;
 * empty when it tells of none. */
struct sl_str lookup_symbol_file(struct lookup_module *m, uint64_t address, struct sl_str name, bool as_llvm);
/* The symbol of data, else of code, that the address (relative) is in; NULL when it is in none. */
const struct sl_symbol *lookup_data_at(struct lookup_module *m, uint64_t address);
/* The address (as in the file's headers) of a function or symbol. False when there is none of that name. */
bool lookup_symbol_named(struct lookup *l, struct lookup_module *m, struct sl_str name, uint64_t *address,
                         uint64_t *size);

/* An address as it was asked for, relative to the load address. False when it is before that. */
bool lookup_relative(const struct lookup *l, const struct lookup_module *m, uint64_t address, uint64_t *relative);

/* ---- tables.c ---- */

/* The table of the whole file is there; false: the module's `error` tells why not. */
bool lookup_whole(struct lookup *l, struct lookup_module *m);
/* Makes what answers the requests to this module, of the `count` given, which may be to others too. */
void lookup_prepare(struct lookup *l, struct lookup_module *m, const struct request *requests, size_t count);
void lookup_tables_free(struct lookup_module *m);

/* The chain at an address as it was asked for; the number of elements, 0 when nothing is known. */
size_t lookup_chain(struct lookup *l, struct lookup_module *m, uint64_t address, struct chain *chain);
/* One element; its texts live until the next call. */
void lookup_element(struct lookup *l, struct lookup_module *m, const struct chain *chain, size_t index,
                    struct element *element);

/* ---- kept.c ---- */

/* False when it is no regular file. */
bool lookup_stamp(const char *path, struct file_stamp *stamp);

/* The symcache of the whole file out of the user's cache, where it comes to be if `make`. False: it is not there, or is not kept.
 * True: the module's input has it; or, `*code` says so, it could not be made, and the module's error says why. */
bool lookup_kept(struct lookup *l, struct lookup_module *m, bool make, enum sl_code *code);

/* ---- request.c ---- */

/* What one line of input (without its newline) asks for, in the grammar of the style. */
void lookup_parse(struct lookup *l, struct sl_str line, struct request *request);
/* An address on the command line. */
void lookup_parse_argument(struct lookup *l, const char *text, struct request *request);

/* ---- print.c ---- */

/* Answers one request into l->out, or a row of the table. */
void lookup_answer(struct lookup *l, struct sl_json_writer *w, const struct request *request);
/* Moves the rows of the table so far into l->out. */
void lookup_table_flush(struct lookup *l);
