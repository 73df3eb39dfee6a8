/* Styles of demangled names. They all differ for Itanium's C++. Names of other manglings only differ in return types, and Rust's legacy
 * names have their hash in the style of LLVM. */
#pragma once

enum sl_demangle_style {
    SL_DEMANGLE_CRASH,   /* crash reports: parameters, no return types */
    SL_DEMANGLE_PROFILE, /* profilers: return types, and `f<>` for `f<int>` */
    SL_DEMANGLE_GNU,     /* binutils: return types, `S<S<int> >`, `[clone .cold]` */
    SL_DEMANGLE_LLVM,    /* LLVM's tools: return types, `S<S<int>>`, `'lambda'()`, `(.cold)` */
};
