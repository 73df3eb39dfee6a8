/* Chooses the directory for temporary files, once. */
#include "core/temp_dir.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static struct {
    pthread_once_t once;
    char configured[TEMP_DIR_BYTES]; /* a copy of $TMPDIR, as the environment may change */
    const char *chosen;
    int error; /* errno for the first directory that was skipped; 0 = none was */
} temp = {.once = PTHREAD_ONCE_INIT};

/* Returns 0 if `path` is absolute, not too long, and files can be created in that directory; else an errno. */
static int try_path(const char *path)
{
    if (*path != '/')
        return EINVAL;
    if (strlen(path) >= sizeof temp.configured)
        return ENAMETOOLONG;
    int fd = sl_unlinked_file(path);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Chooses $TMPDIR, /tmp, /var/tmp or /dev/shm, whichever is the first in which a file can be created. If there is none, /tmp: then whoever
 * creates a file there gets the error. */
static void choose_temp_dir(void)
{
    static const char *const usual[] = {"/tmp", "/var/tmp", "/dev/shm"};
    const char *configured = getenv("TMPDIR");
    if (configured && *configured) {
        temp.error = try_path(configured);
        if (!temp.error) {
            memcpy(temp.configured, configured, strlen(configured) + 1);
            temp.chosen = temp.configured;
            return;
        }
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        int error = try_path(usual[i]);
        if (!temp.error) /* keeps the error of the first directory that was skipped */
            temp.error = error;
        if (!error) {
            temp.chosen = usual[i];
            return;
        }
    }
    temp.chosen = usual[0];
}

const char *temp_dir(void)
{
    pthread_once(&temp.once, choose_temp_dir);
    return temp.chosen;
}

int temp_dir_error(void)
{
    pthread_once(&temp.once, choose_temp_dir);
    return temp.error;
}
