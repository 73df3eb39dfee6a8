#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum sl_code sl_fail(struct sl_error *error, enum sl_code code, const char *format, ...)
{
    if (!error)
        return code;
    error->code = code;
    error->duration_ns = 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    if (length >= (int)sizeof error->message) {
        /* The message was cut, perhaps within a character: removes the last one if it has several bytes. Bytes 10xxxxxx continue a
         * character; its first byte is at least 0xC0. */
        size_t end = sizeof error->message - 1;
        while (end > 0 && ((unsigned char)error->message[end - 1] & 0xC0) == 0x80)
            end--;
        if (end > 0 && (unsigned char)error->message[end - 1] >= 0xC0)
            end--;
        error->message[end] = '\0';
    }
    return code;
}

enum sl_code sl_fail_errno(struct sl_error *error, int number, const char *what)
{
    if (number == EMFILE || number == ENFILE)
        return sl_fail(error, SL_BUSY, "out of file descriptors: raise the limit of open files (ulimit -n)");
    if (number == ENOMEM)
        return sl_fail(error, SL_BUSY, "out of memory");
    return sl_fail(error, SL_INTERNAL, "%s: %s", what, strerror(number));
}

const char *sl_code_name(enum sl_code code)
{
    static const char *const names[] = {
        [SL_OK] = "ok",
        [SL_NOT_FOUND] = "not_found",
        [SL_PERMISSION_DENIED] = "permission_denied",
        [SL_TIMEOUT] = "timeout",
        [SL_DOWNLOAD_ERROR] = "download_error",
        [SL_MALFORMED] = "malformed",
        [SL_UNSUPPORTED] = "unsupported",
        [SL_INTERNAL] = "internal",
        [SL_CANCELLED] = "cancelled",
        [SL_BUSY] = "busy",
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : "internal";
}
