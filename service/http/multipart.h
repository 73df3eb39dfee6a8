/* A push parser for multipart/form-data (RFC 7578): accepts any chunking, needs bounded memory.
 *
 *     Content-Type: multipart/form-data; boundary=b
 *
 *     --b\r\n                                                      begin("dump")
 *     Content-Disposition: form-data; name="dump"; filename="x"\r\n    multipart_file_name: "x"
 *     \r\n
 *     bytes\r\n                                                    data("bytes")
 *     --b--\r\n                                                    end
 *
 * Limits: boundary 1 to 70 bytes, 64 parts, 16 KiB of headers per part. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct multipart;

struct multipart_callbacks {
    /* A part begins; `name` is that of Content-Disposition, empty if it has none. */
    enum sl_code (*begin)(void *arg, struct sl_str name, struct sl_error *error);
    enum sl_code (*data)(void *arg, struct sl_bytes data, struct sl_error *error);
    enum sl_code (*end)(void *arg, struct sl_error *error);
    void *arg;
};

/* Finds the boundary in a Content-Type value; false if that is not multipart/form-data or the boundary is missing or
 * invalid. */
bool multipart_boundary(struct sl_str content_type, struct sl_str *boundary);

struct multipart *multipart_new(struct sl_arena *arena, struct sl_str boundary,
                                const struct multipart_callbacks *callbacks);
/* File name of the current part, as sent; data NULL if it has none. Valid until the next part. */
struct sl_str multipart_file_name(const struct multipart *m);
/* Parses the next bytes of the body and calls the callbacks. Contents are passed on in consecutive pieces of at most MULTIPART_PIECE
 * bytes; bytes after a piece are not examined before it is passed on. SL_MALFORMED, or the first error of a callback. */
enum { MULTIPART_PIECE = 1 << 20 };
enum sl_code multipart_feed(struct multipart *m, struct sl_bytes data, struct sl_error *error);
enum sl_code multipart_finish(struct multipart *m,
                              struct sl_error *error); /* SL_MALFORMED if the last boundary is missing */
