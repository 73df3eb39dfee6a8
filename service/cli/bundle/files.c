/* `symloom bundle`: collects the source paths that an object names. */
#include "cli/bundle/bundle.h"

#include <stdlib.h>

#include "dwarf/dwarf.h"
#include "function/path.h"
#include "object/embedded.h"
#include "ppdb/ppdb.h"

static const uint64_t max_embedded = UINT64_C(64) << 20; /* bytes per source */

struct bundle_collector {
    struct sl_function_sink sink;
    struct source_paths *paths;
    struct sl_buf path;
};

/* Adds a path once, and returns its entry; NULL for an unusable path (empty or with a NUL), or when out of memory (paths->failed). */
static struct source_path *bundle_files_add(struct source_paths *paths, struct sl_str path)
{
    if (!path.size || memchr(path.data, '\0', path.size))
        return NULL;
    struct source_path *known = sl_map_get(&paths->known, path);
    if (known)
        return known;
    known = SL_ARENA_NEW(&paths->arena, struct source_path);
    char *copy = sl_arena_strndup(&paths->arena, path.data, path.size);
    if (!known || !copy || !sl_map_put(&paths->known, (struct sl_str){copy, path.size}, known)) {
        paths->failed = true;
        return NULL;
    }
    known->path = (struct sl_str){copy, path.size};
    return known;
}

/* Adds the full path of a file of the debug information, and returns its entry; NULL for an unusable path, or out of memory. */
static struct source_path *bundle_files_add_file(struct bundle_collector *c, const struct sl_file *file)
{
    sl_buf_clear(&c->path);
    sl_path_full(&c->path, file->comp_dir, file->directory, file->name);
    c->paths->failed |= c->path.failed;
    return bundle_files_add(c->paths, sl_buf_view(&c->path));
}

/* Receives a batch of functions with the files that they refer to; adds these files. The functions themselves are not needed. */
static enum sl_code bundle_files_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                         struct sl_error *error)
{
    struct bundle_collector *c = (struct bundle_collector *)sink;
    for (size_t i = 0; i < batch->file_count && !c->paths->failed; i++)
        bundle_files_add_file(c, &batch->files[i]);
    return c->paths->failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Called for each source text in the object's DWARF: stores it with its path, if it is the first of that path. False when out of memory. */
static bool add_text(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    struct bundle_collector *c = arg;
    struct source_path *path = bundle_files_add_file(c, file);
    if (path && !path->text.data)
        path->text = text;
    return !c->paths->failed;
}

/* ---- Portable PDB ---- */

/* Adds the paths of all documents of a Portable PDB, and the source texts embedded in it. Documents and texts that are damaged are skipped,
 * as is a Portable PDB that cannot be opened. */
static void bundle_files_read_documents(struct source_paths *paths, struct sl_bytes file)
{
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    struct sl_ppdb_document document;
    struct sl_ppdb_source source;
    struct sl_buf name = {0};
    uint32_t cursor = 0;
    if (sl_ppdb_open(file, &paths->arena, &ppdb, &info, NULL) != SL_OK)
        return;
    for (uint32_t row = 1; row <= info.document_count && !paths->failed; row++) {
        sl_buf_clear(&name);
        if (sl_ppdb_document(ppdb, row, &document, &name, NULL) == SL_OK)
            bundle_files_add(paths, sl_buf_view(&name));
    }
    while (!paths->failed && sl_ppdb_next_source(ppdb, &cursor, &source)) {
        struct sl_bytes text;
        sl_buf_clear(&name);
        if (sl_ppdb_document(ppdb, source.document, &document, &name, NULL) != SL_OK ||
            sl_ppdb_source_text(file, &source, max_embedded, &paths->arena, &text, NULL) != SL_OK)
            continue;
        struct source_path *path = bundle_files_add(paths, sl_buf_view(&name));
        if (path)
            /* NULL would mean: not embedded */
            path->text = text.data ? text : (struct sl_bytes){(const uint8_t *)"", 0};
    }
    sl_buf_free(&name);
}

/* ---- all formats ---- */

static int by_path(const void *left, const void *right)
{
    return sl_str_compare(((const struct source_path *)left)->path, ((const struct source_path *)right)->path);
}

/* Sorts the collected sources by path into paths->items, so that the same object always gives the same bundle. */
static void sort(struct source_paths *paths)
{
    paths->items = SL_ARENA_ARRAY(&paths->arena, struct source_path, paths->known.count + 1); /* + 1: never 0 items */
    paths->failed |= !paths->items;
    for (struct sl_map_entry *e = NULL; !paths->failed && (e = sl_map_next(&paths->known, e));)
        paths->items[paths->count++] = *(struct source_path *)e->value;
    if (paths->count)
        qsort(paths->items, paths->count, sizeof *paths->items, by_path);
}

enum sl_code source_paths_read(struct input *input, struct source_paths *paths, struct sl_error *error)
{
    *paths = (struct source_paths){.count = 0};
    struct bundle_collector c = {.sink = {.consume = bundle_files_consume}, .paths = paths};
    struct sl_bytes ppdb;
    enum sl_code code = input_read_functions(input, threads_parallel(0), &c.sink, error);
    if (code == SL_NOT_FOUND) /* no debug information: it names no sources */
        code = SL_OK;
    /* this and the following calls are made after an error, too: useless then, but harmless */
    sl_dwarf_sources(input_debug(input), add_text, &c);
    if (sl_object_info(input->object)->format == SL_FORMAT_PORTABLEPDB)
        bundle_files_read_documents(paths, sl_object_file(input->object));
    else if (sl_object_embedded_ppdb(input->object, &paths->arena, &ppdb, NULL) == SL_OK)
        bundle_files_read_documents(paths, ppdb);
    sort(paths);
    sl_buf_free(&c.path);
    return code == SL_OK && paths->failed ? sl_fail(error, SL_BUSY, "out of memory") : code;
}

void source_paths_free(struct source_paths *paths)
{
    sl_map_free(&paths->known);
    sl_arena_free(&paths->arena);
    *paths = (struct source_paths){.count = 0};
}
