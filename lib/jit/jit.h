/* Code that is in no file: what compilers of a running process and the kernel say of theirs.
 *
 *     /tmp/perf-PID.map     START SIZE NAME, numbers in hex, a line each (linux, tools/perf/Documentation/jit-interface.txt)
 *     jit-PID.dump          records of code as it was made and moved (tools/perf/Documentation/jitdump-specification.txt)
 *     /proc/kallsyms        ADDRESS TYPE NAME [MODULE] (proc(5))
 *
 * Processes write the first two as they run: of code at one place the last record counts, and what was partly written over is
 * gone. Lines of jitdump are left out, since writers do not agree on what their addresses are relative to. Addresses are those of
 * the process. */
#pragma once

#include "base/buf.h"
#include "base/budget.h"
#include "base/error.h"
#include "breakpad/breakpad.h"

struct sl_jit_function {
    uint64_t address, size; /* bytes, not 0 */
    struct sl_str name;     /* a view of the file */
};

struct sl_jit_code { /* zeros: none */
    struct sl_jit_function *functions;
    size_t count, capacity;
};

/* Append what the file says to `code`, in its order; the file must outlive it. A line or record that is damaged is left out.
 * SL_MALFORMED for what is no such file, or over the budget; SL_BUSY out of memory. */
enum sl_code sl_jit_read_perf_map(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error);
enum sl_code sl_jit_read_dump(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                              struct sl_error *error);
/* Functions alone, which end where the next symbol begins, ordered by address. The kernel hides its addresses from those who may
 * not know them: then there are none. */
enum sl_code sl_jit_read_kallsyms(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error);
bool sl_jit_is_dump(struct sl_bytes file);

/* Orders functions by address and drops those that later ones were written over. SL_BUSY when out of memory. */
enum sl_code sl_jit_settle(struct sl_jit_code *code, struct sl_error *error);

/* The functions in [begin, end) as a Breakpad symbol file, with addresses relative to `begin`; after sl_jit_settle. `*count`: how
 * many they are. */
enum sl_code sl_jit_write(const struct sl_jit_code *code, uint64_t begin, uint64_t end,
                          const struct sl_breakpad_options *options, struct sl_buf *out, size_t *count,
                          struct sl_error *error);

void sl_jit_free(struct sl_jit_code *code);
