/* Connection options of the Redis that the shared cache uses. */
#pragma once

#include "config/config.h"
#include "redis/redis.h"

/* Sets the connection options from the configuration, to which their texts belong. SL_MALFORMED: `*key` is the invalid configuration
 * key. */
enum sl_code cache_redis_options(const struct config *config, struct redis_options *options, const char **key,
                                 struct sl_error *error);
