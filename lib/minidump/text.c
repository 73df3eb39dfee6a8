/* Strings of the file. Several entries may refer to the same string, so each copy is charged to the budget. */
#include "minidump/impl.h"

enum { LONGEST_TEXT = SL_MAX_NAME }; /* longer strings count as absent */

/* Moves a text from the buffer to the arena and frees the buffer. Data NULL if out of memory, which `d` records. */
static struct sl_str move_to_arena(struct dump_reader *d, struct sl_buf *buf)
{
    struct sl_str text = sl_buf_move_to_arena(buf, d->arena);
    d->out_of_memory |= !text.data;
    return text;
}

/* Charges a text to the budget. Returns false if the text is absent, is too long, or exceeds the budget. */
static bool charge_text(struct dump_reader *d, struct sl_bytes bytes)
{
    return bytes.data && bytes.size <= LONGEST_TEXT && dump_charge(d, bytes.size);
}

/* Reads a UTF-16 character; returns false for an unpaired surrogate: `*code` is then of no use. */
static bool read_character(struct sl_reader *r, uint32_t *code)
{
    *code = sl_read_u16(r);
    if (*code < 0xD800 || *code > 0xDFFF)
        return true;
    uint32_t low = sl_read_u16(r);
    bool is_pair = *code < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF;
    *code = 0x10000 + ((*code & 0x3FF) << 10) + (low & 0x3FF);
    return is_pair;
}

/* Converts UTF-16 to UTF-8; if `to_nul`, only up to the first NUL. Data NULL if it has an unpaired surrogate or memory is used up. */
static struct sl_str from_utf16(struct dump_reader *d, struct sl_bytes bytes, bool to_nul)
{
    struct sl_reader r = dump_make_reader(d->dump, bytes);
    struct sl_buf buf = {.budget = d->arena->budget};
    uint32_t code;
    char utf8[4];
    while (sl_reader_left(&r) >= 2) {
        if (!read_character(&r, &code)) {
            sl_buf_free(&buf);
            return (struct sl_str){NULL, 0};
        }
        if (to_nul && !code)
            break;
        sl_buf_add(&buf, utf8, sl_utf8_encode(code, utf8));
    }
    return move_to_arena(d, &buf);
}

struct sl_str dump_utf16(struct dump_reader *d, struct sl_bytes bytes)
{
    return charge_text(d, bytes) ? from_utf16(d, bytes, true) : (struct sl_str){NULL, 0};
}

/* Reads a size (u32) at a file offset and returns that many bytes after it; data NULL if they are outside of the file. */
static struct sl_bytes counted_bytes(struct dump_reader *d, uint64_t rva)
{
    struct sl_reader r = dump_make_reader(d->dump, d->dump->bytes);
    sl_reader_seek(&r, rva);
    uint32_t size = sl_read_u32(&r);
    return r.failed ? (struct sl_bytes){NULL, 0} : sl_bytes_slice(d->dump->bytes, sl_reader_offset(&r), size, NULL);
}

/* Converts the UTF-16 string at a file offset, which has its size in bytes (u32) in front. Data NULL if it cannot be read. */
struct sl_str dump_string(struct dump_reader *d, uint64_t rva)
{
    struct sl_bytes bytes = counted_bytes(d, rva);
    bool ok = bytes.size % 2 == 0 && charge_text(d, bytes);
    return ok ? from_utf16(d, bytes, false) : (struct sl_str){NULL, 0};
}

/* Copies all bytes; invalid UTF-8 becomes U+FFFD. Data NULL if `bytes` is, or if the budget or memory is used up. */
struct sl_str dump_text(struct dump_reader *d, struct sl_bytes bytes)
{
    struct sl_buf buf = {.budget = d->arena->budget};
    if (!bytes.data || !dump_charge(d, bytes.size)) /* charged, as many entries of a crafted dump may share the bytes */
        return (struct sl_str){NULL, 0};
    sl_buf_utf8(&buf, (struct sl_str){(const char *)bytes.data, bytes.size});
    return move_to_arena(d, &buf);
}

/* Copies the text up to the first NUL, or all of it if it has none. Data NULL if that is longer than LONGEST_TEXT (SL_MAX_NAME) bytes. */
struct sl_str dump_utf8(struct dump_reader *d, struct sl_bytes bytes)
{
    size_t most = bytes.size < LONGEST_TEXT ? bytes.size : LONGEST_TEXT;
    const uint8_t *nul = most ? memchr(bytes.data, 0, most) : NULL;
    if (nul)
        bytes.size = (size_t)(nul - bytes.data);
    return bytes.size <= LONGEST_TEXT ? dump_text(d, bytes) : (struct sl_str){NULL, 0};
}

struct sl_str dump_string8(struct dump_reader *d, uint64_t rva)
{
    return dump_utf8(d, counted_bytes(d, rva));
}
