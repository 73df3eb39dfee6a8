/* Exchanges invalidations of cache entries with other machines. Redis holds a log of them, a text to which every machine appends:
 *
 *     <namespace>:invalidate   <writer, 16 hex digits> <nanoseconds since the epoch> <size>\n<size bytes>\n ...
 *
 * of records "source: <id>\nlocation: <uri>\n", or "source_id: <id>\n" for a whole source. For example
 *
 *     0123456789abcdef 1700000000000000000 29\nsource: s\nlocation: http://x\n\n
 *
 * Every machine asks once a second for the part that it has not read, so that it also gets invalidations from while it was not connected.
 * A log longer than LOG_MAX is renamed to <namespace>:invalidate:previous, where machines read what they have not read yet, and the
 * next record begins a new log. */
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
    char key[160], previous[176], writer[17];
    struct shared_backend *redis;
    bool has_read_previous; /* false: the log that was renamed is to be read to its end, before the present one */
    uint64_t last;          /* offset of the last record that was read */
    char head[HEAD_MAX];    /* first line of the record at `last`; empty: none was read of this log */
} invalidations;

/* ---- writing ---- */
/* Appends a record to the log; false if that fails. Renames the log if this record has taken its size across a multiple of LOG_MAX: only
 * one of the machines that append sees that, so no other one renames the log. */
static bool append(struct sl_str record)
{
    struct redis_answer answer;
    struct sl_str words[] = {SL_STR("APPEND"), sl_str(invalidations.key), record};
    bool appended = shared_command(words, 3, &answer) == SHARED_HIT && answer.type == REDIS_NUMBER;
    uint64_t size = appended && answer.number > 0 ? (uint64_t)answer.number : 0;
    bool is_full = size >= record.size && size / LOG_MAX != (size - record.size) / LOG_MAX;
    sl_buf_free(&answer.text);
    if (!is_full)
        return appended;
    words[0] = SL_STR("RENAME"); /* if it fails, the log grows until it passes the next multiple */
    words[2] = sl_str(invalidations.previous);
    shared_command(words, 3, &answer);
    sl_buf_free(&answer.text);
    return true;
}

/* Appends a record of the invalidated files to the log, for other machines. False if it was not appended: Redis is not used, paused or
 * failed, or memory is short. */
bool redis_log_publish(const struct cache_file *files, size_t count, int64_t at_ns)
{
    struct sl_buf text = {0}, record = {0};
    if (!invalidations.redis || !breaker_allows(invalidations.redis))
        return false;
    for (size_t i = 0; i < count; i++)
        if (files[i].location.size)
            sl_buf_printf(&text, "source: " SL_STR_FMT "\nlocation: " SL_STR_FMT "\n", SL_STR_ARG(files[i].source),
                          SL_STR_ARG(files[i].location));
        else /* without a location: all files of the source */
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
/* Invalidates the files that a record of another machine names, at most FILES_MAX of them. */
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

/* Takes the next record from the front of `log`: `head` gets its first line, "<writer> <time> <size>", without the line end, `text` the
 * lines that name files. False if it is malformed. Records are appended atomically, so none is incomplete. */
static bool take_record(struct sl_str *log, char head[HEAD_MAX], int64_t *at_ns, struct sl_str *text)
{
    char *at;
    const char *end = log->size ? memchr(log->data, '\n', log->size < HEAD_MAX ? log->size : HEAD_MAX) : NULL;
    size_t head_size = end ? (size_t)(end - log->data) + 1 : 0;
    /* the shortest first line: 16 digits of the writer, a time, a size, two blanks and the line end */
    if (head_size < 20)
        return false;
    memcpy(head, log->data, head_size);
    head[head_size - 1] = '\0';
    *at_ns = strtoll(head + 16, &at, 10); /* behind the 16 digits of the writer */
    uint64_t size = strtoull(at, &at, 10);
    if (*at || size >= log->size - head_size) /* a line end follows the text */
        return false;
    *text = (struct sl_str){log->data + head_size, (size_t)size};
    size_t step = head_size + (size_t)size + 1;
    *log = (struct sl_str){log->data + step, log->size - step};
    return true;
}

/* Applies the records in `log`, except those that this machine has written, and notes the last one. `base`: offset of `log` in the log of
 * Redis. A malformed record ends it. */
static void apply_records(struct sl_str log, uint64_t base)
{
    struct sl_str text, rest = log;
    char head[HEAD_MAX];
    int64_t at_ns;
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

/* Applies what follows the last record that was read. `log` is the text from that record on; if it begins with another record, returns
 * false and applies nothing: a new log was begun. If no record of this log was read yet, applies all. */
static bool continue_log(struct sl_str log)
{
    struct sl_str text, rest = log;
    char head[HEAD_MAX];
    int64_t at_ns;
    if (invalidations.head[0]) {
        if (!take_record(&rest, head, &at_ns, &text) || strcmp(head, invalidations.head) != 0)
            return false;
    }
    apply_records(rest, invalidations.last + (uint64_t)(rest.data - log.data));
    return true;
}

/* Reads the log `key` (the present or the previous one) from the offset of the last record that was read. SHARED_HIT: `answer` has the
 * text, which the caller frees; an answer that is no text, such as an error, counts as an empty log. */
static enum shared_result read_from_last(const char *key, struct redis_answer *answer)
{
    char from[24];
    snprintf(from, sizeof from, "%" PRIu64, invalidations.last);
    struct sl_str words[] = {SL_STR("GETRANGE"), sl_str(key), sl_str(from), SL_STR("-1")};
    enum shared_result result = shared_command(words, 4, answer);
    if (result == SHARED_HIT && answer->type != REDIS_TEXT)
        sl_buf_clear(&answer->text);
    return result;
}

/* Reads and applies what was appended to the log since the last call. If the log was renamed meanwhile, reads the rest of it under its new
 * name; the next call then reads the new log from its beginning. Returns the result of the last command. */
static enum shared_result read_log(void)
{
    struct redis_answer answer;
    if (invalidations.has_read_previous) {
        enum shared_result result = read_from_last(invalidations.key, &answer);
        bool is_new = result == SHARED_HIT && !continue_log(sl_buf_view(&answer.text));
        sl_buf_free(&answer.text);
        if (!is_new)
            return result;
    } /* else first the previous log, as at the start */
    enum shared_result result = read_from_last(invalidations.previous, &answer);
    if (result == SHARED_HIT) {
        continue_log(sl_buf_view(&answer.text));
        invalidations.has_read_previous = true;
        invalidations.last = 0;
        invalidations.head[0] = '\0';
    }
    sl_buf_free(&answer.text);
    return result;
}

/* Runs as a fiber until it is cancelled: reads the log of invalidations every EVERY_MS, unless Redis is paused. Only failures are counted
 * in the metrics of operations, as most reads find nothing. */
static void listen_fiber(void *arg)
{
    (void)arg;
    do {
        if (!breaker_allows(invalidations.redis))
            continue; /* with the sleep */
        uint64_t begin = loop_now_ms();
        enum shared_result result = read_log();
        if (result != SHARED_HIT)
            breaker_note(invalidations.redis, SHARED_LISTEN, "invalidated", begin, result);
    } while (fiber_sleep(EVERY_MS));
}

/* Starts the fiber that reads invalidations of other machines. `name`: the configured namespace. The random number of this process as a
 * writer tells its own records from others'; it need not be secret, so the clock is used if the system has no random bytes. */
void redis_log_init(const char *name, struct shared_backend *redis, struct fiber_group *group)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = clock_mono_ns();
    snprintf(invalidations.key, sizeof invalidations.key, "%s:invalidate", name);
    snprintf(invalidations.previous, sizeof invalidations.previous, "%s:previous", invalidations.key);
    snprintf(invalidations.writer, sizeof invalidations.writer, "%016" PRIx64, random);
    invalidations.redis = redis;
    invalidations.has_read_previous = false;
    invalidations.last = 0;
    invalidations.head[0] = '\0';
    fiber_start(group, listen_fiber, NULL);
}

void redis_log_close(void)
{
    invalidations.redis = NULL;
}
