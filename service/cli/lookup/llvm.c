/* `symloom llvm-symbolizer`, `llvm-addr2line`: details that LLVM's tools (LLVM 19) add for ELF files, by their own rules:
 *
 *     the outermost function    (not inlined) has the name and address of the last symbol before the address, if that covers it; of
 *                               several at one address the largest, of equal ones the last
 *     discriminators, columns of rows with line 0, declarations, entries of inlined calls: as in the unit's DWARF */
#include "cli/lookup/llvm.h"
#include "cli/lookup/dwarf_index.h"

#include <stdlib.h>

#include "base/search.h"
#include "demangle/demangle.h"
#include "function/path.h"

struct llvm_tables {
    struct sl_arena arena;
    struct sl_object *object;
    struct dwarf_index_symbol *symbols; /* sorted by address, without duplicates */
    size_t count;
};

/* True for mapping symbols ($a, $d, $t, $x), which assemblers emit where the instruction set changes or data begins: they name no code. */
static bool is_mark(const struct sl_object *object, struct sl_str name)
{
    enum sl_cpu_family cpu = sl_arch_family(sl_object_info(object)->arch);
    bool has_marks = cpu == SL_CPU_ARM || cpu == SL_CPU_ARM64 || cpu == SL_CPU_RISCV;
    return has_marks && name.size > 1 && name.data[0] == '$' && memchr("adtx", name.data[1], 4);
}

/* Reads and sorts the symbols; of several at one address keeps the one that LLVM's tools choose: the largest, of equal ones the last. Local
 * symbols get the name of the STT_FILE symbol before them. False if there is no symbol table, or when out of memory. */
static bool index_symbols(struct llvm_tables *t, struct sl_object *object)
{
    struct sl_table_symbol *all;
    size_t count, kept = 0;
    struct sl_str file = {NULL, 0};
    t->object = object;
    t->arena.budget = sl_object_budget(object);
    if (sl_object_symbol_table(object, &t->arena, &all, &count, NULL) != SL_OK)
        return false;
    t->symbols = SL_ARENA_ARRAY(&t->arena, struct dwarf_index_symbol, count + 1);
    bool ok = t->symbols != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const struct sl_table_symbol *s = &all[i];
        if (s->is_file)
            file = s->name;
        bool is_named = s->is_function || s->is_untyped || s->is_data;
        if (s->is_file || !s->section || !is_named || is_mark(object, s->name))
            continue;
        t->symbols[kept] = (struct dwarf_index_symbol){s->address, s->size, s->name, {NULL, 0}, s->section};
        if (s->is_local)
            t->symbols[kept].file = file;
        kept++;
    }
    ok = ok && dwarf_index_sort_symbols(t->symbols, kept, false);
    for (size_t i = 0; ok && i < kept; i++) {
        const struct dwarf_index_symbol s = t->symbols[i];
        struct dwarf_index_symbol *last = t->count ? &t->symbols[t->count - 1] : NULL;
        if (!last || last->address != s.address)
            t->symbols[t->count++] = s;
        else if (s.size >= last->size)
            *last = s;
    }
    return ok;
}

/* True if the symbol, the last one at or before the address, contains it. A symbol without size extends to the next one, but, unlike in
 * LLVM's tools, not into another section. */
static bool reaches(const struct llvm_tables *t, const struct dwarf_index_symbol *s, uint64_t address)
{
    struct sl_section_info section;
    if (s->size)
        return address - s->address < s->size;
    return sl_object_section_info(t->object, s->section, &section) && address - section.address < section.size;
}

/* Returns the symbol that contains the address; NULL if none does. */
static const struct dwarf_index_symbol *symbol_over(const struct llvm_tables *t, uint64_t address)
{
    const struct dwarf_index_symbol *symbols = t->symbols;
    size_t low = SL_PARTITION_POINT(i, 0, t->count, symbols[i].address <= address);
    const struct dwarf_index_symbol *s = low ? &t->symbols[low - 1] : NULL;
    return s && reaches(t, s, address) ? s : NULL;
}

/* Returns the symbols of a linked ELF file, read at the first call: none if they cannot be read. NULL for other files, or when out of
 * memory. */
static const struct llvm_tables *get_tables(struct lookup_module *m)
{
    const struct sl_object_info *info = m->input.object ? sl_object_info(m->input.object) : NULL;
    if (!info || info->format != SL_FORMAT_ELF || info->kind == SL_KIND_REL)
        return NULL;
    if (!m->llvm) {
        m->llvm = calloc(1, sizeof *m->llvm);
        if (m->llvm && !index_symbols(m->llvm, m->input.object))
            m->llvm->count = 0;
    }
    return m->llvm;
}

bool llvm_chooses_symbols(struct lookup_module *m)
{
    return get_tables(m) != NULL;
}

void llvm_tables_free(struct llvm_tables *t)
{
    if (t)
        sl_arena_free(&t->arena);
    free(t);
}

/* Returns the symbol's name; demangled with --demangle if it is one of C++ or Rust, in l->symbol_name, until the next call. */
static struct sl_str name_of_symbol(struct lookup *l, struct sl_str name)
{
    enum sl_language language = l->demangle ? sl_demangle_detect(name) : SL_LANG_UNKNOWN;
    sl_buf_clear(&l->symbol_name);
    bool readable = (language == SL_LANG_CPP || language == SL_LANG_RUST) &&
                    sl_demangle_styled(name, language, SL_DEMANGLE_LLVM, &l->symbol_name);
    return readable ? sl_buf_view(&l->symbol_name) : name;
}

/* Replaces name and start address of the answer's outermost function by those of the symbol that contains the address, and adds the
 * symbol's file if none is known. Changes nothing without such a symbol. */
static void use_symbol(struct lookup *l, struct lookup_module *m, uint64_t address, struct lookup_result *e)
{
    const struct llvm_tables *tables = get_tables(m);
    const struct dwarf_index_symbol *s = tables ? symbol_over(tables, address) : NULL;
    if (!s)
        return;
    e->name = name_of_symbol(l, s->name);
    e->has_entry = true;
    e->entry = s->address;
    if (!e->file.size)
        e->file = s->file;
}

/* Returns the path of the file that declares the function; data NULL if LLVM's tools do not print one. */
static struct sl_str path_of_declaration(struct lookup *l, struct dwarf_unit_index *w,
                                         const struct sl_dwarf_function *f)
{
    /* LLVM 19 ignores the file of a DW_FORM_implicit_const attribute. */
    bool is_known = f->decl_unit != SL_DWARF_NONE && !f->decl_file_in_abbrev;
    const struct dwarf_index_unit *unit = is_known ? dwarf_index_read_unit(w, f->decl_unit) : NULL;
    if (!unit || f->decl_file >= unit->listing.file_count)
        return (struct sl_str){NULL, 0};
    const struct sl_file *file = &unit->listing.files[f->decl_file];
    struct sl_str directory = file->directory;
    bool is_twice = directory.data && directory.data == file->comp_dir.data; /* in DWARF up to version 4 */
    sl_buf_clear(&l->declaration);
    if (l->basenames)
        return path_file_name(file->name);
    sl_path_written(&l->declaration, l->open.relative_names ? (struct sl_str){NULL, 0} : file->comp_dir,
                    is_twice ? (struct sl_str){NULL, 0} : directory, file->name);
    return sl_buf_view(&l->declaration);
}

/* Fills in details of one function of an answer from the unit's DWARF. The answer is a chain of inlined calls of `count` functions,
 * innermost first; `index` is the function's place in it. */
static void fill_details(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count,
                         struct lookup_result *e)
{
    struct dwarf_unit_index *w = dwarf_index_get(m);
    struct dwarf_index_location location;
    /* links[1]: function `index`; links[0]: the function that is inlined into it, NULL if `index` is 0 */
    const struct sl_dwarf_function *links[2] = {NULL, NULL};
    size_t length = 0;
    if (!w)
        return;
    dwarf_index_find(w, address, &location);
    e->has_entry = false; /* name and entry are those of the DWARF, or none */
    if (l->short_names)
        e->name = (struct sl_str){NULL, 0};
    /* walks outwards; beyond function `index`, `links` no longer changes, and only the length of the chain is counted */
    for (const struct dwarf_index_function *f = location.function; f;) {
        links[0] = length < index + 1 ? links[1] : links[0];
        links[1] = length < index + 1 ? f->entry : links[1];
        length++;
        f = f->entry->is_inlined && f->entry->parent != SL_DWARF_NONE ? &location.unit->functions[f->entry->parent]
                                                                      : NULL;
    }
    if (index == 0 && location.row) {
        e->discriminator = location.row->discriminator;
        /* the answer so far lacks the column of a row with line 0 */
        e->column = location.row->line ? e->column : location.row->column;
    }
    /* a chain of another length than the answer's is not the same one: its details would be those of other functions */
    if (!links[1] || (length != count && l->inlines))
        return;
    const struct sl_dwarf_function *f = links[1];
    if (index && links[0])
        e->discriminator = links[0]->call_discriminator;
    if (l->short_names)
        e->name = f->short_name;
    e->start_line = f->decl_line;
    e->start_file = path_of_declaration(l, w, f);
    e->has_entry = f->low_pc != UINT64_MAX;
    e->entry = f->low_pc;
}

void llvm_complete(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count, size_t all,
                   struct lookup_result *e)
{
    uint64_t at;
    const struct sl_object_info *info = m->input.object ? sl_object_info(m->input.object) : NULL;
    if (!info || !lookup_relative(l, m, address, &at))
        return;
    at += info->load_address; /* DWARF and symbols have the file's own addresses */
    /* the DWARF is read only if a detail of it is printed, because that takes long; for line 0 the column is such a detail */
    if (l->style == STYLE_GNU || l->style == STYLE_JSON || l->verbose || l->short_names || (!e->line && e->file.size))
        fill_details(l, m, at, index, count ? count : 1, e);
    /* Without inlines an answer has one function: the outermost, but in GNU's style the innermost, as of GNU addr2line. The innermost is
     * also the last of the chain only if the chain has no other function. */
    bool is_last = l->inlines || l->style != STYLE_GNU ? index + 1 >= count : all == 1 || !count;
    if (l->functions && !l->short_names && is_last)
        use_symbol(l, m, at, e);
}
