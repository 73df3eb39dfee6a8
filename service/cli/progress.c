#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/json.h"

enum { PATIENCE_MS = 500, FRAME_MS = 100, PLAIN_MS = 5000, BAR = 20 };

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
}

static void format_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

static unsigned width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void put_line(struct progress *p, const char *item, uint64_t bytes, bool drawn)
{
    char size[32], bar[BAR + 1], line[512];
    size_t filled = p->total ? (size_t)(p->done * BAR / p->total) : 0;
    format_bytes(bytes, size);
    memset(bar, '-', BAR);
    memset(bar, '#', filled > BAR ? BAR : filled);
    bar[BAR] = '\0';
    if (drawn)
        snprintf(line, sizeof line, "%s [%s] %llu/%llu %s  %s", p->verb, bar, (unsigned long long)p->done,
                 (unsigned long long)p->total, size, item);
    else
        snprintf(line, sizeof line, "%s %llu/%llu %s  %s", p->verb, (unsigned long long)p->done,
                 (unsigned long long)p->total, size, item);
    for (char *at = line; *at; at++) /* names come from outside */
        *at = (unsigned char)*at < ' ' || *at == 0x7F ? '?' : *at;
    if (drawn)
        fprintf(stderr, "\r\033[K%.*s", (int)width() - 1, line);
    else
        fprintf(stderr, "%s\n", line);
    p->drawn = drawn;
}

static void put_json(const struct progress *p, const char *item, uint64_t bytes)
{
    struct sl_buf text = {0};
    struct json_writer w = json_writer(&text);
    json_object_begin(&w);
    json_key(&w, "event");
    json_str(&w, SL_STR("progress"));
    json_key(&w, "verb");
    json_str(&w, sl_str(p->verb));
    json_key(&w, "done");
    json_u64(&w, p->done);
    json_key(&w, "total");
    json_u64(&w, p->total);
    json_key(&w, "bytes");
    json_u64(&w, bytes);
    json_key(&w, "item");
    json_str(&w, sl_str(item));
    json_object_end(&w);
    if (!text.failed)
        fprintf(stderr, SL_STR_FMT "\n", SL_STR_ARG(sl_buf_view(&text)));
    sl_buf_free(&text);
}

static void progress_put(struct progress *p, uint64_t now_ms, const char *item, uint64_t bytes)
{
    p->shown_ms = now_ms;
    if (p->mode == PROGRESS_JSON)
        put_json(p, item, bytes);
    else
        put_line(p, item, bytes, p->mode == PROGRESS_LINE);
}

void progress_show(struct progress *p, uint64_t now_ms, const char *item, uint64_t bytes)
{
    bool line = p->mode == PROGRESS_LINE;
    if (!p->began_ms)
        p->began_ms = p->shown_ms = now_ms;
    if (p->mode == PROGRESS_NONE || now_ms - p->began_ms < PATIENCE_MS ||
        now_ms - p->shown_ms < (line ? FRAME_MS : PLAIN_MS))
        return;
    progress_put(p, now_ms, item, bytes);
}

void progress_item(struct progress *p, uint64_t now_ms, const char *item, uint64_t bytes)
{
    p->done++;
    if (p->mode == PROGRESS_PLAIN || p->mode == PROGRESS_JSON)
        progress_put(p, now_ms, item, bytes);
}

void progress_end(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
