/* Changes and state of the upload store, whether it is a directory, which is accessed on the pool, or a bucket, accessed by this fiber. */
#include "symbfile_store/bucket.h"

#include <errno.h>

#include "core/pool.h"

struct adding { /* symbfile_store_add() on the pool */
    const struct symbfile_upload_set *arrival;
    struct symbfile_failure *failure;
    bool good;
};

static void add_job(void *arg)
{
    struct adding *adding = arg;
    adding->good = symbfile_store_add(adding->arrival, adding->failure);
}

bool symbfile_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure)
{
    struct adding adding = {arrival, failure, false};
    struct sl_error error;
    if (remote_bucket())
        return remote_add(arrival, failure);
    enum sl_code code = pool_run(POOL_CONVERT, add_job, &adding, &error);
    /* the pool could not run it to its end: SL_INTERNAL after a SIGBUS, else it was cancelled, or memory was short */
    if (code != SL_OK)
        symbfile_fail_with_cause(failure, code == SL_INTERNAL ? code : SL_BUSY, error.message);
    return adding.good;
}

struct store_job_request { /* symbfile_store_status() or _delete() on the pool */
    const struct symbfile_key *file_key;
    struct symbfile_set *sets;
    bool *known, *any;
    struct symbfile_info *info;
};

static enum sl_code status_job(void *arg, struct sl_error *error)
{
    const struct store_job_request *q = arg;
    enum sl_code code = symbfile_store_status(q->file_key, q->sets, q->known, q->info, q->any);
    return code == SL_OK ? code : sl_fail(error, code, "cannot read the uploads for an executable in the upload store");
}

/* Pool work: deletes the uploads for an executable; sets `*q->any` if there were some. */
static enum sl_code delete_job(void *arg, struct sl_error *error)
{
    const struct store_job_request *q = arg;
    *q->any = symbfile_store_delete(q->file_key);
    enum sl_code code = store_code(errno); /* of symbfile_store_delete: why it may not have found all of them */
    return code == SL_OK ? code : sl_fail(error, code, "cannot find all uploads to be deleted in the upload store");
}

enum sl_code symbfile_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                             bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any, struct sl_error *error)
{
    struct store_job_request q = {.file_key = file_key, .sets = sets, .known = known, .any = any, .info = info};
    *any = false;
    if (remote_bucket())
        return remote_status(file_key, sets, known, info, any, error);
    return pool_call(POOL_IO, status_job, &q, error);
}

enum sl_code symbfile_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error)
{
    struct store_job_request q = {.file_key = file_key, .any = any};
    *any = false;
    if (remote_bucket())
        return remote_delete(file_key, any, error);
    return pool_call(POOL_IO, delete_job, &q, error);
}
