/* The program: finds the sub-command, and runs it with the words after its name. */
#include "cli/cli.h"
#include "cli/options.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* All commands in the order of the help; ROW(x) refers to `command_x`, which the command's file defines. */
#define COMMANDS(ROW)                                                                                                  \
    ROW(run)                                                                                                           \
    ROW(cleanup)                                                                                                       \
    ROW(cache)                                                                                                         \
    ROW(scan)                                                                                                          \
    ROW(healthcheck)                                                                                                   \
    ROW(config)                                                                                                        \
    ROW(symbolicate)                                                                                                   \
    ROW(lookup)                                                                                                        \
    ROW(inspect)                                                                                                       \
    ROW(dump_syms)                                                                                                     \
    ROW(bundle)                                                                                                        \
    ROW(sort)                                                                                                          \
    ROW(wasm_split)                                                                                                    \
    ROW(push_symbols) ROW(stress) ROW(key) ROW(symcachegen) ROW(version) ROW(completion) ROW(man) ROW(help)

/* Commands that help does not list: emulated tools, and the service's own. */
#define UNLISTED(ROW)                                                                                                  \
    ROW(addr2line)                                                                                                     \
    ROW(llvm_addr2line)                                                                                                \
    ROW(llvm_symbolizer) ROW(retrace) ROW(minidump_stackwalk) ROW(asan_symbolize) ROW(ndk_stack) ROW(worker)

#define DECLARE(name) extern const struct command command_##name;
COMMANDS(DECLARE)
UNLISTED(DECLARE)

#define ADDRESS(name) &command_##name,
const struct command *const commands_all[] = {COMMANDS(ADDRESS) NULL};
enum { COMMAND_COUNT = sizeof commands_all / sizeof *commands_all - 1 };

/* Names of other tools: if the program is started under one of them, e.g. through a symbolic link, it acts as that tool. */
static const struct tool {
    const char *name;
    const struct command *command; /* NULL: symloom with all its commands */
} tools[] = {
    {"symbolicator", NULL},
    {"symbolicli", &command_symbolicate},
    {"symcachegen", &command_symcachegen},
    {"symbtool", NULL},
    {"addr2line", &command_addr2line},
    {"llvm-addr2line", &command_llvm_addr2line},
    {"llvm-symbolizer", &command_llvm_symbolizer},
    {"dump_syms", &command_dump_syms},
    {"symsorter", &command_sort},
    {"wasm-split", &command_wasm_split},
    {"retrace", &command_retrace},
    {"minidump_stackwalk", &command_minidump_stackwalk},
    {"minidump-stackwalk", &command_minidump_stackwalk},
    {"asan_symbolize", &command_asan_symbolize},
    {"asan_symbolize.py", &command_asan_symbolize},
    {"ndk-stack", &command_ndk_stack},
};

/* Prints the list of commands; `all`: also the global options. */
static void summary(FILE *out, bool all)
{
    fprintf(
        out,
        "usage: %s COMMAND [OPTION...] [ARGUMENT...]\n\nTurns crash data into readable stack traces.\n\nCommands:\n",
        options_program_name());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-12s %s\n", commands_all[i]->name, commands_all[i]->summary);
    fprintf(out, "\nRun '%s help COMMAND' for the options of a command.\n", options_program_name());
    if (!all)
        return;
    options_help_all();
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands_all[i]->name, name) == 0)
            return commands_all[i];
    return NULL;
}

/* Reports an unknown command, and suggests the most similar one. Returns the status of a usage error. */
static int unknown(const char *name)
{
    const char *names[COMMAND_COUNT + 1] = {0};
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands_all[i]->name;
    const char *near = options_nearest(name, names);
    print_note("error: unknown command '%s'%s%s\nTry '%s --help'.\n", name, near ? ", did you mean " : "",
               near ? near : "", options_program_name());
    return 2;
}

/* True if the text is the long option `name` or the short one `letter`, both given with their dashes. */
static bool is_word(const char *text, const char *name, const char *letter)
{
    return strcmp(text, name) == 0 || strcmp(text, letter) == 0;
}

/* Runs `symloom help`, which lists the commands, and `symloom help COMMAND`, which is the same as `COMMAND --help`. */
static int help_main(const struct command *help, int argc, char **argv)
{
    if (argc == 0) {
        summary(stdout, true);
        return 0;
    }
    if (is_word(argv[0], "--help", "-h") || strcmp(argv[0], "help") == 0) {
        options_help(help, strcmp(argv[0], "-h") == 0);
        return 0;
    }
    const struct command *command = command_find(argv[0]);
    if (!command)
        return unknown(argv[0]);
    char word[] = "--help", *words[] = {word, NULL};
    return command_start(command, 1, words);
}

const struct command command_help = {
    .name = "help",
    .summary = "list commands or explain one",
    .usage = "help [COMMAND]",
    .about = "Lists all commands, or explains one.",
    .main = help_main,
};

/* Returns the index in `argv` of the command, of --help or of --version; `argc` if there is none. Global options may
 * come before it: replaces their letters by long forms, because the command may use the letters for other options. */
static int find_command_word(int argc, char **argv)
{
    static char names[OPTION_GLOBAL_MAX][16], verbose[] = "-v";
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (is_word(argv[at], "--version", "-V") || is_word(argv[at], "--help", "-h"))
            break;
        bool value = false;
        for (size_t i = 0; options_global[i].name; i++) {
            const char letter[] = {'-', options_global[i].letter, '\0'};
            snprintf(names[i], sizeof names[i], "--%s", options_global[i].name);
            if (letter[1] && letter[1] != 'v' && strcmp(argv[at], letter) == 0) /* -v stays: see below */
                argv[at] = names[i];
            if (strcmp(argv[at], names[i]) == 0)
                value = options_global[i].type == OPTION_VALUE;
            /* before the command, --verbose is the global option: passes on its letter, since `lookup --verbose` is another option */
            if (strcmp(argv[at], "--verbose") == 0)
                argv[at] = verbose;
        }
        at += value && at + 1 < argc; /* skips the option's value */
    }
    return at;
}

/* Moves the command's name, argv[at], to argv[1], before the global options that were given first. */
static void move_name_first(char **argv, int at)
{
    char *name = argv[at];
    for (; at > 1; at--)
        argv[at] = argv[at - 1];
    argv[1] = name;
}

/* Sets `name` to the tool's name in a path: `llvm-symbolizer` for `/usr/bin/llvm-symbolizer-14.exe`. */
static void base_name(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path ? path : "", '/');
    snprintf(name, size, "%s", slash ? slash + 1 : path ? path : "");
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".exe") == 0)
        name[length -= 4] = '\0';
    size_t digits = length;
    while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    if (digits < length && digits && name[digits - 1] == '-')
        name[digits - 1] = '\0';
}

/* Returns the first word that begins with a dash and is not a global option; NULL if there is none. */
static const char *unknown_option(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t length = strcspn(argv[i], "=");
        bool known = argv[i][0] != '-' || !argv[i][1];
        for (size_t k = 0; options_global[k].name; k++) {
            const char *name = options_global[k].name, letter = options_global[k].letter;
            known = known || (strncmp(argv[i], "--", 2) == 0 && length == strlen(name) + 2 &&
                              memcmp(argv[i] + 2, name, strlen(name)) == 0);
            known = known || (letter && argv[i][1] == letter);
        }
        if (!known)
            return argv[i];
    }
    return NULL;
}

/* Without a command: reports the first unknown option, or else prints the list of commands on stderr. Returns the status of a usage
 * error. */
static int no_command(int argc, char **argv)
{
    const char *word = unknown_option(argc, argv), *names[OPTION_GLOBAL_MAX + 3] = {"help", "version"};
    for (size_t i = 0; options_global[i].name; i++)
        names[i + 2] = options_global[i].name;
    if (word) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word); /* the value may be a secret */
        const char *near = options_nearest(name + strspn(name, "-"), names);
        print_note("error: unknown option %s%s%s\nTry '%s --help'.\n", name, near ? ", did you mean --" : "",
                   near ? near : "", options_program_name());
    } else {
        summary(stderr, false);
    }
    return 2;
}

/* Finds the command among the words of the command line, runs it, and returns the exit status. */
static int run_command(int argc, char **argv)
{
    int at = find_command_word(argc, argv);
    if (at >= argc)
        return no_command(argc, argv);
    if (is_word(argv[at], "--version", "-V"))
        return version_of_program();
    if (is_word(argv[at], "--help", "-h")) {
        summary(stdout, argv[at][1] == '-');
        return 0;
    }
    if (strcmp(argv[1], "worker") == 0) /* internal: only the service starts it */
        return command_start(&command_worker, argc - 2, argv + 2);
    const struct command *command = command_find(argv[at]);
    if (!command)
        return unknown(argv[at]);
    move_name_first(argv, at);
    return command_start(command, argc - 2, argv + 2);
}

/* Occupies the descriptors 0, 1 and 2 where the parent closed them, so that no file that is opened later becomes a standard stream. They
 * are opened on /dev/null in the wrong mode: reading stdin and writing stdout or stderr still fail. */
static void occupy_closed_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* Runs the command. A symbolic link may give the program the name of another tool (the last part of argv[0]): under most names, such as
 * addr2line, the program is that tool, with its options; under the others of `tools`, such as symbolicator, it has all its commands, and
 * only help and errors show the name. */
int main(int argc, char **argv)
{
    static char name[64];
    const struct command *command = NULL;
    occupy_closed_streams();
    signal(SIGPIPE, SIG_IGN); /* failed writes return EPIPE instead */
    base_name(argc ? argv[0] : NULL, name, sizeof name);
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(tools[i].name, name) == 0) {
            command = tools[i].command;
            options_program(tools[i].name, command != NULL);
        }
    return output_finish(command ? command_start(command, argc - 1, argv + 1) : run_command(argc, argv));
}
