/* Answers that live in memory alone: tokens, credentials, small indexes.
 *
 * A table of texts by key: at most `capacity` entries (the one longest unused goes first), each until its time. However many
 * fibers want one that is not there, it is asked for once; if the asking fiber is cancelled, another one takes over.
 * Texts may be secret: they are wiped when they go, and the table knows only the SHA-256 of the keys. Loop thread only. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/lru.h"

struct memo {
    size_t capacity;  /* 0 = nothing is kept */
    const char *name; /* label of metrics; NULL = not counted */
    /* Nanoseconds. 0 = errors are not kept; otherwise they are, for that long, and a text whose renewal fails is kept for
     * `again_ns` more. */
    uint64_t error_ns, again_ns;
    uint64_t failure_ns; /* the same for errors of which `is_failure` is true; 0 = as `error_ns` */
    bool (*is_failure)(enum sl_code code);
    /* So long before its end (at most half of its time), a text is asked for again by who wants it then, while others still get
     * the one that is there; so does everybody when the asking fails. 0 = at its end */
    uint64_t ahead_ns;
    struct lru lru; /* private */
};

/* Appends the text of a key and sets for how long it is good (nanoseconds, 0 = do not keep it). */
typedef enum sl_code memo_ask(const void *context, struct sl_buf *text, uint64_t *for_ns,
                              struct sl_error *error) SL_SUSPENDS;

/* The text, copied into the arena; or the error of asking for it. SL_CANCELLED when the caller's group was cancelled. */
enum sl_code memo_get(struct memo *memo, const struct sl_str *key, size_t key_parts, memo_ask *ask, const void *context,
                      struct sl_arena *arena, struct sl_str *text, struct sl_error *error) SL_SUSPENDS;

/* For how long the text that is kept is good; 0 = none is. Asks nobody. */
uint64_t memo_left_ms(struct memo *memo, const struct sl_str *key, size_t key_parts);

/* Every text is asked for again when it is wanted next. */
void memo_expire(struct memo *memo);

/* From now on at most so many; the rest is dropped. */
void memo_resize(struct memo *memo, size_t capacity);

/* Forgets everything. No fiber may be in memo_get. */
void memo_free(struct memo *memo);
