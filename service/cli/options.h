/* Command line options, with one grammar for all sub-commands: `--name VALUE`, `--name=VALUE`, bundled short options, options and
 * arguments in any order, `--` ends options. Long names cannot be abbreviated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_FLAG,     /* no value */
    OPTION_VALUE,    /* a value is required */
    OPTION_NEXT,     /* a value after `=`, or the next word unless that is an option; for commands without arguments */
    OPTION_OPTIONAL, /* a value after `=` or directly after the letter; or the next word, if it is a choice */
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
    const struct option_spec *specs; /* the command's */
    /* values of each spec, in order; those of global options begin at OPTION_MAX. The last slot is always empty. */
    const char **values[OPTION_MAX + OPTION_GLOBAL_MAX];
    size_t counts[OPTION_MAX + OPTION_GLOBAL_MAX];
    char **arguments;
    size_t argument_count;
    bool help, brief, version; /* brief: -h, which shows the usage and the most used options */
    bool *used;                /* for each global option: the command has read it */
};

/* Options that every command accepts, whether it uses them or not. A command's own option of the same name or letter takes precedence.
 * Ends like other tables. */
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
/* Checks that there are at most `count` arguments: false after a report of the first one too many. */
bool options_arguments(const struct options *options, size_t count);
/* All values, in order: `count` of them, then NULL. The list itself is NULL if there are none. */
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
    int persona; /* not 0: the command emulates another tool; `run` serves several of them */
};

/* All commands of the help, in its order; ends with NULL. */
extern const struct command *const commands_all[];
const struct command *command_find(const char *name); /* searches commands_all; NULL if there is no such command */

/* Runs a command with the words after its name, and returns the exit status. */
int command_start(const struct command *command, int argc, char **argv);
/* Parses the words, then answers --help or --version, or runs the command. A usage error is reported on stderr (`error: ...` and where
 * to find help) with status 2. When the command has succeeded, global options that it did not read are named on stderr. */
int command_parse_and_run(const struct command *command, int argc, char **argv);
/* Starts a command from within another one: a global option that the inner one reads counts as read by both. */
int command_start_within(const struct options *outer, const struct command *command, int argc, char **argv);

/* Prints help: `brief` (-h) the usage and the most used options, else all options in their groups. */
void options_help(const struct command *command, bool brief);

/* Calls visit() for each option that help shows, in the order of help: those of each group, then the others. `title` is the heading of
 * the group. */
typedef void option_visit(void *arg, const char *title, const struct option_spec *spec);
void options_each(const struct option_spec *specs, const struct options_group *groups, option_visit *visit, void *arg);
extern const struct options_group options_global_groups[]; /* of options_global */

/* The values of a global option, even where the command has an option of the same name with another meaning. */
const char *const *option_values_of_all(const struct options *options, const char *name, size_t *count);
void options_help_all(void); /* prints the global options on stdout */

/* Formats an option as help and man pages show it: "-o, --output FILE". */
enum { OPTION_SHOWN = 96 };
void option_show(const struct option_spec *spec, char text[OPTION_SHOWN]);

/* Returns the word of `words` (ends with NULL) that is most similar to `word`; NULL if none is similar enough to be a typing
 * error. */
const char *options_nearest(const char *word, const char *const *words);
