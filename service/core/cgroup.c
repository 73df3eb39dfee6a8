#include "core/cgroup.h"

#include <string.h>

/* /proc/self/cgroup has a line "0::/path" for cgroup v2. In a cgroup namespace that path may be the host's, which is not mounted here:
 * then the mounted root is this process's cgroup. */
FILE *cgroup_open(const char *name)
{
    char path[640] = "", line[512];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, sizeof path, "/sys/fs/cgroup%.480s/%.64s", strcmp(line + 3, "/") == 0 ? "" : line + 3, name);
    }
    if (file)
        fclose(file);
    file = path[0] ? fopen(path, "re") : NULL;
    if (file)
        return file;
    snprintf(path, sizeof path, "/sys/fs/cgroup/%.64s", name); /* in a cgroup namespace the root is the own cgroup */
    return fopen(path, "re");
}
