/* The kinds `sourcefiles` (text files from the web or a symbol source) and `bundled_files` (text files from source bundles), as UTF-8. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/sigbus_guard.h"
#include "core/pool.h"
#include "origin/failures.h"
#include "source/bundle.h"
#include "source/text.h"

enum { MAX_MAP_URL = 512 }; /* bytes of a source map's URL in a header, with its NUL; longer ones are ignored */

/* Sets `*text` to the text of the file as UTF-8: the bytes themselves, without a byte order mark, or their conversion in `scratch`. With
 * `is_utf8` the file must be UTF-8; otherwise its encoding is detected. False if it is not text. */
static bool decode_text(bool is_utf8, struct sl_bytes bytes, struct sl_buf *scratch, struct sl_str *text)
{
    *text = (struct sl_str){(const char *)bytes.data, bytes.size};
    if (!is_utf8)
        return sl_text_decode(bytes, scratch, text);
    if (sl_str_starts(*text, SL_STR("\xef\xbb\xbf")))
        *text = (struct sl_str){text->data + 3, text->size - 3};
    return sl_str_is_utf8(*text);
}

/* Runs in a worker: writes the text of a source file as UTF-8, or nothing if the file is UTF-8 already. SL_NOT_FOUND if it is empty,
 * SL_MALFORMED if it is not text. */
static enum sl_code decode(struct conversion *conversion, const struct converter_call *call, void *result,
                           struct sl_error *error)
{
    const struct source_text_options *options = converter_options(call);
    struct source_text_result *outcome = result;
    struct sl_bytes bytes = converter_input_bytes(call, INPUT_FILE);
    struct sl_buf scratch = {.budget = &conversion->budget};
    struct sl_str text;
    enum sl_code code = SL_OK;
    bool is_text = decode_text(options->is_utf8, bytes, &scratch, &text);
    if (!bytes.size) {
        code = sl_fail(error, SL_NOT_FOUND, "%s", ""); /* no message: the code says it all */
    } else if (scratch.failed) {
        code = sl_budget_fail(&conversion->budget, error);
    } else if (!is_text) {
        code = sl_fail(error, SL_MALFORMED, "the source file is not text");
    } else if (text.size != bytes.size || text.data != (const char *)bytes.data) { /* decoded, or without its BOM */
        code = write_whole_file(call->out, (struct sl_bytes){(const uint8_t *)text.data, text.size}, error);
        outcome->is_written = code == SL_OK;
    }
    sl_buf_free(&scratch);
    return code;
}

static bool check_result(const void *result)
{
    return converter_bool_is_valid(&((const struct source_text_result *)result)->is_written);
}

const struct converter converter_source_text = {"source_text", sizeof(struct source_text_options),
                                                sizeof(struct source_text_result), decode, check_result};

struct replacing {
    int fd, text; /* the file, and a file in memory with its decoded text */
};

/* Pool work: replaces the contents of a downloaded file by its decoded text. */
static enum sl_code replace_file(void *arg, struct sl_error *error)
{
    const struct replacing *r = arg;
    struct sl_mapping text;
    enum sl_code code = sl_map_fd(r->text, &text, error);
    if (code != SL_OK)
        return code;
    code = write_whole_file(r->fd, text.bytes, error);
    if (code == SL_OK && ftruncate(r->fd, (off_t)text.bytes.size) != 0)
        code = sl_fail(error, SL_INTERNAL, "cannot truncate the cache file of a source text");
    sl_unmap(&text);
    return code;
}

/* Has a worker check that the downloaded file is text, and replaces it by the text as UTF-8 if it is not UTF-8 already. */
static enum sl_code decode_file(const struct source_request *request, int fd, struct sl_error *error)
{
    const struct source_text_options options = {request->is_utf8};
    struct source_text_result outcome;
    struct conversion_description about = {.location = request->location};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options)};
    converter_add_file(&call, INPUT_FILE, fd);
    call.out = memfd_create("text", MFD_CLOEXEC);
    if (call.out < 0)
        return sl_fail_errno(error, errno, "cannot create an in-memory file for a source text");
    struct replacing replacing = {fd, call.out};
    enum sl_code code = conversion_run(&about, &converter_source_text, &call, &outcome, error);
    if (code == SL_OK && outcome.is_written)
        code = pool_call(POOL_IO, replace_file, &replacing, error);
    close(call.out);
    return code;
}

struct web_file {
    const struct source_request *request;
    char *map;        /* text stored with the cache entry: the URL of the source map in the response's header */
    bool by_old_name; /* `map` is from the obsolete header field X-SourceMap */
};

/* True if a redirect to this URL is allowed: its origin (scheme, host and port) must be one that the request allows. */
static bool may_follow(void *arg, const char *url)
{
    const struct source_request *request = ((struct web_file *)arg)->request;
    struct sl_arena arena = {0};
    bool allowed = request->origin_allowed(&arena, request->origins, request->origin_count, sl_str(url));
    sl_arena_free(&arena);
    return allowed;
}

/* Called for each header field of the response. Keeps the URL of the source map from `SourceMap` (ECMA-426, 11.1.2.1) or, if that is
 * missing, from the obsolete X-SourceMap. If a field occurs twice, the later one counts. */
static void note_map(void *arg, struct sl_str name, struct sl_str value)
{
    struct web_file *web = arg;
    bool old = sl_str_equal_nocase(name, SL_STR("x-sourcemap"));
    bool is_text = value.size && value.size < MAX_MAP_URL && sl_str_is_utf8(value);
    if (!is_text || !(old || sl_str_equal_nocase(name, SL_STR("sourcemap"))) ||
        (old && web->map[0] && !web->by_old_name))
        return;
    snprintf(web->map, MAX_MAP_URL, SL_STR_FMT, SL_STR_ARG(value));
    web->by_old_name = old;
}

/* True if the path of the URL has an extension of scripts, source maps or source files. If the response to it is a web page, that must be
 * an error page, and is refused. */
static bool names_code(struct sl_str url)
{
    static const char *const endings[] = {"js", "mjs", "cjs", "map",   "bundle", "ts",   "c",  "h",
                                          "cc", "cpp", "cxx", "hh",    "hpp",    "m",    "mm", "cs",
                                          "vb", "fs",  "rs",  "swift", "go",     "java", "kt"};
    size_t end = 0, dot = 0; /* dot: beginning of the extension, behind the last dot of the file name; 0 = none */
    for (; end < url.size && url.data[end] != '?' && url.data[end] != '#'; end++)
        dot = url.data[end] == '.' ? end + 1 : url.data[end] == '/' ? 0 : dot;
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (sl_str_equal_nocase((struct sl_str){url.data + dot, end - dot}, sl_str(endings[i])))
            return true;
    return false;
}

/* Downloads a file from the web, from public addresses only, and records the result: when a failing server works again, its cached
 * failures become invalid (origin/failures.h). */
static enum sl_code fetch_web(const struct source_request *request, struct cache_tmp *tmp, struct sl_error *error)
{
    /* tmp->note, which is stored with the entry, receives the URL of the source map, if a header field of the response names one */
    struct web_file web = {request, tmp->note, false};
    struct fetch_request fetch = {
        .url = request->url.data,
        .headers = request->headers,
        .header_count = request->header_count,
        .accept_invalid_certs = request->accept_invalid_certs,
        /* not `trusted`: reserved addresses are refused */
        .deny_list = true,                        /* many failures block the host for a while */
        .source = "web-scraping",                 /* name of the source in metrics */
        .refuse_pages = names_code(request->url), /* then a web page can only be an error page */
        /* 0: no limit */
        .max_size = current_config()->max_source_file_size == UINT64_MAX ? 0 : current_config()->max_source_file_size,
        .may_follow = request->origin_allowed ? may_follow : NULL,
        .field = note_map,
        .arg = &web,
    };
    enum sl_code code = fetch_get(&fetch, tmp->fd, error);
    origin_record_result(SL_STR("web-scraping"), request->location.size ? request->location : request->url, code);
    return code;
}

/* Makes the entry: downloads the file; if the request names a member, the file is an archive, and is replaced by that member; then converts
 * the text to UTF-8, unless the request wants the bytes as they are. */
static enum sl_code source_files_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    const struct source_request *request = context;
    (void)arena;
    enum sl_code code = request->file ? origin_fetch(request->file, tmp->fd, error) : fetch_web(request, tmp, error);
    if (code == SL_OK && request->member.size)
        code = fetch_take_member(tmp->fd, request->member, current_max_source_size(), error);
    return code != SL_OK || request->is_raw ? code : decode_file(request, tmp->fd, error);
}

/* Copies a text into the arena. False when out of memory. */
static bool source_files_copy(struct sl_arena *arena, struct sl_str *text)
{
    text->data = sl_arena_strndup(arena, text->data, text->size);
    return text->data;
}

/* Copies the request into the arena of the computation, which may outlive the client. NULL when out of memory. */
void *source_request_retain(const void *context, struct sl_arena *arena)
{
    struct source_request *to = SL_ARENA_NEW(arena, struct source_request);
    if (!to)
        return NULL;
    *to = *(const struct source_request *)context;
    /* + 1: never 0 items, so that NULL means out of memory */
    struct fetch_header *headers = SL_ARENA_ARRAY(arena, struct fetch_header, to->header_count + 1);
    struct sl_str *texts[] = {&to->scope, &to->url, &to->member, &to->location, &to->entry};
    bool good = headers != NULL;
    for (size_t i = 0; good && i < sizeof texts / sizeof *texts; i++)
        good = source_files_copy(arena, texts[i]);
    for (size_t i = 0; good && i < to->header_count; i++) {
        headers[i] = to->headers[i];
        good = source_files_copy(arena, &headers[i].name) && source_files_copy(arena, &headers[i].value.hidden);
    }
    to->headers = headers;
    struct sl_str *origins = SL_ARENA_ARRAY(arena, struct sl_str, to->origin_count + 1);
    good = good && origins;
    for (size_t i = 0; good && i < to->origin_count; i++) {
        origins[i] = to->origins[i];
        good = source_files_copy(arena, &origins[i]);
    }
    to->origins = origins;
    if (good && to->file)
        good = (to->file = remote_file_copy(to->file, arena)) != NULL;
    return good ? to : NULL;
}

/* Returns the URL of the file's source: downloads from one source share a queue. Empty for files from the web, which share the queue of the
 * kind. */
static struct sl_str source_files_queue_name(const void *context)
{
    const struct source_request *request = context;
    return request->file ? request->file->source->url : (struct sl_str){NULL, 0};
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_source_files = {
    .name = "sourcefiles",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = source_files_compute,
    .queue_name = source_files_queue_name,
    .retain = source_request_retain,
    .load = script_load,
    .free_loaded = script_free,
};

/* ---- texts in bundles ---- */

/* Returns the request for the bundle that contains the text; it refers to data of `request`. */
static struct object_request source_files_object(const struct source_request *request)
{
    static const struct object_id any = {.type = OBJECT_UNKNOWN}; /* without ids: none is compared */
    return (struct object_request){request->file, &any, request->scope};
}

struct archive_extraction {
    const struct sl_bundle *bundle;
    struct sl_str entry;
    int fd;
};

/* Pool work: writes one file of a bundle to the entry. SL_NOT_FOUND, with an empty message, if the bundle does not have it or it is empty;
 * SL_MALFORMED if it is not UTF-8. */
static enum sl_code extract(void *arg, struct sl_error *error)
{
    const struct archive_extraction *e = arg;
    const struct sl_bundle_file *file = sl_bundle_by_name(e->bundle, e->entry);
    struct sl_buf text = {0};
    enum sl_code code = file ? sl_bundle_read(e->bundle, file, current_max_source_size(), &text, error)
                             : sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (code == SL_OK && !sl_str_is_utf8(sl_buf_view(&text)))
        code = sl_fail(error, SL_MALFORMED, "the source file is not text");
    if (code == SL_OK)
        code = text.size ? write_whole_file(e->fd, sl_buf_bytes(&text), error) : sl_fail(error, SL_NOT_FOUND, "%s", "");
    sl_buf_free(&text);
    return code;
}

/* Makes the entry: gets the bundle, which is an entry of its own, and writes the wanted file of it. */
static enum sl_code bundled_files_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                          struct sl_error *error)
{
    const struct source_request *request = context;
    struct source_object object;
    enum sl_code code = source_object_open_bundle(request->file, request->scope, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct archive_extraction extraction = {object.item->loaded, request->entry, tmp->fd};
    code = pool_call(POOL_CONVERT, extract, &extraction, error);
    source_object_release(&object);
    return code;
}

/* For cache_kind.base: names the entry from which this one is made, the bundle. False when out of memory. */
static bool bundled_files_base(const void *context, struct sl_arena *arena, const struct cache_kind **kind,
                               struct cache_key *key, const void **base)
{
    struct object_request *object = SL_ARENA_NEW(arena, struct object_request);
    if (!object)
        return false;
    *object = source_files_object(context);
    return object_request_base(object, arena, kind, key, base);
}

/* Loads a text as script_load does, but adds its size to the weight: so the memory limit of the kind limits the texts themselves. */
static enum sl_code bundled_files_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    enum sl_code code = script_load(bytes, loaded, weight, error);
    *weight += bytes.size;
    return code;
}

static uint64_t bundled_files_capacity(const struct config *config)
{
    return config->bundled_files_capacity;
}

const struct cache_kind kind_bundled_files = {
    .name = "bundled_files",
    .section = CACHE_DERIVED,
    .version = 1,
    .base = bundled_files_base,
    .compute = bundled_files_compute,
    .queue_name = source_files_queue_name,
    .retain = source_request_retain,
    .shareable = kinds_never_shared, /* the bundle is shared */
    .capacity = bundled_files_capacity,
    .load = bundled_files_load,
    .free_loaded = script_free,
};

enum sl_code source_object_open_bundle(const struct remote_file *file, struct sl_str scope, struct sl_arena *arena,
                                       struct source_object *bundle, struct sl_error *error)
{
    struct source_request wanted = {.file = file, .scope = scope};
    struct object_request request = source_files_object(&wanted);
    struct cache_key key;
    *bundle = (struct source_object){.item = NULL};
    if (!object_request_key(&request, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = source_open(&key, &request, bundle);
    /* source_open also succeeds for objects with DWARF (another kind) and Portable PDBs (nothing loaded): they are no source bundles */
    if (code == SL_OK && bundle->item->kind == &kind_objects && bundle->item->loaded)
        return SL_OK;
    source_object_release(bundle);
    return sl_fail(error, code == SL_OK ? SL_MALFORMED : code, "the file is not a usable source bundle");
}

/* ---- look-ups ---- */

/* Makes the cache key of a text; false when out of memory. A web file is named by its URL (or by request->location, if given),
 * a symbol source's file by its location; for a file inside of an archive or bundle its name is added. */
static bool source_request_key(const struct source_request *request, struct sl_arena *arena, struct cache_key *key)
{
    struct sl_buf text = {0};
    struct object_request object = source_files_object(request);
    *key = (struct cache_key){.scope = request->scope};
    if (!request->file) {
        sl_buf_cstr(&text, "scope: ");
        sl_buf_str(&text, request->scope.size ? request->scope : SL_STR("global"));
        sl_buf_cstr(&text, "\n\nsource: web-scraping\nlocation: ");
        sl_buf_str(&text, request->location.size ? request->location : request->url);
        sl_buf_cstr(&text, "\n");
        if (request->member.size) {
            sl_buf_cstr(&text, "\nfile:\n");
            sl_buf_str(&text, request->member);
            sl_buf_cstr(&text, "\n");
        }
    } else if (!object_request_key(&object, arena, key)) {
        return false;
    } else if (request->entry.size) {
        sl_buf_str(&text, key->text);
        sl_buf_cstr(&text, "\nfile:\n");
        sl_buf_str(&text, request->entry);
        sl_buf_cstr(&text, "\n");
    } else {
        return true;
    }
    key->text = sl_buf_move_to_arena(&text, arena);
    return key->text.data;
}

enum sl_code source_file_get(const struct source_request *request, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error)
{
    struct cache_key key;
    *item = NULL;
    if (!source_request_key(request, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(request->file && request->entry.size ? &kind_bundled_files : &kind_source_files, &key, request,
                     item, error);
}

struct appending {
    struct sl_buf *to;
    struct sl_bytes from;
};

static void append(void *arg)
{
    struct appending *a = arg;
    sl_buf_add(a->to, a->from.data, a->from.size);
}

/* Appends the contents of a cache entry. If they are small and their pages in memory, they are copied at once, under a guard against
 * SIGBUS; otherwise on the pool, as reading the disk would block the loop. */
enum sl_code append_item_text(struct sl_buf *to, struct cache_item *item, struct sl_error *error)
{
    enum { COPIED_AT_ONCE = 64 * 1024 };
    struct appending a = {to, item->mapping.bytes};
    enum sl_code code = SL_OK;
    if (item->mapping.bytes.size > COPIED_AT_ONCE || !cache_is_resident(item))
        code = pool_run(POOL_IO, append, &a, error);
    else if (!sigbus_guard_run(append, &a))
        code = sl_fail(error, SL_INTERNAL, "a file of the cache was truncated while it was read, or its disk failed");
    return code == SL_OK && to->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

/* Makes an item of a text without storing it in the cache; a byte order mark is left out. SL_MALFORMED if it is not UTF-8. */
enum sl_code item_from_text(struct sl_str text, struct cache_item **item, struct sl_error *error)
{
    struct sl_buf copy = {0};
    *item = NULL;
    if (sl_str_starts(text, SL_STR("\xef\xbb\xbf")))
        text = (struct sl_str){text.data + 3, text.size - 3};
    if (!sl_str_is_utf8(text))
        return sl_fail(error, SL_MALFORMED, "the source file is not text");
    sl_buf_str(&copy, text);
    return cache_item_from_bytes(&kind_source_files, &copy, item, error); /* takes the copy over, also on failure */
}
