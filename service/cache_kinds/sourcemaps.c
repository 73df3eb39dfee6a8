/* The kind `sourcemap_caches`: look-up tables made from scripts and their source maps. */
#include "cache_kinds/impl.h"

#include "core/log.h"
#include "core/loop.h"
#include "js/comment.h"

/* Returns the options for look-up tables of source maps in the current configuration. */
static struct sl_smcache_options options_now(void)
{
    return (struct sl_smcache_options){current_config()->js.partial_scopes, current_config()->js.compat_scope_names};
}

/* Checks the new table by opening it: a table damaged by a bug of the converter would stay cached. `outcome` receives the number of the
 * malformed item in the map's `scopes`, if any. */
static enum sl_code check_table(const struct sl_buf *table, struct sourcemap_result *outcome, struct sl_error *error)
{
    struct sl_smcache cache;
    enum sl_code code = sl_smcache_open(sl_buf_bytes(table), &cache, error);
    if (code != SL_OK)
        return sl_fail(error, SL_INTERNAL,
                       "the look-up table just made from a source map cannot be read, a bug of symloom");
    outcome->bad_scopes = cache.bad_scopes;
    return SL_OK;
}

static struct sl_str input_text(const struct converter_call *call, enum input_role role)
{
    struct sl_bytes bytes = converter_input_bytes(call, role);
    return (struct sl_str){(const char *)bytes.data, bytes.size};
}

/* Sets `*map` to the source map: the given file (INPUT_SOURCE_MAP), or the one in a data URL, decoded: INPUT_DATA_URL or, without that, the
 * URL in the script's comment. */
static enum sl_code find_map(struct conversion *conversion, const struct converter_call *call, struct sl_buf *decoded,
                             struct sl_str *map, struct sl_error *error)
{
    struct sl_str url = input_text(call, INPUT_DATA_URL);
    *map = input_text(call, INPUT_SOURCE_MAP);
    if (map->data)
        return SL_OK;
    if (!url.data && !sl_js_map_comment(input_text(call, INPUT_SCRIPT), &url))
        return sl_fail(error, SL_MALFORMED, "the script has no source map in it");
    if (!sl_js_data_url(url, decoded))
        return decoded->failed ? sl_budget_fail(&conversion->budget, error)
                               : sl_fail(error, SL_MALFORMED, "the data URL with the source map cannot be decoded");
    *map = sl_buf_view(decoded);
    return SL_OK;
}

/* Runs in a worker: makes the look-up table (js/smcache.h) of a script and its source map. */
static enum sl_code convert_sourcemap(struct conversion *conversion, const struct converter_call *call, void *result,
                                      struct sl_error *error)
{
    const struct sourcemap_options *given = converter_options(call);
    struct sl_smcache_options options = {given->partial_scopes, given->compat_names};
    struct sl_buf decoded = {.budget = &conversion->budget}, out = {0};
    struct sl_str map;
    enum sl_code code = find_map(conversion, call, &decoded, &map, error);
    if (code == SL_OK)
        code = sl_smcache_write(input_text(call, INPUT_SCRIPT), map, &options, &conversion->budget, &out, error);
    if (code == SL_OK)
        code = check_table(&out, result, error);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &out, error);
    sl_buf_free(&out);
    sl_buf_free(&decoded);
    return code;
}

/* True for every result: it is only a number for the log, so no value of it does harm. */
static bool check_result(const void *result)
{
    (void)result;
    return true;
}

const struct converter converter_sourcemap = {"sourcemap", sizeof(struct sourcemap_options),
                                              sizeof(struct sourcemap_result), convert_sourcemap, check_result};

/* ---- the kind ---- */

/* Inputs of a look-up table; an item that is NULL or a text whose data are NULL is missing. */
struct sourcemap_texts {
    struct cache_item *script, *map;
    struct sl_str embedded, location; /* a data URL with the map; the script's location, for the log */
};

/* Makes the look-up table. If `item` is NULL, writes it to the file `fd` of a cache entry; else `*item` becomes an item that is not in the
 * cache. */
static enum sl_code convert_texts(const struct sourcemap_texts *texts, int fd, struct cache_item **item,
                                  struct sl_error *error)
{
    struct sl_smcache_options now = options_now();
    struct sourcemap_options options = {now.partial_scopes, now.compat_names};
    struct sourcemap_result outcome = {0}; /* convert_to_item may fail before it runs the converter */
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = fd};
    struct conversion_description about = {.location = texts->location, .kind = kind_sourcemap_caches.name};
    converter_add_item(&call, INPUT_SCRIPT, texts->script); /* adds nothing if it is NULL */
    converter_add_item(&call, INPUT_SOURCE_MAP, texts->map);
    if (!texts->map && texts->embedded.data)
        converter_add_text(&call, INPUT_DATA_URL, texts->embedded);
    else if (!texts->map && texts->script)
        about.size = 2 * texts->script->mapping.bytes.size; /* for the limits: the script is read as the map, too */
    enum sl_code code =
        item ? convert_to_item(&kind_sourcemap_caches, &about, &converter_sourcemap, &call, &outcome, item, error)
             : conversion_run(&about, &converter_sourcemap, &call, &outcome, error);
    if (outcome.bad_scopes)
        log_info("kinds", "ignoring the malformed `scopes` of a source map", LOG_SLSTR("location", texts->location),
                 LOG_U64("item", outcome.bad_scopes));
    return code;
}

/* Makes the entry: gets the script and the source map, as far as the request names them, and has a worker make the look-up table. */
static enum sl_code sourcemaps_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                       struct sl_error *error)
{
    const struct sourcemap_request *request = context;
    struct sourcemap_texts texts = {.embedded = request->embedded, .location = request->script_id};
    enum sl_code code = SL_OK;
    if (request->script)
        code = source_file_get(request->script, arena, &texts.script, error);
    if (code == SL_OK && request->map)
        code = source_file_get(request->map, arena, &texts.map, error);
    if (code == SL_OK)
        code = convert_texts(&texts, tmp->fd, NULL, error);
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

/* Copies the request for work that outlives the caller (cache_kind.retain); NULL when out of memory. */
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

/* Adds the symbol source of a script or source map to the cache key, unless it is a file from the web: the ids of Sentry's files are unique
 * within one server only. */
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

/* Adds to the cache key the options that change the table's bytes. */
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
    struct sourcemap_texts texts = {script, map, embedded, SL_STR("artifact")};
    return convert_texts(&texts, -1, item, error);
}
