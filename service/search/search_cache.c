/* The cache of finished searches. Its key is the list of sources, the module's ids, and what the file was searched for. */
#include "search/impl.h"

#include <stdlib.h>

#include "core/lru.h"

enum {
    SEARCH_CACHE_BYTES = 8 << 20,
    MAX_KEY = 2048,   /* bytes; searches with longer keys are not cached */
    MAX_ENTRIES = 64, /* searches that used more cache entries are not cached */
};

struct used_entry { /* a cache entry that the search used */
    struct cache_handle handle;
    /* a miss that the search passed to cache_renew(): once it is so old that cache_renew() would look it up again, so must the search */
    bool is_renewed;
};

struct search_cache_entry {
    struct lru_entry lru;
    uint32_t references; /* one of `searches`, and one of each arena whose search this entry answered */
    struct search_cache_value outcome;
    struct used_entry *used_entry; /* array of entry_count */
    size_t entry_count;
    struct cache_handle table; /* of the entry made from the chosen file, such as a symcache; zeros if there is none */
    struct sl_arena arena;     /* owns everything, this struct too */
};

/* ---- the entries ---- */

/* Drops a reference; frees the entry with the last one. The arena lies inside the memory that it owns, so it is copied before it is
 * freed. */
static void search_cache_entry_unref(void *arg)
{
    struct search_cache_entry *r = arg;
    if (--r->references)
        return;
    struct sl_arena arena = r->arena;
    sl_arena_free(&arena);
}

static void search_cache_entry_release(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    search_cache_entry_unref(LRU_ITEM(entry, struct search_cache_entry, lru));
}

static struct lru searches = {
    .max_size = SEARCH_CACHE_BYTES, .max_count = SIZE_MAX, .release = search_cache_entry_release};

void search_cache_clear(void)
{
    lru_clear(&searches);
}

/* ---- keys ---- */
struct search_key {
    uint8_t bytes[MAX_KEY];
    size_t size;
    bool is_long; /* too long: the search is not cached */
};

/* Appends bytes to a key. One that does not fit marks the key as too long: such a search is not cached. */
static void key_add(struct search_key *key, const void *data, size_t size)
{
    key->is_long = key->is_long || size > sizeof key->bytes - key->size;
    if (key->is_long || !size)
        return;
    memcpy(key->bytes + key->size, data, size);
    key->size += size;
}

static void key_add_text(struct search_key *key, struct sl_str text)
{
    key_add(key, &text.size, sizeof text.size);
    key_add(key, text.data, text.size);
}

/* Makes the key of a search from everything that determines its result. `list` is the number of its list of sources. `use` is a pointer to
 * a constant, so its address identifies it. Data NULL if the key is too long: then the search is not cached. */
static struct sl_str make_key(struct search_key *key, uint64_t list, struct sl_str scope,
                              const struct search_target *use, const struct object_id *id)
{
    const uint8_t type[2] = {(uint8_t)id->type, id->has_debug_id};
    key->size = 0;
    key->is_long = false;
    key_add(key, &list, sizeof list);
    key_add(key, &use, sizeof use);
    key_add(key, type, sizeof type);
    if (id->has_debug_id) {
        key_add(key, id->debug_id.uuid, sizeof id->debug_id.uuid);
        key_add(key, &id->debug_id.age, sizeof id->debug_id.age);
        key_add(key, &id->debug_id.pdb20, sizeof id->debug_id.pdb20);
    }
    key_add_text(key, scope);
    key_add_text(key, id->code_id);
    key_add_text(key, id->code_file);
    key_add_text(key, id->debug_file);
    key_add_text(key, id->debug_checksum);
    return key->is_long ? (struct sl_str){NULL, 0} : (struct sl_str){(const char *)key->bytes, key->size};
}

/* ---- look-ups ---- */

/* True if every cache entry that the search used is in memory and unchanged, and no renewed miss is old enough to be looked up again. */
static bool is_still_valid(const struct search_cache_entry *r)
{
    for (size_t i = 0; i < r->entry_count; i++)
        if (!cache_peek_handle(&r->used_entry[i].handle, r->used_entry[i].is_renewed, NULL))
            return false;
    return true;
}

const struct search_cache_value *search_cache_get(const struct search_scope *where, const struct search_target *use,
                                                  const struct object_id *id, struct cache_item **item)
{
    struct search_key key;
    struct sl_str text = where->list ? make_key(&key, where->list, where->scope, use, id) : (struct sl_str){NULL, 0};
    struct lru_entry *found = text.data ? lru_get(&searches, text, 0) : NULL; /* 0: results do not expire by time */
    if (!found)
        return NULL;
    struct search_cache_entry *r = LRU_ITEM(found, struct search_cache_entry, lru);
    /* r->table is the handle of the entry made from the chosen file, such as a symcache; serial 0: there is none */
    if (!is_still_valid(r) || (r->table.serial && !cache_peek_handle(&r->table, false, item))) {
        lru_remove(&searches, found);
        return NULL;
    }
    /* The result has pointers into the entry, so the caller's arena holds a reference to the entry until the arena is freed. */
    if (!sl_arena_on_free(where->arena, search_cache_entry_unref, r)) {
        if (item)
            cache_release(*item);
        if (item)
            *item = NULL;
        return NULL;
    }
    r->references++;
    return &r->outcome;
}

/* ---- storing ---- */

/* Records the cache entries that the search used for these candidates. False if one has no handle (it is not in memory) or there are too
 * many: then the search cannot be cached, as nothing would tell when its result is outdated. */
static bool record_entries(struct search_cache_entry *r, const struct candidate_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (files[i].skipped)
            continue;
        if (!files[i].look.handle.serial || r->entry_count == MAX_ENTRIES)
            return false;
        /* renewed: a miss that is looked up again when it is old, so the search must not be cached longer than that */
        r->used_entry[r->entry_count++] = (struct used_entry){files[i].look.handle, files[i].renewed};
    }
    return true;
}

/* Copies a text into the arena; data NULL stays NULL. Sets `*good` to false when out of memory. */
static struct sl_str copy_text(struct sl_arena *arena, struct sl_str text, bool *good)
{
    if (!text.data)
        return text;
    const char *copy = sl_arena_strndup(arena, text.data, text.size);
    *good = *good && copy;
    return (struct sl_str){copy, text.size};
}

/* Copies the search's result with all its texts into r->outcome, in the entry's arena. False when out of memory. */
static bool copy_value(struct search_cache_entry *r, const struct search_cache_value *outcome)
{
    size_t count = outcome->candidates.count;
    struct candidate *items = SL_ARENA_ARRAY(&r->arena, struct candidate, count + 1); /* + 1, as the number may be 0 */
    struct sl_error *error = outcome->error ? SL_ARENA_NEW(&r->arena, struct sl_error) : NULL;
    bool good = items && (error || !outcome->error);
    r->outcome = *outcome;
    r->outcome.candidates = (struct candidate_list){items, count, count};
    r->outcome.error = error;
    r->outcome.source = copy_text(&r->arena, outcome->source, &good);
    r->outcome.path = copy_text(&r->arena, outcome->path, &good);
    if (good && error)
        *error = *outcome->error;
    for (size_t i = 0; good && i < count; i++) {
        struct candidate *copy = &items[i];
        *copy = outcome->candidates.items[i];
        copy->source = copy_text(&r->arena, copy->source, &good);
        copy->location = copy_text(&r->arena, copy->location, &good);
        copy->download_details = copy_text(&r->arena, copy->download_details, &good);
        copy->debug.details = copy_text(&r->arena, copy->debug.details, &good);
        copy->unwind.details = copy_text(&r->arena, copy->unwind.details, &good);
    }
    return good;
}

/* Fills an entry with its key, a copy of the result and handles of the cache entries that the search used. False when out of memory, or if
 * one of them is not in memory: then the search cannot be cached. */
static bool fill_entry(struct search_cache_entry *r, const struct search *search, struct sl_str key,
                       const struct search_cache_value *outcome)
{
    bool good = true;
    r->lru.key = copy_text(&r->arena, key, &good);
    r->used_entry = SL_ARENA_ARRAY(&r->arena, struct used_entry, search->count + search->other_count);
    r->table = search->table.handle;
    /* table.kind is set if the entry made from the chosen file was looked up: then it too must be in memory */
    return good && r->used_entry && record_entries(r, search->files, search->count) &&
           record_entries(r, search->others, search->other_count) && (!search->table.kind || r->table.serial) &&
           copy_value(r, outcome);
}

/* Allocates an entry inside its own arena, so that one call frees everything. */
static struct search_cache_entry *search_cache_entry_new(void)
{
    struct sl_arena arena = {.next_chunk = 2048}; /* bytes of its first chunk */
    struct search_cache_entry *r = SL_ARENA_NEW(&arena, struct search_cache_entry);
    if (r) {
        r->references = 1;
        r->arena = arena;
    }
    return r;
}

void search_cache_put(const struct search *search, const struct search_target *use,
                      const struct search_cache_value *outcome)
{
    struct search_key key;
    /* not cached: searches of a list of sources that has no number (list 0), as the key needs it; searches that a fiber has worked for
     * (helped), which used cache entries of which the search has no handles; failures of this process */
    if (!search->list || search->helped || outcome->code == SL_BUSY || outcome->code == SL_CANCELLED)
        return;
    struct sl_str text = make_key(&key, search->list, search->scope, use, search->id);
    struct search_cache_entry *r = text.data ? search_cache_entry_new() : NULL;
    if (!r)
        return;
    bool good = fill_entry(r, search, text, outcome);
    r->lru.size = r->arena.used;
    if (!good || !lru_put(&searches, &r->lru))
        search_cache_entry_unref(r);
}
