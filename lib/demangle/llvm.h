/* LLVM's demanglers behind C functions. Each writes at most `capacity` bytes of the readable form to `out` and returns
 * its length; 0 when the name is not mangled that way or the form is longer. They recurse with the nesting of the
 * name: several hundred bytes of stack for each character in the worst case. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum demangle_style {
    DEMANGLE_SHORT, /* that of crash reports */
    DEMANGLE_FULL,  /* that of the binutils' tools, with return types */
    DEMANGLE_BARE   /* as before, with empty lists of template arguments; Itanium only */
};

size_t demangle_itanium(const char *name, size_t size, enum demangle_style style, char *out, size_t capacity);
size_t demangle_microsoft(const char *name, size_t size, enum demangle_style style, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
