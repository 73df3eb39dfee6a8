#!/bin/sh
# Builds ELF files over the matrix of DWARF versions, optimisation, compression and splitting into the given directory,
# each `<name>.elf` with what belongs to it beside it.
set -eu
out=$1
cat >"$out/a.cc" <<'C'
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shapes {
template <typename T> struct box {
    T value;
    __attribute__((always_inline)) T twice() const { return value + value; }
    __attribute__((noinline)) T grow(int n) const
    {
        T result = value;
        for (int i = 0; i < n; i++)
            result += twice();
        return result;
    }
};
static inline int clamp(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; }
} // namespace shapes
int sum(const std::vector<int> &v)
{
    int total = 0;
    for (int x : v)
        total += shapes::clamp(x);
    return total;
}
int main(int argc, char **argv)
{
    std::map<std::string, int> counts;
    for (int i = 0; i < argc; i++)
        counts[argv[i]] += shapes::box<int>{i}.grow(argc);
    std::vector<int> v(counts.size(), argc);
    std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
    return sum(v) + (int)shapes::box<double>{1.5}.grow(2);
}
C
for version in 2 3 4 5; do
    for level in 0 2 s; do
        g++ -g -gdwarf-$version -O$level -o "$out/gcc-$version-O$level.elf" "$out/a.cc"
        clang++ -g -gdwarf-$version -O$level -o "$out/clang-$version-O$level.elf" "$out/a.cc"
    done
done
g++ -g -O2 -flto -o "$out/gcc-lto.elf" "$out/a.cc"
# 64-bit units, the one with a 32-bit line table, the other with one of 64 bits
g++ -g -gdwarf64 -O2 -o "$out/gcc-dwarf64.elf" "$out/a.cc"
clang++ -g -gdwarf-5 -gdwarf64 -O2 -o "$out/clang-dwarf64.elf" "$out/a.cc"
g++ -g -O2 -fdebug-types-section -o "$out/gcc-types.elf" "$out/a.cc"
g++ -g -O2 -Wl,--compress-debug-sections=zlib -o "$out/gcc-zlib.elf" "$out/a.cc"
g++ -g -O2 -Wl,--compress-debug-sections=zlib-gnu -o "$out/gcc-zdebug.elf" "$out/a.cc"
g++ -g -O2 -ffunction-sections -Wl,--gc-sections -o "$out/gcc-gc.elf" "$out/a.cc"
# every block of code in a section of its own, some of them without any line
clang++ -g -O2 -fbasic-block-sections=all -o "$out/clang-blocks.elf" "$out/a.cc"
# two files whose common information dwz moves into a third
cp "$out/gcc-4-O2.elf" "$out/dwz-1.elf"
cp "$out/gcc-4-Os.elf" "$out/dwz-2.elf"
cp "$out/gcc-4-O2.elf" "$out/dwz-1.elf.reference"
cp "$out/gcc-4-Os.elf" "$out/dwz-2.elf.reference"
(cd "$out" && dwz -m dwz.common dwz-1.elf dwz-2.elf)
# the same by the standard's .debug_sup
cp "$out/gcc-5-O2.elf" "$out/dwz5-1.elf"
cp "$out/gcc-5-Os.elf" "$out/dwz5-2.elf"
cp "$out/gcc-5-O2.elf" "$out/dwz5-1.elf.reference"
cp "$out/gcc-5-Os.elf" "$out/dwz5-2.elf.reference"
(cd "$out" && dwz -5 -m dwz5.common dwz5-1.elf dwz5-2.elf)
# split DWARF, as .dwo files and as a package
for version in 4 5; do
    mkdir "$out/split$version"
    (cd "$out/split$version" && clang++ -g -gdwarf-$version -O2 -gsplit-dwarf -o ../split$version.elf ../a.cc)
    (cd "$out/split$version" && g++ -g -gdwarf-$version -O2 -gsplit-dwarf -o ../gcc-split$version.elf ../a.cc)
done
(mkdir "$out/package" && cd "$out/package" && clang++ -g -gdwarf-5 -O2 -gsplit-dwarf -o ../package.elf ../a.cc &&
    llvm-dwp-14 -e ../package.elf -o ../package.elf.dwp && rm -f ./*.dwo)
# the same without its parts, and lines alone: the symbols name the code
for compiler in g++ clang++; do
    mkdir "$out/lost-$compiler"
    (cd "$out/lost-$compiler" && cp ../a.cc . && $compiler -g -O2 -gsplit-dwarf -o lost-$compiler.elf a.cc &&
        mv lost-$compiler.elf .. && rm -f ./*.dwo)
done
for version in 4 5; do
    clang++ -gline-tables-only -gdwarf-$version -O2 -o "$out/tables-$version.elf" "$out/a.cc"
done
# what eu-addr2line needs of clang: it finds units by .debug_aranges alone
clang++ -g -gdwarf-aranges -O2 -o "$out/clang-aranges.elf" "$out/a.cc"
# the debug file of a stripped program
cp "$out/gcc-5-O2.elf" "$out/debug-file.elf.reference"
objcopy --only-keep-debug "$out/gcc-5-O2.elf" "$out/debug-file.elf"
# another machine, and names as Rust mangles them (legacy and v0)
cat >"$out/b.c" <<'C'
int read_to_end(int a) __asm__("_ZN3std2io4Read11read_to_end17hb85a0f6802e14499E");
int next(int a) __asm__("_RNvXs_NtCs1234_7mycrate3fooINtB4_3BarpENtNtNtCs5678_4core4iter6traits8Iterator4nextB4_");
static volatile int sink;
static inline int twice(int a)
{
    sink = a;
    return a * 2;
}
int read_to_end(int a)
{
    for (int i = 0; i < a; i++)
        sink += twice(i);
    return sink;
}
int next(int a)
{
    return twice(read_to_end(a)) + 1;
}
int main(int argc, char **argv)
{
    (void)argv;
    return next(argc) + read_to_end(argc);
}
C
for level in 0 2; do
    aarch64-linux-gnu-gcc -g -O$level -o "$out/aarch64-O$level.elf" "$out/b.c"
    gcc -g -O$level -o "$out/rust-names-O$level.elf" "$out/b.c"
done
# hand-written code: symbols without type or size, labels in functions
cat >"$out/hand.s" <<'S'
        .globl untyped
untyped:
        nop
        ret
        .type typed, @function
        .globl typed
typed:
        nop
inside: nop
        ret
        .size typed, .-typed
        .globl second
second:
        nop
again:  jmp again
        .type unsized, @function
        .globl unsized
unsized:
        nop
        ret
        .section .note.GNU-stack, ""
S
cat >"$out/hand.c" <<'C'
int untyped(void), typed(void), second(void), unsized(void);
int main(void)
{
    return untyped() + typed() + second() + unsized();
}
C
gcc -g -O1 -o "$out/hand.elf" "$out/hand.c" "$out/hand.s"
gcc -O1 -o "$out/hand-plain.elf" "$out/hand.c" "$out/hand.s"
# assemblers' own tables, with code in several sections (in DWARF 2 only .debug_aranges says whose), and directives of who
# wrote the code
cat >"$out/sections.S" <<'S'
        .text
        .type NAME(first), @function
NAME(first):
        nop
        call NAME(second)
        call NAME(third)
        ret
        .size NAME(first), .-NAME(first)
        .section .text.hot, "ax", @progbits
        .type NAME(second), @function
NAME(second):
        .rept 9
        nop
        addl $1, %eax
        .endr
        ret
        .size NAME(second), .-NAME(second)
        .section .fixup, "ax", @progbits
NAME(third):
        jmp 1f
        .balign 16
1:      ret
        .balign 16
S
cat >"$out/written.S" <<'S'
        .file "grammar.y"
        .file 1 "/generated/grammar.y"
        .file 2 "words.l"
        .text
        .type NAME(written), @function
NAME(written):
        .loc 1 10 3
        nop
        .loc 1 12 5 prologue_end
        call NAME(other)
        .loc 2 7
        nop
        .loc 1 20 1 is_stmt 0
        ret
        .size NAME(written), .-NAME(written)
        .section .text.hot, "ax", @progbits
NAME(other):
        .loc 2 30
        addl $1, %eax
        .loc 1 0
        ret
S
for version in 2 3 4 5; do
    for compiler in gcc clang; do
        (cd "$out" && $compiler -g -gdwarf-$version "-DNAME(name)=of_${version}_##name" -c -o sections-$compiler-$version.o sections.S)
    done
    (cd "$out" && gcc -gdwarf-$version "-DNAME(name)=of_${version}_##name" -c -o written-gcc-$version.o written.S)
done
for compiler in gcc clang; do
    gcc -shared -nostdlib -o "$out/assembled-$compiler.elf" "$out"/sections-$compiler-?.o
done
gcc -shared -nostdlib -o "$out/written.elf" "$out"/written-gcc-?.o
# other languages and compilers
cat >"$out/a.f90" <<'F'
module shapes
contains
  pure function area(r) result(a)
    real, intent(in) :: r
    real :: a
    a = 3.14159 * r * r
  end function
  subroutine fill(v, n)
    integer, intent(in) :: n
    real, intent(out) :: v(n)
    integer :: i
    do i = 1, n
      v(i) = area(real(i)) + i
    end do
  end subroutine
end module
program main
  use shapes
  real :: v(100)
  call fill(v, 100)
  print *, sum(v), maxval(v)
end program
F
cat >"$out/a.asm" <<'N'
section .text
global _start
helper:
  nop
  mov eax, 3
  ret
_start:
  call helper
  mov edi, eax
  mov eax, 60
  syscall
align 16
section .text.hot progbits alloc exec nowrite align=16
hot:
  dec edi
  jnz hot
  ret
align 16
section .unnamed progbits alloc exec nowrite align=16
  int3
  ret
N
for level in 0 2; do
    (cd "$out" && gfortran -g -O$level -static-libgfortran -o fortran-O$level.elf a.f90)
done
tcc -g -o "$out/tcc.elf" "$out/b.c"
for bits in 32 64; do
    nasm -f elf$bits -g -F dwarf -o "$out/nasm-$bits.o" "$out/a.asm"
done
ld -o "$out/nasm-64.elf" "$out/nasm-64.o"
ld -m elf_i386 -o "$out/nasm-32.elf" "$out/nasm-32.o"
