/* A crash as bytes: what one process reads of a crash file, for another one that does not trust it.
 *
 *     number  little-endian, 8 bytes       flag    1 byte, 0 or 1
 *     text    number of bytes (UINT64_MAX: data NULL), bytes        list   number of items, items
 *     text of at least SL_PACK_LONG bytes that came before     UINT64_MAX - 1, number: 0 is the first such text
 *
 * Frames share the names of their images, so a long text is written once, however many members are views of the same bytes in memory.
 * Reading checks every number, flag and text: whatever the bytes are, the result is a valid crash or SL_MALFORMED. */
#pragma once

#include "base/map.h"
#include "crash/crash.h"

enum { SL_PACK_LONG = 32 };

struct sl_packer { /* the caller sets `out`, the rest to zero */
    struct sl_buf *out;
    struct sl_arena arena; /* keys of `texts` */
    struct sl_map texts;   /* from a long text (address and size, not contents) to its number plus 1 */
};

struct sl_unpacker { /* the caller sets `r` and `arena`, the rest to zero */
    struct sl_reader r;
    struct sl_arena *arena;
    struct sl_str *texts; /* the long texts that were read; in the arena */
    size_t text_count, text_capacity;
    bool no_memory;
};

/* Appends the crash to packer->out, which has `failed` set when out of memory. */
void sl_crash_pack(const struct sl_crash *crash, struct sl_packer *packer);
void sl_packer_free(struct sl_packer *packer); /* frees all but `out` */

/* Reads a crash; texts are views of the reader's bytes, everything else lies in the arena. SL_MALFORMED if a value is not valid, SL_BUSY
 * when out of memory. */
enum sl_code sl_crash_unpack(struct sl_unpacker *unpacker, struct sl_crash *crash, struct sl_error *error);

/* ---- for data that callers write in front of or after a crash ---- */

void sl_pack_text(struct sl_packer *packer, struct sl_str text);

/* Read a value. If it is not valid, the reader fails and the result is 0, false or empty. A text must be UTF-8, a flag 0 or 1, a number at
 * most `most`; a count of items that have at least `least` bytes each must not exceed what the bytes left can hold. */
struct sl_str sl_unpack_text(struct sl_unpacker *unpacker);
bool sl_unpack_flag(struct sl_reader *r);
uint64_t sl_unpack_number(struct sl_reader *r, uint64_t most);
size_t sl_unpack_count(struct sl_reader *r, size_t least);
