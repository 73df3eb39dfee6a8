/* Answers to crash files and requests, from JSON. */
#include "cli/symbolicate/answer.h"

#include <stddef.h>

#include "base/grow.h"
#include "base/json.h"

struct member { /* of a JSON object, and where it goes */
    struct sl_str key;
    size_t offset;
    enum { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_HEX, MEMBER_BOOL, MEMBER_READ } type;
    bool (*read)(struct sl_json *j, void *out); /* false: out of memory, or the reader has failed */
};

#define MEMBER(kind, type, field, key)                                                                                 \
    {                                                                                                                  \
        SL_STR(key), offsetof(struct type, field), MEMBER_##kind, NULL                                                 \
    }
#define READ(type, field, key, function)                                                                               \
    {                                                                                                                  \
        SL_STR(key), offsetof(struct type, field), MEMBER_READ, function                                               \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        {NULL, 0}, 0, MEMBER_TEXT, NULL                                                                                \
    }

/* ---- values ---- */

static void take_hex(struct sl_json *j, struct answer_number *number)
{
    struct sl_str text;
    if (!sl_json_text(j, &text))
        return;
    number->value = 0;
    number->set = text.size > 2 && text.size <= 18;
    for (size_t i = 2; i < text.size && number->set; i++) {
        char c = text.data[i];
        bool is_digit = c >= '0' && c <= '9';
        number->set = is_digit || (c >= 'a' && c <= 'f');
        number->value = number->value << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
}

static bool take(struct sl_json *j, const struct member *member, void *out)
{
    void *at = (char *)out + member->offset;
    struct answer_number *number = at;
    switch (member->type) {
    case MEMBER_TEXT: sl_json_text(j, at); return true;
    case MEMBER_NUMBER: number->set = sl_json_u64(j, &number->value); return true;
    case MEMBER_HEX: take_hex(j, at); return true;
    case MEMBER_BOOL: sl_json_bool(j, at); return true;
    case MEMBER_READ: break;
    }
    return member->read(j, out);
}

static bool take_object(struct sl_json *j, const struct member *members, void *out)
{
    struct sl_str key;
    if (!sl_json_object(j))
        return !j->failed;
    while (sl_json_next(j, &key)) {
        const struct member *member = members;
        while (member->key.data && !sl_str_equal(member->key, key))
            member++;
        if (!member->key.data)
            sl_json_skip(j);
        else if (!take(j, member, out))
            return false;
    }
    return !j->failed;
}

/* The elements of an array, each an object. */
static bool take_objects(struct sl_json *j, const struct member *members, size_t size, void *items, size_t *count)
{
    struct sl_arena_array array = {.arena = j->arena, .item = size};
    void *item = NULL;
    struct sl_str key;
    if (!sl_json_array(j))
        return !j->failed;
    while (sl_json_next(j, &key))
        if (!(item = sl_arena_array_add(&array)) || !take_object(j, members, item)) {
            sl_arena_array_drop(&array);
            return false;
        }
    *count = array.count;
    return (*(void **)items = sl_arena_array_keep(&array)) && !j->failed;
}

static bool take_texts(struct sl_json *j, struct sl_str **texts, size_t *count)
{
    struct sl_str key;
    size_t capacity = 0;
    if (!sl_json_array(j))
        return !j->failed;
    while (sl_json_next(j, &key)) {
        if (!sl_grow_in_arena(j->arena, texts, &capacity, *count + 1, sizeof **texts))
            return false;
        (*texts)[*count] = (struct sl_str){"", 0};
        sl_json_text(j, &(*texts)[*count]);
        ++*count;
    }
    return !j->failed;
}

/* ---- what an answer is made of ---- */

static bool answer_read_before(struct sl_json *j, void *out)
{
    struct answer_frame *frame = out;
    return take_texts(j, &frame->before, &frame->before_count);
}

static bool answer_read_after(struct sl_json *j, void *out)
{
    struct answer_frame *frame = out;
    return take_texts(j, &frame->after, &frame->after_count);
}

static const struct member frame_members[] = {
    MEMBER(TEXT, answer_frame, trust, "trust"),
    MEMBER(HEX, answer_frame, address, "instruction_addr"),
    MEMBER(NUMBER, answer_frame, index, "original_index"),
    MEMBER(HEX, answer_frame, symbol_address, "sym_addr"),
    MEMBER(HEX, answer_frame, line_start, "line_addr"),
    MEMBER(TEXT, answer_frame, package, "package"),
    MEMBER(TEXT, answer_frame, module, "module"),
    MEMBER(TEXT, answer_frame, function, "function"),
    MEMBER(TEXT, answer_frame, symbol, "symbol"),
    MEMBER(TEXT, answer_frame, filename, "filename"),
    MEMBER(TEXT, answer_frame, abs_path, "abs_path"),
    MEMBER(NUMBER, answer_frame, line, "lineno"),
    MEMBER(NUMBER, answer_frame, column, "colno"),
    MEMBER(TEXT, answer_frame, context_line, "context_line"),
    READ(answer_frame, before, "pre_context", answer_read_before),
    READ(answer_frame, after, "post_context", answer_read_after),
    END,
};

static bool answer_read_frames(struct sl_json *j, void *out)
{
    struct answer_thread *thread = out;
    return take_objects(j, frame_members, sizeof *thread->frames, &thread->frames, &thread->frame_count);
}

static const struct member thread_members[] = {
    MEMBER(NUMBER, answer_thread, id, "thread_id"),
    MEMBER(TEXT, answer_thread, name, "thread_name"),
    MEMBER(BOOL, answer_thread, requesting, "is_requesting"),
    READ(answer_thread, frames, "frames", answer_read_frames),
    END,
};

static bool answer_read_threads(struct sl_json *j, void *out)
{
    struct answer *answer = out;
    return take_objects(j, thread_members, sizeof *answer->threads, &answer->threads, &answer->thread_count);
}

static bool answer_read_download(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(TEXT, answer_candidate, download.status, "status"),
                                            MEMBER(TEXT, answer_candidate, download.details, "details"), END};
    return take_object(j, members, out);
}

static bool answer_read_debug(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(TEXT, answer_candidate, debug.status, "status"),
                                            MEMBER(TEXT, answer_candidate, debug.details, "details"), END};
    return take_object(j, members, out);
}

static bool answer_read_unwind(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(TEXT, answer_candidate, unwind.status, "status"),
                                            MEMBER(TEXT, answer_candidate, unwind.details, "details"), END};
    return take_object(j, members, out);
}

static const struct member candidate_members[] = {
    MEMBER(TEXT, answer_candidate, location, "location"),
    READ(answer_candidate, download, "download", answer_read_download),
    READ(answer_candidate, debug, "debug", answer_read_debug),
    READ(answer_candidate, unwind, "unwind", answer_read_unwind),
    END,
};

static bool answer_read_candidates(struct sl_json *j, void *out)
{
    struct answer_module *module = out;
    return take_objects(j, candidate_members, sizeof *module->candidates, &module->candidates,
                        &module->candidate_count);
}

static const struct member module_members[] = {
    MEMBER(HEX, answer_module, address, "image_addr"),
    MEMBER(NUMBER, answer_module, size, "image_size"),
    MEMBER(TEXT, answer_module, arch, "arch"),
    MEMBER(TEXT, answer_module, code_file, "code_file"),
    MEMBER(TEXT, answer_module, code_id, "code_id"),
    MEMBER(TEXT, answer_module, debug_file, "debug_file"),
    MEMBER(TEXT, answer_module, debug_id, "debug_id"),
    MEMBER(TEXT, answer_module, debug_status, "debug_status"),
    MEMBER(TEXT, answer_module, unwind_status, "unwind_status"),
    READ(answer_module, candidates, "candidates", answer_read_candidates),
    END,
};

static bool answer_read_modules(struct sl_json *j, void *out)
{
    struct answer *answer = out;
    return take_objects(j, module_members, sizeof *answer->modules, &answer->modules, &answer->module_count);
}

static bool answer_read_system(struct sl_json *j, void *out)
{
    static const struct member members[] = {
        MEMBER(TEXT, answer, os_name, "os_name"),     MEMBER(TEXT, answer, os_version, "os_version"),
        MEMBER(TEXT, answer, os_build, "os_build"),   MEMBER(TEXT, answer, cpu_arch, "cpu_arch"),
        MEMBER(TEXT, answer, device, "device_model"), END,
    };
    return take_object(j, members, out);
}

static bool answer_read_errors(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(TEXT, answer_error, path, "abs_path"),
                                            MEMBER(TEXT, answer_error, id, "uuid"),
                                            MEMBER(TEXT, answer_error, type, "type"), END};
    struct answer *answer = out;
    return take_objects(j, members, sizeof *answer->errors, &answer->errors, &answer->error_count);
}

static bool answer_read_exceptions(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(TEXT, answer_exception, module, "module"),
                                            MEMBER(TEXT, answer_exception, type, "type"), END};
    struct answer *answer = out;
    return take_objects(j, members, sizeof *answer->exceptions, &answer->exceptions, &answer->exception_count);
}

/* ---- what the crash was taken apart into ---- */

static bool answer_read_adjusted(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(HEX, answer_analysis, adjusted, "address"),
                                            MEMBER(HEX, answer_analysis, offset, "offset"), END};
    return take_object(j, members, out);
}

static bool answer_read_next(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(HEX, answer_analysis, next, "address"), END};
    return take_object(j, members, out);
}

static bool answer_read_accesses(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(HEX, answer_access, address, "address"),
                                            MEMBER(NUMBER, answer_access, size, "size"),
                                            MEMBER(TEXT, answer_access, type, "access_type"),
                                            MEMBER(BOOL, answer_access, is_guard, "is_likely_guard_page"), END};
    struct answer_analysis *analysis = out;
    return take_objects(j, members, sizeof *analysis->accesses, &analysis->accesses, &analysis->access_count);
}

static bool answer_read_confidence(struct sl_json *j, void *out)
{
    struct answer_flip *flip = out;
    return sl_json_value(j, &flip->confidence);
}

static bool answer_read_flips(struct sl_json *j, void *out)
{
    static const struct member members[] = {MEMBER(HEX, answer_flip, address, "address"),
                                            MEMBER(TEXT, answer_flip, source, "source_register"),
                                            READ(answer_flip, confidence, "confidence", answer_read_confidence), END};
    struct answer_analysis *analysis = out;
    return take_objects(j, members, sizeof *analysis->flips, &analysis->flips, &analysis->flip_count);
}

static bool answer_read_inconsistencies(struct sl_json *j, void *out)
{
    struct answer_analysis *analysis = out;
    return take_texts(j, &analysis->inconsistencies, &analysis->inconsistency_count);
}

static bool answer_read_analysis(struct sl_json *j, void *out)
{
    static const struct member members[] = {
        MEMBER(TEXT, answer_analysis, instruction, "instruction"),
        MEMBER(BOOL, answer_analysis, is_stack_overflow, "is_likely_stack_overflow"),
        READ(answer_analysis, adjusted, "adjusted_address", answer_read_adjusted),
        READ(answer_analysis, next, "instruction_pointer_update", answer_read_next),
        READ(answer_analysis, accesses, "memory_accesses", answer_read_accesses),
        READ(answer_analysis, flips, "possible_bit_flips", answer_read_flips),
        READ(answer_analysis, inconsistencies, "crash_inconsistencies", answer_read_inconsistencies),
        END,
    };
    struct answer *answer = out;
    return take_object(j, members, &answer->analysis);
}

static bool answer_read_details(struct sl_json *j, void *out)
{
    static const struct member members[] = {READ(answer, analysis, "crash_analysis", answer_read_analysis), END};
    return take_object(j, members, out);
}

/* ---- the whole ---- */

static const struct member answer_members[] = {
    MEMBER(TEXT, answer, status, "status"),
    MEMBER(TEXT, answer, message, "message"),
    MEMBER(TEXT, answer, detail, "detail"),
    MEMBER(NUMBER, answer, timestamp, "timestamp"),
    MEMBER(NUMBER, answer, signal, "signal"),
    MEMBER(TEXT, answer, reason, "crash_reason"),
    MEMBER(TEXT, answer, details, "crash_details"),
    MEMBER(TEXT, answer, assertion, "assertion"),
    READ(answer, os_name, "system_info", answer_read_system),
    READ(answer, analysis, "details", answer_read_details),
    READ(answer, threads, "stacktraces", answer_read_threads),
    READ(answer, modules, "modules", answer_read_modules),
    READ(answer, errors, "errors", answer_read_errors),
    READ(answer, exceptions, "exceptions", answer_read_exceptions),
    END,
};

bool answer_read(struct sl_str text, struct sl_arena *arena, struct answer *answer)
{
    struct sl_json j = sl_json(text, arena, false);
    *answer = (struct answer){.status = {NULL, 0}};
    return take_object(&j, answer_members, answer) && sl_json_end(&j);
}
