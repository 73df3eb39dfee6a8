/* ELF (System V ABI, generic and processor supplements): structures shared by the elf_*.c files. Private to this
 * folder. */
#pragma once

#include "base/account.h"
#include "object/impl.h"

enum {
    SHT_PROGBITS = 1,
    SHT_SYMTAB = 2,
    SHT_STRTAB = 3,
    SHT_RELA = 4,
    SHT_HASH = 5,
    SHT_DYNAMIC = 6,
    SHT_NOTE = 7,
    SHT_NOBITS = 8,
    SHT_REL = 9,
    SHT_DYNSYM = 11,
    SHT_SYMTAB_SHNDX = 18,
    PF_X = 1,
    PT_LOAD = 1,
    PT_DYNAMIC = 2,
    PT_INTERP = 3,
    PT_NOTE = 4,
    PT_TLS = 7,
    PT_SCE_BUILD_ID = 0x61000000,
    ET_NONE = 0,
    ET_REL = 1,
    ET_EXEC = 2,
    ET_DYN = 3,
    ET_CORE = 4,
    ET_SCE_EXEC = 0xFE10,
    ET_SCE_DYN = 0xFE18,
    EM_SPARC = 2,
    EM_386 = 3,
    EM_68K = 4,
    EM_IAMCU = 6,
    EM_MIPS = 8,
    EM_MIPS_RS3_LE = 10,
    EM_PARISC = 15,
    EM_SPARC32PLUS = 18,
    EM_PPC = 20,
    EM_PPC64 = 21,
    EM_S390 = 22,
    EM_ARM = 40,
    EM_SH = 42,
    EM_SPARCV9 = 43,
    EM_X86_64 = 62,
    EM_AVR = 83,
    EM_ARC_COMPACT = 93,
    EM_XTENSA = 94,
    EM_MSP430 = 105,
    EM_HEXAGON = 164,
    EM_AARCH64 = 183,
    EM_ARC_COMPACT2 = 195,
    EM_AMDGPU = 224,
    EM_RISCV = 243,
    EM_LANAI = 244,
    EM_BPF = 247,
    EM_VE = 251,
    EM_CSKY = 252,
    EM_LOONGARCH = 258,
    EM_ALPHA = 0x9026,
    SHF_ALLOC = 2,
    SHF_EXECINSTR = 4,
    SHF_COMPRESSED = 0x800,
    STT_NOTYPE = 0,
    STT_OBJECT = 1,
    STT_FUNC = 2,
    STT_SECTION = 3,
    STT_FILE = 4,
    STT_TLS = 6,
    STT_GNU_IFUNC = 10,
    STV_HIDDEN = 2,
    DF_1_PIE = 0x08000000,
    SHN_XINDEX = 0xFFFF,
    SHN_LORESERVE = 0xFF00,
};

struct elf_section {
    struct sl_str name;
    uint32_t type, link, info;
    uint64_t flags, address, offset, size, alignment, entsize;
    struct sl_bytes inflated; /* decompressed or relocated contents, made at the first use */
    bool tried;               /* `inflated` was made; it is empty if the contents could not be read */
};

struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, address, file_size, memory_size;
};

struct elf {
    uint16_t type, machine;
    uint32_t flags;
    struct elf_section *sections;
    size_t section_count;
    struct elf_segment *segments;
    size_t segment_count;
    struct sl_segment *loaded; /* the PT_LOAD segments, relative to the load address */
    size_t loaded_count;
    struct sl_bytes units[2]; /* .debug_info.dwo and .debug_info, joined if there are several sections of the name */
    uint64_t relocated;       /* bytes of relocation tables applied so far; more than the file has if tables overlap */
    struct sl_object *mini_debug_info; /* the file inside .gnu_debugdata, opened at the first use; NULL = none */
    bool mini_debug_info_tried;        /* the file inside .gnu_debugdata was searched for */
};

/* Entries of the dynamic section (gABI, "Dynamic Section"; DT_FLAGS_1 as the GNU and LLVM linkers write it). An absent one is 0. */
struct elf_dynamic {
    uint64_t symtab, strtab, strsz, hash, gnu_hash; /* addresses; strsz is a size in bytes */
    uint64_t flags_1;
    bool has_soname;
};
/* Reads the members of struct elf_dynamic from the first PT_DYNAMIC segment. False if the file has no such segment. */
bool elf_read_dynamic(const struct sl_object *object, struct elf_dynamic *dynamic);

/* Sets `*bytes` to the section's bytes as they are in the file; false if it has none or they lie outside the file. */
bool elf_raw(const struct sl_object *object, const struct elf_section *section, struct sl_bytes *bytes);

/* True if the section is .debug_info or .debug_info.dwo, of which a file may have several with one name. */
bool elf_is_units(const struct elf_section *section);
/* Returns the decompressed size of a section in bytes, as its headers state it; 0 if they cannot be read. */
uint64_t elf_plain_size(const struct sl_object *object, const struct elf_section *section);

/* Returns the first section with the name (including its dot) and contents in the file, or NULL. */
struct elf_section *elf_find(const struct sl_object *object, const char *name);

/* Sets `*bytes` to the contents of the file from an absolute address to the end of its segment; false if there are none. */
bool elf_bytes_at_address(const struct sl_object *object, uint64_t address, struct sl_bytes *bytes);

bool elf_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
const char *elf_compression(const struct sl_object *object, const struct elf_section *section);
enum sl_code elf_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                         struct sl_error *error);
enum sl_code elf_symbol_files(struct sl_object *object, struct sl_arena *arena, struct sl_symbol_file **files,
                              size_t *count, struct sl_error *error);
enum sl_code elf_symbol_table(struct sl_object *object, struct sl_arena *arena, struct sl_table_symbol **symbols,
                              size_t *count, struct sl_error *error);
enum sl_code elf_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                              size_t *count, struct sl_error *error);
bool elf_has_symbols(struct sl_object *object);
enum sl_code elf_mapping_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_mapping_symbol **marks,
                                 size_t *count, struct sl_error *error);

struct elf_table {
    struct sl_bytes symbols, strings, indexes; /* indexes: 32-bit section numbers (SHT_SYMTAB_SHNDX); may be empty */
};
/* Finds the first readable symbol table of type SHT_SYMTAB or SHT_DYNSYM, and its strings. False if there is none; then `table`, which
 * the caller has zeroed, may be changed. */
bool elf_section_table(const struct sl_object *object, uint32_t type, struct elf_table *table);
/* Finds the symbols of the dynamic linker and their strings: those that PT_DYNAMIC points to, else a section SHT_DYNSYM. False if there
 * are none. The caller has zeroed `table`. */
bool elf_dynamic_table(const struct sl_object *object, struct elf_table *table);
size_t elf_entry_size(const struct sl_object *object); /* bytes per entry of a symbol table */

/* An entry of a symbol table. elf_read_symbol() is inline because it is called for every entry. */
struct elf_raw_symbol {
    uint32_t name;
    uint8_t type, binding, visibility; /* binding: 0 is STB_LOCAL */
    uint16_t section;
    uint64_t value, size;
};
static inline struct elf_raw_symbol elf_read_symbol(struct sl_reader *r, bool wide)
{
    struct elf_raw_symbol s = {.name = sl_read_u32(r)};
    if (!wide) {
        s.value = sl_read_u32(r);
        s.size = sl_read_u32(r);
    }
    uint8_t info = sl_read_u8(r);
    s.type = info & 15;
    s.binding = info >> 4;
    s.visibility = sl_read_u8(r) & 3;
    s.section = sl_read_u16(r);
    if (wide) {
        s.value = sl_read_u64(r);
        s.size = sl_read_u64(r);
    }
    return s;
}

/* Returns the number of the section that contains symbol `index`; 0 if none does. `indexes` is the table of 32-bit section numbers that
 * files with more than 65279 sections have (gABI, SHT_SYMTAB_SHNDX); else it is empty. */
uint32_t elf_symbol_section(const struct sl_object *object, struct sl_bytes indexes,
                            const struct elf_raw_symbol *symbol, uint64_t index);
/* Returns the SHT_SYMTAB_SHNDX table for the symbol table in section `table`; empty if there is none. */
struct sl_bytes elf_section_indexes(const struct sl_object *object, size_t table);

/* A loose symbol: one without a type, or a function (or data object) without a size. Its end must be found from the symbols around it.
 * Addresses are relative. */
struct elf_loose {
    struct sl_symbol symbol;
    uint64_t section_end, next; /* next: start of the next function */
    size_t index;               /* of a symbol with a type: its index in the array of symbols */
    size_t position;            /* in this list before it was sorted */
    int64_t around;        /* number of functions that contain it, minus the number for the loose symbol before it */
    bool untyped, dropped; /* dropped: left out of the symbols; a function stays, but loses its name */
    bool at_function, at_sized; /* a function begins at the same address; a symbol with a size does */
};

struct elf_loose_list {
    struct elf_loose *items;
    size_t count, capacity;
    bool keeps_labels;         /* keep untyped symbols within functions as labels */
    struct sl_account account; /* charges `items`; the owner of the list frees them and releases it */
};

/* Appends a symbol to the list; ignores untyped symbols that have no name or are mapping symbols or local labels (.L). False when out of
 * memory. */
bool elf_loose_add(struct elf_loose_list *list, struct elf_loose loose);

/* Gives functions without size an end: the next symbol or the end of their section. Those that are then empty, or begin where a symbol
 * with a size does, lose their name. Appends the untyped symbols, those within functions as labels. `symbols` has `count` functions and
 * room for as many more as the list has; returns the new count. */
size_t elf_loose_finish(struct elf_loose_list *list, struct sl_symbol *symbols, size_t count);

/* Applies the relocations of a relocatable file to a copy of a section. Empty if it is debug information whose relocations cannot be
 * read; sl_object_debug_info_error() has the reason. */
struct sl_bytes elf_relocate(struct sl_object *object, struct elf_section *section, struct sl_bytes contents);

/* Returns the ELF file inside .gnu_debugdata (MiniDebugInfo), which is opened at the first call and closed with the object; NULL if there
 * is none, or if the object is itself inside another one. */
struct sl_object *elf_mini_debug_info(struct sl_object *object);
