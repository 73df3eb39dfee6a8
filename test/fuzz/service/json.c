/* JSON in and out, against json-c: both take the same documents and find the same in them; and what is written is read back
 * to the same text. Where json-c is lenient even when strict, or otherwise differs from RFC 8259, the two are not compared:
 *
 *     control bytes in texts, quotes of the wrong kind      it takes them
 *     NaN, Infinity, words in capital letters               it takes them, the last two not always
 *     `1.`, `00` and the like                               it takes some of them
 *     a NUL                                                 ends its document, or is a control byte in a text
 *     a byte order mark                                     it refuses it
 *     U+0000 in a key                                       ends its key
 *     members of the same name                              of which it keeps the last
 *     integers beyond 64 bits                               it saturates them
 *     overlong UTF-8 and half surrogates                    it takes the former, its text of the latter is its own
 *
 * So: what the reader takes, json-c takes with the same values; what json-c takes and the reader does not has one of the
 * first four in it, or is no UTF-8. */
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

#include "base/json_write.h"
#include "core/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right)
        abort();
}

/* ---- what json-c has found, against the reader ---- */

static void compare(struct sl_json *j, struct json_object *object);

/* Of a name that is there again the last counts, and json-c has no other; to it names end at a NUL. */
static bool is_last(struct sl_json j, struct sl_str name)
{
    struct sl_str key;
    sl_json_skip(&j);
    while (sl_json_next(&j, &key)) {
        key.size = key.size ? strnlen(key.data, key.size) : 0;
        if (sl_str_equal(key, name))
            return false;
        sl_json_skip(&j);
    }
    return true;
}

static void compare_object(struct sl_json *j, struct json_object *object)
{
    struct sl_str key;
    size_t names = 0;
    bool cut = false; /* some key has a NUL, at which json-c ends it */
    check(json_object_is_type(object, json_type_object) && sl_json_enter(j));
    while (sl_json_next(j, &key)) {
        struct json_object *member;
        cut = cut || memchr(key.data, 0, key.size);
        const char *name = sl_arena_strndup(j->arena, key.data, key.size);
        if (cut || !name || !is_last(*j, key)) {
            sl_json_skip(j);
            continue;
        }
        check(json_object_object_get_ex(object, name, &member));
        compare(j, member);
        names++;
    }
    check(cut || names == (size_t)json_object_object_length(object));
}

static void compare_array(struct sl_json *j, struct json_object *object)
{
    struct sl_str key;
    size_t count = 0;
    check(json_object_is_type(object, json_type_array) && sl_json_enter(j));
    for (; sl_json_next(j, &key); count++)
        compare(j, json_object_array_get_idx(object, count));
    check(count == json_object_array_length(object));
}

static void compare_string(struct sl_json *j, struct json_object *object)
{
    struct sl_str text, raw;
    struct sl_json again = *j;
    bool escaped;
    check(json_object_is_type(object, json_type_string) && sl_json_string(j, &text));
    sl_json_raw_string(&again, &raw, &escaped);
    for (size_t i = 0; escaped && i + 2 < raw.size; i++)
        if (raw.data[i] == 'u' && (raw.data[i + 1] | 0x20) == 'd' && strchr("89abcdefABCDEF", raw.data[i + 2]))
            return; /* surrogates */
    check(sl_str_equal(text,
                       (struct sl_str){json_object_get_string(object), (size_t)json_object_get_string_len(object)}));
}

static void compare_number(struct sl_json *j, struct json_object *object)
{
    struct sl_str text;
    bool negative;
    uint64_t magnitude;
    check(sl_json_number(j, &text));
    if (sl_json_integer(text, &negative, &magnitude)) {
        check(json_object_is_type(object, json_type_int));
        check(negative ? json_object_get_int64(object) == (int64_t)(0 - magnitude)
                       : json_object_get_uint64(object) == magnitude);
    } else if (json_object_is_type(object, json_type_double)) {
        char *copy = sl_arena_strndup(j->arena, text.data, text.size);
        check(copy && strtod(copy, NULL) == json_object_get_double(object));
    } else {
        check(json_object_is_type(object, json_type_int) && text.size > 18);
    }
}

static void compare(struct sl_json *j, struct json_object *object)
{
    bool flag;
    switch (sl_json_peek(j)) {
    case SL_JSON_OBJECT: compare_object(j, object); return;
    case SL_JSON_ARRAY: compare_array(j, object); return;
    case SL_JSON_STRING: compare_string(j, object); return;
    case SL_JSON_NUMBER: compare_number(j, object); return;
    case SL_JSON_BOOL:
        check(json_object_is_type(object, json_type_boolean) && sl_json_bool(j, &flag));
        check(flag == (bool)json_object_get_boolean(object));
        return;
    case SL_JSON_NULL:
        check(!object);
        sl_json_skip(j);
        return;
    case SL_JSON_NONE: abort();
    }
}

/* ---- the two of them ---- */

static struct json_object *oracle(struct sl_str text, bool *good)
{
    struct json_tokener *tokener = json_tokener_new_ex(SL_JSON_MAX_DEPTH + 1);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *object = json_tokener_parse_ex(tokener, text.data, (int)text.size);
    if (json_tokener_get_error(tokener) == json_tokener_continue) /* a bare number ends where a byte follows */
        object = json_tokener_parse_ex(tokener, " ", 1);
    *good = json_tokener_get_error(tokener) == json_tokener_success;
    json_tokener_free(tokener);
    return object;
}

/* Whether json-c may take what is no JSON. */
static bool is_lenient(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == '\'' || (c >= 'A' && c <= 'Z'))
            return true;
        if ((c == '\n' || c == '\r' || c == '\t') && memchr(text.data, '"', text.size))
            return true;
        bool zero = c == '0' && i + 1 < text.size && text.data[i + 1] >= '0' && text.data[i + 1] <= '9';
        if (c == '.' || c == '-' || c == '+' || zero) /* of numbers */
            return true;
    }
    return !sl_str_is_utf8(text);
}

static bool is_plain(struct sl_str text)
{
    return !memchr(text.data, 0, text.size) && !sl_str_starts(text, SL_STR("\xEF\xBB\xBF"));
}

static void write_twice(struct sl_str text, struct sl_arena *arena)
{
    struct sl_buf once = {0}, twice = {0};
    struct sl_json_writer w = sl_json_writer(&once), v = sl_json_writer(&twice);
    struct sl_json j = sl_json(text, arena, false);
    check(sl_json_put_value(&w, &j));
    j = sl_json(sl_buf_view(&once), arena, false);
    check(sl_json_put_value(&v, &j) && sl_json_end(&j));
    check(sl_str_equal(sl_buf_view(&once), sl_buf_view(&twice)));
    sl_buf_free(&once);
    sl_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size}, value;
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, false), relaxed = sl_json(text, &arena, true);
    uint64_t number;
    duration_parse(text, &number);
    size_parse(text, &number);
    sl_json_skip(&relaxed);
    bool taken = sl_json_value(&j, &value) && sl_json_end(&j), good = false;
    check(!arena.used); /* what is skipped costs nothing */
    check(!taken || sl_json_end(&relaxed));
    check(taken || sl_json_position(text, j.at).line >= 1);
    if (size && size < INT_MAX && is_plain(text)) {
        struct json_object *object = oracle(text, &good);
        check(!taken || good);
        check(!good || taken || is_lenient(text));
        if (taken) {
            j = sl_json(text, &arena, false);
            compare(&j, object);
            check(sl_json_end(&j));
        }
        json_object_put(object);
    }
    if (taken)
        write_twice(text, &arena);
    sl_arena_free(&arena);
    return 0;
}
