/* YAML as a tree of values, for the configuration and for files of commands (parsed by libyaml). */
#pragma once

#include "core/value_tree.h"

/* Reads one document whose root is a map into a tree in the arena without shared nodes: copies aliases, applies merge keys
 * (`<<`, https://yaml.org/type/merge.html). False if it is not such a document; the problem is reported. `*empty`: the document
 * is empty. */
bool yaml_read(struct sl_arena *arena, struct sl_str text, struct value *root, bool *empty,
               struct value_problems *problems);
