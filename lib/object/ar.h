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
    struct sl_bytes bytes; /* of a thin archive: none, the name is a path relative to it */
    uint64_t changed;      /* seconds since 1970; 0 where archives are to be the same each time */
};

bool sl_ar_detect(struct sl_bytes bytes);
void sl_ar_open(struct sl_bytes bytes, struct sl_ar *ar);

/* The next member in file order, indexes of symbols and names passed over; false at the end, and where it is damaged. */
bool sl_ar_next(struct sl_ar *ar, struct sl_ar_member *member);
