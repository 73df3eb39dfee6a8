/* Converts byte offsets in a script to lines and columns, from stored positions of every 256th byte. */
#include "js/scope.h"

#include <stdlib.h>

enum { SPACING = 256 }; /* bytes between positions that are stored; a look-up counts from the last one on */

/* Moves the position past one byte of UTF-8. Columns are UTF-16 units: a character of four bytes is two units, any other is one.
 * Continuation bytes (0x80 to 0xBF) count nothing. */
static inline void move_past(struct sl_js_position *position, uint8_t c)
{
    if (c == '\n')
        *position = (struct sl_js_position){position->line + 1, 0};
    else
        position->column += (c & 0xC0) != 0x80 ? 1 + (c >= 0xF0) : 0;
}

bool sl_js_line_index_build(struct sl_js_line_index *places, struct sl_str text, struct sl_budget *budget)
{
    *places = (struct sl_js_line_index){.text = text, .account.budget = budget};
    places->marks = sl_account_alloc(&places->account, text.size / SPACING + 1, sizeof *places->marks);
    if (!places->marks)
        return false;
    struct sl_js_position position = {0};
    for (size_t i = 0; i < text.size; i++) {
        if (i % SPACING == 0)
            places->marks[i / SPACING] = position;
        move_past(&position, (uint8_t)text.data[i]);
    }
    if (text.size % SPACING == 0) /* the end of the text, which can be looked up as well, is a stored position */
        places->marks[text.size / SPACING] = position;
    return true;
}

/* Starts at the last stored position before `offset` and counts on from there, less than SPACING bytes. An offset behind the text is taken
 * as its end. */
struct sl_js_position sl_js_line_index_find(const struct sl_js_line_index *places, uint32_t offset)
{
    size_t end = offset < places->text.size ? offset : places->text.size;
    struct sl_js_position position = places->marks[end / SPACING];
    for (size_t i = end / SPACING * SPACING; i < end; i++)
        move_past(&position, (uint8_t)places->text.data[i]);
    return position;
}

void sl_js_line_index_free(struct sl_js_line_index *places)
{
    free(places->marks);
    sl_account_release(&places->account);
    *places = (struct sl_js_line_index){0};
}
