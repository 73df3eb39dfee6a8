/* Whether a text is one JSON document. */
#pragma once

#include "base/json.h"

static inline bool is_json(struct sl_str text)
{
    struct sl_json j = sl_json(text, NULL, false);
    sl_json_skip(&j);
    return sl_json_end(&j);
}
