/* Finds the ids of modules by their path or name. */
#include "scan/impl.h"

#include <string.h>

#include "base/map.h"
#include "core/loop.h"
#include "core/pool.h"
#include "function/path.h"

enum { CHECK_EVERY = 1024 };

struct module_candidate { /* the best file so far for a query */
    struct sl_index_id id;
    enum sl_format format;
    size_t parts; /* how many components at the end of its path are those of the query's path; 0: no file yet */
    int64_t mtime_ns;
    size_t next;  /* another query with the same name: index plus 1 */
    bool several; /* files with other ids have as many equal components */
};

struct module_search { /* pool work, for one scan */
    struct scan_module_query *queries;
    struct module_candidate *best; /* one per query */
    struct sl_map by_name;         /* index of the first query with the name, plus 1 */
    const struct sl_index *index;
    bool newest, in_time;
    uint64_t end_ns;
    size_t work; /* objects and comparisons so far, in all scans */
};

static bool is_same_id(const struct sl_index_id *a, const struct sl_index_id *b)
{
    return a->type == b->type && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* True if the object is listed here under the id by which other sources are asked for such a file (the debug id for PE and PDB, else the
 * code id), and the index has all bytes of it. So each file is compared once. */
static bool is_main_id(const struct sl_index_object *object)
{
    bool has_debug_id = object->format == SL_FORMAT_PE || object->format == SL_FORMAT_PDB;
    return object->id.type == (has_debug_id ? SL_INDEX_DEBUG_ID : SL_INDEX_CODE_ID) && object->id.size &&
           object->id.size <= SL_INDEX_ID_BYTES;
}

/* Makes the file the best candidate of a query if its path ends with more components of the query's path than the present one. If both
 * have equally many and the same id, the newer file wins. With equally many and another id the candidate becomes ambiguous (`several`);
 * it is replaced then only with `newest`, by a newer file. */
static void compare_candidate(struct module_search *s, size_t query, const struct scan_other_file *file)
{
    struct module_candidate *best = &s->best[query];
    size_t parts = sl_path_common_parts(s->queries[query].path, file->path);
    bool is_same = best->parts && is_same_id(&best->id, &file->id);
    if (parts < best->parts || (parts == best->parts && is_same && best->mtime_ns >= file->mtime_ns))
        return;
    bool replaces = parts > best->parts || is_same || (s->newest && file->mtime_ns > best->mtime_ns);
    /* an equal file with another id makes the candidate ambiguous, a better file ends that */
    best->several = parts == best->parts && !is_same ? true : parts > best->parts ? false : best->several;
    if (!replaces)
        return;
    best->id = file->id;
    best->format = file->format;
    best->parts = parts;
    best->mtime_ns = file->mtime_ns;
}

/* Compares an object of a scanned file with all queries for its file name. */
static void compare_object(struct module_search *s, const struct sl_index_object *object)
{
    struct sl_index_file file;
    /* is_derived: the path is made from the id (/usr/lib/debug/.build-id/...), so it has no name of a module */
    if (object->is_derived || !is_main_id(object) || !sl_index_file(s->index, object->file, &file))
        return;
    const struct scan_other_file candidate = {.path = object->member.size ? object->member : file.path,
                                              .id = object->id,
                                              .format = object->format,
                                              .mtime_ns = file.mtime_ns};
    /* number + 1 of the first query for this name, then of the `next` ones; 0: no more */
    size_t at = (uintptr_t)sl_map_get(&s->by_name, sl_path_module_name(candidate.path));
    for (; at; at = s->best[at - 1].next, s->work++)
        compare_candidate(s, at - 1, &candidate);
}

/* Compares the files that the queries bring along (`others`). Those with ids longer than SL_INDEX_ID_BYTES are left out, as is_main_id
 * leaves out scanned files with such ids. */
static void compare_others(struct module_search *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < s->queries[i].other_count; j++)
            if (s->queries[i].others[j].id.size <= SL_INDEX_ID_BYTES)
                compare_candidate(s, i, &s->queries[i].others[j]);
}

/* Pool work: compares all objects of one index with the queries, until the time limit: the clock is read about every CHECK_EVERY steps of
 * s->work, and in_time becomes false. */
static enum sl_code find_modules(void *arg, struct sl_error *error)
{
    struct module_search *s = arg;
    struct sl_index_object object;
    size_t check = s->work;
    (void)error;
    for (size_t i = 0; s->in_time && i < s->index->object_count; i++, s->work++) {
        if (s->work >= check) {
            s->in_time = clock_mono_ns() < s->end_ns;
            check = s->work + CHECK_EVERY;
        }
        if (sl_index_object(s->index, i, &object))
            compare_object(s, &object);
    }
    return SL_OK;
}

/* Indexes the queries by the file name of their path; those with the same name form a list (`next`). Map and list hold the number + 1 of a
 * query, as 0 means none. A query without a name finds nothing. False when out of memory. */
static bool index_queries(struct module_search *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sl_str name = sl_path_module_name(s->queries[i].path);
        void **slot = name.size ? sl_map_find_or_add(&s->by_name, name, NULL) : NULL;
        if (name.size && !slot)
            return false;
        if (!slot)
            continue;
        s->best[i].next = (uintptr_t)*slot;
        *slot = (void *)(uintptr_t)(i + 1);
    }
    return true;
}

/* Sets type and ids of a module from the candidate's only id. A debug id is taken as it is; from a code id, which for Mach-O is the UUID,
 * the debug id is made. False when out of memory. */
static bool set_ids(const struct module_candidate *best, struct sl_arena *arena, struct object_id *id)
{
    char hex[2 * SL_INDEX_ID_BYTES + 1];
    struct sl_bytes bytes = {best->id.bytes, best->id.size};
    id->type = best->format == SL_FORMAT_PE || best->format == SL_FORMAT_PDB ? OBJECT_PE
               : best->format == SL_FORMAT_MACHO                             ? OBJECT_MACHO
               : best->format == SL_FORMAT_WASM                              ? OBJECT_WASM
                                                                             : OBJECT_ELF;
    sl_hex_encode(bytes.data, bytes.size, hex);
    id->has_debug_id = true;
    id->debug_id = sl_debug_id_from_build_id(bytes, false);
    if (best->id.type == SL_INDEX_DEBUG_ID || id->type == OBJECT_MACHO)
        id->has_debug_id = sl_debug_id_parse(sl_str(hex), &id->debug_id);
    if (best->id.type == SL_INDEX_CODE_ID)
        id->code_id = sl_code_id_normalise(arena, sl_str(hex));
    return best->id.type != SL_INDEX_CODE_ID || id->code_id.data;
}

/* Sets the results of all queries. Nothing counts as found if the time limit ended the search, because a better file might be in the part
 * that was not searched. False when out of memory. */
static bool set_results(struct module_search *s, size_t count, struct sl_arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        const struct module_candidate *best = &s->best[i];
        /* is_undecided: the caller does not know all other files */
        bool known = s->in_time && !s->queries[i].is_undecided && best->parts && (!best->several || s->newest);
        s->queries[i].found = known;
        s->queries[i].is_known = s->in_time && !s->queries[i].is_undecided;
        s->queries[i].parts = best->parts;
        if (known && !set_ids(best, arena, s->queries[i].id))
            return false;
    }
    return true;
}

enum sl_code scan_find_modules(struct scan_module_query *queries, size_t count, bool newest, uint64_t max_ns,
                               struct sl_arena *arena, struct sl_error *error)
{
    struct module_search s = {.queries = queries,
                              .best = SL_ARENA_ARRAY(arena, struct module_candidate, count),
                              .newest = newest,
                              .in_time = true,
                              .end_ns = clock_mono_ns() + max_ns};
    enum sl_code code = s.best && index_queries(&s, count) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        compare_others(&s, count);
    for (size_t i = 0; i < CONFIG_MAX_SCANS && code == SL_OK && s.in_time; i++) {
        struct scan_index *index = scans[i].exists ? scan_index_retain(&scans[i]) : NULL;
        if (!index)
            continue;
        s.index = &index->index;
        code = pool_call(POOL_WALK, find_modules, &s, error);
        scan_index_release(index);
    }
    if (code == SL_OK && !set_results(&s, count, arena))
        code = sl_fail(error, SL_BUSY, "out of memory");
    sl_map_free(&s.by_name);
    return code;
}
