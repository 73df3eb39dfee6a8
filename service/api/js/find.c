/* Finds scripts, source maps and sources. finder_stop and `stops` set finder.stopped, the reason why the whole request ends.
 *
 * Files are searched in known bundles and single files, then in what Sentry lists when it is queried, then on the web. All files of one
 * call take each step concurrently, and the next step begins when all are done: so what is found for one file is used for the others,
 * whatever their order. */
#include "api/js/js.h"

#include "core/log.h"
#include "core/metrics.h"
#include "debug_file_store/artifacts.h"
#include "js/comment.h"
#include "js/names.h"
#include "source/zip.h"

enum { CANDIDATES = 4 }; /* largest number of URLs under which a file may be listed */

static const char *const type_names[] = {"minified_source", "source_map", "source"};
static const enum sl_bundle_type bundle_types[] = {SL_BUNDLE_MINIFIED_SOURCE, SL_BUNDLE_SOURCE_MAP, SL_BUNDLE_SOURCE};

const char *js_type_name(enum js_type type)
{
    return type_names[type];
}

/* Makes `code` the reason for which the request ends, unless there is one already; returns false. */
static bool finder_stop(struct js_request *r, enum sl_code code)
{
    if (r->finder.stopped == SL_OK)
        r->finder.stopped = code;
    return false;
}

/* True if `code` ends the request (finder.stopped is then set), false if it only says that a file cannot be used. finder_stop always
 * returns false. */
static bool stops(struct js_request *r, enum sl_code code)
{
    return (code == SL_CANCELLED || code == SL_BUSY) && !finder_stop(r, code);
}

/* Counts a look-up in a metric, by its result, the type of file, and how it was found. */
static void count_lookup(const struct js_file *file, const char *result, const char *how)
{
    metric_add4(METRIC_JS_LOOKUPS, 1, result, type_names[file->key.type], how, file->key.has_id ? "true" : "false");
}

/* ---- texts ---- */

/* Returns the text before the first `c`, or all of it. */
static struct sl_str js_until(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (struct sl_str){text.data, (size_t)(found - text.data)} : text;
}

/* Returns "~" and the path of the URL, the form in which artifacts for any host are listed. Data NULL when out of memory. */
static struct sl_str at_any_host(struct sl_str url, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    sl_buf_u8(&text, '~');
    sl_buf_str(&text, sl_js_strip_hostname(url));
    return sl_buf_move_to_arena(&text, arena);
}

/* Lists the URLs under which a file may be listed, best first; returns their number, 0 when out of memory. For
 * "https://host/a.js?v=1#x":
 *
 *     https://host/a.js?v=1   https://host/a.js   ~/a.js?v=1   ~/a.js */
static size_t list_candidate_urls(struct sl_str url, struct sl_arena *arena, struct sl_str found[CANDIDATES])
{
    struct sl_str whole = js_until(url, '#'), plain = js_until(whole, '?');
    size_t count = 0;
    found[count++] = whole;
    if (plain.size != whole.size)
        found[count++] = plain;
    found[count++] = at_any_host(whole, arena);
    if (plain.size != whole.size)
        found[count++] = at_any_host(plain, arena);
    for (size_t i = 0; i < count; i++)
        if (!found[i].data)
            return 0;
    return count;
}

/* ---- bundles and single files ---- */

/* Gets the contents that file->request describes, from the cache or the symbol source, into file->item. Failures that end the whole
 * request (stops) are not logged here. */
static enum sl_code fetch_js_file(struct js_request *r, struct js_file *file)
{
    struct sl_error error = {.code = SL_OK};
    enum sl_code code = source_file_get(&file->request, r->arena, &file->item, &error);
    if (code != SL_OK && !stops(r, code))
        log_debug("js", "cannot use an artifact file", LOG_SLSTR("file", file->uri), LOG_STR("reason", error.message));
    return code;
}

/* Sets the members of `file` from an entry of a bundle. An empty entry counts as found, but gives no item. False if `entry` is NULL, is
 * not in the bundle's archive, or cannot be read. */
static bool take_entry(struct js_request *r, struct js_file *file, const struct js_bundle *bundle,
                       const struct sl_bundle_file *entry)
{
    if (!entry || !entry->entry)
        return false;
    file->uri = bundle->artifact->file.uri;
    file->entry = entry;
    file->request = (struct source_request){
        .scope = r->scope, .file = &bundle->artifact->file, .entry = entry->name, .is_utf8 = true};
    if (entry->entry->size && fetch_js_file(r, file) != SL_OK)
        return false;
    file->origin = JS_BUNDLED;
    file->match = file->key.has_id ? MATCH_DEBUG_ID : bundle->artifact->match;
    file->code = SL_OK;
    count_lookup(file, "found", file->key.has_id ? "bundle_debugid" : "bundle_url");
    return true;
}

/* Finds the file in the opened bundles: by its debug id if it has one, otherwise by its URLs. The first URL is searched in all bundles,
 * then the second, and so on. */
static bool find_in_bundles(struct js_request *r, struct js_file *file, const struct sl_str *urls, size_t url_count)
{
    const struct js_finder *f = &r->finder;
    if (file->key.has_id)
        url_count = 1; /* source_object_find_file ignores the URL then: one round is enough */
    const struct sl_debug_id *id = file->key.has_id ? &file->key.id : NULL;
    for (size_t u = 0; u < url_count; u++)
        for (size_t i = 0; i < f->bundle_count && f->stopped == SL_OK; i++) {
            const struct js_bundle *bundle = f->bundles[i];
            const struct sl_bundle_file *entry = NULL;
            /* a bundle that could not be opened has no item, and so no entry */
            enum sl_code code =
                bundle->object.item
                    ? source_object_find_file(&bundle->object, id, bundle_types[file->key.type], urls[u], &entry)
                    : SL_OK;
            if (code != SL_OK) /* a damaged cache file, for example: ends the request; finder_stop returns false */
                return finder_stop(r, code);
            if (take_entry(r, file, bundle, entry))
                return true;
        }
    return false;
}

/* Uses the first single artifact that is listed under one of the URLs. True if there is one, also if it cannot be fetched. */
static bool find_artifact(struct js_request *r, struct js_file *file, const struct sl_str *urls, size_t url_count)
{
    const struct artifact *artifact = NULL;
    for (size_t i = 0; i < url_count && !artifact; i++)
        artifact = sl_map_get(&r->finder.by_path, urls[i]);
    if (!artifact)
        return false;
    file->artifact = artifact;
    file->uri = artifact->file.uri;
    file->match = artifact->match;
    file->origin = JS_INDIVIDUAL;
    file->request = (struct source_request){.scope = r->scope, .file = &artifact->file, .is_utf8 = true};
    file->code = fetch_js_file(r, file);
    metric_observe(METRIC_JS_ITEMS, 1, "fetched_artifacts", NULL, NULL);
    /* If the artifact's headers name a source map, two kinds of files count as found all the same: an empty file (SL_NOT_FOUND), and a
     * command's file that is no text, such as bytecode of Hermes (SL_MALFORMED). */
    if ((file->code == SL_NOT_FOUND || (r->local && file->code == SL_MALFORMED)) && artifact->has_headers)
        file->code = SL_OK;
    count_lookup(file, file->code == SL_OK ? "found" : "error", "artifact");
    return true;
}

/* ---- files of the request ---- */

/* Sets `*item` to the contents of a file sent with the request, NULL if it is empty. They are made once, for all URLs that name the
 * file; each caller gets a reference. Lack of memory or a cancellation is not kept as the result. */
static enum sl_code get_sent_text(struct js_request *r, const struct request_file *sent, struct cache_item **item)
{
    struct js_request_text *text = &r->finder.sent_texts[sent - r->files.items];
    struct sl_error error;
    if (!text->read) {
        text->code = sent->text.size ? item_from_text(sent->text, &text->item, &error) : SL_OK;
        text->read = text->code != SL_BUSY && text->code != SL_CANCELLED;
    }
    *item = text->item ? cache_retain(text->item) : NULL;
    return text->code;
}

/* Finds a file sent with the request by its name; the answer names it "artifact:<name>". Two kinds of files are found as an empty file:
 * a script that was not sent, but whose map "<name>.map" was; and bytecode, which has no lines to show. */
static bool find_sent_file(struct js_request *r, struct js_file *file)
{
    const struct request_file *sent = file->key.path.data ? files_of_form(&r->files, file->key.path, "") : NULL;
    bool map_alone = !sent && file->key.type == JS_MINIFIED_SOURCE && file->key.path.data &&
                     files_of_form(&r->files, file->key.path, ".map");
    if (!sent && !map_alone)
        return false;
    struct sl_buf uri = {0};
    sl_buf_cstr(&uri, "artifact:");
    sl_buf_str(&uri, sent ? sent->name : file->key.path);
    file->uri = sl_buf_move_to_arena(&uri, r->arena);
    enum sl_code code = SL_OK;
    if (!file->uri.data)
        code = SL_BUSY;
    else if (sent && !sl_js_is_bytecode(sent->text))
        code = get_sent_text(r, sent, &file->item);
    if (stops(r, code))
        return false;
    file->origin = JS_SENT;
    file->code = code;
    file->match = MATCH_URL;
    count_lookup(file, code == SL_OK ? "found" : "error", "artifact");
    return true;
}

/* ---- queries for artifacts ---- */

struct js_file_search { /* look-up of a file that is not found yet */
    struct js_request *request;
    struct js_file *file;
    struct sl_str urls[CANDIDATES];
    size_t url_count;
    bool found;
    const struct artifact *listed; /* result of the last query; NULL: not queried */
    size_t listed_count;
};

/* Queries Sentry for artifacts: with the file's debug id, and with the path of its URL without host and suffix (the stem) within the
 * release. Sets look->listed; NULL if there is no source to query, or the query failed. */
static void query_sentry(void *arg)
{
    struct js_file_search *look = arg;
    struct js_request *r = look->request;
    struct artifact_query query = {.release = r->release, .dist = r->dist};
    struct sl_str stem = {NULL, 0};
    struct artifact *items = NULL;
    struct sl_error error = {.code = SL_OK};
    look->listed = NULL;
    /* a command's local files replace the source that the request names, unless own_sources asks for both */
    if (r->finder.stopped != SL_OK || !r->source.id.data || (r->local && !r->local->own_sources))
        return;
    if (look->file->key.path.data) {
        stem = sl_js_stem(look->file->key.path);
        query.stems = &stem;
        query.stem_count = 1;
    }
    query.debug_ids = &look->file->key.id;
    query.debug_id_count = look->file->key.has_id;
    enum sl_code code = origin_artifacts(&r->source, &query, r->arena, &items, &look->listed_count, &error);
    if (code != SL_OK)
        look->listed_count = 0;
    if (code != SL_OK && !stops(r, code))
        log_debug("js", "cannot look up artifacts in a symbol source", LOG_SLSTR("source", r->source.id),
                  LOG_STR("reason", error.message));
    look->listed = items;
    metric_observe(METRIC_JS_ITEMS, 1, "api_requests", NULL, NULL);
}

/* Queries the store of uploaded files for bundles with the file's debug id, and for all bundles of the release. Those are the same
 * for all files, so only the first query with a path asks for them (has_release_bundles). Sets look->listed. */
static void query_uploads(void *arg)
{
    struct js_file_search *look = arg;
    struct js_request *r = look->request;
    const struct js_key *key = &look->file->key;
    struct artifact_release release = {r->release, r->dist};
    struct found_bundle *bundles;
    struct sl_error error = {.code = SL_OK};
    size_t count;
    look->listed = NULL;
    if (r->finder.stopped != SL_OK)
        return;
    if (!key->path.data || r->finder.has_release_bundles)
        release = (struct artifact_release){{NULL, 0}, {NULL, 0}};
    if (!key->has_id && !release.release.size)
        return;
    enum sl_code code =
        artifact_bundles_find(&release, key->has_id ? &key->id : NULL, r->arena, &bundles, &count, &error);
    if (code != SL_OK && !stops(r, code))
        log_warn("js", "cannot look up uploaded artifact bundles", LOG_ERR(&error));
    struct artifact *items = code == SL_OK ? SL_ARENA_ARRAY(r->arena, struct artifact, count + 1) : NULL;
    if (code != SL_OK ||
        (!items && !finder_stop(r, SL_BUSY))) /* out of memory: finder_stop ends the request, and returns false */
        return;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct artifact){
            .file = bundles[i].file, .is_bundle = true, .match = bundles[i].by_id ? MATCH_DEBUG_ID : MATCH_RELEASE};
    r->finder.has_release_bundles |= release.release.size > 0;
    look->listed = items;
    look->listed_count = count;
}

/* Queries the local files of a command. Sets look->listed. */
static void query_local_files(void *arg)
{
    struct js_file_search *look = arg;
    struct js_request *r = look->request;
    const struct js_key *key = &look->file->key;
    struct local_file_query query = {.path = key->path,
                                     .is_map = key->type == JS_SOURCE_MAP,
                                     .id = key->has_id ? &key->id : NULL,
                                     .release = r->release,
                                     .dist = r->dist};
    struct artifact *items;
    look->listed = NULL;
    if (!r->local || !r->local->look_up)
        return;
    if (query.path.data)
        query.stem = sl_js_stem(query.path);
    if (!r->local->look_up(r->local->look_up_arg, &query, r->arena, &items, &look->listed_count))
        finder_stop(r, SL_BUSY); /* look_up fails only when out of memory */
    else
        look->listed = items;
}

/* In a fiber: opens one bundle. If it cannot be opened, `object` stays empty and no file is found in it; but lack of memory or a
 * cancelled request ends the whole search (stops). */
static void open_bundle(void *arg)
{
    struct js_bundle *bundle = arg;
    struct js_request *r = bundle->request;
    struct sl_error error = {.code = SL_OK};
    if (r->finder.stopped != SL_OK)
        return;
    enum sl_code code = source_object_open_bundle(&bundle->artifact->file, r->scope, r->arena, &bundle->object, &error);
    if (code != SL_OK && stops(r, code))
        return;
    if (code != SL_OK)
        log_debug("js", "cannot use a source bundle", LOG_SLSTR("bundle", bundle->artifact->file.uri),
                  LOG_STR("reason", error.message));
    metric_observe(METRIC_JS_ITEMS, code == SL_OK, "fetched_bundles", NULL, NULL);
}

/* Opens the bundles that add_bundle has added since the last call. False when the request cannot go on. */
static bool open_bundles(struct js_request *r)
{
    struct js_finder *f = &r->finder;
    void **bundles = SL_ARENA_ARRAY(r->arena, void *, f->bundle_count + 1);
    size_t count = 0;
    if (!bundles)
        return finder_stop(r, SL_BUSY);
    for (size_t i = 0; i < f->bundle_count; i++) {
        if (!f->bundles[i]->tried)
            bundles[count++] = f->bundles[i];
        f->bundles[i]->tried = true;
    }
    return js_for_each(r, open_bundle, bundles, count);
}

/* Adds a bundle; false when out of memory. Keeps the list sorted by URI (descending), so that the bundle whose files are used does not
 * depend on the order in which queries end. */
static bool add_bundle(struct js_request *r, const struct artifact *artifact)
{
    struct js_finder *f = &r->finder;
    struct js_bundle *bundle = SL_ARENA_NEW(r->arena, struct js_bundle);
    if (!bundle ||
        !sl_grow_in_arena(r->arena, &f->bundles, &f->bundle_capacity, f->bundle_count + 1, sizeof *f->bundles))
        return finder_stop(r, SL_BUSY);
    *bundle = (struct js_bundle){.request = r, .artifact = artifact};
    size_t at = f->bundle_count++;
    for (; at && sl_str_compare(f->bundles[at - 1]->artifact->file.uri, artifact->file.uri) < 0; at--)
        f->bundles[at] = f->bundles[at - 1];
    f->bundles[at] = bundle;
    return true;
}

/* Adds an artifact unless it is known. Sets `*added` if its URI is new. For a single file, which may be listed under several paths, also
 * sets it if the path is new. If two files have the same path, the first one counts. False when out of memory. */
static bool add_artifact(struct js_request *r, const struct artifact *artifact, bool *added)
{
    struct js_finder *f = &r->finder;
    bool made;
    void **slot = sl_map_find_or_add(&f->known, artifact->file.uri, &made);
    if (!slot)
        return finder_stop(r, SL_BUSY);
    if (made) {
        *slot = (void *)(uintptr_t)artifact;
        *added = true;
    }
    if (artifact->is_bundle)
        return !made || add_bundle(r, artifact);
    slot = sl_map_find_or_add(&f->by_path, artifact->abs_path, &made);
    if (slot && made) {
        *slot = (void *)(uintptr_t)artifact;
        *added = true;
    }
    return slot || finder_stop(r, SL_BUSY);
}

/* Adds the artifacts that a query listed; `*added` is set if one of them is new. False when out of memory. */
static bool add_artifacts(struct js_request *r, const struct artifact *items, size_t count, bool *added)
{
    size_t bundles = 0;
    for (size_t i = 0; i < count; i++) {
        bundles += items[i].is_bundle;
        if (!add_artifact(r, &items[i], added))
            return false;
    }
    metric_observe(METRIC_JS_ITEMS, (double)bundles, "queried_bundles", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)(count - bundles), "queried_artifacts", NULL, NULL);
    return true;
}

/* ---- concurrent look-ups ---- */

struct js_search { /* the search for the files of one js_find */
    struct js_request *request;
    void **looks; /* struct js_file_search *: files not found yet, in the order of the keys */
    size_t count;
};

/* Searches for one file without asking anybody: in the files sent with the request, the opened bundles, the known artifacts. */
static void search_known_for(void *arg)
{
    struct js_file_search *look = arg;
    struct js_request *r = look->request;
    look->found = r->finder.stopped == SL_OK &&
                  (find_sent_file(r, look->file) || find_in_bundles(r, look->file, look->urls, look->url_count) ||
                   find_artifact(r, look->file, look->urls, look->url_count));
    if (look->found && look->file->key.path.data) /* the answer reports that its URL was not downloaded */
        look->file->attempt.status = JS_NOT_ATTEMPTED;
}

/* The last step for a file that was found nowhere else: downloads it, if it has a path. */
static void search_web(void *arg)
{
    struct js_file_search *look = arg;
    struct js_file *file = look->file;
    if (look->request->finder.stopped != SL_OK)
        return;
    if (file->key.path.data)
        js_scrape(look->request, file);
    count_lookup(file, file->code == SL_OK ? "found" : "not_found", file->code == SL_OK ? "scraping" : "none");
}

/* Searches for all missing files without asking anybody; those that are found leave the list. False when the request cannot go on. */
static bool search_known(struct js_search *l)
{
    if (!js_for_each(l->request, search_known_for, l->looks, l->count))
        return false;
    size_t left = 0;
    for (size_t i = 0; i < l->count; i++)
        if (!((struct js_file_search *)l->looks[i])->found)
            l->looks[left++] = l->looks[i];
    l->count = left;
    return true;
}

/* Asks about `count` of the missing files, from number `begin` on, with the function `ask`. Artifacts that are new to the request
 * are then searched for all missing files. False when the request cannot go on. */
static bool query_range(struct js_search *l, void (*ask)(void *look), size_t begin, size_t count)
{
    bool added = false;
    if (!js_for_each(l->request, ask, l->looks + begin, count))
        return false;
    for (size_t i = begin; i < begin + count; i++) {
        const struct js_file_search *look = l->looks[i];
        if (look->listed && !add_artifacts(l->request, look->listed, look->listed_count, &added))
            return false;
    }
    return !added || (open_bundles(l->request) && search_known(l));
}

/* Asks about the first missing file alone: usually its bundle has the others as well, which saves their queries. Then asks about the
 * files that are still missing. `asked` is 1 if the first of them is the one that was asked about already. False when the request
 * cannot go on. */
static bool query_missing(struct js_search *l, void (*ask)(void *look))
{
    const void *first = l->count ? l->looks[0] : NULL;
    if (!first || !query_range(l, ask, 0, 1))
        return l->request->finder.stopped == SL_OK; /* true: no file was missing */
    size_t asked = l->count && l->looks[0] == first;
    return query_range(l, ask, asked, l->count - asked);
}

/* Takes the steps in order, each for the files that are still missing: known files, a command's local files, Sentry, uploaded files,
 * the web. False when the request ends. */
static bool search_everywhere(struct js_search *l)
{
    return search_known(l) && (!l->request->local || query_missing(l, query_local_files)) &&
           query_missing(l, query_sentry) && (!debug_files_are_open() || query_missing(l, query_uploads)) &&
           js_for_each(l->request, search_web, l->looks, l->count);
}

/* Makes the map key of a file: type, debug id, and path. The byte before the path tells an absent path from an empty one. */
static struct sl_str key_text(const struct js_key *key, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%d ", key->type);
    if (key->has_id)
        sl_buf_add(&text, &key->id, sizeof key->id);
    sl_buf_u8(&text, '\n');
    sl_buf_u8(&text, key->path.data != NULL);
    sl_buf_str(&text, key->path);
    return sl_buf_move_to_arena(&text, arena);
}

/* Makes the search for a file; NULL when out of memory. A file without a path has no URLs, only a debug id. */
static struct js_file_search *look_new(struct js_request *r, struct js_file *file)
{
    struct js_file_search *look = SL_ARENA_NEW(r->arena, struct js_file_search);
    if (!look)
        return NULL;
    *look = (struct js_file_search){.request = r, .file = file};
    if (file->key.path.data)
        look->url_count = list_candidate_urls(file->key.path, r->arena, look->urls);
    return !file->key.path.data || look->url_count ? look : NULL;
}

/* Finds or makes the file of a key. `*look` is the search for it, or NULL if the request looked it up before. Returns NULL when out
 * of memory. */
static struct js_file *js_intern_file(struct js_request *r, const struct js_key *key, struct js_file_search **look)
{
    struct js_finder *f = &r->finder;
    struct sl_str text = key_text(key, r->arena);
    void **slot = text.data ? sl_map_find_or_add(&f->by_key, text, NULL) : NULL;
    *look = NULL;
    if (!slot || *slot)
        return slot ? *slot : NULL;
    struct js_file *file = *slot = SL_ARENA_NEW(r->arena, struct js_file);
    if (!file)
        return NULL;
    *file = (struct js_file){.key = *key, .number = f->file_count++, .code = SL_NOT_FOUND, .next = f->files};
    f->files = file;
    metric_observe(METRIC_JS_ITEMS, 1, "needed_files", NULL, NULL);
    *look = look_new(r, file);
    return *look ? file : NULL;
}

bool js_find(struct js_request *r, const struct js_key *keys, size_t count, const struct js_file **found)
{
    struct js_search search = {.request = r, .looks = SL_ARENA_ARRAY(r->arena, void *, count + 1)};
    if (!search.looks)
        return finder_stop(r, SL_BUSY);
    for (size_t i = 0; i < count; i++) {
        struct js_file_search *look;
        found[i] = js_intern_file(r, &keys[i], &look);
        if (!found[i])
            return finder_stop(r, SL_BUSY);
        if (look)
            search.looks[search.count++] = look;
    }
    return search_everywhere(&search);
}

/* Runs `run` in a fiber for each item, JS_AT_ONCE at a time. fiber_for_each returns false only when the job is cancelled. */
bool js_for_each(struct js_request *r, void (*run)(void *item), void **items, size_t count)
{
    if (count && !fiber_for_each(run, items, count, JS_AT_ONCE))
        finder_stop(r, SL_CANCELLED);
    return r->finder.stopped == SL_OK;
}

/* Releases all files and bundles, and empties the finder, so that the request can be run again. */
void js_finder_end(struct js_finder *f)
{
    for (struct js_file *file = f->files; file; file = file->next)
        cache_release(file->item);
    for (size_t i = 0; i < f->bundle_count; i++)
        source_object_release(&f->bundles[i]->object);
    for (size_t i = 0; i < OWN_FILES_MAX; i++)
        cache_release(f->sent_texts[i].item);
    for (const struct js_request_table *table = f->sent_tables; table; table = table->next)
        cache_release(table->item);
    sl_map_free(&f->by_key);
    sl_map_free(&f->known);
    sl_map_free(&f->by_path);
    *f = (struct js_finder){.files = NULL};
}
