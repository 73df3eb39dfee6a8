/* Text helpers for several manglings. Private to this folder. */
#pragma once

#include "base/buf.h"

enum { TEXT_MAX_PUNYCODE = 256 }; /* code points in a decoded identifier */

/* True for printable ASCII without spaces; Rust and Swift encode all other text in this form. */
bool text_is_plain(struct sl_str text);

/* Appends a code point as UTF-8. */
void text_add_char(struct sl_buf *out, uint32_t c);

/* Decodes Punycode (RFC 3492, 6.2) that has been split at its delimiter: `basic` are the ASCII characters, `extended` the
 * deltas. The digits 26 to 35 are 0-9 in Rust, A-J in Swift (`first_digit` '0' or 'A'). False if it is invalid or has more than
 * TEXT_MAX_PUNYCODE code points; surrogates are not rejected. */
bool text_punycode(struct sl_str basic, struct sl_str extended, char first_digit, uint32_t *chars, size_t *count);
