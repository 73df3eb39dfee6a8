/* Command line options: parsing, values, and help. */
#include "cli/options.h"

#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the Levenshtein distance of two words: how many letters must be inserted, removed or replaced to make `b` of `a`. `line` holds
 * one row of the usual matrix. SIZE_MAX if a word has 63 letters or more, as no option has. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b), line[64];
    if (columns >= 63 || rows >= 63)
        return SIZE_MAX;
    for (size_t j = 0; j <= columns; j++)
        line[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t diagonal = line[0];
        line[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t above = line[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            best = line[j - 1] + 1 < best ? line[j - 1] + 1 : best;
            diagonal = above;
            line[j] = best;
        }
    }
    return line[columns];
}

const char *options_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    /* words that differ by three letters or more are not meant */
    size_t distance = 3;
    for (; *words; words++) {
        size_t d = edit_distance(word, *words);
        if (d < distance) {
            distance = d;
            best = *words;
        }
    }
    return best;
}

const struct option_spec options_global[] = {
    {"config", 'c', OPTION_VALUE, false, "FILE", "Read this configuration file ($SYMLOOM_CONFIG)"},
    {"cache-dir", 0, OPTION_VALUE, false, "DIR", "Keep the disk cache in DIR; '' disables it ($SYMLOOM_CACHE_DIR)"},
    {"log-level", 0, OPTION_VALUE, false, "LEVEL", "Log off, error, warn, info, debug or trace ($SYMLOOM_LOG)"},
    {"log-format", 0, OPTION_VALUE, false, "FORMAT", "Log as auto, pretty, simplified or json"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "Log more: -v info, -vv debug, -vvv trace"},
    {"quiet", 'q', OPTION_FLAG, true, NULL, "Show only errors, and no progress"},
    {"offline", 0, OPTION_FLAG, true, NULL, "Do not connect to Sentry ($SYMLOOM_OFFLINE)"},
    {"no-network", 0, OPTION_FLAG, true, NULL, "Do not use the network at all ($SYMLOOM_NO_NETWORK)"},
    {"color", 0, OPTION_VALUE, false, "auto|always|never", "Use colors ($NO_COLOR, $CLICOLOR_FORCE)"},
    {"progress", 0, OPTION_VALUE, false, "auto|plain|json|none", "Choose how to show progress on standard error"},
    {"jobs", 'j', OPTION_VALUE, false, "N", "Use N threads ($SYMLOOM_JOBS; default: all cores)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};
_Static_assert(sizeof options_global / sizeof *options_global <= OPTION_GLOBAL_MAX, "struct options has room for them");

/* Returns an option by index: below OPTION_MAX one of the command's own, from there on one of options_global. */
static const struct option_spec *spec_at(const struct options *o, size_t index)
{
    return index < OPTION_MAX ? &o->specs[index] : &options_global[index - OPTION_MAX];
}

/* Returns the index of an option by its name, or by `letter` if that is not 0; the command's own options are searched before the global
 * ones. If there is none, the index of the end marker of options_global, whose name is NULL and which never has values. */
static size_t find_spec(const struct options *o, const char *name, size_t length, char letter)
{
    for (size_t at = 0; at <= OPTION_MAX; at += OPTION_MAX)
        for (size_t i = at; spec_at(o, i)->name; i++) {
            const struct option_spec *spec = spec_at(o, i);
            if (letter ? spec->letter == letter
                       : strlen(spec->name) == length && strncmp(spec->name, name, length) == 0)
                return i;
        }
    return OPTION_MAX + OPTION_GLOBAL_MAX - 1;
}

/* The name in messages: of the program, or of the symbolic link by which it was started. If the link stands for one command
 * (program_is_command), messages leave out the command's name. */
static const char *program = "symloom";
static bool program_is_command;

void options_program(const char *name, bool command)
{
    program = name;
    program_is_command = command;
}

const char *options_program_name(void)
{
    return program;
}

int options_try_help(const char *command)
{
    fprintf(stderr, "Try '%s%s%s --help'.\n", program, program_is_command ? "" : " ",
            program_is_command ? "" : command);
    return 2;
}

int options_wrong(const struct options *o, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_note("error: ");
    print_note_list(format, arguments);
    print_note("\n");
    va_end(arguments);
    return options_try_help(o->command->name);
}

bool options_arguments(const struct options *o, size_t count)
{
    if (o->argument_count <= count)
        return true;
    options_wrong(o, "unexpected argument '%s'", o->arguments[count]);
    return false;
}

/* Reports `what`, directly followed by `word`, as a usage error. Always returns false, so that parsers can return its result. */
static bool usage_error(const struct options *o, const char *what, const char *word)
{
    options_wrong(o, "%s%s", what, word);
    return false;
}

/* True if the word is one of the alternatives `a|b|c`; false if `alternatives` is NULL or has no `|`. */
static bool is_alternative(const char *alternatives, const char *word)
{
    size_t length = word ? strlen(word) : 0;
    for (const char *at = alternatives; length && at && strchr(alternatives, '|'); at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || !at[length]))
            return true;
    }
    return false;
}

/* Records one use of the option with index `spec` (spec_at). False after a report: a global option's value is not one of its choices, the
 * option is not repeatable and was given before, or memory ran out. The choices of a command's own options are checked by the command. */
static bool add_value(struct options *o, size_t spec, const char *value)
{
    const struct option_spec *about = spec_at(o, spec);
    if (spec >= OPTION_MAX && about->value && strchr(about->value, '|') && !is_alternative(about->value, value)) {
        options_wrong(o, "--%s: '%s' is not one of %s", about->name, value, about->value);
        return false;
    }
    if (o->counts[spec] && spec_at(o, spec)->type != OPTION_FLAG && !spec_at(o, spec)->repeatable)
        return usage_error(o, "option given more than once: --", spec_at(o, spec)->name);
    const char **grown = realloc(o->values[spec], (o->counts[spec] + 2) * sizeof *grown);
    if (!grown)
        return usage_error(o, "out of memory", "");
    grown[o->counts[spec]++] = value;
    grown[o->counts[spec]] = NULL;
    o->values[spec] = grown;
    return true;
}

/* Parses argv[*at], which starts with `--`; moves `*at` on if the next word is the option's value. For an OPTION_NEXT the next word is its
 * value unless that starts with `-`. For an OPTION_OPTIONAL it is only if it is one of the option's choices, since any other word may be an
 * argument of the command. False after a report of a usage error. */
static bool parse_long(struct options *o, int argc, char **argv, int *at)
{
    const char *word = argv[*at] + 2, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    size_t i = find_spec(o, word, length, 0);
    const struct option_spec *spec = spec_at(o, i);
    if (spec->name && spec->type == OPTION_FLAG)
        return equals ? usage_error(o, "option takes no value: --", spec->name) : add_value(o, i, "");
    bool takes_next = spec->type == OPTION_NEXT ? *at + 1 < argc && argv[*at + 1][0] != '-'
                                                : spec->type == OPTION_OPTIONAL && *at + 1 < argc &&
                                                      is_alternative(spec->value, argv[*at + 1]);
    if (spec->name && !equals && takes_next)
        return add_value(o, i, argv[++*at]);
    if (spec->name && (equals || spec->type != OPTION_VALUE))
        return add_value(o, i, equals ? equals + 1 : "");
    if (spec->name && *at + 1 >= argc)
        return usage_error(o, "option needs a value: --", spec->name);
    if (spec->name)
        return add_value(o, i, argv[++*at]);
    const char *names[OPTION_MAX + OPTION_GLOBAL_MAX];
    size_t count = 0;
    for (size_t from = 0; from <= OPTION_MAX; from += OPTION_MAX)
        for (size_t k = from; spec_at(o, k)->name; k++)
            names[count++] = spec_at(o, k)->name;
    names[count] = NULL;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, word); /* the value may be a secret */
    const char *near = options_nearest(name, names);
    options_wrong(o, "unknown option --%.*s%s%s", (int)length, word, near ? ", did you mean --" : "", near ? near : "");
    return false;
}

/* Parses argv[*at], one dash and letters. Flags may be joined (`-ai`); the value of the last letter may follow at once (`-eFILE`), or is
 * the next word, to which `*at` moves on. An OPTION_OPTIONAL has a value only after `=` (`-n=VALUE`), an OPTION_NEXT has none. False after
 * a report of a usage error. */
static bool parse_short(struct options *o, int argc, char **argv, int *at)
{
    for (const char *letter = argv[*at] + 1; *letter; letter++) {
        size_t i = find_spec(o, NULL, 0, *letter);
        const struct option_spec *spec = spec_at(o, i);
        const char option[] = {'-', *letter, '\0'};
        if (!spec->name)
            return usage_error(o, "unknown option ", option);
        bool equals = letter[1] == '=' && spec->type == OPTION_OPTIONAL;
        if (equals)
            return add_value(o, i, letter + 2);
        if (spec->type != OPTION_VALUE) {
            if (!add_value(o, i, ""))
                return false;
            continue;
        }
        if (letter[1])
            return add_value(o, i, letter + 1);
        if (*at + 1 >= argc)
            return usage_error(o, "option needs a value: ", option);
        return add_value(o, i, argv[++*at]);
    }
    return true;
}

/* Fills `o` from the words after the name of the command `row`: options with their values, and arguments. False after a report of the first
 * word that is wrong; without a report when out of memory. `used` is where reads of global options are recorded. */
static bool options_parse(struct options *o, const struct command *row, bool *used, int argc, char **argv)
{
    *o = (struct options){.command = row, .specs = row->options, .used = used};
    o->arguments = calloc((size_t)argc + 1, sizeof *o->arguments);
    bool only_arguments = false, ok = o->arguments != NULL;
    for (int i = 0; ok && i < argc; i++) {
        const char *word = argv[i];
        if (only_arguments || word[0] != '-' || word[1] == '\0')
            o->arguments[o->argument_count++] = argv[i];
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            o->help = true, o->brief = word[1] == 'h';
        else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
            o->version = true;
        else
            ok = word[1] == '-' ? parse_long(o, argc, argv, &i) : parse_short(o, argc, argv, &i);
    }
    return ok;
}

static void options_free(struct options *o)
{
    for (size_t i = 0; i < OPTION_MAX + OPTION_GLOBAL_MAX; i++)
        free(o->values[i]);
    free(o->arguments);
}

/* Returns the index of an option that the command reads. Records that a global option was read: note_unused reports those that were given
 * but never read. */
static size_t options_find(const struct options *o, const char *name)
{
    size_t i = find_spec(o, name, strlen(name), 0);
    if (i >= OPTION_MAX)
        o->used[i - OPTION_MAX] = true;
    return i;
}

/* Prints a note for each global option that was given but that the command never read. */
static void note_unused(const struct options *o)
{
    /* the global --quiet also silences these notes; a command's own --quiet does not */
    if (options_find(o, "quiet") >= OPTION_MAX && option_given(o, "quiet"))
        return;
    for (size_t i = 0; options_global[i].name; i++)
        if (o->counts[OPTION_MAX + i] && !o->used[i])
            print_note("note: --%s has no effect on '%s'\n", options_global[i].name, o->command->name);
}

bool option_given(const struct options *o, const char *name)
{
    return o->counts[options_find(o, name)] > 0;
}

size_t option_count(const struct options *o, const char *name)
{
    return o->counts[options_find(o, name)];
}

const char *const *option_values(const struct options *o, const char *name, size_t *count)
{
    size_t i = options_find(o, name);
    *count = o->counts[i];
    return o->values[i];
}

const char **option_values_joined(const struct options *o, const char *first, const char *second, size_t *count)
{
    size_t before, after;
    const char *const *list = option_values(o, first, &before), *const *more = option_values(o, second, &after);
    const char **joined = calloc(before + after + 1, sizeof *joined);
    *count = before + after;
    for (size_t i = 0; joined && i < *count; i++)
        joined[i] = i < before ? list[i] : more[i - before];
    return joined;
}

const char *const *option_values_of_all(const struct options *o, const char *name, size_t *count)
{
    size_t own = options_find(o, name), all = OPTION_MAX;
    while (options_global[all - OPTION_MAX].name && strcmp(options_global[all - OPTION_MAX].name, name) != 0)
        all++;
    /* a command's option of this name but with another letter means something else: `lookup --verbose` prints more details */
    bool is_another = own < OPTION_MAX && spec_at(o, own)->letter != spec_at(o, all)->letter;
    o->used[all - OPTION_MAX] = true;
    *count = o->counts[is_another ? all : own];
    return o->values[is_another ? all : own];
}

const char *option_value(const struct options *o, const char *name, const char *fallback)
{
    size_t i = options_find(o, name);
    return o->counts[i] ? o->values[i][o->counts[i] - 1] : fallback;
}

void option_hide(const struct options *o, const char *name)
{
    size_t i = options_find(o, name);
    for (size_t j = 0; j < o->counts[i]; j++)
        memset((char *)o->values[i][j], '*', strlen(o->values[i][j])); /* argv is writable: C17, 5.1.2.2.1 */
}

bool option_number(const struct options *o, const char *name, uint64_t *value)
{
    const char *text = option_value(o, name, "0");
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && errno == 0)
        return true;
    options_wrong(o, "--%s: '%s' is not a number", name, text);
    return false;
}

void option_show(const struct option_spec *spec, char text[OPTION_SHOWN])
{
    char letter[8] = "";
    if (spec->letter)
        snprintf(letter, sizeof letter, "-%c, ", spec->letter);
    const char *value = spec->value ? spec->value : "";
    const char *glue = spec->type == OPTION_OPTIONAL ? "[="
                       : spec->type == OPTION_NEXT   ? " ["
                       : spec->type == OPTION_VALUE  ? " "
                                                     : "";
    snprintf(text, OPTION_SHOWN, "%s--%s%s%s%s", letter, spec->name, glue, value,
             spec->type == OPTION_OPTIONAL || spec->type == OPTION_NEXT ? "]" : "");
}

enum { HELP_WIDTH = 80, HELP_INDENT = 30 };

/* Prints a text wrapped at HELP_WIDTH, with all lines but the first indented. `at`: the column where the text begins. A line end in the
 * text is kept after a full stop, else it is a blank. */
static void put_wrapped(const char *text, size_t at, size_t indent)
{
    bool starts_line = true;
    while (*text) {
        size_t size = strcspn(text, " \n");
        bool ends_line = text[size] == '\n' && size && text[size - 1] == '.';
        if (!starts_line && at + 1 + size > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
            starts_line = true;
        }
        at += (size_t)printf("%s%.*s", starts_line ? "" : " ", (int)size, text);
        starts_line = false;
        text += size + (text[size] != '\0');
        if (ends_line && *text) {
            printf("\n%*s", (int)indent, "");
            at = indent;
            starts_line = true;
        }
    }
    putchar('\n');
}

/* Prints an option as it is typed, `shown`, indented to a column of its own if it has no letter. A list of choices that does not fit a line
 * continues below its first choice. Returns the column that follows; HELP_WIDTH, so that the help text begins on the next line, if the
 * list was broken. */
static int put_option_name(const char *shown, bool has_letter)
{
    /* sets `value` to the first choice: it begins after the last ` ` or `=` before the first `|` */
    const char *value = shown + strcspn(shown, "|");
    while (value > shown && value[-1] != ' ' && value[-1] != '=')
        value--;
    int at = printf("  %s", has_letter ? "" : "    "), indent = at + (int)(value - shown);
    bool is_cut = false;
    while (at + strlen(shown) > HELP_WIDTH) {
        size_t size = (size_t)(HELP_WIDTH - at);
        while (size && shown[size - 1] != '|')
            size--;
        if (!size)
            break;
        printf("%.*s\n%*s", (int)size, shown, indent, "");
        shown += size;
        at = indent;
        is_cut = true;
    }
    at += printf("%s", shown);
    return is_cut ? HELP_WIDTH : at;
}

/* Prints an option as it is typed, `shown`, and its help text in the column HELP_INDENT, wrapped; on the next line if the option reaches
 * that column. */
static void list_option(const char *shown, bool has_letter, const char *help)
{
    int used = put_option_name(shown, has_letter);
    if (used + 2 > HELP_INDENT)
        printf("\n%*s", HELP_INDENT, "");
    else
        printf("%*s", HELP_INDENT - used, "");
    put_wrapped(help, HELP_INDENT, HELP_INDENT);
}

/* State of printing options group by group. */
struct option_listing {
    const char *only;    /* the title of the one group to print; NULL: all */
    const char *printed; /* the title that was printed last */
};

/* Prints one option, and before it a heading if its group (`title`) is not that of the option before. Called for each option by
 * options_each. */
static void list_spec(void *arg, const char *title, const struct option_spec *spec)
{
    struct option_listing *listing = arg;
    char text[OPTION_SHOWN];
    if (listing->only && listing->only != title)
        return;
    if (listing->printed != title)
        printf("\n%s:\n", title);
    listing->printed = title;
    option_show(spec, text);
    list_option(text, spec->letter, spec->help);
}

/* True if the option `name` is a word of the group's list of names. */
static bool is_in(const struct options_group *group, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = group->names; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0)
            return true;
        at += word;
    }
    return false;
}

static bool is_in_a_group(const struct options_group *groups, const char *name)
{
    for (; groups->title; groups++)
        if (is_in(groups, name))
            return true;
    return false;
}

/* Calls `visit` for each option of the group that has a help text, in the order of the group's list of names. */
static void each_in_group(const struct options_group *group, const struct option_spec *specs, option_visit *visit,
                          void *arg)
{
    for (const char *at = group->names; *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        for (const struct option_spec *spec = specs; spec->name; spec++)
            if (spec->help && strlen(spec->name) == size && memcmp(spec->name, at, size) == 0)
                visit(arg, group->title, spec);
        at += size;
    }
}

void options_each(const struct option_spec *specs, const struct options_group *groups, option_visit *visit, void *arg)
{
    const char *rest = groups->title ? "Other options" : "Options";
    for (const struct options_group *group = groups; group->title; group++)
        each_in_group(group, specs, visit, arg);
    for (const struct option_spec *spec = specs; spec->name; spec++)
        if (spec->help && !is_in_a_group(groups, spec->name))
            visit(arg, rest, spec);
}

/* Prints the examples of a command, each line of `text` indented. */
static void help_examples(const char *text)
{
    puts("\nExamples:");
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        printf("  %.*s\n", (int)size, text);
    }
}

const struct options_group options_global_groups[] = {
    {"Global options", "config cache-dir jobs verbose quiet color progress"},
    {"Network and logging", "offline no-network log-level log-format"},
    {NULL, NULL},
};

void options_help_all(void)
{
    options_each(options_global, options_global_groups, list_spec, &(struct option_listing){NULL, NULL});
    putchar('\n');
    list_option("-V, --version", true, "Print the version");
}

void options_help(const struct command *command, bool brief)
{
    const char *usage = command->usage, *blank = strchr(usage, ' ');
    if (program_is_command) /* the program's name already stands for the command: leave out the command's name */
        usage = blank ? blank + 1 : "";
    int at = printf("usage: %s ", program);
    put_wrapped(usage, (size_t)at, (size_t)at);
    if (!brief) {
        putchar('\n');
        put_wrapped(command->about, 0, 0);
    }
    if (command->options) {
        options_each(command->options, command->groups, list_spec,
                     &(struct option_listing){brief ? command->groups[0].title : NULL, NULL});
        if (command->groups[0].title)
            putchar('\n');
        list_option("-h, --help", true, "Print short help (-h) or full help (--help)");
    }
    if (!brief && command->examples && !program_is_command) /* the examples begin with `symloom` */
        help_examples(command->examples);
}

/* Passes the global --jobs on in $SYMLOOM_JOBS, which threads_parallel reads. A command with its own --jobs passes the number itself. False
 * after a report of a usage error, or if the variable cannot be set. */
static bool export_jobs(const struct options *o)
{
    uint64_t jobs;
    if (!option_given(o, "jobs") || options_find(o, "jobs") < OPTION_MAX)
        return true;
    return option_number(o, "jobs", &jobs) && setenv("SYMLOOM_JOBS", option_value(o, "jobs", ""), 1) == 0;
}

/* Parses the words after the command's name and runs it, or answers --help or --version. Returns the exit status. After success, prints a
 * note for each global option that the command did not read; emulated tools (`persona`) print no such note. */
static int options_run(const struct command *command, bool *used, int argc, char **argv)
{
    struct options options;
    int status = 2;
    if (options_parse(&options, command, used, argc, argv)) {
        status = 0;
        if (options.help)
            options_help(command, options.brief);
        else if (options.version)
            puts("symloom " SYMLOOM_VERSION);
        else
            status = export_jobs(&options) ? command->run(&options) : 2;
        if (!options.help && !options.version && status == 0 && !command->persona)
            note_unused(&options);
    }
    options_free(&options);
    return status;
}

int command_parse_and_run(const struct command *command, int argc, char **argv)
{
    bool used[OPTION_GLOBAL_MAX] = {false};
    return options_run(command, used, argc, argv);
}

int command_start(const struct command *command, int argc, char **argv)
{
    return (command->main ? command->main : command_parse_and_run)(command, argc, argv);
}

int command_start_within(const struct options *outer, const struct command *command, int argc, char **argv)
{
    return options_run(command, outer->used, argc, argv);
}
