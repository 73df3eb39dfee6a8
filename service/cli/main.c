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
    {"lookup", command_lookup, "addresses of a debug file to functions and lines"},
    {"inspect", command_inspect, "what a debug file is and holds"},
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
    const struct command *command = find(argv[1]);
    return command ? command->run(argc - 2, argv + 2) : unknown(argv[1]);
}
