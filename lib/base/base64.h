/* Base64 (RFC 4648). Encodes in the URL-safe alphabet, decodes either alphabet. */
#pragma once

#include "base/bytes.h"

/* Section 5, without padding or NUL. Returns the number of characters: SL_BASE64_SIZE(bytes.size). */
#define SL_BASE64_SIZE(size) (((size)*4 + 2) / 3)
size_t sl_base64url_encode(struct sl_bytes bytes, char *out);

/* Decodes either alphabet (sections 4 and 5); padding is optional, unused bits must be zero. False also when `capacity` is too
 * small. */
bool sl_base64_decode(struct sl_str text, uint8_t *out, size_t capacity, size_t *size);
