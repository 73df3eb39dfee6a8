/* Version and commit of this program. */
#pragma once

#define BUILD_VERSION SYMLOOM_VERSION

/* Returns the abbreviated commit that the program was built from; "unknown" if it was not built from a repository. */
const char *build_commit(void);
