/* Runs conversions of files (converter.h) within limits.
 *
 * A conversion may use `conversion.max_time` of CPU time, summed over its threads, plus a second for every 4 MiB of its input; and
 * `conversion.max_memory` besides its mapped input. Beyond that it fails with SL_UNSUPPORTED. At most `conversion.max_heavy` conversions
 * of inputs above 1 GiB run at once; the fibers of the others wait. */
#pragma once

#include "config/config.h"
#include "conversion/converter.h"
#include "fetch/unpack.h"

struct conversion_description {
    uint64_t size; /* bytes from which the step and time limits are computed; 0 = the sum of the inputs' sizes */
    struct sl_str location; /* for the log */
    const char *kind;       /* kind of the new cache entry, for metrics; NULL = no metrics */
    bool is_background;     /* no request waits for it: it gets threads that requests do not use (POOL_BACKGROUND) */
    uint64_t time_ns;       /* limit of CPU time instead of the configured one; beyond it SL_TIMEOUT. 0 = none */
};

/* Sets the configured limits of conversions that begin later; running ones keep theirs. `config` must live until the next call. */
void conversions_configure(const struct config *config);

/* Aborts running and later conversions with SL_CANCELLED. Called when the process shuts down. */
void conversions_abort_all(void);

/* Creates a file in memory for converter_call.out; `name` is for debugging. A worker that has written it seals it, so that its contents
 * cannot change any more (fcntl(2), file seals). Returns a descriptor, or -1 with errno set. */
int conversion_new_output(const char *name);

/* Runs the converter, in a worker process or on a thread of the pool, and returns its code and error. Other codes: SL_UNSUPPORTED if it
 * exceeded a limit; SL_TIMEOUT if it exceeded about->time_ns; SL_CANCELLED at shutdown or if the fiber was cancelled; SL_BUSY, SL_INTERNAL
 * if it could not run. Inputs without bytes are mapped from their descriptors meanwhile. `result` has room for converter->result_size
 * bytes, which are zero if the converter did not run. Outside of fibers, as in commands, it runs in the calling thread, without limits of
 * time and memory. */
enum sl_code conversion_run(const struct conversion_description *about, const struct converter *converter,
                            const struct converter_call *call, void *result, struct sl_error *error) SL_SUSPENDS;

/* Decompresses INPUT_FILE into `out`. INPUT_NAME: name of the wanted member of a tar archive. */
extern const struct converter converter_unpack;
/* Runs converter_unpack on a downloaded file. conversions_configure() passes it to unpack_set_runner(), since fetch/ cannot call
 * conversions. */
unpack_runner conversion_unpack;

/* ---- shared by computations ---- */

/* Returns the current configuration; call config_retain to use it after suspending. Loop thread. */
const struct config *current_config(void);
/* Return the configured limits of object files and of embedded source files, in bytes. Any thread. */
struct reader_limits current_reader_limits(void);
uint64_t current_max_source_size(void);
uint64_t current_max_conversion_memory(void); /* limit of one conversion in bytes; 0 = none */

/* Opens an object file with these limits of its reader. `budget` (may be NULL) is charged for its memory and work. */
enum sl_code open_object_in_limits(struct sl_bytes file, const struct reader_limits *limits, struct sl_budget *budget,
                                   struct sl_object **object, struct sl_error *error);

uint64_t get_file_size(int fd); /* bytes; 0 if unknown */

/* Writes all of `bytes` to `fd` at offset 0. SL_INTERNAL if writing fails. */
enum sl_code write_whole_file(int fd, struct sl_bytes bytes, struct sl_error *error);
