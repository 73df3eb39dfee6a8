/* Lexer and output for the reader of Rust's v0 names, which prints while it reads. Private to rust_v0*.c. */
#pragma once

#include "demangle/rust.h"
#include "demangle/text.h"

enum {
    MAX_STEPS = 1 << 16
}; /* limit of the characters read; those of a back reference count each time it is followed */

struct rust_v0_printer {
    struct sl_str text; /* after `_R` */
    size_t at;
    struct sl_buf *out; /* NULL: no output */
    size_t end;         /* limit of `out` */
    uint64_t lifetimes; /* number of lifetimes that the enclosing binders (`for<'a, 'b>`) have introduced */
    unsigned depth, steps;
    bool failed;
};

void v0_fail(struct rust_v0_printer *v);

/* ---- lexer: functions return NUL, 0 or false at the end of the name and after a failure ---- */

char v0_peek(const struct rust_v0_printer *v);  /* the next character */
char v0_next(struct rust_v0_printer *v);        /* takes the next character; fails at the end */
bool v0_eat(struct rust_v0_printer *v, char c); /* skips `c`; false if another character is next */

/* Enters a recursion level; false, with the printer failed, at the limit. Pair every call with v0_leave(). */
bool v0_enter(struct rust_v0_printer *v);
void v0_leave(struct rust_v0_printer *v);

/* Reads a number in base 62: `_` is 0, `0_` is 1, and so on. */
uint64_t v0_base62(struct rust_v0_printer *v);
/* Reads `tag` and a number in base 62; returns the number plus one, or 0 if another character is next. */
uint64_t v0_optional62(struct rust_v0_printer *v, char tag);
/* Reads lower-case hexadecimal digits up to `_`, which is taken as well; returns the digits. */
struct sl_str v0_hex_digits(struct rust_v0_printer *v);

/* ---- output: nothing if `out` is NULL ---- */
void v0_put(struct rust_v0_printer *v, struct sl_str text);
void v0_write(struct rust_v0_printer *v, const char *text);
void v0_put_number(struct rust_v0_printer *v, uint64_t value);
void v0_put_char(struct rust_v0_printer *v, uint32_t c);
/* Escapes the character as Rust source does inside `quote`s. */
void v0_put_escaped(struct rust_v0_printer *v, uint32_t c, char quote);
