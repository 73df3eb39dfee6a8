/* POST /minidump: starts a job that reads a minidump, walks its stacks and symbolicates it. */
#include "api/crash/dump.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "minidump/facts.h"
#include "minidump/microdump.h"

/* The work budget of the stack walks, in steps, is the dump's size in bytes plus this number. */
enum { BASE_STEPS = 1 << 20 };

/* ---- steps on the pool ---- */

/* Returns SL_OK if `good`; else the error for lack of memory, the only one that these pool steps can have. */
static enum sl_code dump_end(bool good, struct sl_error *error)
{
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

static bool same_debug_id(const struct object_id *a, const struct object_id *b)
{
    return a->has_debug_id == b->has_debug_id && (!a->has_debug_id || sl_debug_id_equal(&a->debug_id, &b->debug_id));
}

/* Applies the request's rules (rewrite_first_module) to the debug file name of the first module and of all modules with the same debug id.
 * The new names are used for searches only. False when out of memory. */
static bool rewrite_first(struct dump_work *work, struct object_id *ids, size_t count)
{
    const struct object_id first = count ? ids[0] : (struct object_id){.type = OBJECT_UNKNOWN};
    int64_t steps = REWRITE_STEPS;
    bool failed = false;
    for (size_t i = 0; i < count && work->crash.rules.count; i++)
        if (same_debug_id(&first, &ids[i]))
            ids[i].debug_file =
                rewrite_name(&work->crash.rules, ids[i].debug_file, &steps, work->crash.native.arena, &failed);
    return !failed;
}

/* Makes the ids by which files of the dump's modules are searched, and prepares the stack walks. False when out of memory. */
static bool make_modules(struct dump_work *work)
{
    const struct sl_crash *crash = &work->dump.crash;
    struct sl_arena *arena = work->crash.native.arena;
    /* + 1, so that arrays are never empty */
    struct object_id *ids = SL_ARENA_ARRAY(arena, struct object_id, crash->module_count + 1);
    work->walk.modules = SL_ARENA_ARRAY(arena, struct walked_module, crash->module_count + 1);
    for (size_t i = 0; ids && i < crash->module_count; i++)
        ids[i] = crash_object_id(crash, &crash->modules[i]);
    work->walk.needs.ids = ids;
    work->walk.needs.count = crash->module_count;
    return ids && work->walk.modules && rewrite_first(work, ids, crash->module_count) && dump_walk_prepare(&work->walk);
}

/* Pool work: reads the dump from the converter's output, adds what the request says of its modules (kind->complete), and prepares the
 * search for files of the modules. */
static enum sl_code take_dump(struct job *job, void *arg, struct sl_error *error)
{
    struct dump_work *work = arg;
    struct crash_work *crash = &work->crash;
    enum sl_code code = sl_minidump_unpack(crash->packed, crash->form.parts[PART_FILE], crash->native.arena,
                                           &work->dump, &work->client_count, error);
    bool (*complete)(struct crash_work * work, struct sl_minidump * dump) = crash->kind->complete;
    return code == SL_OK ? dump_end((!complete || complete(crash, &work->dump)) && make_modules(work), error) : code;
}

/* Member of struct crash_kind: runs the converter that reads a minidump; then `take` reads its output. */
static enum sl_code convert_minidump(struct job *job, struct crash_work *crash, job_step *take, struct sl_error *error)
{
    struct dump_work *work = (struct dump_work *)crash; /* begins with it */
    const struct minidump_options options = {.details = work->details, .compat = work->compat};
    return crash_convert(job, crash, &converter_minidump, CONVERTER_OPTIONS(options), &work->result, POOL_WALK, take,
                         error);
}

/* Sets the package of a thread's frames that lie in a module which was already unloaded, as "(unloaded gone.dll@0x1234)". False when out of
 * memory. */
static bool name_unloaded(struct dump_work *work, size_t index)
{
    const struct sl_crash_thread *thread = &work->dump.crash.threads[index];
    struct sl_walk_numbers numbers;
    sl_walk_numbers(work->dump.threads[index].family, &numbers);
    for (size_t i = 0; i < thread->frame_count && work->dump.unloaded_count; i++) {
        struct sl_crash_frame *frame = &thread->frames[i];
        bool is_exact = !i || frame->is_exact || frame->trust == SL_TRUST_PREWALKED;
        /* a return address is looked up by its call instruction, which may be the last one of the module */
        uint64_t instruction = frame->address - (is_exact ? 0 : numbers.call);
        struct sl_buf text = {.budget = work->crash.native.arena->budget};
        if (sl_minidump_module_at(&work->dump, instruction))
            continue;
        sl_minidump_put_unloaded(&work->dump, instruction, &text);
        if (text.size && !(frame->package = sl_buf_move_to_arena(&text, work->crash.native.arena)).data)
            return false;
    }
    return true;
}

/* Drops modules that no stack touched (`cfi` was not looked up) and that have no id, so that no symbols could be found for them. False when
 * out of memory. */
static bool drop_unknown_modules(struct dump_work *work)
{
    struct sl_crash *crash = &work->dump.crash;
    size_t kept = 0;
    for (size_t i = 0; i < crash->module_count; i++) {
        const struct sl_crash_module *module = &crash->modules[i];
        if (!work->walk.modules[i].cfi && !module->code_id.size && !module->has_debug_id)
            continue;
        work->walk.modules[kept] = work->walk.modules[i];
        crash->modules[kept++] = *module;
    }
    /* if modules were dropped, their indexes have changed, and the map from addresses to indexes is made anew */
    bool is_shorter = kept < crash->module_count;
    crash->module_count = kept;
    return !is_shorter || sl_minidump_map_modules(&work->dump, work->crash.native.arena);
}

/* Applies the request's rules (rewrite_first_module) to the debug file name of the first module, so that its symbols are searched under the
 * new name. unwind.debug_file keeps the name in the dump, which the answer shows. False when out of memory. */
static bool rename_first(struct dump_work *work)
{
    struct native_request *request = &work->crash.native;
    struct native_module *first = request->modules;
    struct object_id *id = SL_ARENA_NEW(work->crash.native.arena, struct object_id);
    int64_t steps = REWRITE_STEPS;
    bool failed = !id;
    if (id && request->module_count) {
        *id = *first->id;
        id->debug_file = rewrite_name(&work->crash.rules, id->debug_file, &steps, work->crash.native.arena, &failed);
        work->walk.modules[0].unwind.debug_file = first->id->debug_file;
        first->id = id;
    }
    return !failed;
}

/* Points the native request to what the walks found out about unwind information of each module, which the answer reports. False when out
 * of memory. */
static bool set_unwind_info(struct dump_work *work)
{
    struct native_request *request = &work->crash.native;
    request->unwind = SL_ARENA_ARRAY(request->arena, const struct native_unwind *, request->module_count);
    for (size_t i = 0; request->unwind && i < request->module_count; i++)
        request->unwind[i] = &work->walk.modules[i].unwind;
    return request->unwind || !request->module_count;
}

/* Passes the walked dump to a command that wants it, then replaces the stacks of threads which the crashed program itself had walked and
 * stored in the dump (`prewalked`). With `details`, also names unloaded modules. False when out of memory. */
static bool take_frames(struct dump_work *work)
{
    const struct crash_file *local = work->crash.local;
    struct sl_crash *crash = &work->dump.crash;
    bool good = !local || !local->walked || local->walked(local->walked_arg, &work->dump);
    for (size_t i = 0; i < crash->thread_count && good; i++) {
        const struct sl_minidump_thread *known = &work->dump.threads[i];
        if (!known->is_walked || !known->prewalked_count)
            continue;
        crash->threads[i].frames = known->prewalked;
        crash->threads[i].frame_count = known->prewalked_count;
    }
    for (size_t i = 0; i < crash->thread_count && good && work->details; i++)
        good = name_unloaded(work, i);
    return good;
}

/* Pool work: makes a request for native frames of the walked dump. The order matters: modules are dropped before they are copied to the
 * request, and rename_first() changes that copy. Each step is false only when out of memory. */
static enum sl_code fill_request(struct job *job, void *arg, struct sl_error *error)
{
    struct dump_work *work = arg;
    work->crash.native.writer_arg = &work->dump.crash;
    return dump_end(drop_unknown_modules(work) && take_frames(work) &&
                        crash_fill_request(&work->crash.native, &work->dump.crash) && set_unwind_info(work) &&
                        (!work->crash.rules.count || rename_first(work)),
                    error);
}

/* ---- steps on the loop ---- */

/* Walks the stacks of all threads. The work budget is the size of the dump plus BASE_STEPS steps; when it is used up, a warning is logged,
 * and the frames found so far are the result. */
static enum sl_code walk_stacks(struct job *job, struct dump_work *work, struct sl_error *error)
{
    struct native_request *request = &work->crash.native;
    const struct crash_file *local = work->crash.local;
    struct dump_walk *walk = &work->walk;
    size_t size = work->crash.form.parts[PART_FILE].size;
    bool is_core = work->crash.kind->is_core;
    if (work->result.is_foreign) /* a minidump of a CPU that Symbolicator does not know, in compat mode */
        log_info("crash", "not walking the stacks of a RISC-V minidump, because Symbolicator does not either; set "
                          "`minidump.compat: none` to walk them");
    walk->needs.where = native_search_scope(request);
    walk->arena = request->arena;
    walk->frame_pointer_first = job->config->unwind_strategy == 1; /* fp_first */
    walk->keeps_registers = local && local->walked && local->wants_registers;
    walk->wants_variables = request->options.extract_variables == SL_BOOL_TRUE;
    /* symbols are prefetched for the frames found, unless modules will be renamed or stacks replaced by those of the dump */
    walk->finds_symbols = !work->crash.rules.count && !work->client_count;
    walk->max_frames = job->config->max_request_frames;
    sl_budget_init(&walk->work, size + BASE_STEPS);
    uint64_t begin = clock_mono_ns();
    enum sl_code code = dump_walk(walk, error);
    if (sl_budget_exhausted(&walk->work))
        log_warn("crash",
                 is_core ? "stopped walking the stacks of a core file: it takes more work than its size allows, so "
                           "frames are missing"
                         : "stopped walking the stacks of a minidump: it takes more work than its size allows, so "
                           "frames are missing",
                 LOG_U64("bytes", size));
    if (!is_core)
        metric_observe(METRIC_MINIDUMP_WALK, (double)(clock_mono_ns() - begin) / 1e9, NULL, NULL, NULL);
    return code;
}

/* crash_kind.read: reads the dump, walks its stacks, which may wait for symbols, analyses the crash, and fills in the request for native
 * frames. Called again if the job is repeated because a cache file was damaged. */
enum sl_code dump_work_read(struct job *job, void *arg, struct sl_error *error)
{
    struct dump_work *work = arg;
    struct native_request *request = &work->crash.native;
    const struct crash_file *local = work->crash.local;
    bool is_core = work->crash.kind->is_core;
    if (!is_core && !work->walk.dump) /* `walk.dump` is set already if the job is repeated: it is counted once */
        metric_observe(METRIC_MINIDUMP_BYTES, (double)work->crash.form.parts[PART_FILE].size, NULL, NULL, NULL);
    /* commands get all details, unless they print the dump themselves (`walked`) */
    work->details = job->config->minidump_details || (local && !local->walked);
    /* answer as Symbolicator does, if minidump.compat is `symbolicator` (0) and the request does not ask for all frames; not for core
     * files, which Symbolicator does not read */
    work->compat =
        !local && !is_core && job->config->minidump_compat == 0 && request->options.all_frames != SL_BOOL_TRUE;
    work->walk = (struct dump_walk){.file = &work->crash, .dump = &work->dump, .compat = work->compat};
    request->nests_modules = !work->compat; /* modules may overlap, except in answers like Symbolicator's */
    enum sl_code code = work->crash.kind->convert(job, &work->crash, take_dump, error);
    if (code == SL_OK)
        code = walk_stacks(job, work, error);
    if (code == SL_OK && work->crash.kind->analyse)
        code = work->crash.kind->analyse(job, &work->crash, error);
    return code == SL_OK ? job_work(job, POOL_WALK, fill_request, error) : code;
}

void dump_work_undo(void *arg)
{
    struct dump_work *work = arg;
    dump_walk_release(&work->walk);
}

void dump_work_release(void *arg)
{
    dump_work_undo(arg);
    crash_release(arg);
}

/* ---- the request ---- */

/* crash_kind.refuse: returns an error message if the minidump is itself a multipart form, as some clients send it; else NULL. */
static const char *dump_refuse(struct sl_bytes file)
{
    /* an Android log with a microdump is no form, although it begins with "--------- beginning of main" */
    bool is_form = file.size >= 2 && memcmp(file.data, "--", 2) == 0 && !sl_microdump_is_in(file);
    if (is_form)
        metric_add(METRIC_MINIDUMP_MULTIPART, 1, NULL, NULL, NULL);
    return is_form ? "minidump contains multipart form data" : NULL;
}

const struct crash_kind crash_minidump = {
    .job =
        {
            .task = "minidump_stackwalk",
            .size = sizeof(struct dump_work),
            .open = crash_work_open,
            .receive = crash_receive,
            .is_allowed = native_is_allowed,
            .read_local = crash_read_local,
            .prepare = crash_prepare,
            .undo = dump_work_undo,
            .run = native_run,
            .reset = native_reset,
            .write = native_write_answer,
            .executor = native_answer_executor,
            .memory = native_answer_memory,
            .finish = crash_finish,
            .release = dump_work_release,
        },
    .name = "minidump",
    .part = "upload_file_minidump",
    .missing = "missing minidump",
    .rewrites = true,
    .kept = true,
    .refuse = dump_refuse,
    .read = dump_work_read,
    .convert = convert_minidump,
};

static const struct http_route routes[] = {CRASH_POST("/minidump", &crash_minidump), {.method = NULL}};

const struct http_family family_minidump = {.routes = routes, .group = "symbolicate"};
