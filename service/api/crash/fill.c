/* Converts the threads and modules of a crash to a request for native frames. */
#include "api/crash/crash.h"

#include "unwind/walk.h"

/* enum native_trust and enum sl_trust have the same values. */
_Static_assert(TRUST_NONE == (int)SL_TRUST_NONE && TRUST_CONTEXT == (int)SL_TRUST_CONTEXT,
               "enum native_trust and enum sl_trust differ");

/* Stores those texts of a frame that are known, in the order of enum native_text, and a bit for each in frame->has_text: native_text()
 * finds a text by counting bits. False when out of memory. */
static bool fill_texts(struct native_request *request, const struct sl_crash_frame *from, struct native_frame *frame)
{
    const struct {
        enum native_text text;
        struct sl_str value;
    } known[] = {
        {SENT_PACKAGE, from->package},
        {SENT_FUNCTION, from->function},
        {SENT_FILENAME, from->filename},
    };
    struct sl_str texts[SENT_TEXTS];
    size_t count = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].value.data) {
            texts[count++] = known[i].value;
            frame->has_text |= (uint16_t)(1u << known[i].text);
        }
    struct sl_str *kept = count ? SL_ARENA_ARRAY(request->arena, struct sl_str, count) : NULL;
    if (kept)
        memcpy(kept, texts, count * sizeof *kept);
    frame->texts = kept;
    return kept || !count;
}

/* Copies a frame of a crash to the request; its module will be found by the address (native_prepare). False when out of memory. */
static bool fill_frame(struct native_request *request, const struct sl_crash_frame *from, struct native_frame *frame)
{
    *frame = (struct native_frame){
        .address = from->address,
        .module = NATIVE_NO_MODULE,
        .trust = from->trust,
        .is_exact = from->is_exact,
        .symbol_address = sl_crash_symbol_address(from),
        .has_symbol_address = from->symbol_offset != 0,
        .line = from->line,
        .has_line = from->line != 0,
    };
    return fill_texts(request, from, frame);
}

/* Copies a thread of a crash with its registers and frames to the request. False when out of memory. */
static bool fill_trace(struct native_request *request, const struct sl_crash_thread *from, struct native_trace *trace)
{
    static const enum sl_opt_bool requesting[] = {[SL_REQUESTING_THREAD_UNKNOWN] = SL_BOOL_ABSENT,
                                                  [SL_REQUESTING_THREAD_NO] = SL_BOOL_FALSE,
                                                  [SL_REQUESTING_THREAD_YES] = SL_BOOL_TRUE};
    struct sl_arena *arena = request->arena;
    *trace = (struct native_trace){
        .thread_id = from->id,
        .has_thread_id = from->has_id,
        .thread_name = from->name,
        .is_requesting = requesting[from->requesting],
        /* + 1, so that arrays are never empty */
        .registers = SL_ARENA_ARRAY(arena, struct native_register, from->register_count + 1),
        .frames = SL_ARENA_ARRAY(arena, struct native_frame, from->frame_count + 1),
    };
    if (!trace->registers || !trace->frames)
        return false;
    for (size_t i = 0; i < from->register_count; i++)
        trace->registers[i] = (struct native_register){from->registers[i].name, from->registers[i].value};
    for (size_t i = 0; i < from->frame_count; i++)
        if (!fill_frame(request, &from->frames[i], &trace->frames[i]))
            return false;
    trace->register_count = (uint32_t)from->register_count;
    trace->frame_count = (uint32_t)from->frame_count;
    request->frame_count += from->frame_count;
    return true;
}

struct object_id crash_object_id(const struct sl_crash *crash, const struct sl_crash_module *module)
{
    return (struct object_id){
        .type = object_type_parse(sl_str(sl_format_name(crash->format))),
        .code_id = module->code_id,
        .code_file = module->code_file,
        .debug_file = module->debug_file,
        .debug_id = module->debug_id,
        .has_debug_id = module->has_debug_id,
        .arch = crash->system.arch,
    };
}

/* Copies a module of a crash to the request; a size of 0 is unknown. Modules of crashes have none of the members by which profilers name
 * uploaded symbols (`no_upload`). False when out of memory. */
static bool fill_module(struct native_request *request, const struct sl_crash *crash,
                        const struct sl_crash_module *from, struct native_module *module)
{
    static const struct native_upload no_upload;
    struct object_id *id = SL_ARENA_NEW(request->arena, struct object_id);
    if (!id)
        return false;
    *id = crash_object_id(crash, from);
    *module = (struct native_module){
        .image_address = from->address,
        .image_size = from->size,
        .has_image_size = from->size != 0,
        .id = id,
        .upload = &no_upload,
    };
    return true;
}

bool crash_fill_request(struct native_request *request, const struct sl_crash *crash)
{
    /* + 1, so that arrays are never empty */
    request->traces = SL_ARENA_ARRAY(request->arena, struct native_trace, crash->thread_count + 1);
    request->modules = SL_ARENA_ARRAY(request->arena, struct native_module, crash->module_count + 1);
    if (!request->traces || !request->modules)
        return false;
    for (size_t i = 0; i < crash->thread_count; i++)
        if (!fill_trace(request, &crash->threads[i], &request->traces[i]))
            return false;
    for (size_t i = 0; i < crash->module_count; i++)
        if (!fill_module(request, crash, &crash->modules[i], &request->modules[i]))
            return false;
    request->trace_count = crash->thread_count;
    request->module_count = crash->module_count;
    return native_prepare(request);
}
