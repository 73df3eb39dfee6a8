/* Analyses the instruction at which a thread of a core file crashed, for the details of the answer. The kernel does not write code to core
 * files, so the instruction is read from the file of its module. */
#include "api/crash/dump.h"

#include "minidump/build.h"

/* Gets the address of the instruction that crashed: the pc of the thread that crashed (Symbolicator's term: requesting thread). False if
 * the core has no such thread. */
static bool find_instruction(const struct sl_minidump *dump, uint64_t *address)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        const struct sl_minidump_thread *thread = &dump->threads[i];
        struct sl_walk_numbers numbers;
        if (dump->crash.threads[i].requesting != SL_REQUESTING_THREAD_YES || !thread->is_walked)
            continue;
        sl_walk_numbers(thread->family, &numbers);
        *address = thread->initial->value[numbers.pc];
        return true;
    }
    return false;
}

/* Finds the file with the code of a module: among the files sent with the request, else in the symbol sources. If there is none,
 * `input->bytes` stays empty. SL_BUSY or SL_CANCELLED if the search could not be finished. */
static enum sl_code find_code(struct dump_work *work, size_t module, struct converter_input *input,
                              struct sl_error *error)
{
    struct module_needs *needs = &work->walk.needs;
    const struct supplied_objects *own = needs->where.own;
    const struct supplied_object *object =
        own ? supplied_objects_find(own, &search_unwind_target, &needs->ids[module]) : NULL;
    *input = (struct converter_input){.fd = -1, .role = INPUT_CODE};
    if (object) { /* a file with unwind tables is mostly the program itself, not its debug file, which has no code */
        input->bytes = object->bytes;
        return SL_OK;
    }
    const struct search_result *found = module_needs_get(needs, module, &search_code_file_target);
    if (found->code == SL_BUSY || found->code == SL_CANCELLED) {
        *error = found->error;
        return found->code;
    }
    if (found->item) {
        input->bytes = found->item->mapping.bytes;
        input->place = found->item->place; /* the cache file itself, which the worker then gets instead of a copy */
    }
    return SL_OK;
}

/* Pool work: replaces the details of the answer by the analysis in the converter's output. */
static enum sl_code take_analysis(struct job *job, void *arg, struct sl_error *error)
{
    struct dump_work *work = arg;
    struct sl_crash *crash = &work->dump.crash, analysis;
    struct sl_unpacker unpacker = {.r = sl_reader(work->crash.packed, false), .arena = work->crash.native.arena};
    enum sl_code code = sl_crash_unpack(&unpacker, &analysis, error);
    if (code != SL_OK)
        return code;
    crash->extras = analysis.extras;
    crash->extra_count = analysis.extra_count;
    return SL_OK;
}

/* Adds `missing_code` to the details of the answer: the module that contains the instruction, when its code was found neither in the core
 * nor in a file. SL_BUSY when out of memory. */
static enum sl_code report_missing_code(struct dump_work *work, const struct sl_crash_module *module,
                                        struct sl_error *error)
{
    struct sl_crash *crash = &work->dump.crash;
    struct sl_arena *arena = work->crash.native.arena;
    struct sl_buf text = {.budget = arena->budget};
    struct sl_json_writer w = sl_json_writer(&text);
    struct sl_crash_extra *extras = SL_ARENA_ARRAY(arena, struct sl_crash_extra, crash->extra_count + 1);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "code_file", module->code_file);
    sl_json_member_if_set(&w, "code_id", module->code_id);
    sl_json_member_hex(&w, "image_addr", module->address);
    sl_json_end_object(&w);
    struct sl_str json = sl_buf_move_to_arena(&text, arena);
    if (!extras || !json.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (crash->extra_count)
        memcpy(extras, crash->extras, crash->extra_count * sizeof *extras);
    extras[crash->extra_count++] = (struct sl_crash_extra){SL_STR("missing_code"), json};
    crash->extras = extras;
    return SL_OK;
}

enum sl_code core_analyse(struct job *job, struct crash_work *crash, struct sl_error *error)
{
    struct dump_work *work = (struct dump_work *)crash; /* begins with it */
    const struct sl_minidump *dump = &work->dump;
    struct core_analysis_options options = {.limits = current_reader_limits()};
    uint64_t address;
    if (!work->details || !dump->has_exception || !find_instruction(dump, &address))
        return SL_OK;
    /* NULL if no file is needed, because the core itself has the code */
    const struct sl_crash_module *module =
        sl_minidump_memory_at(dump, address) ? NULL : sl_minidump_module_at(dump, address);
    enum sl_code code = SL_OK;
    if (module && sl_crash_has_id(module)) {
        options.module = module->address;
        options.debug_id = module->debug_id;
        options.has_debug_id = module->has_debug_id;
        crash->code_id = module->code_id;
        code = find_code(work, (size_t)(module - dump->crash.modules), &crash->code, error);
    }
    struct core_analysis_result result = {false};
    if (code == SL_OK)
        code = crash_convert(job, crash, &converter_core_analysis, CONVERTER_OPTIONS(options), &result, POOL_WALK,
                             take_analysis, error);
    crash->code.bytes.data = NULL; /* so that no later crash_convert() gets this file as an input */
    if (code == SL_UNSUPPORTED || code == SL_MALFORMED) { /* the stacks are answered without the analysis */
        log_warn("crash", "cannot analyse the crash of a core file; the answer lacks the analysis",
                 LOG_STR("error", error->message));
        return SL_OK;
    }
    return code == SL_OK && module && !result.has_used_code ? report_missing_code(work, module, error) : code;
}
