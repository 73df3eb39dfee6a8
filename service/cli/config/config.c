/* `symloom config`: checks (`check`) or prints (`show`) the configuration, or prints tables of all keys (`table`) or metrics
 * (`metrics`). */
#include "cli/cli.h"
#include "cli/config/check.h"
#include "cli/server.h"

#include "base/json_write.h"
#include "config/tree.h"
#include "core/metrics.h"

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"strict", 0, OPTION_FLAG, false, NULL, "check: Treat warnings as errors"},
    {"user", 0, OPTION_FLAG, false, NULL, "check: Check what user commands read, not the service"},
    {"connect", 0, OPTION_FLAG, false, NULL, "check: Test the connection to every source and shared cache"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print JSON (check: array of problems; show: one object)"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Writes a YAML value, with all values in it, as JSON. Numbers are written as they are in the text. */
static void put_value(const struct value *value, struct sl_json_writer *w)
{
    switch (value->type) {
    case VALUE_NULL: sl_json_put_null(w); break;
    case VALUE_BOOL: sl_json_put_boolean(w, value->boolean); break;
    case VALUE_INT:
    case VALUE_DOUBLE: sl_json_put_raw(w, value->string); break;
    case VALUE_STRING: sl_json_put_str(w, value->string); break;
    case VALUE_LIST:
        sl_json_begin_array(w);
        for (size_t i = 0; i < value->count; i++)
            put_value(&value->items[i], w);
        sl_json_end_array(w);
        break;
    case VALUE_MAP:
        sl_json_begin_object(w);
        for (size_t i = 0; i < value->count; i++) {
            sl_json_put_key_str(w, value->keys[i]);
            put_value(&value->items[i], w);
        }
        sl_json_end_object(w);
        break;
    }
}

/* Converts the YAML text of config_dump to one JSON object, without its comments ("default", "<file>:<line>"). False when out of memory. */
static bool yaml_as_json(struct sl_buf *text)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct value root;
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    bool empty; /* not used: config_dump writes all keys */
    bool good = !text->failed && yaml_read(&arena, sl_buf_view(text), &root, &empty, &problems);
    if (good)
        put_value(&root, &w);
    sl_buf_u8(&json, '\n');
    sl_buf_free(text);
    *text = json;
    sl_arena_free(&arena);
    return good && !json.failed;
}

/* `config show`: prints the configuration in force, as YAML or JSON. Returns the exit status. */
static int config_show(const struct options *o)
{
    struct config *config = NULL;
    struct sl_buf text = {0};
    int status = server_load(o, &config);
    if (status)
        return status;
    config_dump(config, &text);
    if (text.failed || (option_given(o, "json") && !yaml_as_json(&text)))
        status = server_failed("out of memory", NULL);
    else
        output_write(sl_buf_view(&text));
    sl_buf_free(&text);
    config_release(config);
    return status;
}

static bool put_metrics(struct sl_buf *out)
{
    metrics_reference(out);
    return !out->failed;
}

/* Prints the table of all configuration keys or metrics, which `put` writes. Returns the exit status. */
static int config_reference(bool (*put)(struct sl_buf *out))
{
    struct sl_buf text = {0};
    int status = put(&text) ? 0 : server_failed("out of memory", NULL);
    if (status == 0)
        output_write(sl_buf_view(&text));
    sl_buf_free(&text);
    return status;
}

/* The command: does what the first argument says: check, show, table or metrics. Only `check` takes another argument, the file. Returns the
 * exit status. */
static int config_run(const struct options *o)
{
    const char *verb = o->argument_count ? o->arguments[0] : "";
    bool checks = strcmp(verb, "check") == 0, table = strcmp(verb, "table") == 0,
         metrics = strcmp(verb, "metrics") == 0;
    if (!checks && !table && !metrics && strcmp(verb, "show") != 0)
        return options_wrong(o, "expected 'config check', 'config show', 'config table' or 'config metrics'");
    if (!options_arguments(o, checks ? 2 : 1))
        return 2;
    if (table || metrics)
        return config_reference(table ? config_table : put_metrics);
    return checks ? config_check(o, o->argument_count > 1 ? o->arguments[1] : NULL) : config_show(o);
}

const struct command command_config = {
    .name = "config",
    .summary = "check or show the configuration",
    .usage = "config check [FILE] | config show | config table | config metrics",
    .about =
        "Checks a configuration file, prints the effective configuration, or prints a table of all keys or metrics.",
    .examples = "symloom config check --strict config.yml\n"
                "symloom config show -c config.yml",
    .options = specs,
    .groups = {{"Most used", "config cache-dir strict user connect json"},
               {"Log", "log-level log-format verbose quiet"}},
    .run = config_run,
};
