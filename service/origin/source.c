/* Reads the descriptions of symbol sources, in the configuration (YAML) and in requests (JSON). */
#include "origin/origin.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct source_schema_reader {
    struct sl_arena *arena;
    const struct source_policy *policy;
    struct value_problems *problems;
    const struct value *map; /* the current object */
    const char *path;        /* path of `map` */
    bool *no_memory;         /* set when out of memory: the source then lacks a part and must not be used */
};

/* Returns a number that no other list of sources has; it identifies the list in the cache of searches. */
uint64_t source_list_number(void)
{
    static atomic_ullong last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* Returns "<path>.<key>", the path of a key in messages; only the key when out of memory. */
static const char *source_join(struct source_schema_reader *r, const char *key)
{
    size_t path = strlen(r->path), name = strlen(key);
    char *text = sl_arena_alloc(r->arena, path + name + 2, 1);
    if (!text)
        return key;
    memcpy(text, r->path, path);
    text[path] = '.';
    memcpy(text + path + 1, key, name + 1);
    return text;
}

#define BAD(r, at, key, ...)                                                                                           \
    value_problem((r)->problems, (at) ? (at) : (r)->map, false, source_join((r), (key)), __VA_ARGS__)

/* Returns the type of a value as messages name it. */
static const char *type_word(const struct value *v)
{
    static const char *const words[] = {
        [VALUE_NULL] = "null",       [VALUE_BOOL] = "a boolean",  [VALUE_INT] = "an integer",
        [VALUE_DOUBLE] = "a number", [VALUE_STRING] = "a string", [VALUE_LIST] = "a list",
        [VALUE_MAP] = "an object"};
    return words[v->type];
}

/* ---- plain keys ---- */

/* Reads a string; returns true if it is present and valid, else leaves `*out` unchanged. */
static bool source_read_string(struct source_schema_reader *r, const char *key, bool required, struct sl_str *out)
{
    const struct value *v = value_get(r->map, key);
    if (!v) {
        if (required)
            BAD(r, v, key, "missing field `%s`", key);
        return false;
    }
    if (v->type != VALUE_STRING) {
        BAD(r, v, key, "expected a string, found %s", type_word(v));
        return false;
    }
    *out = v->string;
    return true;
}

/* Reads a boolean into `*out`. If the key is missing, `*out` keeps its default; also if the value has another type, which is reported. */
static void read_bool(struct source_schema_reader *r, const char *key, bool *out)
{
    const struct value *v = value_get(r->map, key);
    if (v && v->type != VALUE_BOOL)
        BAD(r, v, key, "expected a boolean, found %s", type_word(v));
    else if (v)
        *out = v->boolean;
}

/* Returns the value of a key; NULL if the key is missing. A value of another type is reported, and the result is NULL. `word`: how
 * messages call the type. */
static const struct value *read_typed(struct source_schema_reader *r, const char *key, enum value_type type,
                                      const char *word)
{
    const struct value *v = value_get(r->map, key);
    if (v && v->type != type) {
        BAD(r, v, key, "expected %s, found %s", word, type_word(v));
        return NULL;
    }
    return v;
}

/* Reports an unknown word with the list of valid words, which ends with NULL. */
static void bad_word(struct source_schema_reader *r, const struct value *v, const char *key, const char *what,
                     const char *const *words)
{
    struct sl_buf list = {0};
    for (const char *const *word = words; *word; word++)
        sl_buf_printf(&list, "%s%s", word == words ? "" : ", ", *word);
    BAD(r, v, key, "unknown %s `" SL_STR_FMT "`, expected one of " SL_STR_FMT, what, SL_STR_ARG(v->string),
        SL_STR_ARG(sl_buf_view(&list)));
    sl_buf_free(&list);
}

/* Reads a string that must be one of the words (ends with NULL) and sets `*out` to its index. False, with `*out` unchanged, if the key is
 * missing, or has another value, which is reported. */
static bool read_choice(struct source_schema_reader *r, const char *key, const char *const *words, int *out)
{
    struct sl_str text;
    if (!source_read_string(r, key, false, &text))
        return false;
    for (int i = 0; words[i]; i++)
        if (sl_str_equal(text, sl_str(words[i]))) {
            *out = i;
            return true;
        }
    bad_word(r, value_get(r->map, key), key, "value", words);
    return false;
}

/* Reads a secret; true if it is there. Secrets are text that is never logged or shown. */
static bool read_secret(struct source_schema_reader *r, const char *key, struct sl_secret *out)
{
    struct sl_str text;
    if (!source_read_string(r, key, false, &text))
        return false;
    out->hidden = text;
    return true;
}

/* Reads the URL. Configurations are stricter: only http and https can work; in requests another scheme just finds nothing. */
static void read_url(struct source_schema_reader *r, struct sl_str *out)
{
    if (!source_read_string(r, "url", true, out))
        return;
    const char *text = sl_arena_strndup(r->arena, out->data, out->size);
    if (!text)
        *r->no_memory = true;
    else if (strlen(text) != out->size || !fetch_url_valid(text))
        BAD(r, value_get(r->map, "url"), "url", "invalid URL");
    else if (r->policy->configuration && strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        BAD(r, value_get(r->map, "url"), "url", "only http and https can be asked");
}

/* ---- common keys ---- */

/* Warns about an empty filter list: it excludes nothing, although a reader may expect that it excludes everything. */
static void warn_empty(struct source_schema_reader *r, const struct value *list, const char *key)
{
    if (list && !list->count && r->policy->configuration)
        value_problem(r->problems, list, true, source_join(r, key), "the list is empty, which excludes nothing");
}

/* Reads `filters`: which files this source is asked for. */
static void read_filters(struct source_schema_reader *outer, struct source *source)
{
    const struct value *map = read_typed(outer, "filters", VALUE_MAP, "an object");
    if (!map)
        return;
    struct source_schema_reader r = *outer;
    r.path = source_join(outer, "filters");
    r.map = map;
    read_bool(&r, "requires_checksum", &source->requires_checksum);
    const struct value *types = read_typed(&r, "filetypes", VALUE_LIST, "a list");
    warn_empty(&r, types, "filetypes");
    const char *words[FILE_TYPES + 1] = {NULL};
    for (size_t i = 0; i < FILE_TYPES; i++)
        words[i] = file_type_name((enum file_type)i);
    for (size_t i = 0; types && i < types->count; i++) {
        enum file_type type;
        const struct value *v = &types->items[i];
        if (v->type != VALUE_STRING || !file_type_parse(v->string, &type))
            bad_word(&r, v, "filetypes", "file type", words);
        else
            source->filetypes |= 1u << type;
    }
    const struct value *globs = read_typed(&r, "path_patterns", VALUE_LIST, "a list");
    warn_empty(&r, globs, "path_patterns");
    if (!globs)
        return;
    source->path_patterns = SL_ARENA_ARRAY(r.arena, struct sl_str, globs->count + 1);
    *r.no_memory |= !source->path_patterns;
    for (size_t i = 0; source->path_patterns && i < globs->count; i++) {
        const struct value *v = &globs->items[i];
        if (v->type != VALUE_STRING || !origin_glob_valid(v->string))
            BAD(&r, v, "path_patterns", "invalid pattern `" SL_STR_FMT "`", SL_STR_ARG(v->string));
        else
            source->path_patterns[source->path_pattern_count++] = v->string;
    }
}

/* Reads `layout`: type and casing. */
static void read_layout(struct source_schema_reader *outer, struct source *source)
{
    static const char *const casings[] = {"default", "lowercase", "uppercase", "insensitive",
                                          NULL}; /* enum layout_casing */
    const struct value *map = read_typed(outer, "layout", VALUE_MAP, "an object");
    if (!map)
        return;
    struct source_schema_reader r = *outer;
    r.path = source_join(outer, "layout");
    r.map = map;
    int choice;
    if (read_choice(&r, "type", layout_type_words, &choice))
        source->layout = (enum layout_type)choice;
    if (read_choice(&r, "casing", casings, &choice))
        source->casing = (enum layout_casing)choice;
    if (source->casing == CASING_INSENSITIVE && source->type != SOURCE_FILESYSTEM)
        BAD(&r, value_get(r.map, "casing"), "casing", "only directories (`filesystem`) can be searched in any case");
}

/* ---- the types ---- */

/* Reads a text that must not be empty in configurations; in requests it may be, and then nothing is found. */
static void read_some(struct source_schema_reader *r, const char *key, struct sl_str *out)
{
    if (source_read_string(r, key, true, out) && !out->size && r->policy->configuration)
        BAD(r, value_get(r->map, key), key, "the text is empty");
}

static void read_filesystem(struct source_schema_reader *r, struct source *source)
{
    if (!r->policy->filesystem)
        BAD(r, value_get(r->map, "type"), "type",
            "filesystem sources are refused in requests (allow_filesystem_sources_in_requests)");
    read_some(r, "path", &source->path);
}

static int source_by_name(const void *a, const void *b)
{
    return sl_str_compare(((const struct fetch_header *)a)->name, ((const struct fetch_header *)b)->name);
}

/* Reads the key `cookies` and adds it as header field Cookie; reports it if the key `headers` has one, too. */
static void read_cookies(struct source_schema_reader *r, struct source *source)
{
    struct sl_secret cookies;
    if (!read_secret(r, "cookies", &cookies))
        return;
    for (size_t i = 0; i < source->header_count; i++)
        if (sl_str_equal_nocase(source->headers[i].name, SL_STR("cookie"))) {
            BAD(r, value_get(r->map, "cookies"), "cookies", "`headers` has a Cookie too");
            return;
        }
    source->headers[source->header_count++] = (struct fetch_header){SL_STR("Cookie"), cookies};
}

/* Reads a web server, with its header fields sorted by name. */
static void read_http(struct source_schema_reader *r, struct source *source)
{
    read_url(r, &source->url);
    read_bool(r, "accept_invalid_certs", &source->accept_invalid_certs);
    const struct value *map = read_typed(r, "headers", VALUE_MAP, "an object");
    size_t count = map ? map->count : 0;
    if (!count && !value_get(r->map, "cookies"))
        return;
    source->headers = SL_ARENA_ARRAY(r->arena, struct fetch_header, count + 1); /* 1: Cookie */
    for (size_t i = 0; source->headers && i < count; i++) {
        if (map->items[i].type != VALUE_STRING)
            BAD(r, &map->items[i], "headers", "expected a string, found %s", type_word(&map->items[i]));
        else
            source->headers[source->header_count++] = (struct fetch_header){map->keys[i], {map->items[i].string}};
    }
    if (!source->headers) {
        *r->no_memory = true;
        return;
    }
    read_cookies(r, source);
    qsort(source->headers, source->header_count, sizeof *source->headers, source_by_name);
}

/* Reads the region: its name, or a list of a name and the endpoint of a server that is not Amazon's. */
static void read_region(struct source_schema_reader *r, struct source *source)
{
    const struct value *v = value_get(r->map, "region");
    if (!v)
        BAD(r, v, "region", "missing field `region`");
    else if (v->type == VALUE_STRING)
        source->bucket.region = v->string;
    else if (v->type == VALUE_LIST && v->count == 2 && v->items[0].type == VALUE_STRING &&
             v->items[1].type == VALUE_STRING)
        source->bucket.region = v->items[0].string, source->bucket.endpoint = v->items[1].string;
    else
        BAD(r, v, "region", "expected a region name or a list of name and endpoint");
}

/* Reads name and prefix of a bucket; slashes around the prefix are dropped. */
static void read_bucket(struct source_schema_reader *r, struct sl_str *name, struct sl_str *prefix)
{
    read_some(r, "bucket", name);
    source_read_string(r, "prefix", false, prefix);
    while (prefix->size && prefix->data[0] == '/')
        prefix->data++, prefix->size--;
    while (prefix->size && prefix->data[prefix->size - 1] == '/')
        prefix->size--;
}

/* Reads an S3 bucket. Requests may only use keys that they send, unless the configuration allows those of the machine. */
static void read_s3(struct source_schema_reader *r, struct source *source)
{
    read_bucket(r, &source->bucket.s3_name, &source->bucket.prefix);
    read_region(r, source);
    read_choice(r, "aws_credentials_provider", aws_credentials_words, &source->bucket.credentials);
    if (source->bucket.credentials != CREDENTIALS_STATIC && !r->policy->ambient_credentials)
        BAD(r, value_get(r->map, "aws_credentials_provider"), "aws_credentials_provider",
            "only static credentials are accepted in requests (allow_ambient_credentials_in_requests)");
    read_secret(r, "access_key", &source->bucket.access_key);
    read_secret(r, "secret_key", &source->bucket.secret_key);
    read_secret(r, "session_token", &source->bucket.session_token);
}

/* Replaces `\n` by line ends: users paste the key as it appears in JSON. */
static struct sl_str unescaped(struct sl_arena *arena, struct sl_str text)
{
    char *out = sl_arena_strndup(arena, text.data, text.size);
    size_t size = 0;
    for (size_t i = 0; out && i < text.size; i++) {
        bool escape = text.data[i] == '\\' && i + 1 < text.size && text.data[i + 1] == 'n';
        out[size++] = escape ? '\n' : text.data[i];
        i += escape;
    }
    return (struct sl_str){out, size};
}

/* Reads a Google bucket and its credentials: a service account's key and e-mail address, or a token. If all three are there, the token is
 * dropped. If only one of key and address is there, the token is used; without a token that is reported. */
static void read_gcs(struct source_schema_reader *r, struct source *source)
{
    read_bucket(r, &source->bucket.gcs_name, &source->bucket.prefix);
    bool key = read_secret(r, "private_key", &source->bucket.private_key);
    bool email = source_read_string(r, "client_email", false, &source->bucket.client_email);
    bool token = read_secret(r, "bearer_token", &source->bucket.bearer_token);
    if (key)
        source->bucket.private_key.hidden = unescaped(r->arena, source->bucket.private_key.hidden);
    if (key && email)
        source->bucket.bearer_token.hidden = (struct sl_str){NULL, 0};
    else if (token)
        source->bucket.private_key.hidden = (struct sl_str){NULL, 0};
    else
        BAD(r, NULL, "private_key", "expected `private_key` and `client_email`, or `bearer_token`");
}

/* True if Sentry sources may be at this host: it is in the list, which may contain "*.example.com", or there is no list. */
static bool host_allowed(const struct source_policy *policy, struct sl_str host)
{
    for (size_t i = 0; i < policy->sentry_host_count; i++) {
        struct sl_str allowed = policy->sentry_hosts[i];
        if (sl_str_equal_nocase(allowed, host))
            return true;
        if (allowed.size > 2 && allowed.data[0] == '*' && host.size > allowed.size - 1 &&
            sl_str_equal_nocase((struct sl_str){allowed.data + 1, allowed.size - 1},
                                (struct sl_str){host.data + host.size - (allowed.size - 1), allowed.size - 1}))
            return true;
    }
    return policy->sentry_host_count == 0;
}

/* Reads a Sentry project: its URL, and either a token or cookies. */
static void read_sentry(struct source_schema_reader *r, struct source *source)
{
    read_url(r, &source->url);
    bool token = read_secret(r, "token", &source->token);
    bool cookies = read_secret(r, "cookies", &source->cookies);
    if (token == cookies)
        BAD(r, NULL, "token", "exactly one of `token` and `cookies` is needed");
    source->internal = r->policy->internal_sentry;
    const char *url = source->url.size ? sl_arena_strndup(r->arena, source->url.data, source->url.size) : NULL;
    const char *host = url ? fetch_url_host(r->arena, url) : NULL;
    if (host && !host_allowed(r->policy, sl_str(host)))
        BAD(r, value_get(r->map, "url"), "url", "host %s is not allowed (sentry_source_hosts)", host);
}

static const struct {
    const char *name;
    enum source_type type;
    void (*read)(struct source_schema_reader *r, struct source *source);
} types[] = {
    {"filesystem", SOURCE_FILESYSTEM, read_filesystem},
    {"http", SOURCE_HTTP, read_http},
    {"s3", SOURCE_S3, read_s3},
    {"gcs", SOURCE_GCS, read_gcs},
    {"sentry", SOURCE_SENTRY, read_sentry},
};

/* Reads a source. Sentry sources have no layout and filters, as Sentry finds the files itself. */
static void read_source(struct source_schema_reader *r, struct source *source)
{
    read_some(r, "id", &source->id);
    struct sl_str name;
    if (!source_read_string(r, "type", true, &name))
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!sl_str_equal(name, sl_str(types[i].name)))
            continue;
        source->type = types[i].type;
        types[i].read(r, source);
        if (source->type == SOURCE_SENTRY)
            return;
        read_filters(r, source);
        read_layout(r, source);
        read_bool(r, "is_public", &source->is_public);
        read_bool(r, "has_index", &source->has_index);
        read_bool(r, "file_ptr", &source->file_ptr);
        return;
    }
    const char *words[sizeof types / sizeof *types + 1] = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        words[i] = types[i].name;
    bad_word(r, value_get(r->map, "type"), "type", "source type", words);
}

/* Reads r.map, which is element `index` of the list of sources at `path`. Problems of the document are added to r.problems and do not
 * change the result. False only when out of memory. */
static bool source_read_entry(struct source_schema_reader r, const char *path, size_t index, struct source *source)
{
    size_t path_size = strlen(path) + 24; /* 24: the index in brackets, and the NUL */
    char *at = sl_arena_alloc(r.arena, path_size, 1);
    if (!at)
        return false;
    snprintf(at, path_size, "%s[%zu]", path, index);
    bool no_memory = false;
    r.path = at;
    r.no_memory = &no_memory;
    source->configured = r.policy->configuration;
    if (r.map->type == VALUE_MAP)
        read_source(&r, source);
    else
        value_problem(r.problems, r.map, false, at, "expected an object, found %s", type_word(r.map));
    return !no_memory;
}

enum sl_code source_parse_list(struct sl_arena *arena, const struct value *list, const char *path,
                               const struct source_policy *policy, struct source **sources, size_t *count,
                               struct value_problems *problems)
{
    size_t before = problems->errors;
    *sources = NULL;
    *count = 0;
    if (list->type != VALUE_LIST) {
        value_problem(problems, list, false, path, "expected a list, found %s", type_word(list));
        return SL_MALFORMED;
    }
    *sources = SL_ARENA_ARRAY(arena, struct source, list->count);
    if (!*sources)
        return list->count ? SL_BUSY : SL_OK; /* an empty list has no array */
    for (size_t i = 0; i < list->count; i++) {
        struct source_schema_reader r = {
            .arena = arena, .policy = policy, .problems = problems, .map = &list->items[i]};
        if (!source_read_entry(r, path, i, &(*sources)[i]))
            return SL_BUSY;
    }
    *count = list->count;
    return problems->errors == before ? SL_OK : SL_MALFORMED;
}

/* Reads the next source of a list and appends it. Its JSON is parsed into a tree in the arena `tree`, whose limit bounds the size of one
 * source: SL_MALFORMED beyond it. Else the code of the JSON reader, or SL_BUSY when out of memory. */
static enum sl_code read_next(struct sl_json *j, struct sl_arena *tree, struct source_schema_reader r, const char *path,
                              size_t index, struct sl_arena_array *list)
{
    struct value map;
    struct sl_json look = *j; /* a copy of the reader: if the source is too large, `j` can still skip it */
    sl_arena_reset(tree);
    bool good = value_from_json(tree, &look, &map);
    if (look.busy && tree->over_limit) { /* memory was not short: the source exceeds the arena's limit */
        sl_json_skip(j);
        value_problem(r.problems, NULL, false, path, "the source %zu is too large", index);
        return SL_MALFORMED;
    }
    *j = look;
    if (!good)
        return sl_json_code(j);
    struct source *source = sl_arena_array_add(list);
    r.map = &map;
    return source && source_read_entry(r, path, index, source) ? SL_OK : SL_BUSY;
}

/* Reports a value that is not a list, and skips it; returns SL_MALFORMED. */
static enum sl_code not_a_list(struct sl_json *j, struct sl_arena *tree, const char *path,
                               struct value_problems *problems)
{
    struct value found;
    struct sl_json look = *j; /* a copy of the reader: exceeding the limit of `tree` must not fail `j` */
    value_from_json(tree, &look, &found);
    sl_json_skip(j);
    value_problem(problems, NULL, false, path, "expected a list, found %s", type_word(&found));
    return SL_MALFORMED;
}

/* On success `j` is after the list; at the first problem reading ends. */
enum sl_code source_read_list(struct sl_json *j, const char *path, const struct source_policy *policy,
                              struct source **sources, size_t *count, struct value_problems *problems)
{
    enum { TREE_MAX = 1 << 20 };
    struct source_schema_reader r = {.arena = j->arena, .policy = policy, .problems = problems};
    struct sl_arena_array list = {.arena = j->arena, .item = sizeof **sources};
    struct sl_arena tree;
    struct sl_str key;
    size_t before = problems->errors;
    enum sl_code code = SL_OK;
    *sources = NULL;
    *count = 0;
    sl_arena_init(&tree, TREE_MAX);
    if (sl_json_peek(j) == SL_JSON_ARRAY)
        sl_json_enter(j);
    else
        code = not_a_list(j, &tree, path, problems);
    while (code == SL_OK && problems->errors == before && sl_json_next(j, &key))
        code = read_next(j, &tree, r, path, list.count, &list);
    sl_arena_free(&tree);
    *count = list.count;
    if (code == SL_OK && problems->errors == before && !(*sources = sl_arena_array_finish(&list)))
        code = SL_BUSY;
    sl_arena_array_discard(&list);
    return code != SL_OK ? code : problems->errors == before ? sl_json_code(j) : SL_MALFORMED;
}

enum sl_code source_read_sentry(struct sl_json *j, const char *path, const struct source_policy *policy,
                                struct source *source, struct value_problems *problems)
{
    bool no_memory = false;
    struct source_schema_reader r = {
        .arena = j->arena, .policy = policy, .problems = problems, .path = path, .no_memory = &no_memory};
    struct value map;
    size_t before = problems->errors;
    if (!value_from_json(j->arena, j, &map))
        return sl_json_code(j);
    r.map = &map;
    *source = (struct source){.type = SOURCE_SENTRY, .configured = policy->configuration};
    if (map.type != VALUE_MAP) {
        value_problem(problems, &map, false, path, "expected an object, found %s", type_word(&map));
        return SL_MALFORMED;
    }
    read_some(&r, "id", &source->id);
    read_sentry(&r, source);
    return problems->errors != before ? SL_MALFORMED : no_memory ? SL_BUSY : SL_OK;
}
