/* URLs of sources and redirects, and ranges: two lines, a base and what is joined to it. However they are written, what
 * one part of the program takes for the host is what the other connects to, and no user info is shown. */
#include <stdlib.h>

#include "fetch/impl.h"
#include "origin/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void parsed(struct sl_arena *arena, const struct hop *hop)
{
    struct hop again;
    check(strcmp(hop->scheme, "http") == 0 || strcmp(hop->scheme, "https") == 0);
    check(hop_parse(arena, hop->url, &again, NULL) == SL_OK);
    check(hop_same_host(hop, &again));
    check(!again.user && !again.password);
    address_host_refused(hop->host, DRIVER_RESTRICTED);
}

static void joined(struct sl_arena *arena, const char *base, const char *location)
{
    struct hop of_base, of_url, of_shown;
    struct sl_str url = http_location_url(arena, sl_str(base), sl_str(location), true);
    struct sl_str shown = http_location_url(arena, sl_str(base), sl_str(location), false);
    check((url.data != NULL) == (shown.data != NULL));
    if (!url.data || hop_parse(arena, base, &of_base, NULL) != SL_OK)
        return;
    if (hop_parse(arena, url.data, &of_url, NULL) == SL_OK) {
        check(hop_same_host(&of_base, &of_url));
        check(hop_parse(arena, shown.data, &of_shown, NULL) == SL_OK);
        check(hop_same_host(&of_base, &of_shown) && !of_shown.user && !of_shown.password);
    }
}

static void followed(struct sl_arena *arena, const char *base, const char *location)
{
    struct hop from, to;
    if (hop_parse(arena, base, &from, NULL) != SL_OK)
        return;
    parsed(arena, &from);
    if (hop_follow(arena, &from, location, &to, NULL) != SL_OK)
        return;
    parsed(arena, &to);
    check(to.is_other_host == !hop_same_host(&from, &to));
    check(!to.is_other_host || (!to.user && !to.password));
    hop_referer(arena, &from, &to);
}

static void ranged(const char *text)
{
    struct byte_range range, parts[MAX_PARTS];
    if (!byte_range_parse(text, &range) || range.start != 0 || range.end >= range.total)
        return;
    uint64_t next = range.end + 1;
    size_t count = byte_range_split(&range, 100, parts);
    for (size_t i = 0; i < count; i++) {
        check(parts[i].start == next && parts[i].end >= next);
        next = parts[i].end + 1;
    }
    check(next == range.total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t first = line ? (size_t)(line - data) : size;
    const char *base = sl_arena_strndup(&arena, (const char *)data, first);
    const char *location = line ? sl_arena_strndup(&arena, (const char *)line + 1, size - first - 1) : "";
    joined(&arena, base, location);
    followed(&arena, base, location);
    ranged(base);
    fetch_public_url(&arena, base);
    sl_arena_free(&arena);
    return 0;
}
