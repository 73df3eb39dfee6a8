#include "js/stack.h"

/* ":12" at the end of the text, which is cut off; false when there is none. */
static bool cut_number(struct sl_str *text, uint32_t *number)
{
    size_t at = text->size;
    uint64_t value = 0, place = 1;
    while (at > 0 && sl_is_digit(text->data[at - 1]) && place <= 1000000000) {
        value += place * (uint64_t)(text->data[--at] - '0');
        place *= 10;
    }
    if (at == text->size || at == 0 || text->data[at - 1] != ':' || value > INT32_MAX)
        return false;
    *number = (uint32_t)value;
    text->size = at - 1;
    return true;
}

/* URL:LINE:COLUMN */
static bool location(struct sl_str text, struct sl_js_stack_frame *frame)
{
    const struct sl_str address = SL_STR("address at ");
    bool hermes = sl_str_starts(text, address);
    while (sl_str_starts(text, address))
        text = (struct sl_str){text.data + address.size, text.size - address.size};
    if (!cut_number(&text, &frame->column) || !cut_number(&text, &frame->line) || !text.size || !frame->line)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '(' || text.data[i] == ')' || text.data[i] == '\t')
            return false;
    frame->column += hermes; /* an offset, from 0 */
    frame->url = text;
    return true;
}

static bool skip_word(struct sl_str *text, struct sl_str word)
{
    if (!sl_str_starts(*text, word))
        return false;
    *text = (struct sl_str){text->data + word.size, text->size - word.size};
    return true;
}

/* What stands behind "at ". */
static bool v8_frame(struct sl_str text, struct sl_js_stack_frame *frame)
{
    frame->v8 = true;
    frame->async = skip_word(&text, SL_STR("async "));
    frame->constructor = skip_word(&text, SL_STR("new "));
    if (!text.size || text.data[text.size - 1] != ')')
        return location(text, frame);
    size_t at = text.size - 1;
    while (at > 0 && text.data[at] != '(')
        at--;
    bool nameless = text.data[0] == '(' && at == 0 && (frame->async || frame->constructor);
    if (!nameless && (at < 2 || text.data[at - 1] != ' '))
        return false;
    frame->function = sl_str_trimmed((struct sl_str){text.data, nameless ? 0 : at - 1});
    return location((struct sl_str){text.data + at + 1, text.size - at - 2}, frame);
}

/* FUNCTION@URL:LINE:COLUMN, of which only functions have no colon and slash. */
static bool other_frame(struct sl_str text, struct sl_js_stack_frame *frame)
{
    const char *at = memchr(text.data, '@', text.size);
    size_t size = at ? (size_t)(at - text.data) : 0;
    bool named = at && !memchr(text.data, ':', size);
    if (named) {
        frame->function = (struct sl_str){text.data, size};
        text = (struct sl_str){at + 1, text.size - size - 1};
    }
    if (!location(text, frame) || memchr(frame->url.data, ' ', frame->url.size))
        return false;
    return named || memchr(frame->url.data, '/', frame->url.size);
}

bool sl_js_stack_frame(struct sl_str line, struct sl_js_stack_frame *frame)
{
    size_t end = line.size;
    while (end > 0 && sl_is_blank(line.data[end - 1]))
        end--;
    size_t begin = 0;
    while (begin < end && sl_is_blank(line.data[begin]))
        begin++;
    struct sl_str text = {line.data + begin, end - begin};
    *frame = (struct sl_js_stack_frame){.before = {line.data, begin}, .behind = {line.data + end, line.size - end}};
    if (!text.size)
        return false;
    if (skip_word(&text, SL_STR("at ")))
        return v8_frame(text, frame);
    return other_frame(text, frame);
}

void sl_js_stack_write(const struct sl_js_stack_frame *frame, struct sl_buf *out)
{
    bool braces = frame->v8 && frame->function.size;
    sl_buf_str(out, frame->before);
    if (frame->v8)
        sl_buf_cstr(out, "at ");
    if (frame->async)
        sl_buf_cstr(out, "async ");
    if (frame->constructor && !sl_str_starts(frame->function, SL_STR("new ")))
        sl_buf_cstr(out, "new ");
    sl_buf_str(out, frame->function);
    if (frame->v8)
        sl_buf_cstr(out, braces ? " (" : "");
    else
        sl_buf_u8(out, '@');
    sl_buf_str(out, frame->url);
    sl_buf_printf(out, ":%u:%u", frame->line, frame->column);
    if (braces)
        sl_buf_u8(out, ')');
    sl_buf_str(out, frame->behind);
}
