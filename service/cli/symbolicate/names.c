#include "cli/symbolicate/names.h"

#include "cli/by_id/by_id.h"
#include "cli/symbolicate/remote.h"
#include "cli/symbolicate/symbolicate.h"

enum { BATCH = 20000 }; /* addresses of one request */

/* ---- requests ---- */

void names_put_text(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (!text.size)
        return;
    sl_json_member_str(w, key, text);
}

static size_t batch_size(const struct names_wanted *n)
{
    size_t left = n->address_count - n->done;
    return left < BATCH ? left : BATCH;
}

static void names_put_address(const struct names_wanted *n, size_t index, struct sl_json_writer *w)
{
    uint32_t module;
    uint64_t relative;
    n->address(n->arg, index, &module, &relative);
    sl_json_begin_object(w);
    sl_json_member_hex(w, "instruction_addr", relative);
    if (module != NAMES_ABSOLUTE) {
        sl_json_put_key(w, "addr_mode");
        sl_buf_printf(w->out, "\"rel:%u\"", module);
        w->comma = true;
    }
    sl_json_member_boolean(w, "adjust_instruction_addr", false);
    sl_json_end_object(w);
}

static void put_batch(const struct names_wanted *n, struct sl_buf *body)
{
    struct sl_json_writer w = sl_json_writer(body);
    sl_buf_clear(body);
    sl_json_begin_object(&w);
    sl_json_member_raw(&w, "options", SL_STR("{\"apply_source_context\":false}"));
    sl_json_member_array(&w, "modules");
    for (size_t i = 0; i < n->module_count; i++)
        n->put_module(n->arg, i, &w);
    sl_json_end_array(&w);
    sl_json_member_raw(&w, "stacktraces", SL_STR("[{\"frames\":["));
    w.comma = false;
    for (size_t i = 0; i < batch_size(n); i++)
        names_put_address(n, n->done + i, &w);
    sl_buf_str(body, SL_STR("]}]"));
    sl_json_end_object(&w);
}

/* ---- answers ---- */

static bool have_names(const struct answer_frame *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!calls[i].function.size && !calls[i].symbol.size)
            return false;
    return true;
}

/* Frames of the same index are the calls at one address. */
static bool take_thread(struct names_wanted *n, const struct answer_thread *thread)
{
    for (size_t i = 0, end = 0; i < thread->frame_count; i = end) {
        const struct answer_frame *calls = &thread->frames[i];
        while (end < thread->frame_count && thread->frames[end].index.value == calls->index.value)
            end++;
        if (calls->index.value < batch_size(n) && have_names(calls, end - i) &&
            !n->take(n->arg, n->done + (size_t)calls->index.value, calls, end - i))
            return false;
    }
    return true;
}

static bool names_take_answer(struct names_wanted *n, const struct sl_buf *text)
{
    struct sl_arena arena = {0};
    struct answer answer;
    bool good = answer_read(sl_buf_view(text), &arena, &answer);
    for (size_t t = 0; good && t < answer.thread_count; t++)
        good = take_thread(n, &answer.threads[t]);
    if (good && n->missing)
        answer_describe_missing(&answer, n->missing);
    sl_arena_free(&arena);
    return good;
}

/* ---- the work ---- */

enum sl_code names_look_up(struct names_wanted *n, const struct source *sources, size_t source_count,
                           const struct config *config, struct sl_error *error)
{
    struct sl_buf body = {0}, answer = {0};
    enum sl_code code = SL_OK;
    for (; code == SL_OK && n->done < n->address_count; n->done += batch_size(n)) {
        put_batch(n, &body);
        sl_buf_clear(&answer);
        const struct local_request request = {.kind = LOCAL_NATIVE,
                                              .body = sl_buf_view(&body),
                                              .scope = n->scope,
                                              .sources = sources,
                                              .source_count = source_count,
                                              .no_source_context = true,
                                              .line_starts = n->line_starts};
        code = body.failed ? sl_fail(error, SL_BUSY, "out of memory")
                           : local_request_symbolicate(&request, config, &answer, error);
        if (code == SL_OK && !names_take_answer(n, &answer))
            code = sl_fail(error, SL_BUSY, "out of memory");
    }
    sl_buf_free(&body);
    sl_buf_free(&answer);
    return code;
}

static int names_ask_server(struct names_wanted *n)
{
    struct sl_buf body = {0}, answer = {0};
    int status = 0;
    for (; !status && n->done < n->address_count; n->done += batch_size(n)) {
        put_batch(n, &body);
        sl_buf_clear(&answer);
        status = body.failed ? report_no_memory()
                             : remote_symbolicate(n->o, "/symbolicate", sl_buf_view(&body), NULL, 0, &answer);
        if (!status && !names_take_answer(n, &answer))
            status = report_no_memory();
    }
    sl_buf_free(&body);
    sl_buf_free(&answer);
    return status;
}

struct names_here { /* asked by this process */
    struct names_wanted *wanted;
    struct search_place place;
    enum sl_code code;
    struct sl_error error;
};

static void names_work(void *arg)
{
    struct names_here *here = arg;
    here->wanted->scope = here->place.scope;
    here->code =
        names_look_up(here->wanted, here->place.sources, here->place.source_count, here->place.config, &here->error);
}

int names_symbolicate(struct names_wanted *n, const struct sentry_project *project, struct local_files *local)
{
    struct names_here here = {.wanted = n};
    if (option_given(n->o, "server"))
        return names_ask_server(n);
    int status = symbolicate_here(n->o, project, local, n->missing, &here.place, names_work, &here);
    return status || here.code == SL_OK ? status : report(1, here.error.message, NULL);
}
