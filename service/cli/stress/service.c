/* `symloom stress`: starts this program as the service under test, with a socket made here. */
#include "cli/stress/stress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

int stress_socket(int type, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
              (type != SOCK_STREAM || listen(fd, 4096) == 0) &&
              getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    if (!ok && fd >= 0)
        close(fd);
    *port = ntohs(address.sin_port);
    return ok ? fd : -1;
}

void stress_pass_listener(int listener)
{
    char text[32];
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", "1", 1);
    unsetenv("LISTEN_FDNAMES");
    /* descriptor 3 is the first that LISTEN_FDS means; dup2 clears close-on-exec, but not if both are the same */
    if (listener == 3)
        fcntl(listener, F_SETFD, 0);
    else
        dup2(listener, 3);
}

/* In the forked child: executes this program as the service, with the listening socket as descriptor 3 and without input and output. */
static void become_service(const struct stress_service_options *options, int listener, uint16_t statsd_port)
{
    const char *words[16] = {"symloom", "run", "--bind", "systemd"};
    size_t count = 4;
    char text[64];
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(text, sizeof text, "127.0.0.1:%u", statsd_port);
    if (options->statsd)
        setenv("STATSD_SERVER", text, 1);
    snprintf(text, sizeof text, options->sentry ? "http://stress@%s/1" : "", options->sentry);
    setenv("SYMLOOM_SENTRY_DSN", text, 1);
    const char *const pairs[][2] = {{"--config", options->config},
                                    {"--cache-dir", options->cache_dir},
                                    {"--log-format", options->json_log ? "json" : NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][1]) {
            words[count++] = pairs[i][0];
            words[count++] = pairs[i][1];
        }
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    stress_pass_listener(listener);
    execv("/proc/self/exe", (char *const *)words);
    _exit(127);
}

enum sl_code stress_service_start(const struct stress_service_options *options, struct stress_service *service,
                                  struct sl_error *error)
{
    uint16_t port = 0, statsd_port = 0;
    int listener = stress_socket(SOCK_STREAM, &port);
    *service = (struct stress_service){.sink = options->statsd ? stress_socket(SOCK_DGRAM, &statsd_port) : -1};
    if (listener < 0 || (options->statsd && service->sink < 0))
        return sl_fail_errno(error, errno, "cannot create a socket for the service under test");
    snprintf(service->url, sizeof service->url, "http://127.0.0.1:%u", port);
    service->pid = fork();
    if (service->pid == 0)
        become_service(options, listener, statsd_port);
    int number = errno;
    close(listener); /* so that connections are refused once the service has ended */
    return service->pid > 0 ? SL_OK : sl_fail_errno(error, number, "cannot start the service process");
}

uint64_t stress_service_stop(struct stress_service *service)
{
    struct rusage usage = {0};
    int status;
    if (service->pid > 0) {
        kill(service->pid, SIGTERM);
        while (wait4(service->pid, &status, 0, &usage) < 0 && errno == EINTR)
            continue;
    }
    sl_close(service->sink);
    return (uint64_t)usage.ru_maxrss * 1024;
}
