/* .pdata and .xdata of x86-64, byte by byte. */
#include "image.h"

enum { AMD64 = 0x8664, PDATA = 0x3000, XDATA = 0x4000 };

/* Functions of 0x50 bytes from 0x1000 on, 0x100 apart, with the unwind information at these offsets. */
static struct sl_buf image(const uint32_t *infos, size_t count, const void *xdata, size_t size)
{
    struct sl_buf pdata = {0};
    for (uint32_t i = 0; i < count; i++) {
        sl_buf_u32(&pdata, 0x1000 + i * 0x100);
        sl_buf_u32(&pdata, 0x1050 + i * 0x100);
        sl_buf_u32(&pdata, infos[i]);
    }
    const struct image_section sections[] = {{".pdata", PDATA, buf_bytes(&pdata)}, {".xdata", XDATA, {xdata, size}}};
    struct sl_buf file = pe_image(AMD64, (const uint32_t[]){PDATA, (uint32_t)pdata.size}, sections, 2);
    sl_buf_free(&pdata);
    return file;
}

static void expect_codes(const void *xdata, size_t size, const char *records)
{
    expect(image((const uint32_t[]){XDATA}, 1, xdata, size), records);
}

#define FIRST "STACK CFI INIT 1000 50 .cfa: $rsp 8 + .ra: .cfa 8 - ^\n"

static void prologues(void **state)
{
    (void)state;
    /* push rbx; push rsi; push rdi; sub rsp, 48: offset of the next instruction, code | number << 4, newest first */
    static const uint8_t pushes[] = {1, 7, 4, 0, 7, 0x52, 3, 0x70, 2, 0x60, 1, 0x30};
    expect_codes(pushes, sizeof pushes,
                 FIRST
                 "STACK CFI 1001 .cfa: $rsp 16 + $rbx: .cfa 16 - ^\nSTACK CFI 1002 .cfa: $rsp 24 + $rsi: .cfa 24 - ^\n"
                 "STACK CFI 1003 .cfa: $rsp 32 + $rdi: .cfa 32 - ^\nSTACK CFI 1007 .cfa: $rsp 80 +\n");
    /* mov [rsp+8], rbx; push rdi; sub rsp, 32: rbx is saved in the caller's frame */
    static const uint8_t home[] = {1, 10, 4, 0, 10, 0x34, 6, 0, 10, 0x32, 6, 0x70};
    expect_codes(home, sizeof home,
                 FIRST "STACK CFI 1006 .cfa: $rsp 16 + $rdi: .cfa 16 - ^\n"
                       "STACK CFI 100a .cfa: $rsp 48 + $rbx: .cfa 0 - ^\n");
    /* push rbp; sub rsp, 0x80000 (large, 32 bits); lea rbp, [rsp + 0x20]; mov [rbp + 0x10], rsi (far) */
    static const uint8_t frame[] = {1, 20, 8, 0x25, 20, 0x65, 0x30, 0, 0, 0, 16, 0x03, 8, 0x11, 0, 0, 8, 0, 1, 0x50};
    expect_codes(frame, sizeof frame,
                 FIRST "STACK CFI 1001 .cfa: $rsp 16 + $rbp: .cfa 16 - ^\n"
                       "STACK CFI 1008 .cfa: $rsp 524304 +\nSTACK CFI 1010 .cfa: $rbp 524272 +\n"
                       "STACK CFI 1014 $rsi: $rbp 16 + ^\n");
    /* large, 16 bits of eight bytes each; an XMM register is not said */
    static const uint8_t large[] = {1, 12, 4, 0, 12, 0x68, 1, 0, 7, 0x01, 0, 16};
    expect_codes(large, sizeof large, FIRST "STACK CFI 1007 .cfa: $rsp 32776 +\n");
    /* no prologue at all */
    expect_codes("\1\0\0", 4, FIRST);
}

static void interrupts(void **state)
{
    (void)state;
    static const uint8_t machine[] = {1, 0, 1, 0, 0, 0x1A, 0, 0};
    expect_codes(machine, sizeof machine,
                 "STACK CFI INIT 1000 50 .cfa: $rsp 56 + .ra: .cfa 48 - ^ $rsp: .cfa 24 - ^\n");
}

static void codes_of_version_2(void **state)
{
    (void)state;
    /* epilogue codes come first and are nothing of the prologue */
    static const uint8_t epilogs[] = {2, 4, 3, 0, 5, 0x16, 9, 0x06, 4, 0x42, 0, 0};
    expect_codes(epilogs, sizeof epilogs, FIRST "STACK CFI 1004 .cfa: $rsp 48 +\n");
}

static void parts_of_functions(void **state)
{
    (void)state;
    /* at 0: push rbx; at 8: sub rsp, 32 in a part that continues 0x1000 */
    static const uint8_t chained[] = {1, 1, 1, 0,    1, 0x30, 0,    0,    0x21, 4, 1, 0,    4, 0x32,
                                      0, 0, 0, 0x10, 0, 0,    0x50, 0x10, 0,    0, 0, 0x40, 0, 0};
    expect(image((const uint32_t[]){XDATA, XDATA + 8}, 2, chained, sizeof chained),
           FIRST "STACK CFI 1001 .cfa: $rsp 16 + $rbx: .cfa 16 - ^\n"
                 "STACK CFI INIT 1100 50 .cfa: $rsp 16 + .ra: .cfa 8 - ^ $rbx: .cfa 16 - ^\n"
                 "STACK CFI 1104 .cfa: $rsp 48 +\n");
    /* an entry that names another one */
    expect(image((const uint32_t[]){XDATA, PDATA + 1}, 2, chained, sizeof chained),
           FIRST "STACK CFI 1001 .cfa: $rsp 16 + $rbx: .cfa 16 - ^\n"
                 "STACK CFI INIT 1100 50 .cfa: $rsp 8 + .ra: .cfa 8 - ^\n"
                 "STACK CFI 1101 .cfa: $rsp 16 + $rbx: .cfa 16 - ^\n");
}

static void a_chain_without_end(void **state)
{
    (void)state;
    static const uint8_t loop[] = {0x21, 0, 0, 0, 0, 0x10, 0, 0, 0x50, 0x10, 0, 0, 0, 0x40, 0, 0};
    struct sl_buf file = image((const uint32_t[]){XDATA}, 1, loop, sizeof loop);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_MALFORMED);
    assert_string_equal(r.error.message, "exceeded maximum unwind chain length");
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

static void bad_entries_are_left_out(void **state)
{
    (void)state;
    /* an unknown code, codes cut off, an operand cut off, version 3, information outside of the file; then a good one */
    static const uint8_t xdata[] = {1, 1, 1, 0, 1, 0x0F, 0, 0, 1, 1, 1, 0, 1, 0x11,
                                    0, 0, 3, 0, 0, 0,    1, 0, 0, 0, 1, 0, 9, 0};
    struct sl_buf file =
        image((const uint32_t[]){XDATA, XDATA + 8, XDATA + 16, XDATA + 24, 0x9000, XDATA + 20}, 6, xdata, sizeof xdata);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_OK);
    assert_int_equal(r.skipped, 5);
    assert_string_equal((char *)r.text.data, "STACK CFI INIT 1500 50 .cfa: $rsp 8 + .ra: .cfa 8 - ^\n");
    sl_buf_free(&r.text);
    sl_buf_free(&file);
    /* offsets that do not descend: what holds behind the prologue, for all of it; rows behind the end are none */
    static const uint8_t shuffled[] = {1, 4, 2, 0, 1, 0x32, 4, 0x30};
    expect_codes(shuffled, sizeof shuffled,
                 "STACK CFI INIT 1000 50 .cfa: $rsp 48 + .ra: .cfa 8 - ^ $rbx: .cfa 16 - ^\n");
    static const uint8_t late[] = {1, 0x60, 2, 0, 0x60, 0x32, 4, 0x30};
    expect_codes(late, sizeof late, FIRST "STACK CFI 1004 .cfa: $rsp 16 + $rbx: .cfa 16 - ^\n");
    /* a directory outside of the file */
    file = pe_image(AMD64, (const uint32_t[]){0x8000, 12}, NULL, 0);
    expect(file, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prologues),           cmocka_unit_test(interrupts),
        cmocka_unit_test(codes_of_version_2),  cmocka_unit_test(parts_of_functions),
        cmocka_unit_test(a_chain_without_end), cmocka_unit_test(bad_entries_are_left_out),
    };
    return cmocka_run_group_tests_name("unwind/pe", tests, NULL, NULL);
}
