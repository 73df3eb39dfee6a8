/* Whether the upload store responds. While it does not, look-ups fail instead of reporting symbols as missing. */
#include "symbfile_store/bucket.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/loop.h"
#include "conversion/conversion.h"

enum { PAUSE_MS = 2000 }; /* after a failure look-ups do not access the store for this time */

static struct {
    bool down;         /* the last access failed */
    char trouble[256]; /* error of the last failure */
    int64_t failed_s;  /* time of the last failure; 0: there was none */
    uint64_t until_ms; /* end of the pause after it, as loop_now_ms */
} health;

/* Records that an access to the store succeeded (NULL) or failed; logs a change between the two. */
void store_note(const char *trouble)
{
    if (!trouble) {
        if (health.down)
            log_info("symbfile", "the upload store responds again");
        health.down = false;
        return;
    }
    if (!health.down)
        log_error("symbfile", "the upload store does not respond", LOG_STR("error", trouble));
    snprintf(health.trouble, sizeof health.trouble, "%.250s", trouble);
    health.down = true;
    health.failed_s = clock_wall_s();
    health.until_ms = loop_now_ms() + PAUSE_MS;
}

/* True if the store failed less than PAUSE_MS ago: look-ups then fail at once, instead of waiting for another failure. */
bool store_is_down(struct sl_error *error)
{
    if (!health.down || loop_now_ms() >= health.until_ms)
        return false;
    sl_fail(error, SL_DOWNLOAD_ERROR, "the upload store does not respond: %s", health.trouble);
    return true;
}

/* Fills in the state for operators: the type is NULL if there is no store. */
void symbfile_store_get_state(struct symbfile_store_state *state)
{
    const struct bucket_config *bucket = &current_config()->symbfile.bucket;
    char store[512];
    *state = (struct symbfile_store_state){
        .up = !health.down, .last_error = health.failed_s ? health.trouble : NULL, .failed_s = health.failed_s};
    state->type = !symbfile_store_dir(store) ? NULL
                  : !remote_bucket()         ? "filesystem"
                  : bucket->s3_name.data     ? "s3"
                                             : "gcs";
    state->shared = remote_bucket() || store_limits.shared_dir;
}

/* True if the store is there; else errno says why not. A shared directory that is not mounted is empty or missing, so the file
 * `generation`, which every used store has, must exist. A new store has no such file yet: as long as this process has never seen the
 * file, it is enough that the directory exists. */
bool store_present(const char *store)
{
    static _Atomic bool seen;
    char path[STORE_PATH];
    struct stat st;
    if (!store_limits.shared_dir || remote_bucket())
        return true;
    snprintf(path, sizeof path, "%s/generation", store);
    if (stat(path, &st) == 0) {
        seen = true;
        return true;
    }
    return errno == ENOENT && !seen && stat(store, &st) == 0;
}
