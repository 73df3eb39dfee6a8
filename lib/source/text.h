/* Bytes of source files to UTF-8 (RFC 3629; The Unicode Standard, chapter 3). Sources of Windows programs are often
 * UTF-16 with a byte order mark; bytes in other encodings keep at least their ASCII part. */
#pragma once

#include "base/buf.h"

/* The text of a source file: a view of `bytes` behind its byte order mark when that is well-formed, otherwise what it was
 * decoded to in `scratch`. False when the file is binary (has a NUL) or memory is out. */
bool sl_text_decode(struct sl_bytes bytes, struct sl_buf *scratch, struct sl_str *text);
