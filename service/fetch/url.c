/* URLs of downloads: parses them and the targets of redirects (RFC 3986, RFC 9110 section 10.1.3 and 15.4). */
#include <stdlib.h>

#include "fetch/impl.h"

/* Copies a part of a URL into the arena; NULL if the URL has no such part, or out of memory. */
static const char *url_part(struct sl_arena *arena, CURLU *url, CURLUPart what, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(url, what, &text, flags) != CURLUE_OK)
        return NULL;
    const char *copy = sl_arena_strndup(arena, text, strlen(text));
    curl_free(text);
    return copy;
}

/* Changes ASCII letters of the text to lower case, in place; NULL stays NULL. */
static const char *url_lower(const char *text)
{
    for (char *c = (char *)text; text && *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    return text;
}

/* True if hop->url, which was built from the parts, parses to the same host and port and has no user. Percent-decoding may have made the
 * host a number, which as a part of a URL is another host (an IPv4 address). */
static bool parses_back(struct sl_arena *arena, CURLU *url, const struct hop *hop)
{
    if (curl_url_set(url, CURLUPART_URL, hop->url, 0) != CURLUE_OK)
        return false;
    const char *host = url_lower(url_part(arena, url, CURLUPART_HOST, 0)),
               *port = url_part(arena, url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    const char *user = url_part(arena, url, CURLUPART_USER, 0);
    return host && port && !user && strcmp(host, hop->host) == 0 && strcmp(port, hop->port) == 0;
}

/* Fills in the parts of a hop from a parsed http(s) URL. User and password are taken out of the URL, so that they appear in no log, and the
 * fragment, which is never sent. Fails for the port 0. */
static enum sl_code fill(struct sl_arena *arena, CURLU *url, struct hop *hop, struct sl_error *error)
{
    hop->scheme = url_part(arena, url, CURLUPART_SCHEME, 0);
    if (!hop->scheme || (strcmp(hop->scheme, "http") != 0 && strcmp(hop->scheme, "https") != 0))
        return sl_fail(error, SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    hop->user = url_part(arena, url, CURLUPART_USER, CURLU_URLDECODE);
    hop->password = url_part(arena, url, CURLUPART_PASSWORD, CURLU_URLDECODE);
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    hop->host = url_lower(url_part(arena, url, CURLUPART_HOST, 0));
    hop->port = url_part(arena, url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    hop->path = url_part(arena, url, CURLUPART_PATH, 0);
    hop->url = url_part(arena, url, CURLUPART_URL, 0);
    if (!hop->host || !hop->port || !hop->path || !hop->url || strtol(hop->port, NULL, 10) == 0 ||
        !parses_back(arena, url, hop))
        return sl_fail(error, SL_DOWNLOAD_ERROR, "invalid URL");
    return SL_OK;
}

/* Parses an absolute URL or, if `base` is not NULL, the target of a redirect from `base`, which may be relative. Servers send targets with
 * blanks and non-ASCII characters, so those are percent-encoded. */
static enum sl_code parse(struct sl_arena *arena, const char *base, const char *text, struct hop *hop,
                          struct sl_error *error)
{
    *hop = (struct hop){0};
    CURLU *url = curl_url();
    if (!url)
        return sl_fail(error, SL_BUSY, "out of memory");
    /* other schemes are parsed too, so that `fill` can refuse them with its own text */
    unsigned flags = CURLU_NON_SUPPORT_SCHEME | (base ? CURLU_URLENCODE : 0);
    CURLUcode bad = base ? curl_url_set(url, CURLUPART_URL, base, 0) : CURLUE_OK;
    if (bad == CURLUE_OK)
        bad = curl_url_set(url, CURLUPART_URL, text, flags);
    enum sl_code code =
        bad ? sl_fail(error, SL_DOWNLOAD_ERROR, "%s", curl_url_strerror(bad)) : fill(arena, url, hop, error);
    curl_url_cleanup(url);
    return code;
}

enum sl_code hop_parse(struct sl_arena *arena, const char *url, struct hop *hop, struct sl_error *error)
{
    return parse(arena, NULL, url, hop, error);
}

/* Takes over user and password of `from` only if scheme, host and port are the same. Once a redirect has led to another host, is_other_host
 * stays set, even if a later one leads back. */
enum sl_code hop_follow(struct sl_arena *arena, const struct hop *from, const char *location, struct hop *to,
                        struct sl_error *error)
{
    enum sl_code code = parse(arena, from->url, location, to, error);
    bool same = code == SL_OK && hop_same_host(from, to);
    to->user = same ? from->user : NULL;
    to->password = same ? from->password : NULL;
    to->is_other_host = from->is_other_host || !same;
    return code;
}

bool hop_same_host(const struct hop *a, const struct hop *b)
{
    return strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* To another host, the Referer is without query, which may have a token; from https to http there is none (RFC 9110, 10.1.3). */
const char *hop_referer(struct sl_arena *arena, const struct hop *from, const struct hop *to)
{
    if (strcmp(from->scheme, "https") == 0 && strcmp(to->scheme, "http") == 0)
        return NULL;
    return hop_same_host(from, to) ? from->url : fetch_public_url(arena, from->url);
}

/* Sets `parts` to the parts of an absolute http(s) URL: the host has its port unless that is the default one. False if the URL is not one,
 * or when out of memory. */
bool fetch_split_url(struct sl_arena *arena, const char *url, struct fetch_url *parts)
{
    struct hop hop;
    struct sl_buf host = {0};
    if (hop_parse(arena, url, &hop, NULL) != SL_OK)
        return false;
    bool is_secure = strcmp(hop.scheme, "https") == 0;
    sl_buf_cstr(&host, hop.host);
    if (strcmp(hop.port, is_secure ? "443" : "80") != 0)
        sl_buf_printf(&host, ":%s", hop.port);
    *parts = (struct fetch_url){is_secure, sl_buf_move_to_arena(&host, arena), sl_str(hop.path)};
    return parts->host.data != NULL;
}

const char *fetch_public_url(struct sl_arena *arena, const char *text)
{
    CURLU *url = curl_url();
    const char *out = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
        static const CURLUPart hidden[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT};
        for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
            curl_url_set(url, hidden[i], NULL, 0);
        out = url_part(arena, url, CURLUPART_URL, 0);
    }
    curl_url_cleanup(url);
    return out;
}

/* Returns the length of the scheme in front of "://"; 0 if the text does not begin with a scheme and exactly two slashes. curl also accepts
 * other numbers of slashes, and then finds another host than other parsers do. */
static size_t scheme_size(const char *text)
{
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return strncmp(text + size, "://", 3) == 0 && text[size + 3] != '/' ? size : 0;
}

/* True if the URL has the simple form that most sources have: http(s), a host of unreserved characters, maybe a port, and a path of
 * unreserved characters. Such a URL is valid without a check by libcurl, which need not be loaded then. */
static bool is_plain_url(const char *text)
{
    /* the characters of hosts and paths; a host has no '/' */
    static const bool plain[256] = {['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true,
                                    ['.'] = true,         ['_'] = true,         ['~'] = true,         ['/'] = true};
    bool is_http = strncmp(text, "http://", 7) == 0, is_https = strncmp(text, "https://", 8) == 0;
    const char *host = text + (is_https ? 8 : 7), *at = host;
    while (is_http + is_https > 0 && plain[(uint8_t)*at] && *at != '/')
        at++;
    if (is_http + is_https == 0 || at == host)
        return false;
    if (*at == ':') {
        char *end;
        bool digit = at[1] >= '0' && at[1] <= '9';
        if (!digit || strtoul(at + 1, &end, 10) > UINT16_MAX)
            return false;
        at = end;
    }
    if (*at && *at != '/')
        return false;
    while (plain[(uint8_t)*at])
        at++;
    return *at == '\0';
}

bool fetch_url_valid(const char *text)
{
    if (is_plain_url(text))
        return true;
    CURLU *url = curl_url();
    bool ok = url && scheme_size(text) && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    curl_url_cleanup(url);
    return ok;
}

const char *fetch_url_host(struct sl_arena *arena, const char *text)
{
    CURLU *url = curl_url();
    const char *host = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
        host = url_part(arena, url, CURLUPART_HOST, 0);
    curl_url_cleanup(url);
    return host;
}

void fetch_encode(struct sl_buf *out, struct sl_str text, bool keep_slashes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = (uint8_t)text.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '_' || c == '.' || c == '~' || (c == '/' && keep_slashes);
        if (plain) {
            sl_buf_u8(out, c);
        } else {
            sl_buf_u8(out, '%');
            sl_buf_u8(out, (uint8_t)hex[c >> 4]);
            sl_buf_u8(out, (uint8_t)hex[c & 15]);
        }
    }
}

uint64_t fetch_max_size(void)
{
    return fetch_state.options.max_download_size;
}
