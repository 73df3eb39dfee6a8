/* The launcher process, which forks workers, and its start and end by the service. */
#include "worker/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum {
    LAUNCHER_ID = 0,       /* of a child that is a launcher; ids of workers begin at 1 */
    ANSWER_MS = 10 * 1000, /* time limit for a launcher to answer LAUNCHER_SPLIT */
    SOCKET = 3,            /* descriptor of the launcher's end of the socket to its parent */
    NICE = 10 /* of workers, as of pool threads: the loop thread, for which all requests wait, has priority */
};

static struct { /* state of the launcher process */
    int signals;
    struct worker_start start;
    struct confine_filter filter;
    struct launcher_child {
        uint64_t id;
        pid_t pid;
    } children[LAUNCHER_MAX_WORKERS];
    size_t child_count;
} self;

/* ---- the end ---- */

/* Kills all children, waits until they have ended, and ends the launcher. */
static _Noreturn void end_launcher(void)
{
    for (size_t i = 0; i < self.child_count; i++)
        kill(self.children[i].pid, SIGKILL);
    for (size_t i = 0; i < self.child_count; i++)
        while (waitpid(self.children[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    _exit(0);
}

/* Sends a message with descriptors to the parent. False with errno on failure; ends the launcher if the parent is gone. */
static bool send_to_parent(const struct launcher_message *message, const int *fds, size_t count)
{
    if (worker_send(SOCKET, (struct sl_bytes){(const uint8_t *)message, sizeof *message}, fds, count))
        return true;
    if (errno == EPIPE || errno == ECONNRESET)
        end_launcher();
    return false;
}

/* ---- workers ---- */

/* For each child that has ended: gets its wait status, removes it from the list and, if it is a worker, reports its death to the parent.
 * No other function waits for children, so the kernel does not reuse a pid that is still in the list. */
static void reap(void)
{
    for (size_t i = 0; i < self.child_count;) {
        struct launcher_child child = self.children[i];
        int status = -1;
        pid_t got = waitpid(child.pid, &status, WNOHANG);
        if (got == child.pid || (got < 0 && errno == ECHILD)) { /* ECHILD: there is no such child any more */
            self.children[i] = self.children[--self.child_count];
            struct launcher_message message = {LAUNCHER_DIED, got < 0 ? -1 : status, child.id, child.pid};
            if (child.id != LAUNCHER_ID) /* a second launcher: the process that it serves sees its socket closed */
                send_to_parent(&message, NULL, 0);
        } else {
            i++;
        }
    }
}

/* In a new child: turns it into a worker, with its end of the job socket as descriptor 0, and the report pipe as 1 and 2. Closes all other
 * descriptors. `request` has the worker's limits. */
static _Noreturn void become_worker(int socket, int report, const struct launcher_message *request)
{
    sigset_t none; /* no signal is blocked: the launcher blocks SIGCHLD */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(socket, STDIN_FILENO) < 0 || dup2(report, STDOUT_FILENO) < 0 || dup2(report, STDERR_FILENO) < 0)
        _exit(1);
    closefrom(STDERR_FILENO + 1);
    setpriority(PRIO_PROCESS, 0, NICE);
    struct worker_start start = self.start;
    start.limits = (struct confine_limits){request->max_memory, request->max_mapped, request->threads};
    worker_serve(&start);
}

/* Forks a worker, and sends the parent's ends of the job socket and the report pipe to the parent. Returns 0, or an errno if no worker
 * could be started; one whose descriptors cannot be sent is killed. */
static int fork_worker(const struct launcher_message *request, const int sockets[2], const int report[2])
{
    pid_t pid = fork();
    if (pid == 0)
        become_worker(sockets[1], report[1], request);
    if (pid < 0)
        return errno;
    self.children[self.child_count++] = (struct launcher_child){request->id, pid};
    struct launcher_message started = {.what = LAUNCHER_STARTED, .id = request->id, .pid = pid};
    if (send_to_parent(&started, (int[]){sockets[0], report[0]}, 2))
        return 0;
    int error = errno; /* ETOOMANYREFS: too many descriptors are in flight */
    kill(pid, SIGKILL);
    return error;
}

/* Starts the worker that the parent asked for, or answers LAUNCHER_FAILED. Closes the launcher's copies of all four descriptors: by then
 * the worker and the parent have their own. */
static void start_worker(const struct launcher_message *request)
{
    int sockets[2] = {-1, -1}, report[2] = {-1, -1}, error = EAGAIN; /* too many workers */
    if (self.child_count < LAUNCHER_MAX_WORKERS) {
        bool open = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 &&
                    pipe2(report, O_CLOEXEC | O_NONBLOCK) == 0;
        error = open ? fork_worker(request, sockets, report) : errno;
    }
    for (int i = 0; i < 2; i++) {
        sl_close(sockets[i]);
        sl_close(report[i]);
    }
    struct launcher_message failed = {.what = LAUNCHER_FAILED, .number = error, .id = request->id};
    if (error)
        send_to_parent(&failed, NULL, 0);
}

static void kill_worker(uint64_t id)
{
    for (size_t i = 0; i < self.child_count; i++)
        if (self.children[i].id == id)
            kill(self.children[i].pid, SIGKILL);
}

/* ---- other launchers ---- */
static _Noreturn void serve_parent(void);

/* In a new child: turns it into a second launcher, which serves the process at the other end of `socket`. It ends when `parent`, the
 * launcher that forked it, ends; if that has ended already there will be no death signal, so it exits here. */
static _Noreturn void become_launcher(int socket, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(socket, SOCKET) < 0)
        _exit(1);
    closefrom(SOCKET + 1);
    self.child_count = 0; /* fork() has copied the first launcher's list */
    self.start.launcher = getpid();
    serve_parent();
}

/* Starts a second launcher, for a process that the service is about to fork, and sends the parent the socket by which that process can
 * reach it. If that fails, answers LAUNCHER_FAILED. */
static void start_launcher(void)
{
    int sockets[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;
    struct launcher_message answer = {.what = LAUNCHER_STARTED, .id = LAUNCHER_ID};
    errno = EAGAIN; /* for the answer, if there are too many children already */
    bool open =
        self.child_count < LAUNCHER_MAX_WORKERS && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0;
    if (open && (pid = fork()) == 0)
        become_launcher(sockets[1], parent);
    if (pid > 0) {
        self.children[self.child_count++] = (struct launcher_child){LAUNCHER_ID, pid};
        answer.pid = pid;
        send_to_parent(&answer, &sockets[0], 1); /* if that fails, closing the socket below ends the second launcher */
    } else {
        answer.what = LAUNCHER_FAILED;
        answer.number = errno;
        send_to_parent(&answer, NULL, 0);
    }
    sl_close(sockets[0]);
    sl_close(sockets[1]);
}

/* ---- the launcher's life ---- */

/* Receives a request of the parent and does what it says. Ends the launcher if the parent has closed the socket. */
static void handle_request(void)
{
    struct launcher_message request;
    ssize_t size = worker_receive(SOCKET, &request, sizeof request, NULL, NULL);
    if (size != sizeof request)
        end_launcher();
    if (request.what == LAUNCHER_START)
        start_worker(&request);
    else if (request.what == LAUNCHER_KILL)
        kill_worker(request.id);
    else if (request.what == LAUNCHER_SPLIT)
        start_launcher();
}

/* Removes the service's signal handlers (of crash.c and sigbus_guard.c), which fork() has copied, and ignores the signals of a terminal or
 * a supervisor: the parent handles them and ends the launcher when its work is done. */
static void set_signals(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* fails for SIGKILL, SIGSTOP and the C library's own signals */
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
}

/* Opens a descriptor from which the deaths of children (SIGCHLD) are read, so that poll() can wait for them and for the socket together. */
static void open_signals(void)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, NULL);
    self.signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self.signals < 0)
        _exit(1);
}

/* Opens /dev/null, which replaces the standard streams. A chroot or container may have none: then an empty file in memory. */
static int open_null(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return null >= 0 ? null : memfd_create("null", MFD_CLOEXEC);
}

/* In the child that the service has forked: turns it into the launcher, which serves the parent until the parent ends. Workers inherit
 * all that is set here. `prepare` is called before the first worker is forked. */
static _Noreturn void launch(int socket, pid_t parent, const struct worker_function *functions, size_t count,
                             void (*prepare)(void))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_NAME, "symloom-worker");
    socket = fcntl(socket, F_DUPFD_CLOEXEC, SOCKET + 1); /* above the descriptors that are replaced below */
    int null = open_null();
    if (getppid() != parent || socket < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || dup2(socket, SOCKET) < 0)
        _exit(1);
    closefrom(SOCKET + 1);
    /* A process group of its own, so that a signal to the service's group (Ctrl-C) does not reach workers: the service ends them. */
    setpgid(0, 0);
    /* Leaves the directory where the service was started, so that it can be unmounted. In a root directory that is closed to the user of
     * the service this fails, and the launcher stays where it is. */
    int stays = chdir("/");
    (void)stays;
    self.start = (struct worker_start){functions, count, &self.filter, .launcher = getpid()};
    self.start.no_environment = confine_erase_environment();
    confine_filter_make(&self.filter);
    if (prepare)
        prepare();
    malloc_trim(0); /* frees the memory that libseccomp used, which every worker would inherit */
    set_signals();
    serve_parent();
}

/* Waits for requests of the parent and for deaths of workers, for ever. */
static _Noreturn void serve_parent(void)
{
    open_signals();
    struct pollfd ready[] = {{SOCKET, POLLIN, 0}, {self.signals, POLLIN, 0}};
    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            end_launcher();
        struct signalfd_siginfo info;
        while (ready[1].revents && read(self.signals, &info, sizeof info) > 0)
            ;
        reap(); /* after each wake-up: one signal may stand for several deaths */
        if (ready[0].revents)
            handle_request();
    }
}

/* Sets the socket's send buffer to 212992 bytes, the kernel's default for the largest size that a user may set (net.core.wmem_max), so
 * that the messages of LAUNCHER_MAX_WORKERS workers fit. */
static void widen_send_buffer(int socket)
{
    const int bytes = 212992;
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes); /* on failure the default stays */
}

struct worker_launcher *worker_launcher_start(const struct worker_function *functions, size_t count,
                                              void (*prepare)(void), struct sl_error *error)
{
    struct worker_launcher *launcher = malloc(sizeof *launcher);
    int sockets[2] = {-1, -1};
    if (!launcher || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        sl_fail_errno(error, launcher ? errno : ENOMEM, "cannot start the launcher of workers");
        free(launcher);
        return NULL;
    }
    widen_send_buffer(sockets[0]);
    widen_send_buffer(sockets[1]);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        launch(sockets[1], parent, functions, count, prepare);
    close(sockets[1]);
    *launcher = (struct worker_launcher){sockets[0], pid, functions, count};
    if (pid > 0)
        return launcher;
    sl_fail_errno(error, errno, "cannot start the launcher of workers");
    close(sockets[0]);
    free(launcher);
    return NULL;
}

struct worker_launcher *worker_launcher_split(struct worker_launcher *launcher, struct sl_error *error)
{
    struct launcher_message message = {.what = LAUNCHER_SPLIT};
    struct worker_launcher *made = malloc(sizeof *made);
    struct pollfd ready = {launcher->socket, POLLIN, 0};
    int fds[WORKER_MAX_DESCRIPTORS] = {-1};
    size_t count = 0;
    bool good = made &&
                worker_send(launcher->socket, (struct sl_bytes){(const uint8_t *)&message, sizeof message}, NULL, 0) &&
                poll(&ready, 1, ANSWER_MS) > 0 &&
                worker_receive(launcher->socket, &message, sizeof message, fds, &count) == sizeof message;
    if (good && message.what == LAUNCHER_STARTED && count == 1) {
        *made = (struct worker_launcher){fds[0], message.pid, launcher->functions, launcher->count};
        widen_send_buffer(made->socket);
        return made;
    }
    /* ECONNRESET: the first launcher gave no answer */
    sl_fail_errno(error, good && message.what == LAUNCHER_FAILED ? message.number : ECONNRESET,
                  "cannot start a second launcher of workers");
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    free(made);
    return NULL;
}

pid_t worker_launcher_pid(const struct worker_launcher *launcher)
{
    return launcher->pid;
}

void worker_launcher_forget(struct worker_launcher *launcher)
{
    close(launcher->socket);
    free(launcher);
}

void worker_launcher_end(struct worker_launcher *launcher)
{
    shutdown(launcher->socket, SHUT_RDWR); /* the launcher kills the workers and exits when its socket is closed */
    while (waitpid(launcher->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(launcher->socket);
    free(launcher);
}
