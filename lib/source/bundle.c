/* Reads source bundles: opens the archive, reads the manifest, builds indexes, and finds files. */
#include "source/bundle.h"

#include "base/json_fields.h"
#include "base/map.h"
#include "base/search.h"
#include "ppdb/links.h"
#include "source/zip.h"

#include <stdlib.h>

enum { HEADER_SIZE = 8, MAX_MANIFEST = 256 << 20, MAX_FILES = 1000000 };

/* Limits for a hostile manifest. A file has, besides its contents, some 200 bytes in the archive and 200 to 1,000 bytes in the manifest, so
 * the manifest may be MANIFEST_PER_BYTE times as large as the archive, and at least MIN_MANIFEST_BUDGET. It may list more files than the
 * archive has entries: twice as many, and MORE_FILES. */
enum { MIN_MANIFEST_BUDGET = 4 << 20, MANIFEST_PER_BYTE = 8, MORE_FILES = 64 };

struct sl_bundle {
    struct sl_arena arena;
    struct sl_zip zip;
    struct sl_bundle_attributes attributes;
    struct sl_ppdb_links links;
    bool has_links;
    struct sl_bundle_file *files; /* sorted by name */
    size_t count;
    const struct sl_bundle_file **by_path, **by_url, **by_id; /* sorted by their key, then by name */
    size_t path_count, url_count, id_count;
    struct sl_map folded; /* Windows paths in lower case -> file; -> &ambiguous if several files match */
};

/* Stands in `folded` for several files whose paths differ only in case. */
static const struct sl_bundle_file ambiguous;
static const char *const type_names[] = {"source", "minified_source", "source_map", "indexed_ram_bundle"};

const char *sl_bundle_type_name(enum sl_bundle_type type)
{
    return type_names[type];
}

/* ---- manifest ---- */

/* Returns the path with slashes instead of backslashes: a copy in the arena if it has any. Data NULL when out of memory. */
static struct sl_str normalised(struct sl_str path, struct sl_arena *arena)
{
    if (!path.size || !memchr(path.data, '\\', path.size))
        return path;
    char *copy = sl_arena_strndup(arena, path.data, path.size);
    for (size_t i = 0; copy && i < path.size; i++)
        copy[i] = copy[i] == '\\' ? '/' : copy[i];
    return (struct sl_str){copy, copy ? path.size : 0};
}

/* Returns a copy of the text in ASCII lower case; data NULL when out of memory. */
static struct sl_str lower_ascii(struct sl_str text, struct sl_arena *arena)
{
    char *copy = sl_arena_strndup(arena, text.data, text.size);
    for (size_t i = 0; copy && i < text.size; i++)
        copy[i] = copy[i] >= 'A' && copy[i] <= 'Z' ? (char)(copy[i] + 32) : copy[i];
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Reads the headers of a file; their names are stored in lower case. The header `debug-id` is also the file's debug id, which stays nil if
 * it is malformed. False if the value is no object, or when out of memory. */
static bool read_headers(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_bundle_file *file = out;
    struct sl_arena_array headers = {.arena = s->json->arena, .item = sizeof *file->headers};
    struct sl_str name, value;
    if (!sl_fields_open(s, at, SL_JSON_OBJECT, "a map"))
        return false;
    while (sl_json_next(s->json, &name)) {
        if (!sl_json_text(s->json, &value))
            continue;
        struct sl_bundle_header header = {lower_ascii(name, s->json->arena), value}, *added;
        if (header.name.data && (added = sl_arena_array_add(&headers)))
            *added = header;
        else
            sl_json_no_memory(s->json);
        if (sl_str_equal(header.name, SL_STR("debug-id")))
            sl_debug_id_parse(value, &file->debug_id);
    }
    file->header_count = headers.count;
    file->headers = sl_arena_array_finish(&headers);
    return file->headers || sl_json_no_memory(s->json);
}

/* Reads the type of a file; an unknown type leaves the default, SL_BUNDLE_SOURCE. False if the value is no string. */
static bool read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (sl_str_equal(text, sl_str(type_names[i])))
            *(enum sl_bundle_type *)out = (enum sl_bundle_type)i;
    return true;
}

/* Reads a path, and turns its backslashes into slashes. When out of memory the JSON reader is set to failed: a file without its path would
 * not be found. */
static bool read_path(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text = {NULL, 0};
    bool good = sl_fields_text(s, at, &text);
    struct sl_str path = normalised(text, s->json->arena);
    *(struct sl_str *)out = path;
    return path.data || !text.data ? good : sl_json_no_memory(s->json);
}

static const struct sl_field file_fields[] = {
    SL_FIELD_BY(false, sl_bundle_file, type, "type", read_type),
    SL_FIELD_BY(false, sl_bundle_file, path, "path", read_path),
    SL_FIELD(TEXT, false, sl_bundle_file, url, "url"),
    {SL_STR("headers"), SL_FIELD_CUSTOM, false, 0, read_headers},
    SL_FIELDS_END,
};

/* Reads the manifest's description of the archive's file `name`. */
static void read_file(struct sl_fields *s, struct sl_str name, struct sl_arena_array *files)
{
    struct sl_bundle_file *file = sl_arena_array_add(files);
    if (!file)
        sl_json_no_memory(s->json);
    else if (sl_json_peek(s->json) != SL_JSON_OBJECT)
        sl_json_fail(s->json, "the description of a file is not an object");
    else {
        file->name = name;
        sl_fields_object(s, NULL, file_fields, file);
    }
}

/* Reads the manifest's member `files`. A manifest with many more files than the archive has is refused: it would cost much memory. */
static bool bundle_read_files(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_bundle *b = out;
    struct sl_arena_array files = {.arena = &b->arena, .item = sizeof *b->files};
    struct sl_str name;
    if (!sl_fields_open(s, at, SL_JSON_OBJECT, "a map"))
        return false;
    while (sl_json_next(s->json, &name))
        if (files.count >=
            2 * b->zip.count + MORE_FILES) /* of these, b->zip.count + MORE_FILES may be missing from the archive */
            sl_json_fail(s->json, "more files than the archive contains");
        else if (files.count > MAX_FILES)
            sl_json_fail(s->json, "too many files");
        else
            read_file(s, name, &files);
    b->count = files.count;
    b->files = sl_arena_array_finish(&files);
    return b->files || sl_json_no_memory(s->json);
}

/* Stores the source link rules in the arena, in the form that sl_ppdb_links_resolve() searches, and opens them as b->links. SL_MALFORMED if
 * there are too many, SL_BUSY when out of memory. */
static enum sl_code store_links(struct sl_bundle *b, const struct sl_ppdb_link *rules, size_t count)
{
    struct sl_buf stored = {.budget = b->arena.budget};
    enum sl_code code = sl_ppdb_links_build(rules, count, &stored, NULL);
    /* copies all bytes, NULs too */
    char *copy = code == SL_OK ? sl_arena_strndup(&b->arena, (const char *)stored.data, stored.size) : NULL;
    if (code == SL_OK && !copy)
        code = SL_BUSY;
    b->has_links = copy && stored.size;
    if (copy && !sl_ppdb_links_open((struct sl_bytes){(const uint8_t *)copy, stored.size}, &b->links))
        code = SL_MALFORMED;
    sl_buf_free(&stored);
    return code;
}

/* Reads the manifest's source links: patterns of paths, and URLs. The JSON reader is set to failed if they are invalid or memory is
 * short. */
static bool read_links(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_bundle *b = out;
    struct sl_arena_array links = {.arena = &b->arena, .item = sizeof(struct sl_ppdb_link)};
    struct sl_str pattern, url;
    if (!sl_fields_open(s, at, SL_JSON_OBJECT, "a map"))
        return false;
    while (sl_json_next(s->json, &pattern)) {
        struct sl_ppdb_link *link = NULL;
        if (!sl_json_text(s->json, &url))
            continue;
        if (links.count > SL_PPDB_MAX_LINKS)
            sl_json_fail(s->json, "too many source links");
        else if ((link = sl_arena_array_add(&links)))
            *link = (struct sl_ppdb_link){normalised(pattern, &b->arena), url};
        if (!s->json->failed && (!link || !link->pattern.data))
            sl_json_no_memory(s->json);
    }
    size_t count = links.count;
    const struct sl_ppdb_link *rules = sl_arena_array_finish(&links);
    if (s->json->failed)
        return true; /* the failure of the reader has its own message */
    enum sl_code code = rules ? store_links(b, rules, count) : SL_BUSY;
    if (code == SL_BUSY)
        return sl_json_no_memory(s->json);
    return code == SL_OK || sl_json_fail(s->json, "invalid source links");
}

/* Reads a debug id; a malformed one leaves it nil. */
static bool read_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text = {NULL, 0};
    bool good = sl_fields_text(s, at, &text);
    sl_debug_id_parse(text, out);
    return good;
}

static const struct sl_field manifest_fields[] = {
    {SL_STR("files"), SL_FIELD_CUSTOM, false, 0, bundle_read_files},
    {SL_STR("source_links"), SL_FIELD_CUSTOM, false, 0, read_links},
    SL_FIELD_BY(false, sl_bundle, attributes.debug_id, "debug_id", read_id),
    SL_FIELD(TEXT, false, sl_bundle, attributes.code_id, "code_id"),
    SL_FIELD(TEXT, false, sl_bundle, attributes.arch, "arch"),
    SL_FIELD(TEXT, false, sl_bundle, attributes.object_name, "object_name"),
    SL_FIELD(TEXT, false, sl_bundle, attributes.release, "release"),
    SL_FIELD(TEXT, false, sl_bundle, attributes.dist, "dist"),
    SL_FIELDS_END,
};

/* Reads the manifest into the bundle. SL_MALFORMED with the place of the first problem; SL_BUSY. */
static enum sl_code parse_manifest(struct sl_bundle *b, struct sl_str text, struct sl_error *error)
{
    struct sl_json j = sl_json(text, &b->arena, false);
    if (sl_json_peek(&j) == SL_JSON_OBJECT)
        sl_json_read_object(&j, manifest_fields, b);
    else
        sl_json_fail(&j, "expected an object");
    return sl_json_end(&j) ? SL_OK
                           : sl_fail(error, sl_json_code(&j), "failed to read source bundle manifest: %s at offset %zu",
                                     j.problem, j.at);
}

/* Reads the archive's manifest.json; if there are several, the last one. Its size is limited by that of the archive, because a small
 * archive could inflate to a huge manifest. */
static enum sl_code read_manifest(struct sl_bundle *b, struct sl_error *error)
{
    const struct sl_zip_entry *entry = NULL;
    struct sl_buf raw = {.budget = b->arena.budget};
    uint64_t limit = MIN_MANIFEST_BUDGET + MANIFEST_PER_BYTE * (uint64_t)b->zip.bytes.size;
    for (size_t i = 0; i < b->zip.count; i++)
        if (sl_str_equal(b->zip.entries[i].name, SL_STR("manifest.json")))
            entry = &b->zip.entries[i];
    if (!entry)
        return sl_fail(error, SL_MALFORMED, "malformed zip archive: no manifest.json");
    enum sl_code code = sl_zip_read(&b->zip, entry, limit < MAX_MANIFEST ? limit : MAX_MANIFEST, &raw, error);
    if (code == SL_OK) {
        char *text = sl_arena_strndup(&b->arena, (const char *)raw.data, raw.size);
        code =
            text ? parse_manifest(b, (struct sl_str){text, raw.size}, error) : sl_fail(error, SL_BUSY, "out of memory");
    }
    sl_buf_free(&raw);
    /* replaces the message of sl_zip_read(), which calls any entry beyond the limit a source file */
    return code == SL_UNSUPPORTED ? sl_fail(error, SL_MALFORMED, "the manifest of the source bundle is too large")
                                  : code;
}

/* ---- indexes ---- */

typedef int file_order(const struct sl_bundle_file *a, const struct sl_bundle_file *b);

static int name_order(const struct sl_bundle_file *a, const struct sl_bundle_file *b)
{
    return sl_str_compare(a->name, b->name);
}

static int path_order(const struct sl_bundle_file *a, const struct sl_bundle_file *b)
{
    return sl_str_compare(a->path, b->path);
}

static int url_order(const struct sl_bundle_file *a, const struct sl_bundle_file *b)
{
    return sl_str_compare(a->url, b->url);
}

static int id_order(const struct sl_debug_id *a, const struct sl_debug_id *b)
{
    int order = memcmp(a->uuid, b->uuid, sizeof a->uuid);
    if (order == 0 && a->age != b->age)
        return a->age < b->age ? -1 : 1;
    return order ? order : a->pdb20 - b->pdb20;
}

static int id_and_type_order(const struct sl_bundle_file *a, const struct sl_bundle_file *b)
{
    int order = id_order(&a->debug_id, &b->debug_id);
    return order ? order : (a->type > b->type) - (a->type < b->type);
}

static bool has_path(const struct sl_bundle_file *file)
{
    return file->path.size > 0;
}

static bool has_url(const struct sl_bundle_file *file)
{
    return file->url.size > 0;
}

static bool has_id(const struct sl_bundle_file *file)
{
    return !sl_debug_id_is_nil(&file->debug_id);
}

/* Compares items of an index, pointers to files, with the comparison function at `arg`. Equal ones stay in the order of b->files, in which
 * the pointers ascend. */
static int index_compare(const void *left, const void *right, void *arg)
{
    const struct sl_bundle_file *a = *(const struct sl_bundle_file *const *)left,
                                *b = *(const struct sl_bundle_file *const *)right;
    int order = (*(file_order *const *)arg)(a, b);
    return order ? order : (a > b) - (a < b);
}

/* Returns an array of the files for which `has` is true, sorted by `order`. NULL when out of memory. */
static const struct sl_bundle_file **make_index(struct sl_bundle *b, bool (*has)(const struct sl_bundle_file *),
                                                file_order *order, size_t *count)
{
    size_t found = 0;
    for (size_t i = 0; i < b->count; i++)
        found += has(&b->files[i]);
    const struct sl_bundle_file **index = SL_ARENA_ARRAY(&b->arena, const struct sl_bundle_file *, found + 1);
    *count = 0;
    for (size_t i = 0; index && i < b->count; i++)
        if (has(&b->files[i]))
            index[(*count)++] = &b->files[i];
    if (index)
        qsort_r(index, *count, sizeof *index, index_compare, &order); /* a function pointer is no void *: its address */
    return index;
}

/* True for "C:/..." and "//server/...". */
static bool is_windows_path(struct sl_str path)
{
    bool letter = path.size > 1 && ((path.data[0] | 32) >= 'a' && (path.data[0] | 32) <= 'z');
    return (letter && path.data[1] == ':') || sl_str_starts(path, SL_STR("//"));
}

/* Fills b->folded: Windows paths in lower case, to find them regardless of case, as Windows does. Paths that differ only in case are marked
 * as ambiguous: they are found only as they are written. False when out of memory. */
static bool fold_windows_paths(struct sl_bundle *b)
{
    for (size_t i = 0; i < b->path_count; i++) {
        const struct sl_bundle_file *file = b->by_path[i];
        if (!is_windows_path(file->path))
            continue;
        struct sl_str key = lower_ascii(file->path, &b->arena);
        void **slot = key.data ? sl_map_find_or_add(&b->folded, key, NULL) : NULL;
        if (!slot)
            return false;
        const struct sl_bundle_file *other = *slot;
        bool several = other && (other == &ambiguous || !sl_str_equal(other->path, file->path));
        *slot = (void *)(several ? &ambiguous : file);
    }
    return true;
}

/* Finds the archive entry of each file; of entries with the same name the last one is used. False when out of memory. */
static bool find_entries(struct sl_bundle *b)
{
    struct sl_map names = {.budget = b->arena.budget};
    bool good = true;
    for (size_t i = 0; i < b->zip.count && good; i++) {
        void **slot = sl_map_find_or_add(&names, b->zip.entries[i].name, NULL);
        good = slot;
        if (slot)
            *slot = &b->zip.entries[i];
    }
    for (size_t i = 0; i < b->count && good; i++)
        b->files[i].entry = sl_map_get(&names, b->files[i].name);
    sl_map_free(&names);
    return good;
}

static bool has_name(const struct sl_bundle_file *file)
{
    return file->name.data != NULL;
}

/* Sorts b->files by name. If the manifest has a name twice, the last description is kept: equal names stay in the order of the manifest.
 * False when out of memory. */
static bool sort_files(struct sl_bundle *b)
{
    size_t count, kept = 0;
    const struct sl_bundle_file **sorted = make_index(b, has_name, name_order, &count);
    struct sl_bundle_file *files = SL_ARENA_ARRAY(&b->arena, struct sl_bundle_file, count + 1);
    if (!sorted || !files)
        return false;
    for (size_t i = 0; i < count; i++) {
        kept -= kept && sl_str_equal(files[kept - 1].name, sorted[i]->name); /* overwrites the one before */
        files[kept++] = *sorted[i];
    }
    b->files = files;
    b->count = kept;
    return true;
}

/* Sorts the files by name, path, URL and id, and finds their entries in the archive. */
static enum sl_code make_indexes(struct sl_bundle *b, struct sl_error *error)
{
    if (!sort_files(b))
        return sl_fail(error, SL_BUSY, "out of memory");
    b->by_path = make_index(b, has_path, path_order, &b->path_count);
    b->by_url = make_index(b, has_url, url_order, &b->url_count);
    b->by_id = make_index(b, has_id, id_and_type_order, &b->id_count);
    if (!b->by_path || !b->by_url || !b->by_id || !find_entries(b) || !fold_windows_paths(b))
        return sl_fail(error, SL_BUSY, "out of memory");
    return SL_OK;
}

/* Opens the archive, after the header "SYSB" if there is one, reads the manifest and builds the indexes. */
static enum sl_code bundle_open(struct sl_bundle *b, struct sl_bytes bytes, struct sl_error *error)
{
    bool header = sl_str_starts((struct sl_str){(const char *)bytes.data, bytes.size}, SL_STR("SYSB"));
    enum sl_code code = sl_zip_open(bytes, header ? HEADER_SIZE : 0, &b->arena, &b->zip, error);
    if (code == SL_OK)
        code = read_manifest(b, error);
    return code == SL_OK ? make_indexes(b, error) : code;
}

enum sl_code sl_bundle_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bundle **out,
                            struct sl_error *error)
{
    struct sl_bundle *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return sl_fail(error, SL_BUSY, "out of memory");
    b->arena.budget = b->folded.budget = budget;
    enum sl_code code = bundle_open(b, bytes, error);
    sl_arena_detach_budget(&b->arena); /* the budget is only for opening; the bundle outlives it */
    sl_map_detach_budget(&b->folded);
    if (code != SL_OK) {
        sl_bundle_close(b);
        return code == SL_BUSY ? sl_budget_fail(budget, error) : code;
    }
    *out = b;
    return SL_OK;
}

void sl_bundle_close(struct sl_bundle *bundle)
{
    if (!bundle)
        return;
    sl_map_free(&bundle->folded);
    sl_arena_free(&bundle->arena);
    free(bundle);
}

/* ---- lookups ---- */

const struct sl_bundle_attributes *sl_bundle_attributes(const struct sl_bundle *bundle)
{
    return &bundle->attributes;
}

size_t sl_bundle_memory(const struct sl_bundle *bundle)
{
    return sizeof *bundle + bundle->arena.used + bundle->folded.capacity * sizeof *bundle->folded.entries;
}

bool sl_bundle_has_sources(const struct sl_bundle *bundle)
{
    return bundle->count || bundle->has_links;
}

size_t sl_bundle_count(const struct sl_bundle *bundle)
{
    return bundle->count;
}

const struct sl_bundle_file *sl_bundle_file(const struct sl_bundle *bundle, size_t index)
{
    return &bundle->files[index];
}

/* Returns the last file of the index that is equal to `wanted` in the index's `order`; NULL if none is. */
static const struct sl_bundle_file *last_equal(const struct sl_bundle_file *const *index, size_t count,
                                               const struct sl_bundle_file *wanted, file_order *order)
{
    size_t low = SL_PARTITION_POINT(middle, 0, count, order(index[middle], wanted) <= 0);
    return low && order(index[low - 1], wanted) == 0 ? index[low - 1] : NULL;
}

const struct sl_bundle_file *sl_bundle_by_name(const struct sl_bundle *bundle, struct sl_str name)
{
    size_t low = SL_PARTITION_POINT(middle, 0, bundle->count, sl_str_compare(bundle->files[middle].name, name) < 0);
    return low < bundle->count && sl_str_equal(bundle->files[low].name, name) ? &bundle->files[low] : NULL;
}

const struct sl_bundle_file *sl_bundle_by_path(const struct sl_bundle *bundle, struct sl_str path)
{
    struct sl_arena scratch = {0};
    struct sl_bundle_file wanted = {.path = normalised(path, &scratch)};
    const struct sl_bundle_file *found = NULL;
    if (wanted.path.size)
        /* files with equal paths are in the order of their names */
        found = last_equal(bundle->by_path, bundle->path_count, &wanted, path_order);
    if (!found && is_windows_path(wanted.path) && bundle->folded.count) {
        struct sl_str key = lower_ascii(wanted.path, &scratch);
        found = key.data ? sl_map_get(&bundle->folded, key) : NULL;
        found = found == &ambiguous ? NULL : found;
    }
    sl_arena_free(&scratch);
    return found;
}

const struct sl_bundle_file *sl_bundle_by_url(const struct sl_bundle *bundle, struct sl_str url)
{
    struct sl_bundle_file wanted = {.url = url};
    return url.size ? last_equal(bundle->by_url, bundle->url_count, &wanted, url_order) : NULL;
}

const struct sl_bundle_file *sl_bundle_by_debug_id(const struct sl_bundle *bundle, const struct sl_debug_id *id,
                                                   enum sl_bundle_type type)
{
    struct sl_bundle_file wanted = {.debug_id = *id, .type = type};
    return last_equal(bundle->by_id, bundle->id_count, &wanted, id_and_type_order);
}

bool sl_bundle_link(const struct sl_bundle *bundle, struct sl_str path, struct sl_buf *url)
{
    struct sl_arena scratch = {0};
    struct sl_str plain = normalised(path, &scratch);
    bool found = plain.data && sl_ppdb_links_resolve(&bundle->links, plain, url);
    sl_arena_free(&scratch);
    return found;
}

enum sl_code sl_bundle_read(const struct sl_bundle *bundle, const struct sl_bundle_file *file, uint64_t limit,
                            struct sl_buf *out, struct sl_error *error)
{
    if (!file->entry)
        return sl_fail(error, SL_NOT_FOUND,
                       "the source bundle does not contain the file \"%.*s\", which its manifest lists",
                       (int)(file->name.size < 500 ? file->name.size : 500), file->name.data);
    return sl_zip_read(&bundle->zip, file->entry, limit, out, error);
}
