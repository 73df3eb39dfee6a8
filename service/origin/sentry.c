/* Sources of Sentry projects: one request lists the files for an id, others fetch them. */
#include "base/json_fields.h"
#include "base/map.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/status.h"
#include "origin/impl.h"

enum { ANSWER_MAX = 1024 * 1024, PAGE = 20 /* Sentry lists at most this many files */ };
#define TIMEOUT_NS UINT64_C(30000000000)
#define MINUTE_MS  60000

static struct ttl_cache indexes = {.capacity = 100000, .name = "sentry_index"};
static uint64_t index_ttl_ns = UINT64_C(3600000000000);

void sentry_init(size_t capacity, uint64_t ttl_ns)
{
    ttl_cache_resize(&indexes, capacity);
    index_ttl_ns = ttl_ns;
}

void sentry_clear_cache(void)
{
    ttl_cache_expire(&indexes);
}

/* ---- URLs and credentials ---- */

/* Appends the pairs to the query that the base URL may have. Drops a fragment of the base URL; appends "/" if it has no path. Data NULL
 * when out of memory. */
struct sl_str sentry_url(struct sl_arena *arena, struct sl_str base, const struct query_pair *pairs, size_t count)
{
    struct sl_buf url = {0};
    const char *fragment = memchr(base.data, '#', base.size);
    if (fragment)
        base.size = (size_t)(fragment - base.data);
    const char *question = memchr(base.data, '?', base.size), *end = base.data + base.size;
    const char *host = memmem(base.data, base.size, "://", 3);
    const char *before = question ? question : end;
    bool has_path = host && memchr(host + 3, '/', (size_t)(before - host - 3));
    sl_buf_add(&url, base.data, (size_t)(before - base.data));
    if (!has_path)
        sl_buf_u8(&url, '/');
    sl_buf_add(&url, before, (size_t)(end - before));
    bool open = question && question + 1 < end; /* the query has a pair, so that "&" must precede the next */
    for (size_t i = 0; i < count; i++) {
        sl_buf_cstr(&url, open ? "&" : question ? "" : "?");
        sl_buf_cstr(&url, pairs[i].name);
        sl_buf_u8(&url, '=');
        fetch_encode(&url, pairs[i].value, false);
        open = true;
    }
    return sl_buf_move_to_arena(&url, arena);
}

bool sentry_credentials(struct sl_arena *arena, const struct source *source, struct fetch_header *header)
{
    struct sl_buf value = {0};
    bool token = secret_present(source->token);
    header->name = token ? SL_STR("Authorization") : SL_STR("Cookie");
    sl_buf_cstr(&value, token ? "Bearer " : "");
    sl_buf_str(&value, secret_open(token ? source->token : source->cookies));
    header->value.hidden = sl_buf_move_to_arena(&value, arena);
    return header->value.hidden.data != NULL;
}

/* ---- requests ---- */

/* Logs refused credentials, at most once a minute per source. A wrong token is the most common misconfiguration, and
 * the source merely looks empty. Sources whose hashes collide in the table are logged more often. */
static void report_refusal(const struct source *source, int status)
{
    static struct {
        uint64_t hash, at_ms;
    } reported[64];
    uint64_t hash = sl_hash(source->id.data, source->id.size), now = loop_now_ms();
    size_t i = hash % (sizeof reported / sizeof *reported);
    if (reported[i].hash == hash && reported[i].at_ms && now - reported[i].at_ms < MINUTE_MS)
        return;
    reported[i].hash = hash;
    reported[i].at_ms = now ? now : 1; /* 0: an unused element */
    log_error("origin", "a Sentry symbol source rejects the configured credentials; its files are not found",
              LOG_SLSTR("source", source->id), LOG_U64("status", (uint64_t)status));
}

/* Converts an error response to SL_DOWNLOAD_ERROR with the status; refused credentials are logged. */
static enum sl_code sentry_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    const struct sentry_query *query = arg;
    if (status == 401 || status == 403)
        report_refusal(query->source, status);
    return sl_fail(error, SL_DOWNLOAD_ERROR, "%d %s", status, status_reason(status));
}

/* True if the text can be the value of a header field: printable ASCII, not empty. */
static bool is_plain_value(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return text.size > 0;
}

/* Adds the trace headers of the request that this fiber handles, if the options allow it; returns their number, 0 to 2. */
static size_t add_trace(struct fetch_header *headers)
{
    const struct fetch_header trace[] = {{SL_STR("sentry-trace"), {fiber_trace()}},
                                         {SL_STR("baggage"), {fiber_baggage()}}};
    size_t count = 0;
    for (size_t i = 0; origin_options.propagate_traces && i < sizeof trace / sizeof *trace; i++)
        if (is_plain_value(trace[i].value.hidden))
            headers[count++] = trace[i];
    return count;
}

enum sl_code sentry_request(const struct sentry_query *query, uint64_t max_size, struct sl_buf *answer,
                            struct sl_error *error)
{
    /* the credentials, the encoding, and up to two of add_trace() */
    struct fetch_header headers[4] = {*query->credentials, {SL_STR("Accept-Encoding"), {SL_STR("identity")}}};
    struct fetch_request request = {.url = query->url,
                                    .headers = headers,
                                    .header_count = 2 + add_trace(headers + 2),
                                    .trusted = query->source->internal,
                                    .source = query->label,
                                    .max_size = max_size,
                                    .timeout_ns = TIMEOUT_NS,
                                    .keep_wrapper = true, /* the response is JSON, not a compressed file */
                                    .whole = true,        /* no ranges */
                                    .refused = sentry_refused,
                                    .arg = (void *)(uintptr_t)query};
    return fetch_text(&request, answer, error);
}

/* ---- file lists ---- */

/* True if the text is not empty and has no blanks or control characters, which separate texts in cached lists ("<type> <id>\n"). */
static bool plain(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] <= ' ')
            return false;
    return text.size > 0;
}

struct sentry_file {
    struct sl_str id, type;
};

static const struct sl_field file_fields[] = {
    SL_FIELD(TEXT, false, sentry_file, id, "id"),
    SL_FIELD(TEXT, false, sentry_file, type, "symbolType"),
    SL_FIELDS_END,
};

/* Reads a file of Sentry's list and appends "<type> <id>\n" to `text`; files without id or type are skipped. */
static void add_entry(struct sl_json *j, struct sl_buf *text)
{
    struct sentry_file file = {.id = {NULL, 0}};
    if (!sl_json_read_object(j, file_fields, &file) || !plain(file.id) || !plain(file.type))
        return;
    sl_buf_str(text, file.type);
    sl_buf_u8(text, ' ');
    sl_buf_str(text, file.id);
    sl_buf_u8(text, '\n');
}

/* Converts a response to the form in which it is cached: "<type> <id>\n" for each file. Elements that lack type or id are left out.
 * SL_DOWNLOAD_ERROR if the response is not a list. */
static enum sl_code digest(const struct sentry_query *query, struct sl_str json, struct sl_buf *text,
                           struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(json, &arena, false);
    struct sl_str key;
    size_t count = 0;
    bool list = sl_json_array(&j);
    for (; list && sl_json_next(&j, &key); count++)
        add_entry(&j, text);
    bool good = sl_json_end(&j) && list, busy = j.busy;
    sl_arena_free(&arena);
    if (!good)
        return busy ? sl_fail(error, SL_BUSY, "out of memory")
                    : sl_fail(error, SL_DOWNLOAD_ERROR, "the response of Sentry is not a list of files");
    if (count >= PAGE)
        log_warn("origin", "a Sentry file list reached its size limit; files may be missing",
                 LOG_SLSTR("source", query->source->id), LOG_U64("files", count));
    return SL_OK;
}

/* Called by the cache: requests a list of files and appends "<type> <id>\n" to `text` for each; `*for_ns`: how long to cache it. */
static enum sl_code request_index(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    struct sl_buf answer = {0};
    enum sl_code code = sentry_request(context, ANSWER_MAX, &answer, error);
    if (code == SL_OK)
        code = digest(context, sl_buf_view(&answer), text, error);
    *for_ns = index_ttl_ns;
    sl_buf_free(&answer);
    return code;
}

/* ---- listing ---- */

/* Returns Sentry's name of a file type. Types that are only the code or debug files of a format have the name of the format. */
static struct sl_str sentry_type(enum file_type type)
{
    const struct file_type_row *row = &file_type_rows[type];
    return sl_str(row->part == PART_ANY ? row->word : sl_format_name(row->format));
}

/* Sets `*type` to the wanted file type that Sentry calls `name`; false if there is none. */
static bool wanted(struct sl_str name, const enum file_type *types, size_t count, enum file_type *type)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(sentry_type(types[i]), name)) {
            *type = types[i];
            return true;
        }
    return false;
}

bool sentry_add_file(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str id,
                     struct remote_file *file)
{
    struct sl_buf uri = {0};
    sl_buf_cstr(&uri, "sentry://project_debug_file/");
    sl_buf_str(&uri, id);
    *file = (struct remote_file){.source = source, .type = type, .path = id, .location = id};
    file->uri = sl_buf_move_to_arena(&uri, arena);
    return file->uri.data != NULL;
}

/* Makes a list of the files of the wanted types from a cached list. Each line of the cached list has a blank and a newline, as digest()
 * has written it. SL_BUSY when out of memory. */
static enum sl_code take_files(struct sl_str index, const struct source *source, const enum file_type *types,
                               size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                               struct sl_error *error)
{
    size_t lines = 0;
    for (size_t i = 0; i < index.size; i++)
        lines += index.data[i] == '\n';
    *files = SL_ARENA_ARRAY(arena, struct remote_file, lines ? lines : 1);
    for (size_t i = 0; *files && i < lines; i++) {
        const char *end = memchr(index.data, '\n', index.size), *blank = memchr(index.data, ' ', index.size);
        struct sl_str name = {index.data, (size_t)(blank - index.data)};
        struct sl_str id = {blank + 1, (size_t)(end - blank - 1)};
        enum file_type type;
        if (wanted(name, types, type_count, &type) && !sentry_add_file(arena, source, type, id, &(*files)[(*count)++]))
            *files = NULL;
        index.size -= (size_t)(end + 1 - index.data);
        index.data = end + 1;
    }
    return *files ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

enum sl_code sentry_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error)
{
    struct query_pair pairs[2];
    size_t pair_count = 0;
    char debug_id[SL_DEBUG_ID_TEXT];
    if (id->has_debug_id && sl_debug_id_has_uuid(&id->debug_id)) {
        sl_debug_id_format(&id->debug_id, debug_id);
        pairs[pair_count++] = (struct query_pair){"debug_id", sl_str(debug_id)};
    }
    if (id->code_id.size)
        pairs[pair_count++] = (struct query_pair){"code_id", id->code_id};
    if (pair_count == 0)
        return SL_OK; /* a query without an id would list the whole project */
    struct fetch_header header;
    struct sl_str url = sentry_url(arena, source->url, pairs, pair_count), index;
    struct sentry_query query = {source, url.data, &header, origin_label(arena, source)};
    if (!url.data || !query.label || !sentry_credentials(arena, source, &header))
        return sl_fail(error, SL_BUSY, "out of memory");
    /* "i" separates sources that may connect to reserved addresses (internal) from others */
    struct sl_str key[] = {url, header.name, header.value.hidden, source->internal ? SL_STR("i") : SL_STR("")};
    enum sl_code code = ttl_cache_get(&indexes, key, 4, request_index, &query, arena, &index, error);
    return code == SL_OK ? take_files(index, source, types, type_count, arena, files, count, error) : code;
}

/* ---- the download ---- */

/* True if the file's URL is on the host of the source and begins with the source's URL: only then its request gets the credentials. */
static bool is_sentrys(struct sl_arena *arena, const struct remote_file *file)
{
    const char *url = sl_arena_strndup(arena, file->source->url.data, file->source->url.size);
    const char *host = url ? fetch_url_host(arena, url) : NULL, *other = fetch_url_host(arena, file->url.data);
    return host && other && strcmp(host, other) == 0 && sl_str_starts(file->url, file->source->url);
}

/* Returns the URL of the file: one that Sentry gave for it, or the source's URL with the file's id. */
static const char *file_url(struct sl_arena *arena, const struct remote_file *file)
{
    struct query_pair pair = {"id", file->location};
    return file->url.size ? file->url.data : sentry_url(arena, file->source->url, &pair, 1).data;
}

/* Downloads a file that Sentry has listed. SL_BUSY when out of memory; other errors are those of fetch_get(). */
enum sl_code sentry_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    const struct source *source = file->source;
    struct fetch_header header;
    /* credentials go only to Sentry itself, not to another host that its answer named */
    bool own = !file->url.size || is_sentrys(&arena, file);
    struct fetch_request request = {.url = file_url(&arena, file),
                                    .headers = &header,
                                    .header_count = own, /* 0 or 1 */
                                    .trusted = source->internal,
                                    .source = origin_label(&arena, source),
                                    .max_size = file->max_size,
                                    .refuse_empty = !file->may_be_empty,
                                    .refuse_pages = !file->may_be_page};
    enum sl_code code = request.url && request.source && sentry_credentials(&arena, source, &header)
                            ? fetch_get(&request, fd, error)
                            : sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&arena);
    return code;
}
