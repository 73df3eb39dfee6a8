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

struct options {
    const struct option_spec *specs;
    /* of each spec, in order, and behind OPTION_MAX of each global one; the last is of none */
    const char **values[OPTION_MAX + OPTION_GLOBAL_MAX];
    size_t counts[OPTION_MAX + OPTION_GLOBAL_MAX];
    char **arguments;
    size_t argument_count;
    bool help, brief, version; /* brief: -h, the usage and the most used options */
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
int options_wrong(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parses the words behind the command. A usage error is reported on stderr (`error: ...` and where to find help) and
 * false returned: the program then ends with status 2. */
bool options_parse(struct options *options, const struct option_spec *specs, const char *command, int argc,
                   char **argv);
/* Behind a command that succeeded: names on stderr the options of all commands that were given and that it had no use for. */
void options_tell_unused(const struct options *options, const char *command);
void options_free(struct options *options);

bool option_given(const struct options *options, const char *name);
size_t option_count(const struct options *options, const char *name); /* how often it was given */
/* For commands without arguments, or with `count` at most: false after a report of the first one that is too many. */
bool options_arguments(const struct options *options, size_t count, const char *command);
/* All values, in order; `count` of them. */
const char *const *option_values(const struct options *options, const char *name, size_t *count);
/* The last value given, or `fallback`. An OPTION_OPTIONAL without value yields "". */
const char *option_value(const struct options *options, const char *name, const char *fallback);

/* Overwrites the option's values where they stand, so that lists of processes do not show a secret; whoever needs it has
 * copied it before. */
void option_hide(const struct options *options, const char *name);

/* The option's value as a decimal number, 0 when it was not given. False after a report of a usage error. */
bool option_number(const struct options *options, const char *name, const char *command, uint64_t *value);

/* What a command says of itself: --help, man pages and completions are all made of it. */
struct options_about {
    const struct option_spec *specs; /* NULL: it has none */
    const char *usage, *about;       /* the first word of `usage` is the command's name */
};

/* -h (`brief`): the usage and the most used options. --help: all, in their groups. */
void options_help(const struct options_about *about, bool brief);

/* Options of a command that help shows together (help_groups.c); those that are in none come last. */
struct options_group {
    const char *command, *title;
    const char *names; /* between blanks, most used first; at most ten */
};
extern const struct options_group options_groups[];
extern const size_t options_group_count;
bool options_group_has(const struct options_group *group, const char *name);

/* The values of an option of all commands: not of one that a command has under the same name for something else. */
const char *const *option_values_of_all(const struct options *options, const char *name, size_t *count);
void options_help_all(void); /* the options of all commands, on stdout */

/* "-o, --output FILE": an option as help and man pages show it. */
enum { OPTION_SHOWN = 96 };
void option_show(const struct option_spec *spec, char text[OPTION_SHOWN]);

/* Asks a command what it says of itself: its function is called without words, and only tells. */
struct options_about options_ask(int (*command)(int argc, char **argv));
/* For commands that parse their words themselves: when the command is asked, takes `about`, and true: it returns at once. */
bool options_told(const struct options_about *about);

/* A whole command: parses its words and answers --help and --version, or runs it. The command's name is the first word of
 * `usage`. Returns the exit status. */
int options_command(const struct option_spec *specs, const char *usage, const char *about,
                    int (*run)(const struct options *options), int argc, char **argv);

/* The word of `words` (ends with NULL) nearest to `word`, if it is near enough to be meant; else NULL. */
const char *options_nearest(const char *word, const char *const *words);
