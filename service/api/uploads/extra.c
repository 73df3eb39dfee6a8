/* Other symbol stores (mozilla.store.extra), to which clients are redirected for files that the store of this service does not have. */
#include "api/uploads/by_url.h"
#include "core/log.h"

/* fetch_request.refused, called for a status of 300 or more, which it stores. Below 500 the other store does not have the file; from 500 on
 * it failed, and whether it has the file is unknown. */
static enum sl_code extra_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)body;
    *(int *)arg = status;
    return sl_fail(error, status < 500 ? SL_NOT_FOUND : SL_DOWNLOAD_ERROR, "the symbol store responded with status %d",
                   status);
}

/* Asks another store by HEAD for the file at the URL. SL_OK: it has the file; SL_NOT_FOUND: it does not have it, or denies access. */
static enum sl_code extra_request(const char *url, struct sl_error *error)
{
    int status = 0;
    enum sl_code code =
        uploads_head((struct fetch_request){.url = url, .refused = extra_refused, .arg = &status}, error);
    return status >= 300 && status < 400 ? SL_OK : code; /* after a redirect it has the file: the client follows that */
}

/* Returns the URL "<base>/<key>", with the key percent-encoded; NULL when out of memory. */
static const char *extra_url(struct sl_str base, struct sl_str key, struct sl_arena *arena)
{
    struct sl_buf url = {0};
    while (sl_str_ends(base, SL_STR("/")))
        base.size--;
    sl_buf_str(&url, base);
    sl_buf_u8(&url, '/');
    fetch_encode(&url, key, true); /* true: keeps slashes */
    return sl_buf_move_to_arena(&url, arena).data;
}

enum sl_code uploads_find_extra(const struct config_store *config, struct sl_str key, struct sl_arena *arena,
                                const char **url)
{
    enum sl_code result = SL_NOT_FOUND;
    for (size_t i = 0; i < config->extra_count; i++) {
        struct sl_error error = {0};
        *url = extra_url(config->extra[i], key, arena);
        enum sl_code code = *url ? extra_request(*url, &error) : SL_BUSY;
        if (code == SL_OK || code == SL_CANCELLED)
            return code;
        if (code == SL_NOT_FOUND)
            continue;
        result = code;
        log_warn("uploads", "cannot query a symbol store of mozilla.store.extra; the other ones are tried",
                 LOG_SLSTR("store", config->extra[i]), LOG_ERR(&error));
    }
    return result;
}
