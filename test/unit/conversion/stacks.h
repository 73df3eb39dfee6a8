/* A dump of one thread of amd64 in a module of /bin/a: its stack has a word that scanning takes for a return address. */
#pragma once

#include "conversion/crashes.h"
#include "conversion/walks.h"
#include "minidump/pack.h"

enum { STACKS_PC = 0x400010, STACKS_RETURN = 0x400020, STACKS_SP = 0x7000 };

struct test_stacks {
    uint8_t file[64]; /* the stack */
    struct sl_registers registers;
    struct sl_minidump_thread threads[1];
    struct sl_crash_thread known[1];
    struct sl_crash_module modules[1];
    struct sl_minidump dump;
    struct sl_buf packed;
};

static inline void test_stacks_make(struct test_stacks *s)
{
    *s = (struct test_stacks){.file = {[8] = STACKS_RETURN & 0xFF, [10] = STACKS_RETURN >> 16}};
    sl_registers_set(&s->registers, 16, STACKS_PC);
    sl_registers_set(&s->registers, 7, STACKS_SP);
    s->threads[0] = (struct sl_minidump_thread){.family = SL_CPU_X86_64,
                                                .is_walked = true,
                                                .initial = &s->registers,
                                                .stack = {STACKS_SP, {s->file, sizeof s->file}}};
    s->modules[0] = (struct sl_crash_module){.address = 0x400000, .size = 0x1000};
    s->dump = (struct sl_minidump){
        .bytes = {s->file, sizeof s->file},
        .family = SL_CPU_X86_64,
        .threads = s->threads,
        .crash = {.modules = s->modules, .module_count = 1, .threads = s->known, .thread_count = 1}};
    sl_minidump_pack_stacks(&s->dump, &s->packed);
}

static inline void test_stacks_free(struct test_stacks *s)
{
    sl_buf_free(&s->packed);
}
