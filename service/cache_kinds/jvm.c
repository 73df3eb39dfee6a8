/* The kind `proguard`: look-up tables made from ProGuard and R8 mappings. */
#include "cache_kinds/impl.h"

/* Runs in a worker: makes the look-up table (jvm/mapping.h) of a ProGuard or R8 mapping. */
static enum sl_code convert_mapping(struct conversion *conversion, const struct converter_call *call, void *result,
                                    struct sl_error *error)
{
    (void)result;
    struct sl_buf out = {0};
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    struct sl_str text = {(const char *)file.data, file.size};
    enum sl_code code = sl_jvm_mapper_build(text, &conversion->budget, &out, error);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &out, error);
    sl_buf_free(&out);
    return code;
}

const struct converter converter_proguard = {"proguard", 0, 0, convert_mapping};

/* Downloads the mapping to a second temporary file, and converts it into that of the entry. */
static enum sl_code proguard_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                     struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    struct conversion_description about = {.location = request->file->location, .kind = kind_proguard.name};
    struct converter_call call = {.out = tmp->fd};
    struct cache_tmp text;
    enum sl_code code = cache_tmp_create(&text, true, error); /* true: unlinked at once */
    if (code != SL_OK)
        return code;
    code = origin_fetch(request->file, text.fd, error);
    converter_add_file(&call, INPUT_FILE, text.fd); /* only notes the descriptor, so also after a failure */
    if (code == SL_OK)
        code = conversion_run(&about, &converter_proguard, &call, NULL, error);
    cache_tmp_discard(&text);
    return code;
}

static enum sl_code proguard_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_jvm_mapper_open(bytes, into, error);
}

const struct cache_kind kind_proguard = {
    .name = "proguard",
    .section = CACHE_DOWNLOADED,
    .version = 1003,
    .random_access = true,
    .compute = proguard_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = proguard_open,
    .opened_size = sizeof(struct sl_jvm_mapper),
};

/* ---- mappings sent with a request ---- */

enum sl_code item_from_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error)
{
    struct conversion_description about = {.location = SL_STR("artifact"), .kind = kind_proguard.name};
    struct converter_call call = {0};
    converter_add_text(&call, INPUT_FILE, text);
    return convert_to_item(&kind_proguard, &about, &converter_proguard, &call, NULL, item, error);
}
