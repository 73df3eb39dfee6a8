/* Writes answers of versions 4 and 5 of Mozilla's API. */
#include "api/mozilla/mozilla.h"

struct moz_writer { /* state of mozilla_write */
    struct sl_json_writer json;
    const struct mozilla_request *request;
    const struct mozilla_job *job;
    struct sl_buf path;  /* scratch buffer of native_frame_location */
    struct sl_map sizes; /* struct moz_size of each function that was asked for; key: its member `key` */
};

struct sl_str mozilla_module_name(struct sl_arena *arena, const struct mozilla_module *module)
{
    size_t size = module->file.size + 1 + module->id.size;
    char *name = sl_arena_alloc(arena, size, 1);
    if (!name)
        return (struct sl_str){NULL, 0};
    memcpy(name, module->file.data, module->file.size);
    name[module->file.size] = '/';
    memcpy(name + module->file.size + 1, module->id.data, module->id.size);
    return (struct sl_str){name, size};
}

/* True if the module's symbols were found. */
static bool moz_is_found(const struct mozilla_request *r, const struct mozilla_module *module)
{
    return module->native != NATIVE_NO_MODULE && r->native.modules[module->native].found &&
           r->native.modules[module->native].found->lookup.code == SL_OK;
}

/* Writes true or false for a module that was looked up: its symbols were found or not. Null if no frame needed it, or it has no name
 * or id. A module with an invalid id counts as looked up in vain. */
static void write_found(struct moz_writer *w, const struct mozilla_module *module)
{
    bool asked = module->file.size && module->id.size &&
                 (module->native == NATIVE_NO_MODULE ? module->referenced
                                                     : w->request->native.modules[module->native].referenced);
    if (asked)
        sl_json_put_boolean(&w->json, moz_is_found(w->request, module));
    else
        sl_json_put_null(&w->json);
}

/* Returns the module of a frame; NULL if it has none, or one without a name. */
static const struct mozilla_module *get_module(const struct moz_writer *w, const struct mozilla_frame *frame)
{
    const struct mozilla_module *module = frame->module == MOZILLA_UNKNOWN ? NULL : &w->job->modules[frame->module];
    return module && module->file.size ? module : NULL;
}

/* Returns the module name for a frame: the name that was sent, or that of the executable if the symbols have it; the configuration
 * decides. MOZILLA_AUTO: as sent in version 4, the executable in version 5. */
static struct sl_str choose_file_name(const struct moz_writer *w, const struct mozilla_module *module)
{
    int how = w->request->config->mozilla.module_name;
    if (!module)
        return SL_STR("<unknown>");
    if (how == MOZILLA_DEBUG_FILE || (how == MOZILLA_AUTO && w->request->version == 4) ||
        !moz_is_found(w->request, module))
        return module->file;
    const struct sl_symcache *symcache = w->request->native.modules[module->native].found->lookup.symcache;
    struct sl_str name = symcache ? sl_symcache_module_file(symcache) : (struct sl_str){NULL, 0};
    return name.size ? name : module->file;
}

/* Returns the frames that the look-up gave for a frame that was sent: functions inlined there, innermost first, then the one around them.
 * `*count` is 0 if it was not symbolicated, or has no function name: .NET frames have none. */
static const struct native_result_frame *get_results(const struct moz_writer *w, const struct mozilla_frame *frame,
                                                     size_t *count)
{
    *count = 0;
    if (frame->kind == MOZILLA_LITERAL || frame->trace == UINT32_MAX)
        return NULL;
    const struct native_result_trace *trace = &w->request->native.results[frame->trace];
    if (trace->count && trace->frames[trace->count - 1].status == FRAME_SYMBOLICATED &&
        trace->frames[trace->count - 1].names)
        *count = trace->count;
    return trace->frames;
}

/* Returns the demangled name or, if there is none, the name in the symbol table. */
static struct sl_str choose_function_name(const struct native_result_frame *frame)
{
    const struct native_names *names = frame->names;
    return names->function.data ? names->function : names->symbol;
}

/* True if the answer has not reached its size limit; otherwise adds `frames_left` to the number of omitted frames. */
static bool moz_fits(const struct moz_writer *w, size_t frames_left)
{
    struct answer_limit *limit = w->request->native.limit;
    bool fits = answer_limit_fits(limit, w->json.out, 0);
    limit->omitted += fits ? 0 : frames_left;
    return fits;
}

/* ---- version 5 ---- */

struct moz_size {    /* the size of a function */
    uint32_t key[2]; /* module, function id */
    uint64_t size;   /* 0: unknown */
};

/* Returns the size of the frame's function in bytes, looked up once per function; 0 if it is not known. Only symcaches and uploaded
 * files of ranges have sizes of functions. `size` is allocated before the map is asked, as the map keeps a view of its key. */
static uint64_t function_size(struct moz_writer *w, const struct native_result_frame *frame)
{
    struct moz_size *size = SL_ARENA_NEW(w->request->arena, struct moz_size), **slot;
    const struct sl_symcache *table = native_table(&w->request->native.modules[frame->module], frame->table);
    if (!size || !table || (frame->table != TABLE_SYMCACHE && frame->table != TABLE_RANGES))
        return 0;
    *size = (struct moz_size){{frame->module, frame->location.function}, 0};
    slot = (struct moz_size **)sl_map_find_or_add(&w->sizes, (struct sl_str){(const char *)size->key, sizeof size->key},
                                                  NULL);
    if (!slot)
        return 0;
    if (!*slot) {
        size->size = sl_symcache_function_size(table, frame->location.function);
        *slot = size;
    }
    return (*slot)->size;
}

/* Writes the size of the function; nothing if it is not known. */
static void write_function_size(struct moz_writer *w, const struct native_result_frame *outermost)
{
    uint64_t size = function_size(w, outermost);
    if (!size)
        return;
    sl_json_member_hex(&w->json, "function_size", size);
}

/* Writes function, file and line of a frame. Without a file there is no line either; line 0 is unknown. */
static void write_function(struct moz_writer *w, const struct native_result_frame *frame)
{
    struct sl_str path;
    uint64_t line;
    sl_json_member_str(&w->json, "function", choose_function_name(frame));
    if (!native_frame_location(&w->request->native, frame, &w->path, &path, &line))
        return;
    sl_json_member_str(&w->json, "file", path);
    if (line)
        sl_json_member_u64(&w->json, "line", line);
}

/* Writes `count` functions that were inlined, innermost first. The function around them is not among them: it is written as the frame
 * itself. Functions beyond the answer's size limit are left out, but not counted as omitted frames. */
static void write_inlines(struct moz_writer *w, const struct native_result_frame *frames, size_t count)
{
    sl_json_member_array(&w->json, "inlines");
    for (size_t i = 0; i < count && moz_fits(w, 0); i++) {
        sl_json_begin_object(&w->json);
        write_function(w, &frames[i]);
        sl_json_end_object(&w->json);
    }
    sl_json_end_array(&w->json);
}

/* Writes the offset of a frame as text: in hexadecimal; "-0x1" for the address before its module; a number that is no integer as it
 * was sent. */
static void write_offset(struct moz_writer *w, const struct mozilla_frame *frame)
{
    if (frame->kind == MOZILLA_LITERAL)
        sl_json_put_str(&w->json, (struct sl_str){frame->literal, frame->literal_size});
    else if (frame->kind == MOZILLA_BEFORE)
        sl_json_put_str(&w->json, SL_STR("-0x1"));
    else
        sl_json_put_hex(&w->json, frame->offset);
}

/* Writes a frame: the function that was not inlined, and the list of those inlined into it. */
static void moz_write_frame(struct moz_writer *w, const struct mozilla_frame *frame, size_t index)
{
    size_t count;
    const struct mozilla_module *module = get_module(w, frame);
    const struct native_result_frame *frames = get_results(w, frame, &count);
    sl_json_begin_object(&w->json);
    sl_json_member_u64(&w->json, "frame", index);
    sl_json_member_str(&w->json, "module", choose_file_name(w, module));
    sl_json_put_key(&w->json, "module_offset");
    write_offset(w, frame);
    if (count) {
        const struct native_result_frame *outermost = &frames[count - 1];
        write_function(w, outermost);
        /* `outermost` is false if the table does not know where the function begins; its size is not known then either */
        if (outermost->outermost && outermost->symbol_address <= frame->offset)
            sl_json_member_hex(&w->json, "function_offset", frame->offset - outermost->symbol_address);
        if (outermost->outermost && w->request->config->mozilla.function_size)
            write_function_size(w, outermost);
        if (count > 1)
            write_inlines(w, frames, count - 1);
    }
    sl_json_end_object(&w->json);
}

/* Writes {"<file>/<id>": true, false or null} for the modules of a job. A name that was sent twice is written once, as keys of a
 * JSON object must be unique. */
static void write_found_modules(struct moz_writer *w)
{
    struct sl_map seen = {0};
    sl_json_member_object(&w->json, "found_modules");
    for (size_t i = 0; i < w->job->module_count && moz_fits(w, 0); i++) {
        const struct mozilla_module *module = &w->job->modules[i];
        struct sl_str kept = mozilla_module_name(w->request->arena, module);
        bool made = false;
        if (!kept.data || !sl_map_find_or_add(&seen, kept, &made))
            w->json.out->failed = true;
        if (!made)
            continue;
        sl_json_put_key_str(&w->json, kept);
        write_found(w, module);
    }
    sl_json_end_object(&w->json);
    sl_map_free(&seen);
}

/* Returns the name of the error for a module without symbols (the names are those of samply's API), and sets `*message`. NULL: the
 * symbols were found, or no frame needed them. Each message is set before the test whose result it describes. */
static const char *module_error(const struct moz_writer *w, const struct mozilla_module *module, const char **message)
{
    if (!module->file.size || !module->id.size || moz_is_found(w->request, module))
        return NULL;
    if (module->native == NATIVE_NO_MODULE) {
        *message = "The id is not a debug id.";
        return module->referenced ? "InvalidBreakpadId" : NULL;
    }
    const struct native_module *native = &w->request->native.modules[module->native];
    if (!native->referenced)
        return NULL;
    const struct native_lookups *found = native->found;
    *message = "The file has a different debug id.";
    if (found->has_other_id)
        return "UnmatchedDebugId";
    *message = "The symbol file is damaged.";
    if (found->stores == SL_MALFORMED || found->stores == SL_UNSUPPORTED)
        return "BreakpadParsing";
    *message = "No source has symbols for the module.";
    /* `stores` is SL_OK here if Mozilla's stores were not asked */
    if (found->lookup.code == SL_NOT_FOUND && (found->stores == SL_NOT_FOUND || found->stores == SL_OK))
        return "NoCandidatePathForDebugFile";
    *message = native_module_status(native);
    return "NoSuccessfulCandidate";
}

/* Writes the value for a module: a list with one error. */
static void write_module_error(struct moz_writer *w, const char *name, const char *message)
{
    sl_json_begin_array(&w->json);
    sl_json_begin_object(&w->json);
    sl_json_member_str(&w->json, "name", sl_str(name));
    sl_json_member_str(&w->json, "message", sl_str(message));
    sl_json_end_object(&w->json);
    sl_json_end_array(&w->json);
}

/* Writes "module_errors" for the modules whose look-up failed, each name once; no member if there are none. */
static void write_module_errors(struct moz_writer *w)
{
    struct sl_map seen = {0};
    const char *message = NULL;
    bool made = false, any = false;
    for (size_t i = 0; i < w->job->module_count && moz_fits(w, 0); i++) {
        const char *name = module_error(w, &w->job->modules[i], &message);
        struct sl_str kept = name ? mozilla_module_name(w->request->arena, &w->job->modules[i]) : SL_STR("");
        if (!name)
            continue;
        if (!kept.data || !sl_map_find_or_add(&seen, kept, &made))
            w->json.out->failed = true;
        else if (made) {
            if (!any)
                sl_json_member_object(&w->json, "module_errors");
            any = true;
            sl_json_put_key_str(&w->json, kept);
            write_module_error(w, name, message);
        }
    }
    if (any)
        sl_json_end_object(&w->json);
    sl_map_free(&seen);
}

/* Writes the result of a job: its stacks, which of its modules were found and, if configured, why others were not. Frames beyond the
 * answer's size limit are left out and counted (moz_fits). */
static void write_result(struct moz_writer *w)
{
    sl_json_begin_object(&w->json);
    sl_json_member_array(&w->json, "stacks");
    for (size_t s = 0; s < w->job->stack_count; s++) {
        const struct mozilla_stack *stack = &w->job->stacks[s];
        sl_json_begin_array(&w->json);
        for (size_t i = 0; i < stack->count && moz_fits(w, stack->count - i); i++)
            moz_write_frame(w, &w->job->frames[stack->first + i], i);
        sl_json_end_array(&w->json);
    }
    sl_json_end_array(&w->json);
    write_found_modules(w);
    if (w->request->config->mozilla.module_errors)
        write_module_errors(w);
    sl_json_end_object(&w->json);
}

/* Writes the answer of version 5: a list with one result per job. */
static void write_v5(struct moz_writer *w)
{
    sl_json_member_array(&w->json, "results");
    for (size_t i = 0; i < w->request->job_count; i++) {
        w->job = &w->request->jobs[i];
        write_result(w);
    }
    sl_json_end_array(&w->json);
}

/* ---- version 4 ---- */

/* Writes a frame of version 4: "<function or offset> (in <module>)"; an offset that is no integer is written as it was sent, alone. */
static void write_short_frame(struct moz_writer *w, const struct mozilla_frame *frame)
{
    size_t count;
    struct sl_buf text = {0};
    const struct mozilla_module *module = get_module(w, frame);
    const struct native_result_frame *frames = get_results(w, frame, &count);
    if (count)
        sl_buf_str(&text, choose_function_name(&frames[count - 1]));
    else if (frame->kind == MOZILLA_LITERAL)
        sl_buf_str(&text, (struct sl_str){frame->literal, frame->literal_size});
    else
        sl_buf_printf(&text, "%s0x%llx", frame->kind == MOZILLA_BEFORE ? "-" : "", (unsigned long long)frame->offset);
    if (frame->kind != MOZILLA_LITERAL)
        sl_buf_printf(&text, " (in " SL_STR_FMT ")", SL_STR_ARG(choose_file_name(w, module)));
    sl_json_put_str(&w->json, sl_buf_view(&text));
    w->json.out->failed |= text.failed;
    sl_buf_free(&text);
}

/* Writes the answer of version 4, which has one job: its stacks, and which of its modules were found. Frames beyond the answer's size
 * limit are left out and counted (moz_fits). */
static void write_v4(struct moz_writer *w)
{
    w->job = w->request->jobs;
    sl_json_member_array(&w->json, "symbolicatedStacks");
    for (size_t s = 0; s < w->job->stack_count; s++) {
        sl_json_begin_array(&w->json);
        for (size_t i = 0; i < w->job->stacks[s].count && moz_fits(w, w->job->stacks[s].count - i); i++)
            write_short_frame(w, &w->job->frames[w->job->stacks[s].first + i]);
        sl_json_end_array(&w->json);
    }
    sl_json_end_array(&w->json);
    sl_json_member_array(&w->json, "knownModules");
    for (size_t i = 0; i < w->job->module_count; i++)
        write_found(w, &w->job->modules[i]);
    sl_json_end_array(&w->json);
}

/* When out of memory, `out` is marked as failed. */
void mozilla_write(const struct mozilla_request *r, struct sl_buf *out)
{
    struct moz_writer w = {.json = sl_json_writer(out), .request = r};
    sl_json_begin_object(&w.json);
    if (r->version == 4)
        write_v4(&w);
    else
        write_v5(&w);
    answer_limit_write(r->native.limit, &w.json);
    if (r->wants_debug)
        mozilla_write_debug(r, &w.json);
    sl_json_end_object(&w.json);
    out->failed |= w.path.failed;
    sl_buf_free(&w.path);
    sl_map_free(&w.sizes);
}
