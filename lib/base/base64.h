/* Base64 (RFC 4648): written in the alphabet for URLs and file names, read in either. */
#pragma once

#include "base/bytes.h"

/* Section 5, without padding and without a NUL; returns the number of characters, SL_BASE64_SIZE(bytes.size). */
#define SL_BASE64_SIZE(size) (((size)*4 + 2) / 3)
size_t sl_base64url_encode(struct sl_bytes bytes, char *out);

/* Either alphabet (sections 4 and 5), padding optional; unused bits must be zero. False also when `capacity` is too small. */
bool sl_base64_decode(struct sl_str text, uint8_t *out, size_t capacity, size_t *size);
