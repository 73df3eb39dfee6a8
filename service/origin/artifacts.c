/* Requests and parses Sentry's lists of artifacts of JavaScript releases. */
#include "origin/artifacts.h"

#include "base/json_fields.h"
#include "origin/impl.h"

enum { ANSWER_MAX = 16 << 20, URL_MAX = 65534, OTHER_PAIRS = 2 /* release and dist */ };

static struct ttl_cache answers = {.capacity = 100000, .name = "artifacts"};
static uint64_t answer_ttl_ns = UINT64_C(3600000000000);

static const char *const match_names[] = {
    [MATCH_UNKNOWN] = "unknown",   [MATCH_DEBUG_ID] = "debug-id", [MATCH_URL] = "url",
    [MATCH_INDEX] = "index",       [MATCH_RELEASE] = "release",   [MATCH_RELEASE_OLD] = "release-old",
    [MATCH_FROM_WEB] = "scraping",
};
enum { MATCHES = sizeof match_names / sizeof *match_names };

const char *artifact_match_name(enum artifact_match match)
{
    return match_names[match];
}

void artifacts_init(size_t capacity, uint64_t ttl_ns)
{
    ttl_cache_resize(&answers, capacity);
    answer_ttl_ns = ttl_ns;
}

void artifacts_clear_cache(void)
{
    ttl_cache_expire(&answers);
}

/* ---- the request ---- */

/* Makes the URL of an artifact lookup; data NULL, with the error set, if it is too long or memory is short. The names of files (stems) are
 * only sent together with a release, which they belong to. */
static struct sl_str artifact_url(const struct source *source, const struct artifact_query *query,
                                  struct sl_arena *arena, struct sl_error *error)
{
    size_t most = query->stem_count + query->debug_id_count + OTHER_PAIRS, count = 0;
    struct query_pair *pairs = SL_ARENA_ARRAY(arena, struct query_pair, most);
    char(*ids)[SL_DEBUG_ID_TEXT] =
        sl_arena_zalloc(arena, query->debug_id_count + 1, SL_DEBUG_ID_TEXT); /* never empty */
    struct sl_str url = {NULL, 0};
    if (pairs && ids) {
        if (query->release.size)
            pairs[count++] = (struct query_pair){"release", query->release};
        for (size_t i = 0; query->release.size && i < query->stem_count; i++)
            pairs[count++] = (struct query_pair){"url", query->stems[i]};
        if (query->dist.size)
            pairs[count++] = (struct query_pair){"dist", query->dist};
        for (size_t i = 0; i < query->debug_id_count; i++) {
            sl_debug_id_format(&query->debug_ids[i], ids[i]);
            pairs[count++] = (struct query_pair){"debug_id", sl_str(ids[i])};
        }
        url = sentry_url(arena, source->url, pairs, count);
    }
    if (!url.data)
        sl_fail(error, SL_BUSY, "out of memory");
    else if (url.size > URL_MAX)
        sl_fail(error, SL_DOWNLOAD_ERROR,
                "the URL of the artifact lookup is too long: %zu bytes, at most %d can be sent", url.size, URL_MAX);
    return url.size <= URL_MAX ? url : (struct sl_str){NULL, 0};
}

static enum sl_code request_artifacts(const void *context, struct sl_buf *text, uint64_t *for_ns,
                                      struct sl_error *error)
{
    *for_ns = answer_ttl_ns;
    return sentry_request(context, ANSWER_MAX, text, error);
}

/* ---- the response ---- */

/* Parses the word by which Sentry says how it found an artifact; MATCH_UNKNOWN for others. "scraping" (MATCH_FROM_WEB) is a word of this
 * service, not of Sentry. */
static enum artifact_match get_match(struct sl_str name)
{
    for (size_t i = 0; i < MATCHES; i++)
        if (i != MATCH_FROM_WEB && sl_str_equal(name, sl_str(match_names[i])))
            return (enum artifact_match)i;
    return MATCH_UNKNOWN;
}

/* Takes the name of the source map from the artifact's headers; SourceMap precedes the older X-SourceMap. Headers that are no text are
 * skipped. False when out of memory. */
static bool read_artifact_headers(struct sl_str text, struct sl_arena *arena, struct artifact *artifact)
{
    struct sl_json j = sl_json(text, arena, false);
    struct sl_str name, value, other = {NULL, 0};
    if (!text.data)
        return true;
    sl_json_enter(&j);
    while (sl_json_next(&j, &name)) {
        artifact->has_headers = true;
        if (!sl_json_text(&j, &value))
            continue;
        if (sl_str_equal_nocase(name, SL_STR("sourcemap")))
            artifact->sourcemap = value;
        else if (sl_str_equal_nocase(name, SL_STR("x-sourcemap")))
            other = value;
    }
    if (!artifact->sourcemap.data)
        artifact->sourcemap = other;
    return !j.failed;
}

struct artifact_texts {
    struct sl_str type, id, url, path, match, headers; /* `headers`: JSON text */
};

static const struct sl_field artifact_fields[] = {
    SL_FIELD(TEXT, false, artifact_texts, type, "type"),
    SL_FIELD(TEXT, false, artifact_texts, id, "id"),
    SL_FIELD(TEXT, false, artifact_texts, url, "url"),
    SL_FIELD(TEXT, false, artifact_texts, path, "abs_path"),
    SL_FIELD(TEXT, false, artifact_texts, match, "resolved_with"),
    SL_FIELD_AS_IS(OBJECT, false, artifact_texts, headers, "headers"),
    SL_FIELDS_END,
};

static bool is_artifact_text(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] < ' ')
            return false;
    return text.size > 0;
}

/* Sets `*artifact` from the members of an element of the list. False if the element is not a valid artifact; also when out of memory,
 * which sets `*no_memory`. Single files, such as scripts, may be empty or HTML; bundles may not. */
static bool make_artifact(const struct source *source, const struct artifact_texts *texts, struct sl_arena *arena,
                          struct artifact *artifact, bool *no_memory)
{
    *artifact = (struct artifact){.is_bundle = sl_str_equal(texts->type, SL_STR("bundle")), .abs_path = texts->path};
    bool known = artifact->is_bundle || (sl_str_equal(texts->type, SL_STR("file")) && artifact->abs_path.data);
    if (!known || !is_artifact_text(texts->id) || !is_artifact_text(texts->url))
        return false;
    const char *url = sl_arena_strndup(arena, texts->url.data, texts->url.size);
    /* FILE_SOURCEBUNDLE: also for single files, which have no type of their own */
    *no_memory |= !url || !sentry_add_file(arena, source, FILE_SOURCEBUNDLE, texts->id, &artifact->file) ||
                  !read_artifact_headers(texts->headers, arena, artifact);
    if (*no_memory || !fetch_url_valid(url))
        return false;
    artifact->file.url = (struct sl_str){url, texts->url.size};
    artifact->file.may_be_empty = artifact->file.may_be_page = !artifact->is_bundle;
    artifact->match = get_match(texts->match);
    return true;
}

/* Reads the list of artifacts; elements that are not valid are skipped. */
enum sl_code artifacts_read(struct sl_str answer, const struct source *source, struct sl_arena *arena,
                            struct artifact **items, size_t *count, struct sl_error *error)
{
    struct sl_json j = sl_json(answer, arena, false);
    struct sl_arena_array list = {.arena = arena, .item = sizeof **items};
    struct sl_str key;
    bool is_list = sl_json_array(&j), no_memory = false;
    while (is_list && sl_json_next(&j, &key)) {
        struct artifact_texts texts = {.type = {NULL, 0}};
        struct artifact read, *kept;
        if (!sl_json_read_object(&j, artifact_fields, &texts) ||
            !make_artifact(source, &texts, arena, &read, &no_memory))
            continue;
        kept = sl_arena_array_add(&list);
        no_memory |= !kept;
        if (kept)
            *kept = read;
    }
    bool good = sl_json_end(&j) && is_list;
    *count = list.count;
    *items = no_memory ? NULL : sl_arena_array_finish(&list);
    sl_arena_array_discard(&list);
    if (!*items || j.busy)
        return sl_fail(error, SL_BUSY, "out of memory");
    return good ? SL_OK : sl_fail(error, SL_DOWNLOAD_ERROR, "the response of Sentry is not a list of artifacts");
}

enum sl_code origin_artifacts(const struct source *source, const struct artifact_query *query, struct sl_arena *arena,
                              struct artifact **items, size_t *count, struct sl_error *error)
{
    struct fetch_header header;
    struct sl_str text;
    *items = NULL;
    *count = 0;
    if (!query->debug_id_count && (!query->release.size || !query->stem_count))
        return SL_OK;
    struct sl_error why = {.code = SL_OK};
    struct sl_str url = artifact_url(source, query, arena, &why);
    if (!url.data)
        return sl_fail(error, why.code, "%s", why.message);
    struct sentry_query sentry_query = {source, url.data, &header, origin_label(arena, source)};
    if (!sentry_query.label || !sentry_credentials(arena, source, &header))
        return sl_fail(error, SL_BUSY, "out of memory");
    /* "i" separates sources that may connect to reserved addresses (internal) from others */
    struct sl_str key[] = {url, header.name, header.value.hidden, source->internal ? SL_STR("i") : SL_STR("")};
    enum sl_code code = ttl_cache_get(&answers, key, 4, request_artifacts, &sentry_query, arena, &text, error);
    return code == SL_OK ? artifacts_read(text, source, arena, items, count, error) : code;
}
