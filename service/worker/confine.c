/* Confines a worker process: erases its environment, limits its resources, and takes rights away from it. */
#include "worker/confine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "worker/worker.h"

enum {
    /* RLIMIT_NOFILE: inputs and output of a job, socket, report pipe, and some for libraries; a sanitizer's report opens files */
    MAX_FILES = WORKER_MAX_INPUTS + 16,
    MAX_FILES_WITH_SANITIZER = MAX_FILES + 32,
};
/* Private memory in bytes that a process and each of its threads need besides what a job is charged for: program, stacks, malloc arenas. */
static const uint64_t own_memory = 96 << 20, thread_memory = 9 << 20;

bool confine_has_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

/* ---- environment and arguments ---- */

/* Finds the addresses of the process's argument and environment strings: arg_start to env_end, fields 48 to 51 of /proc/self/stat
 * (proc(5)). False if the kernel does not tell them. */
static bool find_environment(uintptr_t *begin, uintptr_t *end)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    sl_close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *at = strrchr(text, ')'); /* end of field 2, a program name, which may contain ') ' */
    uint64_t fields[52] = {0};
    for (int i = 3; at && i < 52; i++) {
        at = strchr(at + 1, ' ');
        if (at)
            fields[i] = strtoull(at + 1, NULL, 10);
    }
    *begin = (uintptr_t)fields[48];
    *end = (uintptr_t)fields[51];
    return at && fields[48] && fields[48] <= fields[49] && fields[49] <= fields[50] && fields[50] <= fields[51];
}

bool confine_erase_environment(void)
{
    static char *none[1];
    static const char title[] = "symloom worker"; /* what ps shows */
    for (char **text = environ; text && *text; text++)
        memset(*text, 0, strlen(*text));
    environ = none;
    uintptr_t begin, end;
    if (!find_environment(&begin, &end))
        return false;
    memset((void *)begin, 0, end - begin);
    if (end - begin >= sizeof title)
        memcpy((void *)begin, title, sizeof title);
    return true;
}

/* ---- measures ---- */

/* Takes away all rights that Landlock knows, as far as this kernel supports them. Uses the numbers of the system calls and rights
 * instead of linux/landlock.h, which is too old on some build systems. False if Landlock is not available. */
static bool confine_files(void)
{
    enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, ASK_VERSION = 1 };
    struct {
        uint64_t access_fs, access_net, scoped;
    } rules = {0};
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1)
        return false;
    /* Number of rights to files in this ABI version: 2 added "refer", 3 "truncate", 5 "ioctl_dev". */
    int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    /* Size of the struct: older kernels do not know its last members. */
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    rules.access_fs = (UINT64_C(1) << rights) - 1;
    rules.access_net = version >= 4 ? 3 : 0; /* bind, connect */
    rules.scoped = version >= 6 ? 3 : 0;     /* abstract sockets, signals */
    int fd = (int)syscall(CREATE_RULESET, &rules, size, 0);
    bool done = fd >= 0 && syscall(RESTRICT_SELF, fd, 0) == 0;
    sl_close(fd);
    return done;
}

/* Sets both limits of a resource, but not above the present hard limit, which an unprivileged process cannot raise. */
static bool limit_resource(int what, uint64_t most)
{
    struct rlimit limit = {(rlim_t)most, (rlim_t)most}, now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < limit.rlim_max)
        limit.rlim_cur = limit.rlim_max = now.rlim_max;
    return setrlimit((__rlimit_resource_t)what, &limit) == 0;
}

/* Adds without overflow: at most INT64_MAX. */
static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Sets RLIMIT_DATA and RLIMIT_AS; false if that failed, or is not possible. RLIMIT_DATA counts private writable memory: heap and stacks,
 * not the inputs, which are mapped shared. Anonymous shared memory would not be counted either, but the seccomp filter forbids it.
 * RLIMIT_AS limits the address space, and so the size of the page tables. */
static bool limit_memory(const struct confine_limits *limits)
{
    if (!limits->max_memory || confine_has_sanitizer()) /* a sanitizer's shadow memory takes terabytes of addresses */
        return false;
    uint64_t data = add_up(limits->max_memory, own_memory + thread_memory * limits->threads);
    bool done = limit_resource(RLIMIT_DATA, data);
    /* twice, and 1 GiB to spare: arenas reserve addresses, and mappings begin and end at pages */
    if (limits->max_mapped)
        done = limit_resource(RLIMIT_AS, add_up(2 * data, add_up(limits->max_mapped, UINT64_C(1) << 30))) && done;
    return done;
}

/* Lets the kernel's OOM killer choose this process before all others. False on failure. Call it before PR_SET_DUMPABLE is cleared:
 * afterwards the process's files in /proc belong to root. */
static bool be_first_victim(void)
{
    static const char most[] = "1000";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, most, sizeof most - 1) == sizeof most - 1;
    sl_close(fd);
    return done;
}

uint32_t confine(const struct confine_filter *filter, const struct confine_limits *limits, int parent)
{
    uint32_t done = confine_has_sanitizer() ? MEASURE_SANITIZER : 0;
    if (be_first_victim())
        done |= MEASURE_FIRST_VICTIM;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        done |= MEASURE_NO_NEW_PRIVS;
    if (unshare(CLONE_NEWUSER) == 0)
        done |= MEASURE_USER_NAMESPACE;
    if (confine_files())
        done |= MEASURE_LANDLOCK;
    bool no_core = limit_resource(RLIMIT_CORE, 0);
    if (limit_resource(RLIMIT_NOFILE, confine_has_sanitizer() ? MAX_FILES_WITH_SANITIZER : MAX_FILES) && no_core)
        done |= MEASURE_LIMITS;
    if (limit_memory(limits))
        done |= MEASURE_MEMORY_LIMIT;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
        done |= MEASURE_NOT_DUMPABLE;
    /* The death signal is set after unshare(), as a change of credentials clears it. The parent may have ended before: check afterwards. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0)
        done |= MEASURE_ENDS_WITH_PARENT;
    if (getppid() != parent)
        _exit(1);
    if (confine_filter_apply(filter)) /* last, as it forbids the system calls used above */
        done |= MEASURE_FILTER;
    return done;
}

/* Lists the names of the measures in the set, separated by commas. */
struct worker_text worker_measures_text(uint32_t measures)
{
    static const struct {
        uint32_t measure;
        const char *name;
    } names[] = {
        {MEASURE_FILTER, "seccomp filter"},
        {MEASURE_LANDLOCK, "Landlock"},
        {MEASURE_USER_NAMESPACE, "user namespace"},
        {MEASURE_NO_NEW_PRIVS, "no_new_privs"},
        {MEASURE_MEMORY_LIMIT, "memory limit"},
        {MEASURE_LIMITS, "resource limits"},
        {MEASURE_NOT_DUMPABLE, "not dumpable"},
        {MEASURE_NO_ENVIRONMENT, "no environment"},
        {MEASURE_ENDS_WITH_PARENT, "ends with its parent"},
        {MEASURE_FIRST_VICTIM, "first victim of the OOM killer"},
        {MEASURE_SANITIZER, "weakened for a sanitizer"},
    };
    struct worker_text text = {""};
    size_t size = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (measures & names[i].measure)
            size +=
                (size_t)snprintf(text.text + size, sizeof text.text - size, "%s%s", size ? ", " : "", names[i].name);
    return text;
}
