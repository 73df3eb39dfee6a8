#!/bin/sh
# Small programs of which compare.py --every asks every byte: hand-written code with symbols in symbols and at their beginnings, firmware whose first
# segment is not the lowest, code in sections of its own, machines and formats of all kinds.
# usage: small.sh DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

cat "$here/nest.s" - >nest.s <<'S'
.fill 7,1,0x90
.type after,@function
after: nop
.size after,1
untyped: nop
nop
.type empty,@function
empty: also: .type sized,@function
sized: nop
.size sized,1
nop
.section .text.last,"ax"
.type unsized,@function
unsized: nop
nop
S
gcc -c nest.s && ld -o nest.elf nest.o
clang-19 -g -c -o nest-lines.o nest.s && ld -o nest-lines.elf nest-lines.o

cat >tiny.c <<'C'
int state;
static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + state; }
__attribute__((noinline, aligned(64))) int work(int x) { return twice(x) + 1; }
__attribute__((noinline)) static int local(int x) { state++; return work(x) - x; }
int _start(int x) { return local(x) + twice(x); }
C
for target in x86_64 aarch64 riscv64 s390x loongarch64; do
    clang-19 --target=$target-linux-gnu -g -O1 -ffreestanding -c -o tiny.o tiny.c
    ld.lld-19 -o tiny-$target.elf tiny.o
    llvm-objcopy-19 --strip-debug tiny-$target.elf bare-$target.elf
done
cat >fw.ld <<'L'
PHDRS { flash PT_LOAD; code PT_LOAD; ram PT_LOAD; }
ENTRY(_start)
SECTIONS {
    .vectors 0x60000000 : { LONG(1) } :flash
    .text 0x100 : { *(.text*) } :code
    .data 0x20000000 : { *(.data*) *(.bss*) } :ram
}
L
clang-19 --target=thumbv7em-none-eabi -g -O1 -ffreestanding -c -o fw.o tiny.c
ld.lld-19 -T fw.ld -o fw.elf fw.o

sed 's/__attribute__((noinline)) static/__attribute__((noinline, section("__TEXT,__hot_text,regular,pure_instructions"))) static/' tiny.c >mac.c
cat >hand.s <<'S'
.globl _first
_first: nop
local: nop
.p2align 5
.globl _second
_second: nop
nop
S
for target in x86_64 arm64; do
    clang-14 --target=$target-apple-macos11 -g -gdwarf-4 -O1 -c -o mac.o mac.c
    clang-14 --target=$target-apple-macos11 -c -o hand.o hand.s
    ld64.lld-14 -platform_version macos 11 11 -arch $target -dylib -undefined dynamic_lookup -o tiny-$target.dylib mac.o hand.o
    dsymutil-14 --flat -o tiny-$target.dwarf tiny-$target.dylib
done

x86_64-w64-mingw32-gcc -g -O1 -nostdlib -Wl,-e,_start -o tiny.exe tiny.c
gcc -g -O1 -fpic -ffreestanding -shared -nostdlib -Wl,-Bsymbolic -o efi.so tiny.c
objcopy -j .text -j .data --target efi-app-x86_64 --subsystem=10 efi.so efi.exe
mkdir pdb
sed '/^local/d; s/_first/first/; s/_second/second/' hand.s >public.s
for target in x86_64 aarch64; do
    clang-14 --target=$target-pc-windows-msvc -g -gcodeview -gdwarf-4 -O1 -ffreestanding -c -o msvc.obj tiny.c
    clang-14 --target=$target-pc-windows-msvc -c -o public.obj public.s
    link="lld-link-14 /nodefaultlib /entry:_start /subsystem:console /opt:noref /opt:noicf msvc.obj public.obj"
    $link /debug /out:pdb/tiny-$target.exe 2>/dev/null
    $link /debug:dwarf /out:pdb/tiny-$target.pdb.reference 2>/dev/null
    llvm-objcopy-14 --strip-debug pdb/tiny-$target.exe
done

clang-14 --target=wasm32 -g -gdwarf-4 -O1 -c -o wasm.o tiny.c
wasm-ld-14 --no-entry --export-all -o tiny.wasm wasm.o
wasm-ld-14 --no-entry --export-all --strip-debug -o bare.wasm wasm.o

mkdir go
cat >go/tiny.go <<'G'
package main

type shape interface{ area(scale int) int }
type square struct{ side int }

func (s square) area(scale int) int { return twice(s.side) * scale }

func twice(x int) int { return x + x }

//go:noinline
func total(shapes []shape) (sum int) {
	for i, s := range shapes {
		func() {
			defer func() { sum++ }()
			sum += s.area(i)
		}()
	}
	return
}

func main() {
	println(total([]shape{square{2}, square{3}}))
}
G
export HOME="$PWD" GO111MODULE=off CGO_ENABLED=0
go build -o go/tiny.elf.reference go/tiny.go
go build -ldflags="-s -w" -o go/tiny.elf go/tiny.go
