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
    size_t at;                    /* offset of the next member's header */
    bool thin;                    /* the members are files outside of the archive */
};

struct sl_ar_member {
    struct sl_str name;
    struct sl_bytes bytes; /* contents; empty in a thin archive: the name is then a path relative to the archive */
    uint64_t changed;      /* modification time, seconds since 1970; 0 in reproducible archives (ar D) */
};

bool sl_ar_detect(struct sl_bytes bytes); /* true if the file begins with the magic of an archive */
void sl_ar_open(struct sl_bytes bytes, struct sl_ar *ar);

/* Reads the next member in file order. Skips the archive's own members, its symbol tables and the table of long names. False at the end
 * of the archive and at a damaged member. */
bool sl_ar_next(struct sl_ar *ar, struct sl_ar_member *member);
