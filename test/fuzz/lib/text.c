/* Texts with stacks: pieces are the text, what is not found stays as it was, and names add lines but lose none. */
#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sl_text_call calls[] = {
    {.function = {"inner", 5}, .path = {"/src/a.c", 8}, .line = 3},
    {.function = {"outer", 5}, .offset = 7, .has_offset = true},
};

/* Writes a piece as it is, and once with names. */
static void write_piece(const struct sl_text_piece *piece, struct sl_buf *same, struct sl_buf *named, uint64_t *shift)
{
    uint64_t none = 0;
    if (piece->kind != SL_TEXT_NATIVE) {
        sl_buf_str(same, piece->text);
        return;
    }
    struct sl_text_frame frame = piece->native;
    size_t before = same->size;
    sl_text_write(&frame, NULL, 0, &none, same);
    if (frame.format != SL_TEXT_MARKUP && (same->size - before != piece->text.size ||
                                           memcmp(same->data + before, piece->text.data, piece->text.size) != 0))
        __builtin_trap();
    sl_text_write(&frame, calls, 2, shift, named);
    sl_text_write(&frame, calls + 1, 1, shift, named);
}

/* Reads a line; its pieces, but for those that replace others, are the line. */
static bool read_line(struct sl_text *text, struct sl_str line, struct sl_buf *same, struct sl_buf *named,
                      uint64_t *shift)
{
    struct sl_text_piece piece;
    struct sl_str rest = line;
    bool made = false;
    for (size_t before = rest.size; sl_text_next(text, &rest, &piece); before = rest.size) {
        if (piece.kind != SL_TEXT_MADE &&
            (piece.text.data != line.data + line.size - before || piece.text.size != before - rest.size))
            __builtin_trap();
        if (piece.kind == SL_TEXT_NATIVE) {
            const struct sl_text_frame *f = &piece.native;
            bool contiguous = f->stem.data == piece.text.data && f->stem.data + f->stem.size == f->cut.data &&
                              f->cut.data + f->cut.size == f->tail.data && f->tail.data + f->tail.size == f->end.data &&
                              f->end.data + f->end.size == piece.text.data + piece.text.size;
            if (!contiguous || (f->module != SL_TEXT_NO_MODULE && f->module >= text->module_count))
                __builtin_trap();
            sl_text_resolve(text, &piece.native);
        }
        made |= piece.kind == SL_TEXT_MADE || piece.format == SL_TEXT_MARKUP;
        write_piece(&piece, same, named, shift);
    }
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_text text;
    struct sl_buf same = {0}, named = {0};
    uint64_t shift = 0;
    bool made = false;
    sl_text_begin(&text);
    for (size_t at = 0; at < size;) {
        const uint8_t *newline = memchr(data + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline + 1 - data) - at : size - at;
        made |= read_line(&text, (struct sl_str){(const char *)data + at, length}, &same, &named, &shift);
        at += length;
    }
    sl_text_flush(&text, &same);
    if (!made && (same.size != size || (size && memcmp(same.data, data, size) != 0)))
        __builtin_trap();
    sl_text_end(&text);
    sl_buf_free(&same);
    sl_buf_free(&named);
    return 0;
}
