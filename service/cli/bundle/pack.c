/* `symloom bundle`: reads sources and adds them to the bundle, and makes the il2cpp line mapping. */
#include "cli/bundle/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "function/path.h"
#include "source/il2cpp.h"

static const char not_utf8[] = "file could not be read as UTF-8";

const char *read_source(const char *path, uint64_t max_size, struct sl_buf *out)
{
    struct stat st;
    struct sl_mapping mapping;
    struct sl_error error;
    sl_buf_clear(out);
    if (stat(path, &st) != 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode)) /* opening a FIFO would block */
        return "not a regular file";
    if ((uint64_t)st.st_size > max_size)
        return "file is too large";
    if (sl_map_file(path, &mapping, &error) != SL_OK)
        return error.code == SL_PERMISSION_DENIED ? "permission denied" : "file could not be read";
    sl_buf_add(out, mapping.bytes.data, mapping.bytes.size);
    sl_unmap(&mapping);
    if (out->failed)
        return "out of memory";
    return sl_str_is_utf8(sl_buf_view(out)) ? NULL : not_utf8;
}

/* ---- lists ---- */

/* Makes room for one more item in a list; `array` points to the list's pointer to its items. False, with p->failed set, when out of
 * memory. */
static bool grow_list(struct bundle_packing *p, void *array, size_t *capacity, size_t count, size_t size)
{
    void **items = array;
    if (count < *capacity)
        return true;
    size_t more = *capacity * 2 + 64;
    void *grown = reallocarray(*items, more, size);
    if (!grown) {
        p->failed = true;
        return false;
    }
    *items = grown;
    *capacity = more;
    return true;
}

/* Records a source that is not packed, and why; with --verbose, prints that, too. */
static void skip(struct bundle_packing *p, struct sl_str path, const char *reason)
{
    if (p->verbose)
        print_note("Skipped file " SL_STR_FMT " due to: %s\n", SL_STR_ARG(path), reason);
    if (grow_list(p, &p->skipped, &p->skipped_capacity, p->skipped_count, sizeof *p->skipped))
        p->skipped[p->skipped_count++] = (struct skipped){path, reason};
}

/* Adds a source text to the bundle, and its path to the list of packed ones. Skips a text that is not UTF-8: a bundle cannot store it. */
static void bundle_pack_pack(struct bundle_packing *p, struct sl_str path, struct sl_bytes text)
{
    struct sl_str as_text = {(const char *)text.data, text.size};
    if (!sl_str_is_utf8(as_text)) {
        skip(p, path, not_utf8);
        return;
    }
    if (p->writer) /* NULL with --list, which only lists the paths */
        sl_bundle_add(p->writer, SL_BUNDLE_SOURCE, path, SL_STR(""), text);
    if (grow_list(p, &p->packed, &p->packed_capacity, p->packed_count, sizeof *p->packed))
        p->packed[p->packed_count++] = path;
}

/* ---- local paths ---- */

/* Returns the path of the source on this machine: the first rule of --root that matches replaces its beginning. In the rest of a Windows
 * path, backslashes become slashes. NULL when out of memory. */
static const char *local_path(struct bundle_packing *p, struct sl_str path)
{
    for (size_t i = 0; i < p->root_count; i++) {
        const struct path_prefix_rule *root = &p->roots[i];
        if (!sl_str_starts(path, root->from))
            continue;
        size_t rest = path.size - root->from.size;
        char *local = sl_arena_alloc(&p->arena, root->to.size + rest + 1, 1);
        if (!local)
            break;
        memcpy(local, root->to.data, root->to.size);
        for (size_t at = 0; at < rest; at++) {
            char c = path.data[root->from.size + at];
            local[root->to.size + at] = c == '\\' && sl_path_is_windows(path) ? '/' : c;
        }
        local[root->to.size + rest] = '\0';
        return local;
    }
    return sl_arena_strndup(&p->arena, path.data, path.size);
}

/* Reads a source from this machine into p->scratch. Returns NULL, or why it cannot be read. */
static const char *read_path(struct bundle_packing *p, struct sl_str path)
{
    const char *local = local_path(p, path);
    return local ? read_source(local, p->max_size, &p->scratch) : "out of memory";
}

/* Returns why a file of this name is not packed; NULL if it is. Compilers use names such as `<built-in>` where there is no file. */
static const char *reason_of_name(struct sl_str path)
{
    if (sl_str_starts(path, SL_STR("<")) && sl_str_ends(path, SL_STR(">")))
        return "not a file";
    return sl_str_ends(path, SL_STR(".pch")) ? "precompiled header" : NULL;
}

/* Packs one source, unless its name shows that it is none (reason_of_name): its embedded text with --embedded, else the file on this
 * machine. Without --embedded a source that the debug file embeds is skipped: readers of the debug file have it already. */
static void pack_path(struct bundle_packing *p, const struct source_path *source)
{
    const char *reason = reason_of_name(source->path);
    if (!reason && source->text.data && p->embedded) {
        bundle_pack_pack(p, source->path, source->text);
        return;
    }
    if (!reason)
        reason = source->text.data ? "embedded source" : read_path(p, source->path);
    if (reason)
        skip(p, source->path, reason);
    else
        bundle_pack_pack(p, source->path, sl_buf_bytes(&p->scratch));
}

/* ---- C# sources of il2cpp's generated C++ ---- */

/* Adds the path to p->seen; true if it was not there before. Sets p->failed when out of memory. */
static bool is_new(struct bundle_packing *p, struct sl_str path)
{
    bool made = false;
    void **slot = sl_map_find_or_add(&p->seen, path, &made);
    if (slot)
        *slot = p; /* any value: only the keys matter */
    else
        p->failed = true;
    return slot && made;
}

struct csharp {
    struct bundle_packing *p;
    struct source_path *items;
    size_t count, capacity;
};

/* Adds to the list the C# files that il2cpp's comments in generated C++ (`text`) name, each once. */
static void note_marks(struct csharp *c, struct sl_str text)
{
    struct sl_str line, file;
    uint32_t number;
    while (sl_str_next_line(&text, &line)) {
        if (!sl_il2cpp_mark(line, &file, &number) || !file.size || sl_map_get(&c->p->seen, file))
            continue;
        char *copy = sl_arena_strndup(&c->p->arena, file.data, file.size);
        if (copy && is_new(c->p, (struct sl_str){copy, file.size}) &&
            grow_list(c->p, &c->items, &c->capacity, c->count, sizeof *c->items))
            c->items[c->count++] = (struct source_path){.path = {copy, file.size}};
    }
}

static int by_path(const void *left, const void *right)
{
    return sl_str_compare(((const struct source_path *)left)->path, ((const struct source_path *)right)->path);
}

/* Packs the C# files that generated C++ sources refer to, in the order of their paths. */
static void pack_csharp(struct bundle_packing *p, const struct source_paths *paths)
{
    struct csharp c = {.p = p};
    for (size_t i = 0; i < paths->count; i++)
        is_new(p, paths->items[i].path); /* marks it as seen: pack_sources has packed or skipped it */
    for (size_t i = 0; i < paths->count && !p->failed; i++)
        /* both return NULL for a usable file; read_path reads it into p->scratch */
        if (!reason_of_name(paths->items[i].path) && !read_path(p, paths->items[i].path))
            note_marks(&c, sl_buf_view(&p->scratch));
    if (c.count)
        qsort(c.items, c.count, sizeof *c.items, by_path);
    for (size_t i = 0; i < c.count && !p->failed; i++)
        pack_path(p, &c.items[i]);
    free(c.items);
}

void pack_sources(struct bundle_packing *p, const struct source_paths *paths)
{
    for (size_t i = 0; i < paths->count && !p->failed; i++)
        pack_path(p, &paths->items[i]);
    if (p->il2cpp)
        pack_csharp(p, paths);
}

void packing_free(struct bundle_packing *p)
{
    free(p->packed);
    free(p->skipped);
    sl_map_free(&p->seen);
    sl_buf_free(&p->scratch);
    sl_arena_free(&p->arena);
}

/* ---- the line mapping: {"a.cpp": {"A.cs": {"C++ line": C# line, ...}}, "__debug-id__": {"<id>": {}}}, keys sorted ---- */

struct il2cpp_line {
    struct sl_str file;
    uint32_t line, number;
};

struct il2cpp_lines {
    struct bundle_packing *p;
    struct il2cpp_line *items;
    size_t count, capacity;
};

static void add_mark(void *arg, uint32_t line, struct sl_str file, uint32_t number)
{
    struct il2cpp_lines *m = arg;
    if (grow_list(m->p, &m->items, &m->capacity, m->count, sizeof *m->items))
        m->items[m->count++] = (struct il2cpp_line){file, line, number};
}

/* Orders by the name of the C# file, then by the line of the C++ file. */
static int by_file_and_line(const void *left, const void *right)
{
    const struct il2cpp_line *a = left, *b = right;
    int order = sl_str_compare(a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Writes the member of one C++ file: an object that maps each of its C# files to {"C++ line": C# line, ...}. */
static void write_marks(struct sl_json_writer *w, struct sl_str path, struct il2cpp_lines *m)
{
    qsort(m->items, m->count, sizeof *m->items, by_file_and_line);
    sl_json_put_key_str(w, path);
    sl_json_begin_object(w);
    for (size_t i = 0; i < m->count; i++) {
        char line[12]; /* a 32-bit number */
        if (i == 0 || !sl_str_equal(m->items[i].file, m->items[i - 1].file)) {
            if (i)
                sl_json_end_object(w);
            sl_json_put_key_str(w, m->items[i].file);
            sl_json_begin_object(w);
        }
        snprintf(line, sizeof line, "%u", m->items[i].line);
        sl_json_member_u64(w, line, m->items[i].number);
    }
    sl_json_end_object(w);
    sl_json_end_object(w);
}

/* Writes the member that names the program by its debug id: "__debug-id__": {"<id>": {}}. */
static void write_id(struct sl_json_writer *w, const struct sl_debug_id *id)
{
    char text[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(id, text);
    sl_json_member_object(w, "__debug-id__");
    sl_json_member_object(w, text);
    sl_json_end_object(w);
    sl_json_end_object(w);
}

bool pack_line_mapping(struct bundle_packing *p, const struct source_paths *paths, const struct sl_debug_id *id,
                       struct sl_buf *json)
{
    struct il2cpp_lines marks = {.p = p};
    struct sl_json_writer w = sl_json_writer(json);
    bool any = false, id_written = false;
    sl_json_begin_object(&w);
    for (size_t i = 0; i < paths->count && !p->failed; i++) {
        struct sl_str path = paths->items[i].path;
        marks.count = 0;
        if (reason_of_name(path) || read_path(p, path)) /* it cannot be used; otherwise p->scratch has its text */
            continue;
        sl_il2cpp_scan(sl_buf_view(&p->scratch), add_mark, &marks);
        if (!marks.count)
            continue;
        /* the keys of the object must be sorted: the member of the id comes before the first path that is greater */
        if (!id_written && sl_str_compare(SL_STR("__debug-id__"), path) < 0) {
            write_id(&w, id);
            id_written = true;
        }
        write_marks(&w, path, &marks);
        any = true;
    }
    if (!id_written)
        write_id(&w, id);
    sl_json_end_object(&w);
    free(marks.items);
    return any;
}
