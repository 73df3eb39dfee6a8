/* What compilers and linkers leave in DWARF besides functions that are there. */
#include "../object/debug_file.h"

#include "dwarf/dwarf.h"

static const char dropped[] = "volatile int sink;\n"
                              "#define SINK sink = a; sink = a + 1; sink = a + 2; sink = a + 3;\n"
                              "#define SINKS SINK SINK SINK SINK SINK SINK SINK SINK SINK SINK\n"
                              "#define MORE SINKS SINKS SINKS SINKS SINKS SINKS SINKS SINKS SINKS SINKS\n"
                              "void dropped(int a)\n"
                              "{\n"
                              "    MORE MORE MORE\n"
                              "    MORE MORE MORE\n"
                              "    MORE MORE MORE\n"
                              "}\n"
                              "int kept(int a)\n"
                              "{\n"
                              "    return a + sink;\n" /* 13 */
                              "}\n";

static int make_fixtures(void **state)
{
    return fixture_begin(state);
}

static void expect_line(const char *file, const char *function, const char *chain)
{
    struct sl_bytes bytes = fixture_read(file);
    struct sl_object *object = open_bytes(bytes);
    struct converted c;
    convert(&c, object);
    assert_string_equal(chain_at(&c.cache, symbol_address(object, function) + 8), chain);
    sl_buf_free(&c.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

/* The linker sets the addresses of what it drops to 0: a long function there reaches over the code of others. */
TEST(dropped_code_has_no_lines)
{
    fixture_write("dropped.c", dropped, sizeof dropped - 1);
    fixture_write("map", "{global: kept; local: *;};", 26);
    for (unsigned version = 2; version <= 5; version++) {
        char command[512];
        snprintf(command, sizeof command,
                 "gcc -g -gdwarf-%u -O1 -fPIC -shared -ffunction-sections -Wl,--gc-sections,--version-script=map "
                 "-fdebug-prefix-map=$PWD=/src -o dropped.so dropped.c && ! nm dropped.so | grep dropped",
                 version);
        fixture_run(command);
        expect_line("dropped.so", "kept", "kept:13@/src/dropped.c");
    }
}

static enum sl_language language_of(const char *file)
{
    struct sl_bytes bytes = fixture_read(file);
    struct sl_object *object = open_bytes(bytes);
    struct converted c;
    struct sl_location chain[4];
    struct sl_symcache_function f;
    convert(&c, object);
    assert_int_equal(sl_symcache_lookup(&c.cache, symbol_address(object, "entry"), chain, 4), 1);
    assert_true(sl_symcache_function(&c.cache, chain[0].function, &f));
    sl_buf_free(&c.file);
    sl_object_close(object);
    free((void *)bytes.data);
    return f.language;
}

/* Table 7.17 of DWARF 5 and the codes given out since; with `name` those of DWARF 6. */
TEST(language_codes_are_mapped)
{
    static const struct {
        unsigned code;
        enum sl_language language;
        bool name;
    } rows[] = {
        {0x01, SL_LANG_C, false},       {0x02, SL_LANG_C, false},    {0x0c, SL_LANG_C, false},
        {0x1d, SL_LANG_C, false},       {0x2c, SL_LANG_C, false},    {0x3e, SL_LANG_C, false},
        {0x04, SL_LANG_CPP, false},     {0x19, SL_LANG_CPP, false},  {0x1a, SL_LANG_CPP, false},
        {0x21, SL_LANG_CPP, false},     {0x2a, SL_LANG_CPP, false},  {0x2b, SL_LANG_CPP, false},
        {0x3a, SL_LANG_CPP, false},     {0x10, SL_LANG_OBJC, false}, {0x11, SL_LANG_OBJCPP, false},
        {0x13, SL_LANG_D, false},       {0x16, SL_LANG_GO, false},   {0x1c, SL_LANG_RUST, false},
        {0x1e, SL_LANG_SWIFT, false},   {0x03, SL_LANG_C, true},     {0x04, SL_LANG_CPP, true},
        {0x07, SL_LANG_D, true},        {0x0a, SL_LANG_GO, true},    {0x11, SL_LANG_OBJC, true},
        {0x12, SL_LANG_OBJCPP, true},   {0x19, SL_LANG_RUST, true},  {0x1a, SL_LANG_SWIFT, true},
        {0x0d, SL_LANG_UNKNOWN, false}, /* Ada */
        {0x17, SL_LANG_UNKNOWN, true},  /* Python */
    };
    fixture_write("language.c", "int entry(int a) { return a; }\n", 31);
    fixture_run("clang-14 -g -gdwarf-4 -O1 -S -o language.s language.c");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "sed -e 's/\\.short.*DW_AT_language/.short %u #/' %s language.s >l.s && clang-14 -shared -o l.so l.s",
                 rows[i].code, rows[i].name ? "-e 's/\\.byte.*DW_AT_language/.uleb128 0x90 #/'" : "");
        fixture_run(command);
        if (language_of("l.so") != rows[i].language)
            fail_msg("language 0x%x", rows[i].code);
    }
}

/* Optimization at link time puts the code of all languages into one unit, which has the language of the first; each function
 * is that of the unit where it was written. */
TEST(functions_keep_their_language_after_lto)
{
    static const char c[] =
        "int helper(int a) { return a * 3; }\n"
        "__attribute__((noinline)) int plain(int a) { volatile int b = a; return b + helper(a); }\n";
    static const char cpp[] = "extern \"C\" int plain(int); extern \"C\" int helper(int);\n"
                              "extern \"C\" int entry(int a) { volatile int b = plain(a); return b + helper(b); }\n";
    struct converted converted;
    struct sl_location chain[4];
    struct sl_symcache_function f;
    bool inlined = false;
    fixture_write("lto.c", c, sizeof c - 1);
    fixture_write("lto.cc", cpp, sizeof cpp - 1);
    fixture_run("gcc -g -O2 -flto -fPIC -fno-semantic-interposition -c -o lto.1.o lto.c && g++ -g -O2 -flto -fPIC "
                "-fno-semantic-interposition -c -o lto.2.o lto.cc && "
                "g++ -g -O2 -flto -shared -o lto.so lto.1.o lto.2.o && "
                "readelf --debug-dump=info lto.so | grep -q '<artificial>'");
    struct sl_bytes bytes = fixture_read("lto.so");
    struct sl_object *object = open_bytes(bytes);
    convert(&converted, object);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start = symbol_address(object, i ? "entry" : "plain");
        for (uint64_t at = start;; at++) {
            size_t count = sl_symcache_lookup(&converted.cache, at, chain, 4);
            if (!count || !sl_symcache_function(&converted.cache, chain[count - 1].function, &f) || f.entry != start)
                break;
            assert_int_equal(f.language, i ? SL_LANG_CPP : SL_LANG_C);
            assert_true(sl_symcache_function(&converted.cache, chain[0].function, &f));
            assert_int_equal(f.language, i && count == 1 ? SL_LANG_CPP : SL_LANG_C);
            inlined = inlined || (i && count == 2);
        }
    }
    assert_true(inlined);
    sl_buf_free(&converted.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

/* A unit (DWARF 5, 7.5) with a subprogram in which entries of one kind are nested; another subprogram comes first. */
static const char nested[] = ".text\n.globl entry\n.type entry,@function\nentry: .skip 64,0x90\n.size entry,64\n"
                             "other: .skip 16,0x90\n"
                             ".section .debug_abbrev,\"\",@progbits\n"
                             ".byte 1,0x11,1, 0x03,8, 0x11,1, 0x12,6, 0,0\n"          /* unit */
                             ".byte 2,0x2e,1, 0x03,8, 0x11,1, 0x12,6, 0,0\n"          /* subprogram */
                             ".byte 3,0x1d,1, 0x03,8, 0x11,1, 0x12,6, 0x59,11, 0,0\n" /* inlined call */
                             ".byte 4,0x0b,1, 0,0\n"                                  /* block */
                             ".byte 5,0x2e,0, 0x03,8, 0x11,1, 0x12,6, 0,0\n"
                             ".byte 0\n"
                             ".section .debug_info,\"\",@progbits\n"
                             ".long end - begin\nbegin: .short 4\n.long .debug_abbrev\n.byte 8\n"
                             ".byte 1\n.asciz \"u\"\n.quad entry\n.long 80\n"
                             ".byte 5\n.asciz \"other\"\n.quad other\n.long 16\n"
                             ".byte 2\n.asciz \"entry\"\n.quad entry\n.long 64\n"
                             ".rept COUNT\nENTRY\n.endr\n"
                             ".fill COUNT + 2\nend:\n";

static size_t chain_of_nested(const char *entry, unsigned count, struct converted *c)
{
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    char command[512];
    fixture_write("nested.S", nested, sizeof nested - 1);
    fixture_write("entry", entry, strlen(entry));
    snprintf(
        command, sizeof command,
        "sed -e 's/COUNT/%u/' -e '/^ENTRY$/{r entry' -e 'd}' nested.S >nested.s && gcc -shared -o nested.so nested.s",
        count);
    fixture_run(command);
    struct sl_bytes bytes = fixture_read("nested.so");
    struct sl_object *object = open_bytes(bytes);
    convert(c, object);
    uint64_t address = symbol_address(object, "entry");
    assert_string_equal(chain_at(&c->cache, address + 64), "other:0"); /* it comes before what is too deep */
    size_t length = sl_symcache_lookup(&c->cache, address + 8, chain, SL_SYMCACHE_MAX_CHAIN);
    sl_object_close(object);
    free((void *)bytes.data);
    sl_buf_free(&c->file);
    return length;
}

TEST(inline_nesting_is_limited)
{
    struct converted c;
    static const char inlined[] = ".byte 3\n.asciz \"in\"\n.quad entry\n.long 32\n.byte 7\n", block[] = ".byte 4\n";
    /* the innermost call has no line of its own, and is known all the same */
    assert_int_equal(chain_of_nested(inlined, 3, &c), 4);
    assert_int_equal(chain_of_nested(inlined, 512, &c), 513);
    assert_int_equal(chain_of_nested(inlined, 1000, &c), 514); /* of depths 0 to 512, and the function */
    assert_int_equal(chain_of_nested(inlined, 100000, &c), 514);
    assert_int_equal(chain_of_nested(block, 4000, &c), 1);
    assert_int_equal(chain_of_nested(block, 1000000, &c), 1);
}

/* Every chain of the file with the languages of its functions. `common`: the supplementary file, NULL = none. */
static struct sl_buf chains_of(const char *file, const char *common)
{
    struct sl_bytes bytes = fixture_read(file), shared = common ? fixture_read(common) : (struct sl_bytes){NULL, 0};
    struct sl_object *object = open_bytes(bytes);
    struct sl_companions companions = {.dwz = common ? open_bytes(shared) : NULL};
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    struct sl_location chain[8];
    struct sl_symcache cache;
    struct sl_symcache_cursor cursor;
    struct sl_symcache_function f;
    struct sl_buf made = {0}, text = {0};
    struct sl_error error;
    assert_int_equal(sl_symcache_convert(object, &companions, &options, NULL, &made, &error), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&made), &cache, &error), SL_OK);
    for (sl_symcache_first(&cache, &cursor); sl_symcache_next(&cache, &cursor);) {
        chain_append(&cache, cursor.address, &text);
        size_t count = sl_symcache_lookup(&cache, cursor.address, chain, 8);
        for (size_t i = 0; i < count; i++) {
            assert_true(sl_symcache_function(&cache, chain[i].function, &f));
            sl_buf_printf(&text, " %s", sl_language_name(f.language));
        }
        sl_buf_u8(&text, '\n');
    }
    sl_buf_free(&made);
    sl_object_close(companions.dwz);
    sl_object_close(object);
    free((void *)shared.data);
    free((void *)bytes.data);
    return text;
}

/* What units have in common dwz moves into partial units, which have no language, or into a file beside. Which one that is says
 * .gnu_debugaltlink or, of DWARF 5, .debug_sup. */
TEST(entries_shared_by_dwz_are_read)
{
    static const char header[] = "struct pair { int a, b; char name[20]; double c; };\n"
                                 "static inline int mix(struct pair *p) { p->b += p->a; return p->a * p->b; }\n"
                                 "static inline int twice(struct pair *p) { return mix(p) + 2; }\n";
    static const char one[] = "#include \"pair.h\"\nint one(struct pair *p) { return twice(p) + 1; }\n";
    static const char two[] = "#include \"pair.h\"\nint two(struct pair *p) { return twice(p) * 2; }\n";
    fixture_write("pair.h", header, sizeof header - 1);
    fixture_write("one.c", one, sizeof one - 1);
    fixture_write("two.c", two, sizeof two - 1);
    fixture_run("gcc -gdwarf-5 -O2 -shared -fPIC -fdebug-prefix-map=$PWD=/src -o whole.so one.c two.c && "
                "dwz -o shared.so whole.so && readelf --debug-dump=info shared.so | grep partial_unit && "
                "for n in 1 2; do cp whole.so alt$n.so; cp whole.so sup$n.so; done && "
                "dwz -m alt alt1.so alt2.so && readelf -S alt1.so | grep debugaltlink && "
                "dwz -5 -m sup sup1.so sup2.so && readelf -S sup1.so | grep debug_sup");
    struct sl_buf whole = chains_of("whole.so", NULL);
    static const char expected[] = "mix:2@/src/pair.h twice:3@/src/pair.h one:2@/src/one.c c c c\n";
    if (!memmem(whole.data, whole.size, expected, sizeof expected - 1))
        fail_msg("%.*s", (int)whole.size, (const char *)whole.data);
    static const char *const files[][2] = {{"shared.so", NULL}, {"alt1.so", "alt"}, {"sup1.so", "sup"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct sl_buf text = chains_of(files[i][0], files[i][1]);
        if (text.size != whole.size || memcmp(text.data, whole.data, text.size) != 0)
            fail_msg("%s:\n%.*s", files[i][0], (int)text.size, (const char *)text.data);
        sl_buf_free(&text);
    }
    sl_buf_free(&whole);
}

/* Which file that is. */
TEST(supplementary_file_is_named_and_verified)
{
    for (unsigned i = 0; i < 2; i++) {
        struct sl_bytes bytes = fixture_read(i ? "sup1.so" : "alt1.so"), shared = fixture_read(i ? "sup" : "alt");
        struct sl_object *object = open_bytes(bytes), *common = open_bytes(shared);
        struct sl_dwarf_companions wants;
        struct sl_buf hex = {0};
        sl_dwarf_find_companions(object, &wants);
        assert_true(sl_str_equal(wants.dwz_name, sl_str(i ? "sup" : "alt")));
        sl_buf_hex(&hex, wants.dwz_build_id.data, wants.dwz_build_id.size);
        assert_true(hex.size == 40 && sl_str_equal(sl_buf_view(&hex), sl_object_info(common)->code_id));
        sl_dwarf_find_companions(common, &wants);
        assert_int_equal(wants.dwz_name.size, 0);
        sl_buf_free(&hex);
        sl_object_close(common);
        sl_object_close(object);
        free((void *)shared.data);
        free((void *)bytes.data);
    }
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
