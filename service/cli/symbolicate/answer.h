/* The answer to a crash file or a request, read out of its JSON: what the formats for people show of it. Texts are views of the answer, or lie
 * in the arena; data NULL: absent. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/json_fields.h"

struct answer_frame {
    struct sl_str trust, package, module, function, symbol, filename, abs_path, context_line;
    struct sl_opt_u64 index, address, symbol_address, line, column, line_start;
    struct sl_str *before, *after; /* lines of source */
    size_t before_count, after_count;
};

struct answer_thread {
    struct sl_opt_u64 id;
    struct sl_str name;
    bool requesting;
    struct answer_frame *frames;
    size_t frame_count;
};

struct answer_outcome { /* data NULL: it was not tried */
    struct sl_str status, details;
};

struct answer_candidate {
    struct sl_str location;
    struct answer_outcome download, debug, unwind;
};

struct answer_module {
    struct sl_opt_u64 address, size;
    struct sl_str arch, code_file, code_id, debug_file, debug_id, debug_status, unwind_status;
    struct answer_candidate *candidates;
    size_t candidate_count;
};

struct answer_error { /* of JavaScript by the script's path, of a JVM by its mapping's id */
    struct sl_str path, id, type;
};

struct answer_exception {
    struct sl_str module, type;
};

struct answer_access {
    struct sl_opt_u64 address, size;
    struct sl_str type;
    bool is_guard;
};

struct answer_flip {
    struct sl_opt_u64 address;
    struct sl_str source, confidence; /* a number as it is written */
};

struct answer_analysis { /* of the instruction that crashed */
    struct sl_str instruction;
    struct sl_opt_u64 adjusted, offset, next;
    bool is_stack_overflow;
    struct answer_access *accesses;
    struct answer_flip *flips;
    struct sl_str *inconsistencies;
    size_t access_count, flip_count, inconsistency_count;
};

struct answer {
    struct sl_str status, message, detail;
    struct sl_str reason, details, assertion, os_name, os_version, os_build, cpu_arch, device;
    struct sl_opt_u64 timestamp, signal;
    struct answer_analysis analysis;
    struct answer_thread *threads;
    struct answer_module *modules;
    struct answer_error *errors;
    struct answer_exception *exceptions;
    size_t thread_count, module_count, error_count, exception_count;
};

/* The name of its function, however it is known; data NULL: it is not. */
static inline struct sl_str answer_frame_name(const struct answer_frame *frame)
{
    return frame->function.data ? frame->function : frame->symbol;
}

/* Whether the next frame is the same call: this one was inlined into it. */
bool answer_frame_is_inline(const struct answer_thread *thread, size_t index);

enum { ALL_THREADS = -1 }; /* instead of the index of one, or none */

/* Where the last exception was thrown, of reports of Apple's; ALL_THREADS when they do not say. */
int64_t answer_exception_thread(const struct answer *answer);
/* The thread that crashed, or that the dump was asked for in; ALL_THREADS when there is none. */
int64_t answer_requesting_thread(const struct answer *answer);
/* That one, else the first; ALL_THREADS when there is none. */
int64_t answer_crashed_thread(const struct answer *answer);

/* The number of frames from `index` on that only repeat a cycle of calls in front of it, and a line that says so; 0: none, and no
 * line, also when there are too few to leave out. Asked for each frame that is printed, it takes time in proportion to them. */
size_t answer_fold_cycle(const struct answer_thread *thread, size_t index, struct sl_buf *line);

/* False when it is no such answer, or out of memory. */
bool answer_read(struct sl_str text, struct sl_arena *arena, struct answer *answer);
