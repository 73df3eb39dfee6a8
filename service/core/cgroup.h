/* The limits that the kernel's cgroup (v2) sets for this process. */
#pragma once

#include <stdio.h>

/* Opens a file of the process's own cgroup ("cpu.max", "memory.max") for reading; NULL if there is none. Close it with fclose(3). */
FILE *cgroup_open(const char *name);
