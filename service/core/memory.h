/* The memory that all requests share (memory.request_budget): for their bodies, what is parsed out of them, and their answers.
 *
 * Code that is about to allocate something large reserves memory first, and waits until others have released some. Memory that
 * exists already is always counted, even beyond the budget; then new reservations wait longer. The reservation of one request
 * is a `struct memory_reservation`, zero at its begin and end. Loop thread only, except memory_charge. */
#pragma once

#include "base/error.h"
#include "core/fiber.h"

struct memory_reservation {
    uint64_t bytes;
};

/* `budget` in bytes; memory_reserve waits at most `wait_ms`. Also sets malloc's thresholds so that large pieces are returned to the
 * kernel. */
void memory_configure(uint64_t budget, uint64_t wait_ms);

/* Returns half of memory_of_process(). */
uint64_t memory_default_budget(void);
/* Returns the memory limit of the cgroup, or else the machine's memory. */
uint64_t memory_of_process(void);

/* False if `bytes` exceed the whole budget. */
bool memory_fits(uint64_t bytes);

/* True when half of the budget is in use: data that can be kept on disk should be. */
bool memory_is_short(void);

/* Grows the share to at least `bytes`, first come, first served; small requests do not wait behind large ones. SL_OK;
 * SL_UNSUPPORTED when it exceeds the whole budget; SL_BUSY when it was not available in time; SL_CANCELLED. The share is
 * unchanged unless SL_OK. */
enum sl_code memory_reserve(struct memory_reservation *share, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

/* Sets the share to the measured size. Never waits. */
void memory_resize(struct memory_reservation *share, uint64_t bytes);

/* Transfers all of `from` to `to`. */
void memory_transfer(struct memory_reservation *to, struct memory_reservation *from);

/* Sets the memory charged to a running pool job to `bytes`; `*held` is the old value and becomes the new one (begin and end
 * with 0). Waiters are not woken before the next change of a share. Any thread. */
void memory_charge(uint64_t *held, uint64_t bytes);

uint64_t memory_used(void);  /* including that of memory_charge */
uint64_t memory_limit(void); /* the budget */

/* Runs as a fiber: regularly returns free memory of malloc to the kernel (malloc_trim(3)), until its group is cancelled. */
void memory_trim_repeatedly(void *unused) SL_SUSPENDS;
