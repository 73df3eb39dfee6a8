/* Answers to crash files and requests, from JSON. */
#include "cli/symbolicate/answer.h"

#include "base/json_fields.h"

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
