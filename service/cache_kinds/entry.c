/* What kinds share that are made of a request's object. */
#include "cache_kinds/impl.h"

enum sl_code cache_get_own_file(const struct cache_kind *kind, const struct object_request *request,
                                struct sl_arena *arena, struct cache_item **item, struct sl_error *error)
{
    struct cache_key key;
    *item = NULL;
    if (!object_request_key(request, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(kind, &key, request, item, error);
}

struct conversion_making {
    struct sl_bytes object;
    int fd;
    entry_converter *make;
};

static enum sl_code make_one(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct conversion_making *m = arg;
    return m->make(conversion, m->object, m->fd, error);
}

enum sl_code convert_to_entry(const struct object_request *request, const struct cache_kind *kind,
                              entry_converter *make, int fd, struct sl_arena *arena, struct sl_error *error)
{
    struct cache_item *object;
    enum sl_code code = cache_get_own_file(&kind_objects, request, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct conversion_making making = {object->mapping.bytes, fd, make};
    struct conversion_input input = {object->mapping.bytes.size, request->file->location, kind ? kind->name : NULL};
    code = conversion_run(&input, make_one, &making, error);
    cache_release(object);
    return code;
}

bool kinds_never_shared(const void *context)
{
    (void)context;
    return false;
}
