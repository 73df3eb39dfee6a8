/* Conversions: what is made of files, within limits.
 *
 * A conversion may take `conversion.max_time` of the processor, and a second more for every 4 MiB of its input, summed over the
 * threads that work for it, and `conversion.max_memory` beside its mapped input; what needs more is SL_UNSUPPORTED. Of inputs
 * above 1 GiB, `conversion.max_heavy` are worked on at once; the others wait, without a thread. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "core/cpu_clock.h"
#include "object/object.h"

struct conversion {
    struct sl_budget budget; /* for everything that is read and made */
    struct cpu_clock clock;
    struct cpu_parallel parallel;
    bool is_trial; /* set by the job: it was only a look at the file, and is not counted */
};

struct conversion_input {
    uint64_t size;                 /* bytes */
    struct sl_str location;        /* for the log */
    const struct cache_kind *kind; /* what is made, for metrics; NULL: it is not counted */
};

/* As configured, from now on. */
void conversions_configure(const struct config *config);

/* The process ends: what runs is to end at once and is SL_CANCELLED, as is what begins. */
void conversions_cut(void);

/* Runs the job on the pool: its code and error, or SL_UNSUPPORTED when it passed a limit. SL_CANCELLED while waiting; SL_BUSY,
 * SL_INTERNAL when it could not run. */
typedef enum sl_code conversion_job(struct conversion *conversion, void *arg, struct sl_error *error);
enum sl_code conversion_run(const struct conversion_input *input, conversion_job *job, void *arg,
                            struct sl_error *error) SL_SUSPENDS;

/* Runs the job over the contents of `fd`, as conversion_run: `check` says what is wrong with them. */
typedef enum sl_code conversion_checker(struct conversion *conversion, struct sl_bytes file, void *arg,
                                        struct sl_error *error);
enum sl_code conversion_check(int fd, struct sl_str location, const struct cache_kind *kind, conversion_checker *check,
                              void *arg, struct sl_error *error) SL_SUSPENDS;

/* Opens a file on the conversion's budget, which a companion adds its size to. */
enum sl_code conversion_open(struct conversion *conversion, struct sl_bytes file, struct sl_object **object,
                             struct sl_error *error);

/* Writes the result, which counts as memory, to `fd`. */
enum sl_code conversion_write(struct conversion *conversion, int fd, const struct sl_buf *out, struct sl_error *error);

/* ---- what else computations share ---- */

/* The configuration that counts now; held (config_retain) by whoever suspends while using it. Loop thread. */
const struct config *kinds_config(void);
/* Of any thread, as configured. */
struct sl_object_limits kinds_object_limits(void);
/* `budget` may be NULL. */
enum sl_code kinds_open_object(struct sl_bytes file, struct sl_budget *budget, struct sl_object **object,
                               struct sl_error *error);
uint64_t kinds_max_source_size(void);
uint64_t kinds_max_memory(void); /* of one conversion, bytes; 0 = no limit */

/* Gets the request's object, and has what is made of it, an entry of `kind`, written to `fd`, as a conversion (which is counted,
 * unless `kind` is NULL). */
struct object_request; /* objects.h */
typedef enum sl_code kinds_maker(struct conversion *conversion, struct sl_bytes object, int fd, struct sl_error *error);
enum sl_code kinds_make(const struct object_request *request, const struct cache_kind *kind, kinds_maker *make, int fd,
                        struct sl_arena *arena, struct sl_error *error) SL_SUSPENDS;

/* `shareable` of kinds whose entries are of use on this machine alone, or are in one that is shared. */
bool kinds_never_shared(const void *context);

uint64_t kinds_size_of(int fd); /* bytes; 0 when that cannot be told */

/* Writes all of `bytes` to `fd` at offset 0. SL_INTERNAL when the disk does not take it. */
enum sl_code kinds_write(int fd, struct sl_bytes bytes, struct sl_error *error);
