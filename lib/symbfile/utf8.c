#include "symbfile/utf8.h"

bool symbfile_is_utf8(struct sl_str text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint64_t word;
        if (end - at >= 8 && (memcpy(&word, at, 8), (word & UINT64_C(0x8080808080808080)) == 0)) {
            at += 8;
            continue;
        }
        uint8_t c = *at;
        if (c < 0x80) {
            at++;
            continue;
        }
        ptrdiff_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        if (c < 0xC2 || c > 0xF4 || end - at < size)
            return false;
        uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        if (at[1] < low || at[1] > high)
            return false;
        for (ptrdiff_t i = 2; i < size; i++)
            if ((at[i] & 0xC0) != 0x80)
                return false;
        at += size;
    }
    return true;
}
