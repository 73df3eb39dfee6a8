/* Names and properties of architectures; names of the kinds of object files. */
#include "object/object.h"

static const struct arch_row {
    enum sl_arch arch;
    enum sl_cpu_family family;
    const char *name;
} archs[] = {
    {SL_ARCH_UNKNOWN, SL_CPU_UNKNOWN, "unknown"},
    {SL_ARCH_X86, SL_CPU_X86, "x86"},
    {SL_ARCH_X86_UNKNOWN, SL_CPU_X86, "x86_unknown"},
    {SL_ARCH_X86_64, SL_CPU_X86_64, "x86_64"},
    {SL_ARCH_X86_64H, SL_CPU_X86_64, "x86_64h"},
    {SL_ARCH_X86_64_UNKNOWN, SL_CPU_X86_64, "x86_64_unknown"},
    {SL_ARCH_ARM, SL_CPU_ARM, "arm"},
    {SL_ARCH_ARMV5, SL_CPU_ARM, "armv5"},
    {SL_ARCH_ARMV6, SL_CPU_ARM, "armv6"},
    {SL_ARCH_ARMV6M, SL_CPU_ARM, "armv6m"},
    {SL_ARCH_ARMV7, SL_CPU_ARM, "armv7"},
    {SL_ARCH_ARMV7F, SL_CPU_ARM, "armv7f"},
    {SL_ARCH_ARMV7S, SL_CPU_ARM, "armv7s"},
    {SL_ARCH_ARMV7K, SL_CPU_ARM, "armv7k"},
    {SL_ARCH_ARMV7M, SL_CPU_ARM, "armv7m"},
    {SL_ARCH_ARMV7EM, SL_CPU_ARM, "armv7em"},
    {SL_ARCH_ARM_UNKNOWN, SL_CPU_ARM, "arm_unknown"},
    {SL_ARCH_ARM64, SL_CPU_ARM64, "arm64"},
    {SL_ARCH_ARM64V8, SL_CPU_ARM64, "arm64v8"},
    {SL_ARCH_ARM64E, SL_CPU_ARM64, "arm64e"},
    {SL_ARCH_ARM64_UNKNOWN, SL_CPU_ARM64, "arm64_unknown"},
    {SL_ARCH_PPC, SL_CPU_PPC, "ppc"},
    {SL_ARCH_PPC64, SL_CPU_PPC64, "ppc64"},
    {SL_ARCH_MIPS, SL_CPU_MIPS, "mips"},
    {SL_ARCH_MIPS64, SL_CPU_MIPS64, "mips64"},
    {SL_ARCH_ARM64_32, SL_CPU_ARM64_32, "arm64_32"},
    {SL_ARCH_ARM64_32_V8, SL_CPU_ARM64_32, "arm64_32_v8"},
    {SL_ARCH_ARM64_32_UNKNOWN, SL_CPU_ARM64_32, "arm64_32_unknown"},
    {SL_ARCH_WASM32, SL_CPU_WASM32, "wasm32"},
    {SL_ARCH_RISCV, SL_CPU_RISCV, "riscv"},
    {SL_ARCH_RISCV64, SL_CPU_RISCV64, "riscv64"},
    {SL_ARCH_S390X, SL_CPU_S390X, "s390x"},
    {SL_ARCH_LOONGARCH64, SL_CPU_LOONGARCH64, "loongarch64"},
};

/* Other names that sl_arch_parse() accepts. */
static const struct {
    const char *alias;
    enum sl_arch arch;
} aliases[] = {
    {"i386", SL_ARCH_X86},     {"amd64", SL_ARCH_X86_64},  {"x86-64", SL_ARCH_X86_64},
    {"arm-64", SL_ARCH_ARM64}, {"riscv32", SL_ARCH_RISCV},
};

/* By processor: size of a pointer and alignment of instructions in bytes, name of the register with the instruction pointer. */
static const struct {
    uint8_t pointer, alignment;
    const char *ip;
} families[] = {
    [SL_CPU_UNKNOWN] = {4, 1, NULL},  [SL_CPU_X86] = {4, 1, "eip"},   [SL_CPU_X86_64] = {8, 1, "rip"},
    [SL_CPU_ARM] = {4, 2, "pc"},      [SL_CPU_ARM64] = {8, 4, "pc"},  [SL_CPU_PPC] = {4, 4, "srr0"},
    [SL_CPU_PPC64] = {8, 8, "srr0"},  [SL_CPU_MIPS] = {4, 4, "pc"},   [SL_CPU_MIPS64] = {8, 4, "pc"},
    [SL_CPU_ARM64_32] = {8, 4, "pc"}, [SL_CPU_WASM32] = {4, 4, NULL}, [SL_CPU_RISCV] = {4, 2, "pc"},
    [SL_CPU_RISCV64] = {8, 2, "pc"},  [SL_CPU_S390X] = {8, 2, "pc"},  [SL_CPU_LOONGARCH64] = {8, 4, "pc"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Returns the row of an architecture; that of SL_ARCH_UNKNOWN if the table does not have it. */
static const struct arch_row *find_row(enum sl_arch arch)
{
    for (size_t i = 0; i < COUNT(archs); i++)
        if (archs[i].arch == arch)
            return &archs[i];
    return &archs[0];
}

const char *sl_arch_name(enum sl_arch arch)
{
    return find_row(arch)->name;
}
enum sl_cpu_family sl_arch_family(enum sl_arch arch)
{
    return find_row(arch)->family;
}

/* Compares the name with the canonical names first, then with the aliases. */
enum sl_arch sl_arch_parse(struct sl_str name)
{
    for (size_t i = 0; i < COUNT(archs); i++)
        if (sl_str_equal_nocase(name, sl_str(archs[i].name)))
            return archs[i].arch;
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (sl_str_equal_nocase(name, sl_str(aliases[i].alias)))
            return aliases[i].arch;
    return SL_ARCH_UNKNOWN;
}

unsigned sl_cpu_pointer_size(enum sl_cpu_family family)
{
    return families[family].pointer;
}
unsigned sl_cpu_instruction_alignment(enum sl_cpu_family family)
{
    return families[family].alignment;
}
const char *sl_cpu_ip_register(enum sl_cpu_family family)
{
    return families[family].ip;
}

const char *sl_object_kind_name(enum sl_object_kind kind)
{
    static const char *const names[] = {"none",        "object",          "executable", "library",
                                        "memory dump", "debug companion", "sources",    "file"};
    return names[kind];
}
