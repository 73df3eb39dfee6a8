/* The `SLPG` file: a table (table/table.h) with these sections. A string is identified by its offset in STRINGS, where it is
 * stored as uleb size, bytes. Offset 0 is the empty string. Each string is stored once.
 *
 *     RECEIVERS     original classes: receiver := uleb file * 2 + synthesized, uleb size, name; identified by its offset. The section
 *                   begins with a zero byte, so no receiver has offset 0
 *     CLASSES       12 bytes an obfuscated class: u32 hash, u32 name, u32 receiver (0 = free row)
 *     METHODS       8 bytes an obfuscated name of methods of a class: u32 hash, u32 offset of the members (0 = free row)
 *     MEMBERS       members of all methods, those of a method together in the order of the mapping. Begins with a zero byte
 *
 *     members := uleb name of the class, uleb name, u8 traits, uleb size, { member }
 *     member := u8 flags, uleb size of the rest, [ uleb start, uleb end - start ], [ uleb receiver ], uleb name,
 *               uleb arguments, [ uleb line ], [ uleb last line - line ], [ positions, rules, uleb descriptor (0 = none) ]
 *     positions := uleb count, { uleb position, uleb line }
 *     rules     := uleb count, { uleb descriptor of the thrown class, uleb frames to remove }
 *     file      := enum jvm_file, or JVM_FILE_NAMED + its name
 *
 * CLASSES and METHODS are hash tables with linear probing: a row is at floor(hash * rows / 2^32), or in the first free row
 * after it; the last row is followed by the first. The hash of a method combines that of its class's name and its own. Look-ups
 * mostly wait for memory; so the data of one look-up lies together, and the next rows can be prefetched.
 *
 * The mapping "x.R -> a:\n 1:3:int f(int):10:12 -> b" becomes
 *
 *     STRINGS    00  01 'a'  01 'b'  01 'f'  03 'i' 'n' 't'             a = 1, b = 3, f = 5, int = 7
 *     RECEIVERS  00  00 03 'x' '.' 'R'                                  x.R = 1, file unknown
 *     CLASSES    1f4e961e 01000000 01000000, a free row                 hash of "a", a, x.R
 *     METHODS    502e595f 01000000, a free row                          hash of "a" and "b", members at 1
 *     MEMBERS    00  01 03 01 08                                        a, b, JVM_RANGES, 8 bytes of members
 *                47 06  01 02  05  07  0a 02                            range 1 to 3, f, int, lines 10 to 12 */
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
    JVM_RANGE = 1,                    /* has start and end */
    JVM_LINE = 2,                     /* has line */
    JVM_LAST_LINE = 4,                /* has last line */
    JVM_INLINED_FROM_OTHER_CLASS = 8, /* has receiver: the method was inlined from another class */
    JVM_SYNTHESIZED = 16,             /* the compiler made the method; its class may be synthesized as well */
    JVM_IS_OUTLINE = 32,
    JVM_BY_PARAMETERS = 64, /* can be found by parameters */
    JVM_EXTRAS = 128,       /* has positions, rules, descriptor */
};

enum jvm_traits {
    JVM_RANGES = 1,     /* a member has a range whose end is not 0 */
    JVM_OUTLINES = 2,   /* a member is an outline */
    JVM_HAS_EXTRAS = 4, /* a member has extras */
};

enum jvm_file {
    JVM_FILE_UNKNOWN,
    JVM_FILE_KOTLIN, /* the outermost class name and ".kt" */
    JVM_FILE_JAVA,   /* the outermost class name and ".java" */
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

/* Hash of a name; jvm_hash_in() combines the hashes of a class and a method name. */
uint32_t jvm_hash(struct sl_str text);
static inline uint32_t jvm_hash_in(uint32_t class_hash, uint32_t hash)
{
    return hash ^ (class_hash * 0x9E3779B1u);
}

/* Returns the row at which probing for this hash begins. */
static inline uint64_t jvm_home_row(uint32_t hash, uint64_t rows)
{
    return hash * rows >> 32;
}
