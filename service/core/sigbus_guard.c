/* The handler of SIGBUS: ends the code that reads a mapped file which was truncated, not the process. */
#include "core/sigbus_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <ucontext.h>

#include "core/context.h"
#include "core/crash.h"
#include "core/impl.h"
#include "core/metrics.h"

/* Where this thread continues after a SIGBUS; NULL outside of sigbus_guard_run. */
static _Thread_local sigjmp_buf *recovery;

enum { FAULTS = 16, LEFT_BEHIND = 128 * 1024 /* bytes of stack that a siglongjmp skips, at most */ };
static _Atomic(const void *) faults[FAULTS]; /* addresses of recent faults, for sigbus_guard_next_fault */
static atomic_uint next_fault;

/* The handler of SIGBUS: a mapped file was truncated, or its disk failed (both BUS_ADRERR). Within sigbus_guard_run, jumps back to it;
 * elsewhere, and for other causes, writes a crash report and lets the signal end the process. */
static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
    if (recovery && info->si_code == BUS_ADRERR) {
        /* kept for sigbus_guard_next_fault, which reports the address outside of the handler */
        atomic_store(&faults[atomic_fetch_add(&next_fault, 1) % FAULTS], info->si_addr);
        /* The jump leaves the signal handler without its return, which would restore the signal mask. */
        pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
        siglongjmp(*recovery, 1);
    }
    signal(signal_number, SIG_DFL); /* the instruction faults again and ends the process */
    crash_report(signal_number, info);
}

/* `recovery` is a stack of calls: each saves the one around it in `outer`. After a jump, AddressSanitizer must forget the stack frames that
 * the jump has left (context_clean). */
bool sigbus_guard_run(void (*fn)(void *arg), void *arg)
{
    sigjmp_buf here, *volatile outer = recovery; /* volatile: is read after the jump */
    if (sigsetjmp(here, 0) != 0) {               /* 0: on_sigbus restores the signal mask itself */
        recovery = outer;
        context_clean((char *)__builtin_frame_address(0) - LEFT_BEHIND, LEFT_BEHIND);
        metric_add(METRIC_FAULTS_RECOVERED, 1, "sigbus", NULL, NULL);
        return false;
    }
    recovery = &here;
    fn(arg);
    recovery = outer;
    return true;
}

bool sigbus_guard_next_fault(const void **address)
{
    for (int i = 0; i < FAULTS; i++)
        if ((*address = atomic_exchange(&faults[i], NULL)))
            return true;
    return false;
}

void sigbus_guard_fail(void)
{
    if (recovery)
        siglongjmp(*recovery, 1);
}

void sigbus_guard_open(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
