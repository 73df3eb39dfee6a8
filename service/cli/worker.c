/* `symloom worker MAX-MEMORY MAX-OUTPUT PROGRAM [WORD..]`: the service starts external programs, such as transcoders, through this command.
 * It sets resource limits of its own process, which libuv cannot do for a child, and then executes the program in it. */
#include "cli/cli.h"
#include "cli/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Sets a resource limit of this process. False if the text is not a number, or the limit cannot be set. */
static bool worker_limit(int which, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    struct rlimit limit = {value, value};
    return !errno && !*end && setrlimit((__rlimit_resource_t)which, &limit) == 0;
}

/* Runs the command `worker`: sets the limits and executes the program; returns an exit status only if that fails. Undoes what a child
 * inherits from the service: blocked signals, and SIGPIPE ignored. Allows no core dumps, as a crash of an external program is no fault of
 * the service. */
static int worker_main(const struct command *command, int argc, char **argv)
{
    sigset_t none;
    if (argc < 3) /* argv: MAX-MEMORY, MAX-OUTPUT, PROGRAM */
        return options_wrong(&(struct options){.command = command}, "this command is for internal use of the service");
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (!worker_limit(RLIMIT_FSIZE, argv[1]) || !worker_limit(RLIMIT_DATA, argv[0])) {
        fprintf(stderr, "error: cannot set the resource limits of the worker process\n");
        return 1;
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "error: cannot run %s: %s\n", argv[2], strerror(errno));
    return 127;
}

const struct command command_worker = {.name = "worker", .main = worker_main};
