/* Lists the files that symbol sources have for a module. For most sources the paths follow from the module's ids; those that must be
 * asked over the network are asked concurrently. Also the kind `source_index`: the index of a symbol store, and its segments (the parts
 * that the store wrote in one go each). Entries of both are sorted lines
 *
 *     <name>/<id>/<name>      crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb
 *
 * Segments never change once they are written, so when an index grows, only its new segments are downloaded. */
#include "cache_kinds/impl.h"

#include "base/map.h"
#include "core/sigbus_guard.h"
#include "core/log.h"
#include "core/pool.h"

enum { INDEX_MAX = 512 << 20 }; /* limit of the size of an index in bytes */

struct source_index_request {
    const struct source *source;
    struct sl_str scope; /* scope of the cache entry */
    uint32_t number;     /* number of the segment, or of the last segment of the index; from 1 */
    uint32_t known;      /* for an index: last segment of an older, shorter index that may be cached; 0 = none */
    bool segment;        /* true: one segment; false: the index up to segment `number` */
};

/* ---- keys ---- */

/* Makes the cache key of an index (named by the number of its last segment) or of one segment; false when out of memory. The key of a
 * source that is not public also has the source's URL, as two requests may use one id for different sources. Sources whose ids begin with
 * "sentry:" need no URL: these ids name Sentry's built-in sources. */
static bool make_key(const struct source_index_request *r, struct sl_arena *arena, struct cache_key *key)
{
    bool global = r->source->is_public; /* one entry for all requests */
    struct sl_str root = global ? SL_STR("") : origin_root(r->source, arena);
    struct sl_buf text = {0};
    sl_buf_cstr(&text, "scope: ");
    sl_buf_str(&text, r->scope);
    sl_buf_printf(&text, "\n\ntype: symstore%s\nsource_id: ", r->segment ? "_segment" : "");
    sl_buf_str(&text, r->source->id);
    sl_buf_printf(&text, "\n%s: %u\n", r->segment ? "segment" : "last_id", r->number);
    if (!global && !sl_str_starts(r->source->id, SL_STR("sentry:"))) {
        sl_buf_cstr(&text, "url: ");
        sl_buf_str(&text, root);
        sl_buf_u8(&text, '\n');
    }
    *key = (struct cache_key){.text = sl_buf_move_to_arena(&text, arena), .scope = r->scope};
    return key->text.data && (global || root.data); /* NULL: no memory for one of the texts */
}

/* Gets an index or a segment from the cache, or makes it. */
static enum sl_code source_index_get(const struct source_index_request *r, struct sl_arena *arena,
                                     struct cache_item **item, struct sl_error *error)
{
    struct cache_key key;
    *item = NULL;
    if (!make_key(r, arena, &key))
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(&kind_source_index, &key, r, item, error);
}

/* ---- computing entries ---- */

struct listing_work {        /* for sort_and_write, on the pool */
    struct sl_bytes segment; /* downloaded segment, whose paths are added to `lines` first; empty = none */
    struct sl_buf *lines;
    int fd;          /* receives the sorted lines */
    size_t unparsed; /* number of lines of `segment` that could not be parsed */
};

/* Pool work: adds the paths of a downloaded segment, if there is one, to the lines (w->unparsed counts those it cannot parse), then sorts
 * the lines and writes them to the entry. */
static enum sl_code sort_and_write(void *arg, struct sl_error *error)
{
    struct listing_work *w = arg;
    if (w->segment.size)
        w->unparsed = origin_index_read(w->segment, w->lines);
    return origin_index_sort(w->lines) ? write_whole_file(w->fd, sl_buf_bytes(w->lines), error)
                                       : sl_fail(error, SL_BUSY, "out of memory");
}

/* Downloads a segment (a part of a symbol store's index) and writes its paths, sorted, to the entry. Lines that cannot be parsed are
 * skipped and logged. */
static enum sl_code make_segment(const struct source_index_request *r, struct cache_tmp *tmp, struct sl_arena *arena,
                                 struct sl_error *error)
{
    struct remote_file file;
    struct cache_tmp raw;
    struct sl_mapping mapping;
    struct sl_buf lines = {0};
    if (!origin_index_segment(r->source, r->number, arena, &file))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = cache_tmp_create(&raw, true, error); /* true: unlinked at once */
    if (code != SL_OK)
        return code;
    file.max_size = INDEX_MAX;
    code = origin_fetch(&file, raw.fd, error);
    if (code == SL_OK &&
        sl_map_fd(raw.fd, &mapping, error) != SL_OK) /* the cause is local, not at the source: SL_INTERNAL */
        code = error->code == SL_BUSY
                   ? SL_BUSY
                   : sl_fail(error, SL_INTERNAL, "cannot map segment %u of the symstore index into memory", r->number);
    else if (code == SL_OK) {
        /* the lines were empty: they become those of the segment */
        struct listing_work w = {.segment = mapping.bytes, .lines = &lines, .fd = tmp->fd};
        code = pool_call(POOL_CONVERT, sort_and_write, &w, error);
        if (w.unparsed)
            log_debug("find", "skipped lines without a file name in a segment of a symstore index",
                      LOG_SLSTR("source", r->source->id), LOG_U64("segment", r->number), LOG_U64("lines", w.unparsed));
        sl_unmap(&mapping);
    }
    sl_buf_free(&lines);
    cache_tmp_discard(&raw);
    return code;
}

/* Copies the lines of an older, shorter index (r->known) if it is still in memory, so that only the segments after it must be added.
 * Returns the number of its last segment; 0 if it is gone or cannot be read: then all segments must be added. */
static uint32_t begin_with(const struct source_index_request *r, struct sl_arena *arena, struct sl_buf *lines)
{
    struct source_index_request known = *r;
    struct cache_key key;
    struct cache_item *item;
    enum sl_code code;
    known.number = r->known;
    if (!r->known || !make_key(&known, arena, &key) || !cache_peek(&kind_source_index, &key, &code, &item, NULL) ||
        code != SL_OK) /* the cached result is an error */
        return 0;
    bool read = append_item_text(lines, item, NULL) == SL_OK;
    cache_release(item);
    if (!read)
        sl_buf_clear(lines);
    return read ? r->known : 0;
}

/* Adds the segments from number `from` to the end of the index, one after the other: servers throttle clients with many concurrent
 * requests. A segment that cannot be had makes the whole index fail, with SL_DOWNLOAD_ERROR; only SL_CANCELLED, SL_BUSY and
 * SL_INTERNAL, whose cause is local, stay as they are. */
static enum sl_code add_segments(const struct source_index_request *r, uint32_t from, struct sl_arena *arena,
                                 struct sl_buf *lines, struct sl_error *error)
{
    struct source_index_request one = *r;
    one.segment = true;
    for (one.number = from; one.number <= r->number; one.number++) {
        struct cache_item *item;
        enum sl_code code = source_index_get(&one, arena, &item, error);
        if (code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
            return code;
        if (code != SL_OK)
            return sl_fail(error, SL_DOWNLOAD_ERROR, "Failed to download symstore index segment %u", one.number);
        if (item->mapping.bytes.size > INDEX_MAX - lines->size)
            code = sl_fail(error, SL_MALFORMED, "the symstore index is larger than 512 MiB");
        else
            code = append_item_text(lines, item, error);
        cache_release(item);
        if (code != SL_OK)
            return code;
    }
    return SL_OK;
}

/* Makes the entry of a segment, or of an index: from the lines of an older, shorter index if that is in memory, and all later segments. */
static enum sl_code source_index_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    const struct source_index_request *r = context;
    struct sl_buf lines = {0};
    if (r->segment)
        return make_segment(r, tmp, arena, error);
    uint32_t from = begin_with(r, arena, &lines) + 1;
    enum sl_code code = add_segments(r, from, arena, &lines, error);
    struct listing_work w = {.lines = &lines, .fd = tmp->fd};
    if (code == SL_OK)
        code = pool_call(POOL_CONVERT, sort_and_write, &w, error);
    sl_buf_free(&lines);
    return code;
}

/* Copies the request into the arena of the computation, which may outlive the request. NULL when out of memory. */
static void *retain(const void *context, struct sl_arena *arena)
{
    const struct source_index_request *from = context;
    struct source_index_request *to = SL_ARENA_NEW(arena, struct source_index_request);
    if (!to)
        return NULL;
    *to = *from;
    to->source = source_copy(from->source, arena);
    to->scope.data = sl_arena_strndup(arena, from->scope.data, from->scope.size);
    return to->source && to->scope.data ? to : NULL;
}

static uint64_t capacity(const struct config *config)
{
    return config->source_index_capacity;
}

const struct cache_kind kind_source_index = {
    .name = "source_index",
    .section = CACHE_INDEX,
    .version = 1,
    .random_access = true,
    .capacity = capacity,
    .recursive = true,
    .compute = source_index_compute,
    .retain = retain,
};

/* ---- look-ups ---- */

enum { GOOD_MAX = 256 };
static struct good { /* the newest index of a source that could be downloaded */
    uint64_t source; /* hash of the source's key */
    uint32_t last;   /* number of the last segment of that index; 0 = none was available */
} good[GOOD_MAX];

/* Returns the slot of the hash table `good` that has the number of the newest index that could be downloaded from the request's source
 * (`last`; 0: none yet); NULL when out of memory. Two sources with the same slot overwrite each other's number: then the next index is made
 * from all its segments. */
static struct good *find_good(const struct source_index_request *r, struct sl_arena *arena)
{
    struct source_index_request any = *r;
    struct cache_key key;
    any.number = 0; /* the same key for all indexes of the source */
    if (!make_key(&any, arena, &key))
        return NULL;
    uint64_t hash = sl_hash(key.text.data, key.text.size);
    struct good *slot = &good[hash % GOOD_MAX];
    if (slot->source != hash)
        *slot = (struct good){.source = hash};
    return slot;
}

/* Gets the newest index of the source; if it cannot be downloaded, the newest one that could be (`good`). The slot in `good` is looked up
 * again after source_index_get, which suspends the fiber: another source may have taken it meanwhile. */
static enum sl_code current(const struct source *source, struct sl_str scope, struct sl_arena *arena,
                            struct cache_item **item, struct sl_error *error)
{
    struct source_index_request r = {.source = source,
                                     .scope = source->is_public || !scope.size ? SL_STR("global") : scope};
    enum sl_code code = origin_index_last(source, r.scope, &r.number, error);
    struct good *known = find_good(&r, arena);
    if (!known)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK) {
        r.known = known->last < r.number ? known->last : 0; /* the index to extend; 0: none */
        code = source_index_get(&r, arena, item, error);
        known = find_good(&r, arena);
        if (code == SL_OK && known)
            known->last = r.number;
    }
    if (code == SL_OK || code == SL_CANCELLED || code == SL_BUSY || !known || !known->last || known->last == r.number)
        return code; /* with known->last == r.number it is the very index that has just failed */
    log_warn("find", "cannot download the current index of a symbol source; using an older one",
             LOG_SLSTR("source", source->id), LOG_ERR(error));
    r.number = known->last;
    return source_index_get(&r, arena, item, error);
}

/* Look-up of files in an index, on the pool, as the lines of a large index may have to be read from the disk. */
struct finding {
    struct sl_bytes index;
    const struct remote_file *files;
    size_t count;
    struct sl_str *spellings; /* of the files, in the index; data NULL: the index does not have the file */
};

/* Pool work: finds the spelling of each file in the index. */
static enum sl_code find_all(void *arg, struct sl_error *error)
{
    const struct finding *f = arg;
    (void)error;
    for (size_t i = 0; i < f->count; i++)
        f->spellings[i] = origin_index_find(f->index, f->files[i].path);
    return SL_OK;
}

/* Gives the file the path as the index spells it, which may differ in case. False when out of memory. */
static bool respell(struct remote_file *file, struct sl_str spelling, struct sl_arena *arena)
{
    if (sl_str_equal(spelling, file->path))
        return true;
    const char *copy = sl_arena_strndup(arena, spelling.data, spelling.size);
    return copy && origin_set_path(file, (struct sl_str){copy, spelling.size}, arena);
}

struct respelling {
    struct finding *found;
    struct sl_arena *arena;
    struct remote_file *files;
    size_t kept;
    bool ok;
};

/* Moves the files that the index contains to the front of r->files, and gives them the index's spelling; r->ok is false when out of
 * memory. Runs on the loop, under a guard against SIGBUS, as the spellings are in the mapped index. */
static void respell_all(void *arg)
{
    struct respelling *r = arg;
    const struct finding *f = r->found;
    r->ok = true;
    for (size_t i = 0; r->ok && i < f->count; i++) {
        if (!f->spellings[i].data)
            continue;
        r->files[r->kept] = f->files[i];
        r->ok = respell(&r->files[r->kept++], f->spellings[i], r->arena);
    }
}

/* Removes the files that the index does not contain; `*count` becomes the number of the others, 0 on failure. SL_INTERNAL if the mapped
 * index cannot be read, SL_BUSY when out of memory. */
static enum sl_code filter(struct sl_bytes index, struct sl_arena *arena, struct remote_file *files, size_t *count,
                           struct sl_error *error)
{
    struct finding f = {index, files, *count, SL_ARENA_ARRAY(arena, struct sl_str, *count)};
    struct respelling r = {&f, arena, files, 0, false};
    enum sl_code code = f.spellings ? pool_call(POOL_CONVERT, find_all, &f, error) : SL_BUSY;
    if (code == SL_OK && !sigbus_guard_run(respell_all, &r))
        code = SL_INTERNAL;
    else if (code == SL_OK && !r.ok)
        code = SL_BUSY;
    *count = code == SL_OK ? r.kept : 0;
    return code;
}

enum sl_code source_index_filter(const struct source *source, struct sl_str scope, struct sl_arena *arena,
                                 struct remote_file *files, size_t *count, bool *failed)
{
    struct cache_item *item = NULL;
    struct sl_error error = {0};
    enum sl_code code = current(source, scope, arena, &item, &error);
    if (code != SL_OK) {
        *count = 0;
        if (code == SL_CANCELLED || code == SL_BUSY)
            return code;
        *failed = code != SL_NOT_FOUND; /* not found: the store has no index, so it has no files */
        log_warn("find", "cannot download the index of a symbol source; its files are not found",
                 LOG_SLSTR("source", source->id), LOG_ERR(&error));
        return SL_OK;
    }
    code = filter(item->mapping.bytes, arena, files, count, &error);
    cache_release(item);
    return code;
}

/* ---- listing ---- */

struct task {
    struct listing *listing;
    const struct object_id *id;
    struct sl_str scope;
    const enum file_type *types;
    size_t type_count;
    struct sl_arena *arena;
};

/* True if listing the files of this source may need a download: of Sentry's list of files, or of a symbol store's index. */
static bool needs_request(const struct source *source)
{
    return source->type == SOURCE_SENTRY || origin_has_index(source);
}

bool list_needs_no_io(const struct source *sources, size_t source_count)
{
    for (size_t i = 0; i < source_count; i++)
        if (needs_request(&sources[i]))
            return false;
    return true;
}

/* Fills in the listing of one source. A source that cannot be listed counts as empty, with SL_OK, so that the other sources are still
 * used; only SL_CANCELLED and SL_BUSY, which concern all sources, stay in the listing's `code`. */
static void list_one(void *arg)
{
    struct task *t = arg;
    struct listing *l = t->listing;
    struct sl_error error = {0};
    l->code = origin_list(l->source, t->id, t->types, t->type_count, t->arena, &l->files, &l->count, &error);
    if (l->code == SL_OK && l->count && origin_has_index(l->source))
        l->code = source_index_filter(l->source, t->scope, t->arena, l->files, &l->count, &l->failed);
    if (l->code == SL_OK)
        return;
    l->count = 0;
    if (l->code == SL_CANCELLED || l->code == SL_BUSY)
        return;
    /* "not found" and "permission denied" are answers: the source has no files. After other errors it may have some */
    l->failed = l->code != SL_NOT_FOUND && l->code != SL_PERMISSION_DENIED;
    log_debug("find", "cannot list the files of a symbol source", LOG_SLSTR("source", l->source->id), LOG_ERR(&error));
    l->code = SL_OK;
}

enum sl_code list_sources(const struct source *sources, size_t source_count, struct sl_str scope,
                          const struct object_id *id, const enum file_type *types, size_t type_count,
                          struct sl_arena *arena, struct listing *listings)
{
    /* not 0, so that NULL always means out of memory */
    struct task *tasks = SL_ARENA_ARRAY(arena, struct task, source_count ? source_count : 1);
    void **asking = SL_ARENA_ARRAY(arena, void *, source_count ? source_count : 1);
    size_t count = 0;
    if (!tasks || !asking)
        return SL_BUSY;
    for (size_t i = 0; i < source_count; i++) {
        listings[i] = (struct listing){.source = &sources[i]};
        tasks[i] = (struct task){&listings[i], id, scope, types, type_count, arena};
        if (needs_request(&sources[i]))
            asking[count++] = &tasks[i];
        else
            list_one(&tasks[i]);
    }
    if (count && !fiber_for_each(list_one, asking, count, count)) /* all at once; false: cancelled */
        return SL_CANCELLED;
    for (size_t i = 0; i < source_count; i++)
        if (listings[i].code != SL_OK)
            return listings[i].code;
    return SL_OK;
}
