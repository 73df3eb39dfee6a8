/* Minidumps in the formats of other tools: shared by dump_text.c (minidump_stackwalk of Breakpad), dump_json.c and dump_walked.c.
 * Private to this folder. */
#pragma once

#include "cli/symbolicate/symbolicate.h"
#include "config/config.h"
#include "minidump/analysis.h"
#include "minidump/facts.h"

/* A word in stack memory that points into a module, and the function and source line there. */
struct stack_name {
    uint64_t value;               /* the word: an address */
    uint64_t line, line_start;    /* the line and its first address; 0: unknown */
    struct sl_str function, file; /* empty: unknown */
};

/* Data of a minidump or core that some formats print and the service's answer lacks, such as registers of callers and stack memory. */
struct walked_dump {
    struct sl_arena arena;
    struct sl_minidump dump;              /* parsed by walked_dump_read: its threads have no frames */
    struct sl_minidump_facts facts;       /* read only if wants_facts is set */
    struct sl_minidump_analysis analysis; /* read only if wants_facts is set */
    bool is_core;                         /* an ELF core file instead of a minidump */
    bool wants_facts;                     /* the output format has needs_facts */
    bool was_searched;                    /* at least one symbol source was searched */
    /* [thread][original_index]: the frame's return address; for frame 0 its program counter; [thread] is NULL if it was not walked */
    uint64_t **resume;
    uint64_t **instruction;          /* [thread][original_index]: the current instruction; in callers, the call */
    struct sl_registers **registers; /* [thread][original_index]; [thread] is NULL if the walk kept no registers */
    size_t *counts;                  /* [thread]: number of walked frames, without inlined calls */
    size_t thread_count;             /* number of elements of each of the four arrays above */
    struct stack_name *names;        /* sorted by value; only for --stack-contents, --stack-pointers */
    size_t name_count;
};

/* The callback crash_file.walked: copies addresses and registers of all walked frames to `arg`, a struct walked_dump, since `dump` is freed
 * after the walk. False when out of memory. */
bool walked_dump_copy(void *arg, const struct sl_minidump *dump);
/* Parses the file again to fill `dump` and, with wants_facts, `facts` and `analysis`: the parsed dump that the walk used is freed by then.
 * Returns SL_BUSY when out of memory, or the parser's error. */
enum sl_code walked_dump_read(struct walked_dump *walked, struct sl_bytes bytes, struct sl_error *error);
void walked_dump_free(struct walked_dump *walked);

/* Fills walked->names with the words in stack memory that point into modules, and the functions there, which it looks up in the symbol
 * sources of `file`. `answer` is the dump's answer as JSON: the requests for names send its list of modules. Call it after
 * walked_dump_read(). Returns SL_BUSY when out of memory, or the error of names_find(). */
enum sl_code stack_words_symbolicate(struct walked_dump *walked, struct sl_str answer, const struct crash_file *file,
                                     const struct config *config, struct sl_error *error) SL_SUSPENDS;

/* Appends the stack memory between two addresses as a hex dump, then the words in it that point into functions (--stack-contents). Appends
 * nothing when the dump lacks the memory. */
void stack_put_contents(const struct walked_dump *walked, size_t thread, uint64_t begin, uint64_t end,
                        struct sl_buf *out);
/* Appends each word of the thread's stack memory, with the function that it points into (--stack-pointers). `pointer` is the thread's stack
 * pointer, if has_pointer. */
void stack_put_pointers(const struct walked_dump *walked, size_t thread, bool has_pointer, uint64_t pointer,
                        struct sl_buf *out);

struct shown_register {
    const char *name; /* NULL ends the list */
    uint8_t number;   /* the DWARF number */
};
/* Returns the registers that a frame shows on this processor, in the order of minidump_stackwalk; an empty list if it is unknown. */
const struct shown_register *shown_registers(enum sl_cpu_family family);

/* Returns the CPU family of the thread's registers. It differs from the dump's for threads of a 32-bit program on a 64-bit system. */
enum sl_cpu_family thread_family(const struct walked_dump *walked, size_t thread);

/* Returns the registers of a frame of the answer; NULL when none are known. */
const struct sl_registers *frame_registers(const struct walked_dump *walked, size_t thread,
                                           const struct answer_frame *frame);

/* Returns the address at which the frame's function continues: in a caller the return address of its call, in the innermost frame the
 * program counter. If the dump's writer walked the stack ("prewalked"), returns the frame's address in the answer: no other is known. */
uint64_t frame_resume(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);
/* Returns the address of the instruction that the frame executes: in callers the call, else the program counter. */
uint64_t frame_instruction(const struct walked_dump *walked, size_t thread, const struct answer_frame *frame);

/* True if the thread wrote the dump: Breakpad's output leaves it out and does not number it. */
bool dump_thread_is_writer(const struct walked_dump *walked, size_t thread);
/* Returns the thread's number in Breakpad's output: its index, not counting threads before it that wrote the dump. */
size_t dump_thread_number(const struct walked_dump *walked, size_t thread);

/* Returns Breakpad's name of the processor, such as "amd64". */
const char *dump_cpu_name(const struct sl_minidump *dump);
/* Returns Breakpad's name of the operating system, such as "Windows NT". */
const char *dump_os_name(const struct sl_minidump *dump);
/* Returns the answer's crash reason, but cuts off the address at its end (" / 0x.."). */
struct sl_str dump_reason(const struct symbolicated_answer *answer);
/* Sets the uptime of the process, from its start to the crash, in seconds; false when it is unknown. */
bool dump_uptime(const struct sl_minidump *dump, uint64_t *seconds);
/* Returns the answer's entry for a module of the dump; NULL if it has none. Call it for the dump's modules in their order, which the
 * answer's list also has; `*next`, at first 0, is the position in that list. */
const struct answer_module *dump_find_module_answer(const struct symbolicated_answer *answer,
                                                    const struct sl_crash_module *module, size_t *next);
