/* Stores the values of the file in the fields of struct config, by the table of keys. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/impl.h"
#include "core/duration.h"
#include "core/loop.h"
#include "core/memory.h"
#include "origin/origin.h"

/* Durations and sizes are added to clocks and offsets, and must not overflow. */
#define LARGEST ((uint64_t)INT64_MAX)

struct config_reading { /* a key with its value in the file */
    struct config *config;
    const struct config_key *key;
    const struct value *value;
    struct value_problems *problems;
};

/* Returns the field of the struct at an offset of the table. */
static void *field_at(struct config *config, size_t offset)
{
    return (char *)config + offset;
}

/* Stores a number, boolean or index of a word in the field of a key, in the type that the key has. */
static void store_number(struct config *config, const struct config_key *key, uint64_t number)
{
    void *field = field_at(config, key->offset);
    switch (key->type) {
    case KEY_BOOL: *(bool *)field = number != 0; break;
    case KEY_UNSIGNED: *(unsigned *)field = (unsigned)number; break;
    case KEY_ENUM: *(int *)field = (int)number; break;
    case KEY_COUNT:
    case KEY_SIZE:
    case KEY_DURATION: *(uint64_t *)field = number; break;
    case KEY_STRING:
    case KEY_STR:
    case KEY_WORD:
    case KEY_TEXTS:
    case KEY_STRINGS:
    case KEY_HIDDEN:
    case KEY_PAIRS:
    case KEY_SOURCES: break;
    }
}

/* Reports an error in the value, which the message begins with: "\"5x\" is not a duration". */
static void complain(struct config_reading *r, const char *what)
{
    char value[120];
    value_problem(r->problems, r->value, false, r->key->path, "%s %s", scalar_describe(r->value, value), what);
}

/* True if the value is the word (`null` or `off`) by which this key says "none" or "no limit". */
static bool is_none(const struct config_key *key, const struct value *value)
{
    if (!key->none)
        return false;
    if (value->type == VALUE_NULL)
        return strcmp(key->none, "null") == 0;
    return value->type == VALUE_STRING && sl_str_equal(value->string, sl_str(key->none));
}

/* ---- numbers ---- */

/* Appends a limit for a message: a duration with units, a size in bytes, any other number as it is. */
static void format_limit(enum key_type type, uint64_t number, struct sl_buf *out)
{
    if (type == KEY_DURATION)
        duration_format(number, out);
    else
        sl_buf_printf(out, "%llu%s", (unsigned long long)number, type == KEY_SIZE ? " bytes" : "");
}

/* Stores a number if it is within the key's range; else reports it, or if it is too small for a key with `raise`, stores the minimum.
 * `negative`: the number is below zero. */
static void take_number(struct config_reading *r, uint64_t number, bool negative)
{
    const struct config_key *key = r->key;
    /* max 0: the key has no limit of its own */
    uint64_t max = key->max ? key->max : key->type == KEY_UNSIGNED ? UINT_MAX : LARGEST;
    bool below = negative || number < key->min, above = !negative && number > max;
    if (below && key->raise)
        number = key->min;
    else if (below || above) {
        struct sl_buf text = {0};
        sl_buf_cstr(&text, below ? "is too small; the minimum is " : "is too large; the maximum is ");
        format_limit(key->type, below ? key->min : max, &text);
        sl_buf_u8(&text, '\0');
        complain(r, text.failed ? "is out of range" : (const char *)text.data);
        sl_buf_free(&text);
        return;
    }
    store_number(r->config, key, number);
}

/* Chooses the message for a key by its word for "none", so that the message names it among the valid values: no such word, `null`, or
 * `off`. */
static const char *message_by_none(const struct config_key *key, const char *without, const char *with_null,
                                   const char *with_off)
{
    return !key->none ? without : strcmp(key->none, "null") == 0 ? with_null : with_off;
}

/* Sets `*number` and `*negative` to an integer; one that exceeds 64 bits, which the tree has as VALUE_DOUBLE, becomes UINT64_MAX. False if
 * the value is no integer. */
static bool get_integer(const struct value *value, uint64_t *number, bool *negative)
{
    const char *text = value->string.data;
    *number = value->type == VALUE_INT ? value->integer : UINT64_MAX;
    *negative = value->type == VALUE_INT ? value->negative : value->type == VALUE_DOUBLE && text[0] == '-';
    if (value->type != VALUE_DOUBLE)
        return value->type == VALUE_INT;
    text += text[0] == '-' || text[0] == '+';
    return text[strspn(text, "0123456789")] == '\0';
}

/* Stores an integer, or reports another value. */
static void read_count(struct config_reading *r)
{
    uint64_t number;
    bool negative;
    if (get_integer(r->value, &number, &negative))
        take_number(r, number, negative);
    else
        complain(r,
                 message_by_none(r->key, "is not an integer", "is not an integer or null", "is not an integer or off"));
}

/* Stores a size: a number of bytes, or a text with a unit. Reports another value. */
static void read_size(struct config_reading *r)
{
    uint64_t bytes;
    bool negative;
    if (get_integer(r->value, &bytes, &negative))
        take_number(r, bytes, negative);
    else if (r->value->type == VALUE_STRING && size_parse(r->value->string, &bytes))
        take_number(r, bytes, false);
    else
        complain(r, message_by_none(r->key, "is not a size (examples: 512, 64KiB, 1GiB)",
                                    "is not a size (examples: 512, 64KiB, 1GiB, null)",
                                    "is not a size (examples: 512, 64KiB, 1GiB, off)"));
}

/* Stores a duration, a text with units: "90s". Reports any other value; also a number, whose unit would be unclear. */
static void read_duration(struct config_reading *r)
{
    uint64_t ns;
    if (r->value->type == VALUE_STRING && duration_parse(r->value->string, &ns))
        take_number(r, ns, false);
    else
        complain(r, message_by_none(r->key, "is not a duration (examples: 30s, 5m, 1h 30m, 7days)",
                                    "is not a duration (examples: 30s, 5m, 1h 30m, 7days, null)",
                                    "is not a duration (examples: 30s, 5m, 1h 30m, 7days, off)"));
}

/* Stores true or false, or reports another value. */
static void read_bool(struct config_reading *r)
{
    if (r->value->type == VALUE_BOOL)
        store_number(r->config, r->key, r->value->boolean);
    else
        complain(r, "is not true or false");
}

/* ---- texts ---- */

/* True if the value can be used as a text: a string, or a number or boolean, whose text is the one in the file. */
static bool is_text(const struct value *value)
{
    return value->type == VALUE_STRING || value->type == VALUE_INT || value->type == VALUE_DOUBLE ||
           value->type == VALUE_BOOL;
}

void config_report_not_one_of(struct value_problems *problems, const struct value *value, const char *path,
                              const char *const *words)
{
    struct sl_buf text = {0};
    char what[120];
    for (const char *const *word = words; *word; word++)
        sl_buf_printf(&text, "%s%s", word == words ? "is not one of " : " ", *word);
    sl_buf_u8(&text, '\0');
    value_problem(problems, value, false, path, "%s %s", scalar_describe(value, what),
                  text.failed ? "is unknown" : (const char *)text.data);
    sl_buf_free(&text);
}

/* Returns the index of the value in `words`, a NULL-terminated list; -1 if it is none of them. */
static int index_among(const struct value *value, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (is_text(value) && sl_str_equal(value->string, sl_str(words[i])))
            return i;
    return -1;
}

/* True if the value is a valid text for the key. It must be one of the key's words, if there are any, and accepted by the key's check; it
 * may be empty only if the key's default is. Else reports what is wrong. */
static bool good_text(struct config_reading *r, const struct value *value)
{
    struct config_reading at = {r->config, r->key, value, r->problems}; /* `value` may be an element of r->value */
    if (!is_text(value)) {
        complain(&at, "is not a text");
        return false;
    }
    bool may_be_empty = r->key->text && !*r->key->text;
    if (value->string.size == 0 && !may_be_empty) {
        value_problem(r->problems, value, false, r->key->path, "the text is empty%s",
                      r->key->none ? ", null turns it off" : "");
        return false;
    }
    if (r->key->words && index_among(value, r->key->words) < 0) {
        config_report_not_one_of(r->problems, value, r->key->path, r->key->words);
        return false;
    }
    const char *wrong = r->key->check ? r->key->check(value->string) : NULL;
    if (wrong) {
        char what[120];
        value_problem(r->problems, value, false, r->key->path, "%s: %s", scalar_describe(value, what), wrong);
    }
    return !wrong;
}

/* Stores a text, as struct sl_str or as a C string, by the type of the key. */
static void config_read_string(struct config_reading *r)
{
    void *field = field_at(r->config, r->key->offset);
    if (!good_text(r, r->value))
        return;
    if (r->key->type == KEY_STR)
        *(struct sl_str *)field = r->value->string;
    else
        *(const char **)field = r->value->string.data;
}

/* Stores a secret. A value that is no text, or an empty one, is reported without being shown. */
static void read_hidden(struct config_reading *r)
{
    if (is_text(r->value) && r->value->string.size)
        ((struct sl_secret *)field_at(r->config, r->key->offset))->hidden = r->value->string;
    else
        value_problem(r->problems, r->value, false, r->key->path, "the value is not a text");
}

/* Stores one of the key's words: as text (KEY_WORD), or as its index among the words (KEY_ENUM). Reports any other value. */
static void read_word(struct config_reading *r)
{
    int index = index_among(r->value, r->key->words);
    if (index < 0)
        config_report_not_one_of(r->problems, r->value, r->key->path, r->key->words);
    else if (r->key->type == KEY_WORD)
        *(char **)field_at(r->config, r->key->offset) = (char *)(uintptr_t)r->value->string.data;
    else
        store_number(r->config, r->key, (uint64_t)index);
}

/* Stores a list of texts, null as an empty one; for keys with `one`, also a text alone. Invalid elements are reported and dropped. */
static void read_list(struct config_reading *r)
{
    const struct value *items = r->value->items;
    size_t count = r->value->count, good = 0;
    if (r->key->one && is_text(r->value)) { /* a single element, written without a list */
        items = r->value;
        count = 1;
    } else if (r->value->type == VALUE_NULL) {
        count = 0;
    } else if (r->value->type != VALUE_LIST) {
        complain(r, "is not a list");
        return;
    }
    if (count < r->key->min) { /* of a list, `min` is the number of elements */
        value_problem(r->problems, r->value, false, r->key->path, "the list is empty");
        return;
    }
    /* both forms of a list: the type of the key decides which one is stored */
    struct sl_str *texts = SL_ARENA_ARRAY(&r->config->arena, struct sl_str, count);
    const char **strings = SL_ARENA_ARRAY(&r->config->arena, const char *, count);
    if (count && (!texts || !strings)) {
        complain(r, "cannot be read: out of memory");
        return;
    }
    for (size_t i = 0; i < count && !config_has_enough_problems(r->problems); i++) {
        if (good_text(r, &items[i])) {
            texts[good] = items[i].string;
            strings[good++] = items[i].string.data;
        }
    }
    if (r->key->type == KEY_TEXTS)
        *(struct sl_str **)field_at(r->config, r->key->offset) = texts;
    else
        *(const char ***)field_at(r->config, r->key->offset) = strings;
    *(size_t *)field_at(r->config, r->key->count_offset) = good;
}

/* Stores a map of texts as pairs; invalid values are reported and dropped. */
static void read_pairs(struct config_reading *r)
{
    const struct value *map = r->value;
    size_t count = map->type == VALUE_MAP ? map->count : 0, good = 0;
    if (map->type != VALUE_MAP && map->type != VALUE_NULL)
        complain(r, "is not a map of keys");
    struct text_pair *pairs = SL_ARENA_ARRAY(&r->config->arena, struct text_pair, count);
    for (size_t i = 0; pairs && i < count && !config_has_enough_problems(r->problems); i++)
        if (good_text(r, &map->items[i]))
            pairs[good++] = (struct text_pair){map->keys[i], map->items[i].string};
    *(struct text_pair **)field_at(r->config, r->key->offset) = pairs;
    *(size_t *)field_at(r->config, r->key->count_offset) = good;
}

/* ---- a key ---- */

/* Reads the value of one key by its type. `sources` is read later, by read_sources() in config.c. */
static void read_value(struct config_reading *r)
{
    switch (r->key->type) {
    case KEY_BOOL: read_bool(r); break;
    case KEY_UNSIGNED:
    case KEY_COUNT: read_count(r); break;
    case KEY_SIZE: read_size(r); break;
    case KEY_DURATION: read_duration(r); break;
    case KEY_STRING:
    case KEY_STR: config_read_string(r); break;
    case KEY_WORD:
    case KEY_ENUM: read_word(r); break;
    case KEY_TEXTS:
    case KEY_STRINGS: read_list(r); break;
    case KEY_HIDDEN: read_hidden(r); break;
    case KEY_PAIRS: read_pairs(r); break;
    case KEY_SOURCES: break;
    }
}

/* Stores "none": NULL for texts, the maximum for numbers, which means no limit or never. */
static void read_none(struct config_reading *r)
{
    if (r->key->type == KEY_STRING)
        *(const char **)field_at(r->config, r->key->offset) = NULL;
    else if (r->key->type == KEY_STR)
        *(struct sl_str *)field_at(r->config, r->key->offset) = (struct sl_str){NULL, 0};
    else if (r->key->type == KEY_HIDDEN)
        *(struct sl_secret *)field_at(r->config, r->key->offset) = (struct sl_secret){0};
    else
        store_number(r->config, r->key, UINT64_MAX);
}

const struct value *config_find(const struct value *root, const char *path)
{
    while (root) {
        char name[CONFIG_MAX_KEY + 1];
        size_t size = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)size, path);
        root = value_get(root, name);
        if (!path[size])
            break;
        path += size + 1;
    }
    return root;
}

/* ---- all keys ---- */

/* Sets the default of a list: the words of key->text, which blanks separate. Nothing when out of memory. */
static void set_texts(struct config *config, const struct config_key *key)
{
    size_t count = 1;
    for (const char *at = key->text; *at; at++)
        count += *at == ' ';
    struct sl_str *texts = SL_ARENA_ARRAY(&config->arena, struct sl_str, count);
    if (!texts)
        return;
    const char *at = key->text;
    for (size_t i = 0; i < count; i++) {
        texts[i] = (struct sl_str){at, strcspn(at, " ")};
        at += texts[i].size + 1;
    }
    *(struct sl_str **)field_at(config, key->offset) = texts;
    *(size_t *)field_at(config, key->count_offset) = count;
}

/* Stores the default that the table has for the key; lists without one stay empty. */
static void set_default(struct config *config, const struct config_key *key)
{
    if (key->type == KEY_TEXTS && key->text)
        set_texts(config, key);
    else if (key->type == KEY_WORD)
        *(char **)field_at(config, key->offset) = (char *)(uintptr_t)key->text;
    else if (key->type == KEY_STRING)
        *(const char **)field_at(config, key->offset) = key->text;
    else
        store_number(config, key, key->value);
}

/* Returns the default of `conversion.max_memory`: the default of `memory.request_budget`, but at most 8 GiB. */
static uint64_t default_conversion_memory(void)
{
    uint64_t most = UINT64_C(8) << 30, budget = memory_default_budget();
    return budget < most ? budget : most;
}

/* Sets the defaults: first those in the table of keys, then those that depend on the machine, on a container or on another key. */
void config_defaults(struct config *config)
{
    static const char *container_bind[] = {"0.0.0.0:3021"}, *local_bind[] = {"127.0.0.1:3021"};
    for (size_t i = 0; i < config_key_count; i++)
        set_default(config, &config_keys[i]);
    bool container = config_container_is_set() ||
                     (!config->path && config_container_is_detected()); /* path NULL: no configuration file */
    static struct sl_str protected_groups[] = {{"symbols", 7}, {"admin", 5}};
    config->auth.require = protected_groups;
    config->auth.require_count = sizeof protected_groups / sizeof *protected_groups;
    static struct sl_str mozilla_store[] = {{"https://symbols.mozilla.org/try/", 32}}, all_sources[] = {{"all", 3}};
    config->mozilla.sources = mozilla_store;
    config->mozilla.fallback_sources = all_sources;
    config->mozilla.source_count = config->mozilla.fallback_count = 1;
    config->mozilla.fallback_all = true;
    const char *statsd = getenv("STATSD_SERVER");
    if (statsd && *statsd && !text_is_statsd(sl_str(statsd))) /* an invalid address is ignored */
        config->metrics.statsd = statsd;
    static const char *any_origin[] = {"*"};
    config->http.mozilla_origins = any_origin;
    config->http.mozilla_origin_count = 1;
    config->bind = container ? container_bind : local_bind;
    config->bind_count = 1;
    config->cache_dir = container ? "/data" : NULL;
    config->transcoded.max_unused_for = config->derived.max_unused_for;
    config->transcoded.retry_misses_after_public = config->transcoded.retry_misses_after;
    config->transcoded.retry_malformed_after = config->transcoded.retry_misses_after;
    /* kept minidumps (diagnostics) are no results that could be retried */
    config->diagnostics.retry_misses_after = DURATION_NEVER;
    config->diagnostics.retry_misses_after_public = DURATION_NEVER;
    config->diagnostics.retry_malformed_after = DURATION_NEVER;

    config->bounded.kind = "mozilla_syms";
    config->bounded.redis_url_key = "mozilla.redis.url";
    config->bounded.lifetimes.max_unused_for = DURATION_NEVER;
    config->bounded.lifetimes.retry_misses_after_public = config->bounded.lifetimes.retry_misses_after;
    config->bounded.lifetimes.retry_malformed_after = config->bounded.lifetimes.retry_misses_after;

    config->http.max_connections = loop_default_connections();
    config->memory.request_budget = memory_default_budget();
    config->conversion.max_memory = default_conversion_memory();
}

void config_read(struct config *config, const struct value *root, struct value_problems *problems)
{
    for (size_t i = 0; i < config_key_count && !config_has_enough_problems(problems); i++) {
        struct config_reading r = {config, &config_keys[i], config_find(root, config_keys[i].path), problems};
        if (!r.value)
            continue;
        config->origins[i].line = r.value->line;
        config->origins[i].column = r.value->column;
        if (is_none(r.key, r.value))
            read_none(&r);
        else
            read_value(&r);
        if (r.key->then) /* sets fields that depend on this key */
            r.key->then(config);
    }
}
