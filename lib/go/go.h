/* Go programs: reads the pclntab, from which the runtime prints its tracebacks, into the stream of functions. Every program has it,
 * stripped or not (package debug/gosym of Go's library; "Go 1.2 Runtime Symbol Information"; for later versions runtime/symtab.go and
 * cmd/link/internal/ld/pcln.go of Go).
 *
 *     header ─┬─▶ functions: entry ▶ record ─┬─▶ names
 *             │                              ├─▶ values by code offset: line, file, inlined call
 *             │                              └─▶ tree of inlined calls, elsewhere in the image (address: moduledata)
 *             └─▶ files of the record's unit, by number ─▶ names */
#pragma once

#include "function/function.h"
#include "object/object.h"

/* Streams every function, with lines and inlined calls, in the order of the table. A function that cannot be read is dropped and
 * counts in sink->skipped_units. SL_NOT_FOUND if the object is not a Go program; SL_UNSUPPORTED for tables before Go 1.16; SL_MALFORMED
 * if the header is malformed or no function can be read. If moduledata is not found there are no inlined calls, and inlined code has
 * the lines of the inlined function. The sink is called in the caller's thread only. */
enum sl_code sl_go_read(struct sl_object *object, struct sl_function_sink *sink, struct sl_error *error);
