/* Text that several manglings write alike. Private to this folder. */
#pragma once

#include "base/buf.h"

enum { TEXT_MAX_PUNYCODE = 256 }; /* code points of one decoded identifier */

/* Whether it is printable ASCII throughout, without spaces: both Rust and Swift write any other text in it. */
bool text_is_plain(struct sl_str text);

/* Appends a code point as UTF-8. */
void text_add_char(struct sl_buf *out, uint32_t c);

/* Decodes Punycode (RFC 3492, 6.2) whose delimiter has been split off already: `basic` are the ASCII characters,
 * `extended` the deltas. Rust writes the digits 26 to 35 as 0-9, Swift as A-J (`first_digit` '0' or 'A'). False when it
 * is not Punycode or has more than TEXT_MAX_PUNYCODE code points; surrogates are not checked for. */
bool text_punycode(struct sl_str basic, struct sl_str extended, char first_digit, uint32_t *chars, size_t *count);
