/* The `SLPG` file: a table (table/table.h) with these sections. A string is named by its offset in STRINGS, where it is uleb
 * size, bytes; at 0 is the empty one. Each is there once.
 *
 *     RECEIVERS     12 bytes a class of the source: u32 name, u32 name of its file (0 = not told), u32 flags
 *     CLASSES       8 bytes a class of the running program: u32 name, u32 receiver that it was
 *     CLASS_SLOTS   hash table of them
 *     METHODS       12 bytes a name of methods of a class: u32 class, u32 name, u32 where its members begin
 *     METHOD_SLOTS  hash table of them
 *     MEMBERS       of one method behind the other, each method's in the order of the mapping
 *
 *     member := u16 flags, uleb name, uleb arguments, [ uleb start, uleb end - start ], [ uleb line ],
 *               [ uleb last line - line ], [ uleb receiver ], [ positions, rules, uleb descriptor (0 = none) ]
 *     positions := uleb count, { uleb position, uleb line }
 *     rules     := uleb count, { uleb descriptor of what is thrown, uleb frames to remove }
 *
 * A hash table is a power of two of u32: 0 = free, else row + 1; a row is at the first free slot behind its hash. */
#pragma once

#include "jvm/mapper.h"

enum {
    JVM_HEADER_SIZE = 32,
    JVM_RECEIVER_SIZE = 12,
    JVM_CLASS_SIZE = 8,
    JVM_METHOD_SIZE = 12,
};

enum jvm_section {
    JVM_STRINGS = 1,
    JVM_RECEIVERS,
    JVM_CLASSES,
    JVM_CLASS_SLOTS,
    JVM_METHODS,
    JVM_METHOD_SLOTS,
    JVM_MEMBERS,
};

enum jvm_flags {
    JVM_RANGE = 1,        /* start and end */
    JVM_LINE = 2,         /* line */
    JVM_LAST_LINE = 4,    /* last line */
    JVM_FOREIGN = 8,      /* receiver: it was inlined from another class */
    JVM_SYNTHESIZED = 16, /* also of receivers: made by the compiler */
    JVM_IS_OUTLINE = 32,
    JVM_BY_PARAMETERS = 64, /* may be looked up by them */
    JVM_EXTRAS = 128,       /* positions, rules, descriptor */
};

static const struct sl_table_format jvm_format = {
    .magic = "SLPG",
    .name = "table of a mapping",
    .major = 1,
    .header_size = JVM_HEADER_SIZE,
    .at_header_size = 8,
    .at_section_count = 12,
    .sections = 7,
};

/* Of a name, and of a method's name in a class. */
uint32_t jvm_hash(struct sl_str text);
static inline uint32_t jvm_hash_in(uint32_t class, uint32_t hash)
{
    return hash ^ (class * 0x9E3779B1u);
}
