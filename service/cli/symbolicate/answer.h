/* The answer to a crash file or a request, parsed from its JSON: the members that the text formats show. Texts are views of the answer,
 * or lie in the arena; data NULL: absent. */
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

struct answer_outcome { /* of a download, or of reading debug or unwind information; status.data NULL: not tried */
    struct sl_str status, details;
};

struct answer_candidate { /* a file that was searched for a module */
    struct sl_str location;
    struct answer_outcome download, debug, unwind;
};

struct answer_module {
    struct sl_opt_u64 address, size;
    struct sl_str arch, code_file, code_id, debug_file, debug_id, debug_status, unwind_status;
    struct answer_candidate *candidates;
    size_t candidate_count;
};

struct answer_error { /* a script (`path`, JavaScript) or mapping (`id`, JVM) that could not be used; `type` says why */
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
    struct sl_str source, confidence; /* confidence: a number, as text */
};

struct answer_analysis { /* analysis of the crashing instruction */
    struct sl_str instruction;
    struct sl_opt_u64 adjusted, offset, next;
    bool is_stack_overflow;
    struct answer_access *accesses;
    struct answer_flip *flips;
    struct sl_str *inconsistencies;
    size_t access_count, flip_count, inconsistency_count;
};

struct symbolicated_answer {
    struct sl_str status, message, detail;
    struct sl_str reason, details, assertion, os_name, os_version, os_build, cpu_arch, device;
    struct sl_opt_u64 timestamp, signal;
    struct answer_analysis analysis;
    /* cores: the module of the instruction that crashed, if its file was not found */
    struct answer_module missing_code;
    struct answer_thread *threads;
    struct answer_module *modules;
    struct answer_error *errors;
    struct answer_exception *exceptions;
    size_t thread_count, module_count, error_count, exception_count;
};

/* Returns the function's name, or else its symbol; data NULL: neither is known. */
static inline struct sl_str answer_frame_name(const struct answer_frame *frame)
{
    return frame->function.data ? frame->function : frame->symbol;
}

/* True if the frame was inlined into the next one: both belong to one physical frame. */
bool answer_frame_is_inline(const struct answer_thread *thread, size_t index);

enum { ALL_THREADS = -1 }; /* instead of the index of one thread */

/* Returns the index of the thread that holds the stack of the last exception (Apple's reports); ALL_THREADS when there is
 * none. */
int64_t answer_exception_thread(const struct symbolicated_answer *answer);
/* Returns the index of the thread that crashed or requested the dump; ALL_THREADS when there is none. */
int64_t answer_requesting_thread(const struct symbolicated_answer *answer);
/* Returns the index of the thread that crashed or requested the dump, or else of the first thread; ALL_THREADS when there are no
 * threads. */
int64_t answer_crashed_thread(const struct symbolicated_answer *answer);

/* Folds recursion: returns how many frames from `index` on repeat the cycle of calls before them, f, g, f, g, and appends a line that says
 * so. 0 and no line: there is no cycle of up to 16 functions, or it repeats fewer than 32 frames. May be called for each frame that is
 * printed: all calls together take time linear in the number of frames. */
size_t answer_fold_cycle(const struct answer_thread *thread, size_t index, struct sl_buf *line);

/* Parses the JSON of an answer. False when it is malformed, or out of memory. */
bool answer_read(struct sl_str text, struct sl_arena *arena, struct symbolicated_answer *answer);
