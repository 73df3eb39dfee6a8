/* Readable names: parameters shown, return types not (the style of crash reports).
 *
 * C++ of the Itanium ABI by LLVM's demangler; Microsoft's C++, Rust (legacy and v0, without the hash), Objective-C and Swift
 * (all manglings, without modules and private discriminators) by readers of our own. Thread safe; never aborts on bad
 * input: what cannot be demangled is reported as such and the caller shows the mangled name. Work and memory are
 * bounded for every input. Hostile C++ names need up to 4 MiB of stack: never call it on a fiber's. */
#pragma once

#include "base/buf.h"
#include "demangle/style.h"
#include "function/function.h"

/* The language a mangled name tells by itself; SL_LANG_UNKNOWN when none. */
enum sl_language sl_demangle_detect(struct sl_str name);

/* Appends the readable form of `name` to `out` and returns true; false (nothing appended) when it is not mangled in the
 * given language or over the limits (4096 bytes of output, 16 KiB for Rust; bounded recursion). SL_LANG_UNKNOWN detects
 * first. A known language is never second-guessed. Names of plain C, D, Go and .NET are never mangled. */
bool sl_demangle(struct sl_str name, enum sl_language language, struct sl_buf *out);

/* As sl_demangle, in the style of a tool; C++ in those of the binutils and of LLVM up to 256 KiB of output. */
bool sl_demangle_styled(struct sl_str name, enum sl_language language, enum sl_demangle_style style,
                        struct sl_buf *out);

/* As above for profilers, who drop the arguments of templates: style of the binutils, with return types where the
 * mangling has them, but `f<>` for `f<int>` in Itanium's C++. */
bool sl_demangle_full(struct sl_str name, struct sl_buf *out);
