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
    bool has_exception;              /* it crashed, so the instruction can be analysed (converter_core_analysis) */
};

/* Analyses the instruction at which the thread of an ELF core file (INPUT_FILE) crashed. INPUT_CODE, if given: the file of the module
 * with that instruction, as cores of the kernel do not have it themselves; used only if it has the ids of the options and INPUT_CODE_ID. Writes a struct sl_crash as bytes (crash/pack.h) that has
 * nothing but `extras`: the analysis, or none if it found nothing. */
extern const struct converter converter_core_analysis;
struct core_analysis_options {
    uint64_t module; /* address of the module of INPUT_CODE */
    struct sl_debug_id debug_id;
    bool has_debug_id;
    struct reader_limits limits;
};

struct core_analysis_result {
    bool has_used_code; /* INPUT_CODE is the file of the module */
};

/* Adds what only minidumps have to the extras of the crash: process id, annotations, unloaded modules, the analysis of the crash. False
 * when out of memory. Pure. */
bool crash_details(struct sl_minidump *dump, struct sl_arena *arena);

/* Adds the analysis of the crash to the extras, which must have room for one more; nothing if the dump has no exception. False when out
 * of memory. Pure. */
bool crash_add_analysis(struct sl_minidump *dump, struct sl_arena *arena);

/* Copies the output of such a converter, so that nobody can change it while it is checked. SL_BUSY, SL_INTERNAL. Blocks: pool work. */
enum sl_code crash_read_packed(int fd, struct sl_arena *arena, struct sl_bytes *packed, struct sl_error *error);
