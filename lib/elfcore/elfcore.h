/* Core files of Linux: the memory and the registers of a process when a signal ended it (core(5), elf(5); System V ABI, "Program
 * Header"; struct elf_prstatus and elf_prpsinfo of linux/elfcore.h). The kernel writes them, `gcore` of gdb does for running
 * processes, and qemu-user does for programs of other processors.
 *
 *     ELF header, e_type 4 ──▶ program headers ──▶ PT_NOTE: threads and registers, signal, auxiliary vector, mapped files
 *                                               └▶ PT_LOAD: address, size, and the bytes that the file has of it
 *
 *     a note   u32 name size | u32 size | u32 type | name, padded to 4 | contents, padded to 4
 *
 * Reading gives what minidumps give (minidump/minidump.h): threads with registers, modules with ids, memory. So the stack walker
 * takes a core like a minidump. Names of modules come from the note NT_FILE, or from the dynamic linker's list in the memory; ids
 * come from the first page of each module, which the kernel writes by default (coredump_filter, bit 4).
 *
 * A truncated core gives whatever is left of it. Memory that the file does not hold is absent, not zero. */
#pragma once

#include "minidump/minidump.h"

/* A note of packagers in a program or library (https://systemd.io/PACKAGE_METADATA_FOR_EXECUTABLE_FILES). */
struct sl_elfcore_package {
    uint64_t address; /* of the module that has the note */
    struct sl_str code_file;
    struct sl_str json; /* a JSON object, at most 4 KiB */
};

struct sl_elfcore {
    struct sl_minidump dump;    /* `streams` is empty, names of threads are unknown */
    struct sl_str name;         /* of the process: the first 15 bytes of its file name; empty = unknown */
    struct sl_str command_line; /* its first 79 bytes, which may hold secrets; empty = unknown */
    struct sl_elfcore_package *packages;
    size_t package_count;
    uint64_t missing;     /* bytes of memory that the headers announce and a truncated file lacks */
    struct sl_bytes vdso; /* image of the kernel's library [vdso], if the core has all of it; else empty */
};

/* True if the bytes begin with the header of an ELF core file. */
bool sl_elfcore_is(struct sl_bytes bytes);

/* Reads a core file; `bytes` must outlive `core`, and all results lie in the arena or point into `bytes`. SL_MALFORMED: it is no
 * ELF core, or has no thread; SL_BUSY if out of memory. Cores of processors whose registers are unknown are read without stacks
 * (`dump.unread_processor`). Touches only the headers, the notes and the first pages of modules. Pure function. */
enum sl_code sl_elfcore_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_elfcore *core,
                             struct sl_error *error);

/* For a module without an id: true if the segments of the ELF file could be those that are mapped at `address`. A segment of the file for
 * which the core lists no memory is not compared; at least one must be. Pure function. */
bool sl_elfcore_fits(struct sl_bytes bytes, uint64_t address, const struct sl_object *file);

/* Lets the dump's memory continue in the file of the module at `address`, for what the core does not hold: the kernel leaves out pages
 * that were not written to (core(5)), above all code. Only segments without write permission are used. The caller has made sure that
 * `file` is the one that was mapped, by its id; its bytes must outlive the core. Files without code, such as debug files, add
 * nothing. False when out of memory. Pure function. */
bool sl_elfcore_add_file(struct sl_elfcore *core, uint64_t address, struct sl_object *file, struct sl_arena *arena);

/* Writes a smaller core with the same threads, modules and stacks to the empty file `fd`: the notes, the pages that
 * sl_elfcore_read() touches, the instruction that crashed, and of each thread at most 16 MiB of stack from its stack pointer on. Errors as
 * sl_elfcore_read(), and SL_INTERNAL when writing fails. Blocks. */
enum sl_code sl_elfcore_trim(struct sl_bytes bytes, int fd, struct sl_error *error);
