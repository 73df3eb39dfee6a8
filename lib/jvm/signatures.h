/* What tables do not keep of the members of classes and only tools show: the return types of methods, and the names of fields. Read
 * out of the text of mappings, which must outlive it. */
#pragma once

#include "base/map.h"
#include "jvm/mapper.h"

struct sl_jvm_signatures { /* zeros: of no mapping */
    struct sl_arena arena;
    struct sl_map methods, fields;
};

/* Adds those of a mapping; what a mapping before it has of a member stays. False when out of memory. */
bool sl_jvm_signatures_add(struct sl_jvm_signatures *signatures, struct sl_str mapping);
void sl_jvm_signatures_free(struct sl_jvm_signatures *signatures);

/* The original name of a field; `class` and `type` are original ones, the data of `type` NULL when it is not known. */
bool sl_jvm_signatures_field(const struct sl_jvm_signatures *signatures, struct sl_str class, struct sl_str obfuscated,
                             struct sl_str type, struct sl_str *name);

/* What a method returns, of which a line of the source may be known (0 = none). Data NULL: it is not known. */
struct sl_str sl_jvm_signatures_type(const struct sl_jvm_signatures *signatures, struct sl_str class,
                                     struct sl_str method, struct sl_str parameters, uint32_t line);

/* Appends the frame's method: "int find(java.lang.String)", or only its name where the rest is not known, as
 * it is of queries without `types`. */
void sl_jvm_signatures_put(const struct sl_jvm_frame *frame, struct sl_buf *out);
