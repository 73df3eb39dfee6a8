/* Converts source files to UTF-8 (RFC 3629; The Unicode Standard, chapter 3). Sources of Windows programs are often
 * UTF-16 with a byte order mark; of other encodings at least the ASCII characters are kept. */
#pragma once

#include "base/buf.h"

/* Sets `*text` to the text of a source file without byte order mark: a view of `bytes` if that is valid UTF-8, else the text
 * converted into `scratch`, where ill-formed bytes become U+FFFD. False if the file is binary (has a NUL) or memory is short. */
bool sl_text_decode(struct sl_bytes bytes, struct sl_buf *scratch, struct sl_str *text);
