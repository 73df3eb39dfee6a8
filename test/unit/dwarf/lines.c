/* Where code is: files and lines of line tables as compilers and assemblers write them. */
#include "../object/debug_file.h"

static int make_fixtures(void **state)
{
    return fixture_begin(state);
}

/* The chain `offset` bytes behind the symbol. */
static void expect_behind(const char *file, const char *symbol, uint64_t offset, const char *chain)
{
    struct sl_bytes bytes = fixture_read(file);
    struct sl_object *object = open_bytes(bytes);
    struct converted c;
    convert(&c, object);
    assert_string_equal(chain_at(&c.cache, symbol_address(object, symbol) + offset), chain);
    sl_buf_free(&c.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

/* Packages built with a prefix map have relative compilation directories, which line tables of version 5 list once more. */
TEST(relative_compilation_directories_are_joined_once)
{
    fixture_run("mkdir -p source/sub && printf 'int entry(int a)\\n{\\n    return a * 3;\\n}\\n' >source/sub/x.c");
    for (unsigned version = 2; version <= 5; version++)
        for (unsigned compiler = 0; compiler < 2; compiler++) {
            char command[512];
            snprintf(command, sizeof command,
                     "(cd source && %s -g -gdwarf-%u -O1 -fPIC -shared -ffile-prefix-map=$PWD=build -o ../relative.so "
                     "sub/x.c)",
                     compiler ? "clang-14" : "gcc", version);
            fixture_run(command);
            expect_behind("relative.so", "entry", 1, "entry:3@build/sub/x.c");
        }
    fixture_run(
        "(cd source/sub && gcc -g -gdwarf-5 -O1 -fPIC -shared -ffile-prefix-map=$PWD=build -o ../../relative.so "
        "x.c)");
    expect_behind("relative.so", "entry", 1, "entry:3@build/x.c");
}

/* A unit of version 4 around `entry`, whose line program defines its second file itself. */
static const char defines_file[] =
    ".text\n.globl entry\n.type entry,@function\nentry: .fill 16,1,0x90\n.Lend: .size entry,.-entry\n"
    ".section .debug_abbrev,\"\",@progbits\n"
    ".uleb128 1,0x11\n.byte 1\n.uleb128 0x1b,8,0x10,0x17,0x11,1,0x12,6,0,0\n"
    ".uleb128 2,0x2e\n.byte 0\n.uleb128 3,8,0x11,1,0x12,6,0,0\n.byte 0\n"
    ".section .debug_info,\"\",@progbits\n"
    ".long 2f-1f\n1: .short 4\n.long .debug_abbrev\n.byte 8\n"
    ".uleb128 1\n.asciz \"/build\"\n.long .debug_line\n.quad entry\n.long .Lend-entry\n"
    ".uleb128 2\n.asciz \"entry\"\n.quad entry\n.long .Lend-entry\n.byte 0\n2:\n"
    ".section .debug_line,\"\",@progbits\n"
    ".long 6f-3f\n3: .short 4\n.long 5f-4f\n4: .byte 1,1,1,-5,14,13,0,1,1,1,1,0,0,0,1,0,0,1\n"
    ".asciz \"include\"\n.byte 0\n.asciz \"first.c\"\n.uleb128 0,0,0\n.byte 0\n5:\n"
    ".byte 0,9,2\n.quad entry\n"
    ".byte 0\n.uleb128 8f-7f\n7: .byte 3\n.asciz \"second.h\"\n.uleb128 1,0,0\n8:\n" /* DW_LNE_define_file, directory 1 */
    ".byte 4,2,3,6,1\n"                                                              /* file 2, line 7, row */
    ".byte 2,16,0,1,1\n6:\n";

TEST(files_defined_in_the_program_have_directories)
{
    fixture_write("defines.s", defines_file, sizeof defines_file - 1);
    fixture_run("gcc -shared -nostdlib -o defines.so defines.s");
    expect_behind("defines.so", "entry", 4, "entry:7@/build/include/second.h");
}

static const char two_functions[] = "volatile int sink;\n"
                                    "__attribute__((noinline)) static int hidden(int a)\n"
                                    "{\n"
                                    "    sink = a;\n" /* 4 */
                                    "    return a + sink;\n"
                                    "}\n"
                                    "int entry(int a)\n"
                                    "{\n"
                                    "    sink = 1;\n" /* 9 */
                                    "    return hidden(a) * 2;\n"
                                    "}\n";

/* What is in the line table alone is named by the symbols. */
TEST(lines_without_subprograms_are_kept)
{
    static const char *const commands[] = {
        "clang-14 -gline-tables-only -O1 -fPIC -shared -fdebug-prefix-map=$PWD=/src -o bare.so two.c",
        "gcc -g -gsplit-dwarf -O1 -fPIC -shared -fdebug-prefix-map=$PWD=/src -o bare.so two.c && rm -f *.dwo",
        "clang-14 -g -gdwarf-4 -gsplit-dwarf -O1 -fPIC -shared -fdebug-prefix-map=$PWD=/src -o bare.so two.c && "
        "rm -f *.dwo",
    };
    fixture_write("two.c", two_functions, sizeof two_functions - 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        fixture_run(commands[i]);
        expect_behind("bare.so", "hidden", 2, "hidden:4@/src/two.c");
        expect_behind("bare.so", "entry", 12, "entry:9@/src/two.c");
    }
}

/* What enters a function through its second base has a line of its own, and no entry. */
TEST(thunks_without_entry_have_lines)
{
    static const char code[] = "struct A { virtual int f(int); int a; };\n"
                               "struct B { virtual int g(int); int b; };\n"
                               "struct C : A, B { int f(int) override; int g(int) override; };\n" /* 3 */
                               "int A::f(int x) { return x; }\nint B::g(int x) { return x; }\n"
                               "int C::f(int x) { return x + a; }\nint C::g(int x) { return x + b; }\n";
    fixture_write("thunk.cc", code, sizeof code - 1);
    fixture_run("g++ -g -O1 -fPIC -shared -fdebug-prefix-map=$PWD=/src -o thunk.so thunk.cc");
    expect_behind("thunk.so", "_ZThn16_N1C1gEi", 0, "_ZThn16_N1C1gEi:3@/src/thunk.cc");
    expect_behind("thunk.so", "_ZN1C1gEi", 0, "_ZN1C1gEi:7@/src/thunk.cc");
}

static const char assembler[] = ".text\n"
                                ".type first,@function\nfirst:\n"
                                "nop\nnop\nret\n.size first,.-first\n" /* 4 */
                                ".balign 16\n"
                                ".globl entry\n.type entry,@function\nentry:\n"
                                "nop\nret\n.size entry,.-entry\n"; /* 13 */

/* The assembler's rows go on behind a function, up to the next; what lies there belongs to neither. */
TEST(assembled_functions_have_lines_and_padding_has_no_function)
{
    fixture_write("two.s", assembler, sizeof assembler - 1);
    fixture_run("clang-14 -g -shared -nostdlib -Wa,-fdebug-compilation-dir=/src -o two.so two.s");
    expect_behind("two.so", "first", 1, "first:5@/src/two.s");
    expect_behind("two.so", "entry", 1, "entry:13@/src/two.s");
    expect_behind("two.so", "first", 5, "");
}

static const char sections[] =
    ".globl first\n.type first,@function\nfirst:\nnop\nret\n.size first,.-first\n" /* 4 */
    ".section .text.hot,\"ax\",@progbits\n"
    ".globl second\n.type second,@function\nsecond:\nnop\nret\n.size second,.-second\n" /* 11 */
    ".section .fixup,\"ax\",@progbits\n"
    ".globl third\nthird:\nnop\nret\n"; /* 17 */

/* The root entry of a unit of version 2 has one range; what else belongs to it is in .debug_aranges alone. */
TEST(assembled_sections_have_lines)
{
    char command[256];
    fixture_write("sections.s", sections, sizeof sections - 1);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(command, sizeof command,
                 "%s -g -gdwarf-%u -c -Wa,%sdebug-%s=/src -o sections.o sections.s && "
                 "gcc -shared -nostdlib -o sections.so sections.o",
                 i % 2 ? "gcc" : "clang-14", 2 + i / 2, i % 2 ? "--" : "-f",
                 i % 2 ? "prefix-map=$PWD" : "compilation-dir");
        fixture_run(command);
        for (unsigned linked = 0; linked < 2; linked++) {
            expect_behind(linked ? "sections.so" : "sections.o", "first", 1, "first:5@/src/sections.s");
            expect_behind(linked ? "sections.so" : "sections.o", "second", 0, "second:11@/src/sections.s");
            expect_behind(linked ? "sections.so" : "sections.o", "third", 0, "third:17@/src/sections.s");
        }
    }
}

static const char cold_part[] = "void other(void);\n"
                                "__attribute__((cold, noinline)) static void rare(void) { other(); }\n"
                                "int entry(int a)\n"
                                "{\n"
                                "    if (__builtin_expect(a > 100, 0)) { rare(); other(); rare(); __builtin_trap(); }\n"
                                "    return a * 7;\n" /* 6 */
                                "}\n"
                                "extern int hidden_alias(int) __attribute__((alias(\"entry\")));\n";

/* Cold parts lie below, and aliases may be first among the symbols: neither is the function's name. */
TEST(functions_are_named_by_their_entries)
{
    fixture_write("cold.c", cold_part, sizeof cold_part - 1);
    fixture_run(
        "gcc -g -O2 -fPIC -shared -fdebug-prefix-map=$PWD=/src -o cold.so cold.c && nm cold.so | grep entry.cold");
    expect_behind("cold.so", "entry", 0, "entry:5@/src/cold.c");
    expect_behind("cold.so", "hidden_alias", 0, "entry:5@/src/cold.c");
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
