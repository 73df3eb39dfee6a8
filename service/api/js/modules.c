/* Fetches the scripts that frames name (modules), each once: first all scripts concurrently, then all their source maps. */
#include "api/js/js.h"

#include "core/log.h"
#include "core/metrics.h"
#include "js/comment.h"
#include "js/names.h"

/* Makes a module for each script that frames name, with the debug id that the request has for it. Frames that are answered as they
 * were sent (sent_size) have no module. False when out of memory. */
static bool js_list_modules(struct js_request *r)
{
    struct sl_map *by_path = &r->modules_by_path;
    for (size_t t = 0; t < r->trace_count; t++)
        for (size_t i = 0; i < r->raw[t].count; i++) {
            const struct js_entry *entry = &r->raw[t].frames[i];
            bool made = false;
            void **slot = entry->sent_size ? NULL : sl_map_find_or_add(by_path, entry->frame->abs_path, &made);
            struct js_module *module = made ? SL_ARENA_NEW(r->arena, struct js_module) : NULL;
            if ((!slot && !entry->sent_size) || (made && !module))
                return false;
            if (made) {
                *module = (struct js_module){.request = r, .abs_path = entry->frame->abs_path, .next = r->modules};
                *slot = r->modules = module;
            }
        }
    for (size_t i = 0; i < r->id_count; i++) {
        struct js_module *module = sl_map_get(by_path, r->ids[i].code_file);
        if (!module)
            continue;
        module->has_id = !sl_debug_id_is_nil(&r->ids[i].id);
        module->id = r->ids[i].id;
    }
    return true;
}

/* Allocates the results: one for each frame of the request. False when out of memory. */
static bool js_make_results(struct js_request *r)
{
    r->results = SL_ARENA_ARRAY(r->arena, struct js_trace, r->trace_count + 1);
    for (size_t t = 0; r->results && t < r->trace_count; t++) {
        r->results[t].count = r->raw[t].count;
        r->results[t].frames = SL_ARENA_ARRAY(r->arena, struct js_entry, r->raw[t].count + 1);
        if (!r->results[t].frames)
            return false;
    }
    return r->results;
}

bool js_prepare(struct js_request *r)
{
    return js_list_modules(r) && js_make_results(r);
}

/* ---- references to maps ---- */

/* Returns the value of a header of the file in a bundle's manifest; data NULL if it is missing or empty. */
static struct sl_str js_entry_header(const struct sl_bundle_file *entry, const char *name)
{
    for (size_t i = 0; i < entry->header_count; i++)
        if (sl_str_equal(entry->headers[i].name, sl_str(name)) && entry->headers[i].value.size)
            return entry->headers[i].value;
    return (struct sl_str){NULL, 0};
}

/* Finds the script's reference to its source map, and its debug id. A header with the map's name wins over a comment in the script;
 * the debug id of the request wins over one in the script. Debug ids in comments of a bundle's files are ignored, as the bundle
 * lists them. False when the request cannot go on. */
static bool js_find_reference(struct js_request *r, struct js_module *m)
{
    const struct js_file *file = m->minified;
    struct js_reference *reference = &m->reference;
    struct script_facts facts = {.has_map = false};
    struct sl_error error;
    *reference = (struct js_reference){.has_id = m->has_id, .id = m->id};
    if (file->origin == JS_BUNDLED) {
        reference->map = js_entry_header(file->entry, "sourcemap");
        if (!reference->map.data)
            reference->map = js_entry_header(file->entry, "x-sourcemap");
    } else if (file->origin == JS_INDIVIDUAL && file->artifact->sourcemap.size) {
        reference->map = file->artifact->sourcemap;
    } else if (file->origin == JS_SCRAPED && file->item && file->item->note) {
        /* the header of the HTTP response */
        reference->map = sl_str(file->item->note);
    }
    enum sl_code code = file->item ? script_facts_get(file->item, &facts, &error) : SL_OK;
    if (code != SL_OK) {
        r->finder.stopped = code;
        return false;
    }
    /* in bundles, only files that the manifest calls scripts may have a comment with a reference */
    bool is_script = file->origin != JS_BUNDLED || file->entry->type == SL_BUNDLE_SOURCE ||
                     file->entry->type == SL_BUNDLE_MINIFIED_SOURCE;
    /* facts.map is empty if the comment embeds the map as a data URL: that is read from the script again */
    if (!reference->map.data && is_script && facts.has_map)
        *reference = (struct js_reference){
            .map = facts.map, .is_embedded = facts.embeds_map, .has_id = reference->has_id, .id = reference->id};
    if (!reference->map.data && !reference->is_embedded &&
        file->origin == JS_SENT) { /* "<script>.map" sent with the request needs no reference */
        const struct request_file *map = files_of_form(&r->files, m->abs_path, ".map");
        if (map)
            reference->map = map->name;
    }
    reference->is_embedded |= reference->map.data && sl_js_is_data_url(reference->map);
    if (!reference->has_id && file->origin != JS_BUNDLED && facts.has_debug_id) {
        reference->has_id = true;
        reference->id = facts.debug_id;
    }
    return true;
}

/* ---- keys of look-up tables in the cache ---- */

/* Resolves a URL reference against a base URL; data NULL when out of memory. */
static struct sl_str js_joined(struct js_request *r, struct sl_str base, struct sl_str reference)
{
    struct sl_buf text = {0};
    sl_js_join(base, reference, &text);
    return sl_buf_move_to_arena(&text, r->arena);
}

/* Makes the part of a look-up table's cache key that names one of its two files. A scraped file: the hash of its contents, which may
 * change under the same URL. Others: the URI; for a file in a bundle also type, path and debug id. False when the request cannot go
 * on. */
static bool js_make_file_id(struct js_request *r, const struct js_file *file, struct sl_str *id)
{
    static const char *const words[] = {"MinifiedSource", "SourceMap", "Source"};
    struct script_facts facts;
    struct sl_buf text = {0};
    char debug_id[SL_DEBUG_ID_TEXT] = "-";
    if (file->origin == JS_SCRAPED) {
        struct sl_error error;
        enum sl_code code = script_facts_get(file->item, &facts, &error);
        if (code != SL_OK) {
            r->finder.stopped = code;
            return false;
        }
        sl_buf_hex(&text, facts.sha256, sizeof facts.sha256);
    } else {
        sl_buf_str(&text, file->uri);
    }
    if (file->origin == JS_BUNDLED) {
        if (file->key.has_id)
            sl_debug_id_format(&file->key.id, debug_id);
        sl_buf_printf(&text, " / %s:" SL_STR_FMT " / %s", words[file->key.type],
                      SL_STR_ARG(file->key.path.data ? file->key.path : SL_STR("-")), debug_id);
    }
    *id = sl_buf_move_to_arena(&text, r->arena);
    if (!id->data)
        r->finder.stopped = SL_BUSY;
    return id->data;
}

/* ---- look-up tables of files sent with the request ---- */

/* True if the table is made from files sent with the request: then it is not cached. */
static bool uses_sent_files(const struct js_module *m)
{
    return m->minified->origin == JS_SENT || (m->map && m->map->origin == JS_SENT);
}

/* Finds the table of a script and its map, or adds an empty one, which the caller fills. `embedded` is compared by address: every
 * module of a script has the same view. NULL: out of memory. */
static struct js_request_table *intern_sent_table(const struct js_module *m, struct sl_str embedded)
{
    struct js_finder *finder = &m->request->finder;
    const struct cache_item *map = m->map ? m->map->item : NULL;
    struct js_request_table *table = finder->sent_tables;
    while (table && (table->script != m->minified->item || table->map != map || table->embedded.data != embedded.data ||
                     table->embedded.size != embedded.size))
        table = table->next;
    if (table || !(table = SL_ARENA_NEW(m->request->arena, struct js_request_table)))
        return table;
    *table = (struct js_request_table){
        .script = m->minified->item, .map = map, .embedded = embedded, .next = finder->sent_tables};
    return finder->sent_tables = table;
}

/* Sets m->item to the look-up table of files sent with the request. The first module with these files makes it, others wait for it and
 * return its code without a message. Lack of memory or a cancellation is not kept as the result. */
static enum sl_code convert_sent_map(struct js_module *m, struct sl_str embedded, struct sl_error *error)
{
    struct js_request_table *table = intern_sent_table(m, embedded);
    if (!table)
        return sl_fail(error, SL_BUSY, "out of memory");
    while (table->making)
        if (fiber_wait_on(&table->waiting, UINT64_MAX) != FIBER_WOKEN)
            return sl_fail(error, SL_CANCELLED, "cancelled");
    if (!table->made) {
        struct cache_item *map = m->map ? m->map->item : NULL;
        table->making = true;
        table->code = item_from_sourcemap(m->minified->item, map, embedded, &table->item, error);
        table->making = false;
        table->made = table->code != SL_BUSY && table->code != SL_CANCELLED;
        fiber_wake_all(&table->waiting);
    }
    if (table->item)
        m->item = cache_retain(table->item);
    return table->code;
}

/* ---- all look-up tables ---- */

/* Sets m->item to the look-up table of script and map, from the cache or newly made. If there is an error, m->code becomes SL_MALFORMED,
 * and m->problem says why if the request is a text. Errors that are no fault of the map end the request instead (finder.stopped):
 * SL_CANCELLED, SL_BUSY, and SL_INTERNAL for a damaged cache file or a full disk. False when the request has ended. */
static bool js_convert(struct js_request *r, struct js_module *m, struct sl_str embedded)
{
    struct sourcemap_request request = {.scope = r->scope, .embedded = embedded};
    /* the message for a failure that an earlier module of the same files has met */
    struct sl_error error = {.code = SL_OK, .message = "already tried"};
    request.script = m->minified->item ? &m->minified->request : NULL;
    request.map = m->map ? &m->map->request : NULL;
    request.map_id = SL_STR("<embedded>"); /* replaced below if the map is a file */
    if (uses_sent_files(m)) {
        m->code = convert_sent_map(m, embedded, &error);
    } else {
        if (!js_make_file_id(r, m->minified, &request.script_id) ||
            (m->map && !js_make_file_id(r, m->map, &request.map_id)))
            return false;
        m->code = sourcemap_get(&request, r->arena, &m->item, &error);
    }
    if (m->code == SL_INTERNAL)
        log_warn("js", "cannot store the look-up table of a source map; the request fails",
                 LOG_SLSTR("script", m->abs_path), LOG_STR("reason", error.message));
    if (m->code != SL_OK && r->is_of_text)
        m->problem =
            (struct sl_str){sl_arena_strndup(r->arena, error.message, strlen(error.message)), strlen(error.message)};
    if (m->code == SL_CANCELLED || m->code == SL_BUSY || m->code == SL_INTERNAL)
        r->finder.stopped = m->code;
    else if (m->code != SL_OK)
        log_debug("js", "cannot use the source map of a script", LOG_SLSTR("script", m->abs_path),
                  LOG_STR("reason", error.message));
    if (m->code != SL_OK)
        m->code = SL_MALFORMED;
    return r->finder.stopped == SL_OK;
}

struct js_data_url {           /* a check by js_check_data_url */
    struct sl_str script, url; /* url data NULL: the one in the script's comment */
    bool is_valid;             /* result */
};

/* Pool work: checks if a data URL can be decoded: the one in `check` or, if that has none, the one in the script's comment. When out of
 * memory (`failed`), it counts as valid. */
static void js_check_data_url(void *arg)
{
    struct js_data_url *check = arg;
    struct sl_buf decoded = {0};
    bool there = check->url.data || sl_js_map_comment(check->script, &check->url);
    check->is_valid = there && (sl_js_data_url(check->url, &decoded) || decoded.failed);
    sl_buf_free(&decoded);
}

/* Sets `*valid` to whether the map's data URL can be decoded. For files sent with the request the result is kept for other modules.
 * False when the request cannot go on. */
static bool js_data_url_valid(struct js_request *r, const struct js_module *m, bool *valid)
{
    struct js_data_url check = {.url = m->reference.map};
    struct js_request_table *shared = uses_sent_files(m) ? intern_sent_table(m, m->reference.map) : NULL;
    struct sl_error error;
    if (shared && shared->is_url_checked) {
        *valid = shared->is_url_valid;
        return true;
    }
    if (m->minified->item) {
        struct sl_bytes script = m->minified->item->mapping.bytes;
        check.script = (struct sl_str){(const char *)script.data, script.size};
    }
    enum sl_code code = pool_run(POOL_JSON, js_check_data_url, &check, &error);
    if (code != SL_OK)
        r->finder.stopped = code;
    *valid = check.is_valid;
    if (shared && code == SL_OK)
        shared->is_url_checked = true, shared->is_url_valid = check.is_valid;
    return code == SL_OK;
}

/* Uses the map that is embedded in the script as a data URL. If this cannot be decoded, it is ignored, so that only a debug id may
 * still lead to a map; but in bundles it is a malformed map. False when the request cannot go on. */
static bool js_use_embedded(struct js_request *r, struct js_module *m)
{
    bool valid = true;
    if (!js_convert(r, m, m->reference.map) ||
        (m->code == SL_MALFORMED && m->minified->origin != JS_BUNDLED && !js_data_url_valid(r, m, &valid)))
        return false;
    if (!valid) {
        m->code = SL_OK;
        m->reference.map = (struct sl_str){NULL, 0};
        return true;
    }
    m->embedded = true;
    m->match = m->minified->match;
    m->origin = SL_STR("\"embedded\"");
    return true;
}

/* ---- all of them ---- */

/* In a fiber: reads the script's reference to its map, and uses an embedded map. */
static void js_read_script(void *arg)
{
    struct js_module *m = arg;
    struct js_request *r = m->request;
    const struct sl_str *map = &m->reference.map;
    if (r->finder.stopped != SL_OK || m->minified->code != SL_OK || !js_find_reference(r, m) ||
        (m->reference.is_embedded && !js_use_embedded(r, m)))
        return;
    m->has_map = m->embedded || map->data || m->reference.has_id;
    if (!m->has_map)
        metric_observe(METRIC_JS_ITEMS, 1, "sourcemap_not_needed", NULL, NULL);
}

/* In a fiber: makes the look-up table of a script whose map is not embedded. A map that is found but empty is malformed. */
static void js_use_map(void *arg)
{
    struct js_module *m = arg;
    if (m->request->finder.stopped != SL_OK || !m->map)
        return;
    m->code = m->map->code;
    m->match = m->map->match;
    m->origin = js_origin_json(m->map, m->request->arena);
    if (m->code == SL_OK && !m->map->item)
        m->code = SL_MALFORMED;
    if (m->code == SL_OK)
        js_convert(m->request, m, (struct sl_str){NULL, 0});
}

struct js_modules { /* wanted modules, in the order of their frames */
    void **items;
    size_t count;
    /* arrays as large as `items`: what js_find looks up, and what it has found */
    struct js_key *keys;
    const struct js_file **files;
};

/* Lists the scripts of frames with a line number, each once; frames without one cannot be resolved. Callers first, so that the order
 * does not depend on the request's order of frames. False when out of memory. */
static bool js_list_wanted(struct js_request *r, struct js_modules *wanted)
{
    size_t most = r->modules_by_path.count + 1;
    *wanted = (struct js_modules){.items = SL_ARENA_ARRAY(r->arena, void *, most),
                                  .keys = SL_ARENA_ARRAY(r->arena, struct js_key, most),
                                  .files = SL_ARENA_ARRAY(r->arena, const struct js_file *, most)};
    if (!wanted->items || !wanted->keys || !wanted->files)
        return false;
    for (size_t t = 0; t < r->trace_count; t++)
        for (size_t n = 0; n < r->raw[t].count; n++) {
            const struct js_entry *entry = &r->raw[t].frames[r->callee_first ? r->raw[t].count - 1 - n : n];
            const struct js_frame *frame = entry->sent_size ? NULL : entry->frame;
            struct js_module *m = frame ? sl_map_get(&r->modules_by_path, frame->abs_path) : NULL;
            if (!m || !frame->line.value || m->wanted)
                continue;
            m->wanted = true;
            wanted->items[wanted->count++] = m;
        }
    return true;
}

/* Looks up the wanted scripts. First sets each label to the URL of the script, as the URL of its map may be relative to that. False when
 * the request cannot go on. */
static bool js_find_scripts(struct js_request *r, struct js_modules *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        struct js_module *m = wanted->items[i];
        m->label = sl_js_without_parameters(m->abs_path);
        wanted->keys[i] = (struct js_key){JS_MINIFIED_SOURCE, m->abs_path, m->has_id, m->id};
    }
    if (!js_find(r, wanted->keys, wanted->count, wanted->files))
        return false;
    for (size_t i = 0; i < wanted->count; i++)
        ((struct js_module *)wanted->items[i])->minified = wanted->files[i];
    return true;
}

/* Looks up the maps that are not embedded: by URL relative to the script, or by debug id alone. False when the request cannot go on. */
static bool js_find_maps(struct js_request *r, struct js_modules *wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        struct js_module *m = wanted->items[i];
        struct js_key key = {.type = JS_SOURCE_MAP, .has_id = m->reference.has_id, .id = m->reference.id};
        if (!m->has_map || m->embedded)
            continue;
        if (m->reference.map.data)
            m->label = key.path = js_joined(r, m->label, m->reference.map);
        if (!m->label.data) /* out of memory */
            return false;
        wanted->keys[count++] = key;
    }
    if (!js_find(r, wanted->keys, count, wanted->files))
        return false;
    /* `files` has the maps in the order of the loop above, so this one skips the same scripts */
    for (size_t i = 0, n = 0; n < count; i++) {
        struct js_module *m = wanted->items[i];
        if (m->has_map && !m->embedded)
            m->map = wanted->files[n++];
    }
    return true;
}

bool js_fetch_modules(struct js_request *r)
{
    struct js_modules wanted;
    return js_list_wanted(r, &wanted) && js_find_scripts(r, &wanted) &&
           js_for_each(r, js_read_script, wanted.items, wanted.count) && js_find_maps(r, &wanted) &&
           js_for_each(r, js_use_map, wanted.items, wanted.count);
}

void js_release_modules(struct js_request *r)
{
    for (struct js_module *m = r->modules; m; m = m->next)
        cache_release(m->item);
    r->modules = NULL;
    sl_map_free(&r->modules_by_path);
}
