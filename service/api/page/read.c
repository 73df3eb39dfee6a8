/* POST /page/read: detects the format of an input of the page with the program's own recognisers.
 *
 *     {"kind": "trace", "parts": ["Caused by: ", {"class": "a.e"}, ": y\n", {"text": "\tat a.e.a(F:3)\n", "head": "\tat ", ...}]}
 *
 * `kind` is a value of --type, or null. `unread` names a known format that cannot be read, `plain` a stack that has its names
 * already; `named`: POST /page/named can write the file with names. For text stacks `parts` is the whole text: frames (with
 * their `text`) and class names as objects, as found by lib/js/stack.h and lib/jvm/trace.h, everything else as strings.
 * `?as=trace` and `?as=jsstack` force the format. */
#include "api/input_kind.h"
#include "api/page/page.h"
#include "apple/samples.h"
#include "core/pool.h"
#include "js/stack.h"
#include "jvm/trace.h"

struct page_reading {
    struct sl_bytes bytes;
    struct sl_str as; /* may have data NULL */
    struct sl_json_writer w;
    struct sl_str plain; /* pending text outside of frames, not written yet */
    uint64_t max;        /* limit of the answer in bytes; beyond it writing stops */
};

/* ---- parts ---- */

/* True if the answer is larger than its limit: then writing stops, and the answer is refused. */
static bool is_too_long(const struct page_reading *r)
{
    return r->w.out->size > r->max;
}

/* Writes the pending text, if there is any. */
static void put_plain(struct page_reading *r)
{
    if (r->plain.size)
        sl_json_put_str(&r->w, r->plain);
    r->plain = (struct sl_str){NULL, 0};
}

/* Extends the pending text; consecutive texts are contiguous. */
static void add_plain(struct page_reading *r, const char *begin, const char *end)
{
    if (!r->plain.size)
        r->plain.data = begin;
    r->plain.size += (size_t)(end - begin);
}

static void put_flag(struct page_reading *r, const char *key, bool flag)
{
    sl_json_member_boolean(&r->w, key, flag);
}

/* ---- JavaScript ---- */

static void put_js_frame(struct page_reading *r, struct sl_str text, const struct sl_js_stack_frame *frame)
{
    put_plain(r);
    sl_json_begin_object(&r->w);
    sl_json_member_str(&r->w, "text", text);
    sl_json_member_str(&r->w, "before", frame->before);
    sl_json_member_str(&r->w, "function", frame->function);
    sl_json_member_str(&r->w, "url", frame->url);
    sl_json_member_u64(&r->w, "line", frame->line);
    sl_json_member_u64(&r->w, "column", frame->column);
    sl_json_member_str(&r->w, "behind", frame->behind);
    put_flag(r, "v8", frame->v8);
    put_flag(r, "constructor", frame->constructor);
    sl_json_member_u64(&r->w, "escapes", frame->escapes);
    sl_json_end_object(&r->w);
}

/* Splits a line into frames and other text. */
static void read_js_line(struct page_reading *r, struct sl_str line)
{
    struct sl_js_stack_frame frame;
    struct sl_str part;
    while (!is_too_long(r) && sl_js_stack_part(&line, &part)) {
        if (sl_js_stack_frame(part, &frame))
            put_js_frame(r, part, &frame);
        else
            add_plain(r, part.data, part.data + part.size);
    }
}

/* ---- JVM ---- */

static void put_jvm_frame(struct page_reading *r, struct sl_str text, const struct sl_jvm_trace_frame *frame)
{
    const char *end = frame->rest.data + frame->rest.size;
    put_plain(r);
    sl_json_begin_object(&r->w);
    sl_json_member_str(&r->w, "text", text);
    sl_json_member_str(&r->w, "head", frame->head);
    sl_json_member_str(&r->w, "class", frame->class);
    sl_json_member_str(&r->w, "method", frame->method);
    sl_json_member_str(&r->w, "gap", frame->gap);
    sl_json_member_str(&r->w, "file", frame->file);
    if (frame->has_line)
        sl_json_member_u64(&r->w, "line", frame->line);
    sl_json_member_str(&r->w, "rest", frame->rest);
    sl_json_member_str(&r->w, "end", (struct sl_str){end, (size_t)(text.data + text.size - end)});
    sl_json_end_object(&r->w);
}

/* Splits a line into its frame, or into class names and other text. */
static void read_jvm_line(struct page_reading *r, struct sl_str whole)
{
    struct sl_jvm_line line = sl_jvm_line(whole);
    struct sl_jvm_trace_frame frame;
    if (sl_jvm_trace_frame(line.text, &frame)) {
        put_jvm_frame(r, whole, &frame);
        return;
    }
    struct sl_str rest = sl_str_trimmed(line.text), class;
    const char *at = whole.data;
    while (!is_too_long(r) && sl_jvm_trace_class(&rest, &class)) {
        add_plain(r, at, class.data);
        put_plain(r);
        sl_json_begin_object(&r->w);
        sl_json_member_str(&r->w, "class", class);
        sl_json_end_object(&r->w);
        at = class.data + class.size;
    }
    add_plain(r, at, whole.data + whole.size);
}

/* ---- all ---- */

static bool has_jvm_frames(struct sl_str text)
{
    struct sl_jvm_trace_frame frame;
    struct sl_str line;
    while (sl_str_next_line(&text, &line))
        if (sl_jvm_trace_frame(line, &frame))
            return true;
    return false;
}

static enum input_kind kind_of_text(const struct page_reading *r, struct sl_str text)
{
    enum input_kind kind = input_kind_detect(r->bytes);
    if (sl_str_equal(r->as, SL_STR("trace")))
        return INPUT_TRACE;
    if (sl_str_equal(r->as, SL_STR("jsstack")))
        return INPUT_JSSTACK;
    if (kind != INPUT_UNKNOWN || input_unread_kind(r->bytes) || input_is_dotnet(text))
        return kind;
    return has_jvm_frames(text) ? INPUT_TRACE : INPUT_UNKNOWN;
}

static void put_parts(struct page_reading *r, enum input_kind kind, struct sl_str text)
{
    sl_json_member_array(&r->w, "parts");
    for (size_t at = 0, size; at < text.size && !is_too_long(r); at += size) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size = newline ? (size_t)(newline + 1 - text.data) - at : text.size - at;
        struct sl_str line = {text.data + at, size};
        if (kind == INPUT_JSSTACK)
            read_js_line(r, line);
        else
            read_jvm_line(r, line);
    }
    put_plain(r);
    sl_json_end_array(&r->w);
}

bool page_recognise(struct sl_bytes bytes, struct sl_str as, uint64_t max, struct sl_buf *json)
{
    struct page_reading reading = {.bytes = bytes, .as = as, .w = sl_json_writer(json), .max = max}, *r = &reading;
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    enum input_kind kind = kind_of_text(r, text);
    const char *name = input_kind_name(kind), *unread = kind ? NULL : input_unread_kind(r->bytes);
    const char *plain = kind || unread ? NULL : input_named_kind(r->bytes);
    sl_json_begin_object(&r->w);
    sl_json_member_or_null(&r->w, "kind", sl_str(name));
    if (unread)
        sl_json_member_str(&r->w, "unread", sl_str(unread));
    if (plain)
        sl_json_member_str(&r->w, "plain", sl_str(plain));
    if (kind == INPUT_PROFILE || (kind == INPUT_APPLE && sl_samples_is_text(text)))
        put_flag(r, "named", true);
    if (kind == INPUT_JSSTACK || kind == INPUT_TRACE)
        put_parts(r, kind, text);
    sl_json_end_object(&r->w);
    return !is_too_long(r);
}

struct page_request {
    struct sl_bytes bytes;
    struct sl_str as;
    uint64_t max;
    struct sl_buf json;
    bool good;
};

static void recognise_given(void *arg)
{
    struct page_request *request = arg;
    request->good = page_recognise(request->bytes, request->as, request->max, &request->json);
}

void page_read(struct http_exchange *x)
{
    struct page_request r = {.as = http_query(x, "as"),
                             .max = ((const struct service *)x->service)->config->max_response_bytes};
    struct sl_error error;
    if (http_body(x, &r.bytes) != SL_OK)
        return;
    if (http_pool_run(x, POOL_JSON, recognise_given, &r, &error) != SL_OK) {
        sl_buf_free(&r.json);
        http_reply_error(x, 503, error.message);
    } else if (r.json.failed) {
        sl_buf_free(&r.json);
        http_reply_no_memory(x);
    } else if (!r.good) {
        sl_buf_free(&r.json);
        http_reply_detail(x, 413, "the response would be larger than max_response_bytes", NULL);
    } else {
        http_reply_json(x, 200, &r.json);
    }
}
