/* `symloom completion`: writes shell completions of commands, options and their choices, from the tables of --help. */
#include "cli/cli.h"
#include "cli/options.h"

#include <stdio.h>

/* Appends the possible first words after a command, separated by blanks: `check` and `show` of "config check [FILE] | config show", all
 * commands of "help [COMMAND]". */
static void completion_verbs(const char *usage, struct sl_buf *out)
{
    for (const char *at = usage; at; at = strstr(at, " | ") ? strstr(at, " | ") + 3 : NULL) {
        const char *word = strchr(at, ' ');
        size_t size = word ? strcspn(++word, " ") : 0;
        /* skips placeholders, `[FILE]`, and options */
        if (size == 0 || strspn(word, "abcdefghijklmnopqrstuvwxyz-|") < size || word[0] == '-')
            continue;
        for (size_t i = 0; i < size; i++)
            sl_buf_u8(out, word[i] == '|' ? ' ' : (uint8_t)word[i]);
        sl_buf_u8(out, ' ');
    }
    for (const struct command *const *c = commands_all; strstr(usage, "[COMMAND]") && *c; c++)
        sl_buf_printf(out, "%s ", (*c)->name);
}

/* True if the option is shown in help, and its value is one of several words, `a|b|c`. */
static bool is_choice(const struct option_spec *spec)
{
    return spec->help && spec->value && strchr(spec->value, '|');
}

/* Appends the values of an option whose value is one of several words, separated by blanks. */
static void completion_values(const struct option_spec *spec, struct sl_buf *out)
{
    for (const char *at = spec->value; *at; at++)
        sl_buf_u8(out, *at == '|' ? ' ' : (uint8_t)*at);
}

/* Appends the names of all commands, with the separator between them. */
static void completion_commands(struct sl_buf *out, char separator)
{
    for (const struct command *const *c = commands_all; *c; c++)
        sl_buf_printf(out, "%s%s", (*c)->name, c[1] ? (char[]){separator, '\0'} : "");
}

/* Appends text escaped for use inside single quotes: `'` ends the quotes, adds an escaped quote, and begins new ones. bash, zsh and fish
 * all read this. */
static void completion_quote(struct sl_buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            sl_buf_cstr(out, "'\\''");
        else
            sl_buf_u8(out, (uint8_t)*text);
}

/* True if the command whose options are `specs` has an option `name`: it replaces the global option of that name. */
static bool has_option(const struct option_spec *specs, const char *name)
{
    for (; specs && specs->name; specs++)
        if (strcmp(specs->name, name) == 0)
            return true;
    return false;
}

/* Returns `letter`, that of a global option, or 0 if the command whose options are `specs` uses it for an option of its own. */
static char letter_unless_hidden(const struct option_spec *specs, char letter)
{
    for (; specs && specs->name; specs++)
        if (specs->letter == letter)
            return 0;
    return letter;
}

/* Calls `visit` for each option of a command: its own, and the global ones that its own do not replace. `specs` NULL: only global ones. */
static void each_option(const struct option_spec *specs,
                        void (*visit)(struct sl_buf *out, const char *command, const struct option_spec *spec),
                        struct sl_buf *out, const char *command)
{
    for (const struct option_spec *spec = specs; spec && spec->name; spec++)
        if (spec->help)
            visit(out, command, spec);
    for (const struct option_spec *spec = options_global; spec->name; spec++) {
        struct option_spec seen = *spec;
        seen.letter = letter_unless_hidden(specs, spec->letter);
        if (!has_option(specs, spec->name))
            visit(out, command, &seen);
    }
}

/* ---- bash ---- */

/* Appends the shell case of an option whose value is one of several words: `lookup:--color) values='auto always never' ;;`. Nothing for
 * other options. */
static void bash_values(struct sl_buf *out, const char *command, const struct option_spec *spec)
{
    if (!is_choice(spec) || spec->type != OPTION_VALUE)
        return;
    sl_buf_printf(out, "    %s:--%s", command, spec->name);
    if (spec->letter)
        sl_buf_printf(out, " | %s:-%c", command, spec->letter);
    sl_buf_cstr(out, ") values='");
    completion_values(spec, out);
    sl_buf_cstr(out, "' ;;\n");
}

static void bash_option(struct sl_buf *out, const char *command, const struct option_spec *spec)
{
    (void)command;
    sl_buf_printf(out, "--%s ", spec->name);
}

/* Appends the shell case of a command: `config) verbs='check show' options='--config ... --help' ;;`. */
static void bash_options(struct sl_buf *out, const struct command *command)
{
    sl_buf_printf(out, "    %s) verbs='", command->name);
    completion_verbs(command->usage, out);
    sl_buf_cstr(out, "' options='");
    each_option(command->options, bash_option, out, command->name);
    sl_buf_cstr(out, "--version --help' ;;\n");
}

/* Writes the completion for bash. It proposes the values of the option before the cursor, if that has a fixed set of them; after a dash
 * the command's options; directly after the command its verbs; and before any command the commands. */
static void completion_bash(struct sl_buf *out)
{
    sl_buf_cstr(out, "# bash completion of symloom: made by `symloom completion bash`\n"
                     "_symloom() {\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    local command='' verbs='' options='");
    each_option(NULL, bash_option, out, ""); /* the global options: proposed until a command is found */
    sl_buf_cstr(out, "--version --help' values='' i\n"
                     "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "        case ${COMP_WORDS[i]} in ");
    completion_commands(out, '|');
    sl_buf_cstr(out, ") command=${COMP_WORDS[i]}; break ;; esac\n    done\n    case $command:$before in\n");
    each_option(NULL, bash_values, out, "");
    for (const struct command *const *c = commands_all; *c; c++)
        each_option((*c)->options, bash_values, out, (*c)->name);
    /* without a command the verbs are the commands; after one, its own verbs and options */
    sl_buf_cstr(out, "    esac\n    case $command in\n    '') verbs='");
    completion_commands(out, ' ');
    sl_buf_cstr(out, "' ;;\n");
    for (const struct command *const *c = commands_all; *c; c++)
        bash_options(out, *c);
    sl_buf_cstr(out, "    esac\n"
                     "    [[ -z $command || $before == \"$command\" ]] || verbs=''\n"
                     "    if [[ $values ]]; then verbs=$values; elif [[ $word == -* ]]; then verbs=$options; fi\n"
                     "    mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$word\")\n"
                     "}\n"
                     "complete -o default -F _symloom symloom\n");
}

/* ---- zsh ---- */

/* Appends text escaped for '[...]' of a zsh specification: brackets, colons and backslashes need a backslash. */
static void zsh_text(struct sl_buf *out, const char *text)
{
    char one[2] = "";
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            sl_buf_u8(out, '\\');
        one[0] = *text;
        completion_quote(out, one);
    }
}

/* Appends the specification of an option for zsh's _arguments (zshcompsys(1)): of `-letter`, or of the long form if `letter` is 0. After
 * the option's name, `+` and `=` say that a value follows in the same word or the next, `=-` only in the same. `:` begins a value that is
 * required, `::` an optional one. `*`: the option may be repeated. */
static void zsh_word(struct sl_buf *out, const struct option_spec *spec, char letter)
{
    sl_buf_cstr(out, spec->repeatable ? " \\\n            '*" : " \\\n            '");
    if (letter)
        sl_buf_printf(out, "-%c%s", letter, spec->type == OPTION_VALUE ? "+" : "");
    else
        sl_buf_printf(out, "--%s%s", spec->name,
                      spec->type == OPTION_VALUE      ? "="
                      : spec->type == OPTION_OPTIONAL ? "=-"
                      : spec->type == OPTION_NEXT     ? "="
                                                      : "");
    sl_buf_u8(out, '[');
    zsh_text(out, spec->help);
    sl_buf_u8(out, ']');
    if (spec->type != OPTION_FLAG) {
        sl_buf_cstr(out, spec->type == OPTION_VALUE ? ":" : "::");
        sl_buf_cstr(out, is_choice(spec) ? "value:(" : "value:_files");
        if (is_choice(spec)) {
            completion_values(spec, out);
            sl_buf_u8(out, ')');
        }
    }
    sl_buf_u8(out, '\'');
}

static void zsh_option(struct sl_buf *out, const char *command, const struct option_spec *spec)
{
    (void)command;
    zsh_word(out, spec, 0);
    if (spec->letter)
        zsh_word(out, spec, spec->letter);
}

/* Writes the shell case of one command, which passes its options and verbs to zsh's _arguments. */
static void zsh_command(struct sl_buf *out, const struct command *command)
{
    struct sl_buf verbs = {0};
    sl_buf_printf(out, "    %s)\n        _arguments", command->name);
    each_option(command->options, zsh_option, out, command->name);
    completion_verbs(command->usage, &verbs);
    sl_buf_cstr(out, " \\\n            '--version[Print the version]' \\\n            '--help[Print full help]'");
    if (verbs.size)
        sl_buf_printf(out, " \\\n            '1:word:(" SL_STR_FMT ")'", SL_STR_ARG(sl_buf_view(&verbs)));
    sl_buf_cstr(out, " \\\n            '*:file:_files'\n        ;;\n");
    sl_buf_free(&verbs);
}

/* Writes the completion for zsh. The file works in $fpath, where zsh calls it as the function _symloom to complete a word, and when
 * sourced: then it registers that function. */
static void completion_zsh(struct sl_buf *out)
{
    sl_buf_cstr(out, "#compdef symloom\n# zsh completion of symloom: made by `symloom completion zsh`\n_symloom() {\n"
                     "local -a verbs line\nlocal -A opt_args\nlocal curcontext=$curcontext state\nverbs=(\n");
    for (const struct command *const *c = commands_all; *c; c++) {
        sl_buf_printf(out, "    '%s:", (*c)->name);
        zsh_text(out, (*c)->summary);
        sl_buf_cstr(out, "'\n");
    }
    sl_buf_cstr(out, ")\n_arguments -C");
    each_option(NULL, zsh_option, out, "");
    sl_buf_cstr(out, " \\\n            '(-)--version[Print the version]' '(-)--help[List all commands]' \\\n"
                     "            '1:command:->command' '*::argument:->argument'\ncase $state in\n"
                     "command) _describe command verbs ;;\nargument)\n    case $words[1] in\n");
    for (const struct command *const *c = commands_all; *c; c++)
        zsh_command(out, *c);
    sl_buf_cstr(out, "    esac\n    ;;\nesac\n}\n"
                     "if [[ $funcstack[1] == _symloom ]]; then _symloom; else compdef _symloom symloom; fi\n");
}

/* ---- fish ---- */

/* Appends fish's `complete` line of an option of `command`; `command` empty: of a global option, before any command. */
static void fish_option(struct sl_buf *out, const char *command, const struct option_spec *spec)
{
    if (*command)
        sl_buf_printf(out, "complete -c symloom -n '__fish_seen_subcommand_from %s' -l %s", command, spec->name);
    else
        sl_buf_printf(out, "complete -c symloom -n __fish_use_subcommand -l %s", spec->name);
    if (spec->letter)
        sl_buf_printf(out, " -s %c", spec->letter);
    if (spec->type == OPTION_VALUE)
        sl_buf_cstr(out, is_choice(spec) ? " -x -a '" : " -r");
    if (spec->type == OPTION_VALUE && is_choice(spec)) {
        completion_values(spec, out);
        sl_buf_u8(out, '\'');
    }
    sl_buf_cstr(out, " -d '");
    for (const char *at = spec->help; *at; at++) /* inside quotes fish also reads \' and \\ */
        sl_buf_printf(out, *at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
    sl_buf_cstr(out, "'\n");
}

/* Writes the completion for fish: global options, then each command with its verbs and options. */
static void completion_fish(struct sl_buf *out)
{
    sl_buf_cstr(out, "# fish completion of symloom: made by `symloom completion fish`\n");
    each_option(NULL, fish_option, out, "");
    sl_buf_cstr(
        out,
        "complete -c symloom -l version -d 'Print the version'\ncomplete -c symloom -l help -d 'Print full help'\n");
    for (const struct command *const *c = commands_all; *c; c++) {
        const struct command *command = *c;
        struct sl_buf verbs = {0};
        sl_buf_printf(out, "complete -c symloom -f -n __fish_use_subcommand -a %s -d '", command->name);
        completion_quote(out, command->summary);
        sl_buf_cstr(out, "'\n");
        completion_verbs(command->usage, &verbs);
        if (verbs.size)
            sl_buf_printf(out, "complete -c symloom -n '__fish_seen_subcommand_from %s' -a '" SL_STR_FMT "'\n",
                          command->name, SL_STR_ARG(sl_buf_view(&verbs)));
        each_option(command->options, fish_option, out, command->name);
        sl_buf_free(&verbs);
    }
}

/* ---- the command ---- */

static const struct option_spec specs[] = {
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Runs `symloom completion SHELL`. If no shell, or an unknown one, is named, `out` stays empty: a usage error. */
static int completion_run(const struct options *o)
{
    static const struct {
        const char *name;
        void (*write)(struct sl_buf *out);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    struct sl_buf out = {0};
    if (!options_arguments(o, 1))
        return 2;
    for (size_t i = 0; o->argument_count && i < sizeof shells / sizeof *shells; i++)
        if (strcmp(o->arguments[0], shells[i].name) == 0)
            shells[i].write(&out);
    if (!out.size)
        return options_wrong(o, "expected 'completion bash', 'completion zsh' or 'completion fish'");
    output_write(sl_buf_view(&out));
    sl_buf_free(&out);
    return 0;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print shell completions",
    .usage = "completion bash|zsh|fish",
    .about = "Prints completions of commands, options and values, for a shell to load:\n"
             "'source <(symloom completion bash)'.",
    .examples = "source <(symloom completion bash)",
    .options = specs,
    .run = completion_run,
};
