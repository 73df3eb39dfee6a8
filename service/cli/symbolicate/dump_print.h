/* Minidumps as other tools tell of them: what dump_text.c (Breakpad's texts), dump_json.c and dump_walked.c share. Private to this
 * folder. */
#pragma once

#include "cli/symbolicate/symbolicate.h"
#include "config/config.h"
#include "minidump/analysis.h"
#include "minidump/facts.h"

/* A word of a stack, and the function that it points into; the file may be empty. */
struct stack_name {
    uint64_t value, line, line_start;
    struct sl_str function, file;
};

/* A dump as it was walked: what answers do not tell of it. */
struct walked_dump {
    struct sl_arena arena;
    struct sl_minidump dump;              /* read anew: its threads have no frames */
    struct sl_minidump_facts facts;       /* when they are wanted */
    struct sl_minidump_analysis analysis; /* the same */
    bool wants_facts, was_searched;       /* symbols were looked for anywhere */
    uint64_t **resume;               /* of each thread the frames', by their original_index; NULL: it was not walked */
    uint64_t **instruction;          /* the same: the instruction that the frame is at, which called the next one */
    struct sl_registers **registers; /* the same; NULL also when they are not wanted */
    size_t *counts;
    size_t thread_count;
    struct stack_name *names; /* by value; when stacks are told of */
    size_t name_count;
};

/* Keeps what was walked: `walked` of struct crash_file. */
bool walked_dump_keep(void *arg, const struct sl_minidump *dump);
/* Reads the rest; after the walk. */
enum sl_code walked_dump_read(struct walked_dump *walked, struct sl_bytes bytes, struct sl_error *error);
void walked_dump_free(struct walked_dump *walked);

/* Finds the words of stacks that point into functions of the modules of the answer to the dump's file; behind walked_dump_read. */
enum sl_code stack_words_name(struct walked_dump *walked, struct sl_str answer, const struct crash_file *file,
                              const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* What the thread's stack holds between two addresses, in bytes and such words: --stack-contents. Nothing when that is not there. */
void stack_put_contents(const struct walked_dump *walked, size_t thread, uint64_t begin, uint64_t end,
                        struct sl_buf *out);
/* Each word of the thread's stack: --stack-pointers. */
void stack_put_pointers(const struct walked_dump *walked, size_t thread, bool has_pointer, uint64_t pointer,
                        struct sl_buf *out);

/* Registers in the order of the texts. */
struct shown_register {
    const char *name; /* NULL ends the list */
    uint8_t number;   /* DWARF's */
};
const struct shown_register *shown_registers(enum sl_cpu_family family);

/* The processor whose registers the thread has. */
enum sl_cpu_family thread_family(const struct walked_dump *walked, size_t thread);

/* Of a frame of the answer; NULL when nothing is known of it. */
const struct sl_registers *frame_registers(const struct walked_dump *walked, size_t thread,
                                           const struct answer_frame *frame);

/* The address to return to, as the dump has it; of the innermost frame where it stopped. */
uint64_t frame_resume(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);
/* The instruction that the frame is at: the call, of all but the innermost. */
uint64_t frame_instruction(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);

/* The thread that wrote the dump is none of Breakpad's texts', and has no number in them. */
bool dump_thread_is_writer(const struct walked_dump *walked, size_t thread);
/* The thread's number in these texts: how many others come before it. */
size_t dump_thread_number(const struct walked_dump *walked, size_t thread);

/* "amd64" */
const char *dump_cpu_name(const struct sl_minidump *dump);
const char *dump_os_name(const struct sl_minidump *dump);
/* Why it crashed, without the address. */
struct sl_str dump_reason(const struct answer *answer);
/* The seconds from the start of the process to the dump; false when they are not known. */
bool dump_uptime(const struct sl_minidump *dump, uint64_t *seconds);
/* The module's part in the answer: NULL: nobody asked for it, or what became of it. Both lists have the same order, in which it is
 * asked for; `*next` is 0 at first. */
const struct answer_module *dump_next_answer(const struct answer *answer, const struct sl_crash_module *module,
                                             size_t *next);
