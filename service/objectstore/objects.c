/* Opens stores, and makes one request for each operation on an object. */
#include "core/pool.h"
#include "objectstore/impl.h"

/* ---- stores ---- */

static const struct object_service *get_service(const struct object_store *store)
{
    return store->config->s3_name.data ? &object_s3 : &object_gcs;
}

struct sl_str bucket_key(struct sl_arena *arena, const struct bucket_config *config, struct sl_str name)
{
    struct sl_str prefix = config->prefix;
    while (prefix.size && *prefix.data == '/')
        prefix.data++, prefix.size--;
    if (!prefix.size)
        return name;
    size_t slash = !sl_str_ends(prefix, SL_STR("/")), size = prefix.size + slash + name.size;
    char *key = sl_arena_alloc(arena, size + 1, 1);
    if (!key)
        return (struct sl_str){NULL, 0};
    memcpy(key, prefix.data, prefix.size);
    key[prefix.size] = '/'; /* `name` overwrites it if the prefix ends with one */
    if (name.size)
        memcpy(key + prefix.size + slash, name.data, name.size);
    return (struct sl_str){key, size};
}

/* Checks the configuration of an S3 store; keys that are not configured come from the environment. On failure `*key` is the
 * option that is wrong. */
static enum sl_code open_s3(struct object_store *store, struct sl_arena *arena, const char **key,
                            struct sl_error *error)
{
    const struct bucket_config *config = store->config;
    struct aws_keys *keys = &store->keys;
    struct aws_signing at;
    *key = "s3";
    if (config->credentials == CREDENTIALS_STATIC && !keys->access_key.size)
        *keys = (struct aws_keys){sl_str(credentials_variable("AWS_ACCESS_KEY_ID")),
                                  sl_str(credentials_variable("AWS_SECRET_ACCESS_KEY")),
                                  sl_str(credentials_variable("AWS_SESSION_TOKEN"))};
    if (config->credentials == CREDENTIALS_STATIC && (!keys->access_key.size || !keys->secret_key.size))
        return sl_fail(error, SL_MALFORMED,
                       "no credentials: set access_key and secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                       "in the environment");
    if (aws_address(arena, config, SL_STR(""), &at)) /* only a check; requests make their own addresses */
        return SL_OK;
    *key = config->endpoint.data ? "s3.endpoint" : "s3.region";
    return sl_fail(error, SL_MALFORMED,
                   config->endpoint.data ? "not the URL of a server (example: https://s3.example.com)"
                                         : "not the name of a region (example: eu-central-1)");
}

/* Reads the service account, if one is configured or named by the environment. Without one, the machine's own account is
 * used. */
static enum sl_code open_gcs(struct object_store *store, struct sl_arena *arena, const char **key,
                             struct sl_error *error)
{
    const char *path = store->config->service_account_path.data;
    *key = "gcs.service_account_path";
    if (!path)
        path = credentials_variable("GOOGLE_APPLICATION_CREDENTIALS");
    return path && *path ? google_account_read(path, arena, &store->account, error) : SL_OK;
}

struct object_store object_store_of_source(const struct bucket_config *config, const char *label, bool is_trusted)
{
    return (struct object_store){
        .config = config,
        .label = label,
        .is_source = true,
        .is_trusted = is_trusted,
        .keys = {secret_open(config->access_key), secret_open(config->secret_key), secret_open(config->session_token)},
        .account = {secret_open(config->private_key), config->client_email, {NULL, 0}}}; /* token_url: Google's */
}

enum sl_code object_store_open(struct object_store *store, const struct bucket_config *config, const char *label,
                               struct sl_arena *arena, const char **key, struct sl_error *error)
{
    *store = object_store_of_source(config, label, true);
    store->is_source = false;
    return config->s3_name.data ? open_s3(store, arena, key, error) : open_gcs(store, arena, key, error);
}

/* Copies the keys from the store, as they may come from the environment or a file instead of its configuration. */
bool object_store_directory_config(const struct object_store *store, struct sl_arena *arena, struct sl_str directory,
                                   struct bucket_config *config)
{
    *config = *store->config;
    config->prefix = bucket_key(arena, store->config, directory);
    config->region = s3_region(store->config); /* the default if none is configured */
    config->access_key.hidden = store->keys.access_key;
    config->secret_key.hidden = store->keys.secret_key;
    config->session_token.hidden = store->keys.session_token;
    config->private_key.hidden = store->account.private_key;
    config->client_email = store->account.client_email;
    return config->prefix.data != NULL;
}

/* ---- requests ---- */

void object_header(struct bucket_request *request, const char *name, struct sl_str value)
{
    if (request->fetch.header_count < OBJECT_HEADERS)
        request->headers[request->fetch.header_count++] = (struct fetch_header){sl_str(name), {value}};
}

static bool has_part(struct sl_str text, const char *part)
{
    return text.data && text.size && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* Converts an error response. For symbol sources S3's error code decides (s3_explain). Else 404 is SL_NOT_FOUND; other statuses for which
 * another attempt would not help are SL_PERMISSION_DENIED, and the rest SL_DOWNLOAD_ERROR, which fetch retries. */
static enum sl_code object_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    const struct bucket_request *request = arg;
    struct sl_str start = {body.data, body.size < 200 ? body.size : 200};
    bool is_final = status < 500 || status == 501;
    request->call->status = status;
    request->call->is_denied = status == 403 && has_part(body, "<Code>AccessDenied</Code>");
    if (request->store->is_source)
        return s3_explain(status, body, error);
    if (status == 404)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    return sl_fail(error, is_final ? SL_PERMISSION_DENIED : SL_DOWNLOAD_ERROR,
                   "the object store responded with status %d: " SL_STR_FMT, status, SL_STR_ARG(start));
}

/* Fills in a request for the object `name`. `prepare` sets URL and credentials; if it is NULL, the caller sets them afterwards. The
 * caller must call end() even if begin() fails. */
static enum sl_code begin(struct bucket_request *request, const struct object_store *store,
                          struct object_store_call *call, struct sl_str name, object_prepare *prepare,
                          struct sl_error *error)
{
    *error = (struct sl_error){0};
    *request = (struct bucket_request){.store = store};
    request->call = call = call ? call : &request->usual;
    request->fetch = (struct fetch_request){.headers = request->headers,
                                            .trusted = store->is_trusted,
                                            .source = store->label,
                                            .max_size = call->max_size,
                                            .timeout_ns = call->timeout_ns,
                                            .attempts = call->attempts,
                                            .keep_wrapper = !call->unwrap,
                                            .whole = !store->is_source, /* no ranges */
                                            .refuse_empty = call->refuse_empty,
                                            .refuse_pages = call->refuse_pages,
                                            .refused = object_refused,
                                            .modified_s = &call->modified_s,
                                            .arg = request};
    request->key = store->is_source ? name : bucket_key(&request->arena, store->config, name);
    if (!request->key.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    return prepare ? prepare(request, error) : SL_OK;
}

/* Frees what begin() has allocated; returns `code`. */
static enum sl_code end(struct bucket_request *request, enum sl_code code)
{
    sl_arena_free(&request->arena);
    return code;
}

/* Runs the request. Without `answer` the response's body is read and dropped. Unless max_size is set, the body may have 1 MiB. */
enum sl_code object_run(struct bucket_request *request, struct sl_buf *answer, struct sl_error *error)
{
    struct sl_buf own = {0};
    if (!request->fetch.max_size)
        request->fetch.max_size = OBJECT_ANSWER_MAX;
    enum sl_code code = fetch_text(&request->fetch, answer ? answer : &own, error);
    sl_buf_free(&own);
    return code;
}

enum sl_code object_get(const struct object_store *store, struct sl_str name, int fd, struct object_store_call *call,
                        struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, call, name, get_service(store)->get, error);
    return end(&request, code == SL_OK ? fetch_get(&request.fetch, fd, error) : code);
}

enum sl_code object_get_mapped(const struct object_store *store, struct sl_str name, int fd, struct sl_mapping *mapping,
                               struct object_store_call *call, struct sl_error *error)
{
    enum sl_code code = object_get(store, name, fd, call, error);
    return code == SL_OK ? pool_map_fd(fd, mapping, error) : code;
}

enum sl_code object_read(const struct object_store *store, struct sl_str name, struct sl_buf *text,
                         struct object_store_call *call, struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, call, name, get_service(store)->get, error);
    if (code == SL_OK)
        code = object_run(&request, text, error);
    return end(&request, code == SL_OK && text->failed ? sl_fail(error, SL_BUSY, "out of memory") : code);
}

/* The request limits the size of the response. SL_MALFORMED without an error status means that the response was larger, so the object
 * exists. */
enum sl_code object_exists(const struct object_store *store, struct sl_str name, struct object_store_call *call,
                           struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, call, name, get_service(store)->exists, error);
    if (code == SL_OK)
        code = object_run(&request, NULL, error);
    bool is_too_large = code == SL_MALFORMED && !request.call->status;
    return end(&request, is_too_large ? SL_OK : code);
}

void object_set_metadata(struct bucket_request *request, struct sl_str name, struct sl_str value)
{
    for (size_t i = 0; i < request->metadata_count; i++)
        if (sl_str_equal_nocase(name, sl_str(request->metadata[i].name)))
            request->metadata[i].value =
                (struct sl_str){sl_arena_strndup(request->texts, value.data, value.size), value.size};
}

enum sl_code object_head(const struct object_store *store, struct sl_str name, struct sl_arena *arena,
                         struct object_info *info, struct object_field *metadata, size_t metadata_count,
                         struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, NULL, name, NULL, error);
    *info = (struct object_info){0};
    request.info = info;
    request.metadata = metadata;
    request.metadata_count = metadata_count;
    request.texts = arena;
    if (code == SL_OK)
        code = get_service(store)->head(&request, error);
    return end(&request, code);
}

/* SL_NOT_FOUND for an upload means that the bucket does not exist: an error of the configuration, not a missing object. */
enum sl_code object_put(const struct object_store *store, struct sl_str name, const struct object_contents *contents,
                        struct object_store_call *call, struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, call, name, NULL, error);
    if (code == SL_OK)
        code = get_service(store)->put(&request, contents, error);
    if (code == SL_NOT_FOUND)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "%s", object_no_bucket);
    return end(&request, code);
}

enum sl_code object_put_file(const struct object_store *store, struct sl_str name, int fd,
                             struct object_contents contents, struct object_store_call *call, struct sl_error *error)
{
    struct sl_mapping mapping;
    enum sl_code code = pool_map_fd(fd, &mapping, error);
    if (code != SL_OK)
        return code;
    contents.bytes = mapping.bytes;
    code = object_put(store, name, &contents, call, error);
    pool_unmap(&mapping);
    return code;
}

enum sl_code object_delete(const struct object_store *store, struct sl_str name, struct object_store_call *call,
                           struct sl_error *error)
{
    struct bucket_request request;
    enum sl_code code = begin(&request, store, call, name, get_service(store)->del, error);
    if (code == SL_OK)
        code = object_run(&request, NULL, error);
    return end(&request, code == SL_NOT_FOUND ? SL_OK : code);
}

/* ---- lists ---- */

bool object_list_add(struct object_list *list, struct sl_str name, struct sl_str modified)
{
    if (!sl_str_starts(name, list->skipped))
        return true;
    if (list->count == MAX_LISTED_OBJECTS) {
        list->more = true;
        return false;
    }
    name = (struct sl_str){name.data + list->skipped.size, name.size - list->skipped.size};
    struct object_entry *entry = &list->items[list->count];
    entry->name = (struct sl_str){sl_arena_strndup(&list->arena, name.data, name.size), name.size};
    entry->modified = (struct sl_str){sl_arena_strndup(&list->arena, modified.data ? modified.data : "", modified.size),
                                      modified.size};
    list->failed |= !entry->name.data || !entry->modified.data;
    list->count += !list->failed;
    return !list->failed;
}

enum sl_code object_list(const struct object_store *store, struct sl_str prefix, struct sl_str after,
                         struct object_list *list, struct sl_error *error)
{
    struct bucket_request request;
    struct object_store_call call = {.max_size = OBJECT_LIST_BYTES};
    struct sl_str last = {"", 0}; /* `after` with the bucket's prefix */
    *list = (struct object_list){.count = 0};
    list->skipped =
        bucket_key(&list->arena, store->config, SL_STR("")); /* the bucket's prefix: not part of listed names */
    enum sl_code code = begin(&request, store, &call, prefix, NULL, error);
    if (after.size)
        last = bucket_key(&request.arena, store->config, after);
    if (code == SL_OK && (!last.data || !list->skipped.data))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = get_service(store)->list(&request, last, list, error);
    if (code == SL_NOT_FOUND)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "%s", object_no_bucket);
    if (code == SL_OK && list->failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        object_list_free(list);
    return end(&request, code);
}

void object_list_free(struct object_list *list)
{
    sl_arena_free(&list->arena);
    list->count = 0;
}
