/* Ids of modules of which the text has only the path or name. A wrong id would lead to wrong names: so of several modules
 * with the same name the one is chosen whose path has the most directories in common with that in the text. If several
 * have equally many, the module is not looked up, unless the request asks for the newest. */
#include "api/text/work.h"

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
    code = scan_find_modules(queries, count, work->guess == GUESS_NEWEST, job->config->scan.metadata_time_ns,
                             work->native.arena, error);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        work->native.modules[asked[i]->module].guessed = queries[i].found;
    return code;
}
