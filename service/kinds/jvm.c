/* The kind `proguard`: tables made from mappings of ProGuard and R8; and the way to them and to bundles of JVM sources. */
#include "kinds/auxiliary.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "source/bundle.h"

/* The table takes the place of the text that it is made from. */
static enum sl_code convert_mapping(struct conversion *conversion, struct sl_bytes file, void *arg,
                                    struct sl_error *error)
{
    int fd = *(const int *)arg;
    struct sl_buf out = {0};
    struct sl_str text = {(const char *)file.data, file.size};
    enum sl_code code = sl_jvm_mapper_build(text, &conversion->budget, &out, error);
    if (code == SL_OK && ftruncate(fd, 0) != 0)
        code = sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
    if (code == SL_OK)
        code = conversion_write(conversion, fd, &out, error);
    sl_buf_free(&out);
    return code;
}

static enum sl_code proguard_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                     struct sl_error *error)
{
    (void)arena;
    const struct object_request *request = context;
    enum sl_code code = origin_fetch(request->file, tmp->fd, error);
    if (code != SL_OK)
        return code;
    return conversion_check(tmp->fd, request->file->location, &kind_proguard, convert_mapping, &tmp->fd, error);
}

static enum sl_code proguard_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_jvm_mapper_open(bytes, into, error);
}

static enum sl_code proguard_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    return kinds_load(bytes, sizeof(struct sl_jvm_mapper), proguard_open, loaded, weight, error);
}

const struct cache_kind kind_proguard = {
    .name = "proguard",
    .section = CACHE_DOWNLOADED,
    .version = 1003,
    .random_access = true,
    .compute = proguard_compute,
    .place = object_request_place,
    .retain = object_request_retain,
    .load = proguard_load,
    .free_loaded = free,
};

/* ---- mappings of a request's own ---- */

struct own_mapping {
    struct sl_str text;
    struct sl_buf table;
};

static enum sl_code convert_own_mapping(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct own_mapping *own = arg;
    return sl_jvm_mapper_build(own->text, &conversion->budget, &own->table, error);
}

enum sl_code kinds_own_mapping(struct sl_str text, struct cache_item **item, struct sl_error *error)
{
    struct own_mapping own = {.text = text};
    struct conversion_input input = {text.size, SL_STR("artifact"), &kind_proguard};
    enum sl_code code = conversion_run(&input, convert_own_mapping, &own, error);
    *item = NULL;
    if (code == SL_OK)
        return cache_item_own(&kind_proguard, &own.table, item, error);
    sl_buf_free(&own.table);
    return code;
}

/* ---- finding ---- */

struct jvm_asking {
    struct auxiliary_search search;
    struct jvm_question *question;
};

static void answer_question(struct jvm_asking *a)
{
    struct jvm_question *q = a->question;
    const struct object_id id = {.debug_id = q->id, .has_debug_id = true};
    struct object_request *found;
    a->search.id = &id;
    a->search.failure = &q->error;
    q->code = auxiliary_find(&a->search, &id, q->is_bundle ? FILE_SOURCEBUNDLE : FILE_PROGUARD,
                             q->is_bundle ? &kind_objects : &kind_proguard, &found, &q->item);
    if (q->code != SL_OK)
        q->item = NULL;
    else if (!q->is_bundle)
        q->mapper = q->item->loaded;
    if (q->code == SL_NOT_FOUND && q->error.code != SL_OK)
        q->code = q->error.code;
}

static void ask(void *arg)
{
    struct jvm_asking *a = arg;
    char id[SL_DEBUG_ID_TEXT];
    answer_question(a);
    sl_debug_id_format(&a->question->id, id);
    if (a->question->code == SL_OK || a->question->code == SL_CANCELLED)
        return;
    if (!a->question->error.message[0])
        sl_fail(&a->question->error, a->question->code, "no source has it");
    if (a->question->is_bundle)
        log_debug("kinds", "no bundle of sources", LOG_STR("id", id), LOG_STR("reason", a->question->error.message));
    else
        log_info("kinds", "a mapping is not used", LOG_STR("id", id), LOG_STR("reason", a->question->error.message));
}

bool kinds_find_jvm(const struct source *sources, size_t source_count, struct sl_str scope,
                    struct jvm_question *questions, size_t count, struct sl_arena *arena)
{
    struct jvm_asking *asking = SL_ARENA_ARRAY(arena, struct jvm_asking, count + 1);
    void **items = SL_ARENA_ARRAY(arena, void *, count + 1);
    for (size_t i = 0; i < count; i++) {
        questions[i].code = SL_BUSY;
        if (!asking || !items)
            continue;
        asking[i] = (struct jvm_asking){{sources, source_count, scope, NULL, arena, NULL}, &questions[i]};
        items[i] = &asking[i];
    }
    return !asking || !items || fiber_for_each(ask, items, count, count);
}

void kinds_release_jvm(struct jvm_question *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (questions[i].item)
            cache_release(questions[i].item);
        questions[i].item = NULL;
        questions[i].mapper = NULL;
        questions[i].error = (struct sl_error){0};
    }
}

bool kinds_jvm_source(const struct jvm_question *bundle, struct sl_str url, uint64_t *work, struct sl_buf *text)
{
    const struct sl_bundle *sources = bundle->item ? bundle->item->loaded : NULL;
    const struct sl_bundle_file *file = sources ? sl_bundle_by_url(sources, url) : NULL;
    return file && kinds_bundle_text(sources, file, work, text);
}
