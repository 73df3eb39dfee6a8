/* Reading JSON by tables, quietly. The strict reading is tested with the APIs' bodies. */
#include "../check.h"

#include "base/json_fields.h"

static struct sl_arena arena;

static int done(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

static void assert_str_is(struct sl_str text, const char *wanted)
{
    assert_int_equal(text.size, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.size);
}

struct part {
    struct sl_str name;
    struct sl_opt_u64 size;
};

struct whole {
    struct sl_str text, raw, list;
    struct sl_opt_u64 number, hex;
    bool flag;
    struct part part, *parts;
    struct sl_str *texts;
    size_t part_count, text_count;
};

static const struct sl_field part_fields[] = {
    SL_FIELD(TEXT, true, part, name, "name"),
    SL_FIELD(U64, false, part, size, "size"),
    SL_FIELDS_END,
};

static const struct sl_field inner_fields[] = {SL_FIELD(HEX, false, whole, hex, "hex"), SL_FIELDS_END};

static const struct sl_field whole_fields[] = {
    SL_FIELD(TEXT, false, whole, text, "text"),
    SL_FIELD(RAW, false, whole, raw, "raw"),
    SL_FIELD_AS_IS(ARRAY, false, whole, list, "list"),
    SL_FIELD(U64, false, whole, number, "number"),
    SL_FIELD(FLAG, false, whole, flag, "flag"),
    SL_FIELD_PART(whole, part, "part", part_fields),
    SL_FIELD_ITEMS(whole, parts, part_count, "parts", part_fields),
    SL_FIELD_EACH(false, whole, texts, text_count, "texts", sl_fields_text),
    SL_FIELD_SAME("inner", inner_fields),
    SL_FIELDS_END,
};

static struct whole read_whole(const char *text)
{
    struct sl_json j = sl_json(sl_str(text), &arena, false);
    struct whole whole = {.flag = false};
    assert_true(sl_json_read_object(&j, whole_fields, &whole));
    assert_true(sl_json_end(&j));
    return whole;
}

TEST(members_of_each_kind_are_read)
{
    struct whole whole = read_whole(
        "{\"text\":\"a\\n\",\"raw\":{\"x\":[1, null]},\"list\":[ ],\"number\":7,\"flag\":true,\"other\":[{}],"
        "\"part\":{\"name\":\"p\",\"size\":1},\"inner\":{\"hex\":\"0x1f\"}}");
    assert_str_is(whole.text, "a\n");
    assert_str_is(whole.raw, "{\"x\":[1, null]}");
    assert_str_is(whole.list, "[ ]");
    assert_true(whole.number.set && whole.number.value == 7 && whole.flag);
    assert_str_is(whole.part.name, "p");
    assert_int_equal(whole.part.size.value, 1);
    assert_true(whole.hex.set && whole.hex.value == 0x1f);
}

TEST(members_of_another_type_are_absent)
{
    struct whole whole = read_whole("{\"text\":7,\"list\":{},\"number\":1.5,\"flag\":\"true\",\"part\":[],\"parts\":{},"
                                    "\"texts\":null,\"inner\":{\"hex\":\"0xg\"}}");
    assert_null(whole.text.data);
    assert_null(whole.list.data);
    assert_false(whole.number.set || whole.hex.set || whole.flag);
    assert_null(whole.part.name.data);
    assert_int_equal(whole.part_count + whole.text_count, 0);
}

TEST(last_of_repeated_members_wins)
{
    struct whole whole =
        read_whole("{\"text\":\"a\",\"number\":1,\"flag\":true,\"text\":null,\"number\":2,\"flag\":0}");
    assert_null(whole.text.data);
    assert_true(whole.number.set && whole.number.value == 2);
    assert_false(whole.flag);
}

TEST(list_items_keep_their_positions)
{
    struct whole whole = read_whole(
        "{\"parts\":[{\"name\":\"a\",\"size\":1},5,{\"size\":2},{\"name\":\"b\"}],\"texts\":[\"x\",[1],\"y\"]}");
    assert_int_equal(whole.part_count, 4);
    assert_str_is(whole.parts[0].name, "a");
    assert_null(whole.parts[1].name.data);
    assert_null(whole.parts[2].name.data);
    assert_str_is(whole.parts[3].name, "b");
    assert_int_equal(whole.text_count, 3);
    assert_null(whole.texts[1].data);
    assert_str_is(whole.texts[2], "y");
}

TEST(missing_required_members_are_noticed)
{
    struct sl_json j =
        sl_json(SL_STR("[[1,2],{\"size\":1},{\"name\":\"a\"},{\"name\":\"a\",\"name\":1}]"), &arena, false);
    const bool wanted[] = {false, false, true, false};
    struct sl_str key;
    size_t count = 0;
    assert_true(sl_json_array(&j));
    for (; sl_json_next(&j, &key); count++) {
        struct part part = {.name = {NULL, 0}};
        assert_int_equal(sl_json_read_object(&j, part_fields, &part), wanted[count]);
    }
    assert_int_equal(count, 4);
    assert_true(sl_json_end(&j));
}

TEST(malformed_document_fails)
{
    struct whole whole = {.flag = false};
    for (const char **text =
             (const char *[]){"{\"text\":\"a\"", "{\"part\":{\"name\" 1}}", "{\"parts\":[{},]}", "{\"raw\":tru}", NULL};
         *text; text++) {
        struct sl_json j = sl_json(sl_str(*text), &arena, false);
        assert_false(sl_json_read_object(&j, whole_fields, &whole));
        assert_true(j.failed);
    }
}

TEST(member_is_found_in_raw_form)
{
    struct sl_json j = sl_json(SL_STR("{\"a\":1,\"b\":[2,\"x\"],\"a\":{\"c\":3}}"), &arena, false), again = j;
    assert_str_is(sl_json_find(&j, SL_STR("a")), "{\"c\":3}");
    assert_null(sl_json_find(&again, SL_STR("c")).data);
    assert_true(sl_json_end(&j) && sl_json_end(&again));
}

TEST_FILE(.end = done);
