/* Symbols of code that is in no file: of JIT compilers and of the kernel.
 *
 *     /tmp/perf-PID.map     START SIZE NAME, numbers in hex, one line per function (linux, tools/perf/Documentation/jit-interface.txt)
 *                           7f3a20001000 40 Lorg/Foo;::bar
 *     jit-PID.dump          records of loaded and moved code (tools/perf/Documentation/jitdump-specification.txt)
 *     /proc/kallsyms        ADDRESS TYPE NAME [MODULE] (proc(5))
 *
 * Processes write the first two while they run: of several records for one address the last one counts, and a function
 * that was partly overwritten is dropped. Lines of jitdump are ignored, since writers do not agree on the base of their addresses.
 * Addresses are those of the process. */
#pragma once

#include "base/buf.h"
#include "base/budget.h"
#include "base/error.h"
#include "breakpad/breakpad.h"

struct sl_jit_function {
    uint64_t address, size; /* bytes, not 0 */
    struct sl_str name;     /* a view of the file */
};

struct sl_jit_code { /* zero-initialise */
    struct sl_jit_function *functions;
    size_t count, capacity;
};

/* Append the functions of the file to `code`, in file order; the file must outlive `code`, whose names point into it. A damaged line or
 * record is skipped. sl_jit_read_dump() returns SL_MALFORMED for a file that does not begin like a jitdump. When memory or budget is
 * exhausted, both return the error of sl_budget_fail(). */
enum sl_code sl_jit_read_perf_map(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error);
enum sl_code sl_jit_read_dump(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                              struct sl_error *error);
/* Appends functions only, sorted by address; each ends at the next function. The kernel shows zeros as addresses to readers without
 * privileges (kptr_restrict): then nothing is appended. */
enum sl_code sl_jit_read_kallsyms(struct sl_bytes file, struct sl_jit_code *code, struct sl_budget *budget,
                                  struct sl_error *error);
bool sl_jit_is_dump(struct sl_bytes file);

/* Sorts functions by address and drops those that later ones overwrote, also in part. SL_BUSY when out of memory. */
enum sl_code sl_jit_finish(struct sl_jit_code *code, struct sl_error *error);

/* Writes the functions in [begin, end) as a Breakpad symbol file, with addresses relative to `begin`; call sl_jit_finish first. `*count`
 * becomes their number. */
enum sl_code sl_jit_write(const struct sl_jit_code *code, uint64_t begin, uint64_t end,
                          const struct sl_breakpad_options *options, struct sl_buf *out, size_t *count,
                          struct sl_error *error);

void sl_jit_free(struct sl_jit_code *code);
