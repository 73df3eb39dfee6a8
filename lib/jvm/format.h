/* The `SLPG` file: a table (table/table.h) with these sections. A string is named by its offset in STRINGS, where it is uleb
 * size, bytes; at 0 is the empty one. Each is there once.
 *
 *     RECEIVERS     classes of the source: receiver := uleb file * 2 + synthesized, uleb size, name; named by its offset. 0 stands in
 *                   front of them
 *     CLASSES       12 bytes a class of the running program: u32 hash, u32 name, u32 receiver that it was (0 = free)
 *     METHODS       8 bytes a name of methods of a class: u32 hash, u32 members (0 = free)
 *     MEMBERS       of one method behind the other, each method's in the order of the mapping. 0 stands in front of them
 *
 *     members := uleb name of the class, uleb name, u8 traits, uleb size, { member }
 *     member := u8 flags, uleb size of the rest, [ uleb start, uleb end - start ], [ uleb receiver ], uleb name,
 *               uleb arguments, [ uleb line ], [ uleb last line - line ], [ positions, rules, uleb descriptor (0 = none) ]
 *     positions := uleb count, { uleb position, uleb line }
 *     rules     := uleb count, { uleb descriptor of what is thrown, uleb frames to remove }
 *     file      := enum jvm_file, or JVM_FILE_NAMED + its name
 *
 * CLASSES and METHODS are hash tables: a row is at floor(hash * rows / 2^32), or the first free one behind it; after the last
 * row comes the first. The hash of a method is that of its class's name and its own. What one look-up reads lies together, and
 * what it reads next can be fetched before it is needed, as most of its time is spent waiting for memory. */
#pragma once

#include "jvm/mapper.h"

enum {
    JVM_HEADER_SIZE = 32,
    JVM_CLASS_SIZE = 12,
    JVM_METHOD_SIZE = 8,
};

enum jvm_section {
    JVM_STRINGS = 1,
    JVM_RECEIVERS,
    JVM_CLASSES,
    JVM_METHODS,
    JVM_MEMBERS,
};

enum jvm_flags {
    JVM_RANGE = 1,        /* start and end */
    JVM_LINE = 2,         /* line */
    JVM_LAST_LINE = 4,    /* last line */
    JVM_FOREIGN = 8,      /* receiver: it was inlined from another class */
    JVM_SYNTHESIZED = 16, /* the method is made by the compiler; its class may be, too */
    JVM_IS_OUTLINE = 32,
    JVM_BY_PARAMETERS = 64, /* may be looked up by them */
    JVM_EXTRAS = 128,       /* positions, rules, descriptor */
};

enum jvm_traits {
    JVM_RANGES = 1,     /* a member has a range that does not end at 0 */
    JVM_OUTLINES = 2,   /* a member is an outline */
    JVM_HAS_EXTRAS = 4, /* a member has some */
};

enum jvm_file {
    JVM_FILE_UNKNOWN,
    JVM_FILE_KOTLIN, /* the outermost class and ".kt" */
    JVM_FILE_JAVA,   /* and ".java" */
    JVM_FILE_NAMED,
};

static const struct sl_table_format jvm_format = {
    .magic = "SLPG",
    .name = "table of a mapping",
    .major = 2,
    .header_size = JVM_HEADER_SIZE,
    .at_header_size = 8,
    .at_section_count = 12,
    .sections = 5,
};

/* Of a name, and of the names of a class and of its method. */
uint32_t jvm_hash(struct sl_str text);
static inline uint32_t jvm_hash_in(uint32_t class_hash, uint32_t hash)
{
    return hash ^ (class_hash * 0x9E3779B1u);
}

/* Where a row of this hash is looked for first. */
static inline uint64_t jvm_row_of(uint32_t hash, uint64_t rows)
{
    return hash * rows >> 32;
}
