/* Cached symbols of an object, for callers that need them more than once. */
#pragma once

#include "object/object.h"

/* Returns the list that sl_object_symbols() reads. It is read at the first call and lives as long as the object. After an error the list is
 * empty and the next call tries again. One thread at a time. */
enum sl_code sl_object_cached_symbols(struct sl_object *object, const struct sl_symbol **symbols, size_t *count,
                                      struct sl_error *error);
