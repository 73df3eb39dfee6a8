/* Names of registers in STACK CFI records, by DWARF number as in the psABI supplements of i386, x86-64, Arm (AADWARF), PowerPC, MIPS,
 * RISC-V, s390x and LoongArch. */
#include "unwind/impl.h"

#include <stdio.h>

static const char *const x86_names[] = {
    [0] = "$eax",   "$ecx",        "$edx",  "$ebx",  "$esp",  "$ebp",  "$esi",  "$edi",        "$eip",
    "$eflags",      [11] = "$st0", "$st1",  "$st2",  "$st3",  "$st4",  "$st5",  "$st6",        "$st7",
    [21] = "$xmm0", "$xmm1",       "$xmm2", "$xmm3", "$xmm4", "$xmm5", "$xmm6", "$xmm7",       [29] = "$mm0",
    "$mm1",         "$mm2",        "$mm3",  "$mm4",  "$mm5",  "$mm6",  "$mm7",  [37] = "$fcw", "$fsw",
    "$mxcsr",       "$es",         "$cs",   "$ss",   "$ds",   "$fs",   "$gs",   [48] = "$tr",  "$ldtr",
};

static const char *const x86_64_names[] = {
    [0] = "$rax",
    "$rdx",
    "$rcx",
    "$rbx",
    "$rsi",
    "$rdi",
    "$rbp",
    "$rsp",
    "$r8",
    "$r9",
    "$r10",
    "$r11",
    "$r12",
    "$r13",
    "$r14",
    "$r15",
    "$rip",
    [17] = "$xmm0",
    "$xmm1",
    "$xmm2",
    "$xmm3",
    "$xmm4",
    "$xmm5",
    "$xmm6",
    "$xmm7",
    "$xmm8",
    "$xmm9",
    "$xmm10",
    "$xmm11",
    "$xmm12",
    "$xmm13",
    "$xmm14",
    "$xmm15",
    [33] = "$st0",
    "$st1",
    "$st2",
    "$st3",
    "$st4",
    "$st5",
    "$st6",
    "$st7",
    [41] = "$mm0",
    "$mm1",
    "$mm2",
    "$mm3",
    "$mm4",
    "$mm5",
    "$mm6",
    "$mm7",
    [49] = "$rflags",
    "$es",
    "$cs",
    "$ss",
    "$ds",
    "$fs",
    "$gs",
    [58] = "$fs.base",
    "$gs.base",
    [62] = "$tr",
    "$ldtr",
    "$mxcsr",
    "$fcw",
    "$fsw",
};

static const char *const arm_names[] = {
    [0] = "r0", "r1",  "r2",        "r3",  "r4",  "r5",  "r6",  "r7",  "r8",  "r9",  "r10", "r11",  "r12",       "sp",
    "lr",       "pc",  [16] = "f0", "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7",  "fps", "cpsr", [64] = "s0", "s1",
    "s2",       "s3",  "s4",        "s5",  "s6",  "s7",  "s8",  "s9",  "s10", "s11", "s12", "s13",  "s14",       "s15",
    "s16",      "s17", "s18",       "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27",  "s28",       "s29",
    "s30",      "s31", [96] = "f0", "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7",
};

static const char *const arm64_names[] = {
    [0] = "x0", "x1",  "x2",  "x3",  "x4",  "x5",  "x6",        "x7",  "x8",  "x9",  "x10", "x11", "x12",
    "x13",      "x14", "x15", "x16", "x17", "x18", "x19",       "x20", "x21", "x22", "x23", "x24", "x25",
    "x26",      "x27", "x28", "x29", "x30", "sp",  [64] = "v0", "v1",  "v2",  "v3",  "v4",  "v5",  "v6",
    "v7",       "v8",  "v9",  "v10", "v11", "v12", "v13",       "v14", "v15", "v16", "v17", "v18", "v19",
    "v20",      "v21", "v22", "v23", "v24", "v25", "v26",       "v27", "v28", "v29", "v30", "v31",
};

static const char *const ppc_names[] = {
    [0] = "r0",
    "r1",
    "r2",
    "r3",
    "r4",
    "r5",
    "r6",
    "r7",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13",
    "r14",
    "r15",
    "r16",
    "r17",
    "r18",
    "r19",
    "r20",
    "r21",
    "r22",
    "r23",
    "r24",
    "r25",
    "r26",
    "r27",
    "r28",
    "r29",
    "r30",
    "r31",
    [32] = "f0",
    "f1",
    "f2",
    "f3",
    "f4",
    "f5",
    "f6",
    "f7",
    "f8",
    "f9",
    "f10",
    "f11",
    "f12",
    "f13",
    "f14",
    "f15",
    "f16",
    "f17",
    "f18",
    "f19",
    "f20",
    "f21",
    "f22",
    "f23",
    "f24",
    "f25",
    "f26",
    "f27",
    "f28",
    "f29",
    "f30",
    "f31",
    [65] = "lr",
    "ctr",
    [68] = "cr0",
    "cr1",
    "cr2",
    "cr3",
    "cr4",
    "cr5",
    "cr6",
    "cr7",
    "xer",
    [77] = "vr0",
    "vr1",
    "vr2",
    "vr3",
    "vr4",
    "vr5",
    "vr6",
    "vr7",
    "vr8",
    "vr9",
    "vr10",
    "vr11",
    "vr12",
    "vr13",
    "vr14",
    "vr15",
    "vr16",
    "vr17",
    "vr18",
    "vr19",
    "vr20",
    "vr21",
    "vr22",
    "vr23",
    "vr24",
    "vr25",
    "vr26",
    "vr27",
    "vr28",
    "vr29",
    "vr30",
    "vr31",
    [110] = "vscr",
    [114] = "tfhar",
    "tfiar",
    "texasr",
};

static const char *const mips_names[] = {
    [0] = "$zero", "$at",  "$v0",  "$v1",  "$a0",  "$a1",  "$a2",   "$a3",  "$t0",  "$t1",  "$t2",  "$t3",
    "$t4",         "$t5",  "$t6",  "$t7",  "$s0",  "$s1",  "$s2",   "$s3",  "$s4",  "$s5",  "$s6",  "$s7",
    "$t8",         "$t9",  "$k0",  "$k1",  "$gp",  "$sp",  "$fp",   "$ra",  "$lo",  "$hi",  "$pc",  "$f0",
    [36] = "$f2",  "$f3",  "$f4",  "$f5",  "$f6",  "$f7",  "$f8",   "$f9",  "$f10", "$f11", "$f12", "$f13",
    "$f14",        "$f15", "$f16", "$f17", "$f18", "$f19", "$f20",  "$f21", "$f22", "$f23", "$f24", "$f25",
    "$f26",        "$f27", "$f28", "$f29", "$f30", "$f31", "$fcsr", "$fir",
};

static const char *const riscv_names[] = {
    [0] = "zero", "ra",  "sp",  "gp",  "tp",  "t0",  "t1",  "t2",  "s0",  "s1",  "a0",  "a1",  "a2",
    "a3",         "a4",  "a5",  "a6",  "a7",  "s2",  "s3",  "s4",  "s5",  "s6",  "s7",  "s8",  "s9",
    "s10",        "s11", "t3",  "t4",  "t5",  "t6",  "f0",  "f1",  "f2",  "f3",  "f4",  "f5",  "f6",
    "f7",         "f8",  "f9",  "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19",
    "f20",        "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31",
};

static const char *const s390x_names[] = {
    [0] = "r0", "r1",  "r2",  "r3",  "r4", "r5",  "r6",  "r7",  "r8",        "r9", "r10",         "r11",
    "r12",      "r13", "r14", "r15", "f0", "f2",  "f4",  "f6",  "f1",        "f3", "f5",          "f7",
    "f8",       "f10", "f12", "f14", "f9", "f11", "f13", "f15", [48] = "a0", "a1", [64] = "pswm", "pswa",
};

static const char *const loongarch_names[] = {
    [0] = "r0", "r1",  "r2",  "r3",  "r4",  "r5",  "r6",  "r7",  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
    "r16",      "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
    "f0",       "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7",  "f8",  "f9",  "f10", "f11", "f12", "f13", "f14", "f15",
    "f16",      "f17", "f18", "f19", "f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31",
};

#define NAMES(table)                                                                                                   \
    {                                                                                                                  \
        table, sizeof(table) / sizeof *(table)                                                                         \
    }
static const struct {
    const char *const *names;
    size_t count;
} families[] = {
    [SL_CPU_X86] = NAMES(x86_names),        [SL_CPU_X86_64] = NAMES(x86_64_names),
    [SL_CPU_ARM] = NAMES(arm_names),        [SL_CPU_ARM64] = NAMES(arm64_names),
    [SL_CPU_PPC] = NAMES(ppc_names),        [SL_CPU_PPC64] = NAMES(ppc_names),
    [SL_CPU_MIPS] = NAMES(mips_names),      [SL_CPU_MIPS64] = NAMES(mips_names),
    [SL_CPU_ARM64_32] = NAMES(arm64_names), [SL_CPU_WASM32] = {NULL, 0},
    [SL_CPU_RISCV] = NAMES(riscv_names),    [SL_CPU_RISCV64] = NAMES(riscv_names),
    [SL_CPU_S390X] = NAMES(s390x_names),    [SL_CPU_LOONGARCH64] = NAMES(loongarch_names),
};

const char *sl_unwind_register_name(enum sl_cpu_family family, unsigned reg)
{
    if (reg == SL_UNWIND_CFA)
        return ".cfa";
    if (reg == SL_UNWIND_RA)
        return ".ra";
    return reg < families[family].count ? families[family].names[reg] : NULL;
}

static bool is_name(struct sl_str name, const char *of)
{
    size_t i = 0;
    while (i < name.size && of[i] && of[i] == name.data[i])
        i++;
    return i == name.size && !of[i];
}

unsigned register_number(enum sl_cpu_family family, struct sl_str name)
{
    if (sl_str_equal(name, SL_STR(".cfa")))
        return SL_UNWIND_CFA;
    if (sl_str_equal(name, SL_STR(".ra")))
        return SL_UNWIND_RA;
    for (unsigned i = 0; i < families[family].count; i++)
        if (families[family].names[i] && is_name(name, families[family].names[i]))
            return i;
    return SL_UNWIND_NAMED;
}

bool has_return_register(enum sl_cpu_family family)
{
    return family != SL_CPU_X86 && family != SL_CPU_X86_64 && family != SL_CPU_UNKNOWN && family != SL_CPU_WASM32;
}
