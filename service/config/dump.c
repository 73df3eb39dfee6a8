/* The effective configuration as YAML, written from the table that reads it. */
#include "config/impl.h"
#include "core/duration.h"
#include "origin/origin.h"

struct config_dump { /* the state of writing a configuration */
    const struct config *config;
    struct sl_buf *out;
    const char *previous;    /* dotted key before this one; the lines of its groups ("http:") are written */
    struct config_path path; /* inside of `sources`: the current key */
};

/* Returns the field of the struct at this offset. */
static const void *field_at(const struct config *config, size_t offset)
{
    return (const char *)config + offset;
}

static void put_indent(struct config_dump *d, unsigned depth)
{
    sl_buf_fill(d->out, ' ', (size_t)depth * 2);
}

/* Appends the text as a double-quoted YAML scalar. */
static void put_quoted(struct config_dump *d, struct sl_str text)
{
    sl_buf_u8(d->out, '"');
    text_escape(d->out, text, true);
    sl_buf_u8(d->out, '"');
}

/* Appends where the value of the key comes from, as a YAML comment that ends the line. */
static void put_origin(struct config_dump *d, const struct config_key *key)
{
    const struct key_origin *from =
        &d->config->origins[key - config_keys]; /* config_keys and origins have the same order */
    if (from->environment)
        sl_buf_cstr(d->out, " # env\n");
    else if (from->option)
        sl_buf_cstr(d->out, " # option\n");
    else if (from->line == 0)
        sl_buf_cstr(d->out, " # default\n");
    else {
        sl_buf_cstr(d->out, " # ");
        text_escape(d->out, sl_str(d->config->path), false);
        sl_buf_printf(d->out, ":%u\n", from->line);
    }
}

/* ---- values of keys ---- */

/* Appends a size in the largest unit that leaves an integer. */
static void put_size(uint64_t bytes, struct sl_buf *out)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; unit + 1 < sizeof units / sizeof *units && bytes > 0 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    sl_buf_printf(out, "%llu%s", (unsigned long long)bytes, units[unit]);
}

/* Returns the number, boolean or index of a word in the key's field; 0 for keys of other types. */
static uint64_t get_number(const struct config *config, const struct config_key *key)
{
    const void *field = field_at(config, key->offset);
    switch (key->type) {
    case KEY_BOOL: return *(const bool *)field;
    case KEY_UNSIGNED: return *(const unsigned *)field;
    case KEY_ENUM: return (uint64_t) * (const int *)field;
    case KEY_COUNT:
    case KEY_SIZE:
    case KEY_DURATION: return *(const uint64_t *)field;
    case KEY_STRING:
    case KEY_STR:
    case KEY_WORD:
    case KEY_TEXTS:
    case KEY_STRINGS:
    case KEY_HIDDEN:
    case KEY_PAIRS:
    case KEY_SOURCES: break;
    }
    return 0;
}

/* Writes a number: as duration or size if that is the key's type, or as the key's word for "no limit". */
static void put_number(struct config_dump *d, const struct config_key *key)
{
    uint64_t number = get_number(d->config, key);
    if (number == UINT64_MAX && key->none)
        sl_buf_cstr(d->out, key->none);
    else if (key->type == KEY_DURATION)
        duration_format(number, d->out);
    else if (key->type == KEY_SIZE)
        put_size(number, d->out);
    else
        sl_buf_printf(d->out, "%llu", (unsigned long long)number);
}

/* Writes a text, quoted. A URL loses its user info and query, whatever the key, so that no key shows a password. */
static void public_text(struct config_dump *d, struct sl_str text)
{
    struct sl_str scheme, rest;
    text_hide_user(text, &scheme, &rest);
    sl_buf_u8(d->out, '"');
    text_escape(d->out, scheme, true);
    text_escape(d->out, rest, true);
    sl_buf_u8(d->out, '"');
}

/* Writes a list of texts. */
static void list_value(struct config_dump *d, const struct config_key *key)
{
    const void *list = field_at(d->config, key->offset);
    size_t count = *(const size_t *)field_at(d->config, key->count_offset);
    sl_buf_u8(d->out, '[');
    for (size_t i = 0; i < count; i++) {
        sl_buf_cstr(d->out, i ? ", " : "");
        public_text(d, key->type == KEY_TEXTS ? (*(struct sl_str *const *)list)[i]
                                              : sl_str((*(const char **const *)list)[i]));
    }
    sl_buf_u8(d->out, ']');
}

/* Writes a map of texts. */
static void pairs_value(struct config_dump *d, const struct config_key *key)
{
    const struct text_pair *pairs = *(struct text_pair *const *)field_at(d->config, key->offset);
    size_t count = *(const size_t *)field_at(d->config, key->count_offset);
    sl_buf_u8(d->out, '{');
    for (size_t i = 0; i < count; i++) {
        sl_buf_cstr(d->out, i ? ", " : "");
        put_quoted(d, pairs[i].key);
        sl_buf_cstr(d->out, ": ");
        public_text(d, pairs[i].value);
    }
    sl_buf_u8(d->out, '}');
}

/* Writes a text, or null if there is none. */
static void string_value(struct config_dump *d, const char *text)
{
    if (text)
        public_text(d, sl_str(text));
    else
        sl_buf_cstr(d->out, "null");
}

/* Writes whether there is a secret, never its text. */
static void hidden_value(struct config_dump *d, const struct config_key *key)
{
    struct sl_secret secret = *(const struct sl_secret *)field_at(d->config, key->offset);
    sl_buf_cstr(d->out, secret_present(secret) ? "\"[redacted]\"" : "null");
}

/* Appends the value of a key as YAML; nothing for `sources`, which put_sources() writes. */
static void row_value(struct config_dump *d, const struct config_key *key)
{
    switch (key->type) {
    case KEY_BOOL: sl_buf_cstr(d->out, get_number(d->config, key) ? "true" : "false"); break;
    case KEY_ENUM: sl_buf_cstr(d->out, key->words[get_number(d->config, key)]); break;
    case KEY_WORD:
    case KEY_STRING: string_value(d, *(const char *const *)field_at(d->config, key->offset)); break;
    case KEY_STR: string_value(d, ((const struct sl_str *)field_at(d->config, key->offset))->data); break;
    case KEY_TEXTS:
    case KEY_STRINGS: list_value(d, key); break;
    case KEY_UNSIGNED:
    case KEY_COUNT:
    case KEY_SIZE:
    case KEY_DURATION: put_number(d, key); break;
    case KEY_PAIRS: pairs_value(d, key); break;
    case KEY_HIDDEN: hidden_value(d, key); break;
    case KEY_SOURCES: break;
    }
}

/* ---- sources, as written in the file ---- */

/* Writes a scalar of a source; "[redacted]" if its key is secret or below a secret key. */
static void scalar_value(struct config_dump *d, const struct value *value)
{
    if (key_within(path_pattern(&d->path), KEY_SECRET))
        sl_buf_cstr(d->out, "\"[redacted]\"");
    else if (value->type == VALUE_NULL)
        sl_buf_cstr(d->out, "null");
    else if (value->type == VALUE_STRING)
        public_text(d, value->string);
    else
        sl_buf_str(d->out, value->string); /* a number or boolean, as the file has it */
}

/* True if the current key of a source is written: unknown ones are not, as a misspelt key may have a secret value. */
static bool is_shown(struct config_dump *d)
{
    const struct config_key *row;
    struct sl_str pattern = path_pattern(&d->path);
    return key_within(pattern, KEY_SECRET) || key_classify(pattern, &row) != KEY_UNKNOWN;
}

/* Appends a value of a source on one line, in YAML's flow style: {a: 1, b: [2, 3]}. */
static void flow_value(struct config_dump *d, const struct value *value)
{
    bool map = value->type == VALUE_MAP;
    if (!map && value->type != VALUE_LIST) {
        scalar_value(d, value);
        return;
    }
    const char *comma = "";
    sl_buf_u8(d->out, map ? '{' : '[');
    for (size_t i = 0; i < value->count; i++) {
        struct path_mark up = map ? path_key(&d->path, value->keys[i]) : path_index(&d->path, i);
        if (!map || is_shown(d)) {
            sl_buf_cstr(d->out, comma);
            comma = ", ";
            if (map) {
                put_quoted(d, value->keys[i]);
                sl_buf_cstr(d->out, ": ");
            }
            flow_value(d, &value->items[i]);
        }
        path_up(&d->path, up);
    }
    sl_buf_u8(d->out, map ? '}' : ']');
}

/* Appends a source as an element of the list `sources`, a line for each key. */
static void put_source(struct config_dump *d, const struct value *source)
{
    const char *dash = "  - ";
    for (size_t i = 0; i < source->count; i++) {
        struct path_mark up = path_key(&d->path, source->keys[i]);
        if (is_shown(d)) {
            sl_buf_cstr(d->out, dash);
            sl_buf_str(d->out, source->keys[i]);
            sl_buf_cstr(d->out, ": ");
            flow_value(d, &source->items[i]);
            sl_buf_u8(d->out, '\n');
            dash = "    ";
        }
        path_up(&d->path, up);
    }
}

/* Writes the key `sources` as the file has it, with references resolved and without secrets. */
static void put_sources(struct config_dump *d, const struct config_key *key)
{
    const struct value *list = d->config->source_list;
    bool some = list && list->type == VALUE_LIST && list->count;
    sl_buf_cstr(d->out, some ? "sources:" : "sources: []");
    put_origin(d, key);
    struct path_mark up = path_key(&d->path, SL_STR("sources"));
    for (size_t i = 0; some && i < list->count; i++) {
        struct path_mark item = path_index(&d->path, i);
        put_source(d, &list->items[i]);
        path_up(&d->path, item);
    }
    path_up(&d->path, up);
}

/* ---- all keys ---- */

/* Writes a line ("http:") for each group of the dotted key `path` that the key before it was not in. Returns the last name of `path`, and
 * in `*depth` the number of its groups. */
static const char *open_groups(struct config_dump *d, const char *path, unsigned *depth)
{
    size_t start = 0;
    *depth = 0;
    for (const char *dot; (dot = strchr(path + start, '.')); (*depth)++) {
        size_t end = (size_t)(dot - path) + 1;
        if (strncmp(path, d->previous, end) != 0) {
            put_indent(d, *depth);
            sl_buf_printf(d->out, "%.*s:\n", (int)(end - 1 - start), path + start);
        }
        start = end;
    }
    return path + start;
}

void config_dump(const struct config *config, struct sl_buf *out)
{
    struct config_dump d = {.config = config, .out = out, .previous = ""};
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        if (key->no_effect || (!config->mozilla.on && strncmp(key->path, "mozilla.", 8) == 0))
            continue;
        if (key->type == KEY_SOURCES) {
            put_sources(&d, key);
        } else {
            unsigned depth;
            const char *name = open_groups(&d, key->path, &depth);
            put_indent(&d, depth);
            sl_buf_printf(out, "%s: ", name);
            row_value(&d, key);
            put_origin(&d, key);
        }
        d.previous = key->path;
    }
    path_free(&d.path);
}

void config_put_value(const struct config *config, const struct config_key *key, struct sl_buf *out)
{
    struct config_dump d = {.config = config, .out = out};
    if (key->type == KEY_SOURCES)
        sl_buf_cstr(out, "[]");
    else
        row_value(&d, key);
}

/* Appends the key's value, only to compare it: for a secret its text, which config_put_value() hides. */
static void value_text(const struct config *config, const struct config_key *key, struct sl_buf *out)
{
    struct config_dump d = {.config = config, .out = out};
    if (key->type == KEY_HIDDEN)
        sl_buf_str(out, secret_open(*(const struct sl_secret *)field_at(config, key->offset)));
    else
        row_value(&d, key);
}

/* True if two configurations have different values of the key. The texts are wiped, since they may be secrets. */
static bool differs(const struct config *a, const struct config *b, const struct config_key *key)
{
    struct sl_buf texts[2] = {{0}};
    value_text(a, key, &texts[0]);
    value_text(b, key, &texts[1]);
    bool same = sl_str_equal(sl_buf_view(&texts[0]), sl_buf_view(&texts[1]));
    sl_buf_wipe(&texts[0]);
    sl_buf_wipe(&texts[1]);
    return !same;
}

size_t config_differences(const struct config *a, const struct config *b, const char *path, const char **keys,
                          size_t max)
{
    size_t count = 0, size = strlen(path);
    bool below = size && path[size - 1] == '.';
    for (size_t i = 0; i < config_key_count && count < max; i++) {
        const struct config_key *key = &config_keys[i];
        bool meant = below ? strncmp(key->path, path, size) == 0 : strcmp(key->path, path) == 0;
        if (meant && differs(a, b, key))
            keys[count++] = key->path;
    }
    return count;
}
