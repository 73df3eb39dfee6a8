/* Chooses the best file for a module among all that the sources list ("candidates"). A search is a chain of functions, its steps. */
#include "search/impl.h"

#include <stdlib.h>

#include "core/log.h"
#include "core/loop_slice.h"

/* ---- many searches in one fiber ---- */

struct search_batch { /* searches run by one fiber */
    struct fiber *fiber;
    struct fiber_group helpers;
    struct sl_list ready; /* searches that can continue */
    size_t unfinished;
};

/* Queues a search whose next step can run. */
static void make_ready(struct search *search)
{
    sl_list_append(&search->search_batch->ready, &search->ready);
}

/* Called when a look-up or helper fiber of the search has ended. The last one makes the search ready and wakes the fiber that runs it. */
void search_lookup_done(struct search *search)
{
    if (--search->waiting)
        return;
    make_ready(search);
    fiber_wake(search->search_batch->fiber);
}

/* A fiber that does the work given to search_run_in_fiber(). */
static void help(void *arg)
{
    struct search *search = arg;
    search->helper(search);
    search_lookup_done(search);
}

void search_run_in_fiber(struct search *search, void (*work)(struct search *search))
{
    search->helper = work;
    search->helped =
        true; /* its result is not cached: it is not known which cache entries the other fiber uses for it */
    search->waiting++;
    if (fiber_start(&search->search_batch->helpers, help, search))
        return;
    search->waiting--; /* no fiber is available: the work is done here, before the call returns */
    work(search);
}

/* Runs the search's steps until one has to wait or none is left. Each step sets `next`, which is NULL before; if a step leaves it NULL and
 * waits for nothing, the search has ended. */
static void run_steps(struct search *search)
{
    while (!search->waiting && search->next) {
        void (*step)(struct search * search) = search->next;
        search->next = NULL;
        step(search);
    }
    search->search_batch->unfinished -= !search->waiting; /* not waiting here: it has ended */
}

/* Cancels the look-ups of a search that was cancelled, so that they no longer call it back. */
static void withdraw(struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        cache_lookup_cancel(&search->files[i].look);
    for (size_t i = 0; i < search->other_count; i++)
        cache_lookup_cancel(&search->others[i].look);
    cache_lookup_cancel(&search->table);
    cache_release(search->table.item); /* of a look-up that was answered before its result was used */
}

/* Makes a search of the scope's sources that has not begun. */
struct search search_make(const struct search_scope *where, const struct object_id *id, enum purpose purpose)
{
    return (struct search){.sources = where->sources,
                           .source_count = where->source_count,
                           .list = where->list,
                           .id = id,
                           .scope = where->scope,
                           .purpose = purpose,
                           .forwarded_for = where->forwarded_for,
                           .via = where->via,
                           .skips_upstreams = where->skips_upstreams,
                           .max_size = where->max_size,
                           .arena = where->arena};
}

/* Runs each search until it has to wait, then the next one that need not wait; suspends if all wait, and yields to the loop when this
 * fiber's time slice is used up. Waits for the helper fibers before it returns, as they use the searches. */
bool search_run(struct search *searches, size_t count)
{
    struct search_batch search_batch = {.fiber = fiber_self(), .unfinished = count};
    bool going = !fiber_cancelled();
    fiber_group_init(&search_batch.helpers, fiber_group_current());
    for (size_t i = 0; i < count; i++) {
        searches[i].search_batch = &search_batch;
        make_ready(&searches[i]);
    }
    while (going && search_batch.unfinished) {
        struct search *search = SL_LIST_FIRST(&search_batch.ready, struct search, ready);
        if (!search) {
            fiber_set_wait_reason("cache entries");
            going = fiber_suspend();
            continue;
        }
        sl_list_remove(&search_batch.ready, &search->ready);
        run_steps(search);
        if (loop_slice_is_used_up())
            going = fiber_yield();
    }
    if (!going)
        fiber_group_cancel(&search_batch.helpers);
    fiber_group_wait(&search_batch.helpers);
    for (size_t i = 0; !going && i < count; i++)
        withdraw(&searches[i]);
    return going;
}

/* ---- types ---- */

/* Returns the file types to list. If the caller asked for certain types: these. For a file to be served: debug and code files or, with
 * `is_narrow`, only the type that the purpose names. For source texts: the types that can contain them. Otherwise: the types for the
 * module's object type. */
static struct wanted_types wanted_types(const struct search *search)
{
    static const enum file_type sources[] = {FILE_SOURCEBUNDLE, FILE_PORTABLEPDB, FILE_ELF_DEBUG, FILE_WASM_DEBUG};
    /* Three per format: the first two are the types for a debug file, the last two those for a code file; the usual type is the first of
     * the two, and the only one of a narrow search. */
    static const enum file_type served[] = {FILE_ELF_DEBUG,  FILE_ELF_CODE,  FILE_ELF_DEBUG,
                                            FILE_WASM_DEBUG, FILE_WASM_CODE, FILE_WASM_DEBUG};
    struct wanted_types wanted = {sources, sizeof sources / sizeof *sources};
    if (search->wanted)
        return *search->wanted;
    if (search->purpose == PURPOSE_DEBUG_FILE || search->purpose == PURPOSE_CODE_FILE)
        return (struct wanted_types){served + 3 * (search->id->type == OBJECT_WASM) +
                                         (search->purpose == PURPOSE_CODE_FILE),
                                     search->use->is_narrow ? 1 : 2};
    if (search->purpose != PURPOSE_SOURCE)
        wanted.types = object_type_files(search->id->type, &wanted.count);
    return wanted;
}

/* ---- listing ---- */

bool search_fail(struct search *search, enum sl_code code)
{
    sl_fail(&search->failure, code, "%s", code == SL_CANCELLED ? "cancelled" : "out of memory");
    return false;
}

/* Makes room for `more` candidates. May move search->files, so nothing may point to its items before all files are listed. */
static bool grow_candidates(struct search *search, size_t more)
{
    if (search->capacity - search->count >= more)
        return true;
    size_t capacity = search->capacity * 2 + more;
    struct candidate_file *files = SL_ARENA_ARRAY(search->arena, struct candidate_file, capacity);
    if (!files)
        return search_fail(search, SL_BUSY);
    if (search->count)
        memcpy(files, search->files, search->count * sizeof *files);
    search->files = files;
    search->capacity = capacity;
    return true;
}

/* Adds listed files as candidates, each with its cache key. The scope of its cache entry is "global" if its source is public, else that of
 * the search. False when out of memory. */
static bool add_files(struct search *search, struct remote_file *files, size_t count)
{
    if (!grow_candidates(search, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        files[i].forwarded_for = search->forwarded_for;
        files[i].via = search->via;
        struct candidate_file *file = &search->files[search->count++];
        file->request = (struct object_request){&files[i], search->id, origin_scope(&files[i], search->scope)};
        if (!object_request_key(&file->request, search->arena, &file->key))
            return search_fail(search, SL_BUSY);
    }
    return true;
}

/* Lists the files of all sources as candidates. False with search->failure. */
static bool list(struct search *search)
{
    const struct wanted_types wanted = wanted_types(search);
    search->listings = SL_ARENA_ARRAY(search->arena, struct listing, search->source_count ? search->source_count : 1);
    if (!search->listings)
        return search_fail(search, SL_BUSY);
    enum sl_code code = list_sources(search->sources, search->source_count, search->scope, search->id, wanted.types,
                                     wanted.count, search->arena, search->listings);
    if (code != SL_OK)
        return search_fail(search, code);
    for (size_t i = 0; i < search->source_count; i++) {
        struct listing *listing = &search->listings[i];
        if (search->skips_upstreams && origin_is_upstream(listing->source))
            listing->count = 0; /* as if the source had listed no file */
        if (!add_files(search, listing->files, listing->count))
            return false;
    }
    return true;
}

/* ---- features of the candidates ---- */

/* Stores the answer of a candidate's look-up: its error, or its features. For a PE file of a .NET module the features of the Portable PDB
 * inside are added. Releases `item`. */
static void take_features(struct candidate_file *file, enum sl_code code, struct cache_item *item)
{
    file->code = file->error.code = code;
    if (code != SL_OK) /* `item` is NULL then */
        return;
    const struct object_meta *meta = item->loaded;
    file->features = meta->features;
    file->fixed_load = meta->fixed_load;
    file->stored = meta->stored;
    file->has_stored = meta->has_stored;
    if (file->request.id->type == OBJECT_PE_DOTNET) {
        file->features.has_debug_info |= meta->embedded.has_debug_info;
        file->features.has_sources |= meta->embedded.has_sources;
    }
    cache_release(item);
}

/* Called when the look-up of a candidate's features ends. */
static void answered(struct cache_lookup *look)
{
    struct candidate_file *file = (struct candidate_file *)((char *)look - offsetof(struct candidate_file, look));
    take_features(file, look->code, look->item);
    search_lookup_done(file->search);
}

/* True if `b` is a file in the directory of the file `a`, not in one below it. */
static bool same_directory(struct sl_str a, struct sl_str b)
{
    const char *end = memrchr(a.data, '/', a.size);
    size_t size = end ? (size_t)(end - a.data) + 1 : 0;
    return b.size > size && memcmp(a.data, b.data, size) == 0 && !memchr(b.data + size, '/', b.size - size);
}

/* True if a pointer file of a symbol store (file.ptr, which contains the path of the symbol file) is to be followed: if all other files
 * that the same source listed in its directory were not found. A store has either the file itself or a pointer to it. */
static bool should_follow(const struct search *search, const struct candidate_file *pointer)
{
    const struct remote_file *file = pointer->request.file;
    for (size_t i = 0; i < search->count; i++) {
        const struct remote_file *other = search->files[i].request.file;
        if (!other->pointer && other->source == file->source && same_directory(file->path, other->path) &&
            search->files[i].code != SL_NOT_FOUND)
            return false;
    }
    return true;
}

/* True if the file is known, before it is fetched, to be larger than search->max_size. Only for files of the type that the purpose names:
 * a code file in a search for a debug file, for example, may turn out to have no debug sections, and would not have been chosen. */
static bool is_larger_than_wanted(const struct search *search, const struct remote_file *file)
{
    bool is_of_purpose = (search->purpose == PURPOSE_DEBUG_FILE && file->type == FILE_ELF_DEBUG) ||
                         (search->purpose == PURPOSE_CODE_FILE && file->type == FILE_ELF_CODE);
    return is_of_purpose && search->max_size && file->known_size > search->max_size;
}

/* Sets is_too_large of all candidates; true if there is one that is too large. */
static bool mark_too_large(struct search *search)
{
    bool found = false;
    for (size_t i = 0; i < search->count; i++)
        found |= search->files[i].is_too_large = is_larger_than_wanted(search, search->files[i].request.file);
    return found;
}

/* Starts looking up the features of the candidates: with `pointers` of the pointer files (file.ptr) that are to be followed, else of all
 * other files. The search waits for the look-ups that are not answered at once. */
static void lookup_candidates(struct search *search, bool pointers)
{
    bool has_too_large = search->max_size && mark_too_large(search);
    for (size_t i = 0; i < search->count; i++) {
        struct candidate_file *file = &search->files[i];
        if (file->request.file->pointer != pointers || (file->skipped = pointers && !should_follow(search, file)))
            continue;
        /* A scan's index tells no size for a file that may lack what is wanted, such as debug sections. Such a file would be a worse choice
         * than the too large one, which the caller is told about: it is not fetched. */
        file->skipped = file->is_too_large ||
                        (has_too_large && file->request.file->source->index && !file->request.file->known_size);
        if (file->skipped)
            continue;
        file->search = search;
        file->look = (struct cache_lookup){.kind = &kind_object_meta,
                                           .key = &file->key,
                                           .context = &file->request,
                                           .error = &file->error,
                                           .done = answered};
        if (cache_lookup_async(&file->look))
            take_features(file, file->look.code, file->look.item);
        else
            search->waiting++;
    }
}

static bool has_pointers(const struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->files[i].request.file->pointer)
            return true;
    return false;
}

/* ---- choosing ---- */

/* True for errors of a source or of this process, not of the file: a later look-up may find the file. */
bool search_is_passing(enum sl_code code)
{
    return code == SL_TIMEOUT || code == SL_DOWNLOAD_ERROR || code == SL_BUSY || code == SL_INTERNAL ||
           code == SL_CANCELLED;
}

/* True if it is not known whether the candidate is what the search wants: fetching it failed for now or, for a file to be served, its
 * cached features were written by an older version of symloom, which did not store which parts the file has. */
static bool is_unknown(const struct candidate_file *file, enum purpose purpose)
{
    bool needs_parts = purpose == PURPOSE_DEBUG_FILE || purpose == PURPOSE_CODE_FILE;
    return !file->skipped &&
           (search_is_passing(file->code) || (needs_parts && file->code == SL_OK && !file->has_stored));
}

/* A file with an error has a better grade than a useless file, so that its error is reported if there is nothing better. PURPOSE_ANY_FILE
 * does not occur here: its files are not objects and have no features. */
unsigned candidate_file_grade(const struct candidate_file *file, enum purpose purpose)
{
    const struct sl_features *f = &file->features;
    const struct sl_stored_parts *stored = &file->stored;
    if (file->skipped)
        return GRADE_NONE;
    if (file->code != SL_OK)
        return GRADE_ERROR;
    switch (purpose) {
    case PURPOSE_UNWIND: return f->has_unwind_info ? GRADE_BEST : GRADE_NONE;
    case PURPOSE_SOURCE: return f->has_sources ? GRADE_BEST : GRADE_NONE;
    case PURPOSE_ANY_OBJECT: return GRADE_BEST;
    case PURPOSE_DEBUG_FILE:
        return stored->has_debug_sections ? GRADE_BEST : stored->has_symbol_table ? GRADE_SYMBOLS : GRADE_NONE;
    case PURPOSE_CODE_FILE: return stored->has_code ? GRADE_BEST : GRADE_NONE;
    case PURPOSE_ANY_FILE: return GRADE_NONE;
    case PURPOSE_DEBUG: break;
    }
    return f->has_debug_info ? GRADE_BEST : f->has_symbols ? GRADE_SYMBOLS : GRADE_NONE;
}

/* Returns the candidate with the best (lowest) grade; of equal ones the first in the order of the sources. NULL if all have GRADE_NONE. */
static struct candidate_file *choose(const struct search *search)
{
    struct candidate_file *best = NULL;
    unsigned best_grade = GRADE_NONE;
    for (size_t i = 0; i < search->count; i++) {
        unsigned g = candidate_file_grade(&search->files[i], search->purpose);
        if (g < best_grade) {
            best = &search->files[i];
            best_grade = g;
        }
    }
    return best;
}

/* Moves a text into the arena; empty when out of memory. */
static struct sl_str in_arena(struct sl_arena *arena, struct sl_buf *text)
{
    struct sl_str kept = sl_buf_move_to_arena(text, arena);
    return kept.data ? kept : SL_STR("");
}

struct sl_str search_error_text(struct sl_arena *arena, const struct sl_error *error)
{
    struct sl_buf text = {0};
    cache_error_text(error, &text);
    return in_arena(arena, &text);
}

/* Describes a candidate for the response, with details if its download failed. */
static void report_download(struct sl_arena *arena, const struct candidate_file *file, struct candidate *candidate)
{
    *candidate = (struct candidate){.source = file->request.file->source->id,
                                    .location = file->request.file->uri,
                                    .download = file->code,
                                    .features = file->features};
    if (file->code == SL_PERMISSION_DENIED) { /* only the reason: search_error_text() would add "permission denied: " */
        char *reason = sl_arena_strndup(arena, file->error.message, strlen(file->error.message));
        candidate->download_details = sl_str(reason ? reason : "");
    } else if (file->code != SL_OK && file->code != SL_NOT_FOUND && file->code != SL_MALFORMED) {
        candidate->download_details = search_error_text(arena, &file->error);
    }
}

/* Makes search->candidates, the report for the response: first an item for each source without files, then the candidates. Left out are
 * candidates that were skipped, could not be looked up for lack of memory, or were not found on a source that hides misses. False when out
 * of memory (search->failure). */
static bool report_downloads(struct search *search)
{
    size_t most = search->source_count + search->count, count = 0;
    struct candidate *items = SL_ARENA_ARRAY(search->arena, struct candidate, most ? most : 1);
    if (!items)
        return search_fail(search, SL_BUSY);
    for (size_t i = 0; i < search->source_count; i++)
        if (search->listings[i].count == 0 && !search->listings[i].source->hides_misses)
            /* the location is the text that Symbolicator's responses have */
            items[count++] = (struct candidate){.source = search->listings[i].source->id,
                                                .location = SL_STR("No object files listed on this source"),
                                                .download = SL_NOT_FOUND};
    for (size_t i = 0; i < search->count; i++) {
        struct candidate_file *file = &search->files[i];
        if (file->skipped || file->code == SL_BUSY ||
            (file->code == SL_NOT_FOUND && file->request.file->source->hides_misses))
            continue;
        file->candidate = &items[count++];
        report_download(search->arena, file, file->candidate);
    }
    search->candidates = (struct candidate_list){.items = items, .count = count, .capacity = most};
    return true;
}

/* Logs one error of a search without a usable file: the first one with the code that comes first in `telling`, as that tells most about the
 * cause. The result of the search has the error of the first such file in the order of the sources instead. */
static void log_errors(const struct search *search)
{
    static const enum sl_code telling[] = {SL_MALFORMED, SL_PERMISSION_DENIED, SL_TIMEOUT, SL_DOWNLOAD_ERROR};
    if (!log_enabled(LOG_DEBUG, "find"))
        return;
    for (size_t t = 0; t < sizeof telling / sizeof *telling; t++)
        for (size_t i = 0; i < search->count; i++)
            if (search->files[i].code == telling[t]) {
                log_debug("find", "found no usable debug file at a location",
                          LOG_SLSTR("location", search->files[i].request.file->location),
                          LOG_STR("status", sl_code_name(telling[t])), LOG_ERR(&search->files[i].error));
                return;
            }
}

/* Passes the files that were not found, and would have been preferred to the chosen one, to cache_renew(), which looks them up again if
 * that was long ago. Preferred are earlier files and, unless the chosen one has the best grade, all files. */
static void renew_better(const struct search *search, const struct candidate_file *chosen)
{
    bool best = candidate_file_grade(chosen, search->purpose) == GRADE_BEST;
    for (struct candidate_file *file = search->files; file < search->files + search->count; file++)
        if ((file->renewed = file->code == SL_NOT_FOUND && (!best || file < chosen)))
            cache_renew(&kind_object_meta, &file->key, &file->request);
}

/* True if a candidate that could not be looked up for lack of memory might have been preferred: it is earlier than `chosen`, or `chosen` is
 * NULL or not of the best grade. */
static bool may_be_better(const struct search *search, const struct candidate_file *chosen)
{
    bool best = chosen && candidate_file_grade(chosen, search->purpose) == GRADE_BEST;
    for (const struct candidate_file *file = search->files; file < search->files + search->count; file++)
        if (file->code == SL_BUSY && !file->skipped && (!best || file < chosen))
            return true;
    return false;
}

bool search_is_undecided(const struct search *search)
{
    if (search->chosen && candidate_file_grade(search->chosen, search->purpose) == GRADE_BEST)
        return false;
    for (size_t i = 0; i < search->source_count; i++)
        if (search->listings[i].failed)
            return true;
    for (size_t i = 0; i < search->count; i++)
        if (is_unknown(&search->files[i], search->purpose))
            return true;
    return false;
}

bool search_is_too_large(const struct search *search)
{
    if (search->chosen && candidate_file_grade(search->chosen, search->purpose) == GRADE_BEST)
        return false;
    for (size_t i = 0; i < search->count; i++)
        if (search->files[i].is_too_large)
            return true;
    return false;
}

/* ---- steps of a search ---- */

/* Step when the features of all candidates are known: makes the report and chooses the best candidate. If a candidate that might be better
 * could not be looked up for lack of memory, the search fails with SL_BUSY: a retry may give another result. Candidates that would have
 * been better but were not found are looked up again in the background if that was long ago (renew_better). */
static void choose_one(struct search *search)
{
    struct candidate_file *chosen = NULL;
    if (report_downloads(search))
        chosen = choose(search);
    if (may_be_better(search, chosen))
        search_fail(search, SL_BUSY);
    if (search->failure.code == SL_OK) {
        if (!chosen || chosen->code != SL_OK)
            log_errors(search);
        else
            renew_better(search, chosen);
        search->chosen = chosen;
    }
    search->next = search->then;
}

/* Step when the features of all files but the pointer files (file.ptr) are known: looks up the pointer files that are to be followed. */
static void lookup_pointers(struct search *search)
{
    search->next = choose_one;
    if (has_pointers(search))
        lookup_candidates(search, true);
}

/* Step after listing: looks up the features of all files but the pointer files (file.ptr). If listing failed, the search goes on with
 * search->then, which sets the result. */
static void lookup_files(struct search *search)
{
    search->next = search->failure.code == SL_OK ? lookup_pointers : search->then;
    if (search->failure.code == SL_OK)
        lookup_candidates(search, false);
}

static void list_in_fiber(struct search *search)
{
    list(search);
}

/* First step: lists the files of the sources, in a fiber if that needs requests. If that fails, lookup_files() sees search->failure. */
static void begin_search(struct search *search)
{
    search->next = lookup_files;
    if (list_needs_no_io(search->sources, search->source_count))
        list(search);
    else
        search_run_in_fiber(search, list_in_fiber);
}

bool search_run_all(struct search *searches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        searches[i].next = searches[i].next ? searches[i].next : begin_search;
    return search_run(searches, count);
}

struct candidate_file *search_choose(struct search *search)
{
    if (!search_run_all(search, 1))
        search_fail(search, SL_CANCELLED);
    return search->failure.code == SL_OK ? search->chosen : NULL;
}

/* ---- reports ---- */

struct candidate_position { /* a candidate and its index in both lists together, for a stable sort */
    const struct candidate *candidate;
    size_t order;
};

/* Compares by source, then by location: candidates with both equal are the same file. */
static int compare_key(const struct candidate *a, const struct candidate *b)
{
    int order = sl_str_compare(a->source, b->source);
    return order ? order : sl_str_compare(a->location, b->location);
}

/* For qsort: by source and location; the older of two reports on the same file comes first. */
static int compare_positions(const void *left, const void *right)
{
    const struct candidate_position *a = left, *b = right;
    int order = compare_key(a->candidate, b->candidate);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Puts the newer report on a candidate into the older one. The older results for debugging and unwinding stay if the newer report has
 * none. */
static void overwrite(struct candidate *into, const struct candidate *newer)
{
    into->download = newer->download;
    into->download_details = newer->download_details;
    into->features = newer->features;
    if (newer->debug.set) {
        into->debug.set = true;
        into->debug.code = newer->debug.code;
        into->debug.details = newer->debug.details;
    }
    if (newer->unwind.set) {
        into->unwind.set = true;
        into->unwind.code = newer->unwind.code;
        into->unwind.details = newer->unwind.details;
    }
}

void candidates_merge(struct sl_arena *arena, struct candidate_list *into, const struct candidate_list *from)
{
    size_t count = into->count + from->count, kept = 0;
    if (from->count == 0)
        return;
    struct candidate *items = SL_ARENA_ARRAY(arena, struct candidate, count);
    struct candidate_position *positions = SL_ARENA_ARRAY(arena, struct candidate_position, count);
    if (!items || !positions)
        return;
    for (size_t i = 0; i < count; i++)
        positions[i] =
            (struct candidate_position){i < into->count ? &into->items[i] : &from->items[i - into->count], i};
    qsort(positions, count, sizeof *positions, compare_positions);
    for (size_t i = 0; i < count; i++)
        if (kept && compare_key(&items[kept - 1], positions[i].candidate) == 0)
            overwrite(&items[kept - 1], positions[i].candidate);
        else
            items[kept++] = *positions[i].candidate;
    *into = (struct candidate_list){.items = items, .count = kept, .capacity = count};
}
