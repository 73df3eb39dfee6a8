/* The kind `symcaches`: lookup tables made from objects. */
#include "cache_kinds/impl.h"

#include <stdatomic.h>

#include "core/log.h"

#include "core/loop.h"
#include "core/metrics.h"
#include "function/path.h"
#include "object/bcsymbolmap.h"
#include "source/il2cpp.h"

struct rewriting { /* inputs of the conversion that change names and lines; NULL = not given */
    struct sl_bcsymbolmap *map;
    struct sl_il2cpp *lines;
    atomic_bool no_memory; /* a path could not be made, so its lines may not be mapped */
};

/* Checks the new table by opening it, then writes it to the entry: a table damaged by a bug of the converter would stay cached. */
static enum sl_code symcaches_store(struct conversion *conversion, const struct converter_call *call,
                                    const struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache cache;
    struct sl_error reason;
    if (sl_symcache_open(sl_buf_bytes(out), &cache, &reason) != SL_OK)
        return sl_fail(error, SL_INTERNAL, "the symcache just made cannot be read, a bug of symloom: %s",
                       reason.message);
    return conversion_write(conversion, call, out, error);
}

static struct sl_str map_name(void *arg, struct sl_str name)
{
    const struct rewriting *r = arg;
    return sl_bcsymbolmap_resolve(r->map, name);
}

/* Translates a file and line. First the BCSymbolMap, if given, replaces the file's names. Then the il2cpp line mapping, if given, is
 * searched for the resulting path, and replaces the C++ file and line by those of the C# source. True if something changed. Sets
 * r->no_memory when out of memory. */
static bool map_line(void *arg, const struct sl_file *file, uint32_t line, struct sl_file *new_file, uint32_t *new_line)
{
    struct rewriting *r = arg;
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
    if (path.failed) {
        atomic_store(&r->no_memory, true);
    } else if (sl_il2cpp_lookup(r->lines, sl_buf_view(&path), line, &csharp,
                                &csharp_line)) { /* `line`: the BCSymbolMap has changed only names */
        new_file->comp_dir = new_file->directory = (struct sl_str){NULL, 0};
        new_file->name = csharp; /* a whole path */
        *new_line = csharp_line;
        changed = true;
    }
    sl_buf_free(&path);
    return changed;
}

/* Opens BCSymbolMap and il2cpp line mapping, if they are given. They were validated when they were downloaded, so an error here means that
 * the cached file is damaged: it becomes the error of the symcache. */
static enum sl_code open_rewriting(struct conversion *conversion, const struct converter_call *call,
                                   struct rewriting *rewriting, struct sl_error *error)
{
    struct sl_bytes map = converter_input_bytes(call, INPUT_SYMBOL_MAP);
    struct sl_bytes lines = converter_input_bytes(call, INPUT_LINE_MAP);
    enum sl_code code = SL_OK;
    sl_budget_grow(&conversion->budget, map.size + lines.size); /* the work limit grows with the input */
    if (map.data)
        code = sl_bcsymbolmap_open(map, &conversion->budget, &rewriting->map, error);
    if (lines.data && code == SL_OK)
        code = sl_il2cpp_open(lines, &conversion->budget, &rewriting->lines, error);
    return code;
}

static void close_rewriting(struct rewriting *rewriting)
{
    sl_bcsymbolmap_close(rewriting->map);
    sl_il2cpp_close(rewriting->lines);
}

/* Converts the object to a symcache, with the companions (DWP, dwz) among the inputs, and writes it to the output. */
static enum sl_code write_symcache(struct conversion *conversion, const struct converter_call *call,
                                   struct sl_object *object, struct rewriting *rewriting,
                                   struct symcache_result *outcome, struct sl_error *error)
{
    const struct symcache_options *asked = converter_options(call);
    const struct sl_object_info *info = sl_object_info(object);
    struct sl_symcache_options options = {
        .arch = info->arch,
        .debug_id = info->debug_id,
        .image_size = info->image_size,
        .module_file = info->code_file,
        .map_name = rewriting->map ? map_name : NULL,
        .map_line = rewriting->map || rewriting->lines ? map_line : NULL,
        .map_arg = rewriting,
        .gaps = &outcome->gaps,
        .variables = asked->variables,
    };
    /* map_line translates no columns: they would not fit the new lines */
    options.positions = asked->columns && !options.map_line;
    outcome->damaged = info->partial;
    struct sl_companions companions;
    struct sl_buf out = {0};
    sl_object_set_bcsymbolmap(object, rewriting->map);
    enum sl_code code = companions_open(conversion, call, &asked->limits, &companions, error);
    if (code == SL_OK)
        code = sl_symcache_convert(object, &companions, &options, &conversion->parallel.parallel, &out, error);
    companions_close(&companions);
    if (code == SL_OK && atomic_load(&rewriting->no_memory)) /* map_line could not translate every line */
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = symcaches_store(conversion, call, &out, error);
    sl_buf_free(&out);
    return code;
}

/* Runs in a worker: makes the symcache of an object. If the object refers to companion files and the caller has not got these yet
 * (`complete` is false), writes nothing and reports them in the result. */
static enum sl_code make_symcache(struct conversion *conversion, const struct converter_call *call, void *result,
                                  struct sl_error *error)
{
    const struct symcache_options *options = converter_options(call);
    struct symcache_result *outcome = result;
    struct rewriting rewriting = {0};
    struct sl_object *object;
    enum sl_code code =
        conversion_open(conversion, converter_input_bytes(call, INPUT_FILE), &options->limits, &object, error);
    if (code != SL_OK)
        return code;
    outcome->arch = sl_object_info(object)->arch;
    /* is_trial: keeps a run that only finds the companions out of the metrics of conversions */
    outcome->wanting = conversion->is_trial = !options->complete && companions_wanted(object, &outcome->wants);
    if (!outcome->wanting)
        code = open_rewriting(conversion, call, &rewriting, error);
    if (!outcome->wanting && code == SL_OK)
        code = write_symcache(conversion, call, object, &rewriting, outcome, error);
    sl_object_close(object);
    close_rewriting(&rewriting);
    return code;
}

/* True if the worker's result can be used: a hostile file could have made the worker set members outside of their types or arrays. */
static bool check_result(const void *result)
{
    const struct symcache_result *outcome = result;
    return converter_arch_is_valid(&outcome->arch) && converter_bool_is_valid(&outcome->wanting) &&
           converter_bool_is_valid(&outcome->damaged) && converter_bool_is_valid(&outcome->wants.package) &&
           outcome->wants.dwz_id_size <= sizeof outcome->wants.dwz_id &&
           converter_error_is_valid(&outcome->gaps.first) &&
           converter_text_is_valid(outcome->gaps.first_missing, sizeof outcome->gaps.first_missing);
}

const struct converter converter_symcache = {"symcache", sizeof(struct symcache_options),
                                             sizeof(struct symcache_result), make_symcache, check_result};

/* ---- the kind ---- */

struct symcache_items { /* references; NULL = none */
    struct cache_item *object, *map, *lines;
    struct companion_items companions;
};

/* Gets the BCSymbolMap and line mapping that the request names. They existed when the key of the symcache was made, which names them: if
 * one is gone, the symcache would not match its key, so this is SL_INTERNAL. */
static enum sl_code get_rewriting(const struct symcache_request *request, struct sl_arena *arena,
                                  struct symcache_items *items, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (request->map)
        code = cache_get_own_file(&kind_auxdifs, request->map, arena, &items->map, error);
    if (code == SL_OK && request->lines)
        code = cache_get_own_file(&kind_il2cpp, request->lines, arena, &items->lines, error);
    bool is_final = code == SL_OK || code == SL_CANCELLED || code == SL_BUSY; /* these say nothing about the files */
    return is_final ? code
                    : sl_fail(error, SL_INTERNAL,
                              "the BCSymbolMap or il2cpp mapping found for the file cannot be had any more");
}

/* Has a worker convert the object, with the other inputs found so far. `complete`: the companions among them are all that can be had. */
static enum sl_code convert(const struct symcache_request *request, const struct symcache_items *items, bool complete,
                            int fd, struct symcache_result *outcome, struct sl_error *error)
{
    struct symcache_options options = {current_reader_limits(), request->variables, request->columns, complete};
    struct conversion_description about = {.location = request->object.file->location, .kind = kind_symcaches.name};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = fd};
    converter_add_item(&call, INPUT_FILE, items->object);
    converter_add_item(&call, INPUT_SYMBOL_MAP, items->map);
    converter_add_item(&call, INPUT_LINE_MAP, items->lines);
    converter_add_item(&call, INPUT_DWP, items->companions.package);
    converter_add_item(&call, INPUT_DWZ, items->companions.dwz);
    return conversion_run(&about, &converter_symcache, &call, outcome, error);
}

/* Has a worker convert the object. If the first run only reports that the object refers to companion files, gets these and converts it with
 * them in a second run. */
static enum sl_code convert_with_companions(const struct symcache_request *request, struct sl_arena *arena, int fd,
                                            struct symcache_items *items, struct symcache_result *outcome,
                                            struct sl_error *error)
{
    enum sl_code code = get_rewriting(request, arena, items, error);
    if (code == SL_OK)
        code = convert(request, items, false, fd, outcome, error);
    if (code != SL_OK || !outcome->wanting)
        return code;
    code = companions_get(&request->object, &outcome->wants, arena, &items->companions, error);
    if (code == SL_OK)
        code = convert(request, items, true, fd, outcome, error);
    companions_release(&items->companions); /* items->companions.incomplete stays set, for the caller */
    return code;
}

/* Logs and counts that the symcache lacks damaged parts of the file, so that somebody may replace the file. It is used nevertheless. */
static void report_gaps(const struct object_request *request, const struct symcache_result *outcome)
{
    if (!outcome->gaps.units && !outcome->damaged)
        return;
    metric_add(METRIC_CONVERSIONS_PARTIAL, 1, kind_symcaches.name, NULL, NULL);
    log_warn("symcaches", "skipped damaged debug information of a file; some frames get no names or lines",
             LOG_SLSTR("location", request->file->location), LOG_U64("skipped_units", outcome->gaps.units),
             LOG_STR("first", outcome->gaps.units ? outcome->gaps.first.message
                                                  : "the file lacks contents that its headers refer to"));
}

/* Makes the entry: gets the object and its other inputs, and has a worker convert them. */
static enum sl_code symcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                      struct sl_error *error)
{
    const struct symcache_request *request = context;
    struct symcache_items items = {0};
    struct symcache_result outcome = {0};
    enum sl_code code = cache_get_own_file(&kind_objects, &request->object, arena, &items.object, error);
    if (code != SL_OK)
        return code;
    code = convert_with_companions(request, arena, tmp->fd, &items, &outcome, error);
    tmp->incomplete = items.companions.incomplete; /* then the entry is made again soon */
    struct cache_item *const used[] = {items.object, items.map, items.lines};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        cache_release(used[i]);
    if (code == SL_OK)
        report_gaps(&request->object, &outcome);
    return code;
}

static enum sl_code open_into(struct sl_bytes bytes, void *into, struct sl_error *error)
{
    return sl_symcache_open(bytes, into, error);
}

/* Old versions of symcaches, whose entries are used until the current version is made. What is wrong in them:
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
