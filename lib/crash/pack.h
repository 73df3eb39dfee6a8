/* A crash as bytes: what one process reads of a crash file, for another one that does not trust it.
 *
 *     number  little-endian, 8 bytes       flag    1 byte, 0 or 1
 *     text    number of bytes (UINT64_MAX: data NULL), bytes        list   number of items, items
 *     text of at least SL_PACK_LONG bytes that came before     UINT64_MAX - 1, number: 0 is the first such text
 *
 * Frames share the names of their images, so a long text is written once, however many members are views of the same bytes. The
 * members of struct sl_crash follow each other in the order of crash.h. Reading checks every number, flag and text: whatever the
 * bytes are, the result is a valid crash or SL_MALFORMED. */
#pragma once

#include "base/map.h"
#include "crash/crash.h"

enum { SL_PACK_LONG = 32 };

struct sl_packer { /* zero but for `out` */
    struct sl_buf *out;
    struct sl_arena arena; /* keys of `texts` */
    struct sl_map texts;   /* from the address of a long text in memory to its number plus 1 */
};

struct sl_unpacker { /* zero but for the reader and the arena */
    struct sl_reader r;
    struct sl_arena *arena;
    struct sl_str *texts; /* the long texts that were read; in the arena */
    size_t text_count, text_capacity;
    bool no_memory;
};

/* Appends the crash. `out->failed` when out of memory. */
void sl_crash_pack(const struct sl_crash *crash, struct sl_packer *packer);
void sl_packer_free(struct sl_packer *packer); /* all but `out` */

/* Reads a crash; texts are views of the reader's bytes, everything else lies in the arena. SL_MALFORMED, SL_BUSY. */
enum sl_code sl_crash_unpack(struct sl_unpacker *unpacker, struct sl_crash *crash, struct sl_error *error);

/* ---- for packers of what surrounds a crash ---- */

void sl_pack_text(struct sl_packer *packer, struct sl_str text);
/* Read a value; the reader fails if it is not valid: UTF-8, 0 or 1, at most `most`, an array of items of at least `least` bytes each. */
struct sl_str sl_unpack_text(struct sl_unpacker *unpacker);
bool sl_unpack_flag(struct sl_reader *r);
uint64_t sl_unpack_number(struct sl_reader *r, uint64_t most);
size_t sl_unpack_count(struct sl_reader *r, size_t least);
