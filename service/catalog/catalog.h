/* The kinds of cache entries: their list, and what starts and ends those who make them.
 *
 *     sources ── listing.h: what they list, less what an index (listing.c) does not name
 *        │          └── search/: `object_meta` of each candidate; the best one's table, or its source text
 *        v
 *     objects ──▶ object_meta                   what it is good for
 *        ├──────▶ symcaches ◀── auxdifs, il2cpp, companions.c   addresses to functions and lines
 *        ├──────▶ ppdb_caches                   the same of .NET
 *        ├──────▶ cficaches                     addresses to the rules for finding callers
 *        ├──────▶ embedded_sources              source texts in DWARF, as a bundle (bundles.c)
 *        └──────▶ proguard                      tables of JVM mappings (jvm.c)
 *     web  ─────▶ sourcefiles                   single source files, of the web or a source
 *     objects ──▶ bundled_files                 the same out of bundles of artifacts
 *        └──────▶ sourcemap_caches              places in scripts to places in their sources
 *     dumps ────▶ diagnostics                   those that could not be answered, for a while
 *     stores ───▶ mozilla_syms                  the table of a module out of Mozilla's symbol stores (search/mozilla.c)
 *     uploads ──▶ symbfile_index                what answers look-ups of uploaded symbfiles (symbfile_store/index.c)
 *     PDBs ─────▶ ms_symcaches                  SymCache files (transcode/ms_symcaches.c)
 *     commands ─▶ own_symcaches                 what was converted for a user, of files of his machine
 *
 * An arrow is a computation (conversion.h): get the entry on the left, run a pure function over its mapping on the pool, write
 * the one on the right. Request and key of an entry are in request.c. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"

extern const struct cache_kind *const kinds_all[];
extern const size_t kinds_all_count;

/* At start, and when another configuration is to count from now on. The last one must outlive everything. */
void kinds_init(const struct config *config);
void kinds_close(void); /* before cache_close */
