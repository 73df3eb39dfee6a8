/* Streaming decoders of content codings: gzip (RFC 1952), deflate in its zlib form (RFC 1950), zstd (RFC 8878). */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum content_coding { CODING_IDENTITY, CODING_GZIP, CODING_DEFLATE, CODING_ZSTD, CODING_UNKNOWN };
enum content_coding coding_parse(struct sl_str value); /* by the name in Content-Encoding; CODING_UNKNOWN for others */

/* Limits of the zstd window, as base-2 logarithms of its size: for HTTP (RFC 9659), and for files, zstd's own default. */
enum { ZSTD_WINDOW_HTTP = 23, ZSTD_WINDOW_FILES = 27 };

struct http_decoder;
struct http_decoder *decoder_new(enum content_coding coding, int zstd_window_log); /* NULL when out of memory */
void decoder_free(struct http_decoder *decoder);                                   /* may be NULL */
/* Decodes from `*in` (advanced) to `out`, until the input is used up or `out` has `limit` bytes. SL_MALFORMED if the input is damaged,
 * SL_BUSY when out of memory. */
enum sl_code decoder_run(struct http_decoder *decoder, struct sl_bytes *in, struct sl_buf *out, size_t limit);
bool decoder_ended(const struct http_decoder *decoder); /* true at the end of a complete stream */
