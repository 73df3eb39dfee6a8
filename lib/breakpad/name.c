/* Names and other text as they are written to the file: in UTF-8 and without characters that end a line. */
#include "breakpad/impl.h"

void breakpad_render_text(struct sl_buf *out, struct sl_str text)
{
    text = sl_str_trimmed(text);
    for (size_t i = 0; i < text.size;) {
        size_t plain = i; /* end of the printable ASCII from i on */
        while (plain < text.size && (uint8_t)text.data[plain] >= 0x20 && (uint8_t)text.data[plain] < 0x7F)
            plain++;
        sl_buf_add(out, text.data + i, plain - i);
        if ((i = plain) == text.size)
            return;
        size_t size = sl_utf8_sequence(text.data + i, text.size - i, NULL);
        if (size > 1)
            sl_buf_add(out, text.data + i, size);
        else
            sl_buf_cstr(out, size ? "?" : "\xEF\xBF\xBD"); /* control character, ill-formed UTF-8 */
        i += size ? size : 1;
    }
}

void breakpad_render_name(struct sl_buf *out, struct sl_str name, enum sl_language language)
{
    struct sl_buf readable = {0};
    size_t start = out->size;
    breakpad_render_text(out, sl_demangle(name, language, &readable) ? sl_buf_view(&readable) : name);
    if (out->size == start)
        sl_buf_cstr(out, "<name omitted>");
    out->failed = out->failed || readable.failed;
    sl_buf_free(&readable);
}
