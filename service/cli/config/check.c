#include "cli/config/check.h"

#include <stdio.h>

#include "base/json_write.h"
#include "cli/locator/locator.h"
#include "cli/progress.h"
#include "cli/server.h"

enum { MAX_FILES = 2 };

struct checked_config { /* a configuration file */
    const char *path;
    struct config *config; /* NULL: loading failed */
    struct sl_arena arena;
    struct value_problems problems;
    struct locator_source_list symbols;
    struct sl_error error;
};

struct config_check {
    const struct options *o;
    bool user;
    struct checked_config files[MAX_FILES];
    size_t count;
    char paths[MAX_FILES][4096];
};

/* ---- checks ---- */

/* Returns the name of a configuration for messages: its path, or "defaults" if it has no file. */
static const char *shown_path(const struct checked_config *file)
{
    return file->path ? file->path : "defaults";
}

/* Checks that each item of the key `symbols` is a directory or URL, and makes the list of sources from them. */
static void check_symbols(struct checked_config *file)
{
    struct value at = config_position(file->config, "symbols");
    struct sl_error error;
    file->symbols = (struct locator_source_list){.arena = &file->arena, .network = true}; /* URLs are allowed */
    for (size_t i = 0; i < file->config->symbol_count; i++)
        if (source_list_symbols(&file->symbols, file->config->symbols[i].data, &error) != SL_OK)
            /* false: an error, no warning */
            value_problem(&file->problems, &at, false, "symbols", "%s", error.message);
}

/* Loads a file as the service or, with --user, a user command would, and checks that what it names exists on this machine. For the service,
 * also checks how worker processes are confined. */
static void check_file(const struct config_check *c, struct checked_config *file)
{
    file->problems.arena = &file->arena;
    /* without a file, config_load checks the defaults */
    enum sl_code code = c->user && file->path
                            ? locator_read_config(file->path, &file->config, &file->problems, &file->error)
                            : config_load(file->path, &file->config, &file->problems, &file->error);
    /* options such as --cache-dir, and variables, replace values of the file */
    if (code == SL_OK && !c->user && server_override(c->o, file->config) != 0)
        sl_fail(&file->error, SL_BUSY, "out of memory");
    else if (code == SL_OK && c->user)
        check_symbols(file);
    if (code == SL_OK)
        config_check_machine(file->config, &file->problems);
    if (code == SL_OK && !c->user)
        config_check_isolation(file->config, server_verbosity(c->o), &file->problems);
}

/* Checks that the servers in each configuration without errors answer. One with errors is left out: addresses may be missing in it. */
static void check_connections(struct config_check *c)
{
    struct connect_target targets[MAX_FILES];
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct checked_config *file = &c->files[i];
        if (!file->config || file->problems.errors)
            continue;
        if (c->user) /* user commands may connect to any address */
            file->config->connect_to_reserved_ips = true;
        targets[count++] =
            (struct connect_target){file->config, file->symbols.items, file->symbols.count, &file->problems};
    }
    if (count)
        config_check_connections(targets, count, server_verbosity(c->o));
}

/* Finds the files to check: the one given, that of --config or $SYMLOOM_CONFIG, or with --user those that user commands read. */
static void find_files(struct config_check *c, const char *given)
{
    const char *usual = option_value(c->o, "config", server_environment("SYMLOOM_CONFIG"));
    const char *path = given ? given : usual;
    c->count = 1;
    c->files[0].path = path;
    if (!c->user || path)
        return;
    size_t found = locator_config_files(c->paths);
    for (size_t i = 0; i < found; i++)
        c->files[i].path = c->paths[i];
    c->count = found ? found : 1; /* none: check the defaults */
}

/* ---- output ---- */

/* Returns the severity of a problem as the JSON output names it. */
static const char *problem_level(const struct value_problem *problem)
{
    return problem->info ? "info" : problem->warning ? "warning" : "error";
}

/* Writes the line or column of a problem: null if the number is 0, which means unknown. */
static void put_number_or_null(struct sl_json_writer *w, const char *key, uint32_t number)
{
    sl_json_put_key(w, key);
    if (number)
        sl_json_put_u64(w, number);
    else
        sl_json_put_null(w);
}

/* Writes the problems of a file as objects of the JSON array. */
static void put_problems(const struct checked_config *file, struct sl_json_writer *w)
{
    for (size_t i = 0; i < file->problems.count; i++) {
        const struct value_problem *problem = &file->problems.items[i];
        sl_json_begin_object(w);
        sl_json_member_str(w, "level", sl_str(problem_level(problem)));
        sl_json_member_str(w, "file", sl_str(shown_path(file)));
        put_number_or_null(w, "line", problem->line);
        put_number_or_null(w, "column", problem->column);
        sl_json_member_str(w, "key", problem->path);
        sl_json_member_str(w, "message", problem->what);
        sl_json_end_object(w);
    }
}

/* Prints the problems of all files as text, or with --json as one array. `unreadable`: a file could not be read, which the caller reports;
 * then there is no JSON. `found`: there are errors or warnings; without them the text ends with "configuration OK". */
static void print_problems(const struct config_check *c, bool unreadable, bool found)
{
    struct sl_buf text = {0};
    struct sl_json_writer w = sl_json_writer(&text);
    bool json = option_given(c->o, "json");
    if (json && !unreadable) {
        sl_json_begin_array(&w);
        for (size_t i = 0; i < c->count; i++)
            put_problems(&c->files[i], &w);
        sl_json_end_array(&w);
        sl_buf_u8(&text, '\n');
    } else if (!json) {
        for (size_t i = 0; i < c->count; i++)
            config_format_problems(shown_path(&c->files[i]), &c->files[i].problems, &text);
        if (!found && !unreadable)
            sl_buf_cstr(&text, "configuration OK\n");
    }
    if (text.size)
        output_write(sl_buf_view(&text));
    sl_buf_free(&text);
}

int config_check(const struct options *o, const char *path)
{
    struct config_check c = {.o = o, .user = option_given(o, "user")};
    struct progress progress;
    bool unreadable = false, errors = false, warnings = false;
    if (option_given(o, "connect") && !server_may_connect(o))
        return 2;
    find_files(&c, path);
    for (size_t i = 0; i < c.count; i++)
        check_file(&c, &c.files[i]);
    progress_begin(&progress, o, "asking");
    if (option_given(o, "connect")) {
        progress_set_item(&progress, shown_path(&c.files[0]), 0);
        check_connections(&c);
    }
    progress_end(&progress);
    for (size_t i = 0; i < c.count; i++) {
        const struct checked_config *file = &c.files[i];
        /* an error without a problem in the file: it could not be read, or memory is out */
        unreadable = unreadable || (file->error.code != SL_OK && !file->problems.errors);
        errors = errors || file->error.code != SL_OK || file->problems.errors;
        warnings = warnings || value_warnings(&file->problems);
    }
    print_problems(&c, unreadable, errors || warnings);
    for (size_t i = 0; i < c.count; i++) {
        if (c.files[i].error.code != SL_OK && !c.files[i].problems.errors)
            server_failed("failed loading config", c.files[i].error.message);
        config_release(c.files[i].config);
        sl_arena_free(&c.files[i].arena);
    }
    return errors || (warnings && option_given(o, "strict"));
}
