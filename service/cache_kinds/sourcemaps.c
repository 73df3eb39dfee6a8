/* The kind `sourcemap_caches`: tables made from scripts and their source maps. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "core/loop.h"
#include "js/comment.h"

struct sourcemap_texts {
    struct cache_item *script, *map; /* references; NULL = none */
    struct sl_str embedded;          /* data NULL: the data URL in the script */
    struct sl_str location;          /* for the log */
    struct sl_smcache_options options;
    struct sl_buf *out; /* gets the table; NULL: write it to `fd` */
    int fd;
};

static struct sl_smcache_options options_now(void)
{
    return (struct sl_smcache_options){current_config()->js.partial_scopes, current_config()->js.compat_scope_names};
}

static struct sl_str item_text(const struct cache_item *item)
{
    struct sl_bytes bytes = item ? item->mapping.bytes : (struct sl_bytes){NULL, 0};
    return (struct sl_str){(const char *)bytes.data, bytes.size};
}

/* Opens the new table as its readers will, before it is used. */
static enum sl_code check_table(const struct sl_buf *table, struct sl_str location, struct sl_error *error)
{
    struct sl_smcache cache;
    enum sl_code code = sl_smcache_open(sl_buf_bytes(table), &cache, error);
    if (code != SL_OK)
        return sl_fail(error, SL_INTERNAL, "cannot open a newly converted source map");
    if (cache.bad_scopes)
        log_info("kinds", "the scopes of a source map are malformed", LOG_SLSTR("location", location),
                 LOG_U64("item", cache.bad_scopes));
    return SL_OK;
}

static enum sl_code convert_sourcemap(struct conversion *conversion, void *arg, struct sl_error *error)
{
    const struct sourcemap_texts *texts = arg;
    struct sl_str map = item_text(texts->map), embedded = texts->embedded;
    struct sl_buf decoded = {.budget = &conversion->budget}, out = {0};
    enum sl_code code = SL_OK;
    bool there = texts->map || embedded.data || sl_js_map_comment(item_text(texts->script), &embedded);
    if (!there)
        code = sl_fail(error, SL_MALFORMED, "the script has no source map in it");
    else if (!texts->map && !sl_js_data_url(embedded, &decoded))
        code = decoded.failed ? sl_budget_fail(&conversion->budget, error)
                              : sl_fail(error, SL_MALFORMED, "the data URL cannot be decoded");
    else if (!texts->map)
        map = sl_buf_view(&decoded);
    if (code == SL_OK)
        code = sl_smcache_write(item_text(texts->script), map, &texts->options, &conversion->budget, &out, error);
    if (code == SL_OK)
        code = check_table(&out, texts->location, error);
    if (code == SL_OK && texts->out) {
        *texts->out = out;
        out = (struct sl_buf){0};
    } else if (code == SL_OK) {
        code = conversion_write(conversion, texts->fd, &out, error);
    }
    sl_buf_free(&out);
    sl_buf_free(&decoded);
    return code;
}

static enum sl_code convert_texts(struct sourcemap_texts *texts, struct sl_str location, struct sl_error *error)
{
    uint64_t script = item_text(texts->script).size, map = item_text(texts->map).size;
    if (!texts->map)
        map = texts->embedded.data ? texts->embedded.size : script;
    uint64_t size = script + map;
    struct conversion_input input = {size, location, kind_sourcemap_caches.name};
    texts->location = location;
    return conversion_run(&input, convert_sourcemap, texts, error);
}

static enum sl_code sourcemaps_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                       struct sl_error *error)
{
    const struct sourcemap_request *request = context;
    struct sourcemap_texts texts = {.embedded = request->embedded, .options = options_now(), .fd = tmp->fd};
    enum sl_code code = SL_OK;
    if (request->script)
        code = source_file_get(request->script, arena, &texts.script, error);
    if (code == SL_OK && request->map)
        code = source_file_get(request->map, arena, &texts.map, error);
    if (code == SL_OK)
        code = convert_texts(&texts, request->script_id, error);
    cache_release(texts.script);
    cache_release(texts.map);
    return code;
}

static bool sourcemaps_copy(struct sl_arena *arena, struct sl_str *text)
{
    if (!text->data)
        return true;
    text->data = sl_arena_strndup(arena, text->data, text->size);
    return text->data;
}

static void *sourcemaps_retain(const void *context, struct sl_arena *arena)
{
    struct sourcemap_request *to = SL_ARENA_NEW(arena, struct sourcemap_request);
    if (!to)
        return NULL;
    *to = *(const struct sourcemap_request *)context;
    bool good = sourcemaps_copy(arena, &to->scope) && sourcemaps_copy(arena, &to->embedded) &&
                sourcemaps_copy(arena, &to->script_id) && sourcemaps_copy(arena, &to->map_id);
    if (good && to->script)
        good = (to->script = source_request_retain(to->script, arena)) != NULL;
    if (good && to->map)
        good = (to->map = source_request_retain(to->map, arena)) != NULL;
    return good ? to : NULL;
}

static enum sl_code sourcemaps_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_smcache_open(bytes, into, error);
}

const struct cache_kind kind_sourcemap_caches = {
    .name = "sourcemap_caches",
    .section = CACHE_DERIVED,
    .version = 1004,
    .random_access = true,
    .compute = sourcemaps_compute,
    .retain = sourcemaps_retain,
    .open = sourcemaps_open,
    .opened_size = sizeof(struct sl_smcache),
};

/* Ids of artifacts are unique within their installation only. */
static void put_origin(struct sl_buf *text, const struct source_request *request)
{
    if (!request || !request->file)
        return;
    sl_buf_cstr(text, "\nsource: ");
    sl_buf_str(text, request->file->source->id);
    sl_buf_cstr(text, "\nlocation: ");
    sl_buf_str(text, request->file->uri);
    sl_buf_cstr(text, "\nurl: ");
    sl_buf_str(text, request->file->source->url);
    sl_buf_cstr(text, "\n");
}

/* The options that change the table's bytes. */
static void put_options(struct sl_buf *text, struct sl_smcache_options options)
{
    if (options.compat_names || options.partial_scopes)
        sl_buf_printf(text, "\nscopes: %s%s%s\n", options.compat_names ? "compat" : "",
                      options.compat_names && options.partial_scopes ? "," : "",
                      options.partial_scopes ? "partial" : "");
}

enum sl_code sourcemap_get(const struct sourcemap_request *request, struct sl_arena *arena, struct cache_item **item,
                           struct sl_error *error)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "scope: " SL_STR_FMT "\n\nsource:\n" SL_STR_FMT "\nsourcemap:\n" SL_STR_FMT "\n",
                  SL_STR_ARG(request->scope.size ? request->scope : SL_STR("global")), SL_STR_ARG(request->script_id),
                  SL_STR_ARG(request->map_id));
    put_origin(&text, request->script);
    put_origin(&text, request->map);
    put_options(&text, options_now());
    struct cache_key key = {.text = sl_buf_move_to_arena(&text, arena), .scope = request->scope};
    *item = NULL;
    if (!key.text.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(&kind_sourcemap_caches, &key, request, item, error);
}

enum sl_code item_from_sourcemap(struct cache_item *script, struct cache_item *map, struct sl_str embedded,
                                 struct cache_item **item, struct sl_error *error)
{
    struct sl_buf table = {0};
    struct sourcemap_texts texts = {
        .script = script, .map = map, .embedded = embedded, .options = options_now(), .out = &table, .fd = -1};
    enum sl_code code = convert_texts(&texts, SL_STR("artifact"), error);
    *item = NULL;
    return code == SL_OK ? cache_item_from_bytes(&kind_sourcemap_caches, &table, item, error) : code;
}
