/* Finds the route of a request by path and method, and decodes its path and query. */
#include "http/impl.h"

bool percent_decode(struct sl_arena *arena, struct sl_str text, struct sl_str *out)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    size_t size = 0;
    *out = (struct sl_str){copy, 0};
    if (!copy)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.size ? sl_hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? sl_hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0)) /* %00 would end a C string */
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        copy[size++] = c;
    }
    copy[size] = '\0';
    *out = (struct sl_str){copy, size};
    return sl_str_is_utf8(*out);
}

/* ---- query ---- */
/* Decodes form encoding: `+` is a blank, and a `%` that does not begin an escape stands for itself. Data NULL when out of memory. */
static struct sl_str decode_form(struct sl_arena *arena, struct sl_str text)
{
    if (!memchr(text.data, '%', text.size) && !memchr(text.data, '+', text.size))
        return text;
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    size_t size = 0;
    for (size_t i = 0; copy && i < text.size; i++) {
        char c = text.data[i] == '+' ? ' ' : text.data[i];
        int high = c == '%' && i + 2 < text.size ? sl_hex_digit(text.data[i + 1]) : -1;
        int low = high >= 0 ? sl_hex_digit(text.data[i + 2]) : -1;
        if (low >= 0) {
            c = (char)(high << 4 | low);
            i += 2;
        }
        copy[size++] = c;
    }
    return (struct sl_str){copy, size};
}

struct http_query *http_form(struct sl_arena *arena, struct sl_str text, size_t *count)
{
    size_t pairs = 1; /* at most */
    *count = 0;
    for (size_t i = 0; i < text.size; i++)
        pairs += text.data[i] == '&';
    struct http_query *items = text.size ? SL_ARENA_ARRAY(arena, struct http_query, pairs) : NULL;
    for (size_t at = 0; items && at < text.size;) {
        const char *end = memchr(text.data + at, '&', text.size - at);
        struct sl_str pair = {text.data + at, end ? (size_t)(end - text.data) - at : text.size - at};
        at += pair.size + 1;
        if (pair.size == 0)
            continue;
        const char *equals = memchr(pair.data, '=', pair.size);
        size_t key_size = equals ? (size_t)(equals - pair.data) : pair.size;
        struct sl_str value = {equals ? equals + 1 : pair.data + pair.size, equals ? pair.size - key_size - 1 : 0};
        struct sl_str key = {pair.data, key_size};
        struct http_query decoded = {decode_form(arena, key), decode_form(arena, value)};
        if (!decoded.key.data || !decoded.value.data) {
            *count = 0;
            return NULL;
        }
        items[(*count)++] = decoded;
    }
    return items;
}

/* ---- routes ---- */
enum route_match_result { NO_MATCH, MATCH, BAD_ESCAPE, BAD_SEGMENT, NO_MEMORY };

static bool is_literal(const char *pattern)
{
    return !strchr(pattern, '{');
}

static bool is_dots(struct sl_str segment)
{
    return sl_str_equal(segment, SL_STR(".")) || sl_str_equal(segment, SL_STR(".."));
}

/* Decodes what a {name} or {name..} of the pattern stands for, and appends it to x->captures. A segment "." or ".." is an error even if it
 * was encoded, as no object has that name; `rest` (of {name..}) is not checked for them. */
static enum route_match_result capture(struct http_exchange *x, struct sl_str raw, bool rest)
{
    struct sl_str decoded;
    if (x->capture_count == HTTP_MAX_CAPTURES)
        return NO_MATCH;
    if (!percent_decode(&x->arena, raw, &decoded))
        return decoded.data ? BAD_ESCAPE : NO_MEMORY;
    x->captures[x->capture_count++] = decoded;
    return !rest && is_dots(decoded) ? BAD_SEGMENT : MATCH;
}

/* Compares the path with a pattern, in which {name} stands for one segment and {name..} for the rest, and sets x->captures. If a segment
 * cannot be decoded, that is the result only if the whole path matches, else NO_MATCH. */
static enum route_match_result match_pattern(struct http_exchange *x, const char *pattern)
{
    struct sl_str path = x->path;
    size_t at = 0;
    enum route_match_result result = MATCH;
    x->capture_count = 0;
    for (const char *p = pattern; *p;) {
        if (*p != '{') {
            if (at == path.size || path.data[at] != *p)
                return NO_MATCH;
            at++, p++;
            continue;
        }
        const char *close = strchr(p, '}');
        if (!close)
            return NO_MATCH;
        bool rest = close - p > 2 && close[-1] == '.' && close[-2] == '.';
        const char *slash = rest ? NULL : memchr(path.data + at, '/', path.size - at);
        size_t size = slash ? (size_t)(slash - path.data) - at : path.size - at;
        if (size == 0)
            return NO_MATCH;
        enum route_match_result captured = capture(x, (struct sl_str){path.data + at, size}, rest);
        if (captured != MATCH && result == MATCH)
            result = captured;
        at += size;
        p = close + 1;
    }
    return at == path.size ? result : NO_MATCH;
}

static bool is_enabled(const struct http_exchange *x, const struct http_route *route)
{
    return !route->family || !route->family->enabled || route->family->enabled(x->service);
}

/* True if a route of this method serves the request's; GET routes also serve HEAD. */
static bool method_matches(const char *route_method, struct sl_str method)
{
    struct sl_str wanted = sl_str(route_method);
    return sl_str_equal(wanted, method) ||
           (sl_str_equal(wanted, SL_STR("GET")) && sl_str_equal(method, SL_STR("HEAD")));
}

/* True if the method is in the list. A search for the substring is enough, as no method's name contains another's. */
static bool list_has(const struct sl_buf *list, const char *name)
{
    size_t size = strlen(name);
    for (size_t at = 0; at + size <= list->size; at++)
        if (memcmp(list->data + at, name, size) == 0)
            return true;
    return false;
}

/* Adds a method to the value of Allow, unless it is there; with GET also HEAD, which GET routes serve. */
static void add_method(struct sl_buf *allow, const char *method, const char *separator)
{
    if (list_has(allow, method))
        return;
    sl_buf_cstr(allow, allow->size ? separator : "");
    sl_buf_cstr(allow, method);
    if (strcmp(method, "GET") == 0)
        add_method(allow, "HEAD", separator);
}

/* Sets the header Allow and frees the buffer. Without memory the header is missing. */
static void set_allow(struct http_exchange *x, struct sl_buf *allow)
{
    char *copy = sl_arena_strndup(&x->arena, (const char *)allow->data, allow->size);
    if (copy)
        http_set_header(x, "Allow", (struct sl_str){copy, allow->size});
    sl_buf_free(allow);
}

void route_allow_all(struct http_exchange *x, const struct http_route *routes)
{
    struct sl_buf allow = {0};
    for (const struct http_route *route = routes; route->method; route++)
        add_method(&allow, route->method, ",");
    set_allow(x, &allow);
}

/* False for a route that exists only for some paths, and not for this one. */
static bool is_there(const struct http_exchange *x, const struct http_route *route)
{
    return !route->there || route->there(x);
}

/* Sets Allow to the methods of all routes with this path, separated as x->route's API prefers; returns the status 405. */
static int method_not_allowed(struct http_exchange *x, const struct http_route *routes)
{
    struct sl_buf allow = {0};
    const char *separator = x->route->family->allow_separator;
    separator = separator ? separator : ",";
    for (const struct http_route *route = routes; route->method; route++)
        if (match_pattern(x, route->pattern) != NO_MATCH && is_enabled(x, route) && is_there(x, route))
            add_method(&allow, route->method, separator);
    set_allow(x, &allow);
    return 405;
}

/* Looks for the request's route among those without captures (`literal`) or among those with captures. If it is found, sets x->route and
 * returns 0, or the HTTP status if a captured segment is invalid; otherwise returns -1. If `*other_method` is NULL, sets it to the first
 * route that has this path but another method. is_there: false if the API says that the object in the path does not exist. */
static int try_routes(struct http_exchange *x, const struct http_route *routes, bool literal,
                      const struct http_route **other_method)
{
    struct sl_str path = x->path;
    for (const struct http_route *route = routes; route->method; route++) {
        if (is_literal(route->pattern) != literal || !is_enabled(x, route))
            continue;
        enum route_match_result match = literal ? (sl_str_equal(path, sl_str(route->pattern)) ? MATCH : NO_MATCH)
                                                : match_pattern(x, route->pattern);
        if (match == NO_MATCH || !is_there(x, route))
            continue;
        if (!method_matches(route->method, x->method)) {
            if (!*other_method)
                *other_method = route;
            continue;
        }
        x->route = route;
        /* 404: BAD_SEGMENT */
        return match == MATCH ? 0 : match == BAD_ESCAPE ? 400 : match == NO_MEMORY ? 503 : 404;
    }
    return -1;
}

int route_find(struct http_exchange *x, const struct http_route *routes, unsigned *index)
{
    const struct http_route *other_method = NULL;
    x->capture_count = 0;
    int status = try_routes(x, routes, true, &other_method);
    if (status < 0 && !other_method) /* a path with a literal route is never matched by a pattern */
        status = try_routes(x, routes, false, &other_method);
    if (status >= 0) {
        *index = (unsigned)(x->route - routes);
        return status;
    }
    if (!other_method)
        return 404;
    x->route = other_method; /* determines the format of the response */
    *index = (unsigned)(other_method - routes);
    return method_not_allowed(x, routes);
}
