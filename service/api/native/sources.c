/* Adds source lines to resulting frames: from source bundles and debug files, and from the web.
 *
 * Frames are sorted by module, path and line, so that each source is opened once and read once, from front to back. */
#include <stdlib.h>

#include "api/native/native.h"
#include "api/scraping.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/pool.h"
#include "source/text.h"

enum { MAX_DOWNLOADS_AT_ONCE = 32 };
static const uint64_t max_work = UINT64_C(1) << 30; /* bytes of source text read for one request */

struct native_source_location { /* where a frame's source is: its path and line */
    struct native_result_frame *frame;
    struct sl_str path;
    uint64_t line;
};

struct web_source { /* a URL, and the scope under which its text is cached */
    struct sl_str url, scope;
};

/* A source of which only URLs are known: one path in one module. The first URL that can be downloaded is used. */
struct native_source_link {
    struct native_source_link *next;
    struct native_source_location *locations; /* the frames with this path */
    size_t count;
    struct web_source *sources; /* its URLs */
    size_t source_count;
    /* set by the download */
    struct cache_item *item; /* the text (a reference); NULL: no download worked */
    struct sl_str url;
};

struct source_lookup_run { /* state of native_apply_sources */
    struct native_request *request;
    struct native_source_location *locations;
    size_t count;
    struct sl_buf text, decoded, url, line; /* scratch: bytes of a source, the same as UTF-8, a URL, a line or path */
    uint64_t work, held; /* bytes read from objects; bytes of text and decoded charged to the memory budget */
};

/* ---- frames with sources ---- */

/* For a symbolicated frame path and line are those of the symbols, for others those that were sent. Without a file in the symbols,
 * the path that was sent is used with the line of the symbols. */
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

/* Only symcaches of native debug files say where source files are in version control. */
bool native_frame_origin(const struct native_request *request, const struct native_result_frame *frame,
                         const struct sl_symcache **table, struct sl_symcache_origin *origin)
{
    if (frame->status != FRAME_SYMBOLICATED || frame->is_dotnet || frame->location.file == SL_SYMCACHE_NONE)
        return false;
    *table = native_table(&request->modules[frame->module], frame->table);
    return *table && sl_symcache_origin(*table, frame->location.file, origin);
}

/* True if the module has sources, or its debug file has a URL for the frame's path. */
static bool has_source(const struct native_request *request, const struct native_result_frame *frame)
{
    const struct sl_symcache *table;
    struct sl_symcache_origin origin;
    if (frame->module == NATIVE_NO_MODULE)
        return false;
    return request->modules[frame->module].found->sources.count ||
           (request->srcsrv_links && native_frame_origin(request, frame, &table, &origin));
}

/* Adds a frame to `locations` if its source may be found. The path is copied if it lies in the scratch buffer. False when out of
 * memory. */
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

/* True if both frames have the same path in the same module. */
static bool same_source(const struct native_source_location *a, const struct native_source_location *b)
{
    return a->frame->module == b->frame->module && sl_str_equal(a->path, b->path);
}

/* Compares frames by module, path and line. */
static int by_source_and_line(const void *left, const void *right)
{
    const struct native_source_location *a = left, *b = right;
    if (a->frame->module != b->frame->module)
        return a->frame->module < b->frame->module ? -1 : 1;
    int order = sl_str_compare(a->path, b->path);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Lists the frames whose source may be found, sorted by module, path and line. False when out of memory. */
static bool collect_locations(struct source_lookup_run *s)
{
    struct native_request *request = s->request;
    answer_limit_step(request->limit); /* source lines may again take memory up to the limit */
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

/* Copies a line into the arena, cut if it is long. Empty when out of memory (out_of_memory). */
static struct sl_str copy_line(struct source_lookup_run *s, struct sl_str line)
{
    sl_buf_clear(&s->line);
    sl_context_trim(&s->line, line, 0); /* column 0: native frames have none, so long lines are cut at their end */
    char *copy = s->line.failed ? NULL : sl_arena_strndup(s->request->arena, (char *)s->line.data, s->line.size);
    s->request->out_of_memory = s->request->out_of_memory || !copy;
    return (struct sl_str){copy ? copy : "", copy ? s->line.size : 0};
}

/* Copies lines into the arena, as the text that they are views of is freed afterwards. NULL when out of memory. */
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

/* Sets the source of `count` frames with the same path, sorted by line; frames with the same line share it. `text` NULL: no lines,
 * only the link. Stops when the answer's limit leaves no memory. */
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

/* Sets the source of all frames with one path from the bytes of the file, in any text encoding. If these are no text, sets only the
 * link. */
static void native_set_text(struct source_lookup_run *s, struct native_source_location *locations, size_t count,
                            struct sl_bytes bytes, struct sl_str link)
{
    struct sl_str text;
    bool is_text = sl_text_decode(bytes, &s->decoded, &text);
    memory_charge(&s->held, s->text.capacity + s->decoded.capacity); /* counts the buffers in the memory budget */
    native_set_source(s, locations, count, is_text ? &text : NULL, link);
}

/* ---- from bundles and debug files ---- */

/* Adds a URL to those of a path; does nothing if `url` has data NULL. The array has room for one URL of each object and one of the
 * symcache (add_origin). */
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

/* Puts a copy of the link into the list of sources that native_download_sources downloads. */
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

/* Searches the source of a path in one object: true if that has a text (`*has_text`, s->text) or a URL (s->url). Once max_work bytes
 * were read for the request, searches nothing more, and logs that when it happens. */
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
    memory_charge(&s->held, s->text.capacity + s->decoded.capacity); /* counts the buffers in the memory budget */
    if (s->work > max_work)
        log_warn("sources",
                 "no more source files are read for this request: together they are too large, so further frames have "
                 "no source lines",
                 LOG_U64("bytes", s->work));
    return known;
}

/* Adds the URL that the module's debug file gives for this path, if source links are enabled. It is cached under the request's own
 * scope, so that only its clients see the text: which scope the debug file belongs to is not known. True if there is a URL, even if
 * it is not usable. */
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

/* Sets the source of the frames with one path: the first text that one of the module's objects has. A text may also have a URL, for the
 * link. If none has a text, the frames get a link to the first URL, and the URLs are queued for download. A frame keeps the source that was
 * sent if no object knows its path. */
static void find_source_of_path(struct source_lookup_run *s, struct native_source_location *locations, size_t count)
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

/* Frees the buffers, and gives back the memory that they were charged with. */
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
        find_source_of_path(&s, &s.locations[begin], end - begin);
    }
    native_sources_finish(&s);
}

/* ---- from the web ---- */

struct downloads { /* state of the worker fibers */
    struct native_request *request;
    struct native_source_link *next; /* the next source to download; NULL: none is left */
};

/* Moves the text to the arena; empty when out of memory. */
static struct sl_str kept_text(struct sl_arena *arena, struct sl_buf *text)
{
    struct sl_str kept = sl_buf_move_to_arena(text, arena);
    return kept.data ? kept : SL_STR("");
}

/* Lists a download among the module's candidates, with its result, if the client wants candidates. Details are given for failures
 * other than a missing or malformed file. */
static void report_download(struct native_request *request, uint32_t module, struct sl_str url,
                            const struct sl_error *error)
{
    struct candidate candidate = {.source = SL_STR("sourcelink"), .location = url, .download = error->code};
    struct candidate_list one = {.items = &candidate, .count = 1, .capacity = 1};
    struct sl_buf text = {0};
    if (request->options.dif_candidates != SL_BOOL_TRUE)
        return; /* the answer has no candidates then */
    if (error->code == SL_OK)
        candidate.features.has_sources = true;
    else if (error->code == SL_PERMISSION_DENIED)
        /* the `status` of the candidate says this already, cache_error_text would repeat it */
        sl_buf_cstr(&text, error->message);
    else if (error->code != SL_NOT_FOUND && error->code != SL_MALFORMED)
        cache_error_text(error, &text);
    candidate.download_details = kept_text(request->arena, &text);
    candidates_merge(request->arena, &request->modules[module].found->lookup.candidates, &one);
}

/* Makes the request for a source file. The client's headers are added if its rules allow them for this URL; what the server answers
 * may then be private, so it is cached under the scope of the client's request. */
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

/* Downloads a source from one of its URLs. True: no further URL is to be tried, as that worked or the request is cancelled. */
static bool download(struct downloads *d, struct native_source_link *link, const struct web_source *source)
{
    struct source_request wanted = web_request(d, source);
    struct sl_error error = {0};
    error.code = source_file_get(&wanted, d->request->arena, &link->item, &error);
    if (error.code == SL_CANCELLED)
        return true;
    report_download(d->request, link->locations->frame->module, source->url, &error);
    link->url = source->url;
    return error.code == SL_OK;
}

/* A worker fiber: takes the next source until none is left, and downloads it from the first of its URLs that works. */
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

/* Pool work: adds the lines of all sources that were downloaded. */
static void apply_texts(void *arg)
{
    struct source_lookup_run s = {.request = arg};
    for (const struct native_source_link *link = s.request->links; link; link = link->next)
        if (link->item)
            native_set_text(&s, link->locations, link->count, link->item->mapping.bytes, link->url);
    native_sources_finish(&s);
}

/* Downloads all sources, with a fiber for each but at most MAX_DOWNLOADS_AT_ONCE. The loop counts the helpers: one less, as this
 * fiber is a worker, too. False when cancelled. */
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
