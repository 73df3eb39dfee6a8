/* A stack that tests of the walker build: modules with rules and symbols, registers, words; and what is expected of its walk. */
#pragma once

#include "cache.h"

#include "unwind/walk_impl.h"

enum {
    X86_EAX = 0,
    X86_EBX = 3,
    X86_ESP,
    X86_EBP,
    X86_ESI,
    X86_EDI,
    X86_EIP,
    RAX = 0,
    RBP = 6,
    RSP,
    RIP = 16,
    ARM_R7 = 7,
    ARM_R11 = 11,
    ARM_SP = 13,
    ARM_LR,
    ARM_PC,
    ARM64_X29 = 29,
    ARM64_X30,
    ARM64_SP,
    ARM64_PC,
    MIPS_SP = 29,
    MIPS_PC = 34,
    RISCV_RA = 1,
    RISCV_SP,
    RISCV_S0 = 8,
    RISCV_PC = SL_WALK_RISCV_PC,
    MAX_MODULES = 4, /* modules */
};

#define STACK UINT64_C(0x80000000)

/* Symbols cover what is below a limit. */
struct some_symbols {
    struct sl_walk_symbols base;
    uint64_t limit;
};

static inline bool covers(const struct sl_walk_symbols *symbols, uint64_t address)
{
    return address < ((const struct some_symbols *)symbols)->limit;
}

static struct scene {
    struct sl_arena arena;
    struct sl_walk_target target;
    struct sl_walk_module modules[MAX_MODULES];
    struct sl_cfi cfi[MAX_MODULES];
    struct sl_buf caches[MAX_MODULES], stack;
    struct some_symbols symbols[MAX_MODULES];
    bool has_cfi[MAX_MODULES], has_symbols[MAX_MODULES];
    size_t module_count, cfi_asked, symbols_asked;
    struct sl_range_map map;
    struct sl_registers registers;
    struct sl_walk *walk;
} scene;

static inline void begin(enum sl_cpu_family family)
{
    scene = (struct scene){.target = {.family = family}};
}

static inline void end(void)
{
    for (size_t i = 0; i < MAX_MODULES; i++)
        sl_buf_free(&scene.caches[i]);
    sl_buf_free(&scene.stack);
    sl_arena_free(&scene.arena);
}

/* `records` NULL: there is no call frame information. `symbols` 0: no symbols, else they cover what is below. */
static inline void module_at(uint64_t base, uint64_t size, const char *records, uint64_t symbols)
{
    static const char *const names[] = {
        [SL_CPU_X86] = "x86",   [SL_CPU_X86_64] = "x86_64", [SL_CPU_ARM] = "arm",     [SL_CPU_ARM64] = "arm64",
        [SL_CPU_MIPS] = "mips", [SL_CPU_MIPS64] = "mips64", [SL_CPU_RISCV] = "riscv", [SL_CPU_RISCV64] = "riscv64"};
    size_t i = scene.module_count++;
    scene.modules[i].base = base;
    scene.modules[i].size = size;
    if (records) {
        scene.caches[i] = cache_of_records(names[scene.target.family], records);
        scene.cfi[i] = open_cache(&scene.caches[i]);
        scene.has_cfi[i] = true;
    }
    scene.symbols[i] = (struct some_symbols){{covers}, symbols};
    scene.has_symbols[i] = symbols;
}

static inline void set(unsigned number, uint64_t value)
{
    sl_registers_set(&scene.registers, number, value);
}

static unsigned word(void)
{
    return sl_cpu_pointer_size(scene.target.family);
}

/* Puts words on the stack, which grows upwards from STACK. */
static inline void put(uint64_t value)
{
    put_number(&scene.stack, value, word(), scene.target.big_endian);
}

static inline void put_zeros(size_t count)
{
    while (count--)
        put(0);
}

static inline void start(void)
{
    struct sl_walk_stack stack = {.address = STACK, .bytes = sl_buf_bytes(&scene.stack)};
    struct sl_range ranges[MAX_MODULES];
    for (size_t i = 0; i < scene.module_count; i++)
        ranges[i] = (struct sl_range){scene.modules[i].base, scene.modules[i].base + scene.modules[i].size - 1, false};
    assert_true(sl_range_map_build(&scene.arena, ranges, scene.module_count, &scene.map));
    scene.walk = sl_walk_new(&scene.arena, &scene.target, scene.modules, &scene.map, &scene.registers, &stack);
    assert_non_null(scene.walk);
}

/* Gives the modules what a walk needs. */
static inline void give(struct sl_walk_module *modules, size_t i, enum sl_walk_need need)
{
    if (need == SL_WALK_NEED_CFI)
        sl_walk_set_cfi(&modules[i], scene.has_cfi[i] ? &scene.cfi[i] : NULL);
    else
        sl_walk_set_symbols(&modules[i], scene.has_symbols[i] ? &scene.symbols[i].base : NULL);
}

/* Saves the walk as bytes, and reads these. */
static inline struct sl_walk_saved save(const struct sl_walk *walk)
{
    struct sl_walk_saved saved, again;
    struct sl_buf out = {0};
    sl_walk_save(walk, &saved);
    sl_walk_pack(&saved, &out);
    struct sl_reader r = sl_reader(sl_buf_bytes(&out), false);
    sl_walk_unpack(&r, &again);
    assert_true(!r.failed && !sl_reader_left(&r));
    sl_buf_free(&out);
    return again;
}

/* Walks again with modules of which nothing is known, saved whenever the walk needs something: the frames are the same. */
static inline void expect_same_when_saved(void)
{
    struct sl_walk_stack stack = {.address = STACK, .bytes = sl_buf_bytes(&scene.stack)};
    struct sl_walk_module modules[MAX_MODULES] = {0};
    struct sl_walk_saved saved = {.registers = scene.registers};
    enum sl_walk_need need = SL_WALK_NEED_CFI;
    size_t frames = 0;
    for (size_t i = 0; i < scene.module_count; i++) {
        modules[i].base = scene.modules[i].base;
        modules[i].size = scene.modules[i].size;
        modules[i].cfi_offset = scene.modules[i].cfi_offset;
    }
    while (need != SL_WALK_DONE) {
        size_t module;
        struct sl_walk *walk = sl_walk_resume(&scene.arena, &scene.target, modules, &scene.map, &saved, &stack);
        assert_non_null(walk);
        need = sl_walk_run(walk, &module);
        if (need != SL_WALK_DONE)
            give(modules, module, need);
        for (size_t i = 0; i < walk->frame_count; i++)
            assert_memory_equal(&walk->frames[i], &scene.walk->frames[frames + i], sizeof *walk->frames);
        frames += walk->frame_count;
        saved = save(walk);
        assert_int_equal(saved.frame_count, frames);
    }
    assert_int_equal(frames, scene.walk->frame_count);
}

static inline void run(void)
{
    size_t i;
    enum sl_walk_need need;
    start();
    while ((need = sl_walk_run(scene.walk, &i)) != SL_WALK_DONE) {
        give(scene.modules, i, need);
        scene.cfi_asked += need == SL_WALK_NEED_CFI;
        scene.symbols_asked += need == SL_WALK_NEED_SYMBOLS;
    }
    if (!scene.target.work)
        expect_same_when_saved();
}

static inline const char *trust_name(enum sl_trust trust)
{
    static const char *const names[] = {"none", "scan", "cfiscan", "fp", "cfi", "prewalked", "context"};
    return names[trust];
}

/* "0x1000 context, 0x2000 cfi"; what is in the scene is given back. */
static inline void expect_frames(const char *wanted)
{
    struct sl_buf text = {0};
    run();
    for (size_t i = 0; i < scene.walk->frame_count; i++)
        sl_buf_printf(&text, "%s0x%llx %s", i ? ", " : "", (unsigned long long)scene.walk->frames[i].resume,
                      trust_name(scene.walk->frames[i].trust));
    sl_buf_u8(&text, 0);
    assert_string_equal((const char *)text.data, wanted);
    sl_buf_free(&text);
}

/* The register of the last frame, -1 when it is not known. */
static inline uint64_t last(unsigned number)
{
    const struct sl_registers *registers = &scene.walk->state->frame.registers;
    return walk_known(registers, number) ? registers->value[number] : UINT64_MAX;
}

/* ---- rules ---- */

/* The caller of one frame, whatever it is worth; false when its records yield none. */
static inline bool caller_by(const char *records, struct walk_frame *caller)
{
    module_at(0x40000000, 0x10000, records, 0);
    sl_walk_set_cfi(&scene.modules[0], &scene.cfi[0]);
    start();
    *caller = (struct walk_frame){.trust = SL_TRUST_CFI};
    return walk_by_cfi(scene.walk->state, &scene.walk->state->frame, caller) == WALK_CALLER;
}

static inline void expect_rules(const char *rules, int64_t cfa, int64_t ra)
{
    struct walk_frame caller;
    char records[256];
    snprintf(records, sizeof records, "STACK CFI INIT 1000 10 %s\n", rules);
    begin(SL_CPU_X86_64);
    set(RSP, 32);
    set(RAX, 7);
    set(RIP, 0x40001000);
    bool found = caller_by(records, &caller);
    if (found != (cfa >= 0))
        fail_msg("%s: %s", rules, found ? "a caller" : "none");
    if (found) {
        assert_int_equal(caller.registers.value[RSP], cfa);
        assert_int_equal(caller.registers.value[RIP], ra);
        assert_false(walk_known(&caller.registers, RAX));
    }
    end();
}
