/* Source context of resulting frames, from objects with sources and from the web.
 *
 * Frames are sorted by module, path and line, so that each source is opened once and read once, front to back. */
#include <stdlib.h>

#include "api/native/native.h"
#include "api/scraping.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/pool.h"
#include "source/text.h"

enum { MAX_DOWNLOADS_AT_ONCE = 32 };
static const uint64_t max_work = UINT64_C(1) << 30; /* bytes of source text read from objects, per request */

struct native_source_location { /* a frame, its path and line */
    struct native_result_frame *frame;
    struct sl_str path;
    uint64_t line;
};

struct web_source { /* a URL, and the cache scope of its text */
    struct sl_str url, scope;
};

/* A path of a module without a text but with links; the first download that works is used. */
struct native_source_link {
    struct native_source_link *next;
    struct native_source_location *locations;
    size_t count;
    struct web_source *sources;
    size_t source_count;
    /* when downloaded */
    struct cache_item *item;
    struct sl_str url;
};

struct source_lookup_run {
    struct native_request *request;
    struct native_source_location *locations;
    size_t count;
    struct sl_buf text, decoded, url, line;
    uint64_t work, held; /* held: bytes of the text buffers that are charged */
};

/* ---- frames with sources ---- */

/* Returns the path and line of the frame's source: those of the symbols if it was symbolicated, otherwise those that were
 * sent. A path of the symbols lies in `scratch`. False if one is unknown. */
bool native_frame_location(const struct native_request *request, const struct native_result_frame *frame,
                           struct sl_buf *scratch, struct sl_str *path, uint64_t *line)
{
    bool symbolicated = frame->status == FRAME_SYMBOLICATED;
    *path = native_text(frame->sent, SENT_ABS_PATH);
    *line = symbolicated ? frame->location.line : frame->sent->line;
    sl_buf_clear(scratch);
    if (frame->is_dotnet)
        sl_ppdb_table_name(request->modules[frame->module].found->lookup.ppdb, frame->location.file, scratch);
    else if (symbolicated && frame->location.file != SL_SYMCACHE_NONE)
        sl_symcache_file(native_table(&request->modules[frame->module], frame->table), frame->location.file, scratch);
    if (scratch->size)
        *path = sl_buf_view(scratch);
    return path->size && (symbolicated || frame->sent->has_line);
}

/* Sets where version control has the frame's file, if the debug file says so. */
bool native_frame_origin(const struct native_request *request, const struct native_result_frame *frame,
                         const struct sl_symcache **table, struct sl_symcache_origin *origin)
{
    if (frame->status != FRAME_SYMBOLICATED || frame->is_dotnet || frame->location.file == SL_SYMCACHE_NONE)
        return false;
    *table = native_table(&request->modules[frame->module], frame->table);
    return *table && sl_symcache_origin(*table, frame->location.file, origin);
}

/* True if some object or a link may have the frame's source. */
static bool has_source(const struct native_request *request, const struct native_result_frame *frame)
{
    const struct sl_symcache *table;
    struct sl_symcache_origin origin;
    if (frame->module == NATIVE_NO_MODULE)
        return false;
    return request->modules[frame->module].found->sources.count ||
           (request->srcsrv_links && native_frame_origin(request, frame, &table, &origin));
}

/* Adds a frame whose source may be found. False when out of memory. */
static bool add_location(struct source_lookup_run *s, struct native_result_frame *frame)
{
    struct native_source_location location = {.frame = frame};
    struct sl_buf *scratch = &s->line;
    if (!has_source(s->request, frame) ||
        !native_frame_location(s->request, frame, scratch, &location.path, &location.line))
        return true;
    if (scratch->size) {
        char *copy = sl_arena_strndup(s->request->arena, location.path.data, location.path.size);
        if (!copy)
            return false;
        location.path.data = copy;
    }
    s->locations[s->count++] = location;
    return true;
}

static bool same_source(const struct native_source_location *a, const struct native_source_location *b)
{
    return a->frame->module == b->frame->module && sl_str_equal(a->path, b->path);
}

static int by_source_and_line(const void *left, const void *right)
{
    const struct native_source_location *a = left, *b = right;
    if (a->frame->module != b->frame->module)
        return a->frame->module < b->frame->module ? -1 : 1;
    int order = sl_str_compare(a->path, b->path);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Collects the frames whose source may be found, sorted by module, path and line. False when out of memory. */
static bool collect_locations(struct source_lookup_run *s)
{
    struct native_request *request = s->request;
    answer_limit_step(request->limit);
    s->locations = SL_ARENA_ARRAY(request->arena, struct native_source_location, request->result_count + 1);
    if (!s->locations)
        return false;
    for (size_t t = 0; t < request->trace_count; t++)
        for (size_t i = 0; i < request->results[t].count; i++)
            if (!add_location(s, &request->results[t].frames[i]))
                return false;
    if (s->count)
        qsort(s->locations, s->count, sizeof *s->locations, by_source_and_line);
    return true;
}

/* ---- the lines ---- */

/* Copies a line, trimmed, into the arena. Sets out_of_memory on failure. */
static struct sl_str copy_line(struct source_lookup_run *s, struct sl_str line)
{
    sl_buf_clear(&s->line);
    sl_context_trim(&s->line, line, 0);
    char *copy = s->line.failed ? NULL : sl_arena_strndup(s->request->arena, (char *)s->line.data, s->line.size);
    s->request->out_of_memory = s->request->out_of_memory || !copy;
    return (struct sl_str){copy ? copy : "", copy ? s->line.size : 0};
}

/* Copies the lines into the arena, as the text is freed afterwards. NULL when out of memory. */
static const struct native_context *copy_context(struct source_lookup_run *s, const struct sl_context *found)
{
    struct native_context *context = SL_ARENA_NEW(s->request->arena, struct native_context);
    if (!context) {
        s->request->out_of_memory = true;
        return NULL;
    }
    context->before_count = found->before_count;
    context->after_count = found->after_count;
    for (unsigned i = 0; i < found->before_count; i++)
        context->before[i] = copy_line(s, found->before[i]);
    context->line = copy_line(s, found->line);
    for (unsigned i = 0; i < found->after_count; i++)
        context->after[i] = copy_line(s, found->after[i]);
    return context;
}

/* Sets the source of all frames of one path. Frames with the same line, which are adjacent, share one. `text` NULL: only the
 * link. */
static void native_set_source(struct source_lookup_run *s, struct native_source_location *locations, size_t count,
                              const struct sl_str *text, struct sl_str link)
{
    struct sl_context_cursor cursor = sl_context_cursor(text ? *text : SL_STR(""));
    struct native_source *source = NULL;
    for (size_t i = 0; i < count && !s->request->out_of_memory && answer_limit_has_memory(s->request->limit); i++) {
        struct sl_context context;
        if (!source || locations[i].line != locations[i - 1].line) {
            source = SL_ARENA_NEW(s->request->arena, struct native_source);
            if (!source) {
                s->request->out_of_memory = true;
                return;
            }
            source->link = link;
            if (text && sl_context_at(&cursor, locations[i].line, &context))
                source->context = copy_context(s, &context);
        }
        locations[i].frame->source = source;
    }
}

/* Sets the source of all frames of one path from the bytes of its file, in any encoding; only the link if they are no
 * text. */
static void native_set_text(struct source_lookup_run *s, struct native_source_location *locations, size_t count,
                            struct sl_bytes bytes, struct sl_str link)
{
    struct sl_str text;
    bool is_text = sl_text_decode(bytes, &s->decoded, &text);
    memory_charge(&s->held, s->text.capacity + s->decoded.capacity);
    native_set_source(s, locations, count, is_text ? &text : NULL, link);
}

/* ---- from objects ---- */

/* Adds a URL to the links of a path; NULL is no URL. There is room for one of each object, and the one in the debug file. */
static void add_link(struct source_lookup_run *s, struct native_source_link *link, struct sl_str scope,
                     struct sl_str url)
{
    if (!url.data)
        return;
    if (!link->sources)
        link->sources = SL_ARENA_ARRAY(s->request->arena, struct web_source,
                                       s->request->modules[link->locations->frame->module].found->sources.count + 1);
    if (link->sources)
        link->sources[link->source_count++] = (struct web_source){url, scope};
    else
        s->request->out_of_memory = true;
}

/* Queues a copy of the link for native_download_sources. */
static void queue_download(struct source_lookup_run *s, const struct native_source_link *link)
{
    struct native_source_link *queued = SL_ARENA_NEW(s->request->arena, struct native_source_link);
    if (!queued) {
        s->request->out_of_memory = true;
        return;
    }
    *queued = *link;
    queued->next = s->request->links;
    s->request->links = queued;
}

/* Calls source_object_find within the request's limit of work. */
static bool read_source_text(struct source_lookup_run *s, struct source_object *object, struct sl_str path,
                             bool *has_text)
{
    uint64_t before = object->work;
    sl_buf_clear(&s->text);
    sl_buf_clear(&s->url);
    if (s->work > max_work)
        return false;
    bool known = source_object_find(object, path, &s->text, has_text, &s->url);
    s->work += object->work - before;
    memory_charge(&s->held, s->text.capacity + s->decoded.capacity);
    if (s->work > max_work)
        log_warn("sources",
                 "no more source files are read for this request: together they are too large, so further frames have "
                 "no source lines",
                 LOG_U64("bytes", s->work));
    return known;
}

/* Adds the link that the debug file itself has for this path. Which scope it belongs to is not known; the request's own
 * scope shows it to nobody else. True if there is a link. */
static bool add_origin(struct source_lookup_run *s, struct native_source_link *link)
{
    for (size_t i = 0; s->request->srcsrv_links && i < link->count; i++) {
        const struct sl_symcache *table;
        struct sl_symcache_origin origin;
        if (!native_frame_origin(s->request, link->locations[i].frame, &table, &origin) ||
            origin.url == SL_SYMCACHE_NONE)
            continue;
        sl_buf_clear(&s->url);
        sl_symcache_string(table, origin.url, &s->url);
        add_link(s, link, s->request->scope, scraping_url(s->request->arena, sl_buf_view(&s->url)));
        return true;
    }
    return false;
}

/* Sets the source of the frames of one path: the first text that the module's objects have. Without one, the links are
 * queued for download. */
static void resolve(struct source_lookup_run *s, struct native_source_location *locations, size_t count)
{
    const struct source_lookup *sources = &s->request->modules[locations->frame->module].found->sources;
    struct native_source_link link = {.locations = locations, .count = count};
    bool known = false;
    for (size_t i = 0; i < sources->count && !s->request->out_of_memory; i++) {
        bool has_text = false;
        if (!read_source_text(s, &sources->objects[i], locations->path, &has_text))
            continue;
        struct sl_str url = scraping_url(s->request->arena, sl_buf_view(&s->url));
        known = known || has_text || s->url.size;
        if (has_text) {
            native_set_text(s, locations, count, sl_buf_bytes(&s->text), url);
            return;
        }
        add_link(s, &link, sources->objects[i].scope, url);
    }
    known = add_origin(s, &link) || known;
    if (!known)
        return;
    native_set_source(s, locations, count, NULL, link.source_count ? link.sources->url : (struct sl_str){NULL, 0});
    if (link.source_count)
        queue_download(s, &link);
}

/* Frees the buffers and their charged memory. */
static void native_sources_finish(struct source_lookup_run *s)
{
    sl_buf_free(&s->text);
    sl_buf_free(&s->decoded);
    sl_buf_free(&s->url);
    sl_buf_free(&s->line);
    memory_charge(&s->held, 0);
}

void native_apply_sources(struct native_request *request)
{
    struct source_lookup_run s = {.request = request};
    size_t end;
    request->out_of_memory = request->out_of_memory || !collect_locations(&s);
    for (size_t begin = 0; begin < s.count && !request->out_of_memory; begin = end) {
        for (end = begin + 1; end < s.count && same_source(&s.locations[begin], &s.locations[end]);)
            end++;
        resolve(&s, &s.locations[begin], end - begin);
    }
    native_sources_finish(&s);
}

/* ---- from the web ---- */

struct downloads {
    struct native_request *request;
    struct native_source_link *next;
};

static struct sl_str kept_text(struct sl_arena *arena, struct sl_buf *text)
{
    struct sl_str kept = sl_buf_move_to_arena(text, arena);
    return kept.data ? kept : SL_STR("");
}

/* Adds the result of a download to the candidates of the module. They are only written if the client asked for them. */
static void report(struct native_request *request, uint32_t module, struct sl_str url, const struct sl_error *error)
{
    struct candidate candidate = {.source = SL_STR("sourcelink"), .location = url, .download = error->code};
    struct candidate_list one = {&candidate, 1, 1};
    struct sl_buf text = {0};
    if (request->options.dif_candidates != SL_BOOL_TRUE)
        return; /* answers have no candidates */
    if (error->code == SL_OK)
        candidate.features.has_sources = true;
    else if (error->code == SL_PERMISSION_DENIED)
        sl_buf_cstr(&text, error->message);
    else if (error->code != SL_NOT_FOUND && error->code != SL_MALFORMED)
        cache_error_text(error, &text);
    candidate.download_details = kept_text(request->arena, &text);
    candidates_merge(request->arena, &request->modules[module].found->lookup.candidates, &one);
}

/* Makes the request for a source file. If the client's headers are sent with it, the response may be private: so it is
 * cached under the scope of the client's request. */
static struct source_request web_request(const struct downloads *d, const struct web_source *source)
{
    const struct scraping *scraping = &d->request->scraping;
    struct source_request request = {
        .url = source->url, .scope = source->scope, .accept_invalid_certs = scraping->verify_ssl == SL_BOOL_FALSE};
    if (scraping->header_count && scraping->enabled != SL_BOOL_FALSE &&
        scraping_origin_allowed(d->request->arena, scraping->allowed_origins, scraping->allowed_origin_count,
                                source->url)) {
        request.headers = scraping->headers;
        request.header_count = scraping->header_count;
        request.scope = d->request->scope;
    }
    return request;
}

/* Downloads a source file. True if that worked or the request is cancelled: no further URL is tried. */
static bool download(struct downloads *d, struct native_source_link *link, const struct web_source *source)
{
    struct source_request wanted = web_request(d, source);
    struct sl_error error = {0};
    error.code = source_file_get(&wanted, d->request->arena, &link->item, &error);
    if (error.code == SL_CANCELLED)
        return true;
    report(d->request, link->locations->frame->module, source->url, &error);
    link->url = source->url;
    return error.code == SL_OK;
}

/* A worker fiber: takes the next link until none is left, and downloads the first of its URLs that works. */
static void worker(void *arg)
{
    struct downloads *d = arg;
    while (d->next && !fiber_cancelled()) {
        struct native_source_link *link = d->next;
        d->next = link->next;
        for (size_t i = 0; i < link->source_count; i++)
            if (download(d, link, &link->sources[i]))
                break;
    }
}

/* Pool work: sets the source of the frames whose texts were downloaded. */
static void apply_texts(void *arg)
{
    struct source_lookup_run s = {.request = arg};
    for (const struct native_source_link *link = s.request->links; link; link = link->next)
        if (link->item)
            native_set_text(&s, link->locations, link->count, link->item->mapping.bytes, link->url);
    native_sources_finish(&s);
}

/* Downloads all links by as many fibers as there are links, but at most MAX_DOWNLOADS_AT_ONCE, this one included. False
 * when cancelled. */
static bool download_all(struct downloads *d)
{
    size_t helpers = 0;
    for (const struct native_source_link *link = d->next->next; link && helpers < MAX_DOWNLOADS_AT_ONCE - 1;
         link = link->next)
        helpers++;
    return fiber_run_workers(worker, d, helpers);
}

enum sl_code native_download_sources(struct native_request *request, struct sl_error *error)
{
    struct downloads d = {.request = request, .next = request->links};
    if (!d.next)
        return SL_OK;
    enum sl_code code = download_all(&d) ? pool_run(POOL_SYMBOLICATE, apply_texts, request, error) : SL_CANCELLED;
    for (struct native_source_link *link = request->links; link; link = link->next)
        cache_release(link->item);
    return code;
}
