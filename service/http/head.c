/* A filter before llhttp: splits the bytes into lines, so that a head is parsed in one piece, and refuses two line forms that
 * llhttp accepts: continuation lines (obs-fold, RFC 9112, 5.2) and line feeds without a carriage return (2.2). */
#include "http/blank.h"
#include "http/impl.h"

enum head_result head_scan(struct head_scan *scan, struct sl_bytes data, const struct http_options *limits,
                           size_t *size)
{
    size_t at = scan->offset;
    enum head_result result = HEAD_MORE;
    while (result == HEAD_MORE) {
        const uint8_t *feed = at < data.size ? memchr(data.data + at, '\n', data.size - at) : NULL;
        size_t end = feed ? (size_t)(feed - data.data) : data.size;
        /* 2: CR LF */
        if (scan->lines == 0 && end - scan->line_start > limits->max_request_line + 2)
            return HEAD_LINE_TOO_LONG;
        if (end - scan->start > limits->max_head_bytes)
            return HEAD_TOO_LARGE;
        if (scan->lines > 0 && scan->line_start < data.size && http_is_blank((char)data.data[scan->line_start]))
            return HEAD_BAD; /* a continuation line */
        if (!feed) {
            scan->offset = data.size;
            return HEAD_MORE;
        }
        if (end == scan->line_start || data.data[end - 1] != '\r')
            return HEAD_BAD; /* a line feed without a carriage return */
        bool empty = end - 1 == scan->line_start;
        at = scan->line_start = end + 1;
        if (empty && scan->lines == 0)
            scan->start = at; /* empty lines before a request are skipped (RFC 9112, 2.2) */
        else if (empty)
            result = HEAD_COMPLETE;
        else
            scan->lines++;
        if (scan->lines > limits->max_header_fields + 1) /* 1: the request line */
            return HEAD_TOO_LARGE;
        /* too many empty lines before a request */
        if (scan->start > limits->max_head_bytes)
            return HEAD_BAD;
    }
    *size = at;
    return result;
}
