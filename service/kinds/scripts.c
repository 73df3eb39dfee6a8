/* What scripts say of themselves, looked for once for as long as the script is in memory. */
#include "kinds/impl.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "core/guard.h"
#include "js/comment.h"

struct script { /* loaded; loop thread */
    bool known;
    struct script_facts facts;
};

enum sl_code script_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    (void)bytes;
    *loaded = calloc(1, sizeof(struct script));
    *weight = sizeof(struct script);
    return *loaded ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

struct script_look {
    struct sl_str text;
    struct script_facts facts;
};

static enum sl_code script_look(void *arg, struct sl_error *error)
{
    struct script_look *look = arg;
    struct script_facts *facts = &look->facts;
    facts->has_map = sl_js_map_comment(look->text, &facts->map);
    facts->has_debug_id = sl_js_debug_id_comment(look->text, &facts->debug_id);
    if (EVP_Digest(look->text.data, look->text.size, facts->sha256, NULL, EVP_sha256(), NULL) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    return SL_OK;
}

enum sl_code kinds_script_facts(struct cache_item *item, struct script_facts *facts, struct sl_error *error)
{
    struct script *script = item->loaded;
    struct script_look look = {.text = {(const char *)item->mapping.bytes.data, item->mapping.bytes.size}};
    enum sl_code code = script->known ? SL_OK : kinds_on_pool(script_look, &look, error);
    if (code == SL_OK && !script->known) {
        script->facts = look.facts;
        script->known = true;
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

const struct sl_bundle_file *kinds_bundle_file(const struct source_object *bundle, const struct sl_debug_id *id,
                                               enum sl_bundle_type type, struct sl_str url)
{
    struct bundle_look look = {bundle, id, type, url, NULL};
    return guard_run(bundle_look, &look) ? look.found : NULL;
}
