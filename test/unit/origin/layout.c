/* Every row of the published layout tables, names, globs and the way back from a path. */
#include "../check.h"

#include "origin/origin.h"

static struct sl_arena arena;

static struct object_id module(enum object_type type, const char *code_id, const char *code_file, const char *debug_id,
                               const char *debug_file)
{
    struct object_id id = {.type = type, .code_file = sl_str(code_file), .debug_file = sl_str(debug_file)};
    if (code_id)
        id.code_id = sl_code_id_normalise(&arena, sl_str(code_id));
    if (debug_id)
        id.has_debug_id = sl_debug_id_parse(sl_str(debug_id), &id.debug_id);
    return id;
}

/* `expected`: paths separated by blanks. */
static void expect(enum layout_type layout, struct object_id id, enum file_type type, const char *expected)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    struct sl_buf out = {0};
    size_t n = layout_paths(&arena, layout, CASING_DEFAULT, &id, type, paths);
    for (size_t i = 0; i < n; i++)
        sl_buf_printf(&out, "%s" SL_STR_FMT, i ? " " : "", SL_STR_ARG(paths[i]));
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, expected);
    sl_buf_free(&out);
}

#define PE                                                                                                             \
    module(OBJECT_PE, "5ab380779000", "C:\\projects\\breakpad-tools\\windows\\Release\\crash.exe",                     \
           "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "C:\\projects\\breakpad-tools\\windows\\Release\\crash.pdb")
#define MACHO module(OBJECT_MACHO, NULL, "/Users/travis/build/./crash", "67e9247c-814e-392b-a027-dbde6748fcbf", "crash")
#define ELF                                                                                                            \
    module(OBJECT_ELF, "dfb85de42daffd09640c8fe377d572de3e168920", "/lib/x86_64-linux-gnu/libm-2.23.so",               \
           "e45db8df-af2d-09fd-640c-8fe377d572de", "/lib/x86_64-linux-gnu/libm-2.23.so")
#define WASM                                                                                                           \
    module(OBJECT_WASM, "67e9247c814e392ba027dbde6748fcbf", NULL, "67e9247c-814e-392b-a027-dbde6748fcbf",              \
           "file://foo.invalid/demo.wasm")

TEST(native_layout_gives_paths)
{
    expect(
        LAYOUT_NATIVE, PE, FILE_PDB,
        "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pd_");
    expect(LAYOUT_NATIVE, PE, FILE_PE, "crash.exe/5AB380779000/crash.exe crash.exe/5AB380779000/crash.ex_");
    expect(LAYOUT_NATIVE, PE, FILE_BREAKPAD, "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym");
    expect(LAYOUT_NATIVE, PE, FILE_SOURCEBUNDLE, "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.src.zip");
    expect(LAYOUT_NATIVE, MACHO, FILE_MACH_CODE, "67E9/247C/814E/392B/A027/DBDE6748FCBF.app");
    expect(LAYOUT_NATIVE, MACHO, FILE_MACH_DEBUG, "67E9/247C/814E/392B/A027/DBDE6748FCBF");
    expect(LAYOUT_NATIVE, MACHO, FILE_BREAKPAD, "crash/67E9247C814E392BA027DBDE6748FCBF0/crash.sym");
    expect(LAYOUT_NATIVE, MACHO, FILE_SOURCEBUNDLE,
           "67E9/247C/814E/392B/A027/DBDE6748FCBF.src.zip crash/67E9247C814E392BA027DBDE6748FCBF0/crash.src.zip");
    expect(LAYOUT_NATIVE, WASM, FILE_WASM_CODE, "67/e9247c814e392ba027dbde6748fcbf");
    expect(LAYOUT_NATIVE, WASM, FILE_WASM_DEBUG, "67/e9247c814e392ba027dbde6748fcbf.debug");
    expect(LAYOUT_NATIVE, WASM, FILE_SOURCEBUNDLE, "67/e9247c814e392ba027dbde6748fcbf.src.zip");
    expect(LAYOUT_NATIVE, ELF, FILE_ELF_CODE, "df/b85de42daffd09640c8fe377d572de3e168920");
    expect(LAYOUT_NATIVE, ELF, FILE_ELF_DEBUG, "df/b85de42daffd09640c8fe377d572de3e168920.debug");
    expect(LAYOUT_NATIVE, ELF, FILE_BREAKPAD, "libm-2.23.so/E45DB8DFAF2D09FD640C8FE377D572DE0/libm-2.23.so.sym");
    expect(LAYOUT_NATIVE, ELF, FILE_SOURCEBUNDLE,
           "df/b85de42daffd09640c8fe377d572de3e168920.src.zip "
           "libm-2.23.so/E45DB8DFAF2D09FD640C8FE377D572DE0/libm-2.23.so.src.zip");
}

TEST(unified_layout_gives_paths)
{
    expect(LAYOUT_UNIFIED, PE, FILE_PDB,
           "32/49d99d0c4049318610f4e4fb0b69361/debuginfo 32/49d99d0c4049318610f4e4fb0b69361/debuginf_");
    expect(LAYOUT_UNIFIED, PE, FILE_PE,
           "32/49d99d0c4049318610f4e4fb0b69361/executable 32/49d99d0c4049318610f4e4fb0b69361/executabl_");
    expect(LAYOUT_UNIFIED, MACHO, FILE_MACH_DEBUG, "67/e9247c814e392ba027dbde6748fcbf/debuginfo");
    expect(LAYOUT_UNIFIED, MACHO, FILE_SOURCEBUNDLE, "67/e9247c814e392ba027dbde6748fcbf/sourcebundle");
    expect(LAYOUT_UNIFIED, WASM, FILE_WASM_CODE, "67/e9247c814e392ba027dbde6748fcbf/executable");
    expect(LAYOUT_UNIFIED, WASM, FILE_SOURCEBUNDLE, "67/e9247c814e392ba027dbde6748fcbf/sourcebundle");
    expect(LAYOUT_UNIFIED, WASM, FILE_BREAKPAD, "67/e9247c814e392ba027dbde6748fcbf/breakpad");
    expect(LAYOUT_UNIFIED, ELF, FILE_ELF_DEBUG, "df/b85de42daffd09640c8fe377d572de3e168920/debuginfo");
    expect(LAYOUT_UNIFIED, ELF, FILE_BREAKPAD, "df/b85de42daffd09640c8fe377d572de3e168920/breakpad");
    expect(LAYOUT_UNIFIED, PE, FILE_BREAKPAD, "32/49d99d0c4049318610f4e4fb0b69361/breakpad");
    expect(LAYOUT_UNIFIED, module(OBJECT_UNKNOWN, NULL, NULL, "67e9247c-814e-392b-a027-dbde6748fcbf", NULL),
           FILE_SOURCEBUNDLE, "67/e9247c814e392ba027dbde6748fcbf/sourcebundle");
    expect(LAYOUT_UNIFIED, module(OBJECT_UNKNOWN, NULL, NULL, "67e9247c-814e-392b-a027-dbde6748fcbf", "a.pdb"),
           FILE_SOURCEBUNDLE, "");
    expect(LAYOUT_UNIFIED, PE, FILE_SOURCEBUNDLE, "32/49d99d0c4049318610f4e4fb0b69361/sourcebundle");
    expect(LAYOUT_UNIFIED, MACHO, FILE_MACH_CODE, "67/e9247c814e392ba027dbde6748fcbf/executable");
    expect(LAYOUT_UNIFIED, MACHO, FILE_BREAKPAD, "67/e9247c814e392ba027dbde6748fcbf/breakpad");
    expect(LAYOUT_UNIFIED, WASM, FILE_WASM_DEBUG, "67/e9247c814e392ba027dbde6748fcbf/debuginfo");
    expect(LAYOUT_UNIFIED, ELF, FILE_ELF_CODE, "df/b85de42daffd09640c8fe377d572de3e168920/executable");
    expect(LAYOUT_UNIFIED, ELF, FILE_SOURCEBUNDLE, "df/b85de42daffd09640c8fe377d572de3e168920/sourcebundle");
    expect(LAYOUT_UNIFIED, module(OBJECT_UNKNOWN, NULL, NULL, "2d10c42f-591d-3265-b147-78ba0868073f", NULL),
           FILE_UUIDMAP, "2d/10c42f591d3265b14778ba0868073f/uuidmap");
}

TEST(debuginfod_and_symstore_layouts_give_paths)
{
    expect(LAYOUT_DEBUGINFOD, ELF, FILE_ELF_CODE, "dfb85de42daffd09640c8fe377d572de3e168920/executable");
    expect(LAYOUT_DEBUGINFOD, ELF, FILE_ELF_DEBUG, "dfb85de42daffd09640c8fe377d572de3e168920/debuginfo");
    expect(
        LAYOUT_SYMSTORE, PE, FILE_PDB,
        "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pd_");
    expect(LAYOUT_SYMSTORE, PE, FILE_PE, "crash.exe/5AB380779000/crash.exe crash.exe/5AB380779000/crash.ex_");
    expect(LAYOUT_SYMSTORE, PE, FILE_SOURCEBUNDLE, "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.src.zip");
    expect(LAYOUT_SYMSTORE_INDEX2, PE, FILE_PDB,
           "cr/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb "
           "cr/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pd_");
    expect(LAYOUT_SYMSTORE_INDEX2, PE, FILE_PE,
           "cr/crash.exe/5AB380779000/crash.exe cr/crash.exe/5AB380779000/crash.ex_");
    expect(LAYOUT_SYMSTORE_INDEX2, MACHO, FILE_MACH_CODE, "cr/crash/mach-uuid-67e9247c814e392ba027dbde6748fcbf/crash");
    expect(LAYOUT_SYMSTORE_INDEX2, ELF, FILE_ELF_DEBUG,
           "_/_.debug/elf-buildid-sym-dfb85de42daffd09640c8fe377d572de3e168920/_.debug");
    expect(LAYOUT_SLASHSYMBOLS, ELF, FILE_SOURCEBUNDLE,
           "libm-2.23.so/DFB85DE42DAFFD09640C8FE377D572DE3E168920/symbols "
           "libm-2.23.so/dfb85de42daffd09640c8fe377d572de3e168920/symbols");
    expect(LAYOUT_SYMSTORE, MACHO, FILE_MACH_CODE, "crash/mach-uuid-67e9247c814e392ba027dbde6748fcbf/crash");
    expect(LAYOUT_SYMSTORE, MACHO, FILE_MACH_DEBUG, "_.dwarf/mach-uuid-sym-67e9247c814e392ba027dbde6748fcbf/_.dwarf");
    expect(LAYOUT_SYMSTORE, ELF, FILE_ELF_CODE,
           "libm-2.23.so/elf-buildid-dfb85de42daffd09640c8fe377d572de3e168920/libm-2.23.so");
    expect(LAYOUT_SYMSTORE, ELF, FILE_ELF_DEBUG,
           "_.debug/elf-buildid-sym-dfb85de42daffd09640c8fe377d572de3e168920/_.debug");
    expect(LAYOUT_SYMSTORE, ELF, FILE_BREAKPAD, "");
    expect(LAYOUT_SYMSTORE_INDEX2, PE, FILE_SOURCEBUNDLE,
           "cr/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.src.zip");
    expect(LAYOUT_SYMSTORE_INDEX2, MACHO, FILE_MACH_DEBUG,
           "_/_.dwarf/mach-uuid-sym-67e9247c814e392ba027dbde6748fcbf/_.dwarf");
    expect(LAYOUT_SYMSTORE_INDEX2, ELF, FILE_ELF_CODE,
           "li/libm-2.23.so/elf-buildid-dfb85de42daffd09640c8fe377d572de3e168920/libm-2.23.so");
    expect(
        LAYOUT_SSQP, PE, FILE_PDB,
        "crash.pdb/3249d99d0c4049318610f4e4fb0b69361/crash.pdb crash.pdb/3249d99d0c4049318610f4e4fb0b69361/crash.pd_");
    expect(LAYOUT_SSQP, PE, FILE_PE, "crash.exe/5ab380779000/crash.exe crash.exe/5ab380779000/crash.ex_");
    expect(LAYOUT_SLASHSYMBOLS, ELF, FILE_ELF_CODE,
           "libm-2.23.so/DFB85DE42DAFFD09640C8FE377D572DE3E168920/symbols "
           "libm-2.23.so/dfb85de42daffd09640c8fe377d572de3e168920/symbols");
    expect(LAYOUT_SYMSTORE,
           module(OBJECT_PE_DOTNET, NULL, NULL, "4e2ca887-825e-46f3-968f-25b41ae1b5f3-9e6d3fcc",
                  "./TimeZoneConverter.pdb"),
           FILE_PORTABLEPDB, "TimeZoneConverter.pdb/4E2CA887825E46F3968F25B41AE1B5F3ffffffff/TimeZoneConverter.pdb");
}

TEST(symbol_files_replace_only_the_pdb_suffix)
{
    static const char *const rows[][2] = {{"crash.pdb", "crash.sym"},
                                          {"foo.dll", "foo.dll.sym"},
                                          {"foo.exe", "foo.exe.sym"},
                                          {"libm-2.23.so", "libm-2.23.so.sym"},
                                          {"x.PDB", "x.PDB.sym"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "%s/3249D99D0C4049318610F4E4FB0B69361/%s", rows[i][0], rows[i][1]);
        expect(LAYOUT_NATIVE, module(OBJECT_PE, NULL, NULL, "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", rows[i][0]),
               FILE_BREAKPAD, expected);
    }
}

TEST(unusable_names_give_no_path)
{
    char many[400] = "", none[301];
    for (int i = 0; i < 50; i++)
        memcpy(many + i * 6, "foobar", 6);
    memcpy(many + 300, "/last", 6);
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab380779000", many, NULL, NULL), FILE_PE,
           "last/5AB380779000/last last/5AB380779000/las_");
    memset(none, 'x', 300);
    none[300] = '\0';
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab380779000", none, NULL, NULL), FILE_PE, "");
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab380779000", "C:\\..", NULL, NULL), FILE_PE, "");
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab380779000", "a\nb", NULL, NULL), FILE_PE, "");
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab380779000", "some\nstuff/correct/", NULL, NULL), FILE_PE,
           "correct/5AB380779000/correct correct/5AB380779000/correc_");
    expect(LAYOUT_NATIVE, module(OBJECT_PE, "5ab3", "a.exe", NULL, NULL), FILE_PE, "");
    expect(LAYOUT_NATIVE, module(OBJECT_WASM, "0267e9", NULL, NULL, NULL), FILE_WASM_CODE, "02/67e9 67/e9");
}

TEST(uploads_layout_lists_each_path_once)
{
    expect(LAYOUT_UPLOADS, PE, FILE_PDB,
           "32/49d99d0c4049318610f4e4fb0b69361/debuginfo 32/49d99d0c4049318610f4e4fb0b69361/debuginf_");
    expect(LAYOUT_UPLOADS, PE, FILE_SOURCEBUNDLE, "32/49d99d0c4049318610f4e4fb0b69361/sourcebundle");
    expect(LAYOUT_UPLOADS, ELF, FILE_SOURCEBUNDLE,
           "df/b85de42daffd09640c8fe377d572de3e168920/sourcebundle e4/5db8dfaf2d09fd640c8fe377d572de0/sourcebundle");
}

TEST(lack_of_memory_is_not_a_shorter_list_of_paths)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    struct object_id id = PE;
    for (size_t limit = 1; limit < 40; limit++) {
        struct sl_arena small;
        sl_arena_init(&small, limit);
        assert_int_equal(layout_paths(&small, LAYOUT_NATIVE, CASING_LOWERCASE, &id, FILE_PDB, paths), SIZE_MAX);
        sl_arena_free(&small);
    }
}

TEST(casing_applies_to_the_whole_path)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    struct object_id id = PE;
    layout_paths(&arena, LAYOUT_NATIVE, CASING_LOWERCASE, &id, FILE_PDB, paths);
    assert_true(sl_str_equal(paths[0], SL_STR("crash.pdb/3249d99d0c4049318610f4e4fb0b69361/crash.pdb")));
    layout_paths(&arena, LAYOUT_NATIVE, CASING_UPPERCASE, &id, FILE_PDB, paths);
    assert_true(sl_str_equal(paths[1], SL_STR("CRASH.PDB/3249D99D0C4049318610F4E4FB0B69361/CRASH.PD_")));
}

TEST(paths_are_parsed_back_to_ids)
{
    static const struct {
        const char *path;
        enum file_type type;
        const char *code_id, *debug_id; /* both NULL: not found */
    } rows[] = {
        {"foo.exe/542D574Ec2000/foo.exe", FILE_PE, "542d574ec2000", NULL},
        {"foo.pdb/497b72f6390a44fc878e5a2d63b6cc4b1/FOO.pdb", FILE_PDB, NULL, "497b72f6-390a-44fc-878e-5a2d63b6cc4b-1"},
        {"foo.pdb/497b72f6390a44fc878e5a2d63b6cc4bFFFFFFFF/foo.pdb", FILE_PDB, NULL,
         "497b72f6-390a-44fc-878e-5a2d63b6cc4b-ffffffff"},
        {"_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd700000000/_.debug", FILE_ELF_DEBUG,
         "180a373d6afbabf0eb1f09be1bc45bd700000000", NULL},
        {"foo.dylib/mach-uuid-497b72f6390a44fc878e5a2d63b6cc4b/foo.dylib", FILE_MACH_CODE,
         "497b72f6390a44fc878e5a2d63b6cc4b", NULL},
        {"foo.pdb/nonsense/foo.pdb", FILE_PDB, NULL, NULL},
        {"a/b/c", FILE_PE, NULL, NULL},
        {"a/b", FILE_PE, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct object_id id;
        enum file_type type;
        char text[SL_DEBUG_ID_TEXT];
        bool found = layout_reverse(&arena, sl_str(rows[i].path), &id, &type);
        assert_int_equal(found, rows[i].code_id || rows[i].debug_id);
        if (!found)
            continue;
        assert_int_equal(type, rows[i].type);
        if (rows[i].code_id)
            assert_true(sl_str_equal(id.code_id, sl_str(rows[i].code_id)));
        sl_debug_id_format(&id.debug_id, text);
        if (rows[i].debug_id)
            assert_string_equal(text, rows[i].debug_id);
    }
}

TEST(globs_match_paths)
{
    static const struct {
        const char *pattern, *subject;
        bool match;
    } rows[] = {
        {"c:/windows/*", "C:/Windows/System32/kernel32.dll", true},
        {"?:/windows/*", "C:/Windows/System32/kernel32.dll", true},
        {"?:/windows/**", "C:/Windows/System32/kernel32.dll", true},
        {"?:/windows/", "C:/Windows/System32/kernel32.dll", false},
        {"d:/windows/**", "C:/Windows/System32/kernel32.dll", false},
        {"*libGLESv2*", "C:/x/libglesv2.dll", true},
        {"*electron*", "C:/projects/src/out/Default/electron.exe.pdb", true},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"[a-c]x[!0-9]", "BXy", true},
        {"[a-c]x[!0-9]", "bx7", false},
        {"[]]", "]", true},
        {"[?]", "x", false},
        {"", "", true},
        {"*", "", true},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXbYbZ", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(origin_glob(sl_str(rows[i].pattern), sl_str(rows[i].subject)), rows[i].match);
    assert_false(origin_glob_valid(SL_STR("[a")));
    assert_false(origin_glob_valid(SL_STR("a**")));
    assert_false(origin_glob_valid(SL_STR("***")));
    assert_true(origin_glob_valid(SL_STR("**/a/[]x]/*")));
}

static int teardown(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

TEST_FILE(.end = teardown);
