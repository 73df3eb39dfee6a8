/* Reads debug information that the linker left in object files (object/debug_map.h) and converts its addresses to those of the linked
 * image, function by function. */
#include "dwarf/impl.h"

#include "base/order.h"
#include "base/search.h"
#include "object/debug_map.h"
#include "object/symbols.h"

#include <stdlib.h>

/* A function's address and size in the object file, and its address in the image. */
struct moved {
    uint64_t from, size, to;
};

struct map_sink {
    struct sl_function_sink sink;   /* receives the functions of the object file */
    struct sl_function_sink *inner; /* the caller's: receives those that are in the image, with their addresses there */
    const struct moved *moved;      /* sorted by `from` */
    size_t count;
};

/* Maps names to the functions of a file in the debug map; NULL for names that occur twice, which cannot be told apart. False when out of
 * memory. */
static bool index_names(const struct sl_debug_map *map, const struct sl_debug_map_file *file, struct sl_map *names)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct sl_debug_map_function *f = &map->functions[file->first + i];
        bool made;
        void **slot = sl_map_find_or_add(names, f->name, &made);
        if (!slot)
            return false;
        *slot = made ? (void *)f : NULL;
    }
    return true;
}

SL_ORDER_BY(moved_by_address, struct moved, from)

/* Lists the functions of the object file `part` that are in the linked image, sorted by their addresses in the object file (`from`); the
 * caller has set `*count` to 0 and frees `*moved`. A name found is removed from `names`, so that of several symbols with one name the first
 * counts. SL_BUSY when out of memory, or the error of reading the symbols. */
static enum sl_code find_moved(struct sl_object *part, struct sl_map *names, struct moved **moved, size_t *count,
                               struct sl_error *error)
{
    const struct sl_symbol *symbols;
    size_t symbol_count;
    enum sl_code code = sl_object_cached_symbols(part, &symbols, &symbol_count, error);
    if (code != SL_OK)
        return code;
    *moved = calloc(symbol_count + 1, sizeof **moved); /* + 1: NULL only when out of memory */
    if (!*moved)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < symbol_count; i++) {
        const struct sl_debug_map_function *f = sl_map_remove(names, symbols[i].name);
        if (f)
            (*moved)[(*count)++] = (struct moved){symbols[i].address, f->size, f->address};
    }
    qsort(*moved, *count, sizeof **moved, moved_by_address);
    return SL_OK;
}

/* Returns the function of the object file that contains the address; NULL if there is none, or the linker dropped it. */
static const struct moved *moved_at(const struct map_sink *m, uint64_t address)
{
    size_t below = SL_COUNT_UP_TO(m->moved, m->count, from, address);
    const struct moved *found = below ? &m->moved[below - 1] : NULL;
    return found && address - found->from < found->size ? found : NULL;
}

/* Adds `by` to the addresses of a function, its lines and its inlined calls. Casting const away is safe: the calling thread owns the batch
 * until the sink consumes it. */
static void move_function(struct sl_function *f, uint64_t by)
{
    f->address += by;
    for (uint32_t i = 0; i < f->line_count; i++)
        ((struct sl_line *)f->lines)[i].address += by;
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        move_function((struct sl_function *)&f->inlinees[i], by);
}

/* Returns the sorted start addresses of the batch's functions; NULL when out of memory. */
static const uint64_t *sort_starts(const struct sl_function_batch *batch, struct sl_arena *arena)
{
    /* + 1: NULL only when out of memory */
    uint64_t *starts = SL_ARENA_ARRAY(arena, uint64_t, batch->function_count + 1);
    for (size_t i = 0; starts && i < batch->function_count; i++)
        starts[i] = batch->functions[i].address;
    if (starts)
        qsort(starts, batch->function_count, sizeof *starts, sl_order_u64);
    return starts;
}

/* True for a function that the DWARF reader made of lines without a subprogram, if they follow a function of the batch (`starts`) that
 * begins at the symbol `moved->from`. In the object file the symbol reaches to the next one, so it covers these lines, too; in the image
 * they are padding. */
static bool is_padding(const struct sl_function *f, const struct moved *moved, const uint64_t *starts, size_t count)
{
    return f->address != moved->from && starts &&
           bsearch(&moved->from, starts, count, sizeof *starts, sl_order_u64) != NULL;
}

/* The callback sl_function_sink.prepare for an object file. Removes functions from the batch that are not in the image or are only padding
 * there, and gives the others their addresses in the image. Then it calls `prepare` of the caller's sink. */
static void debug_map_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                              unsigned worker)
{
    struct map_sink *m = (struct map_sink *)sink; /* `sink` is its first member */
    struct sl_function *functions = (struct sl_function *)batch->functions;
    size_t kept = 0;
    const uint64_t *starts = sort_starts(batch, arena); /* when out of memory (NULL), padding is kept */
    for (size_t i = 0; i < batch->function_count; i++) {
        const struct moved *moved = moved_at(m, functions[i].address);
        if (!moved || is_padding(&functions[i], moved, starts, batch->function_count))
            continue;
        functions[kept] = functions[i];
        move_function(&functions[kept++], moved->to - moved->from);
    }
    batch->function_count = kept;
    if (m->inner->prepare)
        m->inner->prepare(m->inner, batch, arena, worker);
}

static enum sl_code debug_map_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                      struct sl_error *error)
{
    struct map_sink *m = (struct map_sink *)sink;
    return m->inner->consume(m->inner, batch, error);
}

/* True if a function of the file contains an address that the sink wants. */
static bool has_wanted_function(const struct sl_debug_map *map, const struct sl_debug_map_file *file,
                                const struct sl_function_sink *sink)
{
    for (size_t i = 0; i < file->count && sink->wanted_count; i++) {
        const struct sl_debug_map_function *f = &map->functions[file->first + i];
        /* 0: both the map's addresses and the wanted ones are relative to the load address */
        if (dwarf_is_wanted(sink, 0, f->address, f->address + f->size))
            return true;
    }
    return !sink->wanted_count; /* 0 = all are wanted */
}

/* Reads one object file, `part`, into the sink. All of its functions are read: addresses that the sink wants are those of the image, so
 * they cannot be compared before functions have their addresses there. */
static enum sl_code read_part(const struct sl_debug_map *map, const struct sl_debug_map_file *file,
                              struct sl_object *part, const struct sl_companions *companions,
                              const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error)
{
    struct sl_map names = {0};
    struct map_sink m = {.sink = *sink, .inner = sink}; /* passes functions on to `sink` with other addresses */
    m.sink.prepare = debug_map_prepare;
    m.sink.consume = debug_map_consume;
    m.sink.wanted = NULL; /* all functions */
    m.sink.wanted_count = 0;
    m.sink.skipped_units = m.sink.missing_units = 0;
    struct moved *moved = NULL;
    enum sl_code code = index_names(map, file, &names) ? find_moved(part, &names, &moved, &m.count, error)
                                                       : sl_fail(error, SL_BUSY, "out of memory");
    /* an object file has no other companions than its .dwo files */
    const struct sl_companions split = {.open_dwo = companions->open_dwo, .arg = companions->arg};
    m.moved = moved;
    if (code == SL_OK)
        code = sl_dwarf_read(part, &split, parallel, &m.sink, error);
    /* if memory or budget ran out while the object file was read, that error replaces any other result */
    enum sl_code object_status = sl_object_status(part, error);
    sl_function_sink_add_gaps(sink, &m.sink); /* counts of skipped and missing units */
    sl_map_free(&names);
    free(moved);
    return object_status == SL_OK ? code : object_status;
}

enum sl_code dwarf_read_debug_map(struct sl_object *object, const struct sl_companions *companions,
                                  const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                  struct sl_error *error)
{
    struct sl_debug_map map;
    struct sl_map paths_read = {.budget = sl_object_budget(object)}; /* paths read already: each file is read once */
    struct sl_arena arena = {.budget = sl_object_budget(object)};
    struct sl_error reason = {0};
    bool any = false;
    enum sl_code code = sl_object_debug_map(object, &arena, &map, error);
    for (size_t i = 0; code == SL_OK && i < map.file_count; i++) {
        const struct sl_debug_map_file *file = &map.files[i];
        bool made;
        if (!file->count || !has_wanted_function(&map, file, sink))
            continue;
        any = true;
        if (!sl_map_find_or_add(&paths_read, file->path, &made)) {
            code = sl_budget_fail(paths_read.budget, error);
            break;
        }
        /* the callback owns the object and keeps it until the next call */
        struct sl_object *part = made ? companions->open_object(companions->arg, file->path, file->stamp) : NULL;
        enum sl_code read = part ? read_part(&map, file, part, companions, parallel, sink, &reason) : SL_NOT_FOUND;
        if (read == SL_MALFORMED && !sink->skipped_units++) /* counts as one unit; the first reason is kept */
            sink->first_skipped = reason;
        else if (read != SL_OK && read != SL_NOT_FOUND && read != SL_MALFORMED)
            code = sl_fail(error, read, "%s", reason.message);
    }
    sl_map_free(&paths_read);
    sl_arena_free(&arena);
    return code == SL_OK && !any ? sl_fail(error, SL_NOT_FOUND, "no debug information") : code;
}
