/* PE (Microsoft's "PE Format"; all little-endian): structures shared by the pe_*.c files. Private to this folder. */
#pragma once

#include "object/impl.h"

enum { PE_EXPORTS = 0, PE_EXCEPTIONS = 3, PE_DEBUG = 6, PE_DIRECTORIES = 16 };

struct pe_directory {
    uint32_t address, size; /* address: RVA */
};

struct pe_section {
    struct sl_str name; /* long names are from the string table */
    uint32_t address, virtual_size, offset, raw_size;
    bool executable, discardable, cut_name; /* cut_name: fills all eight bytes, so it may be truncated */
    bool tried;                             /* `inflated` was made; it is empty if that failed */
    struct sl_bytes inflated;               /* decompressed or relocated contents */
    uint32_t alignment, reloc_offset;       /* object files only; alignment is a power of two */
    uint16_t reloc_count;
    bool more_relocs; /* IMAGE_SCN_LNK_NRELOC_OVFL: reloc_count is too small, the first entry has the count */
};

struct pe {
    struct pe_section *sections;
    size_t section_count;
    const struct pe_section **by_address; /* sections that take memory, sorted by address */
    size_t mapped_count;
    struct pe_directory directories[PE_DIRECTORIES];
    struct sl_bytes symbols; /* COFF symbol table */
    uint32_t symbol_size;    /* bytes per symbol: 18; 20 in /bigobj object files */
    struct sl_bytes strings; /* string table; offsets count from its 4-byte length */
};

/* An entry of the debug directory (IMAGE_DEBUG_DIRECTORY). pe_debug_entry() reads entry `index`; it returns false behind the last one. */
struct pe_debug_entry {
    uint32_t time_stamp, type, size, address, offset;
    uint16_t minor;
};
enum { PE_DEBUG_CODEVIEW = 2, PE_DEBUG_EMBEDDED_PPDB = 17 };
bool pe_debug_entry(const struct sl_object *object, size_t index, struct pe_debug_entry *entry);

/* Returns the name at an offset of the string table; empty if there is none. The work of reading it is charged to `account`. */
struct sl_str pe_string(const struct pe *pe, uint64_t offset, struct sl_account *account);

/* Sets pe->symbols and pe->strings; leaves both empty if the symbols extend beyond the file. The string table follows the symbols; its
 * first u32 is its length, itself included. */
void pe_find_symbols(const struct sl_object *object, struct pe *pe, uint32_t offset, uint32_t count,
                     uint32_t symbol_size);

/* Reads `count` section headers. False if they are outside the file, or when out of memory, which the object records. */
bool pe_read_sections(struct sl_object *object, struct pe *pe, uint64_t offset, size_t count);

/* Returns a section's bytes in the file, clipped to the file. */
struct sl_bytes pe_raw(const struct sl_object *object, const struct pe_section *section);

/* Fills pe->by_address, by which pe_section_at() and pe_at() search. False when out of memory, which the object records. */
bool pe_index_sections(struct sl_object *object);

/* Returns the section that contains an RVA, or NULL. */
const struct pe_section *pe_section_at(const struct pe *pe, uint32_t address);

/* Returns the file's contents from an RVA to the end of its section; may be empty. */
struct sl_bytes pe_at(const struct sl_object *object, uint64_t address);

bool pe_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
bool pe_segment(const struct sl_object *object, size_t index, struct sl_segment *segment);
bool pe_contents(const struct sl_object *object, size_t index, struct sl_bytes *part);
bool pe_section_info(struct sl_object *object, size_t index, struct sl_section_info *info);
enum sl_code pe_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                        struct sl_error *error);
enum sl_code pe_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                             size_t *count, struct sl_error *error);
bool pe_has_symbols(const struct sl_object *object);
