/* Writes source bundles: entries as they are added, the manifest last. */
#include "source/bundle.h"

#include "base/grow.h"
#include "base/json_write.h"
#include "base/map.h"
#include "source/text.h"
#include "source/zip.h"

#include <stdlib.h>

struct written_file {
    struct sl_str name, description; /* `description` is JSON */
};

struct sl_bundle_writer {
    struct sl_arena arena;
    struct sl_zip_writer zip;
    struct sl_map names; /* of the entries written so far; the values are of no meaning */
    struct written_file *files;
    size_t count, capacity;
    bool failed; /* out of memory: sl_bundle_finish() reports it */
};

/* ---- files ---- */

/* Returns a copy of the text in the arena; empty, with w->failed set, when out of memory. */
static struct sl_str copy_to_arena(struct sl_bundle_writer *w, struct sl_str text)
{
    char *copy = sl_arena_strndup(&w->arena, text.data, text.size);
    w->failed = w->failed || !copy;
    return (struct sl_str){copy, copy ? text.size : 0};
}

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Appends the name of the entry for a path: "files/" and the path, in which each sequence of slashes and backslashes, and a colon directly
 * before it, is replaced by one slash: `C:\src\\a.c` becomes "files/C/src/a.c". */
static void entry_name(struct sl_buf *out, struct sl_str path)
{
    sl_buf_cstr(out, "files");
    size_t at = 0;
    bool begins = path.size &&
                  (is_separator(path.data[0]) || (path.size > 1 && path.data[0] == ':' && is_separator(path.data[1])));
    if (!begins) /* for separators at the start of the path, the loop writes this slash */
        sl_buf_u8(out, '/');
    while (at < path.size) {
        bool colon = path.data[at] == ':' && at + 1 < path.size && is_separator(path.data[at + 1]);
        if (!colon && !is_separator(path.data[at])) {
            sl_buf_u8(out, (uint8_t)path.data[at++]);
            continue;
        }
        at += colon;
        while (at < path.size && is_separator(path.data[at]))
            at++;
        sl_buf_u8(out, '/');
    }
}

/* Returns an entry name for the path, or for the URL if there is no path, and reserves it. If the name is used, ".1", ".2" ... is appended.
 * Sets w->failed when out of memory. */
static struct sl_str free_name(struct sl_bundle_writer *w, struct sl_str path, struct sl_str url)
{
    struct sl_buf name = {0}, path_or_url = {0};
    if (!path.size && sl_str_starts(url, SL_STR("~/"))) { /* `~` stands for any scheme and host: files/_/_/a.js */
        sl_buf_cstr(&path_or_url, "_/_");
        sl_buf_add(&path_or_url, url.data + 1, url.size - 1);
    } else {
        sl_buf_str(&path_or_url, path.size ? path : url);
    }
    entry_name(&name, sl_buf_view(&path_or_url));
    w->failed = w->failed || path_or_url.failed;
    sl_buf_free(&path_or_url);
    size_t size = name.size;
    for (unsigned number = 1; !name.failed && sl_map_get(&w->names, sl_buf_view(&name)); number++) {
        name.size = size;
        sl_buf_printf(&name, ".%u", number);
    }
    struct sl_str copy = copy_to_arena(w, sl_buf_view(&name));
    void **slot = copy.data ? sl_map_find_or_add(&w->names, copy, NULL) : NULL;
    w->failed = w->failed || name.failed || !slot;
    if (slot)
        *slot = w; /* any value but NULL, which stands for an unused name */
    sl_buf_free(&name);
    return copy;
}

/* Returns the manifest's description of a file as JSON, in the arena; empty values are left out. Sets w->failed when out of memory. */
static struct sl_str describe(struct sl_bundle_writer *w, enum sl_bundle_type type, struct sl_str path,
                              struct sl_str url)
{
    struct sl_buf json = {0};
    struct sl_json_writer j = sl_json_writer(&json);
    sl_json_begin_object(&j);
    sl_json_member_str(&j, "type", sl_str(sl_bundle_type_name(type)));
    if (path.size)
        sl_json_member_str(&j, "path", path);
    if (url.size)
        sl_json_member_str(&j, "url", url);
    sl_json_end_object(&j);
    struct sl_str text = copy_to_arena(w, sl_buf_view(&json));
    w->failed = w->failed || json.failed;
    sl_buf_free(&json);
    return text;
}

struct sl_bundle_writer *sl_bundle_writer_new(struct sl_buf *out)
{
    struct sl_bundle_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->zip.out = out;
    sl_buf_cstr(out, "SYSB");
    sl_buf_u32(out, 2); /* version of the format */
    return w;
}

void sl_bundle_writer_free(struct sl_bundle_writer *writer)
{
    if (!writer)
        return;
    sl_buf_free(&writer->zip.directory);
    sl_map_free(&writer->names);
    sl_arena_free(&writer->arena);
    free(writer);
}

bool sl_bundle_add(struct sl_bundle_writer *writer, enum sl_bundle_type type, struct sl_str path, struct sl_str url,
                   struct sl_bytes text)
{
    if (!sl_str_is_utf8((struct sl_str){(const char *)text.data, text.size}))
        return false;
    struct sl_str name = free_name(writer, path, url);
    sl_zip_add(&writer->zip, name, text);
    struct sl_str description = describe(writer, type, path, url);
    if (sl_grow_in_arena(&writer->arena, &writer->files, &writer->capacity, writer->count + 1, sizeof *writer->files))
        writer->files[writer->count++] = (struct written_file){name, description};
    else
        writer->failed = true;
    return true;
}

/* ---- manifest ---- */

static int by_name(const void *left, const void *right)
{
    const struct written_file *a = left, *b = right;
    return sl_str_compare(a->name, b->name);
}

enum sl_code sl_bundle_finish(struct sl_bundle_writer *writer, const struct sl_bundle_attribute *attributes,
                              size_t count, struct sl_error *error)
{
    struct sl_buf json = {0};
    if (!writer->count)
        return sl_fail(error, SL_NOT_FOUND, "the source bundle would have no files");
    struct sl_json_writer j = sl_json_writer(&json);
    sl_json_begin_object(&j);
    qsort(writer->files, writer->count, sizeof *writer->files, by_name);
    sl_json_member_object(&j, "files");
    for (size_t i = 0; i < writer->count; i++) {
        sl_json_put_key_str(&j, writer->files[i].name);
        sl_json_put_raw(&j, writer->files[i].description);
    }
    sl_json_end_object(&j);
    for (size_t i = 0; i < count; i++) {
        sl_json_put_key_str(&j, attributes[i].name);
        sl_json_put_str(&j, attributes[i].value);
    }
    sl_json_end_object(&j);
    bool failed = writer->failed || json.failed;
    sl_zip_add(&writer->zip, SL_STR("manifest.json"), sl_buf_bytes(&json));
    sl_buf_free(&json);
    enum sl_code code = sl_zip_finish(&writer->zip, error);
    return code == SL_OK && failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}
