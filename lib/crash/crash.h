/* A crash as a file describes it, Apple's report or a minidump: what an answer says of it at its top, and the threads and
 * modules that are to be symbolicated. Readers fill it (lib/apple, lib/minidump) and know nothing of what becomes of it.
 *
 * It lies in the arena it was read with; texts are UTF-8, there or in the input. A text whose data is NULL is not known. */
#pragma once

#include "object/object.h"

struct sl_crash_frame {
    uint64_t address;
    struct sl_str package; /* the image's name as the report has it */
    /* What the report itself says of the place, for frames whose look-up fails. */
    struct sl_str function, filename;
    uint32_t symbol_offset; /* 1 + how far the address is behind the function's beginning; 0 = not known */
    uint32_t line : 28;     /* 0 = not known */
    uint32_t trust : 3;     /* how it was found: enum sl_trust of unwind/walk.h; 0 = not said */
    uint32_t is_exact : 1;  /* a signal interrupted it: the address is no return address */
};
enum { SL_CRASH_MAX_LINE = (1 << 28) - 1 };

/* The function begins `offset` bytes before the frame's address. Farther than 4 GiB is no function. */
static inline void sl_crash_set_symbol(struct sl_crash_frame *frame, uint64_t offset)
{
    if (offset <= frame->address && offset < UINT32_MAX)
        frame->symbol_offset = (uint32_t)offset + 1;
}

/* Where the frame's function begins; 0 = not known. */
static inline uint64_t sl_crash_symbol_address(const struct sl_crash_frame *frame)
{
    return frame->symbol_offset ? frame->address - (frame->symbol_offset - 1) : 0;
}

struct sl_crash_register {
    struct sl_str name;
    uint64_t value;
};

enum sl_requesting {
    SL_REQUESTING_UNKNOWN, /* nobody knows which thread it was */
    SL_REQUESTING_NO,
    SL_REQUESTING_YES,
};

struct sl_crash_thread {
    uint64_t id; /* when has_id */
    bool has_id;
    enum sl_requesting requesting;
    struct sl_str name;
    struct sl_crash_register *registers; /* sorted by name, each once */
    struct sl_crash_frame *frames;       /* callee first */
    size_t register_count, frame_count;
};

struct sl_crash_module {
    uint64_t address, size; /* size 0 = not known */
    struct sl_str code_file, debug_file;
    struct sl_str code_id; /* lower-case hex */
    struct sl_str version; /* "1.2.3.4" */
    struct sl_debug_id debug_id;
    bool has_debug_id;
    size_t place; /* minidumps: in the file's list */
};

/* Whether the module has a code id or a debug id that names something. */
bool sl_crash_has_id(const struct sl_crash_module *module);

struct sl_crash_system { /* empty texts: not known */
    struct sl_str os_name, os_version, os_build, device_model;
    enum sl_arch arch;
};

struct sl_crash_extra { /* something more that the file tells, as JSON */
    struct sl_str name, json;
};

struct sl_crash {
    struct sl_crash_system system;
    bool crashed, has_timestamp;
    int64_t timestamp;                        /* seconds since 1970, UTC; when has_timestamp */
    struct sl_str reason, details, assertion; /* in words */
    enum sl_format format;                    /* of all modules */
    struct sl_crash_thread *threads;
    struct sl_crash_module *modules;
    struct sl_crash_extra *extras;
    size_t thread_count, module_count, extra_count;
};

/* Gives the thread these registers, sorted by name; of those of the same name the last one. False when out of memory. */
bool sl_crash_set_registers(struct sl_crash_thread *thread, const struct sl_crash_register *registers, size_t count,
                            struct sl_arena *arena);

/* The last component of a path of any system, which a crash file may come from. */
struct sl_str sl_crash_file_name(struct sl_str path);
