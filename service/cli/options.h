/* Command line options in one grammar for every sub-command: `--name VALUE`, `--name=VALUE`, bundled short ones, options
 * and arguments mixed, `--` ends options. Names are never abbreviated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_FLAG,  /* no value */
    OPTION_VALUE, /* a value is required */
    OPTION_NEXT,  /* a value with `=`, or the next word unless that is an option too; of commands without arguments */
    OPTION_OPTIONAL, /* a value only with `=`, behind the short form too; or the next word, if the spec lists it */
};

struct option_spec {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* 0 = none */
    enum option_type type;
    bool repeatable;
    const char *value; /* placeholder in the help text; `a|b|c` for a choice */
    const char *help;  /* NULL: accepted, not shown */
};

enum { OPTION_MAX = 64, OPTION_GLOBAL_MAX = 12 };

struct command;

struct options {
    const struct command *command;
    const struct option_spec *specs; /* the command's */
    /* of each spec, in order, and behind OPTION_MAX of each global one; the last is of none */
    const char **values[OPTION_MAX + OPTION_GLOBAL_MAX];
    size_t counts[OPTION_MAX + OPTION_GLOBAL_MAX];
    char **arguments;
    size_t argument_count;
    bool help, brief, version; /* brief: -h, the usage and the most used options */
    bool *used;                /* by global option: the command has asked for it */
};

/* What every command accepts, whether it has a use for it or not; a command's own option of the name or letter goes before. Ends as
 * other tables do. */
extern const struct option_spec options_global[];

/* The name the program was called by, for help and errors: "symloom" unless set. `command`: it stands for a command, and
 * the texts do without the command's name. */
void options_program(const char *name, bool command);
const char *options_program_name(void);
/* "Try '<program> [<command>] --help'." on stderr; returns the status of a usage error. */
int options_try_help(const char *command);

/* "error: <what>" and where to find help, on stderr; returns the status of a usage error. */
int options_wrong(const struct options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool option_given(const struct options *options, const char *name);
size_t option_count(const struct options *options, const char *name); /* how often it was given */
/* For commands without arguments, or with `count` at most: false after a report of the first one that is too many. */
bool options_arguments(const struct options *options, size_t count);
/* All values, in order; `count` of them. */
const char *const *option_values(const struct options *options, const char *name, size_t *count);
/* The last value given, or `fallback`. An OPTION_OPTIONAL without value yields "". */
const char *option_value(const struct options *options, const char *name, const char *fallback);

/* Overwrites the option's values where they stand, so that lists of processes do not show a secret; whoever needs it has
 * copied it before. */
void option_hide(const struct options *options, const char *name);

/* The option's value as a decimal number, 0 when it was not given. False after a report of a usage error. */
bool option_number(const struct options *options, const char *name, uint64_t *value);

/* Options that help shows together; those that are in no group come last. */
struct options_group {
    const char *title; /* NULL ends a list */
    const char *names; /* between blanks, most used first; at most ten */
};

/* A command: all that --help, man pages and completions say of it, and how it runs. Its file defines the row `command_<name>`;
 * main.c lists them. */
struct command {
    const char *name;
    const char *summary;  /* half a line, for the list of commands */
    const char *usage;    /* begins with the name */
    const char *about;    /* a paragraph; lines end where a sentence does */
    const char *examples; /* what one would type, line by line; NULL: nothing that says more than the usage */
    const struct option_spec *options; /* NULL: it has none */
    struct options_group groups[8];    /* how --help arranges them, the most used first; none: in one list */
    /* Returns the exit status: 0, 1 for a failure that was reported on stderr, 2 for a usage error. */
    int (*run)(const struct options *options);
    /* Takes the words behind the name as they are, and the place of command_parse_and_run; NULL for most. */
    int (*main)(const struct command *command, int argc, char **argv);
    int persona; /* not 0: it is another tool, one of several that `run` can be */
};

/* Every command that help lists, in that order; NULL ends the list. */
extern const struct command *const commands_all[];
const struct command *command_find(const char *name); /* of these; NULL: there is none */

/* Runs a command with the words behind its name, and returns the exit status. */
int command_start(const struct command *command, int argc, char **argv);
/* Parses the words, and answers --help and --version, or runs the command. A usage error is reported on stderr (`error: ...` and
 * where to find help) with status 2. Options of all commands that a command did not ask for are named on stderr when it has
 * succeeded. */
int command_parse_and_run(const struct command *command, int argc, char **argv);
/* The same on behalf of a command that runs: what one of them asks for both have. */
int command_start_within(const struct options *outer, const struct command *command, int argc, char **argv);

/* -h (`brief`): the usage and the most used options. --help: all, in their groups. */
void options_help(const struct command *command, bool brief);

/* The values of an option of all commands: not of one that a command has under the same name for something else. */
const char *const *option_values_of_all(const struct options *options, const char *name, size_t *count);
void options_help_all(void); /* the options of all commands, on stdout */

/* "-o, --output FILE": an option as help and man pages show it. */
enum { OPTION_SHOWN = 96 };
void option_show(const struct option_spec *spec, char text[OPTION_SHOWN]);

/* The word of `words` (ends with NULL) nearest to `word`, if it is near enough to be meant; else NULL. */
const char *options_nearest(const char *word, const char *const *words);
