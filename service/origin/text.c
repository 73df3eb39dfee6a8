/* Helpers for several kinds of sources. */
#include "origin/failures.h"
#include "origin/impl.h"

/* Sources with ids that begin with "sentry:" are Sentry's built-in ones. */
const char *origin_label(struct sl_arena *arena, const struct source *source)
{
    bool known = source->configured || sl_str_starts(source->id, SL_STR("sentry:"));
    return known ? sl_arena_strndup(arena, source->id.size ? source->id.data : "", source->id.size) : "custom";
}

struct origin_options origin_options;

enum { INDEXES_MAX = 100 };

void origin_clear_caches(void)
{
    sentry_clear_cache();
    artifacts_clear_cache();
    index_clear_cache();
    build_ids_clear_cache();
}

void origin_close(void)
{
    build_ids_close();
    any_case_clear_cache();
    object_credentials_clear();
    sentry_init(0, 0); /* a capacity of 0 frees all entries */
    artifacts_init(0, 0);
    index_init(0);
    health_clear();
    origin_failures_clear();
}

void origin_init(const struct origin_options *options)
{
    origin_options = *options;
    object_credentials_resize_cache(options->s3_client_capacity, options->gcs_token_capacity);
    sentry_init(options->sentry_index_capacity, options->sentry_index_ttl_ns);
    artifacts_init(options->sentry_index_capacity, options->sentry_index_ttl_ns);
    index_init(INDEXES_MAX);
}
