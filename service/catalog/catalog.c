#include "catalog/catalog.h"

#include <iconv.h>
#include <langinfo.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <time.h>

#include "cache_kinds/converters.h"
#include "conversion/archives.h"
#include "conversion/conversion.h"
#include "conversion/crashes.h"
#include "conversion/disassembly.h"
#include "conversion/walks.h"
#include "debug_file_store/converters.h"
#include "origin/origin.h"
#include "scan/converters.h"
#include "scan/scan.h"
#include "search/converters.h"
#include "search/search.h"
#include "symbfile_store/converters.h"
#include "symbfile_store/symbfile_store.h"
#include "transcode/ms_symcaches.h"

/* All kinds of cache entries: each row names a table `kind_<row>` that another file defines. */
#define KINDS(ROW)                                                                                                     \
    ROW(objects)                                                                                                       \
    ROW(object_meta)                                                                                                   \
    ROW(symcaches)                                                                                                     \
    ROW(ppdb_caches)                                                                                                   \
    ROW(cficaches)                                                                                                     \
    ROW(source_files)                                                                                                  \
    ROW(bundled_files)                                                                                                 \
    ROW(sourcemap_caches)                                                                                              \
    ROW(auxdifs)                                                                                                       \
    ROW(il2cpp)                                                                                                        \
    ROW(source_index)                                                                                                  \
    ROW(symbfile_index)                                                                                                \
    ROW(embedded_sources)                                                                                              \
    ROW(proguard)                                                                                                      \
    ROW(mozilla_syms)                                                                                                  \
    ROW(ms_symcaches)                                                                                                  \
    ROW(scan_file)                                                                                                     \
    ROW(own_symcaches)                                                                                                 \
    ROW(diagnostics)

#define DECLARE(name) extern const struct cache_kind kind_##name;
KINDS(DECLARE)

#define ADDRESS(name) &kind_##name,
const struct cache_kind *const catalog_kinds[] = {KINDS(ADDRESS)};
const size_t catalog_kind_count = sizeof catalog_kinds / sizeof *catalog_kinds;

/* All converters that conversion_run is called with. */
const struct converter *const catalog_converters[] = {
    &converter_object_check,   &converter_object_meta,    &converter_symcache,
    &converter_ppdb_cache,     &converter_cficache,       &converter_embedded_sources,
    &converter_sourcemap,      &converter_uuidmap,        &converter_bcsymbolmap,
    &converter_il2cpp,         &converter_proguard,       &converter_mozilla_syms,
    &converter_symbfile_index, &converter_upload_check,   &converter_raw_section,
    &converter_source_path,    &converter_scan_file,      &converter_package_member,
    &converter_unpack,         &converter_artifact_index, &converter_archive_list,
    &converter_member_check,   &converter_member_write,   &converter_gzip_check,
    &converter_supplied,       &converter_disassembly,    &converter_source_text,
    &converter_script_facts,   &converter_embedded_ppdb,  &converter_apple_report,
    &converter_minidump,       &converter_core,           &converter_core_analysis,
    &converter_walk,
};
const size_t catalog_converter_count = sizeof catalog_converters / sizeof *catalog_converters;

void catalog_prepare_workers(void)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size;
    /* reads openssl.cnf; a failure is ignored, because whatever computes a hash later fails, too */
    EVP_Digest("", 0, digest, &size, EVP_sha256(), NULL);
    /* libarchive reads the times in cabinets as local ones. Without TZ, the C library asks each time whether the file of the time zone
     * has changed; these times are not used, so any zone will do. */
    setenv("TZ", "UTC0", 1);
    tzset(); /* reads the time zone, for times in crash reports too */
    /* libarchive converts names of tar and ZIP members; the C library reads its list of character sets at the first conversion */
    iconv_t names = iconv_open(nl_langinfo(CODESET), "UTF-8");
    if (names != (iconv_t)-1)
        iconv_close(names);
}

void catalog_init(const struct config *config)
{
    search_cache_clear(); /* results of searches depend on the configuration */
    conversions_configure(config);
    symbfiles_init(config);
    /* the TTL is 0 without a cache directory: then Sentry's lists of files are not cached in memory either */
    struct origin_options options = {
        .sentry_index_capacity = (size_t)config->sentry_index_capacity,
        .sentry_index_ttl_ns = config->cache_dir ? config->sentry_index_ttl_ns : 0,
        .gcs_token_capacity = (size_t)config->gcs_token_capacity,
        .s3_client_capacity = (size_t)config->s3_client_capacity,
        .file_ptr_roots = config->file_ptr_roots,
        .file_ptr_root_count = config->file_ptr_root_count,
        .unc_map = config->file_ptr_unc_map,
        .unc_map_count = config->file_ptr_unc_map_count,
        .propagate_traces = config->propagate_traces,
    };
    origin_init(&options);
}

/* Ends the modules that keep state between requests, and frees that state. */
void catalog_close(void)
{
    symbfiles_close();
    scan_close();
    search_cache_clear();
    ms_symcaches_close();
    symbfile_answers_clear();
    mozilla_health_clear();
    origin_close();
}
