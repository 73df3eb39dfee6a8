/* Debug files that came with a request, for it alone: what is made of them is in no cache. */
#include "kinds/conversion.h"

#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "core/log.h"
#include "object/archive.h"
#include "source/zip.h"

/* ---- which there are ---- */

static bool own_add_slice(struct own_objects *own, struct sl_str name, struct sl_bytes bytes, struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    if (!sl_grow_in_arena(own->arena, &own->items, &own->capacity, own->count + 1, sizeof *own->items))
        return false;
    struct own_object *item = &own->items[own->count++];
    *item = (struct own_object){.name = name,
                                .bytes = bytes,
                                .debug_id = info->debug_id,
                                .features = info->features,
                                .place = {info->is_fixed, info->load_address}};
    struct sl_str ids[] = {info->code_id, info->raw_code_id};
    struct sl_str *kept[] = {&item->code_id, &item->raw_code_id};
    for (size_t i = 0; i < 2; i++)
        if (ids[i].size) {
            *kept[i] = (struct sl_str){sl_arena_strndup(own->arena, ids[i].data, ids[i].size), ids[i].size};
            if (!kept[i]->data)
                return false;
        }
    return true;
}

/* The objects of a file; of one that is none of the kind, none. */
static bool own_add_file(struct own_objects *own, struct sl_str name, struct sl_bytes bytes)
{
    const struct sl_object_limits limits = {.identity = true};
    struct sl_archive archive;
    struct sl_object *object;
    struct sl_bytes slice;
    bool good = true;
    if (sl_archive_open(bytes, &archive, NULL) != SL_OK)
        return true;
    for (size_t i = 0; i < archive.count && good; i++) {
        if (!sl_archive_slice(&archive, i, &slice) || sl_archive_object(&archive, i, &limits, &object, NULL) != SL_OK)
            continue;
        good = own_add_slice(own, name, slice, object);
        sl_object_close(object);
    }
    return good;
}

/* The files of a ZIP archive, such as a .dSYM, of which not more is unpacked than own->room. */
static bool own_add_zip(struct own_objects *own, struct sl_bytes bytes)
{
    struct sl_zip zip;
    struct sl_error error;
    if (sl_zip_open(bytes, 0, own->arena, &zip, &error) != SL_OK)
        return error.code != SL_BUSY;
    for (size_t i = 0; i < zip.count; i++) {
        const struct sl_zip_entry *entry = &zip.entries[i];
        struct sl_buf out = {0};
        if (entry->is_link || !entry->size || entry->size > own->room)
            continue;
        if (sl_zip_read(&zip, entry, own->room, &out, &error) != SL_OK) {
            sl_buf_free(&out);
            continue;
        }
        own->room -= out.size;
        struct sl_str kept = sl_buf_keep(&out, own->arena);
        if (!kept.data || !own_add_file(own, entry->name, (struct sl_bytes){(const uint8_t *)kept.data, kept.size}))
            return false;
    }
    return true;
}

/* A file that is packed as a whole, as on symbol servers; one that cannot be unpacked is of no use. */
static bool own_add_packed(struct own_objects *own, struct sl_str name, struct sl_bytes bytes)
{
    struct sl_mapping mapping = {0};
    struct sl_error error;
    int fd = sl_unlinked_file(cache_tmp_dir());
    if (fd < 0)
        return false;
    bool good = sl_write_all(fd, bytes);
    bool unpacked = good && fetch_unwrap(fd, own->room, &error) == SL_OK && sl_map_fd(fd, &mapping, &error) == SL_OK;
    close(fd);
    if (unpacked) {
        uint8_t *kept = sl_arena_alloc(own->arena, mapping.bytes.size, 16);
        good = kept != NULL;
        if (kept) {
            memcpy(kept, mapping.bytes.data, mapping.bytes.size);
            own->room -= mapping.bytes.size < own->room ? mapping.bytes.size : own->room;
            good = own_add_file(own, name, (struct sl_bytes){kept, mapping.bytes.size});
        }
        sl_unmap(&mapping);
    }
    return good;
}

bool own_objects_add(struct own_objects *own, struct sl_str name, struct sl_bytes bytes)
{
    bool is_zip = bytes.size > 4 && memcmp(bytes.data, "PK\3\4", 4) == 0;
    if (is_zip)
        return own_add_zip(own, bytes);
    return fetch_is_wrapped(bytes) ? own_add_packed(own, name, bytes) : own_add_file(own, name, bytes);
}

/* ---- what is made of one ---- */

struct own_conversion {
    const struct own_object *object;
    const struct kinds_use *use;
    struct sl_buf out;
    enum sl_arch arch;
};

static enum sl_code own_convert(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct own_conversion *c = arg;
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, c->object->bytes, &object, error);
    if (code != SL_OK)
        return code;
    const struct sl_object_info *info = sl_object_info(object);
    const struct sl_symcache_options options = {.arch = info->arch,
                                                .debug_id = info->debug_id,
                                                .image_size = info->image_size,
                                                .module_file = info->code_file,
                                                .variables = c->use->variables};
    c->arch = info->arch;
    if (c->use->kind == &kind_cficaches)
        code = sl_cfi_convert(object, &conversion->parallel.parallel, &c->out, NULL, error);
    else
        code = sl_symcache_convert(object, NULL, &options, &conversion->parallel.parallel, &c->out, error);
    sl_object_close(object);
    return code;
}

static bool own_serves(const struct own_object *object, const struct kinds_use *use, const struct object_id *id)
{
    const struct sl_object_info info = {
        .debug_id = object->debug_id, .code_id = object->code_id, .raw_code_id = object->raw_code_id};
    const struct sl_object_wanted wanted = {id->has_debug_id ? &id->debug_id : NULL, id->code_id};
    const struct sl_features *f = &object->features;
    bool good = use->purpose == PURPOSE_UNWIND ? f->has_unwind_info : f->has_debug_info || f->has_symbols;
    return good && sl_object_matches(&info, &wanted);
}

/* The best one; NULL: none is of use. */
static const struct own_object *own_find(const struct own_objects *own, const struct kinds_use *use,
                                         const struct object_id *id)
{
    const struct own_object *best = NULL;
    for (size_t i = 0; i < own->count; i++)
        if (own_serves(&own->items[i], use, id) &&
            (!best || (!best->features.has_debug_info && own->items[i].features.has_debug_info)))
            best = &own->items[i];
    return best;
}

static void own_report(const struct kinds_search *where, const struct own_object *object, const struct kinds_use *use,
                       struct kinds_found *found)
{
    struct candidate candidate = {.source = SL_STR("artifact"), .location = object->name, .features = object->features};
    if (use->report)
        *(struct candidate_use *)((char *)&candidate + use->report) = (struct candidate_use){.set = true};
    const struct candidate_list list = {&candidate, 1, 1};
    candidates_merge(where->arena, &found->candidates, &list);
}

bool own_objects_answer(const struct kinds_search *where, const struct kinds_question *question)
{
    const struct kinds_use *use = question->use;
    struct kinds_found *found = question->found;
    bool known = use->kind == &kind_symcaches || use->kind == &kind_cficaches;
    const struct own_object *object = where->own && known ? own_find(where->own, use, question->id) : NULL;
    if (!object)
        return false;
    struct own_conversion c = {.object = object, .use = use};
    struct conversion_input input = {object->bytes.size, SL_STR("artifact"), use->kind};
    struct kinds_found made = {.features = object->features, .place = object->place};
    made.code = conversion_run(&input, own_convert, &c, &made.error);
    if (made.code == SL_OK)
        made.code = cache_item_own(use->kind, &c.out, &made.item, &made.error);
    sl_buf_free(&c.out);
    if (made.code != SL_OK) {
        log_info("own_objects", "a file that came with a request is of no use", LOG_STR("error", made.error.message));
        return false;
    }
    made.error.code = SL_OK;
    made.arch = c.arch;
    made.symcache = use->kind == &kind_symcaches ? made.item->loaded : NULL;
    own_report(where, object, use, &made);
    *found = made;
    return true;
}
