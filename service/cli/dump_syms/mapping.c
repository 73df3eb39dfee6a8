/* `symloom dump-syms`: rewrites paths of source files to the places where the sources are archived.
 *
 *     source        /rustc/([a-f0-9]+)/(.*)          a regular expression
 *     destination   git:x/rust:{2}:{1}               {N} group, {name} variable, {digest} of the file
 *     /rustc/ab12/library/core/src/lib.rs            becomes git:x/rust:library/core/src/lib.rs:ab12
 *
 * The first rule that applies to a path rewrites it. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "cli/dump_syms/dump_syms.h"

#include "base/map.h"

#include <openssl/evp.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/value_tree.h"

enum { MAX_GROUPS = 100 };

struct mapping_piece { /* a part of a destination: text or a variable's value, a group of the match, SHA-512 in hex */
    enum { PIECE_TEXT, PIECE_GROUP, PIECE_DIGEST, PIECE_UPPER_DIGEST } kind;
    unsigned group;
    struct sl_str text;
};

struct path_mapping_rule {
    pcre2_code *source;
    struct mapping_piece *pieces;
    size_t piece_count;
    struct sl_str *files; /* restricts the rule to these paths; empty: all paths */
    size_t file_count;
    struct path_mapping_rule *next;
};

struct path_mapping {
    const struct options *o;
    struct sl_arena arena;
    struct sl_map variables; /* name -> struct sl_str */
    struct path_mapping_rule *rules, **last;
    struct sl_buf scratch;
};

/* Copies text into the arena; data NULL when out of memory. */
static struct sl_str dump_mapping_copy(struct path_mapping *m, struct sl_str text)
{
    char *copy = sl_arena_strndup(&m->arena, text.data ? text.data : "", text.size);
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Sets a variable to a copy of the value. False when out of memory. */
static bool set_variable(struct path_mapping *m, struct sl_str name, struct sl_str value)
{
    struct sl_str key = dump_mapping_copy(m, name), *copy = SL_ARENA_NEW(&m->arena, struct sl_str);
    if (!key.data || !copy || !sl_map_put(&m->variables, key, copy))
        return false;
    *copy = dump_mapping_copy(m, value);
    return copy->data != NULL;
}

/* ---- reading ---- */

/* Parses `name`, the text between the braces of {name} in a destination. False if it is neither a group number, "digest" or "DIGEST", nor
 * the name of a variable. */
static bool parse_action(const struct path_mapping *m, struct sl_str name, struct mapping_piece *piece)
{
    uint64_t group;
    const struct sl_str *variable = sl_map_get(&m->variables, name);
    if (sl_parse_u64(name, &group) && group < MAX_GROUPS)
        *piece = (struct mapping_piece){.kind = PIECE_GROUP, .group = (unsigned)group};
    else if (sl_str_equal(name, SL_STR("digest")))
        *piece = (struct mapping_piece){.kind = PIECE_DIGEST};
    else if (sl_str_equal(name, SL_STR("DIGEST")))
        *piece = (struct mapping_piece){.kind = PIECE_UPPER_DIGEST};
    else if (variable)
        *piece = (struct mapping_piece){.kind = PIECE_TEXT, .text = *variable};
    else
        return false;
    return true;
}

/* Splits a destination into literal texts and the values of its {...}. Returns 0, or the exit status after a report. */
static int parse_destination(struct path_mapping *m, struct path_mapping_rule *rule, const char *text)
{
    /* at most one for each byte of the text */
    rule->pieces = SL_ARENA_ARRAY(&m->arena, struct mapping_piece, strlen(text) + 1);
    struct sl_str copy = dump_mapping_copy(m, sl_str(text));
    if (!rule->pieces || !copy.data)
        return report_no_memory();
    for (const char *at = copy.data, *end = at + copy.size; at < end;) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        struct mapping_piece *piece = &rule->pieces[rule->piece_count++];
        if (*at != '{') {
            size_t size = strcspn(at, "{");
            *piece = (struct mapping_piece){.kind = PIECE_TEXT, .text = {at, size}};
            at += size;
            continue;
        }
        struct sl_str name = {at + 1, close ? (size_t)(close - at) - 1 : strlen(at + 1)};
        char shown[100];
        snprintf(shown, sizeof shown, SL_STR_FMT, SL_STR_ARG(name));
        if (!close || !parse_action(m, name, piece))
            return options_wrong(m->o, "Invalid action %s in mapping string", shown);
        at = close + 1;
    }
    return 0;
}

/* Appends a rule: `source` is a regular expression, `destination` what replaces a path that it matches. `*made` is the rule. Returns 0, or
 * the exit status after a report. */
static int add_rule(struct path_mapping *m, const char *source, const char *destination,
                    struct path_mapping_rule **made)
{
    struct path_mapping_rule *rule = SL_ARENA_NEW(&m->arena, struct path_mapping_rule);
    int number; /* of the error; like its offset, it is not reported */
    PCRE2_SIZE offset;
    if (!rule)
        return report_no_memory();
    *m->last = rule;
    m->last = &rule->next;
    *made = rule;
    rule->source = pcre2_compile((PCRE2_SPTR)source, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &number, &offset, NULL);
    if (!rule->source)
        return options_wrong(m->o, "'%s' is not a regular expression", source);
    return parse_destination(m, rule, destination);
}

/* Returns a copy of a JSON string; NULL if the value is missing or of another type, or when out of memory. */
static const char *dump_mapping_get_text(struct path_mapping *m, const struct value *value)
{
    return value && value->type == VALUE_STRING ? dump_mapping_copy(m, value->string).data : NULL;
}

/* Reads one item of "mappings" in the mapping file. Its "files", if given, are the only paths to which it applies. Returns 0, or the exit
 * status after a report. */
static int read_rule(struct path_mapping *m, const struct value *item)
{
    struct path_mapping_rule *rule;
    const char *source = dump_mapping_get_text(m, value_get(item, "source")),
               *destination = dump_mapping_get_text(m, value_get(item, "destination"));
    const struct value *files = value_get(item, "files");
    if (!source || !destination)
        return report_error(1, "a mapping in the mapping file lacks \"source\" or \"destination\"", NULL);
    int status = add_rule(m, source, destination, &rule);
    if (status || !files || files->type != VALUE_LIST)
        return status;
    rule->files = SL_ARENA_ARRAY(&m->arena, struct sl_str, files->count + 1);
    for (size_t i = 0; rule->files && i < files->count; i++)
        if (files->items[i].type == VALUE_STRING)
            rule->files[rule->file_count++] = files->items[i].string;
    return rule->files ? 0 : report_no_memory();
}

static struct sl_str variable_text(const struct value *value)
{
    return value->type != VALUE_BOOL ? value->string : value->boolean ? SL_STR("true") : SL_STR("false");
}

/* Reads the variables of the mapping file (`file`), then those of --mapping-var, which override them. Returns 0, or the exit status after a
 * report. */
static int read_variables(struct path_mapping *m, const struct options *o, const struct value *file)
{
    size_t count;
    const char *const *given = option_values(o, "mapping-var", &count);
    const struct value *variables = value_get(file, "variables");
    bool map = variables && variables->type == VALUE_MAP;
    for (size_t i = 0; map && i < variables->count; i++)
        if (!set_variable(m, variables->keys[i], variable_text(&variables->items[i])))
            return report_no_memory();
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(given[i], '=');
        if (!equals)
            return options_wrong(o, "--mapping-var: '%s' is not NAME=VALUE", given[i]);
        if (!set_variable(m, (struct sl_str){given[i], (size_t)(equals - given[i])}, sl_str(equals + 1)))
            return report_no_memory();
    }
    return 0;
}

/* Reads the variables and all rules: those of the mapping file (`file`) come before those of --mapping-src. Returns 0, or the exit status
 * after a report. */
static int read_rules(struct path_mapping *m, const struct options *o, const struct value *file)
{
    struct path_mapping_rule *rule;
    size_t sources, destinations;
    const char *const *source = option_values(o, "mapping-src", &sources);
    const char *const *destination = option_values(o, "mapping-dest", &destinations);
    const struct value *list = value_get(file, "mappings");
    int status = read_variables(m, o, file); /* first: destinations refer to them */
    if (sources != destinations)
        return options_wrong(o, "--mapping-src and --mapping-dest must be given in pairs");
    if (list && list->type == VALUE_LIST)
        for (size_t i = 0; i < list->count && status == 0; i++)
            status = read_rule(m, &list->items[i]);
    for (size_t i = 0; i < sources && status == 0; i++)
        status = add_rule(m, source[i], destination[i], &rule);
    return status;
}

/* Reads the mapping file as a JSON tree. The arena owns the tree and the text into which it points. Returns 0, or the exit status after a
 * report. */
static int dump_mapping_read_file(struct path_mapping *m, const char *path, struct value *file)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    char problem[4400]; /* with the path */
    if (sl_map_file(path, &mapping, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    struct sl_str text = dump_mapping_copy(m, (struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size});
    sl_unmap(&mapping);
    struct sl_json j = sl_json(text, &m->arena, false); /* false: standard JSON only */
    value_from_json(&m->arena, &j, file);               /* an error stays in `j`: then sl_json_end is false */
    if (sl_json_end(&j))
        return file->type == VALUE_MAP ? 0 : report_error(1, "the mapping file is not a JSON object", path);
    struct sl_json_position position = sl_json_position(text, j.at);
    snprintf(problem, sizeof problem, "%s: %s at line %zu column %zu", path, j.problem, position.line, position.column);
    return report_error(1, "the mapping file is not a JSON object", problem);
}

int path_mapping_read(const struct options *o, struct path_mapping **mapping)
{
    const char *path = option_value(o, "mapping-file", NULL);
    struct value file = {0};
    *mapping = NULL;
    if (!path && !option_given(o, "mapping-src") && !option_given(o, "mapping-dest"))
        return 0;
    struct path_mapping *m = *mapping = calloc(1, sizeof *m);
    if (!m)
        return report_no_memory();
    m->o = o;
    m->last = &m->rules;
    int status = path ? dump_mapping_read_file(m, path, &file) : 0;
    return status ? status : read_rules(m, o, &file);
}

void path_mapping_free(struct path_mapping *m)
{
    if (!m)
        return;
    for (struct path_mapping_rule *rule = m->rules; rule; rule = rule->next)
        pcre2_code_free(rule->source);
    sl_map_free(&m->variables);
    sl_buf_free(&m->scratch);
    sl_arena_free(&m->arena);
    free(m);
}

/* ---- applying ---- */

/* Appends the SHA-512 of the source file; false if it cannot be read. */
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

/* True if the rule is for this path: it has no list of files, or the path is in that list. */
static bool is_for(const struct path_mapping_rule *rule, struct sl_str path)
{
    for (size_t i = 0; i < rule->file_count; i++)
        if (sl_str_equal(rule->files[i], path))
            return true;
    return rule->file_count == 0;
}

/* Appends the destination of a rule to m->scratch, with the `count` groups that matched in the path. A group that matched nothing is empty.
 * False if the destination has a digest and the source file cannot be read. */
static bool put_destination(struct path_mapping *m, const struct path_mapping_rule *rule, struct sl_str path,
                            const PCRE2_SIZE *groups, int count)
{
    for (size_t i = 0; i < rule->piece_count; i++) {
        const struct mapping_piece *piece = &rule->pieces[i];
        if (piece->kind == PIECE_TEXT)
            sl_buf_str(&m->scratch, piece->text);
        else if (piece->kind == PIECE_GROUP && (int)piece->group < count && groups[2 * piece->group] != PCRE2_UNSET)
            sl_buf_add(&m->scratch, path.data + groups[2 * piece->group],
                       groups[2 * piece->group + 1] - groups[2 * piece->group]);
        /* PIECE_DIGEST and PIECE_UPPER_DIGEST are the last values of the enum */
        else if (piece->kind >= PIECE_DIGEST && !put_digest(&m->scratch, path, piece->kind == PIECE_UPPER_DIGEST))
            return false;
    }
    return true;
}

struct sl_str path_mapping_apply(void *arg, struct sl_str path)
{
    struct path_mapping *m = arg;
    for (const struct path_mapping_rule *rule = m->rules; rule; rule = rule->next) {
        pcre2_match_data *match = is_for(rule, path) ? pcre2_match_data_create_from_pattern(rule->source, NULL) : NULL;
        if (!match)
            continue;
        int count = pcre2_match(rule->source, (PCRE2_SPTR)path.data, path.size, 0, 0, match, NULL);
        sl_buf_clear(&m->scratch);
        /* a rule whose digest cannot be computed is left out: the next rule may apply */
        bool done = count > 0 && put_destination(m, rule, path, pcre2_get_ovector_pointer(match), count);
        pcre2_match_data_free(match);
        if (done)
            return dump_mapping_copy(m, sl_buf_view(&m->scratch));
    }
    return path;
}
