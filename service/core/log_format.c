/* The three line formats of the log, in a fixed buffer: formatting never allocates. */
#include "core/log_impl.h"

#include "base/plain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const level_names[] = {"OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

/* ---- a line under construction ----
 * Text of a line that would pass TEXT_END is cut and ends in "..."; the line gets no more fields. The rest of the buffer is for closing
 * quotes and brackets, which so always fit. */
enum { TEXT_END = LOG_LINE_MAX - 512 };

/* Adds bytes to the line, or nothing if they do not all fit. */
static void log_format_put(struct log_line *line, const void *data, size_t size)
{
    if (size > 0 && size <= LOG_LINE_MAX - line->size) {
        memcpy(line->text + line->size, data, size);
        line->size += size;
    }
}

static void put_char(struct log_line *line, char c)
{
    log_format_put(line, &c, 1);
}
/* Appends a C string as it is. */
static void put_cstr(struct log_line *line, const char *text)
{
    log_format_put(line, text, strlen(text));
}

/* Appends a number in decimal. */
static void put_u64(struct log_line *line, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    log_format_put(line, digits + at, sizeof digits - at);
}

/* Appends the last `width` digits of a number, with leading zeros. */
static void put_padded(struct log_line *line, uint64_t v, int width)
{
    char digits[20];
    for (int i = width - 1; i >= 0; i--, v /= 10)
        digits[i] = (char)('0' + v % 10);
    log_format_put(line, digits, (size_t)width);
}

/* Appends a byte that is not part of valid UTF-8 as the text \xNN. */
static void put_escape(struct log_line *line, unsigned byte, bool json)
{
    static const char hex[] = "0123456789abcdef";
    /* In JSON the backslash itself is escaped, so that a parser reads the text \xNN. */
    char text[5] = {'\\', '\\', 'x', hex[byte >> 4 & 15], hex[byte & 15]};
    log_format_put(line, json ? text : text + 1, json ? 5 : 4);
}

/* Appends an escape sequence for an ASCII control character: \n, \r, \t, else \u00NN in JSON and \xNN in other formats. */
static void put_control(struct log_line *line, uint8_t c, bool json)
{
    static const char hex[] = "0123456789abcdef";
    if (c == '\n' || c == '\r' || c == '\t') {
        char text[2] = {'\\', c == '\n' ? 'n' : c == '\r' ? 'r' : 't'};
        log_format_put(line, text, 2);
    } else if (json) {
        char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        log_format_put(line, text, 6);
    } else {
        put_escape(line, c, false);
    }
}

/* Returns the size of the multi-byte UTF-8 sequence at `at`; 0 if it is not valid or is a C1 control character (U+0080 to U+009F). */
static size_t printable_sequence(const uint8_t *at, size_t left)
{
    uint8_t c = at[0];
    size_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c < 0xC2 || c > 0xF4 || left < size)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    bool c1 = c == 0xC2 && at[1] < 0xA0;
    bool overlong = (c == 0xE0 && at[1] < 0xA0) || (c == 0xF0 && at[1] < 0x90);
    /* not a character: a surrogate, or beyond U+10FFFF */
    bool outside = (c == 0xED && at[1] > 0x9F) || (c == 0xF4 && at[1] > 0x8F);
    return c1 || overlong || outside ? 0 : size;
}

/* Writes text, escaping control characters and invalid UTF-8, which could forge a line or control a terminal. `quoted`: the text is between
 * quotes, so quotes and backslashes in it are escaped too. If the line would pass TEXT_END, the text is cut and ends in "..."; line->cut
 * then keeps further fields out of the line. */
static void put_text(struct log_line *line, struct sl_str text, bool json, bool quoted)
{
    const uint8_t *at = (const uint8_t *)text.data;
    for (size_t i = 0; i < text.size && !line->cut;) {
        /* the end of the characters that need no escape: printable ASCII without quotes and backslashes */
        size_t run = i + sl_plain_run((struct sl_str){text.data + i, text.size - i});
        if (line->size + (run - i) > TEXT_END) {
            log_format_put(line, at + i, TEXT_END > line->size ? TEXT_END - line->size : 0);
            log_format_put(line, "...", 3);
            line->cut = true;
            return;
        }
        log_format_put(line, at + i, run - i);
        i = run;
        if (i == text.size)
            return;
        uint8_t c = at[i];
        if (c == '"' || c == '\\') {
            if (quoted)
                put_char(line, '\\');
            put_char(line, (char)c);
            i++;
        } else if (c < 0x80) {
            put_control(line, c, json);
            i++;
        } else {
            size_t size = printable_sequence(at + i, text.size - i);
            if (size)
                log_format_put(line, at + i, size);
            else
                put_escape(line, c, json);
            i += size ? size : 1;
        }
    }
}

/* ---- time ---- */
/* Formats the time in UTC. Each thread keeps the text of the last second, as it may log many lines in it. */
static void put_utc(struct log_line *line, uint64_t wall_us)
{
    static _Thread_local time_t cached_second = -1;
    static _Thread_local char cached[24];
    time_t second = (time_t)(wall_us / 1000000);
    if (second != cached_second) {
        struct tm tm;
        gmtime_r(&second, &tm);
        strftime(cached, sizeof cached, "%Y-%m-%dT%H:%M:%S.", &tm);
        cached_second = second;
    }
    put_cstr(line, cached);
    put_padded(line, wall_us % 1000000, 6);
    put_char(line, 'Z');
}

/* Formats the time in the local time zone, with microseconds. */
static void put_local(struct log_line *line, uint64_t wall_us)
{
    time_t second = (time_t)(wall_us / 1000000);
    struct tm tm;
    char text[32];
    localtime_r(&second, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S.", &tm);
    put_cstr(line, text);
    put_padded(line, wall_us % 1000000, 6);
}

/* ---- fields ---- */
/* Splits a URL into "https://" and "host/path", leaving out user info, query and fragment, which may have secrets. Text without "://" is
 * all in `rest`. */
static void url_pieces(struct sl_str url, struct sl_str *scheme, struct sl_str *rest)
{
    size_t end = 0;
    while (end < url.size && url.data[end] != '?' && url.data[end] != '#')
        end++;
    const char *colon = end ? memmem(url.data, end, "://", 3) : NULL;
    size_t authority = colon ? (size_t)(colon - url.data) + 3 : 0;
    size_t path = authority;
    while (path < end && url.data[path] != '/')
        path++;
    const char *at = colon ? memrchr(url.data + authority, '@', path - authority) : NULL;
    size_t host = at ? (size_t)(at - url.data) + 1 : authority;
    *scheme = (struct sl_str){url.data, authority};
    *rest = (struct sl_str){url.data + host, end - host};
}

/* True if the value of key=value would be ambiguous without quotes: empty, or with blanks, '=', quotes, backslashes or control
 * characters. */
static bool needs_quotes(struct sl_str text)
{
    static const bool stops[256] = {[0 ... ' '] = true, ['"'] = true, ['='] = true, ['\\'] = true, [0x7F] = true};
    bool any = text.size == 0;
    if (!any && sl_plain_run(text) == text.size) /* the usual case: only blanks and '=' are left to look for */
        return memchr(text.data, ' ', text.size) || memchr(text.data, '=', text.size);
    for (size_t i = 0; i < text.size; i++)
        any |= stops[(uint8_t)text.data[i]];
    return any;
}

/* Writes a number with six significant digits, like "%.6g" but in a tenth of the time. False, without writing, for numbers that "%.6g" may
 * write with an exponent, for 0 and for negative ones. */
static bool put_plain_number(struct log_line *line, double number)
{
    uint64_t scale = 1, whole;
    int places = 0;
    if (!(number >= 0.0001 && number < 999999))
        return false;
    /* scales to six digits before the point: from 99999.95 on, rounding gives six */
    for (; number * (double)scale < 99999.95; scale *= 10)
        places++;
    whole = (uint64_t)(number * (double)scale + 0.5);
    put_u64(line, whole / scale);
    for (whole %= scale; places && whole % 10 == 0; places--) /* leave out zeros at the end */
        whole /= 10;
    if (places) {
        put_char(line, '.');
        put_padded(line, whole, places);
    }
    return true;
}

/* Appends a number or boolean. JSON has no infinity and no NaN: those become null. */
static void put_number(struct log_line *line, const struct log_field *field, bool json)
{
    char text[40];
    switch (field->type) {
    case LOG_FIELD_U64: put_u64(line, field->u64); break;
    case LOG_FIELD_I64:
        if (field->i64 < 0)
            put_char(line, '-');
        put_u64(line, field->i64 < 0 ? 0 - (uint64_t)field->i64 : (uint64_t)field->i64);
        break;
    case LOG_FIELD_BOOL: put_cstr(line, field->boolean ? "true" : "false"); break;
    default:
        if (put_plain_number(line, field->number))
            break;
        snprintf(text, sizeof text, "%.6g", field->number);
        /* x - x is 0 for finite numbers only */
        put_cstr(line, json && !(field->number - field->number == 0) ? "null" : text);
    }
}

/* Writes the value of a field, in quotes if needed; a URL without user info, query and fragment, which may have secrets. */
static void put_value(struct log_line *line, const struct log_field *field, bool json)
{
    if (field->type != LOG_FIELD_STR && field->type != LOG_FIELD_URL) {
        put_number(line, field, json);
        return;
    }
    struct sl_str scheme = {"", 0}, text = field->str;
    if (field->type == LOG_FIELD_URL)
        url_pieces(field->str, &scheme, &text);
    bool quoted = json || needs_quotes(text) || (scheme.size && needs_quotes(scheme));
    if (quoted)
        put_char(line, '"');
    put_text(line, scheme, json, quoted);
    put_text(line, text, json, quoted);
    if (quoted)
        put_char(line, '"');
}

/* Writes ,"key": and the value. Keys are literals of the program, which need no escaping. */
static void put_json_field(struct log_line *line, const struct log_field *field)
{
    if (line->cut)
        return;
    size_t size = strlen(field->key);
    if (size + 4 > LOG_LINE_MAX - line->size) { /* the key does not fit: leave out the value too */
        line->cut = true;
        return;
    }
    char *at = line->text + line->size;
    at[0] = ',';
    at[1] = '"';
    memcpy(at + 2, field->key, size);
    at[size + 2] = '"';
    at[size + 3] = ':';
    line->size += size + 4;
    put_value(line, field, true);
}

static const char *const first_keys[] = {"req", "job", "scope", "source", "cache", "key", "duration_ms", "error"};
enum { FIRST_KEYS = sizeof first_keys / sizeof *first_keys };

/* Returns the index of a key in first_keys, the keys that are written before all others; FIRST_KEYS if it is none of them. */
static int get_rank(const char *key)
{
    for (int i = 0; i < FIRST_KEYS; i++)
        if (first_keys[i][0] == key[0] && strcmp(first_keys[i], key) == 0)
            return i;
    return FIRST_KEYS;
}

/* Writes the fields whose keys are in first_keys, in the order of that list, then all others in their own order. */
static void put_json_fields(struct log_line *line, const struct log_field *fields)
{
    const struct log_field *first[FIRST_KEYS] = {NULL};
    uint64_t put = 0; /* bit i: field i is in `first`; so only the first 64 fields can be */
    for (size_t i = 0; fields[i].key && i < 64; i++) {
        int rank = get_rank(fields[i].key); /* index in first_keys; FIRST_KEYS for all other keys */
        if (rank < FIRST_KEYS && !first[rank]) {
            first[rank] = &fields[i];
            put |= UINT64_C(1) << i;
        }
    }
    for (int rank = 0; rank < FIRST_KEYS; rank++)
        if (first[rank])
            put_json_field(line, first[rank]);
    for (size_t i = 0; fields[i].key; i++)
        if (i >= 64 || !(put >> i & 1))
            put_json_field(line, &fields[i]);
}

/* Formats a line as a JSON object. Lines of the levels debug and trace also name their source file and line. */
static void format_json(struct log_line *line, const struct log_record *record)
{
    put_cstr(line, "{\"timestamp\":\"");
    put_utc(line, record->wall_us);
    put_cstr(line, "\",\"level\":\"");
    put_cstr(line, level_names[record->level]);
    put_cstr(line, "\",\"target\":\"");
    put_cstr(line, record->module);
    put_cstr(line, "\",\"message\":\"");
    put_text(line, sl_str(record->message), true, true);
    put_char(line, '"');
    if (record->req.key)
        put_json_field(line, &record->req);
    put_json_fields(line, record->fields);
    if (record->level >= LOG_DEBUG) {
        struct log_field filename = LOG_STR("filename", record->file), number = LOG_I64("line_number", record->line);
        put_json_field(line, &filename);
        put_json_field(line, &number);
    }
    put_char(line, '}');
}

/* Appends " key=value", unless the line is already cut because it was too long. */
static void put_plain_field(struct log_line *line, const struct log_field *field)
{
    if (line->cut)
        return;
    put_char(line, ' ');
    put_cstr(line, field->key);
    put_char(line, '=');
    put_value(line, field, false);
}

/* Appends the name of the level with a blank before those of four characters, so that all are equally wide; in colour if wanted. */
static void put_level(struct log_line *line, enum log_level level, bool colour)
{
    static const char *const colours[] = {"", "\33[31m", "\33[33m", "\33[32m", "\33[34m", "\33[35m"};
    put_cstr(line, colour ? colours[level] : "");
    put_cstr(line, strlen(level_names[level]) == 4 ? " " : "");
    put_cstr(line, level_names[level]);
    put_cstr(line, colour ? "\33[0m" : "");
}

/* Formats a line for people: `pretty` with local time and the fields on a line of their own. */
static void format_plain(struct log_line *line, const struct log_record *record, bool pretty, bool colour)
{
    if (pretty)
        put_local(line, record->wall_us);
    else
        put_utc(line, record->wall_us);
    put_char(line, ' ');
    put_level(line, record->level, colour);
    put_char(line, ' ');
    put_cstr(line, record->module);
    put_cstr(line, ": ");
    put_text(line, sl_str(record->message), false, false);
    bool any = record->req.key || record->fields->key;
    if (pretty && any)
        put_cstr(line, "\n   ");
    if (record->req.key)
        put_plain_field(line, &record->req);
    for (const struct log_field *field = record->fields; field->key; field++)
        put_plain_field(line, field);
}

void log_format_line(struct log_line *line, const struct log_record *record, enum log_format format, bool colour)
{
    line->size = 0;
    line->cut = false;
    if (format == LOG_JSON)
        format_json(line, record);
    else
        format_plain(line, record, format == LOG_PRETTY, colour);
    line->text[line->size++] = '\n'; /* fits: `text` is larger than LOG_LINE_MAX */
}
