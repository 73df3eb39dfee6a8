#!/bin/sh
# Relocatable objects of the machines whose relocations LLVM's own tools apply, `<machine>-<version of DWARF>.o`, into the given directory.
# Left out are m68k, RISC-V, little-endian SPARC, VE and x32, of which llvm-symbolizer lacks some, and AMD's GPUs, Lanai and 64-bit PowerPC
# with descriptors, whose symbols it takes for others.
set -eu
out=$1
here=$(dirname "$0")
for version in 2 4 5; do
    sed "s/\"Dwarf Version\", i32 5/\"Dwarf Version\", i32 $version/" "$here/machine.ll" >"$out/machine.ll"
    for machine in aarch64 aarch64_be arm armeb avr bpfeb bpfel hexagon i386 loongarch32 loongarch64 mips mips64 mips64el mipsel \
        msp430 powerpc powerpc64le s390x sparc sparcv9 thumb x86_64; do
        llc-19 -O0 -mtriple=$machine-none-elf -filetype=obj "$out/machine.ll" -o "$out/$machine-$version.o"
    done
done
