/* Gets the cache entry made from the chosen file of a module, such as unwind rules. For a symcache it also finds the files that change its
 * names and lines: BCSymbolMap and il2cpp mapping. */
#include "search/impl.h"

uint64_t symbol_table_base(const struct fixed_load_address *fixed_load, uint64_t image_address)
{
    /* Reported and fixed address differ by at most the size of the segments that a tool inserted in front of the program's
     * own ones, which is small. A larger distance means that the module was not loaded at its fixed address; then the fixed
     * address says nothing. */
    enum { MAX_DISTANCE = 1 << 20 };
    /* unsigned: of the two differences the one in the wrong direction is huge */
    uint64_t above = fixed_load->address - image_address, below = image_address - fixed_load->address;
    bool near = above <= MAX_DISTANCE || below <= MAX_DISTANCE;
    return fixed_load->is_fixed && image_address && near ? fixed_load->address : image_address;
}

/* ---- reporting ---- */
/* Returns the field of a candidate that reports this use: candidate.debug or .unwind. Only if use->report is not 0. */
static struct candidate_use *get_report_field(const struct search_target *use, struct candidate *candidate)
{
    return (struct candidate_use *)((char *)candidate + use->report);
}

/* Reports in the chosen file's candidate that it was unusable. Reports nothing if it could not be fetched: it is not known whether it would
 * have been usable. */
static void report_unusable(struct search *search)
{
    enum sl_code code = search->chosen->code;
    if (!search->use->report || code == SL_NOT_FOUND || code == SL_PERMISSION_DENIED || code == SL_TIMEOUT ||
        code == SL_DOWNLOAD_ERROR)
        return;
    struct candidate_use *report = get_report_field(search->use, search->chosen->candidate);
    report->set = true;
    report->code = SL_MALFORMED;
}

void search_report(struct search *search, struct candidate *candidate, struct search_result *found,
                   const struct search_target *use)
{
    struct candidate_use report = {.set = true, .code = found->code};
    if (found->code == SL_OK && use->steps && use->steps->had)
        use->steps->had(found,
                        &report); /* the target's hook: sets what depends on the entry, such as found->symcache */
    else if (found->code == SL_NOT_FOUND)
        report.details = SL_STR("Object file no longer available");
    else if (found->code != SL_OK && found->code != SL_MALFORMED)
        report.details = search_error_text(search->arena, &found->error);
    if (use->report && found->code != SL_CANCELLED && found->code != SL_BUSY) /* these say nothing about the file */
        *get_report_field(use, candidate) = report;
}

/* Last step, also if no entry was made: adds the candidates of this search to those of the result. */
static void find_use_finish(struct search *search)
{
    struct search_result *found = search->result;
    candidates_merge(search->arena, &found->candidates, &search->candidates);
}

/* ---- looking up the entry ---- */

/* Step after the look-up of the entry made from the chosen file: moves the entry, or its error, to the result. The result owns the
 * reference from here on. */
static void take_table(struct search *search)
{
    struct search_result *found = search->result;
    found->code = found->error.code = search->table.code;
    /* an error of the source or of this process may be over at the next search */
    found->undecided = found->undecided || search_is_passing(found->code);
    found->item = search->table.item;
    search->table.item = NULL;
    search_report(search, search->chosen->candidate, found, search->use);
    search->next = find_use_finish;
}

/* Called when the look-up of the entry made from the chosen file has ended. */
static void table_answered(struct cache_lookup *look)
{
    search_lookup_done((struct search *)((char *)look - offsetof(struct search, table)));
}

void search_lookup(struct search *search, const struct cache_key *key, const void *context)
{
    struct search_result *found = search->result;
    search->table = (struct cache_lookup){
        .kind = search->use->kind, .key = key, .context = context, .error = &found->error, .done = table_answered};
    search->next = take_table;
    search->waiting += !cache_lookup_async(&search->table); /* true: answered at once */
}

void search_lookup_failed(struct search *search, enum sl_code code)
{
    struct search_result *found = search->result;
    search->table.code = sl_fail(&found->error, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    search->next = take_table;
}

/* ---- one module ---- */

/* Called if no file is usable: the result gets the error of the chosen file, if there is one, else stays SL_NOT_FOUND. Then the target's
 * hook `otherwise` may try something else. */
static void use_nothing(struct search *search)
{
    const struct search_hooks *steps = search->use->steps;
    struct search_result *found = search->result;
    if (search->chosen) {
        found->code = search->chosen->code;
        found->error = search->chosen->error;
        report_unusable(search);
    }
    search->next = find_use_finish;
    if (steps && steps->otherwise)
        steps->otherwise(search);
}

/* Step after a file was chosen: looks up the entry that is made from it, or lets the target's hook `ask` do that, as a symcache is made
 * from further files too. If no file is usable, sets the result to the error. */
static void use_chosen(struct search *search)
{
    const struct search_hooks *steps = search->use->steps;
    struct search_result *found = search->result;
    const struct candidate_file *chosen = search->chosen;
    found->undecided = search->failure.code != SL_OK || search_is_undecided(search);
    found->is_too_large = search->failure.code == SL_OK && search_is_too_large(search);
    if (search->failure.code != SL_OK) {
        found->code = search->failure.code;
        found->error = search->failure;
    } else if (!chosen || chosen->code != SL_OK) {
        use_nothing(search);
    } else {
        found->features = chosen->features;
        found->fixed_load = chosen->fixed_load;
        found->source = chosen->request.file->source->id;
        found->path = chosen->request.file->path;
        found->is_public = chosen->request.file->source->is_public;
        found->is_best = candidate_file_grade(chosen, search->purpose) == GRADE_BEST;
        if (steps && steps->ask)
            steps->ask(search);
        else
            search_lookup(search, &chosen->key, &chosen->request);
    }
}

/* In a fiber: finds a file that is not an object, such as a mapping. It has no features to compare, so the first one that is available
 * counts. */
static void find_first(struct search *search)
{
    const struct search_target *use = search->use;
    struct search_result *found = search->result;
    struct object_request *request;
    struct auxiliary_search first = {search->sources, search->source_count, search->scope, search->id, search->arena};
    found->code = auxiliary_find(&first, search->id, use->type, use->kind, &request, &found->item);
    if (found->code == SL_OK)
        found->error.code = SL_OK;
    else
        sl_fail(&found->error, found->code, "%s", sl_code_name(found->code));
}

/* First and only step of a search for a file that is not an object (PURPOSE_ANY_FILE). */
static void begin_first(struct search *search)
{
    search_run_in_fiber(search, find_first);
}

/* ---- many modules ---- */

/* Answers from the cache of finished searches; false if it has no valid answer. */
static bool answer_from_cache(const struct search_scope *where, const struct search_query *question)
{
    struct search_result *found = question->found;
    struct candidate_use report; /* not used: the cached candidates have it already */
    struct cache_item *item = NULL;
    const struct search_cache_value *outcome = search_cache_get(where, question->use, question->id, &item);
    if (!outcome)
        return false;
    found->code = outcome->code;
    found->item = item;
    found->symcache = NULL;
    found->ppdb = NULL;
    found->features = outcome->features;
    found->fixed_load = outcome->fixed_load;
    found->arch = SL_ARCH_UNKNOWN;
    found->candidates = outcome->candidates;
    found->source = outcome->source;
    found->path = outcome->path;
    found->is_public = outcome->is_public;
    found->is_best = outcome->is_best;
    found->undecided =
        false; /* only users of the file targets ask for it, and undecided results of these are not cached */
    if (outcome->error)
        found->error = *outcome->error;
    else
        found->error.code = SL_OK;
    if (item && question->use->steps && question->use->steps->had)
        question->use->steps->had(found,
                                  &report); /* the target's hook: sets symcache or ppdb, and arch, from the item */
    return true;
}

/* Targets for the original bytes of debug and code files. */
const struct search_target search_debug_file_target = {.purpose = PURPOSE_DEBUG_FILE, .kind = &kind_objects};
const struct search_target search_code_file_target = {.purpose = PURPOSE_CODE_FILE, .kind = &kind_objects};
const struct search_target search_narrow_debug_file_target = {
    .purpose = PURPOSE_DEBUG_FILE, .kind = &kind_objects, .is_narrow = true};
const struct search_target search_narrow_code_file_target = {
    .purpose = PURPOSE_CODE_FILE, .kind = &kind_objects, .is_narrow = true};

/* True for the targets for original files, which are served as they are. */
static bool is_file_target(const struct search_target *use)
{
    return use->purpose == PURPOSE_DEBUG_FILE || use->purpose == PURPOSE_CODE_FILE;
}

/* Puts a result in the cache of finished searches. Not an undecided one for a file to be served: the caller repeats that search, and must
 * not get the same result from the cache. */
static void store_result(const struct search *search)
{
    const struct search_result *found = search->result;
    const struct search_cache_value outcome = {.code = found->code,
                                               .error = found->code == SL_OK ? NULL : &found->error,
                                               .features = found->features,
                                               .fixed_load = found->fixed_load,
                                               .candidates = found->candidates,
                                               .source = found->source,
                                               .path = found->path,
                                               .is_public = found->is_public,
                                               .is_best = found->is_best};
    if (!is_file_target(search->use) || !found->undecided)
        search_cache_put(search, search->use, &outcome);
}

/* Prepares the search for a question. Its result is SL_NOT_FOUND until a step changes that. `next` NULL: the search begins with listing the
 * sources' files. */
static struct search search_for(const struct search_scope *where, const struct search_query *question)
{
    struct search search = search_make(where, question->id, question->use->purpose);
    *question->found = (struct search_result){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
    search.use = question->use;
    search.then = use_chosen;
    search.result = question->found;
    search.next = search.purpose == PURPOSE_ANY_FILE ? begin_first : NULL;
    return search;
}

/* True for a question that has not been answered yet: it has the code SL_BUSY. SL_BUSY with `undecided` is an answer: memory was short when
 * the request's own file was converted. */
static bool is_unanswered(const struct search_query *question)
{
    return question->found->code == SL_BUSY && !question->found->undecided;
}

/* Runs the searches for the `rest` questions that are unanswered; these have the code SL_BUSY. When out of memory it returns true and they
 * keep that code. False when cancelled. */
static bool search_unanswered(const struct search_scope *where, const struct search_query *questions, size_t count,
                              size_t rest)
{
    struct search *searches = SL_ARENA_ARRAY(where->arena, struct search, rest);
    if (!searches)
        return true;
    for (size_t i = 0, n = 0; i < count; i++)
        if (is_unanswered(&questions[i]))
            searches[n++] = search_for(where, &questions[i]);
    if (!search_run_all(searches, rest))
        return false;
    for (size_t i = 0; i < rest; i++)
        store_result(&searches[i]);
    return true;
}

/* Answers each question by the request's own files, else from the cache of finished searches. The other questions get the code SL_BUSY,
 * which stays if memory is short, and are searched. If cancelled, all questions without an item get SL_CANCELLED. */
bool search_find_all(const struct search_scope *where, const struct search_query *questions, size_t count)
{
    size_t rest = 0;
    for (size_t i = 0; i < count; i++)
        if (!supplied_objects_answer(where, &questions[i]) && !answer_from_cache(where, &questions[i])) {
            *questions[i].found = (struct search_result){.code = SL_BUSY, .error = {SL_BUSY, 0, "out of memory"}};
            rest++;
        }
    if (!rest || search_unanswered(where, questions, count, rest))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!questions[i].found->item)
            questions[i].found->code = sl_fail(&questions[i].found->error, SL_CANCELLED, "cancelled");
    return false;
}

bool search_peek(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found)
{
    const struct search_query question = {use, id, found};
    return answer_from_cache(where, &question);
}

void search_find(const struct search_scope *where, const struct search_target *use, const struct object_id *id,
                 struct search_result *found)
{
    struct search_query question = {use, id, found};
    search_find_all(where, &question, 1);
}

/* ---- the symcache of a module ---- */

/* Looks up the module's symcache, made from the chosen object, BCSymbolMap and il2cpp mapping. If the map or the mapping has another
 * scope than the object, the symcache is cached for the scope of the request: clients of the object's scope must not see names from a
 * private file. */
static void lookup_symcache(struct search *search)
{
    const struct object_request *map = search->map, *lines = search->lines;
    struct symcache_request request = {.object = search->chosen->request,
                                       .map = map,
                                       .lines = lines,
                                       .variables = search->use->variables,
                                       .columns = search->use->columns,
                                       .scope = search->chosen->request.scope};
    struct cache_key key;
    if ((map && !sl_str_equal(map->scope, request.scope)) || (lines && !sl_str_equal(lines->scope, request.scope)))
        request.scope = search->scope;
    if (symcache_request_key(&request, search->arena, &key))
        search_lookup(search, &key, &request);
    else
        search_lookup_failed(search, SL_BUSY);
}

/* ---- files that change names and lines: inputs of the symcache, so they are searched first ---- */

/* In a fiber: finds the module's BCSymbolMap and il2cpp mapping (search->map, ->lines). It is only called if one of them may exist, or if
 * listing them needs network requests. If there is none, or it is damaged, the symcache is made without it. */
static void find_name_files(struct search *search)
{
    struct auxiliary_search auxiliary = {search->sources, search->source_count, search->scope, search->id,
                                         search->arena};
    enum sl_code code = bcsymbolmap_find(&auxiliary, &search->map);
    if (code != SL_CANCELLED && code != SL_BUSY)
        code = il2cpp_find(&auxiliary, &search->lines);
    if (code == SL_CANCELLED || code == SL_BUSY)
        search_fail(search, code);
}

/* Step after the BCSymbolMap and il2cpp mapping were searched: looks up the symcache made from the object and those that were found. */
static void lookup_with_name_files(struct search *search)
{
    if (search->failure.code == SL_OK)
        lookup_symcache(search);
    else
        search_lookup_failed(search, search->failure.code);
}

/* Called when the look-up of one UUID map or il2cpp mapping has ended. Only whether the file exists matters here, so its entry is released.
 * An error is passed to cache_renew(), which looks an old miss up again, as the file may exist by now. */
static void auxiliary_answered(struct cache_lookup *look)
{
    struct candidate_file *other = (struct candidate_file *)((char *)look - offsetof(struct candidate_file, look));
    other->code = look->code;
    cache_release(look->item);
    look->item = NULL;
    if ((other->renewed = look->code != SL_OK))
        cache_renew(look->kind, look->key, look->context);
    search_lookup_done(other->search);
}

/* Step when the look-ups of all UUID maps and il2cpp mappings have ended. If no such file exists, the common case, the symcache is looked
 * up without starting a fiber. SL_BUSY counts as existing, as it says nothing about the file. */
static void take_auxiliaries(struct search *search)
{
    bool any = false;
    for (size_t i = 0; i < search->other_count; i++)
        any = any || search->others[i].code == SL_OK || search->others[i].code == SL_BUSY;
    if (!any) {
        lookup_symcache(search);
        return;
    }
    search->next = lookup_with_name_files;
    search_run_in_fiber(search, find_name_files);
}

/* Adds a listed UUID map or il2cpp mapping to search->others, prepared to be looked up. False when out of memory. */
static bool add_auxiliary(struct search *search, const struct remote_file *file, const struct cache_kind *kind,
                          const struct object_id *id)
{
    struct candidate_file *other = &search->others[search->other_count];
    other->request = (struct object_request){file, id, origin_scope(file, search->scope)};
    other->search = search;
    if (!object_request_key(&other->request, search->arena, &other->key))
        return false;
    other->look =
        (struct cache_lookup){.kind = kind, .key = &other->key, .context = &other->request, .done = auxiliary_answered};
    search->other_count++;
    return true;
}

/* Lists the files that may change the module's names and lines, of every source, in search->others: UUID maps by the debug id alone, il2cpp
 * mappings by all ids. False when out of memory or cancelled. */
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
    search->others = count ? SL_ARENA_ARRAY(search->arena, struct candidate_file, count) : NULL;
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

/* The symcache targets' hook `ask`: looks for UUID maps and il2cpp mappings first, as the symcache is made from them too. Sources have them
 * under the debug id, so there are none for a module without one. */
static void use_object(struct search *search)
{
    if (!search->id->has_debug_id) {
        lookup_symcache(search);
        return;
    }
    if (!list_needs_no_io(search->sources, search->source_count)) {
        search->next = lookup_with_name_files;
        search_run_in_fiber(search, find_name_files);
        return;
    }
    if (!list_auxiliaries(search)) {
        search->other_count = 0; /* no look-up of those listed so far has begun */
        search_lookup_failed(search, SL_BUSY);
        return;
    }
    search->next = take_auxiliaries;
    search->waiting++; /* else an answer in the loop below could let the next step run before all look-ups have begun */
    for (size_t i = 0; i < search->other_count; i++) {
        search->waiting++;
        if (cache_lookup_async(&search->others[i].look))
            auxiliary_answered(&search->others[i].look);
    }
    search->waiting--;
}

/* ---- Portable PDBs inside of PE files ---- */
static const struct wanted_types pe_types = {(const enum file_type[]){FILE_PE}, 1};

/* On return `search` is valid in any case, also if the function returns NULL without searching; its `failure` tells whether the search
 * failed. */
struct candidate_file *search_embedded_ppdb(const struct search *first, struct search *search)
{
    struct search_scope where = {first->sources, first->source_count, first->scope, first->arena};
    *search = search_make(&where, first->id, first->purpose);
    search->wanted = &pe_types;
    if (!current_config()->dotnet_ask_pe || first->id->type != OBJECT_PE_DOTNET || first->failure.code != SL_OK)
        return NULL;
    struct candidate_file *found = search_choose(search);
    return found && candidate_file_grade(found, search->purpose) == GRADE_BEST ? found : NULL;
}

/* In a fiber: looks for a PE file with a Portable PDB inside and gets the entry made from that. This is a second search: the candidates of
 * the first one go to the result here, and those of the second one are left to find_use_finish(), which runs next. */
static void look_inside(struct search *search)
{
    struct search_result *found = search->result;
    struct search inside;
    struct candidate_file *embedded = search_embedded_ppdb(search, &inside);
    if (inside.failure.code != SL_OK) {
        found->code = inside.failure.code;
        found->error = inside.failure;
        return;
    }
    if (embedded) {
        found->features = embedded->features;
        found->fixed_load = embedded->fixed_load;
        found->code = cache_get(search->use->kind, &embedded->key, &embedded->request, &found->item, &found->error);
        found->error.code = found->code;
        search_report(&inside, embedded->candidate, found, search->use);
    }
    candidates_merge(search->arena, &found->candidates, &search->candidates);
    search->candidates = inside.candidates;
}

/* The Portable PDB target's hook `otherwise`, if no such file was found: looks inside PE files, if the configuration wants that. */
static void lookup_inside(struct search *search)
{
    if (current_config()->dotnet_ask_pe)
        search_run_in_fiber(search, look_inside);
}

/* ---- uses ---- */

/* The symcache targets' hook `had`: sets found->symcache, and in the report what is missing in the symcache. */
static void had_symcache(struct search_result *found, struct candidate_use *report)
{
    found->symcache = found->item->loaded;
    found->arch = found->symcache->arch;
    if (sl_symcache_is_partial(found->symcache))
        report->details = SL_STR("Some of the debug information could not be read");
    else if (sl_symcache_lacks_units(found->symcache))
        report->details = SL_STR("Inlined calls are missing: the file's split debug information (.dwo files, or a .dwp "
                                 "package beside it) was not found");
}

/* The Portable PDB target's hook `had`: sets found->ppdb. */
static void had_ppdb(struct search_result *found, struct candidate_use *report)
{
    (void)report;
    found->ppdb = found->item->loaded;
}

static const struct search_hooks symcache_steps = {.ask = use_object, .had = had_symcache};
static const struct search_hooks ppdb_steps = {.otherwise = lookup_inside, .had = had_ppdb};

const struct search_target *search_symbols_target(const struct object_id *id, bool variables)
{
    static const struct search_target symcache[] = {
        {.purpose = PURPOSE_DEBUG,
         .kind = &kind_symcaches,
         .report = offsetof(struct candidate, debug),
         .steps = &symcache_steps},
        {.purpose = PURPOSE_DEBUG,
         .kind = &kind_symcaches,
         .variables = true,
         .report = offsetof(struct candidate, debug),
         .steps = &symcache_steps},
    };
    static const struct search_target ppdb = {.purpose = PURPOSE_DEBUG,
                                              .kind = &kind_ppdb_caches,
                                              .report = offsetof(struct candidate, debug),
                                              .steps = &ppdb_steps};
    return id->type == OBJECT_PE_DOTNET ? &ppdb : &symcache[variables];
}

const struct search_target *search_columns_target(const struct object_id *id)
{
    static const struct search_target symcache = {.purpose = PURPOSE_DEBUG,
                                                  .kind = &kind_symcaches,
                                                  .columns = true,
                                                  .report = offsetof(struct candidate, debug),
                                                  .steps = &symcache_steps};
    return id->type == OBJECT_PE_DOTNET ? search_symbols_target(id, false) : &symcache;
}

const struct search_target search_unwind_target = {
    .purpose = PURPOSE_UNWIND, .kind = &kind_cficaches, .report = offsetof(struct candidate, unwind)};
