/* The cache kind `symbfile_index`: the look-up table made from a published symbfile, which was uploaded in parts (a "set"); and finding the
 * symbfiles of a module. */
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
    SWEEP_MS = 3600 * 1000, /* pause between two cleanings of the store */
    ATTEMPTS = 3,           /* of a look-up, as a set may be replaced between finding and reading it */
    RECORD_BYTES = 32,      /* size of a decoded record, for an estimate of the work of a conversion */
};
#define READ_AGAIN_NS UINT64_C(1000000000) /* how long the failure to read a set is cached */

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

struct set_packing { /* copies the parts of a set to one file, on the pool */
    const struct symbfile_index_request *request;
    const char *copy;                /* directory of a local copy, if the set is in a bucket; else empty */
    struct set_pack pack;            /* describes the file `parts` */
    struct cache_tmp parts, scratch; /* INPUT_FILE and INPUT_SCRATCH of the converter */
};

/* Pool work: creates the temporary files `parts` and `scratch` for the converter, and copies the set's parts into `parts`: from the store's
 * directory or, if the store is a bucket, from the local copy. */
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
                                                   : sl_fail(error, SL_NOT_FOUND,
                                                             "no upload store is configured: neither cache_dir nor "
                                                             "symbfile.store_dir is set");
}

static void discard_pack(void *arg)
{
    struct set_packing *p = arg;
    cache_tmp_discard(&p->parts);
    cache_tmp_discard(&p->scratch);
    free(p->pack.lengths);
}

/* Runs the converter, which writes the index to `out`. It gets the parts, possibly thousands, as one file and a list of lengths. */
static enum sl_code convert_pack(const struct set_packing *p, int out, struct sl_error *error)
{
    const struct symbfile_set *set = &p->request->set;
    struct symbfile_index_options options = {store_limits.max_set_bytes, p->pack.is_split};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = out};
    converter_add_file(&call, INPUT_FILE, p->pack.fd);
    converter_add_bytes(&call, INPUT_LENGTHS,
                        (struct sl_bytes){(const uint8_t *)p->pack.lengths, p->pack.count * sizeof *p->pack.lengths});
    converter_add_file(&call, INPUT_SCRATCH, p->scratch.fd);
    /* The limits of work and memory grow with the size of the input. Parts may be compressed, so the size of their records is given. */
    struct conversion_description about = {set->records * RECORD_BYTES, sl_str(set->name), kind_symbfile_index.name};
    return conversion_run(&about, &converter_symbfile_index, &call, NULL, error);
}

/* Copies the parts of a set to one file and makes the set's index in `out`. `copy` is the directory of a local copy of the set, or
 * empty. */
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

/* Converts the codes of a set that could not be read because the store does not respond or the set was replaced meanwhile. These say
 * nothing about the set, so they become SL_DOWNLOAD_ERROR, which is cached for only a second (duration_ns). Returns other codes, also
 * SL_OK, as they are. */
static enum sl_code fail_reading(enum sl_code code, struct sl_error *error)
{
    if (code != SL_NOT_FOUND && code != SL_DOWNLOAD_ERROR && code != SL_TIMEOUT && code != SL_PERMISSION_DENIED)
        return code;
    char what[sizeof error->message];
    snprintf(what, sizeof what, "%s",
             code == SL_NOT_FOUND ? "the symbfile was replaced by a newer upload while it was read" : error->message);
    sl_fail(error, SL_DOWNLOAD_ERROR, "%s", what);
    error->duration_ns = READ_AGAIN_NS;
    return error->code;
}

/* The kind's `compute`: makes the index of a set in tmp->fd; downloads the parts first if the store is a bucket. */
static enum sl_code symbfiles_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    (void)arena;
    char copy[STORE_PATH] = "";
    const struct symbfile_index_request *request = context;
    if (remote_bucket()) {
        enum sl_code copied = remote_copy(&request->file_key, &request->set, copy, error);
        if (copied != SL_OK)
            return fail_reading(copied, error);
    }
    enum sl_code code = make_index(request, copy, tmp->fd, error);
    if (*copy)
        remote_remove_copy(copy);
    return fail_reading(code, error);
}

/* The kind's `retain`: copies the request, as the conversion may outlive the caller. NULL when out of memory. */
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
    const struct sl_file_id *given;                            /* file id of the executable; NULL: unknown */
    char code_id[SYMBFILE_ID_MAX], debug_id[SL_DEBUG_ID_TEXT]; /* empty = none */
    char scope[SYMBFILE_SCOPE]; /* its uploads take precedence over global ones; empty: only global ones */
    struct upload_answer answer;
    enum sl_code code; /* SL_OK: the answer is valid; else it is unknown */
    struct sl_error error;
};

/* Largest key of a cached answer: it consists of all that the answer depends on. */
enum { ANSWER_KEY = 1 + sizeof(struct sl_file_id) + SYMBFILE_ID_MAX + SL_DEBUG_ID_TEXT + SYMBFILE_SCOPE };

/* Appends a text with its NUL to the key of `size` bytes; returns the new size. */
static size_t add_text(char out[ANSWER_KEY], size_t size, const char *text)
{
    size_t length = strlen(text) + 1;
    memcpy(out + size, text, length);
    return size + length;
}

/* Makes the key under which the answer to this search is cached: 'f' and the file id, or 'i' if there is none; then the other ids and the
 * scope. */
static struct sl_str make_answer_key(const struct symbfile_search *s, char out[ANSWER_KEY])
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

/* Fills in a search by the ids of a module. A code id that is too long counts as none. The scope counts only if the configuration keeps the
 * uploads of scopes apart. */
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

/* ---- these run on the pool if the store is a directory, in the fiber if it is a bucket ---- */
/* Gets the published sets of an executable (generation 0 = none). */
static enum sl_code get_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                                  struct sl_error *error)
{
    return remote_bucket() ? remote_published(file_key, sets, error) : symbfile_store_published(file_key, sets);
}

/* Finds the executable with this build id or debug id in the scope of `file_key`, and sets its file id there. */
static enum sl_code look_for_id(const char *id, struct symbfile_key *file_key, struct sl_error *error)
{
    return remote_bucket() ? remote_find(id, file_key, error) : symbfile_store_find(id, file_key);
}

/* Reads the description of an executable, from the bucket or the directory. */
static enum sl_code get_info(const struct symbfile_key *file_key, struct symbfile_info *info, struct sl_error *error)
{
    if (remote_bucket())
        return remote_info(file_key, info, error);
    return symbfile_store_info(file_key, info) == SL_OK
               ? SL_OK
               : sl_fail(error, SL_BUSY,
                         "cannot read the description of an executable: out of "
                         "memory or file descriptors");
}

/* Gets the published sets of the executable s->answer.file_key. True if the search is over: there is one, or it failed (s->code). */
static bool find_published(struct symbfile_search *s)
{
    struct upload_answer *answer = &s->answer;
    s->code = get_published(&answer->file_key, answer->sets, &s->error);
    return s->code != SL_OK || answer->sets[SYMBFILE_RANGES].generation || answer->sets[SYMBFILE_RETURNPADS].generation;
}

/* Searches by a build id or debug id; an empty id finds nothing. True if the search is over: found, or failed (s->code). */
static bool find_by_id(struct symbfile_search *s, const char *id)
{
    enum sl_code code = *id ? look_for_id(id, &s->answer.file_key, &s->error) : SL_NOT_FOUND;
    if (code != SL_OK && code != SL_NOT_FOUND)
        s->code = code;
    return s->code != SL_OK || (code == SL_OK && find_published(s));
}

/* Searches by the file id, if it is known. True if the search is over: found, or failed (s->code). */
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

/* Searches by file id, then by code id, then by debug id; by each of them first in the uploads of the scope, then in the global ones.
 * The result is in s->answer, a failure in s->code. */
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
    if (s->code != SL_OK || !answer->found) /* on failure `found` is true, but the answer is not used */
        return;
    s->code = get_info(&answer->file_key, &info, &s->error);
    answer->has_base = info.has_base;
    answer->base = info.base;
    answer->arch = sl_arch_parse(sl_str(info.arch));
}

/* Gets the indexes of the found sets, one for each kind. SL_OK if at least one is usable, else the first error; SL_NOT_FOUND if there is no
 * set. SL_BUSY and SL_CANCELLED are returned at once. */
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

/* Runs the search, on the pool if the store is a directory. An error means that it is not known what the store has. */
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
        return sl_fail(error, s->code, "%s",
                       s->code == SL_CANCELLED ? "cancelled" : "out of memory or file descriptors");
    return sl_fail(error, SL_DOWNLOAD_ERROR, "cannot read the upload store: %.200s", s->error.message);
}

/* Sets s->answer: to the cached answer, unless `ignores_cache` is true or there is none; otherwise by a search, whose result is cached.
 * While the store does not respond, a cached answer that found something is still used; without one the result is SL_DOWNLOAD_ERROR. */
static enum sl_code get_answer(struct symbfile_search *s, bool ignores_cache, struct sl_error *error)
{
    char text[ANSWER_KEY];
    struct sl_str key = make_answer_key(s, text);
    enum sl_code code = answers_current() ? SL_OK : answers_refresh(error);
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_PERMISSION_DENIED)
        return answers_get(key, &s->answer) && s->answer.found ? SL_OK : SL_DOWNLOAD_ERROR;
    if (code != SL_OK || (!ignores_cache && answers_get(key, &s->answer)))
        return code;
    uint64_t epoch = answers_epoch();
    code = run_search(s, error);
    if (code == SL_OK)
        answers_put(key, &s->answer, epoch);
    return code;
}

void symbfile_find(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                   struct symbfile_lookup *result)
{
    char store[512];
    *result = (struct symbfile_lookup){.code = SL_NOT_FOUND};
    if (!symbfile_store_dir(store)) /* no store is configured */
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
        /* The found set may have been replaced and removed meanwhile: the next attempt ignores the cached answer. */
        bool may_be_replaced = result->code == SL_NOT_FOUND || result->code == SL_DOWNLOAD_ERROR;
        if (!may_be_replaced || !s.answer.found)
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
        /* if the store is a bucket, only temporary files are here */
        enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, sweep, &size, &error);
        if (code == SL_OK && remote_bucket())
            code = remote_sweep(&error);
        if (code != SL_CANCELLED && code != SL_OK)
            log_error("symbfile", "cannot clean the store of uploaded symbfiles", LOG_ERR(&error));
        metric_set(METRIC_STORE_BYTES, (double)size.staging, "staging", NULL, NULL);
        metric_set(METRIC_STORE_BYTES, (double)size.published, "published", NULL, NULL);
    } while (fiber_sleep(SWEEP_MS));
}
