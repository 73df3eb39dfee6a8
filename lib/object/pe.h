/* PE (Microsoft's "PE Format"; all little-endian): structures shared by the pe_*.c files. Private to this folder. */
#pragma once

#include "object/impl.h"

enum { PE_EXPORTS = 0, PE_EXCEPTIONS = 3, PE_DEBUG = 6, PE_DIRECTORIES = 16 };

struct pe_directory {
    uint32_t address, size; /* relative */
};

struct pe_section {
    struct sl_str name; /* a long one from the string table */
    uint32_t address, virtual_size, offset, raw_size;
    bool executable, discardable, cut_name; /* cut_name: it fills all eight bytes, so more may have stood there */
    bool tried;                             /* inflated, or relocated: the result is in `inflated`, possibly empty */
    struct sl_bytes inflated;
    uint32_t alignment, reloc_offset; /* of object files; alignment is a power of two */
    uint16_t reloc_count;
    bool more_relocs; /* than that can count */
};

struct pe {
    struct pe_section *sections;
    size_t section_count;
    const struct pe_section **by_address; /* those that take memory */
    size_t mapped_count;
    struct pe_directory directories[PE_DIRECTORIES];
    struct sl_bytes symbols; /* COFF symbol table */
    uint32_t symbol_size;    /* bytes per symbol: 18, of object files with many sections 20 */
    struct sl_bytes strings; /* its names; offsets count from its 4-byte length */
};

/* One entry of the debug directory. */
struct pe_debug_entry {
    uint32_t time_stamp, type, size, address, offset;
    uint16_t minor;
};
enum { PE_DEBUG_CODEVIEW = 2, PE_DEBUG_EMBEDDED_PPDB = 17 };
bool pe_debug_entry(const struct sl_object *object, size_t index, struct pe_debug_entry *entry);

/* The name at an offset of the string table. */
struct sl_str pe_string(const struct pe *pe, uint64_t offset, struct sl_account *account);

/* The string table follows the symbols; its first word is its length, that word included. */
void pe_find_symbols(const struct sl_object *object, struct pe *pe, uint32_t offset, uint32_t count,
                     uint32_t symbol_size);

/* Reads `count` section headers. False when they are outside of the file. */
bool pe_read_sections(struct sl_object *object, struct pe *pe, uint64_t offset, size_t count);

/* What the file has of a section. */
struct sl_bytes pe_raw(const struct sl_object *object, const struct pe_section *section);

bool pe_index_sections(struct sl_object *object); /* for the next two */

/* The section around a relative address; NULL when there is none. */
const struct pe_section *pe_section_at(const struct pe *pe, uint32_t address);

/* What the file holds from a relative address to the end of its section; empty when it holds nothing. */
struct sl_bytes pe_at(const struct sl_object *object, uint64_t address);

bool pe_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);
bool pe_segment(const struct sl_object *object, size_t index, struct sl_segment *segment);
bool pe_contents(const struct sl_object *object, size_t index, struct sl_bytes *piece);
bool pe_section_info(struct sl_object *object, size_t index, struct sl_section_info *info);
enum sl_code pe_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                        struct sl_error *error);
enum sl_code pe_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                             size_t *count, struct sl_error *error);
bool pe_has_symbols(const struct sl_object *object);
