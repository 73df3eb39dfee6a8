/* Renames the debug file of a minidump's first module: packagers rename programs, but symbol servers know the original name.
 *
 * A rule's pattern is a regular expression (RE2 syntax: no look-around, back-references, atomic groups or recursion) that is
 * searched anywhere in the name. The first rule that matches replaces its first match:
 *
 *      [{"from": "^MyApp-.*\\.pdb$", "to": "myapp.pdb"}]     "MyApp-1.2.pdb" -> "myapp.pdb" */
#pragma once

#include "api/json_document.h"

struct rewrite_rules {
    struct rewrite_rule *rules; /* in an arena; NULL: no rules */
    size_t count;
};

/* Reads an array of {"from": pattern, "to": replacement} into struct rewrite_rules. A sl_field_read. */
bool rewrite_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* Limit of matching for one dump: steps of (pattern item, byte of the name), and those of compiling the patterns. */
enum { REWRITE_STEPS = 1 << 22 };

/* Returns the new name, in the arena, or `name` when no rule matches. `*steps` is REWRITE_STEPS at first; when it is used up,
 * `name` is returned and a warning logged. Sets `*failed` when out of memory. Pure: pool. */
struct sl_str rewrite_name(const struct rewrite_rules *rules, struct sl_str name, int64_t *steps,
                           struct sl_arena *arena, bool *failed);
