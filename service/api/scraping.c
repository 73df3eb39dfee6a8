/* Rules for downloads from the web: normalizes URLs, and compares them with the origins that a request allows. */
#include "api/scraping.h"

#include <locale.h>
#include <stddef.h>

#include <curl/curl.h>
#include <openssl/evp.h>

/* ---- the member "scraping" ---- */
static const struct sl_str any_origin = {"*", 1};
const struct scraping scraping_default = {.allowed_origins = &any_origin, .allowed_origin_count = 1};

/* Reads the headers for downloads, {name: value}. Values may be secrets, so they are kept in a type that the log does not show. */
static bool read_headers(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct scraping *scraping = out;
    struct sl_arena_array headers = {.arena = s->json->arena, .item = sizeof *scraping->headers};
    struct sl_str name;
    bool good = sl_fields_open(s, at, SL_JSON_OBJECT, "a map");
    while (good && sl_json_next(s->json, &name)) {
        struct sl_json_path path = {.up = at, .key = name};
        struct fetch_header *header = sl_arena_array_add(&headers);
        good = header ? sl_fields_text(s, &path, &header->value.hidden) : sl_json_no_memory(s->json);
        if (header)
            header->name = name;
    }
    if (!good || s->json->failed) {
        sl_arena_array_discard(&headers);
        return false;
    }
    scraping->header_count = headers.count;
    scraping->headers = sl_arena_array_finish(&headers);
    return scraping->headers || sl_json_no_memory(s->json);
}

static const struct sl_field scraping_fields[] = {
    SL_FIELD(BOOL, false, scraping, enabled, "enabled"),
    SL_FIELD(BOOL, false, scraping, verify_ssl, "verify_ssl"),
    SL_FIELD_EACH(false, scraping, allowed_origins, allowed_origin_count, "allowed_origins", sl_fields_text),
    {SL_STR("headers"), SL_FIELD_CUSTOM, false, 0, read_headers},
    SL_FIELDS_END,
};

bool scraping_read(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_fields_object(s, at, scraping_fields, out);
}

/* ---- URLs ---- */

/* Returns a copy of one part of a URL in the arena; data NULL if it has no such part, or when out of memory. */
static struct sl_str scraping_part(struct sl_arena *arena, CURLU *url, CURLUPart what, unsigned flags)
{
    char *text = NULL, *copy = NULL;
    if (curl_url_get(url, what, &text, flags) == CURLUE_OK)
        copy = sl_arena_strndup(arena, text, strlen(text));
    curl_free(text);
    return sl_str(copy);
}

/* Returns a copy in lower case (ASCII letters only); data NULL when out of memory, or if `text` has data NULL. */
static struct sl_str scraping_lower(struct sl_arena *arena, struct sl_str text)
{
    char *copy = text.data ? sl_arena_strndup(arena, text.data, text.size) : NULL;
    for (size_t i = 0; copy && i < text.size; i++)
        copy[i] = copy[i] >= 'A' && copy[i] <= 'Z' ? (char)(copy[i] + 32) : copy[i];
    return (struct sl_str){copy, copy ? text.size : 0};
}

static bool is_ascii(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] >= 0x80)
            return false;
    return true;
}

/* Returns the host of the URL in lower-case ASCII (punycode); as it is if it cannot be converted. libcurl reads the name in the
 * encoding of the thread's locale, which is therefore UTF-8 during the call. */
static struct sl_str ascii_host(struct sl_arena *arena, CURLU *url)
{
    struct sl_str host = scraping_part(arena, url, CURLUPART_HOST, 0), ascii = {NULL, 0};
    if (host.data && is_ascii(host))
        return scraping_lower(arena, host);
    locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = unicode ? uselocale(unicode) : (locale_t)0;
    if (host.data)
        ascii = scraping_part(arena, url, CURLUPART_HOST, CURLU_PUNYCODE);
    if (unicode) {
        uselocale(before);
        freelocale(unicode);
    }
    return scraping_lower(arena, ascii.data ? ascii : host);
}

/* A URL with a NUL is refused. libcurl normalizes the URL when it is set; the host is set again in ASCII. */
struct sl_str scraping_url(struct sl_arena *arena, struct sl_str text)
{
    struct sl_str result = {NULL, 0};
    bool web = sl_str_starts(text, SL_STR("https://")) || sl_str_starts(text, SL_STR("http://"));
    if (!web || memchr(text.data, '\0', text.size))
        return result;
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    CURLU *url = curl_url();
    if (copy && url && curl_url_set(url, CURLUPART_URL, copy, CURLU_URLENCODE) == CURLUE_OK) {
        struct sl_str host = ascii_host(arena, url);
        if (host.data && curl_url_set(url, CURLUPART_HOST, host.data, 0) == CURLUE_OK)
            result = scraping_part(arena, url, CURLUPART_URL, CURLU_NO_DEFAULT_PORT);
    }
    curl_url_cleanup(url);
    return result;
}

/* ---- origins ---- */

struct scraping_target { /* the URL to check, in parts */
    struct sl_str whole, scheme, host, port, path;
};

struct url_pattern {                        /* an allowed origin, in parts */
    struct sl_str scheme, host, port, path; /* data NULL: any */
    bool below;                             /* the host began with "*." */
};

/* Splits a URL, of any scheme, into the parts that origins are compared with. False if it is not valid, or when out of memory. */
static bool read_target(struct sl_arena *arena, struct sl_str text, struct scraping_target *target)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    CURLU *url = curl_url();
    bool good = copy && url && curl_url_set(url, CURLUPART_URL, copy, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    if (good)
        *target = (struct scraping_target){.whole = text,
                                           .scheme = scraping_part(arena, url, CURLUPART_SCHEME, 0),
                                           .host = ascii_host(arena, url),
                                           .port = scraping_part(arena, url, CURLUPART_PORT, CURLU_DEFAULT_PORT),
                                           .path = scraping_part(arena, url, CURLUPART_PATH, 0)};
    curl_url_cleanup(url);
    return good && target->scheme.data && target->host.data;
}

/* Returns the part of the text from offset `from` to `to`, exclusive. */
static struct sl_str slice(struct sl_str text, size_t from, size_t to)
{
    return (struct sl_str){text.data + from, to - from};
}

/* Returns the offset of the first `c`; the size of the text if there is none. */
static size_t scraping_find(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

/* Returns the host of an origin in ASCII form. A host that is no valid name is only converted to lower case. ascii_host takes a URL, for
 * which any scheme does. */
static struct sl_str pattern_host(struct sl_arena *arena, struct sl_str host)
{
    struct sl_str result = {NULL, 0};
    CURLU *url = curl_url();
    char *copy = sl_arena_strndup(arena, host.data, host.size);
    if (url && copy && curl_url_set(url, CURLUPART_SCHEME, "http", 0) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_HOST, copy, 0) == CURLUE_OK)
        result = ascii_host(arena, url);
    curl_url_cleanup(url);
    return result.data ? result : scraping_lower(arena, host);
}

/* Parses an origin, "[<scheme>://][*.]<host>[:<port>][/<path>[*]]"; the host "*" is any. False if it has no host, or when out of
 * memory: an origin that lacks its scheme or host would match any. */
static bool read_pattern(struct sl_arena *arena, struct sl_str text, struct url_pattern *p)
{
    *p = (struct url_pattern){0};
    for (size_t i = 0; i + 2 < text.size; i++)
        if (memcmp(text.data + i, "://", 3) == 0) {
            p->scheme = scraping_lower(arena, slice(text, 0, i));
            if (!p->scheme.data)
                return false;
            text = slice(text, i + 3, text.size);
            break;
        }
    size_t end = scraping_find(text, '/');
    struct sl_str host = slice(text, 0, end);
    p->path = slice(text, end, text.size);
    if (p->path.size && p->path.data[p->path.size - 1] == '*')
        p->path.size--;
    /* behind the last character of the host that is no digit: if that is a colon, the digits are the port */
    size_t colon = host.size;
    while (colon && host.data[colon - 1] >= '0' && host.data[colon - 1] <= '9')
        colon--;
    if (colon && colon < host.size && host.data[colon - 1] == ':') {
        p->port = slice(host, colon, host.size);
        host.size = colon - 1;
    }
    p->below = sl_str_starts(host, SL_STR("*."));
    if (p->below)
        host = slice(host, 2, host.size);
    if (!host.size)
        return false;
    if (sl_str_equal(host, SL_STR("*")))
        return true;
    p->host = pattern_host(arena, host);
    return p->host.data != NULL;
}

/* True if the host matches the origin's: it is the same, or with "*." (p->below) a name below it. The host "*" (no p->host) matches any,
 * but "*.*" is not allowed and matches nothing. */
static bool host_matches(const struct url_pattern *p, struct sl_str host)
{
    if (!p->host.data)
        return !p->below;
    if (sl_str_equal(p->host, host))
        return true;
    return p->below && host.size > p->host.size && sl_str_ends(host, p->host) &&
           host.data[host.size - p->host.size - 1] == '.';
}

/* True if the URL matches the origin. The path matches by its beginning; with "*." the port is not compared. */
static bool matches(const struct url_pattern *p, const struct scraping_target *t)
{
    bool any_scheme = !p->scheme.data || sl_str_equal(p->scheme, SL_STR("*"));
    return (any_scheme || sl_str_equal(p->scheme, t->scheme)) && host_matches(p, t->host) &&
           (!p->port.data || p->below || sl_str_equal(p->port, t->port)) && sl_str_starts(t->path, p->path);
}

/* "*" and the URL itself need no parsing, so these origins also allow a URL that cannot be parsed. */
bool scraping_origin_allowed(struct sl_arena *arena, const struct sl_str *origins, size_t count, struct sl_str url)
{
    struct scraping_target target = {0};
    bool parsed = count && read_target(arena, url, &target);
    for (size_t i = 0; i < count; i++) {
        struct url_pattern pattern;
        if (sl_str_equal(origins[i], SL_STR("*")) || sl_str_equal(origins[i], url))
            return true;
        if (parsed && read_pattern(arena, origins[i], &pattern) && matches(&pattern, &target))
            return true;
    }
    return false;
}

/* The offset of a URL is the number in the first 8 bytes of its hash, modulo the period. */
bool scraping_period_begin(struct sl_str url, int64_t period_s, int64_t now_s, int64_t *begin_s)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    uint64_t hash = 0;
    if (EVP_Digest(url.data, url.size, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    for (int i = 7; i >= 0; i--)
        hash = hash << 8 | digest[i];
    int64_t offset = (int64_t)(hash % (uint64_t)period_s), past = now_s - offset;
    *begin_s = past - past % period_s + offset;
    return true;
}
