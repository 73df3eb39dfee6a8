/* The grammar of a row of a sampling report. */
#include "apple/samples_impl.h"

/* Returns the text from `at` on; an empty text if `at` is beyond the end. */
static struct sl_str text_from(struct sl_str text, size_t at)
{
    return apple_skip(text, at < text.size ? at : text.size);
}

/* Returns the offset of the last occurrence of `part`; the size of the text if there is none. */
static size_t find_last(struct sl_str text, struct sl_str part)
{
    for (size_t left = text.size; left >= part.size;) {
        const char *last = memrchr(text.data, part.data[0], left - part.size + 1);
        if (!last)
            break;
        if (memcmp(last, part.data, part.size) == 0)
            return (size_t)(last - text.data);
        left = (size_t)(last - text.data) + part.size - 1;
    }
    return text.size;
}

/* Returns the offset of the first occurrence of `part`; the size of the text if there is none. */
static size_t find_first(struct sl_str text, struct sl_str part)
{
    const char *found = text.size ? memmem(text.data, text.size, part.data, part.size) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

/* Returns the length of the list of numbers at the beginning, like "12,8,..."; 0 if there is none. */
static size_t numbers_size(struct sl_str text)
{
    size_t size = 0;
    while (size < text.size &&
           (sl_is_digit(text.data[size]) || (size && (text.data[size] == ',' || text.data[size] == '.'))))
        size++;
    return size;
}

/* Removes an offset like " + 12" or " + 12,8,..." from the end of `*function` and stores the numbers in `*offset`. */
static void cut_offset(struct sl_str *function, struct sl_str *offset)
{
    size_t at = find_last(*function, SL_STR(" + "));
    struct sl_str digits = text_from(*function, at + 3);
    if (at == function->size || !digits.size || numbers_size(digits) != digits.size)
        return;
    *offset = digits;
    function->size = at;
}

/* Sets file and line of the row from "main.c:7,1" (the column is ignored), "main.c:7" or "main.c". */
static void read_position(struct sl_str text, struct sl_samples_row *row)
{
    const char *colon = text.size ? memrchr(text.data, ':', text.size) : NULL;
    uint64_t line = 0;
    struct sl_str digits = colon ? text_from(text, (size_t)(colon - text.data) + 1) : SL_STR("");
    if (colon && apple_take_number(&digits, &line) == APPLE_NUMBER && line <= SL_CRASH_MAX_LINE) {
        row->source_line = (uint32_t)line;
        text.size = (size_t)(colon - text.data);
    }
    row->filename = text;
}

/* Returns the trimmed name; data NULL for "???", which stands for an unknown function. */
static struct sl_str known_function(struct sl_str function)
{
    function = sl_str_trimmed(function);
    return sl_str_equal(function, SL_STR("???")) ? (struct sl_str){NULL, 0} : function;
}

/* Parses the location of a row of sample(1): "main  (in app) + 12", "???  (in app)  load address 0x100000000 + 0x4020" or "???  (in app)".
 * `in` is the offset of "  (in ". False without a closing parenthesis. */
static bool read_sample_location(struct sl_str text, size_t in, struct sl_samples_row *row)
{
    struct sl_str inside = text_from(text, in + 6); /* after "  (in " */
    size_t close = find_first(inside, SL_STR(")"));
    if (close == inside.size)
        return false;
    row->in_sample = true;
    row->function = known_function((struct sl_str){text.data, in});
    row->image_name = row->image_and_offset = (struct sl_str){inside.data, close};
    struct sl_str rest = text_from(inside, close + 1);
    if (sl_str_starts(rest, SL_STR(" + "))) {
        rest = text_from(rest, 3);
        row->offset = (struct sl_str){rest.data, numbers_size(rest)};
    }
    return true;
}

/* Parses the location of a row of spindump: "main + 12 (main.c:7,1 in app + 16396)", "??? (app + 16416)" or "main + 12 (app)". False for a
 * location without an image, unless it is "???". */
static bool read_spindump_location(struct sl_str text, struct sl_samples_row *row)
{
    size_t open = find_last(text, SL_STR(" ("));
    row->image_and_offset = row->image_name = SL_STR("");
    if (open == text.size || text.data[text.size - 1] != ')') { /* no image: only "???" is known to stand alone */
        row->function = known_function(text);
        return !row->function.data;
    }
    struct sl_str inside = {text.data + open + 2, text.size - open - 3}, ignored;
    size_t in = find_last(inside, SL_STR(" in "));
    struct sl_str function = {text.data, open};
    if (in < inside.size) {
        read_position((struct sl_str){inside.data, in}, row);
        inside = text_from(inside, in + 4);
    }
    row->image_and_offset = row->image_name = inside;
    cut_offset(&row->image_name, &ignored);
    cut_offset(&function, &row->offset);
    row->function = known_function(function);
    return true;
}

/* Parses the "  main.c:7" that sample(1) writes after an address; a text that begins with a digit is no file. */
static void read_sample_tail(struct sl_str tail, struct sl_samples_row *row)
{
    struct sl_str position = sl_str_trimmed(tail);
    if (position.size && !sl_is_digit(position.data[0]))
        read_position(position, row);
}

/* Parses the text after the sample count, from offset `at` on: location, address, and what follows the address. False if the line is not a
 * row. */
static bool read_location(struct sl_str line, size_t at, struct sl_samples_row *row)
{
    struct sl_str rest = text_from(line, at);
    size_t bracket = find_last(rest, SL_STR(" [0x")), end = bracket;
    if (bracket == rest.size) { /* no address: "<Kernel mode>", "<patched truncated backtrace>" or "???" */
        row->name = row->name_end = row->tail = at; /* an empty location */
        row->is_kernel = sl_str_starts(rest, SL_STR("<Kernel mode>"));
        return rest.size && (rest.data[0] == '<' || sl_str_starts(rest, SL_STR("???")));
    }
    struct sl_str address = text_from(rest, bracket + 2); /* after " [" */
    if (!apple_next_address(&address, &row->address))
        return false;
    row->has_address = true;
    row->has_several = address.size && address.data[0] == ','; /* "[0x1000,0x1010,...]": the first one is read */
    size_t close = find_first(address, SL_STR("]"));
    row->tail = close < address.size ? line.size - address.size + close + 1 : line.size;
    while (end && sl_is_blank(rest.data[end - 1]))
        end--;
    struct sl_str location = {rest.data, end};
    row->name = at;
    row->name_end = at + end;
    size_t in = find_first(location, SL_STR("  (in "));
    if (in == location.size)
        return read_spindump_location(location, row);
    read_sample_tail(text_from(line, row->tail), row);
    return read_sample_location(location, in, row);
}

bool samples_is_mark(char c)
{
    return c && strchr(" \t+!:|*", c);
}

bool samples_row(struct sl_str line, bool has_count, struct sl_samples_row *row)
{
    size_t at = 0;
    *row = (struct sl_samples_row){.caller = SL_SAMPLES_NONE, .image = SL_SAMPLES_NONE};
    while (at < line.size && samples_is_mark(line.data[at])) {
        row->is_kernel |= line.data[at] == '*'; /* spindump marks rows in the kernel with it */
        at++;
    }
    row->column = at;
    struct sl_str rest = text_from(line, at);
    bool is_kernel = row->is_kernel;
    if (has_count) {
        if (apple_take_number(&rest, &row->count) != APPLE_NUMBER || !rest.size || !sl_is_blank(rest.data[0]))
            return false;
        while (rest.size && sl_is_blank(rest.data[0]))
            rest = text_from(rest, 1);
    }
    bool is_row = read_location(line, line.size - rest.size, row);
    row->is_kernel |= is_kernel; /* read_location() may have cleared it */
    return is_row;
}
