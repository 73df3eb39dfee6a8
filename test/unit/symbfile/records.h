/* Records of a symbfile as text, one a line, and symbfiles out of hex digits: what the tests of this folder share. */
#pragma once

#include "symbfile/symbfile.h"

struct collector {
    struct sl_symbfile_sink sink;
    struct sl_buf text;
};

void collector_init(struct collector *collector);
const char *collector_text(struct collector *collector); /* terminated */

/* The bytes of hex digits (blanks are passed over), malloc'ed. */
struct sl_bytes from_hex(const char *hex);

/* The range and pad of a call, written out by collector as
 *   range <va> +<length> d<depth> <function> [<file>] call [<file>]:<line> {+<offset>:<line> ...}
 *   pad <va> <function>[<file>]:<line> ... */
struct sl_symbfile_text text(const char *s); /* NULL = absent */

/* The records of 12.2: an executable with four inlined calls. */
#define GOLDEN_FILE "/media/share/Development/prodfiler/libpf-rs/testdata/inline.c"
enum { GOLDEN_RANGES = 9 };
const struct sl_symbfile_range *golden_ranges(void);

enum sl_code append_output(void *buf, struct sl_bytes bytes, struct sl_error *error);
void sha256_hex(struct sl_bytes bytes, char out[65]);
