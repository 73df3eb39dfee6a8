/* C interface to LLVM's demangler of names of the Itanium C++ ABI. */
#pragma once

#include <stddef.h>

#include "demangle/style.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the demangled name, at most `capacity` bytes, to `out` and returns its length; 0 if the name is not mangled in this way or the
 * result is longer. Recurses with the nesting of the name: in the worst case several hundred bytes of stack for each character. */
size_t demangle_itanium(const char *name, size_t size, enum sl_demangle_style style, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
