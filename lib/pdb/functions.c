/* Reads the symbol records of a module (procedures, separated code and inlined calls) into functions with trees of inlined calls. The
 * records of a scope are between the record that opens it and an end record:
 *
 *     S_GPROC32                 depth 0: a function
 *       S_BLOCK32               depth 1: only a scope
 *         S_INLINESITE          depth 2: a child of the function
 *           S_INLINESITE        depth 3: a child of the site above
 *           S_INLINESITE_END
 *         S_INLINESITE_END
 *       S_END
 *     S_END
 *     S_SEPCODE                 depth 0: separated code of the procedure before it
 *     S_END */
#include "pdb/impl.h"

#include "base/grow.h"
#include "base/order.h"
#include "function/assemble.h"

#include <stdlib.h>

enum {
    S_END = 0x0006,
    S_THUNK32_ST = 0x0206,
    S_BLOCK32_ST = 0x0207,
    S_WITH32_ST = 0x0208,
    S_LPROC32_ST = 0x100A,
    S_GPROC32_ST = 0x100B,
    S_LPROCMIPS_ST = 0x1010,
    S_GPROCMIPS_ST = 0x1011,
    S_LPROCIA64_ST = 0x1015,
    S_GPROCIA64_ST = 0x1016,
    S_GMANPROC_ST = 0x101A,
    S_LMANPROC_ST = 0x101B,
    S_THUNK32 = 0x1102,
    S_BLOCK32 = 0x1103,
    S_WITH32 = 0x1104,
    S_LPROC32 = 0x110F,
    S_GPROC32 = 0x1110,
    S_LPROCMIPS = 0x1114,
    S_GPROCMIPS = 0x1115,
    S_LPROCIA64 = 0x1118,
    S_GPROCIA64 = 0x1119,
    S_GMANPROC = 0x112A,
    S_LMANPROC = 0x112B,
    S_SEPCODE = 0x1132,
    S_LPROC32_ID = 0x1146,
    S_GPROC32_ID = 0x1147,
    S_LPROCMIPS_ID = 0x1148,
    S_GPROCMIPS_ID = 0x1149,
    S_LPROCIA64_ID = 0x114A,
    S_GPROCIA64_ID = 0x114B,
    S_INLINESITE = 0x114D,
    S_INLINESITE_END = 0x114E,
    S_PROC_ID_END = 0x114F,
    S_LPROC32_DPC = 0x1155,
    S_LPROC32_DPC_ID = 0x1156,
    S_INLINESITE2 = 0x115D,
};

/* What a record does to the nesting of scopes: nothing; opens a scope without a function; ends one; opens the scope of a function, of
 * separated code, of an inlined call. */
enum pdb_role { ROLE_NONE, ROLE_SCOPE, ROLE_END, ROLE_PROCEDURE, ROLE_SEPARATED, ROLE_INLINED };

enum { NO_NODE = UINT32_MAX, NO_SKIP = UINT32_MAX, MAX_SCOPES = 4096, STEPS_PER_PIECE = 64 };

/* A function or inlined call that was read, before the trees are built. */
struct pdb_node {
    struct sl_function function;
    /* If OMAP split the code: a function for each contiguous part of it, in place of `function`, which still has the inlined calls. Else
     * NULL. */
    struct sl_function *pieces;
    uint32_t piece_count;
    uint32_t parent;       /* index of the enclosing function; NO_NODE = outermost */
    uint32_t inline_depth; /* 0 = outermost */
};

struct pdb_code_range { /* start of a procedure */
    uint32_t offset;
    uint16_t section;
};

struct scope {
    uint32_t node; /* number of the innermost function or inlined call that the scope is or is in; NO_NODE = none */
    struct pdb_code_range procedure; /* the innermost enclosing procedure */
};

struct pdb_child_scope { /* for sorting */
    uint64_t address;
    uint32_t parent, node;
};

struct pdb_function_walk {
    struct module_reader *reader;
    struct sl_arena *arena;
    struct sl_str name;              /* of the last procedure */
    struct pdb_code_range procedure; /* start of the last procedure */
    bool has_procedure;              /* there was one */
    uint32_t depth;                  /* number of open scopes */
    uint32_t skip;                   /* depth of the scope that is skipped with all inside it; NO_SKIP = none */
};

/* Returns the role of a kind of record in the nesting of scopes; ROLE_NONE if it neither opens nor closes one. Procedures for machines that
 * are not supported (MIPS, IA-64, managed code) only open a scope. */
static enum pdb_role get_role(uint16_t kind)
{
    switch (kind) {
    case S_LPROC32_ST:
    case S_GPROC32_ST:
    case S_LPROC32:
    case S_GPROC32:
    case S_LPROC32_ID:
    case S_GPROC32_ID:
    case S_LPROC32_DPC:
    case S_LPROC32_DPC_ID: return ROLE_PROCEDURE;
    case S_SEPCODE: return ROLE_SEPARATED;
    case S_INLINESITE:
    case S_INLINESITE2: return ROLE_INLINED;
    case S_END:
    case S_PROC_ID_END:
    case S_INLINESITE_END: return ROLE_END;
    case S_THUNK32_ST:
    case S_BLOCK32_ST:
    case S_WITH32_ST:
    case S_LPROCMIPS_ST:
    case S_GPROCMIPS_ST:
    case S_LPROCIA64_ST:
    case S_GPROCIA64_ST:
    case S_GMANPROC_ST:
    case S_LMANPROC_ST:
    case S_THUNK32:
    case S_BLOCK32:
    case S_WITH32:
    case S_LPROCMIPS:
    case S_GPROCMIPS:
    case S_LPROCIA64:
    case S_GPROCIA64:
    case S_GMANPROC:
    case S_LMANPROC:
    case S_LPROCMIPS_ID:
    case S_GPROCMIPS_ID:
    case S_LPROCIA64_ID:
    case S_GPROCIA64_ID: return ROLE_SCOPE;
    default: return ROLE_NONE;
    }
}

/* Makes an empty reader, which reads one module after the other and keeps its arrays between them. */
void module_reader_init(struct module_reader *r, const struct sl_pdb *pdb)
{
    *r = (struct module_reader){
        .pdb = pdb,
        .lines = {.account = {.budget = pdb->budget}},
        .account = {.budget = pdb->budget},
        .name_printer = {.pdb = pdb, .imports = {.pdb = pdb}, .account = {.budget = pdb->budget}},
    };
}

/* Frees a reader's arrays; also of one that read nothing. */
void module_reader_free(struct module_reader *r)
{
    name_printer_free(&r->name_printer);
    free(r->lines.raw);
    free(r->nodes);
    free(r->scopes);
    sl_account_release(&r->lines.account);
    sl_account_release(&r->account);
    *r = (struct module_reader){0};
}

/* Adds an empty function without parent to r->nodes. NULL when out of memory. */
static struct pdb_node *node_add(struct module_reader *r)
{
    if (!sl_account_grow(&r->account, &r->nodes, &r->node_capacity, r->node_count + 1, sizeof *r->nodes))
        return NULL;
    struct pdb_node *node = &r->nodes[r->node_count++];
    *node = (struct pdb_node){.parent = NO_NODE};
    return node;
}

/* ---- the records ---- */

SL_ORDER_BY(by_address, struct sl_function, address)

/* Sorts the contiguous parts of a function's code by address and joins adjacent ones. The tool that rearranged the program may have
 * inserted code between two parts, such as counters for profiling: it belongs to no other function, so both parts and it become one.
 * Returns the new number of parts. */
static size_t join_pieces(struct pdb_function_walk *w, struct sl_function *pieces, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(pieces, count, sizeof *pieces, by_address);
    for (size_t i = 0; i < count; i++) {
        struct sl_function *last = kept ? &pieces[kept - 1] : NULL;
        uint64_t end = last ? last->address + last->size : 0, begin = pieces[i].address;
        if (last && (begin <= end ||
                     omap_is_all_added(w->reader->pdb, (uint32_t)end, (uint32_t)begin, &w->reader->lines.account))) {
            if (begin + pieces[i].size > end)
                last->size = begin + pieces[i].size - last->address;
        } else {
            pieces[kept++] = pieces[i];
        }
    }
    return kept;
}

/* Finds the contiguous parts of a function's code in the image. Sets node->pieces to them if OMAP split the function or changed its address
 * or size; leaves it NULL otherwise. False when out of memory or budget. */
static bool add_pieces(struct pdb_function_walk *w, uint16_t section, uint32_t offset, struct pdb_node *node)
{
    const struct sl_pdb *pdb = w->reader->pdb;
    const struct sl_function whole = node->function;
    struct sl_function *pieces = NULL;
    struct code_piece piece;
    struct code_pieces left = pdb_pieces(pdb, section, offset, (uint32_t)whole.size);
    size_t count = 0, capacity = 0;
    while (pdb_next_piece(pdb, &left, &w->reader->lines.account, &piece)) {
        struct sl_function *last = count ? &pieces[count - 1] : NULL;
        if (last && last->address + last->size == piece.address) { /* continues the part before */
            last->size += piece.size;
            continue;
        }
        if (!sl_account_spend(&w->reader->lines.account, STEPS_PER_PIECE) ||
            !sl_grow_in_arena(w->arena, &pieces, &capacity, count + 1, sizeof *pieces))
            return false;
        pieces[count] = whole;
        pieces[count].address = piece.address;
        pieces[count++].size = piece.size;
    }
    count = join_pieces(w, pieces, count);
    if (count == 1 && pieces->address == whole.address && pieces->size == whole.size)
        return true;
    node->pieces = pieces;
    node->piece_count = (uint32_t)count;
    return true;
}

/* Adds a function with the name w->name and the lines at section:offset, and sets `*node` to its number. True with `*node` unchanged if its
 * code is not in the image. False when out of memory or budget. */
static bool pdb_functions_add_function(struct pdb_function_walk *w, uint16_t section, uint32_t offset, uint32_t size,
                                       uint32_t *node)
{
    uint32_t address = pdb_address(w->reader->pdb, section, offset);
    if (address == NOT_MAPPED)
        return true;
    struct pdb_node *added = node_add(w->reader);
    if (!added)
        return false;
    added->function = (struct sl_function){.address = address, .size = size, .name = w->name};
    *node = (uint32_t)(added - w->reader->nodes);
    if (w->reader->pdb->has_omap && !add_pieces(w, section, offset, added))
        return false;
    return added->pieces ? line_table_function(&w->reader->lines, section, offset, added->pieces, added->piece_count)
                         : line_table_function(&w->reader->lines, section, offset, &added->function, 1);
}

/* Reads a procedure (S_GPROC32 and similar records), adds its function and sets `*node` to its number. Also sets w->name and w->procedure
 * for a record of separated code after it. True with `*node` unchanged if the record is damaged or its code is not in the image; false when
 * out of memory. */
static bool read_procedure(struct pdb_function_walk *w, uint16_t kind, struct sl_reader *r, uint32_t *node)
{
    sl_reader_skip(r, 12); /* parent, end, next */
    uint32_t size = sl_read_u32(r);
    sl_reader_skip(r, 8); /* end of the prologue, start of the epilogue */
    uint32_t type = sl_read_u32(r), offset = sl_read_u32(r);
    uint16_t section = sl_read_u16(r);
    sl_read_u8(r); /* flags */
    struct sl_str name;
    if (kind == S_LPROC32_ST || kind == S_GPROC32_ST) { /* older records: the name begins with its length */
        struct sl_bytes text = sl_read_bytes(r, sl_read_u8(r));
        name = (struct sl_str){(const char *)text.data, text.size};
    } else {
        name = sl_read_cstr(r);
    }
    if (r->failed || pdb_address(w->reader->pdb, section, offset) == NOT_MAPPED)
        return true;
    /* `type` is a number in the id stream, not the type itself */
    bool is_id = kind == S_LPROC32_ID || kind == S_GPROC32_ID || kind == S_LPROC32_DPC_ID;
    w->name = name_printer_print_procedure(&w->reader->name_printer, w->arena, name, type, is_id);
    w->procedure = (struct pdb_code_range){offset, section};
    w->has_procedure = true;
    return pdb_functions_add_function(w, section, offset, size, node);
}

/* Reads separated code (S_SEPCODE), which the compiler placed away from its procedure, such as the cold part. It becomes a function with
 * the procedure's name. The record has no name, so it is used only if the last procedure has the offset that it states; else `*node` stays
 * unchanged (true). False when out of memory. */
static bool read_separated(struct pdb_function_walk *w, struct sl_reader *r, uint32_t *node)
{
    sl_reader_skip(r, 8); /* parent, end */
    uint32_t size = sl_read_u32(r);
    sl_read_u32(r); /* flags */
    uint32_t offset = sl_read_u32(r), parent_offset = sl_read_u32(r);
    uint16_t section = sl_read_u16(r);
    sl_read_u16(r); /* section of the procedure */
    if (r->failed || !w->has_procedure || parent_offset != w->procedure.offset)
        return true;
    return pdb_functions_add_function(w, section, offset, size, node);
}

/* Reads an inlined call (S_INLINESITE) in the scope `around`, adds it and sets `*node` to its number. The record has no address: the call
 * extends from its first to its last line. True with `*node` unchanged for a call without name, lines or enclosing function, or nested too
 * deeply. False when out of memory; if only its lines could not be read for lack of memory, true, as the PDB records that. */
static bool read_inlined(struct pdb_function_walk *w, uint16_t kind, struct sl_reader *r, const struct scope *around,
                         uint32_t *node)
{
    uint32_t parent = around->node;
    struct module_reader *reader = w->reader;
    struct pdb_line_table *t = &reader->lines;
    sl_reader_skip(r, 8); /* parent, end */
    uint32_t id = sl_read_u32(r);
    if (kind == S_INLINESITE2)
        sl_read_u32(r); /* execution count of a profile */
    struct sl_bytes annotations = sl_read_bytes(r, sl_reader_left(r));
    if (r->failed || parent == NO_NODE || reader->nodes[parent].inline_depth > SL_MAX_INLINE_DEPTH)
        return true;
    struct inlinee *inlinee = line_table_inlinee(t, id);
    if (!inlinee || inlinee->nameless)
        return true;
    if (!inlinee->named) { /* printed once for all calls of the function */
        inlinee->named = name_printer_print_inlinee(&reader->name_printer, w->arena, id, &inlinee->name);
        inlinee->nameless = !inlinee->named;
    }
    struct sl_line *lines;
    uint32_t count;
    if (inlinee->nameless || !inline_lines(t, inlinee, around->procedure.offset, annotations))
        return true;
    if (!raw_lines_convert(t, around->procedure.section, &lines, &count))
        return false;
    if (!count)
        return true;
    struct pdb_node *added = node_add(reader);
    if (!added)
        return false;
    added->parent = parent;
    added->inline_depth = reader->nodes[parent].inline_depth + 1;
    added->function = (struct sl_function){
        .address = lines[0].address,
        .size = lines[count - 1].address + lines[count - 1].size - lines[0].address,
        .name = inlinee->name,
        .lines = lines,
        .line_count = count,
        .call_file = SL_NO_FILE, /* the record does not have the place of the call */
    };
    *node = (uint32_t)(added - reader->nodes);
    return true;
}

/* Opens the scope of a record. If a procedure or inline site makes no function, w->skip is set, so that all records inside it are skipped.
 * A scope of another kind, such as a block, belongs to the function around it. False when out of memory. */
static bool open_scope(struct pdb_function_walk *w, uint16_t kind, enum pdb_role role, struct sl_reader *r)
{
    struct scope around = {.node = NO_NODE}, scope;
    bool ok = true;
    if (w->depth)
        around = w->reader->scopes[w->depth - 1];
    scope = around;
    scope.node = NO_NODE;
    switch (role) {
    case ROLE_PROCEDURE: ok = read_procedure(w, kind, r, &scope.node); break;
    case ROLE_SEPARATED: ok = read_separated(w, r, &scope.node); break;
    case ROLE_INLINED: ok = read_inlined(w, kind, r, &around, &scope.node); break;
    default: scope.node = around.node; break;
    }
    if (role == ROLE_PROCEDURE || role == ROLE_SEPARATED)
        scope.procedure = w->procedure;
    if (role != ROLE_SCOPE && scope.node == NO_NODE)
        w->skip = w->depth;
    w->reader->scopes[w->depth] = scope;
    return ok;
}

/* Reads the records of a module in order: opens a scope at each record that begins one, and closes it at the end record. In a scope that is
 * skipped (w->skip), records are only counted, to find its end. False when out of memory. */
static bool walk_records(struct pdb_function_walk *w, struct sl_bytes symbols)
{
    struct sl_reader all = sl_reader(symbols, false);
    while (sl_reader_left(&all) >= 4) {
        uint16_t size = sl_read_u16(&all);
        struct sl_reader r = sl_reader(sl_read_bytes(&all, size), false);
        uint16_t kind = sl_read_u16(&r);
        if (all.failed || r.failed) /* damaged: what was read before is used */
            break;
        enum pdb_role role = get_role(kind);
        if (role == ROLE_NONE)
            continue;
        if (role == ROLE_END) {
            w->depth -= w->depth > 0;
            /* the scope that is skipped has ended */
            if (w->skip != NO_SKIP && w->depth <= w->skip)
                w->skip = NO_SKIP;
            continue;
        }
        /* only crafted files nest so deeply: what is deeper is skipped */
        if (w->skip == NO_SKIP && w->depth == MAX_SCOPES)
            w->skip = w->depth;
        if (w->skip == NO_SKIP && !open_scope(w, kind, role, &r))
            return false;
        w->depth++;
    }
    return true;
}

/* ---- the trees ---- */

SL_ORDER_BY(by_parent_and_address, struct pdb_child_scope, parent, address, node)

/* Copies the inlined calls of `whole`, a function that OMAP split, into `into`, its part [begin, end). Only calls with lines in that part
 * are copied, clipped to these lines. False when out of memory or budget. */
static bool clip_inlinees(struct module_reader *r, struct sl_arena *arena, const struct sl_function *whole,
                          uint64_t begin, uint64_t end, struct sl_function *into)
{
    struct sl_function *inlinees = SL_ARENA_ARRAY(arena, struct sl_function, whole->inlinee_count);
    into->inlinees = inlinees;
    into->inlinee_count = 0;
    if (!inlinees) /* out of memory, unless there are none */
        return !whole->inlinee_count;
    for (uint32_t i = 0; i < whole->inlinee_count; i++) {
        const struct sl_function *inlinee = &whole->inlinees[i];
        struct sl_function part = *inlinee;
        if (!sl_account_spend(&r->lines.account, STEPS_PER_PIECE) ||
            !line_table_clip(&r->lines, inlinee->lines, inlinee->line_count, begin, end, &part))
            return false;
        if (!part.line_count)
            continue;
        const struct sl_line *last = &part.lines[part.line_count - 1];
        part.address = part.lines->address;
        part.size = last->address + last->size - part.address;
        if (!clip_inlinees(r, arena, inlinee, begin, end, &part))
            return false;
        inlinees[into->inlinee_count++] = part;
    }
    return true;
}

/* Gives a function that has inlined calls but no lines a line without file over all its code, because readers find inlined calls only where
 * their caller has a line. False when out of memory. */
static bool cover_calls(struct sl_arena *arena, struct sl_function *f)
{
    if (f->line_count || !f->inlinee_count)
        return true;
    struct sl_line *line = SL_ARENA_NEW(arena, struct sl_line);
    if (!line)
        return false;
    *line = (struct sl_line){f->address, f->size, SL_NO_FILE, 0};
    f->lines = line;
    f->line_count = 1;
    return true;
}

/* Appends a function to `functions`, or a function for each contiguous part of its code if OMAP split it. False when out of memory or
 * budget. */
static bool add_outermost(struct module_reader *r, struct sl_arena *arena, const struct pdb_node *node,
                          struct sl_function *functions, size_t *count)
{
    if (!node->pieces) {
        functions[*count] = node->function;
        return cover_calls(arena, &functions[(*count)++]);
    }
    for (uint32_t i = 0; i < node->piece_count; i++) {
        struct sl_function *f = &functions[(*count)++];
        *f = node->pieces[i];
        if (!clip_inlinees(r, arena, &node->function, f->address, f->address + f->size, f) || !cover_calls(arena, f))
            return false;
    }
    return true;
}

/* Fills the batch with an array of all functions: first the outermost ones in the order of their records, then the inlined calls sorted by
 * parent and address, so that the `inlinees` of a parent are one part of the array. The nodes get their `inlinees` first and are then
 * copied into the array. False when out of memory or budget. */
static bool build_trees(struct module_reader *r, struct sl_arena *arena, struct sl_function_batch *batch)
{
    size_t count = r->node_count, outer = 0, inner = 0;
    struct pdb_child_scope *children =
        sl_arena_alloc(arena, count * sizeof *children + 1, _Alignof(struct pdb_child_scope));
    if (!children)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (r->nodes[i].parent == NO_NODE)
            outer += r->nodes[i].pieces ? r->nodes[i].piece_count : 1;
        else
            children[inner++] = (struct pdb_child_scope){r->nodes[i].function.address, r->nodes[i].parent, (uint32_t)i};
    }
    struct sl_function *functions =
        sl_arena_alloc(arena, (outer + inner) * sizeof *functions + 1, _Alignof(struct sl_function));
    if (!functions)
        return false;
    qsort(children, inner, sizeof *children, by_parent_and_address);
    for (size_t i = 0; i < inner; i++) {
        struct sl_function *parent = &r->nodes[children[i].parent].function;
        if (!parent->inlinee_count++)
            parent->inlinees = functions + outer + i;
    }
    for (size_t i = 0; i < inner; i++)
        functions[outer + i] = r->nodes[children[i].node].function;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        if (r->nodes[i].parent == NO_NODE && !add_outermost(r, arena, &r->nodes[i], functions, &at))
            return false;
    *batch = (struct sl_function_batch){
        .files = r->lines.files,
        .file_count = r->lines.file_count,
        .functions = functions,
        .function_count = outer,
    };
    return true;
}

/* Reads the functions of a module into `batch`, in the arena; none if the module has no symbols. False if its stream is damaged, and when
 * out of memory, which is recorded in the PDB. */
bool module_read(struct module_reader *r, const struct pdb_module *module, struct sl_arena *arena,
                 struct sl_function_batch *batch)
{
    struct module_bytes bytes;
    struct pdb_function_walk w = {.reader = r, .arena = arena, .skip = NO_SKIP};
    *batch = (struct sl_function_batch){0};
    if (!pdb_module_bytes(r->pdb, module, arena, &bytes))
        return false;
    if (!bytes.symbols.size)
        return true;
    r->node_count = 0;
    if (!r->scopes)
        r->scopes = calloc(MAX_SCOPES, sizeof *r->scopes);
    bool memory = r->scopes && line_table_open(&r->lines, r->pdb, bytes.c13, arena);
    if (memory)
        name_printer_begin_module(&r->name_printer, r->lines.imports);
    memory = memory && walk_records(&w, bytes.symbols) && build_trees(r, arena, batch);
    if (!memory)
        *r->pdb->msf.no_memory = true;
    return memory;
}
