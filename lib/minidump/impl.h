/* Shared by the files of the minidump reader.
 *
 *     minidump.c   header, directory, order of reading            memory.c   memory regions, stacks
 *     text.c       strings of the file                            context.c  registers, by processor
 *     module.c     modules and their ids                          thread.c   threads, the exception
 *     system.c     system and processor                           reason*.c  names of exceptions and signals
 *     microdump.c  converts Breakpad's microdumps to minidumps    client.c   stacks that Sentry's client walked
 *     wow64.c      32-bit stacks of 64-bit dumps                  facts*.c   rarely used streams, read on demand
 *     info.c       assertion, process, annotations, mappings      analysis.c the crashing instruction and likely causes
 *     regions.c    access rights of the address space                 build.h     for readers of other files */
#pragma once

#include "minidump/build.h"

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
enum { DUMP_MODULE_SIZE = 108 }; /* size of an entry of the module list */

struct dump_reader {
    struct sl_minidump *dump;
    struct sl_arena *arena;
    /* Limits the copies of texts, identifiers and contexts, which several entries may share, to as many bytes as the file has. */
    struct sl_budget budget;
    bool out_of_memory;
};

/* ---- minidump.c ---- */

/* Reads a minidump, but no microdump, which sl_minidump_read() reads as well. */
enum sl_code dump_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_minidump *dump, struct sl_error *error);

/* Returns the last stream of the type; data NULL if it is missing or outside of the file. */
struct sl_bytes dump_stream(const struct sl_minidump *dump, uint32_t type);

/* Returns a reader, with the byte order of the dump, of the last stream of the type; one without bytes if there is none. */
struct sl_reader dump_stream_reader(const struct sl_minidump *dump, uint32_t type);

/* Returns a reader with the byte order of the dump. */
struct sl_reader dump_make_reader(const struct sl_minidump *dump, struct sl_bytes bytes);

/* Reads a location descriptor `u32 size, u32 rva` and returns the bytes there; data NULL if they are outside of the
 * file. `rva` may be NULL. */
struct sl_bytes dump_location(const struct sl_minidump *dump, struct sl_reader *r, uint32_t *rva);

/* Starts reading a list: `u32 count`, optionally 4 bytes of padding, entries of `size` bytes. Leaves the reader at
 * the first entry and returns how many entries are present; 0 if there is no such stream. */
size_t dump_list(const struct sl_minidump *dump, uint32_t type, size_t size, struct sl_reader *r);

/* Starts reading a list `u32 header size, u32 entry size, u32 count` (u64 if `wide`), with entries of at least
 * `size` bytes. Stores the entry size in `*entry`; returns the number of entries that are present. */
size_t dump_extended_list(const struct sl_minidump *dump, uint32_t type, size_t size, bool wide, struct sl_reader *r,
                          size_t *entry);

/* Allocates zeroed items in the arena, one more than `count`, so that the result for 0 is not NULL. NULL, with d->out_of_memory set, when
 * out of memory. */
void *dump_alloc(struct dump_reader *d, size_t count, size_t size);

/* Charges the copy of `size` bytes, which several entries may share, to d->budget. Returns false if the budget is used up. */
bool dump_charge(struct dump_reader *d, size_t size);

/* ---- text.c: data of results is NULL for a text that cannot be read or that the budget does not permit to copy ---- */

/* Converts a counted UTF-16 string (`u32 bytes`, UTF-16) at a file offset to UTF-8. */
struct sl_str dump_string(struct dump_reader *d, uint64_t rva);

/* Converts UTF-16 up to a NUL or the end. */
struct sl_str dump_utf16(struct dump_reader *d, struct sl_bytes bytes);

/* Copies all bytes; invalid UTF-8 becomes U+FFFD. */
struct sl_str dump_text(struct dump_reader *d, struct sl_bytes bytes);

/* Copies the bytes up to the first NUL; invalid UTF-8 becomes U+FFFD. Data NULL if the text is longer than SL_MAX_NAME bytes. */
struct sl_str dump_utf8(struct dump_reader *d, struct sl_bytes bytes);

/* Copies a counted UTF-8 string (`u32 bytes`, UTF-8) at a file offset. */
struct sl_str dump_string8(struct dump_reader *d, uint64_t rva);

/* Formats a text into the arena; data NULL, and d->out_of_memory set, when out of memory. */
struct sl_str dump_printf(struct dump_reader *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the other files: each reads its part of the dump ---- */

bool dump_read_system(struct dump_reader *d); /* false: the stream is missing or too short */
void dump_read_modules(struct dump_reader *d);
void dump_read_memory(struct dump_reader *d);
bool dump_read_threads(struct dump_reader *d); /* after memory and system; false: the stream is missing */
void dump_read_info(struct dump_reader *d);

/* Reads a number of `size` bytes from the dump's memory; false if the dump does not hold all of it. */
bool dump_memory_read(const struct sl_minidump *dump, uint64_t address, unsigned size, uint64_t *value);

/* The exception of a dump; on Linux `code` is the signal and `flags` its si_code, on macOS the exception type and its first code. */
struct dump_exception {
    bool is_there;
    uint32_t thread_id, code, flags;
    uint64_t address;
    uint32_t parameter_count; /* at most 15 */
    uint64_t parameters[15];
    struct sl_bytes context;
};

/* These return the exception as text. dump_crash_reason() does so for the dump's system, with the crash address: "SIGSEGV / SEGV_MAPERR /
 * 0x10". The others do so for one system, without an address; data NULL for an unknown exception. */
struct sl_str dump_crash_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_linux_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_apple_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_windows_reason(struct dump_reader *d, const struct dump_exception *exception);
struct sl_str dump_windows_error(struct dump_reader *d, uint32_t code); /* a value of GetLastError(), or an NTSTATUS */
bool dump_read_exception(const struct sl_minidump *dump, struct dump_exception *exception); /* false: none */

/* A table of numbers and their names; ends with a NULL name. */
struct dump_name {
    uint32_t number;
    const char *name;
};

/* Returns the name of the number; NULL if the table does not have it. */
const char *dump_find_name(const struct dump_name *names, uint64_t number);

/* ---- microdump.c ---- */

/* Reads the first complete microdump of the log, else the first one. Results lie in the arena. */
enum sl_code dump_read_microdump(struct sl_bytes log, struct sl_arena *arena, struct sl_minidump *dump,
                                 struct sl_error *error);

/* ---- context.c ---- */

/* A processor number of our own, which no dump contains: x86 registers in a CONTEXT of amd64, of a thread that ran 32-bit code. */
enum { DUMP_X86_ON_AMD64 = 1 << 16 };

/* True if the bytes are a register context of the processor. */
bool dump_is_context(const struct sl_minidump *dump, uint32_t cpu, struct sl_bytes context);

/* Sets the registers of the thread that reports show. False when out of memory. dump_is_context() must be true for `context`. */
bool dump_context_registers(struct dump_reader *d, uint32_t cpu, struct sl_bytes context,
                            struct sl_crash_thread *thread);

/* Reads the registers of a thread that stack walking needs; dump_is_context() must be true for its context. */
void dump_context_read(const struct sl_minidump *dump, const struct sl_minidump_thread *thread,
                       struct sl_registers *registers);
