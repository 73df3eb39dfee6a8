/* Stacks of x86 and amd64, and what holds for every processor: which frames are found, by which method, and with which registers. */
#include "walk.h"

TEST(expressions_are_evaluated)
{
    expect_rules(".cfa: 5 3 - .ra: 161 8 @", 2, 160);
    expect_rules(".cfa: 8 .ra: 12 $rax: .undef", 8, 12);
    expect_rules(".cfa: 1 .cfa: 2 .ra: 3 .ra: 4", 2, 4);
    expect_rules(".cfa: $rsp 8 + .ra: .cfa 2 *", 40, 80);
    expect_rules(".cfa: 17 5 % .ra: 17 5 /", 2, 3);
    static const char *const wrong[] = {".cfa: 8 12 .ra: 8",   ".cfa: 8 16 +",          ".cfa: 1 0 / .ra: 8",
                                        ".cfa: 1 0 % .ra: 8",  ".cfa: 1 3 @ .ra: 8",    ".cfa: .cfa .ra: 2",
                                        ".cfa: .undef .ra: 2", ".cfa: 12 .ra: 8 $rax:", ".cfa 8 16 *",
                                        ".cfa: $rbx .ra: 8",   ".cfa: 8 .ra: $nothing", ".cfa: 4096 ^ .ra: 8",
                                        ".cfa: 8 + .ra: 8",    "x .cfa: 8 .ra: 8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_rules(wrong[i], -1, 0);
}

TEST(later_rows_apply_and_callee_saved_registers_survive)
{
    struct walk_frame caller;
    begin(SL_CPU_X86_64);
    put_zeros(3);
    put(0x1111); /* rbp */
    put(0x40005000);
    set(RSP, STACK);
    set(RIP, 0x40001004);
    set(12, 12);
    set(2, 2); /* rcx, which is not preserved */
    assert_true(caller_by("STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                          "STACK CFI 1001 .cfa: $rsp 40 + $rbp: .cfa -16 + ^ $r13: $nothing\n"
                          "STACK CFI 1005 .cfa: $rsp 8 +\n",
                          &caller));
    assert_int_equal(caller.registers.value[RSP], STACK + 40);
    assert_int_equal(caller.registers.value[RIP], 0x40005000);
    assert_int_equal(caller.registers.value[RBP], 0x1111);
    assert_int_equal(caller.registers.value[12], 12);
    assert_int_equal(caller.registers.valid, 1ull << RSP | 1ull << RIP | 1ull << RBP | 1ull << 12);
    end();
}

/* ---- STACK WIN ---- */

TEST(stack_win_programs_are_evaluated)
{
    struct walk_frame caller;
    begin(SL_CPU_X86);
    put(0x1234);     /* ebp' */
    put(0x40005000); /* eip' */
    set(X86_ESP, 1);
    set(X86_EBP, STACK);
    set(X86_EIP, 0x40001000);
    assert_true(caller_by("STACK WIN 4 1000 10 0 0 0 0 0 0 1 $T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =\n",
                          &caller));
    assert_int_equal(caller.registers.value[X86_ESP], STACK + 8);
    assert_int_equal(caller.registers.value[X86_EBP], 0x1234);
    assert_int_equal(caller.registers.value[X86_EIP], 0x40005000);
    end();

    begin(SL_CPU_X86);
    const uint32_t stack[] = {0x11, 0x22, 0x33, 0x44, 0, 0x40001350};
    for (size_t i = 0; i < sizeof stack / sizeof *stack; i++)
        put(stack[i]);
    set(X86_ESP, STACK);
    set(X86_EBP, 0xF00);
    set(X86_EIP, 0x4000AA85);
    module_at(0x40000000, 0x10000,
              "STACK WIN 4 aa85 176 0 0 4 10 4 0 1 $T2 $esp .cbSavedRegs + = $T0 .raSearchStart = $eip $T0 ^ = "
              "$esp $T0 4 + = $ebx $T2 4 - ^ = $edi $T2 8 - ^ = $esi $T2 12 - ^ = $ebp $T2 16 - ^ =\n",
              0);
    expect_frames("0x4000aa85 context, 0x40001350 cfi");
    assert_int_equal(last(X86_ESP), STACK + 24);
    assert_int_equal(last(X86_EBP), 0x11);
    assert_int_equal(last(X86_ESI), 0x22);
    assert_int_equal(last(X86_EDI), 0x33);
    assert_int_equal(last(X86_EBX), 0x44);
    end();
}

/* A program that does not say where the caller goes on is as good as none. */
TEST(stack_win_programs_must_set_both_registers)
{
    static const char *const programs[] = {
        "$T0 $ebp =", "$eip 1073745920 =", "$esp $ebp 8 + =", "$eip $nothing =", "$eip 4 ^ =", "$eip 1 0 / = $esp 9 ="};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct walk_frame caller;
        char records[256];
        snprintf(records, sizeof records,
                 "STACK WIN 4 1000 10 0 0 0 0 0 0 1 %s\n"
                 "STACK CFI INIT 1000 10 .cfa: $esp 12 + .ra: 77\n",
                 programs[i]);
        begin(SL_CPU_X86);
        set(X86_ESP, STACK);
        set(X86_EBP, STACK);
        set(X86_EIP, 0x40001000);
        assert_true(caller_by(records, &caller)); /* by the other record */
        assert_int_equal(caller.registers.value[X86_EIP], 77);
        assert_int_equal(caller.registers.value[X86_ESP], STACK + 12);
        end();
    }
}

/* Type 0: a size, and whether ebp is among what was saved. The inner frame's parameters lie between. */
TEST(stack_win_frames_of_known_size_are_walked)
{
    begin(SL_CPU_X86);
    put_zeros(2);
    put(0x40002005);
    put(0xAA); /* what the first frame was given */
    put(0xBB); /* ebp' of the second */
    put_zeros(1);
    put(0x40003005);
    set(X86_ESP, STACK);
    set(X86_EBP, STACK);
    set(X86_EIP, 0x40001004);
    module_at(0x40000000, 0x10000,
              "STACK WIN 0 1000 10 0 0 4 4 4 0 0 0\n"
              "STACK WIN 0 2000 10 0 0 0 8 0 0 0 1\n"
              "STACK WIN 4 3000 10 0 0 0 0 0 0 1 .undef\n",
              0);
    expect_frames("0x40001004 context, 0x40002005 cfi, 0x40003005 cfi");
    assert_int_equal(last(X86_ESP), STACK + 28);
    assert_int_equal(last(X86_EBP), 0xBB);
    end();

    begin(SL_CPU_X86); /* where the frame itself returned from still lies there */
    put(0x40001004);
    put(0x40002005);
    set(X86_ESP, STACK);
    set(X86_EBP, 7);
    set(X86_EIP, 0x40001004);
    module_at(0x40000000, 0x10000, "STACK WIN 0 1000 10 0 0 0 0 0 0 0 0\n", 0);
    expect_frames("0x40001004 context, 0x40002005 cfi");
    end();
}

/* ---- frame pointers ---- */

TEST(amd64_frame_pointers_are_followed)
{
    for (unsigned offset = 0; offset <= 256; offset += 16)
        for (int is_windows = 0; is_windows < 2; is_windows++) {
            begin(SL_CPU_X86_64);
            scene.target.is_windows = is_windows;
            put(0);
            put_zeros(offset / 8);
            put(STACK + 300);
            put(0x40003000);
            put_zeros(40);
            set(RSP, STACK);
            set(RBP, STACK + 8);
            set(RIP, 0x40001000);
            module_at(0x50000000, 0x1000, NULL, 0); /* nowhere, so that scanning finds nothing */
            expect_frames(!offset || (is_windows && offset <= 240) ? "0x40001000 context, 0x40003000 fp"
                                                                   : "0x40001000 context");
            end();
        }
}

TEST(x86_frame_pointers_are_followed)
{
    begin(SL_CPU_X86);
    put(STACK + 8);
    put(0x40002000);
    put(0);
    put(0x40003000);
    set(X86_ESP, STACK);
    set(X86_EBP, STACK);
    set(X86_EIP, 0x40001000);
    module_at(0x50000000, 0x1000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 fp, 0x40003000 fp");
    end();
}

TEST(frame_pointer_to_itself_ends_the_walk)
{
    begin(SL_CPU_ARM64);
    put(STACK);
    put(0x40002000);
    put_zeros(8);
    set(ARM64_SP, STACK);
    set(ARM64_X29, STACK);
    set(ARM64_PC, 0x40001000);
    module_at(0x50000000, 0x1000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 fp");
    end();
}

/* The link register that a frame pointer led to holds where a function begins, nowhere else. */
TEST(guessed_link_register_is_used_only_at_function_start)
{
    for (int begins = 0; begins < 2; begins++) {
        char records[128];
        snprintf(records, sizeof records, "STACK CFI INIT %x 100 .cfa: sp .ra: x30\n", begins ? 0x2000 : 0x1FFC);
        begin(SL_CPU_ARM64);
        put(STACK + 16);
        put(0x40002004);
        put(0);
        put(0x40003000);
        put_zeros(2);
        set(ARM64_SP, STACK);
        set(ARM64_X29, STACK);
        set(ARM64_PC, 0x40001000);
        module_at(0x40000000, 0x2500, records, 0x10000);
        expect_frames(begins ? "0x40001000 context, 0x40002004 fp, 0x40003000 cfi, 0x40003000 fp"
                             : "0x40001000 context, 0x40002004 fp, 0x40003000 fp");
        end();
    }
}

/* ---- scanning ---- */

TEST(scanning_recovers_the_frame_pointer)
{
    begin(SL_CPU_X86);
    put_zeros(2);
    put(STACK + 24); /* ebp' */
    put(0x40002000);
    put_zeros(2);
    put(0);
    put(0x40003000);
    set(X86_ESP, STACK);
    set(X86_EBP, 0xD43D43D4);
    set(X86_EIP, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 scan, 0x40003000 fp");
    end();
}

/* How far: 160 words behind a frame whose size is known, 40 behind others. */
TEST(scan_length_is_limited)
{
    for (unsigned words = 135; words <= 160; words += 25) {
        begin(SL_CPU_X86_64);
        put(0x40002005);
        put_zeros(words);
        put(0x40003000);
        put_zeros(39);
        put(0x40004000);
        put_zeros(40);
        put(0x40005000);
        put_zeros(1);
        set(RSP, STACK);
        set(RIP, 0x40001000);
        module_at(0x40000000, 0x10000, "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n", 0);
        expect_frames(words < 160 ? "0x40001000 context, 0x40002005 cfi, 0x40003000 scan, 0x40004000 scan"
                                  : "0x40001000 context, 0x40002005 cfi");
        end();
    }
}

/* Only what both kinds of information leave out is no code. */
TEST(scanned_address_needs_cfi_or_symbols)
{
    static const char records[] = "STACK CFI INIT 1000 10 .cfa: 0 .ra: 0\n";
    static const struct {
        const char *records;
        uint64_t symbols;
        const char *frames;
        size_t symbols_asked;
    } cases[] = {{NULL, 0, "0x40008000 context, 0x40002000 scan", 0},
                 {NULL, 0x1000, "0x40008000 context, 0x40002000 scan", 0},
                 {"STACK WIN 4 1000 10 0 0 0 0 0 0 1 0\n", 0x1000, "0x40008000 context, 0x40002000 scan", 0},
                 {records, 0, "0x40008000 context, 0x40002000 scan", 1},
                 {records, 0x3000, "0x40008000 context, 0x40002000 scan", 1},
                 {records, 0x1800, "0x40008000 context, 0x40001001 scan", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(SL_CPU_ARM);
        put(0);
        put(1);
        put(0x70000000); /* in no module */
        put(0x40000000); /* the instruction before it is in none */
        put(0x40002000);
        put(0x40001001);
        set(ARM_SP, STACK);
        set(ARM_PC, 0x40008000);
        module_at(0x40000000, 0x5000, cases[i].records, cases[i].symbols);
        run();
        scene.walk->frame_count = scene.walk->frame_count < 2 ? scene.walk->frame_count : 2;
        assert_int_equal(scene.symbols_asked, cases[i].symbols_asked);
        struct sl_buf text = {0};
        for (size_t k = 0; k < scene.walk->frame_count; k++)
            sl_buf_printf(&text, "%s0x%llx %s", k ? ", " : "", (unsigned long long)scene.walk->frames[k].resume,
                          trust_name(scene.walk->frames[k].trust));
        sl_buf_u8(&text, 0);
        assert_string_equal((const char *)text.data, cases[i].frames);
        sl_buf_free(&text);
        end();
    }
}

/* ---- ends ---- */

TEST(walk_ends_at_invalid_return_addresses)
{
    begin(SL_CPU_X86_64); /* a return address that is none */
    put(4095);
    put_zeros(1);
    set(RSP, STACK);
    set(RIP, 0x40001000);
    module_at(0x40000000, 0x10000, "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n", 0);
    expect_frames("0x40001000 context");
    end();

    for (int compat = 0; compat < 2; compat++) { /* a stack that does not grow */
        begin(SL_CPU_X86_64);
        scene.target.compat = compat;
        put(0x40002000);
        set(RSP, STACK);
        set(RIP, 0x40001000);
        module_at(0x40000000, 0x10000, "STACK CFI INIT 1000 10 .cfa: $rsp .ra: .cfa ^\n", 0);
        expect_frames(compat ? "0x40001000 context" : "0x40001000 context, 0x40002000 scan");
        end();
    }

    for (int compat = 0; compat < 2; compat++) { /* a call to nowhere */
        begin(SL_CPU_X86_64);
        scene.target.compat = compat;
        put(0x40002000);
        set(RSP, STACK);
        set(RIP, 0);
        module_at(0x40000000, 0x10000, NULL, 0);
        expect_frames(compat ? "0x0 context, 0x40002000 scan" : "0x0 context, 0x40002000 fp");
        end();
    }

    begin(SL_CPU_X86); /* the outermost frame of a thread: what is behind it is no call */
    for (unsigned i = 0; i < 2; i++) {
        put(STACK + 16);
        put(0x40002000);
    }
    put_zeros(2);
    for (unsigned i = 0; i < 8; i++)
        put(0x40003000);
    set(X86_ESP, STACK);
    set(X86_EBP, STACK);
    set(X86_EIP, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001000 context, 0x40002000 fp");
    end();

    begin(SL_CPU_ARM); /* only behind the context may it stay where it is */
    set(ARM_SP, STACK);
    set(ARM_LR, 0x40001009);
    set(ARM_PC, 0x40001004);
    put(0);
    module_at(0x40000000, 0x10000, "STACK CFI INIT 1000 10 .cfa: sp .ra: lr lr: lr\n", 0);
    expect_frames("0x40001004 context, 0x40001009 cfi");
    end();

    begin(SL_CPU_X86_64); /* no stack */
    set(RSP, STACK);
    set(RIP, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    expect_frames("0x40001000 context");
    assert_int_equal(scene.cfi_asked, 1); /* the frame lies in it all the same */
    end();
}

/* However deep a stack is, a walk ends, and loops cannot be. */
TEST(walk_length_is_limited)
{
    begin(SL_CPU_X86_64);
    for (unsigned i = 0; i < 2 * SL_WALK_MAX_FRAMES; i++)
        put(0x40002000);
    set(RSP, STACK);
    set(RIP, 0x40001000);
    module_at(0x40000000, 0x10000, NULL, 0);
    run();
    assert_int_equal(scene.walk->frame_count, SL_WALK_MAX_FRAMES);
    end();
}

/* All walks of a dump spend one budget: expressions, rules by name and words that are looked at. What was found stays. */
TEST(work_is_bounded)
{
    static const char *const rules[] = {
        "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n",
        "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^ $rbx: 1 1 + 1 + 1 + 1 + 1 + 1 + 1 + $rbp: 1 1 + 1 +\n",
        NULL, /* scanned */
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct sl_budget budget;
        sl_budget_init(&budget, 0);
        size_t before = 0;
        for (int turn = 0; turn < 2; turn++) {
            begin(SL_CPU_X86_64);
            scene.target.work = &budget;
            for (unsigned n = 0; n < SL_WALK_MAX_FRAMES; n++)
                put(0x40001005);
            set(RSP, STACK);
            set(RIP, 0x40001000);
            module_at(0x40000000, 0x10000, rules[i], 0);
            run();
            assert_true(scene.walk->out_of_work);
            assert_true(turn ? scene.walk->frame_count <= 2 : scene.walk->frame_count > 1000);
            before = turn ? before : scene.walk->frame_count;
            end();
        }
        assert_true(before < (1 << 20) / 8); /* steps of the budget, and what a frame takes at least */
    }
}

TEST(processors_without_walker_give_the_context_frame)
{
    begin(SL_CPU_PPC);
    set(SL_WALK_ONLY_PC, 0x1000);
    expect_frames("0x1000 context");
    end();
}

TEST(frame_pointer_first_strategy_is_followed)
{
    for (int pointer_first = 0; pointer_first < 2; pointer_first++) {
        begin(SL_CPU_X86_64);
        scene.target.frame_pointer_first = pointer_first;
        put(0x40002005);
        put(STACK + 32);
        put(0x40003005);
        put_zeros(4);
        set(RSP, STACK);
        set(RBP, STACK + 8);
        set(RIP, 0x40001000);
        module_at(0x40000000, 0x1010, "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n", 0);
        run();
        assert_int_equal(scene.walk->frames[1].resume, pointer_first ? 0x40003005 : 0x40002005);
        assert_int_equal(scene.walk->frames[1].trust, pointer_first ? SL_TRUST_FP : SL_TRUST_CFI);
        end();
    }
}

/* Addresses of call frame information may be relative to something in front of the module. A function that it knows is no leaf that
 * returns to where the link register points. */
TEST(table_addresses_may_precede_the_module)
{
    static const char *const rules[] = {"STACK CFI INIT 3000 10 .cfa: sp 16 + .ra: .cfa -8 + ^\n",
                                        "STACK CFI INIT 3000 10 .cfa: sp 16 + .ra: 1\n"};
    static const char *const frames[] = {"0x40001000 context, 0x40004004 cfi", "0x40001000 context, 0x40004004 scan"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        begin(SL_CPU_ARM64);
        put_zeros(1);
        put(0x40004004);
        put_zeros(2);
        set(ARM64_SP, STACK);
        set(ARM64_X30, 0x40005004);
        set(ARM64_PC, 0x40001000);
        module_at(0x40000000, 0x10000, rules[i], 0);
        scene.modules[0].cfi_offset = 0x2000;
        expect_frames(frames[i]);
        end();
    }
}

/* On Windows a function in no table is a leaf. */
TEST(windows_function_without_table_is_a_leaf)
{
    for (int is_windows = 0; is_windows < 2; is_windows++) {
        begin(SL_CPU_X86_64);
        scene.target.is_windows = is_windows;
        put(0x40001005);
        put_zeros(1);
        set(RSP, STACK);
        set(RIP, 0x40003000);
        module_at(0x40000000, 0x10000, "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: 1\n", 0x1000);
        expect_frames(is_windows ? "0x40003000 context, 0x40001005 cfi" : "0x40003000 context, 0x40001005 scan");
        end();
    }
}
