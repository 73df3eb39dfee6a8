/* Reads `debuginfod.scan`: directories that are searched for debug files and packages. Each becomes a source, after those of `sources`. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#include "config/impl.h"
#include "core/duration.h"
#include "origin/origin.h"

struct scan_reading {
    struct config *config;
    struct value_problems *problems;
    size_t index; /* index of the entry in debuginfod.scan */
};

/* Reports an error in member `name` of the entry that is being read; "": in the entry itself. */
static void scan_report(const struct scan_reading *r, const struct value *at, const char *name, const char *what)
{
    char path[80];
    snprintf(path, sizeof path, "debuginfod.scan[%zu]%s%s", r->index, *name ? "." : "", name);
    value_problem(r->problems, at, false, path, "%s", what);
}

/* Returns the regular expression of member `name`; NULL if it is missing, or after a report if it is invalid. Compiles it only to check
 * it. */
static const char *read_pattern(const struct scan_reading *r, const struct value *map, const char *name)
{
    const struct value *value = value_get(map, name);
    int number;
    PCRE2_SIZE where;
    if (!value || value->type == VALUE_NULL)
        return NULL;
    if (!value->string.data) {
        scan_report(r, value, name, "is not a text");
        return NULL;
    }
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)value->string.data, value->string.size, PCRE2_UTF, &number, &where, NULL);
    if (!code) {
        char text[120], what[200];
        pcre2_get_error_message(number, (PCRE2_UCHAR *)text, sizeof text);
        snprintf(what, sizeof what, "is not a regular expression: %s at character %zu", text, (size_t)where);
        scan_report(r, value, name, what);
    }
    pcre2_code_free(code);
    return code ? value->string.data : NULL;
}

const char *const config_scan_kinds[] = {"files", "deb", "rpm", "tar", "zip", NULL};

/* Returns the bit SCAN_.. of the word; 0 if it is none of config_scan_kinds. */
static unsigned scan_kind_bit(struct sl_str word)
{
    for (unsigned i = 0; config_scan_kinds[i]; i++)
        if (sl_str_equal(word, sl_str(config_scan_kinds[i])))
            return 1u << i;
    return 0;
}

/* Returns the kinds of files that a scan reads, as bits SCAN_... Returns all kinds if the key is missing (`list` is NULL or null), and
 * after a report if its value is not a list of words. */
static unsigned read_kinds(const struct scan_reading *r, const struct value *list)
{
    unsigned kinds = 0;
    if (!list || list->type == VALUE_NULL)
        return SCAN_ALL_KINDS;
    if (list->type != VALUE_LIST || list->count == 0) {
        scan_report(r, list, "kinds", "is not a list of words: files deb rpm tar zip");
        return SCAN_ALL_KINDS;
    }
    for (size_t i = 0; i < list->count; i++) {
        unsigned bit = list->items[i].string.data ? scan_kind_bit(list->items[i].string) : 0;
        if (!bit)
            scan_report(r, &list->items[i], "kinds", "is not one of files deb rpm tar zip");
        kinds |= bit;
    }
    return kinds;
}

/* Returns the time between two searches of the directory; 5 minutes if the key is missing (NULL) or, after a report, no duration. 0: only
 * one search, at the start. */
static uint64_t read_interval(const struct scan_reading *r, const struct value *value)
{
    uint64_t ns = UINT64_C(300) * 1000000000;
    if (!value || value->type == VALUE_NULL)
        return ns;
    if (value->type == VALUE_INT && sl_str_equal(value->string, SL_STR("0")))
        return 0;
    if (!value->string.data || !duration_parse(value->string, &ns))
        scan_report(r, value, "interval", "is not a duration (example: 5m; 0: only once)");
    return ns;
}

/* Warns of unknown keys of an entry. */
static void check_names(const struct scan_reading *r, const struct value *map)
{
    static const char *const known[] = {"path", "include", "exclude", "kinds", "interval"};
    for (size_t i = 0; i < map->count; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || sl_str_equal(map->keys[i], sl_str(known[k]));
        char path[200];
        snprintf(path, sizeof path, "debuginfod.scan[%zu].%.100s", r->index, map->keys[i].data);
        if (!found)
            value_problem(r->problems, &map->items[i], true, path, "unknown key");
    }
}

/* Reads an entry of `debuginfod.scan`. If it has no absolute path, reports that and leaves `scan` empty. */
static void read_scan(const struct scan_reading *r, const struct value *map, struct config_scan *scan)
{
    const struct value *path = value_get(map, "path");
    if (!path || !path->string.data || !path->string.size || path->string.data[0] != '/') {
        scan_report(r, path ? path : map, "path", "is not an absolute path of a directory");
        return;
    }
    *scan = (struct config_scan){.path = path->string,
                                 .include = read_pattern(r, map, "include"),
                                 .exclude = read_pattern(r, map, "exclude"),
                                 .kinds = read_kinds(r, value_get(map, "kinds")),
                                 .interval_ns = read_interval(r, value_get(map, "interval"))};
    check_names(r, map);
}

/* Implements source_index.find of `no_index`, the index of a scanned directory until the real one is opened: finds no file. */
static size_t find_nothing(const struct source_index *index, const struct object_id *id, enum file_type type,
                           struct sl_arena *arena, struct indexed_file *files)
{
    (void)index, (void)id, (void)type, (void)arena, (void)files;
    return 0;
}
static const struct source_index no_index = {.find = find_nothing};

/* Appends a source "scan:<number>" for each entry to config->sources. `list` has the position for errors. */
static void add_sources(struct config *config, const struct value *list, struct value_problems *problems)
{
    size_t before = config->source_count, count = config->scan.count;
    struct source *all = SL_ARENA_ARRAY(&config->arena, struct source, before + count);
    for (size_t i = 0; all && i < before; i++)
        all[i] = config->sources[i];
    for (size_t i = 0; all && i < count; i++) {
        struct sl_buf id = {0};
        sl_buf_printf(&id, "scan:%zu", i);
        all[before + i] = (struct source){.id = sl_buf_move_to_arena(&id, &config->arena),
                                          .type = SOURCE_FILESYSTEM,
                                          .layout = LAYOUT_NATIVE,
                                          .configured = true,
                                          .path = config->scan.items[i].path,
                                          .index = &no_index}; /* finds nothing until the real one is opened */
        all = all[before + i].id.data ? all : NULL;            /* NULL: out of memory, which ends the loop */
    }
    if (!all) {
        value_problem(problems, list, false, "debuginfod.scan", "cannot be read: out of memory");
        return;
    }
    config->sources = all;
    config->source_count = before + count;
}

void config_read_scans(struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *list = config_find(root, "debuginfod.scan");
    if (!list || list->type == VALUE_NULL)
        return;
    if (list->type != VALUE_LIST || list->count > CONFIG_MAX_SCANS) {
        value_problem(problems, list, false, "debuginfod.scan", "is not a list of at most %d maps", CONFIG_MAX_SCANS);
        return;
    }
    size_t errors = problems->errors;
    config->scan.items = SL_ARENA_ARRAY(&config->arena, struct config_scan, list->count);
    for (size_t i = 0; config->scan.items && i < list->count && !config_has_enough_problems(problems); i++) {
        struct scan_reading r = {config, problems, i};
        if (list->items[i].type == VALUE_MAP)
            read_scan(&r, &list->items[i], &config->scan.items[config->scan.count++]);
        else
            scan_report(&r, &list->items[i], "", "is not a map");
    }
    if (problems->errors == errors) /* with an error, the configuration is rejected anyway */
        add_sources(config, list, problems);
}
