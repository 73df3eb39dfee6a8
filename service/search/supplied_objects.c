/* Debug files that were sent with a request and are used for it alone. Symcaches and unwind rules made from them are not put in the cache.
 *
 *     file ── converter_supplied ──▶ records of objects ── add_keys ──▶ by_id, by_name
 *     look-up ── supplied_objects_find ──▶ object ── make_entry, once for each use ──▶ symcache or unwind rules */
#include "search/impl.h"

#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "cache_kinds/converters.h"
#include "core/log.h"
#include "core/pool.h"
#include "function/path.h"
#include "object/archive.h"
#include "search/converters.h"

/* What was made from an object for one use: a symcache or unwind rules. It is kept for the request, which may have many modules with the
 * same id. */
struct supplied_entry {
    const struct cache_kind *kind;
    bool variables, columns;
    bool making;                    /* a fiber makes it now */
    bool made;                      /* `item` is final */
    struct fiber_wait_list waiting; /* fibers that wait for the one that makes it */
    struct cache_item *item;        /* if `made` is true: NULL = the object could not be converted */
    enum sl_arch arch;
    struct supplied_entry *next;
};

/* Called when the arena is freed: releases what was made from the objects. */
static void release_entries(void *arg)
{
    struct supplied_objects *objects = arg;
    for (size_t i = 0; i < objects->count; i++)
        for (const struct supplied_entry *made = objects->items[i].made; made; made = made->next)
            cache_release(made->item);
    objects->count = 0;
    sl_map_free(&objects->by_id);
    sl_map_free(&objects->by_name);
}

/* ---- by id ---- */

enum {
    MAX_KEY = 128,    /* bytes of an id or name with its letter; objects are not found by longer ones */
    FEATURE_SETS = 8, /* combinations of the features that get_feature_set() distinguishes */
};

/* The objects with the same id: one for each combination of features. Of objects with the same features only the one with the highest age
 * is kept, as an object also serves modules with a lower age. */
struct supplied_positions {
    uint32_t items[FEATURE_SETS]; /* index plus 1; 0 = none */
};

/* Returns the combination of the object's features as a number from 0 to 7: an index into supplied_positions.items. */
static unsigned get_feature_set(const struct supplied_object *object)
{
    const struct sl_features *f = &object->features;
    return f->has_debug_info | f->has_unwind_info << 1 | f->has_symbols << 2;
}

struct object_key {
    char text[MAX_KEY];
    size_t size; /* 0: no key */
};

/* Makes a key of the map by_id: a letter for the kind of id, then the id. 'd': UUID of a debug id, 'p': that of a PDB 2.0, 'r': the first
 * 16 bytes of a code id, 'c': code id, 'n': file name. An empty or too long id gives no key (size 0). */
static struct object_key make_key(char letter, const void *id, size_t size)
{
    struct object_key key = {.size = 0};
    if (size && size < sizeof key.text) {
        key.text[0] = letter;
        memcpy(key.text + 1, id, size);
        key.size = size + 1;
    }
    return key;
}

static struct object_key make_debug_id_key(const struct sl_debug_id *id)
{
    return make_key(id->pdb20 ? 'p' : 'd', id->uuid, sizeof id->uuid);
}

/* Makes the key of the first 16 bytes of the code id `raw` (hexadecimal), by which modules are found whose debug id is the beginning of
 * their code id. No key if the code id is shorter. */
static struct object_key make_raw_key(struct sl_str raw)
{
    uint8_t uuid[16];
    bool good = raw.size >= 32 && sl_hex_decode((struct sl_str){raw.data, 32}, uuid, sizeof uuid, NULL);
    return make_key('r', uuid, good ? sizeof uuid : 0);
}

/* Makes the key of a file's name: the last component of the path. */
static struct object_key make_path_key(struct sl_str path)
{
    struct sl_str directory, name;
    sl_path_split(path, &directory, &name);
    return make_key('n', name.data, name.size);
}

/* Registers the object under a key; does nothing for "no key" (size 0). Replaces an object with the same features and a lower age, as an
 * object also serves modules with a lower age. False when out of memory. */
static bool add_key(struct supplied_objects *objects, size_t index, struct object_key key)
{
    struct sl_str view = {key.text, key.size};
    struct supplied_positions *positions = key.size ? sl_map_get(&objects->by_id, view) : NULL;
    if (key.size && !positions) {
        char *kept = sl_arena_strndup(objects->arena, view.data, view.size);
        positions = SL_ARENA_NEW(objects->arena, struct supplied_positions);
        if (!kept || !positions || !sl_map_put(&objects->by_id, (struct sl_str){kept, view.size}, positions))
            return false;
    }
    if (!positions)
        return true;
    uint32_t *item = &positions->items[get_feature_set(&objects->items[index])];
    if (!*item || objects->items[*item - 1].debug_id.age < objects->items[index].debug_id.age)
        *item = (uint32_t)(index + 1); /* + 1, as 0 means none */
    return true;
}

/* Adds the object to the front of the linked list of objects with its name, so that the list begins with the one that was sent last. False
 * when out of memory. */
static bool add_name(struct supplied_objects *objects, size_t index)
{
    struct sl_str name = sl_path_module_name(objects->items[index].name);
    void **slot = name.size ? sl_map_find_or_add(&objects->by_name, name, NULL) : NULL;
    if (!name.size)
        return true;
    if (!slot)
        return false;
    objects->items[index].next_named = (uintptr_t)*slot;
    *slot = (void *)(uintptr_t)(index + 1); /* + 1, as 0 ends the list */
    return true;
}

/* Registers the object under every id and name by which a request may ask for it. The raw code id is empty but for WebAssembly, where it is
 * the code id with the length prefix that it has in the file. False when out of memory. */
static bool add_keys(struct supplied_objects *objects, size_t index)
{
    const struct supplied_object *object = &objects->items[index];
    return add_key(objects, index, make_debug_id_key(&object->debug_id)) &&
           add_key(objects, index, make_raw_key(object->raw_code_id)) &&
           add_key(objects, index, make_key('c', object->code_id.data, object->code_id.size)) &&
           add_key(objects, index, make_key('c', object->raw_code_id.data, object->raw_code_id.size)) &&
           add_key(objects, index, make_path_key(object->name)) && add_name(objects, index);
}

/* ---- adding ---- */

/* A file of the request while its objects are added. */
struct supplied_file {
    struct supplied_objects *objects; /* to which they are added */
    struct sl_str name;
    struct sl_bytes bytes;
    struct sl_bytes made;          /* output of converter_supplied */
    struct supplied_result result; /* of converter_supplied */
};

/* Sets `*part` to the part of the file that `at` describes; false if it is not inside the file: a worker process wrote `at`, and may have
 * been taken over by a hostile file. */
static bool find_part(struct sl_bytes file, const struct supplied_text *at, struct sl_bytes *part)
{
    if (at->offset > file.size || at->size > file.size - at->offset)
        return false;
    *part = (struct sl_bytes){file.data + at->offset, at->size};
    return true;
}

/* Copies a text of the converter's output into the arena, as reading the mapped output might block the loop thread later. False if `at` is
 * outside of the output; text->data is NULL when out of memory. */
static bool find_text(const struct supplied_file *file, const struct supplied_text *at, struct sl_str *text)
{
    struct sl_bytes part;
    if (!find_part(file->made, at, &part))
        return false;
    *text = (struct sl_str){sl_arena_strndup(file->objects->arena, (const char *)part.data, part.size), part.size};
    return true;
}

/* Makes an object from its record. An object that is not a member of an archive gets the name of the file. False if the record is
 * damaged. If memory runs out, returns true, and a text of the object has data NULL. */
static bool unpack_record(const struct supplied_file *file, const struct supplied_record *record,
                          struct supplied_object *item)
{
    struct sl_str name;
    *item = (struct supplied_object){
        .debug_id = {.age = record->age, .pdb20 = record->is_pdb20 != 0},
        .features = {.has_debug_info = record->has_debug_info != 0,
                     .has_unwind_info = record->has_unwind_info != 0,
                     .has_symbols = record->has_symbols != 0,
                     .has_sources = record->has_sources != 0},
        .fixed_load = {record->is_fixed != 0, record->load_address},
    };
    memcpy(item->debug_id.uuid, record->uuid, sizeof record->uuid);
    if (record->vcs >= SUPPLIED_VCS_NAMES || !find_text(file, &record->name, &name) ||
        !find_text(file, &record->code_id, &item->code_id) ||
        !find_text(file, &record->raw_code_id, &item->raw_code_id) ||
        /* the converter has written an unpacked object to its output; any other lies in the file itself */
        !find_part(record->is_unpacked ? file->made : file->bytes, &record->bytes, &item->bytes))
        return false;
    item->features.srcsrv_vcs = supplied_vcs_names[record->vcs];
    if (!name.size && name.data)
        name = file->name.data ? file->name : SL_STR(""); /* not data NULL, which means out of memory */
    item->name = name;
    return true;
}

/* Adds the objects that converter_supplied has found in the file. SL_MALFORMED: the converter's output is damaged. */
static enum sl_code take_records(void *arg, struct sl_error *error)
{
    struct supplied_file *file = arg;
    struct supplied_objects *objects = file->objects;
    struct sl_bytes records;
    const struct supplied_text at = {file->result.records, file->result.count * sizeof(struct supplied_record)};
    if (file->result.count > file->made.size / sizeof(struct supplied_record) || !find_part(file->made, &at, &records))
        return sl_fail(error, SL_MALFORMED, "a worker process returned a damaged list of the objects in the file");
    for (size_t i = 0; i < file->result.count; i++) {
        struct supplied_record record;
        memcpy(&record, records.data + i * sizeof record, sizeof record);
        if (!sl_grow_in_arena(objects->arena, &objects->items, &objects->capacity, objects->count + 1,
                              sizeof *objects->items))
            return sl_fail(error, SL_BUSY, "out of memory");
        if (!unpack_record(file, &record, &objects->items[objects->count]))
            return sl_fail(error, SL_MALFORMED, "a worker process returned a damaged list of the objects in the file");
        const struct supplied_object *item = &objects->items[objects->count];
        bool no_memory = !item->name.data || !item->code_id.data || !item->raw_code_id.data;
        if (no_memory || !add_keys(objects, objects->count++))
            return sl_fail(error, SL_BUSY, "out of memory");
    }
    return SL_OK;
}

static void unmap_made(void *arg)
{
    sl_unmap(arg);
}

/* Maps the converter's output, the file `made`, for as long as the arena lives, and adds the objects in it: on the pool, but directly when
 * not in a fiber, as in fuzz targets. */
static enum sl_code take_made(struct supplied_file *file, int made, struct sl_error *error)
{
    struct supplied_objects *objects = file->objects;
    struct sl_mapping *mapping = SL_ARENA_NEW(objects->arena, struct sl_mapping);
    enum sl_code code = mapping ? sl_map_fd(made, mapping, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        return code;
    if (!sl_arena_on_free(objects->arena, unmap_made, mapping)) {
        sl_unmap(mapping);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    file->made = mapping->bytes;
    return fiber_self() ? pool_call(POOL_CONVERT, take_records, file, error) : take_records(file, error);
}

/* Finds the objects in a file of the request by converter_supplied, in a worker process, and adds them. Subtracts the bytes that were
 * unpacked from objects->bytes_left, the limit for all files of the request together. */
static enum sl_code read_supplied(struct supplied_file *file, struct sl_error *error)
{
    const struct config *config = current_config();
    struct supplied_options options = {.max_unpacked = file->objects->bytes_left,
                                       .max_ratio = config ? config->max_inflate_ratio : 0};
    /* the configuration's default; fuzz targets have none */
    options.max_ratio = options.max_ratio ? options.max_ratio : 1000;
    struct conversion_description about = {.location = file->name};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options)};
    converter_add_bytes(&call, INPUT_FILE, file->bytes);
    enum sl_code code = create_work_file(&call.out, error);
    if (code != SL_OK)
        return code;
    code = conversion_run(&about, &converter_supplied, &call, &file->result, error);
    file->objects->bytes_left -=
        file->result.unpacked < file->objects->bytes_left ? file->result.unpacked : file->objects->bytes_left;
    if (code == SL_OK && file->result.count)
        code = take_made(file, call.out, error);
    close(call.out);
    return code;
}

enum sl_code supplied_objects_add(struct supplied_objects *objects, struct sl_str name, struct sl_bytes bytes,
                                  struct sl_error *error)
{
    struct supplied_file file = {.objects = objects, .name = name, .bytes = bytes};
    /* first call: lets the arena call release_entries() when it is freed */
    if (!objects->ends && !(objects->ends = sl_arena_on_free(objects->arena, release_entries, objects)))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = read_supplied(&file, error);
    if (code == SL_OK || code == SL_BUSY || code == SL_CANCELLED || code == SL_INTERNAL)
        return code;
    log_info("own_objects", "ignoring a debug file that came with the request", LOG_SLSTR("file", name),
             LOG_STR("error", error->message));
    return SL_OK;
}

/* ---- conversion ---- */

/* Converts the object to unwind rules or a symcache, by the kind of the use. The result becomes made->item. */
static enum sl_code convert_object(const struct supplied_object *object, const struct search_target *use,
                                   struct supplied_entry *made, struct sl_error *error)
{
    struct symcache_options options = {.limits = current_reader_limits(),
                                       .variables = use->variables,
                                       .columns = use->columns,
                                       .complete = true}; /* there are no further files to look for */
    struct symcache_result symcache = {0};
    struct cficache_result cficache = {0};
    struct conversion_description about = {.location = object->name, .kind = use->kind->name};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options)};
    bool is_cfi = use->kind == &kind_cficaches;
    if (is_cfi) /* converter_cficache has only the limits as options */
        call.options = CONVERTER_OPTIONS(options.limits);
    converter_add_bytes(&call, INPUT_FILE, object->bytes);
    enum sl_code code =
        is_cfi ? convert_to_item(use->kind, &about, &converter_cficache, &call, &cficache, &made->item, error)
               : convert_to_item(use->kind, &about, &converter_symcache, &call, &symcache, &made->item, error);
    made->arch = is_cfi ? cficache.arch : symcache.arch;
    return code;
}

/* True if the object has what the use needs: unwind information, or else debug information or symbols. */
static bool serves_use(const struct supplied_object *object, const struct search_target *use)
{
    const struct sl_features *f = &object->features;
    return use->purpose == PURPOSE_UNWIND ? f->has_unwind_info : f->has_debug_info || f->has_symbols;
}

/* True if the module has no ids, so that its file is found by name: sanitizer reports and lists of addresses often have only a path. */
static bool has_only_name(const struct object_id *id)
{
    return !id->has_debug_id && !id->code_id.size;
}

/* True if the object has the module's ids, or the module has none: then it was found by name, which suffices. */
static bool matches_id(const struct supplied_object *object, const struct object_id *id)
{
    const struct sl_object_info info = {
        .debug_id = object->debug_id, .code_id = object->code_id, .raw_code_id = object->raw_code_id};
    const struct sl_object_wanted wanted = {id->has_debug_id ? &id->debug_id : NULL, id->code_id};
    return has_only_name(id) || sl_object_matches(&info, &wanted);
}

/* Sets `*best` to an object with this key, if there is one that serves the use, matches the ids and is better than `*best` (NULL: none
 * yet). An object with debug information is better than one without; of two equal ones the one that was sent first is better. */
static void choose_better(const struct supplied_objects *objects, struct object_key key,
                          const struct search_target *use, const struct object_id *id, struct supplied_object **best)
{
    const struct supplied_positions *positions =
        key.size ? sl_map_get(&objects->by_id, (struct sl_str){key.text, key.size}) : NULL;
    for (size_t i = 0; positions && i < FEATURE_SETS; i++) {
        struct supplied_object *object = positions->items[i] ? &objects->items[positions->items[i] - 1] : NULL;
        if (!object || !serves_use(object, use) || !matches_id(object, id))
            continue;
        bool knows_more = *best && object->features.has_debug_info && !(*best)->features.has_debug_info;
        bool as_much = *best && object->features.has_debug_info == (*best)->features.has_debug_info;
        if (!*best || knows_more || (as_much && object < *best))
            *best = object;
    }
}

/* If the module has a debug id, finds the object by that id, or by a code id that begins with it. If it has only a code id, finds the
 * object by that; if it has no id, by its file name. */
struct supplied_object *supplied_objects_find(const struct supplied_objects *objects, const struct search_target *use,
                                              const struct object_id *id)
{
    struct supplied_object *best = NULL;
    if (id->has_debug_id) {
        choose_better(objects, make_debug_id_key(&id->debug_id), use, id, &best);
        choose_better(objects, make_key('r', id->debug_id.uuid, sizeof id->debug_id.uuid), use, id, &best);
    } else if (has_only_name(id)) {
        choose_better(objects, make_path_key(id->code_file.size ? id->code_file : id->debug_file), use, id, &best);
    } else {
        choose_better(objects, make_key('c', id->code_id.data, id->code_id.size), use, id, &best);
    }
    return best;
}

/* ---- by name ---- */

/* True if both objects are of the same program: by their code ids if both have one, else by their debug ids. */
static bool has_same_ids(const struct supplied_object *a, const struct supplied_object *b)
{
    if (a->code_id.size && b->code_id.size)
        return sl_str_equal(a->code_id, b->code_id);
    return sl_debug_id_has_uuid(&a->debug_id) && sl_debug_id_equal(&a->debug_id, &b->debug_id);
}

bool supplied_objects_find_named(const struct supplied_objects *objects, struct sl_str path, bool newest,
                                 struct object_id *id, size_t *parts)
{
    enum { MOST = 64 }; /* objects with the name that are compared: if there are more, their ids count as different */
    const struct supplied_object *best = NULL;
    size_t count = 0;
    bool same = true;
    *parts = 0;
    size_t at = (uintptr_t)sl_map_get(&objects->by_name, sl_path_module_name(path));
    for (; at && count < MOST; at = objects->items[at - 1].next_named, count++) {
        const struct supplied_object *object = &objects->items[at - 1];
        size_t common = sl_path_common_parts(path, object->name);
        if (common == *parts)
            same = same && has_same_ids(best, object);
        if (common <= *parts)
            continue;
        best = object;
        *parts = common;
        same = true;
    }
    if (!best || !((same && !at) || newest)) /* at != 0: there are more than MOST */
        return false;
    id->code_id = best->code_id;
    id->debug_id = best->debug_id;
    id->has_debug_id = sl_debug_id_has_uuid(&best->debug_id);
    return true;
}

/* Adds an object of the request to found->candidates, the report in the response. `use->report` is the offset of the member of struct
 * candidate that reports this use; 0: none does. */
static void report_candidate(const struct search_scope *where, const struct supplied_object *object,
                             const struct search_target *use, struct search_result *found)
{
    /* "artifact": also the name of the form's parts in which clients send such files */
    struct candidate candidate = {.source = SL_STR("artifact"), .location = object->name, .features = object->features};
    if (use->report)
        *(struct candidate_use *)((char *)&candidate + use->report) = (struct candidate_use){.set = true};
    const struct candidate_list list = {&candidate, 1, 1};
    candidates_merge(where->arena, &found->candidates, &list);
}

/* Returns the object's struct supplied_entry for this use, created if necessary; NULL when out of memory. */
static struct supplied_entry *find_entry(struct sl_arena *arena, struct supplied_object *object,
                                         const struct search_target *use)
{
    struct supplied_entry *made = object->made;
    while (made && (made->kind != use->kind || made->variables != use->variables || made->columns != use->columns))
        made = made->next;
    if (made || !(made = SL_ARENA_NEW(arena, struct supplied_entry)))
        return made;
    *made = (struct supplied_entry){
        .kind = use->kind, .variables = use->variables, .columns = use->columns, .next = object->made};
    return object->made = made;
}

/* Converts the object for this use, which sets made->item. After SL_BUSY or SL_CANCELLED `made->made` stays false, so that the next look-up
 * tries again; after another error it is true, and the item NULL. */
static enum sl_code make_entry(const struct supplied_object *object, const struct search_target *use,
                               struct supplied_entry *made)
{
    struct sl_error error;
    made->making = true;
    enum sl_code code = convert_object(object, use, made, &error);
    made->making = false;
    made->made = code != SL_BUSY && code != SL_CANCELLED;
    if (code != SL_OK && made->made)
        log_info("own_objects", "ignoring a debug file that came with the request", LOG_SLSTR("file", object->name),
                 LOG_STR("error", error.message));
    fiber_wake_all(&made->waiting);
    return code;
}

/* Answers with SL_BUSY or SL_CANCELLED, marked as undecided. Returns true, "answered": otherwise the sources would be searched, and a file
 * of a source would be used in place of the request's own file. */
static bool leave_undecided(const struct search_query *question, enum sl_code code)
{
    *question->found = (struct search_result){.code = code, .undecided = true};
    sl_fail(&question->found->error, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    return true;
}

/* The first look-up of an object converts it for the use; others wait for that, and use the result too. If the object cannot be converted
 * (made->item is NULL) the function returns false, and the caller searches the sources. */
bool supplied_objects_answer(const struct search_scope *where, const struct search_query *question)
{
    const struct search_target *use = question->use;
    bool is_convertible = use->kind == &kind_symcaches || use->kind == &kind_cficaches;
    struct supplied_object *object =
        where->own && is_convertible ? supplied_objects_find(where->own, use, question->id) : NULL;
    if (!object)
        return false;
    struct supplied_entry *made = find_entry(where->own->arena, object, use);
    if (!made)
        return leave_undecided(question, SL_BUSY); /* returns true: this error is the answer */
    while (made->making)
        if (fiber_wait_on(&made->waiting, UINT64_MAX) != FIBER_WOKEN)
            return leave_undecided(question, SL_CANCELLED);
    enum sl_code code = made->made ? SL_OK : make_entry(object, use, made);
    if (!made->made)
        return leave_undecided(question, code);
    if (!made->item)
        return false;
    struct search_result found = {
        .code = SL_OK, .features = object->features, .fixed_load = object->fixed_load, .arch = made->arch};
    found.item = cache_retain(made->item);
    found.symcache = use->kind == &kind_symcaches ? made->item->loaded : NULL;
    report_candidate(where, object, use, &found);
    *question->found = found;
    return true;
}
