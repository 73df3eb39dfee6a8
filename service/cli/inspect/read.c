/* `symloom inspect`: reads an object for its lists and totals, and finds out whether it is usable. */
#include "cli/inspect/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "demangle/demangle.h"
#include "dwarf/dwarf.h"
#include "function/path.h"
#include "ppdb/ppdb.h"
#include "source/bundle.h"
#include "unwind/unwind.h"

/* ---- reading all functions ---- */

struct function_counter {
    struct sl_function_sink sink;
    struct inspect_results *f;
    struct sl_str *paths; /* full paths of the files of the current batch, by their index in it */
};

/* Adds `more` to the count of a text in `map`, whose values are counts, not pointers. A new text is copied. False when out of memory. */
static bool count_text(struct inspect_results *f, struct sl_map *map, struct sl_str text, uintptr_t more)
{
    void *known = sl_map_get(map, text);
    struct sl_str key = text;
    if (!known) {
        key.data = sl_arena_strndup(&f->arena, text.data ? text.data : "", text.size);
        if (!key.data)
            return false;
    }
    void **slot = sl_map_find_or_add(map, key, NULL);
    if (slot)
        *slot = (void *)((uintptr_t)*slot + more);
    return slot != NULL;
}

/* Counts a function and its inlined calls (`depth` > 0), and with --functions adds them to the list, each with file and first line. */
static void count_function(struct function_counter *c, const struct sl_function_batch *batch,
                           const struct sl_function *function, unsigned depth)
{
    struct inspect_results *f = c->f;
    f->counts.lines += function->line_count;
    if (depth)
        f->counts.inlinees++;
    else
        f->counts.functions++;
    if (f->lists.functions) {
        struct sl_buf name = {0}, location = {0};
        bool readable = option_given(f->options, "demangle") && sl_demangle(function->name, function->language, &name);
        if (function->line_count && function->lines[0].file < batch->file_count)
            sl_buf_printf(&location, SL_STR_FMT ":%u", SL_STR_ARG(c->paths[function->lines[0].file]),
                          function->lines[0].line);
        findings_add_function(f, function, readable ? sl_buf_view(&name) : function->name, sl_buf_view(&location),
                              depth);
        sl_buf_free(&name);
        sl_buf_free(&location);
    }
    for (uint32_t i = 0; i < function->inlinee_count; i++)
        count_function(c, batch, &function->inlinees[i], depth + 1);
    if (f->lists.functions && f->json) { /* findings_add_function has begun the object and its array "inlinees" */
        sl_json_end_array(&f->function_writer);
        sl_json_end_object(&f->function_writer);
    }
}

/* Receives the functions of a compilation unit as a batch, which is freed afterwards: counts its functions, files and compiler. Files
 * without a path are not counted. c->paths: full paths of the batch's files, for count_function. */
static enum sl_code inspect_read_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                         struct sl_error *error)
{
    struct function_counter *c = (struct function_counter *)sink;
    struct sl_arena arena = {0};
    struct sl_buf path = {0};
    bool ok = (c->paths = SL_ARENA_ARRAY(&arena, struct sl_str, batch->file_count + 1)) != NULL;
    for (size_t i = 0; ok && i < batch->file_count; i++) {
        const struct sl_file *file = &batch->files[i];
        sl_buf_clear(&path);
        sl_path_full(&path, file->comp_dir, file->directory, file->name);
        ok = !path.size || count_text(c->f, &c->f->files, sl_buf_view(&path), 1);
        c->paths[i].data = ok ? sl_arena_strndup(&arena, path.data ? (char *)path.data : "", path.size) : NULL;
        c->paths[i].size = c->paths[i].data ? path.size : 0;
    }
    if (ok && batch->producer.size)
        ok = count_text(c->f, &c->f->producers, batch->producer, 1);
    for (size_t i = 0; ok && i < batch->function_count; i++)
        count_function(c, batch, &batch->functions[i], 0);
    sl_buf_free(&path);
    sl_arena_free(&arena);
    return ok ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Adds a line (printf arguments) to f->hints: what a file lacks, or what the user can do. */
static void hint(struct inspect_results *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void hint(struct inspect_results *f, const char *format, ...)
{
    char text[4200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sl_buf_printf(&f->hints, "%s\n", text);
}

/* Counts documents, embedded sources, methods and lines of a Portable PDB, and reads its Source Link rules. Charges the work for each row
 * (document.work: steps it took) to the budget, because many rows may share one long name. False when that is used up or memory is
 * out. */
static bool inspect_read_documents(struct inspect_results *f, const struct sl_ppdb *ppdb,
                                   const struct sl_ppdb_info *info)
{
    struct sl_account account = {.budget = sl_object_budget(f->input->object)};
    struct sl_ppdb_source source;
    struct sl_ppdb_document document;
    struct sl_ppdb_points points;
    struct sl_ppdb_point point;
    struct sl_buf name = {0};
    uint32_t cursor = 0;
    bool ok = true;
    for (uint32_t row = 1; ok && row <= info->document_count; row++) {
        sl_buf_clear(&name);
        if (sl_ppdb_document(ppdb, row, &document, &name, NULL) == SL_OK)
            ok = count_text(f, &f->files, sl_buf_view(&name), 1);
        ok = ok && sl_account_spend(&account, document.work);
    }
    while (ok && sl_ppdb_next_source(ppdb, &cursor, &source)) {
        sl_buf_clear(&name);
        if (sl_ppdb_document(ppdb, source.document, &document, &name, NULL) == SL_OK)
            ok = count_text(f, &f->embedded, sl_buf_view(&name), 1);
        ok = ok && sl_account_spend(&account, document.work);
    }
    for (uint32_t method = 1; ok && method <= info->method_count; method++) {
        sl_ppdb_points_begin(ppdb, method, &points);
        ok = sl_account_spend(&account, (uint32_t)sl_reader_left(&points.blob) + 1); /* + 1: even without points */
        while (ok && sl_ppdb_points_next(&points, &point))
            f->counts.lines += !point.hidden;
    }
    f->counts.functions = info->method_count;
    f->counts.files = f->files.count;
    ok = sl_ppdb_read_links(ppdb, &f->links) == SL_OK && ok;
    sl_buf_free(&name);
    return ok;
}

/* Reads a Portable PDB completely. If that fails, a hint says why, and what was read so far is shown. */
static void read_ppdb(struct inspect_results *f)
{
    struct sl_error error = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    if (sl_ppdb_open(sl_object_file(f->input->object), &f->arena, &ppdb, &info, &error) != SL_OK)
        hint(f, "cannot read the debug information: %s", error.message);
    else if (!inspect_read_documents(f, ppdb, &info)) {
        sl_budget_fail(sl_object_budget(f->input->object), &error);
        hint(f, "%s", error.message);
    }
    f->complete = true;
}

/* Opens a source bundle; a failure is a hint, since the rest of the object can be shown. */
static void inspect_open_bundle(struct inspect_results *f)
{
    struct sl_error error = {0};
    struct sl_object *object = f->input->object;
    if (sl_bundle_open(sl_object_file(object), sl_object_budget(object), &f->bundle, &error) != SL_OK)
        hint(f, "cannot read the bundle: %s", error.message);
}

/* Lists the files of a source bundle by path, URL or name; those that are in the archive count as embedded. When out of memory the list
 * ends early. */
static void read_bundle(struct inspect_results *f)
{
    bool ok = f->bundle != NULL;
    for (size_t i = 0; ok && i < sl_bundle_count(f->bundle); i++) {
        const struct sl_bundle_file *file = sl_bundle_file(f->bundle, i);
        struct sl_str path = file->path.size ? file->path : file->url.size ? file->url : file->name;
        ok = count_text(f, &f->files, path, 1) && (!file->entry || count_text(f, &f->embedded, path, 1));
    }
    f->counts.files = f->files.count;
    f->complete = true;
}

/* Appends the URL that the bundle has for this file or, without one, the URL that its source links give for the path. */
static void link_of_bundle(const struct inspect_results *f, struct sl_str path, struct sl_buf *url)
{
    const struct sl_bundle_file *file = sl_bundle_by_path(f->bundle, path);
    if (file && file->url.size)
        sl_buf_str(url, file->url);
    else
        sl_bundle_link(f->bundle, path, url);
}

const struct sl_bundle_file *findings_artifact(const struct inspect_results *f, struct sl_str path)
{
    return f->bundle && !sl_bundle_by_path(f->bundle, path) ? sl_bundle_by_url(f->bundle, path) : NULL;
}

/* True if the source bundle has scripts or source maps: they are found by URL or their own debug ids, so the bundle needs no id to be
 * usable. */
static bool has_artifacts(const struct inspect_results *f)
{
    for (size_t i = 0; f->bundle && i < sl_bundle_count(f->bundle); i++)
        if (sl_bundle_file(f->bundle, i)->type != SL_BUNDLE_SOURCE)
            return true;
    return false;
}

void findings_link(const struct inspect_results *f, struct sl_str path, struct sl_buf *url)
{
    struct sl_ppdb_links links;
    struct sl_file_origin origin;
    struct sl_arena arena = {0};
    if (f->bundle)
        link_of_bundle(f, path, url);
    else if (f->links.size && sl_ppdb_links_open(sl_buf_bytes(&f->links), &links))
        sl_ppdb_links_resolve(&links, path, url);
    else if (f->input->object && sl_object_file_origin(f->input->object, path, &arena, &origin))
        sl_buf_str(url, origin.url);
    sl_arena_free(&arena);
}

/* Called for each source text in DWARF: counts its path as embedded. False when out of memory. */
static bool add_embedded(void *arg, const struct sl_file *file, struct sl_bytes text)
{
    struct inspect_results *f = arg;
    struct sl_buf path = {0};
    (void)text;
    sl_path_full(&path, file->comp_dir, file->directory, file->name);
    bool ok = count_text(f, &f->embedded, sl_buf_view(&path), 1);
    sl_buf_free(&path);
    return ok;
}

uint64_t findings_cfi(struct inspect_results *f, bool (*write)(void *arg, struct sl_str line), void *arg)
{
    struct sl_unwind_text text;
    struct sl_error error = {0};
    sl_unwind_text_init(&text, f->input->object);
    text.write = write;
    text.arg = arg;
    enum sl_code code = sl_unwind_read(f->input->object, &text.sink, &error);
    /* when `complete`, an earlier call has counted the records and added these hints */
    if (!f->complete && (code == SL_MALFORMED || code == SL_INTERNAL))
        hint(f, "cannot read the unwind information: %s", error.message);
    if (!f->complete && text.sink.skipped)
        hint(f, "%zu entries of the unwind information are damaged or not supported", text.sink.skipped);
    uint64_t records = text.records;
    sl_unwind_text_free(&text);
    return records;
}

static bool ignore_record(void *arg, struct sl_str line)
{
    (void)arg, (void)line;
    return true;
}

/* Reads functions, sources, symbols and unwind information, for totals and lists. If a part cannot be read, a hint says so, and the rest is
 * still shown. */
static void inspect_read_all(struct inspect_results *f)
{
    struct sl_error error = {0};
    size_t count = 0;
    struct function_counter counter = {.sink = {.consume = inspect_read_consume}, .f = f};
    f->function_writer = sl_json_writer(&f->functions);
    enum sl_code code = input_read_functions(f->input, threads_parallel(0), &counter.sink, &error);
    if (code != SL_OK && code != SL_NOT_FOUND)
        hint(f, "cannot read the debug information: %s", error.message);
    sl_dwarf_sources(input_debug(f->input), add_embedded, f);
    f->counts.skipped = counter.sink.skipped_units;
    f->counts.files = f->files.count;
    code = sl_object_symbols(f->input->object, &f->arena, &f->symbols, &count, &error);
    if (code != SL_OK)
        hint(f, "cannot read the symbols: %s", error.message);
    f->counts.symbols = code == SL_OK ? count : 0;
    f->counts.cfi = findings_cfi(f, ignore_record, NULL);
    f->complete = true;
}

struct sl_str *findings_sorted(const struct sl_map *map)
{
    struct sl_str *keys = calloc(map->count + 1, sizeof *keys);
    size_t count = 0;
    for (struct sl_map_entry *e = NULL; keys && (e = sl_map_next(map, e));)
        keys[count++] = e->key;
    if (count)
        qsort(keys, count, sizeof *keys, sl_str_order);
    return keys;
}

/* ---- usable or not ---- */

/* True if the object has a section of this name. */
static bool has_section(struct sl_object *object, const char *name)
{
    struct sl_section_info s;
    for (size_t i = 0; sl_object_section_info(object, i, &s); i++)
        if (sl_str_equal(s.name, sl_str(name)))
            return true;
    return false;
}

/* Returns why the object is useless for symbolication: it has no id by which it could be found, or no information. NULL if it is usable. */
static const char *describe_problem(struct sl_object *object)
{
    const struct sl_object_info *info = sl_object_info(object);
    const struct sl_features *f = &info->features;
    /* a stripped ELF file without build id: its debug id is only a hash of its code */
    bool id_is_hash =
        info->format == SL_FORMAT_ELF && !info->code_id.size && !f->has_debug_info && !has_section(object, ".symtab");
    bool has_names = info->format == SL_FORMAT_WASM ? has_section(object, "name") : f->has_symbols;
    struct sl_debug_id id;
    /* a file without an id is of use if it has names and an id can be made from its contents */
    bool lacks_id = sl_debug_id_is_nil(&info->debug_id) && !(has_names && sl_object_make_id(object, &id));
    if ((lacks_id && !f->has_debug_info) || id_is_hash)
        return "missing debug identifier, likely stripped";
    if (!f->has_debug_info && !f->has_symbols && !f->has_unwind_info && !f->has_sources)
        return "missing debug or unwind information";
    return NULL;
}

/* True if the object has a symbol `__hidden#N_`, as Apple's bitcode builds do: its name is in a separate BCSymbolMap. */
static bool has_hidden_symbols(struct inspect_results *f)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count = 0;
    bool hidden = false;
    if (sl_object_symbols(f->input->object, &arena, &symbols, &count, NULL) == SL_OK)
        for (size_t i = 0; i < count && !hidden; i++)
            hidden = sl_str_starts(symbols[i].name, SL_STR("__hidden#"));
    sl_arena_free(&arena);
    return hidden;
}

static bool has_go_table(struct sl_object *object)
{
    struct sl_bytes table;
    uint64_t address;
    return sl_object_go_table(object, &table, &address);
}

/* Adds a hint that says how a file without an id can be found: by its path and, if one can be made from its contents, by that id. */
static void hint_made_id(struct inspect_results *f)
{
    struct sl_debug_id id;
    char text[SL_DEBUG_ID_TEXT];
    if (!sl_object_make_id(f->input->object, &id)) {
        hint(f, "no id: found by its path only, not by symbol stores or crash reports");
        return;
    }
    sl_debug_id_format(&id, text);
    hint(f, "no id: found by its path; dump-syms and sort use an id made from its contents: %s", text);
}

/* Number of compilation units that are checked for missing .dwo files: large files have very many. */
enum { MAX_HEADERS = 4096 };

/* Adds hints about what the file lacks. Notes of the searches for its debug file and .dwo files go to f->input->notes, which findings_make
 * turns into hints. */
static void make_hints(struct inspect_results *f)
{
    const struct sl_object_info *info = sl_object_info(f->input->object);
    struct debug_file debug = {0};
    if (!info->features.has_debug_info && !f->input->alone)
        debug_file_find(f->input->object, f->input->path, NULL, NULL, &debug, f->input);
    debug_file_close(&debug);                          /* only the notes about it are needed */
    input_add_note_split_units(f->input, MAX_HEADERS); /* notes about missing .dwo files, of the first units only */
    if (sl_debug_id_is_nil(&info->debug_id) && !f->problem && info->format != SL_FORMAT_SOURCEBUNDLE)
        hint_made_id(f);
    /* no hint about missing lines if a debug link names the file that has them, or if the file has Go's table, which contains lines */
    if (info->kind == SL_KIND_EXE || info->kind == SL_KIND_LIB)
        if (!info->features.has_debug_info && info->features.has_symbols && !info->debug_link.size &&
            info->format == SL_FORMAT_ELF && !has_go_table(f->input->object))
            hint(f, "no line information: compiled without -g, or stripped");
    if (info->raw_code_id.size)
        hint(f, "the build id is preceded by its length: " SL_STR_FMT, SL_STR_ARG(info->raw_code_id));
    if (info->partial)
        hint(f, "damaged: cannot read some headers");
}

void findings_make(struct inspect_results *f)
{
    if (!f->input->object) /* a symcache, which print.c checks */
        return;
    const struct sl_object_info *info = sl_object_info(f->input->object);
    if (info->format == SL_FORMAT_SOURCEBUNDLE)
        inspect_open_bundle(f);
    /* scripts and source maps in a bundle have ids of their own, so the bundle needs none */
    f->problem = has_artifacts(f) ? NULL : describe_problem(f->input->object);
    if (info->format == SL_FORMAT_MACHO && info->features.has_symbols && has_hidden_symbols(f))
        f->note = "contains hidden symbols (needs BCSymbolMaps)";
    make_hints(f);
    if (option_given(f->options, "verify") || option_given(f->options, "statistics") || f->lists.symbols ||
        f->lists.functions || f->lists.files || f->lists.sources || f->lists.cfi) {
        if (info->format == SL_FORMAT_PORTABLEPDB)
            read_ppdb(f);
        else if (info->format == SL_FORMAT_SOURCEBUNDLE)
            read_bundle(f);
        else
            inspect_read_all(f);
    }
    struct sl_str rest = sl_buf_view(&f->input->notes), note;
    while (sl_str_next_line(&rest, &note))
        hint(f, SL_STR_FMT, SL_STR_ARG(note));
    sl_buf_clear(&f->input->notes);
}

void findings_free(struct inspect_results *f)
{
    sl_buf_free(&f->hints);
    sl_buf_free(&f->functions);
    sl_buf_free(&f->links);
    sl_map_free(&f->files);
    sl_map_free(&f->embedded);
    sl_map_free(&f->producers);
    sl_bundle_close(f->bundle);
    sl_arena_free(&f->arena);
}
