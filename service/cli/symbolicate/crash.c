/* `symloom symbolicate` of minidumps and Apple's reports. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/by_id/by_id.h"
#include "cli/server.h"
#include "core/duration.h"

static const struct format {
    const char *name;
    answer_print *print; /* NULL: the answer as it is */
    bool crashed_only;   /* unless other threads are asked for */
} formats[] = {
    {"json", NULL, false},
    {"compact", answer_print_compact, true},
    {"pretty", answer_print_pretty, true},
    {"full", answer_print_full, false},
};

struct crash_run {
    const struct options *o;
    const char *path;
    const struct format *format;
    struct sl_mapping mapping;
    struct crash_file file;
    const struct config *config;
    uint64_t timeout_ns;
    struct sl_buf text;
    struct sl_str json; /* what is written of it, or of its lines */
    enum sl_code code;
    struct sl_error error;
    bool timed_out;
};

/* ---- the file ---- */

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

static bool begins(struct sl_bytes bytes, const char *text)
{
    return bytes.size >= strlen(text) && memcmp(bytes.data, text, strlen(text)) == 0;
}

/* False when it is neither. */
static bool crash_kind_of(struct sl_bytes bytes, enum crash_file_kind *kind)
{
    static const char *const beginnings[] = {"Inci", "----", "Proc", "{"};
    bool is_dump = begins(bytes, "MDMP") || begins(bytes, "PMDM"), is_report = false;
    size_t at = begins(bytes, "\xEF\xBB\xBF") ? 3 : 0;
    while (at < bytes.size && strchr(" \t\r\n", bytes.data[at]) && bytes.data[at])
        at++;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        is_report |= begins((struct sl_bytes){bytes.data + at, bytes.size - at}, beginnings[i]);
    *kind = is_dump ? CRASH_FILE_MINIDUMP : CRASH_FILE_APPLE;
    return is_dump || is_report;
}

static int crash_open(struct crash_run *run)
{
    struct sl_error error = {0};
    const char *type = option_value(run->o, "type", NULL);
    enum sl_code code = symbolicate_map_input(run->path, &run->mapping, &error);
    if (code != SL_OK)
        return report_file(run->path, code, &error);
    run->file.bytes = run->mapping.bytes;
    if (type)
        run->file.kind = strcmp(type, "minidump") == 0 ? CRASH_FILE_MINIDUMP : CRASH_FILE_APPLE;
    else if (!crash_kind_of(run->file.bytes, &run->file.kind))
        return report(STATUS_NOTHING, run->path,
                      "neither a minidump nor a report of Apple's; a trace needs its --mapping");
    return 0;
}

/* ---- the work ---- */

static void crash_work_alone(void *arg)
{
    struct crash_run *run = arg;
    run->code = crash_file_symbolicate(&run->file, run->config, &run->text, &run->error);
}

static void crash_work(void *arg)
{
    struct crash_run *run = arg;
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    if (!fiber_start_inner(&group, crash_work_alone, run))
        run->code = sl_fail(&run->error, SL_BUSY, "out of memory");
    fiber_group_deadline(&group, DURATION_MS(run->timeout_ns));
    fiber_group_wait(&group);
    run->timed_out = group.expired;
}

/* The arguments behind the file are symbol paths too. */
static enum sl_code crash_by_id(const struct crash_run *run, struct by_id **by_id, struct sl_error *error)
{
    struct sl_buf path = {0};
    for (size_t i = 1; i < run->o->argument_count; i++) {
        sl_buf_cstr(&path, run->o->arguments[i]);
        sl_buf_u8(&path, ';');
    }
    sl_buf_u8(&path, 0);
    enum sl_code code = path.failed
                            ? sl_fail(error, SL_BUSY, "out of memory")
                            : by_id_open(run->o, (const char *)path.data, server_verbosity(run->o), by_id, error);
    sl_buf_free(&path);
    return code;
}

static int crash_symbolicate(struct crash_run *run)
{
    struct by_id *by_id;
    struct sl_error error = {0};
    if (crash_by_id(run, &by_id, &error) != SL_OK)
        return report(1, error.message, NULL);
    run->config = by_id_settings(by_id);
    run->file.sources = by_id_sources(by_id, &run->file.source_count);
    int status = by_id_run(by_id, crash_work, run, &error) == SL_OK ? 0 : report(1, error.message, NULL);
    by_id_close(by_id);
    return status;
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

/* The answer without its status, in place: `{` takes the place of the last byte that is left out. With --indent in `out`. */
static bool put_json(struct crash_run *run, struct sl_buf *out)
{
    static const struct sl_str status = SL_STR("{\"status\":\"completed\",");
    sl_buf_u8(&run->text, '\n');
    struct sl_str text = sl_buf_view(&run->text);
    size_t begin = sl_str_starts(text, status) ? status.size - 1 : 0;
    if (run->text.failed)
        return false;
    run->text.data[begin] = '{';
    run->json = (struct sl_str){text.data + begin, text.size - begin};
    if (option_given(run->o, "indent")) {
        put_indented((struct sl_str){run->json.data, run->json.size - 1}, out);
        sl_buf_u8(out, '\n');
        run->json = sl_buf_view(out);
    }
    return !out->failed;
}

/* The index of the thread that the options ask for. False: a usage error, which was reported. */
static bool choose_thread(const struct crash_run *run, const struct answer *answer, int64_t *thread)
{
    uint64_t id, index;
    bool by_id = option_given(run->o, "thread"), by_index = option_given(run->o, "thread-index");
    bool all =
        option_given(run->o, "all-threads") || (!run->format->crashed_only && !option_given(run->o, "crashed-only"));
    if (!option_number(run->o, "thread", "symbolicate", &id) ||
        !option_number(run->o, "thread-index", "symbolicate", &index))
        return false;
    *thread = all ? ALL_THREADS : answer_crashed_thread(answer);
    for (size_t t = 0; t < answer->thread_count && (by_id || by_index); t++)
        if (by_id ? answer->threads[t].id.set && answer->threads[t].id.value == id : t == index) {
            *thread = (int64_t)t;
            return true;
        }
    if (by_id || by_index)
        options_wrong("symbolicate", "no such thread");
    return !by_id && !by_index;
}

static int crash_format(const struct crash_run *run, const struct answer *answer, struct sl_buf *out)
{
    struct answer_style style = {.colour = !option_given(run->o, "output") &&
                                           output_colour(option_value(run->o, "color", NULL)),
                                 .unused = option_given(run->o, "verbose"),
                                 .candidates = option_given(run->o, "candidates")};
    if (!option_number(run->o, "context", "symbolicate", &style.context) || !choose_thread(run, answer, &style.thread))
        return 2;
    return !out->failed && run->format->print(answer, &style, out) ? 0 : report(1, "out of memory", NULL);
}

static int crash_write_out(const struct crash_run *run, struct sl_str text)
{
    const char *path = option_value(run->o, "output", "-");
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

static bool is_missing(const struct answer *answer)
{
    for (size_t i = 0; i < answer->module_count; i++)
        if (!sl_str_equal(answer->modules[i].debug_status, SL_STR("found")) &&
            !sl_str_equal(answer->modules[i].debug_status, SL_STR("unused")))
            return true;
    return false;
}

/* What came of it instead of an answer. */
static int crash_tell_failure(const struct crash_run *run, const struct answer *answer, struct sl_arena *arena)
{
    if (!answer || !answer->message.size)
        return report(run->code == SL_MALFORMED ? 2 : 1, run->error.message, NULL);
    const char *message = sl_arena_strndup(arena, answer->message.data, answer->message.size);
    const char *detail = answer->detail.size ? sl_arena_strndup(arena, answer->detail.data, answer->detail.size) : NULL;
    return report(STATUS_NOTHING, message ? message : "out of memory", detail);
}

/* An answer that is written as it is need not be read. */
static int crash_tell(struct crash_run *run)
{
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct answer answer;
    bool checks = option_given(run->o, "fail-on-missing"), reads = run->format->print || checks || run->code != SL_OK;
    int status;
    if (run->timed_out)
        return report(1, "it takes longer than --timeout", NULL);
    bool is_answer = run->text.size && (!reads || answer_read(sl_buf_view(&run->text), &arena, &answer));
    bool missing = is_answer && checks && is_missing(&answer); /* before its text is written */
    if (run->code != SL_OK)
        status = crash_tell_failure(run, is_answer ? &answer : NULL, &arena);
    else if (!is_answer)
        status = report(1, "out of memory", NULL);
    else if (run->format->print)
        status = crash_format(run, &answer, &out);
    else
        status = put_json(run, &out) ? 0 : report(1, "out of memory", NULL);
    if (run->code == SL_OK && !status)
        status = crash_write_out(run, run->format->print ? sl_buf_view(&out) : run->json);
    if (run->code == SL_OK && !status && missing)
        status = STATUS_NOTHING;
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return status;
}

static bool crash_options(struct crash_run *run)
{
    static const char *const threads[] = {"crashed-only", "all-threads", "thread", "thread-index"};
    const char *name = option_value(run->o, "format", isatty(STDOUT_FILENO) ? "compact" : "json");
    const char *timeout = option_value(run->o, "timeout", "15m");
    int chosen = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            run->format = &formats[i];
    if (!run->format) {
        options_wrong("symbolicate", "--format: '%s' is none of: json, compact, pretty, full", name);
        return false;
    }
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        chosen += option_given(run->o, threads[i]);
    if (chosen > 1 || (chosen && !run->format->print)) {
        options_wrong("symbolicate", chosen > 1
                                         ? "only one of --crashed-only, --all-threads, --thread and --thread-index"
                                         : "JSON has all threads");
        return false;
    }
    if (duration_parse(sl_str(timeout), &run->timeout_ns))
        return true;
    options_wrong("symbolicate", "--timeout: '%s' is not a duration", timeout);
    return false;
}

int symbolicate_crash(const struct options *o, const char *path)
{
    struct crash_run run = {.o = o, .path = path};
    run.file.rewrite = option_value(o, "rewrite-first-module", NULL);
    run.file.candidates = option_given(o, "candidates");
    run.file.no_source_context = option_given(o, "no-source-context");
    if (!crash_options(&run))
        return 2;
    int status = crash_open(&run);
    if (!status && !(status = crash_symbolicate(&run)))
        status = crash_tell(&run);
    sl_buf_free(&run.text);
    if (run.mapping.bytes.data)
        sl_unmap(&run.mapping);
    return status;
}
