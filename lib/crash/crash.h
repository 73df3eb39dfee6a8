/* A crash as read from a file (lib/apple, lib/minidump): what the file says about the crash and the system, and the threads and modules to
 * symbolicate.
 *
 * It lies in the arena that was passed to the reader. Texts are UTF-8 and lie in the arena or in the input; data NULL means unknown. */
#pragma once

#include "object/object.h"

struct sl_crash_frame {
    uint64_t address;
    struct sl_str package; /* the image's name in the report */
    /* Location as the report itself has it; used if the frame cannot be symbolicated. */
    struct sl_str function, filename;
    uint32_t symbol_offset; /* 1 + offset of the address in the function; 0 = unknown */
    uint32_t line : 28;     /* 0 = unknown */
    uint32_t trust : 3;     /* how the frame was found: enum sl_trust of unwind/walk.h; 0 = unknown */
    uint32_t is_exact : 1;  /* not a return address: the thread was interrupted there, or entered the kernel */
};
enum { SL_CRASH_MAX_LINE = (1 << 28) - 1 };

/* Records that the function begins `offset` bytes before the frame's address. Ignores offsets of 4 GiB and more. */
static inline void sl_crash_set_symbol(struct sl_crash_frame *frame, uint64_t offset)
{
    if (offset <= frame->address && offset < UINT32_MAX)
        frame->symbol_offset = (uint32_t)offset + 1;
}

/* Returns the start address of the frame's function; 0 = unknown. */
static inline uint64_t sl_crash_symbol_address(const struct sl_crash_frame *frame)
{
    return frame->symbol_offset ? frame->address - (frame->symbol_offset - 1) : 0;
}

struct sl_crash_register {
    struct sl_str name;
    uint64_t value;
};

enum sl_requesting_thread {
    SL_REQUESTING_THREAD_UNKNOWN, /* the file does not say which thread requested the dump */
    SL_REQUESTING_THREAD_NO,
    SL_REQUESTING_THREAD_YES,
};

struct sl_crash_thread {
    uint64_t id; /* valid if has_id */
    bool has_id;
    enum sl_requesting_thread requesting;
    struct sl_str name;
    struct sl_crash_register *registers; /* sorted by name, without duplicates */
    struct sl_crash_frame *frames;       /* callee first */
    size_t register_count, frame_count;
};

struct sl_crash_module {
    uint64_t address, size; /* size 0 = unknown */
    struct sl_str code_file, debug_file;
    struct sl_str code_id; /* lower-case hex */
    struct sl_str version; /* "1.2.3.4" */
    struct sl_debug_id debug_id;
    bool has_debug_id;
    size_t list_index; /* minidumps: index in the file's module list */
};

/* True if the module has a code id or a debug id that is not zero. */
bool sl_crash_has_id(const struct sl_crash_module *module);

struct sl_crash_system { /* empty texts: unknown */
    struct sl_str os_name, os_version, os_build, device_model;
    enum sl_arch arch;
};

struct sl_crash_extra { /* additional data of the file, as JSON */
    struct sl_str name, json;
};

struct sl_crash {
    struct sl_crash_system system;
    bool crashed, has_timestamp;
    int64_t timestamp;                        /* seconds since 1970, UTC; valid if has_timestamp */
    struct sl_str reason, details, assertion; /* human-readable */
    enum sl_format format;                    /* object format of all modules */
    struct sl_crash_thread *threads;
    struct sl_crash_module *modules;
    struct sl_crash_extra *extras;
    struct sl_crash_extra *members; /* further data, which becomes members of the top level of a response */
    size_t thread_count, module_count, extra_count, member_count;
};

/* Sets the thread's registers, sorted by name; of several with the same name the last one is used. Returns false if
 * out of memory. */
bool sl_crash_set_registers(struct sl_crash_thread *thread, const struct sl_crash_register *registers, size_t count,
                            struct sl_arena *arena);

/* Returns the last component of a path with `/` or `\` separators: the file may come from any system. */
struct sl_str sl_crash_file_name(struct sl_str path);
