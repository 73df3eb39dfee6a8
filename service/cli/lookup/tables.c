/* `symloom lookup`: symcaches to answer from. The first few addresses in a large file are answered from partial symcaches, which take a
 * fraction of the time; then the whole file is converted. */
#include "cli/lookup/gnu.h"
#include "cli/lookup/llvm.h"
#include "cli/lookup/lookup.h"

#include <stdlib.h>

#include "base/grow.h"
#include "demangle/demangle.h"
#include "function/undecorate.h"

/* ---- texts ---- */

/* How many slots the cache of names and that of paths have: an id has one slot, and a newer text replaces the one in it. */
enum { TEXT_SLOTS = 65536 };

/* Returns the cached text of a function or file id; NULL if it was never stored or another id's text took its slot. */
static const struct sl_str *texts_get(const struct text_cache *cache, uint32_t id)
{
    const struct sl_str *text = cache->texts ? &cache->texts[id % TEXT_SLOTS] : NULL;
    return text && text->data && cache->ids[id % TEXT_SLOTS] == id ? text : NULL;
}

static bool texts_init(struct text_cache *cache)
{
    cache->texts = calloc(TEXT_SLOTS, sizeof *cache->texts);
    cache->ids = calloc(TEXT_SLOTS, sizeof *cache->ids);
    return cache->texts && cache->ids;
}

/* Stores a copy of the text in the id's slot, and frees the text that was there. A slot filled for the first time is listed in `used`, so
 * that texts_free need not visit all slots. Returns the copy, with data NULL when out of memory. */
static struct sl_str texts_put(struct text_cache *cache, uint32_t id, struct sl_str text)
{
    struct sl_str *slot = &cache->texts[id % TEXT_SLOTS];
    bool has_room = slot->data || sl_grow(&cache->used, &cache->capacity, cache->count + 1, sizeof *cache->used);
    if (has_room && !slot->data)
        cache->used[cache->count++] = id % TEXT_SLOTS;
    free((char *)slot->data);
    char *copy = has_room ? malloc(text.size + 1) : NULL; /* copied with its size: names may contain NUL */
    if (copy && text.size)
        memcpy(copy, text.data, text.size);
    *slot = (struct sl_str){copy, copy ? text.size : 0};
    cache->ids[id % TEXT_SLOTS] = id;
    return *slot;
}

/* Frees the texts and the arrays of the cache. */
static void texts_free(struct text_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++) {
        free((char *)cache->texts[cache->used[i]].data);
        /* a slot that was emptied by a failed malloc is listed again when it is filled: free its text only once */
        cache->texts[cache->used[i]].data = NULL;
    }
    free(cache->used);
    free(cache->texts);
    free(cache->ids);
}

/* ---- tables ---- */

/* Allocates the caches of names and of paths of a table. */
static enum sl_code table_ready(struct lookup_table *table, struct sl_error *error)
{
    return texts_init(&table->names) && texts_init(&table->files) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

static void table_free(struct lookup_table *table)
{
    texts_free(&table->names);
    texts_free(&table->files);
    sl_buf_free(&table->bytes);
    free(table->addresses);
}

void lookup_tables_free(struct lookup_module *m)
{
    for (struct lookup_table *part = m->parts, *next; part; part = next) {
        next = part->next;
        table_free(part);
        free(part);
    }
    table_free(&m->whole);
}

/* Returns SL_UNSUPPORTED. The message is the first of the input's notes, which say what is missing, or "no symbols" without notes. */
static enum sl_code fail_empty(struct lookup_module *m)
{
    struct sl_str rest = sl_buf_view(&m->input.notes), note = SL_STR("no symbols");
    sl_str_next_line(&rest, &note);
    return sl_fail(&m->error, SL_UNSUPPORTED, SL_STR_FMT, SL_STR_ARG(note));
}

bool lookup_load_whole_file(struct lookup *l, struct lookup_module *m)
{
    if (m->is_whole || m->error.code != SL_OK)
        return m->error.code == SL_OK;
    m->is_whole = true; /* even if it fails: it is not tried again */
    progress_set_item(&l->progress, m->name, 0);
    enum sl_code code = SL_OK;
    /* has_cache: the input itself is a symcache, so input_convert does nothing */
    if (m->input.has_cache || !lookup_stored_table(l, m, true, &code))
        code = input_convert(&m->input, l->jobs, &m->error);
    progress_end(&l->progress);
    if (code == SL_OK && !m->input.notes.size &&
        sl_symcache_is_partial(&m->input.cache)) /* read from the disk cache, which does not store notes */
        input_note(&m->input, "some debug information is damaged; run 'symloom inspect --verify' for details");
    /* an error for `lookup` itself; the tools that it emulates answer `??` for a file without symbols */
    if (code == SL_OK && l->persona == PERSONA_LOOKUP && !m->input.cache.entry_count)
        code = fail_empty(m);
    if (code == SL_OK)
        code = table_ready(&m->whole, &m->error);
    m->whole.cache = m->input.cache;
    m->error.code = code;
    return code == SL_OK;
}

/* ---- parts ---- */

/* Orders addresses, for qsort and bsearch. */
static int lookup_by_address(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* True if the partial symcache has a line for each of its addresses. Otherwise it is not used: only the symcache of the whole file shows
 * that an address really has no line. */
static bool has_all_lines(const struct lookup_table *part)
{
    struct sl_location innermost;
    for (size_t i = 0; i < part->address_count; i++)
        if (!sl_symcache_lookup(&part->cache, part->addresses[i], &innermost, 1) || !innermost.line)
            return false;
    return true;
}

/* Makes a partial symcache of the code around `addresses`, which are relative to the load address; takes ownership of the array. NULL when
 * one of them has no line in it, or on an error. */
static struct lookup_table *make_partial_table(struct lookup *l, struct lookup_module *m, uint64_t *addresses,
                                               size_t count)
{
    struct lookup_table *part = calloc(1, sizeof *part);
    if (!part) {
        free(addresses);
        return NULL;
    }
    qsort(addresses, count, sizeof *addresses, lookup_by_address);
    part->addresses = addresses;
    part->address_count = count;
    progress_set_item(&l->progress, m->name, 0);
    enum sl_code code = input_convert_around(&m->input, addresses, count, l->jobs, &part->bytes, &part->cache, NULL);
    progress_end(&l->progress);
    if (code == SL_OK && has_all_lines(part) && table_ready(part, NULL) == SL_OK)
        return part;
    table_free(part);
    free(part);
    return NULL;
}

void lookup_build_tables(struct lookup *l, struct lookup_module *m, const struct lookup_request *requests, size_t count)
{
    /* beyond these limits the partial symcaches cost more than the conversion of the whole file */
    enum { FEW_ADDRESSES = 64, FEW_PARTS = 4 };
    size_t asked = 0, wanted = 0;
    uint64_t at;
    if (m->is_whole || m->error.code != SL_OK || (lookup_is_gnu(l) && gnu_get_tables(m)))
        return; /* converted already, unusable, or answered without a symcache */
    uint64_t *addresses = calloc(count + 1, sizeof *addresses);
    for (size_t i = 0; addresses && i < count; i++)
        if (requests[i].module == m && requests[i].kind == REQUEST_CODE) {
            asked++; /* also counts addresses below the load address, which `wanted` does not */
            if (lookup_relative(l, m, requests[i].address, &at))
                addresses[wanted++] = at;
        }
    enum sl_code code;
    bool is_few = wanted && wanted <= FEW_ADDRESSES && m->part_count < FEW_PARTS && input_has_parts(&m->input);
    /* takes the whole file if the addresses are many, or its symcache is to be cached, or is cached already: lookup_stored_table has then
     * loaded it */
    if (!is_few || l->keep_symcaches || (!m->part_count && lookup_stored_table(l, m, false, &code))) {
        free(addresses);
        if (asked)
            lookup_load_whole_file(l, m);
        return;
    }
    struct lookup_table *part = make_partial_table(l, m, addresses, wanted);
    if (!part) { /* an address without a line, or an error, which the whole conversion then reports */
        lookup_load_whole_file(l, m);
        return;
    }
    part->next = m->parts;
    m->parts = part;
    m->part_count++;
}

/* Returns the partial symcache that was made for an address, else that of the whole file, converting it if needed; NULL on an error. */
static struct lookup_table *table_for(struct lookup *l, struct lookup_module *m, uint64_t at)
{
    for (struct lookup_table *part = m->is_whole ? NULL : m->parts; part; part = part->next)
        if (bsearch(&at, part->addresses, part->address_count, sizeof at, lookup_by_address))
            return part;
    return lookup_load_whole_file(l, m) ? &m->whole : NULL;
}

size_t lookup_chain(struct lookup *l, struct lookup_module *m, uint64_t address, struct lookup_chain *chain)
{
    uint64_t at;
    chain->all = 0;
    chain->table = lookup_relative(l, m, address, &at) ? table_for(l, m, at) : NULL;
    if (!chain->table)
        return 0;
    size_t count = sl_symcache_lookup(&chain->table->cache, at, chain->links, MAX_CHAIN);
    /* has_root: unless the chain is cut at MAX_CHAIN, its last element is an empty function that encloses all code; leave it out */
    count = count > MAX_CHAIN ? MAX_CHAIN : count - (m->input.has_root && count);
    chain->all = count;
    if (l->inlines || count < 2)
        return count;
    /* --no-inlines: symloom lookup and llvm-symbolizer print the outermost function with the innermost line. addr2line, and all tools
     * with --functions=short, print the innermost function. */
    bool takes_outermost =
        l->persona == PERSONA_LOOKUP || (l->persona == PERSONA_LLVM_SYMBOLIZER && l->style != STYLE_GNU);
    if (takes_outermost && !l->short_names)
        chain->links[0].function = chain->links[count - 1].function;
    return 1;
}

/* ---- elements ---- */

/* Shortens `std::vector<int>::push_back(int)` to `push_back`: the part after the last scope and before the parameters. */
static struct sl_str short_name(struct sl_str name)
{
    int depth = 0;
    size_t end = name.size, start = 0;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        depth += (c == '<') - (c == '>' && depth);
        if (depth == 0 && c == '(' && i > start) {
            end = i;
            break;
        }
        if (depth == 0 && c == ':' && i + 1 < name.size && name.data[i + 1] == ':')
            start = i + 2;
    }
    return (struct sl_str){name.data + start, end - start};
}

/* Returns the symbol's name if the function is a split-off part of `name`, such as `f.cold` or `f.part.0` of `f`, else `name`. In debug
 * information such parts have the name of the whole function. */
static struct sl_str name_of_split_part(const struct lookup *l, struct lookup_module *m,
                                        const struct sl_symcache_function *function, struct sl_str name)
{
    const struct sl_symbol *symbol = function->entry != UINT64_MAX ? lookup_symbol_at(m, function->entry) : NULL;
    if (l->persona == PERSONA_ADDR2LINE) /* GNU's tool only uses names of the debug information */
        return name;
    bool longer = symbol && symbol->address == function->entry && symbol->name.size > name.size && name.size &&
                  symbol->name.data[name.size] == '.' && sl_str_starts(symbol->name, name);
    return longer ? symbol->name : name;
}

/* Strips the parameters `(int)` or `(int) const` that the CodeView reader appends to names; the `()` of `operator()` stays. */
static struct sl_str without_parameters(struct sl_str name)
{
    const struct sl_str suffix = SL_STR(" const"), call = SL_STR("operator");
    size_t end = name.size - (sl_str_ends(name, suffix) ? suffix.size : 0), at = end, depth = 0;
    if (!end || name.data[end - 1] != ')')
        return name;
    do {
        at--;
        depth += (size_t)(name.data[at] == ')') - (size_t)(name.data[at] == '(');
    } while (at && depth);
    struct sl_str bare = {name.data, at};
    return at && !sl_str_ends(bare, call) ? bare : name;
}

/* Returns the mangled or decorated name of a function, whose name in the symcache is `name`. In PDB and COFF files, and in 32-bit x86
 * Windows code, only the symbol at its entry has it. Without a symbol, returns `name` without the parameters that the CodeView reader
 * appends; in other formats, returns `name` as it is. */
static struct sl_str stored_name(struct lookup_module *m, const struct sl_symcache_function *function,
                                 struct sl_str name)
{
    const struct sl_object_info *info = m->input.object ? sl_object_info(input_debug(&m->input)) : NULL;
    if (!info || (info->format != SL_FORMAT_PDB && info->format != SL_FORMAT_COFF && !info->decorates))
        return name;
    struct sl_str symbol = {NULL, 0};
    if (function->entry != UINT64_MAX)
        symbol = lookup_stored_name(m, function->entry);
    if (symbol.size)
        return symbol;
    const struct sl_symbol *around = function->entry != UINT64_MAX ? lookup_symbol_at(m, function->entry) : NULL;
    /* padding may separate the symbol from the function's entry: then only the equal name shows that they belong together */
    if (around && info->decorates && sl_str_equal(sl_undecorate(around->name, NULL), name))
        return around->name;
    bool is_codeview = info->format == SL_FORMAT_PDB ||
                       (info->format == SL_FORMAT_COFF && sl_object_reads_own_functions(input_debug(&m->input)));
    return is_codeview ? without_parameters(name) : name; /* the CodeView reader appended parameters */
}

enum sl_demangle_style lookup_demangle_style(const struct lookup *l)
{
    return lookup_is_llvm(l) ? SL_DEMANGLE_LLVM : l->persona == PERSONA_ADDR2LINE ? SL_DEMANGLE_GNU : SL_DEMANGLE_CRASH;
}

/* Returns the language to demangle for. LLVM's tools detect C++ and Rust by the name, whatever the unit's DW_AT_language says. */
static enum sl_language get_language(const struct lookup *l, const struct sl_symcache_function *function,
                                     struct sl_str name)
{
    enum sl_language by_name = lookup_is_llvm(l) ? sl_demangle_detect(name) : SL_LANG_UNKNOWN;
    return by_name == SL_LANG_CPP || by_name == SL_LANG_RUST ? by_name : function->language;
}

/* Returns the name of function `id` of a symcache as the options want it: demangled, shortened or as stored. */
static struct sl_str readable_name(struct lookup *l, struct lookup_module *m, struct lookup_table *table, uint32_t id,
                                   const struct sl_symcache_function *function)
{
    const struct sl_str *known = texts_get(&table->names, id);
    if (known)
        return *known;
    struct sl_buf stored = {0}, readable = {0};
    sl_symcache_string(&table->cache, function->name, &stored);
    struct sl_str name = name_of_split_part(l, m, function, sl_buf_view(&stored));
    if ((l->demangle || l->short_names) &&
        sl_demangle_styled(name, get_language(l, function, name), lookup_demangle_style(l), &readable))
        name = sl_buf_view(&readable);
    else if (!l->demangle && !l->short_names)
        name = stored_name(m, function, name);
    if (l->short_names && function->language != SL_LANG_GO) /* `runtime.(*waitq).dequeue` has no parameters */
        name = short_name(name);
    name = texts_put(&table->names, id, name);
    sl_buf_free(&stored);
    sl_buf_free(&readable);
    return name;
}

/* Returns the path of file `id` of a symcache, or the last component of the path (--basenames). */
static struct sl_str file_name(struct lookup *l, struct lookup_table *table, uint32_t id)
{
    const struct sl_str *known = texts_get(&table->files, id);
    struct sl_buf path = {0};
    if (known)
        return *known;
    sl_symcache_file(&table->cache, id, &path);
    struct sl_str name = l->basenames ? path_file_name(sl_buf_view(&path)) : sl_buf_view(&path);
    name = texts_put(&table->files, id, name);
    sl_buf_free(&path);
    return name;
}

/* Returns the file of a function without line information from the symbol table (STT_FILE), as the emulated tools do; empty if there is
 * none. LLVM's tools use it only if they print full names, and for linked ELF files llvm_complete sets it instead. */
static struct sl_str file_of_symbol(struct lookup *l, struct lookup_module *m, const struct lookup_table *table,
                                    const struct sl_symcache_function *function)
{
    struct sl_buf stored = {0};
    struct sl_str file = {NULL, 0};
    bool as_llvm = lookup_is_llvm(l);
    if (l->persona == PERSONA_LOOKUP || function->entry == UINT64_MAX ||
        (as_llvm && (!l->functions || l->short_names || llvm_chooses_symbols(m))))
        return file;
    sl_symcache_string(&table->cache, function->name, &stored);
    file = lookup_symbol_file(m, function->entry, sl_buf_view(&stored), as_llvm);
    sl_buf_free(&stored);
    return l->basenames && !as_llvm ? path_file_name(file) : file;
}

void lookup_result_at(struct lookup *l, struct lookup_module *m, const struct lookup_chain *chain, size_t index,
                      struct lookup_result *e)
{
    struct sl_symcache_function function;
    struct lookup_table *table = chain->table;
    const struct sl_location *link = &chain->links[index];
    *e = (struct lookup_result){.line = link->line, .column = link->column};
    bool is_known = sl_symcache_function(&table->cache, link->function, &function);
    if (is_known) {
        e->name = readable_name(l, m, table, link->function, &function);
        e->has_entry = function.entry != UINT64_MAX;
        e->entry = function.entry + m->load;
    }
    if (link->file != SL_SYMCACHE_NONE)
        e->file = file_name(l, table, link->file);
    else if (is_known)
        e->file = file_of_symbol(l, m, table, &function);
}
