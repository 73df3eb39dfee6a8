/* Base64 (RFC 4648). Encodes in the URL-safe alphabet, decodes either alphabet. */
#pragma once

#include "base/bytes.h"

/* Writes the URL-safe form (RFC 4648, section 5) to `out`, without padding or NUL. Returns the number of characters:
 * SL_BASE64_SIZE(bytes.size). */
#define SL_BASE64_SIZE(size) (((size)*4 + 2) / 3)
size_t sl_base64url_encode(struct sl_bytes bytes, char *out);

/* Decodes a text in the standard or the URL-safe alphabet (RFC 4648, sections 4 and 5) to `*size` bytes in `out`; padding is optional,
 * unused bits must be zero. False if malformed, or if `capacity` is too small. */
bool sl_base64_decode(struct sl_str text, uint8_t *out, size_t capacity, size_t *size);
