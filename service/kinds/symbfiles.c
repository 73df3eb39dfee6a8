/* The kind `symbfile_index`: what lookups ask, made of the parts of a published set; and finding it. */
#include "kinds/symbfiles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "kinds/conversion.h"
#include "kinds/symbfile_impl.h"

enum {
    SWEEP_MS = 3600 * 1000,
    ATTEMPTS = 3,
    RECORD_BYTES = 32
}; /* a set may be replaced between finding and reading it */

static const struct config *config;

void symbfiles_init(const struct config *c)
{
    config = c;
    symbfile_store_configure(c);
}

const struct config *symbfiles_config(void)
{
    return config;
}

/* ---- the kind ---- */
struct index_request {
    struct sl_file_id file_id;
    struct symbfile_set set;
};

struct build {
    const struct index_request *request;
    int fd;
};

static enum sl_code symbfiles_build(struct conversion *conversion, void *arg, struct sl_error *error)
{
    const struct build *b = arg;
    char directory[STORE_PATH];
    bool found = store_tmp(directory);
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(found ? directory : NULL);
    struct sl_buf out = {0};
    enum sl_code code = builder ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (builder)
        sl_symbfile_builder_limit(builder, &conversion->budget);
    if (code == SL_OK)
        code = symbfile_store_read(&b->request->file_id, &b->request->set, sl_symbfile_builder_sink(builder), error);
    if (code == SL_OK)
        code = sl_symbfile_builder_finish(builder, &out, error);
    if (code == SL_OK)
        code = conversion_write(conversion, b->fd, &out, error);
    sl_symbfile_builder_free(builder);
    sl_buf_free(&out);
    return code;
}

static enum sl_code symbfiles_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    (void)arena;
    struct build b = {.request = context, .fd = tmp->fd};
    /* As many bytes as its records are in a symbfile, or more; the files would have to be asked. */
    struct conversion_input input = {b.request->set.records * RECORD_BYTES, sl_str(b.request->set.name),
                                     &kind_symbfile_index};
    return conversion_run(&input, symbfiles_build, &b, error);
}

static void *retain(const void *context, struct sl_arena *arena)
{
    struct index_request *copy = SL_ARENA_NEW(arena, struct index_request);
    if (copy)
        *copy = *(const struct index_request *)context;
    return copy;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_symbfile_index_open(bytes, into, error);
}

static enum sl_code symbfiles_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    return kinds_load(bytes, sizeof(struct sl_symbfile_index), open_into, loaded, weight, error);
}

const struct cache_kind kind_symbfile_index = {
    .name = "symbfile_index",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = symbfiles_compute,
    .retain = retain,
    .load = symbfiles_load,
    .free_loaded = free,
};

static enum sl_code get_index(const struct index_request *request, struct cache_item **item)
{
    char text[200], hex[FILE_ID_HEX];
    struct sl_error error;
    sl_hex_encode(request->file_id.bytes, sizeof request->file_id.bytes, hex);
    snprintf(text, sizeof text, "scope: global\n\ntype: symbfile\nkind: %s\nfile_id: %s\ngeneration: %" PRIu64 "\n",
             symbfile_kind_names[request->set.kind], hex, request->set.generation);
    struct cache_key key = {.text = sl_str(text)};
    return cache_get(&kind_symbfile_index, &key, request, item, &error);
}

/* ---- finding ---- */
struct search {
    const struct sl_file_id *given;
    char code_id[SYMBFILE_ID_MAX], debug_id[SL_DEBUG_ID_TEXT]; /* empty = not given */
    struct upload_answer answer;
    enum sl_code code; /* SL_OK: the answer is true; SL_BUSY */
};

/* Everything that the answer depends on. */
enum { QUESTION = 1 + sizeof(struct sl_file_id) + SYMBFILE_ID_MAX + SL_DEBUG_ID_TEXT };

static struct sl_str question_of(const struct search *s, char out[QUESTION])
{
    size_t size = 0, code_id = strlen(s->code_id) + 1, debug_id = strlen(s->debug_id) + 1;
    out[size++] = s->given ? 'f' : 'i';
    if (s->given)
        memcpy(out + size, s->given->bytes, sizeof s->given->bytes);
    size += s->given ? sizeof s->given->bytes : 0;
    memcpy(out + size, s->code_id, code_id);
    size += code_id;
    memcpy(out + size, s->debug_id, debug_id);
    return (struct sl_str){out, size + debug_id};
}

static void search_begin(struct search *s, const struct sl_file_id *file_id, const struct object_id *id)
{
    *s = (struct search){.given = file_id};
    if (id->code_id.size < sizeof s->code_id)
        snprintf(s->code_id, sizeof s->code_id, SL_STR_FMT, SL_STR_ARG(id->code_id));
    if (id->has_debug_id)
        sl_debug_id_format(&id->debug_id, s->debug_id);
}

/* These say true also when they could not look: `code` tells. */
static bool find_published(struct search *s)
{
    struct upload_answer *answer = &s->answer;
    s->code = symbfile_store_published(&answer->file_id, answer->sets);
    return s->code != SL_OK || answer->sets[SYMBFILE_RANGES].generation || answer->sets[SYMBFILE_RETURNPADS].generation;
}

static bool find_by_id(struct search *s, const char *id)
{
    enum sl_code code = *id ? symbfile_store_find(id, &s->answer.file_id) : SL_NOT_FOUND;
    if (code == SL_BUSY)
        s->code = code;
    return code == SL_BUSY || (code == SL_OK && find_published(s));
}

static void search(void *arg)
{
    struct search *s = arg;
    struct upload_answer *answer = &s->answer;
    struct symbfile_info info;
    if (s->given)
        answer->file_id = *s->given;
    answer->found = (s->given && find_published(s)) || find_by_id(s, s->code_id) || find_by_id(s, s->debug_id);
    if (s->code != SL_OK || !answer->found)
        return;
    symbfile_store_info(&answer->file_id, &info);
    answer->has_base = info.has_base;
    answer->base = info.base;
    answer->arch = sl_arch_parse(sl_str(info.arch));
}

static enum sl_code load_indexes(const struct upload_answer *answer, struct symbfile_lookup *result)
{
    enum sl_code code = SL_NOT_FOUND;
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        struct index_request request = {answer->file_id, answer->sets[kind]};
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
            return got; /* half of what is there is no answer */
        if (got == SL_OK || code == SL_NOT_FOUND)
            code = got;
    }
    return code;
}

/* Remembered, unless `anew`, or searched for. */
static enum sl_code get_answer(struct search *s, bool anew, struct sl_error *error)
{
    char text[QUESTION];
    struct sl_str question = question_of(s, text);
    enum sl_code code = answers_current() ? SL_OK : answers_look(error);
    if (code != SL_OK || (!anew && answers_get(question, &s->answer)))
        return code;
    uint64_t epoch = answers_epoch();
    code = pool_run(POOL_IO, search, s, error);
    if (code == SL_OK && s->code != SL_OK)
        code = sl_fail(error, s->code, "out of memory or descriptors");
    if (code == SL_OK)
        answers_put(question, &s->answer, epoch);
    return code;
}

void kinds_find_symbfile(const struct sl_file_id *file_id, const struct object_id *id, struct symbfile_lookup *result)
{
    char store[512];
    *result = (struct symbfile_lookup){.code = SL_NOT_FOUND};
    if (!symbfile_store_dir(store))
        return;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct search s;
        struct sl_error error;
        search_begin(&s, file_id, id);
        result->code = get_answer(&s, attempt > 0, &error);
        if (result->code == SL_OK)
            result->code = s.answer.found ? load_indexes(&s.answer, result) : SL_NOT_FOUND;
        if (result->code == SL_OK) {
            result->file_id = s.answer.file_id;
            result->has_base = s.answer.has_base;
            result->base = s.answer.base;
            result->arch = s.answer.arch;
        }
        if (result->code != SL_NOT_FOUND || !s.answer.found)
            return;
    }
}

void kinds_release_symbfile(struct symbfile_lookup *lookup)
{
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++)
        if (lookup->items[kind])
            cache_release(lookup->items[kind]);
    *lookup = (struct symbfile_lookup){.code = SL_NOT_FOUND};
}

bool kinds_prefer_symbfile(bool has_file_id)
{
    return config && (config->symbfile.prefer == SYMBFILE_PREFER_SYMBFILE ||
                      (config->symbfile.prefer == SYMBFILE_PREFER_AUTO && has_file_id));
}

struct sweep {
    enum sl_code code;
    struct symbfile_store_size size;
    struct sl_error error;
};

static void sweep(void *arg)
{
    struct sweep *s = arg;
    s->code = symbfile_store_sweep(&s->size, &s->error);
}

void kinds_sweep_symbfiles(void *unused)
{
    char store[512];
    (void)unused;
    if (!symbfile_store_dir(store)) {
        log_warn("symbfile", "no cache_dir and no symbfile.store_dir: uploads are refused");
        return;
    }
    do {
        struct sweep s = {0};
        enum sl_code code = pool_run(POOL_IO | POOL_HEAVY, sweep, &s, &s.error);
        if (code != SL_CANCELLED && (code != SL_OK || s.code != SL_OK))
            log_error("symbfile", "the upload store cannot be used", LOG_ERR(&s.error));
        metric_set(METRIC_STORE_BYTES, (double)s.size.staging, "staging", NULL, NULL);
        metric_set(METRIC_STORE_BYTES, (double)s.size.published, "published", NULL, NULL);
    } while (fiber_sleep(SWEEP_MS));
}
