/* `symloom config check` and `config show`. */
#include "cli/cli.h"
#include "cli/server.h"

#include <stdio.h>

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"strict", 0, OPTION_FLAG, false, NULL, "check: warnings count as errors"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static int check(const struct options *o, const char *path)
{
    struct config *config = NULL;
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct sl_error error = {0};
    struct sl_buf text = {0};
    enum sl_code code = config_load(path, &config, &problems, &error);
    if (path)
        config_format_problems(path, &problems, &text);
    int status = code != SL_OK || (problems.count > 0 && option_given(o, "strict"));
    if (text.size)
        fwrite(text.data, 1, text.size, stdout);
    if (code != SL_OK && !problems.errors)
        server_failed("failed loading config", error.message);
    else if (!problems.count)
        puts("configuration OK");
    config_release(config);
    sl_buf_free(&text);
    sl_arena_free(&arena);
    return status;
}

static int show(const struct options *o)
{
    struct config *config = NULL;
    struct sl_buf text = {0};
    int status = server_load(o, &config);
    if (status)
        return status;
    config_dump(config, &text);
    bool written = !text.failed && fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    sl_buf_free(&text);
    config_release(config);
    return written ? 0 : server_failed("cannot write output", NULL);
}

int command_config(int argc, char **argv)
{
    struct options o;
    int status = 2;
    if (options_parse(&o, specs, "config", argc, argv)) {
        const char *verb = o.argument_count ? o.arguments[0] : "";
        const char *path =
            o.argument_count > 1 ? o.arguments[1] : option_value(&o, "config", server_environment("SYMLOOM_CONFIG"));
        if (o.help) {
            options_help(specs, "config check [FILE] | config show",
                         "Checks a configuration, or shows the effective one.");
            status = 0;
        } else if (strcmp(verb, "check") == 0) {
            status = check(&o, path);
        } else if (strcmp(verb, "show") == 0) {
            status = show(&o);
        } else {
            fputs("error: say 'config check' or 'config show'\nTry 'symloom config --help'.\n", stderr);
        }
    }
    options_free(&o);
    return status;
}
