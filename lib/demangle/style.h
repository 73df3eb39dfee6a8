/* How readable names are written; of Itanium's C++ all differ, of other manglings only what return types there are. */
#pragma once

enum sl_demangle_style {
    SL_DEMANGLE_CRASH,   /* of crash reports: parameters, no return types */
    SL_DEMANGLE_PROFILE, /* of profilers: return types, and `f<>` for `f<int>` */
    SL_DEMANGLE_GNU,     /* of the binutils' tools: return types, `S<S<int> >`, `[clone .cold]` */
    SL_DEMANGLE_LLVM,    /* of LLVM's: return types, `S<S<int>>`, `'lambda'()`, `(.cold)` */
};
