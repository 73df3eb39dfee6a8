/* Parses the head and the body of a request with llhttp, and checks the request. Beyond llhttp, this server refuses:
 *
 *   Transfer-Encoding other than one `chunked`; any in HTTP/1.0     501; 400
 *   versions other than 1.0 and 1.1, also none                      505
 *   no Host in 1.1, several Host lines                              400
 *   empty field names, a fragment in the target                     400
 *   CONNECT                                                         405
 *   chunk framing out of proportion to the body                     400
 *
 * llhttp reports trailers by the callbacks for headers: after the head, fields are only counted. */
#include "http/blank.h"
#include "http/impl.h"

static llhttp_settings_t settings;

static struct request *get_request(llhttp_t *parser)
{
    return parser->data;
}

/* ---- llhttp's callbacks ---- */
/* Takes a piece of the request target. The pieces of a text adjoin, as the whole head is in one buffer; so the last one sets the size. */
static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct http_exchange *x = &get_request(parser)->x;
    if (!x->target.data)
        x->target.data = at;
    x->target.size = (size_t)(at + size - x->target.data);
    return 0;
}

/* Takes a piece of a header's name. Fields after the head are trailers, whose bytes are only counted. */
static int on_field(llhttp_t *parser, const char *at, size_t size)
{
    struct request *r = get_request(parser);
    if (r->head_done) {
        r->body.trailer_bytes += size + 4; /* 4: ": " and CR LF */
        return 0;
    }
    if (r->x.header_count >= r->header_capacity) /* more fields than lines: malformed */
        return -1;
    struct http_header *header = &r->x.headers[r->x.header_count];
    if (!header->name.data)
        header->name.data = at;
    header->name.size = (size_t)(at + size - header->name.data);
    return 0;
}

/* Takes a piece of a header's value. Of trailers, the bytes are only counted. */
static int on_value(llhttp_t *parser, const char *at, size_t size)
{
    struct request *r = get_request(parser);
    if (r->head_done) {
        r->body.trailer_bytes += size;
        return 0;
    }
    struct http_header *header = &r->x.headers[r->x.header_count];
    if (!header->value.data)
        header->value.data = at;
    header->value.size = (size_t)(at + size - header->value.data);
    return 0;
}

/* A header is complete: trims the value and lowers the case of the name, which note_header and http_header compare. */
static int on_value_complete(llhttp_t *parser)
{
    struct request *r = get_request(parser);
    if (r->head_done)
        return 0;
    struct http_header *header = &r->x.headers[r->x.header_count];
    if (!header->value.data)
        header->value.data = "";
    header->value = http_trim(header->value);
    char *name = (char *)(uintptr_t)header->name.data; /* points into the request's own copy of the head */
    for (size_t i = 0; i < header->name.size; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] |= 32;
    r->x.header_count++;
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    get_request(parser)->head_done = true; /* later fields are trailers */
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    body_receive(get_request(parser), (struct sl_bytes){(const uint8_t *)at, size});
    return 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    get_request(parser)->body.chunks++;
    /* 0: the last chunk; pauses before the trailers, as their lines are checked first */
    return parser->content_length == 0 ? HPE_PAUSED : 0;
}

static int on_message_complete(llhttp_t *parser)
{
    get_request(parser)->message_done = true;
    return HPE_PAUSED; /* what follows is a next request, for a parser of its own */
}

/* Sets the callbacks of llhttp, which all parsers of the process share. */
void parse_init(void)
{
    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_field;
    settings.on_header_value = on_value;
    settings.on_header_value_complete = on_value_complete;
    settings.on_headers_complete = on_headers_complete;
    settings.on_body = on_body;
    settings.on_chunk_header = on_chunk_header;
    settings.on_message_complete = on_message_complete;
}

/* ---- the head ---- */
void parse_refuse(struct request *r, int status, const char *detail)
{
    r->framing_error = r->close = true;
    r->x.route = NULL;
    http_reply_error(&r->x, status, detail);
}

/* Stores a header in the request if the server itself needs it. Names are in lower case. No two of the needed names have the same length,
 * so that one comparison is enough. */
static void note_header(struct request *r, const struct http_header *h)
{
    switch (h->name.size) {
    case 4:
        if (sl_str_equal(h->name, SL_STR("host"))) {
            r->host = h->value;
            r->host_count++;
        }
        break;
    case 6:
        if (sl_str_equal(h->name, SL_STR("expect")))
            r->expect = h->value;
        break;
    case 7:
        if (sl_str_equal(h->name, SL_STR("baggage")) && !r->baggage.data)
            r->baggage = h->value;
        break;
    case 12:
        if (sl_str_equal(h->name, SL_STR("sentry-trace")) && !r->trace.data)
            r->trace = h->value;
        break;
    case 15:
        if (sl_str_equal(h->name, SL_STR("accept-encoding")) && !r->accept_encoding.data)
            r->accept_encoding = h->value;
        break;
    case 16:
        if (sl_str_equal(h->name, SL_STR("content-encoding"))) {
            r->coding_count++;
            r->body.coding = coding_parse(h->value);
        }
        break;
    case 17:
        if (sl_str_equal(h->name, SL_STR("transfer-encoding"))) {
            r->bad_transfer_encoding |= r->has_transfer_encoding || !sl_str_equal_nocase(h->value, SL_STR("chunked"));
            r->has_transfer_encoding = true;
        }
        break;
    }
}

/* Sets x->path, and cuts scheme and host off x->target, for a target in origin form ("/a?b"), absolute form ("http://host/a?b") or "*".
 * False for other forms. */
static bool split_target(struct http_exchange *x)
{
    struct sl_str target = x->target;
    if (target.size && target.data[0] != '/' && !sl_str_equal(target, SL_STR("*"))) {
        const char *authority = memmem(target.data, target.size, "://", 3);
        if (!authority)
            return false;
        authority += 3;
        size_t left = target.size - (size_t)(authority - target.data);
        size_t size = 0;
        while (size < left && authority[size] != '/' && authority[size] != '?')
            size++;
        target = (struct sl_str){authority + size, left - size};
        if (target.size == 0 || target.data[0] == '?') { /* an empty path is "/" */
            x->path = SL_STR("/");
            x->target = target;
            return true;
        }
    }
    const char *question = memchr(target.data, '?', target.size);
    x->path = (struct sl_str){target.data, question ? (size_t)(question - target.data) : target.size};
    x->target = target;
    return target.size > 0;
}

/* Returns the query of the target, without the question mark; empty if there is none. */
static struct sl_str get_query(const struct http_exchange *x)
{
    const char *question = memchr(x->target.data, '?', x->target.size);
    if (!question)
        return (struct sl_str){"", 0};
    return (struct sl_str){question + 1, x->target.size - (size_t)(question + 1 - x->target.data)};
}

/* Refuses heads that llhttp accepts but this server does not; stores the headers that the server needs. Returns 0 or the status of the
 * response, whose detail is `*why`. */
static int check_head(struct request *r, const char **why)
{
    struct http_exchange *x = &r->x;
    *why = "malformed request";
    if (r->parser.http_major != 1 || r->parser.http_minor > 1) {
        *why = "HTTP version not supported";
        return 505;
    }
    for (size_t i = 0; i < x->header_count; i++) {
        if (x->headers[i].name.size == 0)
            return 400;
        note_header(r, &x->headers[i]);
    }
    r->http10 = r->parser.http_minor == 0;
    if (r->http10 && r->has_transfer_encoding)
        return 400;
    if (r->bad_transfer_encoding) {
        *why = "transfer coding not supported";
        return 501;
    }
    if (r->host_count > 1 || (r->host_count == 0 && !r->http10)) {
        *why = "exactly one Host header is needed";
        return 400;
    }
    if (memchr(x->target.data ? x->target.data : "", '#', x->target.size)) /* a fragment */
        return 400;
    return 0;
}

/* Returns the response status for an error of llhttp; HPE_PAUSED_H2_UPGRADE is the preface of HTTP/2. */
static int status_of_parser(enum llhttp_errno error)
{
    return error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE ? 505 : 400;
}

/* True if the character may be in a method, which is a token (RFC 9110, 5.6.2). */
static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* If llhttp has refused a head only for its method, which it does not know, answers with 405, or with 404 if the path is unknown. False
 * if the request line is malformed, or llhttp has refused something else. */
static bool refuse_unknown_method(struct request *r, struct sl_bytes head)
{
    const char *line = (const char *)head.data, *end = memchr(line, '\r', head.size);
    size_t size = end ? (size_t)(end - line) : 0, method = 0;
    while (method < size && is_token_char(line[method]))
        method++;
    const char *target = line + method + 1;
    const char *version = size > method ? memrchr(line, ' ', size) : NULL;
    if (method == 0 || !version || version <= target || line[method] != ' ' || memcmp(version, " HTTP/1.", 8) != 0)
        return false;
    r->x.method = (struct sl_str){line, method};
    r->x.target = (struct sl_str){target, (size_t)(version - target)};
    if (!split_target(&r->x) || memchr(r->x.target.data, ' ', r->x.target.size))
        return false;
    int status = route_find(&r->x, r->server->routes, &r->route_index);
    if (status == 0)
        return false; /* llhttp refused something other than the method */
    r->framing_error = r->close = true;
    http_reply_error(&r->x, status, NULL);
    return true;
}

/* ---- checks before the body ---- */
/* Checks everything that can be refused before the body is read; a refusal sets x->status. */
static void check_request(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct http_server *server = r->server;
    const struct http_route *route = x->route;
    /* `reserve`: accepted above the limit of connections, only for health checks, until others have been closed */
    if (r->connection->reserve && !server_is_full(server))
        r->connection->reserve = false;
    if (r->connection->reserve && !route->health) {
        r->close = true;
        metric_add(METRIC_HTTP_REFUSED, 1, "slots", NULL, NULL);
        http_reply_error(x, 503, "too many connections");
        return;
    }
    if (!origin_check_form(r))
        return;
    if (server->options.authorize && route->rights) {
        server->options.authorize(x);
        if (x->status) {
            metric_add(METRIC_HTTP_REFUSED, 1, x->status == 429 ? "rate" : "auth", NULL, NULL);
            return;
        }
    }
    if (server->draining && route->takes_work) {
        metric_add(METRIC_HTTP_REFUSED, 1, "draining", NULL, NULL);
        http_reply_error(x, 503, "service is shutting down");
        return;
    }
    if (route->check) {
        route->check(x);
        if (x->status == 415)
            metric_add(METRIC_HTTP_REFUSED, 1, "media_type", NULL, NULL);
        if (x->status)
            return;
    }
    if (r->coding_count > 1 || (r->coding_count == 1 && r->body.coding == CODING_UNKNOWN)) {
        metric_add(METRIC_HTTP_REFUSED, 1, "media_type", NULL, NULL);
        http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
        http_reply_error(x, 415, "content coding of the request body not supported");
        return;
    }
    r->body.limit = route->body_limit ? route->body_limit(x) : DISCARD_LIMIT;
    uint64_t size = x->content_length >= 0 ? (uint64_t)x->content_length : 0;
    if (size > r->body.limit || !memory_fits(size * route->body_weight)) {
        metric_add(METRIC_HTTP_REFUSED, 1, "too_large", NULL, NULL);
        http_reply_error(x, 413, NULL);
        return;
    }
    if (!route->health && !body_reserve(r)) {
        metric_add(METRIC_HTTP_REFUSED, 1, "bodies", NULL, NULL);
        http_reply_error(x, 503, "too many request bodies at once");
        return;
    }
    if (r->expect.size && !r->http10) {
        r->interim_due = x->has_body && sl_str_equal_nocase(r->expect, SL_STR("100-continue"));
        if (!sl_str_equal_nocase(r->expect, SL_STR("100-continue")))
            http_reply_error(x, 417, "expectation in the Expect header not supported");
    }
}

/* Finds the request's route and checks the request; a refusal sets x->status. Operators' routes exist only for connections of admin
 * listeners, if there are any. */
static void route_request(struct request *r)
{
    struct http_exchange *x = &r->x;
    if (r->parser.method == HTTP_CONNECT) {
        r->close = true; /* what follows would be the bytes of a tunnel */
        route_allow_all(x, r->server->routes);
        http_reply_error(x, 405, NULL);
        return;
    }
    if (!split_target(x)) {
        parse_refuse(r, 400, "malformed request target");
        return;
    }
    if (!address_add_connection(r)) {
        r->close = true;
        metric_add(METRIC_HTTP_REFUSED, 1, "rate", NULL, NULL);
        http_reply_error(x, 429, "too many connections from this address");
        return;
    }
    if (!origin_check_host(r))
        return;
    if (sl_str_equal(x->path, SL_STR("*"))) {
        if (r->parser.method != HTTP_OPTIONS) {
            parse_refuse(r, 400, "malformed request target");
            return;
        }
        route_allow_all(x, r->server->routes);
        http_reply_empty(x, 204);
        return;
    }
    int status = route_find(x, r->server->routes, &r->route_index);
    if (status != 404 && x->route && x->route->operators && !r->connection->operators) {
        x->route = NULL;
        status = 404;
    }
    if (status != 404 && origin_allow(r, status == 405)) /* true: it has answered a preflight */
        return;
    if (status) {
        http_reply_error(x, status, status == 400 ? "malformed path" : status == 503 ? BODY_NO_MEMORY : NULL);
        return;
    }
    struct sl_str query = get_query(x);
    x->query = http_form(&x->arena, query, &x->query_count);
    if (query.size && !x->query)
        http_reply_error(x, 503, BODY_NO_MEMORY);
    else
        check_request(r);
}

void parse_head(struct request *r, struct sl_bytes head, unsigned lines)
{
    struct http_exchange *x = &r->x;
    char *copy = sl_arena_strndup(&x->arena, (const char *)head.data, head.size);
    r->header_capacity = lines;
    x->headers =
        SL_ARENA_ARRAY(&x->arena, struct http_header, lines + 1); /* + 1: headers[header_count] always exists */
    if (!copy || !x->headers) {
        parse_refuse(r, 503, "not enough memory for this request");
        return;
    }
    while (*copy == '\r' || *copy == '\n') /* skips empty lines before the request */
        copy++, head.size--;
    llhttp_init(&r->parser, HTTP_REQUEST, &settings);
    r->parser.data = r;
    enum llhttp_errno error = llhttp_execute(&r->parser, copy, head.size);
    if (error == HPE_PAUSED_UPGRADE) { /* upgrades are ignored: a normal request */
        llhttp_resume_after_upgrade(&r->parser);
        r->message_done = true;
    } else if (error != HPE_OK && error != HPE_PAUSED) { /* HPE_PAUSED: by on_message_complete, if there is no body */
        bool about_method = error == HPE_INVALID_METHOD || error == HPE_INVALID_CONSTANT;
        if (!about_method || !refuse_unknown_method(r, (struct sl_bytes){(uint8_t *)copy, head.size}))
            parse_refuse(r, status_of_parser(error), llhttp_get_error_reason(&r->parser));
        return;
    }
    x->method = sl_str(llhttp_method_name((llhttp_method_t)r->parser.method));
    r->head_only = r->parser.method == HTTP_HEAD;
    const char *why;
    int status = check_head(r, &why);
    if (status) {
        parse_refuse(r, status, why);
        return;
    }
    r->chunked = (r->parser.flags & F_CHUNKED) != 0;
    x->has_body = !r->message_done;
    if (!r->chunked && (r->parser.flags & F_CONTENT_LENGTH)) {
        if (r->parser.content_length > INT64_MAX) {
            parse_refuse(r, 413, NULL);
            return;
        }
        x->content_length = (int64_t)r->parser.content_length;
    }
    r->close |= !llhttp_should_keep_alive(&r->parser);
    set_client_and_request_id(r);
    route_request(r);
    body_init(r);
}

/* ---- the body ---- */
/* Refuses a body whose end cannot be found any more; the connection is closed after the response. */
static void refuse_body(struct request *r, int status, const char *detail)
{
    r->framing_error = r->close = true;
    metric_add(METRIC_HTTP_ABORTED, 1, "framing", NULL, NULL);
    body_fail(r, status, detail);
}

/* Refuses a chunked body whose framing outweighs its content, as it would only keep the server busy; and trailers that are longer than a
 * head may be. */
static void check_framing(struct request *r)
{
    struct request_body *body = &r->body;
    uint64_t framing = body->raw_bytes - body->received;
    /* trailers have a limit of their own */
    framing = framing > body->trailer_bytes ? framing - body->trailer_bytes : 0;
    /* 16 bytes are enough for the size and line ends of a chunk; extensions may be as long as twice the contents */
    if (framing > 16 * body->chunks + 2 * body->received + CHUNK_CREDIT)
        refuse_body(r, 400, "request body has too many small chunks");
    else if (body->trailer_bytes > r->server->options.max_head_bytes)
        refuse_body(r, 431, "request trailers too large");
}

/* False if a line of the trailers begins with a blank or does not end with CR LF: llhttp would accept it, but head_scan refuses such lines
 * in heads. Stops after the empty line that ends the trailers. */
static bool check_trailers(struct request_body *body, struct sl_bytes data)
{
    for (size_t i = 0; i < data.size && !body->trailers_end; i++) {
        uint8_t c = data.data[i];
        bool line_end = c == '\n';
        if (line_end ? body->trailer_last != '\r' : body->trailer_line == 0 && (http_is_blank(c)))
            return false;
        body->trailers_end = line_end && body->trailer_line == 1; /* only the CR */
        body->trailer_line = line_end ? 0 : body->trailer_line + 1;
        body->trailer_last = c;
    }
    return true;
}

/* Feeds llhttp; sets `*used` to the bytes that belong to the request. llhttp pauses before the trailers (on_chunk_header): their lines are
 * checked before it gets them. */
static enum llhttp_errno feed(struct request *r, struct sl_bytes data, size_t *used)
{
    *used = 0;
    for (;;) {
        struct sl_bytes left = {data.data + *used, data.size - *used};
        if (r->body.in_trailers && !check_trailers(&r->body, left))
            return HPE_INVALID_HEADER_TOKEN;
        enum llhttp_errno error = llhttp_execute(&r->parser, (const char *)left.data, left.size);
        *used += error == HPE_OK ? left.size : (size_t)((const uint8_t *)llhttp_get_error_pos(&r->parser) - left.data);
        if (error != HPE_PAUSED || r->message_done || r->body.in_trailers)
            return error;
        r->body.in_trailers = true;
        llhttp_resume(&r->parser);
    }
}

size_t parse_body(struct request *r, struct sl_bytes data)
{
    if (r->framing_error)
        return data.size;
    size_t used;
    enum llhttp_errno error = feed(r, data, &used);
    r->body.raw_bytes += used;
    if (r->chunked)
        check_framing(r);
    if (r->framing_error)
        return data.size;
    if (error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE) { /* by on_message_complete */
        body_complete(r);
        return used;
    }
    if (error != HPE_OK) {
        refuse_body(r, 400, llhttp_get_error_reason(&r->parser));
        return data.size;
    }
    return used;
}
