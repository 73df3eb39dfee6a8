/* Protects the service, by checks of Host and Origin, from pages of other sites in its users' browsers.
 *
 *   Host      a page whose owner resolves its name to this machine (DNS rebinding) would have the rights of the service's
 *             own page; its requests have that name in Host. Only names listed in http.allowed_hosts are accepted; without a list,
 *             loopback listeners accept only names of this machine.
 *   Origin    scripts of other pages cannot read a response unless their origin is listed (Fetch Standard, "CORS protocol"). Forms
 *             are posted without that permission; only the response is hidden. So requests that look like forms are refused here. */
#include <arpa/inet.h>

#include "http/impl.h"

/* ---- hosts ---- */
/* Removes ":<port>"; not the end of an IPv6 address in brackets. */
static struct sl_str without_port(struct sl_str host)
{
    for (size_t i = host.size; i > 0 && host.data[i - 1] != ']'; i--) {
        if (host.data[i - 1] == ':')
            return (struct sl_str){host.data, i - 1};
    }
    return host;
}

/* True if Host is in http.allowed_hosts. A listed name without a port allows any port. */
static bool host_listed(const struct http_options *options, struct sl_str host)
{
    struct sl_str name = without_port(host);
    for (size_t i = 0; i < options->allowed_host_count; i++) {
        struct sl_str allowed = sl_str(options->allowed_hosts[i]);
        if (sl_str_equal_nocase(host, allowed) || sl_str_equal_nocase(name, allowed))
            return true;
    }
    return false;
}

/* True if Host is a name of this machine: localhost and its subdomains (RFC 6761, 6.3), 127.0.0.0/8, ::1; or a name of
 * one label, which the public DNS does not have, so that it belongs to the machine's own network. */
static bool is_local_name(struct sl_str host)
{
    static const struct sl_str local = {"localhost", 9};
    struct sl_str name = without_port(host);
    char text[ADDRESS_MAX];
    struct in_addr v4;
    struct in6_addr v6;
    if (name.size > 0 && name.data[name.size - 1] == '.') /* the dot of a fully qualified name */
        name.size--;
    if (name.size >= local.size &&
        sl_str_equal_nocase((struct sl_str){name.data + name.size - local.size, local.size}, local))
        return name.size == local.size || name.data[name.size - local.size - 1] == '.';
    if (name.size > 0 && name.data[0] != '[' && !memchr(name.data, '.', name.size) &&
        !memchr(name.data, ':', name.size))
        return true;
    bool bracketed = name.size > 2 && name.data[0] == '[' && name.data[name.size - 1] == ']';
    if (bracketed)
        name = (struct sl_str){name.data + 1, name.size - 2};
    if (name.size >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    if (bracketed)
        return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool origin_check_host(struct request *r)
{
    const struct http_options *options = &r->server->options;
    if (options->allowed_host_count > 0) {
        if (host_listed(options, r->host))
            return true;
        http_reply_error(&r->x, 421, "host not allowed");
        return false;
    }
    /* loopback_hosts: no proxy is configured, which would pass on other names; host_count 0: HTTP/1.0, which browsers do not send */
    if (!options->loopback_hosts || !r->connection->loopback || r->host_count == 0 || is_local_name(r->host))
        return true;
    http_reply_error(
        &r->x, 421,
        "host not allowed: on loopback addresses, only localhost and names without a dot are accepted; set "
        "http.allowed_hosts to the names of this service, or http.trusted_proxies to the proxy in front of it");
    return false;
}

/* ---- origins ---- */
bool http_origin_allowed(const struct http_exchange *x, const char *const *origins, size_t count, struct sl_str *origin)
{
    struct sl_str asked = http_header(x, "origin");
    for (size_t i = 0; asked.size && i < count; i++) {
        bool any = strcmp(origins[i], "*") == 0;
        if (!any && !sl_str_equal(asked, sl_str(origins[i])))
            continue;
        *origin = any ? SL_STR("*") : asked;
        return true;
    }
    return false;
}

/* True if the page that sent the request may read responses, and `*origin` the value for Access-Control-Allow-Origin. The list is
 * that of the route's API (http_family.origin_allowed), else http.cors.origins. */
static bool is_listed(const struct request *r, struct sl_str *origin)
{
    const struct http_options *options = &r->server->options;
    const struct http_family *family = r->x.route->family;
    return family->origin_allowed
               ? family->origin_allowed(&r->x, origin)
               : http_origin_allowed(&r->x, options->cors_origins, options->cors_origin_count, origin);
}

static struct sl_str without_suffix(struct sl_str text, struct sl_str suffix)
{
    return (struct sl_str){text.data, sl_str_ends(text, suffix) ? text.size - suffix.size : text.size};
}

/* True if the page is this service's own: browsers say so (Fetch Metadata, "Sec-Fetch-Site"), or its origin equals Host, except
 * for the scheme, which a proxy may have changed. */
static bool is_own(const struct request *r, struct sl_str origin)
{
    static const struct sl_str http = {"http://", 7}, https = {"https://", 8};
    if (sl_str_equal(http_header(&r->x, "sec-fetch-site"), SL_STR("same-origin")))
        return true;
    bool secure = sl_str_starts(origin, https);
    if (!secure && !sl_str_starts(origin, http))
        return false;
    struct sl_str port = secure ? SL_STR(":443") : SL_STR(":80"), scheme = secure ? https : http;
    origin = (struct sl_str){origin.data + scheme.size, origin.size - scheme.size};
    return r->host.size > 0 && sl_str_equal_nocase(without_suffix(origin, port), without_suffix(r->host, port));
}

/* True if browsers send this content type, or none (an empty text), to other origins without a preflight (Fetch Standard,
 * "CORS-safelisted request-header"). */
static bool is_of_form(struct sl_str type)
{
    static const struct sl_str forms[] = {
        {"application/x-www-form-urlencoded", 33}, {"multipart/form-data", 19}, {"text/plain", 10}};
    const char *parameters = memchr(type.data ? type.data : "", ';', type.size);
    if (parameters)
        type.size = (size_t)(parameters - type.data);
    while (type.size > 0 && (type.data[type.size - 1] == ' ' || type.data[type.size - 1] == '\t'))
        type.size--;
    bool found = type.size == 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        found |= sl_str_equal_nocase(type, forms[i]);
    return found;
}

bool origin_check_form(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct sl_str origin = http_header(x, "origin"), listed;
    /* browsers send other content types, and methods that change something, only after a preflight (Fetch Standard) */
    if (!origin.data || r->parser.method != HTTP_POST || !is_of_form(http_header(x, "content-type")) ||
        is_own(r, origin) || is_listed(r, &listed))
        return true;
    metric_add(METRIC_HTTP_REFUSED, 1, "origin", NULL, NULL);
    http_reply_error(x, 403,
                     "forms posted by pages of other origins are rejected; allow origins with http.cors.origins");
    return false;
}

bool origin_allow(struct request *r, bool wrong_method)
{
    struct http_exchange *x = &r->x;
    struct sl_str origin, allowed = {NULL, 0}, wanted = http_header(x, "access-control-request-headers");
    if (x->route->family->origin_allowed || !is_listed(r, &origin))
        return false;
    http_set_header(x, "Access-Control-Allow-Origin", origin);
    if (!sl_str_equal(origin, SL_STR("*")))
        http_add_vary(x, SL_STR("Origin"));
    bool preflight =
        wrong_method && r->parser.method == HTTP_OPTIONS && http_header(x, "access-control-request-method").data;
    if (!preflight)
        return false;
    if (header_is_set(x, "Allow", &allowed)) /* by route_find, for the wrong method */
        http_set_header(x, "Access-Control-Allow-Methods", allowed);
    if (wanted.size)
        http_set_header(x, "Access-Control-Allow-Headers", wanted);
    http_set_header(x, "Access-Control-Max-Age", SL_STR("86400")); /* a day */
    http_reply_empty(x, 204);
    return true;
}
