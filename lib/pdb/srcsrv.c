/* The source server stream: where a version control system keeps the sources ("Source Server and Source Indexing" of
 * the Debugging Tools for Windows). Text in sections:
 *
 *     SRCSRV: ini ------          VERSION=1, VERCTRL=Perforce
 *     SRCSRV: variables ---       SRCSRVTRG=%targ%\%var2%\%fnbksl%(%var3%)
 *     SRCSRV: source files ---    c:\build\a.c*SERVER*depot/a.c*12345
 *     SRCSRV: end ------
 *
 * Commands and links are not made out of it: only depot path and revision of the systems whose fields are known. */
#include "pdb/impl.h"

#include "function/path.h"

#include <stdlib.h>

enum { MAX_FIELDS = 10 };

struct entry {
    struct sl_str key; /* build path, lower-cased */
    struct sl_str path, revision;
    size_t order;
};

struct srcsrv_table {
    struct entry *entries; /* sorted by key; of equal ones the last counts */
    size_t count;
};

enum part { PART_NONE, PART_INI, PART_VARIABLES, PART_FILES, PART_END };

struct parser {
    struct sl_arena *arena;
    struct sl_str text; /* what is left of it */
    struct sl_str vcs;
    bool has_version, has_target;
};

static bool next_line(struct sl_str *text, struct sl_str *line)
{
    if (!text->size)
        return false;
    const char *newline = memchr(text->data, '\n', text->size);
    size_t size = newline ? (size_t)(newline - text->data) : text->size;
    *line = (struct sl_str){text->data, size && text->data[size - 1] == '\r' ? size - 1 : size};
    size += newline != NULL;
    *text = (struct sl_str){text->data + size, text->size - size};
    return true;
}

static enum part part_of(struct sl_str line)
{
    static const char *const heads[] = {"SRCSRV: ini --", "SRCSRV: variables --", "SRCSRV: source files --",
                                        "SRCSRV: end --"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (sl_str_starts(line, sl_str(heads[i])))
            return (enum part)(i + 1);
    return PART_NONE;
}

static bool assignment(struct sl_str line, struct sl_str *name, struct sl_str *value)
{
    const char *equals = line.size ? memchr(line.data, '=', line.size) : NULL;
    if (!equals)
        return false;
    *name = (struct sl_str){line.data, (size_t)(equals - line.data)};
    *value = (struct sl_str){equals + 1, line.size - name->size - 1};
    return true;
}

/* Everything before the source files. False when it is not such a stream. */
static bool read_head(struct parser *p)
{
    struct sl_str line, name, value;
    enum part part = PART_NONE;
    if (!next_line(&p->text, &line) || part_of(line) != PART_INI)
        return false;
    for (part = PART_INI; part < PART_FILES && next_line(&p->text, &line);) {
        enum part begun = part_of(line);
        if (begun != PART_NONE) {
            if (begun != part + 1)
                return false;
            part = begun;
        } else if (assignment(line, &name, &value)) {
            if (part == PART_INI && sl_str_equal_nocase(name, SL_STR("VERSION")))
                p->has_version = value.size == 1 && value.data[0] >= '1' && value.data[0] <= '3';
            if (part == PART_INI && sl_str_equal_nocase(name, SL_STR("VERCTRL")))
                p->vcs = value;
            if (part == PART_VARIABLES && sl_str_equal_nocase(name, SL_STR("SRCSRVTRG")))
                p->has_target = true;
        }
    }
    return part == PART_FILES && p->has_version && p->has_target;
}

static size_t split(struct sl_str line, struct sl_str fields[MAX_FIELDS])
{
    size_t count = 0;
    while (count < MAX_FIELDS) {
        const char *star = line.size && count + 1 < MAX_FIELDS ? memchr(line.data, '*', line.size) : NULL;
        size_t size = star ? (size_t)(star - line.data) : line.size;
        fields[count++] = (struct sl_str){line.data, size};
        if (!star)
            break;
        line = (struct sl_str){line.data + size + 1, line.size - size - 1};
    }
    return count;
}

/* "//depot/a.c#3": indexers differ in whether the revision is part of the path. */
static void split_revision(struct entry *e)
{
    for (size_t i = e->path.size; i-- > 0 && e->path.data[i] != '/';) {
        if (e->path.data[i] != '#' && e->path.data[i] != '@')
            continue;
        if (i + 1 < e->path.size)
            e->revision = (struct sl_str){e->path.data + i + 1, e->path.size - i - 1};
        e->path.size = i;
        return;
    }
}

/* Perforce: server, path, change list - or path, change list. */
static bool perforce_entry(const struct sl_str *fields, size_t count, struct entry *e)
{
    for (size_t i = 1; i < 3 && i < count; i++) {
        if (!fields[i].size || !memchr(fields[i].data, '/', fields[i].size))
            continue;
        e->path = fields[i];
        while (sl_str_starts(e->path, SL_STR("//")))
            e->path = (struct sl_str){e->path.data + 2, e->path.size - 2};
        e->revision = i + 1 < count ? fields[i + 1] : (struct sl_str){NULL, 0};
        split_revision(e);
        return e->path.size > 0;
    }
    return false;
}

/* Team Foundation: name of the server's variable, path, change set. */
static bool foundation_entry(const struct sl_str *fields, size_t count, struct entry *e)
{
    if (count < 4 || !fields[2].size)
        return false;
    e->path = fields[2];
    e->revision = fields[3];
    return true;
}

static struct sl_str lower(struct sl_arena *arena, struct sl_str text)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    for (size_t i = 0; copy && i < text.size; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + ('a' - 'A'));
    return (struct sl_str){copy, copy ? text.size : 0};
}

static int by_key(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = sl_str_compare(a->key, b->key);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static struct srcsrv_table *read_files(struct parser *p, bool perforce)
{
    struct sl_str line, fields[MAX_FIELDS];
    size_t lines = 1;
    for (size_t i = 0; i < p->text.size; i++)
        lines += p->text.data[i] == '\n';
    struct srcsrv_table *table = SL_ARENA_NEW(p->arena, struct srcsrv_table);
    struct entry *entries = SL_ARENA_ARRAY(p->arena, struct entry, lines);
    if (!table || !entries)
        return NULL;
    table->entries = entries;
    while (next_line(&p->text, &line) && part_of(line) == PART_NONE) {
        struct entry e = {.order = table->count};
        size_t count = split(line, fields);
        if (perforce ? !perforce_entry(fields, count, &e) : !foundation_entry(fields, count, &e))
            continue;
        e.key = lower(p->arena, fields[0]);
        if (e.key.size)
            entries[table->count++] = e;
    }
    qsort(entries, table->count, sizeof *entries, by_key);
    return table;
}

void srcsrv_open(struct sl_str text, struct sl_arena *arena, struct sl_str *vcs, struct srcsrv_table **table)
{
    struct parser p = {.arena = arena, .text = text};
    *table = NULL;
    *vcs = (struct sl_str){NULL, 0};
    if (!read_head(&p) || !p.vcs.size)
        return;
    *vcs = p.vcs;
    bool perforce = sl_str_equal_nocase(p.vcs, SL_STR("perforce"));
    if (perforce || sl_str_equal_nocase(p.vcs, SL_STR("Team Foundation Server")))
        *table = read_files(&p, perforce);
}

void srcsrv_find(const struct srcsrv_table *table, struct sl_str path, struct sl_file *file)
{
    struct sl_buf clean = {0};
    size_t low = 0, high = table->count;
    sl_path_clean(&clean, path);
    for (size_t i = 0; i < clean.size; i++)
        if (clean.data[i] >= 'A' && clean.data[i] <= 'Z')
            clean.data[i] += 'a' - 'A';
    while (low < high) { /* the first entry beyond */
        size_t middle = low + (high - low) / 2;
        if (sl_str_compare(table->entries[middle].key, sl_buf_view(&clean)) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low && sl_str_equal(table->entries[low - 1].key, sl_buf_view(&clean))) {
        file->srcsrv_path = table->entries[low - 1].path;
        file->srcsrv_revision = table->entries[low - 1].revision;
    }
    sl_buf_free(&clean);
}
