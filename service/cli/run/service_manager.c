/* `symloom run`: notifications to the service manager (sd_notify(3)). */
#include "cli/run/run.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Sends a state to the service manager, if it started this process with Type=notify (sd_notify(3)). `flags` are those of sendto. Errors are
 * ignored: the manager may be gone. */
static void notify_send(const char *state, int flags)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') /* an abstract socket */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | flags, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
    close(fd);
}

void service_manager_notify(const char *state)
{
    notify_send(state, 0);
}

void service_manager_notify_limited(const char *state)
{
    notify_send(state, MSG_DONTWAIT);
}

/* Returns the decimal number that the environment variable contains; 0 if it is unset or not a number. */
static uint64_t parse_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 0;
    unsigned long long number = strtoull(text, &end, 10);
    return *end ? 0 : number;
}

uint64_t service_manager_watchdog_ms(void)
{
    /* a third of the manager's timeout: one late message does not end the service */
    uint64_t us = parse_number("WATCHDOG_USEC"), ms = us / 3000;
    /* WATCHDOG_PID names the process that is watched: others have only inherited the variables */
    if (us == 0 || (getenv("WATCHDOG_PID") && parse_number("WATCHDOG_PID") != (uint64_t)getpid()))
        return 0;
    return ms ? ms : 1;
}
