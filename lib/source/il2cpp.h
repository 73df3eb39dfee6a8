/* Line mappings of Unity builds, which compile C# to C++: maps lines of generated C++ to lines of C#.
 *
 *     {"<C++ path>": {"<C# path>": {"<C++ line>": <C# line>, ...}, ...}, "__debug-id__": ignored}
 *
 * With {"a.cpp": {"main.cs": {"5": 17, "15": 29}}} lines 5 to 14 of a.cpp are line 17 of main.cs, and lines 15 to 65 are line 29.
 *
 * A mapping points into its bytes, which must outlive it and its results. It is immutable: any number of threads may share
 * it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct sl_il2cpp;

/* Opens a mapping; the caller closes it with sl_il2cpp_close(). Work, and memory until it is closed, are charged to
 * `budget` (NULL = no limit). SL_MALFORMED "Failed to parse il2cpp: ...". */
enum sl_code sl_il2cpp_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_il2cpp **map,
                            struct sl_error *error);
void sl_il2cpp_close(struct sl_il2cpp *map); /* may be NULL */

/* Finds the C# line of the nearest entry at or before `line` of the C++ file with exactly this path; returns false
 * if there is none within 50 lines. */
bool sl_il2cpp_lookup(const struct sl_il2cpp *map, struct sl_str path, uint32_t line, struct sl_str *csharp_path,
                      uint32_t *csharp_line);

/* ---- creating a mapping: comments in the generated C++ name the C# line of the code that follows ---- */

/* Parses a line of C++, the comment `//<source_info:FILE:LINE>` with optional white space around it. False if it is anything else. */
bool sl_il2cpp_mark(struct sl_str line, struct sl_str *file, uint32_t *number);

/* Calls `found` for each source_info comment of the C++ `text`, in ascending order. `line`, counted from 1, is the first line after the
 * source_info comment that is no comment; if another source_info comment comes before that, the line in front of the other one. A comment
 * at the end of the text, with no code after it, is left out. */
void sl_il2cpp_scan(struct sl_str text, void (*found)(void *arg, uint32_t line, struct sl_str file, uint32_t number),
                    void *arg);
