/* What the computations of the kinds share: another entry to start from, a job on the pool, the count of it; and several
 * look-ups at once. */
#include "core/guard.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "kinds/conversion.h"

enum sl_code kinds_get(const struct cache_kind *kind, const struct object_request *request, struct sl_arena *arena,
                       struct cache_item **item, struct sl_error *error)
{
    struct cache_key key;
    *item = NULL;
    if (!object_request_key(request, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(kind, &key, request, item, error);
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

enum sl_code kinds_append_text(struct sl_buf *to, struct cache_item *item, struct sl_error *error)
{
    enum { COPIED_AT_ONCE = 64 * 1024 };
    struct appending a = {to, item->mapping.bytes};
    enum sl_code code = SL_OK;
    if (item->mapping.bytes.size > COPIED_AT_ONCE || !cache_at_hand(item))
        code = pool_run(POOL_IO, append, &a, error);
    else if (!guard_run(append, &a))
        code = sl_fail(error, SL_INTERNAL, "a mapped file could not be read");
    return code == SL_OK && to->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

struct call {
    kinds_job *job;
    void *arg;
    struct sl_error *error;
    enum sl_code code;
};

static void run_call(void *arg)
{
    struct call *call = arg;
    call->code = call->job(call->arg, call->error);
}

enum sl_code kinds_on_pool(kinds_job *job, void *arg, struct sl_error *error)
{
    struct call call = {.job = job, .arg = arg, .error = error};
    enum sl_code code = pool_run(POOL_CONVERT, run_call, &call, error);
    return code == SL_OK ? call.code : code;
}

struct making {
    struct sl_bytes object;
    int fd;
    kinds_maker *make;
};

static enum sl_code make_one(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct making *m = arg;
    return m->make(conversion, m->object, m->fd, error);
}

enum sl_code kinds_make(const struct object_request *request, const struct cache_kind *kind, kinds_maker *make, int fd,
                        struct sl_arena *arena, struct sl_error *error)
{
    struct cache_item *object;
    enum sl_code code = kinds_get(&kind_objects, request, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct making making = {object->mapping.bytes, fd, make};
    struct conversion_input input = {object->mapping.bytes.size, request->file->location, kind};
    code = conversion_run(&input, make_one, &making, error);
    cache_release(object);
    return code;
}
