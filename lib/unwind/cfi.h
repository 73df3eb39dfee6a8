/* CFI caches (`SLCF`): address -> the rules that find the caller's registers there.
 *
 * Written from the stream of unwind.h, used in place from a mapping: opening looks at a fixed header, a look-up at a few
 * rows, and nothing is allocated. Little-endian and position independent on every host; the layout is in cfi_format.h. A
 * damaged file yields "no rules here", never a crash. Look-ups are pure reads: any number of threads may share one.
 *
 * Of ranges that overlap, the one that starts first is kept whole, and of those that start at one place the first of the
 * stream; STACK WIN records are repaired as Breakpad's processor does: one that starts inside the one before it ends that one,
 * one that starts no later is left out. */
#pragma once

#include "base/parallel.h"
#include "table/table.h"
#include "unwind/unwind.h"

/* Appends the file to `out`, at its 8-aligned end. An object without unwind information gives an empty cache: that there is
 * none is an answer. What cannot be read is left out, and counted in `*skipped` (may be NULL). Equal input gives equal bytes.
 * SL_BUSY when out of memory, SL_UNSUPPORTED over a limit of the budget, SL_MALFORMED when the tables take too much work. */
enum sl_code sl_cfi_convert(struct sl_object *object, const struct sl_parallel *parallel, struct sl_buf *out,
                            size_t *skipped, struct sl_error *error);

struct sl_cfi {
    enum sl_arch arch;
    enum sl_cpu_family family;
    struct sl_debug_id debug_id;   /* of the debug file that a PE file names; nil for others */
    struct sl_str debug_file;      /* its name; empty for others */
    bool big_endian;               /* the constants of expressions are */
    uint32_t row_count, set_count; /* no rows: no STACK CFI */
    uint32_t win_count[2];         /* of type 0, and of type 4 */
    struct sl_table table;         /* this and what follows: private */
    struct sl_column rows[3], buckets, win[9];
    struct sl_table_units sets, programs;
    uint64_t bucket_count;
    uint32_t bucket_shift, program_count;
};

/* SL_MALFORMED when it is none. O(1). `cfi` points into `bytes`, which must outlive it. */
enum sl_code sl_cfi_open(struct sl_bytes bytes, struct sl_cfi *cfi, struct sl_error *error);

/* The rules of a place. */
struct sl_cfi_row {
    uint64_t address;      /* where they begin to hold */
    bool begins;           /* a range begins there */
    bool signal_frame;     /* what is called there was interrupted, not called: its address is not one to return to */
    struct sl_reader next; /* for sl_cfi_rule */
};

/* `address` is relative to the load address. False when nothing is said of it. */
bool sl_cfi_find(const struct sl_cfi *cfi, uint64_t address, struct sl_cfi_row *row);

/* The next rule of the row: that of the CFA first, each register once, none that was taken back. Texts point into the file.
 * False at the end. */
bool sl_cfi_rule(struct sl_cfi_row *row, struct sl_unwind_rule *rule);

/* The record of type 4, or of type 0, that covers the address. Its program points into the file. */
bool sl_cfi_find_win(const struct sl_cfi *cfi, unsigned type, uint64_t address, struct sl_unwind_win *win);

/* Reads all of it: the stream again, ranges in address order, then the STACK WIN records. Without a sink (NULL) only whether all
 * can be read. The sink's code if that is not SL_OK; SL_MALFORMED when a part of it is damaged. */
enum sl_code sl_cfi_read(const struct sl_cfi *cfi, struct sl_unwind_sink *sink, struct sl_error *error);
