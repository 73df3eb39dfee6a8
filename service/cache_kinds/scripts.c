/* Debug references in scripts, searched once while the script is in memory. */
#include "cache_kinds/impl.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "core/sigbus_guard.h"
#include "core/pool.h"
#include "js/comment.h"

enum { MAX_REFERENCE = 64 * 1024 }; /* bytes; no server accepts a longer one */

struct kinds_script { /* the item's `loaded`; loop thread */
    bool known;
    struct script_facts facts;
    char *map; /* for `facts`: a copy, as the loop must not read the mapped script */
};

enum sl_code script_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    (void)bytes;
    *loaded = calloc(1, sizeof(struct kinds_script));
    *weight = sizeof(struct kinds_script);
    return *loaded ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

void script_free(void *loaded)
{
    struct kinds_script *script = loaded;
    free(script->map);
    free(script);
}

struct script_look {
    struct sl_str text;
    struct script_facts facts;
    char *map;
};

/* Copies the URL of the source map that the script names, unless the script contains the map itself or the URL is too long.
 * False when out of memory. */
static bool keep_reference(struct script_look *look)
{
    struct script_facts *facts = &look->facts;
    struct sl_str map;
    if (!sl_js_map_comment(look->text, &map))
        return true;
    facts->embeds_map = sl_js_is_data_url(map);
    facts->has_map = facts->embeds_map || map.size <= MAX_REFERENCE;
    if (facts->embeds_map || !facts->has_map)
        return true;
    look->map = malloc(map.size + 1);
    if (look->map)
        memcpy(look->map, map.data, map.size);
    facts->map = (struct sl_str){look->map, map.size};
    return look->map;
}

static enum sl_code script_look(void *arg, struct sl_error *error)
{
    struct script_look *look = arg;
    struct script_facts *facts = &look->facts;
    facts->has_debug_id = sl_js_debug_id_comment(look->text, &facts->debug_id);
    if (EVP_Digest(look->text.data, look->text.size, facts->sha256, NULL, EVP_sha256(), NULL) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    return keep_reference(look) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Returns the facts of a script; reads the script on the pool the first time. Two fibers may do that at once: the first
 * result stays. */
enum sl_code script_facts_get(struct cache_item *item, struct script_facts *facts, struct sl_error *error)
{
    struct kinds_script *script = item->loaded;
    struct script_look look = {.text = {(const char *)item->mapping.bytes.data, item->mapping.bytes.size}};
    enum sl_code code = script->known ? SL_OK : pool_call(POOL_CONVERT, script_look, &look, error);
    if (code == SL_OK && !script->known) {
        script->facts = look.facts;
        script->map = look.map;
        script->known = true;
    } else {
        free(look.map); /* another fiber has set it first */
    }
    *facts = script->facts;
    return code;
}

struct bundle_look {
    const struct source_object *bundle;
    const struct sl_debug_id *id;
    enum sl_bundle_type type;
    struct sl_str url;
    const struct sl_bundle_file *found;
};

static void bundle_look(void *arg)
{
    struct bundle_look *look = arg;
    const struct sl_bundle *bundle = look->bundle->item->loaded;
    look->found = look->id ? sl_bundle_by_debug_id(bundle, look->id, look->type) : sl_bundle_by_url(bundle, look->url);
}

/* Finds a file of a bundle by debug id, or by URL if `id` is NULL. Reads the mapped bundle on the loop, under a guard
 * against SIGBUS. */
enum sl_code source_object_find_file(const struct source_object *bundle, const struct sl_debug_id *id,
                                     enum sl_bundle_type type, struct sl_str url, const struct sl_bundle_file **file)
{
    struct bundle_look look = {bundle, id, type, url, NULL};
    bool readable = sigbus_guard_run(bundle_look, &look);
    *file = readable ? look.found : NULL;
    return readable ? SL_OK : SL_INTERNAL;
}
