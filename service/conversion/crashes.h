/* Converters of crash files. `out` gets the crash as bytes (crash/pack.h, minidump/pack.h). */
#pragma once

#include "apple/apple.h"
#include "conversion/conversion.h"
#include "minidump/pack.h"

/* Reads an Apple crash report. Options: struct sl_apple_options. */
extern const struct converter converter_apple_report;

/* Reads a minidump or a microdump, up to what a walk of its stacks begins with. */
extern const struct converter converter_minidump;
struct minidump_options {
    bool details; /* also what only minidumps have (minidump.details of the configuration) */
    bool compat;  /* as Symbolicator: modules do not overlap, RISC-V is unknown, no 32-bit stacks without `details` */
};
struct minidump_result {
    bool is_foreign; /* compat: the CPU is one that Symbolicator does not know */
};

/* Reads an ELF core file of Linux in the same way, with the members of the answer that only cores have. */
extern const struct converter converter_core;
struct core_options {
    bool command_line; /* the answer has that of the process */
};
struct core_result {
    uint64_t vdso_offset, vdso_size; /* bytes: image of the kernel's library in the file; size 0 = it is not there */
};

/* Adds what only minidumps have to the extras of the crash: process id, annotations, unloaded modules, the analysis of the crash. False
 * when out of memory. Pure. */
bool crash_details(struct sl_minidump *dump, struct sl_arena *arena);

/* Copies the output of such a converter, so that nobody can change it while it is checked. SL_BUSY, SL_INTERNAL. Blocks: pool work. */
enum sl_code crash_read_packed(int fd, struct sl_arena *arena, struct sl_bytes *packed, struct sl_error *error);
