/* Which parts an ELF or WASM file contains, by its headers: for servers that hand out debug files, programs and single sections. Nothing
 * here decompresses, allocates or does I/O. One thread at a time for one object. */
#pragma once

#include "object/object.h"

struct sl_stored_parts {
    bool has_debug_sections; /* .debug_* or .zdebug_* with contents */
    bool has_symbol_table;   /* ELF: .symtab with contents (.dynsym does not count); WASM: the section `name` */
    bool has_code;           /* contents of loaded sections, not only their headers, which debug files keep */
};

/* Sets which parts the file contains. If it is neither ELF nor WASM, returns false and sets all to false. */
bool sl_object_stored_parts(struct sl_object *object, struct sl_stored_parts *parts);

/* A PT_LOAD program header of an ELF file as written (gABI, "Program Header"); the contents of the segment may be missing in the file. */
struct sl_load_header {
    uint64_t offset, address, file_size, memory_size;
    uint32_t flags; /* p_flags */
};
enum { SL_LOAD_EXECUTABLE = 1 }; /* PF_X in `flags` */

/* Gets PT_LOAD header `index`, in file order; false past the last one, and for formats other than ELF. */
bool sl_object_load_header(const struct sl_object *object, size_t index, struct sl_load_header *header);

/* True if the PT_LOAD headers are as in the program, so that offsets in the program's file can be translated to addresses. In a debug file
 * of `objcopy --only-keep-debug` they are not: the file size of loaded segments is 0. False if there are none. */
bool sl_object_load_headers_usable(const struct sl_object *object);

enum sl_section_store {
    SL_SECTION_ABSENT,
    SL_SECTION_EMPTY, /* ELF only: its contents are not in this file (SHT_NOBITS, or damaged bounds) */
    SL_SECTION_STORED
};

/* Finds a section by its full name (".debug_info") and sets `*bytes` to its contents as in the file, a view: of a compressed section these
 * are the compression header and the compressed bytes. Of several sections with the name, the first with contents counts. */
enum sl_section_store sl_object_raw_section(struct sl_object *object, struct sl_str name, struct sl_bytes *bytes);
