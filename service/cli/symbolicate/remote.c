#include "cli/symbolicate/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/json_fields.h"
#include "cli/by_id/by_id.h"
#include "cli/server.h"
#include "fetch/fetch.h"

static const char boundary[] = "symloom-form-5b2c9d1e7f";

enum { WAIT_S = 30 }; /* of one question */

struct remote_run {
    const char *url; /* without a slash at its end */
    size_t url_size;
    const char *path, *scope;
    struct sl_buf body, *answer;
    bool is_form;
    struct sl_arena arena;
    struct sl_error error;
    enum sl_code code;
};

static void put_part(struct sl_buf *out, const struct remote_part *part)
{
    sl_buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n\r\n", boundary,
                  part->name, part->name);
    sl_buf_add(out, part->bytes.data, part->bytes.size);
    sl_buf_cstr(out, "\r\n");
}

static enum sl_code remote_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)arg;
    enum sl_code code = status == 401 || status == 403 ? SL_PERMISSION_DENIED
                        : status >= 500                ? SL_DOWNLOAD_ERROR
                                                       : SL_NOT_FOUND;
    int size = body.size < 200 ? (int)body.size : 200;
    return sl_fail(error, code, "the service answers %d: %.*s", status, size, body.data ? body.data : "");
}

static bool remote_ask(struct remote_run *run, const char *url, bool is_post)
{
    char type[80];
    snprintf(type, sizeof type, run->is_form ? "multipart/form-data; boundary=%s" : "application/json", boundary);
    struct fetch_header header = {SL_STR("Content-Type"), secret_of(sl_str(type))};
    struct fetch_request request = {.url = url,
                                    .headers = is_post ? &header : NULL,
                                    .header_count = is_post,
                                    .trusted = true,
                                    .source = "server",
                                    .max_size = UINT64_C(1) << 32,
                                    .attempts = 1,
                                    .keep_wrapper = true,
                                    .whole = true,
                                    .method = is_post ? "POST" : NULL,
                                    .refused = remote_refused};
    if (is_post)
        request.body = secret_of(sl_buf_view(&run->body));
    sl_buf_clear(run->answer);
    run->code = fetch_text(&request, run->answer, &run->error);
    return run->code == SL_OK;
}

/* Whether the answer is that it is not ready; `id` is the request's then. */
static bool is_pending(struct remote_run *run, struct sl_str *id)
{
    static const struct sl_field fields[] = {{.key = SL_STR("request_id"), .type = SL_FIELD_TEXT, .required = true},
                                             SL_FIELDS_END};
    static const struct sl_str pending = SL_STR("{\"status\":\"pending\"");
    struct sl_str text = sl_buf_view(run->answer);
    if (!sl_str_starts(text, pending))
        return false;
    struct sl_json j = sl_json(text, &run->arena, false);
    bool good = sl_json_read_object(&j, fields, id) && id->size;
    id->data = good ? sl_arena_strndup(&run->arena, id->data, id->size) : NULL;
    return id->data != NULL;
}

static void remote_work(void *arg)
{
    struct remote_run *run = arg;
    struct sl_buf url = {0};
    struct sl_str id;
    sl_buf_add(&url, run->url, run->url_size);
    sl_buf_printf(&url, "%s?timeout=%d&scope=", run->path, WAIT_S);
    fetch_encode(&url, sl_str(run->scope), false);
    sl_buf_u8(&url, 0);
    bool good = !url.failed && !run->body.failed;
    if (!good)
        run->code = sl_fail(&run->error, SL_BUSY, "out of memory");
    good = good && remote_ask(run, (const char *)url.data, true);
    while (good && is_pending(run, &id)) {
        sl_buf_clear(&url);
        sl_buf_add(&url, run->url, run->url_size);
        sl_buf_cstr(&url, "/requests/");
        fetch_encode(&url, id, false);
        sl_buf_printf(&url, "?timeout=%d", WAIT_S);
        sl_buf_u8(&url, 0);
        good = !url.failed && remote_ask(run, (const char *)url.data, false);
    }
    sl_buf_free(&url);
}

static int remote_run(const struct options *o, struct remote_run *run)
{
    struct by_id *by_id = NULL;
    struct sl_error error = {0};
    if (by_id_open(o, NULL, server_verbosity(o), &by_id, &error) != SL_OK)
        return report(1, error.message, NULL);
    int status = symbolicate_in_time(o, by_id, remote_work, run);
    by_id_close(by_id);
    if (status || run->code == SL_OK)
        return status;
    return report(run->code == SL_PERMISSION_DENIED ? STATUS_DENIED : 1, "the service cannot be asked",
                  run->error.message);
}

int remote_symbolicate(const struct options *o, const char *path, struct sl_str json, const struct remote_part *parts,
                       size_t part_count, struct sl_buf *answer)
{
    const char *url = option_value(o, "server", "");
    struct remote_run run = {.url = url, .url_size = strlen(url), .path = path, .answer = answer};
    size_t places;
    symbolicate_places(o, &places);
    if (option_given(o, "symbols") || places)
        return options_wrong("symbolicate", "--symbols are for this process; --server has its own sources");
    if (!server_may_connect(o, "symbolicate"))
        return 2;
    if (!fetch_url_valid(url))
        return options_wrong("symbolicate", "--server: '%s' is no URL", url);
    while (run.url_size && url[run.url_size - 1] == '/')
        run.url_size--;
    run.scope = option_value(o, "scope", "global");
    run.is_form = part_count > 0;
    sl_buf_str(&run.body, json);
    for (size_t i = 0; i < part_count; i++)
        put_part(&run.body, &parts[i]);
    if (run.is_form)
        sl_buf_printf(&run.body, "--%s--\r\n", boundary);
    int status = remote_run(o, &run);
    sl_buf_free(&run.body);
    sl_arena_free(&run.arena);
    return status;
}
