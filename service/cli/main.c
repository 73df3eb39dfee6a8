/* The program: finds the sub-command and hands it its words. */
#include "cli/cli.h"
#include "cli/options.h"

#include <signal.h>
#include <stdio.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
};

static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);

static const struct command commands[] = {
    {"run", command_run, "serve the HTTP API"},
    {"cleanup", command_cleanup, "remove what has expired from the disk cache"},
    {"healthcheck", command_healthcheck, "ask a running service whether it is healthy"},
    {"config", command_config, "check or show a configuration"},
    {"lookup", command_lookup, "addresses of a debug file to functions and lines"},
    {"inspect", command_inspect, "what a debug file is and holds"},
    {"push-symbols", command_push_symbols, "send symbols of executables to a service"},
    {"version", command_version, "the version"},
    {"help", command_help, "help for a command"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void summary(FILE *out)
{
    fputs("usage: symloom COMMAND [OPTION..] [ARGUMENT..]\n\nTurns raw crash data into readable stack traces.\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].about);
    fputs("\n'symloom help COMMAND' explains a command.\n", out);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[COMMANDS + 1] = {0};
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = options_nearest(name, names);
    fprintf(stderr, "error: unknown command '%s'%s%s\nTry 'symloom --help'.\n", name, near ? ", did you mean " : "",
            near ? near : "");
    return 2;
}

static int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("symloom " SYMLOOM_VERSION);
    return 0;
}

static int command_help(int argc, char **argv)
{
    if (argc == 0) {
        summary(stdout);
        return 0;
    }
    const struct command *command = find(argv[0]);
    if (!command)
        return unknown(argv[0]);
    if (command->run == command_help || command->run == command_version) {
        printf("usage: symloom %s\n\n%s\n", command->name, command->about);
        return 0;
    }
    char help[] = "--help", *words[] = {help, NULL};
    return command->run(1, words);
}

/* Options may stand before the command; those with a value are few. */
static int first_word(int argc, char **argv)
{
    static const char *const valued[] = {"-c", "--config", "--cache-dir", "--log-level", "--log-format"};
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++)
        for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
            if (strcmp(argv[at], valued[i]) == 0 && at + 1 < argc) {
                at++;
                break;
            }
    return at;
}

/* The command's name comes first, so that every command finds its options behind it. */
static void put_behind(char **argv, int at)
{
    char *name = argv[at];
    for (; at > 1; at--)
        argv[at] = argv[at - 1];
    argv[1] = name;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        summary(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return command_version(0, NULL);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return command_help(0, NULL);
    int at = first_word(argc, argv);
    if (at == argc) {
        summary(stderr);
        return 2;
    }
    const struct command *command = find(argv[at]);
    if (!command)
        return unknown(argv[at]);
    put_behind(argv, at);
    return command->run(argc - 2, argv + 2);
}
