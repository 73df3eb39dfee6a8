/* Reads `ms_symcache.transcoders`: the programs that convert PDBs to SymCache files, one for each major version of that format. */
#include <stdio.h>

#include "config/impl.h"
#include "origin/origin.h"

struct transcoder_reading {
    struct config *config;
    struct value_problems *problems;
    size_t index; /* index of the entry in ms_symcache.transcoders */
};

/* Reports an error in member `name` of the entry that is being read; "": in the entry itself. Always false. */
static bool transcoder_complain(const struct transcoder_reading *r, const struct value *at, const char *name,
                                const char *what)
{
    char path[80];
    snprintf(path, sizeof path, "ms_symcache.transcoders[%zu]%s%s", r->index, *name ? "." : "", name);
    value_problem(r->problems, at, false, path, "%s", what);
    return false;
}

/* Accepts nothing before or after "<major>.<minor>.<patch>". Stops after five digits, which the largest 16-bit number has, so that the sum
 * cannot overflow. */
bool transcoder_version(struct sl_str text, unsigned version[3])
{
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        size_t begin = at;
        version[i] = 0;
        for (; at < text.size && at - begin < 5 && sl_is_digit(text.data[at]); at++)
            version[i] = version[i] * 10 + (unsigned)(text.data[at] - '0');
        if (at == begin || version[i] > (i ? 255u : 65535u))
            return false;
        if (i < 2 && !(at < text.size && text.data[at++] == '.'))
            return false;
    }
    return at == text.size;
}

/* Reads `command`, a program and its arguments. False if `list` (may be NULL) is not a list of texts or is empty, or when out of memory;
 * the caller reports that. An element that is no text is also reported here, with its position. */
static bool read_command(const struct transcoder_reading *r, const struct value *list, struct transcoder *transcoder)
{
    size_t count = list && list->type == VALUE_LIST ? list->count : 0;
    /* + 1: a NULL ends the command */
    transcoder->command = SL_ARENA_ARRAY(&r->config->arena, const char *, count + 1);
    for (size_t i = 0; transcoder->command && i < count; i++) {
        if (!list->items[i].string.data)
            return transcoder_complain(r, &list->items[i], "command", "is not a text");
        transcoder->command[i] = list->items[i].string.data;
    }
    return count && transcoder->command;
}

/* Reads `environment`, a map of environment variables for the program; `map` is NULL if the key is missing. */
static void read_environment(const struct transcoder_reading *r, const struct value *map, struct transcoder *transcoder)
{
    if (!map || map->type == VALUE_NULL)
        return;
    if (map->type != VALUE_MAP) {
        transcoder_complain(r, map, "environment", "is not a map of texts");
        return;
    }
    transcoder->environment = SL_ARENA_ARRAY(&r->config->arena, struct text_pair, map->count + 1);
    for (size_t i = 0; transcoder->environment && i < map->count; i++) {
        if (map->items[i].string.data)
            transcoder->environment[transcoder->environment_count++] =
                (struct text_pair){map->keys[i], map->items[i].string};
        else
            transcoder_complain(r, &map->items[i], "environment", "is not a text");
    }
}

/* Reads an entry of ms_symcache.transcoders. A second one of the same major version is an error, since transcoders are chosen by that
 * version. */
static void read_transcoder(const struct transcoder_reading *r, const struct value *map, struct transcoder *transcoder)
{
    const struct value *version = value_get(map, "version"), *command = value_get(map, "command");
    *transcoder = (struct transcoder){.command = NULL};
    if (!version || !version->string.data || !transcoder_version(version->string, transcoder->version))
        transcoder_complain(r, version ? version : map, "version", "is not a version (example: 3.1.0)");
    if (!read_command(r, command, transcoder))
        transcoder_complain(r, command ? command : map, "command", "is not a list of texts, program first");
    read_environment(r, value_get(map, "environment"), transcoder);
    for (const struct transcoder *other = r->config->ms_symcache.transcoders; other < transcoder; other++)
        if (other->version[0] == transcoder->version[0])
            transcoder_complain(r, version ? version : map, "version", "has the same major version as another one");
}

void config_read_transcoders(struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *list = config_find(root, "ms_symcache.transcoders");
    if (!list || list->type == VALUE_NULL)
        return;
    if (list->type != VALUE_LIST) {
        value_problem(problems, list, false, "ms_symcache.transcoders", "is not a list");
        return;
    }
    config->ms_symcache.transcoders = SL_ARENA_ARRAY(&config->arena, struct transcoder, list->count);
    for (size_t i = 0; config->ms_symcache.transcoders && i < list->count && !config_has_enough_problems(problems);
         i++) {
        struct transcoder_reading r = {config, problems, i};
        if (list->items[i].type == VALUE_MAP)
            read_transcoder(&r, &list->items[i],
                            &config->ms_symcache.transcoders[config->ms_symcache.transcoder_count++]);
        else
            transcoder_complain(&r, &list->items[i], "", "is not a map");
    }
}
