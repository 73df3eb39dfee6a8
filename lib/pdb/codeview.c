/* CodeView in object files, from which linkers make a PDB. An object file has what one module of a PDB has, and the types.
 *
 *     .debug$S    u32 4, then subsections (kind u32, length u32, data, padding to 4); one section per COMDAT function
 *                   0xF1  symbol records, as in a module's stream
 *                   0xF3  names of source files, like /names in a PDB
 *                   0xF2, 0xF4, 0xF6 ..  lines, files, inlinees: as in a module's C13 part
 *     .debug$T    u32 4, then type records from 0x1000 on, including the ids, which a PDB has in the IPI stream
 *
 * Subsections of one kind are concatenated and then read like those of a module of a PDB. */
#include "pdb/impl.h"

#include "base/buf.h"

enum { SIGNATURE = 4, C13_SYMBOLS = 0xF1, C13_STRINGS = 0xF3, FIRST_TYPE = 0x1000 };
enum { LF_PRECOMP = 0x1509, LF_TYPESERVER2 = 0x1515 };

/* The subsections of all `.debug$S` sections, concatenated by kind. */
struct gathered {
    uint8_t *symbols, *c13; /* NULL at the first call of gather(), which only finds the sizes */
    size_t symbols_size, c13_size;
    struct sl_bytes strings;
};

/* Appends bytes, and zeros as padding, to the `*size` bytes at `to`, and increases `*size`. If `to` is NULL, only increases `*size`. */
static void append(uint8_t *to, size_t *size, struct sl_bytes bytes, size_t padding)
{
    if (to && bytes.size)
        memcpy(to + *size, bytes.data, bytes.size);
    if (to)
        memset(to + *size + bytes.size, 0, padding);
    *size += bytes.size + padding;
}

/* Concatenates the contents of all symbols subsections (0xF1) in g->symbols, and in g->c13 all other subsections (lines, files, inlinees)
 * with their headers. Called twice: first to find the sizes, then to copy. Of several string tables (0xF3) the first one is used. */
static void gather(const struct sl_codeview *parts, struct gathered *g)
{
    uint32_t kind;
    struct sl_bytes data;
    for (size_t i = 0; i < parts->section_count; i++) {
        struct sl_reader r = sl_reader(parts->sections[i], false);
        if (sl_read_u32(&r) != SIGNATURE)
            continue;
        for (size_t begin = sl_reader_offset(&r); c13_next(&r, &kind, &data); begin = sl_reader_offset(&r)) {
            if (kind == C13_SYMBOLS)
                append(g->symbols, &g->symbols_size, data, 0);
            else if (kind == C13_STRINGS)
                g->strings = g->strings.data ? g->strings : data;
            else
                append(g->c13, &g->c13_size, sl_bytes_part(parts->sections[i], begin, sl_reader_offset(&r) - begin),
                       -sl_reader_offset(&r) & 3); /* the last subsection may lack its padding */
        }
    }
}

/* Returns the file that has the types if the first record refers to one: the PDB of a type server (/Zi), or the object file of a
 * precompiled header. Else empty. */
static struct sl_str types_elsewhere(struct sl_bytes records)
{
    struct sl_reader r = sl_reader(records, false);
    sl_read_u16(&r); /* size */
    uint16_t leaf = sl_read_u16(&r);
    if (leaf == LF_TYPESERVER2)
        sl_reader_skip(&r, 20); /* GUID, age */
    else if (leaf == LF_PRECOMP)
        sl_reader_skip(&r, 12); /* first type, their number, signature */
    else
        return (struct sl_str){NULL, 0};
    struct sl_str name = sl_read_cstr(&r);
    return r.failed || !name.size ? SL_STR("another file") : name;
}

enum sl_code sl_pdb_open_codeview(const struct sl_codeview *parts, struct sl_arena *arena, struct sl_budget *budget,
                                  struct sl_pdb **out, struct sl_str *elsewhere, struct sl_error *error)
{
    enum { BYTES_PER_STEP = 32 }; /* bytes that are copied for one step of the work budget */
    struct gathered g = {.symbols = NULL};
    struct sl_pdb *pdb = SL_ARENA_NEW(arena, struct sl_pdb);
    struct sl_reader r = sl_reader(parts->types, false);
    gather(parts, &g);
    /* copying is charged, because the sections of a crafted file may overlap */
    if (!pdb || !sl_budget_spend(budget, (g.symbols_size + g.c13_size) / BYTES_PER_STEP))
        return sl_budget_fail(budget, error);
    g.symbols = sl_arena_alloc(arena, g.symbols_size + 1, 4);
    g.c13 = sl_arena_alloc(arena, g.c13_size + 1, 4);
    pdb->sections = SL_ARENA_NEW(arena, struct pdb_section);
    pdb->modules = SL_ARENA_NEW(arena, struct pdb_module);
    pdb->msf.no_memory =
        SL_ARENA_NEW(arena, _Atomic bool); /* the only member of msf that is used without a container */
    if (!g.symbols || !g.c13 || !pdb->sections || !pdb->modules || !pdb->msf.no_memory)
        return sl_budget_fail(budget, error);
    g.symbols_size = g.c13_size = 0;
    gather(parts, &g); /* now copies */
    pdb->arena = arena;
    pdb->budget = budget;
    pdb->sections[0] = (struct pdb_section){.size = parts->code_size, .executable = true}; /* all code, at address 0 */
    pdb->section_count = pdb->module_count = 1;
    pdb->modules[0].stream = NO_STREAM; /* then pdb_module_bytes() returns pdb->object */
    pdb->object = (struct module_bytes){{g.symbols, g.symbols_size}, {g.c13, g.c13_size}};
    pdb->names = g.strings;
    pdb->symbol_stream = pdb->fpo_stream = pdb->frame_stream = NO_STREAM;
    /* there is no type stream to read later: the types are read below */
    pdb->types_tried = true;
    *elsewhere = (struct sl_str){NULL, 0};
    if (sl_read_u32(&r) == SIGNATURE) {
        struct sl_bytes records = sl_read_bytes(&r, sl_reader_left(&r));
        *elsewhere = types_elsewhere(records);
        if (!type_table_build(&pdb->msf, records, FIRST_TYPE, arena, &pdb->types))
            return sl_budget_fail(budget, error);
        pdb->ids = pdb->types; /* one numbering for both in object files */
    }
    *out = pdb;
    return SL_OK;
}
