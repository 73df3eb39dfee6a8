/* Reads the header of the table, and its records. */
#include "go/impl.h"

enum {
    MAGIC_12 = 0xFFFFFFFB,
    MAGIC_116 = 0xFFFFFFFA,
    MAGIC_118 = 0xFFFFFFF0,
    MAGIC_120 = 0xFFFFFFF1,
    PCDATA_INLINED = 2,   /* values by code offset: the index of the inlined call */
    FUNCDATA_INLINED = 3, /* the tree of inlined calls */
};

/* This offset stands for data that a function does not have, and for a file without name. */
static const uint32_t no_data = UINT32_MAX;

/* Sets the version of the table's format by its magic number; false for an unknown one. */
static bool read_version(uint32_t magic, enum go_version *version)
{
    switch (magic) {
    case MAGIC_116: *version = GO_116; return true;
    case MAGIC_118: *version = GO_118; return true;
    case MAGIC_120: *version = GO_120; return true;
    default: return false;
    }
}

/* True if the address is in an executable segment of the object. */
static bool is_code(const struct go_table *t, uint64_t address)
{
    struct sl_segment s;
    address -= sl_object_info(t->object)->load_address;
    for (size_t i = 0; sl_object_segment(t->object, i, &s); i++)
        if (s.executable && address - s.address < s.memory_size)
            return true;
    return false;
}

/* Returns the absolute address of .text; 0 if there is none. Position-independent programs need it: the loader fills in the header's
 * pointer, so the file does not have it. */
static uint64_t text_section(const struct go_table *t)
{
    struct sl_bytes text;
    uint64_t address;
    return sl_object_section(t->object, "text", &text, &address) ? address + sl_object_info(t->object)->load_address
                                                                 : 0;
}

enum sl_code go_table_open(struct go_table *t, struct sl_object *object, struct sl_account *account,
                           struct sl_error *error)
{
    *t = (struct go_table){.object = object, .account = account, .big_endian = sl_object_info(object)->big_endian};
    if (!sl_object_go_table(object, &t->bytes, &t->address))
        return sl_fail(error, SL_NOT_FOUND, "the file is not a Go program: it has no Go line table");
    t->address += sl_object_info(object)->load_address;
    struct sl_reader r = sl_reader(t->bytes, t->big_endian);
    uint32_t magic = sl_read_u32(&r);
    if (magic == MAGIC_12)
        return sl_fail(error, SL_UNSUPPORTED, "Go line tables before version 1.16 are not supported");
    if (!read_version(magic, &t->version) || sl_read_u16(&r) != 0) /* two zero bytes follow the magic number */
        return sl_fail(error, SL_MALFORMED, "Go line table: unknown magic number, maybe of a newer version of Go");
    t->quantum = sl_read_u8(&r);
    t->pointer_size = sl_read_u8(&r);
    if ((t->quantum != 1 && t->quantum != 2 && t->quantum != 4) || (t->pointer_size != 4 && t->pointer_size != 8))
        return sl_fail(error, SL_MALFORMED, "Go line table: invalid quantum or pointer size");
    t->count = sl_read_uint(&r, t->pointer_size);
    sl_read_uint(&r, t->pointer_size); /* number of files */
    t->text = t->version >= GO_118 ? sl_read_uint(&r, t->pointer_size) : 0;
    t->names_at = sl_read_uint(&r, t->pointer_size);
    t->cus_at = sl_read_uint(&r, t->pointer_size);
    t->names = sl_bytes_from(t->bytes, t->names_at);
    t->cus = sl_bytes_from(t->bytes, t->cus_at);
    t->files = sl_bytes_from(t->bytes, sl_read_uint(&r, t->pointer_size));
    t->values = sl_bytes_from(t->bytes, sl_read_uint(&r, t->pointer_size));
    t->functions = sl_bytes_from(t->bytes, sl_read_uint(&r, t->pointer_size));
    size_t entry = t->version >= GO_118 ? 8 : 2u * t->pointer_size;
    if (r.failed || !t->functions.size || t->count > t->functions.size / entry)
        return sl_fail(error, SL_MALFORMED, "Go line table: it ends before the last of its %llu functions",
                       (unsigned long long)t->count);
    if (t->version >= GO_118)
        go_module_find(t);
    /* in the file of a position-independent program `text` does not point to code: the loader sets it */
    if (t->version >= GO_118 && !is_code(t, t->text))
        t->text = text_section(t);
    return SL_OK;
}

/* Returns the tree of inlined calls (FUNCDATA_INLINED). `r` is past the fixed part of the record: `values` u32 offsets of PCDATA
 * follow, then `data` FUNCDATA: u32 offsets since GO_118, aligned pointers before. Empty if there is none. */
static struct sl_bytes read_tree(const struct go_table *t, struct sl_reader *r, uint32_t values, uint8_t data)
{
    uint64_t load = sl_object_info(t->object)->load_address, address;
    if (data <= FUNCDATA_INLINED)
        return (struct sl_bytes){NULL, 0};
    if (t->version >= GO_118) {
        sl_reader_skip(r, (uint64_t)values * 4 + FUNCDATA_INLINED * 4);
        uint32_t offset = sl_read_u32(r);
        address = !r->failed && offset != no_data && t->tree_base ? t->tree_base + offset : 0;
    } else {
        sl_reader_skip(r, (uint64_t)values * 4);
        sl_reader_skip(r, -(uint64_t)sl_reader_offset(r) & (t->pointer_size - 1)); /* aligns to a pointer */
        sl_reader_skip(r, FUNCDATA_INLINED * t->pointer_size);
        address = sl_read_uint(r, t->pointer_size);
        address = r->failed ? 0 : address;
    }
    return address ? sl_object_at(t->object, address - load) : (struct sl_bytes){NULL, 0};
}

bool go_function_read(const struct go_table *t, uint64_t index, struct go_function *f)
{
    unsigned size = t->version >= GO_118 ? 4 : t->pointer_size;
    struct sl_reader r = sl_reader(t->functions, t->big_endian);
    /* the table has pairs of address and offset of the record; only the offset is used */
    sl_reader_seek(&r, index * 2 * size + size);
    sl_reader_seek(&r, sl_read_uint(&r, size));
    f->entry = t->version >= GO_118 ? t->text + sl_read_u32(&r) : sl_read_uint(&r, t->pointer_size);
    f->name = sl_account_read_name(t->account, t->names, sl_read_u32(&r));
    sl_reader_skip(&r, 12); /* size of arguments, deferred calls, stack sizes */
    f->files = sl_read_u32(&r);
    f->lines = sl_read_u32(&r);
    uint32_t values = sl_read_u32(&r);
    f->cu = sl_read_u32(&r);
    sl_reader_skip(&r, t->version >= GO_120 ? 7 : 3); /* startLine (since GO_120), funcID, flag, padding */
    uint8_t data = sl_read_u8(&r);
    if (r.failed)
        return false;
    struct sl_reader calls = r;
    sl_reader_skip(&calls, PCDATA_INLINED * 4);
    f->calls = values > PCDATA_INLINED ? sl_read_u32(&calls) : 0;
    f->tree = f->calls ? read_tree(t, &r, values, data) : (struct sl_bytes){NULL, 0};
    return true;
}

bool go_call_read(const struct go_table *t, const struct go_function *f, uint32_t index, struct go_call *call)
{
    /* The size of a node, and where its name is in it; parentPc follows the name. */
    size_t size = t->version >= GO_120 ? 16 : 20, name = t->version >= GO_120 ? 4 : 12;
    struct sl_reader r = sl_reader(f->tree, t->big_endian);
    sl_reader_seek(&r, (uint64_t)index * size + name);
    call->name = sl_account_read_name(t->account, t->names, sl_read_u32(&r));
    call->call_offset = sl_read_u32(&r);
    return !r.failed && call->name.size;
}

uint64_t go_file_index(const struct go_function *f, int32_t number)
{
    return (uint64_t)f->cu + (uint32_t)number;
}

struct sl_str go_file_name(const struct go_table *t, uint64_t index)
{
    struct sl_reader r = sl_reader(t->cus, t->big_endian);
    sl_reader_seek(&r, index * 4);
    uint32_t offset = sl_read_u32(&r);
    return r.failed || offset == no_data ? (struct sl_str){NULL, 0}
                                         : sl_account_read_name(t->account, t->files, offset);
}
