/* Names as they are mangled, and as people read them. */
#pragma once

#include "../check.h"

#include "demangle/demangle.h"

struct pair {
    const char *mangled, *readable;
};

static inline void expect_pairs(const struct pair *pairs, size_t count, enum sl_language language)
{
    for (size_t i = 0; i < count; i++) {
        struct sl_buf out = {0};
        bool good = sl_demangle(sl_str(pairs[i].mangled), language, &out);
        sl_buf_u8(&out, 0);
        if (!good)
            fail_msg("not understood: %s", pairs[i].mangled);
        assert_string_equal((char *)out.data, pairs[i].readable);
        sl_buf_free(&out);
    }
}
