/* Rust's legacy mangling looks like a nested C++ name: `_ZN` <length><identifier>... `17h<16 hex digits>` `E`. Characters that C++
 * identifiers cannot contain are escaped: `$LT$`, `$u20$`, `..`.
 *
 *     _ZN4core3fmt9Formatter3pad17h0123456789abcdefE      core::fmt::Formatter::pad */
#include "demangle/rust.h"

#include "demangle/text.h"

bool rust_suffix(struct sl_str rest, struct sl_str *shown)
{
    *shown = rest;
    if (!rest.size)
        return true;
    if (rest.data[0] != '.')
        return false;
    const char *llvm = memmem(rest.data, rest.size, ".llvm.", 6);
    if (llvm)
        shown->size = (size_t)(llvm - rest.data);
    return true;
}

/* Removes the next identifier and its length (of up to five digits) from the body; false if there is none or the text is too short. */
static bool next_identifier(struct sl_str *body, struct sl_str *identifier)
{
    size_t length = 0, digits = 0;
    while (digits < body->size && digits < 5 && body->data[digits] >= '0' && body->data[digits] <= '9')
        length = length * 10 + (size_t)(body->data[digits++] - '0');
    if (!digits || !length || length > body->size - digits)
        return false;
    *identifier = (struct sl_str){body->data + digits, length};
    *body = (struct sl_str){identifier->data + length, body->size - digits - length};
    return true;
}

/* True for "h" and 16 small hexadecimal digits. */
static bool is_hash(struct sl_str id)
{
    if (id.size != 17 || id.data[0] != 'h')
        return false;
    for (size_t i = 1; i < id.size; i++)
        if (sl_hex_digit(id.data[i]) < 0 || (id.data[i] >= 'A' && id.data[i] <= 'F'))
            return false;
    return true;
}

/* Appends the character that `escape` stands for, like "LT" or "u7e"; false if it is unknown or a control character. */
static bool add_escape(struct sl_buf *out, struct sl_str escape)
{
    static const struct {
        const char *name, *text;
    } known[] = {
        {"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sl_str_equal(escape, sl_str(known[i].name))) {
            sl_buf_cstr(out, known[i].text);
            return true;
        }
    uint64_t code;
    if (escape.size < 2 || escape.size > 7 || escape.data[0] != 'u' ||
        !sl_parse_hex_u64((struct sl_str){escape.data + 1, escape.size - 1}, &code))
        return false;
    bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
    if (control || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return false;
    text_add_char(out, (uint32_t)code);
    return true;
}

/* Appends an identifier with its escapes replaced and ".." as "::"; from an unknown escape on it is left unchanged. */
static void add_identifier(struct sl_buf *out, struct sl_str id)
{
    /* rustc puts an underscore before an escape at the beginning; it is not shown */
    if (id.size > 1 && id.data[0] == '_' && id.data[1] == '$')
        id = (struct sl_str){id.data + 1, id.size - 1};
    while (id.size) {
        size_t used = 1;
        const char *end = id.data[0] == '$' ? memchr(id.data + 1, '$', id.size - 1) : NULL;
        if (id.data[0] == '.' && id.size > 1 && id.data[1] == '.') {
            sl_buf_cstr(out, "::");
            used = 2;
        } else if (end && add_escape(out, (struct sl_str){id.data + 1, (size_t)(end - id.data) - 1})) {
            used = (size_t)(end - id.data) + 1;
        } else if (id.data[0] == '$') {
            sl_buf_str(out, id);
            used = id.size;
        } else {
            sl_buf_u8(out, (uint8_t)id.data[0]);
        }
        id = (struct sl_str){id.data + used, id.size - used};
    }
}

bool rust_legacy(struct sl_str name, struct sl_buf *out, size_t limit)
{
    size_t underscores = 0, start = out ? out->size : 0;
    struct sl_str id, hash = {NULL, 0}, suffix;
    while (underscores < name.size && underscores < 5 && name.data[underscores] == '_')
        underscores++;
    if (underscores > 4 || !text_is_plain(name) || name.size < underscores + 2 ||
        memcmp(name.data + underscores, "ZN", 2) != 0)
        return false;
    struct sl_str body = {name.data + underscores + 2, name.size - underscores - 2};
    /* Each identifier is kept in `hash` until the next one shows that it was not the last: the last one is the hash, which is not shown. */
    for (bool first = true; next_identifier(&body, &id);) {
        if (out && hash.data) {
            if (!first)
                sl_buf_cstr(out, "::");
            add_identifier(out, hash);
            first = false;
        }
        hash = id;
    }
    /* The hash must not be the first identifier, which would begin after "ZN" and the two digits of its length: + 4. */
    if (!hash.data || !is_hash(hash) || !body.size || body.data[0] != 'E' ||
        hash.data - name.data <= (ptrdiff_t)underscores + 4 ||
        !rust_suffix((struct sl_str){body.data + 1, body.size - 1}, &suffix))
        return false;
    if (out)
        sl_buf_str(out, suffix);
    return !out || out->size - start <= limit;
}
