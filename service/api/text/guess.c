/* Ids of modules of which the text has only the path or name. A wrong id would lead to wrong names: so of several modules
 * with the same name the one is chosen whose path has the most directories in common with that in the text. If several
 * have equally many, the module is not looked up, unless the request asks for the newest. */
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

/* Looks for the id among the files that came with the request. */
static bool find_supplied_id(const struct text_work *work, struct object_id *id)
{
    const struct supplied_objects *files = work->native.own;
    return files && supplied_objects_find_named(files, id->code_file, work->guess == GUESS_NEWEST, id);
}

struct upload_search {
    struct scan_module_query *queries;
    size_t count, next;
    bool newest;
    uint64_t end_ns;
    struct sl_arena *arena;
};

/* Finds the uploaded files of the next queries; several fibers do. Of uploads only the base name is known. */
static void find_uploads(void *arg)
{
    struct upload_search *s = arg;
    while (s->next < s->count && !fiber_cancelled()) {
        struct scan_module_query *query = &s->queries[s->next++];
        struct uploaded_files found;
        uploaded_files_of_module(query->path, s->newest, s->end_ns, s->arena, &found);
        struct scan_other_file *others = SL_ARENA_ARRAY(s->arena, struct scan_other_file, found.count);
        /* The newest file may be a fat one, whose name does not tell which of its ids is meant. */
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

/* Finds ids among uploads and scanned files together, in the time that /metadata may take. */
static enum sl_code find_modules(const struct job *job, const struct text_work *work, struct scan_module_query *queries,
                                 size_t count, struct sl_error *error)
{
    enum { HELPERS = 7 };
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
    const struct text_unknown **asked =
        SL_ARENA_ARRAY(work->native.arena, const struct text_unknown *, work->unknown_count);
    if (!queries || !asked)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = native_read_files(&work->native, error);
    if (code != SL_OK)
        return code;
    /* files of the request win over scanned directories; modules without frames are not looked up */
    for (size_t i = 0; i < work->unknown_count; i++) {
        const struct text_unknown *unknown = &work->unknown[i];
        struct native_module *module = &work->native.modules[unknown->module];
        if (!module->referenced || (module->guessed = find_supplied_id(work, unknown->id)))
            continue;
        asked[count] = unknown;
        queries[count++] = (struct scan_module_query){.path = unknown->id->code_file, .id = unknown->id};
    }
    code = find_modules(job, work, queries, count, error);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        work->native.modules[asked[i]->module].guessed = queries[i].found;
    return code;
}
