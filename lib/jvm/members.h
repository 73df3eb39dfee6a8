/* Classes, methods and members of a table, as they are read in place. */
#pragma once

#include "jvm/format.h"

struct jvm_class {
    uint32_t id, receiver;
    struct sl_str original;
};

struct jvm_member {
    uint16_t flags;
    uint32_t name, arguments, receiver; /* receiver: when JVM_FOREIGN */
    uint32_t start, end, line, last_line;
    struct sl_reader extras;
};

/* Of one method, in the order of the mapping; with `query` by parameters only those that it may mean. */
struct jvm_members {
    const struct sl_jvm_mapper *mapper;
    struct sl_reader bytes;
    const struct sl_jvm_query *query; /* NULL = all */
    bool by_descriptor;               /* the query's descriptor tells them, not its parameters */
};

/* Empty when the id is bad. */
struct sl_str jvm_text(const struct sl_jvm_mapper *mapper, uint32_t id);

/* The name of a receiver; its file (data NULL = not told) when `file` is not NULL. */
struct sl_str jvm_receiver(const struct sl_jvm_mapper *mapper, uint32_t id, struct sl_str *file);

bool jvm_find_class(const struct sl_jvm_mapper *mapper, struct sl_str name, struct jvm_class *class);

/* All members of the method. */
bool jvm_find_method(const struct sl_jvm_mapper *mapper, uint32_t class, struct sl_str name,
                     struct jvm_members *members);

bool jvm_next_member(struct jvm_members *members, struct jvm_member *member);
