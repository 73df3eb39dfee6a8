/* What the files of the minidump reader share.
 *
 *     minidump.c   header, directory, the order of things        memory.c   regions, stacks
 *     text.c       strings of the file                           context.c  registers, by processor
 *     module.c     modules and their ids                         thread.c   threads, the exception
 *     system.c     system and processor                          reason*.c  the crash in words
 *     microdump.c  microdumps of Breakpad, which become minidumps
 *     wow64.c      32-bit stacks of 64-bit dumps
 *     info.c       what is beside             facts*.c   what few ask for, read when they do
 *     analysis.c   the instruction that crashed, and what may have been meant; regions.c what the address space was made of */
#pragma once

#include "minidump/minidump.h"

enum {
    STREAM_THREAD_LIST = 3,
    STREAM_MODULE_LIST = 4,
    STREAM_MEMORY_LIST = 5,
    STREAM_EXCEPTION = 6,
    STREAM_SYSTEM_INFO = 7,
    STREAM_MEMORY64_LIST = 9,
    STREAM_HANDLE_DATA = 12,
    STREAM_UNLOADED_MODULES = 14,
    STREAM_MISC_INFO = 15,
    STREAM_MEMORY_INFO = 16,
    STREAM_THREAD_INFO = 17,
    STREAM_THREAD_NAMES = 24,
    STREAM_BREAKPAD_INFO = 0x47670001,
    STREAM_ASSERTION = 0x47670002,
    STREAM_LINUX_CPU_INFO = 0x47670003,
    STREAM_LINUX_STATUS = 0x47670004,
    STREAM_LINUX_RELEASE = 0x47670005,
    STREAM_LINUX_MAPS = 0x47670009,
    STREAM_CRASHPAD_INFO = 0x43500001,
    STREAM_MAC_CRASH_INFO = 0x4D7A0001,
    STREAM_MAC_BOOT_ARGS = 0x4D7A0002,
    STREAM_LINUX_LIMITS = 0x4D7A0003,
    STREAM_SOFT_ERRORS = 0x4D7A0004,
    STREAM_CLIENT_STACKS = 0x53790001,
};

enum { DUMP_SIGNATURE = 0x504D444D /* "MDMP" */, DUMP_VERSION = 0xA793 };
enum { DUMP_MODULE_SIZE = 108 }; /* an entry of the list of modules */

struct dump_reader {
    struct sl_minidump *dump;
    struct sl_arena *arena;
    struct sl_budget
        budget; /* its memory: bytes that texts, identifiers and contexts may take, those of the file once */
    bool out_of_memory;
};

/* ---- minidump.c ---- */

/* Reads a minidump as sl_minidump_read() does. */
enum sl_code dump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump, struct sl_error *error);

/* The last stream of the type; data NULL when it is not there or not in the file. */
struct sl_bytes dump_stream(const struct sl_minidump *dump, uint32_t type);
struct sl_reader dump_stream_reader(const struct sl_minidump *dump, uint32_t type);

/* A reader of the dump's byte order. */
struct sl_reader dump_reader_of(const struct sl_minidump *dump, struct sl_bytes bytes);

/* `u32 size, u32 rva`: the bytes there; data NULL when they are not in the file. `*rva` may be NULL. */
struct sl_bytes dump_location(const struct sl_minidump *dump, struct sl_reader *r, uint32_t *rva);

/* A list `u32 count`, entries of `size` bytes: the reader then is at the first. Four bytes of padding may follow the count.
 * Returns the number of entries that are there; 0 when there is no such stream. */
size_t dump_list(const struct sl_minidump *dump, uint32_t type, size_t size, struct sl_reader *r);

/* A list `u32 header size, u32 entry size, u32 count` (`wide`: u64), entries of at least `size` bytes; `*entry` is their
 * size. */
size_t dump_extended_list(const struct sl_minidump *dump, uint32_t type, size_t size, bool wide, struct sl_reader *r,
                          size_t *entry);

/* Room for the items; NULL and `out_of_memory` when there is none. */
void *dump_items(struct dump_reader *d, size_t count, size_t size);

/* Whether `size` bytes that several entries may share can be read for one more. */
bool dump_share(struct dump_reader *d, size_t size);

/* ---- text.c; data NULL when unreadable ---- */

/* `u32 bytes` and UTF-16 at an offset of the file, as UTF-8. */
struct sl_str dump_string(struct dump_reader *d, uint64_t rva);

/* UTF-16 up to a NUL or the end. */
struct sl_str dump_utf16(struct dump_reader *d, struct sl_bytes bytes);

/* All of the bytes, what is no UTF-8 as U+FFFD. */
struct sl_str dump_text(struct dump_reader *d, struct sl_bytes bytes);

/* The same of those before a NUL, which are at most SL_MAX_NAME. */
struct sl_str dump_utf8(struct dump_reader *d, struct sl_bytes bytes);

/* `u32 bytes` and UTF-8 at an offset of the file. */
struct sl_str dump_string8(struct dump_reader *d, uint64_t rva);

/* In the arena. */
struct sl_str dump_printf(struct dump_reader *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the other files: each reads its part of the dump ---- */

bool dump_read_system(struct dump_reader *d); /* false: there is none */
void dump_read_modules(struct dump_reader *d);
void dump_read_memory(struct dump_reader *d);
bool dump_read_threads(struct dump_reader *d); /* after the memory and the system; false: there are none */
void dump_read_info(struct dump_reader *d);

/* The region that contains the address; NULL when there is none. */
const struct sl_minidump_memory *dump_memory_at(const struct sl_minidump *dump, uint64_t address);

/* A number of `size` bytes in memory that the dump holds; false when it is not all there. */
bool dump_memory_read(const struct sl_minidump *dump, uint64_t address, unsigned size, uint64_t *value);

struct dump_exception {
    bool is_there;
    uint32_t thread_id, code, flags;
    uint64_t address;
    uint32_t parameter_count; /* at most 15 */
    uint64_t parameters[15];
    struct sl_bytes context;
};
struct sl_str dump_crash_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_linux_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_apple_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_windows_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_windows_error(struct dump_reader *d, uint32_t code); /* of GetLastError(), or an NTSTATUS */
bool dump_read_exception(const struct sl_minidump *dump, struct dump_exception *exception); /* false: there is none */

/* Names of numbers; a list that a NULL ends. */
struct dump_name {
    uint32_t number;
    const char *name;
};
const char *dump_name_of(const struct dump_name *names, uint64_t number);

/* ---- microdump.c ---- */

/* The first microdump of the log that is whole, else the first. What is read lies in the arena. */
enum sl_code dump_read_microdump(struct sl_bytes log, struct sl_arena *arena, struct sl_minidump *dump,
                                 struct sl_error *error);

/* ---- context.c ---- */

/* As the `cpu` of records: those of x86 in a CONTEXT of amd64, while 32-bit code ran. No dump has the number. */
enum { DUMP_X86_ON_AMD64 = 1 << 16 };

/* Whether the bytes are registers of the processor. */
bool dump_is_context(const struct sl_minidump *dump, uint32_t cpu, struct sl_bytes context);
bool dump_context_registers(struct dump_reader *d, uint32_t cpu, struct sl_bytes context,
                            struct sl_crash_thread *thread);
void dump_context_read(const struct sl_minidump *dump, const struct sl_minidump_thread *thread,
                       struct sl_registers *registers);
