/* The log: levels, formats, escaping, rates, the writer thread. */
#include "../check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../json.h"
#include "core/log.h"
#include "core/metrics.h"

static char path[64];
static struct sl_buf content;

static int setup(void **state)
{
    snprintf(path, sizeof path, "/tmp/symloom-unit-log-%d", (int)getpid());
    unlink(path);
    assert_true(log_set_file(path, NULL));
    assert_true(log_set_levels("trace"));
    return 0;
}

static int teardown(void **state)
{
    log_set_file(NULL, NULL);
    unlink(path);
    sl_buf_free(&content);
    return 0;
}

/* Everything written so far; starts the file anew. */
static const char *written(void)
{
    log_flush();
    char piece[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    sl_buf_clear(&content);
    for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;)
        sl_buf_add(&content, piece, (size_t)n);
    close(fd);
    assert_int_equal(truncate(path, 0), 0);
    sl_buf_u8(&content, 0);
    return (const char *)content.data;
}

static size_t lines_in(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

TEST(levels_apply_to_all_or_one_module)
{
    assert_true(log_set_levels("info"));
    assert_true(log_enabled(LOG_INFO, "http"));
    assert_false(log_enabled(LOG_DEBUG, "http"));
    assert_true(log_set_levels("warn,fetch=debug,cache=off"));
    assert_true(log_enabled(LOG_DEBUG, "fetch"));
    assert_false(log_enabled(LOG_TRACE, "fetch"));
    assert_false(log_enabled(LOG_ERROR, "cache"));
    assert_false(log_enabled(LOG_INFO, "http"));
    assert_true(log_set_levels("OFF"));
    assert_false(log_enabled(LOG_ERROR, "http"));
    static const char *const bad[] = {"", "loud", "info,", "info,fetch", "info,=debug", "fetch=loud", ",info"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(log_set_levels(bad[i]));
    assert_false(log_enabled(LOG_ERROR, "http")); /* a bad text changes nothing */
    assert_true(log_set_levels("trace"));
}

static atomic_bool levels_stay;

/* Whatever set is in force: errors of `fetch` are wanted, information of others is not. */
static void *ask_for_levels(void *arg)
{
    size_t *wrong = arg;
    while (!atomic_load(&levels_stay))
        *wrong += !log_enabled(LOG_ERROR, "fetch") + log_enabled(LOG_INFO, "http") + log_enabled(LOG_TRACE, "fetch");
    return NULL;
}

TEST(levels_can_change_while_read)
{
    pthread_t threads[3];
    size_t wrong[3] = {0};
    assert_true(log_set_levels("warn"));
    atomic_store(&levels_stay, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_levels, &wrong[i]), 0);
    for (size_t i = 0; i < 20000; i++)
        assert_true(log_set_levels(i % 2 ? "error,cache=off,fetch=debug" : "warn,fetch=error"));
    atomic_store(&levels_stay, true);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wrong[i], 0);
    assert_true(log_set_levels("trace"));
}

TEST(plain_lines_quote_fields_and_hide_secrets)
{
    log_set_format(LOG_SIMPLIFIED);
    log_info("fetch", "downloaded", LOG_STR("plain", "value"), LOG_STR("blank", "two words"), LOG_U64("n", 7),
             LOG_I64("i", -7), LOG_DOUBLE("d", 1.5), LOG_BOOL("b", true), LOG_STR("empty", ""),
             LOG_URL("url", "https://user:secret@host.example/a/b?token=secret#x"), LOG_URL("bare", "/path?secret"));
    const char *text = written();
    assert_non_null(strstr(text,
                           "Z  INFO fetch: downloaded plain=value blank=\"two words\" n=7 i=-7 d=1.5 b=true empty=\"\" "
                           "url=https://host.example/a/b bare=/path\n"));
    assert_null(strstr(text, "secret"));
    assert_int_equal(strspn(text, "0123456789-T:.Z"), 27);
}

TEST(numbers_are_formatted_as_by_printf)
{
    static const double numbers[] = {0,        1,         1000,     0.5,       0.0001,    0.00012345678,
                                     0.123456, 0.9999994, 9.99999,  9.9999996, 12.34567,  99999.94,
                                     99999.97, 123456.7,  999998.4, 999999.7,  1e6,       1.5e9,
                                     1e-5,     -1.25,     1.0 / 3,  2.0 / 3,   100.0 / 7, 271828.18};
    log_set_format(LOG_SIMPLIFIED);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, " number=%.6g\n", numbers[i]);
        log_write(NULL, LOG_INFO, "fetch", __FILE__, __LINE__, "one",
                  (struct log_field[]){LOG_DOUBLE("number", numbers[i]), {.key = NULL}});
        const char *text = written();
        if (!strstr(text, expected))
            fail_msg("expected%s got %s", expected, text);
    }
}

TEST(json_line_has_its_keys_in_order)
{
    log_set_format(LOG_JSON);
    struct sl_error error = {.message = "it broke"};
    log_warn("api", "said \"no\"", LOG_STR("other", "x"), LOG_ERR(&error), LOG_STR("req", "r1"),
             LOG_U64("duration_ms", 3));
    const char *text = written();
    assert_non_null(strstr(text, "\"level\":\"WARN\",\"target\":\"api\",\"message\":\"said \\\"no\\\"\",\"req\":\"r1\","
                                 "\"duration_ms\":3,\"error\":\"it broke\",\"other\":\"x\"}\n"));
    assert_null(strstr(text, "filename"));
    log_debug("api", "where");
    assert_non_null(strstr(written(), "\"line_number\":"));
}

TEST(control_characters_are_escaped)
{
    static const char evil[] = "a\nb\r\t\033[31m\x7f \xC2\x9B"
                               "31m \xFF caf\xC3\xA9 \"q\" \\";
    log_set_format(LOG_SIMPLIFIED);
    log_info("http", evil, LOG_STR("v", evil));
    const char *text = written();
    assert_int_equal(lines_in(text), 1);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\x7f'));
    assert_null(strstr(text, "\xC2\x9B"));
    assert_non_null(strstr(text, "caf\xC3\xA9"));
    assert_non_null(strstr(text, "\\x1b[31m"));
    assert_non_null(strstr(text, "\\\"q\\\""));
    log_set_format(LOG_JSON);
    log_info("http", evil, LOG_STR("v", evil));
    text = written();
    assert_true(is_json(sl_str(text)));
    assert_int_equal(lines_in(text), 1);
}

TEST(long_json_lines_are_truncated_but_valid)
{
    struct sl_buf value = {0};
    sl_buf_fill(&value, '"', 100000);
    sl_buf_u8(&value, 0);
    log_set_format(LOG_JSON);
    log_info("http", "long", LOG_STR("v", (char *)value.data), LOG_STR("after", "x"));
    const char *text = written();
    assert_true(strlen(text) <= 16 * 1024);
    assert_non_null(strstr(text, "...\"}"));
    assert_true(is_json(sl_str(text)));
    sl_buf_free(&value);
}

TEST(call_site_is_limited_to_ten_lines_a_second)
{
    log_set_format(LOG_SIMPLIFIED);
    struct log_site site = {0};
    static const struct log_field none = {.key = NULL};
    for (int i = 0; i < 1000; i++)
        log_write(&site, LOG_INFO, "http", "f", 1, "again", &none);
    size_t lines = lines_in(written());
    assert_true(lines >= 10 && lines <= 22); /* a second may begin while the loop runs */
    site.second -= 5;
    site.suppressed = 990;
    log_write(&site, LOG_INFO, "http", "f", 1, "again", &none);
    assert_non_null(strstr(written(), "990 similar messages suppressed\n"));
    for (int i = 0; i < 100; i++)
        log_write(NULL, LOG_INFO, "http", "f", 1, "again", &none);
    assert_int_equal(lines_in(written()), 100);
}

static void *chatter(void *arg)
{
    static const struct log_field none = {.key = NULL};
    for (int i = 0; i < 2000; i++)
        log_write(NULL, LOG_INFO, "pool", "f", 1, arg, &none);
    return NULL;
}

TEST(writer_thread_keeps_lines_whole)
{
    pthread_t threads[3];
    log_set_format(LOG_SIMPLIFIED);
    log_start();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, chatter, (void *)"thread says something of some length");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    const char *text = written();
    size_t count = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1)
        count += strstr(at, "INFO pool: thread says something of some length\n") == at + 29;
    assert_int_equal(count, 6000);
    log_reopen();
    log_info("http", "after reopening");
    assert_non_null(strstr(written(), "after reopening\n"));
    log_stop();
    log_info("http", "after the end");
    assert_non_null(strstr(written(), "after the end\n"));
}

TEST(full_ring_drops_and_counts_lines)
{
    int ends[2];
    char fifo[80];
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    ends[0] = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* nobody reads for now */
    assert_true(log_set_file(fifo, NULL));
    log_start();
    struct sl_buf value = {0};
    sl_buf_fill(&value, 'x', 8000);
    static const struct log_field none = {.key = NULL};
    sl_buf_u8(&value, 0);
    for (int i = 0; i < 400; i++) /* 3 MB: more than ring and pipe hold; this must not block */
        log_write(NULL, LOG_INFO, "http", "f", 1, (char *)value.data, &none);
    struct sl_buf seen = {0};
    char piece[65536];
    for (int quiet = 0; quiet < 200;) {
        ssize_t n = read(ends[0], piece, sizeof piece);
        if (n > 0)
            sl_buf_add(&seen, piece, (size_t)n);
        quiet = n > 0 ? 0 : quiet + 1;
        if (n <= 0)
            usleep(1000);
    }
    assert_non_null(memmem(seen.data, seen.size, "log lines dropped\n", 18));
    close(ends[0]);
    log_set_file(path, NULL);
    log_stop();
    unlink(fifo);
    sl_buf_free(&seen);
    sl_buf_free(&value);
}

/* The counter of dropped lines. */
static unsigned long dropped(const char *metrics)
{
    const char *line = strstr(metrics, "\nsymloom_log_dropped_total ");
    return line ? strtoul(line + 27, NULL, 10) : 0;
}

TEST(lines_lost_to_a_full_disk_are_counted)
{
    struct sl_buf numbers = {0};
    assert_true(log_set_file("/dev/full", NULL));
    log_start();
    static const struct log_field none = {.key = NULL};
    metrics_write(&numbers, false);
    sl_buf_u8(&numbers, 0);
    unsigned long before = dropped((char *)numbers.data);
    for (int i = 0; i < 5; i++)
        log_write(NULL, LOG_INFO, "http", "f", 1, "lost", &none);
    log_stop();
    sl_buf_clear(&numbers);
    metrics_write(&numbers, false);
    sl_buf_u8(&numbers, 0);
    assert_int_equal(dropped((char *)numbers.data) - before, 5);
    assert_true(log_set_file(path, NULL));
    sl_buf_free(&numbers);
}

TEST(unread_pipe_does_not_block_shutdown)
{
    int ends[2];
    char fifo[80], piece[65536];
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    ends[0] = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ends[1] = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    memset(piece, 'x', sizeof piece);
    while (write(ends[1], piece, sizeof piece) > 0)
        ;
    assert_true(log_set_file(fifo, NULL));
    log_start();
    log_info("http", "never read");
    log_stop();
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]); /* the writer gets EPIPE */
    log_stop();
    close(ends[1]);
    assert_true(log_set_file(path, NULL));
    unlink(fifo);
}

TEST_FILE(.begin = setup, .end = teardown);
