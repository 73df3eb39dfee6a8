/* Go programs: the table of functions, files and lines that the runtime prints its tracebacks from, read into the stream of
 * functions. Every program has it, stripped or not (package debug/gosym of Go's library; "Go 1.2 Runtime Symbol Information";
 * for the versions since, runtime/symtab.go and cmd/link/internal/ld/pcln.go of Go).
 *
 *     header ─┬─▶ functions: entry ▶ record ─┬─▶ names
 *             │                              ├─▶ values by code offset: line, file, call that is inlined there
 *             │                              └─▶ tree of inlined calls, in another place, which the module's data names
 *             └─▶ files: of the record's unit, by number ─▶ names */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Streams every function, with lines and what is inlined in it, in the order of the table. A function that cannot be read is
 * dropped and counts in sink->skipped_units. SL_NOT_FOUND when the object is no Go program; SL_UNSUPPORTED for tables before
 * Go 1.16; SL_MALFORMED when the header is, or no function can be read. Where the module's data is not found, inlined calls are
 * not told apart, and lines are those of the innermost. The sink is called from the caller's thread alone. */
enum sl_code sl_go_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error);
