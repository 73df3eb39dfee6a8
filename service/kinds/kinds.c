#include "kinds/auxiliary.h"
#include "kinds/conversion.h"
#include "kinds/mozilla_health.h"
#include "kinds/ms_symcaches.h"
#include "kinds/search.h"
#include "kinds/symbfiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

/* Every kind: a row for one that its file defines as `kind_<row>`. */
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
    ROW(own_symcaches)                                                                                                 \
    ROW(diagnostics)

#define DECLARE(name) extern const struct cache_kind kind_##name;
KINDS(DECLARE)

#define PLACE(name) &kind_##name,
const struct cache_kind *const kinds_all[] = {KINDS(PLACE)};
const size_t kinds_all_count = sizeof kinds_all / sizeof *kinds_all;

static const struct config *configured;
static _Atomic uint64_t max_section_size, max_source_size, max_unwind_chain, max_memory; /* for the pool */

void kinds_init(const struct config *config)
{
    configured = config;
    remember_nothing();
    symbfiles_init(config);
    conversions_configure(config);
    max_section_size = config->object_max_section_size;
    max_source_size = config->object_max_source_size;
    max_unwind_chain = config->max_unwind_chain;
    max_memory = config->conversion.max_memory;
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

void kinds_cut(void)
{
    conversions_cut();
}

void kinds_close(void)
{
    symbfiles_close();
    remember_nothing();
    ms_symcaches_close();
    symbfile_answers_forget();
    mozilla_health_forget();
    origin_close();
}

const struct config *kinds_config(void)
{
    return configured;
}

enum sl_code kinds_open_object(struct sl_bytes file, struct sl_budget *budget, struct sl_object **object,
                               struct sl_error *error)
{
    struct sl_object_limits limits = kinds_object_limits();
    limits.budget = budget;
    return sl_object_open(file, &limits, object, error);
}

struct sl_object_limits kinds_object_limits(void)
{
    return (struct sl_object_limits){.max_section_size = max_section_size, .max_unwind_chain = max_unwind_chain};
}

uint64_t kinds_max_source_size(void)
{
    return max_source_size;
}

uint64_t kinds_max_memory(void)
{
    return max_memory;
}

enum sl_code kinds_write(int fd, struct sl_bytes bytes, struct sl_error *error)
{
    return sl_write_all_at(fd, bytes, 0)
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
}

uint64_t kinds_size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

enum sl_code kinds_load(struct sl_bytes bytes, size_t size, kinds_opener *open, void **loaded, uint64_t *weight,
                        struct sl_error *error)
{
    void *table = calloc(1, size);
    if (!table)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = open(bytes, table, error);
    if (code != SL_OK) {
        free(table);
        return code;
    }
    *loaded = table;
    *weight = size;
    return SL_OK;
}
