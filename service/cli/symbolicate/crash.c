/* `symloom symbolicate` of minidumps and Apple's reports. */
#include "cli/symbolicate/symbolicate.h"

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
    const struct format *format;
    struct crash_file file;
    const struct config *config;
    uint64_t timeout_ns;
    struct sl_buf text;
    struct sl_str json; /* what is written of it, or of its lines */
    enum sl_code code;
    struct sl_error error;
    bool timed_out;
};

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

static int crash_symbolicate(struct crash_run *run)
{
    struct by_id *by_id;
    struct sl_error error = {0};
    if (symbolicate_by_id(run->o, &by_id, &error) != SL_OK)
        return report(1, error.message, NULL);
    run->config = by_id_settings(by_id);
    run->file.sources = by_id_sources(by_id, &run->file.source_count);
    int status = by_id_run(by_id, crash_work, run, &error) == SL_OK ? 0 : report(1, error.message, NULL);
    by_id_close(by_id);
    return status;
}

/* ---- what is told ---- */

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
        status = put_answer_json(&run->text, option_given(run->o, "indent"), &out, &run->json)
                     ? 0
                     : report(1, "out of memory", NULL);
    if (run->code == SL_OK && !status)
        status = symbolicate_write(run->o, run->format->print ? sl_buf_view(&out) : run->json);
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

int symbolicate_crash(const struct options *o, enum crash_file_kind kind, struct sl_bytes bytes)
{
    struct crash_run run = {.o = o, .file = {.kind = kind, .bytes = bytes}};
    run.file.rewrite = option_value(o, "rewrite-first-module", NULL);
    run.file.candidates = option_given(o, "candidates");
    run.file.no_source_context = option_given(o, "no-source-context");
    if (!crash_options(&run))
        return 2;
    int status = crash_symbolicate(&run);
    if (!status)
        status = crash_tell(&run);
    sl_buf_free(&run.text);
    return status;
}
