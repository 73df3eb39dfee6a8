/* Preloaded into the service by test_workers.py. In a worker that maps a file with "deed-NAME" in its first line it does what a hostile
 * file might have its reader do. The launcher keeps the image of the program, so workers have the library too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pid_t service;
static char deed[32];
static bool has_no_filters; /* this kernel is said to have no seccomp */

__attribute__((constructor)) static void begin(void)
{
    service = (pid_t)syscall(SYS_getpid);
    has_no_filters = getenv("MISBEHAVE_NO_SECCOMP") != NULL;
}

int prctl(int option, ...)
{
    va_list list;
    unsigned long given[4];
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        given[i] = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP && has_no_filters) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_prctl, option, given[0], given[1], given[2], given[3]);
}

static bool is(const char *name)
{
    return strcmp(deed, name) == 0;
}

/* Of a call that must not return: the answer of the worker would be one like any other. */
static void tell_breach(long result)
{
    static const char text[] = "BREACH\n";
    if (result >= 0 && write(2, text, sizeof text - 1) > 0)
        _exit(99);
    abort(); /* a sanitizer's worker is refused some calls instead of being killed */
}

static void allocate(void)
{
    for (char *at; (at = malloc(1 << 20));)
        memset(at, 1, 1 << 20);
    abort();
}

static void misbehave(void)
{
    char *const none[] = {NULL};
    char text[64];
    if (is("read"))
        *(volatile char *)16 = 1;
    else if (is("open"))
        tell_breach(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0));
    else if (is("environ"))
        tell_breach(syscall(SYS_open, "/proc/self/environ", O_RDONLY, 0));
    else if (is("socket"))
        tell_breach(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    else if (is("execve"))
        tell_breach(syscall(SYS_execve, "/bin/true", none, none));
    else if (is("kill"))
        tell_breach(syscall(SYS_kill, service, SIGTERM));
    else if (is("ptrace"))
        tell_breach(syscall(SYS_ptrace, PTRACE_ATTACH, service, NULL, NULL));
    else if (is("memory"))
        tell_breach(syscall(SYS_process_vm_readv, service, text, 1, text, 1, 0));
    else if (is("loop"))
        for (volatile unsigned i = 0;; i++)
            ;
    else if (is("allocate"))
        allocate();
}

/* Takes the deed from the first line of the file. */
static void take_deed(const char *file, size_t size)
{
    static const char mark[] = "deed-";
    const char *at = memmem(file, size < 200 ? size : 200, mark, sizeof mark - 1);
    size_t length = 0;
    deed[0] = '\0';
    if (!at)
        return;
    at += sizeof mark - 1;
    while (length < sizeof deed - 1 && at + length < file + size && at[length] >= 'a' && at[length] <= 'z')
        length++;
    memcpy(deed, at, length);
    deed[length] = '\0';
    misbehave();
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    char *data = (char *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
    if (service && fd >= 0 && data != MAP_FAILED && flags & MAP_SHARED && syscall(SYS_getpid) != service)
        take_deed(data, size);
    return data;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap64(at, size, protection, flags, fd, offset);
}

/* ---- answers ---- */
static ssize_t send_text(const char *text, size_t size)
{
    struct iovec part = {(void *)text, size};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    return syscall(SYS_sendmsg, 0, &head, MSG_NOSIGNAL);
}

static ssize_t send_descriptor(const struct msghdr *message)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    const int fd = 1;
    struct msghdr head = *message;
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    head.msg_control = &control;
    head.msg_controllen = sizeof control;
    return syscall(SYS_sendmsg, 0, &head, MSG_NOSIGNAL);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    char *text = message->msg_iov[0].iov_base;
    size_t size = message->msg_iov[0].iov_len;
    bool is_answer = service && syscall(SYS_getpid) != service && deed[0] && size > 56 && memcmp(text, "SLWA", 4) == 0;
    if (!is_answer)
        return syscall(SYS_sendmsg, socket, message, flags);
    if (is("garbage"))
        return send_text("what is this?", 13);
    if (is("descriptor"))
        return send_descriptor(message);
    if (is("before"))
        _exit(3);
    if (is("wrong")) /* the result, which is behind the message, has bools that are none */
        memset(text + 56, 0x55, size - 56);
    long sent = syscall(SYS_sendmsg, socket, message, flags);
    if (is("twice"))
        syscall(SYS_sendmsg, socket, message, flags);
    if (is("after"))
        _exit(3);
    return sent;
}
