#include "base/bytes.h"

size_t sl_utf8_length(const uint8_t *s, size_t left)
{
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool outside = (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF4 && s[1] >= 0x90);
    return overlong || outside ? 0 : size;
}

bool sl_str_is_utf8(struct sl_str text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint64_t word;
        while (end - at >= 8 && (memcpy(&word, at, 8), !(word & UINT64_C(0x8080808080808080))))
            at += 8;
        size_t size = at < end ? sl_utf8_length(at, (size_t)(end - at)) : 1;
        if (!size)
            return false;
        at += at < end ? size : 0;
    }
    return true;
}
