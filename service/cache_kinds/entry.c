/* Helpers of several kinds of cache entries: they run a converter and make its output an entry. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "core/pool.h"

enum sl_code cache_get_own_file(const struct cache_kind *kind, const struct object_request *request,
                                struct sl_arena *arena, struct cache_item **item, struct sl_error *error)
{
    struct cache_key key;
    *item = NULL;
    if (!object_request_key(request, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(kind, &key, request, item, error);
}

void converter_add_item(struct converter_call *call, enum input_role role, const struct cache_item *item)
{
    if (item)
        converter_add_mapped(call, role, item->mapping.bytes, item->place);
}

enum sl_code convert_to_entry(const struct object_request *request, const struct cache_kind *kind,
                              const struct converter *converter, void *result, int fd, struct sl_arena *arena,
                              struct sl_error *error)
{
    struct cache_item *object;
    enum sl_code code = cache_get_own_file(&kind_objects, request, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct reader_limits limits = current_reader_limits();
    struct conversion_description about = {.location = request->file->location, .kind = kind ? kind->name : NULL};
    struct converter_call call = {.options = CONVERTER_OPTIONS(limits), .out = fd};
    converter_add_item(&call, INPUT_FILE, object);
    code = conversion_run(&about, converter, &call, result, error);
    cache_release(object);
    return code;
}

/* Opens an unlinked temporary file in the cache's directory; `*fd` becomes its descriptor. Called on the pool, or outside of fibers. */
static enum sl_code open_work_file(void *fd, struct sl_error *error)
{
    *(int *)fd = sl_unlinked_file(cache_tmp_dir());
    return *(int *)fd < 0 ? sl_fail_errno(error, errno, "cannot create a temporary file in the cache directory")
                          : SL_OK;
}

enum sl_code create_work_file(int *fd, struct sl_error *error)
{
    *fd = -1;
    return fiber_self() ? pool_call(POOL_IO, open_work_file, fd, error) : open_work_file(fd, error);
}

enum sl_code convert_to_item(const struct cache_kind *kind, const struct conversion_description *about,
                             const struct converter *converter, struct converter_call *call, void *result,
                             struct cache_item **item, struct sl_error *error)
{
    *item = NULL;
    call->out = memfd_create(converter->name, MFD_CLOEXEC);
    enum sl_code code = call->out < 0 ? sl_fail_errno(error, errno, "cannot create an in-memory file for a conversion")
                                      : conversion_run(about, converter, call, result, error);
    if (code == SL_OK)
        code = cache_item_from_file(kind, call->out, item, error); /* maps the file, so its descriptor may be closed */
    if (call->out >= 0)
        close(call->out);
    return code;
}

bool kinds_never_shared(const void *context)
{
    (void)context;
    return false;
}
