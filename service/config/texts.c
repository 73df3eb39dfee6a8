/* Checks of texts (listeners, networks, host names), and escaping of texts for output. */
#include <arpa/inet.h>
#include <grp.h>
#include <sys/un.h>

#include "config/impl.h"

/* Copies the text with a NUL at its end. False if it is empty or too long. */
static bool copy_terminated(struct sl_str text, char *out, size_t size)
{
    if (text.size == 0 || text.size >= size)
        return false;
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return true;
}

/* True for an IP address of the family AF_INET or AF_INET6. */
static bool is_address(int family, struct sl_str text)
{
    char copy[64];
    uint8_t bytes[16];
    return copy_terminated(text, copy, sizeof copy) && inet_pton(family, copy, bytes) == 1;
}

/* True for decimal digits with a value up to `most`. */
static bool is_number(struct sl_str text, unsigned most)
{
    uint64_t number;
    return text.size <= 5 && sl_parse_u64(text, &number) && number <= most;
}

/* Returns the text from position `at` on. */
static struct sl_str text_from(struct sl_str text, size_t at)
{
    return (struct sl_str){text.data + at, text.size - at};
}

const char *text_is_path_prefix(struct sl_str text)
{
    if (text.size == 0)
        return NULL;
    if (text.data[0] != '/' || text.data[text.size - 1] == '/')
        return "must start with a slash and not end with one";
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool word = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
        if (!word && !strchr("/-._~", c))
            return "may contain only letters, digits and / - . _ ~";
    }
    return NULL;
}

const char *text_is_listener(struct sl_str text)
{
    static const char forms[] = "must be IP:PORT, [IPv6]:PORT, unix:/path or systemd";
    if (sl_str_equal(text, SL_STR("systemd")))
        return NULL;
    if (sl_str_starts(text, SL_STR("unix:"))) {
        if (text.size < 6 || text.data[5] != '/')
            return "the path of a socket must be absolute (unix:/path)";
        return text.size - 5 < sizeof((struct sockaddr_un *)NULL)->sun_path ? NULL
                                                                            : "the path is too long for a socket";
    }
    const char *colon = text.size ? memrchr(text.data, ':', text.size) : NULL;
    if (!colon)
        return forms;
    struct sl_str host = {text.data, (size_t)(colon - text.data)};
    if (!is_number(text_from(text, host.size + 1), 65535))
        return "the port must be a number from 0 to 65535";
    if (host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        return is_address(AF_INET6, (struct sl_str){host.data + 1, host.size - 2}) ? NULL : "not an IPv6 address";
    if (is_address(AF_INET, host))
        return NULL;
    if (is_address(AF_INET6, host))
        return "IPv6 addresses need brackets ([IPv6]:PORT)";
    return host.size ? "host names are not allowed, use an IP address" : forms;
}

/* Accepts a group also if getgrnam_r() fails: it exists but has too many members for the buffer, or the list of groups cannot be read. */
const char *text_is_group(struct sl_str text)
{
    char name[256], members[4096];
    struct group entry, *group = NULL;
    if (!copy_terminated(text, name, sizeof name))
        return "no such group";
    bool missing = getgrnam_r(name, &entry, members, sizeof members, &group) == 0 && !group;
    return missing ? "no such group" : NULL;
}

const char *text_is_network(struct sl_str text)
{
    const char *slash = text.size ? memchr(text.data, '/', text.size) : NULL;
    struct sl_str address = {text.data, slash ? (size_t)(slash - text.data) : text.size};
    bool v4 = is_address(AF_INET, address);
    if (!v4 && !is_address(AF_INET6, address))
        return "not an IP address or network (examples: 10.0.0.0/8, fd00::/8)";
    if (slash && !is_number(text_from(text, address.size + 1), v4 ? 32 : 128))
        return v4 ? "the prefix length must be from 0 to 32" : "the prefix length must be from 0 to 128";
    return NULL;
}

const char *text_is_proxy(struct sl_str text)
{
    return sl_str_equal(text, SL_STR("unix")) ? NULL : text_is_network(text);
}

const char *text_is_host(struct sl_str text)
{
    struct sl_str name = sl_str_starts(text, SL_STR("*.")) ? text_from(text, 2) : text;
    bool good = name.size > 0;
    for (size_t i = 0; i < name.size; i++)
        good = good && (uint8_t)name.data[i] > ' ' && !strchr("/@?#*", name.data[i]);
    return good ? NULL : "not a host name (examples: sentry.io, *.sentry.io)";
}

const char *text_is_statsd(struct sl_str text)
{
    const char *colon = text.size ? memrchr(text.data, ':', text.size) : NULL;
    if (sl_str_starts(text, SL_STR("unix:/")))
        return NULL;
    if (!colon || colon == text.data || !is_number(text_from(text, (size_t)(colon + 1 - text.data)), 65535))
        return "not the address of a statsd server (examples: localhost:8125, unix:/run/statsd.sock)";
    return NULL;
}

const char *text_is_origin(struct sl_str text)
{
    size_t scheme = sl_str_starts(text, SL_STR("https://")) ? 8 : sl_str_starts(text, SL_STR("http://")) ? 7 : 0;
    if (sl_str_equal(text, SL_STR("*")))
        return NULL;
    if (!scheme || text.size == scheme || memchr(text.data + scheme, '/', text.size - scheme))
        return "not an origin (examples: https://profiler.firefox.com, http://localhost:8080, *)";
    return NULL;
}

const char *text_is_redis_url(struct sl_str text)
{
    if (sl_str_starts(text, SL_STR("unix:///")))
        return text.size - 7 < sizeof((struct sockaddr_un *)NULL)->sun_path ? NULL
                                                                            : "the path is too long for a socket";
    return (sl_str_starts(text, SL_STR("redis://")) && text.size > 8) ||
                   (sl_str_starts(text, SL_STR("rediss://")) && text.size > 9)
               ? NULL
               : "not the URL of a Redis server (examples: redis://host:6379/0, rediss://host, "
                 "unix:///run/redis.sock)";
}

/* ---- printing ---- */

void text_hide_user(struct sl_str text, struct sl_str *scheme, struct sl_str *rest)
{
    const char *slashes = text.size ? memmem(text.data, text.size, "://", 3) : NULL;
    *scheme = (struct sl_str){text.data, slashes ? (size_t)(slashes - text.data) + 3 : 0};
    *rest = text;
    if (!slashes)
        return;
    size_t end = scheme->size, authority;
    while (end < text.size && text.data[end] != '?' && text.data[end] != '#')
        end++;
    for (authority = scheme->size; authority < end && text.data[authority] != '/';) /* "user:password@host:port" */
        authority++;
    const char *at = memrchr(text.data + scheme->size, '@', authority - scheme->size);
    size_t host = at ? (size_t)(at - text.data) + 1 : scheme->size;
    *rest = (struct sl_str){text.data + host, end - host};
}

/* True for control characters, line and paragraph separators, the byte order mark, and U+FFFE and U+FFFF. */
static bool unprintable(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0xFEFF ||
           code == 0xFFFE || code == 0xFFFF;
}

void text_escape(struct sl_buf *out, struct sl_str text, bool quotes)
{
    for (size_t at = 0; at < text.size;) {
        size_t next = at;
        bool good = sl_utf8_sequence(text.data + at, text.size - at, NULL) > 0;
        uint32_t code = good ? sl_utf8_next(text, &next) : (uint8_t)text.data[next++];
        if (!good || unprintable(code)) {
            sl_buf_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
        } else {
            if (quotes && (code == '"' || code == '\\'))
                sl_buf_u8(out, '\\');
            sl_buf_add(out, text.data + at, next - at);
        }
        at = next;
    }
}
