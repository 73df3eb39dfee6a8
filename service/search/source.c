/* Finds the files that contain a module's source texts, or returns the original bytes of the module's best file. */
#include "search/impl.h"

#include <stdio.h>

static bool is_bundle(const struct candidate_file *file)
{
    return file->request.file->type == FILE_SOURCEBUNDLE;
}

/* Opens the candidates that contain source texts and adds them to the result: with `bundles` the source bundles, else the other files. As
 * long as none could be opened, result->code is the error of the last attempt. */
static void open_sources(struct search *search, bool bundles, struct source_lookup *result)
{
    for (size_t i = 0; i < search->count && result->code != SL_CANCELLED; i++) {
        struct candidate_file *file = &search->files[i];
        if (is_bundle(file) != bundles || candidate_file_grade(file, PURPOSE_SOURCE) != GRADE_BEST)
            continue;
        enum sl_code code = source_open(&file->key, &file->request, &result->objects[result->count]);
        result->count += code == SL_OK;
        if (code == SL_OK || code == SL_CANCELLED || !result->count)
            result->code = code;
    }
}

/* In a fiber: opens all files of the module that contain source texts: first source bundles, then the other ones, the order in which
 * callers look for a text. If there is none, looks for a PE file of a .NET module with a Portable PDB inside. */
static void open_all(void *arg)
{
    struct search *search = arg;
    struct source_lookup *result = search->result;
    result->code = search->chosen && search->chosen->code != SL_OK ? search->chosen->code : SL_NOT_FOUND;
    result->objects =
        SL_ARENA_ARRAY(search->arena, struct source_object, search->count + 1); /* + 1, as the number may be 0 */
    if (!result->objects) {
        result->code = SL_BUSY;
        return;
    }
    open_sources(search, true, result);
    open_sources(search, false, result);
    candidates_merge(search->arena, &result->candidates, &search->candidates);
    if (result->count || result->code == SL_CANCELLED)
        return;
    struct search inside;
    search_embedded_ppdb(search, &inside); /* also sets up `inside` if there is nothing to search for */
    if (inside.failure.code != SL_OK) {
        result->code = inside.failure.code;
        return;
    }
    result->objects =
        SL_ARENA_ARRAY(search->arena, struct source_object, inside.count + 1); /* + 1, as the number may be 0 */
    if (result->objects)
        open_sources(&inside, false, result);
    else
        result->code = SL_BUSY;
    candidates_merge(search->arena, &result->candidates, &inside.candidates);
}

/* True if there is no file to open, as for most modules: no candidate has source texts, and open_all() would not look inside PE files, as
 * the module is not a .NET module or the configuration does not want that (dotnet_ask_pe). Such a search needs no further fiber. */
static bool opens_nothing(const struct search *search)
{
    if (search->chosen && search->chosen->code == SL_OK)
        return false;
    return search->id->type != OBJECT_PE_DOTNET || !current_config()->dotnet_ask_pe;
}

/* Last step of a search for source texts: sets the result if there is nothing to open; else marks the search, and search_find_sources()
 * runs open_all() for it afterwards. */
static void find_source_finish(struct search *search)
{
    struct source_lookup *result = search->result;
    *result = (struct source_lookup){.code = search->failure.code};
    if (search->failure.code != SL_OK)
        return;
    result->undecided = search_is_undecided(search);
    if (!opens_nothing(search)) {
        search->opens = true;
        return;
    }
    result->code = search->chosen ? search->chosen->code : SL_NOT_FOUND;
    candidates_merge(search->arena, &result->candidates, &search->candidates);
}

/* Answers from the cache of finished searches; false if it has no valid answer. Only searches that found no source texts are cached, so the
 * answer has no objects. */
static bool answer_source_from_cache(const struct search_scope *where, const struct source_query *question)
{
    const struct search_cache_value *outcome = search_cache_get(where, NULL, question->id, NULL);
    if (outcome)
        *question->result = (struct source_lookup){.code = outcome->code, .candidates = outcome->candidates};
    return outcome;
}

/* Puts the result in the cache of finished searches if the search found no file to open. */
static void store_source(const struct search *search)
{
    const struct source_lookup *result = search->result;
    const struct search_cache_value outcome = {.code = result->code, .candidates = result->candidates};
    if (!search->opens)
        search_cache_put(search, NULL, &outcome);
}

/* Runs the searches for the `rest` questions that the cache did not answer; these have the code SL_BUSY. When out of memory it returns true
 * and they keep that code. False when cancelled. */
static bool search_unanswered_sources(const struct search_scope *where, const struct source_query *questions,
                                      size_t count, size_t rest)
{
    struct search *searches = SL_ARENA_ARRAY(where->arena, struct search, rest);
    void **opening = SL_ARENA_ARRAY(where->arena, void *, rest);
    size_t searching = 0, open_count = 0;
    if (!searches || !opening)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (questions[i].result->code != SL_BUSY)
            continue;
        struct search *search = &searches[searching++];
        *search = search_make(where, questions[i].id, PURPOSE_SOURCE);
        search->then = find_source_finish;
        search->result = questions[i].result;
    }
    if (!search_run_all(searches, rest))
        return false;
    for (size_t i = 0; i < rest; i++) {
        store_source(&searches[i]);
        if (searches[i].opens)
            opening[open_count++] = &searches[i];
    }
    return fiber_for_each(open_all, opening, open_count, open_count);
}

/* Answers as many questions as possible from the cache of finished searches. The others get the code SL_BUSY, which stays if memory is
 * short, and are searched. */
bool search_find_sources(const struct search_scope *where, const struct source_query *questions, size_t count)
{
    size_t rest = 0;
    for (size_t i = 0; i < count; i++)
        if (!answer_source_from_cache(where, &questions[i])) {
            *questions[i].result = (struct source_lookup){.code = SL_BUSY};
            rest++;
        }
    return !rest || search_unanswered_sources(where, questions, count, rest);
}

void search_find_source(const struct search_scope *where, const struct object_id *id, struct source_lookup *result)
{
    struct source_query question = {id, result};
    if (!search_find_sources(where, &question, 1) && !result->count) /* cancelled before a file was opened */
        result->code = SL_CANCELLED;
}

/* Makes a strong ETag from 16 hexadecimal digits of the entry's cache path (a hash of its key), its size, and the time when it was made, so
 * that a file that is fetched again gets another ETag. */
static void make_etag(const struct cache_key *key, const struct cache_item *item, char out[64])
{
    char path[128];
    size_t size = 0;
    cache_relative_path(key->text, kind_objects.version, false,
                        path); /* "v<version>/<hash in hexadecimal, with slashes>" */
    out[size++] = '"';
    for (const char *at = strchr(path, '/'); at && *at && size <= 16; at++) /* `size` counts the quote too */
        if (*at != '/')
            out[size++] = *at;
    snprintf(out + size, 64 - size, "-%zx-%llx\"", item->mapping.bytes.size, (unsigned long long)item->time_created);
}

/* Runs the search, gets the original bytes of the chosen file from the cache, and makes their ETag. If no file was chosen the result is
 * SL_NOT_FOUND. */
static void get_chosen(struct search *search, struct file_lookup *result)
{
    *result = (struct file_lookup){.code = SL_NOT_FOUND, .error = {.code = SL_NOT_FOUND}};
    struct candidate_file *chosen = search_choose(search);
    if (search->failure.code != SL_OK) {
        result->error = search->failure;
        result->code = search->failure.code;
        return;
    }
    if (!chosen)
        return;
    result->is_public = chosen->request.file->source->is_public;
    result->error = chosen->error;
    result->code = chosen->code;
    if (result->code == SL_OK)
        result->code = cache_get(&kind_objects, &chosen->key, &chosen->request, &result->item, &result->error);
    if (result->code == SL_OK)
        make_etag(&chosen->key, result->item, result->etag);
}

/* PURPOSE_ANY_OBJECT: the first file that can be parsed is chosen. */
void search_find_file(const struct search_scope *where, const struct object_id *id, const enum file_type *types,
                      size_t type_count, struct file_lookup *result)
{
    const struct wanted_types wanted = {types, type_count};
    struct search search = search_make(where, id, PURPOSE_ANY_OBJECT);
    search.wanted = &wanted;
    get_chosen(&search, result);
}

void search_find_object(const struct search_scope *where, const struct object_id *id, enum purpose purpose,
                        struct file_lookup *result)
{
    struct search search = search_make(where, id, purpose);
    get_chosen(&search, result);
}
