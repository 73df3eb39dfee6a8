/* Which Redis the configuration names, for whoever connects to it. */
#pragma once

#include "config/config.h"
#include "redis/redis.h"

/* SL_MALFORMED: `*key` is the key that is of no use. The texts are the configuration's. */
enum sl_code cache_redis_options(const struct config *config, struct redis_options *options, const char **key,
                                 struct sl_error *error);
