/* What the reader of Rust's v0 names is made of: the text, its numbers, and what is shown of it. Private to rust_v0*.c. */
#pragma once

#include "demangle/rust.h"
#include "demangle/text.h"

enum { MAX_STEPS = 1 << 16 };

struct v0 {
    struct sl_str text; /* behind `_R` */
    size_t at;
    struct sl_buf *out; /* NULL: nothing is shown */
    size_t end;         /* of `out`, by the limit */
    uint64_t lifetimes; /* bound by the binders around */
    unsigned depth, steps;
    bool failed;
};

void v0_fail(struct v0 *v);

/* ---- reading: '\0' or 0 behind the end and after a failure ---- */
char v0_peek(const struct v0 *v);
char v0_next(struct v0 *v);
bool v0_eat(struct v0 *v, char c);

/* One level deeper; false at the limit. Every call is paired with v0_leave(). */
bool v0_enter(struct v0 *v);
void v0_leave(struct v0 *v);

/* `_` is 0, `0_` is 1 ... */
uint64_t v0_base62(struct v0 *v);
/* A number behind `tag`, one more than written; 0 = the tag is absent. */
uint64_t v0_optional62(struct v0 *v, char tag);
/* Hexadecimal digits up to `_`. */
struct sl_str v0_hex_digits(struct v0 *v);

/* ---- showing: nothing where `out` is NULL ---- */
void v0_show(struct v0 *v, struct sl_str text);
void v0_say(struct v0 *v, const char *text);
void v0_show_number(struct v0 *v, uint64_t value);
void v0_show_char(struct v0 *v, uint32_t c);
/* As in Rust source, between `quote`s. */
void v0_show_escaped(struct v0 *v, uint32_t c, char quote);
