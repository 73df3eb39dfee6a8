/* Errors of libsymloom and of the service: one code, one sentence.
 *
 * Functions that can fail return an `enum sl_code` and fill the `struct sl_error` they are given (it may be NULL when the
 * caller only wants the code). Nothing is printed in lib/. The codes are those that cache entries keep on disk
 * (not found ... unsupported); SL_INTERNAL is never kept on disk, SL_CANCELLED never leaves the request that was cancelled.
 * SL_BUSY says that this process is short of something (memory, descriptors, a place in a queue). It is never a statement
 * about a file: nobody keeps it, in no layer, and whoever may wait does so instead. */
#pragma once

#include <stdarg.h>
#include <stdint.h>

enum sl_code {
    SL_OK = 0,
    SL_NOT_FOUND,
    SL_PERMISSION_DENIED,
    SL_TIMEOUT, /* message: the limit that was exceeded as a duration, `duration_ns` as a number */
    SL_DOWNLOAD_ERROR,
    SL_MALFORMED,
    SL_UNSUPPORTED,
    SL_INTERNAL,
    SL_CANCELLED, /* the fiber's group was cancelled; service only */
    SL_BUSY,      /* message: what is scarce, e.g. "out of memory" */
};
enum { SL_CODES = SL_BUSY + 1 };

struct sl_error {
    enum sl_code code;
    uint64_t duration_ns; /* SL_TIMEOUT: the limit */
    char message[496];    /* details without the code's own words, UTF-8, always terminated */
};

/* Sets `error` (may be NULL) and returns `code`, so that a failing function ends in `return sl_fail(...)`.
 * A message that is too long is cut at a character boundary. */
enum sl_code sl_fail(struct sl_error *error, enum sl_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a failed system call means: SL_BUSY when errno says that memory or descriptors are used up, else SL_INTERNAL with
 * `what` ("cannot write the file") and errno's text. */
enum sl_code sl_fail_errno(struct sl_error *error, int number, const char *what);

/* The code's name in metrics and metadata: "ok", "not_found", "permission_denied", "timeout", "download_error",
 * "malformed", "unsupported", "internal", "cancelled", "busy". */
const char *sl_code_name(enum sl_code code);
