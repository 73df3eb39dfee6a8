/* What columns.c makes of a message against what protobuf-c makes of it. */
#pragma once

#include "base/bytes.h"

enum sameness {
    LEFT_TO_PROTOBUF, /* columns.c gave no answer */
    SAME,
    DIFFERENT,
};
enum sameness same_range(struct sl_bytes body);
enum sameness same_pad(struct sl_bytes body);
