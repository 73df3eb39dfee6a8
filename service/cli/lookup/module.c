/* `symloom lookup`: the files that addresses are looked up in. */
#include "cli/lookup/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "demangle/demangle.h"

/* ---- opening ---- */

static const char *const usual_directories[] = {"/usr/lib/debug", NULL};

/* The file of a build id, or NULL. The caller frees it. */
static char *find_build_id(const struct lookup *l, struct sl_str id)
{
    const char *const *directory = l->open.debug_directories;
    for (directory = directory && *directory ? directory : usual_directories; *directory && id.size > 2; directory++) {
        char *path;
        if (asprintf(&path, "%s/.build-id/%.2s/%.*s.debug", *directory, id.data, (int)id.size - 2, id.data + 2) < 0)
            return NULL;
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

/* The sources that the command line names are asked for what a stripped file lacks. */
static void ask_for_debug(struct lookup *l, struct lookup_module *m)
{
    static const char *const sources[] = {"symbols", "source", "nt-symbol-path", "debuginfod", "config"};
    const struct sl_object *object = m->input.object;
    bool asked = false;
    struct sl_error error;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        asked = asked || option_given(l->options, sources[i]);
    if (!asked || !object || m->input.debug.object || sl_object_info(object)->features.has_debug_info)
        return;
    enum sl_code code = l->by_id ? SL_OK : by_id_open(l->options, NULL, NULL, &l->by_id, &error);
    if (code == SL_OK)
        code = by_id_complete(l->by_id, &m->input, &error);
    if (code != SL_OK && code != SL_NOT_FOUND)
        fprintf(stderr, "warning: no debug information for %s: %s\n", m->name, error.message);
}

static enum sl_code lookup_module_open_file(struct lookup *l, struct lookup_module *m, const char *path)
{
    enum sl_code code = input_open(path, &l->open, &m->input, &m->error);
    const char *colon = strrchr(path, ':');
    if (code == SL_NOT_FOUND && colon && sl_arch_parse(sl_str(colon + 1)) != SL_ARCH_UNKNOWN) { /* `file:arch` */
        char *plain = strndup(path, (size_t)(colon - path));
        struct input_options options = l->open;
        options.arch = colon + 1;
        input_close(&m->input);
        code = plain ? input_open(plain, &options, &m->input, &m->error) : SL_INTERNAL;
        m->input.options = &l->open;
        free(plain);
    }
    if (code == SL_OK)
        ask_for_debug(l, m);
    return code == SL_OK ? input_convert(&m->input, l->jobs, &m->error) : code;
}

/* A file that is not installed: of any format, since ids of all look alike. */
static enum sl_code fetch_file(struct lookup *l, struct lookup_module *m, struct sl_str text)
{
    struct object_id id = {.code_id = sl_code_id_normalise(&m->arena, text)};
    if (!id.code_id.size || id.code_id.size % 2)
        return sl_fail(&m->error, SL_NOT_FOUND, "no build id: " SL_STR_FMT, SL_STR_ARG(text));
    m->input.alone = true;
    enum sl_code code = l->by_id ? SL_OK : by_id_open(l->options, NULL, NULL, &l->by_id, &m->error);
    if (code == SL_OK)
        code = by_id_open_input(l->by_id, &id, PURPOSE_DEBUG, m->name, &m->input, &m->error);
    m->input.options = &l->open;
    return code == SL_OK ? input_convert(&m->input, l->jobs, &m->error) : code;
}

static bool texts_init(struct text_cache *cache)
{
    cache->texts = calloc(TEXT_SLOTS, sizeof *cache->texts);
    cache->ids = calloc(TEXT_SLOTS, sizeof *cache->ids);
    return cache->texts && cache->ids;
}

static void texts_free(struct text_cache *cache)
{
    for (size_t i = 0; cache->texts && i < TEXT_SLOTS; i++)
        free((char *)cache->texts[i].data);
    free(cache->texts);
    free(cache->ids);
}

static const struct sl_str *texts_get(const struct text_cache *cache, uint32_t id)
{
    const struct sl_str *text = &cache->texts[id % TEXT_SLOTS];
    return text->data && cache->ids[id % TEXT_SLOTS] == id ? text : NULL;
}

static struct sl_str texts_put(struct text_cache *cache, uint32_t id, struct sl_str text)
{
    struct sl_str *slot = &cache->texts[id % TEXT_SLOTS];
    free((char *)slot->data);
    char *copy = malloc(text.size + 1); /* names may hold NUL */
    if (copy && text.size)
        memcpy(copy, text.data, text.size);
    *slot = (struct sl_str){copy, copy ? text.size : 0};
    cache->ids[id % TEXT_SLOTS] = id;
    return *slot;
}

static void open_module(struct lookup *l, struct lookup_module *m)
{
    struct sl_str name = sl_str(m->name);
    const struct sl_str prefix = SL_STR("BUILDID:");
    char *found = NULL;
    enum sl_code code;
    if (sl_str_starts(name, prefix)) {
        struct sl_str id = {name.data + prefix.size, name.size - prefix.size};
        found = find_build_id(l, id);
        code = found ? lookup_module_open_file(l, m, found) : fetch_file(l, m, id);
    } else {
        code = lookup_module_open_file(l, m, m->name);
    }
    free(found);
    if (code == SL_OK && l->persona == PERSONA_LOOKUP && !m->input.cache.entry_count)
        code = sl_fail(&m->error, SL_UNSUPPORTED, "it has no symbols");
    m->error.code = code;
    if (code != SL_OK)
        return;
    const struct sl_object_info *info = m->input.object ? sl_object_info(m->input.object) : NULL;
    m->load = l->relative ? 0 : m->input.cache.load_address;
    m->is_32bit = info ? !info->is_64bit : sl_cpu_pointer_size(sl_arch_family(m->input.cache.arch)) == 4;
    if (!texts_init(&m->names) || !texts_init(&m->files))
        m->error.code = sl_fail(&m->error, SL_BUSY, "out of memory");
}

struct lookup_module *lookup_module_find(struct lookup *l, struct sl_str name)
{
    struct lookup_module **at = &l->modules;
    for (; *at; at = &(*at)->next)
        if (sl_str_equal(sl_str((*at)->name), name))
            return *at;
    struct lookup_module *m = calloc(1, sizeof *m);
    if (!m || !(m->name = strndup(name.data ? name.data : "", name.size))) {
        free(m);
        return NULL;
    }
    open_module(l, m);
    *at = m;
    return m;
}

void lookup_modules_free(struct lookup *l)
{
    for (struct lookup_module *m = l->modules, *next; m; m = next) {
        next = m->next;
        texts_free(&m->names);
        texts_free(&m->files);
        free(m->name);
        input_close(&m->input);
        sl_arena_free(&m->arena);
        free(m);
    }
}

/* ---- symbols ---- */

static int lookup_module_by_address(const void *left, const void *right)
{
    const struct sl_symbol *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a->name.data < b->name.data ? -1 : a->name.data > b->name.data;
}

static void read_symbols(struct lookup_module *m)
{
    if (m->has_symbols || !m->input.object)
        return;
    m->has_symbols = true;
    if (sl_object_symbols(input_debug(&m->input), &m->arena, &m->symbols, &m->symbol_count, NULL) != SL_OK)
        m->symbol_count = 0;
    if (m->symbol_count)
        qsort(m->symbols, m->symbol_count, sizeof *m->symbols, lookup_module_by_address);
}

const struct sl_symbol *lookup_symbol_at(struct lookup_module *m, uint64_t address)
{
    read_symbols(m);
    size_t low = 0, count = m->symbol_count;
    if (!count || m->symbols[0].address > address)
        return NULL;
    for (; count > 1; count -= count / 2)
        if (m->symbols[low + count / 2].address <= address)
            low += count / 2;
    while (low && m->symbols[low - 1].address == m->symbols[low].address)
        low--;
    return &m->symbols[low];
}

static bool symcache_function_named(struct lookup_module *m, struct sl_str name, uint64_t *address)
{
    struct sl_symcache_function function;
    struct sl_buf text = {0};
    bool found = false;
    for (uint32_t i = 0; !found && sl_symcache_function(&m->input.cache, i, &function); i++) {
        sl_buf_clear(&text);
        sl_symcache_string(&m->input.cache, function.name, &text);
        found = function.entry != UINT64_MAX && sl_str_equal(sl_buf_view(&text), name);
        *address = function.entry + m->load;
    }
    sl_buf_free(&text);
    return found;
}

bool lookup_symbol_named(struct lookup_module *m, struct sl_str name, uint64_t *address, uint64_t *size)
{
    *size = 0;
    if (m->error.code != SL_OK)
        return false;
    read_symbols(m);
    for (size_t i = 0; i < m->symbol_count; i++)
        if (sl_str_equal(m->symbols[i].name, name)) {
            *address = m->symbols[i].address + m->load;
            *size = m->symbols[i].size;
            return true;
        }
    return symcache_function_named(m, name, address);
}

/* ---- elements ---- */

size_t lookup_chain(struct lookup *l, struct lookup_module *m, uint64_t address, struct sl_location *chain)
{
    uint64_t at = address - l->adjust - (l->return_addresses ? 1 : 0);
    struct sl_section_info section;
    if (l->section && m->input.object) {
        size_t i = 0;
        while (sl_object_section_info(m->input.object, i, &section) && !sl_str_equal(section.name, sl_str(l->section)))
            i++;
        if (!sl_object_section_info(m->input.object, i, &section))
            return 0;
        at += section.address;
    }
    if (at < m->load)
        return 0;
    size_t count = sl_symcache_lookup(&m->input.cache, at - m->load, chain, MAX_CHAIN);
    count = count > MAX_CHAIN ? MAX_CHAIN : count - (m->input.has_root && count);
    if (l->inlines || count < 2)
        return count;
    if (l->persona != PERSONA_ADDR2LINE) /* the code's own function, at the line that was inlined */
        chain[0].function = chain[count - 1].function;
    return 1;
}

/* `std::vector<int>::push_back(int)` to `push_back`: what stands before the parameters, behind the last scope. */
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

/* A compiler's piece of a function has a symbol of its own: `f.cold`, `f.part.0`. Its name says more. */
static struct sl_str name_of_piece(struct lookup_module *m, const struct sl_symcache_function *function,
                                   struct sl_str name)
{
    const struct sl_symbol *symbol = function->entry != UINT64_MAX ? lookup_symbol_at(m, function->entry) : NULL;
    bool longer = symbol && symbol->address == function->entry && symbol->name.size > name.size && name.size &&
                  symbol->name.data[name.size] == '.' && sl_str_starts(symbol->name, name);
    return longer ? symbol->name : name;
}

static struct sl_str readable_name(struct lookup *l, struct lookup_module *m, uint32_t id,
                                   const struct sl_symcache_function *function)
{
    const struct sl_str *known = texts_get(&m->names, id);
    if (known)
        return *known;
    struct sl_buf stored = {0}, readable = {0};
    sl_symcache_string(&m->input.cache, function->name, &stored);
    struct sl_str name = name_of_piece(m, function, sl_buf_view(&stored));
    if ((l->demangle || l->short_names) && sl_demangle(name, function->language, &readable))
        name = sl_buf_view(&readable);
    if (l->short_names)
        name = short_name(name);
    name = texts_put(&m->names, id, name);
    sl_buf_free(&stored);
    sl_buf_free(&readable);
    return name;
}

static struct sl_str file_name(struct lookup *l, struct lookup_module *m, uint32_t id)
{
    const struct sl_str *known = texts_get(&m->files, id);
    struct sl_buf path = {0};
    if (known)
        return *known;
    sl_symcache_file(&m->input.cache, id, &path);
    struct sl_str name = sl_buf_view(&path);
    size_t at = name.size;
    while (l->basenames && at && name.data[at - 1] != '/' && name.data[at - 1] != '\\')
        at--;
    if (l->basenames)
        name = (struct sl_str){name.data + at, name.size - at};
    name = texts_put(&m->files, id, name);
    sl_buf_free(&path);
    return name;
}

void lookup_element(struct lookup *l, struct lookup_module *m, const struct sl_location *location, struct element *e)
{
    struct sl_symcache_function function;
    *e = (struct element){.line = location->line};
    if (sl_symcache_function(&m->input.cache, location->function, &function)) {
        e->name = readable_name(l, m, location->function, &function);
        e->has_entry = function.entry != UINT64_MAX;
        e->entry = function.entry + m->load;
    }
    if (location->file != SL_SYMCACHE_NONE)
        e->file = file_name(l, m, location->file);
}
