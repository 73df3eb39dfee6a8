/* __unwind_info, word by word. The image is at 0x100000000, code at 0x1000 behind it. */
#include "image.h"

enum { CPU_X86_64 = 0x01000007, CPU_ARM64 = 0x0100000C };
static const uint64_t load = 0x100000000;

struct entry {
    uint32_t address, encoding;
};

/* Header, one page, and where it ends: 0x2000. */
static struct sl_buf regular(const struct entry *entries, size_t count)
{
    struct sl_buf b = {0};
    const uint32_t words[] = {1, 28, 0, 28, 0, 28, 2, entries[0].address, 52, 0, 0x2000, 0, 0, 2};
    for (size_t i = 0; i < 14; i++)
        sl_buf_u32(&b, words[i]);
    sl_buf_u16(&b, 8);
    sl_buf_u16(&b, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        sl_buf_u32(&b, entries[i].address);
        sl_buf_u32(&b, entries[i].encoding);
    }
    return b;
}

/* Two encodings of the file, one of the page (number 2). */
static struct sl_buf compressed(const uint32_t encodings[3], const struct entry *entries, size_t count)
{
    struct sl_buf b = {0};
    const uint32_t words[] = {1, 28, 2, 36, 0, 36, 2, encodings[0], encodings[1], 0x1000, 60, 0, 0x2000, 0, 0, 3};
    for (size_t i = 0; i < 16; i++)
        sl_buf_u32(&b, words[i]);
    sl_buf_u16(&b, 12);
    sl_buf_u16(&b, (uint16_t)count);
    sl_buf_u16(&b, (uint16_t)(12 + 4 * count));
    sl_buf_u16(&b, 1);
    for (size_t i = 0; i < count; i++)
        sl_buf_u32(&b, (entries[i].address - 0x1000) | entries[i].encoding << 24);
    sl_buf_u32(&b, encodings[2]);
    return b;
}

static struct sl_buf image_with(uint32_t cpu, struct sl_buf info, struct sl_bytes text, struct sl_bytes eh_frame,
                                const char *symbol)
{
    const struct image_section sections[] = {{"__text", load + 0x1000, text},
                                             {"__unwind_info", load + 0x3000, buf_bytes(&info)},
                                             {"__eh_frame", load + 0x4000, eh_frame}};
    struct sl_buf file = macho_image(cpu, cpu == CPU_X86_64 ? 3 : 0, load, sections, eh_frame.size ? 3 : 2, symbol);
    sl_buf_free(&info);
    return file;
}

static struct sl_buf image(uint32_t cpu, struct sl_buf info, struct sl_bytes text, struct sl_bytes eh_frame)
{
    return image_with(cpu, info, text, eh_frame, NULL);
}

static const struct sl_bytes no_text = {(const uint8_t *)"\x90", 1}, none = {NULL, 0};

TEST(x86_64_encodings_are_read)
{
    /* frame with rbx, r14, r15 at -32, -24, -16; frameless of 96 bytes with all six; a leaf; none of zero length */
    const struct entry entries[] = {
        {0x1000, 0x01040B11}, {0x1090, 0x020C1800}, {0x10B0, 0}, {0x10C0, 0x02040802}, {0x10C0, 0x02040C0A}};
    expect(image(CPU_X86_64, regular(entries, 5), no_text, none),
           "STACK CFI INIT 1000 90 .cfa: $rbp 16 + $rbp: .cfa -16 + ^ .ra: .cfa -8 + ^ $rbx: .cfa -48 + ^ "
           "$r12: .cfa -40 + ^ $r14: .cfa -32 + ^ $r15: .cfa -24 + ^\n"
           "STACK CFI INIT 1090 20 .cfa: $rsp 96 + .ra: .cfa -8 + ^ $rbp: .cfa -16 + ^ $r15: .cfa -24 + ^ "
           "$r14: .cfa -32 + ^ $r13: .cfa -40 + ^ $r12: .cfa -48 + ^ $rbx: .cfa -56 + ^\n"
           "STACK CFI INIT 10b0 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
           "STACK CFI INIT 10c0 f40 .cfa: $rsp 32 + .ra: .cfa -8 + ^ $r15: .cfa -16 + ^ $r14: .cfa -24 + ^ "
           "$rbx: .cfa -32 + ^\n");
}

/* Every permutation of as many registers as there are, against the formula of the format's header, counted the other way
 * round: the number of each register among those not yet taken. */
TEST(x86_64_register_permutations_are_decoded)
{
    static const char *const names[] = {NULL, "$rbx", "$r12", "$r13", "$r14", "$r15", "$rbp"};
    static const unsigned orders[][7] = {{1, 3},          {2, 6, 1},          {3, 2, 4, 6},
                                         {4, 6, 5, 2, 1}, {5, 5, 3, 1, 6, 2}, {6, 6, 5, 4, 3, 2, 1}};
    for (size_t i = 0; i < 6; i++) {
        unsigned count = orders[i][0], value = 0;
        for (unsigned j = 0; j < count; j++) {
            unsigned smaller = 0;
            for (unsigned k = 0; k < j; k++)
                smaller += orders[i][1 + k] < orders[i][1 + j];
            unsigned radix = 6 - j; /* choices left */
            value = value * radix + orders[i][1 + j] - 1 - smaller;
        }
        struct entry entry = {0x1000, 0x02000000 | 0x10 << 16 | count << 10 | value};
        struct sl_buf text = {0};
        sl_buf_cstr(&text, "STACK CFI INIT 1000 1000 .cfa: $rsp 128 + .ra: .cfa -8 + ^");
        for (unsigned j = 0; j < count; j++)
            sl_buf_printf(&text, " %s: .cfa %d + ^", names[orders[i][count - j]], -16 - 8 * (int)j);
        sl_buf_add(&text, "\n", 2);
        expect(image(CPU_X86_64, regular(&entry, 1), no_text, none), (const char *)text.data);
        sl_buf_free(&text);
    }
    /* no permutation: 7 registers, or a number beyond the last one */
    const struct entry bad[] = {{0x1000, 0x02101C00}, {0x1100, 0x021007FF}};
    expect(image(CPU_X86_64, regular(bad, 2), no_text, none), "");
}

/* The size of a large stack is in `sub rsp, imm32`: here 0x9C48, and one word more. */
TEST(large_stack_size_is_read_from_the_code)
{
    const uint8_t code[] = {0x53, 0x48, 0x81, 0xEC, 0x48, 0x9C, 0, 0};
    const struct entry entries[] = {{0x1000, 0x03042400}, {0x1100, 0x03042400}};
    struct sl_buf file = image(CPU_X86_64, regular(entries, 2), (struct sl_bytes){code, sizeof code}, none);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data,
                        "STACK CFI INIT 1000 100 .cfa: $rsp 40016 + .ra: .cfa -8 + ^ $rbx: .cfa -16 + ^\n");
    assert_int_equal(r.skipped, 1); /* outside of the code */
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

TEST(arm64_compressed_pages_are_read)
{
    const uint32_t encodings[] = {0x04000003, 0x02002000, 0x04000111};
    const struct entry entries[] = {{0x1000, 0}, {0x1010, 1}, {0x1020, 2}, {0x1030, 9}, {0x1040, 1}};
    struct sl_buf file = image(CPU_ARM64, compressed(encodings, entries, 5), no_text, none);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data,
                        "STACK CFI INIT 1000 10 .cfa: x29 16 + x29: .cfa -16 + ^ .ra: .cfa -8 + ^ x19: .cfa -24 + ^ "
                        "x20: .cfa -32 + ^ x21: .cfa -40 + ^ x22: .cfa -48 + ^\n"
                        "STACK CFI INIT 1010 10 .cfa: sp 32 + .ra: x30 0 +\n"
                        "STACK CFI INIT 1040 fc0 .cfa: sp 32 + .ra: x30 0 +\n");
    assert_int_equal(r.skipped, 1); /* there is no encoding 9, and where 0x1020 ends is not known */
    sl_buf_free(&r.text);
    sl_buf_free(&file);
    const struct entry plain[] = {{0x1000, 0x04000111}, {0x1010, 0}};
    expect(image(CPU_ARM64, regular(plain, 2), no_text, none),
           "STACK CFI INIT 1000 10 .cfa: x29 16 + x29: .cfa -16 + ^ .ra: .cfa -8 + ^ x19: .cfa -24 + ^ "
           "x20: .cfa -32 + ^ x27: .cfa -40 + ^ x28: .cfa -48 + ^ v14: .cfa -56 + ^ v15: .cfa -64 + ^\n"
           "STACK CFI INIT 1010 ff0 .cfa: sp .ra: x30\n");
}

/* Functions that the encodings cannot describe name their FDE, each once. */
TEST(dwarf_encodings_lead_to_eh_frame)
{
    struct sl_buf eh = {0};
    const uint8_t cie[] = {16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1, 0, 0};
    sl_buf_add(&eh, cie, sizeof cie);
    for (uint64_t i = 0; i < 2; i++) {
        sl_buf_u32(&eh, 24);
        sl_buf_u32(&eh, (uint32_t)eh.size);
        sl_buf_u64(&eh, load + 0x1000 + i * 0x100);
        sl_buf_u64(&eh, 0x100);
        sl_buf_add(&eh, "\x41\x0E\x10", 4);
    }
    /* the second one is in no entry: it is not read */
    const struct entry entries[] = {{0x1000, 0x04000014}, {0x1080, 0x04000014}, {0x1100, 0x04000003}, {0x1200, 0}};
    struct sl_buf file = image(CPU_X86_64, regular(entries, 4), no_text, buf_bytes(&eh));
    sl_buf_free(&eh);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data, "STACK CFI INIT 1000 100 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                             "STACK CFI 1001 .cfa: $rsp 16 +\n"
                                             "STACK CFI INIT 1200 e00 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
    assert_int_equal(r.skipped, 1); /* no FDE at 3 */
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

/* Instead of its FDE; only of x86-64. */
TEST(signal_trampoline_has_its_own_rules)
{
    const struct entry x86_64[] = {{0x1000, 0x04000014}, {0x1010, 0}}, arm64[] = {{0x1000, 0x03000014}, {0x1010, 0}};
    expect(image_with(CPU_X86_64, regular(x86_64, 2), no_text, none, "__sigtramp"),
           "STACK CFI INIT 1000 10 .cfa: $rbx 48 + ^ 72 + ^ $rbx: $rbx 48 + ^ 24 + ^ $rbp: $rbx 48 + ^ 64 + ^ "
           "$r12: $rbx 48 + ^ 112 + ^ $r13: $rbx 48 + ^ 120 + ^ $r14: $rbx 48 + ^ 128 + ^ "
           "$r15: $rbx 48 + ^ 136 + ^ .ra: $rbx 48 + ^ 144 + ^\n"
           "STACK CFI INIT 1010 ff0 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
    expect(image_with(CPU_X86_64, regular(x86_64, 2), no_text, none, "_sigtramp"),
           "STACK CFI INIT 1010 ff0 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
    expect(image_with(CPU_ARM64, regular(arm64, 2), no_text, none, "__sigtramp"),
           "STACK CFI INIT 1010 ff0 .cfa: sp .ra: x30\n");
}

TEST(malformed_tables_are_left_out)
{
    const struct entry entries[] = {{0x1000, 0}, {0x1200, 0}, {0x1180, 0}, {0x1300, 0}};
    struct sl_buf info = regular(entries, 4);
    /* entries ascend: one that ends before it begins is none, nor is a header that cannot be right */
    struct sl_buf file = image(CPU_X86_64, info, no_text, none);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data, "STACK CFI INIT 1000 200 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                             "STACK CFI INIT 1180 180 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                             "STACK CFI INIT 1300 d00 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
    assert_int_equal(r.skipped, 1);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
    const struct {
        size_t at;
        uint32_t value;
        const char *message;
    } bad[] = {
        {0, 2, "__unwind_info: invalid header (unknown version, or an offset outside of the section)"},
        {20, 0xFFFF, "__unwind_info: invalid header (unknown version, or an offset outside of the section)"},
        {24, 0x10000000, "__unwind_info: the index of 268435456 pages at offset 0x1c extends beyond the section"}};
    for (size_t i = 0; i < 3; i++) {
        info = regular(entries, 1);
        memcpy(info.data + bad[i].at, &bad[i].value, 4);
        file = image(CPU_X86_64, info, no_text, none);
        r = records_of(buf_bytes(&file));
        assert_int_equal(r.code, SL_MALFORMED);
        assert_string_equal(r.error.message, bad[i].message);
        sl_buf_free(&r.text);
        sl_buf_free(&file);
    }
}

/* ---- limits ---- */

static enum sl_code count_range(struct sl_unwind_sink *sink, const struct sl_unwind_range *range,
                                struct sl_error *error)
{
    (void)sink, (void)range, (void)error;
    return SL_OK;
}

/* A page of `entries` leaves, which the index names `times` times. */
static struct sl_buf page_named_again(uint32_t times, uint32_t entries)
{
    struct sl_buf b = {0};
    const uint32_t header[] = {1, 28, 0, 28, 0, 28, times + 1}, page = 28 + 12 * (times + 1);
    for (size_t i = 0; i < 7; i++)
        sl_buf_u32(&b, header[i]);
    for (uint32_t i = 0; i <= times; i++) {
        sl_buf_u32(&b, 0x1000 + i);
        sl_buf_u32(&b, i < times ? page : 0);
        sl_buf_u32(&b, 0);
    }
    sl_buf_u32(&b, 2);
    sl_buf_u16(&b, 8);
    sl_buf_u16(&b, (uint16_t)entries);
    for (uint32_t i = 0; i < entries; i++) {
        sl_buf_u32(&b, 0x1000 + i);
        sl_buf_u32(&b, 0);
    }
    return image(CPU_X86_64, b, no_text, none);
}

static enum sl_code read_within(uint32_t times, int64_t steps, uint64_t memory, struct sl_error *error)
{
    struct sl_buf file = page_named_again(times, 1000);
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object;
    struct sl_unwind_sink sink = {.range = count_range};
    sl_budget_init(&budget, 0);
    atomic_store(&budget.steps, steps);
    sl_budget_limit(&budget, memory, NULL, NULL);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), &limits, &object, error), SL_OK);
    enum sl_code code = sl_unwind_read(object, &sink, error);
    sl_object_close(object);
    sl_buf_free(&file);
    return code;
}

TEST(every_page_visit_is_charged)
{
    struct sl_error error = {0};
    assert_int_equal(read_within(1, 100000, 0, &error), SL_OK);
    assert_int_equal(read_within(1000, 100000, 0, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "reading the file needs more work than allowed for a file of 0 bytes; it may be damaged");
    assert_int_equal(read_within(1000, 100000000, 0, &error), SL_OK);
    assert_int_equal(read_within(1, 100000, 16 << 10, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more than 0 MiB of memory");
}
