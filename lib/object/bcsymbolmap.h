/* Names of Apple bitcode builds. The App Store compiled them from bitcode with obfuscated names: the images and dSYMs have
 * `__hidden#42_`, and name 42 of the developer's BCSymbolMap (counted from 0) is the original. A property list next to the dSYM
 * (a "UUID map") names the map that belongs to it.
 *
 *     dSYM's UUID ──UUID map──▶ original UUID ──source──▶ BCSymbolMap ──▶ names
 *
 *     BCSymbolMap Version: 2.0
 *     _main                          name 0: `__hidden#0_`
 *     _helper                        name 1: `__hidden#1_`
 *
 * A map points into its bytes, which must outlive it and everything it resolved. It is immutable: any number of threads
 * may share one. */
#pragma once

#include "function/function.h"
#include "object/object.h"

struct sl_bcsymbolmap;

/* Opens a map: text with the line `BCSymbolMap Version: 2.0`, then one name per line. The caller closes it. Its memory is charged to
 * `budget` until then; `budget` NULL = no limit. SL_MALFORMED if the first line is missing or the text is not UTF-8; SL_BUSY, or the error
 * of the budget, if memory or budget is used up. */
enum sl_code sl_bcsymbolmap_open(struct sl_bytes bytes, struct sl_budget *budget, struct sl_bcsymbolmap **map,
                                 struct sl_error *error);
void sl_bcsymbolmap_close(struct sl_bcsymbolmap *map); /* may be NULL */

/* Returns name N for `__hidden#N_`; returns any other name, and a number beyond the map, unchanged. */
struct sl_str sl_bcsymbolmap_resolve(const struct sl_bcsymbolmap *map, struct sl_str name);

/* Resolves a file's name, directory and compilation directory, each by itself; the line stays as it is. True if one of the texts
 * changed. Can be the callback `map_line` of struct sl_symcache_options, with the map as `map_arg`. */
bool sl_bcsymbolmap_map_line(void *map, const struct sl_file *file, uint32_t line, struct sl_file *new_file,
                             uint32_t *new_line);

/* Makes sl_object_symbols() of a Mach-O object resolve names by the map, before it strips the leading underscore of C names. `map` must
 * live until the object is closed; NULL: names are no longer resolved. No effect on objects of other formats. */
void sl_object_set_bcsymbolmap(struct sl_object *object, const struct sl_bcsymbolmap *map);

/* Reads the UUID of the developer's build (as `original`, with age 0) from a UUID map: a property list, XML or binary, whose dictionary
 * has the key DBGOriginalUUID (Apple, PropertyList-1.0.dtd; CoreFoundation's "bplist00"). Entities are never expanded; at most 1 MiB
 * is read. SL_MALFORMED "Invalid XML", "XML structure did not match expected schema", "Failed to parse a value into the
 * right type". */
enum sl_code sl_uuidmap_parse(struct sl_bytes bytes, struct sl_debug_id *original, struct sl_error *error);
