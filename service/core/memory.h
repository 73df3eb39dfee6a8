/* The memory that all requests share (memory.request_budget): for their bodies, what is parsed out of them, and their answers.
 *
 * Code that is about to allocate something large reserves memory first, and waits until others have released some. Memory that is
 * allocated already is always counted, even beyond the budget; then new reservations wait longer. The reservation of one request
 * is a `struct memory_reservation`, zero at the request's begin and end. Loop thread only, except memory_charge. */
#pragma once

#include "base/error.h"
#include "core/fiber.h"

struct memory_reservation {
    uint64_t bytes;
};

/* Sets the budget in bytes and the longest time that memory_reserve waits. Also sets malloc's thresholds (M_MMAP_THRESHOLD and
 * M_TRIM_THRESHOLD), so that large allocations are returned to the kernel when they are freed. */
void memory_configure(uint64_t budget, uint64_t wait_ms);

/* Returns half of memory_of_process(). */
uint64_t memory_default_budget(void);
/* Returns the memory limit of the cgroup, or else the machine's memory. */
uint64_t memory_of_process(void);

/* False if `bytes` exceed the whole budget. */
bool memory_fits(uint64_t bytes);

/* True when more than half of the budget is in use: then data that can be kept on disk should not stay in memory. */
bool memory_is_short(void);

/* Grows the reservation to at least `bytes`. Waits for memory, first come, first served, but up to 64 KiB more are granted without waiting
 * behind larger needs. SL_UNSUPPORTED when `bytes` exceed the whole budget; SL_BUSY when memory was not available in time; SL_CANCELLED.
 * The reservation is unchanged unless SL_OK. */
enum sl_code memory_reserve(struct memory_reservation *share, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

/* Sets the reservation to the size that is really used, larger or smaller, even beyond the budget. Never waits. */
void memory_resize(struct memory_reservation *share, uint64_t bytes);

/* Adds the reservation `from` to `to` and makes it 0: the memory now belongs to the other request. */
void memory_transfer(struct memory_reservation *to, struct memory_reservation *from);

/* Sets the memory that is charged to a running pool job to `bytes`. `*held` is what was charged before, and becomes `bytes`; 0 at the begin
 * and end of the job. Does not wake fibers in memory_reserve: the next memory_resize does. Any thread. */
void memory_charge(uint64_t *held, uint64_t bytes);

uint64_t memory_used(void);  /* reserved by requests and charged to pool jobs (memory_charge) */
uint64_t memory_limit(void); /* the budget */

/* The function of a fiber: regularly returns free memory of malloc to the kernel (malloc_trim(3)), until the fiber's group is cancelled. */
void memory_trim_repeatedly(void *unused) SL_SUSPENDS;
