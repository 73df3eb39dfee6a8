#include "cli/locator/plain_config.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"

/* Limit of the number of names in [a.b.c]; so it also limits the recursion of write_node. */
enum { MAX_PARTS = 16 };

/* A value, table or list of the file. It is written as JSON, which is valid YAML. */
struct plain_config_node {
    struct sl_str key;   /* empty for list elements */
    struct sl_str value; /* as JSON; data NULL for maps and lists */
    bool list;
    struct plain_config_node *first, *last, *next;
};

struct plain_config_parser {
    struct sl_arena arena;
    struct plain_config_node root, *section; /* section: the table that `key = value` lines fill now */
};

/* Appends a child to a table (`key`) or a list (empty key); NULL when out of memory. */
static struct plain_config_node *plain_config_add(struct plain_config_parser *p, struct plain_config_node *parent,
                                                  struct sl_str key)
{
    struct plain_config_node *node = SL_ARENA_NEW(&p->arena, struct plain_config_node);
    if (!node)
        return NULL;
    *node = (struct plain_config_node){.key = key};
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    return parent->last = node;
}

/* Returns the value of this key in a table; NULL if there is none. */
static struct plain_config_node *plain_config_member(const struct plain_config_node *parent, struct sl_str key)
{
    struct plain_config_node *node = parent->first;
    while (node && !sl_str_equal(node->key, key))
        node = node->next;
    return node;
}

/* ---- lines ---- */

/* Returns the text without white space at both ends. */
static struct sl_str trimmed(struct sl_str s)
{
    while (s.size && strchr(" \t\r", s.data[0]))
        s.data++, s.size--;
    while (s.size && strchr(" \t\r", s.data[s.size - 1]))
        s.size--;
    return s;
}

/* True if the text is not empty and has only ASCII letters, digits, '_' and '-': a key or a part of a section's name. */
static bool is_name(struct sl_str s)
{
    for (size_t i = 0; i < s.size; i++) {
        char c = s.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return s.size > 0;
}

/* True if the text after a value is empty or a comment. */
static bool is_line_end(struct sl_str s)
{
    s = trimmed(s);
    return !s.size || s.data[0] == '#';
}

/* Makes the table of [a.b] the one that the following lines fill; missing tables are created. [[a.b]] (`element`) appends an element to
 * the list a.b. As in TOML, a name below a list refers to the list's last element. False when a name is a value already, or a list is
 * needed and it is a map, or the other way round. */
static bool enter_section(struct plain_config_parser *p, struct sl_str name, bool element)
{
    struct plain_config_node *at = &p->root;
    unsigned parts = 0;
    for (bool more = true; more;) {
        const char *dot = memchr(name.data, '.', name.size);
        struct sl_str part = trimmed((struct sl_str){name.data, dot ? (size_t)(dot - name.data) : name.size});
        more = dot != NULL;
        if (!is_name(part) || ++parts > MAX_PARTS)
            return false;
        struct plain_config_node *next = plain_config_member(at, part);
        if (next && next->value.data) /* a value, not a table or list */
            return false;
        if (!next && (next = plain_config_add(p, at, part)))
            next->list = element && !more;
        if (!next || (!more && element && !next->list)) /* no memory, or [[...]] of a table */
            return false;
        /* the last name of [[...]] adds an element; an earlier name means the last one */
        if (next->list && (more || element))
            next = !more ? plain_config_add(p, next, (struct sl_str){NULL, 0}) : next->last;
        if (!next || next->list) /* no memory, or [...] of a list */
            return false;
        at = next;
        if (dot)
            name = (struct sl_str){dot + 1, name.size - (size_t)(dot + 1 - name.data)};
    }
    p->section = at;
    return true;
}

/* Reads a line [name] or [[name]], and makes that the current section. False if it is malformed, or the name is not usable. */
static bool read_section(struct plain_config_parser *p, struct sl_str line)
{
    bool element = line.size > 1 && line.data[1] == '[';
    size_t skip = element ? 2 : 1;
    const char *end = memchr(line.data, ']', line.size);
    if (!end)
        return false;
    struct sl_str name = {line.data + skip, (size_t)(end - line.data) - skip};
    struct sl_str rest = {end + 1, line.size - (size_t)(end + 1 - line.data)};
    if (element && (!rest.size || rest.data[0] != ']'))
        return false;
    if (element)
        rest.data++, rest.size--;
    return is_line_end(rest) && enter_section(p, name, element);
}

/* Reads a TOML string as JSON text. A basic string ("") is taken as it is, as its escapes are those of JSON; \U, which JSON does not have,
 * is refused. A literal string ('') has no escapes. False if it is malformed or not the last of its line. */
static bool plain_config_read_string(struct plain_config_parser *p, struct sl_str text, struct sl_str *value)
{
    char quote = text.data[0];
    size_t end = 1;
    while (end < text.size && text.data[end] != quote) {
        bool escape = quote == '"' && text.data[end] == '\\';
        if (escape && (end + 1 >= text.size || !strchr("\"\\bfnrtu", text.data[end + 1])))
            return false;
        end += escape ? 2 : 1;
    }
    if (end >= text.size || !is_line_end((struct sl_str){text.data + end + 1, text.size - end - 1}))
        return false;
    if (quote == '"') {
        *value = (struct sl_str){text.data, end + 1};
        return true;
    }
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    sl_json_put_str(&w, (struct sl_str){text.data + 1, end - 1});
    char *copy = out.failed ? NULL : sl_arena_strndup(&p->arena, (const char *)out.data, out.size);
    *value = (struct sl_str){copy, copy ? out.size : 0};
    sl_buf_free(&out);
    return copy != NULL;
}

/* Reads a string, a boolean or an integer as JSON text. False for other TOML values (floats, dates, arrays, inline tables), which do not
 * occur in configuration files of symbolicli. */
static bool read_value(struct plain_config_parser *p, struct sl_str text, struct sl_str *value)
{
    if (text.size && (text.data[0] == '"' || text.data[0] == '\''))
        return plain_config_read_string(p, text, value);
    const char *comment = memchr(text.data, '#', text.size);
    *value = trimmed((struct sl_str){text.data, comment ? (size_t)(comment - text.data) : text.size});
    if (sl_str_equal(*value, SL_STR("true")) || sl_str_equal(*value, SL_STR("false")))
        return true;
    size_t sign = value->size && (value->data[0] == '-' || value->data[0] == '+');
    for (size_t i = sign; i < value->size; i++)
        if (value->data[i] < '0' || value->data[i] > '9')
            return false;
    return value->size > sign;
}

/* Reads one line: blank, comment, section or `key = value`. False when it is none of these, or the key occurs twice in its section. */
static bool read_line(struct plain_config_parser *p, struct sl_str line)
{
    if (!line.size || line.data[0] == '#')
        return true;
    if (line.data[0] == '[')
        return read_section(p, line);
    const char *equals = memchr(line.data, '=', line.size);
    if (!equals)
        return false;
    struct sl_str key = trimmed((struct sl_str){line.data, (size_t)(equals - line.data)}), value;
    struct sl_str text = trimmed((struct sl_str){equals + 1, line.size - (size_t)(equals + 1 - line.data)});
    if (!is_name(key) || plain_config_member(p->section, key) || !read_value(p, text, &value))
        return false;
    struct plain_config_node *node = plain_config_add(p, p->section, key);
    if (node)
        node->value = value;
    return node != NULL;
}

/* ---- writing ---- */

/* Writes a value, table or list as JSON. Recursion is limited: each of at most MAX_PARTS names of a section is a table, or a list and a
 * table in it. */
static void write_node(const struct plain_config_node *node, struct sl_buf *out)
{
    if (node->value.data) {
        sl_buf_str(out, node->value);
        return;
    }
    sl_buf_u8(out, node->list ? '[' : '{');
    for (const struct plain_config_node *at = node->first; at; at = at->next) {
        if (!node->list)
            sl_buf_printf(out, "\"" SL_STR_FMT "\": ", SL_STR_ARG(at->key));
        write_node(at, out);
        sl_buf_cstr(out, at->next ? ", " : "");
    }
    sl_buf_u8(out, node->list ? ']' : '}');
}

enum sl_code plain_config_read(const char *path, struct sl_buf *yaml, struct sl_error *error)
{
    struct sl_mapping mapping;
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    struct plain_config_parser p = {0};
    struct sl_str rest = {(const char *)mapping.bytes.data, mapping.bytes.size}, line;
    p.section = &p.root;
    for (unsigned number = 1; code == SL_OK && sl_str_next_line(&rest, &line); number++)
        /* a line that is too long or has a NUL byte shows that this is another kind of file */
        if (line.size > 8192 || memchr(line.data, '\0', line.size) || !read_line(&p, trimmed(line)))
            code = sl_fail(error, SL_MALFORMED,
                           "%s:%u: not a plain \"key = value\" line; move the configuration to .symloom.yml", path,
                           number);
    if (code == SL_OK)
        write_node(&p.root, yaml);
    if (code == SL_OK && yaml->failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&p.arena);
    sl_unmap(&mapping);
    return code;
}
