/* What an ELF or WASM file stores, by its headers: for servers that hand out debug files, programs and single sections. Nothing here
 * decompresses or allocates. Pure; one thread at a time for one object. */
#pragma once

#include "object/object.h"

struct sl_stored_parts {
    bool has_debug_sections; /* .debug_* or .zdebug_* with contents */
    bool has_symbol_table;   /* ELF: .symtab with contents (.dynsym does not count); WASM: the section `name` */
    bool has_code;           /* contents of loaded sections, not only their headers, which debug files keep */
};

/* False, and all parts are false, if the file is neither ELF nor WASM. */
bool sl_object_stored_parts(struct sl_object *object, struct sl_stored_parts *parts);

/* A PT_LOAD program header of an ELF file as written, in bytes; its contents may be missing (gABI, "Program Header"). */
struct sl_load_header {
    uint64_t offset, address, file_size, memory_size;
    uint32_t flags; /* p_flags */
};
enum { SL_LOAD_EXECUTABLE = 1 }; /* PF_X in `flags` */

/* Entry `index` in file order; false past the last one, and for other formats. */
bool sl_object_load_header(const struct sl_object *object, size_t index, struct sl_load_header *header);

/* True if the entries are those of the program, so that offsets in the program can be translated to addresses. `objcopy
 * --only-keep-debug` sets the file size of loaded segments to 0. False if there are no entries. */
bool sl_object_load_headers_usable(const struct sl_object *object);

enum sl_section_store {
    SL_SECTION_ABSENT,
    SL_SECTION_EMPTY, /* its contents are not in this file: SHT_NOBITS, or damaged bounds */
    SL_SECTION_STORED
};

/* Finds a section by its full name (".debug_info") and sets `*bytes` to its contents as in the file, a view: a compressed section has
 * its header (SHF_COMPRESSED) and compressed bytes. If several have the name, the first with contents counts. */
enum sl_section_store sl_object_raw_section(struct sl_object *object, struct sl_str name, struct sl_bytes *bytes);
