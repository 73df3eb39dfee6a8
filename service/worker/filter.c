/* The seccomp filter of a worker: an allowlist; any other system call kills the process.
 *
 * A sanitizer makes additional system calls. Those for its memory and threads are allowed; those for its report (opening files,
 * starting a symbolizer) fail with EPERM instead of killing the process, so that the report is still written. Sockets, execve, signals
 * to other processes and ptrace kill the process in this case, too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "worker/confine.h"

/* Stands for the worker's process id in the BPF program, which is compiled before there is a worker; confine_filter_apply() replaces it. */
enum { OWN_PID = 0x7FA55AF1 };

/* Calls that are allowed with any arguments. */
static const int allowed[] = {
    /* memory; mmap, mprotect below */
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    /* existing descriptors; sendmsg, recvmsg, fcntl below */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(close),
    /* threads; clone, tgkill below */
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    /* the process's own signals; alarm() ends the writing of a crash report that hangs */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(alarm),
    SCMP_SYS(setitimer),
    /* time, random numbers, and the size of memory, which qsort reads */
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo),
};

/* Calls that the C library makes, but does not depend on: they fail with this error instead of killing the process. */
static const struct {
    int call, error;
} refused[] = {
    {SCMP_SYS(clone3), ENOSYS},    /* flags in memory, invisible to a filter; pthread_create falls back to clone */
    {SCMP_SYS(newfstatat), EPERM}, /* can examine files by their paths */
    {SCMP_SYS(statx), EPERM},      /* can examine files by their paths */
    {SCMP_SYS(ioctl), ENOTTY},     /* made to find out whether a stream is a terminal */
    {SCMP_SYS(prctl), EPERM},      /* made to set names of memory and threads */
};

/* Calls that a sanitizer makes, most of them for its report: they fail with EPERM, and the report is written without them. */
static const int refused_with_sanitizer[] = {
    SCMP_SYS(open),        SCMP_SYS(openat),  SCMP_SYS(readlink),  SCMP_SYS(readlinkat),
    SCMP_SYS(stat),        SCMP_SYS(access),  SCMP_SYS(pipe),      SCMP_SYS(pipe2),
    SCMP_SYS(fork),        SCMP_SYS(vfork),   SCMP_SYS(prlimit64), SCMP_SYS(getrlimit),
    SCMP_SYS(setrlimit),   SCMP_SYS(uname),   SCMP_SYS(getcwd),    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(personality), SCMP_SYS(getppid), SCMP_SYS(mincore),   SCMP_SYS(getrusage),
};

/* Allows a call if its arguments meet all of the given conditions. */
#define ALLOW(call, ...) (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(call), __VA_ARGS__) == 0)

/* Allows the calls that are harmless only with certain arguments. False if libseccomp refuses a rule. */
static bool add_conditions(scmp_filter_ctx filter)
{
    const uint64_t new_thread = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND,
                   new_namespace = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                   CLONE_NEWPID | CLONE_NEWNET,
                   no_file = MAP_SHARED | MAP_ANONYMOUS;
    const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    bool good =
        /* no executable memory; shared mappings of files only */
        ALLOW(mmap, 2, no_code, SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED, 0)) &&
        ALLOW(mmap, 2, no_code, SCMP_A3(SCMP_CMP_MASKED_EQ, no_file, MAP_SHARED)) && ALLOW(mprotect, 1, no_code) &&
        /* its socket is descriptor 0 */
        ALLOW(recvmsg, 1, SCMP_A0(SCMP_CMP_EQ, 0)) && ALLOW(sendmsg, 1, SCMP_A0(SCMP_CMP_EQ, 0)) &&
        /* reading the flags of a descriptor; not changing them, locks or leases */
        ALLOW(fcntl, 1, SCMP_A1(SCMP_CMP_EQ, F_GETFL)) && ALLOW(fcntl, 1, SCMP_A1(SCMP_CMP_EQ, F_GETFD)) &&
        /* new threads, but no processes and namespaces */
        ALLOW(clone, 1, SCMP_A0(SCMP_CMP_MASKED_EQ, new_thread | new_namespace, new_thread)) &&
        /* signals to itself, as abort() sends; confine_filter_apply() replaces OWN_PID by the worker's pid */
        ALLOW(tgkill, 1, SCMP_A0(SCMP_CMP_EQ, OWN_PID));
    return good;
}

/* Adds the rules for all calls that are allowed or fail with an error; any other call kills the process, the default that
 * confine_filter_make() has set. False if libseccomp refuses a rule. */
static bool add_rules(scmp_filter_ctx filter)
{
    bool good = add_conditions(filter);
    for (size_t i = 0; good && i < sizeof allowed / sizeof *allowed; i++)
        good = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) == 0;
    for (size_t i = 0; good && i < sizeof refused / sizeof *refused; i++)
        good = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)refused[i].error), refused[i].call, 0) == 0;
    size_t more = confine_has_sanitizer() ? sizeof refused_with_sanitizer / sizeof *refused_with_sanitizer : 0;
    for (size_t i = 0; good && i < more; i++)
        good = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused_with_sanitizer[i], 0) == 0;
    return good;
}

/* Sets the BPF program of the rules. libseccomp can only write it to a descriptor, so it goes through a file in memory. Leaves `count` 0 on
 * failure. */
static void copy_program(scmp_filter_ctx rules, struct confine_filter *filter)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);
    ssize_t size = fd >= 0 && seccomp_export_bpf(rules, fd) == 0 ? pread(fd, filter->code, sizeof filter->code, 0) : 0;
    sl_close(fd);
    if (size > 0 && (size_t)size < sizeof filter->code) /* a full buffer may be a program that was cut */
        filter->count = (unsigned short)((size_t)size / sizeof *filter->code);
}

/* A failure leaves filter->count 0: then confine_filter_apply() fails, and no worker serves. */
void confine_filter_make(struct confine_filter *filter)
{
    filter->count = 0;
    scmp_filter_ctx rules = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (!rules)
        return;
    /* 2 = binary tree: finds a call in a few steps. Older libseccomp refuses it and makes a list, which works as well. */
    seccomp_attr_set(rules, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    seccomp_attr_set(rules, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (add_rules(rules))
        copy_program(rules, filter);
    seccomp_release(rules);
}

bool confine_filter_apply(const struct confine_filter *filter)
{
    struct confine_filter copy = *filter;
    bool found = false;
    /* Replaces the placeholder OWN_PID by this worker's pid, in all comparisons of the program. */
    for (unsigned short i = 0; i < copy.count; i++) {
        struct sock_filter *step = &copy.code[i];
        if (BPF_CLASS(step->code) == BPF_JMP && step->k == OWN_PID) {
            step->k = (uint32_t)getpid();
            found = true;
        }
    }
    struct sock_fprog program = {copy.count, copy.code};
    return found && /* not found: there is no program, as confine_filter_make() failed */
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
