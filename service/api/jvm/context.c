/* Adds source lines to deobfuscated frames. Source bundles name files by package and file name, always with the extension ".jvm", as
 * the tool that builds them does not look at the language:
 *
 *     class com.example.Main, file Main.kt -> ~/com/example/Main.jvm */
#include "api/jvm/jvm.h"

#include <stdlib.h>

#include "core/log.h"
#include "core/memory.h"

struct jvm_source_frame { /* a frame with a line number, and the URL of its source file */
    struct jvm_frame *frame;
    struct sl_str url;
};

struct jvm_sourcing { /* state of jvm_add_context */
    struct jvm_request *request;
    struct jvm_source_frame *frames; /* sorted by file and line */
    size_t count;
    struct sl_buf text, line; /* text of the current file; scratch buffer of frame_lines_keep */
    uint64_t work, held;      /* bytes read from bundles; bytes of `text` that are charged to the memory budget */
};

static const uint64_t max_work = UINT64_C(1) << 30; /* bytes of source text read from bundles, per request */

/* Returns the part of the text before `end`, a pointer into it; all of it if `end` is NULL. */
static struct sl_str until(struct sl_str text, const char *end)
{
    return end ? (struct sl_str){text.data, (size_t)(end - text.data)} : text;
}

/* Appends a class or package name as a path: dots become slashes. */
static void put_path(struct sl_buf *url, struct sl_str name)
{
    for (size_t i = 0; i < name.size; i++)
        sl_buf_u8(url, (uint8_t)(name.data[i] == '.' ? '/' : name.data[i]));
}

/* Appends the URL of the frame's source file in a bundle. If abs_path has an extension and no "$", it is the name of a source file:
 * the URL is the class's package and this name. Otherwise the URL is the class without nested classes: com.example.Main$1 ->
 * ~/com/example/Main.jvm. */
static void put_url(const struct jvm_frame *frame, struct sl_buf *url)
{
    struct sl_str path = frame->abs_path, module = frame->module;
    const char *dot = path.size ? memrchr(path.data, '.', path.size) : NULL;
    sl_buf_cstr(url, "~/");
    if (dot && !memchr(path.data, '$', path.size)) {
        const char *package = module.size ? memrchr(module.data, '.', module.size) : NULL;
        if (package)
            put_path(url, (struct sl_str){module.data, (size_t)(package + 1 - module.data)});
        sl_buf_str(url, until(path, dot));
    } else {
        put_path(url, until(module, module.size ? memchr(module.data, '$', module.size) : NULL));
    }
    sl_buf_cstr(url, ".jvm");
}

/* Compares frames by file, then line, so that each file is opened once and its lines are read in one pass. */
static int by_url_and_line(const void *left, const void *right)
{
    const struct jvm_source_frame *a = left, *b = right;
    int order = sl_str_compare(a->url, b->url);
    uint64_t x = a->frame->line.value, y = b->frame->line.value;
    return order ? order : (x > y) - (x < y);
}

/* Collects the frames that have a line number, sorted by file and line. False when out of memory. */
static bool jvm_gather(struct jvm_sourcing *s)
{
    struct jvm_request *r = s->request;
    s->frames = SL_ARENA_ARRAY(r->arena, struct jvm_source_frame, r->result_count + 1);
    for (size_t t = 0; s->frames && t < r->trace_count; t++)
        for (size_t i = 0; i < r->results[t].count; i++) {
            struct jvm_frame *frame = &r->results[t].frames[i];
            struct sl_buf url = {0};
            if (!frame->line.value)
                continue;
            put_url(frame, &url);
            struct sl_str kept = sl_buf_move_to_arena(&url, r->arena);
            if (!kept.data)
                return false;
            s->frames[s->count++] = (struct jvm_source_frame){frame, kept};
        }
    if (s->count)
        qsort(s->frames, s->count, sizeof *s->frames, by_url_and_line);
    return s->frames != NULL;
}

/* Adds source lines to those frames of one file that have none yet, if this bundle has the file. `frames` are all frames of the
 * file, ordered by line. Once max_work bytes were read for the request, reads no more files, and logs that when it happens. A file
 * that is not UTF-8 gives no lines. */
static void give_lines(struct jvm_sourcing *s, struct jvm_source_frame *frames, size_t count,
                       const struct jvm_query *bundle)
{
    struct sl_context context;
    sl_buf_clear(&s->text);
    if (s->work > max_work)
        return;
    bool found = search_append_jvm_source(bundle, frames->url, &s->work, &s->text);
    memory_charge(&s->held, s->text.capacity); /* counts the buffer in the memory budget */
    if (s->work > max_work)
        log_warn("jvm",
                 "no more source files are read for this request: together they are too large, so further frames have "
                 "no source lines",
                 LOG_U64("bytes", s->work));
    if (!found || !sl_str_is_utf8(sl_buf_view(&s->text)))
        return;
    struct sl_context_cursor cursor = sl_context_cursor(sl_buf_view(&s->text));
    for (size_t i = 0; i < count && !s->request->out_of_memory; i++)
        if (!frames[i].frame->context && sl_context_at(&cursor, frames[i].frame->line.value, &context)) {
            /* column 0: JVM frames have none, so long lines are cut at their end */
            frames[i].frame->context = frame_lines_keep(&context, 0, &s->line, s->request->arena);
            s->request->out_of_memory |= !frames[i].frame->context;
        }
}

/* Asks all bundles about each file. give_lines charges the buffer `text` to the memory budget (`held`); the last call here gives that
 * back. */
void jvm_add_context(struct jvm_request *r)
{
    struct jvm_sourcing s = {.request = r};
    r->out_of_memory |= !jvm_gather(&s);
    for (size_t i = 0, end; !r->out_of_memory && i < s.count; i = end) {
        for (end = i + 1; end < s.count && sl_str_equal(s.frames[i].url, s.frames[end].url);)
            end++; /* frames i to end - 1 are those of one file */
        for (size_t m = 0; m < r->module_count; m++)
            if (r->modules[m].is_bundle && r->modules[m].item)
                give_lines(&s, &s.frames[i], end - i, &r->modules[m]);
    }
    sl_buf_free(&s.text);
    sl_buf_free(&s.line);
    memory_charge(&s.held, 0);
}
