#include "kinds/auxiliary.h"
#include "kinds/symbfiles.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Nothing is kept under this name any more; the row is there so that what older versions left expires. */
static const struct cache_kind kind_diagnostics = {.name = "diagnostics", .section = CACHE_DIAGNOSTICS, .version = 1};

const struct cache_kind *const kinds_all[] = {
    &kind_objects, &kind_object_meta,  &kind_symcaches,      &kind_ppdb_caches,      &kind_source_files, &kind_auxdifs,
    &kind_il2cpp,  &kind_source_index, &kind_symbfile_index, &kind_embedded_sources, &kind_diagnostics};
const size_t kinds_all_count = sizeof kinds_all / sizeof *kinds_all;

static const struct config *_Atomic configured;
static struct sl_object_limits limits[2]; /* jobs on the pool may still read those before */
static const struct sl_object_limits *_Atomic current_limits;

void kinds_init(const struct config *config)
{
    configured = config;
    symbfiles_init(config);
    struct sl_object_limits *next = &limits[current_limits == &limits[0]];
    *next = (struct sl_object_limits){.max_section_size = config->object_max_section_size};
    current_limits = next;
    struct origin_options options = {
        .sentry_index_capacity = (size_t)config->sentry_index_capacity,
        .sentry_index_ttl_ns = config->cache_dir ? config->sentry_index_ttl_ns : 0,
        .gcs_token_capacity = (size_t)config->gcs_token_capacity,
        .s3_client_capacity = (size_t)config->s3_client_capacity,
        .file_ptr_roots = config->file_ptr_roots,
        .file_ptr_root_count = config->file_ptr_root_count,
        .unc_map = config->file_ptr_unc_map,
        .unc_map_count = config->file_ptr_unc_map_count,
    };
    origin_init(&options);
}

const struct config *kinds_config(void)
{
    return configured;
}

const struct sl_object_limits *kinds_object_limits(void)
{
    return current_limits;
}

enum sl_code kinds_write(int fd, struct sl_bytes bytes, struct sl_error *error)
{
    return sl_write_all_at(fd, bytes, 0)
               ? SL_OK
               : sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
}
