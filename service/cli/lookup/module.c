/* `symloom lookup`: opens the files in which addresses are looked up, and searches their symbol tables. */
#include "cli/lookup/llvm.h"
#include "cli/lookup/dwarf_index.h"
#include "cli/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/search.h"
#include "object/symbols.h"

/* ---- opening ---- */

/* Sets `path` to the file of a build id in the debug directories (by default /usr/lib/debug). False if there is none. */
static bool find_build_id(const struct lookup *l, struct sl_str id, char path[4096])
{
    const char *const *directory = l->open.debug_directories;
    for (directory = directory && *directory ? directory : usual_debug_directories; *directory; directory++)
        if (build_id_path(*directory, id, path) && access(path, R_OK) == 0)
            return true;
    return false;
}

/* Adds to the input's notes that the symbol sources of the command line have no debug information. If there are notes already, they say
 * where it was searched beside the file: the last one is continued. */
static void note_not_found(struct input *input)
{
    if (!input->notes.size) {
        input_note(input, "no debug information in the symbol sources of the command line");
        return;
    }
    input->notes.size--; /* the end of line */
    sl_buf_cstr(&input->notes, ", nor in the symbol sources of the command line\n");
}

/* Searches the symbol sources of the command line, if it names any, for the debug information that a stripped file lacks. */
static void request_debug_file(struct lookup *l, struct lookup_module *m)
{
    /* the options that name symbol sources */
    static const char *const sources[] = {"symbols", "source", "nt-symbol-path", "debuginfod", "config"};
    const struct sl_object *object = m->input.object;
    bool asked = false;
    struct sl_error error;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        asked = asked || option_given(l->options, sources[i]);
    if (!asked || !object || m->input.debug.object || sl_object_info(object)->features.has_debug_info)
        return;
    enum sl_code code =
        l->locator ? SL_OK : locator_open(l->options, NULL, server_verbosity(l->options), &l->locator, &error);
    if (code == SL_OK)
        code = locator_add_debug_info(l->locator, &m->input, &error);
    if (code == SL_OK)
        sl_buf_clear(&m->input.notes); /* the notes said that no debug information lies beside the file */
    else if (code == SL_NOT_FOUND)
        note_not_found(&m->input);
    else
        print_note("warning: no debug information for %s: %s\n", m->name, error.message);
}

/* Opens the file `path`, or `FILE:ARCH` if no file has that whole name, and fetches its debug information if it has none. Sets `m->stamp`
 * before it opens the file: the stamp is part of the file's key in the disk cache, where a changed file must not find its old symcache. */
static enum sl_code lookup_module_open_file(struct lookup *l, struct lookup_module *m, const char *path)
{
    progress_set_item(&l->progress, path, 0);
    lookup_stamp(path, &m->stamp);
    enum sl_code code = input_open(path, &l->open, &m->input, &m->error);
    progress_end(&l->progress);
    if (!m->stamp.size && m->input.path) /* a .dSYM directory: the file in it */
        lookup_stamp(m->input.path, &m->stamp);
    const char *colon = strrchr(path, ':');
    if (code == SL_NOT_FOUND && colon && sl_arch_parse(sl_str(colon + 1)) != SL_ARCH_UNKNOWN) { /* `file:arch` */
        char *plain = strndup(path, (size_t)(colon - path));
        struct input_options options = l->open;
        options.arch = colon + 1;
        input_close(&m->input);
        if (plain)
            lookup_stamp(plain, &m->stamp);
        code = plain ? input_open(plain, &options, &m->input, &m->error) : SL_INTERNAL; /* out of memory */
        m->input.options = &l->open; /* input_open kept a pointer to `options`, which ends here */
        free(plain);
    }
    if (code == SL_OK)
        request_debug_file(l, m);
    return code;
}

/* Fetches a file by build id from the symbol sources of the command line. The id is searched as that of a file of any format, since code
 * ids of all formats look alike. */
static enum sl_code fetch_file(struct lookup *l, struct lookup_module *m, struct sl_str text)
{
    struct object_id id = {.code_id = sl_code_id_normalise(&m->arena, text)};
    if (!id.code_id.size || id.code_id.size % 2) /* not the hexadecimal digits of whole bytes */
        return sl_fail(&m->error, SL_NOT_FOUND,
                       "'" SL_STR_FMT "' is not a build id: expected hexadecimal digits of whole bytes",
                       SL_STR_ARG(text));
    m->input.alone = true; /* a download: no companion files lie beside it */
    enum sl_code code =
        l->locator ? SL_OK : locator_open(l->options, NULL, server_verbosity(l->options), &l->locator, &m->error);
    if (code == SL_OK)
        code = locator_open_input(l->locator, &id, PURPOSE_DEBUG, m->name, &m->input, &m->error);
    m->input.options = &l->open; /* the locator opened it with options of its own */
    return code;
}

/* Opens the file that the module's name stands for: a path, `path:arch` or `BUILDID:hex`. The result is in `m->error`. */
static void open_module(struct lookup *l, struct lookup_module *m)
{
    struct sl_str name = sl_str(m->name);
    const struct sl_str prefix = SL_STR("BUILDID:");
    char found[4096];
    enum sl_code code;
    if (sl_str_starts(name, prefix)) {
        struct sl_str id = {name.data + prefix.size, name.size - prefix.size};
        code = find_build_id(l, id, found) ? lookup_module_open_file(l, m, found) : fetch_file(l, m, id);
    } else {
        code = lookup_module_open_file(l, m, m->name);
    }
    m->error.code = code;
    if (code != SL_OK)
        return;
    if (!m->input.object) /* a symcache or a symbfile: only m->input.cache has its load address and architecture */
        lookup_load_whole_file(l, m);
    const struct sl_object_info *info = m->input.object ? sl_object_info(m->input.object) : NULL;
    m->load = l->relative ? 0 : info ? info->load_address : m->input.cache.load_address;
    m->is_32bit = info ? !info->is_64bit : sl_cpu_pointer_size(sl_arch_family(m->input.cache.arch)) == 4;
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
        lookup_tables_free(m);
        free(m->code.order);
        free(m->data.order);
        free(m->files);
        dwarf_index_free(m->written);
        free(m->gnu);
        llvm_tables_free(m->llvm);
        free(m->name);
        input_close(&m->input);
        sl_arena_free(&m->arena);
        free(m);
    }
}

/* ---- symbols ---- */

/* Fills `list->order`, the symbols sorted by address; those at one address stay in file order. When out of memory the list becomes
 * empty. */
static void symbols_sort(struct lookup_symbols *list)
{
    struct sl_ordered *scratch = malloc((list->count + 1) * sizeof *scratch);
    list->order = malloc((list->count + 1) * sizeof *list->order);
    if (!scratch || !list->order)
        list->count = 0;
    for (size_t i = 0; i < list->count; i++)
        list->order[i] = (struct sl_ordered){list->symbols[i].address, 0, (uint32_t)i};
    if (list->count)
        sl_order(list->order, scratch, list->count);
    free(scratch);
}

/* Returns the symbols of functions, read and sorted at the first call. */
static const struct lookup_symbols *code_symbols(struct lookup_module *m)
{
    struct lookup_symbols *list = &m->code;
    if (list->order || !m->input.object)
        return list;
    if (sl_object_cached_symbols(input_debug(&m->input), &list->symbols, &list->count, NULL) != SL_OK)
        list->count = 0;
    symbols_sort(list);
    return list;
}

/* Returns the symbols of variables, read and sorted at the first call. */
static const struct lookup_symbols *data_symbols(struct lookup_module *m)
{
    struct lookup_symbols *list = &m->data;
    struct sl_symbol *symbols;
    if (list->order || !m->input.object)
        return list;
    if (sl_object_data_symbols(input_debug(&m->input), &m->arena, &symbols, &list->count, NULL) != SL_OK)
        list->count = 0;
    list->symbols = symbols;
    symbols_sort(list);
    return list;
}

/* Returns the index in `order` of the first symbol with the greatest address not above `address`; SIZE_MAX if there is
 * none. */
static size_t find_symbol_index(const struct lookup_symbols *list, uint64_t address)
{
    size_t low = SL_COUNT_UP_TO(list->order, list->count, key, address);
    /* several symbols may have that address; go to the first */
    while (low > 1 && list->order[low - 2].key == list->order[low - 1].key)
        low--;
    return low ? low - 1 : SIZE_MAX;
}

const struct sl_symbol *lookup_symbol_at(struct lookup_module *m, uint64_t address)
{
    const struct lookup_symbols *list = code_symbols(m);
    size_t index = find_symbol_index(list, address);
    return index == SIZE_MAX ? NULL : &list->symbols[list->order[index].index];
}

/* Compares for qsort by address; at one address by position in the array, which is the order of the file. */
static int lookup_module_by_address(const void *left, const void *right)
{
    const struct sl_symbol_file *a = *(const struct sl_symbol_file *const *)left,
                                *b = *(const struct sl_symbol_file *const *)right;
    return a->address != b->address ? sl_compare_u64(a->address, b->address) : (a > b) - (a < b);
}

/* Fills `m->files`: which source file each symbol comes from (STT_FILE), sorted by the symbols' addresses. When out of memory it stays
 * NULL and is tried again. */
static void read_symbol_files(struct lookup_module *m)
{
    struct sl_symbol_file *files = NULL;
    size_t count = 0;
    if (m->input.object && sl_object_symbol_files(input_debug(&m->input), &m->arena, &files, &count, NULL) != SL_OK)
        count = 0;
    m->files = calloc(count + 1, sizeof(void *));
    m->file_count = m->files ? count : 0;
    for (size_t i = 0; i < m->file_count; i++)
        m->files[i] = &files[i];
    if (m->file_count)
        qsort(m->files, m->file_count, sizeof(void *), lookup_module_by_address);
}

struct sl_str lookup_symbol_file(struct lookup_module *m, uint64_t address, struct sl_str name, bool as_llvm)
{
    if (!m->files)
        read_symbol_files(m);
    size_t low = SL_PARTITION_POINT(i, 0, m->file_count, m->files[i]->address < address);
    for (; low < m->file_count && m->files[low]->address == address; low++)
        if (sl_str_equal(m->files[low]->name, name) && (m->files[low]->is_local || !as_llvm))
            return m->files[low]->file;
    return (struct sl_str){NULL, 0};
}

/* Returns the name of the symbol exactly at the address; of several the one that sorts last by name: LLVM chooses it, because PDB's public
 * symbols are in that order. */
struct sl_str lookup_stored_name(struct lookup_module *m, uint64_t address)
{
    const struct lookup_symbols *list = code_symbols(m);
    struct sl_str found = {NULL, 0};
    for (size_t i = find_symbol_index(list, address); i < list->count && list->order[i].key == address; i++) {
        struct sl_str name = list->symbols[list->order[i].index].name;
        size_t shorter = name.size < found.size ? name.size : found.size;
        int order = shorter ? memcmp(name.data, found.data, shorter) : 0;
        if (order > 0 || (order == 0 && name.size > found.size))
            found = name;
    }
    return found;
}

/* Returns the largest of the symbols with the greatest address not above `address`; NULL unless it covers the address. */
static const struct sl_symbol *symbol_over(const struct lookup_symbols *list, uint64_t address)
{
    const struct sl_symbol *found = NULL;
    size_t first = find_symbol_index(list, address);
    for (size_t i = first; i < list->count && list->order[i].key == list->order[first].key; i++) {
        const struct sl_symbol *s = &list->symbols[list->order[i].index];
        if (s->name.size && (!found || s->size >= found->size))
            found = s;
    }
    /* a symbol of size 0, as assembler code makes them, covers its first byte */
    return found && address - found->address < (found->size ? found->size : 1) ? found : NULL;
}

const struct sl_symbol *lookup_data_at(struct lookup_module *m, uint64_t address)
{
    const struct sl_symbol *data = symbol_over(data_symbols(m), address);
    return data ? data : symbol_over(code_symbols(m), address);
}

/* Finds the function of that name in the symcache of the whole file. Split-off parts (.cold) have the name of the function there, so
 * the largest one of that name is chosen. False if there is none. */
static bool symcache_function_named(struct lookup_module *m, struct sl_str name, uint64_t *address, uint64_t *size)
{
    const struct sl_symcache *cache = &m->whole.cache;
    struct sl_symcache_function function;
    struct sl_buf text = {0};
    bool found = false;
    for (uint32_t i = 0; sl_symcache_function(cache, i, &function); i++) {
        sl_buf_clear(&text);
        sl_symcache_string(cache, function.name, &text);
        /* UINT64_MAX: a function that is only inlined has no entry */
        bool named = function.entry != UINT64_MAX && sl_str_equal(sl_buf_view(&text), name);
        uint64_t bytes = named ? sl_symcache_function_size(cache, i) : 0;
        if (!named || (found && bytes <= *size))
            continue;
        found = true;
        *address = function.entry + m->load;
        *size = bytes;
    }
    sl_buf_free(&text);
    return found;
}

bool lookup_symbol_named(struct lookup *l, struct lookup_module *m, struct sl_str name, uint64_t *address,
                         uint64_t *size)
{
    *size = 0;
    if (m->error.code != SL_OK)
        return false;
    const struct lookup_symbols *const lists[] = {code_symbols(m), data_symbols(m)};
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < lists[list]->count; i++) {
            const struct sl_symbol *s = &lists[list]->symbols[i];
            if (!sl_str_equal(s->name, name))
                continue;
            *address = s->address + m->load;
            *size = s->size;
            return true;
        }
    return lookup_load_whole_file(l, m) && symcache_function_named(m, name, address, size);
}

/* ---- addresses ---- */

bool lookup_relative(const struct lookup *l, const struct lookup_module *m, uint64_t address, uint64_t *relative)
{
    /* the byte before a return address belongs to the call instruction */
    uint64_t at = address - l->adjust - (l->return_addresses ? 1 : 0);
    struct sl_section_info section;
    if (l->section && m->input.object) {
        size_t i = 0;
        while (sl_object_section_info(m->input.object, i, &section) && !sl_str_equal(section.name, sl_str(l->section)))
            i++;
        if (!sl_object_section_info(m->input.object, i, &section))
            return false;
        at += section.address;
    }
    *relative = at - m->load;
    return at >= m->load;
}
