/* `symloom run` with several processes (http.processes): the parent, which starts and supervises the children that serve. */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"
#include "cli/server.h"
#include "conversion/isolation.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics_shared.h"
#include "core/temp_dir.h"

enum {
    MS_NS = 1000000,
    YOUNG_MS = 60000, /* a child that exits within this time after its start is started again only after a pause */
    MAX_UNREADY = 5,  /* consecutive exits of a child before it was ready, after which the whole service exits */
    AGAIN_MS = 200, /* half of the pause after the first early exit; each further one doubles it, up to MAX_PAUSE_MS */
    MAX_PAUSE_MS = 30000,
    MAX_SOCKETS_PATH = 80 /* leaves room for a name in sun_path, which has 108 bytes */
};
/* Sent by a child to the parent on the notification socket, like READY=1: it reloaded its configuration, so the others must, too. */
#define RELOADED "X_SYMLOOM_RELOADED=1"

struct service_process {
    pid_t pid;                   /* 0: not running */
    uint64_t started_ms, due_ms; /* due_ms: when a child that is not running is to be started */
    unsigned failures;           /* consecutive exits within YOUNG_MS after the start */
    unsigned unready;            /* consecutive exits before it sent READY=1 */
    bool ready, alive;           /* alive: it sent WATCHDOG=1 since the parent last sent one to the service manager */
};

static struct parent {
    struct config *config;
    const struct options *options;
    int (*serve)(struct config *config, const struct options *options);
    struct service_process *children;
    size_t count;
    int signals, notify_fd;              /* signalfd(2); the socket on which children notify the parent */
    char manager[108], notify_path[108]; /* NOTIFY_SOCKET of the service manager (empty: none), and of the children */
    const char *sockets;  /* directory of the sockets through which the processes send requests to each other */
    int sockets_fd;       /* descriptor of that directory */
    int status;           /* exit status of the service */
    bool stopping, ready; /* ready: the service manager was sent READY=1 */
    /* the configuration was reloaded: a child that starts now gets the parent's old configuration, and must reload it, too */
    bool reloaded;
} parent;

static bool is_child; /* this process was forked by the parent, and serves */

/* ---- before the children ---- */
/* Blocks the signals that the parent handles and opens a signalfd for them, so that one poll(2) waits for signals and for notifications of
 * children. False on an error. */
static bool block_signals(void)
{
    static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(&set, handled[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    parent.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return parent.signals >= 0;
}

/* Opens an abstract socket (unix(7)) on which children notify the parent: they get its name as NOTIFY_SOCKET. SO_PASSCRED: messages tell
 * their sender's pid. False on an error. */
static bool open_notify_socket(void)
{
    static const int on = 1;
    const char *manager = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    snprintf(parent.manager, sizeof parent.manager, "%s", manager ? manager : "");
    int size = snprintf(parent.notify_path, sizeof parent.notify_path, "@symloom-%d-%016llx", (int)getpid(),
                        (unsigned long long)random);
    /* the `@` of NOTIFY_SOCKET stands for the NUL byte that begins the name of an abstract socket */
    memcpy(address.sun_path, parent.notify_path, (size_t)size);
    address.sun_path[0] = '\0';
    parent.notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return parent.notify_fd >= 0 && setsockopt(parent.notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
           bind(parent.notify_fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size)) == 0;
}

/* ---- a child ---- */
/* Runs the service in child `index`, after fork; returns its exit status. The kernel sends the child SIGTERM if the parent dies, so that no
 * child goes on alone. */
static int serve_child(size_t index)
{
    struct config *config = parent.config;
    sigset_t none;
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(parent.signals);
    close(parent.notify_fd);
    setenv("NOTIFY_SOCKET", parent.notify_path, 1);
    unsetenv("WATCHDOG_PID"); /* it names the parent: the child would think that it is not watched */
    is_child = true;
    config->process.index = index;
    metrics_set_process(index);
    process_share(config); /* divides the memory limit by the number of processes */
    return parent.serve(config, parent.options);
}

/* Forks a child process, which serves until it exits. If fork fails, due_ms says when start_due tries again. */
static void start_child(struct service_process *child)
{
    child->started_ms = clock_mono_ns() / MS_NS;
    child->ready = child->alive = false;
    /* each child needs its own launcher (the process that forks the workers that read files). So the parent's launcher forks a second
     * launcher, which the child takes over; the parent keeps the first */
    isolation_split_launcher();
    child->pid = fork();
    isolation_take_launcher(child->pid == 0);
    if (child->pid == 0)
        exit(serve_child((size_t)(child - parent.children)));
    if (child->pid < 0) {
        log_error("run", "cannot start a service process", LOG_STR("error", strerror(errno)));
        child->pid = 0;
        child->due_ms = child->started_ms + AGAIN_MS;
    }
}

static void signal_all(int number)
{
    for (size_t i = 0; i < parent.count; i++)
        if (parent.children[i].pid)
            kill(parent.children[i].pid, number);
}

/* Begins the end of the service: sends the signal to all children. When called a second time, kills them. */
static void stop_all(int number)
{
    if (parent.stopping)
        number = SIGKILL;
    parent.stopping = true;
    signal_all(number);
}

/* Describes how a process ended, "signal 11 (Segmentation fault)" or "status 1", from its wait status. */
static void format_exit(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "status %d", WEXITSTATUS(status));
}

/* Logs why a child ended (`status` is that of waitpid), and adds its metrics to the parent's, so that counters do not fall. */
static void log_exit(const struct service_process *child, int status, uint64_t lived_ms, uint64_t pause_ms)
{
    char why[48];
    format_exit(status, why, sizeof why);
    metrics_merge_dead_process((size_t)(child - parent.children), why);
    log_error("run",
              WIFSIGNALED(status) ? "a service process crashed; starting another"
                                  : "a service process exited; starting another",
              LOG_I64("pid", child->pid), LOG_STR("why", why), LOG_U64("lived_ms", lived_ms),
              LOG_U64("again_in_ms", pause_ms));
}

/* Returns the pause before a child is started again, in milliseconds: none if it ran for YOUNG_MS, else exponential backoff, so that a
 * crash loop does not starve the other processes. */
static uint64_t pause_before_start(const struct service_process *child)
{
    uint64_t ms = child->failures < 16 ? (uint64_t)AGAIN_MS << child->failures : MAX_PAUSE_MS;
    return !child->failures ? 0 : ms < MAX_PAUSE_MS ? ms : MAX_PAUSE_MS;
}

/* Handles a child's exit, with the status of waitpid: plans its restart. Ends the whole service instead, and leaves the restart to the
 * service manager, if the child keeps exiting before it is ready, or one exits while the service is still starting. */
static void handle_exit(struct service_process *child, int status)
{
    uint64_t lived_ms = clock_mono_ns() / MS_NS - child->started_ms;
    bool fails_start = !child->ready && !parent.ready;
    if (parent.stopping) {
        /* the first child that exits with an error, or by a signal, decides the exit status of the service */
        if (status && !parent.status)
            parent.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        child->pid = 0;
        return;
    }
    child->failures = lived_ms < YOUNG_MS ? child->failures + 1 : 0;
    child->unready = child->ready ? 0 : child->unready + 1;
    log_exit(child, status, lived_ms, pause_before_start(child));
    child->pid = 0;
    child->due_ms = clock_mono_ns() / MS_NS + pause_before_start(child);
    if (!fails_start && child->unready < MAX_UNREADY)
        return;
    log_error("run", "exiting: a service process did not become ready");
    parent.status = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
    stop_all(SIGTERM);
}

/* Handles the end of the launcher, the process that forks the workers that read files. Without it a child that is started later could not
 * isolate what it reads: the service exits and leaves the restart to the service manager. */
static void handle_lost_launcher(void)
{
    log_error("run", "exiting: the launcher of the processes that read files has ended");
    parent.status = 1;
    stop_all(SIGTERM);
}

/* Waits for all processes that have ended: children that serve, and the launcher of workers. */
static void reap(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == isolation_launcher_pid() && !parent.stopping)
            handle_lost_launcher();
        for (size_t i = 0; i < parent.count; i++)
            if (parent.children[i].pid == pid)
                handle_exit(&parent.children[i], status);
    }
}

/* ---- notifications of children ---- */
/* Sends a state to the service manager, if there is one; drops it if the manager does not keep up with reading. */
static void notify_manager(const char *state)
{
    if (!parent.manager[0])
        return;
    setenv("NOTIFY_SOCKET", parent.manager, 1);
    service_manager_notify_limited(state);
}

static bool all_ready(void)
{
    for (size_t i = 0; i < parent.count; i++)
        if (!parent.children[i].ready)
            return false;
    return true;
}

/* True if every child has sent WATCHDOG=1 since the last call that returned true; forgets these notifications then. */
static bool all_alive(void)
{
    for (size_t i = 0; i < parent.count; i++)
        if (!parent.children[i].alive)
            return false;
    for (size_t i = 0; i < parent.count; i++)
        parent.children[i].alive = false;
    return true;
}

/* Handles what a child sent to its NOTIFY_SOCKET. The service is ready when all children are, and alive while all of them keep sending
 * WATCHDOG=1. RELOADED makes all other children reload their configuration. */
static void handle_notification(struct service_process *child, const char *text)
{
    char ready[64];
    if (strstr(text, "READY=1") && !child->ready) {
        child->ready = true;
        if (parent.reloaded) /* it has the configuration of the parent's start: make it reload */
            kill(child->pid, SIGHUP);
        if (!parent.ready && all_ready()) {
            parent.ready = true;
            snprintf(ready, sizeof ready, "READY=1\nSTATUS=%zu processes", parent.count);
            notify_manager(ready);
        }
    }
    if (strstr(text, "WATCHDOG=1")) {
        child->alive = true;
        if (all_alive())
            notify_manager("WATCHDOG=1");
    }
    parent.reloaded = parent.reloaded || strstr(text, RELOADED);
    if (strstr(text, RELOADED))
        for (size_t i = 0; i < parent.count; i++)
            if (parent.children[i].pid && &parent.children[i] != child)
                kill(parent.children[i].pid, SIGHUP);
}

/* Reads and handles all notifications that have arrived. Notifications of processes that are no children are ignored: the kernel tells the
 * sender's pid. */
static void read_notifications(void)
{
    char text[512];
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr aligned;
    } control;
    for (;;) {
        struct iovec part = {text, sizeof text - 1};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t size = recvmsg(parent.notify_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (size < 0)
            return;
        text[size] = '\0';
        const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
            continue;
        struct ucred who;
        memcpy(&who, CMSG_DATA(head), sizeof who);
        for (size_t i = 0; i < parent.count; i++)
            if (parent.children[i].pid == who.pid)
                handle_notification(&parent.children[i], text);
    }
}

/* ---- the parent's loop ---- */
/* Handles all signals that have arrived. SIGCHLD: a child ended; SIGHUP: reload; SIGUSR2: log running jobs; SIGUSR1: reopen log files;
 * SIGTERM and SIGINT: end the service. */
static void handle_signals(void)
{
    struct signalfd_siginfo signal;
    while (read(parent.signals, &signal, sizeof signal) == sizeof signal)
        switch (signal.ssi_signo) {
        case SIGCHLD: reap(); break;
        case SIGHUP:
            parent.reloaded = true;
            signal_all(SIGHUP);
            break;
        case SIGUSR2: signal_all(SIGUSR2); break;
        case SIGUSR1:
            log_reopen();
            signal_all(SIGUSR1);
            break;
        default: notify_manager("STOPPING=1"); stop_all((int)signal.ssi_signo);
        }
}

/* Starts the children that are not running and whose time (due_ms) has come. Returns the milliseconds until the next one's, as a timeout
 * for poll(2): -1 if there is none. */
static int start_due(void)
{
    uint64_t now = clock_mono_ns() / MS_NS, next = UINT64_MAX;
    for (size_t i = 0; i < parent.count && !parent.stopping; i++) {
        struct service_process *child = &parent.children[i];
        /* due_ms is 0 at first: the first call starts all children */
        if (!child->pid && child->due_ms <= now)
            start_child(child);
        else if (!child->pid && child->due_ms < next)
            next = child->due_ms;
    }
    return next == UINT64_MAX ? -1 : (int)(next - now);
}

static bool has_work_left(void)
{
    for (size_t i = 0; i < parent.count; i++)
        if (parent.children[i].pid)
            return true;
    return !parent.stopping;
}

/* Runs the parent's loop until the service ends: starts children, and handles signals and their notifications. */
static void supervise(void)
{
    while (has_work_left()) {
        struct pollfd from[] = {{.fd = parent.signals, .events = POLLIN}, {.fd = parent.notify_fd, .events = POLLIN}};
        int pause = start_due();
        if (poll(from, 2, pause) < 0 && errno != EINTR)
            break;
        read_notifications();
        handle_signals();
    }
}

/* ---- sockets between the processes ---- */
/* Tests if Unix sockets can be created in the directory: some file systems only support files. Returns 0 or errno. */
static int try_socket(const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/probe", directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    unlink(address.sun_path);
    return error;
}

/* Creates a directory below `base` for the sockets through which the processes send requests to each other. If its path is too long for a
 * socket address, the processes use /proc/self/fd/N of a descriptor that children inherit by fork. Returns 0 or errno. */
static int make_sockets_in(struct config *config, const char *base)
{
    char path[PATH_MAX], by_descriptor[32];
    if (snprintf(path, sizeof path, "%s/symloom-XXXXXX", base) >= (int)sizeof path)
        return ENAMETOOLONG;
    if (!mkdtemp(path))
        return errno;
    parent.sockets_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(by_descriptor, sizeof by_descriptor, "/proc/self/fd/%d", parent.sockets_fd);
    const char *name = strlen(path) <= MAX_SOCKETS_PATH ? path : by_descriptor;
    int error = parent.sockets_fd < 0 ? errno : try_socket(name);
    if (!error) {
        parent.sockets = sl_arena_strndup(&config->arena, path, strlen(path));
        config->process.directory = sl_arena_strndup(&config->arena, name, strlen(name));
        error = parent.sockets && config->process.directory ? 0 : ENOMEM;
    }
    if (error) {
        config->process.directory = NULL;
        sl_close(parent.sockets_fd);
        rmdir(path);
    }
    return error;
}

/* Creates the directory for the sockets between the processes in the first place that supports it. False: `tried` lists the places and
 * errors. */
static bool make_sockets(struct config *config, struct sl_buf *tried)
{
    const char *places[] = {getenv("RUNTIME_DIRECTORY"), getenv("TMPDIR"), temp_dir(), "/dev/shm"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        /* RUNTIME_DIRECTORY may list several directories (systemd.exec(5)). */
        bool is_list = i == 0 && places[i] && (*places[i] != '/' || strchr(places[i], ':'));
        if (!places[i] || !*places[i] || is_list)
            continue;
        int error = make_sockets_in(config, places[i]);
        if (!error)
            return true;
        sl_buf_printf(tried, "%s%s: %s", tried->size ? "; " : "no directory for sockets: ", places[i], strerror(error));
    }
    return false;
}

/* Removes the sockets of all children, named 0, 1, 2, ..., and their directory. A socket may be missing: errors are ignored. */
static void remove_sockets(void)
{
    char name[24];
    for (size_t i = 0; i < parent.count; i++) {
        snprintf(name, sizeof name, "%zu", i);
        unlinkat(parent.sockets_fd, name, 0);
    }
    rmdir(parent.sockets);
    close(parent.sockets_fd);
}

int processes_run(struct config *config, const struct options *options,
                  int (*serve)(struct config *config, const struct options *options))
{
    parent.config = config;
    parent.options = options;
    parent.serve = serve;
    parent.count = config->http.processes;
    parent.children = calloc(parent.count, sizeof *parent.children);
    if (!parent.children || !block_signals() || !open_notify_socket())
        return server_failed("cannot start the service processes", strerror(errno));
    struct sl_buf tried = {0};
    if (!make_sockets(config, &tried)) {
        sl_buf_u8(&tried, 0);
        int status = server_failed("cannot start the service processes",
                                   tried.failed ? "out of memory" : (const char *)tried.data);
        sl_buf_free(&tried);
        return status;
    }
    sl_buf_free(&tried);
    if (!metrics_map_shared(parent.count))
        log_warn("run", "cannot share metrics between service processes: when a process ends, its counts are lost");
    if (!cache_share_change_counter())
        log_warn("run", "cannot share memory between service processes: they notice uploads up to a second late");
    log_info("run", "starting the service processes", LOG_U64("processes", parent.count));
    supervise();
    remove_sockets();
    free(parent.children);
    return parent.status;
}

void process_share(struct config *config)
{
    if (config->process.directory && config->memory.request_budget != UINT64_MAX)
        config->memory.request_budget /= config->http.processes;
}

unsigned process_threads(const struct config *config)
{
    unsigned share = loop_cores() / config->http.processes;
    return !config->process.directory ? 0 : share < 2 ? 2 : share;
}

void processes_forward_reload(void)
{
    if (is_child)
        service_manager_notify_limited(RELOADED);
}
