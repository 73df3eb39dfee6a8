/* JSON in and out: what parses is written, and what was written parses to the same text again; both readers agree on what
 * is JSON, and on its contents. */
#include <stdlib.h>

#include "core/duration.h"
#include "core/json.h"
#include "core/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tree(struct sl_str text, bool good, struct sl_str written)
{
    struct sl_arena arena = {0};
    struct value root;
    struct sl_error error;
    enum sl_code code = value_read_json(&arena, text, &root, &error);
    if ((code == SL_OK) != good)
        abort();
    struct sl_buf out = {0};
    struct json_writer w = json_writer(&out);
    if (good) {
        value_write(&w, &root);
        struct value again;
        if (value_read_json(&arena, written, &again, &error) != SL_OK)
            abort();
        if (value_read_json(&arena, sl_buf_view(&out), &again, &error) != SL_OK)
            abort();
    }
    sl_buf_free(&out);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size};
    struct json_object *object, *again;
    struct sl_error error;
    uint64_t number;
    duration_parse(text, &number);
    size_parse(text, &number);
    if (json_parse(text, &object, &error) != SL_OK) {
        check_tree(text, false, text);
        return 0;
    }
    struct sl_buf out = {0}, second = {0};
    struct json_writer w = json_writer(&out), v = json_writer(&second);
    struct sl_arena arena = {0};
    json_value(&w, object);
    value_from_json(&arena, object);
    if (json_parse(sl_buf_view(&out), &again, &error) != SL_OK)
        abort();
    json_value(&v, again);
    if (!sl_str_equal(sl_buf_view(&out), sl_buf_view(&second)))
        abort();
    check_tree(text, true, sl_buf_view(&out));
    json_object_put(object);
    json_object_put(again);
    sl_arena_free(&arena);
    sl_buf_free(&out);
    sl_buf_free(&second);
    return 0;
}
