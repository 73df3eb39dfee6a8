/* Which program this is. */
#pragma once

#define BUILD_VERSION SYMLOOM_VERSION

/* The commit it was made from, abbreviated; "unknown" when it was not made from a repository. */
const char *build_commit(void);
