/* Minidumps: the state of a process at the moment it crashed, as Windows, Breakpad and Crashpad write it (minidumpapiset.h
 * of the Windows SDK; minidump_format.h of Breakpad; minidump_extensions.h of Crashpad).
 *
 *     header ──▶ directory ──▶ streams: lists of threads, modules and memory, the exception, the system ...
 *
 *     "MDMP" | version 0xA793 | stream count | directory offset | checksum | time | flags       header, 32 bytes
 *     type   | size   | offset                                                                  a directory entry, 12 bytes
 *     3      | 4+48n  | u32 n, then n threads of 48 bytes                                       ThreadListStream
 *
 * Reading gives a `struct sl_crash` whose threads have no frames yet, and the input of a stack walk: the initial registers of
 * each thread and its stack memory. Streams do not depend on each other, so a truncated file gives the streams that are left;
 * only the system and the list of threads are required. All results point into the file or lie in the arena. Their size is
 * proportional to the file size: data that several entries share is copied until the copies exceed the size of the file.
 *
 * The streams with command line, environment and auxiliary vector may hold secrets and are not read. */
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
    uint32_t offset, size; /* as the directory says; may be outside of the file */
    struct sl_bytes bytes; /* data NULL: outside of the file */
};

struct sl_minidump_memory {
    uint64_t address;
    struct sl_bytes bytes; /* not empty */
};

struct sl_minidump_thread { /* additional data of the thread with the same index in sl_crash */
    struct sl_bytes context;
    uint32_t cpu; /* format of `context`: the dump's processor, unless sl_minidump_enter_wow64() changed it */
    enum sl_cpu_family family;            /* family of `cpu` */
    uint64_t environment;                 /* Windows: address of the thread environment block (TEB) */
    struct sl_minidump_memory stack;      /* empty if the dump does not have it */
    bool is_writer;                       /* the thread that wrote the dump */
    bool is_walked;                       /* false: gets no frames, because it has no registers or is the writer */
    const struct sl_registers *initial;   /* registers to start the walk from; NULL: those of `context` */
    const struct sl_registers *registers; /* registers of its frames, if the stack walker kept them */
    /* after sl_minidump_unpack() (pack.h): the frames that the client walked itself */
    struct sl_crash_frame *prewalked;
    size_t prewalked_count;
};

struct sl_minidump_unloaded { /* a module that was unloaded before the crash */
    uint64_t address, size;
    uint32_t timestamp;
    struct sl_str name;
};

struct sl_minidump_annotation {
    struct sl_str module; /* data NULL: annotation of the process */
    struct sl_str name, value;
};

struct sl_minidump_mapping { /* a line of /proc/self/maps */
    uint64_t begin, end;     /* end > begin */
    struct sl_str access;    /* "r-xp" */
    struct sl_str path;      /* may be empty */
};

struct sl_minidump_stream_count { /* a list of which only the length is used */
    bool known;
    uint64_t count;
};

struct sl_minidump {
    struct sl_crash crash; /* threads have no frames; modules are sorted by address, then by end */
    struct sl_bytes bytes;
    bool big_endian;
    bool is_microdump; /* `bytes` is the minidump that the microdump was converted to */
    enum sl_minidump_os os;
    const char *unread_processor; /* name of a processor whose registers and stacks cannot be read; else NULL */
    uint16_t cpu;                 /* PROCESSOR_ARCHITECTURE_*; Breakpad's own from 0x8001 */
    uint32_t platform;            /* VER_PLATFORM_*; Breakpad's own from 0x8101 */
    enum sl_cpu_family family;
    struct sl_str os_text, cpu_text; /* "5.1.2600 Service Pack 2", "GenuineIntel family 6 model 13 stepping 8" */
    unsigned cpu_count;
    uint64_t crash_address; /* valid if has_exception */
    bool has_signal;        /* core files: the exception is this signal of Linux, with its si_code */
    uint32_t signal, signal_code;
    /* the program's own module, which is the first valid one in the file's list; NULL if there is none or it was dropped */
    const struct sl_crash_module *main_module;
    struct sl_range_map module_map; /* index of crash.modules, which may overlap */
    struct sl_minidump_stream *streams;
    struct sl_minidump_memory *memory; /* sorted by address, without overlaps */
    /* parts of module files, for addresses that `memory` does not hold; also sorted, without overlaps (elfcore.h) */
    struct sl_minidump_memory *file_memory;
    struct sl_minidump_thread *threads;    /* parallel to crash.threads */
    struct sl_minidump_unloaded *unloaded; /* in file order */
    struct sl_minidump_annotation *annotations;
    struct sl_minidump_mapping *mappings; /* Linux and Android, in file order; of a core file: its segments */
    struct sl_str *crash_info;            /* messages of macOS' `__crash_info` sections */
    size_t stream_count, memory_count, file_memory_count, unloaded_count, annotation_count, mapping_count,
        crash_info_count;
    bool has_exception, has_process_id, has_create_time;
    uint32_t process_id;
    uint32_t create_time;  /* seconds since 1970, UTC */
    bool is_wow64;         /* a 32-bit Windows program in a 64-bit dump; set by sl_minidump_enter_wow64() */
    size_t wow64_missing;  /* number of its threads whose 32-bit stack or registers are not in the dump */
    uint64_t address_mask; /* arm64: the address bits of pointers (without pointer authentication); 0 = unknown */
    struct sl_minidump_stream_count handles, memory_info, thread_info;
};

/* Reads a minidump, or the first microdump of a log (microdump.h); `bytes` must outlive `dump`. Errors: SL_MALFORMED with a message that is
 * shown to the user, SL_BUSY if out of memory. Pure function. */
enum sl_code sl_minidump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump,
                              struct sl_error *error);

/* True if there are threads, but none has registers of the dump's processor: no stack can be walked then. */
bool sl_minidump_lacks_registers(const struct sl_minidump *dump);

/* Returns the name of a stream type, such as "ThreadListStream"; NULL if the type is unknown. */
const char *sl_minidump_stream_name(uint32_t type);

/* Returns the module that contains the address. If several do: the smallest one that has an id, else the smallest
 * one. NULL if no module contains it. */
const struct sl_crash_module *sl_minidump_module_at(const struct sl_minidump *dump, uint64_t address);

/* Rebuilds `module_map` after modules were removed from crash.modules. Returns false if out of memory. */
bool sl_minidump_map_modules(struct sl_minidump *dump, struct sl_arena *arena);

/* Drops each module that begins inside the one kept before it in order of address, as Symbolicator does. Returns false if out of memory. */
bool sl_minidump_drop_overlaps(struct sl_minidump *dump, struct sl_arena *arena);

/* For a 32-bit Windows program in a 64-bit dump: the registers, the stack and the TEB of each thread belong to the WoW64 emulation, so
 * replaces them with those of the 32-bit code, if the dump has them. Other dumps are not changed. Returns false if out of memory. */
bool sl_minidump_enter_wow64(struct sl_minidump *dump, struct sl_arena *arena);

/* Fills the initial registers and the stack of a walk of thread `thread`, whose `is_walked` must be true. The `read`
 * callback of `stack` finds words in all memory of the dump, so `dump` must outlive the walk. */
void sl_minidump_start(const struct sl_minidump *dump, size_t thread, struct sl_registers *registers,
                       struct sl_walk_stack *stack);

/* Returns the processor and the system for which the stack is walked. */
struct sl_walk_target sl_minidump_target(const struct sl_minidump *dump, size_t thread);

/* Stack traces that the client walked itself (Sentry's stream 0x53790001); they replace the walk of the same thread. */
struct sl_minidump_prewalked {
    uint64_t thread_id;
    size_t list_index;     /* index in the file */
    const uint8_t *frames; /* 16 bytes each */
    size_t count;
};
struct sl_minidump_client {
    struct sl_minidump_prewalked *threads; /* sorted by id; of several with the same id the last one is used */
    size_t count;
    struct sl_str symbols; /* the names of all frames, one after the other */
};

/* Reads the stacks that the crashed client walked itself. SL_NOT_FOUND if the dump has no such stream; SL_MALFORMED if
 * any part of it is invalid (none of it is used then); SL_BUSY if out of memory. */
enum sl_code sl_minidump_client_stacks(const struct sl_minidump *dump, struct sl_arena *arena,
                                       struct sl_minidump_client *client, struct sl_error *error);

/* Sets `*frames` and `*count` to the frames, callee first, that the client walked of this thread; they lie in the arena. False with
 * `*count` 0 if the client has none, false with another `*count` if out of memory. */
bool sl_minidump_client_frames(const struct sl_minidump_client *client, uint64_t thread_id, struct sl_arena *arena,
                               struct sl_crash_frame **frames, size_t *count);
