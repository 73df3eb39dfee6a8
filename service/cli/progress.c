/* The progress line on stderr, and the thread that redraws it. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json_write.h"
#include "cli/cli.h"
#include "core/loop.h"

/* PATIENCE_MS: work that ends earlier shows no progress. FRAME_MS: pause between two redraws of the line on a terminal; PLAIN_MS: between
 * two printed lines. BAR: width of the bar. */
enum { PATIENCE_MS = 500, FRAME_MS = 100, PLAIN_MS = 5000, BAR = 20 };

/* Protects every struct progress and `shown`, and is held while progress is written to stderr. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct progress *shown; /* the display that was drawn or printed last and has not ended; NULL: none */

void progress_begin(struct progress *p, const struct options *o, const char *verb)
{
    static const struct {
        const char *word;
        enum progress_mode mode;
    } words[] = {{"plain", PROGRESS_PLAIN}, {"json", PROGRESS_JSON}, {"none", PROGRESS_NONE}};
    const char *word = option_value(o, "progress", "auto");
    *p = (struct progress){.mode = isatty(STDERR_FILENO) ? PROGRESS_LINE : PROGRESS_NONE, .verb = verb};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0)
            p->mode = words[i].mode;
    if (option_given(o, "quiet"))
        p->mode = PROGRESS_NONE;
    p->began_ms = p->shown_ms = clock_mono_ns() / 1000000;
}

/* ---- the line ---- */

/* Formats a size with a unit: "512 B", "1.5 MiB". */
static void format_bytes(uint64_t bytes, char out[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    snprintf(out, 24, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

static unsigned width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* Writes the progress to stderr: with `drawn` redraws the line on the terminal, else prints a line. Without a known number of items the
 * line has neither bar nor counts; if the number of bytes is unknown too, it has no size either. */
static void put_line(struct progress *p, const char *item, uint64_t bytes, bool drawn)
{
    char size[32] = " ", bar[64] = "", count[48] = "", line[512]; /* `size` begins with the blank that separates it */
    if (p->total || bytes)
        format_bytes(bytes, size + 1);
    if (p->total) {
        size_t filled = (size_t)(p->done * BAR / p->total);
        snprintf(count, sizeof count, " %llu/%llu", (unsigned long long)p->done, (unsigned long long)p->total);
        if (drawn)
            snprintf(bar, sizeof bar, " [%.*s%.*s]", (int)(filled < BAR ? filled : BAR), "####################",
                     (int)(filled < BAR ? BAR - filled : 0), "--------------------");
    }
    snprintf(line, sizeof line, "%s%s%s%s  %s", p->verb, bar, count, size[1] ? size : "", item);
    for (char *at = line; *at; at++) /* names may contain control characters */
        *at = (unsigned char)*at < ' ' || *at == 0x7F ? '?' : *at;
    p->drawn = drawn;
    output_line_drawn(drawn); /* first, because a signal may arrive during the write */
    if (drawn)
        fprintf(stderr, "\r\033[K%.*s", (int)width() - 1, line);
    else
        fprintf(stderr, "%s\n", line);
}

/* Prints the progress to stderr as a JSON object on one line; nothing when out of memory. */
static void put_json(const struct progress *p, const char *item, uint64_t bytes)
{
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "event", SL_STR("progress"));
    sl_json_member_str(&w, "verb", sl_str(p->verb));
    sl_json_member_u64(&w, "done", p->done);
    sl_json_member_u64(&w, "total", p->total);
    sl_json_member_u64(&w, "bytes", bytes);
    sl_json_member_str(&w, "item", sl_str(item));
    sl_json_end_object(&w);
    if (!text.failed)
        fprintf(stderr, SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&text)));
    sl_buf_free(&text);
}

/* Shows the progress at once, as --progress wants it: drawn, plain or JSON. Called with the lock held. */
static void progress_put(struct progress *p, const char *item, uint64_t bytes)
{
    shown = p;
    p->shown_ms = clock_mono_ns() / 1000000;
    if (p->mode == PROGRESS_JSON)
        put_json(p, item, bytes);
    else
        put_line(p, item, bytes, p->mode == PROGRESS_LINE);
}

/* Shows the progress if it is time for it: PATIENCE_MS after the start, and FRAME_MS or PLAIN_MS after the last time. Called with the lock
 * held. */
static void show(struct progress *p, const char *item, uint64_t bytes)
{
    uint64_t now_ms = clock_mono_ns() / 1000000;
    uint64_t pause_ms = p->mode == PROGRESS_LINE ? FRAME_MS : PLAIN_MS;
    if (p->mode != PROGRESS_NONE && now_ms - p->began_ms >= PATIENCE_MS && now_ms - p->shown_ms >= pause_ms)
        progress_put(p, item, bytes);
}

/* Counts an item as done. Plain and JSON progress print a line for each. Called with the lock held. */
static void finish_item(struct progress *p, const char *item, uint64_t bytes)
{
    p->done++;
    if (p->mode == PROGRESS_PLAIN || p->mode == PROGRESS_JSON)
        progress_put(p, item, bytes);
}

/* Ends the item that the thread shows; counts it as done if it is one of the `total` items. Called with the lock held. */
static void finish_file(struct progress *p)
{
    if (p->item[0] && p->counts)
        finish_item(p, p->item, p->bytes);
    p->item[0] = '\0';
}

/* Erases the line if it is on the terminal. Called with the lock held. */
static void erase(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
    output_line_drawn(false);
}

void progress_show(struct progress *p, const char *item, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    show(p, item, bytes);
    pthread_mutex_unlock(&lock);
}

void progress_item(struct progress *p, const char *item, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    finish_item(p, item, bytes);
    pthread_mutex_unlock(&lock);
}

void progress_clear_line(void)
{
    pthread_mutex_lock(&lock);
    if (shown)
        erase(shown);
    pthread_mutex_unlock(&lock);
}

/* ---- work without callbacks ---- */

/* Runs as a thread until p->ends is set: every FRAME_MS shows the progress of work that does not call back. */
static void *watch(void *arg)
{
    struct progress *p = arg;
    pthread_mutex_lock(&lock);
    while (!p->ends) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += FRAME_MS * 1000000L;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&p->change, &lock, &next);
        if (!p->ends && p->item[0])
            show(p, p->item, p->bytes);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Starts the thread that shows the progress. If that fails, no progress is shown. Called with the lock held. */
static void start_thread(struct progress *p)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->ends = false;
    p->watching = pthread_create(&p->thread, NULL, watch, p) == 0;
}

void progress_expect(struct progress *p, uint64_t files)
{
    pthread_mutex_lock(&lock);
    p->total += files;
    pthread_mutex_unlock(&lock);
}

/* Sets the item that is shown as being worked on. `counts`: it is one of the `total` items, to be counted when it is finished. Starts the
 * thread that shows progress, if it does not run. Called with the lock held. */
static void work_on(struct progress *p, struct sl_str item, uint64_t bytes, bool counts)
{
    p->counts = counts;
    snprintf(p->item, sizeof p->item, SL_STR_FMT, SL_STR_ARG(item));
    p->bytes = bytes;
    if (!p->watching)
        start_thread(p);
}

void progress_set_item(struct progress *p, const char *item, uint64_t bytes)
{
    if (p->mode == PROGRESS_NONE)
        return;
    struct sl_str name = strstr(item, "://") ? sl_str(item) : path_file_name(sl_str(item));
    pthread_mutex_lock(&lock);
    work_on(p, name.size ? name : sl_str(item), bytes, false);
    pthread_mutex_unlock(&lock);
}

void progress_file(struct progress *p, const char *path)
{
    struct stat st;
    if (p->mode == PROGRESS_NONE)
        return;
    uint64_t bytes = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    struct sl_str name = path_file_name(sl_str(path));
    pthread_mutex_lock(&lock);
    finish_file(p);
    p->total = p->done >= p->total ? p->done + 1 : p->total; /* more files than progress_expect announced */
    work_on(p, name.size ? name : sl_str(path), bytes, true);
    pthread_mutex_unlock(&lock);
}

void progress_end(struct progress *p)
{
    pthread_mutex_lock(&lock);
    bool watching = p->watching;
    p->ends = true;
    p->watching = false;
    if (watching)
        pthread_cond_signal(&p->change);
    erase(p);
    shown = shown == p ? NULL : shown;
    pthread_mutex_unlock(&lock); /* the thread needs the lock to end */
    if (watching)
        pthread_join(p->thread, NULL);
}

void progress_finish(struct progress *p)
{
    pthread_mutex_lock(&lock);
    finish_file(p);
    pthread_mutex_unlock(&lock);
    progress_end(p);
}
