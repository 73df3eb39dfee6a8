/* Opens a PDB: identity, named streams, the debug information header (DBI), sections, address translation. */
#include "pdb/impl.h"

enum { DBI_HEADER = 64, MAX_NAME = 4096 };
enum {
    DEBUG_FPO = 0,
    DEBUG_OMAP_TO = 3,
    DEBUG_OMAP_FROM = 4,
    DEBUG_SECTIONS = 5,
    DEBUG_FRAMES = 9,
    DEBUG_ORIGINAL_SECTIONS = 10
};
enum { SECTION_HEADER = 40, SECTION_CODE = 0x20, SECTION_EXECUTE = 0x20000000 };

struct dbi {
    uint32_t age, module_size, debug_offset, debug_size;
    uint16_t machine, symbol_stream;
};

/* Reads the debug id, GUID and age, from the info stream. The first three fields of the GUID are stored little-endian; a debug id has the
 * order of the text form, so their bytes are swapped. False if the stream is too short. */
static bool read_info(struct sl_bytes info, struct sl_pdb_info *out)
{
    struct sl_reader r = sl_reader(info, false);
    sl_read_u32(&r); /* version */
    sl_read_u32(&r); /* time stamp */
    out->debug_id.age = sl_read_u32(&r);
    struct sl_bytes guid = sl_read_bytes(&r, 16);
    if (r.failed)
        return false;
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < 16; i++)
        out->debug_id.uuid[i] = guid.data[order[i]];
    return true;
}

/* Reads the header of the DBI stream. The list of further debug streams (FPO, OMAP, sections ...) comes last in the stream, so its offset
 * is the sum of the sizes of all parts before it. False if the header is cut off or of an old version. */
static bool read_dbi(const struct msf_stream *stream, struct sl_arena *arena, struct dbi *dbi)
{
    struct sl_bytes bytes;
    if (!msf_view(stream, 0, DBI_HEADER, arena, &bytes))
        return false;
    struct sl_reader r = sl_reader(bytes, false);
    if (sl_read_u32(&r) != 0xFFFFFFFF) /* signature; older versions have none */
        return false;
    sl_read_u32(&r); /* version */
    dbi->age = sl_read_u32(&r);
    sl_reader_skip(&r, 8); /* global stream, build number, public stream, version of the DLL */
    dbi->symbol_stream = sl_read_u16(&r);
    sl_read_u16(&r); /* build number of the DLL */
    dbi->module_size = sl_read_u32(&r);
    uint64_t offset = DBI_HEADER + (uint64_t)dbi->module_size;
    for (int i = 0; i < 4; i++) /* contributions, section map, sources, type servers */
        offset += sl_read_u32(&r);
    sl_read_u32(&r); /* index of the MFC type server */
    dbi->debug_size = sl_read_u32(&r);
    offset += sl_read_u32(&r); /* edit and continue */
    sl_read_u16(&r);           /* flags */
    dbi->machine = sl_read_u16(&r);
    dbi->debug_offset = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset;
    return !r.failed;
}

/* Reads a stream of section headers, 40 bytes each, into pdb->sections. False, with the sections as before, if there is no such stream, or
 * when out of memory. */
static bool pdb_read_sections(struct sl_pdb *pdb, uint16_t index)
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    if (!msf_stream(&pdb->msf, index, &stream) || !msf_all(&stream, pdb->arena, &bytes))
        return false;
    size_t count = bytes.size / SECTION_HEADER;
    struct pdb_section *sections = SL_ARENA_ARRAY(pdb->arena, struct pdb_section, count + 1);
    if (!sections) {
        *pdb->msf.no_memory = true;
        return false;
    }
    struct sl_reader r = sl_reader(bytes, false);
    for (size_t i = 0; i < count; i++) {
        sl_reader_skip(&r, 8); /* name */
        sections[i].size = sl_read_u32(&r);
        sections[i].address = sl_read_u32(&r);
        uint32_t raw_size = sl_read_u32(&r);
        if (!sections[i].size) /* the virtual size, which old linkers leave 0 */
            sections[i].size = raw_size;
        sl_reader_skip(&r, 16); /* where the data, relocations and line numbers are, and how many */
        sections[i].executable = sl_read_u32(&r) & (SECTION_CODE | SECTION_EXECUTE);
    }
    pdb->sections = sections;
    pdb->section_count = count;
    return true;
}

/* Returns the highest end of a section: the size of the image. */
static uint64_t end_of_sections(const struct sl_pdb *pdb)
{
    uint64_t end = 0;
    for (size_t i = 0; i < pdb->section_count; i++) {
        uint64_t last = (uint64_t)pdb->sections[i].address + pdb->sections[i].size;
        end = last > end ? last : end;
    }
    return end;
}

/* Reads the list of further debug streams, the sections and OMAP. With OMAP, symbols refer to the sections of the original program. If the
 * file has a stream of these, pdb->sections become the original ones, and those of the image only give the image size. False when out of
 * memory or budget. */
static bool read_debug_streams(struct sl_pdb *pdb, const struct msf_stream *dbi_stream, const struct dbi *dbi,
                               uint64_t *image_size)
{
    uint16_t streams[DEBUG_ORIGINAL_SECTIONS + 1];
    struct sl_bytes bytes;
    uint64_t size = dbi->debug_size < sizeof streams ? dbi->debug_size : sizeof streams;
    if (!msf_view(dbi_stream, dbi->debug_offset, size, pdb->arena, &bytes))
        bytes = (struct sl_bytes){NULL, 0};
    struct sl_reader r = sl_reader(bytes, false);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        streams[i] = sl_reader_left(&r) >= 2 ? sl_read_u16(&r) : (uint16_t)NO_STREAM;
    pdb->fpo_stream = streams[DEBUG_FPO];
    pdb->frame_stream = streams[DEBUG_FRAMES];
    if (pdb_read_sections(pdb, streams[DEBUG_SECTIONS]))
        *image_size = end_of_sections(pdb);
    struct msf_stream from, to;
    bool original =
        streams[DEBUG_ORIGINAL_SECTIONS] != NO_STREAM && pdb_read_sections(pdb, streams[DEBUG_ORIGINAL_SECTIONS]);
    bool mapped = msf_stream(&pdb->msf, streams[DEBUG_OMAP_FROM], &from) && msf_all(&from, pdb->arena, &pdb->omap.from);
    pdb->has_omap = original || (mapped && pdb->omap.from.size);
    pdb->no_addresses = original && !mapped; /* rearranged, but the table to convert addresses is missing */
    /* without the table "to" there are no copies of code to find */
    if (!pdb->has_omap || !msf_stream(&pdb->msf, streams[DEBUG_OMAP_TO], &to) ||
        !msf_all(&to, pdb->arena, &pdb->omap.to))
        return true;
    pdb->omap.size = end_of_sections(pdb); /* pdb->sections are those of the original program now, if it has them */
    return omap_find_added(pdb);
}

/* Sets pdb->names to the texts of the /names stream, to which lines and frames refer by offset. A stream of another version than 1 and 2,
 * which has another layout, is ignored. */
static void read_names(struct sl_pdb *pdb, uint32_t index)
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    if (!msf_stream(&pdb->msf, index, &stream) || !msf_all(&stream, pdb->arena, &bytes))
        return;
    struct sl_reader r = sl_reader(bytes, false);
    uint32_t magic = sl_read_u32(&r), version = sl_read_u32(&r);
    if (magic == 0xEFFEEFFE && (version == 1 || version == 2))
        pdb->names = sl_read_bytes(&r, sl_read_u32(&r));
}

/* Opens the source server stream and sets info->srcsrv_vcs. If the stream is not readable, pdb->srcsrv stays NULL. */
static void read_srcsrv(struct sl_pdb *pdb, uint32_t index, struct sl_pdb_info *info)
{
    struct msf_stream stream;
    struct sl_bytes bytes;
    if (msf_stream(&pdb->msf, index, &stream) && msf_all(&stream, pdb->arena, &bytes))
        pdb->srcsrv = srcsrv_open((struct sl_str){(const char *)bytes.data, bytes.size}, pdb->arena, pdb->msf.no_memory,
                                  &info->srcsrv_vcs);
}

/* Reads the list of modules; a damaged entry ends it. A stream belongs to one module: if a second module names it, that module gets none,
 * because reading a stream any number of times would cost far more than the file's size justifies. False when out of memory. */
static bool read_modules(struct sl_pdb *pdb, struct sl_bytes list)
{
    enum { MIN_MODULE = 64 + 2 }; /* bytes of an entry whose two names are empty */
    size_t capacity = list.size / MIN_MODULE;
    bool *taken = SL_ARENA_ARRAY(pdb->arena, bool, pdb->msf.stream_count + 1);
    pdb->modules = SL_ARENA_ARRAY(pdb->arena, struct pdb_module, capacity + 1);
    if (!taken || !pdb->modules)
        return false;
    struct sl_reader r = sl_reader(list, false);
    while (pdb->module_count < capacity && sl_reader_left(&r) >= MIN_MODULE) {
        struct pdb_module module = {0};
        sl_reader_skip(&r, 34); /* unused, first section contribution, flags */
        module.stream = sl_read_u16(&r);
        module.symbol_size = sl_read_u32(&r);
        module.c11_size = sl_read_u32(&r);
        module.c13_size = sl_read_u32(&r);
        sl_reader_skip(&r, 16); /* number of files, padding, unused, names of source and PDB */
        module.name = sl_read_cstr(&r);
        sl_read_cstr(&r); /* object file */
        if (r.failed)
            break;
        uint64_t padding = -(uint64_t)sl_reader_offset(&r) & 3;
        sl_reader_skip(&r, padding < sl_reader_left(&r) ? padding : sl_reader_left(&r));
        if (module.stream >= pdb->msf.stream_count || taken[module.stream])
            module.stream = NO_STREAM;
        else
            taken[module.stream] = true;
        pdb->modules[pdb->module_count++] = module;
    }
    return true;
}

enum sl_code sl_pdb_status(const struct sl_pdb *pdb, struct sl_error *error)
{
    return *pdb->msf.no_memory || sl_budget_exhausted(pdb->budget) ? sl_budget_fail(pdb->budget, error) : SL_OK;
}

enum sl_code sl_pdb_open(struct sl_bytes file, struct sl_arena *arena, struct sl_budget *budget, struct sl_pdb **out,
                         struct sl_pdb_info *info, struct sl_error *error)
{
    struct msf_stream stream;
    struct sl_bytes bytes, list;
    struct dbi dbi = {0};
    uint32_t index;
    *info = (struct sl_pdb_info){0};
    struct sl_pdb *pdb = SL_ARENA_NEW(arena, struct sl_pdb);
    if (!pdb)
        return sl_fail(error, SL_BUSY, "out of memory");
    pdb->arena = arena;
    pdb->budget = budget;
    enum sl_code code = msf_open(file, arena, &pdb->msf, error);
    if (code != SL_OK)
        return code;
    if (!msf_stream(&pdb->msf, STREAM_INFO, &stream) || !msf_all(&stream, arena, &bytes) || !read_info(bytes, info))
        return msf_invalid(&pdb->msf, pdb->budget, error, "no info stream");
    if (!msf_stream(&pdb->msf, STREAM_DBI, &stream) || !read_dbi(&stream, arena, &dbi))
        return msf_invalid(&pdb->msf, pdb->budget, error, "no debug information stream");
    if (!msf_view(&stream, DBI_HEADER, dbi.module_size, arena, &list))
        return msf_invalid(&pdb->msf, pdb->budget, error, "module list extends beyond its stream");
    if (dbi.age) /* images refer to the age of the DBI stream; tools that change a PDB later count up that of the info stream */
        info->debug_id.age = dbi.age;
    info->machine = dbi.machine;
    pdb->symbol_stream = dbi.symbol_stream;
    if (!read_debug_streams(pdb, &stream, &dbi, &info->image_size))
        return sl_budget_fail(pdb->budget, error);
    pdb->info = bytes;
    if (pdb_find_named_stream(bytes, "/names", &index))
        read_names(pdb, index);
    if (pdb_find_named_stream(bytes, "srcsrv", &index))
        read_srcsrv(pdb, index, info);
    if (!read_modules(pdb, list))
        return sl_fail(error, SL_BUSY, "out of memory");
    *out = pdb;
    return sl_pdb_status(pdb, error);
}

/* Converts section (numbered from 1) and offset to an address of the original program. False if there is no such section, or the address
 * does not fit into 32 bits. */
static bool section_address(const struct sl_pdb *pdb, uint16_t section, uint32_t offset, uint32_t *address)
{
    return section != 0 && section <= pdb->section_count &&
           !__builtin_add_overflow(pdb->sections[section - 1].address, offset, address);
}

uint32_t pdb_address(const struct sl_pdb *pdb, uint16_t section, uint32_t offset)
{
    uint32_t address;
    return section_address(pdb, section, offset, &address) ? pdb_translate(pdb, address) : NOT_MAPPED;
}

struct code_pieces pdb_pieces(const struct sl_pdb *pdb, uint16_t section, uint32_t offset, uint32_t size)
{
    uint32_t address;
    return section_address(pdb, section, offset, &address) && !pdb->no_addresses ? omap_pieces(pdb, address, size)
                                                                                 : (struct code_pieces){0};
}

/* Finds symbols and line information of a module. Its stream has symbols, old line information (C11, not read) and new line information
 * (C13). The only module of an object file has no stream: its parts are in pdb->object, which is empty for PDB files. False if the stream
 * is damaged, or when out of memory. */
bool pdb_module_bytes(const struct sl_pdb *pdb, const struct pdb_module *module, struct sl_arena *arena,
                      struct module_bytes *out)
{
    struct msf_stream stream;
    struct sl_bytes symbols;
    *out = pdb->object;
    if (module->stream == NO_STREAM)
        return true;
    uint64_t lines = (uint64_t)module->symbol_size + module->c11_size;
    if (!msf_stream(&pdb->msf, module->stream, &stream) || !msf_view(&stream, 0, module->symbol_size, arena, &symbols))
        return false;
    struct sl_reader r = sl_reader(symbols, false);
    if (symbols.size && sl_read_u32(&r) != 4) /* other signatures: symbols older than C13 */
        return false;
    out->symbols = sl_read_bytes(&r, sl_reader_left(&r));
    return msf_view(&stream, lines, module->c13_size, arena, &out->c13);
}

/* Returns the text at an offset of the /names stream; empty if there is none or it is longer than MAX_NAME. */
struct sl_str pdb_name(const struct sl_pdb *pdb, uint32_t offset, struct sl_account *account)
{
    uint64_t left = offset < pdb->names.size ? pdb->names.size - offset : 0;
    return sl_account_read_name(account, sl_bytes_slice(pdb->names, offset, left < MAX_NAME ? left : MAX_NAME, NULL),
                                0);
}
