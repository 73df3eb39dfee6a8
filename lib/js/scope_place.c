#include "js/scope.h"

#include <stdlib.h>

enum { SPACING = 256 }; /* bytes between positions that are stored; a look-up counts from the last one on */

/* Moves the position past one byte. A character of four bytes in UTF-8 is two UTF-16 units, any other is one. */
static inline void pass(struct sl_js_position *place, uint8_t c)
{
    if (c == '\n')
        *place = (struct sl_js_position){place->line + 1, 0};
    else
        place->column += (c & 0xC0) != 0x80 ? 1 + (c >= 0xF0) : 0;
}

bool sl_js_line_index_build(struct sl_js_line_index *places, struct sl_str text, struct sl_budget *budget)
{
    *places = (struct sl_js_line_index){.text = text, .account.budget = budget};
    places->marks = sl_account_alloc(&places->account, text.size / SPACING + 1, sizeof *places->marks);
    if (!places->marks)
        return false;
    struct sl_js_position place = {0};
    for (size_t i = 0; i < text.size; i++) {
        if (i % SPACING == 0)
            places->marks[i / SPACING] = place;
        pass(&place, (uint8_t)text.data[i]);
    }
    if (text.size % SPACING == 0)
        places->marks[text.size / SPACING] = place;
    return true;
}

struct sl_js_position sl_js_line_index_find(const struct sl_js_line_index *places, uint32_t offset)
{
    size_t end = offset < places->text.size ? offset : places->text.size;
    struct sl_js_position place = places->marks[end / SPACING];
    for (size_t i = end / SPACING * SPACING; i < end; i++)
        pass(&place, (uint8_t)places->text.data[i]);
    return place;
}

void sl_js_line_index_free(struct sl_js_line_index *places)
{
    free(places->marks);
    sl_account_release(&places->account);
    *places = (struct sl_js_line_index){0};
}
