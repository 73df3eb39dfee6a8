/* Repeated calls of a stack: f, g, f, g ... of a recursion without end is told in one line. */
#include "cli/symbolicate/answer.h"

#include "cli/cli.h"

enum { MOST_IN_CYCLE = 16, FEWEST_FOLDED = 32 };

static bool is_same_call(const struct answer_frame *a, const struct answer_frame *b)
{
    return a->address.set && b->address.set && a->address.value == b->address.value &&
           sl_str_equal(a->function, b->function) && a->line.value == b->line.value;
}

/* Whole cycles of `length` frames from `index` on that are the same as the one in front of it; in frames. */
static size_t repeated(const struct answer_thread *thread, size_t index, size_t length)
{
    size_t end = index;
    while (end < thread->frame_count && is_same_call(&thread->frames[end], &thread->frames[end - length]))
        end++;
    return (end - index) / length * length;
}

/* In groups of three digits. */
static void put_count(struct sl_buf *out, size_t count)
{
    if (count >= 1000) {
        put_count(out, count / 1000);
        sl_buf_printf(out, ",%03zu", count % 1000);
    } else {
        sl_buf_printf(out, "%zu", count);
    }
}

static void put_cycle(const struct answer_thread *thread, size_t index, size_t length, size_t count, struct sl_buf *out)
{
    sl_buf_cstr(out, "... ");
    put_count(out, count);
    sl_buf_cstr(out, " frames of ");
    for (size_t i = 0; i < length; i++) { /* callers first */
        const struct answer_frame *frame = &thread->frames[index - 1 - i];
        struct sl_str name = frame->function.size ? frame->function : frame->symbol;
        sl_buf_cstr(out, i ? " -> " : "");
        if (name.size)
            output_put_safe(out, name);
        else
            sl_buf_printf(out, "0x%llx", (unsigned long long)frame->address.value);
    }
    sl_buf_cstr(out, " repeat (");
    put_count(out, thread->frame_count);
    sl_buf_cstr(out, " in all) ...\n");
}

size_t answer_fold_cycle(const struct answer_thread *thread, size_t index, struct sl_buf *line)
{
    for (size_t length = 1; length <= MOST_IN_CYCLE && length <= index; length++) {
        size_t count = repeated(thread, index, length);
        if (count < FEWEST_FOLDED)
            continue;
        put_cycle(thread, index, length, count, line);
        return count;
    }
    return 0;
}
