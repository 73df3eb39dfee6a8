/* Names as they stand in the text. */
#include "breakpad/impl.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Length of the UTF-8 sequence at `s`, 0 when there is none (RFC 3629, section 4). */
static size_t sequence(const uint8_t *s, size_t left)
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

void breakpad_render_text(struct sl_buf *out, struct sl_str text)
{
    while (text.size && is_blank(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size && is_blank(text.data[text.size - 1]))
        text.size--;
    for (size_t i = 0; i < text.size;) {
        size_t plain = i;
        while (plain < text.size && (uint8_t)text.data[plain] >= 0x20 && (uint8_t)text.data[plain] < 0x7F)
            plain++;
        sl_buf_add(out, text.data + i, plain - i);
        if ((i = plain) == text.size)
            return;
        size_t size = sequence((const uint8_t *)text.data + i, text.size - i);
        if (size > 1)
            sl_buf_add(out, text.data + i, size);
        else
            sl_buf_cstr(out, size ? "?" : "\xEF\xBF\xBD"); /* a control character, U+FFFD */
        i += size ? size : 1;
    }
}

static bool decimal(struct sl_str text, uint32_t *value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || number > UINT32_MAX)
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *value = (uint32_t)number;
    return text.size > 0 && number <= UINT32_MAX;
}

/* What compilers for Windows add to names of C: `_cdecl`, `_stdcall@N`, `@fastcall@N`, `vectorcall@@N`, where N is the
 * size of the parameters. Names that say more than that are left alone. */
static struct sl_str undecorate(struct sl_str name, uint32_t *parameters)
{
    if (!name.size || name.data[0] == '?')
        return name;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == ':' || name.data[i] == '(' || name.data[i] == '<')
            return name;
    const char *at = memrchr(name.data, '@', name.size);
    size_t position = at ? (size_t)(at - name.data) : 0;
    bool counted = position && decimal((struct sl_str){at + 1, name.size - position - 1}, parameters);
    if (counted && name.data[position - 1] == '@')
        return (struct sl_str){name.data, position - 1};
    if (counted && (name.data[0] == '@' || name.data[0] == '_'))
        return (struct sl_str){name.data + 1, position - 1};
    *parameters = 0;
    return name.data[0] == '_' ? (struct sl_str){name.data + 1, name.size - 1} : name;
}

void breakpad_render_name(struct sl_buf *out, struct sl_str name, enum sl_language language, bool is_windows,
                          uint32_t *parameters)
{
    struct sl_buf readable = {0};
    uint32_t size = 0;
    size_t start = out->size;
    if (is_windows)
        name = undecorate(name, &size);
    if (parameters)
        *parameters = size;
    breakpad_render_text(out, sl_demangle(name, language, &readable) ? sl_buf_view(&readable) : name);
    if (out->size == start)
        sl_buf_cstr(out, "<name omitted>");
    out->failed = out->failed || readable.failed;
    sl_buf_free(&readable);
}
