/* YAML as a tree of values, for the configuration and for files of commands (libyaml does the parsing). */
#pragma once

#include "core/value.h"

/* One document whose root is a map, as a tree in the arena without shared nodes: aliases are copied, merge keys (`<<`,
 * https://yaml.org/type/merge.html) applied. False when the text is no such document, which has been reported.
 * `*empty` tells that there is nothing in it. */
bool yaml_read(struct sl_arena *arena, struct sl_str text, struct value *root, bool *empty,
               struct value_problems *problems);
