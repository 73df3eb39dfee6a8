#include "core/guard.h"

#include <setjmp.h>
#include <signal.h>

#include "core/impl.h"
#include "core/metrics.h"

static _Thread_local sigjmp_buf *recovery;

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if (recovery && info->si_code == BUS_ADRERR)
        siglongjmp(*recovery, 1);
    signal(signal_number, SIG_DFL); /* the instruction faults again and ends the process */
}

bool guard_run(void (*fn)(void *arg), void *arg)
{
    sigjmp_buf here, *volatile outer = recovery;
    if (sigsetjmp(here, 0) != 0) {
        recovery = outer;
        metric_add(METRIC_FAULTS_RECOVERED, 1, "sigbus", NULL, NULL);
        return false;
    }
    recovery = &here;
    fn(arg);
    recovery = outer;
    return true;
}

void guard_fail(void)
{
    if (recovery)
        siglongjmp(*recovery, 1);
}

void guard_open(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
