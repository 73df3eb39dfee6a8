/* Modules of a native request: sorts them, finds the module of an address, and looks up their files. */
#include <stdlib.h>

#include "api/native/native.h"

#include "base/search.h"
#include "conversion/conversion.h"
#include "symbfile_store/symbfile_store.h"
#include "debug_file_store/debug_file_store.h"
#include "store/store.h"

enum { MAX_UPLOADS_AT_ONCE = 16 }; /* look-ups in uploaded symbols that run concurrently */

/* ---- the module of an address ---- */
struct sortable { /* a module to be sorted: its address and its index in the request */
    uint64_t address;
    uint32_t index;
};

/* Compares by address; modules with the same address stay in the order of the request. */
static int native_modules_by_address(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Sets the sizes of modules that were sent without one: each reaches up to the next module. The size of the last one stays 0,
 * unknown. */
static void fill_sizes(struct native_request *request)
{
    for (size_t i = 0; i + 1 < request->module_count; i++) {
        struct native_module *module = &request->modules[request->by_address[i]];
        const struct native_module *next = &request->modules[request->by_address[i + 1]];
        if (!module->image_size) {
            module->image_size = next->image_address - module->image_address;
            module->has_image_size = true;
        }
    }
}

/* True if the module can be looked up by an id. */
static bool has_id(const struct object_id *id)
{
    return sl_code_id_is_set(id->code_id) || (id->has_debug_id && sl_debug_id_has_uuid(&id->debug_id));
}

/* Returns the last address of a module: UINT64_MAX if its size is unknown; its first address if size and address overflow. */
static uint64_t last_address(const struct native_module *module)
{
    uint64_t last;
    if (!module->image_size)
        return UINT64_MAX;
    return __builtin_add_overflow(module->image_address, module->image_size - 1, &last) ? module->image_address : last;
}

/* Makes module_map, by which nested_module finds modules. Where modules overlap, the smallest one with an id is preferred. False when out
 * of memory. */
static bool map_modules(struct native_request *request)
{
    size_t count = request->module_count;
    struct sl_range *ranges = SL_ARENA_ARRAY(request->arena, struct sl_range, count + 1);
    for (size_t i = 0; ranges && i < count; i++) {
        const struct native_module *module = &request->modules[request->by_address[i]];
        ranges[i] = (struct sl_range){
            .first = module->image_address, .last = last_address(module), .is_preferred = has_id(module->id)};
    }
    return ranges && sl_range_map_build(request->arena, ranges, count, &request->module_map);
}

bool native_sort_modules(struct native_request *request)
{
    size_t count = request->module_count;
    struct sortable *order = SL_ARENA_ARRAY(request->arena, struct sortable, count);
    request->by_address = SL_ARENA_ARRAY(request->arena, uint32_t, count);
    if (count && (!order || !request->by_address))
        return false;
    for (size_t i = 0; i < count; i++)
        order[i] = (struct sortable){request->modules[i].image_address, (uint32_t)i};
    if (count > 1)
        qsort(order, count, sizeof *order, native_modules_by_address);
    for (size_t i = 0; i < count; i++)
        request->by_address[i] = order[i].index;
    fill_sizes(request);
    /* modules inside of one another need a map of which one has an address; others are found by their order */
    return !request->nests_modules || map_modules(request);
}

/* Returns the module of an address, as index in `by_address` plus 1: the last one that begins at or below it. 0 if there is none, or
 * if the address lies beyond its end. A module of unknown size (0) has no end; one whose end overflows has no addresses. */
static size_t closest_module(const struct native_request *request, uint64_t address)
{
    size_t low = SL_PARTITION_POINT(i, 0, request->module_count,
                                    request->modules[request->by_address[i]].image_address <= address);
    if (low == 0)
        return 0;
    const struct native_module *module = &request->modules[request->by_address[low - 1]];
    uint64_t end;
    if (__builtin_add_overflow(module->image_address, module->image_size, &end))
        return 0;
    /* `end` itself matches, too: a call that does not return may be the last instruction, and has its return address there. */
    return module->image_size && address > end ? 0 : low;
}

/* Returns the module of an address, as index in `by_address` plus 1, if modules may lie in others; 0 if there is none. A return
 * address may lie just behind the module with the call, so the address before it is tried first. For any other address the one before
 * is tried last. */
static size_t nested_module(const struct native_request *request, uint64_t address, bool is_return)
{
    size_t at = is_return ? SL_NO_RANGE : sl_range_map_find(&request->module_map, address);
    if (at == SL_NO_RANGE && address)
        at = sl_range_map_find(&request->module_map, address - 1);
    if (at == SL_NO_RANGE && is_return)
        at = sl_range_map_find(&request->module_map, address);
    return at == SL_NO_RANGE ? 0 : at + 1;
}

/* Sets module_index and `relative` of a frame. If the frame names its module (address mode), its address is relative already; if no
 * module has this index, the frame is in no module. A module that was sent with address 0 has no known address: a frame in it is
 * `undefined`. But with maps_at_zero, 0 is an address like any other. */
static void assign_module(const struct native_request *request, struct native_frame *frame, bool is_first)
{
    /* if the request does not say it, all frames but the first have return addresses */
    bool is_return = !frame->is_exact && (frame->adjust == SL_BOOL_ABSENT ? !is_first : frame->adjust == SL_BOOL_TRUE);
    frame->relative = frame->address;
    frame->module_index = frame->module < request->module_count ? frame->module : NATIVE_NO_MODULE;
    if (frame->module != NATIVE_NO_MODULE)
        return;

    size_t found = request->nests_modules ? nested_module(request, frame->address, is_return)
                                          : closest_module(request, frame->address);
    if (found == 0)
        return;
    frame->module_index = request->by_address[found - 1];
    uint64_t base = request->modules[frame->module_index].image_address;
    frame->relative -= base;
    frame->undefined = base == 0 && !request->maps_at_zero;
}

void native_assign_modules(struct native_request *request)
{
    for (size_t t = 0; t < request->trace_count; t++)
        for (size_t i = 0; i < request->traces[t].frame_count; i++) {
            struct native_frame *frame = &request->traces[t].frames[i];
            assign_module(request, frame, i == 0);
            if (frame->module_index != NATIVE_NO_MODULE)
                request->modules[frame->module_index].referenced = true;
        }
}

/* ---- look-ups ---- */

/* Makes with_store, if that was not done before. It lists the request's sources; then the store of uploaded debug files, unless the
 * request names that itself; then the `count` sources in `store`. */
static void add_store(struct native_request *request, const struct source *store, size_t count)
{
    if (request->with_store)
        return;
    size_t before = request->source_count;
    const struct source *sources = debug_files_append(request->sources, &before, request->arena);
    size_t all = before + count;
    /* NULL for a list that is not empty: out of memory */
    request->with_store = sources || !before ? SL_ARENA_ARRAY(request->arena, struct source, all) : NULL;
    request->out_of_memory |= !request->with_store;
    for (size_t i = 0; request->with_store && i < all; i++)
        request->with_store[i] = i < before ? sources[i] : store[i - before];
    request->with_store_count = request->with_store ? all : 0;
}

/* True if the configuration keeps uploads apart by the scopes of upload tokens, and a token has one. */
static bool tokens_have_scopes(const struct config *config)
{
    for (size_t i = 0; i < config->mozilla.token_count; i++)
        if (config->mozilla.tokens[i].scope.size)
            return config->uploads_scope == UPLOADS_OF_SCOPE;
    return false;
}

/* Returns the sources of the symbol store for the request's own scope, and sets `*count`. NULL and 0: uploads are not kept apart by
 * scope, or the scope has none. If with_store was made before, the list is not needed: returns NULL and leaves `*count` as it is. */
static const struct source *scope_store(const struct native_request *request, size_t *count)
{
    char scope[SYMBFILE_SCOPE];
    if (request->with_store)
        return NULL;
    symbfile_scope(request->scope, scope); /* the name under which the store has this scope */
    *count = 0;
    return tokens_have_scopes(current_config()) ? store_scope_sources(sl_str(scope), request->arena, count) : NULL;
}

struct search_scope native_search_scope(struct native_request *request)
{
    /* Source lists are numbered from 1. The top bit marks the same list with the stores, which do not change while the process runs. */
    enum { WITH_STORE_BIT = 63 };
    uint64_t number = request->sources_number;
    size_t count;
    /* store_native_sources gives none unless mozilla.store.serve_native is set */
    const struct source *store = request->includes_symbol_store ? store_sources(&count) : store_native_sources(&count);
    /* requests with another scope than the global one may see only what was uploaded for their scope */
    if (count && !sl_str_equal(request->scope, SL_STR("global")))
        store = scope_store(request, &count);
    struct search_scope scope = {.sources = request->sources,
                                 .source_count = request->source_count,
                                 .scope = request->scope,
                                 .arena = request->arena,
                                 .list = number,
                                 .own = request->own /* files sent with the request, tried first */};
    if (count || debug_files_are_open()) {
        add_store(request, store, count);
        scope.sources = request->with_store;
        scope.source_count = request->with_store_count;
        scope.list = number ? number | UINT64_C(1) << WITH_STORE_BIT : 0;
    }
    return scope;
}

typedef bool is_wanted(const struct native_module *module);

/* Returns the modules for which `wanted` is true, in the arena. NULL when out of memory. */
static struct native_module **select_modules(struct native_request *request, is_wanted *wanted, size_t *count)
{
    struct native_module **found = SL_ARENA_ARRAY(request->arena, struct native_module *, request->module_count + 1);
    *count = 0;
    for (size_t i = 0; found && i < request->module_count; i++)
        if (wanted(&request->modules[i]))
            found[(*count)++] = &request->modules[i];
    request->out_of_memory |= !found;
    return found;
}

/* ---- uploads ---- */
struct upload_queue { /* modules to look up; each of several fibers takes the next one when it is done with one */
    struct sl_str scope;
    struct native_module **todo;
    size_t count, next;
};

/* Looks up a module in uploaded symbols. If they have it, `lookup` becomes SL_OK as well, although it has no cache entry (item). */
static void find_upload(struct sl_str scope, struct native_module *module)
{
    struct native_lookups *found = module->found;
    symbfile_find(scope, module->upload->has_file_id ? &module->upload->file_id : NULL, module->id, &found->symbfile);
    if (found->symbfile.code != SL_OK)
        return;
    found->lookup.code = SL_OK;
    found->lookup.features = found->symbfile.features;
    found->lookup.arch = found->symbfile.arch;
}

/* A worker fiber: looks up the next module until none is left. */
static void find_some_uploads(void *arg)
{
    struct upload_queue *queue = arg;
    while (queue->next < queue->count && !fiber_cancelled())
        find_upload(queue->scope, queue->todo[queue->next++]);
}

/* Looks up the modules for which `wanted` is true in uploaded symbols, several at a time. False when cancelled; lack of memory only sets
 * out_of_memory. */
static bool find_uploads(struct native_request *request, is_wanted *wanted)
{
    struct upload_queue queue = {.scope = request->scope};
    queue.todo = select_modules(request, wanted, &queue.count);
    if (queue.count == 0)
        return true;
    size_t at_once = queue.count < MAX_UPLOADS_AT_ONCE ? queue.count : MAX_UPLOADS_AT_ONCE;
    return fiber_run_workers(find_some_uploads, &queue, at_once - 1); /* this fiber works, too */
}

/* True if the configuration prefers uploaded symbols to the sources for this module. One with an invalid file id counts as malformed
 * and is not searched. */
static bool upload_first(const struct native_module *module)
{
    return module->referenced && !module->upload->bad_file_id && symbfile_is_preferred(module->upload->has_file_id);
}

/* True if uploaded symbols are to be searched after the sources, which have no usable file for the module. */
static bool upload_last(const struct native_module *module)
{
    return module->referenced && !module->upload->bad_file_id && !symbfile_is_preferred(module->upload->has_file_id) &&
           module->found->lookup.code != SL_OK && module->found->lookup.code != SL_CANCELLED &&
           module->found->lookup.code != SL_BUSY;
}

/* ---- files of the sources ---- */
/* True if the module still needs a table: neither uploaded symbols nor a look-up before have one. */
static bool wants_table(const struct native_module *module)
{
    return module->referenced && !module->upload->bad_file_id && module->found->symbfile.code != SL_OK &&
           !module->found->lookup.item;
}

/* Looks up the modules in Mozilla's symbol stores, if the request asks these. If they have no usable file for a module, the result is
 * only kept in `stores` and has_other_id, and the sources are searched. False when cancelled; lack of memory sets out_of_memory. */
static bool find_in_stores(struct native_request *request)
{
    size_t count;
    if (!request->stores)
        return true;
    struct native_module **modules = select_modules(request, wants_table, &count);
    struct mozilla_query *questions = SL_ARENA_ARRAY(request->arena, struct mozilla_query, count + 1);
    request->out_of_memory |= !questions;
    if (!modules || !questions)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct native_lookups *found = modules[i]->found;
        questions[i] = (struct mozilla_query){
            .id = modules[i]->id, .found = &found->lookup, .work = request->reports_work ? &found->work : NULL};
    }
    if (!search_find_mozilla(request->stores, questions, count, request->arena))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct native_lookups *found = modules[i]->found;
        found->stores = found->lookup.code;
        found->has_other_id =
            found->stores == SL_MALFORMED && strcmp(found->lookup.error.message, mozilla_wrong_id_message) == 0;
        request->out_of_memory |= found->stores == SL_BUSY;
        if (found->stores != SL_OK)
            found->lookup = (struct search_result){.code = SL_NOT_FOUND};
    }
    return true;
}

/* Directories store ELF files by build id, but Mozilla's clients send the debug id only, which is made of its first 16 bytes: so
 * sources are searched for a build id that begins with them. The first source that has one wins. */
enum sl_code native_add_build_id(const struct search_scope *where, struct object_id *id)
{
    struct sl_str build_id;
    enum sl_code scarce = SL_NOT_FOUND;
    for (size_t i = 0; id->has_debug_id && i < where->source_count; i++) {
        enum sl_code code = origin_build_id(&where->sources[i], id, where->arena, &build_id);
        if (code == SL_BUSY || code == SL_CANCELLED)
            scarce = code;
        if (code != SL_OK)
            continue;
        id->code_id = build_id;
        id->code_file = id->code_file.size ? id->code_file : id->debug_file;
        return SL_OK;
    }
    return scarce;
}

/* Adds the build id to a module of Mozilla's API that is an ELF file without one, so that sources can find it. */
static void complete_id(struct native_request *request, const struct search_scope *where, struct native_module *module)
{
    struct object_id complete = *module->id, *kept;
    if (!request->stores || complete.type != OBJECT_ELF || complete.code_id.size)
        return;
    enum sl_code code = native_add_build_id(where, &complete);
    request->out_of_memory |= code == SL_BUSY;
    if (code != SL_OK)
        return;
    kept = SL_ARENA_NEW(request->arena, struct object_id);
    request->out_of_memory |= !kept;
    if (!kept)
        return;
    *kept = complete;
    module->id = kept;
}

/* Looks up the tables of the modules in the request's sources, after completing the ids of modules that have no build id (complete_id).
 * False when cancelled; lack of memory sets out_of_memory. */
static bool find_tables(struct native_request *request)
{
    size_t count;
    struct native_module **modules = select_modules(request, wants_table, &count);
    struct search_query *questions = SL_ARENA_ARRAY(request->arena, struct search_query, count + 1);
    struct search_scope where = native_search_scope(request);
    request->out_of_memory |= !questions;
    if (!modules || !questions)
        return true;
    for (size_t i = 0; i < count; i++)
        complete_id(request, &where, modules[i]);
    bool wants_variables = request->options.extract_variables == SL_BOOL_TRUE;
    for (size_t i = 0; i < count; i++) {
        const struct object_id *id = modules[i]->id;
        const struct search_target *use =
            request->wants_columns ? search_columns_target(id) : search_symbols_target(id, wants_variables);
        questions[i] = (struct search_query){.use = use, .id = id, .found = &modules[i]->found->lookup};
    }
    return search_find_all(&where, questions, count);
}

/* Allocates `found` of the modules in which frames lie. False when out of memory. Uploaded symbols count as not found until they are
 * searched; a module with an invalid file id is malformed, and not searched. */
static bool native_modules_alloc_found(struct native_request *request)
{
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_module *module = &request->modules[i];
        if (!module->referenced)
            continue;
        module->found = SL_ARENA_NEW(request->arena, struct native_lookups);
        if (!module->found) {
            request->out_of_memory = true;
            return false;
        }
        module->found->symbfile.code = SL_NOT_FOUND;
        if (module->upload->bad_file_id)
            module->found->lookup.code = SL_MALFORMED;
    }
    return true;
}

/* False when cancelled, or if `found` cannot be allocated; lack of memory later only sets out_of_memory. Uploaded symbols are searched
 * before or after the other places, as configured. */
bool native_find_symbols(struct native_request *request)
{
    if (!native_modules_alloc_found(request))
        return false;
    if (!find_uploads(request, upload_first) || !find_in_stores(request) || !find_tables(request) ||
        !find_uploads(request, upload_last))
        return false;
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_lookups *found = request->modules[i].found;
        if (!found)
            continue;
        if (found->lookup.code == SL_NOT_FOUND)
            found->lookup.code = found->symbfile.code; /* a broken upload is reported instead of "not found" */
        request->out_of_memory |= found->lookup.code == SL_BUSY || found->symbfile.code == SL_BUSY;
    }
    return true;
}

/* True if a resulting frame lies in the module. */
static bool wants_source(const struct native_module *module)
{
    return module->source_wanted;
}

bool native_find_sources(struct native_request *request)
{
    size_t count;
    struct native_module **modules = select_modules(request, wants_source, &count);
    struct source_query *questions = SL_ARENA_ARRAY(request->arena, struct source_query, count + 1);
    struct search_scope where = native_search_scope(request);
    request->out_of_memory |= !questions;
    if (!modules || !questions)
        return true;
    for (size_t i = 0; i < count; i++)
        questions[i] = (struct source_query){.id = modules[i]->id, .result = &modules[i]->found->sources};
    if (!search_find_sources(&where, questions, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct native_module *module = modules[i];
        if (request->options.dif_candidates == SL_BOOL_TRUE) /* otherwise the answer has no candidates */
            candidates_merge(request->arena, &module->found->lookup.candidates, &module->found->sources.candidates);
        module->has_sources = module->found->sources.count > 0;
        /* lack of memory does not matter if some sources were found all the same */
        request->out_of_memory |= module->found->sources.code == SL_BUSY && !module->found->sources.count;
    }
    return true;
}

/* Releases what the look-ups of all modules have found. `found` itself stays: native_reset clears it if the request is run again. */
void native_release(void *arg)
{
    struct native_request *request = arg;
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_lookups *found = request->modules[i].found;
        if (!found)
            continue;
        cache_release(found->lookup.item);
        symbfile_lookup_release(&found->symbfile);
        for (size_t o = 0; o < found->sources.count; o++)
            source_object_release(&found->sources.objects[o]);
    }
}

/* Restores the state before native_run, which is repeated when a cache file turned out to be damaged. */
void native_reset(void *arg)
{
    struct native_request *request = arg;
    native_release(request);
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_module *module = &request->modules[i];
        module->found = NULL;
        module->source_wanted = module->has_sources = false;
    }
    request->results = NULL;
    request->result_count = 0;
    request->counts = (struct native_counts){.frames = 0};
    request->links = NULL;
    request->out_of_memory = false;
}

/* Uploaded symbols have up to two files (indexes[0] and indexes[1], either may be missing). Each has a table by address ranges and one by
 * return pads, the addresses to which calls return. All other frames are in the symcache. `table` must be one in which a frame was found,
 * so its file is there. */
const struct sl_symcache *native_table(const struct native_module *module, enum native_table table)
{
    const struct sl_symbfile_index *const *indexes = module->found->symbfile.indexes;
    switch (table) {
    case TABLE_SYMCACHE: break;
    case TABLE_RANGES: return &indexes[0]->ranges;
    case TABLE_RANGES_PADS: return &indexes[0]->pads;
    case TABLE_RETURNPADS: return &indexes[1]->ranges;
    case TABLE_RETURNPADS_PADS: return &indexes[1]->pads;
    }
    return module->found->lookup.symcache;
}

uint64_t native_table_base(const struct native_module *module)
{
    return symbol_table_base(&module->found->lookup.fixed_load, module->image_address);
}

/* Returns the word for the result of a look-up in answers. The last three codes do not occur in answers: with them the request has
 * failed as a whole. */
const char *native_lookup_status(enum sl_code code)
{
    switch (code) {
    case SL_OK: return "found";
    case SL_NOT_FOUND: return "missing";
    case SL_MALFORMED: return "malformed";
    case SL_PERMISSION_DENIED:
    case SL_DOWNLOAD_ERROR: return "fetching_failed";
    case SL_TIMEOUT: return "timeout";
    case SL_UNSUPPORTED: return "unsupported";
    case SL_INTERNAL:
    case SL_CANCELLED:
    case SL_BUSY: break;
    }
    return "other";
}

const char *native_module_status(const struct native_module *module)
{
    return module->referenced ? native_lookup_status(module->found->lookup.code) : "unused";
}
