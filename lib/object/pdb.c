/* Program databases as objects; the reader itself is lib/pdb. */
#include "object/embedded.h"
#include "object/impl.h"

#include "base/grow.h"
#include "base/map.h"
#include "pdb/pdb.h"

struct symbol_list {
    struct sl_arena *arena;
    struct sl_symbol *symbols;
    size_t count, capacity;
};

static bool contains_nocase(struct sl_str text, struct sl_str part)
{
    for (size_t i = 0; i + part.size <= text.size; i++)
        if (sl_str_equal_nocase((struct sl_str){text.data + i, part.size}, part))
            return true;
    return false;
}

/* Returns the name that clients know, "git", "perforce" or "other", for the version control system that a source indexer wrote as `vcs`.
 * Empty if `vcs` is empty. */
static struct sl_str known_vcs(struct sl_str vcs)
{
    if (!vcs.size)
        return vcs;
    if (contains_nocase(vcs, SL_STR("git")))
        return SL_STR("git");
    return contains_nocase(vcs, SL_STR("perforce")) ? SL_STR("perforce") : SL_STR("other");
}

/* Opens a PDB, and sets what it says of its program. has_debug_info and has_symbols are always set: finding out would cost as much as
 * reading both. PDBs have unwind information for x86 only; for other machines it is in the program. */
static enum sl_code pdb_open(struct sl_object *object, struct sl_error *error)
{
    struct sl_pdb_info pdb;
    struct sl_object_info *info = &object->info;
    enum sl_code code =
        sl_pdb_open(object->bytes, &object->arena, object->budget, (struct sl_pdb **)&object->impl, &pdb, error);
    if (code != SL_OK)
        return code;
    info->kind = SL_KIND_DBG;
    info->arch = object_machine_arch(pdb.machine);
    info->decorates = info->arch == SL_ARCH_X86; /* C names have a `_` in front and the like */
    info->debug_id = pdb.debug_id;
    info->image_size = pdb.image_size;
    info->is_64bit = sl_cpu_pointer_size(sl_arch_family(info->arch)) == 8;
    info->features = (struct sl_features){
        .has_debug_info = true,
        .has_symbols = true,
        .has_unwind_info = info->arch == SL_ARCH_X86,
        .srcsrv_vcs = known_vcs(pdb.srcsrv_vcs),
    };
    return SL_OK;
}

const struct sl_pdb *sl_object_as_pdb(const struct sl_object *object)
{
    return object->info.format == SL_FORMAT_PDB ? object->impl : NULL;
}

/* Adds a public symbol to the list (a callback of the reader of PDB files). False if out of memory. */
static bool add_symbol(void *arg, uint64_t address, uint64_t size, struct sl_str name)
{
    struct symbol_list *list = arg;
    if (!sl_grow_in_arena(list->arena, &list->symbols, &list->capacity, list->count + 1, sizeof *list->symbols))
        return false;
    list->symbols[list->count++] = (struct sl_symbol){address, size, name};
    return true;
}

/* Reads the public symbols. They have no size: each ends at the next one. */
static enum sl_code pdb_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                size_t *count, struct sl_error *error)
{
    struct symbol_list list = {.arena = arena};
    enum sl_code code = sl_pdb_publics(object->impl, arena, add_symbol, &list, error);
    if (code == SL_OK && !object_clip_to_next(list.symbols, 0, list.count))
        code = sl_budget_fail(object->budget, error);
    *symbols = list.symbols;
    *count = list.count;
    return code;
}

/* Collects symbols of data: those whose type has a size (`sized`), and those that end where the next symbol begins (`open`). */
struct data_list {
    struct symbol_list sized, open;
    struct sl_map variables; /* set of the addresses of all variables so far */
};

/* Adds a symbol of data (a callback of sl_pdb_data, which lists variables before public symbols). A public symbol at the address of a
 * variable is skipped, because it is the same data under its mangled name. False when out of memory. */
static bool add_data(void *arg, const struct sl_pdb_data *data)
{
    struct data_list *d = arg;
    uint64_t address = data->address;
    struct sl_str key = {(const char *)&address, sizeof address};
    if (data->is_public && sl_map_get(&d->variables, key))
        return true;
    /* without size: it extends to the end of the section, until pdb_data_symbols() clips it to the next symbol */
    struct symbol_list *list = data->size ? &d->sized : &d->open;
    if (!add_symbol(list, address, data->size ? data->size : data->bytes_to_end, data->name))
        return false;
    if (data->is_public || sl_map_get(&d->variables, key)) /* most variables come twice, but are in the set once */
        return true;
    char *copy = sl_arena_strndup(list->arena, key.data, key.size);
    void **slot = copy ? sl_map_find_or_add(&d->variables, (struct sl_str){copy, key.size}, NULL) : NULL;
    if (slot)
        *slot = d; /* any value but NULL: only the key counts */
    return slot;
}

/* Lists variables, whose size is that of their type, then symbols without size, each of which ends at the next symbol. */
static enum sl_code pdb_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                     size_t *count, struct sl_error *error)
{
    struct data_list d = {.sized.arena = arena, .open.arena = arena, .variables.budget = object->budget};
    enum sl_code code = sl_pdb_data(object->impl, arena, add_data, &d, error);
    size_t sized = d.sized.count;
    for (size_t i = 0; code == SL_OK && i < d.open.count; i++)
        if (!add_symbol(&d.sized, d.open.symbols[i].address, d.open.symbols[i].size, d.open.symbols[i].name))
            code = sl_budget_fail(object->budget, error);
    if (code == SL_OK && d.sized.count && !object_clip_to_next(d.sized.symbols, sized, d.sized.count))
        code = sl_budget_fail(object->budget, error);
    *symbols = d.sized.symbols;
    *count = d.sized.count;
    sl_map_free(&d.variables);
    return code;
}

static enum sl_code pdb_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                       struct sl_function_sink *sink, struct sl_error *error)
{
    return sl_pdb_read_functions(object->impl, parallel, sink, error);
}

/* Finds where a source file came from. False if that is unknown, but also when out of memory or budget, which is recorded in the object:
 * callers check sl_object_status. */
static bool pdb_file_origin(struct sl_object *object, struct sl_str path, struct sl_arena *arena,
                            struct sl_file_origin *origin)
{
    bool known = sl_pdb_file_origin(object->impl, path, arena, origin);
    if (sl_pdb_status(object->impl, NULL) != SL_OK)
        object_no_memory(object);
    return known;
}

const struct object_format sl_object_pdb = {
    .open = pdb_open,
    .symbols = pdb_symbols,
    .data_symbols = pdb_data_symbols,
    .read_functions = pdb_read_functions,
    .file_origin = pdb_file_origin,
};
