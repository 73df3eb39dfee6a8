/* Lists of sources that requests bring with them, read once: who sends one sends the same text every time. A bounded number of
 * them is kept, the one longest unused goes first. Any thread. */
#pragma once

#include "config/config.h"
#include "origin/origin.h"

struct source_list {
    const struct source *items;
    size_t count;
    uint64_t number; /* source_list_number */
};

/* The list whose text, all of it, begins `text`; its size is in `*size`. NULL when it is not known. The arena holds it. */
const struct source_list *source_lists_find(struct sl_str text, const struct config *config, struct sl_arena *arena,
                                            size_t *size);

/* Keeps what this text, one JSON array that is good, says under the policy of the configuration. The list as
 * source_lists_find has it; NULL when there was no memory, or the text is too long to be kept. */
const struct source_list *source_lists_keep(struct sl_str text, const struct source_policy *policy,
                                            const struct config *config, struct sl_arena *arena);

/* When nobody reads requests any more. */
void source_lists_forget(void);
