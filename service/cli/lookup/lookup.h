/* `symloom lookup`: what its files share.
 *
 *     line or argument ──request.c──▶ request ──module.c──▶ chain ──print.c──▶ text */
#pragma once

#include "cli/by_id/by_id.h"
#include "cli/cli.h"
#include "cli/options.h"

#include "core/json.h"

enum style { STYLE_GNU, STYLE_LLVM, STYLE_JSON, STYLE_TABLE };

/* Whose command line it is. */
enum persona { PERSONA_LOOKUP, PERSONA_ADDR2LINE, PERSONA_LLVM_ADDR2LINE, PERSONA_LLVM_SYMBOLIZER };

enum { MAX_CHAIN = 600, TEXT_SLOTS = 65536 };

/* Texts by the ids of a symcache, modulo TEXT_SLOTS: making one costs more than all the rest of an answer. */
struct text_cache {
    struct sl_str *texts; /* data NULL = none yet */
    uint32_t *ids;
};

/* A file that addresses are looked up in. */
struct lookup_module {
    char *name; /* as it was asked for */
    struct input input;
    struct sl_error error; /* SL_OK when it can be used */
    uint64_t load;         /* added to the symcache's addresses */
    bool is_32bit;
    struct sl_arena arena;
    struct sl_symbol *symbols; /* sorted by address; read when first needed */
    size_t symbol_count;
    bool has_symbols;
    struct text_cache names, files;
    struct lookup_module *next;
};

struct table_row {
    size_t ends[4]; /* of the cells, in `cells` */
};

struct lookup {
    enum persona persona;
    enum style style;
    bool functions, short_names, inlines, demangle, addresses, pretty, basenames, relative, return_addresses, verbose,
        colour;
    uint64_t adjust;
    unsigned context_lines, jobs;
    const char *section;
    const char *file;       /* -e; NULL: each line names its own */
    struct sl_str build_id; /* --build-id */
    struct input_options open;
    const struct options *options;
    struct by_id *by_id; /* when the first file was wanted that is not installed */
    struct lookup_module *modules;
    struct sl_buf out, scratch, cells;
    struct table_row *rows;
    size_t row_count, row_capacity;
};

struct element {              /* one link of an answer, innermost first */
    struct sl_str name, file; /* empty = not known */
    uint32_t line;
    uint64_t entry;
    bool has_entry;
};

struct request {
    enum { REQUEST_CODE, REQUEST_DATA, REQUEST_FRAME, REQUEST_BAD } kind;
    struct lookup_module *module; /* NULL with REQUEST_BAD */
    uint64_t address;
    struct sl_str text; /* as it was asked */
};

/* ---- module.c ---- */

/* The module of that name, opened and converted at its first use; never NULL but when out of memory. What went wrong is
 * in its `error`. `BUILDID:hex` is looked for in the debug directories and then by_id. */
struct lookup_module *lookup_module_find(struct lookup *l, struct sl_str name);
void lookup_modules_free(struct lookup *l);

/* The symbol with the greatest address not above `address` (relative to the load address); NULL when there is none. */
const struct sl_symbol *lookup_symbol_at(struct lookup_module *m, uint64_t address);
/* The address (as in the file's headers) of a function or symbol. False when there is none of that name. */
bool lookup_symbol_named(struct lookup_module *m, struct sl_str name, uint64_t *address, uint64_t *size);

/* The chain at an address as it was asked for; the number of elements, 0 when nothing is known. */
size_t lookup_chain(struct lookup *l, struct lookup_module *m, uint64_t address, struct sl_location *chain);
/* One element; its texts live until the next call. */
void lookup_element(struct lookup *l, struct lookup_module *m, const struct sl_location *location,
                    struct element *element);

/* ---- request.c ---- */

/* What one line of input (without its newline) asks for, in the grammar of the style. */
void lookup_parse(struct lookup *l, struct sl_str line, struct request *request);
/* An address on the command line. */
void lookup_parse_argument(struct lookup *l, const char *text, struct request *request);

/* ---- print.c ---- */

/* Answers one request into l->out, or a row of the table. */
void lookup_answer(struct lookup *l, struct json_writer *w, const struct request *request);
/* Moves the rows of the table so far into l->out. */
void lookup_table_flush(struct lookup *l);
