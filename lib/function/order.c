#include "function/order.h"

#include <stdbool.h>
#include <string.h>

struct sorted_run {
    size_t start, count;
};

/* True if `a` comes before `b`. Equal items do not come before each other: that keeps the sort stable. */
static inline bool before(const struct sl_ordered *a, const struct sl_ordered *b)
{
    return a->key != b->key ? a->key < b->key : a->minor < b->minor;
}

/* Merges two adjacent ascending runs in place; moves only the items that overlap. `scratch` has room for those of run `a`. */
static void merge(struct sl_ordered *items, struct sl_ordered *scratch, struct sorted_run a, struct sorted_run b)
{
    struct sl_ordered *left = items + a.start, *right = items + b.start, *end = right + b.count;
    while (left < right && !before(right, left))
        left++;
    if (left == right)
        return;
    while (!before(end - 1, right - 1)) /* items at the end that stay where they are */
        end--;
    size_t moved = (size_t)(right - left);
    memcpy(scratch, left, moved * sizeof *left);
    const struct sl_ordered *from = scratch, *stop = scratch + moved;
    while (from < stop && right < end)
        *left++ = before(right, from) ? *right++ : *from++;
    memcpy(left, from, (size_t)(stop - from) * sizeof *left);
}

/* Merge sort of the ascending runs that the input has already: input that is nearly sorted costs little. */
void sl_order(struct sl_ordered *items, struct sl_ordered *scratch, size_t count)
{
    struct sorted_run stack[64]; /* each run is more than twice as long as the next, so 64 suffice for any count */
    size_t height = 0;
    for (size_t at = 0; at < count;) {
        size_t start = at++;
        while (at < count && !before(&items[at], &items[at - 1]))
            at++;
        stack[height++] = (struct sorted_run){start, at - start};
        while (height > 1 && (at == count || stack[height - 2].count <= 2 * stack[height - 1].count)) {
            merge(items, scratch, stack[height - 2], stack[height - 1]);
            stack[height - 2].count += stack[height - 1].count;
            height--;
        }
    }
}
