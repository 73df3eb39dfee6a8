/* Other names for the first module's debug file: packagers of programs rename them, symbol servers do not know.
 *
 * A rule's pattern is a regular expression (RE2's syntax: no look-around, back-references, atomic groups or recursion) that is
 * looked for anywhere in the name; the first rule that matches puts its replacement in the place of its first match. */
#pragma once

#include "api/json_document.h"

struct rewrite_rules {
    struct rewrite_rule *rules; /* in an arena; zeros are none */
    size_t count;
};

/* An array of {"from": pattern, "to": replacement}, into struct rewrite_rules. A sl_field_read. */
bool rewrite_read(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* What matching may cost for one dump: items of patterns that are tried and bytes of names that are passed over. */
enum { REWRITE_STEPS = 1 << 22 };

/* The other name, in the arena; the name itself when no rule matches, or `*steps` (REWRITE_STEPS at first) are used up, which is
 * logged. `*failed` is set when memory was short. Pure: pool. */
struct sl_str rewrite_name(const struct rewrite_rules *rules, struct sl_str name, int64_t *steps,
                           struct sl_arena *arena, bool *failed);
