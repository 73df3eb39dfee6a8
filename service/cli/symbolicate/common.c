/* What the kinds of `symloom symbolicate` share: the input, where files are, and how answers are written out. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/by_id/by_id.h"
#include "cli/server.h"
#include "cli/symbolicate/sentry.h"
#include "core/duration.h"

/* ---- the input ---- */

/* Standard input, in a file of its own. */
static enum sl_code map_standard_input(struct sl_mapping *mapping, struct sl_error *error)
{
    static char block[64 * 1024];
    ssize_t n = 1;
    int fd = temporary_file();
    if (fd < 0)
        return sl_fail_errno(error, errno, "no temporary file");
    while (n > 0 || (n < 0 && errno == EINTR)) {
        n = read(STDIN_FILENO, block, sizeof block);
        if (n > 0 && !sl_write_all(fd, (struct sl_bytes){(const uint8_t *)block, (size_t)n}))
            break;
    }
    enum sl_code code = n ? sl_fail_errno(error, errno, "cannot read standard input") : sl_map_fd(fd, mapping, error);
    close(fd);
    return code == SL_OK ? map_unpacked(mapping, error) : code;
}

enum sl_code symbolicate_map_input(const char *path, struct sl_mapping *mapping, struct sl_error *error)
{
    return strcmp(path, "-") == 0 ? map_standard_input(mapping, error) : map_file(path, mapping, error);
}

/* ---- where files are ---- */

enum sl_code symbolicate_by_id(const struct options *o, const struct sentry_project *project, struct by_id **by_id,
                               struct sl_error *error)
{
    struct sl_buf path = {0};
    for (size_t i = 1; i < o->argument_count; i++) {
        sl_buf_cstr(&path, o->arguments[i]);
        sl_buf_u8(&path, ';');
    }
    sl_buf_u8(&path, 0);
    enum sl_code code = path.failed ? sl_fail(error, SL_BUSY, "out of memory")
                                    : by_id_open(o, (const char *)path.data, server_verbosity(o), by_id, error);
    sl_buf_free(&path);
    if (code == SL_OK && project->online && !by_id_add_source(*by_id, &project->debug_files)) {
        by_id_close(*by_id);
        code = sl_fail(error, SL_BUSY, "out of memory");
    }
    return code;
}

/* ---- the work ---- */

struct timed {
    void (*work)(void *arg);
    void *arg;
    uint64_t timeout_ns;
    bool began, timed_out;
};

static void run_timed(void *arg)
{
    struct timed *timed = arg;
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    timed->began = fiber_start_inner(&group, timed->work, timed->arg);
    fiber_group_deadline(&group, DURATION_MS(timed->timeout_ns));
    fiber_group_wait(&group);
    timed->timed_out = group.expired;
}

int symbolicate_in_time(const struct options *o, struct by_id *by_id, void (*work)(void *arg), void *arg)
{
    struct timed timed = {.work = work, .arg = arg};
    const char *timeout = option_value(o, "timeout", "15m");
    struct sl_error error = {0};
    if (!duration_parse(sl_str(timeout), &timed.timeout_ns))
        return options_wrong("symbolicate", "--timeout: '%s' is not a duration", timeout);
    if (by_id_run(by_id, run_timed, &timed, &error) != SL_OK)
        return report(1, error.message, NULL);
    if (timed.timed_out)
        return report(1, "it takes longer than --timeout", NULL);
    return timed.began ? 0 : report(1, "out of memory", NULL);
}

/* ---- what is told ---- */

static void put_line(struct sl_buf *out, unsigned depth)
{
    sl_buf_u8(out, '\n');
    sl_buf_fill(out, ' ', 2 * (size_t)depth);
}

/* Compact JSON, a line for each value. */
static void put_indented(struct sl_str json, struct sl_buf *out)
{
    unsigned depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < json.size; i++) {
        char c = json.data[i];
        bool opens = !in_text && (c == '{' || c == '['), closes = !in_text && (c == '}' || c == ']');
        bool is_empty = i && closes && (json.data[i - 1] == '{' || json.data[i - 1] == '[');
        depth -= closes;
        if (closes && !is_empty)
            put_line(out, depth);
        sl_buf_u8(out, (uint8_t)c);
        in_text ^= c == '"';
        if (in_text && c == '\\' && i + 1 < json.size)
            sl_buf_u8(out, (uint8_t)json.data[++i]);
        if (!in_text && c == ':')
            sl_buf_u8(out, ' ');
        depth += opens;
        if ((opens && i + 1 < json.size && json.data[i + 1] != '}' && json.data[i + 1] != ']') ||
            (!in_text && c == ','))
            put_line(out, depth);
    }
}

bool put_answer_json(struct sl_buf *answer, bool indent, struct sl_buf *out, struct sl_str *json)
{
    static const struct sl_str status = SL_STR("{\"status\":\"completed\",");
    sl_buf_u8(answer, '\n');
    struct sl_str text = sl_buf_view(answer);
    size_t begin = sl_str_starts(text, status) ? status.size - 1 : 0;
    if (answer->failed)
        return false;
    answer->data[begin] = '{';
    *json = (struct sl_str){text.data + begin, text.size - begin};
    if (indent) {
        put_indented((struct sl_str){json->data, json->size - 1}, out);
        sl_buf_u8(out, '\n');
        *json = sl_buf_view(out);
    }
    return !out->failed;
}

int symbolicate_write(const struct options *o, struct sl_str text)
{
    const char *path = option_value(o, "output", "-");
    struct sl_error error = {0};
    struct output_file file;
    if (strcmp(path, "-") == 0) {
        output_write(text);
        return 0; /* output_finish tells */
    }
    if (output_file_open(&file, path, &error) == SL_OK) {
        output_file_write(&file, text);
        output_file_close(&file, true, &error);
    }
    return error.code == SL_OK ? 0 : report(1, path, error.message);
}
