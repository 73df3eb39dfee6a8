/* `symloom addr2line`: the answers of GNU addr2line (binutils 2.40) for ELF files. Its rules need data that symcaches do not keep:
 *
 *     address ─┬─ line     the row of the unit's line program, of several at one address the last; with its discriminator
 *              ├─ function the smallest range of a function or inlined call around it, of equal ones the last; then its callers
 *              └─ name     the linkage name, else the last symbol of its section up to the address; file: the STT_FILE before
 *
 * Two kinds of its answers are wrong and not imitated: it names code after the symbol before it, however far away that is, and it names an
 * inlined call without linkage name, in the first answer that has it, after the symbol of the enclosing function. */
#include "cli/lookup/gnu.h"
#include "cli/lookup/dwarf_index.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/search.h"

struct gnu_tables {
    struct dwarf_unit_index *written;
    struct dwarf_index_symbol *symbols; /* sorted by section and address; at each address only the largest */
    size_t symbol_count;
    const struct dwarf_index_symbol *last; /* the symbol found last, which is tried first */
    bool failed;
};

/* ---- symbols ---- */

/* Orders by section, then by address. */
static int by_section(const void *left, const void *right)
{
    const struct dwarf_index_symbol *a = left, *b = right;
    return a->section != b->section ? sl_compare_u64(a->section, b->section) : sl_compare_u64(a->address, b->address);
}

/* Lists the symbols of code by section and address, one for each address: the largest. A symbol's file is the STT_FILE symbol before it in
 * the table. A global symbol gets one only if no STT_FILE symbol follows another symbol: else the table has symbols of several files, and
 * it is unknown to which of them the global one belongs. False if there is no symbol table, or when out of memory. */
static bool index_symbols(struct gnu_tables *t)
{
    struct sl_table_symbol *all;
    size_t count, kept = 0;
    struct sl_str file = {NULL, 0};
    /* seen: another symbol than STT_FILE occurred; apart: an STT_FILE symbol after such a one */
    bool seen = false, apart = false;
    if (sl_object_symbol_table(t->written->object, &t->written->arena, &all, &count, NULL) != SL_OK)
        return false;
    t->symbols = SL_ARENA_ARRAY(&t->written->arena, struct dwarf_index_symbol, count + 1);
    bool ok = t->symbols != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const struct sl_table_symbol *s = &all[i];
        if (s->is_file) {
            file = s->name.data ? s->name : SL_STR(""); /* not NULL, which means no STT_FILE symbol */
            apart = apart || seen;
            continue;
        }
        seen = true;
        /* symbols by which annobin marks where compiler options change: they name no code */
        bool is_mark = !s->size && s->is_local && s->is_untyped && s->is_hidden;
        if (!s->section || s->is_section || s->is_data || s->is_thread_local || is_mark)
            continue;
        t->symbols[kept] = (struct dwarf_index_symbol){s->address, s->size, s->name, {NULL, 0}, s->section};
        if (s->is_local || !apart)
            t->symbols[kept].file = file;
        kept++;
    }
    ok = ok && dwarf_index_sort_symbols(t->symbols, kept, true);
    for (size_t i = 0; ok && i < kept; i++) {
        const struct dwarf_index_symbol s = t->symbols[i];
        struct dwarf_index_symbol *last = t->symbol_count ? &t->symbols[t->symbol_count - 1] : NULL;
        if (!last || last->address != s.address || last->section != s.section)
            t->symbols[t->symbol_count++] = s;
        else if ((s.size ? s.size : 1) > (last->size ? last->size : 1)) /* without size: as if of 1 byte */
            *last = s;
    }
    if (ok && t->symbol_count) /* so far they are sorted by address first */
        qsort(t->symbols, t->symbol_count, sizeof *t->symbols, by_section);
    return ok;
}

/* Largest alignment of code, in bytes: padding after a symbol is shorter. */
enum { MAX_PADDING = 64 };

/* True if the symbol, or the padding after it, contains the address, which is not before it. A symbol without size has no end. */
static bool reaches(const struct dwarf_index_symbol *s, uint64_t address)
{
    return !s->size || address - s->address < s->size || address - s->address - s->size < MAX_PADDING;
}

/* Returns the last symbol of the section at or before the address; NULL if there is none, or the address lies behind it and its padding. */
static const struct dwarf_index_symbol *symbol_at(struct gnu_tables *t, uint32_t section, uint64_t address)
{
    const struct dwarf_index_symbol *last = t->last; /* result of the last search: addresses often follow each other */
    /* an address before it gives a huge difference */
    if (last && last->section == section && address - last->address < (last->size ? last->size : 1))
        return last;
    const struct dwarf_index_symbol *symbols = t->symbols;
    size_t low = SL_PARTITION_POINT(i, 0, t->symbol_count,
                                    symbols[i].section < section ||
                                        (symbols[i].section == section && symbols[i].address <= address));
    bool is_there = low && t->symbols[low - 1].section == section;
    t->last = is_there ? &t->symbols[low - 1] : NULL;
    return is_there && reaches(t->last, address) ? t->last : NULL;
}

/* ---- answers ---- */

static bool is_absolute(struct sl_str path)
{
    return path.size && path.data[0] == '/';
}

/* Appends a directory and a slash; nothing if its data are NULL. */
static void add_directory(struct sl_buf *path, struct sl_str directory)
{
    if (!directory.data)
        return;
    sl_buf_str(path, directory);
    sl_buf_u8(path, '/');
}

/* Returns the path of file number `file` of a unit as GNU addr2line builds it: not normalised, except that the compilation directory does
 * not occur twice. "<unknown>" if there is no such file. */
static struct sl_str gnu_path(struct gnu_tables *t, struct dwarf_index_unit *u, uint32_t file)
{
    const struct sl_dwarf_unit *unit = &u->listing;
    const struct sl_str unknown = SL_STR("<unknown>");
    if (file >= unit->file_count || (file == 0 && unit->line_version < 5) || !unit->files[file].name.data)
        return unknown;
    if (u->paths[file].data)
        return u->paths[file];
    const struct sl_file *f = &unit->files[file];
    struct sl_str directory = f->directory;
    /* directory 0 is the compilation directory: DWARF 5 lists it; for older versions it is added below */
    if (!directory.data && unit->line_version >= 5)
        directory = unit->directory;
    else if (unit->line_version < 5 && directory.data == unit->comp_dir.data)
        directory = (struct sl_str){NULL, 0};
    struct sl_buf path = {0};
    if (!is_absolute(f->name)) {
        if (!is_absolute(directory))
            add_directory(&path, unit->comp_dir);
        add_directory(&path, directory);
    }
    sl_buf_str(&path, f->name);
    const char *text = path.failed ? NULL : sl_arena_strndup(&t->written->arena, (const char *)path.data, path.size);
    u->paths[file] = (struct sl_str){text, text ? path.size : 0};
    sl_buf_free(&path);
    t->written->failed = t->written->failed || !text;
    return u->paths[file];
}

/* Completes an answer by the symbol at the address. Sets the file if the line program gives none. Sets the name, unless the function `f`
 * (may be NULL) is an inlined call, which keeps its own name. If `f` begins at the symbol, stores the name in `f` for later addresses. */
static void name_by_symbol(struct gnu_tables *t, uint32_t section, uint64_t address, struct dwarf_index_function *f,
                           struct gnu_element *e)
{
    const struct dwarf_index_symbol *s = symbol_at(t, section, address);
    if (s && !e->file.data)
        e->file = s->file;
    if (!f || !f->entry->is_inlined)
        e->name = s ? s->name : e->name;
    if (f && s && !f->entry->is_inlined && s->address == f->ranges[0].begin)
        f->name = s->name;
    if (f)
        f->is_settled = true; /* one search only: later answers use f->name */
}

/* Returns the index of the loaded section that contains the address; 0, the index of ELF's null section, if none does. */
static uint32_t section_at(const struct gnu_tables *t, uint64_t address)
{
    struct sl_section_info section;
    for (uint32_t i = 0; sl_object_section_info(t->written->object, i, &section); i++)
        if (section.is_loaded && address >= section.address && address - section.address < section.size)
            return i;
    return 0;
}

/* Appends the callers of an inlined call to the answer, up to the function that was not inlined, each with the line of its call. */
static void add_callers(struct gnu_tables *t, const struct dwarf_index_location *location, struct gnu_answer *answer)
{
    const struct dwarf_index_function *f = location->function;
    for (; f && f->entry->is_inlined && f->entry->parent != SL_DWARF_NONE && answer->count < MAX_CHAIN;) {
        const struct dwarf_index_function *caller = &location->unit->functions[f->entry->parent];
        struct gnu_element *e = &answer->elements[answer->count++];
        *e = (struct gnu_element){.name = caller->name, .line = f->entry->call_line};
        if (f->entry->call_file != SL_DWARF_NONE)
            e->file = gnu_path(t, location->unit, f->entry->call_file);
        f = caller;
    }
}

bool gnu_look_up(struct gnu_tables *t, uint64_t address, bool inlines, struct gnu_answer *answer)
{
    struct dwarf_index_location location;
    struct gnu_element *e = &answer->elements[0];
    uint32_t section = section_at(t, address);
    answer->count = 0;
    answer->discriminator = 0;
    if (!section) /* no code: an empty answer */
        return true;
    bool found = dwarf_index_find(t->written, address, &location);
    *e = (struct gnu_element){.line = 0};
    if (location.row) {
        e->file = gnu_path(t, location.unit, location.row->file);
        e->line = location.row->line;
        answer->discriminator = location.row->discriminator;
    }
    if (location.function)
        e->name = location.function->name;
    if (!location.function || !location.function->is_settled)
        name_by_symbol(t, section, address, location.function, e);
    answer->count = found || e->name.data;
    if (inlines && answer->count)
        add_callers(t, &location, answer);
    return !t->written->failed;
}

struct gnu_tables *gnu_get_tables(struct lookup_module *m)
{
    struct dwarf_unit_index *written = dwarf_index_get(m);
    if (!written)
        return NULL;
    if (!m->gnu) {
        m->gnu = calloc(1, sizeof *m->gnu);
        if (!m->gnu)
            return NULL;
        m->gnu->written = written;
        m->gnu->failed = !index_symbols(m->gnu);
    }
    return m->gnu->failed ? NULL : m->gnu;
}
