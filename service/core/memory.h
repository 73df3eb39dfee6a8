/* The memory that all requests share (memory.request_budget): their bodies, what is read out of them, and their answers.
 *
 * Whoever is about to make something large asks first, and waits until others have given back. What is there already is
 * counted, also beyond the budget: then those who ask wait the longer. What a request holds is one share, which begins and
 * ends with zeros. Loop thread only, but for memory_hold. */
#pragma once

#include "base/error.h"
#include "core/fiber.h"

struct memory_share {
    uint64_t bytes;
};

/* `budget` in bytes; asking waits for at most `wait_ms`. Also keeps malloc from hoarding large pieces. */
void memory_configure(uint64_t budget, uint64_t wait_ms);

/* Half of what the cgroup or else the machine has. */
uint64_t memory_default_budget(void);
/* Of the cgroup, or else of the machine. */
uint64_t memory_of_process(void);

/* False: so much can never be had. */
bool memory_fits(uint64_t bytes);

/* True when half of the budget is in use: what can wait on a disk should. */
bool memory_is_short(void);

/* Grows the share to at least `bytes`, first come, first served; small requests do not wait behind large ones. SL_OK;
 * SL_UNSUPPORTED when it can never fit; SL_BUSY when it could not be had in time; SL_CANCELLED. The share is unchanged
 * unless SL_OK. */
enum sl_code memory_ask(struct memory_share *share, uint64_t bytes, struct sl_error *error) SL_SUSPENDS;

/* The share is what it was found to be. */
void memory_set(struct memory_share *share, uint64_t bytes);

/* What went from one owner to another. */
void memory_move(struct memory_share *to, struct memory_share *from);

/* What work on the pool holds for itself, for as long as it runs: now `bytes`, before that `*held`, which begins and ends with 0.
 * Whoever waits for it is looked at when the next share changes. Any thread. */
void memory_hold(uint64_t *held, uint64_t bytes);

uint64_t memory_used(void);  /* with that */
uint64_t memory_limit(void); /* the budget */

/* A fiber: gives free memory that malloc keeps back to the kernel, now and then, until its group is cancelled. */
void memory_trim_repeatedly(void *unused) SL_SUSPENDS;
