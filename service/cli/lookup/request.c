/* `symloom lookup`: parses requests.
 *
 *     GNU     hexadecimal, with or without 0x, up to the first other character; symbol[+offset]; anything else is 0
 *     LLVM    [CODE|DATA|FRAME] [FILE|"FILE"|FILE:path|BUILDID:hex] ADDRESS, decimal unless 0x; anything else is echoed */
#include "cli/lookup/lookup.h"

#include <stdlib.h>

static bool is_digit(char c, int base)
{
    int digit = sl_hex_digit(c);
    return digit >= 0 && digit < base;
}

/* Parses the number at the beginning of `text`: digits of `base`, or 0x and hexadecimal digits. Returns how many characters it has, 0 if
 * there is none; `*value` is then 0. A number above 64 bits wraps. */
static size_t scan_number(struct sl_str text, int base, uint64_t *value)
{
    size_t at = 0;
    *value = 0;
    if (text.size > 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x' && is_digit(text.data[2], 16)) {
        base = 16;
        at = 2;
    }
    for (; at < text.size && is_digit(text.data[at], base); at++)
        *value = *value * (uint64_t)base + (uint64_t)sl_hex_digit(text.data[at]);
    return at;
}

/* Returns the text without its first `from` bytes. */
static struct sl_str tail(struct sl_str text, size_t from)
{
    return (struct sl_str){text.data + from, text.size - from};
}

/* Returns the module of -e; NULL if none was given. */
static struct lookup_module *given_module(struct lookup *l)
{
    return l->file ? lookup_module_find(l, sl_str(l->file)) : NULL;
}

/* ---- GNU ---- */

/* Parses symbol[+offset] with a hexadecimal offset. The whole text is tried as a name first, because names may contain `+`
 * (`operator+`). False: no such symbol. */
static bool parse_symbol(struct lookup *l, struct lookup_module *m, struct sl_str text, uint64_t *address)
{
    uint64_t size, offset = 0;
    const char *plus = memrchr(text.data, '+', text.size);
    if (lookup_symbol_named(l, m, text, address, &size))
        return true;
    struct sl_str name = {text.data, plus ? (size_t)(plus - text.data) : 0};
    if (!name.size || !lookup_symbol_named(l, m, name, address, &size))
        return false;
    scan_number(tail(text, name.size + 1), 16, &offset);
    *address += offset;
    return true;
}

/* Parses an address or a symbol in the grammar of GNU addr2line. False if the line is neither; the address is then the number that its
 * first hexadecimal digits make, 0 if it begins with none. */
static bool parse_gnu(struct lookup *l, struct sl_str line, struct lookup_request *r)
{
    struct sl_str text = sl_str_trimmed(line);
    r->module = given_module(l);
    size_t digits = scan_number(text, 16, &r->address);
    /* `add` is a symbol although it begins with hexadecimal digits: digits before other text are an address only if
     * they begin with 0, or a blank follows */
    bool number = digits == text.size || (digits && (text.data[0] == '0' || sl_is_blank(text.data[digits])));
    uint64_t address;
    if (number || !text.size || !r->module || !parse_symbol(l, r->module, text, &address))
        return number && text.size;
    r->address = address;
    return true;
}

/* ---- LLVM ---- */

/* Removes `word` and the blanks after it from the beginning of the text. False, and nothing is removed, if another word is there. */
static bool skip_word(struct sl_str *text, struct sl_str word)
{
    if (!sl_str_starts(*text, word) || text->size == word.size || !sl_is_blank(text->data[word.size]))
        return false;
    *text = sl_str_trimmed(tail(*text, word.size));
    return true;
}

/* Moves the file name at the beginning of `[FILE:]name address` from the text to `name`; it may be quoted. False if the text has no file
 * name, or nothing after it. */
static bool cut_file_name(struct sl_str *text, struct sl_str *name)
{
    const struct sl_str prefix = SL_STR("FILE:");
    if (sl_str_starts(*text, prefix))
        *text = tail(*text, prefix.size);
    bool quoted = text->size && (text->data[0] == '"' || text->data[0] == '\'');
    size_t end = quoted;
    while (end < text->size && (quoted ? text->data[end] != text->data[0] : !sl_is_blank(text->data[end])))
        end++;
    if (end == text->size || end == (size_t)quoted)
        return false;
    *name = (struct sl_str){text->data + quoted, end - quoted};
    *text = sl_str_trimmed(tail(*text, end + quoted));
    return true;
}

/* Parses a line in the grammar of LLVM's tools, with addresses in `base` unless they begin with 0x. REQUEST_BAD if the line does not fit
 * it. With -e, a line names no file. */
static void parse_llvm(struct lookup *l, struct sl_str line, int base, struct lookup_request *r)
{
    struct sl_str text = sl_str_trimmed(line), file;
    r->kind = REQUEST_CODE;
    if (skip_word(&text, SL_STR("DATA")))
        r->kind = REQUEST_DATA;
    else if (skip_word(&text, SL_STR("FRAME")))
        r->kind = REQUEST_FRAME;
    else
        skip_word(&text, SL_STR("CODE"));
    if (l->file)
        r->module = given_module(l);
    else if (cut_file_name(&text, &file))
        r->module = lookup_module_find(l, file);
    size_t digits = scan_number(text, base, &r->address);
    if (!r->module || !digits || digits != text.size)
        r->kind = REQUEST_BAD;
}

void lookup_parse(struct lookup *l, struct sl_str line, struct lookup_request *r)
{
    *r = (struct lookup_request){.text = line};
    if (l->persona == PERSONA_LLVM_ADDR2LINE)
        parse_llvm(l, line, 16, r);
    else if (l->style == STYLE_LLVM || l->style == STYLE_JSON || l->persona == PERSONA_LLVM_SYMBOLIZER)
        parse_llvm(l, line, 10, r);
    else
        parse_gnu(l, line, r);
}

void lookup_parse_argument(struct lookup *l, const char *text, struct lookup_request *r)
{
    if (l->persona != PERSONA_LOOKUP || !l->file) {
        lookup_parse(l, sl_str(text), r);
        return;
    }
    *r = (struct lookup_request){.text = sl_str(text)};
    if (!parse_gnu(l, sl_str(text), r))
        r->kind = REQUEST_BAD;
}
