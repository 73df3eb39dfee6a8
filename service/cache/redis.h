/* The Redis of the configuration. */
#pragma once

#include "config/config.h"
#include "redis/redis.h"

/* Sets the options, whose texts belong to the configuration. SL_MALFORMED: `*key` is the invalid key. */
enum sl_code cache_redis_options(const struct config *config, struct redis_options *options, const char **key,
                                 struct sl_error *error);
