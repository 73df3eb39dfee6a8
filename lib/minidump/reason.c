/* Text of a crash reason, such as "SIGSEGV / SEGV_MAPERR / 0x10": what all systems share, and Linux. */
#include "minidump/impl.h"

enum { ACCESS_VIOLATION = 0xC0000005, IN_PAGE_ERROR = 0xC0000006 };

/* ---- Linux, signal(7) and sigaction(2) ---- */

static const struct dump_name signals[] = {
    {1, "SIGHUP"},   {2, "SIGINT"},     {3, "SIGQUIT"},  {4, "SIGILL"},
    {5, "SIGTRAP"},  {6, "SIGABRT"},    {7, "SIGBUS"},   {8, "SIGFPE"},
    {9, "SIGKILL"},  {10, "SIGUSR1"},   {11, "SIGSEGV"}, {12, "SIGUSR2"},
    {13, "SIGPIPE"}, {14, "SIGALRM"},   {15, "SIGTERM"}, {16, "SIGSTKFLT"},
    {17, "SIGCHLD"}, {18, "SIGCONT"},   {19, "SIGSTOP"}, {20, "SIGTSTP"},
    {21, "SIGTTIN"}, {22, "SIGTTOU"},   {23, "SIGURG"},  {24, "SIGXCPU"},
    {25, "SIGXFSZ"}, {26, "SIGVTALRM"}, {27, "SIGPROF"}, {28, "SIGWINCH"},
    {29, "SIGIO"},   {30, "SIGPWR"},    {31, "SIGSYS"},  {0xFFFFFFFF, "DUMP_REQUESTED"},
    {0, NULL},
};

static const struct dump_name illegal_codes[] = {
    {1, "ILL_ILLOPC"}, {2, "ILL_ILLOPN"}, {3, "ILL_ILLADR"}, {4, "ILL_ILLTRP"},   {5, "ILL_PRVOPC"},
    {6, "ILL_PRVREG"}, {7, "ILL_COPROC"}, {8, "ILL_BADSTK"}, {9, "ILL_BADIADDR"}, {0, NULL},
};
static const struct dump_name trap_codes[] = {
    {1, "TRAP_BRKPT"}, {2, "TRAP_TRACE"}, {3, "TRAP_BRANCH"}, {4, "TRAP_HWBKPT"},
    {5, "TRAP_UNK"},   {6, "TRAP_PERF"},  {0, NULL},
};
static const struct dump_name arithmetic_codes[] = {
    {1, "FPE_INTDIV"}, {2, "FPE_INTOVF"}, {3, "FPE_FLTDIV"}, {4, "FPE_FLTOVF"}, {5, "FPE_FLTUND"},
    {6, "FPE_FLTRES"}, {7, "FPE_FLTINV"}, {8, "FPE_FLTSUB"}, {0, NULL},
};
static const struct dump_name segment_codes[] = {
    {1, "SEGV_MAPERR"}, {2, "SEGV_ACCERR"}, {3, "SEGV_BNDERR"}, {4, "SEGV_PKUERR"}, {0, NULL},
};
static const struct dump_name call_codes[] = {{1, "SYS_SECCOMP"}, {2, "SYS_USER_DISPATCH"}, {0, NULL}};
static const struct dump_name bus_codes[] = {
    {1, "BUS_ADRALN"}, {2, "BUS_ADRERR"}, {3, "BUS_OBJERR"}, {4, "BUS_MCEERR_AR"}, {5, "BUS_MCEERR_AO"}, {0, NULL},
};
static const struct dump_name general_codes[] = {
    {0x80, "SI_KERNEL"},           {(uint32_t)-1, "SI_QUEUE"},
    {(uint32_t)-2, "SI_TIMER"},    {(uint32_t)-3, "SI_MESGQ"},
    {(uint32_t)-4, "SI_ASYNCIO"},  {(uint32_t)-5, "SI_SIGIO"},
    {(uint32_t)-6, "SI_TKILL"},    {(uint32_t)-7, "SI_DETHREAD"},
    {(uint32_t)-60, "SI_ASYNCNL"}, {0, NULL},
};

static const struct {
    uint32_t signal;
    const struct dump_name *codes;
} signal_codes[] = {
    {4, illegal_codes}, {5, trap_codes}, {8, arithmetic_codes}, {11, segment_codes}, {31, call_codes}, {7, bus_codes},
};

/* Returns "SIGNAL / si_code" for exception->code and exception->flags. The si_code is shown by the name that it has for this signal or for
 * all signals, else as a number; an si_code of 0 is left out. Data NULL for an unknown signal. */
struct sl_str dump_linux_reason(struct dump_reader *d, const struct dump_exception *exception)
{
    const char *name = dump_find_name(signals, exception->code), *kind = NULL;
    if (!name)
        return (struct sl_str){NULL, 0};
    for (size_t i = 0; i < sizeof signal_codes / sizeof *signal_codes; i++)
        if (signal_codes[i].signal == exception->code)
            kind = dump_find_name(signal_codes[i].codes, exception->flags);
    kind = kind ? kind : dump_find_name(general_codes, exception->flags);
    if (kind)
        return dump_printf(d, "%s / %s", name, kind);
    return exception->flags ? dump_printf(d, "%s / 0x%08x", name, exception->flags) : sl_str(name);
}

struct sl_str sl_minidump_signal_text(uint32_t signal, uint32_t si_code, struct sl_arena *arena)
{
    struct dump_reader d = {.arena = arena};
    return dump_linux_reason(&d, &(struct dump_exception){.code = signal, .flags = si_code});
}

/* ---- all systems ---- */

/* Returns the accessed address for Windows exceptions that state it in a parameter, else the address in the exception record. The upper
 * half is cut off for 32-bit processors, as Windows extends their addresses by the sign. */
static uint64_t crash_address(const struct sl_minidump *dump, const struct dump_exception *exception)
{
    bool is_access = dump->os == SL_MINIDUMP_WINDOWS && exception->parameter_count >= 2 &&
                     (exception->code == ACCESS_VIOLATION || exception->code == IN_PAGE_ERROR);
    uint64_t address = is_access ? exception->parameters[1] : exception->address;
    bool is_narrow = dump->family != SL_CPU_UNKNOWN && sl_cpu_pointer_size(dump->family) == 4;
    return is_narrow ? (uint32_t)address : address;
}

/* Returns the text of the exception with the crash address behind it, and sets dump->crash_address. An unknown exception is shown by its
 * numbers. */
struct sl_str dump_crash_reason(struct dump_reader *d, const struct dump_exception *exception)
{
    struct sl_str reason = {NULL, 0};
    switch (d->dump->os) {
    case SL_MINIDUMP_LINUX:
    case SL_MINIDUMP_ANDROID: reason = dump_linux_reason(d, exception); break;
    case SL_MINIDUMP_MACOS:
    case SL_MINIDUMP_IOS: reason = dump_apple_reason(d, exception); break;
    case SL_MINIDUMP_WINDOWS: reason = dump_windows_reason(d, exception); break;
    default: break;
    }
    if (!reason.data)
        reason = dump_printf(d, "unknown 0x%08x / 0x%08x", exception->code, exception->flags);
    d->dump->crash_address = crash_address(d->dump, exception);
    return dump_printf(d, SL_STR_FMT " / 0x%llx", SL_STR_ARG(reason), (unsigned long long)d->dump->crash_address);
}
