/* Minidumps: what a process was at the moment it crashed, as Windows, Breakpad and Crashpad write it (minidumpapiset.h of the
 * Windows SDK; minidump_format.h of Breakpad; minidump_extensions.h of Crashpad).
 *
 *     header ──▶ directory ──▶ streams: lists of threads, modules and memory, the exception, the system ...
 *
 * Reading gives a `struct sl_crash` whose threads have no frames yet, and what is needed to walk them: the registers a thread
 * starts with and the memory its stack is in. Each stream stands alone, so a truncated file gives what is left of it; only the
 * system and the list of threads must be there. Everything points into the file or lies in the arena, and is in proportion to
 * the file whatever that says: what several entries share is read for as many of them as its size is worth.
 *
 * The streams with command line, environment and auxiliary vector hold secrets and are not read. */
#pragma once

#include "crash/crash.h"
#include "unwind/walk.h"

enum sl_minidump_os {
    SL_MINIDUMP_OTHER,
    SL_MINIDUMP_WINDOWS,
    SL_MINIDUMP_MACOS,
    SL_MINIDUMP_IOS,
    SL_MINIDUMP_LINUX,
    SL_MINIDUMP_SOLARIS,
    SL_MINIDUMP_ANDROID,
    SL_MINIDUMP_PS3,
    SL_MINIDUMP_NACL,
};

struct sl_minidump_stream {
    uint32_t type;
    uint32_t offset, size; /* as the directory has them, which may be outside of the file */
    struct sl_bytes bytes; /* data NULL: outside */
};

struct sl_minidump_memory {
    uint64_t address;
    struct sl_bytes bytes; /* not empty */
};

struct sl_minidump_thread { /* beside that of sl_crash */
    struct sl_bytes context;
    uint32_t cpu;              /* whose record `context` is: the dump's, but as sl_minidump_enter_wow64() has it */
    enum sl_cpu_family family; /* the same */
    uint64_t environment;      /* of Windows: the thread's environment block (TEB) */
    struct sl_minidump_memory stack;      /* no bytes: none */
    bool is_writer;                       /* it wrote the dump */
    bool is_walked;                       /* else it has no frames: no registers, or it is the writer */
    const struct sl_registers *registers; /* of its frames, when whoever walked it kept them */
};

struct sl_minidump_unloaded { /* a module that was there before */
    uint64_t address, size;
    uint32_t timestamp;
    struct sl_str name;
};

struct sl_minidump_annotation {
    struct sl_str module; /* data NULL: of the process */
    struct sl_str name, value;
};

struct sl_minidump_mapping { /* a line of /proc/self/maps */
    uint64_t begin, end;     /* end > begin */
    struct sl_str access;    /* "r-xp" */
    struct sl_str path;      /* may be empty */
};

struct sl_minidump_count { /* a list of which only the length counts here */
    bool known;
    uint64_t count;
};

struct sl_minidump {
    struct sl_crash crash; /* threads without frames; modules ascending by address and end */
    struct sl_bytes bytes;
    bool big_endian;
    bool is_microdump; /* `bytes` is what was made of it */
    enum sl_minidump_os os;
    const char *unread_processor; /* the name of one whose registers and stacks are not read; NULL: they are */
    uint16_t cpu;                 /* PROCESSOR_ARCHITECTURE_*, and Breakpad's from 0x8001 */
    uint32_t platform;            /* VER_PLATFORM_*, and Breakpad's from 0x8101 */
    enum sl_cpu_family family;
    struct sl_str os_text, cpu_text; /* "5.1.2600 Service Pack 2", "GenuineIntel family 6 model 13 stepping 8" */
    unsigned cpu_count;
    uint64_t crash_address;                    /* when has_exception */
    const struct sl_crash_module *main_module; /* the first that the file lists; NULL: none */
    struct sl_range_map module_map;            /* of crash.modules, which may overlap */
    struct sl_minidump_stream *streams;
    struct sl_minidump_memory *memory;     /* ascending, no two overlapping */
    struct sl_minidump_thread *threads;    /* those of `crash` */
    struct sl_minidump_unloaded *unloaded; /* in the order of the file */
    struct sl_minidump_annotation *annotations;
    struct sl_minidump_mapping *mappings; /* of Linux and Android, in the order of the file */
    struct sl_str *crash_info;            /* messages of macOS' `__crash_info` */
    size_t stream_count, memory_count, unloaded_count, annotation_count, mapping_count, crash_info_count;
    bool has_exception, has_process_id, has_create_time;
    uint32_t process_id;
    uint32_t create_time;  /* seconds since 1970, UTC */
    bool is_wow64;         /* a 32-bit program of Windows in a dump of 64 bits; as sl_minidump_enter_wow64() has it */
    size_t wow64_missing;  /* of its threads: their 32-bit stacks, or registers, are not in the dump */
    uint64_t address_mask; /* arm64: bits of pointers that are address; 0 = not said */
    struct sl_minidump_count handles, memory_info, thread_info;
};

/* Reads a dump, or the first microdump of a log (microdump.h); `bytes` must outlive it. SL_MALFORMED with a sentence that answers quote, SL_BUSY. Pure. */
enum sl_code sl_minidump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump,
                              struct sl_error *error);

/* Whether there are threads, and none has registers of the dump's processor: there are no stacks then. */
bool sl_minidump_lacks_registers(const struct sl_minidump *dump);

/* "ThreadListStream"; NULL when the type is not known. */
const char *sl_minidump_stream_name(uint32_t type);

/* The module that the address belongs to: of those that hold it the smallest that has an id, and where none has one the
 * smallest. NULL: none holds it. */
const struct sl_crash_module *sl_minidump_module_at(const struct sl_minidump *dump, uint64_t address);

/* Makes `module_map` anew, after modules were taken out of the list. False when out of memory. */
bool sl_minidump_map_modules(struct sl_minidump *dump, struct sl_arena *arena);

/* As Symbolicator does: of modules that overlap the list keeps the first alone. False when out of memory. */
bool sl_minidump_drop_overlaps(struct sl_minidump *dump, struct sl_arena *arena);

/* Of 32-bit programs of Windows in dumps of 64 bits: threads get the registers, the stack and the environment block of the
 * 32-bit code, where the dump has them, instead of those of the emulation under it. Nothing changes in other dumps. False when
 * out of memory. */
bool sl_minidump_enter_wow64(struct sl_minidump *dump, struct sl_arena *arena);

/* Where walking the thread begins; only for threads that are walked. The stack's `read` finds words in all of the dump's
 * memory, so `dump` must outlive the walk. */
void sl_minidump_start(const struct sl_minidump *dump, size_t thread, struct sl_registers *registers,
                       struct sl_walk_stack *stack);

/* The processor and system whose stack is walked. */
struct sl_walk_target sl_minidump_target(const struct sl_minidump *dump, size_t thread);

/* Stacks that the client walked itself (stream 0x53790001): the thread's frames if it has some. */
struct sl_minidump_prewalked {
    uint64_t thread_id;
    size_t place;          /* in the file */
    const uint8_t *frames; /* 16 bytes each */
    size_t count;
};
struct sl_minidump_client {
    struct sl_minidump_prewalked *threads; /* by id; of those of the same id the last counts */
    size_t count;
    struct sl_str symbols;
};

/* SL_NOT_FOUND when the dump has none; SL_MALFORMED with what is wrong: nothing of it counts then; SL_BUSY. */
enum sl_code sl_minidump_client_stacks(const struct sl_minidump *dump, struct sl_arena *arena,
                                       struct sl_minidump_client *client, struct sl_error *error);

/* The thread's frames in the arena, callee first; false when it has none, or out of memory (`*count` is not 0 then). */
bool sl_minidump_client_frames(const struct sl_minidump_client *client, uint64_t thread_id, struct sl_arena *arena,
                               struct sl_crash_frame **frames, size_t *count);
