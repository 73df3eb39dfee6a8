/* `symloom man`: man pages of the program and of each command, from the tables of --help, in roff with the man macros (groff_man(7)). */
#include "cli/cli.h"
#include "cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const statuses[][2] = {
    {"0", "Done. Frames and addresses that nothing is known of are no failure."},
    {"1", "Failed: a file could not be read or written, a server refused."},
    {"2", "The command line is wrong."},
    {"3", "Nothing to work on: an unknown format, no usable object, no frames."},
    {"4", "A server wants other credentials, or any."},
};

static const char *const variables[][2] = {
    {"SYMLOOM_CONFIG", "The configuration file, unless \\-\\-config names one."},
    {"SYMLOOM_CACHE_DIR", "The root of the disk cache, unless \\-\\-cache\\-dir names one."},
    {"SYMLOOM_LOG, RUST_LOG",
     "Levels of the log: info, or by module info,fetch=debug; of RUST_LOG the bare level counts."},
    {"SYMLOOM_JOBS", "The number of threads, unless \\-\\-jobs says it."},
    {"SYMLOOM_BIND", "Where the service listens, unless \\-\\-bind says it."},
    {"SYMLOOM_SENTRY_DSN", "Where the service reports errors, whatever the configuration says; empty: nowhere."},
    {"SYMLOOM_URL, SYMLOOM_API_KEY", "The service that push\\-symbols sends to, and its key."},
    {"DEBUGINFOD_URLS, _NT_SYMBOL_PATH",
     "Servers that files are fetched from by id, with \\-\\-debuginfod and \\-\\-nt\\-symbol\\-path."},
    {"NO_COLOR, CLICOLOR_FORCE", "No colours, or colours even without a terminal."},
    {"HTTPS_PROXY, HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, TMPDIR, XDG_CONFIG_HOME, XDG_CACHE_HOME", "As usual."},
};

static const char *const man_files[][2] = {
    {".symloom.yml", "In the working directory or one above: sources and directories of symbols for lookup, "
                     "symbolicate and dump\\-syms."},
    {"~/.config/symloom/cli.yml", "The same for everything that a user does."},
    {"/etc/symloom/config.yml", "The configuration of the service, as the package starts it."},
};

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* Escapes text: `-` becomes a minus sign, and a dot or quote at the start of a line no request. */
static void man_text(struct sl_buf *out, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            sl_buf_cstr(out, "\\&");
        if (*text == '-')
            sl_buf_cstr(out, "\\-");
        else if (*text == '\\')
            sl_buf_cstr(out, "\\e");
        else
            sl_buf_u8(out, (uint8_t)*text);
        start = *text == '\n';
    }
}

static void man_line(struct sl_buf *out, const char *before, const char *text, const char *after)
{
    sl_buf_cstr(out, before);
    man_text(out, text);
    sl_buf_cstr(out, after);
}

static void man_head(struct sl_buf *out, const char *name, const char *about)
{
    char title[64];
    snprintf(title, sizeof title, "%s", name);
    for (char *at = title; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    man_line(out, ".TH ", title, " 1 \"\" \"symloom " SYMLOOM_VERSION "\" \"symloom\"\n");
    man_line(out, ".SH NAME\n", name, "");
    man_line(out, " \\- ", about, "\n.SH SYNOPSIS\n.nh\n");
}

static void man_rows(struct sl_buf *out, const char *title, const char *const (*rows)[2], size_t count)
{
    man_line(out, ".SH ", title, "\n");
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(out, ".TP\n.B %s\n%s\n", rows[i][0], rows[i][1]);
}

static void man_options(struct sl_buf *out, const struct option_spec *spec)
{
    sl_buf_cstr(out, ".SH OPTIONS\n");
    for (; spec && spec->name; spec++) {
        char text[OPTION_SHOWN];
        if (!spec->help)
            continue;
        option_show(spec, text);
        man_line(out, ".TP\n.B ", text, "\n");
        man_line(out, "", spec->help, "\n");
    }
    sl_buf_cstr(out, ".TP\n.B \\-h, \\-\\-help\nthe options, and no more\n");
}

/* Writes the page of the program itself. */
static void man_program(struct sl_buf *out)
{
    man_head(out, "symloom", "raw crash data to readable stack traces");
    sl_buf_cstr(out, ".B symloom\n\\fICOMMAND\\fR [\\fIOPTION\\fR..] [\\fIARGUMENT\\fR..]\n.SH DESCRIPTION\n"
                     "A service that turns addresses, minidumps, crash reports and minified or obfuscated stacks into\n"
                     "functions, files and lines, and the tools for debug files and crashes around it.\n"
                     ".SH COMMANDS\n");
    for (const struct command *const *command = commands_all; *command; command++) {
        man_line(out, ".TP\n.BR symloom\\-", (*command)->name, " (1)\n");
        man_line(out, "", (*command)->summary, "\n");
    }
    man_options(out, options_global);
    man_rows(out, "ENVIRONMENT", variables, ROWS(variables));
    man_rows(out, "FILES", man_files, ROWS(man_files));
    man_rows(out, "EXIT STATUS", statuses, ROWS(statuses));
}

static void man_command(struct sl_buf *out, const struct command *command)
{
    char name[64];
    snprintf(name, sizeof name, "symloom-%s", command->name);
    man_head(out, name, command->summary);
    man_line(out, ".B symloom\n", command->usage, "\n.hy\n");
    man_line(out, ".SH DESCRIPTION\n", command->about, "\n");
    man_options(out, command->options);
    if (command->examples)
        man_line(out, ".SH EXAMPLES\n.nf\n", command->examples, "\n.fi\n");
    man_rows(out, "EXIT STATUS", statuses, ROWS(statuses));
    sl_buf_cstr(out, ".SH SEE ALSO\n.BR symloom (1)\n");
}

static int man_write(const char *directory, const char *name, const struct sl_buf *page)
{
    char path[4096];
    struct output_file file;
    struct sl_error error = {0};
    snprintf(path, sizeof path, "%s/%s.1", directory, name);
    if (output_file_open(&file, path, &error) != SL_OK)
        return report(1, error.message, NULL);
    bool ok = output_file_write(&file, sl_buf_view(page));
    return output_file_close(&file, ok, &error) == SL_OK ? 0 : report(1, error.message, NULL);
}

static int man_all(const char *directory)
{
    struct sl_buf page = {0};
    mkdir(directory, 0777); /* writing the first page reports errors */
    man_program(&page);
    int status = man_write(directory, "symloom", &page);
    for (const struct command *const *command = commands_all; *command && status == 0; command++) {
        char name[64];
        sl_buf_clear(&page);
        man_command(&page, *command);
        snprintf(name, sizeof name, "symloom-%s", (*command)->name);
        status = man_write(directory, name, &page);
    }
    sl_buf_free(&page);
    return status;
}

static int man_print(const struct options *o, const char *name)
{
    struct sl_buf page = {0};
    const struct command *command = name ? command_find(name) : NULL;
    if (name && !command)
        return options_wrong(o, "unknown command '%s'", name);
    if (command)
        man_command(&page, command);
    else
        man_program(&page);
    output_write(sl_buf_view(&page));
    sl_buf_free(&page);
    return 0;
}

static const struct option_spec specs[] = {
    {"all", 0, OPTION_VALUE, false, "DIR", "write every page there: symloom.1, symloom-lookup.1, .."},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static int man_run(const struct options *o)
{
    if (!options_arguments(o, option_given(o, "all") ? 0 : 1))
        return 2;
    if (option_given(o, "all"))
        return man_all(option_value(o, "all", ""));
    return man_print(o, o->argument_count ? o->arguments[0] : NULL);
}

const struct command command_man = {
    .name = "man",
    .summary = "man pages",
    .usage = "man [COMMAND]",
    .about = "The manual in roff: 'symloom man lookup | man -l -' shows the page of a command.",
    .examples = "symloom man lookup | man -l -",
    .options = specs,
    .run = man_run,
};
