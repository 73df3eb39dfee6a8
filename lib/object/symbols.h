/* The symbols of an object for those who need them more than once: read when they are first asked for, and kept. */
#pragma once

#include "object/object.h"

/* As sl_object_symbols, but the list lives as long as the object. One thread at a time. */
enum sl_code sl_object_kept_symbols(struct sl_object *object, const struct sl_symbol **symbols, size_t *count,
                                    struct sl_error *error);
