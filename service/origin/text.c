/* Helpers for several kinds of sources. */
#include "origin/failures.h"
#include "origin/impl.h"

const char *origin_label(struct sl_arena *arena, const struct source *source)
{
    bool known = source->configured || sl_str_starts(source->id, SL_STR("sentry:"));
    return known ? sl_arena_strndup(arena, source->id.size ? source->id.data : "", source->id.size) : "custom";
}

struct origin_options origin_options;

enum { INDEXES_MAX = 100 };

void origin_forget(void)
{
    sentry_forget();
    artifacts_forget();
    index_forget();
    build_ids_forget();
}

void origin_close(void)
{
    build_ids_close();
    any_case_forget();
    object_credentials_forget();
    sentry_init(0, 0);
    artifacts_init(0, 0);
    index_init(0);
    health_forget();
    origin_failures_forget();
}

void origin_init(const struct origin_options *options)
{
    origin_options = *options;
    object_credentials_keep(options->s3_client_capacity, options->gcs_token_capacity);
    sentry_init(options->sentry_index_capacity, options->sentry_index_ttl_ns);
    artifacts_init(options->sentry_index_capacity, options->sentry_index_ttl_ns);
    index_init(INDEXES_MAX);
}
