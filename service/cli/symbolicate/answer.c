/* Answers to crash files and requests, from JSON. */
#include "cli/symbolicate/answer.h"

#include "apple/apple.h"
#include "base/json_fields.h"
#include "cli/cli.h"

static const struct sl_field frame_fields[] = {
    SL_FIELD(TEXT, false, answer_frame, trust, "trust"),
    SL_FIELD(HEX, false, answer_frame, address, "instruction_addr"),
    SL_FIELD(U64, false, answer_frame, index, "original_index"),
    SL_FIELD(HEX, false, answer_frame, symbol_address, "sym_addr"),
    SL_FIELD(HEX, false, answer_frame, line_start, "line_addr"),
    SL_FIELD(TEXT, false, answer_frame, package, "package"),
    SL_FIELD(TEXT, false, answer_frame, module, "module"),
    SL_FIELD(TEXT, false, answer_frame, function, "function"),
    SL_FIELD(TEXT, false, answer_frame, symbol, "symbol"),
    SL_FIELD(TEXT, false, answer_frame, filename, "filename"),
    SL_FIELD(TEXT, false, answer_frame, abs_path, "abs_path"),
    SL_FIELD(U64, false, answer_frame, line, "lineno"),
    SL_FIELD(U64, false, answer_frame, column, "colno"),
    SL_FIELD(TEXT, false, answer_frame, context_line, "context_line"),
    SL_FIELD_EACH(false, answer_frame, before, before_count, "pre_context", sl_fields_text),
    SL_FIELD_EACH(false, answer_frame, after, after_count, "post_context", sl_fields_text),
    SL_FIELDS_END,
};

static const struct sl_field thread_fields[] = {
    SL_FIELD(U64, false, answer_thread, id, "thread_id"),
    SL_FIELD(TEXT, false, answer_thread, name, "thread_name"),
    SL_FIELD(FLAG, false, answer_thread, requesting, "is_requesting"),
    SL_FIELD_ITEMS(answer_thread, frames, frame_count, "frames", frame_fields),
    SL_FIELDS_END,
};

static const struct sl_field outcome_fields[] = {
    SL_FIELD(TEXT, false, answer_outcome, status, "status"),
    SL_FIELD(TEXT, false, answer_outcome, details, "details"),
    SL_FIELDS_END,
};

static const struct sl_field candidate_fields[] = {
    SL_FIELD(TEXT, false, answer_candidate, location, "location"),
    SL_FIELD_PART(answer_candidate, download, "download", outcome_fields),
    SL_FIELD_PART(answer_candidate, debug, "debug", outcome_fields),
    SL_FIELD_PART(answer_candidate, unwind, "unwind", outcome_fields),
    SL_FIELDS_END,
};

static const struct sl_field module_fields[] = {
    SL_FIELD(HEX, false, answer_module, address, "image_addr"),
    SL_FIELD(U64, false, answer_module, size, "image_size"),
    SL_FIELD(TEXT, false, answer_module, arch, "arch"),
    SL_FIELD(TEXT, false, answer_module, code_file, "code_file"),
    SL_FIELD(TEXT, false, answer_module, code_id, "code_id"),
    SL_FIELD(TEXT, false, answer_module, debug_file, "debug_file"),
    SL_FIELD(TEXT, false, answer_module, debug_id, "debug_id"),
    SL_FIELD(TEXT, false, answer_module, debug_status, "debug_status"),
    SL_FIELD(TEXT, false, answer_module, unwind_status, "unwind_status"),
    SL_FIELD_ITEMS(answer_module, candidates, candidate_count, "candidates", candidate_fields),
    SL_FIELDS_END,
};

static const struct sl_field system_fields[] = {
    SL_FIELD(TEXT, false, answer, os_name, "os_name"),     SL_FIELD(TEXT, false, answer, os_version, "os_version"),
    SL_FIELD(TEXT, false, answer, os_build, "os_build"),   SL_FIELD(TEXT, false, answer, cpu_arch, "cpu_arch"),
    SL_FIELD(TEXT, false, answer, device, "device_model"), SL_FIELDS_END,
};

static const struct sl_field error_fields[] = {
    SL_FIELD(TEXT, false, answer_error, path, "abs_path"),
    SL_FIELD(TEXT, false, answer_error, id, "uuid"),
    SL_FIELD(TEXT, false, answer_error, type, "type"),
    SL_FIELDS_END,
};

static const struct sl_field exception_fields[] = {
    SL_FIELD(TEXT, false, answer_exception, module, "module"),
    SL_FIELD(TEXT, false, answer_exception, type, "type"),
    SL_FIELDS_END,
};

/* ---- what the crash was taken apart into ---- */

static const struct sl_field adjusted_fields[] = {
    SL_FIELD(HEX, false, answer_analysis, adjusted, "address"),
    SL_FIELD(HEX, false, answer_analysis, offset, "offset"),
    SL_FIELDS_END,
};

static const struct sl_field next_fields[] = {
    SL_FIELD(HEX, false, answer_analysis, next, "address"),
    SL_FIELDS_END,
};

static const struct sl_field access_fields[] = {
    SL_FIELD(HEX, false, answer_access, address, "address"),
    SL_FIELD(U64, false, answer_access, size, "size"),
    SL_FIELD(TEXT, false, answer_access, type, "access_type"),
    SL_FIELD(FLAG, false, answer_access, is_guard, "is_likely_guard_page"),
    SL_FIELDS_END,
};

static const struct sl_field flip_fields[] = {
    SL_FIELD(HEX, false, answer_flip, address, "address"),
    SL_FIELD(TEXT, false, answer_flip, source, "source_register"),
    SL_FIELD(RAW, false, answer_flip, confidence, "confidence"),
    SL_FIELDS_END,
};

static const struct sl_field analysis_fields[] = {
    SL_FIELD(TEXT, false, answer_analysis, instruction, "instruction"),
    SL_FIELD(FLAG, false, answer_analysis, is_stack_overflow, "is_likely_stack_overflow"),
    SL_FIELD_SAME("adjusted_address", adjusted_fields),
    SL_FIELD_SAME("instruction_pointer_update", next_fields),
    SL_FIELD_ITEMS(answer_analysis, accesses, access_count, "memory_accesses", access_fields),
    SL_FIELD_ITEMS(answer_analysis, flips, flip_count, "possible_bit_flips", flip_fields),
    SL_FIELD_EACH(false, answer_analysis, inconsistencies, inconsistency_count, "crash_inconsistencies",
                  sl_fields_text),
    SL_FIELDS_END,
};

static const struct sl_field detail_fields[] = {
    SL_FIELD_PART(answer, analysis, "crash_analysis", analysis_fields),
    SL_FIELDS_END,
};

/* ---- the whole ---- */

static const struct sl_field answer_fields[] = {
    SL_FIELD(TEXT, false, answer, status, "status"),
    SL_FIELD(TEXT, false, answer, message, "message"),
    SL_FIELD(TEXT, false, answer, detail, "detail"),
    SL_FIELD(U64, false, answer, timestamp, "timestamp"),
    SL_FIELD(U64, false, answer, signal, "signal"),
    SL_FIELD(TEXT, false, answer, reason, "crash_reason"),
    SL_FIELD(TEXT, false, answer, details, "crash_details"),
    SL_FIELD(TEXT, false, answer, assertion, "assertion"),
    SL_FIELD_SAME("system_info", system_fields),
    SL_FIELD_SAME("details", detail_fields),
    SL_FIELD_ITEMS(answer, threads, thread_count, "stacktraces", thread_fields),
    SL_FIELD_ITEMS(answer, modules, module_count, "modules", module_fields),
    SL_FIELD_ITEMS(answer, errors, error_count, "errors", error_fields),
    SL_FIELD_ITEMS(answer, exceptions, exception_count, "exceptions", exception_fields),
    SL_FIELDS_END,
};

bool answer_read(struct sl_str text, struct sl_arena *arena, struct answer *answer)
{
    struct sl_json j = sl_json(text, arena, false);
    *answer = (struct answer){.status = {NULL, 0}};
    sl_json_read_object(&j, answer_fields, answer);
    return sl_json_end(&j);
}

/* ---- what is asked of it ---- */

bool answer_frame_is_inline(const struct answer_thread *thread, size_t index)
{
    const struct answer_frame *frame = &thread->frames[index];
    return index + 1 < thread->frame_count && frame->index.set && frame[1].index.set &&
           frame->index.value == frame[1].index.value;
}

int64_t answer_exception_thread(const struct answer *answer)
{
    for (size_t t = answer->thread_count; t-- > 0;)
        if (!answer->threads[t].id.set && sl_str_equal(answer->threads[t].name, SL_STR(SL_APPLE_LAST_EXCEPTION)))
            return (int64_t)t;
    return ALL_THREADS;
}

int64_t answer_requesting_thread(const struct answer *answer)
{
    for (size_t t = 0; t < answer->thread_count; t++)
        if (answer->threads[t].requesting)
            return (int64_t)t;
    return ALL_THREADS;
}

int64_t answer_crashed_thread(const struct answer *answer)
{
    int64_t thread = answer_requesting_thread(answer);
    return thread == ALL_THREADS && answer->thread_count ? 0 : thread;
}

/* ---- repeated calls: f, g, f, g ... of a recursion without end is told in one line ---- */

enum { MOST_IN_CYCLE = 16, FEWEST_FOLDED = 32 };

static bool is_same_call(const struct answer_frame *a, const struct answer_frame *b)
{
    return a->address.set && b->address.set && a->address.value == b->address.value &&
           sl_str_equal(a->function, b->function) && a->line.value == b->line.value;
}

/* Whole cycles of `length` frames from `index` on that are the same as the one in front of it; in frames. */
static size_t repeated(const struct answer_thread *thread, size_t index, size_t length)
{
    size_t end = index;
    while (end < thread->frame_count && is_same_call(&thread->frames[end], &thread->frames[end - length]))
        end++;
    return (end - index) / length * length;
}

/* In groups of three digits. */
static void put_count(struct sl_buf *out, size_t count)
{
    if (count >= 1000) {
        put_count(out, count / 1000);
        sl_buf_printf(out, ",%03zu", count % 1000);
    } else {
        sl_buf_printf(out, "%zu", count);
    }
}

static void put_cycle(const struct answer_thread *thread, size_t index, size_t length, size_t count, struct sl_buf *out)
{
    sl_buf_cstr(out, "... ");
    put_count(out, count);
    sl_buf_cstr(out, " frames of ");
    for (size_t i = 0; i < length; i++) { /* callers first */
        const struct answer_frame *frame = &thread->frames[index - 1 - i];
        struct sl_str name = frame->function.size ? frame->function : frame->symbol;
        sl_buf_cstr(out, i ? " -> " : "");
        if (name.size)
            output_put_safe(out, name);
        else
            sl_buf_printf(out, "0x%llx", (unsigned long long)frame->address.value);
    }
    sl_buf_cstr(out, " repeat (");
    put_count(out, thread->frame_count);
    sl_buf_cstr(out, " in all) ...\n");
}

size_t answer_fold_cycle(const struct answer_thread *thread, size_t index, struct sl_buf *line)
{
    for (size_t length = 1; length <= MOST_IN_CYCLE && length <= index; length++) {
        size_t count = repeated(thread, index, length);
        if (count < FEWEST_FOLDED)
            continue;
        put_cycle(thread, index, length, count, line);
        return count;
    }
    return 0;
}
