/* .pdata and .xdata of x86-64 and ARM64, byte by byte. */
#include "image.h"

enum { AMD64 = 0x8664, ARM64 = 0xAA64, PDATA = 0x3000, XDATA = 0x4000 };

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

TEST(prologue_codes_are_read)
{
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

TEST(machine_frames_are_read)
{
    static const uint8_t machine[] = {1, 0, 1, 0, 0, 0x1A, 0, 0};
    expect_codes(machine, sizeof machine,
                 "STACK CFI INIT 1000 50 .cfa: $rsp 56 + .ra: .cfa 48 - ^ $rsp: .cfa 24 - ^\n");
}

TEST(version_2_epilogue_codes_are_skipped)
{
    /* epilogue codes come first and are nothing of the prologue */
    static const uint8_t epilogs[] = {2, 4, 3, 0, 5, 0x16, 9, 0x06, 4, 0x42, 0, 0};
    expect_codes(epilogs, sizeof epilogs, FIRST "STACK CFI 1004 .cfa: $rsp 48 +\n");
}

TEST(chained_parts_inherit_their_prologue)
{
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

TEST(endless_chain_is_malformed)
{
    static const uint8_t loop[] = {0x21, 0, 0, 0, 0, 0x10, 0, 0, 0x50, 0x10, 0, 0, 0, 0x40, 0, 0};
    struct sl_buf file = image((const uint32_t[]){XDATA}, 1, loop, sizeof loop);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_MALFORMED);
    assert_string_equal(r.error.message,
                        "unwind data of the PE file: a function has a chain of more than 128 UNWIND_INFOs");
    sl_buf_free(&r.text);
    /* without a limit of its own it ends with the work that the file is worth */
    r = records_within(buf_bytes(&file), &(struct sl_object_limits){.max_unwind_chain = UINT64_MAX});
    assert_int_equal(r.code, SL_MALFORMED);
    assert_null(strstr(r.error.message, "chain"));
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

/* A function and the parts before it, the oldest of which pushed rbx. */
TEST(chain_length_is_limited)
{
    enum { PARTS = 200 };
    static const uint8_t last[] = {1, 1, 1, 0, 1, 0x30, 0, 0};
    static const struct {
        uint64_t most;
        enum sl_code code;
    } rows[] = {{0, SL_MALFORMED}, {1, SL_MALFORMED}, {PARTS - 1, SL_MALFORMED}, {PARTS, SL_OK}, {UINT64_MAX, SL_OK}};
    struct sl_buf xdata = {0};
    for (uint32_t i = 1; i < PARTS; i++) {
        sl_buf_u32(&xdata, 0x21); /* chained, without codes of its own */
        sl_buf_u32(&xdata, 0x1000);
        sl_buf_u32(&xdata, 0x1050);
        sl_buf_u32(&xdata, XDATA + 16 * i);
    }
    sl_buf_add(&xdata, last, sizeof last);
    struct sl_buf file = image((const uint32_t[]){XDATA}, 1, xdata.data, xdata.size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_object_limits limits = {.max_unwind_chain = rows[i].most};
        struct records r = records_within(buf_bytes(&file), &limits);
        if (r.code != rows[i].code)
            fail_msg("row %zu: %s", i, r.error.message);
        assert_string_equal(
            (const char *)r.text.data,
            r.code == SL_OK ? "STACK CFI INIT 1000 50 .cfa: $rsp 16 + .ra: .cfa 8 - ^ $rbx: .cfa 16 - ^\n" : "");
        sl_buf_free(&r.text);
    }
    sl_buf_free(&xdata);
    sl_buf_free(&file);
}

TEST(malformed_entries_are_left_out)
{
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
    /* a directory extends beyond the file */
    file = pe_image(AMD64, (const uint32_t[]){0x8000, 12}, NULL, 0);
    expect(file, "");
}

/* ---- ARM64 ---- */

/* Functions from 0x1000 on, 0x100 apart, with these second words. */
static struct sl_buf arm64_image(const uint32_t *words, size_t count, const void *xdata, size_t size)
{
    struct sl_buf pdata = {0};
    for (uint32_t i = 0; i < count; i++) {
        sl_buf_u32(&pdata, 0x1000 + i * 0x100);
        sl_buf_u32(&pdata, words[i]);
    }
    const struct image_section sections[] = {{".pdata", PDATA, buf_bytes(&pdata)}, {".xdata", XDATA, {xdata, size}}};
    struct sl_buf file = pe_image(ARM64, (const uint32_t[]){PDATA, (uint32_t)pdata.size}, sections, 2);
    sl_buf_free(&pdata);
    return file;
}

TEST(arm64_codes_are_read)
{
    /* 0x20 instructions, one epilogue at the end, two words of codes, newest first: add x29, sp, 32; stp x29, lr, [sp, 32];
     * the next pair; stp x19, x20, [sp, -48]! */
    static const uint8_t xdata[] = {0x20, 0, 0x20, 0x10, 0xE2, 4, 0x44, 0xE6, 0x26, 0xE4, 0xE3, 0xE3};
    expect(arm64_image((const uint32_t[]){XDATA}, 1, xdata, sizeof xdata),
           "STACK CFI INIT 1000 80 .cfa: sp 0 + .ra: x30\n"
           "STACK CFI 1004 .cfa: sp 48 + x19: .cfa -48 + ^ x20: .cfa -40 + ^\n"
           "STACK CFI 1008 x21: .cfa -32 + ^ x22: .cfa -24 + ^\n"
           "STACK CFI 100c x29: .cfa -16 + ^ .ra: .cfa -8 + ^ x30: .cfa -8 + ^\n"
           "STACK CFI 1010 .cfa: x29 16 +\n");
    /* the numbers of words in a word of their own, an epilogue to skip; a nop; sub sp, 16384; sub sp, 512; str d8, [sp, 8];
     * str x19, [sp, -16]! */
    static const uint8_t large[] = {8,    0,    0, 0, 1, 0,    3,    0,    0, 0,    0, 0,
                                    0xE3, 0xE0, 0, 4, 0, 0xC0, 0x20, 0xDC, 1, 0xD4, 1, 0xE4};
    expect(arm64_image((const uint32_t[]){XDATA}, 1, large, sizeof large),
           "STACK CFI INIT 1000 20 .cfa: sp 0 + .ra: x30\n"
           "STACK CFI 1004 .cfa: sp 16 + x19: .cfa -16 + ^\nSTACK CFI 1008 v8: .cfa -8 + ^\n"
           "STACK CFI 100c .cfa: sp 528 +\nSTACK CFI 1010 .cfa: sp 16912 +\n");
    /* a part whose function began elsewhere with sub sp, 32: then str x20, [sp, 8] */
    static const uint8_t part[] = {4, 0, 0x20, 0x10, 0xD0, 0x41, 0xE5, 0x02, 0xE4, 0, 0, 0};
    expect(arm64_image((const uint32_t[]){XDATA}, 1, part, sizeof part),
           "STACK CFI INIT 1000 10 .cfa: sp 32 + .ra: x30\nSTACK CFI 1004 x20: .cfa -24 + ^\n");
}

static uint32_t packed(unsigned flag, unsigned instructions, unsigned f, unsigned i, unsigned h, unsigned cr,
                       unsigned size)
{
    return flag | instructions << 2 | f << 13 | i << 16 | h << 20 | cr << 21 | size / 16 << 23;
}

TEST(arm64_packed_entries_are_read)
{
    const uint32_t words[] = {
        packed(1, 16, 0, 3, 0, 1, 48),   /* x19, x20; x21 with lr; then sub sp, 16 */
        packed(1, 16, 1, 0, 0, 3, 32),   /* d8, d9; x29 and lr; mov x29, sp */
        packed(2, 16, 0, 2, 0, 0, 16),   /* a part without a prologue */
        packed(1, 16, 0, 0, 1, 2, 5152), /* signed; parameters; 4080 and 1008 bytes; x29 and lr */
        packed(1, 16, 7, 15, 0, 0, 16),  /* more registers than there are */
    };
    struct sl_buf file = arm64_image(words, 5, "", 1);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data,
                        "STACK CFI INIT 1000 40 .cfa: sp 0 + .ra: x30\n"
                        "STACK CFI 1004 .cfa: sp 32 + x19: .cfa -32 + ^ x20: .cfa -24 + ^\n"
                        "STACK CFI 1008 x21: .cfa -16 + ^ .ra: .cfa -8 + ^ x30: .cfa -8 + ^\n"
                        "STACK CFI 100c .cfa: sp 48 +\n"
                        "STACK CFI INIT 1100 40 .cfa: sp 0 + .ra: x30\n"
                        "STACK CFI 1104 .cfa: sp 16 + v8: .cfa -16 + ^ v9: .cfa -8 + ^\n"
                        "STACK CFI 1108 .cfa: sp 32 + x29: .cfa -32 + ^ .ra: .cfa -24 + ^ x30: .cfa -24 + ^\n"
                        "STACK CFI 110c .cfa: x29 32 +\n"
                        "STACK CFI INIT 1200 40 .cfa: sp 16 + x19: .cfa -16 + ^ x20: .cfa -8 + ^ .ra: x30\n"
                        "STACK CFI INIT 1300 40 .cfa: sp 0 + .ra: x30\n"
                        "STACK CFI 1308 .cfa: sp 64 +\nSTACK CFI 1318 .cfa: sp 4144 +\n"
                        "STACK CFI 131c .cfa: sp 5152 +\n"
                        "STACK CFI 1320 x29: .cfa -5152 + ^ .ra: .cfa -5144 + ^ x30: .cfa -5144 + ^\n"
                        "STACK CFI 1324 .cfa: x29 5152 +\n");
    assert_int_equal(r.skipped, 1);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

TEST(malformed_arm64_entries_are_left_out)
{
    /* a frame of the system, a code cut off, version 1, words beyond the file; then sub sp, 16 */
    static const uint8_t xdata[] = {4,    0,    0x20, 0x08, 0xE8, 0xE4, 0,    0,    4, 0,    0x20, 0x08, 0xE3, 0xE3,
                                    0xE3, 0xC0, 4,    0,    0x24, 0x08, 1,    0xE4, 0, 0,    4,    0,    0x20, 0x08,
                                    1,    0xE4, 0,    0,    4,    0,    0x20, 0x40, 1, 0xE4, 0,    0};
    const uint32_t words[] = {XDATA, XDATA + 8, XDATA + 16, XDATA + 32, 0x9000, 3, XDATA + 24};
    struct sl_buf file = arm64_image(words, 7, xdata, sizeof xdata);
    struct records r = records_of(buf_bytes(&file));
    assert_string_equal((char *)r.text.data,
                        "STACK CFI INIT 1600 10 .cfa: sp 0 + .ra: x30\nSTACK CFI 1604 .cfa: sp 16 +\n");
    assert_int_equal(r.skipped, 6);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}
