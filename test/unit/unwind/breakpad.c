/* STACK records of symbol files, and their way through the stream. */
#include "image.h"

static struct sl_buf file_of(const char *arch, const char *records)
{
    struct sl_buf b = {0};
    sl_buf_printf(&b, "MODULE Linux %s 3249D99D0C4049318610F4E4FB0B69360 x\n%s", arch, records);
    return b;
}

static void stays(const char *arch, const char *records)
{
    expect(file_of(arch, records), records);
}

TEST(records_survive_a_round_trip)
{
    stays("x86_64", "STACK CFI INIT 1ec0 3b .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                    "STACK CFI 1ec3 .cfa: $rsp 16 + $rbx: .cfa -16 + ^\n"
                    "STACK CFI 1ed0 $rbx: $rbx\n"
                    "STACK CFI INIT 1f00 10 .cfa: $rsp 8 + $rip 16 % 5 + 16 / 8 * + .ra: .cfa -8 + ^\n");
    stays("arm64", "STACK CFI INIT 5e0 30 .cfa: sp .ra: x30 0 +\n"); /* forms that mean the same stay what they are */
    stays("x86", "STACK WIN 4 1000 114 11 0 8 0 0 0 1 $T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =\n"
                 "STACK WIN 0 2000 c0 1 2 3 4 5 6 0 1\n");
    /* registers nobody knows, undefined ones, no return address */
    stays("x86",
          "STACK CFI INIT 2000 10 .cfa: $esp 4 + foo: 3 4 * $ebx: .undef\nSTACK CFI 2001 foo: .cfa 8 + ^ bar: foo\n");
}

TEST(records_are_normalised)
{
    expect(file_of("x86", "STACK  CFI\tINIT 002000  0010 .cfa: $esp  4  +   .ra: .cfa 4 - ^ \r\n"
                          "STACK CFI 2001 .cfa: $esp 8 + .cfa: $esp 12 +\n"
                          "STACK CFI 2002 .cfa: $esp 12 +\n"
                          "STACK WIN 4 2000 10 2 0 4 0 0 0 1  a  b \r\n"),
           "STACK CFI INIT 2000 10 .cfa: $esp 4 + .ra: .cfa -4 + ^\nSTACK CFI 2001 .cfa: $esp 12 +\n"
           "STACK WIN 4 2000 10 2 0 4 0 0 0 1 a  b\n");
}

/* Rules of one place come in the order in which the range first has them. */
TEST(rules_are_ordered_by_first_use)
{
    expect(file_of("arm64", "STACK CFI INIT 5e0 30 .cfa: sp 0 + .ra: x30\n"
                            "STACK CFI 5e4 x29: .cfa -32 + ^ .ra: .cfa -24 + ^ .cfa: sp 32 +\n"),
           "STACK CFI INIT 5e0 30 .cfa: sp 0 + .ra: x30\n"
           "STACK CFI 5e4 .cfa: sp 32 + .ra: .cfa -24 + ^ x29: .cfa -32 + ^\n");
}

TEST(malformed_records_are_left_out)
{
    static const char *const bad[] = {
        "STACK CFI 2001 .cfa: $esp 8 +",
        "STACK CFI INIT 3000 0 .cfa: $esp 4 +",
        "STACK CFI INIT 3000 .cfa: $esp 4 +",
        "STACK CFI INIT 3000 10 $esp 4 +",
        "STACK CFI INIT 3000 10 .cfa: .ra: 4",
        "STACK CFI INIT 3000 10 .ra: .cfa",
        "STACK CFI INIT 3000 10",
        "STACK CFI INIT ffffffffffffffff 10 .cfa: $esp 4 +",
        "STACK CFI INIT 3`00 10 .cfa: $esp 4 +",
        "STACK CFI INIT 12345678123456781 10 .cfa: $esp 4 +",
        "STACK WIN 4 1000",
        "STACK WIN 4 1000 114 11 0 8 0 0 0 1",
        "STACK WIN 4 1000 114 11 0 8 0 0 0 2 a",
        "STACK WIN 4 1000 114 123456789 0 8 0 0 0 1 a",
        "STACK NONE",
        "STACK",
        "STACK CFI INIT 3000 10 .cfa: \x1B[2J",
        "STACK CFI INIT 3000 10 .cfa: \xFF",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sl_buf file = file_of("x86", bad[i]);
        struct records r = records_of(buf_bytes(&file));
        assert_int_equal(r.code, SL_NOT_FOUND);
        assert_int_equal(r.skipped, 1);
        assert_string_equal((char *)r.text.data, "");
        sl_buf_free(&r.text);
        sl_buf_free(&file);
    }
    /* rules outside of their range, and before the ones they follow */
    expect(
        file_of("x86",
                "STACK CFI INIT 2000 10 .cfa: $esp 4 +\nSTACK CFI 2010 .cfa: $esp 8 +\nSTACK CFI 1fff .cfa: $esp 8 +\n"
                "STACK CFI 2004 .cfa: $esp 8 +\nSTACK CFI 2002 .cfa: $esp 16 +\nSTACK CFI 2005 nonsense\n"
                "STACK CFI 2006 .cfa: $esp 4 +\n"),
        "STACK CFI INIT 2000 10 .cfa: $esp 4 +\nSTACK CFI 2004 .cfa: $esp 8 +\nSTACK CFI 2006 .cfa: $esp 4 +\n");
}

/* ---- the stream ---- */

static enum sl_code refuse(struct sl_unwind_sink *sink, const struct sl_unwind_range *range, struct sl_error *error)
{
    (void)sink;
    const struct sl_unwind_rule *ra = &range->rows[0].rules[1];
    assert_int_equal(range->rows[0].rules[0].reg, SL_UNWIND_CFA);
    assert_int_equal(range->rows[0].rules[0].kind, SL_UNWIND_OFFSET);
    assert_string_equal(sl_unwind_register_name(SL_CPU_X86_64, range->rows[0].rules[0].base), "$rsp");
    assert_int_equal(ra->reg, SL_UNWIND_RA);
    assert_int_equal(ra->kind, SL_UNWIND_MEMORY);
    assert_int_equal(ra->base, SL_UNWIND_CFA);
    assert_int_equal(ra->offset, -8);
    return sl_fail(error, SL_CANCELLED, "enough");
}

TEST(sink_can_cancel_the_reader)
{
    struct sl_buf file = file_of("x86_64", "STACK CFI INIT 1 1 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                           "STACK CFI INIT 9 1 .cfa: $rbp 8 +\n");
    struct sl_object *object;
    struct sl_error error = {0};
    struct sl_unwind_sink sink = {.range = refuse};
    assert_int_equal(sl_object_open(buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_unwind_read(object, &sink, &error), SL_CANCELLED);
    assert_string_equal(error.message, "enough");
    sl_object_close(object);
    sl_buf_free(&file);
}

TEST(registers_have_their_names)
{
    static const struct {
        enum sl_cpu_family family;
        unsigned number;
        const char *name;
    } rows[] = {
        {SL_CPU_X86, 8, "$eip"},           {SL_CPU_X86, 10, NULL},
        {SL_CPU_X86, 28, "$xmm7"},         {SL_CPU_X86, 49, "$ldtr"},
        {SL_CPU_X86_64, 1, "$rdx"},        {SL_CPU_X86_64, 16, "$rip"},
        {SL_CPU_X86_64, 32, "$xmm15"},     {SL_CPU_X86_64, 59, "$gs.base"},
        {SL_CPU_X86_64, 66, "$fsw"},       {SL_CPU_ARM, 11, "r11"},
        {SL_CPU_ARM, 103, "f7"},           {SL_CPU_ARM64, 31, "sp"},
        {SL_CPU_ARM64, 95, "v31"},         {SL_CPU_ARM64, 96, NULL},
        {SL_CPU_PPC64, 65, "lr"},          {SL_CPU_PPC, 108, "vr31"},
        {SL_CPU_PPC, 116, "texasr"},       {SL_CPU_MIPS, 31, "$ra"},
        {SL_CPU_MIPS64, 65, "$f31"},       {SL_CPU_MIPS, 67, "$fir"},
        {SL_CPU_UNKNOWN, 0, NULL},         {SL_CPU_ARM, SL_UNWIND_CFA, ".cfa"},
        {SL_CPU_ARM, SL_UNWIND_RA, ".ra"}, {SL_CPU_ARM, SL_UNWIND_NAMED, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = sl_unwind_register_name(rows[i].family, rows[i].number);
        assert_true(name ? rows[i].name && strcmp(name, rows[i].name) == 0 : !rows[i].name);
    }
}
