/* The exception directory of PE files: what the pe*.c files share. Private to this folder. */
#pragma once

#include "unwind/impl.h"

enum { PE_MAX_SECTIONS = 256 };

struct pe_tables {
    const struct sl_object *object;
    struct sl_bytes directory; /* the RUNTIME_FUNCTIONs */
    struct sl_section_info sections[PE_MAX_SECTIONS];
    size_t section_count;
};

/* What the file has from a relative address to the end of its section; empty when it has nothing. */
struct sl_bytes pe_tables_at(const struct pe_tables *tables, uint32_t address);

enum sl_code pe_read_x86_64(const struct pe_tables *tables, struct builder *b);
enum sl_code pe_read_arm64(const struct pe_tables *tables, struct builder *b);
