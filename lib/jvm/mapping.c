/* Parses mapping files of ProGuard and R8 into records: classes, fields, methods, comments, headers. */
#include "jvm/mapping.h"

#include <openssl/evp.h>

struct sl_jvm_reader sl_jvm_reader(struct sl_str text)
{
    return (struct sl_jvm_reader){.text = text, .at = sl_str_starts(text, SL_STR("\xEF\xBB\xBF")) ? 3 : 0};
}

/* ---- parts of a line ---- */

static inline bool mapping_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

/* Removes bytes from the front of the text. */
static inline void drop_front(struct sl_str *line, size_t size)
{
    line->data += size;
    line->size -= size;
}

/* Removes white space at the front. */
static inline void skip_spaces(struct sl_str *line)
{
    if (line->size >= 4 && memcmp(line->data, "    ", 4) == 0) /* the indentation of nearly all members */
        drop_front(line, 4);
    while (line->size && mapping_is_space(line->data[0])) {
        line->data++;
        line->size--;
    }
}

static struct sl_str without_spaces(struct sl_str text)
{
    skip_spaces(&text);
    while (text.size && mapping_is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Removes `text` from the front of the line; false if the line begins otherwise. */
static inline bool mapping_take_text(struct sl_str *line, struct sl_str text)
{
    if (line->size < text.size || memcmp(line->data, text.data, text.size) != 0)
        return false;
    drop_front(line, text.size);
    return true;
}

/* Removes the text before the character and the character itself; `*out` is the text. False if the character is missing. */
static inline bool take_until(struct sl_str *line, char c, struct sl_str *out)
{
    const char *found = line->size ? memchr(line->data, c, line->size) : NULL;
    if (!found)
        return false;
    *out = (struct sl_str){line->data, (size_t)(found - line->data)};
    drop_front(line, out->size + 1);
    return true;
}

/* Reads a decimal number of any length; false if there is none or it exceeds 32 bits. */
static bool take_long_number(struct sl_str *line, uint32_t *out)
{
    struct sl_str rest = *line;
    uint64_t value;
    if (!sl_str_take_u64(&rest, &value) || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    *line = rest;
    return true;
}

/* Reads a decimal number. False when there is none (`*line` is unchanged) or it is too large. Up to seven digits are converted
 * at once, as the bytes of a 64-bit number:
 *
 *     bytes         '1' '2' '3' ':' ...      the first is the lowest
 *     shifted up    0 0 0 0 0  1  2  3       other bytes are shifted out, digits become their values
 *     pairs         00  00  01  23           each is 10 times the lower byte plus the higher one
 *     fours         0000    0123
 *     all           00000123 */
static inline bool mapping_take_number(struct sl_str *line, uint32_t *out)
{
    uint64_t word;
    if (line->size < sizeof word)
        return take_long_number(line, out);
    memcpy(&word, line->data, sizeof word);
    word ^= UINT64_C(0x3030303030303030);
    /* the top bit of each byte that is no digit: adding 0x76 sets that bit for values of 10 or more */
    uint64_t others = (word | (word + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080);
    /* number of bits of the digits, which are the bytes before the first that is no digit */
    unsigned bits = others ? (unsigned)__builtin_ctzll(others) & ~7u : 64;
    if (bits == 0 || bits == 64)
        return take_long_number(line, out);
    word <<= 64 - bits;
    word = (word * 10 + (word >> 8)) & UINT64_C(0x00FF00FF00FF00FF);
    word = (word * 100 + (word >> 16)) & UINT64_C(0x0000FFFF0000FFFF);
    *out = (uint32_t)(word * 10000 + (word >> 32));
    drop_front(line, bits / 8);
    return true;
}

static bool starts_with_number(struct sl_str line)
{
    return line.size && sl_is_digit(line.data[0]);
}

/* Swaps the numbers if they are in the wrong order. */
static void order(uint32_t *low, uint32_t *high)
{
    if (*low > *high) {
        uint32_t other = *low;
        *low = *high;
        *high = other;
    }
}

/* ---- records ---- */

/* Reads "start:end:", if the line begins with a number; else nothing. False if it is malformed. */
static bool take_range(struct sl_str *line, struct sl_jvm_member *m)
{
    m->has_range = starts_with_number(*line);
    return !m->has_range || (mapping_take_number(line, &m->start) && mapping_take_text(line, SL_STR(":")) &&
                             mapping_take_number(line, &m->end) && mapping_take_text(line, SL_STR(":")));
}

/* Reads ":line" or ":line:last", if the line begins with a colon; else nothing. False if it is malformed. */
static bool take_source_lines(struct sl_str *line, struct sl_jvm_member *m)
{
    if (!mapping_take_text(line, SL_STR(":")))
        return true;
    m->has_line = mapping_take_number(line, &m->line);
    if (m->has_line && mapping_take_text(line, SL_STR(":"))) {
        m->has_last_line = mapping_take_number(line, &m->last_line);
        return m->has_last_line;
    }
    return m->has_line;
}

/* Splits a qualified name: `x.R.f` is the method f, inlined from the class x.R. */
static void split_receiver(struct sl_jvm_member *m)
{
    const char *dot = m->name.size ? memrchr(m->name.data, '.', m->name.size) : NULL;
    if (!dot)
        return;
    m->receiver = (struct sl_str){m->name.data, (size_t)(dot - m->name.data)};
    drop_front(&m->name, m->receiver.size + 1);
}

/* Completes the lines of a member: one that has only a range has the same source lines; numbers in the wrong order are swapped. */
static void complete_lines(struct sl_jvm_member *m)
{
    if (m->has_range && !m->has_line) {
        m->line = m->start;
        m->last_line = m->end;
        m->has_line = m->has_last_line = true;
    }
    order(&m->start, &m->end);
    if (m->has_last_line)
        order(&m->line, &m->last_line);
}

/* Returns the size of the text up to the first blank or bracket. */
static size_t name_size(struct sl_str line)
{
    const char *found = line.size ? memchr(line.data, '(', line.size) : NULL;
    size_t size = found ? (size_t)(found - line.data) : line.size;
    found = size ? memchr(line.data, ' ', size) : NULL;
    return found ? (size_t)(found - line.data) : size;
}

/* Parses "[start:end:]type name[(arguments)[:line[:last]]] -> obfuscated": a field, or a method if it has arguments. */
static enum sl_jvm_record_kind mapping_read_member(struct sl_str line, struct sl_jvm_member *m)
{
    *m = (struct sl_jvm_member){.start = 0};
    if (!take_range(&line, m) || !take_until(&line, ' ', &m->type))
        return SL_JVM_RECORD_ERROR;
    m->name = (struct sl_str){line.data, name_size(line)};
    drop_front(&line, m->name.size);
    bool method = mapping_take_text(&line, SL_STR("("));
    if (method && (!take_until(&line, ')', &m->arguments) || !take_source_lines(&line, m)))
        return SL_JVM_RECORD_ERROR;
    if (!mapping_take_text(&line, SL_STR(" -> ")))
        return SL_JVM_RECORD_ERROR;
    m->obfuscated = without_spaces(line);
    if (!method)
        return SL_JVM_RECORD_FIELD;
    split_receiver(m);
    complete_lines(m);
    return SL_JVM_RECORD_METHOD;
}

/* Parses "original -> obfuscated:". `*rest` is the text after the colon, which is read as a line of its own. */
static enum sl_jvm_record_kind read_class(struct sl_str line, struct sl_jvm_record *r, struct sl_str *rest)
{
    if (!take_until(&line, ' ', &r->original) || !mapping_take_text(&line, SL_STR("-> ")) ||
        !take_until(&line, ':', &r->obfuscated))
        return SL_JVM_RECORD_ERROR;
    *rest = line;
    return SL_JVM_RECORD_CLASS;
}

/* Parses a line after `#`: a JSON object is a comment; "key: value" or "key" a header. */
static enum sl_jvm_record_kind read_remark(struct sl_str line, struct sl_jvm_record *r)
{
    drop_front(&line, 1);
    skip_spaces(&line);
    if (sl_str_starts(line, SL_STR("{"))) {
        r->json = line;
        return SL_JVM_RECORD_COMMENT;
    }
    struct sl_str value = line;
    r->value = (struct sl_str){NULL, 0};
    if (take_until(&value, ':', &r->key))
        r->value = without_spaces(value);
    else
        r->key = line;
    r->key = without_spaces(r->key);
    return SL_JVM_RECORD_HEADER;
}

/* True if 64 bytes are ASCII without CR. */
static inline bool is_plain_block(const char *block)
{
    unsigned char other = 0;
    for (unsigned i = 0; i < 64; i++)
        other |= (unsigned char)((block[i] & 0x80) | (block[i] == '\r'));
    return !other;
}

/* Sets reader->plain: from `at` up to there all bytes are ASCII and no CR. Looks at blocks of 64 bytes, at most 4 KiB. Most lines then need
 * no check of their own for line ends and UTF-8. */
static void look_ahead(struct sl_jvm_reader *reader, size_t at)
{
    enum { FAR = 64 << 6 };
    size_t left = reader->text.size - at, ahead = left < FAR ? left : FAR, plain = 0;
    while (plain + 64 <= ahead && is_plain_block(reader->text.data + at + plain))
        plain += 64;
    reader->plain = at + plain;
}

/* Sets reader->line_end to the first LF or CR at or after `at`, and reader->newline to the first LF. CR is searched only beyond
 * reader->plain, as there is none before. */
static void find_line_end(struct sl_jvm_reader *reader, size_t at)
{
    const char *text = reader->text.data, *newline, *cr;
    if (reader->newline <= at) { /* the LF found last is not behind `at` */
        newline = memchr(text + at, '\n', reader->text.size - at);
        reader->newline = newline ? (size_t)(newline - text) : reader->text.size;
    }
    if (reader->newline > reader->plain)
        look_ahead(reader, at);
    cr = reader->newline > reader->plain ? memchr(text + at, '\r', reader->newline - at) : NULL;
    reader->line_end = cr ? (size_t)(cr - text) : reader->newline;
}

/* Returns the next line that is not empty. If reader->at is inside of a line, that is the rest of it: a class ends at its colon, and what
 * follows is read as a line of its own. False at the end. */
static bool mapping_next_line(struct sl_jvm_reader *reader, struct sl_str *line)
{
    const char *text = reader->text.data;
    if (reader->at >= reader->line_end) {
        while (reader->at < reader->text.size && (text[reader->at] == '\n' || text[reader->at] == '\r'))
            reader->at++;
        if (reader->at == reader->text.size)
            return false;
        find_line_end(reader, reader->at);
    }
    *line = (struct sl_str){text + reader->at, reader->line_end - reader->at};
    reader->at = reader->line_end;
    return true;
}

bool sl_jvm_reader_next(struct sl_jvm_reader *reader, struct sl_jvm_record *r)
{
    struct sl_str line, inner, rest = {NULL, 0};
    if (!mapping_next_line(reader, &line))
        return false;
    inner = line;
    skip_spaces(&inner);
    if (inner.size && inner.data[0] == '#')
        r->kind = read_remark(inner, r);
    else if (line.data[0] == ' ' || line.data[0] == '\t')
        r->kind = mapping_read_member(inner, &r->member);
    else
        r->kind = read_class(line, r, &rest);
    line.size -= rest.size;
    reader->at -= rest.size;                                       /* `rest` is the next line */
    if (reader->line_end > reader->plain && !sl_str_is_utf8(line)) /* up to `plain` all is ASCII */
        r->kind = SL_JVM_RECORD_ERROR;
    return true;
}

/* ---- whole files ---- */

bool sl_jvm_is_mapping(struct sl_str text)
{
    enum { MAX_OTHERS = 50 };
    struct sl_jvm_reader reader = sl_jvm_reader(text);
    struct sl_jvm_record r;
    bool in_class = false, any_error = false;
    for (unsigned others = 0; others < MAX_OTHERS;) { /* others: records that are neither classes nor comments */
        if (!sl_jvm_reader_next(&reader, &r))
            return in_class && !any_error;
        in_class |= r.kind == SL_JVM_RECORD_CLASS;
        any_error |= r.kind == SL_JVM_RECORD_ERROR;
        if (in_class && (r.kind == SL_JVM_RECORD_FIELD || r.kind == SL_JVM_RECORD_METHOD))
            return true;
        others += r.kind != SL_JVM_RECORD_CLASS && r.kind != SL_JVM_RECORD_COMMENT;
    }
    return false;
}

/* Reads the whole mapping once. Header values are views of the text; of repeated keys the last counts. */
struct sl_jvm_summary sl_jvm_summarise(struct sl_str text)
{
    struct sl_jvm_summary s = {.classes = 0};
    struct sl_jvm_reader reader = sl_jvm_reader(text);
    struct sl_jvm_record r;
    while (sl_jvm_reader_next(&reader, &r)) {
        if (r.kind == SL_JVM_RECORD_HEADER && sl_str_equal(r.key, SL_STR("compiler")))
            s.compiler = r.value;
        if (r.kind == SL_JVM_RECORD_HEADER && sl_str_equal(r.key, SL_STR("compiler_version")))
            s.compiler_version = r.value;
        if (r.kind == SL_JVM_RECORD_HEADER && sl_str_equal(r.key, SL_STR("min_api")))
            s.min_api = r.value;
        s.classes += r.kind == SL_JVM_RECORD_CLASS;
        if (r.kind == SL_JVM_RECORD_METHOD) {
            s.methods++;
            s.has_lines |= r.member.has_range || r.member.has_line;
        }
    }
    return s;
}

bool sl_jvm_mapping_id(struct sl_str text, struct sl_debug_id *id)
{
    /* the namespace of the id: the UUID of "guardsquare.com" in the DNS namespace */
    static const uint8_t space[16] = {0x4f, 0x44, 0xf3, 0x0f, 0x24, 0xbe, 0x53, 0xd0,
                                      0xba, 0xb6, 0xf4, 0x7c, 0x71, 0x20, 0xad, 0x6c};
    uint8_t digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL) == 1 &&
              EVP_DigestUpdate(context, space, sizeof space) == 1 &&
              EVP_DigestUpdate(context, text.data, text.size) == 1 && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    *id = (struct sl_debug_id){.age = 0};
    if (!ok)
        return false;
    memcpy(id->uuid, digest, sizeof id->uuid);
    id->uuid[6] = (uint8_t)(0x50 | (id->uuid[6] & 0x0F)); /* version 5 */
    id->uuid[8] = (uint8_t)(0x80 | (id->uuid[8] & 0x3F)); /* the variant of RFC 9562 */
    return true;
}
