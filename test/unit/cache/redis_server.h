/* A real redis-server for a test: on a socket in the test's directory, or on a port of 127.0.0.1. */
#pragma once

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "support.h"

struct redis_server {
    pid_t pid;
    char url[256], socket[200];
    const char *greeting; /* inline commands that redis_ask needs first, or NULL */
};

static inline int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Returns when it accepts connections, which it says. */
static inline void redis_wait_ready(int fd)
{
    char text[16384];
    size_t size = 0;
    while (size < sizeof text - 1) {
        ssize_t n = read(fd, text + size, sizeof text - 1 - size);
        if (n <= 0)
            fail_msg("redis-server did not start");
        size += (size_t)n;
        text[size] = '\0';
        if (strstr(text, "eady to accept connections"))
            return;
    }
    fail_msg("redis-server says too much");
}

/* `port` 0: only the socket. `extra`: one more option and its value, or NULL. */
static inline void redis_start(struct redis_server *server, int port, const char *option, const char *value)
{
    int out[2];
    char port_text[16];
    snprintf(server->socket, sizeof server->socket, "%s/redis.sock", test_dir);
    snprintf(port_text, sizeof port_text, "%d", port);
    if (port)
        snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", port);
    else
        snprintf(server->url, sizeof server->url, "unix://%s", server->socket);
    const char *const arguments[] = {"redis-server", "--port", port_text, "--bind", "127.0.0.1", "--unixsocket",
                                     server->socket, "--save", "",        "--dir",  test_dir,    "--appendonly",
                                     "no",           option,   value,     NULL};
    assert_int_equal(pipe(out), 0);
    server->pid = fork();
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test crashes */
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execvp(arguments[0], (char **)(uintptr_t)arguments);
        _exit(127);
    }
    close(out[1]);
    redis_wait_ready(out[0]);
    close(out[0]);
}

static inline void redis_stop(struct redis_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    server->greeting = NULL;
    unlink(server->socket);
}

static inline void write_exactly(int fd, const char *text, size_t size)
{
    assert_int_equal(write(fd, text, size), size);
}

/* One command by its words, each without blanks; the raw answer, valid until the next call. */
static inline const char *redis_ask(const struct redis_server *server, const char *words)
{
    static char answer[8192];
    char line[512];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", server->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int size = snprintf(line, sizeof line, "%s%s\r\nQUIT\r\n", server->greeting ? server->greeting : "", words);
    write_exactly(fd, line, (size_t)size);
    size_t got = 0;
    for (ssize_t n; got < sizeof answer - 1 && (n = read(fd, answer + got, sizeof answer - 1 - got)) > 0;)
        got += (size_t)n;
    answer[got] = '\0';
    close(fd);
    for (const char *at = server->greeting; at && *at; at++)
        if (*at == '\n')
            memmove(answer, strchr(answer, '\n') + 1, strlen(strchr(answer, '\n')));
    return answer;
}
