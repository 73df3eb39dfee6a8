/* LLVM's demanglers behind C functions. Each writes at most `capacity` bytes of the readable form to `out` and returns
 * its length; 0 when the name is not mangled that way or the form is longer. They recurse with the nesting of the
 * name: several hundred bytes of stack for each character in the worst case. `full`: in the style of the binutils'
 * tools, with return types; of C++, with empty argument lists of templates. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t demangle_itanium(const char *name, size_t size, int full, char *out, size_t capacity);
size_t demangle_microsoft(const char *name, size_t size, int full, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
