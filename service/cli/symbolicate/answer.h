/* The answer to a crash file, read out of its JSON: what the formats for people show of it. Texts are views of the answer, or lie
 * in the arena; data NULL: absent. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

struct answer_number {
    bool set;
    uint64_t value;
};

struct answer_frame {
    struct sl_str trust, package, function, symbol, filename, abs_path, context_line;
    struct answer_number index, address, symbol_address, line, line_start;
    struct sl_str *before, *after; /* lines of source */
    size_t before_count, after_count;
};

struct answer_thread {
    struct answer_number id;
    struct sl_str name;
    bool requesting;
    struct answer_frame *frames;
    size_t frame_count;
};

struct answer_candidate {
    struct sl_str location, status;
};

struct answer_module {
    struct answer_number address, size;
    struct sl_str arch, code_file, debug_file, debug_id, debug_status, unwind_status;
    struct answer_candidate *candidates;
    size_t candidate_count;
};

struct answer {
    struct sl_str status, message, detail;
    struct sl_str reason, details, assertion, os_name, os_version, os_build, cpu_arch, device;
    struct answer_number timestamp, signal;
    struct answer_thread *threads;
    struct answer_module *modules;
    size_t thread_count, module_count;
};

/* False when it is no such answer, or out of memory. */
bool answer_read(struct sl_str text, struct sl_arena *arena, struct answer *answer);
