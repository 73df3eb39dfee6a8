/* The kind `object_meta`: what an object can be used for, so that candidates are ranked without opening them:
 *
 *     {"has_debug_info":b,"has_unwind_info":b,"has_symbols":b,"has_sources":b,"srcsrv_vcs":"git"|"perforce"|"other",
 *      "embedded_ppdb":{"has_debug_info":b,"has_sources":b},"fixed_address":n}
 *
 * The version control system only if it is known, the next member only for PE files with a Portable PDB inside, the last only
 * for ELF files that can be loaded there alone. */
#include "kinds/conversion.h"

#include <stdlib.h>

#include "base/json_write.h"
#include "dwarf/dwarf.h"
#include "object/embedded.h"

static const struct sl_str vcs_names[] = {SL_STR("git"), SL_STR("perforce"), SL_STR("other")};

static void object_meta_encode(const struct object_meta *meta, struct sl_buf *out)
{
    const struct sl_features *features = &meta->features;
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_boolean(&w, "has_debug_info", features->has_debug_info);
    sl_json_member_boolean(&w, "has_unwind_info", features->has_unwind_info);
    sl_json_member_boolean(&w, "has_symbols", features->has_symbols);
    sl_json_member_boolean(&w, "has_sources", features->has_sources);
    if (features->srcsrv_vcs.size)
        sl_json_member_str(&w, "srcsrv_vcs", features->srcsrv_vcs);
    if (meta->embedded.has_debug_info || meta->embedded.has_sources) {
        sl_json_member_object(&w, "embedded_ppdb");
        sl_json_member_boolean(&w, "has_debug_info", meta->embedded.has_debug_info);
        sl_json_member_boolean(&w, "has_sources", meta->embedded.has_sources);
        sl_json_end_object(&w);
    }
    if (meta->place.is_fixed)
        sl_json_member_u64(&w, "fixed_address", meta->place.address);
    sl_json_end_object(&w);
}

/* One that cannot be read is none: the PE file itself is usable. */
static enum sl_code describe_embedded(struct conversion *conversion, struct sl_object *pe, struct sl_features *features,
                                      struct sl_error *error)
{
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_bytes bytes;
    struct sl_object *ppdb;
    enum sl_code code = sl_object_embedded_ppdb(pe, &arena, &bytes, error);
    if (code == SL_OK)
        code = conversion_open(conversion, bytes, &ppdb, error);
    if (code == SL_OK) {
        *features = sl_object_info(ppdb)->features;
        sl_object_close(ppdb);
    }
    sl_arena_free(&arena);
    return code == SL_BUSY ? code : SL_OK;
}

static bool one_is_enough(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    (void)file, (void)text;
    *(bool *)arg = true;
    return false;
}

static enum sl_code describe(struct conversion *conversion, struct sl_bytes file, int fd, struct sl_error *error)
{
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, file, &object, error);
    if (code != SL_OK)
        return code;
    struct sl_buf json = {0};
    const struct sl_object_info *info = sl_object_info(object);
    struct object_meta meta = {.features = info->features, .place = {info->is_fixed, info->load_address}};
    code = describe_embedded(conversion, object, &meta.embedded, error);
    sl_dwarf_sources(object, one_is_enough, &meta.features.has_sources);
    object_meta_encode(&meta, &json);
    sl_object_close(object);
    if (code == SL_OK)
        code = conversion_write(conversion, fd, &json, error);
    sl_buf_free(&json);
    return code;
}

static enum sl_code object_meta_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                        struct sl_error *error)
{
    return kinds_make(context, NULL, describe, tmp->fd, arena, error);
}

struct flag { /* `found` from the start: it may be absent; `bad`: it is no boolean */
    struct sl_str key;
    bool *value, found, bad;
};

/* The flag of that name, if there is one, takes the value that comes next. */
static bool read_flag(struct sl_json *j, struct sl_str key, struct flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(key, flags[i].key)) {
            flags[i].found = true;
            flags[i].bad = !sl_json_bool(j, flags[i].value);
            return true;
        }
    return false;
}

static bool read_embedded(struct sl_json *j, struct sl_features *features)
{
    struct flag flags[] = {{.key = SL_STR("has_debug_info"), .value = &features->has_debug_info},
                           {.key = SL_STR("has_sources"), .value = &features->has_sources}};
    struct sl_str key;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key))
        if (!read_flag(j, key, flags, 2))
            sl_json_skip(j);
    return flags[0].found && !flags[0].bad && flags[1].found && !flags[1].bad;
}

static void read_vcs(struct sl_json *j, struct sl_features *features)
{
    struct sl_str text;
    sl_json_text(j, &text);
    for (size_t i = 0; i < sizeof vcs_names / sizeof *vcs_names; i++)
        if (sl_str_equal(text, vcs_names[i]))
            features->srcsrv_vcs = vcs_names[i];
}

static bool decode(struct sl_json *j, struct object_meta *meta)
{
    struct sl_features *features = &meta->features;
    struct flag flags[] = {{.key = SL_STR("has_debug_info"), .value = &features->has_debug_info},
                           {.key = SL_STR("has_unwind_info"), .value = &features->has_unwind_info},
                           {.key = SL_STR("has_symbols"), .value = &features->has_symbols},
                           {.key = SL_STR("has_sources"), .value = &features->has_sources, .found = true}};
    struct sl_str key;
    bool good = sl_json_object(j);
    while (good && sl_json_next(j, &key))
        if (sl_str_equal(key, SL_STR("srcsrv_vcs")))
            read_vcs(j, features);
        else if (sl_str_equal(key, SL_STR("embedded_ppdb")))
            good = read_embedded(j, &meta->embedded);
        else if (sl_str_equal(key, SL_STR("fixed_address")))
            good = meta->place.is_fixed = sl_json_u64(j, &meta->place.address);
        else if (!read_flag(j, key, flags, sizeof flags / sizeof *flags))
            sl_json_skip(j);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        good = good && flags[i].found && !flags[i].bad;
    return good;
}

static enum sl_code object_meta_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json((struct sl_str){(const char *)bytes.data, bytes.size}, &arena, false);
    struct object_meta *meta = calloc(1, sizeof *meta);
    enum sl_code code = SL_OK;
    bool good = meta && decode(&j, meta) && sl_json_end(&j);
    if (!meta || j.busy)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (!good)
        code = sl_fail(error, SL_MALFORMED, "no features of an object");
    sl_arena_free(&arena);
    if (code != SL_OK) {
        free(meta);
        return code;
    }
    *loaded = meta;
    *weight = sizeof *meta;
    return SL_OK;
}

static uint64_t capacity(const struct config *config)
{
    return config->object_meta_capacity;
}

/* They serve while a new one is made. 2 did not know the names that Go programs carry, 3 no fixed addresses. */
static const unsigned older[] = {3, 2, 1, 0};

const struct cache_kind kind_object_meta = {
    .name = "object_meta",
    .section = CACHE_DERIVED,
    .version = 4,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .capacity = capacity,
    .compute = object_meta_compute,
    .base = object_request_base,
    .place = object_request_place,
    .retain = object_request_retain,
    .load = object_meta_load,
    .free_loaded = free,
};
