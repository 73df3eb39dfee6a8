/* Deobfuscates exceptions, frames and classes. */
#include "api/jvm/jvm.h"
#include "base/grow.h"
#include "jvm/names.h"

struct mapping_run { /* state of map_trace */
    struct jvm_request *request;
    struct jvm_trace *result;
    struct sl_jvm_stack stack;          /* what earlier frames of the trace determine for later ones */
    struct sl_jvm_frames frames;        /* results of the current frame */
    struct sl_buf readable, parameters; /* of the current frame: its signature as in source code, its parameter types */
};

/* Concatenates two texts in the arena, with `between` unless the first is empty. Empty when out of memory. */
static struct sl_str joined(struct jvm_request *r, struct sl_str first, struct sl_str between, struct sl_str second)
{
    size_t gap = first.size ? between.size : 0, size = first.size + gap + second.size;
    char *text = sl_arena_alloc(r->arena, size + 1, 1);
    if (!text) {
        r->out_of_memory = true;
        return SL_STR("");
    }
    struct sl_str parts[] = {first, {between.data, gap}, second};
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; at += parts[i++].size)
        if (parts[i].size)
            memcpy(text + at, parts[i].data, parts[i].size);
    return (struct sl_str){text, size};
}

/* Replaces the names in `*exception` by the original ones if a mapping has the class. Returns the full class name, the original one if a
 * mapping has it. */
static struct sl_str map_exception(struct jvm_request *r, struct jvm_exception *exception)
{
    struct sl_str full = joined(r, exception->module, SL_STR("."), exception->type), original;
    if (!sl_jvm_stack_class(&r->mappers, full, &original))
        return full;
    const char *dot = original.size ? memrchr(original.data, '.', original.size) : NULL;
    size_t front = dot ? (size_t)(dot - original.data) : 0, skip = dot ? front + 1 : 0;
    exception->module = (struct sl_str){original.data, front};
    exception->type = (struct sl_str){original.data + skip, original.size - skip};
    return original;
}

/* Returns the least number of bytes that the frame takes in the answer: its texts, and about 64 for the keys. */
static uint64_t frame_size(const struct jvm_frame *frame)
{
    enum { KEYS = 64 };
    return KEYS + frame->function.size + frame->filename.size + frame->module.size + frame->abs_path.size +
           frame->signature.size;
}

/* Appends a frame to the result. If max_response_frames is reached, the frame is left out and `limited` is set, which is logged at the
 * end. If the answer would exceed its size limit, the frame is left out and counted as `omitted`, which the answer says. */
static void add_result(struct mapping_run *run, struct jvm_frame frame)
{
    struct jvm_request *r = run->request;
    struct jvm_trace *t = run->result;
    if (r->result_count >= r->config->max_response_frames) {
        r->limited = true;
    } else if (!sl_grow_in_arena(r->arena, &t->frames, &t->capacity, t->count + 1, sizeof *t->frames)) {
        r->out_of_memory = true;
    } else if (!answer_limit_take(r->limit, frame_size(&frame))) {
        r->limit->omitted++;
    } else {
        t->frames[t->count++] = frame;
        r->result_count++;
    }
}

/* Appends the frame as sent, with class, method, file and line from the mapping, which has the file name in two parts (`file`,
 * `suffix`). A frame whose class begins with the release's package becomes `in_app`, unless the request has set this. */
static void add_mapped(struct mapping_run *run, const struct jvm_frame *sent, const struct sl_jvm_frame *mapped)
{
    struct jvm_request *r = run->request;
    struct jvm_frame frame = *sent;
    frame.mapped = true;
    frame.module = mapped->class;
    frame.function = mapped->method;
    frame.line = (struct sl_opt_u64){mapped->has_line, mapped->line};
    frame.filename = frame.abs_path = joined(r, mapped->file, SL_STR(""), mapped->suffix);
    frame.synthesized = mapped->synthesized ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    if (r->release_package.data && frame.in_app == SL_BOOL_ABSENT && sl_str_starts(frame.module, r->release_package))
        frame.in_app = SL_BOOL_TRUE;
    add_result(run, frame);
}

/* Returns a copy of the frame. If its signature is a valid JVM descriptor, replaces it by a readable one with original names, and
 * sets `*translated`. */
static struct jvm_frame with_signature(struct mapping_run *run, const struct jvm_frame *sent, bool *translated)
{
    struct jvm_request *r = run->request;
    struct jvm_frame frame = *sent;
    sl_buf_clear(&run->readable);
    sl_buf_clear(&run->parameters);
    /* without mappings signatures stay as they are */
    *translated =
        sent->signature.data && r->mappers.count &&
        sl_jvm_signature(sent->signature, r->mappers.items, r->mappers.count, &run->readable, &run->parameters);
    r->out_of_memory |= run->readable.failed || run->parameters.failed;
    if (*translated)
        frame.signature = joined(r, sl_buf_view(&run->readable), SL_STR(""), SL_STR("")); /* a copy in the arena */
    return frame;
}

/* Appends the frames that one frame of the request stands for, several if methods were inlined. Without a line number the method is
 * found by the parameter types in the signature. With a line number, methods that the compiler has synthesized are left out. A frame
 * whose class no mapping has is kept, only its signature is translated. */
static void map_one(struct mapping_run *run, const struct jvm_frame *sent)
{
    bool translated;
    struct jvm_frame frame = with_signature(run, sent, &translated);
    struct sl_jvm_query query = {.class = sent->module, .method = sent->function, .line = (uint32_t)sent->line.value};
    if (!sent->line.set && translated) {
        query.by = SL_JVM_BY_PARAMETERS;
        query.parameters = sl_buf_view(&run->parameters);
        query.parameters.data =
            query.parameters.data ? query.parameters.data : ""; /* the method has none; NULL would mean "not known" */
        query.descriptor = sent->signature;
    }
    run->frames.count = 0;
    enum sl_jvm_answer answer = sl_jvm_stack_frame(&run->stack, &query, &run->frames);
    run->request->out_of_memory |= run->frames.busy;
    run->request->limited |= run->frames.limited;
    if (answer == SL_JVM_UNKNOWN)
        add_result(run, frame);
    /* none if a rule of the mapping removes the frame, or if it is part of its caller (SL_JVM_OUTLINE) */
    for (size_t i = 0; i < run->frames.count; i++)
        if (!sent->line.set || !run->frames.items[i].synthesized)
            add_mapped(run, &frame, &run->frames.items[i]);
}

/* Reverses the frames of a trace. Traces are mapped from the innermost frame outwards, as results depend on earlier frames; this
 * restores the order of a request that has the caller first. */
static void jvm_reverse(struct jvm_trace *trace)
{
    for (size_t i = 0, j = trace->count; i + 1 < j; i++) {
        struct jvm_frame frame = trace->frames[i];
        trace->frames[i] = trace->frames[--j];
        trace->frames[j] = frame;
    }
}

/* Maps the exception and the frames of one trace. The stack is told the class that was thrown, as mappings may have rules that
 * remove frames of certain exceptions. At the answer's limit the other frames are counted as omitted. */
static void map_trace(struct jvm_request *r, const struct jvm_trace *sent, struct jvm_trace *result)
{
    struct mapping_run run = {.request = r, .result = result};
    struct sl_str thrown = {NULL, 0};
    result->exception = sent->exception;
    if (result->exception.type.data)
        thrown = map_exception(r, &result->exception);
    run.frames = (struct sl_jvm_frames){.arena = r->arena, .limit = r->config->max_response_frames};
    r->out_of_memory |= !sl_jvm_stack_begin(&run.stack, &r->mappers, thrown, r->arena);
    for (size_t i = 0; i < sent->count && !r->out_of_memory; i++) {
        if (!answer_limit_take(r->limit, 0)) { /* 0 bytes: only asks if the limit is reached */
            r->limit->omitted += sent->count - i;
            break;
        }
        map_one(&run, &sent->frames[r->callee_first ? i : sent->count - 1 - i]);
    }
    if (!r->callee_first)
        jvm_reverse(result);
    sl_buf_free(&run.readable);
    sl_buf_free(&run.parameters);
}

void jvm_map(struct jvm_request *r)
{
    r->results = SL_ARENA_ARRAY(r->arena, struct jvm_trace, r->trace_count + 1);
    r->mapped = SL_ARENA_ARRAY(r->arena, struct jvm_exception, r->exception_count + 1);
    r->out_of_memory |= !r->results || !r->mapped;
    for (size_t i = 0; i < r->exception_count && !r->out_of_memory; i++) {
        r->mapped[i] = r->exceptions[i];
        map_exception(r, &r->mapped[i]);
    }
    for (size_t i = 0; i < r->trace_count && !r->out_of_memory; i++)
        map_trace(r, &r->traces[i], &r->results[i]);
    for (size_t i = 0; i < r->class_count; i++)
        if (!sl_jvm_stack_class(&r->mappers, r->classes[i].name, &r->classes[i].original))
            r->classes[i].original.data = NULL;
}
