/* Parses multipart bodies as they arrive. While a delimiter may have begun, at most its length of bytes is held back.
 *
 *     preamble --boundary CRLF headers CRLF CRLF data CRLF--boundary CRLF ... CRLF--boundary-- epilogue */
#include "http/multipart.h"

#include <string.h>

#include "http/blank.h"

enum { MAX_BOUNDARY = 70, MAX_PARTS = 64, MAX_HEADERS = 16 * 1024, MAX_DELIMITER = MAX_BOUNDARY + 4 };

enum multipart_state { PREAMBLE, AFTER_DELIMITER, HEADERS, DATA, EPILOGUE };

struct multipart {
    struct multipart_callbacks callbacks;
    struct sl_arena *arena;
    char delimiter[MAX_DELIMITER]; /* CRLF "--" boundary */
    size_t delimiter_size;
    enum multipart_state where;
    size_t matched; /* bytes at the end of the input so far that match the start of the delimiter */
    size_t assumed; /* how many of the `matched` bytes are a line end before the part, not content of it */
    size_t parts;
    char tail[2]; /* the two bytes after a delimiter and blanks: CRLF or "--" */
    size_t tail_size;
    char *headers; /* of the current part, MAX_HEADERS */
    size_t headers_size;
    struct sl_str file_name; /* of the current part; data NULL if it has none */
};

/* ---- parameters of header values (RFC 9110, 5.6.6) ---- */
/* Parses the next `; name=value` at `*at` and advances `*at`; removes the quotes of a value, but not backslashes in it. Without "=" the
 * value is empty. Returns 1, 0 at the end, -1 if the closing quote is missing. */
static int next_parameter(struct sl_str text, size_t *at, struct sl_str *name, struct sl_str *value, bool *quoted)
{
    while (*at < text.size && (http_is_blank(text.data[*at]) || text.data[*at] == ';'))
        (*at)++;
    if (*at == text.size)
        return 0;
    size_t start = *at;
    while (*at < text.size && text.data[*at] != '=' && text.data[*at] != ';')
        (*at)++;
    *name = http_trim((struct sl_str){text.data + start, *at - start});
    *value = (struct sl_str){text.data + *at, 0};
    *quoted = false;
    if (*at == text.size || text.data[*at] == ';')
        return 1;
    (*at)++;
    while (*at < text.size && http_is_blank(text.data[*at]))
        (*at)++;
    *quoted = *at < text.size && text.data[*at] == '"';
    if (!*quoted) {
        start = *at;
        while (*at < text.size && text.data[*at] != ';')
            (*at)++;
        *value = http_trim((struct sl_str){text.data + start, *at - start});
        return 1;
    }
    start = ++*at;
    while (*at < text.size && text.data[*at] != '"')
        *at += text.data[*at] == '\\' && *at + 1 < text.size ? 2 : 1;
    if (*at >= text.size)
        return -1;
    *value = (struct sl_str){text.data + start, *at - start};
    (*at)++;
    return 1;
}

static bool is_boundary_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("'()+_,-./:=? ", c));
}

bool multipart_boundary(struct sl_str content_type, struct sl_str *boundary)
{
    static const struct sl_str type = SL_STR("multipart/form-data");
    size_t at = type.size;
    if (content_type.size < at || !sl_str_equal_nocase((struct sl_str){content_type.data, at}, type))
        return false;
    if (at < content_type.size && content_type.data[at] != ';' && !http_is_blank(content_type.data[at]))
        return false;
    struct sl_str name, value;
    bool quoted;
    while (next_parameter(content_type, &at, &name, &value, &quoted) > 0) {
        if (!sl_str_equal_nocase(name, SL_STR("boundary")))
            continue;
        if (value.size == 0 || value.size > MAX_BOUNDARY || value.data[value.size - 1] == ' ')
            return false; /* RFC 2046, 5.1.1 */
        for (size_t i = 0; i < value.size; i++)
            if (!is_boundary_char(value.data[i]))
                return false;
        *boundary = value;
        return true;
    }
    return false;
}

/* ---- part headers ---- */
/* In a quoted value, removes each backslash that precedes a quote or a backslash. Any other backslash is part of the value, as in a
 * Windows path. Data NULL when out of memory. */
static struct sl_str unescape(struct sl_arena *arena, struct sl_str text, bool quoted)
{
    if (!quoted || !memchr(text.data, '\\', text.size))
        return text;
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    size_t size = 0;
    for (size_t i = 0; copy && i < text.size; i++) {
        if (text.data[i] == '\\' && i + 1 < text.size && (text.data[i + 1] == '"' || text.data[i + 1] == '\\'))
            i++;
        copy[size++] = text.data[i];
    }
    return (struct sl_str){copy, size};
}

/* Takes name and file name from a Content-Disposition line; ignores other lines. False if it is malformed. */
static bool part_name(struct multipart *m, struct sl_str line, struct sl_str *name)
{
    static const struct sl_str header = SL_STR("content-disposition:");
    size_t at = header.size;
    if (line.size < at || !sl_str_equal_nocase((struct sl_str){line.data, at}, header))
        return true;
    while (at < line.size && line.data[at] != ';')
        at++;
    struct sl_str key, value;
    bool quoted;
    int more;
    while ((more = next_parameter(line, &at, &key, &value, &quoted)) > 0)
        if (sl_str_equal_nocase(key, SL_STR("name")))
            *name = unescape(m->arena, value, quoted);
        else if (sl_str_equal_nocase(key, SL_STR("filename")))
            m->file_name = unescape(m->arena, value, quoted);
    return more == 0;
}

/* Parses the headers of a part and reports its beginning. A part without a name has the name "". */
static enum sl_code begin_part(struct multipart *m, struct sl_error *error)
{
    struct sl_str name = {"", 0}, headers = {m->headers, m->headers_size};
    m->file_name = (struct sl_str){NULL, 0};
    for (size_t at = 0; at < headers.size;) {
        const char *end = memmem(headers.data + at, headers.size - at, "\r\n", 2);
        size_t size = end ? (size_t)(end - headers.data) - at : headers.size - at;
        struct sl_str line = {headers.data + at, size};
        if (size > 0 && (!memchr(line.data, ':', size) || http_is_blank(line.data[0])))
            return sl_fail(error, SL_MALFORMED, "malformed header in a part of the multipart body");
        if (!part_name(m, line, &name))
            return sl_fail(error, SL_MALFORMED, "malformed Content-Disposition in a part of the multipart body");
        at += size + 2;
    }
    if (!name.data) /* unescape was out of memory */
        return sl_fail(error, SL_BUSY, "out of memory");
    return m->callbacks.begin ? m->callbacks.begin(m->callbacks.arg, name, error) : SL_OK;
}

struct sl_str multipart_file_name(const struct multipart *m)
{
    return m->file_name;
}

/* ---- the stream ---- */

/* Allocates a parser in the arena. NULL if the boundary has an invalid length, or when out of memory. */
struct multipart *multipart_new(struct sl_arena *arena, struct sl_str boundary,
                                const struct multipart_callbacks *callbacks)
{
    struct multipart *m = SL_ARENA_NEW(arena, struct multipart);
    if (!m || boundary.size == 0 || boundary.size > MAX_BOUNDARY)
        return NULL;
    m->headers = sl_arena_alloc(arena, MAX_HEADERS, 1);
    if (!m->headers)
        return NULL;
    m->arena = arena;
    m->callbacks = *callbacks;
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.data, boundary.size);
    m->delimiter_size = boundary.size + 4;
    /* CR LF count as matched: the first delimiter may be at the very beginning, without a line end */
    m->matched = m->assumed = 2;
    return m;
}

/* Passes contents of a part on. Bytes before the first delimiter are not contents. */
static enum sl_code pass_contents(struct multipart *m, const void *data, size_t size, struct sl_error *error)
{
    if (m->where != DATA || size == 0 || !m->callbacks.data)
        return SL_OK;
    return m->callbacks.data(m->callbacks.arg, (struct sl_bytes){data, size}, error);
}

/* Passes contents on up to the next delimiter. At its end returns with m->matched == m->delimiter_size; without one, all of `*in` is
 * used. If `*in` ends within a delimiter, m->matched bytes of it are held back, of which m->assumed are no content. The delimiter has CR
 * only as its first byte: so after a mismatch no shorter prefix can match, and the search continues at the mismatching byte. */
static enum sl_code scan_data(struct multipart *m, struct sl_bytes *in, struct sl_error *error)
{
    const uint8_t *start = in->data, *end = in->data + in->size, *at = start;
    while (at < end) {
        if (m->matched == 0) {
            size_t size = end - at < MULTIPART_PIECE ? (size_t)(end - at) : MULTIPART_PIECE;
            const uint8_t *cr = memchr(at, '\r', size);
            at = cr ? cr : at + size;
            enum sl_code code = pass_contents(m, start, (size_t)(at - start), error);
            if (code)
                return code;
            start = at;
            if (!cr)
                continue;
            m->matched = 1;
            m->assumed = 0;
            start = ++at;
            continue;
        }
        if (*at == (uint8_t)m->delimiter[m->matched]) {
            at++;
            if (++m->matched == m->delimiter_size) {
                in->data = at;
                in->size = (size_t)(end - at);
                return SL_OK;
            }
            start = at;
            continue;
        }
        /* The partial match was content. If it began in an earlier call, its bytes are not in `in` any more: a copy of them is in the
         * delimiter. */
        size_t size = m->matched - m->assumed;
        bool is_here = (size_t)(at - (const uint8_t *)in->data) >= size;
        enum sl_code code =
            pass_contents(m, is_here ? (const void *)(at - size) : m->delimiter + m->assumed, size, error);
        if (code)
            return code;
        m->matched = m->assumed = 0;
        start = at;
    }
    in->data = end;
    in->size = 0;
    return m->matched ? SL_OK : pass_contents(m, start, (size_t)(end - start), error);
}

/* Called after a complete delimiter: ends the current part; the first delimiter of a body ends none. */
static enum sl_code delimiter_found(struct multipart *m, struct sl_error *error)
{
    bool in_part = m->where == DATA;
    m->matched = m->assumed = 0;
    m->tail_size = 0;
    m->where = AFTER_DELIMITER;
    return in_part && m->callbacks.end ? m->callbacks.end(m->callbacks.arg, error) : SL_OK;
}

/* Reads one of the two bytes after a delimiter: CR LF begins a new part, "--" ends the body. Skips blanks before them. */
static enum sl_code read_tail(struct multipart *m, struct sl_bytes *in, struct sl_error *error)
{
    uint8_t c = *in->data;
    in->data++;
    in->size--;
    if (m->tail_size == 0 && http_is_blank((char)c))
        return SL_OK;
    m->tail[m->tail_size++] = (char)c;
    if (m->tail_size < 2)
        return SL_OK;
    if (memcmp(m->tail, "--", 2) == 0) {
        m->where = EPILOGUE;
        return SL_OK;
    }
    if (memcmp(m->tail, "\r\n", 2) != 0)
        return sl_fail(error, SL_MALFORMED, "malformed boundary line in the multipart body");
    if (++m->parts > MAX_PARTS)
        return sl_fail(error, SL_MALFORMED, "the multipart body has more than %d parts", MAX_PARTS);
    m->where = HEADERS;
    m->headers_size = 0;
    return SL_OK;
}

/* Collects the headers of a part until an empty line. */
static enum sl_code read_headers(struct multipart *m, struct sl_bytes *in, struct sl_error *error)
{
    while (in->size > 0) {
        if (m->headers_size == MAX_HEADERS)
            return sl_fail(error, SL_MALFORMED, "the headers of a part of the multipart body exceed %d bytes",
                           MAX_HEADERS);
        char c = (char)*in->data;
        m->headers[m->headers_size++] = c;
        in->data++;
        in->size--;
        size_t size = m->headers_size;
        bool empty = size == 2 && memcmp(m->headers, "\r\n", 2) == 0;
        if (!empty && (c != '\n' || size < 4 || memcmp(m->headers + size - 4, "\r\n\r\n", 4) != 0))
            continue;
        m->headers_size -= empty ? 2 : 4;
        m->where = DATA;
        /* CR LF count as matched: in an empty part, the line end of the headers also begins the delimiter */
        m->matched = m->assumed = 2;
        return begin_part(m, error);
    }
    return SL_OK;
}

/* Each function called here removes the bytes that it has used from `data`. Bytes after the last delimiter are ignored. */
enum sl_code multipart_feed(struct multipart *m, struct sl_bytes data, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    while (code == SL_OK && data.size > 0) {
        switch (m->where) {
        case PREAMBLE: /* scanned likewise, but dropped by pass_contents */
        case DATA: {
            code = scan_data(m, &data, error);
            if (code == SL_OK && m->matched == m->delimiter_size)
                code = delimiter_found(m, error);
            break;
        }
        case AFTER_DELIMITER: code = read_tail(m, &data, error); break;
        case HEADERS: code = read_headers(m, &data, error); break;
        case EPILOGUE: return SL_OK;
        }
    }
    return code;
}

enum sl_code multipart_finish(struct multipart *m, struct sl_error *error)
{
    if (m->where != EPILOGUE)
        return sl_fail(error, SL_MALFORMED, "the multipart body is incomplete: its last boundary is missing");
    return SL_OK;
}
