/* File ids: 128 bits that name an executable as it is deployed, whatever its build id says. The first 16 bytes of the
 * SHA-256 of its first 4096 bytes, its last 4096 bytes and its size (8 bytes, big-endian). */
#pragma once

#include "base/bytes.h"
#include "id/id.h"

enum { SL_FILE_ID_HEX = 33, SL_FILE_ID_BASE64 = 23 }; /* room for the text forms with their NUL */

struct sl_file_id sl_file_id_compute(struct sl_bytes file);

/* 32 lower-case hex digits; base64 of RFC 4648, section 5, without padding. */
void sl_file_id_format_hex(const struct sl_file_id *id, char out[SL_FILE_ID_HEX]);
void sl_file_id_format_base64(const struct sl_file_id *id, char out[SL_FILE_ID_BASE64]);

/* Either form as people write it: base64 of both alphabets with or without padding; hex in any case, with dashes, with
 * 0x before it. */
bool sl_file_id_parse_any(struct sl_str text, struct sl_file_id *id);
