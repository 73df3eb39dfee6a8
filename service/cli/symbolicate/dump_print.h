/* Minidumps in the formats of other tools: shared by dump_text.c (minidump_stackwalk of Breakpad), dump_json.c and dump_walked.c.
 * Private to this folder. */
#pragma once

#include "cli/symbolicate/symbolicate.h"
#include "config/config.h"
#include "minidump/analysis.h"
#include "minidump/facts.h"

/* A stack word that points into a function; the file may be empty. */
struct stack_name {
    uint64_t value, line, line_start;
    struct sl_str function, file;
};

/* The result of the stack walk: data that formats need and the service's answer lacks. */
struct walked_dump {
    struct sl_arena arena;
    struct sl_minidump dump;              /* parsed again: its threads have no frames */
    struct sl_minidump_facts facts;       /* only with wants_facts */
    struct sl_minidump_analysis analysis; /* only with wants_facts */
    bool is_core;                         /* an ELF core file instead of a minidump */
    bool wants_facts, was_searched;       /* was_searched: at least one symbol source was searched */
    uint64_t **resume;                    /* resume addresses by thread and original_index; NULL: not walked */
    uint64_t **instruction;               /* current instructions, indexed like `resume`; the call, in callers */
    struct sl_registers **registers;      /* registers, indexed like `resume`; NULL also without needs_registers */
    size_t *counts;
    size_t thread_count;
    struct stack_name *names; /* sorted by value; only for --stack-contents, --stack-pointers */
    size_t name_count;
};

/* Copies the result of the walk: the `walked` callback of struct crash_file. */
bool walked_dump_copy(void *arg, const struct sl_minidump *dump);
/* Parses the dump for the members that the walk does not fill. Call it after the walk. */
enum sl_code walked_dump_read(struct walked_dump *walked, struct sl_bytes bytes, struct sl_error *error);
void walked_dump_free(struct walked_dump *walked);

/* Fills `names`: the stack words that point into functions of the answer's modules. Call it after walked_dump_read. */
enum sl_code stack_words_symbolicate(struct walked_dump *walked, struct sl_str answer, const struct crash_file *file,
                                     const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Appends the stack memory between two addresses as bytes and named words (--stack-contents); nothing when the dump lacks it. */
void stack_put_contents(const struct walked_dump *walked, size_t thread, uint64_t begin, uint64_t end,
                        struct sl_buf *out);
/* Appends each word of the thread's stack with its name (--stack-pointers). */
void stack_put_pointers(const struct walked_dump *walked, size_t thread, bool has_pointer, uint64_t pointer,
                        struct sl_buf *out);

/* The registers in the order of minidump_stackwalk. */
struct shown_register {
    const char *name; /* NULL ends the list */
    uint8_t number;   /* the DWARF number */
};
const struct shown_register *shown_registers(enum sl_cpu_family family);

/* Returns the CPU family of the thread's registers. */
enum sl_cpu_family thread_family(const struct walked_dump *walked, size_t thread);

/* Returns the registers of a frame of the answer; NULL when none are known. */
const struct sl_registers *frame_registers(const struct walked_dump *walked, size_t thread,
                                           const struct answer_frame *frame);

/* Returns the frame's resume address as the dump has it: the return address, or the program counter in the innermost
 * frame. */
uint64_t frame_resume(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);
/* Returns the frame's current instruction: the call, in all but the innermost frame. */
uint64_t frame_instruction(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);

/* True if the thread wrote the dump: Breakpad's output leaves it out and does not number it. */
bool dump_thread_is_writer(const struct walked_dump *walked, size_t thread);
/* Returns the thread's number in Breakpad's output: the number of listed threads before it. */
size_t dump_thread_number(const struct walked_dump *walked, size_t thread);

/* Returns Breakpad's name of the processor, such as "amd64". */
const char *dump_cpu_name(const struct sl_minidump *dump);
const char *dump_os_name(const struct sl_minidump *dump);
/* Returns the crash reason without the address. */
struct sl_str dump_reason(const struct symbolicated_answer *answer);
/* Sets the uptime of the process in seconds; false when it is unknown. */
bool dump_uptime(const struct sl_minidump *dump, uint64_t *seconds);
/* Returns the answer's entry for a module: NULL if no frame referred to it. Call it for the modules in order: both lists have the
 * same order. `*next` is 0 at first. */
const struct answer_module *dump_find_module_answer(const struct symbolicated_answer *answer,
                                                    const struct sl_crash_module *module, size_t *next);
