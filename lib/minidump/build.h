/* Helps readers of other files that describe a crash as minidumps do: they fill in a `struct sl_minidump` themselves, and the stack
 * walker and all that follows it take it like one that sl_minidump_read() has read. lib/elfcore does so. Order of calls:
 *
 *     allocate and fill in dump->memory, then      sl_minidump_sort_memory(dump)
 *     allocate and fill in dump->crash.modules,    sl_minidump_sort_modules(dump, index of the program, arena)
 *         each with its list_index, then
 *     allocate and fill in dump->crash.threads and dump->threads, each walked one with its `initial` registers
 *     for the analysis of the crash (analysis.h), set dump->has_exception, crash_address, signal and mappings */
#pragma once

#include "minidump/minidump.h"

/* Sorts by address the memory regions of the dump and, in a list of their own, those from module files; drops each region that begins
 * inside the one before. */
void sl_minidump_sort_memory(struct sl_minidump *dump);

/* Returns the region that contains the address, or NULL. Memory of the dump takes precedence over that of module files. Call
 * sl_minidump_sort_memory() first. */
const struct sl_minidump_memory *sl_minidump_memory_at(const struct sl_minidump *dump, uint64_t address);

/* Sorts the modules by address and builds `module_map`; the module whose list_index is `main_index` becomes the main one.
 * Returns false if out of memory. */
bool sl_minidump_sort_modules(struct sl_minidump *dump, size_t main_index, struct sl_arena *arena);

/* Returns the text of a Linux signal with its si_code, such as "SIGSEGV / SEGV_MAPERR", in the arena or static. Data NULL if
 * the signal has no name, or if out of memory. */
struct sl_str sl_minidump_signal_text(uint32_t signal, uint32_t si_code, struct sl_arena *arena);
