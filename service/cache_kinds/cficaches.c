/* The kind `cficaches`: unwind rules made from the unwind information of objects. */
#include "cache_kinds/impl.h"

/* Checks the new table by reading it, then writes it to the entry: a table damaged by a bug of the converter would stay cached. */
static enum sl_code cficaches_store(struct conversion *conversion, const struct converter_call *call,
                                    const struct sl_buf *out, struct sl_error *error)
{
    struct sl_cfi cfi;
    struct sl_error reason;
    if (sl_cfi_open(sl_buf_bytes(out), &cfi, &reason) != SL_OK || sl_cfi_read(&cfi, NULL, &reason) != SL_OK)
        return sl_fail(error, SL_INTERNAL, "the CFI cache just made cannot be read, a bug of symloom: %s",
                       reason.message);
    return conversion_write(conversion, call, out, error);
}

/* Runs in a worker: makes the table of unwind rules (unwind/cfi.h) of an object. */
static enum sl_code cficaches_make(struct conversion *conversion, const struct converter_call *call, void *result,
                                   struct sl_error *error)
{
    const struct reader_limits *limits = converter_options(call);
    struct cficache_result *outcome = result;
    struct sl_object *object;
    struct sl_buf out = {0};
    enum sl_code code = conversion_open(conversion, converter_input_bytes(call, INPUT_FILE), limits, &object, error);
    if (code != SL_OK)
        return code;
    outcome->arch = sl_object_info(object)->arch;
    /* NULL: unreadable entries of the unwind information are left out without counting them */
    code = sl_cfi_convert(object, &conversion->parallel.parallel, &out, NULL, error);
    if (code == SL_OK)
        code = cficaches_store(conversion, call, &out, error);
    sl_buf_free(&out);
    sl_object_close(object);
    return code;
}

static bool check_result(const void *result)
{
    const struct cficache_result *outcome = result;
    return converter_arch_is_valid(&outcome->arch);
}

const struct converter converter_cficache = {"cficache", sizeof(struct reader_limits), sizeof(struct cficache_result),
                                             cficaches_make, check_result};

static enum sl_code cficaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    struct cficache_result outcome;
    return convert_to_entry(context, &kind_cficaches, &converter_cficache, &outcome, tmp->fd, arena, error);
}

static enum sl_code cficaches_open(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_cfi_open(bytes, into, error);
}

const struct cache_kind kind_cficaches = {
    .name = "cficaches",
    .section = CACHE_DERIVED,
    .version = 1001,
    .random_access = true,
    .compute = cficaches_compute,
    .base = object_request_base,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .open = cficaches_open,
    .opened_size = sizeof(struct sl_cfi),
};
