/* What single instructions do with given registers. Register N of a test is 0x1000 * (N + 1), in DWARF's numbers. */
#include "../check.h"

#include "disasm/effects.h"

enum { AT = 0x40000, R = SL_DISASM_READS, W = SL_DISASM_WRITES, RW = R | W };

struct sample {
    const char *bytes, *text;
    struct {
        uint64_t address;
        uint32_t size;
        uint8_t direction;
    } accesses[3]; /* a direction of 0 ends them */
    enum sl_disasm_flow flow;
    uint64_t target;
    const char *bases; /* NULL: not looked at */
    bool is_unknown;   /* what it accesses is not known */
};

#define REG(n) (UINT64_C(0x1000) * ((n) + 1))

static bool get_register(const void *arg, unsigned number, uint64_t *value)
{
    *value = REG(number);
    return true;
}

static struct sl_disasm_effects effects_of(enum sl_arch arch, const char *hex,
                                           const struct sl_disasm_registers *registers)
{
    uint8_t bytes[16];
    size_t size = 0;
    struct sl_disasm_effects effects;
    for (; hex[2 * size]; size++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * size, "%2x", &byte), 1);
        bytes[size] = (uint8_t)byte;
    }
    struct sl_disasm_code code = {.arch = arch, .bytes = {bytes, size}, .address = AT, .size = size};
    struct sl_error error;
    enum sl_code result = sl_disasm_effects(&code, registers, &effects, &error);
    if (result != SL_OK)
        fail_msg("%s: %s", hex, error.message);
    assert_int_equal(effects.size, size);
    return effects;
}

static void check_samples(enum sl_arch arch, const struct sample *samples, size_t count)
{
    const struct sl_disasm_registers registers = {.get = get_register};
    for (size_t i = 0; i < count; i++) {
        const struct sample *s = &samples[i];
        struct sl_disasm_effects effects = effects_of(arch, s->bytes, &registers);
        char bases[64] = "";
        assert_string_equal(effects.text, s->text);
        if (effects.has_accesses == s->is_unknown || effects.flow != s->flow)
            fail_msg("%s: known %d, flow %d", s->text, effects.has_accesses, effects.flow);
        if (s->flow == SL_DISASM_DIRECT || s->flow == SL_DISASM_INDIRECT)
            assert_int_equal(effects.target, s->target);
        for (size_t k = 0; k < effects.base_count; k++)
            snprintf(bases + strlen(bases), sizeof bases - strlen(bases), "%s ", effects.bases[k].name);
        if (s->bases)
            assert_string_equal(bases, s->bases);
        for (size_t k = 0; k < 3 && !s->is_unknown; k++) {
            if (k >= effects.access_count && s->accesses[k].direction)
                fail_msg("%s: access %zu is missing", s->text, k);
            if (k >= effects.access_count || !s->accesses[k].direction) {
                assert_int_equal(effects.access_count, k);
                break;
            }
            const struct sl_disasm_access *got = &effects.accesses[k];
            if (got->address != s->accesses[k].address || got->size != s->accesses[k].size ||
                got->direction != s->accesses[k].direction)
                fail_msg("%s: access %zu of %u bytes at 0x%llx, direction %d", s->text, k, got->size,
                         (unsigned long long)got->address, got->direction);
        }
    }
}

TEST(amd64_effects_are_found)
{
    /* rax 0x1000, rdx 0x2000, rcx 0x3000, rbx 0x4000, rsi 0x5000, rdi 0x6000, rsp 0x8000 */
    static const struct sample samples[] = {
        {"c7400805000000", "mov dword [rax + 0x8], 0x5", {{0x1008, 4, W}}, SL_DISASM_NEXT, 0, "rax ", false},
        {"8a448bf0",
         "mov al, byte [rbx + rcx * 4 - 0x10]",
         {{0x4000 + 4 * 0x3000 - 0x10, 1, R}},
         SL_DISASM_NEXT,
         0,
         "rbx rcx ",
         false},
        {"c704254500000005000000", "mov dword [0x45], 0x5", {{0x45, 4, W}}, SL_DISASM_NEXT, 0, "", false},
        {"c604254200008001", "mov byte [0x80000042], 0x1", {{0xFFFFFFFF80000042, 1, W}}, SL_DISASM_NEXT, 0, "", false},
        {"53", "push rbx", {{0x7FF8, 8, W}}, SL_DISASM_NEXT, 0, "", false},
        {"58", "pop rax", {{0x8000, 8, R}}, SL_DISASM_NEXT, 0, "", false},
        {"ff5010",
         "call qword [rax + 0x10]",
         {{0x1010, 8, R}, {0x7FF8, 8, W}},
         SL_DISASM_INDIRECT,
         0x1010,
         "rax ",
         false},
        {"ffd2", "call rdx", {{0x7FF8, 8, W}}, SL_DISASM_DIRECT, 0x2000, "", false},
        {"c3", "ret", {{0x8000, 8, R}}, SL_DISASM_INDIRECT, 0x8000, "", false},
        {"ff24c8",
         "jmp qword [rax + rcx * 8]",
         {{0x1000 + 8 * 0x3000, 8, R}},
         SL_DISASM_INDIRECT,
         0x19000,
         NULL,
         false},
        {"f3a4", "rep movsb", {{0x6000, 1, W}, {0x5000, 1, R}}, SL_DISASM_NEXT, 0, NULL, false},
        {"488d4308", "lea rax, [rbx + 0x8]", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, false},
        {"0f1f00", "nop dword [rax], eax", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, false},
        {"488b0500010000", "mov rax, qword [rip + 0x100]", {{AT + 7 + 0x100, 8, R}}, SL_DISASM_NEXT, 0, "", false},
        {"0107", "add dword [rdi], eax", {{0x6000, 4, RW}}, SL_DISASM_NEXT, 0, "rdi ", false},
        {"678b4104", "mov eax, dword [ecx + 0x4]", {{0x3004, 4, R}}, SL_DISASM_NEXT, 0, "rcx ", false},
        {"65488b042530000000", "mov rax, qword gs:[0x30]", {{0, 0, 0}}, SL_DISASM_NEXT, 0, "", true},
        {"c4e269900408", "vpgatherdd xmm0, dword [rax + xmm1], xmm2", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, true},
        {"7510", "jnz 0x40012", {{0, 0, 0}}, SL_DISASM_UNKNOWN, 0, "", false},
    };
    check_samples(SL_ARCH_X86_64, samples, sizeof samples / sizeof *samples);
}

TEST(x86_effects_are_found)
{
    /* eax 0x1000, esp 0x5000 */
    static const struct sample samples[] = {
        {"c70007000000", "mov dword [eax], 0x7", {{0x1000, 4, W}}, SL_DISASM_NEXT, 0, "eax ", false},
        {"53", "push ebx", {{0x4FFC, 4, W}}, SL_DISASM_NEXT, 0, "", false},
        {"c3", "ret", {{0x5000, 4, R}}, SL_DISASM_INDIRECT, 0x5000, "", false},
    };
    check_samples(SL_ARCH_X86, samples, sizeof samples / sizeof *samples);
}

TEST(segment_base_is_added_to_addresses)
{
    /* GS of Windows */
    const struct sl_disasm_registers registers = {.get = get_register, .has_segment = true, .segment = 0x70000};
    struct sl_disasm_effects effects = effects_of(SL_ARCH_X86_64, "65488b042530000000", &registers);
    assert_true(effects.has_accesses);
    assert_int_equal(effects.accesses[0].address, 0x70030);
}

TEST(divisions_privileged_and_non_canonical_accesses_are_flagged)
{
    const struct sl_disasm_registers registers = {.get = get_register};
    static const struct {
        const char *bytes;
        bool is_division, is_privileged, non_canonical;
    } samples[] = {
        {"f7f1", true, false, true},     /* div ecx */
        {"f4", false, true, false},      /* hlt */
        {"0f2806", false, false, false}, /* movaps xmm0, [rsi], which has to be aligned */
        {"0f1006", false, false, true},  /* movups xmm0, [rsi] */
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct sl_disasm_effects effects = effects_of(SL_ARCH_X86_64, samples[i].bytes, &registers);
        assert_int_equal(effects.is_division, samples[i].is_division);
        assert_int_equal(effects.is_privileged, samples[i].is_privileged);
        assert_int_equal(effects.faults_only_non_canonical, samples[i].non_canonical);
    }
}

TEST(arm64_effects_are_found)
{
    static const struct sample samples[] = {
        {"200440f9", "ldr x0, [x1, #0x8]", {{REG(1) + 8, 8, R}}, SL_DISASM_NEXT, 0, "x1 ", false},
        {"23d822b8", "str w3, [x1, w2, sxtw #2]", {{REG(1) + 4 * REG(2), 4, W}}, SL_DISASM_NEXT, 0, "x1 x2 ", false},
        {"fd7bc2a8", "ldp x29, x30, [sp], #0x20", {{REG(31), 16, R}}, SL_DISASM_NEXT, 0, NULL, false},
        {"8004bfad", "stp q0, q1, [x4, #-0x20]!", {{REG(4) - 32, 32, W}}, SL_DISASM_NEXT, 0, NULL, false},
        {"80000058", "ldr x0, #0x10", {{AT + 16, 8, R}}, SL_DISASM_NEXT, 0, NULL, false},
        {"00013fd6", "blr x8", {{0, 0, 0}}, SL_DISASM_DIRECT, REG(8), "", false},
        {"c0035fd6", "ret", {{0, 0, 0}}, SL_DISASM_DIRECT, REG(30), "", false},
        {"40000054", "b.eq 0x40008", {{0, 0, 0}}, SL_DISASM_UNKNOWN, 0, NULL, false},
        {"620021b8", "ldadd w1, w2, [x3]", {{REG(3), 4, RW}}, SL_DISASM_NEXT, 0, NULL, false},
        {"41fc0008", "stlxrb w0, w1, [x2]", {{REG(2), 1, W}}, SL_DISASM_NEXT, 0, NULL, false},
        {"a0a0404c", "ld1 { v0.16b, v1.16b }, [x5]", {{REG(5), 32, R}}, SL_DISASM_NEXT, 0, NULL, false},
        {"4178a3b8", "ldrsw x1, [x2, x3, lsl #2]", {{REG(2) + 4 * REG(3), 4, R}}, SL_DISASM_NEXT, 0, NULL, false},
        {"2000028b", "add x0, x1, x2", {{0, 0, 0}}, SL_DISASM_NEXT, 0, "", false},
        {"600080f9", "prfm pldl1keep, [x3]", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, false},
        {"200420f8", "ldraa x0, [x1]", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, true},
        {"23740bd5", "dc zva, x3", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, true},
        {"00448085", "ldr z0, [x0, #0x1, mul vl]", {{0, 0, 0}}, SL_DISASM_NEXT, 0, NULL, true},
        {"4390000d", "st1 { v3.s }[1], [x2]", {{REG(2), 0, W}}, SL_DISASM_NEXT, 0, NULL, false},
    };
    check_samples(SL_ARCH_ARM64, samples, sizeof samples / sizeof *samples);
}

TEST(other_processors_are_unsupported)
{
    const struct sl_disasm_registers registers = {.get = get_register};
    const struct sl_disasm_code code = {
        .arch = SL_ARCH_ARM, .bytes = {(const uint8_t *)"\x04\x00\x91\xe5", 4}, .size = 4};
    struct sl_disasm_effects effects;
    struct sl_error error;
    assert_int_equal(sl_disasm_effects(&code, &registers, &effects, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "effects of arm instructions are not known");
    assert_false(effects.has_accesses);
}
