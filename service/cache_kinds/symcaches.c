/* The kind `symcaches`: lookup tables made from objects. */
#include "cache_kinds/impl.h"

#include "core/log.h"

#include "core/loop.h"
#include "core/metrics.h"
#include "function/path.h"
#include "object/bcsymbolmap.h"
#include "source/il2cpp.h"

struct rewriting { /* inputs that change names and lines; NULL = none */
    struct sl_bcsymbolmap *map;
    struct sl_il2cpp *lines;
};

struct symcache_conversion {
    struct sl_bytes file;
    struct cache_item *map, *lines; /* NULL = none */
    struct rewriting rewriting;
    bool variables;
    int fd;
    struct sl_symcache_gaps gaps;
    bool damaged;  /* the file violates its format slightly */
    bool complete; /* `items` has all available companions: convert in any case */
    bool wanting;  /* not converted: get `wants` first */
    struct companion_wants wants;
    struct companion_items items;
};

/* Opens the new table before it is stored: a writer's bug must not be cached for a week. */
static enum sl_code symcaches_store(struct conversion *conversion, const struct symcache_conversion *c,
                                    const struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache cache;
    struct sl_error reason;
    if (sl_symcache_open(sl_buf_bytes(out), &cache, &reason) != SL_OK)
        return sl_fail(error, SL_INTERNAL, "cannot open a newly converted symcache: %s", reason.message);
    return conversion_write(conversion, c->fd, out, error);
}

static struct sl_str map_name(void *arg, struct sl_str name)
{
    const struct rewriting *r = arg;
    return sl_bcsymbolmap_resolve(r->map, name);
}

/* Applies the BCSymbolMap first, as the line mapping has the paths that it results in. */
static bool map_line(void *arg, const struct sl_file *file, uint32_t line, struct sl_file *new_file, uint32_t *new_line)
{
    const struct rewriting *r = arg;
    bool changed = r->map && sl_bcsymbolmap_map_line(r->map, file, line, new_file, new_line);
    struct sl_buf path = {0};
    struct sl_str csharp;
    uint32_t csharp_line;
    if (!changed) {
        *new_file = *file;
        *new_line = line;
    }
    if (!r->lines)
        return changed;
    sl_path_full(&path, new_file->comp_dir, new_file->directory, new_file->name);
    if (sl_il2cpp_lookup(r->lines, sl_buf_view(&path), line, &csharp, &csharp_line)) {
        new_file->comp_dir = new_file->directory = (struct sl_str){NULL, 0};
        new_file->name = csharp;
        *new_line = csharp_line;
        changed = true;
    }
    sl_buf_free(&path);
    return changed;
}

static uint64_t rewriting_size(const struct symcache_conversion *c)
{
    return (c->map ? c->map->mapping.bytes.size : 0) + (c->lines ? c->lines->mapping.bytes.size : 0);
}

/* They were validated when they were fetched: a failure to open them now makes the symcache malformed. */
static enum sl_code open_rewriting(struct conversion *conversion, struct symcache_conversion *c, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    sl_budget_grow(&conversion->budget, rewriting_size(c));
    if (c->map)
        code = sl_bcsymbolmap_open(c->map->mapping.bytes, &conversion->budget, &c->rewriting.map, error);
    if (c->lines && code == SL_OK)
        code = sl_il2cpp_open(c->lines->mapping.bytes, &conversion->budget, &c->rewriting.lines, error);
    return code;
}

static void close_rewriting(struct symcache_conversion *c)
{
    sl_bcsymbolmap_close(c->rewriting.map);
    sl_il2cpp_close(c->rewriting.lines);
    c->rewriting = (struct rewriting){0};
}

static enum sl_code write_symcache(struct conversion *conversion, struct symcache_conversion *c,
                                   struct sl_object *object, struct sl_error *error)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {
        .arch = info->arch,
        .debug_id = info->debug_id,
        .image_size = info->image_size,
        .module_file = info->code_file,
        .map_name = c->map ? map_name : NULL,
        .map_line = c->map || c->lines ? map_line : NULL,
        .map_arg = &c->rewriting,
        .gaps = &c->gaps,
        .variables = c->variables,
    };
    c->damaged = info->partial;
    struct sl_companions companions;
    struct sl_buf out = {0};
    sl_object_set_bcsymbolmap(object, c->rewriting.map);
    enum sl_code code = companions_open(conversion, &c->items, &companions, error);
    if (code == SL_OK)
        code = sl_symcache_convert(object, &companions, &options, &conversion->parallel.parallel, &out, error);
    companions_close(&companions);
    if (code == SL_OK)
        code = symcaches_store(conversion, c, &out, error);
    sl_buf_free(&out);
    return code;
}

static enum sl_code convert_object(struct conversion *conversion, void *arg, struct sl_error *error)
{
    struct symcache_conversion *c = arg;
    struct sl_object *object;
    enum sl_code code = conversion_open(conversion, c->file, &object, error);
    if (code != SL_OK)
        return code;
    c->wanting = conversion->is_trial = !c->complete && companions_wanted(object, &c->wants);
    if (!c->wanting)
        code = open_rewriting(conversion, c, error);
    if (!c->wanting && code == SL_OK)
        code = write_symcache(conversion, c, object, error);
    sl_object_close(object);
    close_rewriting(c);
    return code;
}

/* Both existed when the key was made; without one of them the entry would not match its key. */
static enum sl_code get_rewriting(const struct symcache_request *request, struct sl_arena *arena,
                                  struct symcache_conversion *c, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (request->map)
        code = cache_get_own_file(&kind_auxdifs, request->map, arena, &c->map, error);
    if (code == SL_OK && request->lines)
        code = cache_get_own_file(&kind_il2cpp, request->lines, arena, &c->lines, error);
    bool kept = code == SL_OK || code == SL_CANCELLED || code == SL_BUSY;
    return kept ? code : sl_fail(error, SL_INTERNAL, "a mapping disappeared");
}

static enum sl_code convert(const struct symcache_request *request, struct sl_arena *arena,
                            struct symcache_conversion *c, struct sl_error *error)
{
    enum sl_code code = get_rewriting(request, arena, c, error);
    struct conversion_input input = {c->file.size + rewriting_size(c), request->object.file->location,
                                     kind_symcaches.name};
    if (code == SL_OK)
        code = conversion_run(&input, convert_object, c, error);
    if (code != SL_OK || !c->wanting)
        return code;
    code = companions_get(&request->object, &c->wants, arena, &c->items, error);
    input.size += companions_size(&c->items);
    c->complete = true;
    if (code == SL_OK)
        code = conversion_run(&input, convert_object, c, error);
    companions_release(&c->items);
    return code;
}

/* The table is still useful; logs the gaps for the owner of the file. */
static void report_gaps(const struct object_request *request, const struct symcache_conversion *c)
{
    if (!c->gaps.units && !c->damaged)
        return;
    metric_add(METRIC_CONVERSIONS_PARTIAL, 1, kind_symcaches.name, NULL, NULL);
    log_warn(
        "symcaches", "some debug information could not be read", LOG_SLSTR("location", request->file->location),
        LOG_U64("skipped_units", c->gaps.units),
        LOG_STR("first", c->gaps.units ? c->gaps.first.message : "the file lacks contents that its headers refer to"));
}

static enum sl_code symcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    const struct symcache_request *request = context;
    struct cache_item *object;
    enum sl_code code = cache_get_own_file(&kind_objects, &request->object, arena, &object, error);
    if (code != SL_OK)
        return code;
    struct symcache_conversion c = {.file = object->mapping.bytes, .variables = request->variables, .fd = tmp->fd};
    code = convert(request, arena, &c, error);
    tmp->incomplete = c.items.incomplete;
    struct cache_item *const used[] = {object, c.map, c.lines};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        cache_release(used[i]);
    if (code == SL_OK)
        report_gaps(&request->object, &c);
    return code;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_symcache_open(bytes, into, error);
}

/* Old versions, used until the current one is made. Their errors:
 *
 *     1001  lacks some lines, and the paths in version control
 *     1002  may lack data of missing companions, or data for which there was no memory, and is not marked as incomplete
 *     1003  has names of symbols instead of functions; lacks lines outside of functions
 *     1004  lacks hand-written functions; mixes up the sections of relocatable files
 *     1005  takes undecorated names for decorated ones; lacks inlined calls of functions without lines, and functions of Go
 *           programs without DWARF
 *     1006  lacks the names of executables in Breakpad files
 *     1007  has lines of only one section if DWARF 2 or 3 describes an assembler's file
 *     1008  lets the last symbol of a section match far beyond it; lacks inlined calls where no line is known
 *     1009  counts addresses of ELF files from their first segment, which need not be the lowest; lacks labels; has holes
 *           after symbols that are inside of others */
static const unsigned older[] = {1009, 1008, 1007, 1006, 1005, 1004, 1003, 1002, 1001, 0};

const struct cache_kind kind_symcaches = {
    .name = "symcaches",
    .section = CACHE_DERIVED,
    .version = SYMCACHES_VERSION,
    .fallbacks = older,
    .previous = older,
    .random_access = true,
    .compute = symcaches_compute,
    .base = symcache_request_base,
    .queue_name = symcache_request_queue_name,
    .retain = symcache_request_retain,
    .open = open_into,
    .opened_size = sizeof(struct sl_symcache),
};
