/* The section `mozilla`: resolves its lists of URLs and ids to sources of symbols. */
#include <openssl/evp.h>
#include <string.h>

#include "base/buf.h"
#include "config/impl.h"
#include "id/id.h"
#include "origin/origin.h"

enum { TRIES = 5 }; /* attempts of a download from a symbol store */

/* Returns the configured source with this id; NULL if there is none. */
static const struct source *source_named(const struct config *config, struct sl_str id)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (sl_str_equal(config->sources[i].id, id))
            return &config->sources[i];
    return NULL;
}

static bool is_url(struct sl_str text)
{
    return sl_str_starts(text, SL_STR("http://")) || sl_str_starts(text, SL_STR("https://"));
}

/* Reports that element `i` of the list `path` is neither a URL nor the id of a source. `list` is the list in the file, for its position;
 * NULL if the elements come from defaults or the environment. */
static void unknown_source(struct value_problems *problems, const struct value *list, size_t i, const char *path)
{
    const struct value *at = list && list->type == VALUE_LIST && i < list->count ? &list->items[i] : list;
    char what[120];
    value_problem(problems, at, false, path, "%s is not a URL or the id of a source", scalar_describe(at, what));
}

/* Makes a source of Breakpad symbol files from the URL of a store. It is public: all scopes share its files. Its id is the URL without
 * secret parts. Stores of $ELIOT_SYMBOLS_URLS may have reserved IP addresses (`internal`). False when out of memory. */
static bool store_of_url(struct config *config, struct sl_str url, struct source *store)
{
    while (url.size && url.data[url.size - 1] == '/')
        url.size--;
    const char *shown = fetch_public_url(&config->arena, sl_arena_strndup(&config->arena, url.data, url.size));
    *store = (struct source){.id = sl_str(shown ? shown : ""),
                             .type = SOURCE_HTTP,
                             .layout = LAYOUT_NATIVE,
                             .filetypes = UINT32_C(1) << FILE_BREAKPAD,
                             .is_public = true,
                             .configured = true,
                             .internal = config->mozilla.are_sources_of_eliot,
                             .url = url,
                             .attempts = TRIES};
    return shown != NULL;
}

/* Returns a text that identifies the list of stores, for keys of cache entries: the hash of the list as written. NULL when out of
 * memory. */
static const char *make_key(struct config *config)
{
    struct sl_buf text = {0};
    uint8_t hash[32];
    char *key = NULL;
    for (size_t i = 0; i < config->mozilla.source_count; i++) {
        sl_buf_str(&text, config->mozilla.sources[i]);
        sl_buf_u8(&text, '\n');
    }
    if (!text.failed &&
        EVP_Digest(text.data ? text.data : (const uint8_t *)"", text.size, hash, NULL, EVP_sha256(), NULL) == 1)
        key = sl_arena_alloc(&config->arena, 2 * sizeof hash + 1, 1);
    if (key)
        sl_hex_encode(hash, sizeof hash, key);
    sl_buf_free(&text);
    return key;
}

/* Resolves `mozilla.sources`, whose elements are URLs of symbol stores or ids of sources, to config->mozilla.stores. Unknown elements are
 * reported and left out. False when out of memory. */
static bool read_stores(struct config *config, const struct value *root, struct value_problems *problems)
{
    size_t count = config->mozilla.source_count;
    /* + 1: an empty list is no lack of memory */
    struct source *stores = SL_ARENA_ARRAY(&config->arena, struct source, count + 1);
    size_t good = 0;
    for (size_t i = 0; stores && i < count; i++) {
        struct sl_str text = config->mozilla.sources[i];
        const struct source *known = source_named(config, text);
        if (known)
            stores[good++] = *known;
        else if (is_url(text) && store_of_url(config, text, &stores[good]))
            good++;
        else
            unknown_source(problems, config_find(root, "mozilla.sources"), i, "mozilla.sources");
    }
    config->mozilla.stores_key = make_key(config);
    config->mozilla.stores = stores;
    config->mozilla.source_count = stores ? good : 0;
    return stores && config->mozilla.stores_key;
}

/* Reports elements of `mozilla.store.extra` that are no URLs: unlike in `mozilla.sources`, ids of sources are not allowed. */
static void check_extra(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct config_store *store = &config->mozilla.store;
    const struct value *list = config_find(root, "mozilla.store.extra");
    for (size_t i = 0; i < store->extra_count; i++) {
        const struct value *at = list && list->type == VALUE_LIST && i < list->count ? &list->items[i] : list;
        char what[120];
        if (!is_url(store->extra[i]))
            value_problem(problems, at, false, "mozilla.store.extra",
                          "%s is not a URL (ids of sources are not allowed here)", scalar_describe(at, what));
    }
}

/* Resolves `mozilla.fallback_sources`, the ids of sources that are asked for modules that the stores do not have: all sources, or those
 * listed. Unknown ids are reported and left out. False when out of memory. */
static bool read_fallbacks(struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct sl_str *ids = config->mozilla.fallback_sources;
    size_t count = config->mozilla.fallback_count, good = 0;
    if (config->mozilla.fallback_all) {
        config->mozilla.fallbacks = config->sources;
        config->mozilla.fallbacks_count = config->source_count;
        config->mozilla.fallbacks_number = config->sources_number;
        return true;
    }
    struct source *fallbacks = SL_ARENA_ARRAY(&config->arena, struct source, count + 1);
    for (size_t i = 0; fallbacks && i < count; i++) {
        const struct source *known = source_named(config, ids[i]);
        if (known)
            fallbacks[good++] = *known;
        else if (!sl_str_equal(ids[i], SL_STR("uploads"))) /* allowed, without effect: uploads are always searched */
            unknown_source(problems, config_find(root, "mozilla.fallback_sources"), i, "mozilla.fallback_sources");
    }
    config->mozilla.fallbacks = fallbacks;
    config->mozilla.fallbacks_count = good;
    config->mozilla.fallbacks_number = source_list_number(); /* a new number, which identifies the list */
    return fallbacks != NULL;
}

bool config_read_mozilla(struct config *config, const struct value *root, struct value_problems *problems)
{
    if (!config->mozilla.on)
        return true;
    if (!read_stores(config, root, problems))
        return false;
    check_extra(config, root, problems);
    return read_fallbacks(config, root, problems);
}
