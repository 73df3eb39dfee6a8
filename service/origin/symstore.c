/* Indexes of symbol stores ("SymStore", Microsoft's documentation of the debugging tools). The file of a transaction is a segment:
 *
 *     000Admin/lastid.txt     0000000012                                        number of transactions
 *     000Admin/0000000012     "crash.exe\5AB380779000","c:\build\crash.exe"     one line for each file it added */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "origin/failures.h"
#include "origin/impl.h"

/* LAST_MAX: highest accepted number of transactions; each is a download. LAST_FILE_MAX, LAST_TEXT_MAX: most bytes of lastid.txt that are
 * downloaded, and accepted. PATH_MAX_BYTES: longest path in a segment. */
enum { LAST_TEXT_MAX = 20, LAST_FILE_MAX = 4096, LAST_MAX = 10000, PATH_MAX_BYTES = 1024 };
#define MINUTE_NS UINT64_C(60000000000)
#define DAY_NS    (24 * 60 * MINUTE_NS)

static struct ttl_cache lasts = {.capacity = 100,
                                 .error_ns = 10 * MINUTE_NS,
                                 .failure_ns = MINUTE_NS / 2,
                                 .is_failure = origin_is_failure,
                                 .again_ns = DAY_NS};

void index_init(size_t capacity)
{
    ttl_cache_resize(&lasts, capacity);
}

void index_clear_cache(void)
{
    ttl_cache_expire(&lasts);
}

bool origin_has_index(const struct source *source)
{
    return source->has_index && source->layout == LAYOUT_SYMSTORE && source->type != SOURCE_SENTRY;
}

/* ---- the last number ---- */

/* Parses the contents of lastid.txt, the number of transactions: decimal digits, with white space around them. */
static enum sl_code parse_last(struct sl_str text, uint32_t *last, struct sl_error *error)
{
    uint64_t n = 0;
    if (text.size > LAST_TEXT_MAX)
        return sl_fail(error, SL_MALFORMED, "Invalid Symstore Id (too big)");
    text = sl_str_trimmed(text);
    if (text.size == 0)
        return sl_fail(error, SL_MALFORMED, "Invalid Symstore Id: no number");
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return sl_fail(error, SL_MALFORMED, "Invalid Symstore Id: invalid digit");
        n = n * 10 + (uint64_t)(text.data[i] - '0');
        if (n > UINT32_MAX)
            return sl_fail(error, SL_MALFORMED, "Invalid Symstore Id: number too large");
    }
    if (n > LAST_MAX)
        return sl_fail(error, SL_MALFORMED, "Invalid Symstore Id: %llu, too large", (unsigned long long)n);
    *last = (uint32_t)n;
    return SL_OK;
}

/* Downloads lastid.txt and appends its number to `text`. SL_MALFORMED if the file contains no valid number or is too large; else the
 * error of the download. */
static enum sl_code fetch_last(const struct source *source, struct sl_arena *arena, struct sl_buf *text,
                               struct sl_error *error)
{
    struct remote_file file;
    char contents[LAST_FILE_MAX];
    /* FILE_PE: any type; the download does not depend on it */
    if (!fill_remote_file(arena, source, FILE_PE, SL_STR("000Admin/lastid.txt"), &file))
        return sl_fail(error, SL_BUSY, "out of memory");
    int fd = memfd_create("lastid", MFD_CLOEXEC);
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a download");
    file.max_size = sizeof contents;
    file.may_be_empty = true; /* parse_last reports an empty file */
    enum sl_code code = origin_fetch(&file, fd, error);
    ssize_t size = code == SL_OK ? pread(fd, contents, sizeof contents, 0) : 0;
    close(fd);
    uint32_t last = 0;
    if (code == SL_MALFORMED) /* larger than LAST_FILE_MAX */
        code = sl_fail(error, code, "Invalid Symstore Id (too big)");
    if (code == SL_OK)
        code = parse_last((struct sl_str){contents, size > 0 ? (size_t)size : 0}, &last, error);
    if (code == SL_OK)
        sl_buf_printf(text, "%u", last);
    return code;
}

/* Called by the cache: downloads the number of transactions. `*for_ns` counts only on success: errors are cached for error_ns or
 * failure_ns. */
static enum sl_code request_last(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    struct sl_arena arena = {0};
    enum sl_code code = fetch_last(context, &arena, text, error);
    sl_arena_free(&arena);
    *for_ns = DAY_NS;
    return code;
}

enum sl_code origin_index_last(const struct source *source, struct sl_str scope, uint32_t *last, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_str key[] = {source->is_public ? SL_STR("global") : scope, source->id, origin_root(source, &arena)}, text;
    enum sl_code code = ttl_cache_get(&lasts, key, 3, request_last, source, &arena, &text, error);
    if (code == SL_OK) {
        *last = (uint32_t)strtoul(text.data, NULL, 10);
        metric_set(METRIC_SYMSTORE_LAST_ID, (double)*last, origin_label(&arena, source), NULL, NULL);
    }
    sl_arena_free(&arena);
    return code;
}

/* ---- segments ---- */
bool origin_index_segment(const struct source *source, uint32_t n, struct sl_arena *arena, struct remote_file *file)
{
    char path[32];
    snprintf(path, sizeof path, "000Admin/%010u", n);
    const char *copy = sl_arena_strndup(arena, path, strlen(path));
    /* FILE_PE: any type; the download does not depend on it */
    if (!copy || !fill_remote_file(arena, source, FILE_PE, sl_str(copy), file))
        return false;
    file->may_be_empty = true; /* a transaction that added nothing */
    return true;
}

/* Parses `"<name>\<id>","<anything>"` and appends the path of the file, "<name>/<id>/<name>". False if the line has another
 * form. */
static bool symstore_add_line(struct sl_str line, struct sl_buf *lines)
{
    const char *begin = memchr(line.data, '"', line.size);
    if (!begin)
        return false;
    size_t left = line.size - (size_t)(++begin - line.data);
    const char *end = memchr(begin, '"', left);
    const char *slash = end ? memchr(begin, '\\', (size_t)(end - begin)) : NULL;
    if (!slash)
        return false;
    struct sl_str name = {begin, (size_t)(slash - begin)}, id = {slash + 1, (size_t)(end - slash - 1)};
    /* PATH_MAX_BYTES / 2: the path contains the name twice */
    if (!name.size || !id.size || name.size + id.size > PATH_MAX_BYTES / 2 ||
        memchr(begin, '\0', (size_t)(end - begin)))
        return false;
    sl_buf_str(lines, name);
    sl_buf_u8(lines, '/');
    sl_buf_str(lines, id);
    sl_buf_u8(lines, '/');
    sl_buf_str(lines, name);
    sl_buf_u8(lines, '\n');
    return true;
}

size_t origin_index_read(struct sl_bytes segment, struct sl_buf *lines)
{
    struct sl_str rest = {(const char *)segment.data, segment.size}, line;
    size_t strange = 0;
    while (sl_str_next_line(&rest, &line))
        strange += line.size && !symstore_add_line(line, lines);
    return strange;
}

/* Sorted lines can be searched by bisection (origin_index_find). */
bool origin_index_sort(struct sl_buf *lines)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < lines->size; i++)
        count += lines->data[i] == '\n';
    if (count == 0 || lines->failed)
        return !lines->failed;
    struct sl_str *sorted = calloc(count, sizeof *sorted);
    struct sl_buf out = {0};
    if (!sorted)
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *end = memchr(lines->data + at, '\n', lines->size - at);
        sorted[i] = (struct sl_str){(char *)lines->data + at, (size_t)(end - lines->data) - at};
        at += sorted[i].size + 1;
    }
    qsort(sorted, count, sizeof *sorted, sl_str_order);
    for (size_t i = 0; i < count; i++) {
        if (i && sl_str_equal(sorted[i], sorted[i - 1]))
            continue;
        sl_buf_str(&out, sorted[i]);
        sl_buf_u8(&out, '\n');
    }
    free(sorted);
    sl_buf_free(lines);
    *lines = out;
    return !out.failed;
}

/* ---- lookup ---- */
enum { STEPS_MAX = 20000 };

struct symstore_search {
    struct sl_str lines, path;
    unsigned steps; /* steps left: a malicious index could contain every combination of case */
};

/* Returns the line that contains the byte at `at`, and sets `*start` to its offset. */
static struct sl_str symstore_line_at(struct sl_str lines, size_t at, size_t *start)
{
    size_t end = at;
    while (at && lines.data[at - 1] != '\n')
        at--;
    while (end < lines.size && lines.data[end] != '\n')
        end++;
    *start = at;
    return (struct sl_str){lines.data + at, end - at};
}

/* All lines in [from, to) begin with the same `depth` bytes. Returns the offset of the first of them whose byte at `depth` is at least
 * `c`; `to` if there is none. */
static size_t lower_bound(struct symstore_search *s, size_t from, size_t to, size_t depth, int c)
{
    while (from < to) {
        size_t start;
        struct sl_str line = symstore_line_at(s->lines, from + (to - from) / 2, &start);
        int next = line.size > depth ? (unsigned char)line.data[depth] : -1; /* -1: the line ends before */
        s->steps -= s->steps > 0;                                            /* symstore_find gives up at 0 */
        if (next < c)
            from = start + line.size + 1;
        else
            to = start;
    }
    return from < s->lines.size ? from : s->lines.size; /* the last line may lack its newline */
}

/* Finds a line in [from, to) that equals the path ignoring case; the first `depth` bytes are compared already. Data NULL if there is none,
 * or if that takes too many steps. Narrows the range of lines byte by byte; where both cases of a letter occur, searches the lines with the
 * path's case first, by recursion. */
static struct sl_str symstore_find(struct symstore_search *s, size_t from, size_t to, size_t depth)
{
    struct sl_str none = {NULL, 0};
    for (; from < to && s->steps && depth < s->path.size; depth++) {
        unsigned char c = (unsigned char)s->path.data[depth];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        size_t begin = lower_bound(s, from, to, depth, c), end = lower_bound(s, begin, to, depth, c + 1);
        if (letter) {
            int other = c ^ 32;
            size_t other_begin = lower_bound(s, from, to, depth, other);
            size_t other_end = lower_bound(s, other_begin, to, depth, other + 1);
            if (begin < end && other_begin < other_end) {
                struct sl_str found = symstore_find(s, begin, end, depth + 1);
                if (found.data)
                    return found;
            }
            if (other_begin < other_end)
                begin = other_begin, end = other_end;
        }
        from = begin;
        to = end;
    }
    if (from >= to || !s->steps)
        return none;
    size_t start;
    struct sl_str line = symstore_line_at(s->lines, from, &start);
    return line.size == s->path.size ? line : none;
}

/* Finds the path by bisection; data NULL if it is not there. */
static struct sl_str find_exactly(struct sl_str lines, struct sl_str path)
{
    size_t from = 0, to = lines.size;
    while (from < to) {
        size_t start;
        struct sl_str line = symstore_line_at(lines, from + (to - from) / 2, &start);
        int order = sl_str_compare(line, path);
        if (order == 0)
            return line;
        if (order < 0)
            from = start + line.size + 1;
        else
            to = start;
    }
    return (struct sl_str){NULL, 0};
}

struct sl_str origin_index_find(struct sl_bytes bytes, struct sl_str path)
{
    struct sl_str lines = {(const char *)bytes.data, bytes.size};
    struct sl_str found = find_exactly(lines, path);
    struct symstore_search s = {lines, path, STEPS_MAX};
    return found.data ? found : symstore_find(&s, 0, lines.size, 0);
}
