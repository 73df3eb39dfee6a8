/* POST /page/read: detects what kind of input a file is, as the command does.
 *
 *     {"kind": "trace"}
 *
 * `kind` is a value of the command's option --type, or null. If it is null, one of these may follow: `unread` names a known format that
 * cannot be read; `advice` says what to do with the file instead; `plain` names a kind of stack that has its names already. `named`:
 * POST /page/named can write the file with names. */
#include "api/input_kind.h"
#include "api/page/page.h"
#include "apple/samples.h"
#include "core/pool.h"
#include "jvm/trace.h"

/* True if some line of the text is a frame of a JVM stack trace. */
static bool has_jvm_frames(struct sl_str text)
{
    struct sl_jvm_trace_frame frame;
    struct sl_str line;
    while (sl_str_next_line(&text, &line))
        if (sl_jvm_trace_frame(line, &frame))
            return true;
    return false;
}

/* Detects the kind of input. A text that is no other kind but has JVM frames is a JVM trace. Formats that cannot be read and .NET
 * exceptions are excluded, as their lines may look like JVM frames. */
static enum input_kind kind_of_text(struct sl_bytes bytes, struct sl_str text)
{
    enum input_kind kind = input_kind_detect(bytes);
    if (kind != INPUT_UNKNOWN || input_unread_kind(bytes) || input_is_dotnet(text))
        return kind;
    return has_jvm_frames(text) ? INPUT_TRACE : INPUT_UNKNOWN;
}

/* `kind` is what the command's option --type takes. For input of no such kind, the first of these that applies is written: `unread`, a
 * known format that cannot be read; `advice`, what to do with the file instead; `plain`, a stack that has its names already. For files
 * that POST /page/named can write with names, `named` is true. */
void page_recognise(struct sl_bytes bytes, struct sl_buf *json)
{
    struct sl_json_writer w = sl_json_writer(json);
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    enum input_kind kind = kind_of_text(bytes, text);
    const char *name = input_kind_name(kind), *unread = kind ? NULL : input_unread_kind(bytes);
    const char *advice = kind || unread ? NULL : input_advice(bytes);
    const char *plain = kind || unread || advice ? NULL : input_named_kind(bytes);
    sl_json_begin_object(&w);
    sl_json_member_or_null(&w, "kind", sl_str(name));
    if (unread)
        sl_json_member_str(&w, "unread", sl_str(unread));
    if (advice)
        sl_json_member_str(&w, "advice", sl_str(advice));
    if (plain)
        sl_json_member_str(&w, "plain", sl_str(plain));
    if (kind == INPUT_PROFILE || (kind == INPUT_APPLE && sl_samples_is_text(text)))
        sl_json_member_boolean(&w, "named", true);
    sl_json_end_object(&w);
}

struct page_request { /* input and result of recognise_given */
    struct sl_bytes bytes;
    struct sl_buf json;
};

/* Pool work: detects the kind of the input. */
static void recognise_given(void *arg)
{
    struct page_request *request = arg;
    page_recognise(request->bytes, &request->json);
}

void page_read(struct http_exchange *x)
{
    struct page_request r = {.json = {0}};
    struct sl_error error;
    if (http_body(x, &r.bytes) != SL_OK)
        return;
    if (http_pool_run(x, POOL_JSON, recognise_given, &r, &error) != SL_OK) {
        sl_buf_free(&r.json);
        http_reply_error(x, 503, error.message);
    } else if (r.json.failed) {
        sl_buf_free(&r.json);
        http_reply_no_memory(x);
    } else {
        http_reply_json(x, 200, &r.json);
    }
}
