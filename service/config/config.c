/* Reads a file into the struct, and formats the problems found. */
#include "config/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "origin/origin.h"

/* MAX_SHOWN: errors, and warnings, that are printed. MAX_SORTED: longer lists of problems are not sorted by position. */
enum { MAX_SHOWN = 20, MAX_SORTED = 1000 };

bool config_container_is_set(void)
{
    const char *value = getenv("SYMLOOM_CONTAINER");
    return value && strcmp(value, "1") == 0;
}

/* True if the process seems to run in a Docker container: /.dockerenv exists, or the path of a control group contains /docker. Searches
 * only the first 4 KiB of /proc/self/cgroup, which has a short line for each control group. */
bool config_container_is_detected(void)
{
    if (access("/.dockerenv", F_OK) == 0)
        return true;
    char text[4096];
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text);
    sl_close(fd);
    return size > 0 && memmem(text, (size_t)size, "/docker", 7) != NULL;
}

/* ---- loading ---- */

/* Returns a configuration with the defaults of all keys; `path` (may be NULL) is the file that will be read. NULL when out of memory. */
static struct config *new_config(const char *path)
{
    struct config *config = calloc(1, sizeof *config);
    if (!config)
        return NULL;
    config->origins = SL_ARENA_ARRAY(&config->arena, struct key_origin, config_key_count);
    config->path = path ? sl_arena_strndup(&config->arena, path, strlen(path)) : NULL;
    if (!config->origins || (path && !config->path)) {
        config_release(config);
        return NULL;
    }
    config_defaults(config);
    return config;
}

const struct config *config_retain(const struct config *config)
{
    if (config)
        ((struct config *)config)->holds++;
    return config;
}

/* Gives up one reference; the last one, which is not counted in `holds`, frees the configuration. NULL is allowed. */
void config_release(const struct config *config)
{
    struct config *own = (struct config *)config;
    if (!own || own->holds-- > 0)
        return;
    sl_arena_free(&own->arena);
    free(own);
}

/* Excludes the pages of a chunk of memory, which has secrets, from core dumps, which may leave the machine. */
static void hide_pages(void *chunk, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)chunk / page * page;
    madvise((void *)begin, (uintptr_t)chunk + size - begin, MADV_DONTDUMP);
}

void config_exclude_from_core_dumps(const struct config *config)
{
    sl_arena_each_chunk(&config->arena, hide_pages);
}

/* Reads the list `sources` into config->sources. These point to texts of the tree, which lives as long as the configuration. */
static void read_sources(struct config *config, const struct value *root, struct value_problems *problems)
{
    /* configured sources, unlike those of requests, may use all that a policy can forbid */
    static const struct source_policy all = {
        .configuration = true, .filesystem = true, .ambient_credentials = true, .internal_sentry = true};
    const struct value *list = config_find(root, "sources");
    config->sources_number = source_list_number();
    if (!list || list->type == VALUE_NULL)
        return;
    config->source_list = list;
    size_t before = problems->errors;
    enum sl_code code =
        source_parse_list(&config->arena, list, "sources", &all, &config->sources, &config->source_count, problems);
    if (code != SL_OK && problems->errors == before) /* it failed without a report */
        value_problem(problems, list, false, "sources", "cannot be read: out of memory");
}

/* True if both problems are of the same value in the file. */
static bool same_place(const struct value_problem *a, const struct value_problem *b)
{
    return a->line == b->line && a->column == b->column && a->line != 0;
}

/* Removes errors that only follow from a value that env_resolve() could not replace: its problems are the first `unresolved` of the list,
 * and later errors at their positions are dropped. */
static void drop_follow_ups(struct value_problems *problems, size_t unresolved)
{
    size_t kept = unresolved;
    for (size_t i = unresolved; i < problems->count; i++) {
        bool follows = false;
        for (size_t j = 0; j < unresolved && !problems->items[i].warning && !follows; j++)
            follows = same_place(&problems->items[i], &problems->items[j]);
        if (!follows)
            problems->items[kept++] = problems->items[i];
    }
    /* only errors were dropped, no warnings */
    problems->errors -= problems->count - kept;
    problems->count = kept;
}

/* Compares the positions of two problems in the file, as for qsort(3). */
static int by_position(const void *a, const void *b)
{
    const struct value_problem *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column != y->column ? (x->column < y->column ? -1 : 1) : 0;
}

/* Sorts problems by position; those at the same position keep their order. An insertion sort is quadratic, so a list of more than
 * MAX_SORTED problems stays unsorted. */
static void sort_problems(struct value_problems *problems)
{
    for (size_t i = 1; problems->count <= MAX_SORTED && i < problems->count; i++) {
        struct value_problem problem = problems->items[i];
        size_t to = i;
        for (; to > 0 && by_position(&problems->items[to - 1], &problem) > 0; to--)
            problems->items[to] = problems->items[to - 1];
        problems->items[to] = problem;
    }
}

/* Reads the text into the configuration, and reports all problems. Sets `*written` to the key of the first secret in the text, or NULL
 * (env_resolve). SL_MALFORMED: a problem is an error; SL_BUSY: out of memory. */
static enum sl_code parse(struct config *config, struct sl_str yaml, struct value_problems *problems,
                          const char **written, struct sl_error *error)
{
    static const char broken[] = "failed to parse config YAML";
    struct value *root = SL_ARENA_NEW(&config->arena, struct value);
    bool empty = false, no_memory = false;
    *written = NULL;
    if (!root)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (yaml.size > CONFIG_MAX_BYTES) {
        value_problem(problems, NULL, false, "", "the file is larger than %d bytes", CONFIG_MAX_BYTES);
        return sl_fail(error, SL_MALFORMED, broken);
    }
    bool readable = yaml_read(&config->arena, yaml, root, &empty, problems);
    if (readable && empty) {
        value_problem(problems, NULL, false, "", "config file empty");
        return sl_fail(error, SL_MALFORMED, "config file empty");
    }
    if (readable) {
        env_resolve(config, root, problems, written);
        size_t unresolved = problems->count;
        config_read(config, root, problems);
        read_sources(config, root, problems);
        config_read_scans(config, root, problems);
        const struct value *mozilla = config_find(root, "mozilla");
        config->mozilla.on = mozilla && mozilla->type == VALUE_MAP;
        config_read_eliot(config, problems); /* replaces `mozilla.sources`, which config_read_mozilla() then resolves */
        no_memory = !config_read_mozilla(config, root, problems);
        config_read_access_keys(config, root, problems);
        config_read_tokens(config, root, problems);
        config_read_transcoders(config, root, problems);
        config_check_rules(config, root, problems);
        config_check_keys(root, problems);
        drop_follow_ups(problems, unresolved); /* errors at values that env_resolve() has reported */
    }
    sort_problems(problems);
    if (no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    return problems->errors ? sl_fail(error, SL_MALFORMED, broken) : SL_OK;
}

/* Makes a configuration from the text of the file `name`; results as for config_load(). `exposed`: every user of the machine can read the
 * file, which is a problem if it has secrets. */
static enum sl_code load_text(struct sl_str yaml, const char *name, bool exposed, struct config **config,
                              struct value_problems *problems, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct value_problems own = {.arena = &arena};
    const char *written;
    *config = NULL;
    struct config *fresh = new_config(name);
    if (!fresh)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!problems)
        problems = &own;
    enum sl_code code = parse(fresh, yaml, problems, &written, error);
    if (exposed && written)
        value_problem(problems, NULL, true, written,
                      "the file contains secrets and is readable by everyone; restrict it with chmod o-r");
    sl_arena_free(&arena);
    if (code == SL_OK)
        *config = fresh;
    else
        config_release(fresh);
    return code;
}

enum sl_code config_parse(struct sl_str yaml, const char *name, struct config **config, struct value_problems *problems,
                          struct sl_error *error)
{
    return load_text(yaml, name, false, config, problems, error);
}

/* ---- files ---- */

/* Reports that the file could not be opened or read for the `reason`, an errno. SL_NOT_FOUND, SL_PERMISSION_DENIED or SL_INTERNAL. */
static enum sl_code open_failed(const char *path, int reason, struct sl_error *error)
{
    enum sl_code code = reason == ENOENT || reason == ENOTDIR ? SL_NOT_FOUND
                        : reason == EACCES || reason == EPERM ? SL_PERMISSION_DENIED
                                                              : SL_INTERNAL;
    return sl_fail(error, code, "failed to open configuration file %.300s: %s", path, strerror(reason));
}

/* Reads the file into `text`; stops after more than CONFIG_MAX_BYTES, which parse() reports. The file is not mapped, since it may change
 * meanwhile. Returns 0 or an errno. */
static int config_read_file(int fd, struct sl_buf *text)
{
    while (text->size <= CONFIG_MAX_BYTES) {
        if (!sl_buf_reserve(text, 65536))
            return ENOMEM;
        ssize_t got = read(fd, text->data + text->size, 65536);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        text->size += (size_t)got;
    }
    return 0;
}

enum sl_code config_load(const char *path, struct config **config, struct value_problems *problems,
                         struct sl_error *error)
{
    *config = NULL;
    if (!path) { /* the defaults, and Eliot's variables: problems of these are listed, but are no failure */
        struct sl_arena arena = {0};
        struct value_problems own = {.arena = &arena};
        *config = new_config(NULL);
        if (*config) {
            config_read_eliot(*config, problems ? problems : &own);
            if (!config_read_mozilla(*config, NULL, problems ? problems : &own)) {
                config_release(*config);
                *config = NULL;
            }
        }
        sl_arena_free(&arena);
        return *config ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    }
    struct sl_buf text = {0};
    struct stat st = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int reason = fd < 0 || fstat(fd, &st) != 0 ? errno : config_read_file(fd, &text);
    sl_close(fd);
    enum sl_code code = reason ? open_failed(path, reason, error)
                               : load_text(sl_buf_view(&text), path, S_ISREG(st.st_mode) && (st.st_mode & S_IROTH),
                                           config, problems, error);
    sl_buf_free(&text);
    return code;
}

void config_note_override(struct config *config, const char *key, bool environment)
{
    for (size_t i = 0; i < config_key_count; i++)
        if (strcmp(config_keys[i].path, key) == 0)
            config->origins[i] = (struct key_origin){.environment = environment, .option = !environment};
}

/* ---- problems as text ---- */

struct value config_position(const struct config *config, const char *key)
{
    struct value at = {0};
    size_t size = strlen(key);
    for (size_t i = 0; i < config_key_count; i++) {
        const char *path = config_keys[i].path;
        bool is_key = strcmp(path, key) == 0, is_below = strncmp(path, key, size) == 0 && path[size] == '.';
        if (is_key || (is_below && !at.line)) {
            at.line = config->origins[i].line;
            at.column = config->origins[i].column;
        }
    }
    return at;
}

/* Appends a problem as a line "<name>:<line>:<column>: error: <path>: <what>". */
static void add_problem(struct sl_buf *out, const char *name, const struct value_problem *problem)
{
    text_escape(out, sl_str(name), false);
    if (problem->line)
        sl_buf_printf(out, ":%u:%u", problem->line, problem->column);
    sl_buf_cstr(out, problem->info ? ": info: " : problem->warning ? ": warning: " : ": error: ");
    text_escape(out, problem->path, false);
    if (problem->path.size)
        sl_buf_cstr(out, ": ");
    text_escape(out, problem->what, false);
    sl_buf_u8(out, '\n');
}

/* Appends a line that says how many errors or warnings are not shown; nothing if `count` is 0. */
static void add_rest(struct sl_buf *out, const char *name, size_t count, bool warning)
{
    if (count == 0)
        return;
    text_escape(out, sl_str(name), false);
    sl_buf_printf(out, ": %zu more %s%s\n", count, warning ? "warning" : "error", count > 1 ? "s" : "");
}

void config_format_problems(const char *name, const struct value_problems *problems, struct sl_buf *out)
{
    size_t counts[2] = {0}; /* errors, warnings */
    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].info || counts[problems->items[i].warning]++ < MAX_SHOWN)
            add_problem(out, name, &problems->items[i]);
    for (int warning = 0; warning < 2; warning++)
        add_rest(out, name, counts[warning] > MAX_SHOWN ? counts[warning] - MAX_SHOWN : 0, warning);
}

bool config_bounded_in_redis(const struct config *config)
{
    return config->mozilla.on && config->mozilla.cache != MOZILLA_DISK;
}
