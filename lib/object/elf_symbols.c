/* ELF symbol tables: .symtab, the dynamic symbols, MiniDebugInfo (gABI, "Symbol Table"; GNU hash section). */
#include "object/elf.h"

#include <stdlib.h>

struct elf_symbol_collector {
    struct sl_object *object;
    uint64_t load_address; /* of the outer file: .gnu_debugdata may have no program headers */
    struct sl_arena *arena;
    struct sl_account account;
    struct sl_symbol *symbols;
    size_t count, capacity;
    struct elf_loose_list loose;
    struct sl_bytes descriptors; /* .opd */
    bool data;                   /* collect symbols of data, not of code */
};

size_t elf_entry_size(const struct sl_object *object)
{
    return object->info.is_64bit ? 24 : 16;
}

/* Returns the table of 32-bit section numbers (SHT_SYMTAB_SHNDX) for the symbol table in section `table`; empty if there is none. */
struct sl_bytes elf_section_indexes(const struct sl_object *object, size_t table)
{
    const struct elf *elf = object->impl;
    struct sl_bytes indexes = {NULL, 0};
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].type == SHT_SYMTAB_SHNDX && elf->sections[i].link == table)
            elf_raw(object, &elf->sections[i], &indexes);
    return indexes;
}

bool elf_section_table(const struct sl_object *object, uint32_t type, struct elf_table *table)
{
    const struct elf *elf = object->impl;
    for (size_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *s = &elf->sections[i];
        if (s->type != type || !elf_raw(object, s, &table->symbols))
            continue;
        if (s->link < elf->section_count)
            elf_raw(object, &elf->sections[s->link], &table->strings);
        table->indexes = elf_section_indexes(object, i);
        return table->symbols.size >= elf_entry_size(object);
    }
    return false;
}

/* Returns the number of symbols in the table that a DT_GNU_HASH table belongs to. The hash table does not state it: it is one more than the
 * highest symbol index, which ends the chain of the bucket with the highest first index. 0 if the hash table is damaged. */
static uint64_t gnu_hash_count(const struct sl_object *object, struct sl_bytes bytes)
{
    struct sl_reader r = sl_reader(bytes, object->info.big_endian);
    /* offset: number of the first symbol that is in the hash table */
    uint32_t buckets = sl_read_u32(&r), offset = sl_read_u32(&r), bloom = sl_read_u32(&r), highest = 0;
    sl_read_u32(&r); /* shift of the bloom filter */
    sl_reader_skip(&r, (uint64_t)bloom * (object->info.is_64bit ? 8 : 4));
    if (buckets > sl_reader_left(&r) / 4)
        return 0;
    for (uint32_t i = 0; i < buckets; i++) {
        uint32_t start = sl_read_u32(&r);
        highest = start > highest ? start : highest;
    }
    if (highest < offset) /* all buckets are empty: only the symbols before the first hashed one exist */
        return offset;
    sl_reader_skip(&r, (uint64_t)(highest - offset) * 4);
    while (sl_reader_left(&r) >= 4) {
        highest++;
        if (sl_read_u32(&r) & 1) /* the last one of its chain */
            return highest;
    }
    return 0;
}

/* Reads the known entries of the first PT_DYNAMIC segment; false if there is no such segment. A table that is cut off before its end mark
 * (tag 0) counts, too. */
bool elf_read_dynamic(const struct sl_object *object, struct elf_dynamic *d)
{
    const struct elf *elf = object->impl;
    bool wide = object->info.is_64bit, found = false;
    *d = (struct elf_dynamic){0};
    for (size_t i = 0; i < elf->segment_count && !found; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_DYNAMIC)
            continue;
        found = true;
        struct sl_reader r =
            sl_reader(sl_bytes_slice(object->bytes, s->offset, s->file_size, NULL), object->info.big_endian);
        while (sl_reader_left(&r) >= (wide ? 16u : 8u)) {
            uint64_t tag = wide ? sl_read_u64(&r) : sl_read_u32(&r);
            uint64_t value = wide ? sl_read_u64(&r) : sl_read_u32(&r);
            switch (tag) {
            case 0: return true; /* DT_NULL, the end; then DT_HASH, DT_STRTAB ... */
            case 4: d->hash = value; break;
            case 5: d->strtab = value; break;
            case 6: d->symtab = value; break;
            case 10: d->strsz = value; break;
            case 14: d->has_soname = true; break;
            case 0x6FFFFFFB: d->flags_1 = value; break;
            case 0x6FFFFEF5: d->gnu_hash = value; break;
            }
        }
    }
    return found;
}

/* Finds the dynamic symbols by PT_DYNAMIC, which stripped files have, too. No field states their number: it follows from the hash table.
 * Without a usable hash table the section of dynamic symbols is used. False if there is none either. */
bool elf_dynamic_table(const struct sl_object *object, struct elf_table *table)
{
    struct elf_dynamic d;
    struct sl_bytes bytes;
    uint64_t count = 0;
    if (elf_read_dynamic(object, &d) && d.symtab && elf_bytes_at_address(object, d.symtab, &table->symbols)) {
        if (d.gnu_hash && elf_bytes_at_address(object, d.gnu_hash, &bytes))
            count = gnu_hash_count(object, bytes);
        if (!count && d.hash && elf_bytes_at_address(object, d.hash, &bytes)) {
            struct sl_reader r = sl_reader(bytes, object->info.big_endian);
            sl_read_u32(&r);         /* number of buckets */
            count = sl_read_u32(&r); /* number of chains, which is that of the symbols */
        }
        if (count > table->symbols.size / elf_entry_size(object))
            count = table->symbols.size / elf_entry_size(object);
        if (elf_bytes_at_address(object, d.strtab, &table->strings) && d.strsz < table->strings.size)
            table->strings.size = (size_t)d.strsz;
        table->symbols.size = (size_t)count * elf_entry_size(object);
    }
    if (count > 1) /* entry 0 is the undefined symbol */
        return true;
    *table = (struct elf_table){0};
    return elf_section_table(object, SHT_DYNSYM, table);
}

/* Makes room for `more` symbols in c->symbols. Memory of an arena cannot be freed, so this is done once per table, not per symbol. False
 * when out of memory. */
static bool elf_symbols_reserve(struct elf_symbol_collector *c, size_t more)
{
    if (more <= c->capacity - c->count)
        return true;
    size_t capacity = c->count + more;
    struct sl_symbol *grown = SL_ARENA_ARRAY(c->arena, struct sl_symbol, capacity);
    if (!grown)
        return false;
    if (c->count)
        memcpy(grown, c->symbols, c->count * sizeof *grown);
    c->symbols = grown;
    c->capacity = capacity;
    return true;
}

/* Returns the number of the section that contains symbol `index`; 0 for undefined, absolute and common symbols. SHN_XINDEX: the number is
 * in `indexes`. */
uint32_t elf_symbol_section(const struct sl_object *object, struct sl_bytes indexes,
                            const struct elf_raw_symbol *symbol, uint64_t index)
{
    if (symbol->section != SHN_XINDEX)
        return symbol->section >= SHN_LORESERVE ? 0 : symbol->section;
    struct sl_reader r = sl_reader(indexes, object->info.big_endian);
    sl_reader_seek(&r, index * 4);
    return sl_read_u32(&r);
}

/* Where the code or data of a symbol is. */
struct symbol_location {
    uint64_t address, section_end; /* absolute; in relocatable files by the addresses that elf.c gave the sections */
};

/* Returns the loaded segment that contains a relative address, or NULL. */
static const struct sl_segment *elf_segment_at(const struct elf *elf, uint64_t relative)
{
    for (size_t i = 0; i < elf->loaded_count; i++)
        if (relative - elf->loaded[i].address < elf->loaded[i].memory_size)
            return &elf->loaded[i];
    return NULL;
}

/* Finds the code of a function of 64-bit PowerPC ELFv1 (ABI Supplement 1.9, 3.2.5). The value of its symbol is the address of a descriptor
 * in .opd, the first word of which is the address of the code. The symbol's size is that of the code. False for any other symbol, and
 * without a size. */
static bool read_descriptor(const struct elf_symbol_collector *c, const struct elf_section *section,
                            const struct elf_raw_symbol *s, struct symbol_location *location)
{
    const struct elf *elf = c->object->impl;
    if (elf->machine != EM_PPC64 || !sl_str_equal(section->name, SL_STR(".opd")))
        return false;
    struct sl_reader r = sl_reader(c->descriptors, c->object->info.big_endian);
    sl_reader_seek(&r, elf->type == ET_REL ? s->value : s->value - section->address);
    location->address = sl_read_u64(&r);
    location->section_end = location->address + s->size; /* the section of the code is not known, but the size is */
    return !r.failed && s->size;
}

/* Finds the initial value of a thread-local variable. The variable's symbol has an offset in the block of each thread (gABI, "Thread-Local
 * Storage"); PT_TLS has the initial values of that block. False for a variable in .tbss, which has no initial values. */
static bool find_initial_value(const struct elf *elf, const struct elf_section *section, uint64_t offset,
                               struct symbol_location *location)
{
    const struct elf_segment *block = NULL;
    for (size_t i = 0; i < elf->segment_count && !block; i++)
        if (elf->segments[i].type == PT_TLS)
            block = &elf->segments[i];
    if (!block || sl_str_starts(section->name, SL_STR(".tbss")))
        return false;
    *location = (struct symbol_location){block->address + offset, section->address + section->size};
    return true;
}

/* Finds the code (if c->data, the data) of a symbol by the segments, for files without section headers, which only have dynamic symbols. A
 * function's symbol of PowerPC ELFv1 has the address of a descriptor in data, the first word of which is the address of the code: the loop
 * then runs a second time, with that address. False if the symbol is undefined or of the other kind, or the budget is used up. */
static bool find_in_segments(struct elf_symbol_collector *c, const struct elf_raw_symbol *s,
                             struct symbol_location *location)
{
    const struct elf *elf = c->object->impl;
    uint64_t load = c->object->info.load_address, address = s->value, size = s->size;
    struct sl_bytes descriptor;
    if (!s->section || (s->section >= SHN_LORESERVE && s->section != SHN_XINDEX) || s->type == STT_TLS ||
        (s->type == STT_OBJECT) != c->data)
        return false;
    for (unsigned followed = 0; followed < 2; followed++) {
        bool spent = /* a step for each segment that is searched */
            sl_account_spend(&c->account, (uint32_t)(elf->loaded_count < UINT16_MAX ? elf->loaded_count : UINT16_MAX));
        const struct sl_segment *segment = spent ? elf_segment_at(elf, address - load) : NULL;
        if (!segment)
            return false;
        uint64_t end = segment->address + load + segment->memory_size;
        /* for code behind a descriptor the size is that of the code, so it gives the end */
        *location = (struct symbol_location){address, followed && size < end - address ? address + size : end};
        if (c->data || segment->executable)
            return true;
        if (followed || elf->machine != EM_PPC64 || s->type != STT_FUNC || !size ||
            !elf_bytes_at_address(c->object, address, &descriptor))
            return false;
        struct sl_reader r = sl_reader(descriptor, c->object->info.big_endian);
        address = sl_read_u64(&r);
    }
    return false;
}

/* Finds the code (if c->data, the data) of a symbol; false if the symbol is undefined or is in a section of another kind. Inline because it
 * is called for all symbols. */
static inline __attribute__((always_inline)) bool find_location(struct elf_symbol_collector *c,
                                                                const struct elf_table *table,
                                                                const struct elf_raw_symbol *s, size_t index,
                                                                struct symbol_location *location)
{
    const struct elf *elf = c->object->impl;
    /* no section headers: the segments tell code from data */
    if (!elf->section_count)
        return find_in_segments(c, s, location);
    uint32_t number = s->section < SHN_LORESERVE ? s->section : elf_symbol_section(c->object, table->indexes, s, index);
    if (!number || number >= elf->section_count)
        return false;
    const struct elf_section *section = &elf->sections[number];
    bool code = section->flags & SHF_EXECINSTR;
    /* the section is of another kind; but a function of PowerPC ELFv1 has its symbol in .opd, which is a data section */
    if (c->data ? code || !(section->flags & SHF_ALLOC) : !code)
        return !c->data && s->type == STT_FUNC && read_descriptor(c, section, s, location);
    if (s->type == STT_TLS && elf->type != ET_REL)
        return find_initial_value(elf, section, s->value, location);
    uint64_t base = elf->type == ET_REL ? section->address : 0; /* in ET_REL values are offsets in the section */
    *location = (struct symbol_location){base + s->value, section->address + section->size};
    return true;
}

/* Returns the name of a symbol. Older compilers for PowerPC ELFv1 name the code of a function `.name`, and its descriptor `name`: the dot
 * is stripped, but not from local labels (`.L...`). */
static struct sl_str get_symbol_name(struct elf_symbol_collector *c, const struct elf_table *table,
                                     const struct elf_raw_symbol *s)
{
    const struct elf *elf = c->object->impl;
    struct sl_str name = sl_account_read_name(&c->account, table->strings, s->name);
    /* only ELFv1 files have descriptors, in .opd */
    bool dotted = elf->machine == EM_PPC64 && c->descriptors.size && name.size > 1 && name.data[0] == '.';
    return dotted && name.data[1] != 'L' ? (struct sl_str){name.data + 1, name.size - 1} : name;
}

/* Adds a symbol of code (if c->data, of data); ignores other symbols (true). A symbol without a type is stored in c->loose, one without
 * size in c->symbols and c->loose: their ends are found when all symbols are known (elf_loose.c). False when out of memory. */
static bool collect_one(struct elf_symbol_collector *c, const struct elf_table *table, const struct elf_raw_symbol *s,
                        size_t index)
{
    bool object = s->type == STT_OBJECT;
    bool typed = c->data ? object || s->type == STT_TLS : s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
    bool untyped = s->type == STT_NOTYPE || (object && !c->data); /* data in code sections counts as untyped */
    struct symbol_location location;
    if ((!typed && !untyped) || !find_location(c, table, s, index, &location) || location.address < c->load_address)
        return true;
    struct sl_symbol symbol = {
        .address = location.address - c->load_address,
        .size = s->size,
        .name = get_symbol_name(c, table, s),
    };
    if (typed)
        c->symbols[c->count++] = symbol;
    if (typed && s->size)
        return true;
    uint64_t end = location.section_end - c->load_address;
    /* `index` is that of the symbol just added to c->symbols; an untyped symbol has none, and it is not used */
    return elf_loose_add(&c->loose,
                         (struct elf_loose){symbol, .section_end = end, .index = c->count - typed, .untyped = untyped});
}

/* True if bit 0 of a function's address may say which instruction set the function uses: ARM (Thumb) and MIPS (microMIPS). */
static bool has_mode_bit(const struct elf *elf)
{
    return elf->machine == EM_ARM || elf->machine == EM_MIPS || elf->machine == EM_MIPS_RS3_LE;
}

/* Adds the symbols of one table to the collector. Bit 0 of an address that marks Thumb or microMIPS code is cleared. */
static enum sl_code collect(struct elf_symbol_collector *c, const struct elf_table *table, struct sl_error *error)
{
    const struct sl_object *object = c->object;
    const struct elf *elf = object->impl;
    size_t count = table->symbols.size / elf_entry_size(object);
    struct sl_reader r = sl_reader(table->symbols, object->info.big_endian);
    if (!elf_symbols_reserve(c, count))
        return sl_budget_fail(object->budget, error);
    bool mode_bit = has_mode_bit(elf) && !c->data; /* data may be at odd addresses */
    for (size_t i = 0; i < count; i++) {
        struct elf_raw_symbol s = elf_read_symbol(&r, object->info.is_64bit);
        if (mode_bit)
            s.value &= ~UINT64_C(1);
        if (!collect_one(c, table, &s, i))
            return sl_budget_fail(object->budget, error);
    }
    return SL_OK;
}

/* Lists the function symbols (if `data`, those of variables) of .symtab, of the dynamic symbols and of MiniDebugInfo, which has none of
 * variables. A symbol may be in several of these tables: readers drop repeated ones. */
static enum sl_code elf_collect(struct sl_object *object, bool data, struct sl_arena *arena, struct sl_symbol **symbols,
                                size_t *count, struct sl_error *error)
{
    struct elf_symbol_collector c = {
        .object = object,
        .data = data,
        .load_address = object->info.load_address,
        .arena = arena,
        .account = {.budget = object->budget},
        .loose.keeps_labels = !data,
        .loose.account.budget = object->budget,
    };
    struct elf_table table = {0};
    enum sl_code code = SL_OK;
    sl_object_section(object, "opd", &c.descriptors, NULL);
    if (elf_section_table(object, SHT_SYMTAB, &table))
        code = collect(&c, &table, error);
    table = (struct elf_table){0};
    if (code == SL_OK && elf_dynamic_table(object, &table))
        code = collect(&c, &table, error);
    struct sl_object *mini_debug_info = data ? NULL : elf_mini_debug_info(object);
    table = (struct elf_table){0};
    if (code == SL_OK && mini_debug_info && elf_section_table(mini_debug_info, SHT_SYMTAB, &table)) {
        c.object = mini_debug_info; /* addresses stay relative to the outer file: c.load_address */
        code = collect(&c, &table, error);
    }
    if (code == SL_OK)
        c.count = elf_loose_finish(&c.loose, c.symbols, c.count);
    free(c.loose.items);
    sl_account_release(&c.loose.account);
    *symbols = c.symbols;
    *count = c.count;
    return code;
}

enum sl_code elf_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                         struct sl_error *error)
{
    return elf_collect(object, false, arena, symbols, count, error);
}

enum sl_code elf_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                              size_t *count, struct sl_error *error)
{
    return elf_collect(object, true, arena, symbols, count, error);
}

/* Adds the function symbol `index` with the file of the last STT_FILE symbol, which the caller has stored in files[*count].file. Linkers
 * put global symbols after those of all files, so a global one belongs to that file only if the first function of its section does.
 * `passed` is the number of STT_FILE symbols so far; first[section] is one more than `passed` was at the section's first function, 0 before
 * it. A symbol that is not added stays in files[*count], which the next one overwrites. */
static void add_symbol_file(struct elf_symbol_collector *c, const struct elf_table *table,
                            const struct elf_raw_symbol *s, size_t index, uint32_t *first, uint32_t passed,
                            struct sl_symbol_file *files, size_t *count)
{
    bool function = s->type == STT_FUNC || s->type == STT_GNU_IFUNC || s->type == STT_NOTYPE;
    struct symbol_location location;
    if (!function || !find_location(c, table, s, index, &location) || location.address < c->load_address)
        return;
    uint32_t *section = &first[elf_symbol_section(c->object, table->indexes, s, index)];
    if (!*section)
        *section = passed + 1;
    files[*count].address = location.address - c->load_address;
    files[*count].name = get_symbol_name(c, table, s);
    files[*count].is_local = !s->binding; /* STB_LOCAL is 0 */
    *count += files[*count].file.size && (files[*count].is_local || *section == passed + 1);
}

/* Lists functions with their source files: in .symtab an STT_FILE symbol with a file's name precedes the symbols of that file. The list is
 * empty without .symtab. */
enum sl_code elf_symbol_files(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **out,
                              size_t *count, struct sl_error *error)
{
    const struct elf *elf = object->impl;
    struct elf_symbol_collector c = {
        .object = object, .load_address = object->info.load_address, .account.budget = object->budget};
    struct elf_table table = {0};
    if (!elf->section_count || !elf_section_table(object, SHT_SYMTAB, &table))
        return SL_OK;
    size_t symbols = table.symbols.size / elf_entry_size(object);
    /* one more than there are symbols: the loop also writes the entry behind the last one it keeps */
    struct sl_symbol_file *files = SL_ARENA_ARRAY(arena, struct sl_symbol_file, symbols + 1);
    uint32_t *first = SL_ARENA_ARRAY(arena, uint32_t, elf->section_count), passed = 0;
    if (!files || !first)
        return sl_budget_fail(object->budget, error);
    struct sl_reader r = sl_reader(table.symbols, object->info.big_endian);
    struct sl_str file = {NULL, 0};
    sl_object_section(object, "opd", &c.descriptors, NULL);
    for (size_t i = 0; i < symbols; i++) {
        struct elf_raw_symbol s = elf_read_symbol(&r, object->info.is_64bit);
        /* bit 0 says that a function is Thumb or microMIPS code; it is not part of the address */
        s.value &= has_mode_bit(elf) ? ~UINT64_C(1) : UINT64_MAX;
        passed += s.type == STT_FILE;
        if (s.type == STT_FILE)
            file = sl_account_read_name(&c.account, table.strings, s.name);
        files[*count].file = file;
        add_symbol_file(&c, &table, &s, i, first, passed, files, count);
    }
    *out = files;
    return SL_OK;
}

/* Lists the symbols of .symtab as they are stored, undefined ones included; if it has none, the dynamic symbols. */
enum sl_code elf_symbol_table(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **out,
                              size_t *count, struct sl_error *error)
{
    const struct elf *elf = object->impl;
    struct sl_account account = {.budget = object->budget};
    struct elf_table table = {0};
    size_t entry = elf_entry_size(object);
    if (!elf_section_table(object, SHT_SYMTAB, &table) || table.symbols.size / entry < 2) {
        /* entry 0 is the undefined symbol: a table with only that one is empty */
        table = (struct elf_table){0};
        if (!elf_dynamic_table(object, &table))
            return SL_OK;
    }
    size_t symbols = table.symbols.size / entry;
    struct sl_table_symbol *list = SL_ARENA_ARRAY(arena, struct sl_table_symbol, symbols);
    if (!list)
        return sl_budget_fail(object->budget, error);
    struct sl_reader r = sl_reader(table.symbols, object->info.big_endian);
    for (size_t i = 0; i < symbols; i++) {
        struct elf_raw_symbol s = elf_read_symbol(&r, object->info.is_64bit);
        uint32_t section = elf_symbol_section(object, table.indexes, &s, i);
        section = section < elf->section_count ? section : 0;
        /* in relocatable files, values are offsets in the section */
        if (elf->type == ET_REL && section)
            s.value += elf->sections[section].address;
        if (i) /* not entry 0, which every table has and which is empty */
            list[(*count)++] = (struct sl_table_symbol){
                .address = has_mode_bit(elf) && s.type == STT_FUNC ? s.value & ~UINT64_C(1) : s.value,
                .size = s.size,
                .name = sl_account_read_name(&account, table.strings, s.name),
                .section = section,
                .is_local = !s.binding, /* STB_LOCAL is 0 */
                .is_hidden = s.visibility == STV_HIDDEN,
                .is_untyped = s.type == STT_NOTYPE,
                .is_file = s.type == STT_FILE,
                .is_section = s.type == STT_SECTION,
                .is_data = s.type == STT_OBJECT,
                .is_thread_local = s.type == STT_TLS,
                .is_function = s.type == STT_FUNC || s.type == STT_GNU_IFUNC,
            };
    }
    *out = list;
    return SL_OK;
}

/* True if .symtab or the dynamic table has a symbol besides entry 0, which every table has and which is empty, or if there is
 * MiniDebugInfo. */
bool elf_has_symbols(struct sl_object *object)
{
    struct elf_table table = {0};
    if (elf_section_table(object, SHT_SYMTAB, &table) && table.symbols.size / elf_entry_size(object) > 1)
        return true;
    table = (struct elf_table){0};
    return (elf_dynamic_table(object, &table) && table.symbols.size / elf_entry_size(object) > 1) ||
           elf_mini_debug_info(object) != NULL;
}
