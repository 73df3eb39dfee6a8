/* The directory for temporary files that do not belong to a cache. Any thread. */
#pragma once

enum { TEMP_DIR_BYTES = 184 }; /* greatest size of the directory's path, with the NUL */

/* Returns the first of $TMPDIR, /tmp, /var/tmp and /dev/shm in which files can be created; /tmp when there is none. Later calls return the
 * same. $TMPDIR is skipped unless it is absolute and fits TEMP_DIR_BYTES. The text lives as long as the process. */
const char *temp_dir(void);

/* Returns the errno that made temp_dir() skip the first directory it tried ($TMPDIR or, if that is not set, /tmp); 0 if it chose that
 * one. */
int temp_dir_error(void);
