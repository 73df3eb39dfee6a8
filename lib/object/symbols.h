/* Cached symbols of an object, for callers that need them more than once. */
#pragma once

#include "object/object.h"

/* Like sl_object_symbols, but reads them once; the list lives as long as the object. One thread at a time. */
enum sl_code sl_object_cached_symbols(struct sl_object *object, const struct sl_symbol **symbols, size_t *count,
                                      struct sl_error *error);
