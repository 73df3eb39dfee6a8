/* The kind `symbfile_index`: the look-up table made from the parts of a published set; and finding the set. */
#include "symbfile_store/symbfile_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "conversion/conversion.h"
#include "symbfile_store/bucket.h"
#include "symbfile_store/converters.h"

enum {
    SWEEP_MS = 3600 * 1000,
    ATTEMPTS = 3, /* a set may be replaced between finding and reading it */
    RECORD_BYTES = 32,
};
#define READ_AGAIN_NS UINT64_C(1000000000)

void symbfiles_init(const struct config *config)
{
    symbfile_store_configure(config);
    remote_open(config);
}

void symbfiles_close(void)
{
    remote_close();
}

/* ---- the kind ---- */
struct symbfile_index_request {
    struct symbfile_key file_key;
    struct symbfile_set set;
};

struct set_packing { /* pool work */
    const struct symbfile_index_request *request;
    const char *copy; /* path of a local copy, if the set is in a bucket; else empty */
    struct set_pack pack;
    struct cache_tmp parts, scratch;
};

/* Pool work: creates the files that the converter reads and writes besides its output, and copies the parts into the first, from the
 * store's directory or, if it is a bucket, from the copy. */
static enum sl_code pack_set(void *arg, struct sl_error *error)
{
    struct set_packing *p = arg;
    char home[STORE_PATH];
    enum sl_code code = cache_tmp_create(&p->parts, true, error);
    if (code == SL_OK)
        code = cache_tmp_create(&p->scratch, true, error);
    if (code != SL_OK)
        return code;
    p->pack.fd = p->parts.fd;
    if (*p->copy)
        return store_pack_set(p->copy, &p->request->set, &p->pack, error);
    return store_home(&p->request->file_key, home) ? store_pack_set(home, &p->request->set, &p->pack, error)
                                                   : sl_fail(error, SL_NOT_FOUND, "no upload store is configured");
}

static void discard_pack(void *arg)
{
    struct set_packing *p = arg;
    cache_tmp_discard(&p->parts);
    cache_tmp_discard(&p->scratch);
    free(p->pack.lengths);
}

/* Passes the parts, possibly thousands, to the converter as one file. */
static enum sl_code convert_pack(const struct set_packing *p, int out, struct sl_error *error)
{
    const struct symbfile_set *set = &p->request->set;
    struct symbfile_index_options options = {store_limits.max_set_bytes, p->pack.is_split};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = out};
    converter_add_file(&call, INPUT_FILE, p->pack.fd);
    converter_add_bytes(&call, INPUT_LENGTHS,
                        (struct sl_bytes){(const uint8_t *)p->pack.lengths, p->pack.count * sizeof *p->pack.lengths});
    converter_add_file(&call, INPUT_SCRATCH, p->scratch.fd);
    /* The limits of the conversion come from the size of its input, which is at least that of the set's records. */
    struct conversion_description about = {set->records * RECORD_BYTES, sl_str(set->name), kind_symbfile_index.name};
    return conversion_run(&about, &converter_symbfile_index, &call, NULL, error);
}

/* Copies the parts of a set to a file and makes its index. */
static enum sl_code make_index(const struct symbfile_index_request *request, const char *copy, int out,
                               struct sl_error *error)
{
    struct set_packing p = {.request = request, .copy = copy, .parts.fd = -1, .scratch.fd = -1};
    enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, pack_set, &p, error);
    if (code == SL_OK)
        code = convert_pack(&p, out, error);
    /* On the pool, as freeing the blocks of large files takes long. */
    pool_run(POOL_IO, discard_pack, &p, NULL);
    return code;
}

/* If the store does not answer, or another node has just replaced the set, the error says nothing about the set: it is not
 * shared with other nodes, and cached for only a second. */
static enum sl_code not_read(enum sl_code code, struct sl_error *error)
{
    if (code != SL_NOT_FOUND && code != SL_DOWNLOAD_ERROR && code != SL_TIMEOUT && code != SL_PERMISSION_DENIED)
        return code;
    char what[sizeof error->message];
    snprintf(what, sizeof what, "%s", code == SL_NOT_FOUND ? "replaced by a newer upload" : error->message);
    sl_fail(error, SL_DOWNLOAD_ERROR, "%s", what);
    error->duration_ns = READ_AGAIN_NS;
    return error->code;
}

/* Makes the entry; downloads the parts first if they are in a bucket. */
static enum sl_code symbfiles_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    (void)arena;
    char copy[STORE_PATH] = "";
    const struct symbfile_index_request *request = context;
    if (remote_bucket()) {
        enum sl_code copied = remote_copy(&request->file_key, &request->set, copy, error);
        if (copied != SL_OK)
            return not_read(copied, error);
    }
    enum sl_code code = make_index(request, copy, tmp->fd, error);
    if (*copy)
        remote_remove_copy(copy);
    return not_read(code, error);
}

/* Copies the request, because the conversion may outlive the caller. */
static void *retain(const void *context, struct sl_arena *arena)
{
    struct symbfile_index_request *copy = SL_ARENA_NEW(arena, struct symbfile_index_request);
    if (copy)
        *copy = *(const struct symbfile_index_request *)context;
    return copy;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_symbfile_index_open(bytes, into, error);
}

const struct cache_kind kind_symbfile_index = {
    .name = "symbfile_index",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = symbfiles_compute,
    .retain = retain,
    .open = open_into,
    .opened_size = sizeof(struct sl_symbfile_index),
};

/* Gets the index of a set from the cache, or makes it. */
static enum sl_code get_index(const struct symbfile_index_request *request, struct cache_item **item)
{
    char text[240], hex[FILE_ID_HEX];
    struct sl_error error;
    const char *scope = *request->file_key.scope ? request->file_key.scope : "global";
    sl_hex_encode(request->file_key.file_id.bytes, sizeof request->file_key.file_id.bytes, hex);
    snprintf(text, sizeof text, "scope: %s\n\ntype: symbfile\nkind: %s\nfile_id: %s\ngeneration: %" PRIu64 "\n", scope,
             symbfile_kind_names[request->set.kind], hex, request->set.generation);
    struct cache_key key = {.text = sl_str(text), .scope = sl_str(scope)};
    return cache_get(&kind_symbfile_index, &key, request, item, &error);
}

/* ---- finding ---- */
struct symbfile_search {
    const struct sl_file_id *given;
    char code_id[SYMBFILE_ID_MAX], debug_id[SL_DEBUG_ID_TEXT]; /* empty = none */
    char scope[SYMBFILE_SCOPE]; /* its uploads take precedence over global ones; empty: only global ones */
    struct upload_answer answer;
    enum sl_code code; /* SL_OK: the answer is valid; else it is unknown */
    struct sl_error error;
};

/* All inputs of the answer. */
enum { QUESTION = 1 + sizeof(struct sl_file_id) + SYMBFILE_ID_MAX + SL_DEBUG_ID_TEXT + SYMBFILE_SCOPE };

static size_t add_text(char out[QUESTION], size_t size, const char *text)
{
    size_t length = strlen(text) + 1;
    memcpy(out + size, text, length);
    return size + length;
}

/* Makes the key of an answer. */
static struct sl_str make_question(const struct symbfile_search *s, char out[QUESTION])
{
    size_t size = 0;
    out[size++] = s->given ? 'f' : 'i';
    if (s->given)
        memcpy(out + size, s->given->bytes, sizeof s->given->bytes);
    size += s->given ? sizeof s->given->bytes : 0;
    size = add_text(out, size, s->code_id);
    size = add_text(out, size, s->debug_id);
    return (struct sl_str){out, add_text(out, size, s->scope)};
}

/* Fills in a search. */
static void search_begin(struct symbfile_search *s, struct sl_str scope, const struct sl_file_id *file_id,
                         const struct object_id *id)
{
    *s = (struct symbfile_search){.given = file_id};
    if (id->code_id.size < sizeof s->code_id)
        snprintf(s->code_id, sizeof s->code_id, SL_STR_FMT, SL_STR_ARG(id->code_id));
    if (id->has_debug_id)
        sl_debug_id_format(&id->debug_id, s->debug_id);
    if (current_config()->uploads_scope == UPLOADS_OF_SCOPE)
        symbfile_scope(scope, s->scope);
}

/* ---- on the pool for a directory, else in the fiber ---- */
/* Gets the published sets of an executable. */
static enum sl_code look_at_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                                      struct sl_error *error)
{
    return remote_bucket() ? remote_published(file_key, sets, error) : symbfile_store_published(file_key, sets);
}

static enum sl_code look_for_id(const char *id, struct symbfile_key *file_key, struct sl_error *error)
{
    return remote_bucket() ? remote_find(id, file_key, error) : symbfile_store_find(id, file_key);
}

/* Reads the description of an executable, from the bucket or the directory. */
static enum sl_code look_at_info(const struct symbfile_key *file_key, struct symbfile_info *info,
                                 struct sl_error *error)
{
    if (remote_bucket())
        return remote_info(file_key, info, error);
    return symbfile_store_info(file_key, info) == SL_OK ? SL_OK
                                                        : sl_fail(error, SL_BUSY, "out of memory or file descriptors");
}

/* True if the executable has published sets. This and the following functions also return true on failure: see `code`. */
static bool find_published(struct symbfile_search *s)
{
    struct upload_answer *answer = &s->answer;
    s->code = look_at_published(&answer->file_key, answer->sets, &s->error);
    return s->code != SL_OK || answer->sets[SYMBFILE_RANGES].generation || answer->sets[SYMBFILE_RETURNPADS].generation;
}

/* Searches by one of the ids. True when the search is over: found, or failed. */
static bool find_by_id(struct symbfile_search *s, const char *id)
{
    enum sl_code code = *id ? look_for_id(id, &s->answer.file_key, &s->error) : SL_NOT_FOUND;
    if (code != SL_OK && code != SL_NOT_FOUND)
        s->code = code;
    return s->code != SL_OK || (code == SL_OK && find_published(s));
}

static bool find_given(struct symbfile_search *s)
{
    if (s->given)
        s->answer.file_key.file_id = *s->given;
    return s->given && find_published(s);
}

static bool find_by_code_id(struct symbfile_search *s)
{
    return find_by_id(s, s->code_id);
}

static bool find_by_debug_id(struct symbfile_search *s)
{
    return find_by_id(s, s->debug_id);
}

/* Searches id by id: first in the uploads of the scope, then in the global ones. The result is in s->answer, a failure in s->code. */
static void search(void *arg)
{
    static bool (*const ways[])(struct symbfile_search *) = {find_given, find_by_code_id, find_by_debug_id};
    struct symbfile_search *s = arg;
    struct upload_answer *answer = &s->answer;
    struct symbfile_info info;
    for (size_t i = 0; !answer->found && i < sizeof ways / sizeof *ways; i++) {
        memcpy(answer->file_key.scope, s->scope, sizeof s->scope);
        answer->found = ways[i](s);
        if (answer->found || !*s->scope)
            continue;
        memset(answer->file_key.scope, 0, sizeof answer->file_key.scope);
        answer->found = ways[i](s);
    }
    if (s->code != SL_OK || !answer->found)
        return;
    s->code = look_at_info(&answer->file_key, &info, &s->error);
    answer->has_base = info.has_base;
    answer->base = info.base;
    answer->arch = sl_arch_parse(sl_str(info.arch));
}

/* Gets the indexes of all sets that were found. SL_OK if one is usable or the last error; SL_BUSY and SL_CANCELLED at once. */
static enum sl_code load_indexes(const struct upload_answer *answer, struct symbfile_lookup *result)
{
    enum sl_code code = SL_NOT_FOUND;
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        struct symbfile_index_request request = {answer->file_key, answer->sets[kind]};
        if (!answer->sets[kind].generation)
            continue;
        enum sl_code got = get_index(&request, &result->items[kind]);
        if (got == SL_OK) {
            const struct sl_symbfile_index *index = result->items[kind]->loaded;
            result->indexes[kind] = index;
            result->features.has_debug_info |= index->has_lines;
            result->features.has_symbols |= index->has_functions;
        }
        if (got == SL_BUSY || got == SL_CANCELLED)
            return got; /* an incomplete result must not be used */
        if (got == SL_OK || code == SL_NOT_FOUND)
            code = got;
    }
    return code;
}

/* Runs the search; on an error the answer is unknown. */
static enum sl_code run_search(struct symbfile_search *s, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (remote_bucket())
        search(s);
    else
        code = pool_run(POOL_IO, search, s, error);
    if (code != SL_OK || s->code == SL_OK)
        return code;
    if (s->code == SL_BUSY || s->code == SL_CANCELLED)
        return sl_fail(error, s->code, "out of memory or file descriptors");
    return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the upload store: %.200s", s->error.message);
}

/* Returns the cached answer, unless `anew`, or searches. While the store does not answer, cached sets are still used, but
 * nothing counts as missing. */
static enum sl_code get_answer(struct symbfile_search *s, bool anew, struct sl_error *error)
{
    char text[QUESTION];
    struct sl_str question = make_question(s, text);
    enum sl_code code = answers_current() ? SL_OK : answers_refresh(error);
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_PERMISSION_DENIED)
        return answers_get(question, &s->answer) && s->answer.found ? SL_OK : SL_DOWNLOAD_ERROR;
    if (code != SL_OK || (!anew && answers_get(question, &s->answer)))
        return code;
    uint64_t epoch = answers_epoch();
    code = run_search(s, error);
    if (code == SL_OK)
        answers_put(question, &s->answer, epoch);
    return code;
}

void symbfile_find(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                   struct symbfile_lookup *result)
{
    char store[512];
    *result = (struct symbfile_lookup){.code = SL_NOT_FOUND};
    if (!symbfile_store_dir(store))
        return;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct symbfile_search s;
        struct sl_error error;
        search_begin(&s, scope, file_id, id);
        result->code = get_answer(&s, attempt > 0, &error);
        if (result->code == SL_OK)
            result->code = s.answer.found ? load_indexes(&s.answer, result) : SL_NOT_FOUND;
        if (result->code == SL_OK) {
            result->file_id = s.answer.file_key.file_id;
            result->has_base = s.answer.has_base;
            result->base = s.answer.base;
            result->arch = s.answer.arch;
        }
        bool replaced = result->code == SL_NOT_FOUND || result->code == SL_DOWNLOAD_ERROR;
        if (!replaced || !s.answer.found)
            return;
    }
}

void symbfile_lookup_release(struct symbfile_lookup *lookup)
{
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++)
        cache_release(lookup->items[kind]);
    *lookup = (struct symbfile_lookup){.code = SL_NOT_FOUND};
}

bool symbfile_is_preferred(bool has_file_id)
{
    const struct config *config = current_config();
    return config && (config->symbfile.prefer == SYMBFILE_PREFER_SYMBFILE ||
                      (config->symbfile.prefer == SYMBFILE_PREFER_AUTO && has_file_id));
}

static enum sl_code sweep(void *arg, struct sl_error *error)
{
    return symbfile_store_sweep(arg, error);
}

void symbfile_sweep_repeatedly(void *unused)
{
    char store[512];
    (void)unused;
    if (!symbfile_store_dir(store)) {
        log_warn("symbfile", "rejecting uploads: neither cache_dir nor symbfile.store_dir is set");
        return;
    }
    do {
        struct symbfile_store_size size = {0};
        struct sl_error error = {0};
        enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, sweep, &size, &error);
        if (code == SL_OK && remote_bucket())
            code = remote_sweep(&error);
        if (code != SL_CANCELLED && code != SL_OK)
            log_error("symbfile", "cannot use the upload store for symbfiles", LOG_ERR(&error));
        metric_set(METRIC_STORE_BYTES, (double)size.staging, "staging", NULL, NULL);
        metric_set(METRIC_STORE_BYTES, (double)size.published, "published", NULL, NULL);
    } while (fiber_sleep(SWEEP_MS));
}
