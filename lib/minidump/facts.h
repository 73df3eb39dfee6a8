/* Parts of a minidump that few callers need: open handles, the Linux distribution, limits, macOS' records. They are
 * read on demand, from a dump that sl_minidump_read() has read. */
#pragma once

#include "minidump/minidump.h"

struct sl_minidump_handle { /* a handle of Windows or a file descriptor of Linux */
    uint64_t handle;
    struct sl_str type, object; /* data NULL: not known */
};

struct sl_minidump_limit { /* a line of /proc/self/limits */
    struct sl_str name, unit;
    struct sl_str soft, hard; /* digits, or "unlimited" */
};

struct sl_minidump_mac_record { /* a `__crash_info` section; members that its version lacks are not set */
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
    struct sl_str soft_errors; /* JSON that the writer of the dump added; data NULL: missing or invalid */
    uint32_t process_id;       /* from the dump, else from /proc/self/status */
    uint64_t microcode;        /* microcode version of the processor, from /proc/cpuinfo */
};

/* Reads these parts of a dump; what is malformed or missing is left out. All results lie in the arena or in the dump's file; their size is
 * proportional to the file. SL_BUSY if out of memory. Pure function. */
enum sl_code sl_minidump_read_facts(const struct sl_minidump *dump, struct sl_arena *arena,
                                    struct sl_minidump_facts *facts, struct sl_error *error);

/* Returns the message of the thread's GetLastError() (Windows); data NULL if the dump does not hold it or memory is
 * short. */
struct sl_str sl_minidump_last_error(const struct sl_minidump *dump, size_t thread, struct sl_arena *arena);

/* ---- unloaded modules ---- */

/* An unloaded module that contained an address, and the address's offset in it. */
struct sl_minidump_unloaded_hit {
    struct sl_str name;
    uint64_t offset;
};
enum { SL_MINIDUMP_MAX_UNLOADED_HITS = 16 };

/* Finds the unloaded modules that contained the address: pairs of name and offset, sorted and without duplicates. Returns their number,
 * which is at most SL_MINIDUMP_MAX_UNLOADED_HITS. */
size_t sl_minidump_find_unloaded(const struct sl_minidump *dump, uint64_t address,
                                 struct sl_minidump_unloaded_hit found[SL_MINIDUMP_MAX_UNLOADED_HITS]);

/* Appends the unloaded modules that contained the address, with its offsets in them: "(unloaded many.dll@0x460|0x700) (unloaded
 * solo.dll@0x5e0)". Appends nothing if there are none. */
void sl_minidump_put_unloaded(const struct sl_minidump *dump, uint64_t address, struct sl_buf *out);
