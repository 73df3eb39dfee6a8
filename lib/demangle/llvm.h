/* LLVM's demangler of the Itanium C++ ABI behind a C function. Writes at most `capacity` bytes of the readable form to `out`
 * and returns its length; 0 when the name is not mangled that way or the form is longer. It recurses with the nesting of
 * the name: several hundred bytes of stack for each character in the worst case. */
#pragma once

#include <stddef.h>

#include "demangle/style.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t demangle_itanium(const char *name, size_t size, enum sl_demangle_style style, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
