/* Public symbols and variables.
 *
 *     symbol stream   S_PUB32    flags u32, offset u32, section u16, name     functions, and data: tables, constants, strings
 *                     S_GDATA32  type u32, offset u32, section u16, name      also S_LDATA32, S_GTHREAD32, S_LTHREAD32
 *     module streams  S_LDATA32  the same fields, also for static variables in functions */
#include "pdb/impl.h"

enum {
    S_LDATA32_ST = 0x1007,
    S_GDATA32_ST = 0x1008,
    S_PUB32_ST = 0x1009,
    S_LTHREAD32_ST = 0x100E,
    S_GTHREAD32_ST = 0x100F,
    S_LDATA32 = 0x110C,
    S_GDATA32 = 0x110D,
    S_PUB32 = 0x110E,
    S_LTHREAD32 = 0x1112,
    S_GTHREAD32 = 0x1113,
};

static bool is_public(uint16_t kind)
{
    return kind == S_PUB32 || kind == S_PUB32_ST;
}

static bool is_variable(uint16_t kind)
{
    return kind == S_LDATA32 || kind == S_GDATA32 || kind == S_LTHREAD32 || kind == S_GTHREAD32 ||
           kind == S_LDATA32_ST || kind == S_GDATA32_ST || kind == S_LTHREAD32_ST || kind == S_GTHREAD32_ST;
}

struct symbol_record {
    uint32_t type, offset; /* type: flags of a public symbol */
    uint16_t section;
    struct sl_str name;
};

/* Reads a record of a variable or public symbol; both have the same fields (in a public symbol `type` has flags instead). False if it is
 * cut off. */
static bool read_record(struct sl_bytes bytes, uint16_t kind, struct symbol_record *record)
{
    struct sl_reader r = sl_reader(bytes, false);
    *record = (struct symbol_record){.type = sl_read_u32(&r), .offset = sl_read_u32(&r), .section = sl_read_u16(&r)};
    /* older records ("_ST") have a length byte before the name, newer ones a NUL after it */
    if (kind < 0x1100) {
        struct sl_bytes text = sl_read_bytes(&r, sl_read_u8(&r));
        record->name = (struct sl_str){(const char *)text.data, text.size};
    } else {
        record->name = sl_read_cstr(&r);
    }
    return !r.failed;
}

/* Finds the next record whose kind is `wanted`, and moves `*at` past it. Sets `bytes` to its contents after the kind, which are in the file
 * or in `arena`; `scratch` is memory for sizes and kinds of records. False at the end of the stream, at a damaged record, and when out of
 * memory: sl_pdb_status() reports the last of these. */
static bool stream_next(const struct msf_stream *stream, uint64_t *at, struct sl_arena *scratch, struct sl_arena *arena,
                        bool (*wanted)(uint16_t kind), uint16_t *kind, struct sl_bytes *bytes)
{
    while (msf_view(stream, *at, 4, scratch, bytes)) {
        struct sl_reader r = sl_reader(*bytes, false);
        uint16_t size = sl_read_u16(&r);
        uint64_t data = *at + 4;
        *kind = sl_read_u16(&r);
        if (size < 2) /* it includes the kind: the stream is damaged */
            return false;
        *at += 2 + (uint64_t)size;
        if (wanted(*kind) && msf_view(stream, data, size - 2, arena, bytes))
            return true; /* if the contents are cut off, the next msf_view() fails and ends the loop */
    }
    return false;
}

/* Returns the number of bytes from the symbol to the end of its section; 0 if the symbol is not inside the section. */
static uint64_t bytes_to_section_end(const struct sl_pdb *pdb, const struct symbol_record *record)
{
    uint32_t size = pdb->sections[record->section - 1].size;
    return record->offset < size ? size - record->offset : 0;
}

enum sl_code sl_pdb_publics(const struct sl_pdb *pdb, struct sl_arena *arena,
                            bool (*add)(void *arg, uint64_t address, uint64_t bytes_to_end, struct sl_str name),
                            void *arg, struct sl_error *error)
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    struct symbol_record record;
    struct sl_arena scratch = {0};
    enum sl_code code = SL_OK;
    uint64_t at = 0;
    uint16_t kind;
    msf_stream(&pdb->msf, pdb->symbol_stream, &stream); /* empty if there is none */
    while (code == SL_OK && stream_next(&stream, &at, &scratch, arena, is_public, &kind, &bytes)) {
        if (!read_record(bytes, kind, &record))
            continue; /* one damaged record does not hide the others */
        uint32_t address = pdb_address(pdb, record.section, record.offset);
        if (address == NOT_MAPPED || !pdb->sections[record.section - 1].executable)
            continue;                                               /* data: sl_pdb_data() lists it */
        uint64_t bytes_to_end = bytes_to_section_end(pdb, &record); /* 0: the symbol lies behind its section */
        if (bytes_to_end && !add(arg, address, bytes_to_end, record.name))
            code = sl_fail(error, SL_BUSY, "out of memory");
    }
    sl_arena_free(&scratch);
    return code == SL_OK ? sl_pdb_status(pdb, error) : code; /* stream_next() may have ended early, out of memory */
}

/* ---- data ---- */

struct data_walk {
    const struct sl_pdb *pdb;
    struct name_printer name_printer; /* for the sizes of types */
    struct sl_arena *arena;
    bool (*add)(void *arg, const struct sl_pdb_data *data);
    void *arg;
};

/* Passes a record of a variable or public symbol to `add`. Skips (true) damaged records, and symbols that are in executable sections, in no
 * section or beyond its end. False if `add` returns false or the budget is exhausted. */
static bool add_record(struct data_walk *w, uint16_t kind, struct sl_bytes bytes)
{
    struct symbol_record record;
    if (!sl_account_spend(&w->name_printer.account, STEPS_PER_RECORD + (uint32_t)bytes.size / BYTES_PER_STEP))
        return false;
    if (!read_record(bytes, kind, &record))
        return true;
    uint32_t address = pdb_address(w->pdb, record.section, record.offset);
    if (address == NOT_MAPPED || w->pdb->sections[record.section - 1].executable)
        return true;
    struct sl_pdb_data data = {
        .address = address,
        .size = is_public(kind) ? 0 : name_printer_type_size(&w->name_printer, record.type), /* public: no type */
        .bytes_to_end = bytes_to_section_end(w->pdb, &record),
        .name = record.name,
        .is_public = is_public(kind),
    };
    return !data.bytes_to_end || w->add(w->arg, &data); /* 0: it lies behind its section */
}

/* Passes the records of the symbol stream whose kind is `wanted` to add_record(). False if w->add returns false or the budget is
 * exhausted. */
static bool walk_stream(struct data_walk *w, bool (*wanted)(uint16_t kind))
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    struct sl_arena scratch = {0};
    uint64_t at = 0;
    uint16_t kind;
    bool ok = true;
    msf_stream(&w->pdb->msf, w->pdb->symbol_stream, &stream); /* empty if there is none */
    while (ok && stream_next(&stream, &at, &scratch, w->arena, wanted, &kind, &bytes))
        ok = add_record(w, kind, bytes);
    sl_arena_free(&scratch);
    return ok;
}

/* Passes the variables of one module to add_record(). Its subsection of cross-module imports is needed for the sizes of types that other
 * modules define. A module that cannot be read has no variables (true). False if w->add returns false or the budget is used up. */
static bool walk_module(struct data_walk *w, const struct pdb_module *module)
{
    struct module_bytes bytes;
    if (!pdb_module_bytes(w->pdb, module, w->arena, &bytes))
        return true;
    struct sl_reader r = sl_reader(bytes.c13, false);
    struct sl_bytes imports = {0}, data;
    for (uint32_t kind; c13_next(&r, &kind, &data);)
        if (kind == C13_IMPORTS)
            imports = data;
    name_printer_begin_module(&w->name_printer, imports);
    r = sl_reader(bytes.symbols, false);
    bool ok = true;
    while (ok && sl_reader_left(&r) >= 4) {
        uint16_t size = sl_read_u16(&r), kind = sl_read_u16(&r);
        if (size < 2) /* it includes the kind: the rest of the module is damaged */
            break;
        data = sl_read_bytes(&r, size - 2);
        ok = !is_variable(kind) || add_record(w, kind, data);
    }
    return ok;
}

/* Variables, whose types give their sizes, come first; public symbols, which have no sizes, come last. */
enum sl_code sl_pdb_data(struct sl_pdb *pdb, struct sl_arena *arena,
                         bool (*add)(void *arg, const struct sl_pdb_data *data), void *arg, struct sl_error *error)
{
    if (!pdb_read_types(pdb))
        return sl_fail(error, SL_BUSY, "out of memory");
    struct data_walk w = {
        .pdb = pdb,
        .name_printer = {.pdb = pdb, .imports = {.pdb = pdb}, .account = {.budget = pdb->budget}},
        .arena = arena,
        .add = add,
        .arg = arg,
    };
    bool ok = walk_stream(&w, is_variable);
    for (size_t i = 0; ok && i < pdb->module_count; i++)
        ok = walk_module(&w, &pdb->modules[i]);
    ok = ok && walk_stream(&w, is_public);
    name_printer_free(&w.name_printer);
    /* SL_BUSY also if `add` returned false while budget is left */
    return ok ? sl_pdb_status(pdb, error) : sl_budget_fail(pdb->budget, error);
}
