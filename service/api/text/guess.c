/* Finds ids for modules of which the text has only the path or name: those of a file with the same name. Of several files it takes the one
 * whose path has the most last directories in common with the path in the text. If several have equally many but different ids, the module
 * is not looked up, as a wrong id leads to wrong names of functions, unless the request asks for the newest file. */
#include "api/text/work.h"

#include "core/loop.h"
#include "debug_file_store/names.h"
#include "scan/scan.h"

bool text_find_id(const struct text_work *work, struct sl_str name, struct object_id *id)
{
    const struct local_text *local = work->local;
    if (work->guess == GUESS_NONE)
        return false;
    return local && local->find_id && local->find_id(local->find_id_arg, name, id);
}

/* A module of which the text has only the path or name, and files with that name. */
struct text_guessed {
    const struct text_unknown *unknown;
    struct object_id sent;   /* ids of the best file that came with the request; valid if `is_sent` */
    struct object_id stored; /* ids of the best scanned or uploaded file */
    bool is_sent;            /* `sent` is set: one id matches best, or the newest is wanted */
    size_t sent_parts;       /* how many last components of its path are those of the path in the text */
};

/* Looks for the module among the files that came with the request: sets `is_sent`, `sent` and `sent_parts`. `stored`, which the search in
 * scanned and uploaded files will fill in, is only initialised. */
static void find_sent(const struct text_work *work, struct text_guessed *guessed)
{
    const struct supplied_objects *files = work->native.own;
    guessed->sent = guessed->stored = *guessed->unknown->id;
    guessed->is_sent =
        files && supplied_objects_find_named(files, guessed->unknown->id->code_file, work->guess == GUESS_NEWEST,
                                             &guessed->sent, &guessed->sent_parts);
}

/* True if both have the same code id or, if one has none, the same debug id. */
static bool have_same_ids(const struct object_id *a, const struct object_id *b)
{
    if (a->code_id.size && b->code_id.size)
        return sl_str_equal(a->code_id, b->code_id);
    return a->has_debug_id && b->has_debug_id && sl_debug_id_equal(&a->debug_id, &b->debug_id);
}

/* Chooses between the best file of the request and the best scanned or uploaded file (`stored`): the one whose path has more components
 * (`parts`) in common with the path in the text. If both have equally many and the request wants the newest, it is the request's file;
 * otherwise both must have the same ids. Sets `id` to the ids of the chosen file; false if none is chosen. */
static bool choose_id(const struct text_work *work, const struct text_guessed *guessed,
                      const struct scan_module_query *stored, struct object_id *id)
{
    bool is_tie = guessed->sent_parts == stored->parts;
    bool takes_sent = guessed->sent_parts > stored->parts || (is_tie && work->guess == GUESS_NEWEST);
    bool agree = !is_tie || (guessed->is_sent && have_same_ids(&guessed->sent, &guessed->stored));
    /* `is_known`: all stored files were compared in time; without that a better one may exist */
    if (!stored->is_known || !(takes_sent ? guessed->is_sent : stored->found && agree))
        return false;
    *id = takes_sent ? guessed->sent : guessed->stored;
    return true;
}

struct upload_search {
    struct scan_module_query *queries;
    size_t count, next; /* `next`: index of the first query that no fiber has taken */
    bool newest;
    uint64_t end_ns; /* by clock_mono_ns */
    struct sl_arena *arena;
};

/* A worker fiber, one of several: takes queries one by one, and adds to each the uploaded files with the module's name. The uploads' paths
 * are not known, only their base names. */
static void find_uploads(void *arg)
{
    struct upload_search *s = arg;
    while (s->next < s->count && !fiber_cancelled()) {
        struct scan_module_query *query = &s->queries[s->next++];
        struct uploaded_files found;
        uploaded_files_of_module(query->path, s->newest, s->end_ns, s->arena, &found);
        struct scan_other_file *others = SL_ARENA_ARRAY(s->arena, struct scan_other_file, found.count);
        /* With `newest` only one file is found, but a fat one counts once for each of its ids, and it is unknown which is meant. */
        query->is_undecided = !found.complete || (found.count && !others) || (s->newest && found.count > 1);
        query->others = others;
        query->other_count = others ? found.count : 0;
        for (size_t i = 0; i < query->other_count; i++)
            others[i] = (struct scan_other_file){.path = found.items[i].name,
                                                 .id = found.items[i].id,
                                                 .format = found.items[i].format,
                                                 .mtime_ns = (int64_t)found.items[i].created_s * 1000000000};
    }
}

/* Finds the ids of the queries' modules among uploads and scanned files together. It has as much time as a search of GET /metadata
 * (scan.metadata_time_ns): the scan gets what the search of uploads leaves. */
static enum sl_code find_modules(const struct job *job, const struct text_work *work, struct scan_module_query *queries,
                                 size_t count, struct sl_error *error)
{
    enum { HELPERS = 7 }; /* fibers that search besides this one */
    uint64_t max_ns = job->config->scan.metadata_time_ns;
    struct upload_search uploads = {.queries = queries,
                                    .count = count,
                                    .newest = work->guess == GUESS_NEWEST,
                                    .end_ns = clock_mono_ns() + max_ns,
                                    .arena = work->native.arena};
    if (debug_files_are_open() && !fiber_run_workers(find_uploads, &uploads, count < HELPERS ? count : HELPERS))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    uint64_t now_ns = clock_mono_ns();
    return scan_find_modules(queries, count, uploads.newest, uploads.end_ns > now_ns ? uploads.end_ns - now_ns : 0,
                             work->native.arena, error);
}

enum sl_code text_guess_ids(const struct job *job, struct text_work *work, struct sl_error *error)
{
    size_t count = 0;
    if (work->guess == GUESS_NONE || !work->unknown_count)
        return SL_OK;
    struct scan_module_query *queries =
        SL_ARENA_ARRAY(work->native.arena, struct scan_module_query, work->unknown_count);
    struct text_guessed *guessed = SL_ARENA_ARRAY(work->native.arena, struct text_guessed, work->unknown_count);
    if (!queries || !guessed)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = native_read_files(&work->native, error); /* the files of the request, for find_sent */
    if (code != SL_OK)
        return code;
    /* only modules with frames are looked up: the others need no id */
    for (size_t i = 0; i < work->unknown_count; i++) {
        if (!work->native.modules[work->unknown[i].module].referenced)
            continue;
        guessed[count] = (struct text_guessed){.unknown = &work->unknown[i]};
        find_sent(work, &guessed[count]);
        queries[count] =
            (struct scan_module_query){.path = work->unknown[i].id->code_file, .id = &guessed[count].stored};
        count++;
    }
    code = find_modules(job, work, queries, count, error);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        work->native.modules[guessed[i].unknown->module].guessed =
            choose_id(work, &guessed[i], &queries[i], guessed[i].unknown->id);
    return code;
}
