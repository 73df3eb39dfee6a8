/* The directory for temporary files that do not belong to a cache. Any thread. */
#pragma once

enum { TEMP_DIR_BYTES = 184 }; /* size of its path, with the NUL */

/* Returns the first of $TMPDIR, /tmp, /var/tmp and /dev/shm in which files can be created; /tmp when there is none. The first
 * call decides. $TMPDIR counts if it is absolute and fits TEMP_DIR_BYTES. The text lives as long as the process. */
const char *temp_dir(void);

/* Returns the errno that made temp_dir() skip $TMPDIR or, if that is not set, /tmp. 0: neither was skipped. */
int temp_dir_error(void);
