/* Sources that are directories of a web server. */
#include "origin/impl.h"

#include <stdio.h>
#include <string.h>

void url_add_path(struct sl_buf *url, struct sl_str text)
{
    static const char hex[] = "0123456789ABCDEF";
    static const bool encoded[256] = {
        [0 ... ' '] = true, ['"'] = true,  ['#'] = true, ['%'] = true, ['<'] = true, ['>'] = true,
        ['?'] = true,       ['\\'] = true, ['`'] = true, ['{'] = true, ['}'] = true, [0x7F ... 0xFF] = true};
    if (!sl_buf_reserve(url, 3 * text.size))
        return;
    uint8_t *at = url->data + url->size;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = (uint8_t)text.data[i];
        if (!encoded[c]) {
            *at++ = c;
        } else {
            *at++ = '%';
            *at++ = (uint8_t)hex[c >> 4];
            *at++ = (uint8_t)hex[c & 15];
        }
    }
    url->size = (size_t)(at - url->data);
}

/* Parts of a base URL: scheme "://" [user "@"] host path ["?" query]. */
struct http_source_base {
    struct sl_str scheme, user, host, path, query;
};

/* Splits a base URL into scheme (with "://"), user info (with "@"), host and port, path, and query (with "?"); drops its fragment. False if
 * it has no scheme with "://", or no host. */
static bool http_split(struct sl_str text, struct http_source_base *base)
{
    *base = (struct http_source_base){0};
    const char *fragment = memchr(text.data, '#', text.size);
    if (fragment)
        text.size = (size_t)(fragment - text.data);
    const char *colon = text.size ? memchr(text.data, ':', text.size) : NULL;
    size_t before = colon ? (size_t)(colon - text.data) : 0;
    if (before == 0 || text.size - before < 3 || memcmp(colon, "://", 3) != 0 || memchr(text.data, '/', before))
        return false;
    base->scheme = (struct sl_str){text.data, (size_t)(colon - text.data) + 3};
    struct sl_str rest = {colon + 3, text.size - base->scheme.size};
    const char *question = memchr(rest.data, '?', rest.size);
    if (question) {
        base->query = (struct sl_str){question, rest.size - (size_t)(question - rest.data)};
        rest.size -= base->query.size;
    }
    const char *slash = memchr(rest.data, '/', rest.size);
    struct sl_str authority = {rest.data, slash ? (size_t)(slash - rest.data) : rest.size};
    base->path = (struct sl_str){rest.data + authority.size, rest.size - authority.size};
    const char *at = memrchr(authority.data, '@', authority.size);
    if (at) {
        base->user = (struct sl_str){authority.data, (size_t)(at - authority.data) + 1};
        authority.data += base->user.size;
        authority.size -= base->user.size;
    }
    base->host = authority;
    return authority.size > 0;
}

static void add_lower(struct sl_buf *out, struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        sl_buf_u8(out, (uint8_t)(text.data[i] >= 'A' && text.data[i] <= 'Z' ? text.data[i] + 32 : text.data[i]));
}

/* Returns the host without the default port of the scheme. */
static struct sl_str plain_host(const struct http_source_base *base)
{
    struct sl_str host = base->host;
    if (sl_str_equal_nocase(base->scheme, SL_STR("http://")) && sl_str_ends(host, SL_STR(":80")))
        host.size -= 3;
    if (sl_str_equal_nocase(base->scheme, SL_STR("https://")) && sl_str_ends(host, SL_STR(":443")))
        host.size -= 4;
    return host;
}

/* True for "." and "..", which are left out of URLs, so that a name cannot lead out of the base path. */
static bool dots(struct sl_str segment)
{
    return sl_str_equal(segment, SL_STR(".")) || sl_str_equal(segment, SL_STR(".."));
}

bool http_can_have_files(struct sl_str base)
{
    struct http_source_base parts;
    return http_split(base, &parts);
}

/* The URL is in normal form, so that equal files have equal cache keys: scheme and host in lower case, no default port, no empty
 * components, no "." and "..". */
struct sl_str http_location_url(struct sl_arena *arena, struct sl_str text, struct sl_str location, bool secret)
{
    struct http_source_base base;
    struct sl_buf url = {0};
    if (!http_split(text, &base))
        return (struct sl_str){NULL, 0};
    sl_buf_reserve(&url, text.size + 3 * location.size + 2); /* allocate once */
    add_lower(&url, base.scheme);
    if (secret)
        sl_buf_str(&url, base.user);
    add_lower(&url, plain_host(&base));
    size_t before_path = url.size;
    if (base.path.size && base.path.data[base.path.size - 1] == '/')
        base.path.size--;
    sl_buf_str(&url, base.path);
    while (location.size) {
        const char *slash = memchr(location.data, '/', location.size);
        struct sl_str segment = {location.data, slash ? (size_t)(slash - location.data) : location.size};
        size_t step = segment.size + (slash != NULL);
        location.data += step;
        location.size -= step;
        if (segment.size == 0 || dots(segment))
            continue;
        sl_buf_u8(&url, '/');
        url_add_path(&url, segment);
    }
    if (url.size == before_path)
        sl_buf_u8(&url, '/');
    if (secret)
        sl_buf_str(&url, base.query);
    return sl_buf_move_to_arena(&url, arena);
}

/* ---- servers of layout debuginfod ---- */

bool origin_is_upstream(const struct source *source)
{
    return source->type == SOURCE_HTTP && source->layout == LAYOUT_DEBUGINFOD && !source->index;
}

static const struct sl_str field_prefix = SL_STR("X-DEBUGINFOD-");
static const char *const noted_fields[] = {"FILE", "ARCHIVE", "IMASIGNATURE"};

struct sl_str origin_note_field(const char *note, const char *name)
{
    size_t size = strlen(name);
    for (const char *line = note; line && *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, name, size) == 0 && strncmp(line + size, ": ", 2) == 0)
            return (struct sl_str){line + size + 2, (size_t)(end - line) - size - 2};
        line = *end ? end + 1 : end;
    }
    return (struct sl_str){NULL, 0};
}

static bool is_printable(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7F)
            return false;
    return text.size && sl_str_is_utf8(text);
}

void origin_note_add(char *note, struct sl_str name, struct sl_str value)
{
    struct sl_str prefix = {name.data, field_prefix.size};
    if (name.size <= field_prefix.size || !sl_str_equal_nocase(prefix, field_prefix))
        return;
    name = (struct sl_str){name.data + prefix.size, name.size - prefix.size};
    for (size_t i = 0; i < sizeof noted_fields / sizeof *noted_fields; i++) {
        size_t used = strlen(note);
        if (!sl_str_equal_nocase(name, sl_str(noted_fields[i])) || origin_note_field(note, noted_fields[i]).data)
            continue;
        const char *slash = i == 1 /* ARCHIVE */ ? memrchr(value.data, '/', value.size) : NULL;
        if (slash)
            value = (struct sl_str){slash + 1, value.size - (size_t)(slash + 1 - value.data)};
        if (is_printable(value) && name.size + value.size + 4 <= ORIGIN_NOTE_BYTES - used) /* 4: ": ", line end, NUL */
            snprintf(note + used, ORIGIN_NOTE_BYTES - used, "%s: " SL_STR_FMT "\n", noted_fields[i], SL_STR_ARG(value));
    }
}

static void note_field(void *note, struct sl_str name, struct sl_str value)
{
    origin_note_add(note, name, value);
}

/* Sets the header fields of a request for the file: those of the source's configuration, the file's checksum and, for debuginfod servers,
 * the clients and servers that have passed the request on. False when out of memory. */
static bool make_header(const struct remote_file *file, struct sl_arena *arena, struct fetch_request *request)
{
    const struct source *source = file->source;
    /* 3: SymbolChecksum, X-Forwarded-For, Via */
    struct fetch_header *headers = SL_ARENA_ARRAY(arena, struct fetch_header, source->header_count + 3);
    size_t count = 0;
    if (!headers)
        return false;
    for (; count < source->header_count; count++)
        headers[count] = source->headers[count];
    if (file->checksum.size)
        headers[count++] = (struct fetch_header){SL_STR("SymbolChecksum"), {file->checksum}};
    if (file->forwarded_for.size && origin_is_upstream(source))
        headers[count++] = (struct fetch_header){SL_STR("X-Forwarded-For"), {file->forwarded_for}};
    if (file->via.size && origin_is_upstream(source))
        headers[count++] = (struct fetch_header){SL_STR("Via"), {file->via}};
    request->headers = headers;
    request->header_count = count;
    return true;
}

enum sl_code http_source_fetch(const struct remote_file *file, int fd, char *note, struct sl_error *error)
{
    const struct source *source = file->source;
    struct sl_arena arena = {0};
    struct sl_str url = http_location_url(&arena, source->url, file->location, true);
    const char *label = origin_label(&arena, source);
    bool built_in = sl_str_starts(source->id, SL_STR("sentry:")); /* built into Sentry: the host is never blocked */
    struct fetch_request request = {.url = url.data,
                                    .accept_invalid_certs = source->accept_invalid_certs,
                                    .trusted_host = source->internal,
                                    .deny_list = !built_in,
                                    .source = label,
                                    .max_size = file->max_size,
                                    .refuse_empty = !file->may_be_empty,
                                    .refuse_pages = !file->may_be_page,
                                    .attempts = source->attempts,
                                    .field = note && origin_is_upstream(source) ? note_field : NULL,
                                    .arg = note};
    struct http_source_base base;
    enum sl_code code;
    /* a URL without a host, like "data:,", which requests may name, finds nothing */
    if (!http_split(source->url, &base))
        code = sl_fail(error, SL_NOT_FOUND, "%s", "");
    else if (!url.data || !label || !make_header(file, &arena, &request))
        code = sl_fail(error, SL_BUSY, "out of memory");
    else
        code = fetch_get(&request, fd, error);
    sl_arena_free(&arena);
    return code;
}
