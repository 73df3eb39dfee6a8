/* The table of a module: of the best object there is, with what changes its names and lines. */
#include "kinds/search.h"

/* What the chosen candidate says of its use: a file that could not even be fetched says nothing. */
static void report_chosen_error(struct candidate *candidate, enum sl_code code)
{
    if (code == SL_NOT_FOUND || code == SL_PERMISSION_DENIED || code == SL_TIMEOUT || code == SL_DOWNLOAD_ERROR)
        return;
    candidate->debug.set = true;
    candidate->debug.code = SL_MALFORMED;
}

static void report_conversion(struct search *search, struct candidate *candidate, const struct symbol_lookup *result)
{
    const struct sl_error *error = &result->error;
    candidate->debug.set = true;
    candidate->debug.code = error->code;
    if (result->symcache && sl_symcache_is_partial(result->symcache))
        candidate->debug.details = SL_STR("Some of the debug information could not be read");
    else if (error->code == SL_NOT_FOUND)
        candidate->debug.details = SL_STR("Object file no longer available");
    else if (error->code != SL_OK && error->code != SL_MALFORMED)
        candidate->debug.details = search_error_text(search->arena, error);
}

static void find_symcache_finish(struct search *search)
{
    struct symbol_lookup *result = search->result;
    candidates_merge(search->arena, &result->candidates, &search->candidates);
}

/* ---- the table ---- */
static void take_table(struct search *search)
{
    struct symbol_lookup *result = search->result;
    result->code = result->error.code = search->table.code;
    result->item = search->table.item;
    search->table.item = NULL;
    if (result->code == SL_OK && search->id->type == OBJECT_PE_DOTNET) {
        result->ppdb = result->item->loaded;
    } else if (result->code == SL_OK) {
        result->symcache = result->item->loaded;
        result->arch = result->symcache->arch;
    }
    if (result->code != SL_CANCELLED && result->code != SL_BUSY)
        report_conversion(search, search->chosen->candidate, result);
    search->next = find_symcache_finish;
}

static void table_answered(struct cache_look *look)
{
    search_answered((struct search *)((char *)look - offsetof(struct search, table)));
}

static void ask_table(struct search *search, const struct cache_kind *kind, const struct cache_key *key,
                      const void *context)
{
    struct symbol_lookup *result = search->result;
    search->table = (struct cache_look){
        .kind = kind, .key = key, .context = context, .error = &result->error, .done = table_answered};
    search->next = take_table;
    search->waiting += !cache_ask(&search->table);
}

static void fail_table(struct search *search, enum sl_code code)
{
    struct symbol_lookup *result = search->result;
    search->table.code = sl_fail(&result->error, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    search->next = take_table;
}

static void ask_symcache(struct search *search)
{
    const struct object_request *map = search->map, *lines = search->lines;
    struct symcache_request request = {
        .object = search->chosen->request, .map = map, .lines = lines, .scope = search->chosen->request.scope};
    struct cache_key key;
    if ((map && !sl_str_equal(map->scope, request.scope)) || (lines && !sl_str_equal(lines->scope, request.scope)))
        request.scope = search->scope;
    if (symcache_request_key(&request, search->arena, &key))
        ask_table(search, &kind_symcaches, &key, &request);
    else
        fail_table(search, SL_BUSY);
}

/* ---- what changes names and lines is a part of the symcache, so it is looked for first ---- */

/* In a fiber: there is something, or it takes questions to know what there may be. */
static void find_rewriting(struct search *search)
{
    struct auxiliary_search auxiliary = {search->sources, search->source_count, search->scope, search->id,
                                         search->arena};
    enum sl_code code = bcsymbolmap_find(&auxiliary, &search->map);
    if (code != SL_CANCELLED && code != SL_BUSY)
        code = il2cpp_find(&auxiliary, &search->lines);
    if (code == SL_CANCELLED || code == SL_BUSY)
        search_fail(search, code);
}

static void ask_rewritten(struct search *search)
{
    if (search->failure.code == SL_OK)
        ask_symcache(search);
    else
        fail_table(search, search->failure.code);
}

static void auxiliary_answered(struct cache_look *look)
{
    struct probe *other = (struct probe *)((char *)look - offsetof(struct probe, look));
    other->code = look->code;
    cache_release(look->item);
    if (look->code != SL_OK)
        cache_renew(look->kind, look->key, look->context);
    search_answered(other->search);
}

static void take_auxiliaries(struct search *search)
{
    bool any = false;
    for (size_t i = 0; i < search->other_count; i++)
        any = any || search->others[i].code == SL_OK || search->others[i].code == SL_BUSY;
    search->other_count = 0;
    if (!any) {
        ask_symcache(search);
        return;
    }
    search->next = ask_rewritten;
    search_in_fiber(search, find_rewriting);
}

static bool add_auxiliary(struct search *search, const struct remote_file *file, const struct cache_kind *kind,
                          const struct object_id *id)
{
    struct probe *other = &search->others[search->other_count];
    other->request = (struct object_request){file, id, origin_scope(file, search->scope)};
    other->search = search;
    if (!object_request_key(&other->request, search->arena, &other->key))
        return false;
    other->look =
        (struct cache_look){.kind = kind, .key = &other->key, .context = &other->request, .done = auxiliary_answered};
    search->other_count++;
    return true;
}

/* The files that may be: mostly none, and then they are not there. False when out of memory. */
static bool list_auxiliaries(struct search *search)
{
    static const enum file_type types[] = {FILE_UUIDMAP, FILE_IL2CPP};
    static const struct cache_kind *const kinds[] = {&kind_auxdifs, &kind_il2cpp};
    struct object_id *id = SL_ARENA_NEW(search->arena, struct object_id);
    struct listing *listings = SL_ARENA_ARRAY(search->arena, struct listing, 2 * search->source_count);
    size_t count = 0;
    if (!id || (search->source_count && !listings))
        return false;
    *id = (struct object_id){.debug_id = search->id->debug_id, .has_debug_id = true};
    const struct object_id *ids[] = {id, search->id};
    for (size_t t = 0; t < 2; t++) {
        if (list_sources(search->sources, search->source_count, search->scope, ids[t], &types[t], 1, search->arena,
                         &listings[t * search->source_count]) != SL_OK)
            return false;
        for (size_t i = 0; i < search->source_count; i++)
            count += listings[t * search->source_count + i].count;
    }
    search->others = count ? SL_ARENA_ARRAY(search->arena, struct probe, count) : NULL;
    if (count && !search->others)
        return false;
    for (size_t i = 0; i < 2 * search->source_count; i++)
        for (size_t f = 0; f < listings[i].count; f++) {
            size_t t = i / search->source_count;
            if (!add_auxiliary(search, &listings[i].files[f], kinds[t], ids[t]))
                return false;
        }
    return true;
}

static void use_object(struct search *search)
{
    if (!search->id->has_debug_id) {
        ask_symcache(search);
        return;
    }
    if (!lists_at_once(search->sources, search->source_count)) {
        search->next = ask_rewritten;
        search_in_fiber(search, find_rewriting);
        return;
    }
    if (!list_auxiliaries(search)) {
        search->other_count = 0;
        fail_table(search, SL_BUSY);
        return;
    }
    search->next = take_auxiliaries;
    search->waiting++; /* until all are asked */
    for (size_t i = 0; i < search->other_count; i++) {
        search->waiting++;
        if (cache_ask(&search->others[i].look))
            auxiliary_answered(&search->others[i].look);
    }
    search->waiting--;
}

/* ---- Portable PDBs inside of PE files ---- */
static const struct wanted pe_types = {OBJECT_PE_DOTNET, (const enum file_type[]){FILE_PE}, 1};

struct probe *search_in_pe(const struct search *first, struct search *search)
{
    *search = (struct search){.sources = first->sources,
                              .source_count = first->source_count,
                              .id = first->id,
                              .scope = first->scope,
                              .purpose = first->purpose,
                              .wanted = &pe_types,
                              .arena = first->arena};
    if (!kinds_config()->dotnet_ask_pe || first->id->type != OBJECT_PE_DOTNET || first->failure.code != SL_OK)
        return NULL;
    struct probe *found = search_one(search);
    return found && probe_grade(found, search->purpose) == GRADE_BEST ? found : NULL;
}

/* In a fiber: a search of its own, since it adds requests and candidates. */
static void look_inside(struct search *search)
{
    struct symbol_lookup *result = search->result;
    struct search inside;
    struct probe *embedded = search_in_pe(search, &inside);
    if (inside.failure.code != SL_OK) {
        result->code = inside.failure.code;
        result->error = inside.failure;
        return;
    }
    if (embedded) {
        result->features = embedded->features;
        result->code = cache_get(&kind_ppdb_caches, &embedded->key, &embedded->request, &result->item, &result->error);
        result->error.code = result->code;
        result->ppdb = result->code == SL_OK ? result->item->loaded : NULL;
        if (result->code != SL_CANCELLED && result->code != SL_BUSY)
            report_conversion(&inside, embedded->candidate, result);
    }
    candidates_merge(search->arena, &result->candidates, &search->candidates);
    search->candidates = inside.candidates;
}

/* ---- a module ---- */
static void use_unusable(struct search *search)
{
    struct symbol_lookup *result = search->result;
    if (search->chosen) {
        result->code = search->chosen->code;
        result->error = search->chosen->error;
        report_chosen_error(search->chosen->candidate, search->chosen->code);
    }
    search->next = find_symcache_finish;
    if (search->id->type == OBJECT_PE_DOTNET && kinds_config()->dotnet_ask_pe)
        search_in_fiber(search, look_inside);
}

static void find_symcache_use(struct search *search)
{
    struct symbol_lookup *result = search->result;
    if (search->failure.code != SL_OK) {
        result->code = search->failure.code;
        result->error = search->failure;
    } else if (!search->chosen || search->chosen->code != SL_OK) {
        use_unusable(search);
    } else {
        result->features = search->chosen->features;
        if (search->id->type == OBJECT_PE_DOTNET)
            ask_table(search, &kind_ppdb_caches, &search->chosen->key, &search->chosen->request);
        else
            use_object(search);
    }
}

bool kinds_find_symcaches(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct symbol_question *questions, size_t count, struct sl_arena *arena)
{
    struct search *searches = SL_ARENA_ARRAY(arena, struct search, count);
    for (size_t i = 0; i < count; i++)
        *questions[i].result = (struct symbol_lookup){.code = SL_BUSY, .error = {SL_BUSY, 0, "out of memory"}};
    if (count && !searches)
        return true;
    for (size_t i = 0; i < count; i++) {
        *questions[i].result = (struct symbol_lookup){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
        searches[i] = (struct search){.sources = sources,
                                      .source_count = source_count,
                                      .id = questions[i].id,
                                      .scope = scope,
                                      .purpose = PURPOSE_DEBUG,
                                      .arena = arena,
                                      .use = find_symcache_use,
                                      .result = questions[i].result};
    }
    if (search_all(searches, count))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!questions[i].result->item)
            questions[i].result->code = sl_fail(&questions[i].result->error, SL_CANCELLED, "cancelled");
    return false;
}

void kinds_find_symcache(const struct source *sources, size_t source_count, struct sl_str scope,
                         const struct object_id *id, struct sl_arena *arena, struct symbol_lookup *result)
{
    struct symbol_question question = {id, result};
    kinds_find_symcaches(sources, source_count, scope, &question, 1, arena);
}
