/* Reads the configuration of user commands: the nearest project file and the user's own file, called layers here. */
#include "cli/locator/locator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/locator/plain_config.h"
#include "cli/server.h"

/* ---- reading a file ---- */

/* Prints the errors of a configuration file on stderr, and removes the warnings from `problems`. */
static void report_errors(const char *path, struct value_problems *problems)
{
    struct sl_buf text = {0};
    size_t errors = 0;
    for (size_t i = 0; i < problems->count; i++) /* warnings (unknown keys) do not concern these commands */
        if (!problems->items[i].warning)
            problems->items[errors++] = problems->items[i];
    problems->count = errors;
    config_format_problems(path, problems, &text);
    if (text.size && !text.failed)
        fwrite(text.data, 1, text.size, stderr);
    sl_buf_free(&text);
}

/* Parses the YAML of a configuration file and prints its errors on stderr. `lines_before` counts the lines that were put before the file's
 * own text: they are subtracted from the line numbers of the problems. */
static enum sl_code parse(struct sl_str yaml, const char *path, unsigned lines_before, struct config **config,
                          struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    enum sl_code code = config_parse(yaml, path, config, &problems, error);
    for (size_t i = 0; i < problems.count; i++)
        /* a problem without a line has the number 0, which stays */
        problems.items[i].line -= problems.items[i].line > lines_before ? lines_before : 0;
    report_errors(path, &problems);
    sl_arena_free(&arena);
    return code;
}

/* True if the file has the name of a configuration of symbolicli, an older tool. Such files are TOML, which plain_config.c reads. */
static bool is_of_older_tool(const char *path)
{
    static const char *const ends[] = {".symboliclirc", ".toml"};
    size_t length = strlen(path);
    bool matches = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        matches = matches || (length >= strlen(ends[i]) && strcmp(path + length - strlen(ends[i]), ends[i]) == 0);
    return matches;
}

/* Reads one configuration file; its errors and warnings go to `problems`. */
enum sl_code locator_read_config(const char *path, struct config **config, struct value_problems *problems,
                                 struct sl_error *error)
{
    struct sl_buf text = {0};
    *config = NULL;
    if (!is_of_older_tool(path))
        return config_load(path, config, problems, error);
    enum sl_code code = plain_config_read(path, &text, error); /* converts it to YAML */
    if (code == SL_OK)
        code = config_parse(sl_buf_view(&text), path, config, problems, error);
    sl_buf_free(&text);
    return code;
}

/* Loads a YAML file of the service's format, and prints its errors; loads the defaults if `path` is NULL. */
static enum sl_code locator_config_load(const char *path, struct config **config, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    enum sl_code code = config_load(path, config, &problems, error);
    if (path)
        report_errors(path, &problems);
    sl_arena_free(&arena);
    return code;
}

/* ---- --source files ---- */

/* True if a line of the YAML text starts with `key`, perhaps quoted: then it is a key of the outermost map, whose keys are not indented. */
static bool has_key(struct sl_str text, const char *key)
{
    size_t size = strlen(key);
    for (const char *at = text.data, *end = text.data + text.size; at && at < end;) {
        const char *start = at + (*at == '"' || *at == '\'');
        if ((size_t)(end - start) > size && memcmp(start, key, size) == 0)
            return true;
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    return false;
}

/* Makes a configuration of a text that is a list of sources or one source in YAML: writes it as the value of the key `sources`. Returns the
 * number of lines added before it. */
static unsigned wrap_as_sources(struct sl_str text, struct sl_buf *yaml)
{
    size_t at = 0;
    while (at < text.size) { /* skip comments and blank lines; a NUL follows the text, for strcspn */
        at += text.data[at] == '#' ? strcspn(text.data + at, "\n") : 0;
        if (at >= text.size || !strchr(" \t\r\n", text.data[at]))
            break;
        at++;
    }
    /* in YAML, a list starts with `[` or `-`; anything else is one source, the only element of the list that is written */
    bool list = at < text.size && (text.data[at] == '[' || text.data[at] == '-');
    sl_buf_cstr(yaml, list ? "sources:\n " : "sources:\n -\n  ");
    for (size_t i = 0; i < text.size; i++) {
        sl_buf_u8(yaml, (uint8_t)text.data[i]);
        if (text.data[i] == '\n')
            sl_buf_cstr(yaml, list ? " " : "  ");
    }
    return list ? 1 : 2;
}

/* True if the text consists of blank lines and comments. */
static bool is_empty(struct sl_str text)
{
    bool comment = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        comment = c == '\n' ? false : comment || c == '#';
        if (!comment && !strchr(" \t\r\n", c))
            return false;
    }
    return true;
}

/* True if the text looks like a JSON object that has `sources`. It can be one line, where has_key does not see the key. */
static bool is_object_with_sources(struct sl_str text)
{
    return text.size && text.data[0] == '{' && memmem(text.data, text.size, "\"sources\"", 9);
}

enum sl_code locator_read_source_file(const char *path, struct config **config, struct sl_error *error)
{
    struct sl_mapping mapping;
    struct sl_buf yaml = {0}, copy = {0};
    *config = NULL;
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    sl_buf_add(&copy, mapping.bytes.data, mapping.bytes.size);
    sl_buf_u8(&copy, '\0'); /* for strcspn in wrap_as_sources */
    struct sl_str text = {copy.failed ? "" : (const char *)copy.data, copy.failed ? 0 : copy.size - 1};
    if (!copy.failed && is_empty(text)) {
        sl_buf_free(&copy);
        sl_unmap(&mapping);
        return sl_fail(error, SL_MALFORMED, "%s: the file is empty; it must contain a source or a list of sources",
                       path);
    }
    /* a file that has the key `sources` is a configuration already; any other is only the value of that key */
    bool whole = has_key(text, "sources") || is_object_with_sources(text);
    unsigned before = whole ? 0 : wrap_as_sources(text, &yaml);
    code = yaml.failed || copy.failed ? sl_fail(error, SL_BUSY, "out of memory")
                                      : parse(whole ? text : sl_buf_view(&yaml), path, before, config, error);
    sl_buf_free(&copy);
    sl_buf_free(&yaml);
    sl_unmap(&mapping);
    return code;
}

/* ---- the layers ---- */

/* Reads a project file or user's file, also one of symbolicli (TOML), and prints its errors on stderr. */
static enum sl_code load_layer(const char *path, struct config **config, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    enum sl_code code = locator_read_config(path, config, &problems, error);
    report_errors(path, &problems);
    sl_arena_free(&arena);
    return code;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Finds the nearest project file, from the working directory upwards. False when there is none. */
static bool find_project(char path[4096])
{
    static const char *const names[] = {".symloom.yml", ".symboliclirc", "symbolicli.toml"};
    char directory[3072];
    if (!getcwd(directory, sizeof directory))
        return false;
    for (;;) {
        size_t length = strlen(directory);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            snprintf(path, 4096, "%s%s%s", directory, length > 1 ? "/" : "", names[i]);
            if (is_there(path))
                return true;
        }
        if (length <= 1)
            return false;
        char *slash = strrchr(directory, '/');
        /* goes to the parent directory; of "/name", keeps the slash */
        slash[slash == directory] = '\0';
    }
}

/* Builds `$variable/rest`, or `$HOME/fallback/rest` if the variable is unset. False if $HOME is unset, too, or the path is too long. */
static bool user_path(const char *variable, const char *fallback, const char *rest, char path[4096])
{
    const char *base = server_environment(variable), *home = server_environment("HOME");
    int length = base   ? snprintf(path, 4096, "%s/%s", base, rest)
                 : home ? snprintf(path, 4096, "%s/%s/%s", home, fallback, rest)
                        : -1;
    return length > 0 && length < 4096;
}

/* Finds the user's own configuration file: symloom's or, without that, symbolicli's. False when there is none. */
static bool find_user(char path[4096])
{
    if (user_path("XDG_CONFIG_HOME", ".config", "symloom/cli.yml", path) && is_there(path))
        return true;
    const char *home = server_environment("HOME");
    return home && snprintf(path, 4096, "%s/.symboliclirc", home) < 4096 && is_there(path);
}

size_t locator_config_files(char paths[2][4096])
{
    bool has_project = find_project(paths[0]);
    bool has_user = find_user(paths[has_project]) && !(has_project && strcmp(paths[0], paths[1]) == 0);
    return (size_t)has_project + has_user;
}

/* Loads the project file and the user's own file, in this order; the defaults if neither exists. */
static enum sl_code find_layers(struct config *layers[2], struct sl_error *error)
{
    char paths[2][4096];
    size_t count = locator_config_files(paths);
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < count && code == SL_OK; i++)
        code = load_layer(paths[i], &layers[i], error);
    if (code == SL_OK && !count)
        code = locator_config_load(NULL, &layers[0], error);
    return code;
}

/* True if this process runs as root and the directory belongs to another user, who could not remove or replace the files that root
 * writes there (`sudo symloom` with the user's $HOME). A missing directory would be created, so its nearest existing parent counts. */
static bool is_root_elsewhere(const char *directory)
{
    char path[4096];
    struct stat st;
    if (geteuid() != 0 || snprintf(path, sizeof path, "%s", directory) >= (int)sizeof path)
        return false;
    while (stat(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return false;
        *slash = '\0';
    }
    return st.st_uid != 0;
}

/* Sets layers[0]->cache_dir: to --cache-dir or $SYMLOOM_CACHE_DIR (`given`; "" means no disk cache); else to that of the first
 * configuration that sets one; else to `symloom` below $XDG_CACHE_HOME. A loaded configuration does not show whether its file has the key
 * cache_dir, so its directory is compared with that of a configuration without a file (`usual`): if both are equal, it counts as setting
 * none. */
static void choose_cache(const struct options *o, struct config *layers[2])
{
    char path[4096];
    struct config *config = layers[0], *fresh = NULL;
    const char *given = option_value(o, "cache-dir", server_environment("SYMLOOM_CACHE_DIR")), *chosen = NULL;
    const char *usual = config_load(NULL, &fresh, NULL, NULL) == SL_OK ? fresh->cache_dir : NULL;
    for (size_t i = 0; i < 2 && !given && !chosen && layers[i]; i++)
        if (layers[i]->cache_dir && !(usual && strcmp(layers[i]->cache_dir, usual) == 0))
            chosen = layers[i]->cache_dir;
    if (given)
        chosen = *given ? given : NULL;
    else if (!chosen && user_path("XDG_CACHE_HOME", ".cache", "symloom", path))
        chosen = path;
    /* without a writable directory the command works without a disk cache */
    if (chosen && is_root_elsewhere(chosen)) {
        if (!option_given(o, "quiet"))
            print_note("warning: %s belongs to another user: root does not write there; pass another directory with "
                       "--cache-dir\n",
                       chosen);
        chosen = NULL;
    }
    config->cache_dir = chosen ? sl_arena_strndup(&config->arena, chosen, strlen(chosen)) : NULL;
    config_release(fresh);
}

/* Changes a configuration for a command that a user runs. Any address may be contacted. A file that was not found is searched again the
 * next time, since the user may have added it. Warnings are logged to stderr. */
static void adapt_for_user(struct config *config)
{
    config->connect_to_reserved_ips = true;
    config->max_response_bytes = UINT64_MAX; /* no limit for the user's own answers */
    config->downloaded.retry_misses_after = config->downloaded.retry_misses_after_public = 0;
    config->derived.retry_misses_after = config->derived.retry_misses_after_public = 0;
    config->log_level = sl_arena_strndup(&config->arena, "warn", 4);
    config->log_file = "/dev/stderr";
}

enum sl_code locator_load_config(const struct options *o, struct config *layers[2], struct sl_error *error)
{
    const char *path = option_value(o, "config", server_environment("SYMLOOM_CONFIG"));
    layers[0] = layers[1] = NULL;
    enum sl_code code = path ? locator_config_load(path, &layers[0], error) : find_layers(layers, error);
    if (code != SL_OK)
        return code;
    choose_cache(o, layers);
    adapt_for_user(layers[0]);
    return SL_OK;
}
