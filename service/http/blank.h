/* Optional white space in fields (OWS, RFC 9110, 5.6.3): spaces and tabs only. Private to this folder. */
#pragma once

#include "base/bytes.h"

static inline bool http_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Removes spaces and tabs around the text. */
static inline struct sl_str http_trim(struct sl_str text)
{
    while (text.size && http_is_blank(text.data[0]))
        text = (struct sl_str){text.data + 1, text.size - 1};
    while (text.size && http_is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}
