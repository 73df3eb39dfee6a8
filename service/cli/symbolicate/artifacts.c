/* Scripts, source maps and artifact bundles in directories of this machine. */
#include "cli/symbolicate/artifacts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/file_walk.h"
#include "js/comment.h"
#include "js/names.h"
#include "source/bundle.h"

enum { MAX_FILES = 200000, MAX_PATH = 4096 }; /* MAX_FILES: how many files are indexed, since a directory may be `/` */

enum artifact_kind { ARTIFACT_BUNDLE, ARTIFACT_SCRIPT, ARTIFACT_MAP };

struct local_artifact {
    enum artifact_kind kind;
    const char *path;        /* on this machine */
    size_t next_of_name;     /* 1 + index of the next file of the same name; 0: none */
    struct remote_file file; /* describes it for searches, as a file of the source that stands for its directory */
    bool looked_at;          /* a script: its comments were read, which set `id` and `map_beside` */
    struct sl_debug_id id;   /* nil: none */
    struct local_artifact *next_of_id; /* in the list that scripts_of_id returns */
    struct sl_str map_beside; /* X.js.map beside a script that names no map, or one that is not there; empty: none */
    struct sl_mapping mapping;
    struct sl_bundle *bundle;
};

struct local_artifacts {
    struct sl_arena arena;
    /* one for each path that the user named: stands for the directory, or the single file's directory */
    struct source *sources;
    struct local_artifact *items;
    size_t count, capacity;
    struct sl_map paths; /* set of the items' paths */
    struct sl_map names; /* file name -> 1 + index of the first such item; made by index_names() */
};

/* ---- files ---- */

static bool ends(const char *path, const char *end)
{
    return sl_str_ends(sl_str(path), sl_str(end));
}

/* True if the path has a suffix of scripts or of script bundles. */
static bool path_is_script(const char *path)
{
    static const char *const names[] = {".js", ".mjs", ".cjs", ".jsx", ".ts", ".bundle", ".jsbundle", ".hbc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ends(path, names[i]))
            return true;
    return false;
}

/* Copies the text into the arena of `a`; data NULL when out of memory. */
static struct sl_str copy_text(struct local_artifacts *a, struct sl_str text)
{
    char *copy = sl_arena_strndup(&a->arena, text.data ? text.data : "", text.size);
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Returns a URI for the file, made of its path, time and size, so that a changed file is a different one to the cache. From the second
 * directory on it also has the directory's number, because the paths below two directories may be equal. data NULL when out of memory. */
static struct sl_str make_uri(struct local_artifacts *a, size_t directory, struct sl_str relative,
                              const struct stat *st)
{
    struct sl_buf uri = {0};
    sl_buf_cstr(&uri, "sentry://project_debug_file/");
    if (directory)
        sl_buf_printf(&uri, "%zu:", directory + 1);
    sl_buf_str(&uri, relative);
    sl_buf_printf(&uri, "#%" PRIx64 "%08lx-%" PRIx64, (uint64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                  (uint64_t)st->st_size);
    return sl_buf_move_to_arena(&uri, &a->arena);
}

/* Opens a ZIP file as an artifact bundle. False, after a warning, if it is none. */
static bool open_local_bundle(struct local_artifact *item)
{
    struct sl_error error = {0};
    enum sl_code code = sl_map_file(item->path, &item->mapping, &error);
    if (code == SL_OK)
        code = sl_bundle_open(item->mapping.bytes, NULL, &item->bundle, &error);
    if (code != SL_OK)
        print_note("warning: ignoring %s: %s\n", item->path, error.message);
    return code == SL_OK;
}

/* Adds the file `path` to the index; `relative` is its path below the directory of a->sources[directory]. A ZIP file that is no artifact
 * bundle is left out. False when out of memory. */
static bool add_file(struct local_artifacts *a, size_t directory, const char *path, struct sl_str relative,
                     const struct stat *st)
{
    struct local_artifact item = {.path = copy_text(a, sl_str(path)).data};
    item.kind = ends(path, ".map") ? ARTIFACT_MAP : ends(path, ".zip") ? ARTIFACT_BUNDLE : ARTIFACT_SCRIPT;
    /* FILE_SOURCEBUNDLE: the type that Sentry's artifact lookups give to files of all three kinds */
    item.file = (struct remote_file){
        .source = &a->sources[directory], .type = FILE_SOURCEBUNDLE, .path = copy_text(a, relative)};
    item.file.location = item.file.path;
    /* scripts and maps may be any text, so they are not refused if they look like the error page of a server */
    item.file.may_be_empty = item.file.may_be_page = item.kind != ARTIFACT_BUNDLE;
    item.file.uri = make_uri(a, directory, relative, st);
    if (!item.path || !item.file.path.data || !item.file.uri.data ||
        !sl_grow(&a->items, &a->capacity, a->count + 1, sizeof *a->items))
        return false;
    if (item.kind == ARTIFACT_BUNDLE && !open_local_bundle(&item)) {
        sl_unmap(&item.mapping);
        return true;
    }
    a->items[a->count++] = item;
    return sl_map_put(&a->paths, sl_str(item.path), (void *)item.path);
}

/* Adds a source map beside the file `script`: `reference`, relative to the script's directory, or if that is empty X.js.map. Needed if the
 * user named the script, not its directory. Nothing is added if there is no such file. False when out of memory. */
static bool add_map_beside(struct local_artifacts *a, size_t directory, const char *script, struct sl_str reference)
{
    char path[MAX_PATH];
    struct stat st;
    struct sl_str folder = {script, sl_str(script).size - path_file_name(sl_str(script)).size};
    int size = reference.size
                   ? snprintf(path, sizeof path, SL_STR_FMT SL_STR_FMT, SL_STR_ARG(folder), SL_STR_ARG(reference))
                   : snprintf(path, sizeof path, "%s.map", script);
    if (size < 0 || size >= (int)sizeof path || !ends(path, ".map") || sl_map_get(&a->paths, sl_str(path)) ||
        stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    return add_file(a, directory, path, (struct sl_str){path + folder.size, (size_t)size - folder.size}, &st);
}

/* Adds the source maps of a script that the user named instead of its directory: the one that its comment names, as a path or by name
 * beside the script, and X.js.map. False when out of memory. */
static bool add_maps_of(struct local_artifacts *a, size_t directory, const char *script)
{
    struct sl_mapping mapping = {0};
    struct sl_str reference = {NULL, 0};
    bool good = true;
    if (ends(script, ".map") || ends(script, ".zip") || sl_map_file(script, &mapping, NULL) != SL_OK)
        return true;
    if (sl_js_map_comment((struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size}, &reference) &&
        !sl_js_is_data_url(reference))
        good = add_map_beside(a, directory, script, reference) &&
               add_map_beside(a, directory, script, path_file_name(reference));
    sl_unmap(&mapping);
    return good && add_map_beside(a, directory, script, (struct sl_str){NULL, 0});
}

/* Adds the scripts, maps and ZIP files below the directory `path`, or the single file `path`, whatever its name is, with its maps. Makes
 * a->sources[directory] the source that stands for the directory, or for the file's directory. False when out of memory. */
static bool add_directory(struct local_artifacts *a, size_t directory, const char *path)
{
    struct sl_str root = sl_str(path), name = path_file_name(root);
    bool is_directory = path_is_directory(path), good = true;
    if (!is_directory)
        root = name.size < root.size ? (struct sl_str){path, root.size - name.size} : SL_STR(".");
    while (is_directory && root.size > 1 && sl_str_ends(root, SL_STR("/")))
        root.size--;
    /* configured: named by the user of this machine, not by a request */
    a->sources[directory] = (struct source){
        .id = SL_STR("local:cli"), .type = SOURCE_FILESYSTEM, .path = copy_text(a, root), .configured = true};
    struct file_walk walk;
    file_walk_open(&walk, path);
    good = a->sources[directory].path.data != NULL;
    for (const FTSENT *entry; good && a->count < MAX_FILES && (entry = file_walk_next(&walk));) {
        const char *at = entry->fts_path;
        struct sl_str relative = sl_str(at);
        if (is_directory && !path_is_script(at) && !ends(at, ".map") && !ends(at, ".zip"))
            continue;
        size_t skipped = is_directory ? root.size : relative.size - name.size;
        while (is_directory && skipped < relative.size && at[skipped] == '/')
            skipped++;
        relative = (struct sl_str){at + skipped, relative.size - skipped};
        good =
            add_file(a, directory, at, relative, entry->fts_statp) && (is_directory || add_maps_of(a, directory, at));
    }
    file_walk_close(&walk);
    return good;
}

/* Makes a->names: a list of the files of each name, linked by next_of_name. Both store 1 + index, as 0 ends a list. Goes backwards, so that
 * a list is in the order of the files. False when out of memory. */
static bool index_names(struct local_artifacts *a)
{
    for (size_t i = a->count; i-- > 0;) {
        void **first = sl_map_find_or_add(&a->names, path_file_name(sl_str(a->items[i].path)), NULL);
        if (!first)
            return false;
        a->items[i].next_of_name = (uintptr_t)*first;
        *first = (void *)(uintptr_t)(i + 1);
    }
    return true;
}

struct local_artifacts *local_artifacts_new(const char *const *paths, size_t count)
{
    struct local_artifacts *a = calloc(1, sizeof *a);
    bool good = a && (a->sources = calloc(count + 1, sizeof *a->sources));
    for (size_t i = 0; good && i < count; i++)
        good = add_directory(a, i, paths[i]);
    if (good && index_names(a))
        return a;
    local_artifacts_free(a);
    return NULL;
}

struct sl_str local_artifacts_only_script(const struct local_artifacts *a)
{
    const struct local_artifact *only = NULL;
    size_t counts[] = {[ARTIFACT_BUNDLE] = 0, [ARTIFACT_SCRIPT] = 0, [ARTIFACT_MAP] = 0};
    for (size_t i = 0; i < a->count; i++) {
        counts[a->items[i].kind]++;
        if (!only || only->kind == ARTIFACT_MAP || a->items[i].kind == ARTIFACT_SCRIPT)
            only = &a->items[i];
    }
    bool is_only = counts[ARTIFACT_SCRIPT] == 1 || (!counts[ARTIFACT_SCRIPT] && counts[ARTIFACT_MAP] == 1);
    if (!is_only || counts[ARTIFACT_BUNDLE])
        return (struct sl_str){NULL, 0};
    struct sl_str name = path_file_name(sl_str(only->path));
    name.size -= only->kind == ARTIFACT_MAP ? SL_STR(".map").size : 0;
    return name;
}

void local_artifacts_free(struct local_artifacts *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->count; i++) {
        sl_bundle_close(a->items[i].bundle);
        sl_unmap(&a->items[i].mapping);
    }
    sl_map_free(&a->paths);
    sl_map_free(&a->names);
    free(a->items);
    free(a->sources);
    sl_arena_free(&a->arena);
    free(a);
}

/* ---- scripts ---- */

/* Appends the path of a URL as a file path: without host and query, percent signs decoded. */
static void put_url_path(struct sl_str url, struct sl_buf *out)
{
    struct sl_str path = sl_js_strip_hostname(sl_js_without_parameters(url));
    for (size_t i = 0; i < path.size && path.data[i] != '?' && path.data[i] != '#'; i++) {
        int high = path.data[i] == '%' && i + 2 < path.size ? sl_hex_digit(path.data[i + 1]) : -1;
        int low = high >= 0 ? sl_hex_digit(path.data[i + 2]) : -1;
        sl_buf_u8(out, (uint8_t)(low >= 0 ? high * 16 + low : path.data[i]));
        i += low >= 0 ? 2 : 0;
    }
}

/* Returns 1 + the index of the first file that has the name of a URL's file; 0: none, or out of memory. */
static size_t files_of_name(const struct local_artifacts *a, struct sl_str url)
{
    struct sl_buf path = {0};
    put_url_path(url, &path);
    size_t first = (uintptr_t)sl_map_get(&a->names, path_file_name(sl_buf_view(&path)));
    sl_buf_free(&path);
    return first;
}

/* Reads a script's comments and sets item->id from them. If they name no source map, or one that is not indexed, sets item->map_beside to
 * X.js.map, provided that is indexed. An unreadable script has no comments. */
static void look_at_script(struct local_artifacts *a, struct local_artifact *item)
{
    struct sl_mapping mapping = {0};
    struct sl_str reference;
    char beside[MAX_PATH];
    bool has_map = false;
    item->looked_at = true;
    if (sl_map_file(item->path, &mapping, NULL) == SL_OK) {
        struct sl_str text = {(const char *)mapping.bytes.data, mapping.bytes.size};
        has_map = sl_js_map_comment(text, &reference) && (sl_js_is_data_url(reference) || files_of_name(a, reference));
        if (!sl_js_debug_id_comment(text, &item->id))
            item->id = (struct sl_debug_id){.age = 0};
        sl_unmap(&mapping);
    }
    if (!has_map && snprintf(beside, sizeof beside, "%s.map", item->path) < (int)sizeof beside &&
        sl_map_get(&a->paths, sl_str(beside)))
        item->map_beside = copy_text(a, path_file_name(sl_str(beside)));
}

/* Returns how many components at the end are equal in both paths: 2 for `/srv/js/app.js` and `js/app.js`. */
static size_t path_common_parts(struct sl_str a, struct sl_str b)
{
    size_t parts = 0, same = 0;
    while (same < a.size && same < b.size && a.data[a.size - same - 1] == b.data[b.size - same - 1])
        parts += a.data[a.size - ++same] == '/';
    /* the leftmost component, in which the comparison ended, counts only if it is equal as a whole */
    bool whole =
        (same == a.size || a.data[a.size - same - 1] == '/') && (same == b.size || b.data[b.size - same - 1] == '/');
    return parts + (whole && same > 0);
}

/* Returns the text before the first `c`; all of it if there is none. */
static struct sl_str text_before(struct sl_str text, char c)
{
    const char *found = text.size ? memchr(text.data, c, text.size) : NULL;
    return found ? (struct sl_str){text.data, (size_t)(found - text.data)} : text;
}

static struct sl_str get_directory(const char *path)
{
    struct sl_str whole = sl_str(path);
    return (struct sl_str){path, whole.size - path_file_name(whole).size};
}

/* Returns the list of scripts with this debug id, linked by next_of_id; NULL: none. */
static struct local_artifact *scripts_of_id(struct local_artifacts *a, const struct sl_debug_id *id)
{
    struct local_artifact *first = NULL;
    for (size_t i = 0; id && i < a->count; i++) {
        struct local_artifact *script = &a->items[i];
        if (script->kind != ARTIFACT_SCRIPT)
            continue;
        if (!script->looked_at)
            look_at_script(a, script);
        if (sl_debug_id_is_nil(&script->id) || !sl_debug_id_equal(&script->id, id))
            continue;
        script->next_of_id = first;
        first = script;
    }
    return first;
}

/* True if the file is one of the scripts with the wanted debug id (a list linked by next_of_id), or is a source map in the directory of
 * one. */
static bool has_id(const struct local_artifact *item, const struct local_artifact *scripts)
{
    for (; scripts; scripts = scripts->next_of_id)
        if (item == scripts ||
            (item->kind == ARTIFACT_MAP && sl_str_equal(get_directory(scripts->path), get_directory(item->path))))
            return true;
    return false;
}

/* Returns the best file outside of bundles for the query: one with its debug id, else one of its file name. Of several, it is the one whose
 * path has the longest common end with the query's. NULL: none. `*match` says whether the debug id or the URL decided. */
static struct local_artifact *find_plain(struct local_artifacts *a, const struct local_file_query *query,
                                         enum artifact_match *match)
{
    struct sl_buf buf = {0};
    put_url_path(query->path, &buf);
    struct sl_str path = sl_buf_view(&buf);
    struct local_artifact *best = NULL, *scripts = scripts_of_id(a, query->id);
    size_t most = 0;
    *match = MATCH_URL;
    /* if scripts have the debug id, goes through all files, since they may have any name; else through those of the query's name */
    size_t next = scripts ? 1 : files_of_name(a, query->path);
    for (; next; next = !scripts ? a->items[next - 1].next_of_name : next < a->count ? next + 1 : 0) {
        struct local_artifact *item = &a->items[next - 1];
        if (item->kind != (query->is_map ? ARTIFACT_MAP : ARTIFACT_SCRIPT))
            continue;
        size_t parts = path_common_parts(path, sl_str(item->path));
        /* a map beside a script with the id counts only if its file name is also the wanted one */
        bool by_id = (parts || !query->is_map) && has_id(item, scripts), was_by_id = *match == MATCH_DEBUG_ID;
        if (by_id > was_by_id || (by_id == was_by_id && parts > most)) {
            most = parts;
            best = item;
            *match = by_id ? MATCH_DEBUG_ID : MATCH_URL;
        }
    }
    sl_buf_free(&buf);
    if (best && !best->looked_at && best->kind == ARTIFACT_SCRIPT)
        look_at_script(a, best);
    return best;
}

/* Returns a source map for a script X that is not indexed itself: the file X.map whose path has the longest common end with the query's;
 * NULL: none. */
static struct local_artifact *find_lone_map(struct local_artifacts *a, const struct local_file_query *query)
{
    struct sl_buf path = {0};
    struct local_artifact *best = NULL;
    size_t most = 0;
    put_url_path(query->path, &path);
    sl_buf_cstr(&path, ".map");
    for (size_t i = 0; i < a->count; i++) {
        size_t parts =
            a->items[i].kind == ARTIFACT_MAP ? path_common_parts(sl_buf_view(&path), sl_str(a->items[i].path)) : 0;
        if (parts > most) {
            most = parts;
            best = &a->items[i];
        }
    }
    sl_buf_free(&path);
    return best;
}

/* ---- bundles ---- */

/* True if the bundle answers the query. With `by_id`, it must have a file with the query's debug id; else it must be of the query's release
 * and dist, and have a script with the query's stem (the URL's path without host, query and suffixes such as `.js` and `.map`). */
static bool bundle_serves(const struct sl_bundle *bundle, const struct local_file_query *query, bool by_id)
{
    const struct sl_bundle_attributes *attributes = sl_bundle_attributes(bundle);
    if (!by_id && (!query->release.size || !query->path.data || !sl_str_equal(attributes->release, query->release) ||
                   !sl_str_equal(attributes->dist, query->dist)))
        return false;
    for (size_t i = 0; i < sl_bundle_count(bundle); i++) {
        const struct sl_bundle_file *file = sl_bundle_file(bundle, i);
        bool is_script = file->type == SL_BUNDLE_SOURCE || file->type == SL_BUNDLE_MINIFIED_SOURCE;
        if (by_id ? sl_debug_id_equal(&file->debug_id, query->id)
                  : is_script && sl_str_equal(sl_js_stem(file->url), query->stem))
            return true;
    }
    return false;
}

/* ---- both kinds ---- */

/* Adds a bundle or a file to the answer of a query for the script or map `path`. A file gets this path, without a fragment, as its own, and
 * the map beside it as its header "sourcemap". False when out of memory. */
static bool put_artifact(struct sl_arena_array *list, const struct local_artifact *item, enum artifact_match match,
                         struct sl_str path)
{
    struct artifact *artifact = sl_arena_array_add(list);
    if (!artifact)
        return false;
    *artifact = (struct artifact){.file = item->file, .match = match, .is_bundle = item->kind == ARTIFACT_BUNDLE};
    if (!artifact->is_bundle) {
        artifact->abs_path = text_before(path, '#');
        artifact->has_headers = item->map_beside.size;
        artifact->sourcemap = item->map_beside;
    }
    return true;
}

/* Adds a script that does not exist to the answer, so that its header "sourcemap" names the map that does. Its path is that of the map
 * without ".map", and its `abs_path` the queried one. False when out of memory. */
static bool put_mapped(struct sl_arena_array *list, const struct local_artifact *map, struct sl_str path)
{
    const size_t end = SL_STR(".map").size;
    struct artifact *artifact = sl_arena_array_add(list);
    if (!artifact)
        return false;
    *artifact = (struct artifact){.file = map->file, .match = MATCH_URL, .has_headers = true};
    artifact->file.path.size -= end;
    artifact->file.location = artifact->file.path;
    artifact->file.uri = artifact->file.path; /* no contents, so no version */
    artifact->abs_path = text_before(path, '#');
    artifact->sourcemap = path_file_name(sl_str(map->path));
    return true;
}

bool local_artifacts_find(void *arg, const struct local_file_query *query, struct sl_arena *arena,
                          struct artifact **items, size_t *count)
{
    struct local_artifacts *a = arg;
    struct sl_arena_array list = {.arena = arena, .item = sizeof **items};
    bool good = true;
    /* bundles with the debug id come first, then those of the release */
    for (unsigned by_id = query->id ? 1 : 0;; by_id--) {
        for (size_t i = 0; good && i < a->count; i++)
            if (a->items[i].bundle && bundle_serves(a->items[i].bundle, query, by_id))
                good = put_artifact(&list, &a->items[i], by_id ? MATCH_DEBUG_ID : MATCH_RELEASE, query->path);
        if (!by_id)
            break;
    }
    enum artifact_match match;
    const struct local_artifact *plain = query->path.data ? find_plain(a, query, &match) : NULL;
    if (good && plain)
        good = put_artifact(&list, plain, match, query->path);
    /* a source map without its script is used only if nothing else answers the query */
    const struct local_artifact *lone =
        query->path.data && !plain && !query->is_map && !list.count ? find_lone_map(a, query) : NULL;
    if (good && lone)
        good = put_mapped(&list, lone, query->path);
    *count = list.count;
    *items = sl_arena_array_finish(&list);
    return good && *items;
}
