/* Debug files sent with a request and used for it alone: the entries made from them are not cached. */
#include "search/impl.h"

#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "cache_kinds/converters.h"
#include "core/log.h"
#include "function/path.h"
#include "object/archive.h"
#include "source/zip.h"

/* The entry made from an object for one use, made once: a request may have many modules with the same id. */
struct supplied_result {
    const struct cache_kind *kind;
    bool variables;
    bool making, made;
    struct fiber_wait_list waiting; /* fibers that wait for the one that makes it */
    struct cache_item *item;        /* NULL: making it failed */
    enum sl_arch arch;
    struct supplied_result *next;
};

static void own_objects_end(void *arg)
{
    struct supplied_objects *own = arg;
    for (size_t i = 0; i < own->count; i++)
        for (const struct supplied_result *made = own->items[i].made; made; made = made->next)
            cache_release(made->item);
    own->count = 0;
    sl_map_free(&own->by_id);
}

/* ---- by id ---- */

enum { OWN_KEY = 128, OWN_SORTS = 8 };

/* The objects with an id: one per combination of features. Of several with the same features the one with the highest age
 * counts, as an object also serves requests for a lower age. */
struct supplied_positions {
    uint32_t items[OWN_SORTS]; /* index plus 1; 0 = none */
};

/* Returns the combination of the object's features as a number from 0 to 7, an index of struct supplied_positions. */
static unsigned own_sort(const struct supplied_object *object)
{
    const struct sl_features *f = &object->features;
    return f->has_debug_info | f->has_unwind_info << 1 | f->has_symbols << 2;
}

struct own_key {
    char text[OWN_KEY];
    size_t size; /* 0: no key */
};

/* Makes a key: a letter for the kind of id, then the id. 'd': debug id, 'p': debug id of a PDB 2.0, 'r': the first 16 bytes
 * of a code id, 'c': code id, 'n': file name. */
static struct own_key own_key(char sort, const void *id, size_t size)
{
    struct own_key key = {.size = 0};
    if (size && size < sizeof key.text) {
        key.text[0] = sort;
        memcpy(key.text + 1, id, size);
        key.size = size + 1;
    }
    return key;
}

static struct own_key own_key_of_debug_id(const struct sl_debug_id *id)
{
    return own_key(id->pdb20 ? 'p' : 'd', id->uuid, sizeof id->uuid);
}

/* Makes the key of a code id's first 16 bytes, for requests whose debug id is the beginning of the code id. */
static struct own_key own_key_of_raw(struct sl_str raw)
{
    uint8_t uuid[16];
    bool good = raw.size >= 32 && sl_hex_decode((struct sl_str){raw.data, 32}, uuid, sizeof uuid, NULL);
    return own_key('r', uuid, good ? sizeof uuid : 0);
}

static struct own_key own_key_of_path(struct sl_str path)
{
    struct sl_str directory, name;
    sl_path_split(path, &directory, &name);
    return own_key('n', name.data, name.size);
}

/* Registers the object under a key. Of two with the same features the one with the higher age stays. */
static bool own_add_key(struct supplied_objects *own, size_t place, struct own_key key)
{
    struct sl_str view = {key.text, key.size};
    struct supplied_positions *places = key.size ? sl_map_get(&own->by_id, view) : NULL;
    if (key.size && !places) {
        char *kept = sl_arena_strndup(own->arena, view.data, view.size);
        places = SL_ARENA_NEW(own->arena, struct supplied_positions);
        if (!kept || !places || !sl_map_put(&own->by_id, (struct sl_str){kept, view.size}, places))
            return false;
    }
    if (!places)
        return true;
    uint32_t *item = &places->items[own_sort(&own->items[place])];
    if (!*item || own->items[*item - 1].debug_id.age < own->items[place].debug_id.age)
        *item = (uint32_t)(place + 1);
    return true;
}

/* Registers the object under every id and name by which a request may ask for it. False when out of memory. */
static bool own_add_keys(struct supplied_objects *own, size_t place)
{
    const struct supplied_object *object = &own->items[place];
    return own_add_key(own, place, own_key_of_debug_id(&object->debug_id)) &&
           own_add_key(own, place, own_key_of_raw(object->raw_code_id)) &&
           own_add_key(own, place, own_key('c', object->code_id.data, object->code_id.size)) &&
           own_add_key(own, place, own_key('c', object->raw_code_id.data, object->raw_code_id.size)) &&
           own_add_key(own, place, own_key_of_path(object->name));
}

/* ---- adding ---- */

/* Adds one object. A universal Mach-O file has several slices, each an object. */
static bool own_add_slice(struct supplied_objects *own, struct sl_str name, struct sl_bytes bytes,
                          struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    if (!sl_grow_in_arena(own->arena, &own->items, &own->capacity, own->count + 1, sizeof *own->items))
        return false;
    struct supplied_object *item = &own->items[own->count++];
    *item = (struct supplied_object){.name = name,
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
    return own_add_keys(own, own->count - 1);
}

/* Adds the objects of a file; none if it is not an object file. */
static bool own_add_file(struct supplied_objects *own, struct sl_str name, struct sl_bytes bytes)
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

/* Adds the files of a ZIP archive, such as a .dSYM, unpacking at most own->room bytes. Members of a valid archive share no
 * bytes: together they are no larger than the archive. */
static bool own_add_zip(struct supplied_objects *own, struct sl_bytes bytes)
{
    struct sl_zip zip;
    struct sl_error error;
    uint64_t packed = 0;
    if (sl_zip_open(bytes, 0, own->arena, &zip, &error) != SL_OK)
        return error.code != SL_BUSY;
    for (size_t i = 0; i < zip.count; i++) {
        const struct sl_zip_entry *entry = &zip.entries[i];
        struct sl_buf out = {0};
        if (entry->is_link || !entry->size || entry->size > own->room)
            continue;
        packed += entry->packed < bytes.size ? entry->packed : bytes.size; /* capped: it comes from the file */
        if (packed > bytes.size)
            break;
        if (sl_zip_read(&zip, entry, own->room, &out, &error) != SL_OK) {
            sl_buf_free(&out);
            continue;
        }
        own->room -= out.size;
        struct sl_str kept = sl_buf_move_to_arena(&out, own->arena);
        if (!kept.data || !own_add_file(own, entry->name, (struct sl_bytes){(const uint8_t *)kept.data, kept.size}))
            return false;
    }
    return true;
}

/* Adds a file that is compressed as a whole, as on symbol servers; ignores one that cannot be unpacked. */
static bool own_add_packed(struct supplied_objects *own, struct sl_str name, struct sl_bytes bytes)
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

bool supplied_objects_add(struct supplied_objects *own, struct sl_str name, struct sl_bytes bytes)
{
    bool is_zip = bytes.size > 4 && memcmp(bytes.data, "PK\3\4", 4) == 0;
    if (!own->ends && !(own->ends = sl_arena_on_free(own->arena, own_objects_end, own)))
        return false;
    if (is_zip)
        return own_add_zip(own, bytes);
    return fetch_is_wrapped(bytes) ? own_add_packed(own, name, bytes) : own_add_file(own, name, bytes);
}

/* ---- conversion ---- */

/* Converts the object to unwind rules or a symcache. */
static enum sl_code own_convert(const struct supplied_object *object, const struct search_target *use,
                                struct supplied_result *made, struct sl_error *error)
{
    struct symcache_options options = {current_reader_limits(), use->variables, true};
    struct symcache_result symcache = {0};
    struct cficache_result cficache = {0};
    struct conversion_about about = {.location = SL_STR("artifact"), .kind = use->kind->name};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options)};
    bool is_cfi = use->kind == &kind_cficaches;
    if (is_cfi)
        call.options = CONVERTER_OPTIONS(options.limits);
    converter_add_bytes(&call, INPUT_FILE, object->bytes);
    enum sl_code code =
        is_cfi ? convert_to_item(use->kind, &about, &converter_cficache, &call, &cficache, &made->item, error)
               : convert_to_item(use->kind, &about, &converter_symcache, &call, &symcache, &made->item, error);
    made->arch = is_cfi ? cficache.arch : symcache.arch;
    return code;
}

static bool own_is_good_for(const struct supplied_object *object, const struct search_target *use)
{
    const struct sl_features *f = &object->features;
    return use->purpose == PURPOSE_UNWIND ? f->has_unwind_info : f->has_debug_info || f->has_symbols;
}

/* True if the file is found by its name: sanitizer reports and lists of addresses often have only the path of a module. */
static bool own_goes_by_name(const struct object_id *id)
{
    return !id->has_debug_id && !id->code_id.size;
}

static bool own_is_meant(const struct supplied_object *object, const struct object_id *id)
{
    const struct sl_object_info info = {
        .debug_id = object->debug_id, .code_id = object->code_id, .raw_code_id = object->raw_code_id};
    const struct sl_object_wanted wanted = {id->has_debug_id ? &id->debug_id : NULL, id->code_id};
    return own_goes_by_name(id) || sl_object_matches(&info, &wanted);
}

/* Sets `*best` to a better object with this key, if there is one: one with debug information before one without, then the
 * one that was sent first. */
static void own_choose(const struct supplied_objects *own, struct own_key key, const struct search_target *use,
                       const struct object_id *id, struct supplied_object **best)
{
    const struct supplied_positions *places =
        key.size ? sl_map_get(&own->by_id, (struct sl_str){key.text, key.size}) : NULL;
    for (size_t i = 0; places && i < OWN_SORTS; i++) {
        struct supplied_object *object = places->items[i] ? &own->items[places->items[i] - 1] : NULL;
        if (!object || !own_is_good_for(object, use) || !own_is_meant(object, id))
            continue;
        bool knows_more = *best && object->features.has_debug_info && !(*best)->features.has_debug_info;
        bool as_much = *best && object->features.has_debug_info == (*best)->features.has_debug_info;
        if (!*best || knows_more || (as_much && object < *best))
            *best = object;
    }
}

struct supplied_object *supplied_objects_find(const struct supplied_objects *own, const struct search_target *use,
                                              const struct object_id *id)
{
    struct supplied_object *best = NULL;
    if (id->has_debug_id) {
        own_choose(own, own_key_of_debug_id(&id->debug_id), use, id, &best);
        own_choose(own, own_key('r', id->debug_id.uuid, sizeof id->debug_id.uuid), use, id, &best);
    } else if (own_goes_by_name(id)) {
        own_choose(own, own_key_of_path(id->code_file.size ? id->code_file : id->debug_file), use, id, &best);
    } else {
        own_choose(own, own_key('c', id->code_id.data, id->code_id.size), use, id, &best);
    }
    return best;
}

static void own_report(const struct search_scope *where, const struct supplied_object *object,
                       const struct search_target *use, struct search_result *found)
{
    struct candidate candidate = {.source = SL_STR("artifact"), .location = object->name, .features = object->features};
    if (use->report)
        *(struct candidate_use *)((char *)&candidate + use->report) = (struct candidate_use){.set = true};
    const struct candidate_list list = {&candidate, 1, 1};
    candidates_merge(where->arena, &found->candidates, &list);
}

/* Returns the record for this use, created if necessary; NULL when out of memory. */
static struct supplied_result *find_supplied_result(struct sl_arena *arena, struct supplied_object *object,
                                                    const struct search_target *use)
{
    struct supplied_result *made = object->made;
    while (made && (made->kind != use->kind || made->variables != use->variables))
        made = made->next;
    if (made || !(made = SL_ARENA_NEW(arena, struct supplied_result)))
        return made;
    *made = (struct supplied_result){.kind = use->kind, .variables = use->variables, .next = object->made};
    return object->made = made;
}

/* Makes the entry. A failure for lack of memory, or by cancellation, is not kept: the next look-up tries again. */
static void own_make(const struct supplied_object *object, const struct search_target *use,
                     struct supplied_result *made)
{
    struct sl_error error;
    made->making = true;
    enum sl_code code = own_convert(object, use, made, &error);
    if (code != SL_OK)
        log_info("own_objects", "ignoring a debug file that came with the request", LOG_STR("error", error.message));
    made->making = false;
    made->made = code != SL_BUSY && code != SL_CANCELLED; /* those codes say nothing about the file */
    fiber_wake_all(&made->waiting);
}

/* A fiber that finds the entry in the making waits for it. An object that cannot be converted gives no answer: then the
 * sources are searched. */
bool supplied_objects_answer(const struct search_scope *where, const struct search_query *question)
{
    const struct search_target *use = question->use;
    bool known = use->kind == &kind_symcaches || use->kind == &kind_cficaches;
    struct supplied_object *object = where->own && known ? supplied_objects_find(where->own, use, question->id) : NULL;
    if (!object)
        return false;
    struct supplied_result *made = find_supplied_result(where->own->arena, object, use);
    while (made && made->making)
        if (fiber_wait_on(&made->waiting, UINT64_MAX) != FIBER_WOKEN)
            return false;
    if (made && !made->made)
        own_make(object, use, made);
    if (!made || !made->item)
        return false;
    struct search_result found = {
        .code = SL_OK, .features = object->features, .place = object->place, .arch = made->arch};
    found.item = cache_retain(made->item);
    found.symcache = use->kind == &kind_symcaches ? made->item->loaded : NULL;
    own_report(where, object, use, &found);
    *question->found = found;
    return true;
}
