/* Demangles names in the style of crash reports: with parameters, without return types.
 *
 * C++ names of the Itanium ABI are demangled by LLVM; Microsoft's C++, Rust (legacy and v0, without the hash), Objective-C and
 * Swift (all manglings, without modules and private discriminators) by code of this folder. Thread safe; never aborts on bad input: if a
 * name cannot be demangled the caller shows the mangled one. Work and memory are bounded for every input. Hostile C++ names need
 * up to 4 MiB of stack, so never demangle on a small stack, such as that of a fiber.
 *
 *     _ZN3foo3barEi                    foo::bar(int) */
#pragma once

#include "base/buf.h"
#include "demangle/style.h"
#include "function/function.h"

/* Returns the language of a mangled name, judged by its form; SL_LANG_UNKNOWN if it is not mangled. */
enum sl_language sl_demangle_detect(struct sl_str name);

/* Appends the demangled form of `name` to `out`. With SL_LANG_UNKNOWN it detects the language first. False, with nothing appended, if the
 * name is not mangled in that language or exceeds a limit (4096 bytes of output, 16 KiB for Rust; nesting). Names of C, D, Go and .NET
 * count as not mangled. */
bool sl_demangle(struct sl_str name, enum sl_language language, struct sl_buf *out);

/* Appends the demangled form of `name` to `out` in the given style; SL_LANG_UNKNOWN detects the language. False, with nothing appended, if
 * it is not mangled or exceeds a limit of sl_demangle(); but C++ in the styles of the binutils and of LLVM may have 256 KiB of output. */
bool sl_demangle_styled(struct sl_str name, enum sl_language language, enum sl_demangle_style style,
                        struct sl_buf *out);

/* Appends the demangled form of `name` to `out` in the style of profilers: with return types if they are mangled, but in Itanium's C++
 * without template arguments, `f<>` for `f<int>`. Detects the language. False, with nothing appended, if it is not mangled or exceeds a
 * limit of sl_demangle(). */
bool sl_demangle_full(struct sl_str name, struct sl_buf *out);
