/* Names of Apple bitcode builds. The App Store compiled them from bitcode whose names were hidden: the images and dSYMs
 * say `__hidden#42_`, and line 42 of the developer's BCSymbolMap says what that was. A property list beside the dSYM
 * (a "UUID map") says which map belongs to it.
 *
 *     dSYM's UUID ──UUID map──▶ original UUID ──source──▶ BCSymbolMap ──▶ names
 *
 * A map points into its bytes, which must outlive it and everything it resolved. It is immutable: any number of threads
 * may share one. */
#pragma once

#include "function/function.h"
#include "object/object.h"

struct sl_bcsymbolmap;

/* Text: the line `BCSymbolMap Version: 2.0`, then a name on each line. One allocation for all names. The map is the
 * caller's: sl_bcsymbolmap_close. SL_MALFORMED "no valid BCSymbolMap header was found", "BCSymbolmap is not valid
 * UTF-8". What it takes, until it is closed, is of the budget; NULL = no limits. */
enum sl_code sl_bcsymbolmap_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bcsymbolmap **map,
                                 struct sl_error *error);
void sl_bcsymbolmap_close(struct sl_bcsymbolmap *map); /* may be NULL */

/* `__hidden#N_` becomes name N; anything else, and numbers beyond the map, stay as they are. */
struct sl_str sl_bcsymbolmap_resolve(const struct sl_bcsymbolmap *map, struct sl_str name);

/* The same for files, in the form that struct sl_symcache_options takes (`map_arg` is the map): a file's name, directory and
 * compilation directory, each by itself; true if one of them changed. */
bool sl_bcsymbolmap_map_line(void *map, const struct sl_file *file, uint32_t line, struct sl_file *new_file,
                             uint32_t *new_line);

/* Makes sl_object_symbols of a Mach-O object resolve names before it takes their underscore, as it has to be for names of
 * C. `map` (NULL: none any more) must live until the object is closed. No effect on other formats. */
void sl_object_set_bcsymbolmap(struct sl_object *object, const struct sl_bcsymbolmap *map);

/* Reads the original UUID (with age 0) off a UUID map: a property list, XML or binary, whose dictionary has the key
 * DBGOriginalUUID (Apple, PropertyList-1.0.dtd; CoreFoundation's "bplist00"). Entities are never expanded; at most 1 MiB
 * is read. SL_MALFORMED "Invalid XML", "XML structure did not match expected schema", "Failed to parse a value into the
 * right type". */
enum sl_code sl_uuidmap_parse(struct sl_bytes bytes, struct sl_debug_id *original, struct sl_error *error);
