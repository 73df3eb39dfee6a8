/* The grammar of lines in text reports. Callers have trimmed white space at the end of the line. */
#include "apple/impl.h"

/* Removes `word` from the beginning of `*rest`; false if that begins otherwise. */
static bool take_word(struct sl_str *rest, const char *word)
{
    if (!sl_str_starts(*rest, sl_str(word)))
        return false;
    *rest = apple_skip(*rest, strlen(word));
    return true;
}

/* Removes white space from the beginning of `*rest`; false if there is none. */
static bool take_blanks(struct sl_str *rest)
{
    size_t size = 0;
    while (size < rest->size && sl_is_blank(rest->data[size]))
        size++;
    *rest = apple_skip(*rest, size);
    return size > 0;
}

enum apple_number apple_take_number(struct sl_str *rest, uint64_t *value)
{
    size_t before = rest->size;
    bool good = sl_str_take_u64(rest, value); /* false with digits removed: they exceed 64 bits */
    return good ? APPLE_NUMBER : rest->size < before ? APPLE_TOO_LARGE : APPLE_NONE;
}

/* Removes "0x" and hex digits from the beginning of `*rest`. APPLE_TOO_LARGE: they were removed, but do not fit into 64 bits. APPLE_NONE:
 * nothing was removed. */
static enum apple_number take_hex(struct sl_str *rest, uint64_t *value)
{
    size_t size = 2;
    bool over = false;
    *value = 0;
    if (rest->size < 3 || rest->data[0] != '0' || rest->data[1] != 'x' || sl_hex_digit(rest->data[2]) < 0)
        return APPLE_NONE;
    for (; size < rest->size && sl_hex_digit(rest->data[size]) >= 0; size++) {
        over |= *value >> 60 != 0;
        *value = *value << 4 | (uint64_t)sl_hex_digit(rest->data[size]);
    }
    *rest = apple_skip(*rest, size);
    return over ? APPLE_TOO_LARGE : APPLE_NUMBER;
}

/* ---- threads ---- */

/* Removes "Thread <number>" from the beginning of `*rest`; false if that begins otherwise. A number beyond 64 bits only clears
 * thread->fits. */
static bool take_thread(struct sl_str *rest, struct apple_thread_line *thread)
{
    if (!take_word(rest, "Thread "))
        return false;
    enum apple_number number = apple_take_number(rest, &thread->number);
    thread->fits = number == APPLE_NUMBER;
    return number != APPLE_NONE;
}

/* Returns the name in "<name> Dispatch queue: <queue>", or the queue if there is no name; the whole text if it names no queue. */
static struct sl_str name_or_queue(struct sl_str text)
{
    static const char label[] = "Dispatch queue:";
    text = sl_str_trimmed(text);
    const char *queue = text.size ? memmem(text.data, text.size, label, sizeof label - 1) : NULL;
    if (queue == text.data) /* the text begins with the label; or both are NULL: there is no text */
        return queue ? sl_str_trimmed(apple_skip(text, sizeof label - 1)) : text;
    while (queue && !sl_is_blank(queue[-1])) { /* without white space before it, the label is part of the name */
        struct sl_str rest = apple_skip(text, (size_t)(queue - text.data) + 1);
        queue = memmem(rest.data, rest.size, label, sizeof label - 1);
    }
    return queue ? sl_str_trimmed((struct sl_str){text.data, (size_t)(queue - text.data)}) : text;
}

/* Reads "Thread 0 Crashed:", "Thread 0:: name" or "Thread 0: name"; after "::" the text may also name a dispatch queue. */
bool apple_thread_header(struct sl_str line, struct apple_thread_line *thread)
{
    *thread = (struct apple_thread_line){0};
    if (!take_thread(&line, thread))
        return false;
    thread->crashed = take_word(&line, " Crashed");
    if (!take_word(&line, ":"))
        return false;
    thread->name = take_word(&line, ":") ? name_or_queue(line) : sl_str_trimmed(line);
    return true;
}

/* Reads "Thread 5 name: text"; false for other lines, and if no text follows. */
bool apple_thread_name(struct sl_str line, struct apple_thread_line *thread)
{
    *thread = (struct apple_thread_line){0};
    if (!take_thread(&line, thread) || !take_word(&line, " name:"))
        return false;
    thread->name = name_or_queue(line);
    return thread->name.size > 0;
}

/* ---- registers and addresses ---- */

/* True for a line like "Thread 5 crashed with ARM Thread State (64-bit):", after which the registers are listed, for any processor. */
bool apple_registers_header(struct sl_str line)
{
    static const char *const ends[] = {" Thread State:", " Thread State (64-bit):", " Thread State (32-bit):"};
    struct apple_thread_line thread;
    if (!take_thread(&line, &thread) || !take_word(&line, " crashed with "))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sl_str_ends(line, sl_str(ends[i])))
            return true;
    return false;
}

static bool in_register_name(char c)
{
    return sl_is_digit(c) || (c >= 'a' && c <= 'z');
}

/* Searches for a colon with a name directly before it and a hex number after it: "x0: 0x0000000000000001". */
bool apple_next_register(struct sl_str *rest, struct sl_crash_register *reg)
{
    const char *colon;
    while (rest->size && (colon = memchr(rest->data, ':', rest->size))) {
        const char *begin = colon;
        while (begin > rest->data && in_register_name(begin[-1]))
            begin--;
        reg->name = (struct sl_str){begin, (size_t)(colon - begin)};
        *rest = apple_skip(*rest, (size_t)(colon - rest->data) + 1);
        if (reg->name.size && take_blanks(rest) && take_hex(rest, &reg->value) == APPLE_NUMBER)
            return true;
    }
    return false;
}

bool apple_next_address(struct sl_str *rest, uint64_t *address)
{
    for (;;) {
        while (rest->size && (sl_is_blank(rest->data[0]) || rest->data[0] == '(' || rest->data[0] == ')'))
            *rest = apple_skip(*rest, 1);
        enum apple_number number = take_hex(rest, address);
        if (number != APPLE_TOO_LARGE)
            return number == APPLE_NUMBER;
    }
}

/* ---- frames ---- */

/* Removes "<image> <address>" from the beginning of `*rest`. The image's name may contain blanks: it ends before the first word that is a
 * hex number. False if there is no such word; an address that exceeds 64 bits only clears line->fits. */
static bool take_image_and_address(struct sl_str *rest, struct apple_frame_line *line)
{
    const char *begin = rest->data;
    for (struct sl_str left = *rest; left.size;) {
        size_t word = 0;
        while (word < left.size && !sl_is_blank(left.data[word]))
            word++;
        left = apple_skip(left, word);
        const char *end = left.data;
        if (!take_blanks(&left))
            return false;
        struct sl_str after = left;
        enum apple_number number = take_hex(&after, &line->frame.address);
        if (number != APPLE_NONE && (!after.size || sl_is_blank(after.data[0]))) {
            line->fits = number == APPLE_NUMBER;
            line->frame.package = (struct sl_str){begin, (size_t)(end - begin)};
            *rest = after;
            return true;
        }
    }
    return false;
}

/* Removes " + <number>", the offset in the function, from the end of `*symbol` and records it in the frame, unless it exceeds 64 bits. */
static void cut_offset(struct sl_str *symbol, struct sl_crash_frame *frame)
{
    size_t size = symbol->size;
    uint64_t offset;
    while (size && sl_is_digit(symbol->data[size - 1]))
        size--;
    if (size == symbol->size || size < 3 || memcmp(symbol->data + size - 3, " + ", 3) != 0)
        return;
    struct sl_str digits = apple_skip(*symbol, size);
    symbol->size = size - 3;
    if (apple_take_number(&digits, &offset) == APPLE_NUMBER)
        sl_crash_set_symbol(frame, offset);
}

/* Console marks inlined calls with "[inlined]": removes that mark from the end of `*symbol`. */
static void cut_inlined(struct sl_str *symbol)
{
    const struct sl_str mark = SL_STR("[inlined]");
    if (sl_str_ends(*symbol, mark))
        *symbol = sl_str_trimmed((struct sl_str){symbol->data, symbol->size - mark.size});
}

/* Removes " (<file>:<line>)" from the end of `*symbol` and sets file and line of the frame; a text of another form stays as it is. A line
 * that is too large counts as unknown (0), and `<compiler-generated>` is no file. */
static void cut_position(struct sl_str *symbol, struct sl_crash_frame *frame)
{
    const char *open =
        symbol->size && symbol->data[symbol->size - 1] == ')' ? memrchr(symbol->data, '(', symbol->size) : NULL;
    if (!open || open == symbol->data || open[-1] != ' ')
        return;
    struct sl_str inside = {open + 1, (size_t)(symbol->data + symbol->size - open) - 2}; /* without the parentheses */
    const char *colon = memrchr(inside.data, ':', inside.size);
    if (!colon)
        return;
    uint64_t line;
    struct sl_str digits = apple_skip(inside, (size_t)(colon - inside.data) + 1);
    enum apple_number number = apple_take_number(&digits, &line);
    if (number == APPLE_NONE || digits.size)
        return;
    struct sl_str name = {inside.data, (size_t)(colon - inside.data)};
    if (!sl_str_equal(name, SL_STR("<compiler-generated>")))
        frame->filename = name;
    frame->line = number == APPLE_NUMBER && line <= SL_CRASH_MAX_LINE ? (uint32_t)line : 0;
    symbol->size = (size_t)(open - symbol->data) - 1; /* also without the blank before the parenthesis */
}

static bool is_hex_number(struct sl_str text)
{
    uint64_t value;
    return take_hex(&text, &value) != APPLE_NONE && !text.size;
}

/* Reads a line like "0  My App  0x1000040c0 main + 12 (main.c:7) [inlined]" from both ends, as names may contain blanks: number, image and
 * address from the front; then "[inlined]", source position and offset from the back. What is left is the function. If that is a hex number
 * (the image's base) or "???", the function is unknown, and the offset is one in the image. False for other lines. */
bool apple_frame_line(struct sl_str line, struct apple_frame_line *frame)
{
    uint64_t number;
    *frame = (struct apple_frame_line){0};
    if (apple_take_number(&line, &number) == APPLE_NONE || !take_blanks(&line) || !take_image_and_address(&line, frame))
        return false;
    if (sl_str_equal(frame->frame.package, SL_STR("???")))
        frame->frame.package = (struct sl_str){NULL, 0};
    take_blanks(&line);
    cut_inlined(&line);
    cut_position(&line, &frame->frame);
    cut_offset(&line, &frame->frame);
    if (line.size && !is_hex_number(line) && !sl_str_equal(line, SL_STR("???")))
        frame->frame.function = line;
    else
        frame->frame.symbol_offset = 0; /* cut_offset() has set it, but it is an offset in the image */
    return true;
}

/* ---- images ---- */

/* Finds the last "<...>" that contains only hex digits and dashes, has white space before it, and white space or the end of the line after
 * it. `*rest` becomes the text before it, `*path` the text after it. False if there is none. */
static bool cut_uuid(struct sl_str *rest, struct sl_str *uuid, struct sl_str *path)
{
    const char *end = rest->data + rest->size, *open;
    for (struct sl_str left = *rest; left.size && (open = memrchr(left.data, '<', left.size));
         left.size = (size_t)(open - left.data)) {
        const char *close = open + 1;
        while (close < end && (sl_hex_digit(*close) >= 0 || *close == '-'))
            close++;
        if (close == open + 1 || close == end || *close != '>' || open == left.data || !sl_is_blank(open[-1]) ||
            (close + 1 < end && !sl_is_blank(close[1])))
            continue;
        *uuid = (struct sl_str){open + 1, (size_t)(close - open) - 1};
        *path = sl_str_trimmed((struct sl_str){close + 1, (size_t)(end - close) - 1});
        *rest = sl_str_trimmed((struct sl_str){left.data, (size_t)(open - left.data)});
        return true;
    }
    return false;
}

/* Returns the name, which may contain blanks, in "+<name> <arch> (<version>)"; each of the other parts may be absent. */
static struct sl_str image_name(struct sl_str text)
{
    const char *open = text.size && text.data[text.size - 1] == ')' ? memrchr(text.data, '(', text.size) : NULL;
    if (open)
        text = sl_str_trimmed((struct sl_str){text.data, (size_t)(open - text.data)});
    if (text.size && (text.data[0] == '+' || text.data[0] == '*')) /* +: not Apple's, *: the kernel's */
        text = apple_skip(text, 1);
    const char *blank = text.size ? memrchr(text.data, ' ', text.size) : NULL;
    if (blank && sl_arch_parse(apple_skip(text, (size_t)(blank - text.data) + 1)) != SL_ARCH_UNKNOWN)
        text.size = (size_t)(blank - text.data);
    return sl_str_trimmed(text);
}

/* Reads "0x1000 - 0x1fff +app arm64 (1.0) <2d903291...> /path/app"; false for other lines. Addresses that exceed 64 bits only clear
 * `fits`, so that the line still counts as one of the image list. */
bool apple_image_line(struct sl_str line, struct apple_image_line *image)
{
    *image = (struct apple_image_line){0};
    take_blanks(&line);
    enum apple_number begin = take_hex(&line, &image->begin);
    take_blanks(&line);
    bool dash = take_word(&line, "-");
    take_blanks(&line);
    enum apple_number end = take_hex(&line, &image->end);
    if (end == APPLE_NONE && take_word(&line, "???")) { /* spindump writes it for executables: the end is unknown */
        image->end = image->begin;
        end = begin;
    }
    if (begin == APPLE_NONE || !dash || end == APPLE_NONE || !take_blanks(&line) ||
        !cut_uuid(&line, &image->uuid, &image->path))
        return false;
    image->fits = begin == APPLE_NUMBER && end == APPLE_NUMBER;
    image->name = image_name(line);
    return true;
}

bool apple_key_value(struct sl_str line, struct sl_str *key, struct sl_str *value)
{
    const char *colon = line.size ? memchr(line.data, ':', line.size) : NULL;
    if (!colon)
        return false;
    *key = sl_str_trimmed((struct sl_str){line.data, (size_t)(colon - line.data)});
    *value = sl_str_trimmed((struct sl_str){colon + 1, (size_t)(line.data + line.size - colon) - 1});
    return true;
}
