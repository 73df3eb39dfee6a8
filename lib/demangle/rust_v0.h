/* Lexer and output of the reader of Rust's v0 names. Private to rust_v0*.c. */
#pragma once

#include "demangle/rust.h"
#include "demangle/text.h"

enum { MAX_STEPS = 1 << 16 };

struct v0 {
    struct sl_str text; /* after `_R` */
    size_t at;
    struct sl_buf *out; /* NULL: no output */
    size_t end;         /* limit of `out` */
    uint64_t lifetimes; /* number of lifetimes bound by the enclosing binders */
    unsigned depth, steps;
    bool failed;
};

void v0_fail(struct v0 *v);

/* ---- lexer: '\0' or 0 at the end and after a failure ---- */
char v0_peek(const struct v0 *v);
char v0_next(struct v0 *v);
bool v0_eat(struct v0 *v, char c);

/* Enters a recursion level; false at the limit. Pair every call with v0_leave(). */
bool v0_enter(struct v0 *v);
void v0_leave(struct v0 *v);

/* `_` is 0, `0_` is 1 ... */
uint64_t v0_base62(struct v0 *v);
/* Reads `tag` and a number; returns the number plus one, or 0 if the tag is absent. */
uint64_t v0_optional62(struct v0 *v, char tag);
/* Reads hexadecimal digits up to `_`. */
struct sl_str v0_hex_digits(struct v0 *v);

/* ---- output: nothing if `out` is NULL ---- */
void v0_show(struct v0 *v, struct sl_str text);
void v0_write(struct v0 *v, const char *text);
void v0_show_number(struct v0 *v, uint64_t value);
void v0_show_char(struct v0 *v, uint32_t c);
/* Escapes the character as Rust source does inside `quote`s. */
void v0_show_escaped(struct v0 *v, uint32_t c, char quote);
