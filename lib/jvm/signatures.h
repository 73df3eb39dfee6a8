/* Return types of methods and names of fields, which only tools show and tables do not contain. Read from the text of mappings,
 * which must outlive the result. */
#pragma once

#include "base/map.h"
#include "jvm/mapper.h"

struct sl_jvm_signatures { /* all zeros is empty */
    struct sl_arena arena;
    struct sl_map methods, fields;
};

/* Adds the signatures of a mapping; entries of earlier mappings take precedence. False when out of memory. */
bool sl_jvm_signatures_add(struct sl_jvm_signatures *signatures, struct sl_str mapping);
void sl_jvm_signatures_free(struct sl_jvm_signatures *signatures);

/* Sets `*name` to the original name of a field; false, with `*name` = `obfuscated`, if it is unknown. `class` and `type` are original
 * names; data of `type` NULL = unknown. */
bool sl_jvm_signatures_field(const struct sl_jvm_signatures *signatures, struct sl_str class, struct sl_str obfuscated,
                             struct sl_str type, struct sl_str *name);

/* Returns the return type of a method; `line` is a source line in it, 0 = unknown. Data NULL if it is unknown. */
struct sl_str sl_jvm_signatures_type(const struct sl_jvm_signatures *signatures, struct sl_str class,
                                     struct sl_str method, struct sl_str parameters, uint32_t line);

/* Appends the frame's method: "int find(java.lang.String)", or only its name if the rest is unknown (queries without `types`). */
void sl_jvm_signatures_put(const struct sl_jvm_frame *frame, struct sl_buf *out);
