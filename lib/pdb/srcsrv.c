/* The source server stream: where a version control system has the sources ("Source Server and Source Indexing" of the Debugging Tools
 * for Windows). Text in sections:
 *
 *     SRCSRV: ini ------          VERSION=1, VERCTRL=Perforce
 *     SRCSRV: variables ---       SRCSRVTRG=%targ%\%var2%\%fnbksl%(%var3%)
 *     SRCSRV: source files ---    c:\build\a.c*SERVER*depot/a.c*12345
 *     SRCSRV: end ------
 *
 * The sections before the source files are read when the PDB is opened, the list of files at the first lookup. Commands are neither built
 * nor run. */
#include "pdb/srcsrv.h"

#include "function/path.h"
#include "base/search.h"

#include <stdlib.h>

enum srcsrv_part { PART_NONE, PART_INI, PART_VARIABLES, PART_FILES, PART_END };

struct srcsrv_variable_value {
    struct sl_str name, value;
    size_t order; /* position in the file */
};

struct srcsrv_entry {  /* a line of the list of source files */
    struct sl_str key; /* path at build time, in lower case */
    struct sl_str line;
    size_t order; /* position in the file */
};

enum vcs { VCS_OTHER, VCS_PERFORCE, VCS_FOUNDATION };

struct srcsrv {
    struct sl_arena *arena;
    _Atomic bool *no_memory; /* msf.no_memory */
    enum vcs vcs;
    struct srcsrv_variable_value *variables; /* sorted by name without case; of equal ones the last counts */
    size_t variable_count;
    struct sl_str files;          /* text of the section of source files */
    bool indexed;                 /* `entries` was made */
    struct srcsrv_entry *entries; /* sorted by key; of equal ones the last counts */
    size_t entry_count;
    uint64_t work_left; /* steps left for expanding variables, which may grow with every nesting in a crafted file */
};

static size_t count_lines(struct sl_str text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* Returns the section that begins with this line; PART_NONE if none does. */
static enum srcsrv_part parse_part(struct sl_str line)
{
    static const char *const heads[] = {"SRCSRV: ini --", "SRCSRV: variables --", "SRCSRV: source files --",
                                        "SRCSRV: end --"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (sl_str_starts(line, sl_str(heads[i])))
            return (enum srcsrv_part)(i + 1); /* PART_INI, the first one, is 1 */
    return PART_NONE;
}

/* Splits a line NAME=VALUE at the first `=`. False if there is none. */
static bool assignment(struct sl_str line, struct sl_str *name, struct sl_str *value)
{
    const char *equals = line.size ? memchr(line.data, '=', line.size) : NULL;
    if (!equals)
        return false;
    *name = (struct sl_str){line.data, (size_t)(equals - line.data)};
    *value = (struct sl_str){equals + 1, line.size - name->size - 1};
    return true;
}

/* ---- variables ---- */

/* Returns the character in lower case (ASCII only). */
static char srcsrv_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Compares two texts in lower case, like memcmp(). */
static int compare_nocase(struct sl_str a, struct sl_str b)
{
    for (size_t i = 0; i < a.size && i < b.size; i++)
        if (srcsrv_lower(a.data[i]) != srcsrv_lower(b.data[i]))
            return (uint8_t)srcsrv_lower(a.data[i]) < (uint8_t)srcsrv_lower(b.data[i]) ? -1 : 1;
    return (a.size > b.size) - (a.size < b.size);
}

/* For qsort: variables by name without case, then in file order. */
static int srcsrv_by_name(const void *left, const void *right)
{
    const struct srcsrv_variable_value *a = left, *b = right;
    int order = compare_nocase(a->name, b->name);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Finds the value of a variable by its name without case; of several variables with the name the last one counts. False if there is
 * none. */
bool srcsrv_variable(const struct srcsrv *s, struct sl_str name, struct sl_str *value)
{
    /* index of the first variable with a greater name */
    size_t low = SL_PARTITION_POINT(middle, 0, s->variable_count, compare_nocase(s->variables[middle].name, name) <= 0);
    if (!low || compare_nocase(s->variables[low - 1].name, name) != 0)
        return false;
    *value = s->variables[low - 1].value;
    return true;
}

/* ---- opening ---- */

/* What read_head() reads. */
struct head {
    struct sl_str text; /* before the call: all of the stream; after it: what follows the line "SRCSRV: source files" */
    struct sl_str vcs;
    bool has_version; /* VERSION is 1, 2 or 3 */
};

/* Reads the variables and the VERSION and VERCTRL of the sections before the source files. False if the sections are not in order, or if
 * the version is not 1 to 3: then it is not a source server stream. */
static bool read_head(struct srcsrv *s, struct head *h)
{
    struct sl_str line, name, value;
    if (!sl_str_next_line(&h->text, &line) || parse_part(line) != PART_INI)
        return false;
    enum srcsrv_part part = PART_INI;
    while (part < PART_FILES && sl_str_next_line(&h->text, &line)) {
        enum srcsrv_part begun = parse_part(line);
        if (begun != PART_NONE) {
            if (begun != part + 1)
                return false;
            part = begun;
        } else if (!assignment(line, &name, &value)) {
            continue;
        } else if (part == PART_VARIABLES) {
            s->variables[s->variable_count] =
                (struct srcsrv_variable_value){.name = name, .value = value, .order = s->variable_count};
            s->variable_count++;
        } else if (sl_str_equal_nocase(name, SL_STR("VERSION"))) {
            h->has_version = value.size == 1 && value.data[0] >= '1' && value.data[0] <= '3';
        } else if (sl_str_equal_nocase(name, SL_STR("VERCTRL"))) {
            h->vcs = value;
        }
    }
    return part == PART_FILES && h->has_version;
}

/* Returns the number of lines before the source files, an upper limit for the number of variables. */
static size_t head_lines(struct sl_str text)
{
    struct sl_str line;
    size_t lines = 0;
    while (sl_str_next_line(&text, &line) && parse_part(line) != PART_FILES)
        lines++;
    return lines;
}

struct srcsrv *srcsrv_open(struct sl_str text, struct sl_arena *arena, _Atomic bool *no_memory, struct sl_str *vcs)
{
    struct head head = {.text = text};
    struct sl_str target;
    *vcs = (struct sl_str){NULL, 0};
    if (!sl_str_is_utf8(text) || !sl_str_starts(text, SL_STR("SRCSRV: ini --")))
        return NULL;
    struct srcsrv *s = SL_ARENA_NEW(arena, struct srcsrv);
    struct srcsrv_variable_value *variables = SL_ARENA_ARRAY(arena, struct srcsrv_variable_value, head_lines(text) + 1);
    if (!s || !variables) {
        *no_memory = true;
        return NULL;
    }
    s->arena = arena;
    s->no_memory = no_memory;
    s->variables = variables;
    if (!read_head(s, &head))
        return NULL;
    qsort(s->variables, s->variable_count, sizeof *s->variables, srcsrv_by_name);
    if (!srcsrv_variable(s, SL_STR("SRCSRVTRG"), &target)) /* without it no target can be made */
        return NULL;
    *vcs = head.vcs;
    if (sl_str_equal_nocase(head.vcs, SL_STR("perforce")))
        s->vcs = VCS_PERFORCE;
    else if (sl_str_equal_nocase(head.vcs, SL_STR("Team Foundation Server")))
        s->vcs = VCS_FOUNDATION;
    s->files = head.text;
    s->work_left = UINT64_C(16) * text.size + (1 << 20); /* in proportion to the stream */
    return s;
}

/* ---- source files ---- */

/* Splits a line at asterisks into at most SRCSRV_MAX_FIELDS fields, the last of which has the rest of the line. Returns their number. */
static size_t srcsrv_split(struct sl_str line, struct sl_str fields[SRCSRV_MAX_FIELDS])
{
    size_t count = 0;
    while (count < SRCSRV_MAX_FIELDS) {
        const char *star = line.size && count + 1 < SRCSRV_MAX_FIELDS ? memchr(line.data, '*', line.size) : NULL;
        size_t size = star ? (size_t)(star - line.data) : line.size;
        fields[count++] = (struct sl_str){line.data, size};
        if (!star)
            break;
        line = (struct sl_str){line.data + size + 1, line.size - size - 1};
    }
    return count;
}

/* For qsort: entries by path, then in file order. */
static int by_key(const void *left, const void *right)
{
    const struct srcsrv_entry *a = left, *b = right;
    int order = sl_str_compare(a->key, b->key);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Reads the list of source files, at the first lookup. Sorts it by the path at build time in lower case, as Windows ignores case; equal
 * paths stay in file order. Lack of memory is recorded in s->no_memory. */
static void srcsrv_read_files(struct srcsrv *s)
{
    struct sl_str line, fields[SRCSRV_MAX_FIELDS], text = s->files;
    s->indexed = true;
    s->entries = SL_ARENA_ARRAY(s->arena, struct srcsrv_entry, count_lines(text));
    *s->no_memory = *s->no_memory || !s->entries;
    while (s->entries && sl_str_next_line(&text, &line) && parse_part(line) == PART_NONE) {
        srcsrv_split(line, fields); /* there is at least one field: the path at build time */
        char *key = sl_arena_strndup(s->arena, fields[0].data, fields[0].size);
        for (size_t i = 0; key && i < fields[0].size; i++)
            key[i] = srcsrv_lower(key[i]);
        *s->no_memory = *s->no_memory || !key;
        if (!key || !fields[0].size)
            continue;
        s->entries[s->entry_count] =
            (struct srcsrv_entry){.key = {key, fields[0].size}, .line = line, .order = s->entry_count};
        s->entry_count++;
    }
    if (s->entry_count)
        qsort(s->entries, s->entry_count, sizeof *s->entries, by_key);
}

/* Finds the entry of a source file by its path, which is cleaned (sl_path_clean) and compared without case; the last one if there are
 * several. NULL if there is none. */
static const struct srcsrv_entry *srcsrv_find(const struct srcsrv *s, struct sl_str path)
{
    struct sl_buf clean = {0};
    sl_path_clean(&clean, path);
    for (size_t i = 0; i < clean.size; i++)
        clean.data[i] = (uint8_t)srcsrv_lower((char)clean.data[i]);
    struct sl_str key = sl_buf_view(&clean);
    /* index of the first entry with a greater path */
    size_t low = SL_PARTITION_POINT(middle, 0, s->entry_count, sl_str_compare(s->entries[middle].key, key) <= 0);
    *s->no_memory = *s->no_memory || clean.failed;
    bool found = low && sl_str_equal(s->entries[low - 1].key, key);
    sl_buf_free(&clean);
    return found ? &s->entries[low - 1] : NULL;
}

/* ---- origins ---- */

/* Splits "//depot/a.c#3" or "//depot/a.c@3" into path and revision: some indexers write the revision into the path. */
static void split_revision(struct sl_file_origin *origin)
{
    struct sl_str *path = &origin->path;
    for (size_t i = path->size; i-- > 0 && path->data[i] != '/';) {
        if (path->data[i] != '#' && path->data[i] != '@')
            continue;
        if (i + 1 < path->size)
            origin->revision = (struct sl_str){path->data + i + 1, path->size - i - 1};
        path->size = i;
        return;
    }
}

/* Sets path and revision for Perforce; leaves both if no field is a path. The fields after the path at build time are (server, path, change
 * list) or (path, change list): the first one with a slash is the path. A revision in the path ("a.c#3") is that of the file itself, so it
 * replaces the change list. */
static void perforce_origin(const struct srcsrv_fields *f, struct sl_file_origin *origin)
{
    for (size_t i = 1; i < 3 && i < f->count; i++) {
        if (!f->items[i].size || !memchr(f->items[i].data, '/', f->items[i].size))
            continue;
        origin->path = f->items[i];
        while (sl_str_starts(origin->path, SL_STR("//")))
            origin->path = (struct sl_str){origin->path.data + 2, origin->path.size - 2};
        origin->revision = i + 1 < f->count ? f->items[i + 1] : (struct sl_str){NULL, 0};
        split_revision(origin);
        if (!origin->path.size)
            origin->revision = (struct sl_str){NULL, 0};
        return;
    }
}

/* Sets path and revision for Team Foundation; leaves both if a field is missing. The fields after the path at build time are the name of
 * the server's variable, path, change set. */
static void foundation_origin(const struct srcsrv_fields *f, struct sl_file_origin *origin)
{
    if (f->count < 4 || !f->items[2].size)
        return;
    origin->path = f->items[2];
    origin->revision = f->items[3];
}

static bool is_download(struct sl_str target)
{
    return sl_str_starts(target, SL_STR("https://")) || sl_str_starts(target, SL_STR("http://"));
}

bool srcsrv_origin(struct srcsrv *s, struct sl_str path, struct sl_arena *arena, struct sl_file_origin *origin)
{
    struct srcsrv_fields fields;
    struct sl_str command;
    struct sl_buf target = {0};
    if (!s->indexed)
        srcsrv_read_files(s);
    const struct srcsrv_entry *entry = srcsrv_find(s, path);
    if (!entry)
        return false;
    fields.count = srcsrv_split(entry->line, fields.items);
    /* expands SRCSRVTRG; the debugger's directory %targ% is "", as only URLs are used */
    bool good = srcsrv_evaluate(s, &fields, SL_STR(""), &s->work_left, &target);
    if (good && s->vcs == VCS_PERFORCE)
        perforce_origin(&fields, origin);
    if (good && s->vcs == VCS_FOUNDATION)
        foundation_origin(&fields, origin);
    /* with a command, the target is the local file that the command would write */
    if (good && !srcsrv_variable(s, SL_STR("SRCSRVCMD"), &command) && is_download(sl_buf_view(&target))) {
        char *copy = sl_arena_strndup(arena, (const char *)target.data, target.size);
        origin->url = (struct sl_str){copy, copy ? target.size : 0};
        *s->no_memory = *s->no_memory || !copy;
    }
    sl_buf_free(&target);
    return origin->path.size || origin->url.size;
}
