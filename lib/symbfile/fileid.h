/* File ids: 128 bits that identify an executable as deployed, independent of its build id. They are the first 16
 * bytes of the SHA-256 of: first 4096 bytes | last 4096 bytes | file size (8 bytes, big-endian). */
#pragma once

#include "base/bytes.h"
#include "id/id.h"

enum { SL_FILE_ID_HEX = 33, SL_FILE_ID_BASE64 = 23 }; /* buffer sizes of the text forms, with NUL */

struct sl_file_id sl_file_id_compute(struct sl_bytes file);

/* Formats the id as 32 lower-case hex digits. */
void sl_file_id_format_hex(const struct sl_file_id *id, char out[SL_FILE_ID_HEX]);

/* Formats the id as base64url (RFC 4648, section 5) without padding: 22 characters. */
void sl_file_id_format_base64(const struct sl_file_id *id, char out[SL_FILE_ID_BASE64]);

/* Parses an id in base64 (standard or URL-safe alphabet, with or without padding) or in hex (any case, with dashes or a leading
 * 0x). False if the text is neither. */
bool sl_file_id_parse_any(struct sl_str text, struct sl_file_id *id);
