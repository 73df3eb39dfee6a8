/* The kind `object_meta`: the features of an object as JSON, so that several files for one module can be ranked without parsing them:
 *
 *     {"has_debug_info":b,"has_unwind_info":b,"has_symbols":b,"has_sources":b,"srcsrv_vcs":"git"|"perforce"|"other",
 *      "embedded_ppdb":{"has_debug_info":b,"has_sources":b},"fixed_address":n,
 *      "stored":{"debug_sections":b,"symbol_table":b,"code":b},
 *      "loads":{"usable":b,"entries":[[offset,address,file_size,memory_size,flags],...]}}
 *
 * "srcsrv_vcs" only if it is known, "embedded_ppdb" only for PE files with a Portable PDB inside, "fixed_address" only for ELF
 * files that can be loaded at that address only, "loads" only for ELF files with PT_LOAD entries. */
#include "cache_kinds/impl.h"

#include "base/json_fields.h"
#include "base/json_write.h"
#include "dwarf/dwarf.h"
#include "object/embedded.h"
#include "object/stored.h"

static const struct sl_str vcs_names[] = {SL_STR("git"), SL_STR("perforce"), SL_STR("other")};

enum { MAX_LOADS = 32 }; /* limit of the PT_LOAD entries that are kept; programs have four to ten */

/* Writes a PT_LOAD entry as an array of numbers, which is shorter than an object with names. */
static void encode_load(struct sl_json_writer *w, const struct sl_load_header *load)
{
    const uint64_t fields[] = {load->offset, load->address, load->file_size, load->memory_size, load->flags};
    sl_json_begin_array(w);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        sl_json_put_u64(w, fields[i]);
    sl_json_end_array(w);
}

/* Writes which parts the file really contains (a stripped file lacks some, a debug file has no code), and its first PT_LOAD entries. */
static void encode_stored(struct sl_json_writer *w, struct sl_object *object)
{
    struct sl_stored_parts parts;
    struct sl_load_header load;
    sl_object_stored_parts(object, &parts);
    sl_json_member_object(w, "stored");
    sl_json_member_boolean(w, "debug_sections", parts.has_debug_sections);
    sl_json_member_boolean(w, "symbol_table", parts.has_symbol_table);
    sl_json_member_boolean(w, "code", parts.has_code);
    sl_json_end_object(w);
    if (!sl_object_load_header(object, 0, &load)) /* it has no PT_LOAD entry */
        return;
    sl_json_member_object(w, "loads");
    /* false in a debug file whose PT_LOAD entries no longer give the sizes in the program's file */
    sl_json_member_boolean(w, "usable", sl_object_load_headers_usable(object));
    sl_json_member_array(w, "entries");
    for (size_t i = 0; i < MAX_LOADS && sl_object_load_header(object, i, &load); i++)
        encode_load(w, &load);
    sl_json_end_array(w);
    sl_json_end_object(w);
}

/* Writes what is known of an object, as JSON. Members that most objects lack are left out. */
static void object_meta_encode(const struct object_meta *meta, struct sl_object *object, struct sl_buf *out)
{
    const struct sl_features *features = &meta->features;
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_boolean(&w, "has_debug_info", features->has_debug_info);
    sl_json_member_boolean(&w, "has_unwind_info", features->has_unwind_info);
    sl_json_member_boolean(&w, "has_symbols", features->has_symbols);
    sl_json_member_boolean(&w, "has_sources", features->has_sources);
    if (features->srcsrv_vcs.size) /* version control system that a PDB's srcsrv stream names */
        sl_json_member_str(&w, "srcsrv_vcs", features->srcsrv_vcs);
    if (meta->embedded.has_debug_info || meta->embedded.has_sources) {
        sl_json_member_object(&w, "embedded_ppdb");
        sl_json_member_boolean(&w, "has_debug_info", meta->embedded.has_debug_info);
        sl_json_member_boolean(&w, "has_sources", meta->embedded.has_sources);
        sl_json_end_object(&w);
    }
    if (meta->fixed_load.is_fixed)
        sl_json_member_u64(&w, "fixed_address", meta->fixed_load.address);
    encode_stored(&w, object);
    sl_json_end_object(&w);
}

/* Sets `*features` to those of the Portable PDB inside a PE file; leaves it as it is for other objects, and if the Portable PDB cannot be
 * read, as the PE file itself is usable. Fails only with SL_BUSY. */
static enum sl_code describe_embedded(struct conversion *conversion, struct sl_object *pe,
                                      const struct reader_limits *limits, struct sl_features *features,
                                      struct sl_error *error)
{
    struct sl_arena arena = {.budget = &conversion->budget};
    struct sl_bytes bytes;
    struct sl_object *ppdb;
    enum sl_code code = sl_object_embedded_ppdb(pe, &arena, &bytes, error);
    if (code == SL_OK)
        code = conversion_open(conversion, bytes, limits, &ppdb, error);
    if (code == SL_OK) {
        *features = sl_object_info(ppdb)->features;
        sl_object_close(ppdb);
    }
    sl_arena_free(&arena);
    return code == SL_BUSY ? code : SL_OK;
}

/* Called for the first source text in an object's DWARF: sets `*arg` to true. False, which stops reading: one is enough to know. */
static bool one_is_enough(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    (void)file, (void)text;
    *(bool *)arg = true;
    return false;
}

/* Runs in a worker: writes the features of the object in INPUT_FILE as JSON. */
static enum sl_code describe(struct conversion *conversion, const struct converter_call *call, void *result,
                             struct sl_error *error)
{
    (void)result;
    const struct reader_limits *limits = converter_options(call);
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, file, limits, &object, error);
    if (code != SL_OK)
        return code;
    struct sl_buf json = {0};
    const struct sl_object_info *info = sl_object_info(object);
    struct object_meta meta = {.features = info->features, .fixed_load = {info->is_fixed, info->load_address}};
    code = describe_embedded(conversion, object, limits, &meta.embedded, error);
    /* an object whose DWARF has source texts counts as one with sources, too */
    sl_dwarf_sources(object, one_is_enough, &meta.features.has_sources);
    object_meta_encode(&meta, object, &json); /* done even after a failure: it is only written below if all went well */
    sl_object_close(object);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &json, error);
    sl_buf_free(&json);
    return code;
}

const struct converter converter_object_meta = {"object_meta", sizeof(struct reader_limits), 0, describe};

static enum sl_code object_meta_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                        struct sl_error *error)
{
    return convert_to_entry(context, NULL, &converter_object_meta, NULL, tmp->fd, arena, error);
}

/* Reads "srcsrv_vcs"; an unknown version control system counts as none. False if the value is not a text. */
static bool read_vcs(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text = {NULL, 0}, *vcs = out;
    bool good = sl_fields_text(s, at, &text);
    for (size_t i = 0; i < sizeof vcs_names / sizeof *vcs_names; i++)
        if (sl_str_equal(text, vcs_names[i]))
            *vcs = vcs_names[i];
    return good;
}

/* Reads "fixed_address". An object has a fixed address exactly if this member is present. False if it is not a number. */
static bool read_fixed(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct object_meta *meta = out;
    return meta->fixed_load.is_fixed = sl_json_u64(s->json, &meta->fixed_load.address);
}

static const struct sl_field stored_fields[] = {
    SL_FIELD(FLAG, true, sl_stored_parts, has_debug_sections, "debug_sections"),
    SL_FIELD(FLAG, true, sl_stored_parts, has_symbol_table, "symbol_table"),
    SL_FIELD(FLAG, true, sl_stored_parts, has_code, "code"),
    SL_FIELDS_END,
};

/* Reads "stored". Entries of versions before 5 lack this member, so `has_stored` tells which entries are current. False if the value is
 * malformed. */
static bool read_stored(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct object_meta *meta = out;
    return meta->has_stored = sl_fields_object(s, at, stored_fields, &meta->stored);
}

static const struct sl_field embedded_fields[] = {
    SL_FIELD(FLAG, true, sl_features, has_debug_info, "has_debug_info"),
    SL_FIELD(FLAG, true, sl_features, has_sources, "has_sources"),
    SL_FIELDS_END,
};

static const struct sl_field meta_fields[] = {
    SL_FIELD(FLAG, true, object_meta, features.has_debug_info, "has_debug_info"),
    SL_FIELD(FLAG, true, object_meta, features.has_unwind_info, "has_unwind_info"),
    SL_FIELD(FLAG, true, object_meta, features.has_symbols, "has_symbols"),
    SL_FIELD(FLAG, false, object_meta, features.has_sources, "has_sources"),
    SL_FIELD_BY(false, object_meta, features.srcsrv_vcs, "srcsrv_vcs", read_vcs),
    SL_FIELD_PART(object_meta, embedded, "embedded_ppdb", embedded_fields),
    {SL_STR("fixed_address"), SL_FIELD_CUSTOM, false, 0, read_fixed},
    {SL_STR("stored"), SL_FIELD_CUSTOM, false, 0, read_stored},
    SL_FIELDS_END,
};

/* Parses the contents of a cache entry, which are JSON, into `meta` (struct object_meta). */
static enum sl_code object_meta_open(struct sl_bytes bytes, void *meta, struct sl_error *error)
{
    struct sl_arena arena = {0};
    /* false: standard JSON only */
    struct sl_json j = sl_json((struct sl_str){(const char *)bytes.data, bytes.size}, &arena, false);
    enum sl_code code = SL_OK;
    struct sl_fields s = {.json = &j};
    bool good = sl_fields_object(&s, NULL, meta_fields, meta) && sl_json_end(&j);
    if (j.busy)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (!good)
        code = sl_fail(error, SL_MALFORMED, "the cache entry with the features of a debug file is damaged");
    sl_arena_free(&arena);
    return code;
}

static uint64_t capacity(const struct config *config)
{
    return config->object_meta_capacity;
}

/* Older versions whose entries are used until those of the current version are made. Those up to 2 do not know the symbol tables of Go
 * programs, those up to 3 lack fixed addresses, those up to 4 the parts that the file stores. */
static const unsigned older[] = {4, 3, 2, 1, 0};

const struct cache_kind kind_object_meta = {
    .name = "object_meta",
    .section = CACHE_DERIVED,
    .version = 5,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .capacity = capacity,
    .compute = object_meta_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = object_meta_open,
    .opened_size = sizeof(struct object_meta),
};
