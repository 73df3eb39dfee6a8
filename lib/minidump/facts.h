/* What a minidump tells beside the crash, which few ask for: open handles, the distribution, limits, macOS' records.
 * It is read when it is wanted, from a dump that was read before. */
#pragma once

#include "minidump/minidump.h"

struct sl_minidump_handle { /* of Windows; a file descriptor of Linux */
    uint64_t handle;
    struct sl_str type, object; /* data NULL: not known */
};

struct sl_minidump_limit { /* a line of /proc/self/limits */
    struct sl_str name, unit;
    struct sl_str soft, hard; /* digits, or "unlimited" */
};

struct sl_minidump_mac_record { /* a `__crash_info` section; texts and numbers that its version lacks are not known */
    uint64_t version, thread, dialog_mode, abort_cause;
    struct sl_str module, message, signature, backtrace, message2;
};

struct sl_minidump_facts {
    bool has_handles, has_lsb, has_limits, has_mac_records, has_process_id, has_mappings, has_microcode;
    struct sl_minidump_handle *handles;
    struct sl_minidump_limit *limits;
    struct sl_minidump_mac_record *mac_records;
    size_t handle_count, limit_count, mac_record_count;
    struct sl_str lsb_id, lsb_release, lsb_codename, lsb_description; /* of /etc/lsb-release or /etc/os-release */
    struct sl_str boot_args;
    struct sl_str soft_errors; /* JSON, of whoever wrote the dump; data NULL: none, or it is no JSON */
    uint32_t process_id;       /* of the dump, else of /proc/self/status */
    uint64_t microcode;        /* the version of the processor's, of /proc/cpuinfo */
};

/* All lies in the arena or in the dump's file, and is in proportion to the file. SL_BUSY when out of memory. Pure. */
enum sl_code sl_minidump_read_facts(const struct sl_minidump *dump, struct sl_arena *arena,
                                    struct sl_minidump_facts *facts, struct sl_error *error);

/* The thread's GetLastError() in words, of Windows; data NULL when the dump does not hold it or memory is short. */
struct sl_str sl_minidump_last_error(const struct sl_minidump *dump, size_t thread, struct sl_arena *arena);

/* ---- unloaded modules ---- */

struct sl_minidump_unloaded_at {
    struct sl_str name;
    uint64_t offset;
};
enum { SL_MINIDUMP_UNLOADED_AT = 16 };

/* The modules that were at the address and were unloaded, by name and offset, each once, as many as fit. */
size_t sl_minidump_unloaded_at(const struct sl_minidump *dump, uint64_t address,
                               struct sl_minidump_unloaded_at found[SL_MINIDUMP_UNLOADED_AT]);

/* The same in words: "(unloaded many.dll@0x460|0x700) (unloaded solo.dll@0x5e0)"; nothing when there are none. */
void sl_minidump_put_unloaded(const struct sl_minidump *dump, uint64_t address, struct sl_buf *out);
