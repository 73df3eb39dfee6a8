/* Finds source texts in scanned packages, and scanned files by their path. */
#include "scan/impl.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cache_kinds/sources.h"
#include "core/loop.h"
#include "core/pool.h"
#include "function/path.h"

enum {
    MAX_PACKAGES = 64,  /* packages of one source package that are searched for a text */
    CHECK_EVERY = 1024, /* objects compared between two looks at the clock */
};

/* ---- packages that were built from the same source ---- */

/* Returns the upstream part of a Debian version, without epoch and revision: "1.2" of "1:1.2-3". */
static struct sl_str upstream_version(struct sl_str version)
{
    const char *colon = version.size ? memchr(version.data, ':', version.size) : NULL;
    size_t skip = colon ? (size_t)(colon - version.data) + 1 : 0;
    version = (struct sl_str){version.data + skip, version.size - skip};
    const char *hyphen = version.size ? memrchr(version.data, '-', version.size) : NULL;
    if (hyphen)
        version.size = (size_t)(hyphen - version.data);
    return version;
}

/* Splits "name version" at its last blank: returns the name and sets `*version`, to a text with data NULL if there is no blank. */
static struct sl_str split_source(struct sl_str source, struct sl_str *version)
{
    const char *blank = source.size ? memrchr(source.data, ' ', source.size) : NULL;
    size_t size = blank ? (size_t)(blank - source.data) : source.size;
    *version = blank ? (struct sl_str){blank + 1, source.size - size - 1} : (struct sl_str){NULL, 0};
    return (struct sl_str){source.data, size};
}

/* True if both texts "name version" mean the same source package. "foo 1:1.2-3" and "foo 1.2" do: the first is how binary packages name
 * it, the second how its upstream source archive is named. */
static bool is_same_source(struct sl_str a, struct sl_str b)
{
    struct sl_str version_a, version_b;
    if (sl_str_equal(a, b))
        return true;
    if (!sl_str_equal(split_source(a, &version_a), split_source(b, &version_b)))
        return false;
    struct sl_str up_a = upstream_version(version_a), up_b = upstream_version(version_b);
    return sl_str_equal(up_a, version_b) || sl_str_equal(up_b, version_a);
}

struct source_package { /* texts lie in the arena */
    struct scan *scan;
    struct sl_index_file file;
};

struct package_search {           /* pool work, run for the index of one scan after the other */
    const struct sl_index *index; /* of `scan` */
    struct sl_bytes build_id;     /* of the program */
    struct sl_arena *arena;
    struct scan *scan;
    /* "name version" of the source package that the program was built from; empty until an index with the program is found */
    struct sl_str source;
    struct source_package *packages; /* those found so far: `*count`; room for MAX_PACKAGES */
    size_t *count;
};

/* Returns the "name version" of the source package that the program with s->build_id was built from; empty if the index does not know. */
static struct sl_str find_source_name(const struct package_search *s)
{
    struct sl_index_id id = sl_index_id(SL_INDEX_CODE_ID, s->build_id);
    struct sl_index_object object;
    struct sl_index_file file;
    size_t first, count = sl_index_find(s->index, &id, id.size, &first);
    for (size_t i = 0; i < count; i++)
        if (sl_index_object(s->index, first + i, &object) &&
            object.id.size == id.size && /* not only a longer id's start */
            sl_index_file(s->index, object.file, &file) && file.source.size)
            return file.source;
    return (struct sl_str){NULL, 0};
}

static bool copy_into(struct sl_arena *arena, struct sl_str *text)
{
    text->data = sl_arena_strndup(arena, text->data, text->size);
    return text->data;
}

/* Pool work: adds the packages of one index that contain source texts and were built from the source package s->source. */
static enum sl_code find_packages(void *arg, struct sl_error *error)
{
    struct package_search *s = arg;
    struct sl_index_file file;
    for (size_t i = 0; i < s->index->file_count && *s->count < MAX_PACKAGES; i++) {
        if (!sl_index_file(s->index, i, &file) || !file.source_texts || !is_same_source(file.source, s->source))
            continue;
        struct source_package *package = &s->packages[*s->count];
        *package = (struct source_package){s->scan, file};
        if (!copy_into(s->arena, &package->file.path) || !copy_into(s->arena, &package->file.source))
            return sl_fail(error, SL_BUSY, "out of memory");
        ++*s->count;
    }
    return SL_OK;
}

/* Pool work: sets s->source to the source package of the program with the build id. It stays empty if this index does not have the
 * program. */
static enum sl_code find_name(void *arg, struct sl_error *error)
{
    struct package_search *s = arg;
    struct sl_str name = find_source_name(s);
    if (!name.size)
        return SL_OK;
    s->source = name;
    return copy_into(s->arena, &s->source) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Runs a step (find_name or find_packages) for the index of each scan. find_name ends with the first index that has the program. */
static enum sl_code for_each_index(struct package_search *s, pool_step *step, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < CONFIG_MAX_SCANS && code == SL_OK; i++) {
        struct scan_index *index = scans[i].exists ? scan_index_retain(&scans[i]) : NULL;
        if (!index)
            continue;
        s->index = &index->index;
        s->scan = &scans[i];
        code = pool_call(POOL_IO | POOL_HEAVY, step, s, error);
        scan_index_release(index);
        if (step == find_name && s->source.size)
            break;
    }
    return code;
}

/* ---- the text in a package ---- */

/* Returns how well the path of a source text in a package (`member`) fits the asked path: the number of equal bytes at their ends; 0: not
 * at all; SIZE_MAX: both are equal. Source archives have a top directory, which may be missing or different in the asked path: the member
 * "/foo-1.0/src/x.c" of the source "foo" fits "/src/x.c", "./src/x.c", "/build/foo-1.0/src/x.c" and "/build/foo-1.0-2/src/x.c". */
static size_t match_path(struct sl_str asked, struct sl_str member, struct sl_str source_name)
{
    if (sl_str_equal(asked, member))
        return SIZE_MAX;
    const char *slash = member.size > 1 ? memchr(member.data + 1, '/', member.size - 1) : NULL;
    if (!slash)
        return 0;
    struct sl_str top = {member.data + 1, (size_t)(slash - member.data) - 1},
                  rest = {slash, member.size - top.size - 1}; /* with its slash */
    if (!sl_str_ends(asked, rest))
        return 0;
    struct sl_str front = {asked.data, asked.size - rest.size};
    const char *last = front.size ? memrchr(front.data, '/', front.size) : NULL;
    size_t skip = last ? (size_t)(last - front.data) + 1 : 0;
    struct sl_str directory = {front.data + skip, front.size - skip};
    bool fits = !directory.size || sl_str_equal(directory, SL_STR(".")) || sl_str_equal(directory, top) ||
                (source_name.size && sl_str_starts(directory, source_name));
    return fits ? rest.size : 0;
}

struct text_search { /* pool work, for one package */
    const struct sl_index *record;
    struct sl_str asked, source_name;
    size_t best;                   /* match_path() of the best text of all packages so far */
    bool is_unique;                /* no text with another path fits as well as the best */
    bool found_here;               /* the best text is in this package: `source` */
    struct sl_index_source source; /* its texts are views of the record */
};

/* Pool work: searches one package for a source text whose path fits better than the best of the packages before. Clears is_unique if
 * another path fits equally well, unless both are equal to the asked path (SIZE_MAX): that is the same file in several packages. */
static void find_text(void *arg)
{
    struct text_search *t = arg;
    struct sl_index_source source;
    t->found_here = false;
    for (size_t i = 0; i < t->record->source_count; i++) {
        size_t fit = sl_index_source(t->record, i, &source) ? match_path(t->asked, source.path, t->source_name) : 0;
        if (fit && fit == t->best)
            t->is_unique = t->is_unique && fit == SIZE_MAX;
        if (fit <= t->best)
            continue;
        t->best = fit;
        t->is_unique = true;
        t->found_here = true;
        t->source = source;
    }
}

/* Searches one package for a text that fits better than the best of the packages before; if there is one, t->found_here is true and
 * `*found` says where it is. */
static enum sl_code look_into(const struct source_package *package, struct text_search *t, struct sl_arena *arena,
                              struct indexed_file *found, struct sl_error *error)
{
    struct scan_file_request request = {.scan_id = sl_str(package->scan->id),
                                        .root = package->scan->config.path,
                                        .path = package->file.path,
                                        .size = package->file.size,
                                        .mtime_ns = package->file.mtime_ns,
                                        .kinds = package->scan->config.kinds};
    struct cache_item *item;
    request.root.data = sl_arena_strndup(arena, request.root.data, request.root.size); /* must be NUL-terminated */
    enum sl_code code =
        request.root.data ? scan_record_get(&request, arena, &item, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        return code;
    t->record = item->loaded;
    code = pool_run(POOL_IO | POOL_HEAVY, find_text, t, error);
    if (code == SL_OK && t->found_here &&
        !scan_place_format(&package->file, t->source.path, t->source.offset, t->source.size, arena, found))
        code = sl_fail(error, SL_BUSY, "out of memory");
    cache_release(item);
    return code;
}

/* Returns the scan's source in the configuration; NULL if it was removed. */
static const struct source *find_source(const struct config *config, const struct scan *scan)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (sl_str_equal(config->sources[i].id, sl_str(scan->id)))
            return &config->sources[i];
    return NULL;
}

/* Gets the source text at `place` in a package of the scan, as an entry of the cache kind `sourcefiles`. The request needs a file type, but
 * `place` alone decides what is read. */
static enum sl_code get_text(const struct scan *scan, const struct indexed_file *place, struct sl_arena *arena,
                             struct cache_item **item, struct sl_error *error)
{
    const struct config *config = config_retain(scan_config);
    struct remote_file file = {.source = find_source(config, scan), .type = FILE_SOURCEBUNDLE}; /* any type */
    /* url, location and member are for files from the web; `entry` empty: the file itself is wanted, not one in it */
    struct source_request request = {.scope = SL_STR("global"),
                                     .url = SL_STR(""),
                                     .location = SL_STR(""),
                                     .member = SL_STR(""),
                                     .entry = SL_STR(""),
                                     .file = &file};
    enum sl_code code = SL_NOT_FOUND;
    if (!file.source)
        sl_fail(error, code, "%s", ""); /* the scan was removed from the configuration */
    else if (!origin_set_path(&file, place->path, arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    else {
        file.checksum = place->version;
        file.may_be_page = true; /* a source text may be HTML */
        file.max_size = config->max_source_file_size == UINT64_MAX ? 0 : config->max_source_file_size; /* 0: no limit */
        code = source_file_get(&request, arena, item, error);
    }
    config_release(config);
    return code;
}

enum sl_code scan_find_source(struct sl_bytes build_id, struct sl_str path, struct sl_arena *arena,
                              struct cache_item **item, struct sl_error *error)
{
    struct sl_str version;
    size_t count = 0;
    struct package_search s = {.build_id = build_id, .arena = arena, .count = &count};
    struct indexed_file found = {.path = {NULL, 0}};
    const struct scan *scan = NULL;
    *item = NULL;
    s.packages = SL_ARENA_ARRAY(arena, struct source_package, MAX_PACKAGES);
    enum sl_code code = s.packages ? for_each_index(&s, find_name, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && s.source.size)
        code = for_each_index(&s, find_packages, error);
    if (code != SL_OK)
        return code;
    struct text_search t = {.asked = path, .source_name = split_source(s.source, &version)};
    /* the last error of reading a package, reported if no text is found */
    struct sl_error failure = {.code = SL_NOT_FOUND};
    for (size_t i = 0; i < count; i++) {
        code = look_into(&s.packages[i], &t, arena, &found, error);
        if (code == SL_CANCELLED || code == SL_BUSY)
            return code;
        /* not for a package that was removed (SL_NOT_FOUND) or is damaged: it counts as one without the text */
        if (code != SL_OK && code != SL_NOT_FOUND && code != SL_MALFORMED)
            failure = *error;
        if (code == SL_OK && t.found_here)
            scan = s.packages[i].scan;
    }
    if (!scan || !t.is_unique) /* no text, or several that fit equally well */
        return sl_fail(error, failure.code, "%s", failure.message);
    return get_text(scan, &found, arena, item, error);
}

/* ---- files by their path ---- */

struct name_search { /* pool work, run for the index of one scan after the other */
    const struct scan_name_query *query;
    const struct sl_index *index;
    const char *pattern; /* NUL-terminated */
    struct sl_arena *arena;
    struct sl_arena_array files;
    uint64_t end_ns;
    size_t count;
    bool complete;    /* no limit was reached */
    bool has_cut_ids; /* files are left out, as the index has only the first bytes of their long ids */
};

/* True if the path, NUL-terminated, matches the query's pattern. */
static bool name_matches(const struct name_search *s, const struct sl_buf *path)
{
    return s->query->is_glob ? fnmatch(s->pattern, (const char *)path->data, FNM_PATHNAME) == 0
                             : strcmp(s->pattern, (const char *)path->data) == 0;
}

/* Adds an object of the index to the results if its path matches; `path` is a buffer for that. An object in a package is matched by its
 * path there, another one by the path of its file with a slash in front. An object with a longer id than the index can hold is left out,
 * as its whole id is not known: s->has_cut_ids tells the caller. False when out of memory. */
static bool add_named(struct name_search *s, const struct sl_index_object *object, struct sl_buf *path)
{
    struct sl_index_file file;
    if (!sl_index_file(s->index, object->file, &file))
        return true;
    sl_buf_clear(path);
    sl_index_member_path(object, path);
    bool is_member = path->size > 0;
    if (!is_member) {
        sl_buf_u8(path, '/');
        sl_buf_str(path, file.path);
    }
    sl_buf_u8(path, '\0');
    if (path->failed || !name_matches(s, path))
        return !path->failed;
    s->has_cut_ids |= object->id.size > SL_INDEX_ID_BYTES;
    if (object->id.size > SL_INDEX_ID_BYTES)
        return true;
    struct scan_named_file *named = sl_arena_array_add(&s->files);
    if (!named)
        return false;
    struct sl_str directory;
    *named = (struct scan_named_file){.id = object->id,
                                      .is_executable = object->content & SL_INDEX_CODE,
                                      .path = {(const char *)path->data, path->size - 1}};
    if (is_member)
        sl_path_split(file.path, &directory, &named->package);
    s->count++;
    return copy_into(s->arena, &named->path) && copy_into(s->arena, &named->package);
}

/* Pool work: adds the files of one index that have a build id and a matching path. Stops with `complete` false at the limit of time or
 * number. */
static enum sl_code find_names(void *arg, struct sl_error *error)
{
    struct name_search *s = arg;
    struct sl_index_object object;
    struct sl_buf path = {0};
    bool good = true;
    for (size_t i = 0; good && s->complete && i < s->index->object_count; i++) {
        if (i % CHECK_EVERY == 0 && clock_mono_ns() >= s->end_ns)
            s->complete = false;
        else if (!sl_index_object(s->index, i, &object) || object.id.type != SL_INDEX_CODE_ID)
            continue;
        else if (s->count >= s->query->max_count)
            s->complete = false;
        else
            good = add_named(s, &object, &path);
    }
    sl_buf_free(&path);
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

enum sl_code scan_find_by_name(const struct scan_name_query *query, struct sl_arena *arena,
                               struct scan_named_file **files, size_t *count, bool *complete, struct sl_error *error)
{
    struct name_search s = {.query = query,
                            .arena = arena,
                            .pattern = sl_arena_strndup(arena, query->pattern.data, query->pattern.size),
                            .files = {.arena = arena, .item = sizeof(struct scan_named_file)},
                            .end_ns = clock_mono_ns() + query->max_ns,
                            .complete = true};
    enum sl_code code = s.pattern ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < CONFIG_MAX_SCANS && code == SL_OK; i++) {
        struct scan_index *index = scans[i].exists ? scan_index_retain(&scans[i]) : NULL;
        if (!index)
            continue;
        s.index = &index->index;
        code = pool_call(POOL_WALK, find_names, &s, error);
        scan_index_release(index);
    }
    *count = code == SL_OK ? s.count : 0;
    *complete = s.complete && !s.has_cut_ids;
    *files = code == SL_OK ? sl_arena_array_finish(&s.files) : NULL;
    if (code != SL_OK)
        sl_arena_array_discard(&s.files);
    return code;
}
