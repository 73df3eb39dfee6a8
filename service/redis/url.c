/* Parses the URL of a Redis server. */
#include "id/id.h"
#include "redis/redis.h"

/* Copies a part of the URL to `out` and decodes %XX; a `%` without two hex digits is copied as it is. False if the result contains a NUL or
 * exceeds `size` bytes with its terminating NUL. */
static bool copy_decoded(struct sl_str part, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < part.size; i++) {
        uint8_t octet = (uint8_t)part.data[i];
        size_t one; /* bytes decoded, always 1 */
        if (octet == '%' && part.size - i > 2 && sl_hex_decode((struct sl_str){part.data + i + 1, 2}, &octet, 1, &one))
            i += 2;
        if (octet == '\0' || used + 1 >= size)
            return false;
        out[used++] = (char)octet;
    }
    out[used] = '\0';
    return true;
}

/* Copies a part of the URL as it is; false if it exceeds `size` bytes with its terminating NUL. */
static bool copy_part(struct sl_str part, char *out, size_t size)
{
    if (part.size >= size)
        return false;
    memcpy(out, part.data, part.size);
    out[part.size] = '\0';
    return true;
}

/* Returns the text before the first or, if `last`, the last `stop`, and sets `*rest` to the text after that. Without a `stop` returns all
 * of the text, and the data of `*rest` is NULL. */
static struct sl_str until(struct sl_str text, char stop, bool last, struct sl_str *rest)
{
    const char *at = !text.data ? NULL
                     : last     ? memrchr(text.data, stop, text.size)
                                : memchr(text.data, stop, text.size);
    size_t size = at ? (size_t)(at - text.data) : text.size;
    *rest = at ? (struct sl_str){at + 1, text.size - size - 1} : (struct sl_str){NULL, 0};
    return (struct sl_str){text.data, size};
}

/* Parses "user:password@" before the host, if it is there, and sets `*host` to what follows. False if user or password are too long or
 * contain a NUL. */
static bool parse_user(struct sl_str authority, struct redis_options *o, struct sl_str *host)
{
    struct sl_str rest, password,
        user = until(authority, '@', true, &rest); /* the last '@': a password may contain one */
    if (!rest.data) {
        *host = authority;
        return true;
    }
    *host = rest;
    user = until(user, ':', false, &password);
    return copy_decoded(user, o->user, sizeof o->user) &&
           copy_decoded(password.data ? password : SL_STR(""), o->password, sizeof o->password);
}

/* Parses "host" or "[IPv6]" with an optional ":port" (default 6379); false if it is malformed. */
static bool parse_host(struct sl_str text, struct redis_options *o)
{
    struct sl_str port, host;
    if (text.size && text.data[0] == '[') { /* an IPv6 literal (RFC 3986, 3.2.2) */
        struct sl_str behind;
        host = until((struct sl_str){text.data + 1, text.size - 1}, ']', false, &behind);
        if (!behind.data || (behind.size && behind.data[0] != ':'))
            return false;
        port = behind.size ? (struct sl_str){behind.data + 1, behind.size - 1} : SL_STR("6379");
    } else {
        host = until(text, ':', true, &port);
        port = port.data ? port : SL_STR("6379");
    }
    uint64_t number;
    return host.size && sl_parse_u64(port, &number) && number && number <= UINT16_MAX &&
           copy_part(host, o->host, sizeof o->host) && copy_part(port, o->port, sizeof o->port);
}

enum sl_code redis_url_parse(const char *url, struct redis_options *options, struct sl_error *error)
{
    struct sl_str text = sl_str(url), scheme = SL_STR("redis://"), tls_scheme = SL_STR("rediss://"), rest, host,
                  database;
    *options = (struct redis_options){0};
    if (sl_str_starts(text, SL_STR("unix:///")) &&
        copy_part((struct sl_str){text.data + 7, text.size - 7} /* the path with its first slash */, options->socket,
                  sizeof options->socket))
        return SL_OK;
    options->tls = sl_str_starts(text, tls_scheme);
    bool good = options->tls || sl_str_starts(text, scheme);
    scheme = options->tls ? tls_scheme : scheme;
    if (good) {
        /* parameters after '?' are ignored */
        text = until((struct sl_str){text.data + scheme.size, text.size - scheme.size}, '?', false, &rest);
        text = until(text, '/', false, &database);
        good = parse_user(text, options, &host) && parse_host(host, options) && database.size < 6; /* fits `unsigned` */
    }
    uint64_t number = 0;
    good = good && (!database.size || sl_parse_u64(database, &number));
    options->database = (unsigned)number;
    return good ? SL_OK : sl_fail(error, SL_MALFORMED, "not the URL of a Redis server");
}
