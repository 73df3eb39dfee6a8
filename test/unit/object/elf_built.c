/* ELF files of several machines and linkers: what identifies them, and which symbols they have. */
#include "debug_file.h"

#include "id/id.h"

static const char source[] = "static int __attribute__((noinline)) local(int x) { return x * 3; }\n"
                             "int outer(int x)\n"
                             "{\n"
                             "    return local(x) + 1;\n" /* 4 */
                             "}\n";

static int make_fixtures(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("a.c", source, sizeof source - 1);
    fixture_write("main.c", "int outer(int); int main(void) { return outer(2); }\n", 52);
    fixture_run("gcc -g -O1 -no-pie -Wl,--build-id=sha1 -fdebug-prefix-map=$PWD=/src -o exe a.c main.c");
    return 0;
}

struct opened {
    struct sl_bytes bytes;
    struct sl_object *object;
    const struct sl_object_info *info;
};

static struct opened open_fixture(const char *name)
{
    struct opened o = {.bytes = fixture_read(name)};
    o.object = open_bytes(o.bytes);
    o.info = sl_object_info(o.object);
    return o;
}

static void close_fixture(struct opened *o)
{
    sl_object_close(o->object);
    free((void *)o->bytes.data);
}

static bool has_symbol(struct sl_object *object, const char *name)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    bool found = false;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++)
        found = found || sl_str_equal(symbols[i].name, sl_str(name));
    sl_arena_free(&arena);
    return found;
}

struct memory_use {
    enum sl_code code;
    uint64_t taken; /* bytes, at the end */
    size_t symbols, section_bytes;
};

/* Opens the file with at most `limit` bytes (0 = none), and reads symbols and sections. */
static struct memory_use read_with(struct sl_bytes bytes, uint64_t limit)
{
    static const char *const sections[] = {"debug_info", "debug_abbrev", "debug_line", "debug_str"};
    struct memory_use use = {0};
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object = NULL;
    struct sl_symbol *symbols;
    struct sl_error error;
    sl_budget_init(&budget, bytes.size);
    sl_budget_limit(&budget, limit, NULL, NULL);
    int64_t before = budget.memory;
    struct sl_arena arena = {.budget = &budget};
    use.code = sl_object_open(bytes, &limits, &object, &error);
    if (use.code == SL_OK)
        use.code = sl_object_symbols(object, &arena, &symbols, &use.symbols, &error);
    for (size_t i = 0; use.code == SL_OK && i < sizeof sections / sizeof *sections; i++) {
        struct sl_bytes section;
        sl_object_section(object, sections[i], &section, NULL);
        use.section_bytes += section.size;
        use.code = sl_object_status(object, &error);
    }
    use.taken = (uint64_t)(before - budget.memory);
    sl_arena_free(&arena);
    sl_object_close(object);
    assert_int_equal(budget.memory, before);
    return use;
}

TEST(debug_companions_have_the_same_ids)
{
    fixture_run(
        "objcopy --only-keep-debug exe exe.debug && objcopy --only-keep-debug --compress-debug-sections=zlib exe "
        "exe.zlib && objcopy --only-keep-debug --compress-debug-sections=zlib-gnu exe exe.zdebug && objcopy "
        "--only-keep-debug --compress-debug-sections=zstd exe exe.zstd && strip exe -o "
        "exe.stripped");
    struct opened exe = open_fixture("exe");
    assert_int_equal(exe.info->kind, SL_KIND_EXE);
    assert_int_equal(exe.info->load_address, 0x400000);
    assert_int_equal(exe.info->code_id.size, 40);
    assert_true(exe.info->features.has_unwind_info && exe.info->features.has_debug_info);
    static const char *const names[] = {"exe.debug", "exe.zlib", "exe.zdebug", "exe.zstd"};
    for (size_t i = 0; i < 4; i++) {
        struct opened debug = open_fixture(names[i]);
        struct converted c;
        assert_int_equal(debug.info->kind, SL_KIND_DBG);
        assert_true(sl_debug_id_equal(&debug.info->debug_id, &exe.info->debug_id));
        assert_true(sl_str_equal(debug.info->code_id, exe.info->code_id));
        assert_true(debug.info->features.has_debug_info && debug.info->features.has_symbols);
        assert_false(debug.info->features.has_unwind_info);
        convert(&c, debug.object);
        assert_string_equal(chain_at(&c.cache, symbol_address(exe.object, "outer")), "outer:4@/src/a.c");
        sl_buf_free(&c.file);
        close_fixture(&debug);
    }
    struct opened stripped = open_fixture("exe.stripped");
    assert_int_equal(stripped.info->kind, SL_KIND_EXE);
    assert_true(stripped.info->features.has_unwind_info && !stripped.info->features.has_debug_info);
    close_fixture(&stripped);
    close_fixture(&exe);
}

TEST(sections_over_the_limit_are_absent)
{
    struct sl_bytes bytes = fixture_read("exe.zlib"), contents;
    struct sl_object_limits limits = {.max_section_size = 5};
    struct sl_object *object;
    assert_int_equal(sl_object_open(bytes, &limits, &object, NULL), SL_OK);
    assert_false(sl_object_section(object, "debug_info", &contents, NULL));
    sl_object_close(object);
    object = open_bytes(bytes);
    assert_true(sl_object_section(object, "debug_info", &contents, NULL));
    sl_object_close(object);
    free((void *)bytes.data);
}

/* Distributions put the symbol table of a stripped program into it as a compressed ELF file, with or without program
 * headers. (GDB manual, "MiniDebugInfo") */
TEST(symbols_of_mini_debug_info_are_read)
{
    static const char *const makes[] = {"true", "printf '\\0\\0' | dd of=mini bs=1 seek=56 conv=notrunc"}; /* e_phnum */
    struct opened exe = open_fixture("exe");
    uint64_t wanted = symbol_address(exe.object, "local");
    for (size_t i = 0; i < 2; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "objcopy --only-keep-debug --strip-debug exe mini && %s && xz -kf mini && strip exe -o with-mini && "
                 "objcopy --add-section .gnu_debugdata=mini.xz with-mini",
                 makes[i]);
        fixture_run(command);
        struct opened with = open_fixture("with-mini");
        assert_true(with.info->features.has_symbols);
        assert_int_equal(symbol_address(with.object, "local"), wanted);
        close_fixture(&with);
    }
    close_fixture(&exe);
}

/* What is inside of the file inside is not looked for: each of them would be inflated by the one around it. */
TEST(nested_mini_debug_info_is_not_opened)
{
    fixture_run("cp with-mini middle && xz -kf middle && strip exe -o around && objcopy --add-section "
                ".gnu_debugdata=middle.xz around");
    struct sl_bytes around = fixture_read("around"), middle = fixture_read("middle");
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object;
    sl_budget_init(&budget, around.size);
    assert_int_equal(sl_object_open(around, &limits, &object, NULL), SL_OK);
    assert_true(sl_object_info(object)->features.has_symbols);
    assert_false(has_symbol(object, "local"));
    assert_int_equal(budget.file_size, around.size + (middle.size < around.size ? middle.size : around.size));
    sl_object_close(object);
    free((void *)around.data);
    free((void *)middle.data);
}

/* What is inflated and made of the file is paid for, and given back. With less memory there is an error, never less of the
 * file. */
TEST(memory_limit_is_an_error_and_never_a_partial_file)
{
    static const char *const names[] = {"exe.zlib", "exe.zdebug", "exe.zstd", "with-mini", "a.o"};
    fixture_run("gcc -g -O1 -c a.c");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sl_bytes bytes = fixture_read(names[i]);
        struct memory_use whole = read_with(bytes, 0);
        assert_int_equal(whole.code, SL_OK);
        assert_true(whole.symbols > 0 && whole.taken > 0);
        size_t refused = 0;
        for (uint64_t limit = 1024; limit < whole.taken; limit += whole.taken / 20) {
            struct memory_use use = read_with(bytes, limit);
            assert_true(use.code == SL_UNSUPPORTED || use.code == SL_OK);
            refused += use.code == SL_UNSUPPORTED;
            if (use.code == SL_OK) {
                assert_int_equal(use.symbols, whole.symbols);
                assert_int_equal(use.section_bytes, whole.section_bytes);
            }
        }
        assert_true(refused > 0);
        free((void *)bytes.data);
    }
}

/* Other vendors' notes have types of their own; a GNU build id is of type 3 and of GNU. */
TEST(notes_of_other_vendors_are_no_build_id)
{
    static const char notes[] =
        ".section .note.a,\"a\",%note\n.long 6, 4, 3\n.asciz \"Other\"\n.zero 2\n.long 0x11111111\n";
    fixture_write("note.s", notes, sizeof notes - 1);
    fixture_run("gcc -shared -nostdlib -Wl,--build-id=0x22222222333333334444444455555555 -o noted.so a.c note.s && "
                "gcc -shared -nostdlib -Wl,--build-id=none -o unnoted.so a.c note.s");
    struct opened noted = open_fixture("noted.so"), unnoted = open_fixture("unnoted.so");
    char id[SL_DEBUG_ID_TEXT];
    assert_true(sl_str_equal(noted.info->code_id, SL_STR("22222222333333334444444455555555")));
    /* without a build id the code is hashed, first as the fields of a little-endian file */
    struct sl_bytes text;
    uint8_t hash[16] = {0};
    assert_int_equal(unnoted.info->code_id.size, 0);
    assert_true(sl_object_section(unnoted.object, "text", &text, NULL));
    for (size_t i = 0; i < text.size && i < 4096; i++)
        hash[i % 16] ^= text.data[i];
    struct sl_debug_id expected = sl_debug_id_from_build_id((struct sl_bytes){hash, 16}, false);
    assert_true(sl_debug_id_equal(&unnoted.info->debug_id, &expected));
    sl_debug_id_format(&unnoted.info->debug_id, id);
    assert_int_equal(strlen(id), 36);
    close_fixture(&noted);
    close_fixture(&unnoted);
}

/* A section of unwind information that describes nothing must not make the file worth fetching for it. */
TEST(empty_eh_frame_is_no_unwind_information)
{
    static const char empty[] =
        ".section .eh_frame,\"a\"\n.long 0\n.text\n.globl f\n.type f,%function\nf: ret\n.size f, 1\n";
    fixture_write("empty.s", empty, sizeof empty - 1);
    fixture_run("gcc -c -o empty.o empty.s");
    struct opened o = open_fixture("empty.o");
    struct sl_bytes frames;
    assert_true(sl_object_section(o.object, "eh_frame", &frames, NULL));
    assert_false(o.info->features.has_unwind_info);
    assert_true(o.info->features.has_symbols);
    close_fixture(&o);
}

TEST(ifuncs_are_functions_and_data_is_not)
{
    static const char text[] = "static int real(void) { return 1; }\n"
                               "static int (*resolve(void))(void) { return real; }\n"
                               "int chosen(void) __attribute__((ifunc(\"resolve\")));\n"
                               "int data = 1;\n";
    fixture_write("ifunc.c", text, sizeof text - 1);
    fixture_run("gcc -shared -fPIC -o ifunc.so ifunc.c");
    struct opened o = open_fixture("ifunc.so");
    assert_true(has_symbol(o.object, "chosen") && has_symbol(o.object, "resolve"));
    assert_false(has_symbol(o.object, "data"));
    close_fixture(&o);
}

/* Code in several thousand sections: their numbers do not fit a symbol (gABI, SHN_XINDEX). */
TEST(extended_section_numbers_are_read)
{
    fixture_run(
        "{ for i in $(seq 65300); do echo \".section .d$i,\\\"a\\\"\"; done; echo '.section .code,\"ax\"'; "
        "echo '.globl last'; echo '.type last,%function'; echo 'last: ret'; } >many.s && gcc -c -o many.o many.s");
    struct opened o = open_fixture("many.o");
    assert_true(has_symbol(o.object, "last"));
    close_fixture(&o);
}

TEST(other_machines_are_read)
{
    static const struct {
        const char *target, *flags;
        enum sl_arch arch;
        bool big;
    } rows[] = {
        {"armv7-linux-gnueabihf", "-mthumb", SL_ARCH_ARM, false},
        {"armv7-linux-gnueabihf", "-marm", SL_ARCH_ARM, false},
        {"aarch64-linux-gnu", "", SL_ARCH_ARM64, false},
        {"i686-linux-gnu", "", SL_ARCH_X86, false},
        {"mips-linux-gnu", "", SL_ARCH_MIPS, true},
        {"mipsel-linux-gnu", "", SL_ARCH_MIPS, false},
        {"mips64-linux-gnuabi64", "", SL_ARCH_MIPS64, true},
        {"powerpc-linux-gnu", "", SL_ARCH_PPC, true},
        {"powerpc64le-linux-gnu", "", SL_ARCH_PPC64, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[512];
        struct converted c;
        snprintf(command, sizeof command,
                 "clang-14 --target=%s %s -g -gdwarf-4 -O1 -fPIC -fdebug-prefix-map=$PWD=/src -c -o other.o a.c && "
                 "ld.lld-14 -shared -o other.so other.o",
                 rows[i].target, rows[i].flags);
        fixture_run(command);
        struct opened o = open_fixture("other.so");
        assert_int_equal(o.info->arch, rows[i].arch);
        assert_int_equal(o.info->big_endian, rows[i].big);
        assert_false(has_symbol(o.object, "$t") || has_symbol(o.object, "$x") || has_symbol(o.object, "$a"));
        convert(&c, o.object);
        uint64_t outer = symbol_address(o.object, "outer");
        assert_int_equal(outer & 1, 0); /* without the bit of Thumb */
        assert_string_equal(chain_at(&c.cache, outer), "outer:3@/src/a.c");
        assert_string_equal(chain_at(&c.cache, symbol_address(o.object, "local")), "local:1@/src/a.c");
        sl_buf_free(&c.file);
        close_fixture(&o);
        /* the same before linking: addresses in its DWARF are still to be filled in */
        o = open_fixture("other.o");
        assert_int_equal(o.info->kind, SL_KIND_REL);
        convert(&c, o.object);
        assert_string_equal(chain_at(&c.cache, symbol_address(o.object, "outer")), "outer:3@/src/a.c");
        sl_buf_free(&c.file);
        close_fixture(&o);
    }
}

/* Hand-written code: `entry` and `second` have no type, `last` no size; `inner` is a label within a function, which answers from
 * there on, `.Llocal` a place that is no name. */
static const char assembler[] = ".text\n"
                                ".globl entry\n"
                                "entry: nop; nop; ret\n"
                                ".type typed, @function\n"
                                "typed: nop\n"
                                "inner: nop; ret\n"
                                ".Llocal: ret\n"
                                ".size typed, .-typed\n"
                                "second: nop; ret\n"
                                ".type last, @function\n"
                                "last: ret\n"
                                ".section .text.end, \"ax\"\n"
                                "alone: ret\n"
                                "behind:\n"
                                ".section .note.GNU-stack, \"\"\n";

static const struct sl_symbol *symbol_named(const struct sl_symbol *symbols, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (sl_str_equal(symbols[i].name, sl_str(name)))
            return &symbols[i];
    return NULL;
}

TEST(untyped_and_unsized_symbols_are_bounded)
{
    static const struct {
        const char *name;
        uint64_t size, answered; /* answered: bytes that it is the innermost of */
    } rows[] = {{"entry", 3, 3}, {"typed", 4, 1}, {"inner", 0, 3}, {"second", 2, 2}, {"last", 1, 1}, {"alone", 1, 1}};
    fixture_write("hand.s", assembler, sizeof assembler - 1);
    fixture_run("gcc -nostdlib -static -Wl,--entry=entry -o hand hand.s && gcc -c -o hand.o hand.s");
    for (unsigned file = 0; file < 2; file++) {
        struct opened hand = open_fixture(file ? "hand.o" : "hand");
        struct sl_arena arena = {0};
        struct sl_symbol *symbols;
        struct converted c;
        size_t count;
        assert_int_equal(sl_object_symbols(hand.object, &arena, &symbols, &count, NULL), SL_OK);
        convert(&c, hand.object);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            char answer[32];
            const struct sl_symbol *symbol = symbol_named(symbols, count, rows[i].name);
            assert_non_null(symbol);
            assert_int_equal(symbol->size, rows[i].size);
            snprintf(answer, sizeof answer, "%s:0", rows[i].name);
            assert_string_equal(chain_at(&c.cache, symbol->address), answer);
            assert_string_equal(chain_at(&c.cache, symbol->address + rows[i].answered - 1), answer);
            assert_int_equal(symbol->is_label, rows[i].size == 0);
        }
        assert_null(symbol_named(symbols, count, ".Llocal"));
        assert_null(symbol_named(symbols, count, "behind"));
        uint64_t end = symbol_address(hand.object, "alone") + 1;
        assert_string_equal(chain_at(&c.cache, end), "");
        assert_string_equal(chain_at(&c.cache, 0x7fffffff), "");
        sl_buf_free(&c.file);
        sl_arena_free(&arena);
        close_fixture(&hand);
    }
}

/* Where the instruction set changes, assemblers leave symbols without type: no code is called that. */
TEST(mapping_symbols_are_ignored)
{
    static const char code[] = ".text\n.global f\nf: ret\n.word 1\nret\n";
    fixture_write("map.s", code, sizeof code - 1);
    fixture_run("aarch64-linux-gnu-gcc -c -o map.o map.s && readelf -s map.o | grep -F '$d'");
    struct opened map = open_fixture("map.o");
    struct converted c;
    convert(&c, map.object);
    for (uint64_t at = 0; at < 12; at += 4)
        assert_string_equal(chain_at(&c.cache, at), "f:0");
    assert_string_equal(chain_at(&c.cache, 12), "");
    sl_buf_free(&c.file);
    close_fixture(&map);
}

/* Symbols of the first ABI of 64-bit PowerPC have the addresses of descriptors in .opd. */
TEST(powerpc_function_descriptors_are_followed)
{
    static const char code[] = "int first(int x) { return x; }\nint second(int x) { return x * 3; }\n";
    fixture_write("opd.c", code, sizeof code - 1);
    fixture_run("clang-14 --target=powerpc64-unknown-linux-gnu -mabi=elfv1 -O1 -c -o opd.o opd.c && "
                "readelf -SW opd.o | grep -w .opd");
    struct opened opd = open_fixture("opd.o");
    struct converted c;
    uint64_t second = symbol_address(opd.object, "second");
    convert(&c, opd.object);
    assert_true(second > symbol_address(opd.object, "first"));
    assert_string_equal(chain_at(&c.cache, symbol_address(opd.object, "first")), "first:0");
    assert_string_equal(chain_at(&c.cache, second), "second:0");
    sl_buf_free(&c.file);
    close_fixture(&opd);
}

/* In relocatable files every section begins at 0: they are laid out one behind the other. */
TEST(sections_of_relocatable_files_do_not_overlap)
{
    static const char *const machines[] = {"gcc -gdwarf-5 -O1", "gcc -gdwarf-4 -O1", "aarch64-linux-gnu-gcc -g -O1",
                                           "gcc -g -O1 -ffunction-sections"};
    static const char code[] = "int sink;\n"
                               "int first(int x) { return sink + x; }\n"
                               "__attribute__((section(\".init.text\"))) int begin(int x) { return sink * x; }\n"
                               "__attribute__((section(\".exit.text\"))) int end(int x) { return sink - x; }\n";
    static const struct {
        const char *section, *name, *answer;
    } rows[] = {{".text", "first", "first:2@/src/rel.c"},
                {".init.text", "begin", "begin:3@/src/rel.c"},
                {".exit.text", "end", "end:4@/src/rel.c"}};
    fixture_write("rel.c", code, sizeof code - 1);
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        char command[256];
        snprintf(command, sizeof command, "%s -fdebug-prefix-map=$PWD=/src -c -o rel.o rel.c", machines[m]);
        fixture_run(command);
        struct opened rel = open_fixture("rel.o");
        struct sl_section_info section;
        struct converted c;
        convert(&c, rel.object);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            uint64_t at = symbol_address(rel.object, rows[i].name);
            assert_string_equal(chain_at(&c.cache, at), rows[i].answer);
            for (size_t n = 0; sl_object_section_info(rel.object, n, &section); n++)
                if (sl_str_equal(section.name, sl_str(rows[i].section)) && section.size)
                    assert_int_equal(section.address, at);
        }
        sl_buf_free(&c.file);
        close_fixture(&rel);
    }
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
