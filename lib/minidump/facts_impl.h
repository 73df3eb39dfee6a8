/* Shared by facts.c and facts_linux.c. Private to them. */
#pragma once

#include "minidump/facts.h"
#include "minidump/impl.h"

/* Reads the copies of Linux' files in a dump: /proc/cpuinfo, /proc/self/status, /etc/lsb-release, /proc/self/limits. When out of memory,
 * d->out_of_memory is set. */
void facts_read_linux(struct dump_reader *d, struct sl_minidump_facts *facts);
