/* Errors of libsymloom and of the service: a code and a sentence.
 *
 * Functions that can fail return an `enum sl_code` and fill the `struct sl_error` they are given (NULL if the caller only wants
 * the code). lib/ prints nothing. Cache entries on disk store the codes from SL_NOT_FOUND to SL_UNSUPPORTED; SL_INTERNAL is
 * never stored on disk, and SL_CANCELLED never leaves the request that was cancelled. SL_BUSY means that this process is short
 * of something (memory, descriptors, a queue slot). It says nothing about a file, so no cache layer stores it, and a caller with
 * time left waits and retries. */
#pragma once

#include <stdarg.h>
#include <stdint.h>

enum sl_code {
    SL_OK = 0,
    SL_NOT_FOUND,
    SL_PERMISSION_DENIED,
    SL_TIMEOUT, /* message: the exceeded limit as a duration; `duration_ns`: the same as a number */
    SL_DOWNLOAD_ERROR,
    SL_MALFORMED,
    SL_UNSUPPORTED,
    SL_INTERNAL,
    SL_CANCELLED, /* the request, or the thread's work (base/cancel.h), was cancelled */
    SL_BUSY,      /* message: what is scarce, e.g. "out of memory" */
};
enum { SL_CODES = SL_BUSY + 1 };

struct sl_error {
    enum sl_code code;
    uint64_t duration_ns; /* SL_TIMEOUT: the limit */
    char message[496];    /* details without the name of the code; UTF-8, always terminated */
};

/* Sets `error` (may be NULL) and returns `code`, so a failing function ends in `return sl_fail(...)`. A message that is too long
 * is cut at a character boundary. */
enum sl_code sl_fail(struct sl_error *error, enum sl_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets and returns the error of a failed system call, whose errno is `number`: SL_BUSY if memory or descriptors are exhausted, else
 * SL_INTERNAL with `what` ("cannot write the file") and the text for `number`. */
enum sl_code sl_fail_errno(struct sl_error *error, int number, const char *what);

/* Returns the code's name in metrics and metadata: "ok", "not_found", "permission_denied", "timeout", "download_error",
 * "malformed", "unsupported", "internal", "cancelled", "busy". */
const char *sl_code_name(enum sl_code code);
