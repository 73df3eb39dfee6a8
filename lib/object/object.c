/* Opens objects and calls the functions of their formats (formats.c). */
#include "object/impl.h"

#include "base/buf.h"
#include "object/symbols.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

static const uint64_t default_max_section = UINT64_C(4) << 30, default_max_unwind_chain = 128;

/* Sets the budget: the caller's, or one for the size of the bytes. Every budget has a base amount of steps in addition to those for the
 * size. The `objects` of a file share one base amount, so that a file of many small objects gets no more than others: the budget of each
 * object begins with all but its share of the base amount spent. */
static void set_budget(struct sl_object *object, const struct sl_object_limits *limits, size_t objects)
{
    struct sl_budget empty;
    sl_budget_init(&empty, 0); /* has the base amount only */
    sl_budget_init(&object->own_budget, object->bytes.size);
    if (objects > 1)
        sl_budget_spend(&object->own_budget, (uint64_t)(empty.steps - empty.steps / (int64_t)objects));
    object->budget = limits && limits->budget ? limits->budget : &object->own_budget;
    object->arena.budget = object->budget;
}

/* Opens an object; `objects` is the number of objects in its file. The `open` function of a format may return SL_OK although budget or
 * memory ran out in it, so both are checked afterwards. */
static enum sl_code open_object(struct sl_bytes bytes, const struct sl_object_limits *limits, size_t objects,
                                bool is_inner, struct sl_object **out, struct sl_error *error)
{
    *out = NULL;
    enum sl_format format = sl_format_detect(bytes);
    const struct object_format *ops = object_format_ops(format);
    if (!ops)
        return sl_fail(error, SL_MALFORMED, "unsupported object file format");
    struct sl_object *object = calloc(1, sizeof *object);
    if (!object)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->bytes = bytes;
    object->format = ops;
    object->info.format = format;
    object->max_section_size = limits && limits->max_section_size ? limits->max_section_size : default_max_section;
    object->max_unwind_chain = limits && limits->max_unwind_chain ? limits->max_unwind_chain : default_max_unwind_chain;
    set_budget(object, limits, objects);
    object->is_inner = is_inner;
    object->identity = limits && limits->identity;
    object->mapping = limits ? limits->mapping : (struct sl_mapping){{NULL, 0}, 0};
    enum sl_code code = ops->open(object, error);
    if (sl_budget_exhausted(object->budget))
        code = sl_budget_fail(object->budget, error);
    else if (object->failure.code != SL_OK)
        code = sl_object_status(object, error);
    if (code != SL_OK) {
        sl_object_close(object);
        return code;
    }
    *out = object;
    return SL_OK;
}

enum sl_code sl_object_open(struct sl_bytes bytes, const struct sl_object_limits *limits, struct sl_object **object,
                            struct sl_error *error)
{
    return open_object(bytes, limits, 1, false, object, error);
}

void sl_object_drop_pages(const struct sl_object *object, struct sl_bytes part)
{
    uintptr_t begin = (uintptr_t)object->mapping.bytes.data, at = (uintptr_t)part.data;
    if (at >= begin && at - begin < object->mapping.mapped)
        sl_mapping_drop(&object->mapping, at - begin, part.size);
}

enum sl_code object_open_slice(struct sl_bytes bytes, const struct sl_object_limits *limits, size_t objects,
                               struct sl_object **object, struct sl_error *error)
{
    return open_object(bytes, limits, objects, false, object, error);
}

/* The inner object uses the outer one's budget. Lack of memory or budget is recorded in the outer object; any other failure only means that
 * there is no inner object. */
struct sl_object *object_open_inner(struct sl_object *outer, struct sl_bytes bytes)
{
    struct sl_object_limits limits = {.max_section_size = outer->max_section_size,
                                      .max_unwind_chain = outer->max_unwind_chain,
                                      .budget = outer->budget};
    struct sl_object *inner;
    struct sl_error error;
    /* 1: the bytes are one object; `true`: it is inside another one */
    enum sl_code code = open_object(bytes, &limits, 1, true, &inner, &error);
    if (code == SL_BUSY || code == SL_UNSUPPORTED) /* out of memory, out of budget */
        object_no_memory(outer);
    return inner;
}

/* Frees the object and all that its readers returned views of. `object` may be NULL. */
void sl_object_close(struct sl_object *object)
{
    if (!object)
        return;
    if (object->impl && object->format->close)
        object->format->close(object);
    while (object->blocks)
        object_block_free(object, object->blocks->data);
    sl_arena_free(&object->arena);
    free(object);
}

void sl_object_align_addresses(struct sl_object *debug, const struct sl_object *program)
{
    if (debug != program && debug->format == program->format && debug->format->relate)
        debug->format->relate(debug, program);
}

const struct sl_object_info *sl_object_info(const struct sl_object *object)
{
    return &object->info;
}

enum sl_code object_no_memory(struct sl_object *object)
{
    if (object->failure.code == SL_OK)
        sl_budget_fail(object->budget, &object->failure);
    return object->failure.code;
}

const char *sl_object_debug_info_error(const struct sl_object *object)
{
    return object->debug_info_error.code == SL_OK ? NULL : object->debug_info_error.message;
}

enum sl_code sl_object_status(const struct sl_object *object, struct sl_error *error)
{
    if (object->failure.code != SL_OK && error)
        *error = object->failure;
    return object->failure.code;
}

struct sl_budget *sl_object_budget(struct sl_object *object)
{
    return object->budget;
}

uint64_t sl_object_max_unwind_chain(const struct sl_object *object)
{
    return object->max_unwind_chain;
}

struct sl_bytes sl_object_file(const struct sl_object *object)
{
    return object->bytes;
}

bool sl_object_section(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    *bytes = (struct sl_bytes){NULL, 0};
    return object->format->section && object->format->section(object, name, bytes, address);
}

bool sl_object_section_info(struct sl_object *object, size_t index, struct sl_section_info *info)
{
    return object->format->section_info && object->format->section_info(object, index, info);
}

bool sl_object_segment(const struct sl_object *object, size_t index, struct sl_segment *segment)
{
    return object->format->segment && object->format->segment(object, index, segment);
}

bool sl_object_holds_code(const struct sl_object *object, uint64_t address)
{
    return object->format->holds_code && object->format->holds_code(object, address);
}

struct sl_bytes sl_object_at(const struct sl_object *object, uint64_t address)
{
    struct sl_segment s;
    if (object->format->at)
        return object->format->at(object, address);
    for (size_t i = 0; sl_object_segment(object, i, &s); i++)
        if (address - s.address < s.bytes.size)
            return sl_bytes_from(s.bytes, address - s.address);
    return (struct sl_bytes){NULL, 0};
}

void object_set_debug_link(struct sl_object *object, struct sl_bytes section)
{
    struct sl_str name = sl_cstr_at(section, 0);
    if (!name.size || section.size < 5 || name.size > section.size - 5) /* 5: the NUL and the CRC */
        return;
    struct sl_reader r = sl_reader(section, object->info.big_endian);
    sl_reader_seek(&r, (name.size + 4) & ~(size_t)3); /* after the NUL, at a multiple of 4 */
    uint32_t sum = sl_read_u32(&r);
    if (r.failed)
        return;
    object->info.debug_link = name;
    object->info.debug_link_crc = sum;
}

/* Ends each symbol from `first` on at the next higher address of any symbol, if it would end later. False when out of memory. */
bool object_clip_to_next(struct sl_symbol *symbols, size_t first, size_t count)
{
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted);
    for (size_t i = 0; sorted && i < count; i++)
        sorted[i] = symbols[i].address;
    if (sorted)
        qsort(sorted, count, sizeof *sorted, sl_order_u64);
    for (size_t i = first; sorted && i < count; i++) {
        /* index of the first address above that of the symbol */
        size_t low = SL_PARTITION_POINT(middle, 0, count, sorted[middle] <= symbols[i].address);
        if (low < count && sorted[low] - symbols[i].address < symbols[i].size)
            symbols[i].size = sorted[low] - symbols[i].address;
    }
    free(sorted);
    return sorted != NULL;
}

typedef enum sl_code read_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                  size_t *count, struct sl_error *error);

/* Reads symbols with `read`, a function of the format; NULL if the format has no symbols. Also returns an error if budget or memory ran
 * out, because the list is incomplete then. */
static enum sl_code symbols_with(read_symbols *read, struct sl_object *object, struct sl_arena *arena,
                                 struct sl_symbol **symbols, size_t *count, struct sl_error *error)
{
    *symbols = NULL;
    *count = 0;
    enum sl_code code = read ? read(object, arena, symbols, count, error) : SL_OK;
    if (code == SL_OK && sl_budget_exhausted(object->budget))
        code = sl_budget_fail(object->budget, error);
    return code == SL_OK ? sl_object_status(object, error) : code;
}

enum sl_code sl_object_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                               size_t *count, struct sl_error *error)
{
    return symbols_with(object->format->symbols, object, arena, symbols, count, error);
}

enum sl_code sl_object_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                    size_t *count, struct sl_error *error)
{
    return symbols_with(object->format->data_symbols, object, arena, symbols, count, error);
}

enum sl_code sl_object_symbol_files(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                                    size_t *count, struct sl_error *error)
{
    *files = NULL;
    *count = 0;
    return object->format->symbol_files ? object->format->symbol_files(object, arena, files, count, error) : SL_OK;
}

enum sl_code sl_object_symbol_table(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                                    size_t *count, struct sl_error *error)
{
    *symbols = NULL;
    *count = 0;
    return object->format->symbol_table ? object->format->symbol_table(object, arena, symbols, count, error) : SL_OK;
}

enum sl_code sl_object_mapping_symbols(struct sl_object *object, struct sl_arena *arena,
                                       struct sl_mapping_symbol **marks, size_t *count, struct sl_error *error)
{
    *marks = NULL;
    *count = 0;
    return object->format->mapping_symbols ? object->format->mapping_symbols(object, arena, marks, count, error)
                                           : SL_OK;
}

enum sl_code sl_object_cached_symbols(struct sl_object *object, const struct sl_symbol **symbols, size_t *count,
                                      struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (!object->has_symbols)
        code = sl_object_symbols(object, &object->arena, &object->symbols, &object->symbol_count, error);
    object->has_symbols = code == SL_OK;
    *symbols = code == SL_OK ? object->symbols : NULL;
    *count = code == SL_OK ? object->symbol_count : 0;
    return code;
}

bool sl_object_reads_own_functions(const struct sl_object *object)
{
    return object->format->read_functions != NULL;
}

enum sl_code sl_object_read_own_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                          struct sl_function_sink *sink, struct sl_error *error)
{
    return object->format->read_functions(object, parallel, sink, error);
}

bool sl_object_file_origin(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                           struct sl_file_origin *origin)
{
    return object->format->file_origin && object->format->file_origin(object, path, arena, origin);
}

struct sl_str object_hex(struct sl_object *object, struct sl_bytes bytes)
{
    struct sl_buf hex = {0};
    sl_buf_hex(&hex, bytes.data, bytes.size);
    struct sl_str text = sl_buf_move_to_arena(&hex, &object->arena);
    if (!text.data)
        object_no_memory(object);
    return text;
}

/* Reads .debug_sup: u16 version, u8 is_supplementary, the file's path, the length of a checksum as ULEB128, the checksum. False if the
 * object has none. */
static bool read_debug_sup(struct sl_object *object, bool *is_supplementary, struct sl_supplementary *out)
{
    struct sl_bytes link;
    *out = (struct sl_supplementary){0};
    if (!sl_object_section(object, "debug_sup", &link, NULL))
        return false;
    struct sl_reader r = sl_reader(link, object->info.big_endian);
    sl_reader_skip(&r, 2);
    *is_supplementary = sl_read_u8(&r);
    out->name = sl_read_cstr(&r);
    out->id = sl_read_bytes(&r, sl_read_uleb(&r));
    return !r.failed;
}

/* Reads the name and id of the supplementary file from .gnu_debugaltlink (dwz: name, NUL, build id), else from .debug_sup (DWARF 5). The
 * .debug_sup of a supplementary file names no other file. False if the object names none. */
bool sl_object_supplementary(struct sl_object *object, struct sl_supplementary *out)
{
    struct sl_bytes link;
    bool is_supplementary;
    if (!sl_object_section(object, "gnu_debugaltlink", &link, NULL))
        return read_debug_sup(object, &is_supplementary, out) && !is_supplementary && out->name.size;
    size_t id = sl_cstr_at(link, 0).size + 1;
    *out = (struct sl_supplementary){sl_cstr_at(link, 0), {NULL, 0}};
    if (id < link.size)
        out->id = (struct sl_bytes){link.data + id, link.size - id};
    return out->name.size > 0;
}

struct sl_bytes object_supplementary_id(struct sl_object *object)
{
    struct sl_supplementary own;
    bool is_supplementary;
    return read_debug_sup(object, &is_supplementary, &own) && is_supplementary ? own.id : (struct sl_bytes){NULL, 0};
}
