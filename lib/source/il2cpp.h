/* Line mappings of Unity builds, where C# is compiled to C++: which C# line a line of generated C++ is.
 *
 *     {"<C++ path>": {"<C# path>": {"<C++ line>": <C# line>, ...}, ...}, "__debug-id__": ignored}
 *
 * A mapping points into its bytes, which must outlive it and what it answers. It is immutable: any number of threads may
 * share one. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct sl_il2cpp;

/* `*map` is the caller's: sl_il2cpp_close. SL_MALFORMED "Failed to parse il2cpp: ...". What it takes, until it is closed, is
 * of the budget, and the work; NULL = no limits. */
enum sl_code sl_il2cpp_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_il2cpp **map,
                            struct sl_error *error);
void sl_il2cpp_close(struct sl_il2cpp *map); /* may be NULL */

/* The C# line of the nearest entry at or before `line` of the C++ file with exactly this path; false when there is none
 * within 50 lines. */
bool sl_il2cpp_lookup(const struct sl_il2cpp *map, struct sl_str path, uint32_t line, struct sl_str *csharp_path,
                      uint32_t *csharp_line);

/* ---- making one: comments of the generated C++ name the C# line that the code behind them is of ---- */

/* The mark in one line of C++: `//<source_info:FILE:LINE>`, white space around it aside. */
bool sl_il2cpp_mark(struct sl_str line, struct sl_str *file, uint32_t *number);

/* Calls `found` for each C++ line (1-based) of `text` that has a C# line, ascending. */
void sl_il2cpp_scan(struct sl_str text, void (*found)(void *arg, uint32_t line, struct sl_str file, uint32_t number),
                    void *arg);
