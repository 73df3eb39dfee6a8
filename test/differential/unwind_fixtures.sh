#!/bin/sh
# Builds programs whose unwind tables differ: architectures, compilers, .eh_frame and .debug_frame, Mach-O's compact form,
# PE's prologue codes. Each is `<name>.elf`, `<name>.macho`, `<name>.pe` or `<name>.pdb` in the given directory.
set -eu
cd "$1"
cat >u.c <<'C'
typedef long word;
word leaf(word), floats(double *, word);
__attribute__((noinline)) word small(word a) { return leaf(a) + leaf(a + 1); }
__attribute__((noinline)) word pressed(word *a, word b, word c, word d)
{
    word e = leaf(a[0]), f = leaf(a[1]), g = leaf(a[2]), h = leaf(a[3]);
    for (word i = 0; i < b; i++)
        e += leaf(f + g * h) * c + d, f ^= e, g += f, h -= g;
    return e + f + g + h;
}
__attribute__((noinline)) word variable(word n)
{
    word *a = __builtin_alloca(n * sizeof *a);
    for (word i = 0; i < n; i++)
        a[i] = leaf(i);
    return leaf(a[n / 2]) + small(a[0]);
}
__attribute__((noinline)) word large(word n)
{
    volatile word a[5000];
    a[n] = leaf(n);
    return leaf(a[1]) + pressed((word *)a, n, n, n);
}
__attribute__((noinline)) word aligned(word n)
{
    volatile word a[8] __attribute__((aligned(64)));
    a[n] = leaf(n);
    return variable(n) + a[0];
}
__attribute__((noinline)) word early(word n)
{
    if (n < 3)
        return n;
    return large(n) + aligned(n) + leaf(n) + floats((double[]){1, 2, n}, n);
}
__attribute__((noinline)) word floats(double *a, word n)
{
    double b = a[0], c = a[1], d = a[2];
    for (word i = 0; i < n; i++)
        b += leaf(n) * c + d, c -= b;
    return leaf((word)b) + (word)(c * d);
}
__attribute__((noinline)) word leaf(word n) { return n * 3; }
int _fltused;
word entry(void) { return early(5); }
C
elf() { # NAME COMMAND..
    name=$1
    shift
    "$@" -fno-builtin -shared -fPIC -nostdlib -Wl,-soname,u -o "$name.elf" u.c
}
for level in 0 1 2 s; do
    elf gcc-$level gcc -O$level
    elf gcc-debug-$level gcc -O$level -g -fno-asynchronous-unwind-tables -fno-unwind-tables
    elf clang-$level clang-14 -O$level
    elf arm64-gcc-$level aarch64-linux-gnu-gcc -O$level -mbranch-protection=pac-ret
    elf arm64-clang-$level clang-14 --target=aarch64-linux-gnu -fuse-ld=lld -O$level
    elf x86-clang-$level clang-14 --target=i686-linux-gnu -fuse-ld=lld -O$level -Wl,-z,notext
    elf arm-clang-$level clang-14 --target=armv7-linux-gnueabihf -fuse-ld=lld -O$level -g -fno-unwind-tables
    clang-14 --target=x86_64-pc-windows-msvc -fno-builtin -mno-stack-arg-probe -O$level -c -o u.obj u.c
    lld-link-14 /nodefaultlib /dll /noentry /export:entry /out:msvc-$level.pe u.obj
    clang-14 --target=i686-pc-windows-msvc -fno-builtin -mno-stack-arg-probe -g -gcodeview -O$level -c -o u.obj u.c
    lld-link-14 /nodefaultlib /dll /noentry /safeseh:no /debug /export:entry /out:x86-$level.dll u.obj
    clang-14 --target=aarch64-pc-windows-msvc -fno-builtin -mno-stack-arg-probe -O$level -c -o u.obj u.c
    lld-link-14 /machine:arm64 /nodefaultlib /dll /noentry /export:entry /out:arm64-$level.pe u.obj
    x86_64-w64-mingw32-gcc -fno-builtin -mno-stack-arg-probe -O$level -nostdlib -shared -o mingw-$level.pe u.c
done
elf gcc-frame-pointer gcc -O2 -fno-omit-frame-pointer
elf gcc-plt gcc -O2 -Wl,-z,lazy,--no-as-needed
gcc -O2 -static -o static.elf -xc - <<'C'
int main(int argc, char **argv) { return argc + argv[0][0]; }
C
for arch in x86_64 arm64; do
    for level in 0 2 s; do
        clang-14 --target=$arch-apple-macos11 -fno-builtin -O$level -c -o u.$arch.o u.c
        ld64.lld-14 -platform_version macos 11 11 -arch $arch -dylib -undefined dynamic_lookup -o $arch-$level.macho u.$arch.o
    done
done
clang-14 --target=x86_64-apple-macos11 -fno-builtin -fomit-frame-pointer -O2 -c -o u.o u.c
ld64.lld-14 -platform_version macos 11 11 -arch x86_64 -dylib -undefined dynamic_lookup -o x86_64-frameless.macho u.o
