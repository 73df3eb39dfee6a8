/* Invalidations of other machines. Redis holds a log, a text that is appended to:
 *
 *     <namespace>:invalidate   <writer, 16 hex digits> <nanoseconds since the epoch> <size>\n<size bytes>\n ...
 *
 * of records "source: <id>\nlocation: <uri>\n", or "source_id: <id>\n" for a whole source. For example
 *
 *     0123456789abcdef 1700000000000000000 29\nsource: s\nlocation: http://x\n\n
 *
 * Every machine asks once a second for the part that it has not read, so it also gets invalidations from before a reconnect. */
#include "cache/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/loop.h"
#include "core/log.h"
#include "redis/redis.h"

enum { EVERY_MS = 1000, LOG_MAX = 1 << 20, FILES_MAX = 1000, HEAD_MAX = 80 };

static struct {
    char key[160], writer[17];
    struct shared_backend *redis;
    uint64_t last; /* offset of the last record that was read, and its first line */
    char head[HEAD_MAX];
} invalidations;

/* ---- writing ---- */
/* Appends a record. A log that has become too long is deleted, and begins again with the next record. */
static bool append(struct sl_str record)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("APPEND"), sl_str(invalidations.key), record};
    bool appended = shared_command(words, 3, &answer) == SHARED_HIT && answer.type == REDIS_NUMBER;
    bool full = appended && answer.number > LOG_MAX;
    sl_buf_free(&answer.text);
    if (!full)
        return appended;
    words[0] = SL_STR("DEL");
    shared_command(words, 2, &answer);
    sl_buf_free(&answer.text);
    return true;
}

bool redis_log_publish(const struct cache_file *files, size_t count, int64_t at_ns)
{
    struct sl_buf text = {0}, record = {0};
    if (!invalidations.redis || !breaker_allows(invalidations.redis))
        return false;
    for (size_t i = 0; i < count; i++)
        if (files[i].location.size)
            sl_buf_printf(&text, "source: " SL_STR_FMT "\nlocation: " SL_STR_FMT "\n", SL_STR_ARG(files[i].source),
                          SL_STR_ARG(files[i].location));
        else
            sl_buf_printf(&text, "source_id: " SL_STR_FMT "\n", SL_STR_ARG(files[i].source));
    sl_buf_printf(&record, "%s %" PRId64 " %zu\n", invalidations.writer, at_ns, text.size);
    sl_buf_str(&record, sl_buf_view(&text));
    sl_buf_u8(&record, '\n');
    bool appended = !text.failed && !record.failed && append(sl_buf_view(&record));
    sl_buf_free(&text);
    sl_buf_free(&record);
    return appended;
}

/* ---- reading ---- */
/* Invalidates the files of a record of another machine. */
static void apply_record(struct sl_str text, int64_t at_ns)
{
    struct cache_file *files = calloc(FILES_MAX, sizeof *files);
    size_t count = 0;
    while (files && count < FILES_MAX && cache_key_next(&text, &files[count]))
        count++;
    if (count)
        cache_invalidate_remote(files, count, at_ns);
    free(files);
}

/* Takes the next record and its first line; false if there is none. Records are appended atomically. */
static bool take_record(struct sl_str *log, char head[HEAD_MAX], int64_t *at_ns, struct sl_str *text)
{
    char *at;
    const char *end = log->size ? memchr(log->data, '\n', log->size < HEAD_MAX ? log->size : HEAD_MAX) : NULL;
    size_t head_size = end ? (size_t)(end - log->data) + 1 : 0;
    if (head_size < 20)
        return false;
    memcpy(head, log->data, head_size);
    head[head_size - 1] = '\0';
    *at_ns = strtoll(head + 16, &at, 10);
    uint64_t size = strtoull(at, &at, 10);
    if (*at || size >= log->size - head_size)
        return false;
    *text = (struct sl_str){log->data + head_size, (size_t)size};
    size_t step = head_size + (size_t)size + 1;
    *log = (struct sl_str){log->data + step, log->size - step};
    return true;
}

/* `log` begins at the last record that was read. If that is not there any more, the log was deleted and begun again. */
static void read_log(struct sl_str log)
{
    struct sl_str text, rest = log;
    char head[HEAD_MAX] = "";
    int64_t at_ns;
    if (invalidations.head[0] && (!take_record(&rest, head, &at_ns, &text) || strcmp(head, invalidations.head) != 0)) {
        invalidations.last = 0;
        invalidations.head[0] = '\0';
        return;
    }
    uint64_t base = invalidations.last;
    while (rest.size) {
        uint64_t offset = base + (uint64_t)(rest.data - log.data);
        if (!take_record(&rest, head, &at_ns, &text)) {
            log_debug("shared", "ignoring an unknown entry of the invalidation log in Redis",
                      LOG_U64("bytes", rest.size));
            return;
        }
        invalidations.last = offset;
        memcpy(invalidations.head, head, HEAD_MAX);
        if (strncmp(head, invalidations.writer, 16) != 0)
            apply_record(text, at_ns);
    }
}

/* Reads what was appended, beginning with the last record already read, so that a deleted log is noticed. */
static void listen_fiber(void *arg)
{
    (void)arg;
    do {
        char from[24];
        struct redis_answer answer;
        snprintf(from, sizeof from, "%" PRIu64, invalidations.last);
        struct sl_str words[] = {SL_STR("GETRANGE"), sl_str(invalidations.key), sl_str(from), SL_STR("-1")};
        if (!breaker_allows(invalidations.redis))
            continue;
        uint64_t begin = loop_now_ms();
        enum shared_result result = shared_command(words, 4, &answer);
        if (result == SHARED_HIT && answer.type == REDIS_TEXT)
            read_log(sl_buf_view(&answer.text));
        if (result != SHARED_HIT)
            breaker_note(invalidations.redis, SHARED_LISTEN, "invalidated", begin, result);
        sl_buf_free(&answer.text);
    } while (fiber_sleep(EVERY_MS));
}

void redis_log_init(const char *name, struct shared_backend *redis, struct fiber_group *group)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = clock_mono_ns();
    snprintf(invalidations.key, sizeof invalidations.key, "%s:invalidate", name);
    snprintf(invalidations.writer, sizeof invalidations.writer, "%016" PRIx64, random);
    invalidations.redis = redis;
    invalidations.last = 0;
    invalidations.head[0] = '\0';
    fiber_start(group, listen_fiber, NULL);
}

void redis_log_close(void)
{
    invalidations.redis = NULL;
}
