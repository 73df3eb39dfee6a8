/* `symloom dump-syms`: paths of source files rewritten to where the sources are kept.
 *
 *     source        /rustc/([a-f0-9]+)/(.*)          a regular expression
 *     destination   git:x/rust:{2}:{1}               {N} group, {name} variable, {digest} of the file
 *
 * The first mapping that matches a path says what becomes of it. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "cli/dump_syms.h"

#include "base/map.h"

#include <openssl/evp.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/json.h"

enum { MAX_GROUPS = 100 };

struct piece {
    enum { PIECE_TEXT, PIECE_GROUP, PIECE_DIGEST, PIECE_UPPER_DIGEST } kind;
    unsigned group;
    struct sl_str text;
};

struct rule {
    pcre2_code *source;
    struct piece *pieces;
    size_t piece_count;
    struct sl_str *files; /* the only paths it is for; none: all */
    size_t file_count;
    struct rule *next;
};

struct path_mapping {
    struct sl_arena arena;
    struct sl_map variables; /* to struct sl_str */
    struct rule *rules, **last;
    struct sl_buf scratch;
};

static struct sl_str keep(struct path_mapping *m, struct sl_str text)
{
    char *copy = sl_arena_strndup(&m->arena, text.data ? text.data : "", text.size);
    return (struct sl_str){copy, copy ? text.size : 0};
}

static bool set_variable(struct path_mapping *m, struct sl_str name, struct sl_str value)
{
    struct sl_str key = keep(m, name), *kept = SL_ARENA_NEW(&m->arena, struct sl_str);
    void **slot = key.data && kept ? sl_map_slot(&m->variables, key, NULL) : NULL;
    if (!slot)
        return false;
    *kept = keep(m, value);
    *slot = kept;
    return kept->data != NULL;
}

/* ---- reading ---- */

static int usage(const char *message, const char *what)
{
    char text[600];
    snprintf(text, sizeof text, message, what);
    return options_wrong("dump-syms", "%s", text);
}

static bool parse_action(const struct path_mapping *m, struct sl_str name, struct piece *piece)
{
    unsigned group = 0;
    for (size_t i = 0; i < name.size && group < MAX_GROUPS; i++)
        group = name.data[i] >= '0' && name.data[i] <= '9' ? group * 10 + (unsigned)(name.data[i] - '0') : MAX_GROUPS;
    const struct sl_str *variable = sl_map_get(&m->variables, name);
    if (name.size && group < MAX_GROUPS)
        *piece = (struct piece){.kind = PIECE_GROUP, .group = group};
    else if (sl_str_equal(name, SL_STR("digest")))
        *piece = (struct piece){.kind = PIECE_DIGEST};
    else if (sl_str_equal(name, SL_STR("DIGEST")))
        *piece = (struct piece){.kind = PIECE_UPPER_DIGEST};
    else if (variable)
        *piece = (struct piece){.kind = PIECE_TEXT, .text = *variable};
    else
        return false;
    return true;
}

static int parse_destination(struct path_mapping *m, struct rule *rule, const char *text)
{
    rule->pieces = SL_ARENA_ARRAY(&m->arena, struct piece, strlen(text) + 1);
    struct sl_str kept = keep(m, sl_str(text));
    if (!rule->pieces || !kept.data)
        return report(1, "out of memory", NULL);
    for (const char *at = kept.data, *end = at + kept.size; at < end;) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        struct piece *piece = &rule->pieces[rule->piece_count++];
        if (*at != '{') {
            size_t size = strcspn(at, "{");
            *piece = (struct piece){.kind = PIECE_TEXT, .text = {at, size}};
            at += size;
            continue;
        }
        struct sl_str name = {at + 1, close ? (size_t)(close - at) - 1 : strlen(at + 1)};
        char shown[100];
        snprintf(shown, sizeof shown, SL_STR_FMT, SL_STR_ARG(name));
        if (!close || !parse_action(m, name, piece))
            return usage("Invalid action %s in mapping string", shown);
        at = close + 1;
    }
    return 0;
}

static int add_rule(struct path_mapping *m, const char *source, const char *destination, struct rule **made)
{
    struct rule *rule = SL_ARENA_NEW(&m->arena, struct rule);
    int number;
    PCRE2_SIZE offset;
    if (!rule)
        return report(1, "out of memory", NULL);
    *m->last = rule;
    m->last = &rule->next;
    *made = rule;
    rule->source = pcre2_compile((PCRE2_SPTR)source, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &number, &offset, NULL);
    if (!rule->source)
        return usage("'%s' is no regular expression", source);
    return parse_destination(m, rule, destination);
}

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value;
    return json_object_object_get_ex(object, key, &value) && json_object_is_type(value, json_type_string)
               ? json_object_get_string(value)
               : NULL;
}

static int read_rule(struct path_mapping *m, struct json_object *item)
{
    struct json_object *files = NULL;
    struct rule *rule;
    const char *source = text_of(item, "source"), *destination = text_of(item, "destination");
    if (!source || !destination)
        return report(1, "a mapping needs \"source\" and \"destination\"", NULL);
    int status = add_rule(m, source, destination, &rule);
    if (status || !json_object_object_get_ex(item, "files", &files) || !json_object_is_type(files, json_type_array))
        return status;
    size_t count = json_object_array_length(files);
    rule->files = SL_ARENA_ARRAY(&m->arena, struct sl_str, count + 1);
    for (size_t i = 0; rule->files && i < count; i++) {
        struct json_object *path = json_object_array_get_idx(files, i);
        if (json_object_is_type(path, json_type_string))
            rule->files[rule->file_count++] = keep(m, sl_str(json_object_get_string(path)));
    }
    return rule->files ? 0 : report(1, "out of memory", NULL);
}

static int read_variables(struct path_mapping *m, const struct options *o, struct json_object *file)
{
    struct json_object *variables;
    size_t count;
    const char *const *given = option_values(o, "mapping-var", &count);
    if (file && json_object_object_get_ex(file, "variables", &variables) &&
        json_object_is_type(variables, json_type_object)) {
        json_object_object_foreach(variables, key, value)
        {
            if (!set_variable(m, sl_str(key), sl_str(json_object_get_string(value))))
                return report(1, "out of memory", NULL);
        }
    }
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(given[i], '=');
        if (!equals)
            return usage("--mapping-var: '%s' is not NAME=VALUE", given[i]);
        if (!set_variable(m, (struct sl_str){given[i], (size_t)(equals - given[i])}, sl_str(equals + 1)))
            return report(1, "out of memory", NULL);
    }
    return 0;
}

static int read_rules(struct path_mapping *m, const struct options *o, struct json_object *file)
{
    struct json_object *list;
    struct rule *rule;
    size_t sources, destinations;
    const char *const *source = option_values(o, "mapping-src", &sources);
    const char *const *destination = option_values(o, "mapping-dest", &destinations);
    int status = read_variables(m, o, file);
    if (sources != destinations)
        return options_wrong("dump-syms", "--mapping-src and --mapping-dest come in pairs");
    if (file && json_object_object_get_ex(file, "mappings", &list) && json_object_is_type(list, json_type_array))
        for (size_t i = 0; i < json_object_array_length(list) && status == 0; i++)
            status = read_rule(m, json_object_array_get_idx(list, i));
    for (size_t i = 0; i < sources && status == 0; i++)
        status = add_rule(m, source[i], destination[i], &rule);
    return status;
}

static int read_file(const char *path, struct json_object **file)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    if (sl_map_file(path, &mapping, &error) != SL_OK)
        return report(1, error.message, NULL);
    struct sl_str text = {(const char *)mapping.bytes.data, mapping.bytes.size};
    enum sl_code code = json_parse(text, file, &error);
    sl_unmap(&mapping);
    if (code == SL_OK && json_object_is_type(*file, json_type_object))
        return 0;
    return report(1, "the mapping file is no JSON object", error.message);
}

int path_mapping_read(const struct options *o, struct path_mapping **mapping)
{
    const char *path = option_value(o, "mapping-file", NULL);
    struct json_object *file = NULL;
    *mapping = NULL;
    if (!path && !option_given(o, "mapping-src") && !option_given(o, "mapping-dest"))
        return 0;
    int status = path ? read_file(path, &file) : 0;
    struct path_mapping *m = status == 0 ? calloc(1, sizeof *m) : NULL;
    if (m) {
        *mapping = m;
        m->last = &m->rules;
        status = read_rules(m, o, file);
    }
    json_object_put(file);
    return status == 0 && !m ? report(1, "out of memory", NULL) : status;
}

void path_mapping_free(struct path_mapping *m)
{
    if (!m)
        return;
    for (struct rule *rule = m->rules; rule; rule = rule->next)
        pcre2_code_free(rule->source);
    sl_map_free(&m->variables);
    sl_buf_free(&m->scratch);
    sl_arena_free(&m->arena);
    free(m);
}

/* ---- applying ---- */

static bool put_digest(struct sl_buf *out, struct sl_str path, bool upper)
{
    struct sl_mapping mapping;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    char name[4096];
    if (path.size >= sizeof name)
        return false;
    snprintf(name, sizeof name, SL_STR_FMT, SL_STR_ARG(path));
    if (sl_map_file(name, &mapping, NULL) != SL_OK)
        return false;
    bool ok = EVP_Digest(mapping.bytes.data, mapping.bytes.size, digest, &size, EVP_sha512(), NULL) == 1;
    sl_unmap(&mapping);
    for (unsigned i = 0; ok && i < size; i++)
        sl_buf_printf(out, upper ? "%02X" : "%02x", digest[i]);
    return ok;
}

static bool is_for(const struct rule *rule, struct sl_str path)
{
    for (size_t i = 0; i < rule->file_count; i++)
        if (sl_str_equal(rule->files[i], path))
            return true;
    return rule->file_count == 0;
}

static bool put_destination(struct path_mapping *m, const struct rule *rule, struct sl_str path,
                            const PCRE2_SIZE *groups, int count)
{
    for (size_t i = 0; i < rule->piece_count; i++) {
        const struct piece *piece = &rule->pieces[i];
        if (piece->kind == PIECE_TEXT)
            sl_buf_str(&m->scratch, piece->text);
        else if (piece->kind == PIECE_GROUP && (int)piece->group < count && groups[2 * piece->group] != PCRE2_UNSET)
            sl_buf_add(&m->scratch, path.data + groups[2 * piece->group],
                       groups[2 * piece->group + 1] - groups[2 * piece->group]);
        else if (piece->kind >= PIECE_DIGEST && !put_digest(&m->scratch, path, piece->kind == PIECE_UPPER_DIGEST))
            return false;
    }
    return true;
}

struct sl_str path_mapping_apply(void *arg, struct sl_str path)
{
    struct path_mapping *m = arg;
    for (const struct rule *rule = m->rules; rule; rule = rule->next) {
        pcre2_match_data *match = is_for(rule, path) ? pcre2_match_data_create_from_pattern(rule->source, NULL) : NULL;
        if (!match)
            continue;
        int count = pcre2_match(rule->source, (PCRE2_SPTR)path.data, path.size, 0, 0, match, NULL);
        sl_buf_clear(&m->scratch);
        bool done = count > 0 && put_destination(m, rule, path, pcre2_get_ovector_pointer(match), count);
        pcre2_match_data_free(match);
        if (done)
            return keep(m, sl_buf_view(&m->scratch));
    }
    return path;
}
