/* Relocations of relocatable ELF files, applied to copies of their sections. Only those that occur in data are supported: addresses,
 * offsets and differences. The numbers are from the processor supplements of the ELF ABI, else from LLVM's ELFRelocs and binutils'
 * include/elf. */
#include "object/elf.h"

/* How a relocation changes a field. S + A is the value of its symbol plus the addend. */
enum relocation_kind {
    RELOCATION_UNKNOWN,
    RELOCATION_IGNORE,   /* no change: a hint for the linker, or an offset in thread-local storage */
    RELOCATION_SET,      /* stores S + A */
    RELOCATION_HIGH,     /* stores the upper 32 bits of S + A */
    RELOCATION_PLACE,    /* stores S + A minus the address of the field */
    RELOCATION_ADD,      /* adds S + A to the field */
    RELOCATION_SUBTRACT, /* subtracts S + A from the field */
    RELOCATION_SET_6,    /* ..._6: changes only the lower six bits of the field */
    RELOCATION_ADD_6,
    RELOCATION_SUBTRACT_6,
    RELOCATION_SET_ULEB, /* ..._ULEB: the field is a ULEB128, which keeps its length */
    RELOCATION_ADD_ULEB,
    RELOCATION_SUBTRACT_ULEB,
};

struct relocation {
    uint16_t type;
    uint8_t width; /* bytes; 0 if it has no fixed width */
    uint8_t kind;  /* enum relocation_kind */
};

#define SET      RELOCATION_SET
#define PLACE    RELOCATION_PLACE
#define ADD      RELOCATION_ADD
#define SUBTRACT RELOCATION_SUBTRACT
#define IGNORE   RELOCATION_IGNORE

/* The relocation types of each machine, {type, width in bytes, kind}, frequent ones first. Type 0 is R_*_NONE on all machines. */
static const struct relocation of_x86_64[] = {{10, 4, SET},   {1, 8, SET},     {2, 4, PLACE},  {24, 8, PLACE},
                                              {11, 4, SET},   {12, 2, SET},    {14, 1, SET},   {13, 2, PLACE},
                                              {15, 1, PLACE}, {17, 0, IGNORE}, {21, 0, IGNORE}};
static const struct relocation of_386[] = {{1, 4, SET},  {2, 4, PLACE},  {20, 2, SET},   {21, 2, PLACE},
                                           {22, 1, SET}, {23, 1, PLACE}, {32, 0, IGNORE}};
static const struct relocation of_aarch64[] = {{258, 4, SET},     {257, 8, SET},    {261, 4, PLACE}, {260, 8, PLACE},
                                               {259, 2, SET},     {262, 2, PLACE},  {1, 4, SET},     {2, 2, SET},
                                               {3, 4, PLACE},     {4, 2, PLACE}, /* 1 to 4: ILP32 */
                                               {1028, 0, IGNORE}, {1029, 0, IGNORE}};
static const struct relocation of_arm[] = {{2, 4, SET},  {3, 4, PLACE},   {5, 2, SET},      {8, 1, SET},
                                           {38, 4, SET}, {42, 0, IGNORE}, {106, 0, IGNORE}, {9, 0, IGNORE}};
static const struct relocation of_ppc[] = {{1, 4, SET}, {26, 4, PLACE}, {24, 4, SET},
                                           {3, 2, SET}, {25, 2, SET},   {78, 0, IGNORE}};
static const struct relocation of_ppc64[] = {{1, 4, SET},  {38, 8, SET}, {26, 4, PLACE}, {44, 8, PLACE}, {43, 8, SET},
                                             {24, 4, SET}, {3, 2, SET},  {25, 2, SET},   {78, 0, IGNORE}};
static const struct relocation of_mips[] = {{2, 4, SET},     {18, 8, SET},    {1, 2, SET},    {248, 4, PLACE},
                                            {39, 0, IGNORE}, {41, 0, IGNORE}, {12, 0, IGNORE}};
static const struct relocation of_s390[] = {{4, 4, SET},    {22, 8, SET}, {5, 4, PLACE},   {23, 8, PLACE}, {3, 2, SET},
                                            {16, 2, PLACE}, {1, 1, SET},  {52, 0, IGNORE}, {53, 0, IGNORE}};
static const struct relocation of_sparc[] = {
    {3, 4, SET}, {32, 8, SET}, {23, 4, SET},  {54, 8, SET},  {6, 4, PLACE},   {46, 8, PLACE}, {55, 2, SET},
    {2, 2, SET}, {1, 1, SET},  {5, 2, PLACE}, {4, 1, PLACE}, {76, 0, IGNORE}, {77, 0, IGNORE}};
/* Linker relaxation may shorten code of RISC-V and LoongArch, so assemblers emit relocations for differences of addresses (RISC-V ELF
 * psABI, 8.5; ELF for the LoongArch Architecture, "Relocations"). */
static const struct relocation of_riscv[] = {
    {1, 4, SET},
    {2, 8, SET},
    {35, 4, ADD},
    {39, 4, SUBTRACT},
    {34, 2, ADD},
    {38, 2, SUBTRACT},
    {36, 8, ADD},
    {40, 8, SUBTRACT},
    {33, 1, ADD},
    {37, 1, SUBTRACT},
    {52, 1, RELOCATION_SUBTRACT_6},
    {53, 1, RELOCATION_SET_6},
    {54, 1, SET},
    {55, 2, SET},
    {56, 4, SET},
    {57, 4, PLACE},
    {60, 0, RELOCATION_SET_ULEB},
    {61, 0, RELOCATION_SUBTRACT_ULEB},
    {59, 4, PLACE},
    {43, 0, IGNORE},
    {51, 0, IGNORE},
    {8, 0, IGNORE},
    {9, 0, IGNORE},
};
static const struct relocation of_loongarch[] = {
    {1, 4, SET},
    {2, 8, SET},
    {50, 4, ADD},
    {55, 4, SUBTRACT},
    {48, 2, ADD},
    {53, 2, SUBTRACT},
    {51, 8, ADD},
    {56, 8, SUBTRACT},
    {47, 1, ADD},
    {52, 1, SUBTRACT},
    {49, 3, ADD},
    {54, 3, SUBTRACT},
    {105, 1, RELOCATION_ADD_6},
    {106, 1, RELOCATION_SUBTRACT_6},
    {99, 4, PLACE},
    {109, 8, PLACE},
    {107, 0, RELOCATION_ADD_ULEB},
    {108, 0, RELOCATION_SUBTRACT_ULEB},
    {100, 0, IGNORE},
    {102, 0, IGNORE},
    {8, 0, IGNORE},
    {9, 0, IGNORE},
};
/* Before LLVM 14 types 1 and 10 were in debug sections, too. */
static const struct relocation of_bpf[] = {{3, 4, SET}, {2, 8, SET}, {4, 4, SET}, {1, 8, SET}, {10, 4, SET}};
static const struct relocation of_amdgpu[] = {{6, 4, SET},   {3, 8, SET},  {1, 4, SET}, {2, 4, RELOCATION_HIGH},
                                              {4, 4, PLACE}, {5, 8, PLACE}};
/* 30 to 32: differences of addresses, which assemblers have already stored in the field; linkers update them after relaxation. */
static const struct relocation of_avr[] = {{1, 4, SET},     {4, 2, SET},     {26, 1, SET},   {36, 4, PLACE},
                                           {30, 0, IGNORE}, {31, 0, IGNORE}, {32, 0, IGNORE}};
static const struct relocation of_msp430[] = {{1, 4, SET}, {5, 2, SET}, {3, 2, SET}, {9, 1, SET}};
static const struct relocation of_msp430x[] = {{1, 4, SET}, {2, 2, SET}, {3, 1, SET}, {15, 2, SET}};
static const struct relocation of_hexagon[] = {{6, 4, SET}, {7, 2, SET}, {8, 1, SET}, {31, 4, PLACE}};
static const struct relocation of_lanai[] = {{4, 4, SET}};
static const struct relocation of_68k[] = {{1, 4, SET},   {2, 2, SET},   {3, 1, SET},     {4, 4, PLACE},
                                           {5, 2, PLACE}, {6, 1, PLACE}, {31, 0, IGNORE}, {41, 0, IGNORE}};
static const struct relocation of_ve[] = {
    {1, 4, SET}, {2, 8, SET}, {3, 4, PLACE}, {5, 4, SET}, {4, 4, RELOCATION_HIGH}};
static const struct relocation of_xtensa[] = {{1, 4, ADD},     {14, 4, PLACE},  {17, 0, IGNORE}, {18, 0, IGNORE},
                                              {19, 0, IGNORE}, {57, 0, IGNORE}, {58, 0, IGNORE}, {59, 0, IGNORE},
                                              {60, 0, IGNORE}, {61, 0, IGNORE}, {62, 0, IGNORE}};
static const struct relocation of_csky[] = {{1, 4, SET}, {5, 4, PLACE}};
static const struct relocation of_arc[] = {{4, 4, SET}, {2, 2, SET}, {1, 1, SET}, {49, 4, PLACE}};
static const struct relocation of_sh[] = {{1, 4, SET}, {2, 4, PLACE}};
static const struct relocation of_alpha[] = {{1, 4, SET}, {2, 8, SET}, {10, 4, PLACE}, {11, 8, PLACE}};
static const struct relocation of_parisc[] = {{1, 4, SET}, {80, 8, SET}, {9, 4, PLACE}, {41, 4, SET}};

#undef SET
#undef PLACE
#undef ADD
#undef SUBTRACT
#undef IGNORE

#define MACHINE(number, table)                                                                                         \
    {                                                                                                                  \
        number, sizeof table / sizeof *table, table                                                                    \
    }
static const struct elf_machine {
    uint16_t number;
    uint16_t count;
    const struct relocation *relocations;
} machines[] =
    {
        MACHINE(EM_X86_64, of_x86_64),
        MACHINE(EM_AARCH64, of_aarch64),
        MACHINE(EM_386, of_386),
        MACHINE(EM_ARM, of_arm),
        MACHINE(EM_RISCV, of_riscv),
        MACHINE(EM_PPC, of_ppc),
        MACHINE(EM_PPC64, of_ppc64),
        MACHINE(EM_MIPS, of_mips),
        MACHINE(EM_MIPS_RS3_LE, of_mips),
        MACHINE(EM_S390, of_s390),
        MACHINE(EM_LOONGARCH, of_loongarch),
        MACHINE(EM_SPARC, of_sparc),
        MACHINE(EM_SPARC32PLUS, of_sparc),
        MACHINE(EM_SPARCV9, of_sparc),
        MACHINE(EM_BPF, of_bpf),
        MACHINE(EM_AMDGPU, of_amdgpu),
        MACHINE(EM_AVR, of_avr),
        MACHINE(EM_HEXAGON, of_hexagon),
        MACHINE(EM_LANAI, of_lanai),
        MACHINE(EM_68K, of_68k),
        MACHINE(EM_VE, of_ve),
        MACHINE(EM_XTENSA, of_xtensa),
        MACHINE(EM_CSKY, of_csky),
        MACHINE(EM_IAMCU, of_386),
        MACHINE(EM_ARC_COMPACT, of_arc),
        MACHINE(EM_ARC_COMPACT2, of_arc),
        MACHINE(EM_SH, of_sh),
        MACHINE(EM_ALPHA, of_alpha),
        MACHINE(EM_PARISC, of_parisc),
        MACHINE(EM_MSP430, of_msp430),
},
  msp430x = MACHINE(EM_MSP430, of_msp430x);
#undef MACHINE

/* True for MSP430X, which has other relocation numbers. Its files have the newer ABI, or the machine in their flags. */
static bool is_msp430x(const struct sl_object *object, const struct elf *elf)
{
    enum { EI_OSABI = 7, OSABI_STANDALONE = 255, FLAGS_MACHINE = 0xFF, MACHINE_MSP430X = 45 };
    return object->bytes.data[EI_OSABI] == OSABI_STANDALONE || (elf->flags & FLAGS_MACHINE) == MACHINE_MSP430X;
}

/* Returns the relocation types of the machine; NULL if they are not known. MSP430X has numbers of its own under the same e_machine as
 * MSP430. */
static const struct elf_machine *find_machine(const struct sl_object *object)
{
    const struct elf *elf = object->impl;
    if (elf->machine == EM_MSP430 && is_msp430x(object, elf))
        return &msp430x;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].number == elf->machine)
            return &machines[i];
    return NULL;
}

/* Returns how to apply a relocation type: RELOCATION_IGNORE for type 0 on all machines, RELOCATION_UNKNOWN for other types that are not in
 * the machine's table. */
static struct relocation find_relocation(const struct elf_machine *machine, uint32_t type)
{
    for (size_t i = 0; i < machine->count; i++)
        if (machine->relocations[i].type == type)
            return machine->relocations[i];
    return (struct relocation){.kind = type ? RELOCATION_UNKNOWN : RELOCATION_IGNORE};
}

/* Splits `r_info` into symbol and type. On 64-bit MIPS (64-bit ELF object file specification, 2.9) the symbol is the first word in memory,
 * also in little-endian files, where it is the lower half of `info`. Three types of one byte each follow, of which the last one in memory
 * is used. 64-bit SPARC has other data in the upper three bytes of the type. */
static void split_info(const struct sl_object *object, uint64_t info, uint64_t *symbol, uint32_t *type)
{
    const struct elf *elf = object->impl;
    bool wide = object->info.is_64bit, mips = elf->machine == EM_MIPS || elf->machine == EM_MIPS_RS3_LE;
    *symbol = wide ? info >> 32 : info >> 8;
    *type = wide ? (uint32_t)info : (uint32_t)info & 0xFF;
    if (!wide || (!mips && elf->machine != EM_SPARCV9))
        return;
    if (mips && !object->info.big_endian) {
        *symbol = (uint32_t)info;
        *type = (uint32_t)(info >> 56);
    }
    *type &= 0xFF;
}

enum {
    STEPS_PER_RELOCATION = 4,
    /* steps of work per byte of a relocation table, once all tables together are larger than the file, because they overlap */
    STEPS_PER_OVERLAP = 16
};

struct relocator {
    struct sl_object *object;
    const struct elf_machine *machine;
    struct sl_account account;
    struct sl_bytes symbols, section_indexes;
    uint8_t *out;
    size_t size;
    uint64_t address;  /* of the section */
    bool knows_symbol; /* `symbol` and `value` cache the last symbol: many relocations in a row have the same */
    uint64_t symbol, value;
    uint32_t unknown; /* an unsupported type; 0: none so far */
};

/* Returns the value of symbol `index` plus the address that elf.c gave its section; 0 if the table has no such symbol. */
static uint64_t read_symbol_value(const struct relocator *rel, uint64_t index)
{
    const struct elf *elf = rel->object->impl;
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(rel->symbols, rel->object->info.big_endian);
    if (index >= rel->symbols.size / (wide ? 24 : 16)) /* bytes of a symbol */
        return 0;
    sl_reader_seek(&r, index * (wide ? 24 : 16));
    struct elf_raw_symbol symbol = elf_read_symbol(&r, wide);
    uint32_t section = elf_symbol_section(rel->object, rel->section_indexes, &symbol, index);
    return symbol.value + (section < elf->section_count ? elf->sections[section].address : 0);
}

/* Returns the value of a symbol, from the cache if it is that of the last relocation. */
static uint64_t symbol_value(struct relocator *rel, uint64_t index)
{
    if (!rel->knows_symbol || rel->symbol != index)
        rel->value = read_symbol_value(rel, index);
    rel->symbol = index;
    rel->knows_symbol = true;
    return rel->value;
}

/* Writes an integer at an offset of the copy, in the byte order of the file. */
static void store(const struct relocator *rel, uint64_t offset, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        rel->out[offset + i] = (uint8_t)(value >> (8 * (rel->object->info.big_endian ? width - 1 - i : i)));
}

/* Changes the ULEB128 at `offset`, which keeps its length: sets it to `value`, or adds or subtracts `value`. */
static void change_uleb(const struct relocator *rel, uint64_t offset, uint8_t kind, uint64_t value)
{
    struct sl_reader r = sl_reader((struct sl_bytes){rel->out, rel->size}, false);
    sl_reader_seek(&r, offset);
    uint64_t there = sl_read_uleb(&r), end = sl_reader_offset(&r);
    if (r.failed)
        return;
    uint64_t result = kind == RELOCATION_SET_ULEB ? value : kind == RELOCATION_ADD_ULEB ? there + value : there - value;
    for (; offset < end; offset++, result >>= 7)
        rel->out[offset] = (uint8_t)((result & 0x7F) | (offset + 1 < end ? 0x80 : 0));
}

/* Returns the new contents of the field at `offset` of the section, whose contents are `there` now. `value` is the symbol's value plus the
 * addend. */
static uint64_t relocated_value(const struct relocator *rel, uint8_t kind, uint64_t offset, uint64_t there,
                                uint64_t value)
{
    const uint64_t six = 63;
    switch (kind) {
    case RELOCATION_HIGH: return value >> 32;
    case RELOCATION_PLACE: return value - (rel->address + offset);
    case RELOCATION_ADD: return there + value;
    case RELOCATION_SUBTRACT: return there - value;
    case RELOCATION_SET_6: return (there & ~six) | (value & six);
    case RELOCATION_ADD_6: return (there & ~six) | ((there + value) & six);
    case RELOCATION_SUBTRACT_6: return (there & ~six) | ((there - value) & six);
    default: return value;
    }
}

/* Applies a relocation to the copy of the section; offsets beyond the section change nothing. For an entry without addend (`addend` NULL)
 * the number in the field is the addend. */
static void apply_one(struct relocator *rel, struct relocation relocation, uint64_t offset, uint64_t symbol,
                      const uint64_t *addend)
{
    if (relocation.kind >= RELOCATION_SET_ULEB) { /* one of the three ULEB kinds, which have an addend */
        if (offset < rel->size && addend)
            change_uleb(rel, offset, relocation.kind, symbol_value(rel, symbol) + *addend);
        return;
    }
    if (offset > rel->size || relocation.width > rel->size - offset)
        return;
    if (relocation.kind == RELOCATION_SET && addend) { /* fast path: the old contents of the field do not matter */
        store(rel, offset, relocation.width, symbol_value(rel, symbol) + *addend);
        return;
    }
    struct sl_reader at =
        sl_reader((struct sl_bytes){rel->out + offset, relocation.width}, rel->object->info.big_endian);
    uint64_t there = sl_read_uint(&at, relocation.width);
    uint64_t value = symbol_value(rel, symbol) + (addend ? *addend : there);
    store(rel, offset, relocation.width, relocated_value(rel, relocation.kind, offset, there, value));
}

/* Applies a table of SHT_RELA entries, which have an addend, or of SHT_REL entries, which do not. Entries of an unknown type are skipped,
 * and the type is stored in rel->unknown, because the section cannot be trusted then. */
static void apply_table(struct relocator *rel, struct sl_bytes table, bool has_addend)
{
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(table, rel->object->info.big_endian);
    size_t entry = (wide ? 16u : 8u) + (has_addend ? (wide ? 8u : 4u) : 0u);
    while (sl_reader_left(&r) >= entry && sl_account_spend(&rel->account, STEPS_PER_RELOCATION)) {
        uint64_t offset = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t info = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t addend = has_addend ? wide ? sl_read_u64(&r) : (uint64_t)(int32_t)sl_read_u32(&r) : 0;
        uint64_t symbol;
        uint32_t type;
        split_info(rel->object, info, &symbol, &type);
        struct relocation relocation = find_relocation(rel->machine, type);
        if (relocation.kind == RELOCATION_UNKNOWN)
            rel->unknown = type;
        else if (relocation.kind != RELOCATION_IGNORE)
            apply_one(rel, relocation, offset, symbol, has_addend ? &addend : NULL);
    }
}

/* True for debug sections, which cannot be used without their relocations: offsets of names and files would be wrong. */
static bool is_debug(const struct elf_section *section)
{
    return sl_str_starts(section->name, SL_STR(".debug_")) || sl_str_starts(section->name, SL_STR(".zdebug_"));
}

/* Returns the section's contents after relocation, `plain` if nothing was relocated. For a debug section with unsupported relocations it
 * returns empty contents and records the reason in the object; other sections are returned as far as they could be relocated. */
static struct sl_bytes relocation_result(const struct relocator *rel, const struct elf_section *section,
                                         struct sl_bytes plain)
{
    const struct elf *elf = rel->object->impl;
    if (is_debug(section) && !rel->machine)
        sl_fail(object_debug_info_error(rel->object), SL_UNSUPPORTED,
                "cannot apply relocations of ELF machine %u, so the debug information is ignored", elf->machine);
    else if (is_debug(section) && rel->unknown)
        sl_fail(object_debug_info_error(rel->object), SL_UNSUPPORTED,
                "cannot apply relocations of type %u of ELF machine %u, so the debug information is ignored",
                rel->unknown, elf->machine);
    else
        return rel->out ? (struct sl_bytes){rel->out, plain.size} : plain;
    return (struct sl_bytes){NULL, 0};
}

struct sl_bytes elf_relocate(struct sl_object *object, struct elf_section *section, struct sl_bytes plain)
{
    struct elf *elf = object->impl;
    struct relocator rel = {.object = object,
                            .machine = find_machine(object),
                            .account = {.budget = object->budget},
                            .size = plain.size,
                            .address = section->address};
    uint32_t link = 0; /* section of the last relocation table's symbols, nearly always the same; 0: no table yet */
    bool has_any = false;
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        struct sl_bytes table;
        if ((s->type != SHT_RELA && s->type != SHT_REL) || s->info >= elf->section_count ||
            &elf->sections[s->info] != section || s->link >= elf->section_count || !elf_raw(object, s, &table) ||
            !elf_raw(object, &elf->sections[s->link], &rel.symbols))
            continue;
        has_any = has_any || table.size;
        if (!rel.machine) /* unknown: relocation_result() only needs to know whether there are entries */
            continue;
        elf->relocated += table.size;
        /* more bytes than the file has: tables overlap, so the work is charged to the budget */
        if (elf->relocated > object->bytes.size && !sl_budget_spend(object->budget, table.size * STEPS_PER_OVERLAP))
            break;
        /* elf_section_indexes() searches all sections */
        if (s->link != link && !sl_budget_spend(object->budget, elf->section_count))
            continue;
        if (s->link != link)
            rel.section_indexes = elf_section_indexes(object, s->link);
        link = s->link;
        rel.knows_symbol = false; /* that of another table, perhaps */
        if (!rel.out) {
            rel.out = object_block(object, plain.size);
            if (!rel.out) /* out of memory, which the object records */
                return plain;
            memcpy(rel.out, plain.data, plain.size);
        }
        apply_table(&rel, table, s->type == SHT_RELA);
    }
    return has_any ? relocation_result(&rel, section, plain) : plain;
}
