/* YAML as a tree of values, for the configuration and for files of commands (parsed by libyaml). */
#pragma once

#include "core/value_tree.h"

/* Parses one YAML document, whose root must be a map, into a tree in the arena. Aliases are copied, so that no two nodes share memory, and
 * merge keys (`<<`, https://yaml.org/type/merge.html) are replaced by what they merge. False after a report of what is wrong. `*empty`:
 * there is no document, or only the value null; then `root` is no map. */
bool yaml_read(struct sl_arena *arena, struct sl_str text, struct value *root, bool *empty,
               struct value_problems *problems);
