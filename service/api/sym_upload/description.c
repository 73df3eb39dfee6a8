/* Reads what a client says of the file that it has uploaded: debug file, debug id and type. */
#include "api/sym_upload/sym_upload.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t skip_blanks(struct sl_str text, size_t at)
{
    while (at < text.size &&
           (text.data[at] == ' ' || text.data[at] == '\t' || text.data[at] == '\n' || text.data[at] == '\r'))
        at++;
    return at;
}

/* Reads the string whose opening quote is at offset `at`; `*string` gets what is between the quotes, with its escapes. Returns the offset
 * behind the closing quote, or the end of the text if there is none. */
static size_t read_string(struct sl_str text, size_t at, struct sl_str *string)
{
    size_t begin = ++at;
    while (at < text.size && text.data[at] != '"')
        at += text.data[at] == '\\' && at + 1 < text.size ? 2 : 1;
    *string = (struct sl_str){text.data + begin, at - begin};
    return at < text.size ? at + 1 : at;
}

/* True if `text` is `name`, which is in lower case without underscores. Ignores the case and underscores of `text`, so that "debug_id" and
 * "debugId" both are "debugid". */
static bool is_name(struct sl_str text, const char *name)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '_')
            continue;
        if (!*name || (c >= 'A' && c <= 'Z' ? c + 32 : c) != *name)
            return false;
        name++;
    }
    return !*name;
}

/* Reads strings and bare words, one after the other, and skips all else, such as brackets. A string or word with a colon behind it is a
 * key; the next one without a colon is that key's value. Objects may be nested in any way. */
void symbol_description_read(struct sl_str body, struct symbol_description *description)
{
    struct sl_str name = {NULL, 0}, value;
    *description = (struct symbol_description){0};
    for (size_t at = 0; at < body.size;) {
        size_t begin = at;
        bool is_value = false;
        if (body.data[at] == '"') {
            at = read_string(body, at, &value);
        } else if (is_word(body.data[at])) {
            while (at < body.size && is_word(body.data[at]))
                at++;
            value = (struct sl_str){body.data + begin, at - begin};
        } else {
            at++;
            continue;
        }
        size_t next = skip_blanks(body, at);
        is_value = next >= body.size || body.data[next] != ':';
        if (is_value && is_name(name, "debugfile"))
            description->debug_file = value;
        else if (is_value && is_name(name, "debugid"))
            description->debug_id = value;
        else if (is_value && is_name(name, "symboluploadtype"))
            description->type = value;
        name = is_value ? (struct sl_str){NULL, 0} : value;
    }
}
