/* POST /minidump: a minidump becomes a job: read, its stacks walked, and symbolicated. */
#include "api/crash/crash.h"
#include "api/crash/walk.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "minidump/facts.h"
#include "minidump/microdump.h"

enum { LEAST_SIZE = 1 << 20 }; /* what a dump's walks may cost is that of one of so many bytes at least */

struct dump_work {
    struct job *job;
    struct native_request *request;
    struct sl_bytes file;
    const struct rewrite_rules *rules;
    const struct crash_file *local; /* may be NULL */
    bool details, compat;
    bool is_foreign; /* of a processor that Symbolicator does not know, and answers are to be like its */
    struct sl_minidump dump;
    struct sl_minidump_client client;
    struct dump_walk walk;
    enum sl_code code; /* of the step on the pool */
    struct sl_error error;
};

/* ---- steps on the pool ---- */

static bool same_debug_id(const struct object_id *a, const struct object_id *b)
{
    return a->has_debug_id == b->has_debug_id && (!a->has_debug_id || sl_debug_id_equal(&a->debug_id, &b->debug_id));
}

/* The module at the lowest address is looked up by another name, and those that have its id with it. */
static void rewrite_first(struct dump_work *work, struct object_id *ids, size_t count)
{
    const struct object_id first = count ? ids[0] : (struct object_id){.type = OBJECT_UNKNOWN};
    int64_t steps = REWRITE_STEPS;
    bool failed = false;
    for (size_t i = 0; i < count && work->rules->count; i++)
        if (same_debug_id(&first, &ids[i]))
            ids[i].debug_file = rewrite_name(work->rules, ids[i].debug_file, &steps, work->request->arena, &failed);
    if (failed)
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
}

static void make_modules(struct dump_work *work)
{
    const struct sl_crash *crash = &work->dump.crash;
    struct sl_arena *arena = work->request->arena;
    struct object_id *ids = SL_ARENA_ARRAY(arena, struct object_id, crash->module_count + 1);
    work->walk.modules = SL_ARENA_ARRAY(arena, struct walked_module, crash->module_count + 1);
    for (size_t i = 0; ids && i < crash->module_count; i++)
        ids[i] = crash_object_id(crash, &crash->modules[i]);
    if (ids && work->walk.modules)
        rewrite_first(work, ids, crash->module_count);
    else
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    work->walk.needs.ids = ids;
    work->walk.needs.count = crash->module_count;
}

/* Symbolicator has no contexts of RISC-V: the processor is unknown, and threads have neither registers nor frames. */
static void forget_registers(struct dump_work *work)
{
    struct sl_minidump *dump = &work->dump;
    work->is_foreign = dump->family == SL_CPU_RISCV || dump->family == SL_CPU_RISCV64;
    if (!work->is_foreign)
        return;
    dump->family = SL_CPU_UNKNOWN;
    dump->crash.system.arch = SL_ARCH_UNKNOWN;
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        dump->threads[i].is_walked = false;
        dump->crash.threads[i].register_count = 0;
    }
}

static void read_dump(void *arg)
{
    struct dump_work *work = arg;
    struct sl_arena *arena = work->request->arena;
    struct sl_error ignored;
    work->code = sl_minidump_read(work->file, arena, &work->dump, &work->error);
    if (work->code == SL_OK && work->compat)
        forget_registers(work);
    if (work->code == SL_OK && work->compat && !sl_minidump_drop_overlaps(&work->dump, arena))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    bool has_more = !work->compat || work->details;
    if (work->code == SL_OK && has_more && !sl_minidump_enter_wow64(&work->dump, arena))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK && sl_minidump_client_stacks(&work->dump, arena, &work->client, &ignored) == SL_BUSY)
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK && work->details && !crash_details(&work->dump, arena))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK)
        make_modules(work);
}

/* Stacks that the client walked take the place of those that were walked here. */
static bool take_client_stack(struct dump_work *work, struct sl_crash_thread *thread)
{
    struct sl_crash_frame *frames;
    size_t count;
    if (!sl_minidump_client_frames(&work->client, thread->id, work->request->arena, &frames, &count))
        return count == 0;
    for (size_t i = 0; i < count; i++)
        frames[i].trust = SL_TRUST_PREWALKED;
    thread->frames = frames;
    thread->frame_count = count;
    return true;
}

/* A frame in a module that was unloaded names it as its package: "(unloaded gone.dll@0x1234)". */
static bool name_unloaded(struct dump_work *work, size_t index)
{
    const struct sl_crash_thread *thread = &work->dump.crash.threads[index];
    struct sl_walk_numbers numbers;
    sl_walk_numbers(work->dump.threads[index].family, &numbers);
    for (size_t i = 0; i < thread->frame_count && work->dump.unloaded_count; i++) {
        struct sl_crash_frame *frame = &thread->frames[i];
        bool is_exact = !i || frame->is_exact || frame->trust == SL_TRUST_PREWALKED;
        uint64_t instruction = frame->address - (is_exact ? 0 : numbers.call);
        struct sl_buf text = {.budget = work->request->arena->budget};
        if (sl_minidump_module_at(&work->dump, instruction))
            continue;
        sl_minidump_put_unloaded(&work->dump, instruction, &text);
        if (text.size && !(frame->package = sl_buf_keep(&text, work->request->arena)).data)
            return false;
    }
    return true;
}

/* Modules that played no part and cannot be named are not answered. False when out of memory. */
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
    bool is_shorter = kept < crash->module_count;
    crash->module_count = kept;
    return !is_shorter || sl_minidump_map_modules(&work->dump, work->request->arena);
}

/* The answer tells the name that the dump has. */
static void rename_first(struct dump_work *work)
{
    struct native_module *first = work->request->modules;
    struct object_id *id = SL_ARENA_NEW(work->request->arena, struct object_id);
    int64_t steps = REWRITE_STEPS;
    bool failed = !id;
    if (id && work->request->module_count) {
        *id = *first->id;
        id->debug_file = rewrite_name(work->rules, id->debug_file, &steps, work->request->arena, &failed);
        work->walk.modules[0].unwind.debug_file = first->id->debug_file;
        first->id = id;
    }
    if (failed)
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
}

static bool note_unwinding(struct dump_work *work)
{
    struct native_request *request = work->request;
    request->unwind = SL_ARENA_ARRAY(request->arena, const struct native_unwind *, request->module_count);
    for (size_t i = 0; request->unwind && i < request->module_count; i++)
        request->unwind[i] = &work->walk.modules[i].unwind;
    return request->unwind || !request->module_count;
}

static void fill_request(void *arg)
{
    struct dump_work *work = arg;
    struct sl_crash *crash = &work->dump.crash;
    work->code = SL_OK;
    if (work->local && work->local->walked && !work->local->walked(work->local->walked_arg, &work->dump))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < crash->thread_count && work->code == SL_OK; i++)
        if (work->dump.threads[i].is_walked && !take_client_stack(work, &crash->threads[i]))
            work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < crash->thread_count && work->code == SL_OK && work->details; i++)
        if (!name_unloaded(work, i))
            work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK && !crash_fill(work->request, crash))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK && !note_unwinding(work))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
    if (work->code == SL_OK && work->rules->count)
        rename_first(work);
}

/* ---- the job ---- */

static enum sl_code dump_step(void (*step)(void *arg), struct dump_work *work, struct sl_error *error)
{
    enum sl_code code = pool_run(POOL_WALK, step, work, error);
    if (code == SL_OK && work->code != SL_OK) {
        *error = work->error;
        code = work->code;
    }
    return code;
}

static bool is_compat(const struct dump_work *work)
{
    return !work->local && work->job->config->minidump_compat == 0 && work->request->options.all_frames != SL_BOOL_TRUE;
}

static enum sl_code read_and_walk(void *arg, struct sl_error *error)
{
    struct dump_work *work = arg;
    struct job *job = work->job;
    work->walk = (struct dump_walk){.dump = &work->dump, .compat = work->compat};
    enum sl_code code = dump_step(read_dump, work, error);
    if (code == SL_MALFORMED)
        crash_write_failure(&job->answer, error->message, NULL);
    if (code != SL_OK)
        return code;
    if (work->is_foreign)
        log_info("crash",
                 "stacks of a RISC-V minidump are not walked, as Symbolicator does not; `minidump.compat: none` does");
    work->walk.needs.where = native_where(work->request);
    work->walk.arena = work->request->arena;
    work->walk.frame_pointer_first = job->config->unwind_strategy == 1;
    work->walk.keeps_registers = work->local && work->local->walked && work->local->wants_registers;
    work->walk.wants_variables = work->request->options.extract_variables == SL_BOOL_TRUE;
    work->walk.finds_symbols = !work->rules->count && !work->client.count; /* else names or frames change behind it */
    work->walk.max_frames = job->config->max_request_frames;
    sl_budget_init(&work->walk.work, work->file.size + LEAST_SIZE);
    uint64_t begin = clock_mono_ns();
    code = dump_walk(&work->walk, error);
    if (sl_budget_exhausted(&work->walk.work))
        log_warn("crash", "the stacks of a minidump are cut: to walk them takes more work than its size allows",
                 LOG_U64("bytes", work->file.size));
    metric_observe(METRIC_MINIDUMP_WALK, (double)(clock_mono_ns() - begin) / 1e9, NULL, NULL, NULL);
    return code;
}

static void release_walk(void *arg)
{
    struct dump_work *work = arg;
    dump_walk_release(&work->walk);
}

static enum sl_code dump_work_through(struct job *job, struct dump_work *work, struct sl_error *error)
{
    enum sl_code code = cache_run_reader(&(struct cache_reader){read_and_walk, release_walk}, work, error);
    if (code != SL_OK)
        return code;
    if (!drop_unknown_modules(work))
        return sl_fail(error, SL_BUSY, "out of memory");
    if ((code = dump_step(fill_request, work, error)) != SL_OK)
        return code;
    return native_run_job(job, work->request, crash_write, &work->dump.crash, error);
}

static enum sl_code dump_symbolicate(struct job *job, struct crash_work *crash, struct sl_bytes file,
                                     struct sl_error *error)
{
    struct dump_work *work = SL_ARENA_NEW(&job->arena, struct dump_work);
    if (!work)
        return sl_fail(error, SL_BUSY, "out of memory");
    metric_observe(METRIC_MINIDUMP_BYTES, (double)file.size, NULL, NULL, NULL);
    work->job = job;
    work->request = crash->request;
    work->file = file;
    work->rules = &crash->rules;
    work->local = crash->local;
    bool is_shown =
        work->local && !work->local->walked; /* commands tell all, unless they tell of the dump themselves */
    work->details = job->config->minidump_details || is_shown;
    work->compat = is_compat(work);
    work->request->nests_modules = !work->compat;
    enum sl_code code = dump_work_through(job, work, error);
    dump_walk_release(&work->walk);
    return code;
}

/* ---- the request ---- */

/* Some clients put a form into the form. */
static const char *dump_refuse(struct sl_bytes file)
{
    /* Logs of Android begin with "--------- beginning of main". */
    bool is_form = file.size >= 2 && memcmp(file.data, "--", 2) == 0 && !sl_microdump_is_in(file);
    if (is_form)
        metric_add(METRIC_MINIDUMP_MULTIPART, 1, NULL, NULL, NULL);
    return is_form ? "minidump contains multipart form data" : NULL;
}

const struct crash_kind crash_minidump = {
    .name = "minidump",
    .part = "upload_file_minidump",
    .missing = "missing minidump",
    .rewrites = true,
    .kept = true,
    .refuse = dump_refuse,
    .symbolicate = dump_symbolicate,
};

static void dump_handle(struct http_exchange *x)
{
    crash_handle(x, &crash_minidump);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/minidump",
     .handler = dump_handle,
     .takes_work = true,
     .check = crash_check,
     .body_limit = crash_body_limit,
     .rights = API_RIGHT("symbolicate"),
     .task = "minidump_stackwalk"},
    {.method = NULL},
};

const struct http_family family_minidump = {.routes = routes, .group = "symbolicate"};
