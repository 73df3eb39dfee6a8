/* Connection options of the Redis that the shared cache uses. */
#pragma once

#include "config/config.h"
#include "redis/redis.h"

/* Sets the connection options from the configuration, which must outlive them: their texts are its own. SL_MALFORMED: `*key` is the
 * configuration key at fault. */
enum sl_code cache_redis_options(const struct config *config, struct redis_options *options, const char **key,
                                 struct sl_error *error);
