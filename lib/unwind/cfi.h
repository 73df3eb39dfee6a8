/* CFI caches (`SLCF`): address -> the rules that find the caller's registers there.
 *
 * Written from what sl_unwind_read() delivers, used in place from a mapping: opening checks a fixed header, a look-up reads a few rows,
 * and nothing is allocated. Little-endian and position independent on every host; cfi_format.h has the layout. A damaged file
 * may lack rules, but never causes a crash. Look-ups only read, so any number of threads may share one.
 *
 * Of overlapping ranges only the one that starts first is kept; of ranges with the same start, the first in the debug file. STACK WIN
 * records that overlap are repaired: a record that starts inside the previous one truncates the previous one; a record that overlaps
 * the previous one and does not start later is dropped. */
#pragma once

#include "base/parallel.h"
#include "table/table.h"
#include "unwind/unwind.h"

/* Converts the object's unwind information to a CFI cache and appends it to `out`, 8-aligned. An object without unwind information gives
 * an empty cache, so that the absence can be cached. Entries that cannot be read are left out and counted in `*skipped` (may be NULL).
 * Equal input gives equal bytes. SL_BUSY when out of memory, SL_UNSUPPORTED above a limit of the budget, SL_MALFORMED when the tables
 * take too much work. */
enum sl_code sl_cfi_convert(struct sl_object *object, const struct sl_parallel *parallel, struct sl_buf *out,
                            size_t *skipped, struct sl_error *error);

struct sl_cfi {
    enum sl_arch arch;
    enum sl_cpu_family family;
    struct sl_debug_id debug_id; /* id of the PDB that a PE file names; nil for other files */
    struct sl_str debug_file;    /* name of the PDB that a PE file names; empty for other files */
    bool big_endian;             /* byte order of constants in DWARF expressions */
    uint32_t row_count;          /* 0: the file has only STACK WIN records, or nothing */
    uint32_t set_count;          /* number of different lists of rules, to which the rows refer */
    uint32_t win_count[2];       /* number of STACK WIN records of type 0; of type 4 */
    struct sl_table table;       /* private from here on */
    struct sl_column rows[3], buckets, win[9];
    struct sl_table_units sets, programs;
    uint64_t bucket_count;
    uint32_t bucket_shift, program_count;
};

/* Opens a CFI cache. SL_MALFORMED if it is none. O(1). `cfi` points into `bytes`, which must outlive it. */
enum sl_code sl_cfi_open(struct sl_bytes bytes, struct sl_cfi *cfi, struct sl_error *error);

/* The rules that are in effect at an address. */
struct sl_cfi_row {
    uint64_t address;      /* first address at which the rules are in effect */
    bool begins;           /* the row is the first one of a range */
    bool signal_frame;     /* the caller was interrupted and did not call: its pc is not a return address */
    struct sl_reader next; /* private: position of sl_cfi_rule() */
};

/* Finds the row for `address`, relative to the load address. False if no range contains it. */
bool sl_cfi_find(const struct sl_cfi *cfi, uint64_t address, struct sl_cfi_row *row);

/* Returns the next rule of the row: that of the CFA first, then the others, one for each register. Texts point into the file. False at the
 * end, and if the file is damaged. */
bool sl_cfi_rule(struct sl_cfi_row *row, struct sl_unwind_rule *rule);

/* Finds the STACK WIN record of `type` (4 or 0) that covers the address; false if there is none. win->program points into the file. */
bool sl_cfi_find_win(const struct sl_cfi *cfi, unsigned type, uint64_t address, struct sl_unwind_win *win);

/* Reads the whole file and passes it to the sink: ranges in address order, then the STACK WIN records. With sink NULL only checks that it
 * is readable. A code other than SL_OK from the sink ends the reading and is returned. SL_MALFORMED, at the end, if a row or record is
 * damaged; SL_BUSY when out of memory. */
enum sl_code sl_cfi_read(const struct sl_cfi *cfi, struct sl_unwind_sink *sink, struct sl_error *error);
