/* Lists the kinds of cache entries and the converters that make them; starts and ends the modules behind them.
 *
 *     sources ── listing.h: candidate files, without those that a source's index (listing.c) excludes
 *        │          └── search/: `object_meta` of each candidate; table or source text of the best one
 *        v
 *     objects ──▶ object_meta                   features of an object: symbols, unwind info, sources
 *        ├──────▶ symcaches ◀── auxdifs, il2cpp, companions.c   addresses -> functions and lines
 *        ├──────▶ ppdb_caches                   the same for .NET
 *        ├──────▶ cficaches                     addresses -> unwind rules
 *        ├──────▶ embedded_sources              source texts in DWARF, as a bundle (embedded_sources.c)
 *        └──────▶ proguard                      tables of JVM mappings (jvm.c)
 *     web  ─────▶ sourcefiles                   single source files, from the web or a source
 *     objects ──▶ bundled_files                 single files of artifact bundles
 *        └──────▶ sourcemap_caches              positions in scripts -> positions in their sources
 *     dumps ────▶ diagnostics                   minidumps that could not be processed, for a while
 *     stores ───▶ mozilla_syms                  table of a module from Mozilla's symbol stores (search/mozilla.c)
 *     uploads ──▶ symbfile_index                index for lookups in uploaded symbfiles (symbfile_store/index.c)
 *     PDBs ─────▶ ms_symcaches                  SymCache files (transcode/ms_symcaches.c)
 *     packages ─▶ scan_file                 what is in a scanned file or package (scan/record.c)
 *     commands ─▶ own_symcaches                 tables that a command made from local files
 *
 * An arrow is a computation: get the entry on the left, have a converter (conversion/converter.h) write the entry on the right.
 * Requests and keys of entries are in request.c. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "conversion/converter.h"

extern const struct cache_kind *const catalog_kinds[];
extern const size_t catalog_kind_count;
extern const struct converter *const catalog_converters[];
extern const size_t catalog_converter_count;

/* Uses OpenSSL, the C library's time zone and iconv once, as they read files at their first use. The process from which workers are forked
 * calls it (see isolation_prepare): workers may not open files. */
void catalog_prepare_workers(void);

/* Passes the configuration to the modules; call it at start and for each new configuration. It must live until the next call, the last one
 * until catalog_close. */
void catalog_init(const struct config *config);
void catalog_close(void); /* before cache_close */
