#include "symbfile/pclntab.h"

enum version { GO_116, GO_118, GO_120 };

struct table {
    struct sl_purse purse;
    struct sl_bytes bytes; /* from the header on */
    enum version version;
    uint8_t quantum, pointer_size;
    uint64_t count, file_count, text_start;
    struct sl_bytes names, cus, files, values, functions;
};

struct function {
    uint64_t entry;
    struct sl_str name;
    uint32_t file_values, line_values, cu;
};

/* ---- header ---- */
static uint32_t read_magic(struct sl_bytes bytes)
{
    struct sl_reader r = sl_reader(bytes, false);
    return sl_read_u32(&r);
}

static bool magic_version(uint32_t magic, enum version *version)
{
    switch (magic) {
    case 0xFFFFFFFA: *version = GO_116; return true;
    case 0xFFFFFFF0: *version = GO_118; return true;
    case 0xFFFFFFF1: *version = GO_120; return true;
    }
    return false;
}

static bool is_header(struct sl_bytes bytes, uint8_t quantum)
{
    enum version version;
    return bytes.size >= 8 && bytes.data[4] == 0 && bytes.data[5] == 0 && bytes.data[6] == quantum &&
           bytes.data[7] == 8 && magic_version(read_magic(bytes), &version);
}

/* Where the section has no name, the header is looked for in all segments. */
static bool scan(const struct sl_symbfile_image *image, struct sl_bytes *found)
{
    uint8_t quantum = image->machine == IMAGE_AARCH64 ? 4 : 1;
    for (size_t i = 0; i < image->segment_count; i++) {
        struct sl_bytes bytes = image_from(image, image->segments[i].address);
        for (size_t at = 0; at + 64 < bytes.size; at += 8) {
            struct sl_bytes rest = {bytes.data + at, bytes.size - at};
            if (is_header(rest, quantum)) {
                *found = rest;
                return true;
            }
        }
    }
    return false;
}

static bool locate(struct sl_object *object, const struct sl_symbfile_image *image, struct sl_bytes *bytes)
{
    return sl_object_section(object, "gopclntab", bytes, NULL) ||
           sl_object_section(object, "data.rel.ro.gopclntab", bytes, NULL) || scan(image, bytes);
}

static struct sl_bytes from(struct sl_bytes bytes, uint64_t offset)
{
    return offset <= bytes.size ? (struct sl_bytes){bytes.data + offset, bytes.size - (size_t)offset}
                                : (struct sl_bytes){NULL, 0};
}

static uint64_t text_section(struct sl_object *object)
{
    struct sl_bytes text;
    uint64_t address;
    return sl_object_section(object, "text", &text, &address) ? address + sl_object_info(object)->load_address : 0;
}

static enum sl_code open_table(struct sl_object *object, struct table *t, struct sl_error *error)
{
    struct sl_reader r = sl_reader(t->bytes, false);
    uint32_t magic = sl_read_u32(&r);
    if (magic == 0xFFFFFFFB)
        return sl_fail(error, SL_UNSUPPORTED, "Go line tables before version 1.16 are not supported");
    if (!magic_version(magic, &t->version) || sl_read_u16(&r) != 0)
        return sl_fail(error, SL_MALFORMED, "Go line table: unknown magic");
    t->quantum = sl_read_u8(&r);
    t->pointer_size = sl_read_u8(&r);
    if ((t->quantum != 1 && t->quantum != 2 && t->quantum != 4) || (t->pointer_size != 4 && t->pointer_size != 8))
        return sl_fail(error, SL_MALFORMED, "Go line table: bad quantum or pointer size");
    t->count = sl_read_uint(&r, t->pointer_size);
    t->file_count = sl_read_uint(&r, t->pointer_size);
    if (t->version >= GO_118)
        t->text_start = sl_read_uint(&r, t->pointer_size);
    if (t->version >= GO_118 && !t->text_start)
        t->text_start = text_section(object);
    struct sl_bytes *tables[] = {&t->names, &t->cus, &t->files, &t->values, &t->functions};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = from(t->bytes, sl_read_uint(&r, t->pointer_size));
    size_t entry = t->version >= GO_118 ? 8 : 2u * t->pointer_size;
    if (r.failed || !t->functions.size || t->count > t->functions.size / entry)
        return sl_fail(error, SL_MALFORMED, "Go line table: %llu functions do not fit", (unsigned long long)t->count);
    return SL_OK;
}

/* ---- functions ---- */
static bool read_function(struct table *t, uint64_t index, struct function *f)
{
    unsigned size = t->version >= GO_118 ? 4 : t->pointer_size;
    struct sl_reader r = sl_reader(t->functions, false);
    sl_reader_seek(&r, index * 2 * size);
    sl_read_uint(&r, size);
    uint64_t offset = sl_read_uint(&r, size);
    sl_reader_seek(&r, offset);
    if (t->version >= GO_118)
        f->entry = t->text_start + sl_read_u32(&r);
    else
        f->entry = sl_read_uint(&r, t->pointer_size);
    f->name = sl_purse_name(&t->purse, t->names, sl_read_u32(&r));
    sl_reader_skip(&r, 12);
    f->file_values = sl_read_u32(&r);
    f->line_values = sl_read_u32(&r);
    sl_read_u32(&r);
    f->cu = sl_read_u32(&r);
    return !r.failed;
}

struct values { /* a sequence of (value, code size) */
    struct sl_reader r;
    uint64_t pc; /* from the entry */
    int64_t value;
    bool any;
};

static struct values values_at(const struct table *t, uint32_t offset)
{
    return (struct values){.r = sl_reader(from(t->values, offset), false), .value = -1};
}

/* False at the end, or when it cannot be read (r.failed). */
static bool next_value(const struct table *t, struct values *v)
{
    uint64_t delta = sl_read_uleb(&v->r);
    if (v->r.failed || (delta == 0 && v->any))
        return false;
    v->value = (int32_t)((uint32_t)v->value + (uint32_t)((delta >> 1) ^ -(delta & 1)));
    v->pc += sl_read_uleb(&v->r) * t->quantum;
    v->any = true;
    return !v->r.failed;
}

/* Functions may share their values. */
static bool read_end(struct table *t, const struct function *f, uint64_t *end, bool *usable)
{
    struct values v = values_at(t, f->line_values);
    *usable = true;
    *end = 0;
    while (sl_purse_spend(&t->purse, 1) && next_value(t, &v)) {
        *usable = *usable && v.value != 0 && v.value >= -1;
        *end = v.pc > *end ? v.pc : *end;
    }
    return !v.r.failed;
}

/* The first file of the function that has a name. */
static struct sl_str pclntab_read_file(struct table *t, const struct function *f)
{
    struct values v = values_at(t, f->file_values);
    while (f->file_values && sl_purse_spend(&t->purse, 1) && next_value(t, &v)) {
        if (v.value < 0)
            continue;
        struct sl_reader r = sl_reader(t->cus, false);
        sl_reader_seek(&r, ((uint64_t)f->cu + (uint64_t)v.value) * 4);
        uint32_t offset = sl_read_u32(&r);
        struct sl_str name =
            r.failed || offset == UINT32_MAX ? (struct sl_str){NULL, 0} : sl_purse_name(&t->purse, t->files, offset);
        if (name.size)
            return name;
    }
    return (struct sl_str){NULL, 0};
}

enum sl_code pclntab_read(struct sl_object *object, const struct sl_symbfile_image *image,
                          struct sl_symbfile_tree_sink *sink, struct sl_error *error)
{
    struct sl_budget *budget = sl_object_budget(object);
    struct table t = {.purse = {.budget = budget}};
    if (!locate(object, image, &t.bytes))
        return SL_NOT_FOUND;
    enum sl_code code = open_table(object, &t, error);
    for (uint64_t i = 0; i < t.count && code == SL_OK; i++) {
        struct function f;
        uint64_t size;
        bool usable;
        if (!read_function(&t, i, &f) || !read_end(&t, &f, &size, &usable))
            return sl_fail(error, SL_MALFORMED, "Go line table: function %llu is malformed", (unsigned long long)i);
        if (sl_budget_used_up(budget))
            return sl_budget_fail(budget, error);
        if (!usable || !size || !f.name.size || !sl_str_is_utf8(f.name))
            continue;
        struct sl_str file = pclntab_read_file(&t, &f);
        struct sl_symbfile_range range = {
            .va = f.entry,
            .length = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
            .function = {f.name, SL_SYMBFILE_INLINE},
            .file = {sl_str_is_utf8(file) ? file : (struct sl_str){NULL, 0}, SL_SYMBFILE_INLINE},
        };
        code = sink->tree(sink, &range, 1, error);
    }
    return code;
}
