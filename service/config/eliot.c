/* Environment variables of Eliot, Mozilla's service: used for keys that the file does not set, and only if Mozilla's API is
 * enabled. If the file has no section `mozilla`, ELIOT_SYMBOLS_URLS enables it with Eliot's preset. */
#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"
#include "config/impl.h"
#include "core/duration.h"

/* Returns the value of an environment variable; NULL if it is unset or empty. */
static const char *eliot_value(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* True if the file does not set the key: an environment variable may then set it, which this function records as the key's origin. */
static bool may_set(struct config *config, const char *path)
{
    bool is_unset = !config_position(config, path).line;
    if (is_unset)
        config_note_override(config, path, true);
    return is_unset;
}

/* Reports that an environment variable has an invalid value for the key `path`. */
static void bad_value(struct value_problems *problems, const char *name, const char *path)
{
    value_problem(problems, NULL, false, path, "the environment variable %s has an invalid value", name);
}

/* Sets Mozilla's symbol stores to the URLs in `list`, the value of an environment variable of Eliot: URLs with commas between them. */
static void take_urls(struct config *config, const char *list)
{
    size_t most = 1, count = 0;
    for (const char *c = list; *c; c++)
        most += *c == ',';
    struct sl_str *urls = SL_ARENA_ARRAY(&config->arena, struct sl_str, most);
    for (const char *at = list; urls && *at;) {
        size_t size = strcspn(at, ",");
        const char *copy = sl_arena_strndup(&config->arena, at, size);
        if (size && copy) /* nothing between two commas is no URL */
            urls[count++] = (struct sl_str){copy, size};
        at += size + (at[size] == ',');
    }
    config->mozilla.sources = urls;
    config->mozilla.source_count = count;
    config->mozilla.are_sources_of_eliot = true;
}

/* Sets `bind` to its first address with this port, the value of $PORT. Reports a value that is no port. */
static void take_port(struct config *config, const char *port, struct value_problems *problems)
{
    struct sl_buf bind = {0};
    const char *first = config->bind_count ? config->bind[0] : "127.0.0.1:3021", *colon = strrchr(first, ':');
    sl_buf_add(&bind, first, colon ? (size_t)(colon - first) : strlen(first));
    sl_buf_u8(&bind, ':');
    sl_buf_cstr(&bind, port);
    const char **list = SL_ARENA_ARRAY(&config->arena, const char *, 1);
    bool good = list && !text_is_listener(sl_buf_view(&bind)); /* NULL: nothing is wrong with it */
    sl_buf_u8(&bind, '\0');
    struct sl_str kept = sl_buf_move_to_arena(&bind, &config->arena);
    if (!good || !kept.data) {
        bad_value(problems, "PORT", "bind");
        return;
    }
    list[0] = kept.data;
    config->bind = list;
    config->bind_count = 1;
}

/* Parses a size such as "1gb" or "1gib", in which Eliot ignores case; size_parse() needs "GB" and "GiB". False if it is no size. */
static bool take_size(const char *text, uint64_t *bytes)
{
    char upper[32];
    size_t size = 0;
    for (; text[size] && size < sizeof upper; size++) /* all letters but `i` become upper case: "1gib" "1GiB" */
        upper[size] =
            (char)(text[size] >= 'a' && text[size] <= 'z' && text[size] != 'i' ? text[size] - 32 : text[size]);
    return !text[size] && size_parse((struct sl_str){upper, size}, bytes);
}

/* Sets the log level to the one that corresponds to a level of Python's logging; reports any other word. */
static void take_level(struct config *config, const char *level, struct value_problems *problems)
{
    static const struct {
        const char *theirs;
        char ours[8];
    } levels[] = {{"CRITICAL", "error"}, {"ERROR", "error"}, {"WARNING", "warn"}, {"INFO", "info"}, {"DEBUG", "debug"}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcasecmp(level, levels[i].theirs) == 0) {
            config->log_level = (char *)(uintptr_t)levels[i].ours;
            return;
        }
    bad_value(problems, "ELIOT_LOGGING_LEVEL", "logging.level");
}

/* Sets the statsd server to "host:port", or "[host]:port" for an IPv6 address; reports an invalid one. */
static void take_statsd(struct config *config, const char *host, const char *port, struct value_problems *problems)
{
    struct sl_buf server = {0};
    bool bare_v6 = strchr(host, ':') != NULL;
    sl_buf_printf(&server, bare_v6 ? "[%s]:%s" : "%s:%s", host, port);
    struct sl_str kept = sl_buf_move_to_arena(&server, &config->arena);
    /* a copy with a NUL at its end */
    const char *text = kept.data ? sl_arena_strndup(&config->arena, kept.data, kept.size) : NULL;
    if (text && !text_is_statsd(kept))
        config->metrics.statsd = text;
    else
        bad_value(problems, "ELIOT_STATSD_HOST", "metrics.statsd");
}

void config_read_eliot(struct config *config, struct value_problems *problems)
{
    const char *urls = eliot_value("ELIOT_SYMBOLS_URLS"), *value;
    if (urls && !config->mozilla.on && may_set(config, "mozilla.compat")) {
        config->mozilla.compat = MOZILLA_ELIOT;
        config_apply_compat(config);
    }
    config->mozilla.on |= urls != NULL;
    if (!config->mozilla.on)
        return;
    if (urls && may_set(config, "mozilla.sources"))
        take_urls(config, urls);
    if ((value = eliot_value("PORT")) && may_set(config, "bind"))
        take_port(config, value, problems);
    if ((value = eliot_value("ELIOT_SYMBOLS_CACHE_DIR")) && may_set(config, "cache_dir"))
        config->cache_dir = sl_arena_strndup(&config->arena, value, strlen(value));
    if ((value = eliot_value("ELIOT_SYMBOLS_CACHE_MAX_SIZE")) && may_set(config, "mozilla.lru.max_size") &&
        !take_size(value, &config->bounded.max_size))
        bad_value(problems, "ELIOT_SYMBOLS_CACHE_MAX_SIZE", "mozilla.lru.max_size");
    if ((value = eliot_value("ELIOT_LOGGING_LEVEL")) && may_set(config, "logging.level"))
        take_level(config, value, problems);
    const char *statsd_host = eliot_value("ELIOT_STATSD_HOST"), *statsd_port = eliot_value("ELIOT_STATSD_PORT");
    /* $STATSD_SERVER, which config_defaults() has read, takes precedence */
    if ((statsd_host || statsd_port) && !config->metrics.statsd && may_set(config, "metrics.statsd"))
        take_statsd(config, statsd_host ? statsd_host : "localhost", statsd_port ? statsd_port : "8124", problems);
    if ((value = eliot_value("ELIOT_HOSTNAME"))) /* no key sets this */
        config->metrics.host = sl_arena_strndup(&config->arena, value, strlen(value));
}
