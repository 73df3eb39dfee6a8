/* Objects that contain or are a PDB: the Portable PDB embedded in a PE file, the reader of a PDB file. */
#pragma once

#include "object/object.h"

struct sl_pdb; /* pdb/pdb.h */

/* Returns the reader of a PDB file, which lives as long as the object; NULL for other formats. */
const struct sl_pdb *sl_object_as_pdb(const struct sl_object *object);

/* Inflates the Portable PDB inside a PE file into the arena (debug directory entry of type 17; "PE/COFF Specification, additional
 * information for .NET", Embedded Portable PDB). SL_NOT_FOUND if the object is not a PE file or has none; SL_MALFORMED `invalid
 * length`, `invalid signature`, `invalid blob offset`, or `invalid blob data` if its size is not the stated one or is over
 * sl_object_limits.max_section_size. */
enum sl_code sl_object_embedded_ppdb(struct sl_object *object, struct sl_arena *arena, struct sl_bytes *ppdb,
                                     struct sl_error *error);
