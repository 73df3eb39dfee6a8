/* .eh_frame and .debug_frame, byte by byte. Places of code begin at 0x1000. */
#include "image.h"

enum { EM_386 = 3, EM_MIPS = 8, EM_ARM = 40, EM_X86_64 = 62, EM_AARCH64 = 183, EM_RISCV = 243 };

#define BYTES(...) ((struct sl_bytes){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

/* One section: a CIE, then FDEs for 0x100 bytes each. */
struct frame_section {
    bool is_eh, big_endian, wide; /* wide: 64-bit DWARF */
    unsigned version, address_size;
    const char *augmentation;
    struct sl_bytes augmentation_data, fde_data;
    unsigned code, data; /* alignment factors, as one byte of LEB128 */
    unsigned return_register;
    uint8_t encoding; /* of pointers: what the augmentation says */
    struct sl_bytes initial;
    struct sl_buf out;
    uint64_t address;
};

static struct frame_section x86_64_section(void)
{
    static const uint8_t initial[] = {0x0C, 7, 8, 0x90, 1}; /* CFA rsp+8, return address at CFA-8 */
    return (struct frame_section){
        .is_eh = true,
        .version = 1,
        .address_size = 8,
        .augmentation = "",
        .code = 1,
        .data = 0x78, /* -8 */
        .return_register = 16,
        .initial = {initial, sizeof initial},
        .address = 0x5000,
    };
}

static size_t begin_entry(struct frame_section *s)
{
    if (s->wide)
        put_number(&s->out, 0xFFFFFFFF, 4, s->big_endian);
    put_number(&s->out, 0, s->wide ? 8 : 4, s->big_endian);
    return s->out.size;
}

static void end_entry(struct frame_section *s, size_t begin)
{
    struct sl_buf length = {0};
    unsigned size = s->wide ? 8 : 4;
    put_number(&length, s->out.size - begin, size, s->big_endian);
    memcpy(s->out.data + begin - size, buf_bytes(&length).data, size);
    sl_buf_free(&length);
}

static void add_cie(struct frame_section *s)
{
    size_t begin = begin_entry(s);
    unsigned id_size = s->wide && !s->is_eh ? 8 : 4;
    put_number(&s->out, s->is_eh ? 0 : UINT64_MAX, id_size, s->big_endian);
    sl_buf_u8(&s->out, (uint8_t)s->version);
    sl_buf_add(&s->out, s->augmentation, strlen(s->augmentation) + 1);
    if (s->version == 4) {
        sl_buf_u8(&s->out, (uint8_t)s->address_size);
        sl_buf_u8(&s->out, 0);
    }
    sl_buf_u8(&s->out, (uint8_t)s->code);
    sl_buf_u8(&s->out, (uint8_t)s->data);
    sl_buf_u8(&s->out, (uint8_t)s->return_register);
    if (s->augmentation[0] == 'z') {
        sl_buf_uleb(&s->out, s->augmentation_data.size);
        sl_buf_add(&s->out, s->augmentation_data.data, s->augmentation_data.size);
    }
    sl_buf_add(&s->out, s->initial.data, s->initial.size);
    end_entry(s, begin);
}

static void put_pointer(struct frame_section *s, uint64_t value, bool is_size)
{
    static const uint8_t sizes[16] = {0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};
    unsigned format = s->encoding & 15, size = format == 0 ? s->address_size : sizes[format];
    if (!is_size && (s->encoding & 0x70) == 0x10)
        value -= s->address + s->out.size;
    if (!is_size && (s->encoding & 0x70) == 0x50)
        sl_buf_align(&s->out, 8);
    if (format == 1)
        sl_buf_uleb(&s->out, value);
    else if (format == 9)
        sl_buf_sleb(&s->out, (int64_t)value);
    else
        put_number(&s->out, value, size, s->big_endian);
}

static void add_fde(struct frame_section *s, uint64_t start, uint64_t size, struct sl_bytes instructions)
{
    size_t begin = begin_entry(s);
    unsigned id_size = s->wide && !s->is_eh ? 8 : 4;
    put_number(&s->out, s->is_eh ? begin : 0, id_size, s->big_endian);
    put_pointer(s, start, false);
    put_pointer(s, size, true);
    if (s->augmentation[0] == 'z') {
        sl_buf_uleb(&s->out, s->fde_data.size);
        sl_buf_add(&s->out, s->fde_data.data, s->fde_data.size);
    }
    sl_buf_add(&s->out, instructions.data, instructions.size);
    end_entry(s, begin);
}

static struct sl_buf image(struct frame_section *s, unsigned machine)
{
    struct image_section section = {s->is_eh ? ".eh_frame" : ".debug_frame", s->address, buf_bytes(&s->out)};
    struct sl_buf file = elf_image(machine, s->address_size, s->big_endian, &section, 1);
    sl_buf_free(&s->out);
    return file;
}

/* What one FDE at 0x1000 with these instructions says on x86-64. */
static void expect_rules(struct sl_bytes instructions, const char *records)
{
    struct frame_section s = x86_64_section();
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, instructions);
    expect(image(&s, EM_X86_64), records);
}

#define FIRST "STACK CFI INIT 1000 100 .cfa: $rsp 8 + .ra: .cfa -8 + ^"

TEST(every_advance_opcode_is_read)
{
    /* advance_loc 1, loc1 2, loc2 0x10, loc4 0x20, each with a new CFA offset */
    expect_rules(BYTES(0x41, 0x0E, 16, 0x02, 2, 0x0E, 24, 0x03, 0x10, 0, 0x0E, 32, 0x04, 0x20, 0, 0, 0, 0x0E, 40),
                 FIRST "\nSTACK CFI 1001 .cfa: $rsp 16 +\nSTACK CFI 1003 .cfa: $rsp 24 +\n"
                       "STACK CFI 1013 .cfa: $rsp 32 +\nSTACK CFI 1033 .cfa: $rsp 40 +\n");
    /* set_loc 0x1040; MIPS advance_loc8 */
    expect_rules(BYTES(0x01, 0x40, 0x10, 0, 0, 0, 0, 0, 0, 0x0E, 16, 0x1D, 4, 0, 0, 0, 0, 0, 0, 0, 0x0E, 8),
                 FIRST "\nSTACK CFI 1040 .cfa: $rsp 16 +\nSTACK CFI 1044 .cfa: $rsp 8 +\n");
    /* by the code alignment factor */
    struct frame_section s = x86_64_section();
    s.code = 4;
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0x41, 0x0E, 16));
    expect(image(&s, EM_X86_64), FIRST "\nSTACK CFI 1004 .cfa: $rsp 16 +\n");
}

TEST(register_rules_are_read)
{
    /* offset rbx 2, offset_extended rbp 3, _sf r12 4, GNU_negative_offset_extended r13 1 */
    expect_rules(BYTES(0x83, 2, 0x05, 6, 3, 0x11, 12, 4, 0x2F, 13, 1),
                 FIRST " $rbx: .cfa -16 + ^ $rbp: .cfa -24 + ^ $r12: .cfa -32 + ^ $r13: .cfa 8 + ^\n");
    /* val_offset rbx 2, val_offset_sf rbp -1, register r12 rax, same_value r13, undefined r14, which is not said */
    expect_rules(BYTES(0x14, 3, 2, 0x15, 6, 0x7F, 0x09, 12, 0, 0x08, 13, 0x07, 14),
                 FIRST " $rbx: .cfa -16 + $rbp: .cfa 8 + $r12: $rax $r13: $r13\n");
    /* restore gives the CIE's rule back; restore_extended of a register the CIE does not mention, the callee's value */
    expect_rules(BYTES(0x83, 2, 0x90, 3, 0x41, 0xC3, 0x06, 16),
                 "STACK CFI INIT 1000 100 .cfa: $rsp 8 + .ra: .cfa -24 + ^ $rbx: .cfa -16 + ^\n"
                 "STACK CFI 1001 .ra: .cfa -8 + ^ $rbx: $rbx\n");
    /* where a register had a value, that it has none any more is said */
    expect_rules(BYTES(0x83, 2, 0x41, 0x07, 3), FIRST " $rbx: .cfa -16 + ^\nSTACK CFI 1001 $rbx: .undef\n");
    /* no caller: the return address is undefined from the start */
    expect_rules(BYTES(0x07, 16), "STACK CFI INIT 1000 100 .cfa: $rsp 8 +\n");
    /* a register without a name (56) */
    expect_rules(BYTES(0x05, 56, 2), FIRST "\n");
}

TEST(cfa_rules_are_read)
{
    /* def_cfa rbp 16; def_cfa_register rsp; def_cfa_sf rsp -4; def_cfa_offset_sf -1 */
    expect_rules(BYTES(0x0C, 6, 16, 0x41, 0x0D, 7, 0x41, 0x12, 7, 0x7C, 0x41, 0x13, 0x7F),
                 "STACK CFI INIT 1000 100 .cfa: $rbp 16 + .ra: .cfa -8 + ^\nSTACK CFI 1001 .cfa: $rsp 16 +\n"
                 "STACK CFI 1002 .cfa: $rsp 32 +\nSTACK CFI 1003 .cfa: $rsp 8 +\n");
    /* rows that say nothing new are not written; GNU_args_size and nop are nothing */
    expect_rules(BYTES(0x41, 0x0E, 8, 0x2E, 16, 0x00, 0x41, 0x0E, 16), FIRST "\nSTACK CFI 1002 .cfa: $rsp 16 +\n");
}

TEST(remembered_states_nest)
{
    expect_rules(BYTES(0x0A, 0x41, 0x0E, 16, 0x83, 2, 0x0A, 0x41, 0x0E, 24, 0x86, 3, 0x41, 0x0B, 0x41, 0x0B),
                 FIRST "\nSTACK CFI 1001 .cfa: $rsp 16 + $rbx: .cfa -16 + ^\n"
                       "STACK CFI 1002 .cfa: $rsp 24 + $rbp: .cfa -24 + ^\n"
                       "STACK CFI 1003 .cfa: $rsp 16 + $rbp: $rbp\n"
                       "STACK CFI 1004 .cfa: $rsp 8 + $rbx: $rbx\n");
}

TEST(expressions_are_translated)
{
    /* a PLT: rsp + 8 + ((rip & 15) >= 11) << 3 */
    expect_rules(BYTES(0x41, 0x0F, 11, 0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22),
                 FIRST "\nSTACK CFI 1001 .cfa: $rsp 8 + $rip 16 % 5 + 16 / 8 * +\n");
    /* what glibc says of signal frames: CFA at rsp + 160, registers around it */
    expect_rules(BYTES(0x0F, 4, 0x77, 0xA0, 1, 0x06, 0x10, 3, 3, 0x77, 0x80, 1, 0x10, 16, 3, 0x77, 0xA8, 1),
                 "STACK CFI INIT 1000 100 .cfa: $rsp 160 + ^ .ra: $rsp 168 + ^ $rbx: $rsp 128 + ^\n");
    /* val_expression and expression with the CFA on the stack: CFA - 16, and what is at CFA + 8 */
    expect_rules(BYTES(0x16, 3, 2, 0x40, 0x1C, 0x10, 6, 2, 0x23, 8), FIRST " $rbx: .cfa -16 + $rbp: .cfa 8 + ^\n");
    /* lit2 swap drop dup mul, rounded down to a multiple of 16 */
    expect_rules(BYTES(0x41, 0x0F, 11, 0x77, 0, 0x32, 0x16, 0x13, 0x12, 0x1E, 0x09, 0xF0, 0x1A, 0x96),
                 FIRST "\nSTACK CFI 1001 .cfa: 2 2 * 16 @\n");
    /* over, minus, shr, const2u, bregx: (rbp - rsp over) >> 4, plus what is left */
    expect_rules(BYTES(0x41, 0x0F, 13, 0x76, 0, 0x77, 0, 0x14, 0x1C, 0x34, 0x25, 0x22, 0x0A, 0, 1, 0x22),
                 FIRST "\nSTACK CFI 1001 .cfa: $rbp $rsp $rbp - 16 / + 256 +\n");
}

/* Code whose CFA cannot be said (with DW_OP_abs in it) is in no range; what comes behind begins a new one, in full. */
TEST(inexpressible_cfa_leaves_a_gap)
{
    expect_rules(BYTES(0x83, 2, 0x44, 0x0F, 3, 0x77, 8, 0x19, 0x44, 0x0C, 7, 16),
                 "STACK CFI INIT 1000 4 .cfa: $rsp 8 + .ra: .cfa -8 + ^ $rbx: .cfa -16 + ^\n"
                 "STACK CFI INIT 1008 f8 .cfa: $rsp 16 + .ra: .cfa -8 + ^ $rbx: .cfa -16 + ^\n");
    /* the same of a register: its value is not known */
    expect_rules(BYTES(0x10, 3, 3, 0x77, 8, 0x19), FIRST " $rbx: .undef\n");
}

TEST(malformed_instructions_end_the_range)
{
    const struct sl_bytes bad[] = {
        BYTES(0x44, 0x3F),                         /* unknown */
        BYTES(0x44, 0x0B),                         /* restore_state without remember_state */
        BYTES(0x44, 0x0E),                         /* cut off */
        BYTES(0x44, 0x01, 0, 0, 0, 0, 0, 0, 0, 0), /* backwards */
        BYTES(0x44, 0x0F, 0x7F, 0x77),             /* an expression longer than the entry */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct frame_section s = x86_64_section();
        add_cie(&s);
        add_fde(&s, 0x1000, 0x100, bad[i]);
        add_fde(&s, 0x2000, 0x10, BYTES(0));
        struct sl_buf file = image(&s, EM_X86_64);
        struct records r = records_of(buf_bytes(&file));
        assert_int_equal(r.code, SL_OK);
        assert_int_equal(r.skipped, 1);
        /* the second FDE's CIE pointer is its distance to the first byte, as add_fde makes it */
        assert_string_equal((char *)r.text.data, "STACK CFI INIT 1000 4 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                                 "STACK CFI INIT 2000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
        sl_buf_free(&r.text);
        sl_buf_free(&file);
    }
}

TEST(augmentations_are_skipped_or_read)
{
    /* R: encoding; P: personality (its encoding, the pointer); L: encoding of the LSDA; S, B, G: nothing */
    struct frame_section s = x86_64_section();
    s.augmentation = "zPLRSBG";
    s.augmentation_data = BYTES(0x9B, 1, 2, 3, 4, 0x1B, 0x1B);
    s.fde_data = BYTES(9, 9, 9, 9);
    s.encoding = 0x1B; /* pcrel, sdata4 */
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0x41, 0x0E, 16));
    expect(image(&s, EM_X86_64), FIRST "\nSTACK CFI 1001 .cfa: $rsp 16 +\n");
    /* an aligned personality pointer: behind its encoding at 17, six bytes of padding */
    s = x86_64_section();
    s.augmentation = "zPR";
    s.augmentation_data = BYTES(0x50, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x03);
    s.encoding = 0x03;
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0));
    expect(image(&s, EM_X86_64), FIRST "\n");
    /* unknown letters: the entry cannot be read, the next one can */
    s = x86_64_section();
    s.augmentation = "zRX";
    s.augmentation_data = BYTES(0x00, 0);
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0));
    struct sl_buf file = image(&s, EM_X86_64);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_NOT_FOUND);
    assert_int_equal(r.skipped, 1);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

TEST(pointer_encodings_are_read)
{
    static const uint8_t encodings[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0x0A,
                                        0x0B, 0x0C, 0x10, 0x1A, 0x1B, 0x1C, 0x50};
    for (size_t i = 0; i < sizeof encodings; i++) {
        struct frame_section s = x86_64_section();
        s.augmentation = "zR";
        s.augmentation_data = (struct sl_bytes){&encodings[i], 1};
        s.encoding = encodings[i];
        add_cie(&s);
        add_fde(&s, 0x1000, 0x100, BYTES(0));
        expect(image(&s, EM_X86_64), FIRST "\n");
    }
    /* bases that are not known, and pointers to pointers */
    static const uint8_t unknown[] = {0x20, 0x30, 0x40, 0x80, 0x9B, 0x05, 0x0D};
    for (size_t i = 0; i < sizeof unknown; i++) {
        struct frame_section s = x86_64_section();
        s.augmentation = "zR";
        s.augmentation_data = (struct sl_bytes){&unknown[i], 1};
        s.encoding = unknown[i] == 0x9B ? 0x0B : 0;
        add_cie(&s);
        add_fde(&s, 0x1000, 0x100, BYTES(0));
        expect(image(&s, EM_X86_64), "");
    }
}

TEST(every_version_and_format_is_read)
{
    static const unsigned versions[] = {1, 3, 4};
    for (size_t i = 0; i < 3; i++)
        for (int wide = 0; wide < 2; wide++)
            for (int is_eh = 0; is_eh < 2; is_eh++) {
                struct frame_section s = x86_64_section();
                s.version = versions[i];
                s.is_eh = is_eh;
                s.wide = wide;
                add_cie(&s);
                if (is_eh) /* a terminator in the middle: another file's part follows */
                    sl_buf_u32(&s.out, 0);
                add_fde(&s, 0x1000, 0x100, BYTES(0x41, 0x0E, 16));
                expect(image(&s, EM_X86_64), FIRST "\nSTACK CFI 1001 .cfa: $rsp 16 +\n");
            }
    struct frame_section s = x86_64_section();
    s.version = 2;
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0));
    expect(image(&s, EM_X86_64), "");
}

TEST(return_registers_follow_the_architecture)
{
    /* arm64, of spec: return address in x30 where nothing is said, and again when the rule is gone */
    struct frame_section s = x86_64_section();
    s.code = 4;
    s.return_register = 30;
    s.initial = BYTES(0x0C, 31, 0);
    add_cie(&s);
    add_fde(&s, 0x5E0, 0x30, BYTES(0x41, 0x2D, 0x0E, 32, 0x9D, 4, 0x9E, 3, 0x4A, 0xDE, 0xDD, 0x0E, 0));
    expect(image(&s, EM_AARCH64), "STACK CFI INIT 5e0 30 .cfa: sp 0 + .ra: x30\n"
                                  "STACK CFI 5e4 .cfa: sp 32 + x29: .cfa -32 + ^ .ra: .cfa -24 + ^\n"
                                  "STACK CFI 60c .cfa: sp 0 + x29: x29 .ra: x30\n");
    /* arm, 32 bits, big-endian */
    s = (struct frame_section){.version = 3,
                               .address_size = 4,
                               .big_endian = true,
                               .augmentation = "",
                               .code = 2,
                               .data = 0x7C,
                               .return_register = 14,
                               .initial = BYTES(0x0C, 13, 0),
                               .address = 0x5000};
    add_cie(&s);
    add_fde(&s, 0x1000, 0x20, BYTES(0x41, 0x0E, 8, 0x84, 2, 0x8E, 1));
    expect(image(&s, EM_ARM), "STACK CFI INIT 1000 20 .cfa: sp 0 + .ra: lr\n"
                              "STACK CFI 1002 .cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\n");
    /* mips, as its assembler writes it: at first the CFA is a register, of which no offset is said */
    s.return_register = 31;
    s.code = 1;
    s.initial = BYTES(0x0D, 29);
    add_cie(&s);
    add_fde(&s, 0x1000, 0x20, BYTES(0x44, 0x0E, 32, 0x44, 0x9F, 1, 0x90, 2));
    expect(image(&s, EM_MIPS), "STACK CFI INIT 1000 20 .cfa: $sp 0 + .ra: $ra\n"
                               "STACK CFI 1004 .cfa: $sp 32 +\n"
                               "STACK CFI 1008 .ra: .cfa -4 + ^ $s0: .cfa -8 + ^\n");
    /* riscv64: the same, of sp; return address at CFA-8 */
    s.address_size = 8;
    s.return_register = 1;
    s.initial = BYTES(0x0D, 2);
    add_cie(&s);
    add_fde(&s, 0x1000, 0x20, BYTES(0x42, 0x0E, 32, 0x42, 0x81, 2));
    expect(image(&s, EM_RISCV), "STACK CFI INIT 1000 20 .cfa: sp 0 + .ra: ra\n"
                                "STACK CFI 1002 .cfa: sp 32 +\nSTACK CFI 1004 .ra: .cfa -8 + ^\n");
    /* x86 */
    s = x86_64_section();
    s.address_size = 4;
    s.data = 0x7C;
    s.return_register = 8;
    s.initial = BYTES(0x0C, 4, 4, 0x88, 1);
    add_cie(&s);
    add_fde(&s, 0x1000, 0x20, BYTES(0x41, 0x0E, 8, 0x85, 2));
    expect(image(&s, EM_386), "STACK CFI INIT 1000 20 .cfa: $esp 4 + .ra: .cfa -4 + ^\n"
                              "STACK CFI 1001 .cfa: $esp 8 + $ebp: .cfa -8 + ^\n");
}

TEST(dropped_code_is_left_out)
{
    struct frame_section s = x86_64_section();
    add_cie(&s);
    add_fde(&s, UINT64_MAX, 0x100, BYTES(0));
    add_fde(&s, UINT64_MAX - 0x10, 0x100, BYTES(0)); /* beyond the address space */
    add_fde(&s, 0x1000, 0, BYTES(0));
    add_fde(&s, 0x1000, 4, BYTES(0x44, 0x0E, 16)); /* its row is at the end */
    expect(image(&s, EM_X86_64), "STACK CFI INIT 1000 4 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n");
}

TEST(truncated_tables_give_the_entries_before)
{
    struct frame_section s = x86_64_section();
    add_cie(&s);
    add_fde(&s, 0x1000, 0x100, BYTES(0));
    size_t whole = s.out.size;
    sl_buf_u32(&s.out, 100);
    sl_buf_u32(&s.out, (uint32_t)whole + 4);
    struct sl_buf file = image(&s, EM_X86_64);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_MALFORMED);
    assert_non_null(strstr(r.error.message, "eh_frame: the entry at offset 0x"));
    assert_string_equal((char *)r.text.data, FIRST "\n");
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

/* A few bytes that would make many rules again and again. */
TEST(output_is_bounded_by_the_size_of_the_file)
{
    struct frame_section s = x86_64_section();
    struct sl_buf program = {0};
    add_cie(&s);
    for (unsigned reg = 0; reg < 50; reg++) {
        const uint8_t rule[] = {0x05, (uint8_t)reg, 2};
        sl_buf_add(&program, rule, 3);
    }
    for (unsigned i = 0; i < 100000; i++) /* remember, advance, every rule changes, advance, restore */
        sl_buf_add(&program, "\x0A\x41\x0B\x41", 4);
    for (unsigned i = 0; i < 100000; i++)
        sl_buf_add(&program, "\x0E\x10\x41\x0E\x18\x41", 6);
    add_fde(&s, 0x1000, UINT32_MAX, buf_bytes(&program));
    sl_buf_free(&program);
    struct sl_buf file = image(&s, EM_X86_64);
    struct records r = records_of(buf_bytes(&file));
    assert_true(r.code == SL_OK || r.code == SL_MALFORMED);
    assert_true(r.text.size < 100 * file.size);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}
