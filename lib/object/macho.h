/* Mach-O (Apple, "OS X ABI Mach-O File Format Reference"; <mach-o/loader.h>): structures shared by the macho_*.c files.
 * Private to this folder. */
#pragma once

#include "object/impl.h"

struct macho_section {
    struct sl_str name, segment_name; /* "__text", "__TEXT": at most 16 bytes */
    uint64_t address, size, offset;   /* offset: in the file, as stored */
    uint32_t type;                    /* low 8 bits of the flags */
    bool has_code;                    /* by its flags */
    uint32_t reloc_offset, reloc_count;
    /* in a section of stubs: index of the first stub's entry in the indirect symbol table, bytes per stub (reserved1, reserved2) */
    uint32_t first_indirect, stub_size;
    uint32_t segment;                  /* index of its segment */
    struct sl_bytes prepared_contents; /* decompressed or (in relocatable files) relocated contents, made on demand */
    bool tried;                        /* prepared_contents was made; it is empty if that failed */
};

struct macho_segment {
    struct sl_str name;
    uint64_t address, memory_size, offset, file_size;
    bool executable;
};

struct macho {
    uint32_t cpu_type, cpu_subtype, file_type;
    struct macho_section *sections; /* of all segments, in file order; index = a symbol's section number - 1 */
    size_t section_count, section_capacity;
    struct macho_segment *segments;
    size_t segment_count, segment_capacity;
    bool has_symtab;
    uint32_t symbol_offset, symbol_count, string_offset, string_size;
    uint32_t indirect_offset, indirect_count;  /* indirect symbol table (LC_DYSYMTAB): offset, number of entries */
    const struct sl_bcsymbolmap *hidden_names; /* original names of `__hidden#N_`; may be NULL */
};

/* One symbol table entry. */
struct macho_symbol {
    uint32_t name; /* offset in the strings; the name there has its leading underscore */
    uint8_t type, section;
    uint64_t value;
};

/* The entries of LC_SYMTAB that are inside the file. */
struct macho_symtab {
    struct sl_bytes entries, strings;
    size_t count;
    bool is_64bit, big_endian;
};

struct macho_symtab macho_symtab(const struct sl_object *object);
struct macho_symbol macho_symbol_at(const struct macho_symtab *table, size_t index);

/* Returns the name without the leading underscore of C names; `__hidden#N_` (an obfuscated name) stays as it is. */
struct sl_str macho_undecorated(struct sl_str name);

/* Sets `*bytes` to the section's bytes as they are in the file; false if it has none or they lie outside the file. */
bool macho_raw(const struct sl_object *object, const struct macho_section *section, struct sl_bytes *bytes);

/* True if `name`, without underscores, means this section: "debug_info" is `__debug_info`, or `__zdebug_info` (compressed). */
bool macho_section_named(const struct macho_section *section, struct sl_str name);
bool macho_is_compressed(const struct macho_section *section); /* true for `__zdebug_*` */

bool macho_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address);

/* Returns a copy of a debug section with the relocations of a relocatable file applied, in the object's arena; `contents` itself if there
 * are none, or when out of memory, which the object records. */
struct sl_bytes macho_relocate(struct sl_object *object, const struct macho_section *section, struct sl_bytes contents);

/* Returns an upper limit for the number of stubs (jumps to functions of other libraries). */
uint64_t macho_stub_count(const struct sl_object *object);
/* Appends symbols for stubs to the `*count` symbols, up to `capacity`. False when out of memory. */
bool macho_add_stubs(const struct sl_object *object, struct sl_arena *arena, struct sl_symbol *symbols, size_t capacity,
                     size_t *count);

enum sl_code macho_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                           struct sl_error *error);
enum sl_code macho_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                size_t *count, struct sl_error *error);
