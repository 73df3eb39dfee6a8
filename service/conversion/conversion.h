/* Conversions of files, within limits.
 *
 * A conversion may use `conversion.max_time` of CPU time plus a second for every 4 MiB of its input, summed over its threads,
 * and `conversion.max_memory` besides its mapped input; beyond that it fails with SL_UNSUPPORTED. At most
 * `conversion.max_heavy` conversions of inputs above 1 GiB run at once; the others wait, without a thread. */
#pragma once

#include "config/config.h"
#include "conversion/converter.h"

struct conversion_about {
    uint64_t size;          /* bytes that work and time are measured by; 0: as many as its inputs have */
    struct sl_str location; /* for the log */
    const char *kind;       /* kind of the cache entry that is made, for metrics; NULL: not counted */
};

/* Applies the limits of the configuration from now on. */
void conversions_configure(const struct config *config);

/* Aborts all conversions with SL_CANCELLED, also later ones: for the end of the process. */
void conversions_abort_all(void);

/* Runs the converter: its code and error, or SL_UNSUPPORTED when it passed a limit. SL_CANCELLED while waiting; SL_BUSY, SL_INTERNAL
 * when it could not run. Inputs that are files alone are mapped meanwhile. `result` has the converter's size; its bytes are zero
 * when it did not run. */
enum sl_code conversion_run(const struct conversion_about *about, const struct converter *converter,
                            const struct converter_call *call, void *result, struct sl_error *error) SL_SUSPENDS;

/* ---- shared by computations ---- */

/* The current configuration; hold it (config_retain) to use it after suspending. Loop thread. */
const struct config *current_config(void);
/* The configured limits; any thread. */
struct reader_limits current_reader_limits(void);
uint64_t current_max_source_size(void);
uint64_t current_max_conversion_memory(void); /* limit of one conversion in bytes; 0 = none */

/* `budget` may be NULL. */
enum sl_code open_object_in_limits(struct sl_bytes file, const struct reader_limits *limits, struct sl_budget *budget,
                                   struct sl_object **object, struct sl_error *error);

uint64_t get_file_size(int fd); /* bytes; 0 if unknown */

/* Writes all of `bytes` to `fd` at offset 0. SL_INTERNAL if writing fails. */
enum sl_code write_whole_file(int fd, struct sl_bytes bytes, struct sl_error *error);
