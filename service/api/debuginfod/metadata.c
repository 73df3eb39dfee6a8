/* GET /metadata?key=file|glob&value=PATH: lists the build ids of files that are installed under a path, as newer debuginfod clients ask for
 * them. The files are those in scanned packages, those that were uploaded, and those that the configured debuginfod servers (upstreams)
 * list. */
#include <stdio.h>

#include "api/debuginfod/debuginfod.h"
#include "core/loop.h"
#include "debug_file_store/names.h"
#include "fetch/fetch.h"
#include "scan/scan.h"

enum {
    MAX_RESULTS = 10000,
    MAX_VALUE = 4096,
    MAX_UPSTREAM = 16 << 20, /* bytes of an upstream's answer */
};

struct metadata_request {
    struct http_exchange *x;
    struct sl_str key, value; /* of the query: "file" or "glob", and the path or pattern */
    struct sl_json_writer *w; /* writes the answer; inside the array `results` while results are added */
    size_t count;             /* results written */
    bool complete;            /* the list has all results */
    uint64_t end_ns;          /* when the search must end, by clock_mono_ns() */
};

/* ---- scanned packages and uploads ---- */

/* Begins the JSON object of a result: type and build id. */
static void begin_result(struct metadata_request *r, const struct sl_index_id *id, bool is_executable)
{
    char hex[2 * SL_INDEX_ID_BYTES + 1];
    sl_hex_encode(id->bytes, id->size, hex);
    sl_json_begin_object(r->w);
    sl_json_member_str(r->w, "type", is_executable ? SL_STR("executable") : SL_STR("debuginfo"));
    sl_json_member_str(r->w, "buildid", sl_str(hex));
}

/* Writes the result for a file of a scanned package. */
static void write_scanned(struct metadata_request *r, const struct scan_named_file *file)
{
    begin_result(r, &file->id, file->is_executable);
    sl_json_member_str(r->w, "file", file->path);
    if (file->package.size)
        sl_json_member_str(r->w, "archive", file->package);
    sl_json_end_object(r->w);
    r->count++;
}

/* Adds the files of scanned packages. Sets r->complete: false if the search was ended by the deadline or has too many results. */
static enum sl_code add_scanned(struct metadata_request *r, struct sl_error *error)
{
    struct scan_named_file *files;
    size_t count;
    struct scan_name_query query = {.pattern = r->value,
                                    .is_glob = sl_str_equal(r->key, SL_STR("glob")),
                                    .max_count = MAX_RESULTS,
                                    .max_ns = r->end_ns - clock_mono_ns()};
    enum sl_code code = scan_find_by_name(&query, &r->x->arena, &files, &count, &r->complete, error);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        write_scanned(r, &files[i]);
    return code;
}

/* Adds the uploaded files with build ids, ELF and WASM. Only their base names are known, so the path in the result is "/" and that name.
 * False if there may be more such files. */
static bool add_uploaded(struct metadata_request *r)
{
    struct uploaded_files found;
    struct uploaded_name_query query = {.pattern = r->value,
                                        .is_glob = sl_str_equal(r->key, SL_STR("glob")),
                                        .max_count = MAX_RESULTS - r->count,
                                        .end_ns = r->end_ns};
    uploaded_files_by_name(&query, &r->x->arena, &found);
    for (size_t i = 0; i < found.count; i++) {
        const struct uploaded_file *file = &found.items[i];
        if (file->id.type != SL_INDEX_CODE_ID || (file->format != SL_FORMAT_ELF && file->format != SL_FORMAT_WASM))
            continue;
        if (file->id.size > SL_INDEX_ID_BYTES) { /* the index has only the beginning of such an id */
            found.complete = false;
            continue;
        }
        begin_result(r, &file->id, file->is_executable);
        struct sl_buf path = {0};
        sl_buf_u8(&path, '/');
        sl_buf_str(&path, file->name);
        sl_json_member_str(r->w, "file", sl_buf_view(&path));
        sl_json_end_object(r->w);
        found.complete = found.complete && !path.failed;
        sl_buf_free(&path);
        r->count++;
    }
    return found.complete;
}

/* ---- other servers ---- */

/* Copies one result of an upstream: of its members, only the texts `type`, `buildid`, `file` and `archive`. A result without one of the
 * first three is left out, and so are all results beyond MAX_RESULTS. False if the JSON is malformed. */
static bool copy_result(struct metadata_request *r, struct sl_json *j)
{
    static const char *const names[] = {"type", "buildid", "file", "archive"};
    struct sl_str key, texts[4] = {{NULL, 0}}, text;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key))
        for (size_t i = 0;; i++) {
            if (i == 4) {
                sl_json_skip(j);
                break;
            }
            if (sl_str_equal(key, sl_str(names[i]))) {
                if (sl_json_text(j, &text))
                    texts[i] = text;
                break;
            }
        }
    if (j->failed || !texts[0].data || !texts[1].data || !texts[2].data || r->count >= MAX_RESULTS)
        return !j->failed;
    sl_json_begin_object(r->w);
    for (size_t i = 0; i < 4; i++)
        if (texts[i].data)
            sl_json_member_str(r->w, names[i], texts[i]);
    sl_json_end_object(r->w);
    r->count++;
    return true;
}

/* Copies the results of an upstream's answer {"results":[..],"complete":b}. False if the list is not complete: because the answer is
 * malformed, has no `complete` or says false, or because there are too many results. */
static bool copy_answer(struct metadata_request *r, struct sl_str answer)
{
    struct sl_json j = sl_json(answer, &r->x->arena, false);
    struct sl_str key;
    bool complete = false;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key)) {
            if (sl_str_equal(key, SL_STR("results")) && sl_json_array(&j)) {
                while (sl_json_next(&j, &key) && copy_result(r, &j))
                    continue;
            } else if (sl_str_equal(key, SL_STR("complete"))) {
                sl_json_bool(&j, &complete);
            } else if (!j.failed) {
                sl_json_skip(&j);
            }
        }
    return sl_json_end(&j) && complete && r->count < MAX_RESULTS;
}

struct answer_copy { /* argument of copy_on_pool() */
    struct metadata_request *request;
    struct sl_str answer;
    bool is_complete;
};

static void copy_on_pool(void *arg)
{
    struct answer_copy *copy = arg;
    copy->is_complete = copy_answer(copy->request, copy->answer);
}

/* Returns the URL of the same query at an upstream; NULL when out of memory. */
static const char *upstream_url(struct metadata_request *r, const struct source *source)
{
    struct sl_buf url = {0};
    struct sl_str base = source->url;
    while (sl_str_ends(base, SL_STR("/")))
        base.size--;
    sl_buf_str(&url, base);
    sl_buf_cstr(&url, "/metadata?key=");
    fetch_encode(&url, r->key, false);
    sl_buf_cstr(&url, "&value=");
    fetch_encode(&url, r->value, false);
    return sl_buf_move_to_arena(&url, &r->x->arena).data;
}

/* Asks an upstream and adds its results. If it fails or is too slow, r->complete becomes false. */
static void ask_upstream(struct metadata_request *r, const struct source *source,
                         const struct debuginfod_forwarding *forwarding)
{
    struct sl_buf answer = {0};
    struct sl_error error;
    uint64_t now_ns = clock_mono_ns();
    const char *url = upstream_url(r, source), *label = origin_label(&r->x->arena, source);
    struct fetch_header *headers = SL_ARENA_ARRAY(&r->x->arena, struct fetch_header, source->header_count + 2);
    if (!url || !label || !headers || now_ns >= r->end_ns) {
        r->complete = false;
        return;
    }
    for (size_t i = 0; i < source->header_count; i++)
        headers[i] = source->headers[i];
    headers[source->header_count] = (struct fetch_header){SL_STR("X-Forwarded-For"), {forwarding->forwarded_for}};
    headers[source->header_count + 1] = (struct fetch_header){SL_STR("Via"), {forwarding->via}};
    struct fetch_request request = {.url = url,
                                    .headers = headers,
                                    .header_count = source->header_count + 2,
                                    .trusted_host = source->configured, /* may be in the private network */
                                    .accept_invalid_certs = source->accept_invalid_certs,
                                    .source = label,
                                    .max_size = MAX_UPSTREAM,
                                    .timeout_ns = r->end_ns - now_ns,
                                    .attempts = 1,
                                    .whole = true}; /* no range requests */
    enum sl_code code = fetch_text(&request, &answer, &error);
    struct answer_copy copy = {.request = r, .answer = sl_buf_view(&answer)};
    if (code == SL_OK)
        r->complete = pool_run(POOL_JSON, copy_on_pool, &copy, &error) == SL_OK && copy.is_complete && r->complete;
    else if (code != SL_NOT_FOUND) /* 404: debuginfod before 0.192 has no such route, so nothing is missing */
        r->complete = false;
    sl_buf_free(&answer);
}

/* Asks the configured debuginfod servers one after the other. Once the list is not complete, no further ones are asked. */
static void add_upstream(struct metadata_request *r, const struct config *config)
{
    struct debuginfod_forwarding forwarding;
    debuginfod_read_forwarding(r->x, config, &forwarding);
    r->complete = r->complete && forwarding.forwarded_for.data && forwarding.via.data;
    for (size_t i = 0; r->complete && !forwarding.skips_upstreams && i < config->source_count && !fiber_cancelled();
         i++)
        if (config->sources[i].type == SOURCE_HTTP && config->sources[i].layout == LAYOUT_DEBUGINFOD)
            ask_upstream(r, &config->sources[i], &forwarding);
}

/* ---- the answer ---- */

/* Reads the query. False if it is malformed: 400 is answered. */
static bool read_request(struct metadata_request *r)
{
    r->key = http_query(r->x, "key");
    r->value = http_query(r->x, "value");
    if (!sl_str_equal(r->key, SL_STR("file")) && !sl_str_equal(r->key, SL_STR("glob")))
        http_reply_detail(r->x, 400, "key must be file or glob", NULL);
    else if (!r->value.size || r->value.size > MAX_VALUE)
        http_reply_detail(r->x, 400, "value must be the path of an installed file, of at most 4096 bytes", NULL);
    else
        return true;
    return false;
}

/* Handler of GET /metadata. If results cannot be obtained the answer is still a list, with "complete": false. */
static void metadata_handle(struct http_exchange *x)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    struct sl_error error;
    struct metadata_request r = {.x = x, .w = &w, .end_ns = clock_mono_ns() + config->scan.metadata_time_ns};
    if (read_request(&r)) {
        sl_json_begin_object(&w);
        sl_json_member_array(&w, "results");
        if (add_scanned(&r, &error) == SL_OK) {
            bool all_uploads = add_uploaded(&r);
            add_upstream(&r, config);
            r.complete = r.complete && all_uploads;
        } else { /* the list lacks the scanned packages anyway: nothing else is asked */
            r.complete = false;
        }
        sl_json_end_array(&w);
        sl_json_member_boolean(&w, "complete", r.complete);
        sl_json_end_object(&w);
        http_reply_json(x, 200, &body);
    }
    sl_buf_free(&body);
    config_release(config);
}

static const struct http_route routes[] = {
    {.method = "GET",
     .pattern = "/metadata",
     .handler = metadata_handle,
     .takes_work = true,
     .rights = API_RIGHT("debuginfod")},
    {.method = NULL},
};

const struct http_family family_metadata = {
    .routes = routes, .group = "debuginfod", .enabled = debuginfod_is_enabled, .prefix = debuginfod_path_prefix};
