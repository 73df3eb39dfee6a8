/* Finds the debug id and source map reference in a script's comments, and keeps them as long as the script is in the memory layer of the
 * cache. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/log.h"
#include "core/pool.h"
#include "core/sigbus_guard.h"
#include "js/comment.h"

enum { MAX_REFERENCE = 64 * 1024 }; /* longest URL of a source map in bytes; no server accepts a longer one */

struct kinds_script { /* `loaded` of the cache item of a script; used by the loop thread only */
    bool known;       /* `facts` are set */
    struct script_facts facts;
    struct sl_buf map; /* text of facts.map: a copy, as the loop must not read the mapped script */
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
    sl_buf_free(&script->map);
    free(script);
}

/* Runs in a worker: finds a script's debug id and source map reference in its comments, and hashes it. Writes the reference to the output,
 * unless it is a `data:` URL, which contains the map itself. A reference that is too long counts as none. */
static enum sl_code find_facts(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    (void)conversion; /* no work limit needed: the script is read a fixed number of times */
    struct script_facts_result *outcome = result;
    struct sl_bytes bytes = converter_input_bytes(call, INPUT_FILE);
    struct sl_str text = {(const char *)bytes.data, bytes.size}, map;
    outcome->has_debug_id = sl_js_debug_id_comment(text, &outcome->debug_id);
    if (EVP_Digest(text.data, text.size, outcome->sha256, NULL, EVP_sha256(), NULL) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!sl_js_map_comment(text, &map))
        return SL_OK;
    outcome->embeds_map = sl_js_is_data_url(map);
    outcome->has_map = outcome->embeds_map || map.size <= MAX_REFERENCE;
    if (outcome->embeds_map || !outcome->has_map)
        return SL_OK;
    return write_whole_file(call->out, (struct sl_bytes){(const uint8_t *)map.data, map.size}, error);
}

static bool check_result(const void *result)
{
    const struct script_facts_result *outcome = result;
    return converter_bool_is_valid(&outcome->has_map) && converter_bool_is_valid(&outcome->embeds_map) &&
           converter_bool_is_valid(&outcome->has_debug_id) && converter_bool_is_valid(&outcome->debug_id.pdb20);
}

const struct converter converter_script_facts = {"script_facts", 0, sizeof(struct script_facts_result), find_facts,
                                                 check_result};

/* Reads the source map reference that the worker has written to `fd`. Fails with SL_MALFORMED if it is too long or not UTF-8, SL_INTERNAL
 * if it cannot be read, SL_BUSY when out of memory. */
static enum sl_code read_reference(int fd, struct sl_buf *map, struct sl_error *error)
{
    uint64_t size = get_file_size(fd);
    if (size > MAX_REFERENCE)
        return sl_fail(error, SL_MALFORMED, "the script's reference to its source map is longer than 64 KiB");
    if (!sl_buf_reserve(map, size + 1)) /* + 1: data is not NULL even if the reference is empty */
        return sl_fail(error, SL_BUSY, "out of memory");
    if (pread(fd, map->data, size, 0) != (ssize_t)size)
        return sl_fail(error, SL_INTERNAL, "cannot read the worker's output, a script's source map reference");
    map->size = size;
    return sl_str_is_utf8(sl_buf_view(map))
               ? SL_OK
               : sl_fail(error, SL_MALFORMED, "the script's reference to its source map is not valid UTF-8");
}

struct hashing {
    struct sl_bytes script;
    uint8_t *sha256;
};

static enum sl_code hash_script(void *arg, struct sl_error *error)
{
    const struct hashing *h = arg;
    bool good = EVP_Digest(h->script.data, h->script.size, h->sha256, NULL, EVP_sha256(), NULL) == 1;
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Sets the facts of a script that the converter cannot read: it counts as a script without debug id and source map. Its hash is set, as
 * cache keys contain it. */
static enum sl_code take_unreadable(struct cache_item *item, struct script_facts *facts, struct sl_error *error)
{
    struct hashing hashing = {item->mapping.bytes, facts->sha256};
    log_info("scripts", "not looking for the source map of a script that cannot be read", LOG_ERR(error));
    facts->has_map = facts->has_debug_id = facts->embeds_map = false;
    return pool_call(POOL_CONVERT, hash_script, &hashing, error);
}

/* Has a worker find the debug id and source map reference of a script, and its hash. `map` receives the reference, unless that is a data
 * URL. A script that cannot be read counts as one without debug id and reference. */
static enum sl_code look_at_script(struct cache_item *item, struct script_facts *facts, struct sl_buf *map,
                                   struct sl_error *error)
{
    struct script_facts_result outcome;
    struct conversion_description about = {.location = SL_STR("a script")};
    struct converter_call call = {.out = memfd_create("reference", MFD_CLOEXEC)};
    if (call.out < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a script's source map reference");
    converter_add_item(&call, INPUT_FILE, item);
    /* zeroes `outcome` first, so that it is defined after a failure, too */
    enum sl_code code = conversion_run(&about, &converter_script_facts, &call, &outcome, error);
    *facts = (struct script_facts){.has_map = outcome.has_map,
                                   .has_debug_id = outcome.has_debug_id,
                                   .embeds_map = outcome.embeds_map,
                                   .debug_id = outcome.debug_id};
    memcpy(facts->sha256, outcome.sha256, sizeof facts->sha256);
    if (code == SL_OK && outcome.has_map && !outcome.embeds_map)
        code = read_reference(call.out, map, error);
    close(call.out);
    bool is_at_fault = code == SL_MALFORMED || code == SL_UNSUPPORTED; /* the script is, not this machine */
    return is_at_fault ? take_unreadable(item, facts, error) : code;
}

/* Returns the facts of a script, which are kept in its item; reads the script the first time. Two fibers may do that at the same time:
 * then the first result is kept and the second one freed. */
enum sl_code script_facts_get(struct cache_item *item, struct script_facts *facts, struct sl_error *error)
{
    struct kinds_script *script = item->loaded;
    struct sl_buf map = {0};
    enum sl_code code = script->known ? SL_OK : look_at_script(item, facts, &map, error);
    if (code == SL_OK && !script->known) {
        script->facts = *facts;
        script->map = map;
        script->facts.map = sl_buf_view(&script->map);
        script->known = true;
    } else {
        sl_buf_free(&map); /* it failed, or another fiber has set the facts first */
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

/* Finds a file of a bundle by debug id and type, or by URL if `id` is NULL. Runs on the loop, under a guard against SIGBUS, as the bundle
 * is a mapped file. SL_INTERNAL if it cannot be read. */
enum sl_code source_object_find_file(const struct source_object *bundle, const struct sl_debug_id *id,
                                     enum sl_bundle_type type, struct sl_str url, const struct sl_bundle_file **file)
{
    struct bundle_look look = {bundle, id, type, url, NULL};
    bool readable = sigbus_guard_run(bundle_look, &look);
    *file = readable ? look.found : NULL;
    return readable ? SL_OK : SL_INTERNAL;
}
