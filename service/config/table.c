/* The reference of the configuration, generated from the table that reads it: a chapter and a row in Markdown for each key. */
#include "config/impl.h"

static const struct key_about *about_of(const char *path)
{
    for (size_t i = 0; i < key_about_count; i++)
        if (strcmp(key_abouts[i].path, path) == 0)
            return &key_abouts[i];
    return NULL;
}

static void table_title(struct sl_buf *out, const struct key_about *about)
{
    if (about && about->title)
        sl_buf_printf(out, "\n## %s\n\n| key | | default | |\n|---|---|---|---|\n", about->title);
}

static void table_words(struct sl_buf *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        sl_buf_printf(out, "%s`%s`", i ? ", " : "", words[i]);
}

static void table_type(struct sl_buf *out, const struct key *key)
{
    static const char *const names[] = {
        [KEY_BOOL] = "bool",         [KEY_UNSIGNED] = "integer", [KEY_COUNT] = "integer", [KEY_SIZE] = "size",
        [KEY_DURATION] = "duration", [KEY_STRING] = "text",      [KEY_STR] = "text",      [KEY_WORD] = "word",
        [KEY_ENUM] = "word",         [KEY_TEXTS] = "list",       [KEY_STRINGS] = "list",  [KEY_HIDDEN] = "secret",
        [KEY_PAIRS] = "map",         [KEY_SOURCES] = "list",
    };
    if (key->type == KEY_WORD || key->type == KEY_ENUM)
        table_words(out, key->words);
    else
        sl_buf_cstr(out, names[key->type]);
    if (key->none)
        sl_buf_printf(out, " or `%s`", key->none);
}

static void table_row(struct sl_buf *out, const struct config *defaults, const struct key *key)
{
    const struct key_about *about = about_of(key->path);
    table_title(out, about);
    sl_buf_printf(out, "| `%s` | ", key->path);
    table_type(out, key);
    sl_buf_cstr(out, " | ");
    if (about && about->usual) {
        sl_buf_cstr(out, about->usual);
    } else {
        sl_buf_u8(out, '`');
        config_put_value(defaults, key, out);
        sl_buf_u8(out, '`');
    }
    sl_buf_printf(out, " | %s |\n", about ? about->text : "");
}

static bool has_row(const char *path)
{
    for (size_t i = 0; i < config_key_count; i++)
        if (strcmp(config_keys[i].path, path) == 0)
            return true;
    return false;
}

/* Keys of maps in lists, which have no rows. */
static void table_listed(struct sl_buf *out, const struct key_about *about)
{
    table_title(out, about);
    sl_buf_printf(out, "| `%s` | %s | %s | %s |\n", about->path, about->type ? about->type : "", about->usual,
                  about->text);
}

bool config_table(struct sl_buf *out)
{
    struct config *defaults = NULL;
    struct sl_error error = {0};
    if (config_parse(SL_STR("{}"), "defaults", &defaults, NULL, &error) != SL_OK)
        return false;
    sl_buf_cstr(
        out,
        "# The keys of the configuration\n\nMade by `symloom config table` of the table that the program reads them "
        "by. "
        "A key `a.b` is written as\n`b:` in the map `a:`. Durations are `90s`, `1h 30m`, sizes `64KiB`, `1GiB` or "
        "bytes; "
        "`${NAME}` as a whole value is\ntaken from the environment, and a secret `x` may be in the file that `x_file` "
        "names.\n");
    for (size_t i = 0; i < config_key_count; i++)
        if (!config_keys[i].no_effect)
            table_row(out, defaults, &config_keys[i]);
    for (size_t i = 0; i < key_about_count; i++)
        if (key_abouts[i].type && !has_row(key_abouts[i].path))
            table_listed(out, &key_abouts[i]);
    sl_buf_cstr(out, "\n## Without effect\n\nThese are accepted with a warning, so that files of the services that "
                     "this one replaces can be used:\n\n");
    key_list_no_effect(out);
    config_release(defaults);
    return !out->failed;
}
