/* `symloom man`: man pages of the program and of each command, from the tables of --help, in roff with the man macros (groff_man(7)). */
#include "cli/cli.h"
#include "cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const statuses[][2] = {
    {"0", "Success. Unsymbolicated frames and addresses are not a failure."},
    {"1", "Failure: a file could not be read or written, or a server refused a request."},
    {"2", "Usage error."},
    {"3", "Nothing to work on: unknown format, no usable object, or no frames."},
    {"4", "A server requires other credentials, or any."},
};

static const char *const variables[][2] = {
    {"SYMLOOM_CONFIG", "Path of the configuration file; \\-\\-config overrides it."},
    {"SYMLOOM_CACHE_DIR", "Root of the disk cache; \\-\\-cache\\-dir overrides it."},
    {"SYMLOOM_LOG, RUST_LOG",
     "Log levels: info, or per module info,fetch=debug. Of RUST_LOG only the default level is used."},
    {"SYMLOOM_JOBS", "Number of threads; \\-\\-jobs overrides it."},
    {"SYMLOOM_BIND", "Address the service listens on; \\-\\-bind overrides it."},
    {"SYMLOOM_SENTRY_DSN", "Sentry DSN for error reports of the service; overrides the configuration; empty disables "
                           "reports."},
    {"SYMLOOM_URL, SYMLOOM_API_KEY", "Service that push\\-symbols sends to, and its access key."},
    {"DEBUGINFOD_URLS, _NT_SYMBOL_PATH", "Symbol servers used with \\-\\-debuginfod and \\-\\-nt\\-symbol\\-path."},
    {"NO_COLOR, CLICOLOR_FORCE", "Disable colors, or use colors without a terminal."},
    {"HTTPS_PROXY, HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, TMPDIR, XDG_CONFIG_HOME, XDG_CACHE_HOME", "As usual."},
};

static const char *const man_files[][2] = {
    {".symloom.yml", "Symbol sources for lookup, symbolicate and dump\\-syms; searched in the working directory and "
                     "its parents."},
    {"~/.config/symloom/cli.yml", "Symbol sources for all commands of a user."},
    {"/etc/symloom/config.yml", "Configuration of the service that the Debian package starts."},
};

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* Appends text escaped for roff: `-` as a minus sign, and `\&` before a dot or quote at the beginning of a line, where roff would take it
 * for a request. */
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

/* Writes the title, the section NAME and the heading of SYNOPSIS; the caller writes the synopsis itself. `.nh` turns off hyphenation,
 * which would break option names. */
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

/* Writes a section of `count` names, each with its text. Both are roff already, so they are not escaped. */
static void man_rows(struct sl_buf *out, const char *title, const char *const (*rows)[2], size_t count)
{
    man_line(out, ".SH ", title, "\n");
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(out, ".TP\n.B %s\n%s\n", rows[i][0], rows[i][1]);
}

struct man_options {
    struct sl_buf *out;
    const char *title; /* of the group that was written last */
};

/* Writes one option. Called for the options group by group: a new `title` begins a subsection. */
static void man_option(void *arg, const char *title, const struct option_spec *spec)
{
    struct man_options *options = arg;
    char text[OPTION_SHOWN];
    if (options->title != title)
        man_line(options->out, ".SS ", title, "\n");
    options->title = title;
    option_show(spec, text);
    man_line(options->out, ".TP\n.B ", text, "\n");
    man_line(options->out, "", spec->help, "\n");
}

static void man_all_options(struct sl_buf *out, const struct option_spec *specs, const struct options_group *groups)
{
    sl_buf_cstr(out, ".SH OPTIONS\n.TP\n.B \\-h, \\-\\-help\nPrint short help (\\-h) or full help (\\-\\-help).\n");
    if (specs)
        options_each(specs, groups, man_option, &(struct man_options){out, NULL});
}

/* Writes the page of the program itself. */
static void man_program(struct sl_buf *out)
{
    man_head(out, "symloom", "symbolicate crashes: from addresses to functions, files and lines");
    sl_buf_cstr(out, ".B symloom\n"
                     "\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
                     ".SH DESCRIPTION\n"
                     "A symbolication service, with command line tools for crashes and debug files. It turns "
                     "addresses,\n"
                     "minidumps, crash reports and minified or obfuscated stack traces into functions, files and "
                     "lines.\n"
                     ".SH COMMANDS\n");
    for (const struct command *const *command = commands_all; *command; command++) {
        man_line(out, ".TP\n.BR symloom\\-", (*command)->name, " (1)\n");
        man_line(out, "", (*command)->summary, "\n");
    }
    man_all_options(out, options_global, options_global_groups);
    man_rows(out, "ENVIRONMENT", variables, ROWS(variables));
    man_rows(out, "FILES", man_files, ROWS(man_files));
    man_rows(out, "EXIT STATUS", statuses, ROWS(statuses));
}

/* Writes the page of a command. */
static void man_command(struct sl_buf *out, const struct command *command)
{
    char name[64];
    snprintf(name, sizeof name, "symloom-%s", command->name);
    man_head(out, name, command->summary);
    man_line(out, ".B symloom\n", command->usage, "\n.hy\n");
    man_line(out, ".SH DESCRIPTION\n", command->about, "\n");
    man_all_options(out, command->options, command->groups);
    if (command->examples)
        man_line(out, ".SH EXAMPLES\n.nf\n", command->examples, "\n.fi\n");
    man_rows(out, "EXIT STATUS", statuses, ROWS(statuses));
    sl_buf_cstr(out, ".SH SEE ALSO\n.BR symloom (1)\n");
}

/* Writes a page to `directory`; returns the exit status. */
static int man_write(const char *directory, const char *name, const struct sl_buf *page)
{
    char path[4096];
    struct output_file file;
    struct sl_error error = {0};
    snprintf(path, sizeof path, "%s/%s.1", directory, name);
    if (output_file_open(&file, path, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    bool ok = output_file_write(&file, sl_buf_view(page));
    return output_file_close(&file, ok, &error) == SL_OK ? 0 : report_error(1, error.message, NULL);
}

/* Writes all pages to the directory; returns the exit status. */
static int man_all(const char *directory)
{
    struct sl_buf page = {0};
    mkdir(directory, 0777); /* if it fails and the directory does not exist, writing the first page reports that */
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

/* Prints the page of a command, or of the program if `name` is NULL; returns the exit status. */
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
    {"all", 0, OPTION_VALUE, false, "DIR", "Write all pages to DIR: symloom.1, symloom-lookup.1, ..."},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Runs `symloom man`: writes all pages (--all), or prints the page of a command or of the program. Returns the exit status. */
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
    .summary = "print man pages",
    .usage = "man [COMMAND]",
    .about = "Prints a man page in roff format: 'symloom man lookup | man -l -' shows one.",
    .examples = "symloom man lookup | man -l -",
    .options = specs,
    .run = man_run,
};
