/* Conversions of files, within limits.
 *
 * A conversion may use `conversion.max_time` of CPU time plus a second for every 4 MiB of its input, summed over its threads,
 * and `conversion.max_memory` besides its mapped input; beyond that it fails with SL_UNSUPPORTED. At most
 * `conversion.max_heavy` conversions of inputs above 1 GiB run at once; the others wait, without a thread. */
#pragma once

#include "config/config.h"
#include "core/cpu_clock.h"
#include "object/object.h"

struct conversion {
    struct sl_budget budget; /* for everything that is read and made */
    struct cpu_clock clock;
    struct cpu_parallel parallel;
    bool is_trial; /* set by the job: it only examined the file; not counted in metrics */
};

struct conversion_input {
    uint64_t size;          /* bytes */
    struct sl_str location; /* for the log */
    const char *kind;       /* kind of the cache entry that is made, for metrics; NULL: not counted */
};

/* Applies the limits of the configuration from now on. */
void conversions_configure(const struct config *config);

/* Aborts all conversions with SL_CANCELLED, also later ones: for the end of the process. */
void conversions_abort_all(void);

/* Runs the job on the pool: returns its code and error, or SL_UNSUPPORTED if it exceeded a limit. SL_CANCELLED while waiting;
 * SL_BUSY, SL_INTERNAL if it could not run. */
typedef enum sl_code conversion_job(struct conversion *conversion, void *arg, struct sl_error *error);
enum sl_code conversion_run(const struct conversion_input *input, conversion_job *job, void *arg,
                            struct sl_error *error) SL_SUSPENDS;

/* Runs a job over the contents of `fd`, like conversion_run: `check` validates them. */
typedef enum sl_code conversion_checker(struct conversion *conversion, struct sl_bytes file, void *arg,
                                        struct sl_error *error);
enum sl_code conversion_check(int fd, struct sl_str location, const char *kind, conversion_checker *check, void *arg,
                              struct sl_error *error) SL_SUSPENDS;

/* Opens a file with the conversion's budget, to which a companion file adds its size. */
enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, struct sl_object **object,
                             struct sl_error *error);

/* Writes the result to `fd`; it is charged to the memory limit. */
enum sl_code conversion_write(struct conversion *conversion, int fd, const struct sl_buf *out, struct sl_error *error);

/* ---- shared by computations ---- */

/* The current configuration; hold it (config_retain) to use it after suspending. Loop thread. */
const struct config *current_config(void);
/* The configured limits; any thread. */
struct sl_object_limits current_object_limits(void);
/* `budget` may be NULL. */
enum sl_code open_object_in_limits(struct sl_bytes file, struct sl_budget *budget, struct sl_object **object,
                                   struct sl_error *error);
uint64_t current_max_source_size(void);
uint64_t current_max_conversion_memory(void); /* limit of one conversion in bytes; 0 = none */

uint64_t get_file_size(int fd); /* bytes; 0 if unknown */

/* Writes all of `bytes` to `fd` at offset 0. SL_INTERNAL if writing fails. */
enum sl_code write_whole_file(int fd, struct sl_bytes bytes, struct sl_error *error);
