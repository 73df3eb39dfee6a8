/* Comparison functions for qsort(). */
#pragma once

#include <stdint.h>

/* Defines `name`, which compares two items of `type` by up to four members in ascending order: by the first, if equal by the
 * second, and so on. The members are numbers or pointers.
 *
 *     SL_ORDER_BY(line_by_address, struct line, address, order)
 *     qsort(lines, count, sizeof *lines, line_by_address); */
#define SL_ORDER_BY(name, type, ...)                                                                                   \
    static int name(const void *sl_left, const void *sl_right)                                                         \
    {                                                                                                                  \
        const type *sl_a = sl_left, *sl_b = sl_right;                                                                  \
        SL_ORDER_OF(__VA_ARGS__, SL_ORDER_4, SL_ORDER_3, SL_ORDER_2, SL_ORDER_1, )(__VA_ARGS__)                        \
    }
/* Selects the macro for as many members as there are. */
#define SL_ORDER_OF(m1, m2, m3, m4, steps, ...) steps
#define SL_ORDER_STEP(m)                                                                                               \
    if (sl_a->m != sl_b->m)                                                                                            \
        return sl_a->m < sl_b->m ? -1 : 1;
#define SL_ORDER_1(m)      return (sl_a->m > sl_b->m) - (sl_a->m < sl_b->m);
#define SL_ORDER_2(m, ...) SL_ORDER_STEP(m) SL_ORDER_1(__VA_ARGS__)
#define SL_ORDER_3(m, ...) SL_ORDER_STEP(m) SL_ORDER_2(__VA_ARGS__)
#define SL_ORDER_4(m, ...) SL_ORDER_STEP(m) SL_ORDER_3(__VA_ARGS__)

/* Compares two uint64_t in ascending order. */
static inline int sl_order_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}
