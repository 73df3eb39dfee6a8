/* Loaded (LD_PRELOAD) into a program that callgrind runs, so that valgrind starts once for many runs of it: in the place of its
 * main, reads a run a line from standard input, its arguments with tabs between them. Each is a process of its own, whose instructions
 * callgrind counts from its main on and tells at its end; a line "ENDED" with the status that waitpid gave follows.
 *
 * Valgrind's own start, half a second of CPU time, is most of what a small file takes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { ARGUMENTS = 32, LONGEST_S = 300 };

typedef int main_function(int argc, char **argv, char **environment);
typedef int start_function(main_function *main, int argc, char **argv, void (*begin)(void), void (*end)(void),
                           void (*loader_end)(void), void *stack_end);

static main_function *program;

static void run(char *name, char *line, char **environment)
{
    char *arguments[ARGUMENTS + 1] = {name};
    int count = 1, nothing = open("/dev/null", O_RDONLY);
    for (char *word = strtok(line, "\t\n"); word && count < ARGUMENTS; word = strtok(NULL, "\t\n"))
        arguments[count++] = word;
    dup2(nothing, STDIN_FILENO);
    close(nothing);
    alarm(LONGEST_S);
    CALLGRIND_ZERO_STATS;
    exit(program(count, arguments, environment));
}

static int serve(int argc, char **argv, char **environment)
{
    static char line[1 << 16];
    (void)argc;
    while (fgets(line, sizeof line, stdin)) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            run(argv[0], line, environment);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return 1;
        dprintf(STDOUT_FILENO, "\nENDED %d\n", status);
    }
    return 0;
}

/* What a program calls to start; the C library's own is called for it. */
int __libc_start_main(main_function *main, int argc, char **argv, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end)
{
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    if (!RUNNING_ON_VALGRIND) /* valgrind's launcher, which is loaded before */
        return start(main, argc, argv, begin, end, loader_end, stack_end);
    program = main;
    unsetenv("LD_PRELOAD");
    return start(serve, argc, argv, begin, end, loader_end, stack_end);
}
