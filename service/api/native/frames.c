/* Makes the resulting frames: computes the address to look up in the module, and looks it up in the module's tables. The rules are
 * Symbolicator's. */
#include "api/native/native.h"

#include "core/log.h"
#include "core/metrics.h"

struct trace_walk { /* state of symbolicate_trace */
    struct native_request *request;
    const struct native_trace *trace;
    struct native_result_frame *frames; /* grown by doubling; old copies stay in the arena */
    size_t count, capacity;
    bool any_adjusts; /* some frame has `adjust_instruction_addr`: then all frames without it are return addresses */
};

const char *native_frame_status(enum native_status status)
{
    static const char *const names[FRAME_STATUSES] = {"symbolicated", "missing_symbol", "unknown_image", "missing",
                                                      "malformed"};
    return names[status];
}

const char *native_trust_name(enum native_trust trust)
{
    static const char *const names[TRUSTS] = {"none", "scan", "cfiscan", "fp", "cfi", "prewalked", "context"};
    return names[trust];
}

/* Appends a result, which the caller sets, to those of the trace; NULL when out of memory. */
static struct native_result_frame *native_frames_add(struct trace_walk *walk)
{
    if (walk->count == walk->capacity) {
        size_t capacity = walk->capacity ? walk->capacity * 2 : walk->trace->frame_count + 4;
        struct native_result_frame *grown = SL_ARENA_ARRAY(walk->request->arena, struct native_result_frame, capacity);
        if (!grown) {
            walk->request->out_of_memory = true;
            return NULL;
        }
        if (walk->count)
            memcpy(grown, walk->frames, walk->count * sizeof *grown);
        walk->frames = grown;
        walk->capacity = capacity;
    }
    return &walk->frames[walk->count++];
}

/* ---- the address to look up ---- */

/* True for signals raised by the instruction at the CPU's instruction pointer. If the first frame then has another address, it
 * cannot be the crashed one and is a return address. */
static bool is_crash_signal(const struct native_request *request, const struct native_module *module)
{
    enum { SIGNAL_ILL = 4, SIGNAL_BUS_LINUX = 7, SIGNAL_BUS = 10, SIGNAL_SEGV = 11 };
    uint64_t signal = request->signal.set ? request->signal.value : 0;
    return signal == SIGNAL_ILL || signal == SIGNAL_BUS || signal == SIGNAL_SEGV ||
           (signal == SIGNAL_BUS_LINUX && module->id->type == OBJECT_ELF);
}

static const struct native_register *find_register(const struct native_trace *trace, const char *name)
{
    for (size_t i = 0; name && i < trace->register_count; i++)
        if (sl_str_equal(trace->registers[i].name, sl_str(name)))
            return &trace->registers[i];
    return NULL;
}

/* True if the address of a frame is a return address, so that the call lies before it. The frame's `adjust_instruction_addr` (adjust)
 * decides. If only other frames have it, the address is a return address. If no frame has it, all but the first frame have return
 * addresses; the first has the current instruction, unless `ip_register` has another address and the signal was raised by the instruction
 * there (is_crash_signal). */
static bool is_caller(const struct trace_walk *walk, size_t index, const struct native_module *module, uint64_t address,
                      const char *ip_register)
{
    const struct native_frame *frame = &walk->trace->frames[index];
    if (frame->is_exact || frame->of_file) /* both: an address of the instruction itself */
        return false;
    if (frame->adjust != SL_BOOL_ABSENT)
        return frame->adjust == SL_BOOL_TRUE;
    if (walk->any_adjusts || index > 0)
        return true;
    const struct native_register *ip = find_register(walk->trace, ip_register);
    return ip && ip->value != address && is_crash_signal(walk->request, module);
}

/* Returns an address in the instruction before `aligned`; 0 if there is none. On MIPS goes back two instructions, as the delay slot
 * of the call lies between. */
static uint64_t previous_instruction(enum sl_cpu_family family, uint64_t aligned)
{
    uint64_t step = family == SL_CPU_MIPS || family == SL_CPU_MIPS64 ? 8 : sl_cpu_instruction_alignment(family);
    return aligned >= step ? aligned - step : 0;
}

/* Computes `*out`, the address to look up, relative to the module as `relative` is: aligned to instructions and, for a return address
 * (`*caller`), in the call before it. The symbols of a module that was sent without an address are looked up by `relative` as it is. False
 * if the result would lie before the module, which is counted as a metric. */
static bool lookup_address(const struct trace_walk *walk, size_t index, const struct native_module *module,
                           uint64_t relative, uint64_t *out, bool *caller)
{
    uint64_t base = module->image_address, address;
    /* true: the module may indeed lie at address 0 */
    bool is_absolute = walk->request->maps_at_zero && walk->trace->frames[index].module == NATIVE_NO_MODULE;
    *out = relative;
    *caller = false;
    /* No load address, or the sum overflows: `relative` stays as it is. Uploaded symbols need the address in the call all the same. */
    if ((base == 0 && !native_has_uploaded_symbols(module) && !is_absolute) ||
        __builtin_add_overflow(base, relative, &address))
        return true;
    enum sl_cpu_family family = sl_arch_family(module->found->lookup.arch);
    uint64_t aligned = address - address % sl_cpu_instruction_alignment(family);
    *caller = is_caller(walk, index, module, address, sl_cpu_ip_register(family));
    if (*caller)
        aligned = previous_instruction(family, aligned);
    *out = aligned - base;
    if (aligned < base)
        metric_add(METRIC_ADDRESS_UNDERFLOW, 1, NULL, NULL, NULL);
    return aligned >= base;
}

/* ---- frames ---- */

/* Adds the results for an address, as copies of `frame` with their own names and positions: the functions in `chain`, which were inlined
 * there, innermost first, and the one around them. Only that one, the last, has a symbol address. */
static void add_expansion(struct trace_walk *walk, struct native_result_frame frame, const struct native_module *module,
                          uint64_t relative, const struct sl_location *chain, size_t count)
{
    uint64_t base = module->image_address, table_base = native_table_base(module);
    for (size_t i = 0; i < count; i++) {
        struct sl_symcache_function function = {.entry = UINT64_MAX};
        struct native_result_frame *out = native_frames_add(walk);
        if (!out)
            return;
        *out = frame;
        sl_symcache_function(module->found->lookup.symcache, chain[i].function, &function);
        /* a table without this function leaves `entry` as it is: the frame has no symbol address */
        out->status = FRAME_SYMBOLICATED;
        out->location = chain[i];
        out->language = (uint8_t)function.language;
        out->outermost = i + 1 == count && function.entry != UINT64_MAX;
        if (__builtin_add_overflow(base, relative, &out->address)) /* invalid input: 0 = unknown */
            out->address = 0;
        if (__builtin_add_overflow(table_base, function.entry, &out->symbol_address))
            out->symbol_address = 0;
    }
}

static bool has_no_line(const struct sl_location *location)
{
    return location->file == SL_SYMCACHE_NONE && location->line == 0;
}

/* Removes inlined functions without line information from the chain; returns where it begins now. Removes the innermost ones, up to the
 * first with a line. In a PDB whose outermost function has no lines, removes all inlined ones, as it is not known where they were
 * called. */
static const struct sl_location *drop_lineless_calls(const struct native_module *module,
                                                     const struct sl_location *chain, size_t *count)
{
    if (*count > 1 && module->id->type == OBJECT_PE && has_no_line(&chain[*count - 1])) {
        chain += *count - 1;
        *count = 1;
    }
    for (; *count > 1 && has_no_line(chain); chain++)
        --*count;
    return chain;
}

/* Adds the results for an address from uploaded symbols, as copies of `frame`. False if they do not have it. */
static bool expand_upload(struct trace_walk *walk, size_t index, struct native_result_frame frame,
                          const struct native_module *module, uint64_t relative)
{
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    uint64_t adjusted, base = module->image_address;
    bool caller;
    if (!lookup_address(walk, index, module, relative, &adjusted, &caller))
        return false;
    struct native_lookup_result hit =
        native_symbfile_lookup(module, relative, adjusted, caller, chain, SL_SYMCACHE_MAX_CHAIN);
    size_t count = hit.count > SL_SYMCACHE_MAX_CHAIN ? SL_SYMCACHE_MAX_CHAIN : hit.count;
    frame.status = FRAME_SYMBOLICATED;
    frame.table = (uint8_t)hit.table;
    frame.address = base + hit.address;
    for (size_t i = 0; i < count; i++) {
        struct native_result_frame *out = native_frames_add(walk);
        if (!out)
            break;
        *out = frame;
        out->location = chain[i];
        out->outermost = i + 1 == count && hit.has_symbol_address;
        out->symbol_address = base + hit.symbol_address;
    }
    return count > 0;
}

/* True if a frame that could not be symbolicated is not answered: if it was found by scanning the stack, it is probably no frame at
 * all. */
static bool is_dropped(const struct native_frame *frame, enum native_status status)
{
    return frame->trust == TRUST_SCAN && (status == FRAME_MISSING_SYMBOL || status == FRAME_UNKNOWN_IMAGE);
}

/* Adds a result that says why the frame could not be symbolicated; none if it is probably no frame at all (is_dropped). */
static void add_failed(struct trace_walk *walk, struct native_result_frame frame, enum native_status status)
{
    frame.status = (uint8_t)status;
    struct native_result_frame *out = is_dropped(frame.sent, status) ? NULL : native_frames_add(walk);
    if (out)
        *out = frame;
}

/* Adds a frame of .NET. It is looked up by method and IL offset, which is sent as its address; where the module lies does not
 * matter. The method is sent as a MethodDef token, whose upper byte is the number of that metadata table, or as a row number in it
 * (ECMA-335, II.22). */
static void add_dotnet(struct trace_walk *walk, struct native_result_frame frame, const struct sl_ppdb_table *table)
{
    enum { TOKEN_METHOD_DEF = 0x06, TOKEN_TABLE_SHIFT = 24, TOKEN_ROW = 0xFFFFFF };
    struct sl_ppdb_location location;
    struct sl_ppdb_table_document document;
    uint32_t method = (uint32_t)frame.sent->function_id;
    if (method >> TOKEN_TABLE_SHIFT == TOKEN_METHOD_DEF)
        method &= TOKEN_ROW;
    if (!frame.sent->has_function_id ||
        !sl_ppdb_table_lookup(table, method, (uint32_t)frame.sent->address, &location)) {
        add_failed(walk, frame, FRAME_MISSING_SYMBOL);
        return;
    }
    sl_ppdb_table_document(table, location.document, &document);
    frame.status = FRAME_SYMBOLICATED;
    frame.is_dotnet = true;
    frame.language = (uint8_t)document.properties.language;
    frame.location = (struct sl_location){.file = location.document, .line = location.line};
    struct native_result_frame *out = native_frames_add(walk);
    if (out)
        *out = frame;
}

/* Sets the address relative to the module. An address "file:<N>" is relative to where the file is linked to load, which is 0 for
 * position-independent files. False if it lies before the module. */
static bool relative_address(const struct native_frame *sent, const struct native_module *module, uint64_t *relative)
{
    const struct fixed_load_address *fixed_load = &module->found->lookup.fixed_load;
    *relative = sent->relative;
    return !sent->of_file || !fixed_load->is_fixed || !__builtin_sub_overflow(*relative, fixed_load->address, relative);
}

/* Adds the results of one frame: from uploaded symbols if the module has them, else from its portable PDB, else from its symcache.
 * With `nearest`, an address outside of every function gets the function before it. */
static void symbolicate_frame(struct trace_walk *walk, size_t index)
{
    struct native_request *request = walk->request;
    const struct native_frame *sent = &walk->trace->frames[index];
    struct native_result_frame frame = {
        .sent = sent, .address = sent->address, .index = (uint32_t)index, .module = sent->module_index};
    uint64_t relative = sent->relative, address;
    if (frame.module == NATIVE_NO_MODULE) {
        add_failed(walk, frame, FRAME_UNKNOWN_IMAGE);
        return;
    }
    const struct native_module *module = &request->modules[frame.module];
    if (module->found->lookup.code != SL_OK) {
        add_failed(walk, frame, module->found->lookup.code == SL_MALFORMED ? FRAME_MALFORMED : FRAME_MISSING);
        return;
    }
    if (native_has_uploaded_symbols(module)) {
        if (!expand_upload(walk, index, frame, module, relative))
            add_failed(walk, frame, FRAME_MISSING_SYMBOL);
        return;
    }
    if (module->found->lookup.ppdb) {
        add_dotnet(walk, frame, module->found->lookup.ppdb);
        return;
    }
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    /* added to an address relative to the module, this gives an address relative to the table */
    uint64_t ahead = module->image_address - native_table_base(module);
    size_t count = 0;
    bool caller;
    /* false: the address lies before the module, or the module was sent without an address */
    bool inside = relative_address(sent, module, &relative) && !sent->undefined;
    address = relative;
    if (inside && lookup_address(walk, index, module, relative, &address, &caller))
        count = sl_symcache_lookup(module->found->lookup.symcache, address + ahead, chain, SL_SYMCACHE_MAX_CHAIN);
    /* a look-up returns how many functions there are, even if the array is too small for them */
    count = count > SL_SYMCACHE_MAX_CHAIN ? SL_SYMCACHE_MAX_CHAIN : count;
    if (!count && request->nearest)
        count = sl_symcache_function_before(module->found->lookup.symcache, relative + ahead, chain);
    const struct sl_location *first =
        walk->request->inlines_without_lines ? chain : drop_lineless_calls(module, chain, &count);
    if (count)
        add_expansion(walk, frame, module, address, first, count);
    else
        add_failed(walk, frame, FRAME_MISSING_SYMBOL);
}

/* Counts the bytes that the results from number `before` on take in the answer at least: about 96 for their keys, and the name of
 * the module's file. */
static void count_answer_bytes(struct trace_walk *walk, size_t before)
{
    enum { KEYS = 96 };
    for (size_t i = before; i < walk->count; i++) {
        uint32_t module = walk->frames[i].module;
        size_t package = module == NATIVE_NO_MODULE ? 0 : walk->request->modules[module].id->code_file.size;
        answer_limit_take(walk->request->limit, KEYS + package);
    }
}

/* `frame` becomes 0 after the first trace: later traces lose all their frames. */
void native_drop_frames(struct native_request *request, size_t trace, size_t frame)
{
    for (; trace < request->trace_count; trace++, frame = 0) {
        struct native_result_trace *result = &request->results[trace];
        request->limit->omitted += result->count - frame;
        request->result_count -= result->count - frame;
        result->count = frame;
    }
}

/* Adds the results of one trace until a limit is reached: max_response_frames, which is logged, or the size limit of the answer, at
 * which the other frames are counted as omitted. Marks the modules of results with source_wanted. */
static void symbolicate_trace(struct native_request *request, size_t index, uint64_t max_frames)
{
    struct trace_walk walk = {.request = request, .trace = &request->traces[index]};
    for (size_t i = 0; i < walk.trace->frame_count; i++)
        walk.any_adjusts = walk.any_adjusts || walk.trace->frames[i].adjust != SL_BOOL_ABSENT;
    for (size_t i = 0; i < walk.trace->frame_count && !request->out_of_memory; i++) {
        size_t before = walk.count;
        if (request->result_count + walk.count >= max_frames) {
            log_warn("symbolicate",
                     "dropped frames because the response reached max_response_frames; raise it to get all frames",
                     LOG_U64("frames", max_frames));
            break;
        }
        /* 0 bytes: only asks if the limit is reached, or the job cancelled */
        if (!answer_limit_take(request->limit, 0)) {
            request->limit->omitted += walk.trace->frame_count - i;
            break;
        }
        symbolicate_frame(&walk, i);
        count_answer_bytes(&walk, before);
    }
    request->results[index] = (struct native_result_trace){walk.frames, walk.count};
    request->result_count += walk.count;
    for (size_t i = 0; i < walk.count; i++)
        if (walk.frames[i].module != NATIVE_NO_MODULE)
            request->modules[walk.frames[i].module].source_wanted = true;
}

/* If not even the list of traces can be allocated, there are none, so that later steps do not read it. */
void native_symbolicate(struct native_request *request, uint64_t max_frames)
{
    request->results = SL_ARENA_ARRAY(request->arena, struct native_result_trace, request->trace_count);
    if (request->trace_count && !request->results) {
        request->trace_count = 0;
        request->out_of_memory = true;
    }
    for (size_t i = 0; i < request->trace_count; i++)
        symbolicate_trace(request, i, max_frames);
}

/* True if the last frame lies in no module and its callee is `_start`, the first function of a process: unwinders often report a
 * caller of it, which does not exist. */
static bool ends_behind_start(const struct native_trace *sent, const struct native_result_trace *trace)
{
    if (trace->count < 2)
        return false;
    const struct native_result_frame *last = &trace->frames[trace->count - 1], *before = last - 1;
    struct sl_str function = before->names ? before->names->function : native_text(before->sent, SENT_FUNCTION);
    return last->status == FRAME_UNKNOWN_IMAGE && last->index + 1 == sent->frame_count &&
           sl_str_equal(function, SL_STR("_start"));
}

void native_finish(struct native_request *request)
{
    for (size_t t = 0; t < request->trace_count; t++) {
        struct native_result_trace *trace = &request->results[t];
        if (ends_behind_start(&request->traces[t], trace))
            trace->count--;
    }
    if (request->origin) /* NULL: another API counts the request */
        native_count_results(request);
}
