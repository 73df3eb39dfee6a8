/* Errors as cache entries: on disk an error is a file with a short text, its marker, for example "malformedbad magic". */
#include "cache/cache.h"

#include "core/duration.h"

/* Errors that are stored on disk: the entry's file, its marker, is `word` and the message. No word is a prefix of another. SL_NOT_FOUND has
 * no word: its file is empty. Markers are for example "malformedbad magic", "timeout5m" (duration.h), "". */
static const struct cache_error_marker {
    enum sl_code code;
    struct sl_str word; /* the marker begins with it */
    struct sl_str text; /* what clients are shown before the message */
} markers[] = {
    {SL_PERMISSION_DENIED, SL_STR("permissiondenied"), SL_STR("permission denied: ")},
    {SL_TIMEOUT, SL_STR("timeout"), SL_STR("download timed out after ")},
    {SL_DOWNLOAD_ERROR, SL_STR("downloaderror"), SL_STR("download failed: ")},
    {SL_MALFORMED, SL_STR("malformed"), SL_STR("malformed: ")},
    {SL_UNSUPPORTED, SL_STR("unsupported"), SL_STR("unsupported: ")},
};
enum { MARKERS = sizeof markers / sizeof *markers };

/* Returns how errors of this code are stored. NULL for SL_NOT_FOUND, and for errors that are never stored. */
static const struct cache_error_marker *find_marker(enum sl_code code)
{
    for (size_t i = 0; i < MARKERS; i++)
        if (markers[i].code == code)
            return &markers[i];
    return NULL;
}

void cache_error_encode(const struct sl_error *error, struct sl_buf *out)
{
    const struct cache_error_marker *marker = find_marker(error->code);
    if (!marker) /* SL_NOT_FOUND is an empty file */
        return;
    sl_buf_str(out, marker->word);
    if (error->code == SL_TIMEOUT)
        duration_format(error->duration_ns, out);
    else
        sl_buf_cstr(out, error->message);
}

/* Copies text to `to`, which holds `capacity` bytes, as far as whole characters fit, and up to a NUL; invalid UTF-8 becomes U+FFFD. */
static void copy_lossy(struct sl_bytes from, char *to, size_t capacity)
{
    struct sl_str text = {(const char *)from.data, from.size};
    size_t used = 0;
    for (size_t at = 0; at < text.size && text.data[at];) {
        struct sl_str character = sl_utf8_next_valid(text, &at);
        if (used + character.size >= capacity)
            break;
        memcpy(to + used, character.data, character.size);
        used += character.size;
    }
    to[used] = '\0';
}

/* Decodes the time limit in a marker of SL_TIMEOUT, the "5m" of "timeout5m". Returns SL_TIMEOUT, or SL_INTERNAL if it is missing or
 * invalid. */
static enum sl_code decode_timeout(struct sl_bytes details, struct sl_error *error)
{
    char text[sizeof error->message];
    copy_lossy(details, text, sizeof text);
    uint64_t ns;
    if (!duration_parse(sl_str(text), &ns))
        return sl_fail(error, SL_INTERNAL, "a cached timeout error is damaged: it has no valid time limit");
    struct sl_buf limit = {0}; /* the message of such an error is the time limit */
    duration_format_short(ns, &limit);
    sl_fail(error, SL_TIMEOUT, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&limit)));
    if (error)
        error->duration_ns = ns;
    sl_buf_free(&limit);
    return SL_TIMEOUT;
}

enum sl_code cache_error_decode(struct sl_bytes bytes, struct sl_error *error)
{
    if (bytes.size == 0)
        return sl_fail(error, SL_NOT_FOUND, "not found");
    for (size_t i = 0; i < MARKERS; i++) {
        struct sl_str word = markers[i].word;
        if (bytes.size < word.size || memcmp(bytes.data, word.data, word.size) != 0)
            continue;
        struct sl_bytes details = {bytes.data + word.size, bytes.size - word.size};
        if (markers[i].code == SL_TIMEOUT)
            return decode_timeout(details, error);
        sl_fail(error, markers[i].code, "%s", ""); /* sets the code; copy_lossy sets the text, which may be no UTF-8 */
        if (error)
            copy_lossy(details, error->message, sizeof error->message);
        return markers[i].code;
    }
    return SL_OK; /* contents */
}

void cache_error_text(const struct sl_error *error, struct sl_buf *out)
{
    const struct cache_error_marker *marker = find_marker(error->code);
    if (!marker) {
        sl_buf_cstr(out, error->code == SL_NOT_FOUND ? "not found" : "internal error");
        return;
    }
    sl_buf_str(out, marker->text);
    if (error->code == SL_TIMEOUT)
        duration_format_short(error->duration_ns, out);
    else
        sl_buf_cstr(out, error->message);
}
