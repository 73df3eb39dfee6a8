#include "cli/run/refused.h"

#include "core/log.h"
#include "fetch/fetch.h"
#include "origin/origin.h"

static void warn_if_refused(const struct source *source, struct sl_arena *arena)
{
    const char *url = source->type == SOURCE_HTTP && !source->internal
                          ? sl_arena_strndup(arena, source->url.data, source->url.size)
                          : NULL;
    const char *host = url ? fetch_url_host(arena, url) : NULL;
    if (host && fetch_is_host_refused(host))
        log_warn(
            "fetch",
            "a configured source will not be asked: its address is reserved. To allow it, set connect_to_reserved_ips "
            "or allowed_reserved_networks",
            LOG_SLSTR("source", source->id), LOG_STR("host", host));
}

void warn_of_refused_sources(const struct config *config)
{
    struct sl_arena arena = {0};
    for (size_t i = 0; i < config->source_count && !fiber_cancelled(); i++)
        warn_if_refused(&config->sources[i], &arena);
    for (size_t i = 0; config->mozilla.on && i < config->mozilla.source_count && !fiber_cancelled(); i++)
        warn_if_refused(&config->mozilla.stores[i], &arena);
    sl_arena_free(&arena);
}
