/* Names of Mach exceptions: osfmk/mach/exception_types.h, kern_return.h, the processors' exception.h,
 * kern/exc_resource.h and kern/exc_guard.h of XNU. */
#include "minidump/impl.h"

#include <stdio.h>

enum {
    EXC_BAD_ACCESS = 1,
    EXC_BAD_INSTRUCTION = 2,
    EXC_ARITHMETIC = 3,
    EXC_SOFTWARE = 5,
    EXC_BREAKPOINT = 6,
    EXC_RESOURCE = 11,
    EXC_GUARD = 12,
    SIMULATED = 0x43507378,
    UNCAUGHT_NS = 0x43506e78, /* written by Crashpad */
};

static const struct dump_name exceptions[] = {
    {EXC_BAD_ACCESS, "EXC_BAD_ACCESS"},
    {EXC_BAD_INSTRUCTION, "EXC_BAD_INSTRUCTION"},
    {EXC_ARITHMETIC, "EXC_ARITHMETIC"},
    {4, "EXC_EMULATION"},
    {EXC_SOFTWARE, "EXC_SOFTWARE"},
    {EXC_BREAKPOINT, "EXC_BREAKPOINT"},
    {7, "EXC_SYSCALL"},
    {8, "EXC_MACH_SYSCALL"},
    {9, "EXC_RPC_ALERT"},
    {EXC_RESOURCE, "EXC_RESOURCE"},
    {EXC_GUARD, "EXC_GUARD"},
    {SIMULATED, "Simulated Exception"},
    {UNCAUGHT_NS, "Uncaught NSException"},
    {0, NULL},
};

/* ---- processor-specific codes ---- */

enum { ON_ARM64 = 1, ON_X86 = 2, ON_PPC = 4, ON_OTHERS = 8, ON_ALL = 15 };

/* Returns the bit that stands for the processor in the tables of codes. */
static unsigned processor(enum sl_cpu_family family)
{
    switch (family) {
    case SL_CPU_ARM64: return ON_ARM64;
    case SL_CPU_X86:
    case SL_CPU_X86_64: return ON_X86;
    case SL_CPU_PPC:
    case SL_CPU_PPC64: return ON_PPC;
    default: return ON_OTHERS;
    }
}

static const struct {
    uint8_t exception, processors;
    uint32_t code;
    const char *name;
} details[] = {
    {EXC_BAD_ACCESS, ON_ALL, 1, "KERN_INVALID_ADDRESS"},
    {EXC_BAD_ACCESS, ON_ALL, 2, "KERN_PROTECTION_FAILURE"},
    {EXC_BAD_ACCESS, ON_ALL, 5, "KERN_FAILURE"},
    {EXC_BAD_ACCESS, ON_ALL, 8, "KERN_NO_ACCESS"},
    {EXC_BAD_ACCESS, ON_ALL, 9, "KERN_MEMORY_FAILURE"},
    {EXC_BAD_ACCESS, ON_ALL, 10, "KERN_MEMORY_ERROR"},
    {EXC_BAD_ACCESS, ON_ALL, 50, "KERN_CODESIGN_ERROR"},
    {EXC_BAD_ACCESS, ON_ARM64, 0x101, "EXC_ARM_DA_ALIGN"},
    {EXC_BAD_ACCESS, ON_ARM64, 0x102, "EXC_ARM_DA_DEBUG"},
    {EXC_BAD_ACCESS, ON_ARM64, 0x103, "EXC_ARM_SP_ALIGN"},
    {EXC_BAD_ACCESS, ON_ARM64, 0x104, "EXC_ARM_SWP"},
    {EXC_BAD_ACCESS, ON_ARM64, 0x105, "EXC_ARM_PAC_FAIL"},
    {EXC_BAD_ACCESS, ON_X86, 13, "EXC_I386_GPFLT"},
    {EXC_BAD_ACCESS, ON_PPC, 0x101, "EXC_PPC_VM_PROT_READ"},
    {EXC_BAD_ACCESS, ON_PPC, 0x102, "EXC_PPC_BADSPACE"},
    {EXC_BAD_ACCESS, ON_PPC, 0x103, "EXC_PPC_UNALIGNED"},
    {EXC_BAD_INSTRUCTION, ON_ARM64, 1, "EXC_ARM_UNDEFINED"},
    {EXC_BAD_INSTRUCTION, ON_X86, 1, "EXC_I386_INVOP"},
    {EXC_BAD_INSTRUCTION, ON_X86, 10, "EXC_I386_INVTSSFLT"},
    {EXC_BAD_INSTRUCTION, ON_X86, 11, "EXC_I386_SEGNPFLT"},
    {EXC_BAD_INSTRUCTION, ON_X86, 12, "EXC_I386_STKFLT"},
    {EXC_BAD_INSTRUCTION, ON_X86, 13, "EXC_I386_GPFLT"},
    {EXC_BAD_INSTRUCTION, ON_X86, 17, "EXC_I386_ALIGNFLT"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 1, "EXC_PPC_INVALID_SYSCALL"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 2, "EXC_PPC_UNIPL_INST"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 3, "EXC_PPC_PRIVINST"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 4, "EXC_PPC_PRIVREG"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 5, "EXC_PPC_TRACE"},
    {EXC_BAD_INSTRUCTION, ON_PPC, 6, "EXC_PPC_PERFMON"},
    {EXC_ARITHMETIC, ON_ARM64, 1, "EXC_ARM_FP_IO"},
    {EXC_ARITHMETIC, ON_ARM64, 2, "EXC_ARM_FP_DZ"},
    {EXC_ARITHMETIC, ON_ARM64, 3, "EXC_ARM_FP_OF"},
    {EXC_ARITHMETIC, ON_ARM64, 4, "EXC_ARM_FP_UF"},
    {EXC_ARITHMETIC, ON_ARM64, 5, "EXC_ARM_FP_IX"},
    {EXC_ARITHMETIC, ON_ARM64, 6, "EXC_ARM_FP_ID"},
    {EXC_ARITHMETIC, ON_X86, 1, "EXC_I386_DIV"},
    {EXC_ARITHMETIC, ON_X86, 2, "EXC_I386_INTO"},
    {EXC_ARITHMETIC, ON_X86, 3, "EXC_I386_NOEXT"},
    {EXC_ARITHMETIC, ON_X86, 4, "EXC_I386_EXTOVR"},
    {EXC_ARITHMETIC, ON_X86, 5, "EXC_I386_EXTERR"},
    {EXC_ARITHMETIC, ON_X86, 6, "EXC_I386_EMERR"},
    {EXC_ARITHMETIC, ON_X86, 7, "EXC_I386_BOUND"},
    {EXC_ARITHMETIC, ON_X86, 8, "EXC_I386_SSEEXTERR"},
    {EXC_ARITHMETIC, ON_PPC, 1, "EXC_PPC_OVERFLOW"},
    {EXC_ARITHMETIC, ON_PPC, 2, "EXC_PPC_ZERO_DIVIDE"},
    {EXC_ARITHMETIC, ON_PPC, 3, "EXC_FLT_INEXACT"},
    {EXC_ARITHMETIC, ON_PPC, 4, "EXC_PPC_FLT_ZERO_DIVIDE"},
    {EXC_ARITHMETIC, ON_PPC, 5, "EXC_PPC_FLT_UNDERFLOW"},
    {EXC_ARITHMETIC, ON_PPC, 6, "EXC_PPC_FLT_OVERFLOW"},
    {EXC_ARITHMETIC, ON_PPC, 7, "EXC_PPC_FLT_NOT_A_NUMBER"},
    {EXC_ARITHMETIC, ON_PPC, 8, "EXC_PPC_NOEMULATION"},
    {EXC_ARITHMETIC, ON_PPC, 9, "EXC_PPC_ALTIVECASSIST"},
    {EXC_SOFTWARE, ON_ALL, 0x10002, "SIGABRT"},
    {EXC_SOFTWARE, ON_ALL, 0xDEADC0DE, "UNCAUGHT_NS_EXCEPTION"},
    {EXC_SOFTWARE, ON_ALL, 1, "EXC_PPC_TRAP"},
    {EXC_SOFTWARE, ON_ALL, 0x10100, "EXC_PPC_MIGRATE"},
    {EXC_BREAKPOINT, ON_ARM64, 1, "EXC_ARM_BREAKPOINT"},
    {EXC_BREAKPOINT, ON_X86, 1, "EXC_I386_SGL"},
    {EXC_BREAKPOINT, ON_X86, 2, "EXC_I386_BPT"},
    {EXC_BREAKPOINT, ON_PPC, 1, "EXC_PPC_BREAKPOINT"},
};

/* Returns the name of an exception's first code (its flags), whose meaning depends on the processor; NULL if it is unknown. */
static const char *describe_detail(enum sl_cpu_family family, const struct dump_exception *exception)
{
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (details[i].exception == exception->code && details[i].code == exception->flags &&
            (details[i].processors & processor(family)))
            return details[i].name;
    return NULL;
}

/* ---- EXC_RESOURCE ---- */

static unsigned bits(uint64_t value, unsigned shift, unsigned mask)
{
    return value >> shift & mask;
}

/* Returns the name of a kind of limit ("flavor" in osfmk/kern/exc_resource.h of XNU) on a type of resource, such as 1, the CPU; NULL if it
 * is unknown. */
static const char *flavor_of_resource(unsigned type, unsigned flavor)
{
    static const struct {
        uint8_t type, flavor;
        const char *name;
    } flavors[] = {
        {1, 1, "FLAVOR_CPU_MONITOR"},
        {1, 2, "FLAVOR_CPU_MONITOR_FATAL"},
        {2, 1, "FLAVOR_WAKEUPS_MONITOR"},
        {3, 1, "FLAVOR_HIGH_WATERMARK"},
        {4, 1, "FLAVOR_IO_PHYSICAL_WRITES"},
        {4, 2, "FLAVOR_IO_LOGICAL_WRITES"},
        {5, 1, "FLAVOR_THREADS_HIGH_WATERMARK"},
    };
    for (size_t i = 0; i < sizeof flavors / sizeof *flavors; i++)
        if (flavors[i].type == type && flavors[i].flavor == flavor)
            return flavors[i].name;
    return NULL;
}

/* Describes which limit was exceeded; `code` and `sub` hold the limit and the observed value, at the bits that
 * kern/exc_resource.h of XNU defines for each type: bits(value, lowest bit, mask). Of the percentages of CPU only 3 bits are printed, as
 * Symbolicator does. */
static void put_resource_tail(char text[128], unsigned type, uint64_t code, uint64_t sub)
{
    switch (type) {
    case 1: /* CPU */
        snprintf(text, 128, "interval: %us CPU limit: %u%% CPU consumed: %u%%", bits(code, 7, 0x1FFFFFF),
                 bits(code, 0, 7), bits(sub, 0, 7));
        break;
    case 2: /* wakeups */
        snprintf(text, 128, "interval: %us wakeups permitted: %u wakeups observed: %u", bits(code, 20, 0xFFFFF),
                 bits(code, 0, 0xFFF), bits(sub, 0, 0xFFF));
        break;
    case 3: snprintf(text, 128, "high watermark limit: %uMiB", bits(code, 0, 0x1FFF)); break;
    case 4: /* I/O */
        snprintf(text, 128, "interval: %us I/O limit: %u%% I/O observed: %u%%", bits(code, 15, 0x1FFFF),
                 bits(code, 0, 0x7FFF), bits(sub, 0, 0x7FFF));
        break;
    default: snprintf(text, 128, "high watermark limit: %u", bits(code, 0, 0x7FFF)); /* 5, threads */
    }
}

/* Describes EXC_RESOURCE: a limit was exceeded. The upper 3 bits of the flags are the type of resource; kind of limit ("flavor"), limit and
 * value are packed into the parameters 1 and 2, Mach's code and subcode. Data NULL for an unknown type. */
static struct sl_str resource(struct dump_reader *d, const struct dump_exception *exception)
{
    static const char *const types[8] = {NULL, "CPU", "WAKEUPS", "MEMORY", "IO", "THREADS"};
    uint64_t code = exception->parameters[1], sub = exception->parameters[2];
    unsigned type = exception->flags >> 29;
    const char *flavor = flavor_of_resource(type, bits(code, 58, 7));
    char tail[128];
    if (!types[type])
        return (struct sl_str){NULL, 0};
    if (!flavor)
        return dump_printf(d, "EXC_RESOURCE / RESOURCE_TYPE_%s / 0x%016llx / 0x%016llx", types[type],
                           (unsigned long long)code, (unsigned long long)sub);
    put_resource_tail(tail, type, code, sub);
    return dump_printf(d, "EXC_RESOURCE / RESOURCE_TYPE_%s / %s %s", types[type], flavor, tail);
}

/* ---- EXC_GUARD ---- */

enum guard_type {
    GUARD_NONE,
    GUARD_MACH_PORT,
    GUARD_FD,
    GUARD_USER,
    GUARD_VN,
    GUARD_VIRT_MEMORY,
    GUARD_REJECTED_SC,
    GUARD_TYPES,
};

static const struct dump_name port_flavors[] = {
    {1, "DESTROY"},
    {2, "MOD_REFS"},
    {3, "INVALID_OPTIONS"},
    {4, "SET_CONTEXT"},
    {5, "THREAD_SET_STATE"},
    {0x8, "UNGUARDED"},
    {0x10, "INCORRECT_GUARD"},
    {0x20, "IMMOVABLE"},
    {0x40, "STRICT_REPLY"},
    {0x80, "MSG_FILTERED"},
    {0x100, "INVALID_RIGHT"},
    {0x200, "INVALID_NAME"},
    {0x400, "INVALID_VALUE"},
    {0x800, "INVALID_ARGUMENT"},
    {0x1000, "RIGHT_EXISTS"},
    {0x2000, "KERN_NO_SPACE"},
    {0x4000, "KERN_FAILURE"},
    {0x8000, "KERN_RESOURCE"},
    {0x10000, "SEND_INVALID_REPLY"},
    {0x20000, "SEND_INVALID_VOUCHER"},
    {0x40000, "SEND_INVALID_RIGHT"},
    {0x80000, "RCV_INVALID_NAME"},
    {0x100000, "RCV_GUARDED_DESC"},
    {0x200000, "MOD_REFS_NON_FATAL"},
    {0x400000, "IMMOVABLE_NON_FATAL"},
    {0x800000, "REQUIRE_REPLY_PORT_SEMANTICS"},
    {0x1000000, "EXCEPTION_BEHAVIOR_ENFORCE"},
    {0, NULL},
};
static const struct dump_name fd_flavors[] = {
    {1, "CLOSE"},     {2, "DUP"},       {4, "NOCLOEXEC"}, {8, "SOCKET_IPC"},
    {16, "FILEPORT"}, {32, "MISMATCH"}, {64, "WRITE"},    {0, NULL},
};
static const struct dump_name vnode_flavors[] = {
    {1, "RENAME_TO"},    {2, "RENAME_FROM"}, {4, "UNLINK"},    {8, "WRITE_OTHER"},
    {16, "TRUNC_OTHER"}, {32, "LINK"},       {64, "EXCHDATA"}, {0, NULL},
};
static const struct dump_name memory_flavors[] = {{1, "DEALLOC_GAP"}, {0, NULL}};
static const struct dump_name call_flavors[] = {{0, "MACH_TRAP"}, {0, NULL}};

static const struct {
    const char *name;
    const struct dump_name *flavors;
} guards[GUARD_TYPES] = {
    [GUARD_NONE] = {"NONE", NULL},
    [GUARD_MACH_PORT] = {"MACH_PORT", port_flavors},
    [GUARD_FD] = {"FD", fd_flavors},
    [GUARD_USER] = {"USER", NULL},
    [GUARD_VN] = {"VN", vnode_flavors},
    [GUARD_VIRT_MEMORY] = {"VIRT_MEMORY", memory_flavors},
    [GUARD_REJECTED_SC] = {"REJECTED_SC", call_flavors},
};

/* Describes what was guarded: `code` and `sub` are its number and a detail, by the type. A port's number has 28 bits; its detail is shown
 * only if there is one. */
static void put_guard_tail(char text[128], unsigned type, uint64_t code, unsigned long long sub)
{
    uint32_t target = (uint32_t)code;
    switch (type) {
    case GUARD_MACH_PORT:
        snprintf(text, 128, sub ? "port name: %u subcode: %llu" : "port name: %u", target & 0xFFFFFFF, sub);
        break;
    case GUARD_FD: snprintf(text, 128, "file descriptor: %u guard identifier: %llu", target, sub); break;
    case GUARD_VN: snprintf(text, 128, "pid: %u guard identifier: %llu", target, sub); break;
    case GUARD_VIRT_MEMORY: snprintf(text, 128, "offset: %llu", sub); break;
    default: snprintf(text, 128, "syscall: %llu", sub);
    }
}

/* Describes EXC_GUARD: a guarded port, descriptor, file or memory was misused. The upper 3 bits of the flags are the type.
 * Parameter 1 is Mach's code; its bits 32 to 60 are the kind of misuse ("flavor"). Parameter 2 is Mach's subcode. Data NULL for an unknown
 * type. */
static struct sl_str guard(struct dump_reader *d, const struct dump_exception *exception)
{
    uint64_t code = exception->parameters[1], sub = exception->parameters[2];
    unsigned type = exception->flags >> 29;
    char tail[128];
    if (type >= GUARD_TYPES)
        return (struct sl_str){NULL, 0};
    if (type == GUARD_NONE)
        return SL_STR("EXC_GUARD / GUARD_TYPE_NONE");
    if (type == GUARD_USER)
        return dump_printf(d, "EXC_GUARD / GUARD_TYPE_USER/ namespace: %u guard identifier: %llu", (uint32_t)code,
                           (unsigned long long)sub);
    const char *flavor = dump_find_name(guards[type].flavors, code >> 32 & 0x1FFFFFFF);
    if (!flavor)
        return dump_printf(d, "EXC_GUARD / GUARD_TYPE_%s / 0x%016llx / 0x%016llx", guards[type].name,
                           (unsigned long long)code, (unsigned long long)sub);
    put_guard_tail(tail, type, code, sub);
    return dump_printf(d, "EXC_GUARD / GUARD_TYPE_%s / GUARD_EXC_%s %s", guards[type].name, flavor, tail);
}

/* Returns "exception / code", the code as a name or a number; EXC_RESOURCE and EXC_GUARD are described in full. Data NULL for an unknown
 * exception. Crashpad's simulated and uncaught exceptions have no codes. */
struct sl_str dump_apple_reason(struct dump_reader *d, const struct dump_exception *exception)
{
    const char *name = dump_find_name(exceptions, exception->code);
    const char *detail = describe_detail(d->dump->family, exception);
    struct sl_str text = {NULL, 0};
    if (exception->code == EXC_RESOURCE)
        text = resource(d, exception);
    else if (exception->code == EXC_GUARD)
        text = guard(d, exception);
    if (text.data || !name)
        return text;
    if (exception->code == SIMULATED || exception->code == UNCAUGHT_NS)
        return sl_str(name);
    return detail ? dump_printf(d, "%s / %s", name, detail) : dump_printf(d, "%s / 0x%08x", name, exception->flags);
}
