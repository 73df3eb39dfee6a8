/* Classes, methods and members of a table, as they are read in place. */
#pragma once

#include "jvm/format.h"

/* A class of the source. */
struct jvm_receiver {
    struct sl_str name;
    bool synthesized;           /* made by the compiler */
    struct sl_str file, suffix; /* two parts of the name of its file; data NULL = not told */
};

struct jvm_member {
    uint8_t flags;
    uint32_t name, arguments, receiver; /* receiver: when JVM_FOREIGN */
    uint32_t start, end, line, last_line;
    struct sl_reader extras;
};

/* Of one method, in the order of the mapping; with `query` by parameters only those that it may mean, with `line` only those
 * without a range of lines or with one that holds it. */
struct jvm_members {
    const struct sl_jvm_mapper *mapper;
    struct sl_reader bytes;
    uint8_t traits;
    uint32_t read;                    /* members that were read so far */
    uint32_t line;                    /* 0 = any */
    const struct sl_jvm_query *query; /* NULL = all */
    bool by_descriptor;               /* the query's descriptor tells them, not its parameters */
};

struct sl_str jvm_long_text(const struct sl_jvm_mapper *mapper, uint32_t id);

/* Empty when the id is bad. Nearly all texts have fewer than 128 bytes, and so one byte for their size in front. */
static inline struct sl_str jvm_text(const struct sl_jvm_mapper *mapper, uint32_t id)
{
    struct sl_bytes texts = mapper->table.sections[JVM_STRINGS];
    if (__builtin_expect(id < texts.size && texts.data[id] < 0x80 && texts.data[id] < texts.size - id, 1))
        return (struct sl_str){(const char *)texts.data + id + 1, texts.data[id]};
    return jvm_long_text(mapper, id);
}

/* Empty when the id is bad. */
struct jvm_receiver jvm_receiver(const struct sl_jvm_mapper *mapper, uint32_t id);

/* Has the memory brought that is at this offset of the section. */
static inline void jvm_fetch(const struct sl_jvm_mapper *mapper, enum jvm_section section, uint64_t offset)
{
    struct sl_bytes bytes = sl_bytes_from(mapper->table.sections[section], offset);
    if (bytes.size)
        __builtin_prefetch(bytes.data);
}

struct jvm_names { /* of the running program */
    struct sl_str class, method;
    uint32_t class_hash, method_hash;
    bool is_absent; /* the class is known not to be there */
};

/* To be looked up; what there is of them is being fetched. */
struct jvm_names jvm_names(const struct sl_jvm_mapper *mapper, struct sl_str class, struct sl_str method);

/* What the class was, and the number of its name. */
bool jvm_find_class(const struct sl_jvm_mapper *mapper, const struct jvm_names *names, uint32_t *class,
                    uint32_t *receiver);

/* All members of the method. */
bool jvm_find_method(const struct sl_jvm_mapper *mapper, const struct jvm_names *names, uint32_t class,
                     struct jvm_members *members);

bool jvm_next_member(struct jvm_members *members, struct jvm_member *member);

/* Of the positions of a member, the line that is for this line of an outline; false when it has none. */
bool jvm_line_at(const struct jvm_member *member, uint32_t position, uint32_t *line);

/* How many inner frames the rules of a member remove when the query's class was thrown. */
uint64_t jvm_removed_by(const struct sl_jvm_mapper *mapper, const struct jvm_member *member,
                        const struct sl_jvm_query *query);
