/* What objects carry that is a format of its own: .NET debug information in a PE file, and the PDB that an object is. */
#pragma once

#include "object/object.h"

struct sl_pdb; /* pdb/pdb.h */

/* The reader of a PDB file; NULL for other formats. Lives as long as the object. */
const struct sl_pdb *sl_object_as_pdb(const struct sl_object *object);

/* The Portable PDB inside of a PE file (debug directory entry of type 17; "PE/COFF Specification, additional
 * information for .NET", Embedded Portable PDB), inflated into the arena. SL_NOT_FOUND when the object is no PE file or
 * has none; SL_MALFORMED `invalid length`, `invalid signature`, `invalid blob offset`, or `invalid blob data` when it
 * does not inflate to just the size it states or that is over the section limit. */
enum sl_code sl_object_embedded_ppdb(struct sl_object *object, struct sl_arena *arena, struct sl_bytes *ppdb,
                                     struct sl_error *error);
