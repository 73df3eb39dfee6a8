/* Stacks of ARM, AArch64, MIPS and RISC-V: as walk.c. */
#include "walk.h"

TEST(arm_frame_pointers_are_followed_on_ios_only)
{
    for (int is_ios = 0; is_ios < 2; is_ios++) {
        begin(SL_CPU_ARM);
        scene.target.is_ios = is_ios;
        put(0);
        put(0x40002001);
        set(ARM_SP, STACK);
        set(ARM_R7, STACK);
        set(ARM_R11, STACK + 4);
        set(ARM_PC, 0x40001000);
        module_at(0x50000000, 0x1000, NULL, 0);
        expect_frames(is_ios ? "0x40001000 context, 0x40002001 fp" : "0x40001000 context");
        end();
    }
}

/* Bits that sign a pointer are taken off, those that addresses need are not. */
TEST(arm64_pointer_signatures_are_stripped)
{
    static const struct {
        uint64_t module, mask;
    } cases[] = {
        {0x40000000, (1ull << 47) - 1}, {0x10000000000000, (1ull << 53) - 1}, {0xa000000000000000, UINT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t garbage = 0x5ABF000000000000 & ~cases[i].mask;
        begin(SL_CPU_ARM64);
        put(STACK + 16 + garbage);
        put(0x40002000 + garbage);
        put(0);
        put(0x40003000 + garbage);
        put(0);
        set(ARM64_SP, STACK);
        set(ARM64_X29, STACK);
        set(ARM64_PC, 0x40001000);
        module_at(cases[i].module, 0x1000, NULL, 0);
        expect_frames("0x40001000 context, 0x40002000 fp, 0x40003000 fp");
        assert_int_equal(scene.walk->state->address_mask, cases[i].mask);
        end();
    }
    begin(SL_CPU_ARM64); /* as the dump says */
    scene.target.address_mask = 0xFFFFFFFFF;
    start();
    assert_int_equal(scene.walk->state->address_mask, 0xFFFFFFFFF);
    end();
}

TEST(mips_argument_area_is_skipped)
{
    begin(SL_CPU_MIPS);
    scene.target.big_endian = true;
    put(0x40002000);
    put(0x40003000); /* four words that the caller keeps free */
    put_zeros(3);
    put(0x40004000);
    put_zeros(256);
    put(0x40005000); /* further than one looks */
    set(MIPS_SP, STACK);
    set(MIPS_PC, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 scan, 0x40004000 scan");
    assert_int_equal(scene.walk->frames[1].instruction, 0x40002000 - 8);
    end();

    begin(SL_CPU_MIPS64);
    put(0x40002000);
    put(0x40003000);
    put_zeros(1);
    set(MIPS_SP, STACK);
    set(MIPS_PC, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 scan, 0x40003000 scan");
    end();
}

/* ---- RISC-V ---- */

static void riscv_begin(uint64_t pc, uint64_t ra, uint64_t s0)
{
    begin(SL_CPU_RISCV64);
    set(RISCV_PC, pc);
    set(RISCV_RA, ra);
    set(RISCV_SP, STACK);
    set(RISCV_S0, s0);
}

TEST(riscv_is_walked_by_cfi)
{
    riscv_begin(0x40001008, 0x40009000, 7);
    put_zeros(1);
    put(0x55);       /* s0 */
    put(0x40002004); /* ra */
    put(0x40003004); /* of the next one, whose s0 is preserved */
    module_at(0x40000000, 0x10000,
              "STACK CFI INIT 1000 100 .cfa: sp 24 + .ra: .cfa 8 - ^ s0: .cfa 16 - ^ f0: .cfa 24 - ^\n"
              "STACK CFI INIT 2000 100 .cfa: sp 8 + .ra: .cfa 8 - ^\n"
              "STACK CFI INIT 3000 100 .cfa: sp .ra: .undef\n",
              0);
    scene.target.keeps_registers = true;
    expect_frames("0x40001008 context, 0x40002004 cfi, 0x40003004 cfi");
    assert_int_equal(scene.walk->frames[1].instruction, 0x40002002); /* calls have two or four bytes */
    assert_int_equal(scene.walk->registers[2].value[RISCV_S0], 0x55);
    assert_int_equal(scene.walk->registers[2].value[RISCV_SP], STACK + 32);
    end();
}

TEST(riscv_is_walked_by_frame_pointer)
{
    for (int has_record = 0; has_record < 2; has_record++) {
        riscv_begin(0x40001008, has_record ? 0x40002004 : 0x70000000, STACK + 32);
        put_zeros(2);
        put(STACK + 48);
        put(0x40002004);
        put(0);
        put(0x40003004);
        module_at(0x40000000, 0x10000, NULL, 0);
        expect_frames("0x40001008 context, 0x40002004 fp, 0x40003004 fp");
        end();
    }
    riscv_begin(0x40001008, 0, STACK + 32); /* the register is used for something else: no code is there */
    put(0);
    put(0x40004004);
    put(STACK + 48);
    put(0x70002004);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001008 context, 0x40004004 scan");
    end();
    riscv_begin(0x40001008, 0, STACK + 16); /* the outermost frame: what lies behind is no caller */
    put(STACK + 32);
    put(0x40002004);
    put(0);
    put(0);
    put(0x40004004);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001008 context, 0x40002004 fp");
    end();
}

TEST(riscv32_is_walked_by_frame_pointer)
{
    begin(SL_CPU_RISCV);
    set(RISCV_PC, 0x40001008);
    set(RISCV_SP, STACK);
    set(RISCV_S0, STACK + 8);
    put(STACK + 16);
    put(0x40002004);
    put(0);
    put(0x40003004);
    put(0x40004004); /* behind the outermost frame that has a record */
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001008 context, 0x40002004 fp, 0x40003004 fp, 0x40004004 scan");
    end();
}

/* Their numbers are those of the program counter and of nothing: rules of floating point registers change neither. */
TEST(riscv_float_rules_do_not_change_pc)
{
    riscv_begin(0x40001008, 0x40009000, 7);
    put(0x1234);
    put(0x40002004);
    module_at(0x40000000, 0x10000,
              "STACK CFI INIT 1000 100 .cfa: sp 16 + .ra: .cfa 8 - ^ f0: .cfa 16 - ^ f31: .cfa 16 - ^\n"
              "STACK CFI INIT 2000 100 .cfa: sp 8 + .ra: f0\n",
              0);
    expect_frames("0x40001008 context, 0x40002004 cfi"); /* f0 is not known */
    end();
}

/* They return to what is in the register, and store the caller's frame pointer where others have that address. */
TEST(riscv_leaf_returns_to_the_link_register)
{
    static const uint64_t codes[] = {0x40001008, 0};
    for (size_t i = 0; i < 2; i++) {
        riscv_begin(codes[i], 0x40002004, STACK + 16);
        put_zeros(1);
        put(STACK + 32);
        put(0);
        put(0x40003004);
        module_at(0x40000000, 0x10000, NULL, 0);
        expect_frames(i ? "0x0 context, 0x40002004 fp, 0x40003004 fp"
                        : "0x40001008 context, 0x40002004 fp, 0x40003004 fp");
        end();
    }
}

TEST(riscv_is_walked_by_scanning)
{
    riscv_begin(0x40001008, 0, 1);
    put_zeros(3);
    put(0x40002004);
    put(0x70000000);
    put(0x40003004);
    put_zeros(50);
    put(0x40004004); /* further than one looks */
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001008 context, 0x40002004 scan, 0x40003004 scan");
    end();
}
