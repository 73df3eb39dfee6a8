/* Archives of object files, `lib.a` and `x.lib` (ar(5) of System V, BSD and GNU; Microsoft's "PE Format", "Archive (Library) File
 * Format"): a magic, then members, each a header of 60 bytes in text and its contents.
 *
 *     !<arch>\n | header | contents | header | contents ...          !<thin>\n: the members are files of their own
 *
 * Long names are in a member `//`, which headers point into, or in front of the contents. A view: nothing is allocated. */
#pragma once

#include "base/bytes.h"

struct sl_ar {
    struct sl_bytes bytes, names; /* names: contents of the member `//` */
    size_t at;
    bool thin;
};

struct sl_ar_member {
    struct sl_str name;
    struct sl_bytes bytes; /* empty in a thin archive: the name is then a path relative to the archive */
    uint64_t changed;      /* seconds since 1970; 0 in reproducible archives (ar D) */
};

bool sl_ar_detect(struct sl_bytes bytes);
void sl_ar_open(struct sl_bytes bytes, struct sl_ar *ar);

/* Reads the next member in file order, without the symbol index and the table of names; false at the end and at a damaged member. */
bool sl_ar_next(struct sl_ar *ar, struct sl_ar_member *member);
