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

/* A callback for JSON members (sl_field_read): reads an array of {"from": pattern, "to": replacement} into a struct rewrite_rules. False,
 * and the request's error is set, if a pattern is invalid or there are too many rules. */
bool rewrite_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* How many steps of work the names of one dump may take together: one for each item of a pattern that is tried and each byte of a name that
 * an item passes over, and some for compiling a pattern. */
enum { REWRITE_STEPS = 1 << 22 };

/* Applies the first rule that matches. Returns the new name, in the arena, or `name` when no rule matches. `*steps` is the work that is
 * left for the names of this dump, REWRITE_STEPS at first; when it is used up, `name` is returned and a warning logged. Sets `*failed` when
 * out of memory. On the pool. */
struct sl_str rewrite_name(const struct rewrite_rules *rules, struct sl_str name, int64_t *steps,
                           struct sl_arena *arena, bool *failed);
