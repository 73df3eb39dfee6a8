/* Bytes of source files to UTF-8 (RFC 3629; The Unicode Standard, chapter 3). Sources of Windows programs are often
 * UTF-16 with a byte order mark; bytes in other encodings keep at least their ASCII part. */
#pragma once

#include "base/buf.h"

/* Length of the well-formed sequence that begins at `s`, of which `left` bytes are there; 0 when it is none. Then
 * `*bad` (may be NULL) is the number of bytes that one replacement character stands for, at least 1. */
size_t sl_utf8_sequence(const char *s, size_t left, size_t *bad);

/* Appends at most four bytes to `out`; no surrogates. */
size_t sl_utf8_encode(uint32_t code, char *out);

/* The code point that begins at `*at`, moving `*at` behind it; U+FFFD for what is not UTF-8. `*at` is before the end. */
uint32_t sl_utf8_next(struct sl_str text, size_t *at);

/* The text of a source file: a view of `bytes` behind its byte order mark when that is well-formed, otherwise what it was
 * decoded to in `scratch`. False when the file is binary (has a NUL) or memory is out. */
bool sl_text_decode(struct sl_bytes bytes, struct sl_buf *scratch, struct sl_str *text);
