/* The directory for temporary files that do not belong to a cache. Any thread. */
#pragma once

enum { TEMP_DIR_BYTES = 184 }; /* of its path, with the NUL */

/* The first of $TMPDIR, /tmp, /var/tmp and /dev/shm in which files can be created; /tmp when there is none. The first call decides.
 * $TMPDIR counts when it is absolute and fits TEMP_DIR_BYTES. Valid as long as the process lives. */
const char *temp_dir(void);

/* Why temp_dir() is not $TMPDIR, or there is none: an errno. 0: it is, or $TMPDIR is not set and /tmp takes files. */
int temp_dir_error(void);
