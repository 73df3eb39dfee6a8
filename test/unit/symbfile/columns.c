/* The quick way of reading records against protobuf-c: what both read is the same, and what writers make is read quickly. */
#include "../check.h"
#include "records.h"
#include "same_message.h"

static enum sameness of_hex(const char *hex, enum sameness (*compare)(struct sl_bytes))
{
    struct sl_bytes bytes = from_hex(hex);
    enum sameness result = compare(bytes);
    free((void *)(uintptr_t)bytes.data);
    return result;
}

TEST(usual_messages_are_read)
{
    assert_int_equal(of_hex("", same_range), SAME);
    assert_int_equal(of_hex("60c00c10241a046d61696e5000420a0a030008101203262729", same_range), SAME);
    assert_int_equal(of_hex("0818100c1a08615f696e6c696e65282858003801", same_range), SAME);
    assert_int_equal(of_hex("08011a0022003200", same_range), SAME);     /* empty texts */
    assert_int_equal(of_hex("0800480050005800", same_range), SAME);     /* references to the first text */
    assert_int_equal(of_hex("4200", same_range), SAME);                 /* an empty line table */
    assert_int_equal(of_hex("42040a001200", same_range), SAME);         /* of empty lists */
    assert_int_equal(of_hex("60ffffffffffffffff7f", same_range), SAME); /* nine bytes */
    assert_int_equal(of_hex("28ffffffff0f", same_range), SAME);         /* all of 32 bits */
    assert_int_equal(of_hex("0818120500020304051a050101010101220528231f1b17", same_pad), SAME);
    assert_int_equal(of_hex("28cb0c1201001a0101220127", same_pad), SAME);
}

TEST(last_of_repeated_fields_wins)
{
    assert_int_equal(of_hex("60c00c0818", same_range), SAME);
    assert_int_equal(of_hex("08186005", same_range), SAME);
    assert_int_equal(of_hex("1a01664805", same_range), SAME);
    assert_int_equal(of_hex("48051a0166", same_range), SAME);
    assert_int_equal(of_hex("1a0166"
                            "1a0167"
                            "2201662205"
                            "6162636465"
                            "50075800320168",
                            same_range),
                     SAME);
    assert_int_equal(of_hex("10051006"
                            "28012802"
                            "38013802",
                            same_range),
                     SAME);
    assert_int_equal(of_hex("0801"
                            "2802"
                            "0803",
                            same_pad),
                     SAME);
}

TEST(unusual_messages_are_left_to_the_general_reader)
{
    static const char *const ranges[] = {
        "08",                     /* no value */
        "60ffffffffffffffffff01", /* ten bytes */
        "28ffffffff1f",           /* more than 32 bits */
        "288000",                 /* a number of more bytes than it needs */
        "1a808080808000",         /* such a size */
        "6801",                   /* an unknown field */
        "0a0101",                 /* another kind of value */
        "1a05666f6f",             /* a text that ends behind the message */
        "4204080008014200",       /* a list that is not packed */
        "42030a0100"
        "42030a0101",       /* a line table in two pieces */
        "42060a01000a0101", /* a list in two pieces */
        "42030a0180",       /* a number that ends behind its list */
        "8801"
        "05", /* a tag of two bytes */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        assert_int_equal(of_hex(ranges[i], same_range), LEFT_TO_PROTOBUF);
    assert_int_equal(of_hex("1000", same_pad), LEFT_TO_PROTOBUF);
    assert_int_equal(of_hex("120100120101", same_pad), LEFT_TO_PROTOBUF);
    assert_int_equal(of_hex("3001", same_pad), LEFT_TO_PROTOBUF);
}

/* Messages of any fields in any order with any numbers, then with damage. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void add_number(struct sl_buf *out, uint32_t *seed)
{
    uint64_t number = (uint64_t)next_random(seed) << 40 ^ (uint64_t)next_random(seed) << 20 ^ next_random(seed);
    sl_buf_uleb(out, number >> next_random(seed) % 64);
}

static void add_list(struct sl_buf *out, unsigned field, uint32_t *seed)
{
    struct sl_buf packed = {0};
    for (uint32_t count = next_random(seed) % 6; count; count--)
        sl_buf_uleb(&packed, next_random(seed) >> next_random(seed) % 24);
    sl_buf_u8(out, (uint8_t)(field << 3 | 2));
    sl_buf_uleb(out, packed.size);
    sl_buf_add(out, packed.data, packed.size);
    sl_buf_free(&packed);
}

static void add_field(struct sl_buf *out, bool pad, uint32_t *seed)
{
    unsigned field = 1 + next_random(seed) % (pad ? 5 : 12);
    bool list = pad && field >= 2 && field <= 4, text = !pad && (field == 3 || field == 4 || field == 6);
    if (!pad && field == 8) {
        struct sl_buf table = {0};
        for (uint32_t count = next_random(seed) % 3; count; count--)
            add_list(&table, 1 + count % 2, seed);
        sl_buf_u8(out, 8 << 3 | 2);
        sl_buf_uleb(out, table.size);
        sl_buf_add(out, table.data, table.size);
        sl_buf_free(&table);
    } else if (list) {
        add_list(out, field, seed);
    } else if (text) {
        uint32_t size = next_random(seed) % 9;
        sl_buf_u8(out, (uint8_t)(field << 3 | 2));
        sl_buf_uleb(out, size);
        sl_buf_fill(out, (uint8_t)next_random(seed), size);
    } else {
        sl_buf_u8(out, (uint8_t)(field << 3));
        add_number(out, seed);
    }
}

TEST(random_messages_are_read_as_by_the_general_reader)
{
    uint32_t seed = 1;
    size_t same[2] = {0};
    unsigned messages = effort(10000, 200000);
    for (unsigned i = 0; i < messages; i++) {
        struct sl_buf message = {0};
        bool pad = i % 2, damaged = i % 3 == 0;
        for (uint32_t fields = next_random(&seed) % 9; fields; fields--)
            add_field(&message, pad, &seed);
        if (damaged && message.size)
            message.data[next_random(&seed) % message.size] ^= (uint8_t)(1 << next_random(&seed) % 8);
        if (damaged && message.size && next_random(&seed) % 2)
            message.size -= next_random(&seed) % message.size;
        uint8_t *exact = malloc(message.size + !message.size); /* so that reading past it is seen */
        if (message.size)
            memcpy(exact, message.data, message.size);
        struct sl_bytes body = {exact, message.size};
        enum sameness result = pad ? same_pad(body) : same_range(body);
        assert_int_not_equal(result, DIFFERENT);
        same[pad] += result == SAME;
        free(exact);
        sl_buf_free(&message);
    }
    assert_true(same[0] > messages / 7 && same[1] > messages / 7);
}
