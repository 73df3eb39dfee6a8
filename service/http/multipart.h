/* multipart/form-data (RFC 7578) as a push parser: bytes in, parts out, any chunking, bounded memory.
 *
 * Limits: boundary 1 to 70 bytes, 64 parts, 16 KiB of headers per part. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct multipart;

struct multipart_callbacks {
    /* A part begins; `name` from Content-Disposition, empty when it has none. */
    enum sl_code (*begin)(void *arg, struct sl_str name, struct sl_error *error);
    enum sl_code (*data)(void *arg, struct sl_bytes data, struct sl_error *error);
    enum sl_code (*end)(void *arg, struct sl_error *error);
    void *arg;
};

/* The boundary of a Content-Type value; false when it is no multipart/form-data or the boundary is missing or bad. */
bool multipart_boundary(struct sl_str content_type, struct sl_str *boundary);

struct multipart *multipart_new(struct sl_arena *arena, struct sl_str boundary,
                                const struct multipart_callbacks *callbacks);
/* The file name of the part that began last, as it was sent; data NULL when it has none. Valid until the next part. */
struct sl_str multipart_file_name(const struct multipart *m);
/* What is fed in one piece is given in pieces that follow one another in it, of at most MULTIPART_PIECE bytes, and nothing behind
 * such a piece was looked at before. */
enum { MULTIPART_PIECE = 1 << 20 };
enum sl_code multipart_feed(struct multipart *m, struct sl_bytes data, struct sl_error *error);
enum sl_code multipart_finish(struct multipart *m,
                              struct sl_error *error); /* SL_MALFORMED when the last boundary is missing */
