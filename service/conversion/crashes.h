/* Converters of crash files. `out` gets the crash as bytes (crash/pack.h, minidump/pack.h). */
#pragma once

#include "apple/apple.h"
#include "conversion/conversion.h"
#include "minidump/pack.h"

/* Reads an Apple crash report. Options: struct sl_apple_options. */
extern const struct converter converter_apple_report;

/* Reads a minidump or a microdump: everything but the frames, which need symbols and are found later by walking its stacks. */
extern const struct converter converter_minidump;
struct minidump_options {
    bool details; /* add data that only minidumps have (`minidump.details` of the configuration) */
    /* do as Symbolicator: drop overlapping modules, treat RISC-V as unknown, use 32-bit stacks of WOW64 only with `details` */
    bool compat;
};
struct minidump_result {
    bool is_foreign; /* with `compat`: the CPU is one that Symbolicator does not know, so there are no stacks */
};

/* Reads an ELF core file of Linux into the same output as converter_minidump, with the members of the answer that only cores have. */
extern const struct converter converter_core;
struct core_options {
    bool command_line; /* the answer has the command line of the process */
};
struct core_result {
    /* where the image of the vDSO, the kernel's library, lies in the file: bytes; size 0 = it is not there */
    uint64_t vdso_offset, vdso_size;
    bool has_exception; /* the process crashed, so converter_core_analysis can analyse the instruction */
};

/* Analyses the instruction at which the process of an ELF core file (INPUT_FILE) crashed. INPUT_CODE, if given, is the file of the module
 * with that instruction, since the kernel does not write code to cores; it is used only if it has the ids in the options and in
 * INPUT_CODE_ID. Writes a packed struct sl_crash (crash/pack.h) with nothing but `extras`: the analysis, or none if it found nothing. */
extern const struct converter converter_core_analysis;
struct core_analysis_options {
    uint64_t module; /* address where the module of INPUT_CODE was loaded */
    struct sl_debug_id debug_id;
    bool has_debug_id;
    struct reader_limits limits;
};

struct core_analysis_result {
    bool has_used_code; /* INPUT_CODE has the ids of the module, and was used */
};

/* Sets crash.extras to data that only minidumps have (process id, annotations, unloaded modules and more) and the analysis of the crash.
 * False when out of memory. Pure. */
bool crash_details(struct sl_minidump *dump, struct sl_arena *arena);

/* Adds the analysis of the crash to crash.extras, which must have room for one more; nothing if the dump has no exception or the analysis
 * found nothing. False when out of memory. Pure. */
bool crash_add_analysis(struct sl_minidump *dump, struct sl_arena *arena);

/* Copies the output `fd` of a converter of crash files to the arena, so that a worker cannot change it while it is checked. SL_BUSY
 * when out of memory, SL_INTERNAL if it cannot be read. Blocks: run it on the pool. */
enum sl_code crash_read_packed(int fd, struct sl_arena *arena, struct sl_bytes *packed, struct sl_error *error);
