/* Command line options, with one grammar for all sub-commands: `--name VALUE`, `--name=VALUE`, bundled short options, options and
 * arguments in any order, `--` ends options. Long names cannot be abbreviated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_FLAG,  /* no value */
    OPTION_VALUE, /* a value is required */
    OPTION_NEXT, /* maybe a value: after `=`, or the next word unless that begins with `-`; for commands without arguments */
    OPTION_OPTIONAL, /* maybe a value: after `--name=` or `-n=`, or the word after --name if it is one of the choices `a|b|c` */
};

struct option_spec {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* 0 = none */
    enum option_type type;
    bool repeatable;
    const char *value; /* placeholder in the help text; `a|b|c` for a choice */
    const char *help;  /* NULL: the option is accepted, but hidden from help */
};

enum { OPTION_MAX = 64, OPTION_GLOBAL_MAX = 12 };

struct command;

struct options {
    const struct command *command;
    const struct option_spec *specs; /* the options of the command itself; NULL: none */
    /* the values given for each option: at its index in `specs`, for global options at OPTION_MAX + its index in options_global. The last
     * slot stands for unknown options and is always empty. */
    const char **values[OPTION_MAX + OPTION_GLOBAL_MAX];
    size_t counts[OPTION_MAX + OPTION_GLOBAL_MAX];
    char **arguments;
    size_t argument_count;
    bool help, brief, version; /* brief: -h, which shows the usage and the most used options */
    bool *used;                /* for each global option: the command has read it, so it had an effect */
};

/* Options that every command accepts, whether it uses them or not. A command's own option of the same name or letter takes precedence.
 * The table ends with the name NULL. */
extern const struct option_spec options_global[];

/* The program's name in help and errors: "symloom" unless set. `command`: the name stands for one command (a symbolic link to symloom),
 * so texts leave out the command's name. */
void options_program(const char *name, bool command);
const char *options_program_name(void);
/* Prints "Try '<program> [<command>] --help'." on stderr; returns the status of a usage error. */
int options_try_help(const char *command);

/* Prints "error: <what>" and where to find help on stderr; returns the status of a usage error. */
int options_wrong(const struct options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool option_given(const struct options *options, const char *name);
size_t option_count(const struct options *options, const char *name); /* how often the option was given */
/* True if there are at most `count` arguments that are no options. False after a report of the first one too many. */
bool options_arguments(const struct options *options, size_t count);
/* Returns the values given for an option, in order: `count` of them, then NULL. The list itself is NULL if the option was not given. */
const char *const *option_values(const struct options *options, const char *name, size_t *count);
/* Lists all values of two options, those of `first` before those of `second`; `count` of them, then NULL. The caller
 * frees the list. NULL when out of memory. */
const char **option_values_joined(const struct options *options, const char *first, const char *second, size_t *count);
/* Returns the last value given, or `fallback`. An OPTION_OPTIONAL without a value yields "". */
const char *option_value(const struct options *options, const char *name, const char *fallback);

/* Overwrites the option's values in argv so that ps(1) does not show a secret. Callers copy the value before. */
void option_hide(const struct options *options, const char *name);

/* Sets the number to the option's decimal value, 0 when it was not given. False after a report of a usage error. */
bool option_number(const struct options *options, const char *name, uint64_t *value);

/* A group of options in the help. Options in no group come last. */
struct options_group {
    const char *title; /* NULL ends a list */
    const char *names; /* separated by blanks, most used first; at most ten */
};

/* A command: its texts for --help, man pages and completions, and its entry point. Its file defines the row `command_<name>`; main.c
 * lists the rows. */
struct command {
    const char *name;
    const char *summary;               /* one short line for the list of commands */
    const char *usage;                 /* starts with the command's name */
    const char *about;                 /* a paragraph; help keeps line ends after a full stop */
    const char *examples;              /* command lines to copy, one a line; NULL if the usage says it all */
    const struct option_spec *options; /* NULL: no options */
    struct options_group groups[8];    /* groups of --help, most used first; none: one list */
    /* Returns the exit status: 0, 1 for a failure that was reported on stderr, 2 for a usage error. */
    int (*run)(const struct options *options);
    /* Gets the unparsed words after the name, instead of command_parse_and_run; NULL for most commands. */
    int (*main)(const struct command *command, int argc, char **argv);
    int persona; /* for a `run` that emulates several tools: its own number of this tool; 0: the command emulates none */
};

/* All commands of the help, in its order; ends with NULL. */
extern const struct command *const commands_all[];
const struct command *command_find(const char *name); /* searches commands_all; NULL if there is no such command */

/* Runs a command with the words after its name, and returns the exit status. */
int command_start(const struct command *command, int argc, char **argv);
/* Parses the words, then answers --help or --version, or runs the command. A usage error is reported on stderr (`error: ...` and where
 * to find help) with status 2. When the command has succeeded, global options that it did not read are named on stderr. */
int command_parse_and_run(const struct command *command, int argc, char **argv);
/* Runs a command from within another one, which was given the options `outer`. A global option that the inner command reads then counts as
 * read by the outer one too, and is not reported as without effect. */
int command_start_within(const struct options *outer, const struct command *command, int argc, char **argv);

/* Prints help: `brief` (-h) the usage and the most used options, else all options in their groups. */
void options_help(const struct command *command, bool brief);

/* Calls visit() for each option that has a help text, in the order of help: those of each group, then those in no group. visit() gets the
 * group's heading as `title`. */
typedef void option_visit(void *arg, const char *title, const struct option_spec *spec);
void options_each(const struct option_spec *specs, const struct options_group *groups, option_visit *visit, void *arg);
extern const struct options_group options_global_groups[]; /* the groups of options_global in help */

/* Returns the values given for a global option: `count` of them, then NULL. A command's option of the same name counts as the global one,
 * unless it has another letter: then it has another meaning, and only the global option's own values are returned. */
const char *const *option_values_of_all(const struct options *options, const char *name, size_t *count);
void options_help_all(void); /* prints the global options on stdout */

/* Formats an option as help and man pages show it: "-o, --output FILE". */
enum { OPTION_SHOWN = 96 };
void option_show(const struct option_spec *spec, char text[OPTION_SHOWN]);

/* Returns the word of `words` (ends with NULL) that is most similar to `word`; NULL if none is similar enough to be a typing
 * error. */
const char *options_nearest(const char *word, const char *const *words);
