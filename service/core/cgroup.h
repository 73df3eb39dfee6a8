/* The limits that the kernel's cgroup (v2) sets for this process. */
#pragma once

#include <stdio.h>

/* A file of the process's own cgroup ("cpu.max", "memory.max"), open for reading; NULL when there is none. */
FILE *cgroup_open(const char *name);
