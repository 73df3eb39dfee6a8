/* What the chosen file of a module is used for: what a kind makes of it. */
#include "kinds/search.h"

uint64_t kinds_table_base(const struct fixed_place *place, uint64_t image_address)
{
    enum { MOST = 1 << 20 }; /* what is put in front is small; whatever else is told is another address */
    uint64_t above = place->address - image_address, below = image_address - place->address;
    bool near = above <= MOST || below <= MOST;
    return place->is_fixed && image_address && near ? place->address : image_address;
}

/* ---- what is told of it ---- */
static struct candidate_use *field_of(const struct kinds_use *use, struct candidate *candidate)
{
    return (struct candidate_use *)((char *)candidate + use->report);
}

/* A file that could not even be fetched says nothing of its use. */
static void report_unusable(struct search *search)
{
    enum sl_code code = search->chosen->code;
    if (!search->use->report || code == SL_NOT_FOUND || code == SL_PERMISSION_DENIED || code == SL_TIMEOUT ||
        code == SL_DOWNLOAD_ERROR)
        return;
    struct candidate_use *report = field_of(search->use, search->chosen->candidate);
    report->set = true;
    report->code = SL_MALFORMED;
}

void search_report(struct search *search, struct candidate *candidate, struct kinds_found *found,
                   const struct kinds_use *use)
{
    struct candidate_use report = {.set = true, .code = found->code};
    if (found->code == SL_OK && use->steps && use->steps->had)
        use->steps->had(found, &report);
    else if (found->code == SL_NOT_FOUND)
        report.details = SL_STR("Object file no longer available");
    else if (found->code != SL_OK && found->code != SL_MALFORMED)
        report.details = search_error_text(search->arena, &found->error);
    if (use->report && found->code != SL_CANCELLED && found->code != SL_BUSY)
        *field_of(use, candidate) = report;
}

static void find_use_finish(struct search *search)
{
    struct kinds_found *found = search->result;
    candidates_merge(search->arena, &found->candidates, &search->candidates);
}

/* ---- the kind ---- */
static void take_table(struct search *search)
{
    struct kinds_found *found = search->result;
    found->code = found->error.code = search->table.code;
    found->item = search->table.item;
    search->table.item = NULL;
    search_report(search, search->chosen->candidate, found, search->use);
    search->next = find_use_finish;
}

static void table_answered(struct cache_look *look)
{
    search_answered((struct search *)((char *)look - offsetof(struct search, table)));
}

void search_ask(struct search *search, const struct cache_key *key, const void *context)
{
    struct kinds_found *found = search->result;
    search->table = (struct cache_look){
        .kind = search->use->kind, .key = key, .context = context, .error = &found->error, .done = table_answered};
    search->next = take_table;
    search->waiting += !cache_ask(&search->table);
}

void search_ask_failed(struct search *search, enum sl_code code)
{
    struct kinds_found *found = search->result;
    search->table.code = sl_fail(&found->error, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    search->next = take_table;
}

/* ---- a module ---- */
static void use_nothing(struct search *search)
{
    const struct kinds_steps *steps = search->use->steps;
    struct kinds_found *found = search->result;
    if (search->chosen) {
        found->code = search->chosen->code;
        found->error = search->chosen->error;
        report_unusable(search);
    }
    search->next = find_use_finish;
    if (steps && steps->otherwise)
        steps->otherwise(search);
}

static void use_chosen(struct search *search)
{
    const struct kinds_steps *steps = search->use->steps;
    struct kinds_found *found = search->result;
    if (search->failure.code != SL_OK) {
        found->code = search->failure.code;
        found->error = search->failure;
    } else if (!search->chosen || search->chosen->code != SL_OK) {
        use_nothing(search);
    } else {
        found->features = search->chosen->features;
        found->place = search->chosen->place;
        if (steps && steps->ask)
            steps->ask(search);
        else
            search_ask(search, &search->chosen->key, &search->chosen->request);
    }
}

/* In a fiber: files that are no objects, one after the other. */
static void find_first(struct search *search)
{
    const struct kinds_use *use = search->use;
    struct kinds_found *found = search->result;
    struct object_request *request;
    struct auxiliary_search first = {search->sources, search->source_count, search->scope, search->id, search->arena};
    found->code = auxiliary_find(&first, search->id, use->type, use->kind, &request, &found->item);
    if (found->code == SL_OK)
        found->error.code = SL_OK;
    else
        sl_fail(&found->error, found->code, "%s", sl_code_name(found->code));
}

static void begin_first(struct search *search)
{
    search_in_fiber(search, find_first);
}

/* ---- many ---- */
static bool recalled(const struct kinds_search *where, const struct kinds_question *question)
{
    struct kinds_found *found = question->found;
    struct candidate_use report;
    struct cache_item *item = NULL;
    const struct outcome *outcome = recall(where, question->use, question->id, &item);
    if (!outcome)
        return false;
    found->code = outcome->code;
    found->item = item;
    found->symcache = NULL;
    found->ppdb = NULL;
    found->features = outcome->features;
    found->place = outcome->place;
    found->arch = SL_ARCH_UNKNOWN;
    found->candidates = outcome->candidates;
    if (outcome->error)
        found->error = *outcome->error;
    else
        found->error.code = SL_OK;
    if (item && question->use->steps && question->use->steps->had)
        question->use->steps->had(found, &report);
    return true;
}

static void remember_found(const struct search *search)
{
    const struct kinds_found *found = search->result;
    const struct outcome outcome = {found->code, found->code == SL_OK ? NULL : &found->error, found->features,
                                    found->place, found->candidates};
    remember(search, search->use, &outcome);
}

static struct search search_for(const struct kinds_search *where, const struct kinds_question *question)
{
    struct search search = search_of(where, question->id, question->use->purpose);
    *question->found = (struct kinds_found){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
    search.use = question->use;
    search.then = use_chosen;
    search.result = question->found;
    search.next = search.purpose == PURPOSE_FIRST ? begin_first : NULL;
    return search;
}

/* Those that are SL_BUSY still. */
static bool search_rest(const struct kinds_search *where, const struct kinds_question *questions, size_t count,
                        size_t rest)
{
    struct search *searches = SL_ARENA_ARRAY(where->arena, struct search, rest);
    if (!searches)
        return true;
    for (size_t i = 0, n = 0; i < count; i++)
        if (questions[i].found->code == SL_BUSY)
            searches[n++] = search_for(where, &questions[i]);
    if (!search_all(searches, rest))
        return false;
    for (size_t i = 0; i < rest; i++)
        remember_found(&searches[i]);
    return true;
}

bool kinds_find_all(const struct kinds_search *where, const struct kinds_question *questions, size_t count)
{
    size_t rest = 0;
    for (size_t i = 0; i < count; i++)
        if (!own_objects_answer(where, &questions[i]) && !recalled(where, &questions[i])) {
            *questions[i].found = (struct kinds_found){.code = SL_BUSY, .error = {SL_BUSY, 0, "out of memory"}};
            rest++;
        }
    if (!rest || search_rest(where, questions, count, rest))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!questions[i].found->item)
            questions[i].found->code = sl_fail(&questions[i].found->error, SL_CANCELLED, "cancelled");
    return false;
}

void kinds_find(const struct kinds_search *where, const struct kinds_use *use, const struct object_id *id,
                struct kinds_found *found)
{
    struct kinds_question question = {use, id, found};
    kinds_find_all(where, &question, 1);
}
