#!/bin/sh
# Builds one C++ program in the formats other than ELF into the given directory: what compare.py takes are x.pdb (beside
# x.exe), x.dwarf (beside x.dylib), x.wasm, x.exe with DWARF, and x.sym.
#
# usage: formats.sh DIRECTORY SYMLOOM [LEVEL ...]
set -eu
source=$(dirname "$(realpath "$0")")/formats.cc
symloom=$(realpath "$2")
cd "$1"
shift 2
[ $# -gt 0 ] || set -- 0 1 2
cp "$source" a.cc
freestanding="-ffreestanding -fno-builtin -fno-rtti -fno-exceptions -fno-threadsafe-statics"
for level; do
    # the same objects, linked with PDB and with DWARF: what the one says the other must not deny
    for target in x86_64 i686 aarch64; do
        name=msvc-$target-O$level
        clang++-14 -Wno-stdlibcxx-not-found --target=$target-pc-windows-msvc $freestanding -mno-stack-arg-probe -g -gcodeview -gdwarf-4 -O$level -c -o $name.obj a.cc
        link="lld-link-14 /nodefaultlib /entry:entry /subsystem:console /opt:noref /opt:noicf /force:unresolved"
        $link /debug /out:$name.exe $name.obj 2>/dev/null
        $link /debug:dwarf /out:$name.pdb.reference $name.obj 2>/dev/null
        llvm-objcopy-14 --strip-debug $name.exe # what is said in DWARF too
        mkdir -p pdb && mv $name.exe $name.pdb $name.pdb.reference pdb/
    done
    for target in x86_64 arm64; do
        name=macho-$target-O$level
        clang++-14 -Wno-stdlibcxx-not-found --target=$target-apple-macos11 $freestanding -g -gdwarf-4 -O$level -c -o $name.o a.cc
        ld64.lld-14 -platform_version macos 11 11 -undefined dynamic_lookup -arch $target -dylib -o $name.dylib $name.o
        dsymutil-14 --flat -o $name.dwarf $name.dylib
    done
    clang++-14 -Wno-stdlibcxx-not-found --target=wasm32 $freestanding -g -gdwarf-4 -O$level -c -o wasm.o a.cc
    wasm-ld-14 --no-demangle --no-entry --export-all --allow-undefined -o wasm.linked wasm.o
    printf 0123456789abcde$level >wasm.id # this wasm-ld has none of its own
    llvm-objcopy-14 --add-section=build_id=wasm.id wasm.linked wasm-O$level.wasm
    x86_64-w64-mingw32-g++ -g -O$level -Wl,--build-id -o mingw-gcc-O$level.exe a.cc
    clang++-14 -Wno-stdlibcxx-not-found --target=i686-w64-mingw32 $freestanding -g -gdwarf-4 -O$level -c -o mingw.o a.cc
    i686-w64-mingw32-gcc -Wl,--build-id -o mingw-clang-O$level.exe mingw.o
    for file in macho-arm64-O$level.dwarf mingw-gcc-O$level.exe pdb/msvc-i686-O$level.pdb; do
        "$symloom" dump-syms --inlines "$file" -o "$(basename "$file").sym"
    done
done
