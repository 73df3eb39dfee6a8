/* Identities of code and debug information.
 *
 * A *debug id* names debug information: a UUID in big-endian (text) order plus an age or appendix; PDB 2.0 files have a
 * 32-bit time stamp instead of the UUID. A *code id* names an executable: GNU build id, Mach-O UUID, or PE time stamp
 * and size, as lower-case hex text. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "base/buf.h"

struct sl_debug_id {
    uint8_t uuid[16];
    uint32_t age; /* how often a PDB was written; for other ids a number that is appended, mostly 0 */
    bool pdb20;   /* uuid[0..3] is the big-endian time stamp, the rest zero */
};

#define SL_DEBUG_ID_TEXT 48 /* size of a buffer for any text form, with the NUL */

bool sl_debug_id_is_nil(const struct sl_debug_id *id);
/* False if UUID or time stamp is all zeros: such an id identifies nothing, whatever its age. */
bool sl_debug_id_has_uuid(const struct sl_debug_id *id);

/* True if both ids are equal. An id whose UUID is all zeros equals no id, not even itself. */
bool sl_debug_id_equal(const struct sl_debug_id *a, const struct sl_debug_id *b);

/* Parses an id leniently, for requests: with or without hyphens, optional appendix of which the first eight digits
 * count; short ids are PDB 2.0 ids. False and a nil id if it is not a debug id. */
bool sl_debug_id_parse(struct sl_str text, struct sl_debug_id *id);

/* Parses an id in strict Breakpad form: no hyphens, age required, nothing after it; PDB 2.0 form too. */
bool sl_debug_id_parse_breakpad(struct sl_str text, struct sl_debug_id *id);

/* Writes `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, then `-<age in lower hex>` if the age is not 0; PDB 2.0: `418E89C3-1`. */
void sl_debug_id_format(const struct sl_debug_id *id, char out[SL_DEBUG_ID_TEXT]);

/* Writes 32 upper-case hex digits, then the age in lower-case hex, also if it is 0; PDB 2.0: `418E89C31`. */
void sl_debug_id_format_breakpad(const struct sl_debug_id *id, char out[SL_DEBUG_ID_TEXT]);

/* Makes the debug id of a GNU build id (or of the hash of .text): its first 16 bytes, padded with zeros; for little-endian files the
 * first three UUID fields are byte-swapped. */
struct sl_debug_id sl_debug_id_from_build_id(struct sl_bytes build_id, bool big_endian);

/* Normalises a code id: only its hex digits, lower-cased, in the arena. May be empty. The data is NULL when out of
 * memory. */
struct sl_str sl_code_id_normalise(struct sl_arena *arena, struct sl_str text);

/* False if it is empty, all zeros, or that of a PE file with the time stamp 0: such an id identifies nothing. */
bool sl_code_id_is_set(struct sl_str code_id);

/* 128-bit id of a deployed executable, as symbfile uploads use it; as text 32 hex digits. */
struct sl_file_id {
    uint8_t bytes[16];
};

/* Writes lower-case hex digits and a NUL: 2 * size + 1 bytes. */
void sl_hex_encode(const uint8_t *bytes, size_t size, char *out);

/* Converts hex text to bytes; false on odd length, a non-digit or more than `capacity` bytes. `size` may be NULL. */
bool sl_hex_decode(struct sl_str hex, uint8_t *out, size_t capacity, size_t *size);
