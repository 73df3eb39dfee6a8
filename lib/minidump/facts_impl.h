/* Shared by facts.c and facts_linux.c. Private to them. */
#pragma once

#include "minidump/facts.h"
#include "minidump/impl.h"

/* Reads the copies of Linux' files: /proc/cpuinfo, /proc/self/status, /etc/lsb-release, /proc/self/limits. */
void facts_read_linux(struct dump_reader *d, struct sl_minidump_facts *facts);
