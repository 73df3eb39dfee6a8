#include "core/cgroup.h"

#include <string.h>

/* /proc/self/cgroup has a line "0::/path" for cgroup v2, and the files are in /sys/fs/cgroup/path. In a container the path may be that of
 * the host, while /sys/fs/cgroup is the cgroup of this process itself: so if there is no /sys/fs/cgroup/path/name, /sys/fs/cgroup/name is
 * opened. */
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
    snprintf(path, sizeof path, "/sys/fs/cgroup/%.64s", name);
    return fopen(path, "re");
}
