/* The list of all route families. */
#include "api/api.h"

/* All route families, in the order in which a request's path is compared with their routes. ROW(x) stands for the variable `family_x`. */
#define FAMILIES(ROW)                                                                                                  \
    ROW(health)                                                                                                        \
    ROW(page)                                                                                                          \
    ROW(assets)                                                                                                        \
    ROW(description)                                                                                                   \
    ROW(status)                                                                                                        \
    ROW(native)                                                                                                        \
    ROW(js)                                                                                                            \
    ROW(jvm)                                                                                                           \
    ROW(mozilla)                                                                                                       \
    ROW(profiler)                                                                                                      \
    ROW(apple)                                                                                                         \
    ROW(minidump)                                                                                                      \
    ROW(core)                                                                                                          \
    ROW(any)                                                                                                           \
    ROW(pyroscope)                                                                                                     \
    ROW(sentry)                                                                                                        \
    ROW(sym_upload)                                                                                                    \
    ROW(sym_upload_file)                                                                                               \
    ROW(text)                                                                                                          \
    ROW(named)                                                                                                         \
    ROW(jobs)                                                                                                          \
    ROW(proxy)                                                                                                         \
    ROW(debuginfod)                                                                                                    \
    ROW(metadata)                                                                                                      \
    ROW(symbfile)                                                                                                      \
    ROW(admin)                                                                                                         \
    ROW(uploads_v2)                                                                                                    \
    ROW(uploads)                                                                                                       \
    ROW(mssymcache)                                                                                                    \
    ROW(downloads)

#define DECLARE(name) extern const struct http_family family_##name;
FAMILIES(DECLARE)

#define ADDRESS(name) &family_##name,
const struct http_family *const api_families[] = {FAMILIES(ADDRESS) NULL};
