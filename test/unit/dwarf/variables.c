/* Variables in symcaches: what is told of them, and what files say that were made to mislead. */
#include "../object/debug_file.h"
#include "../parallel.h"

static int make_fixtures(void **state)
{
    return fixture_begin(state);
}

static void convert_variables(struct converted *c, struct sl_object *object, const struct sl_parallel *parallel)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .variables = true};
    convert_with(c, object, &options, parallel);
}

/* "name:type name:type" of the innermost function at the address. */
static const char *variables_at(const struct sl_symcache *cache, uint64_t address)
{
    static char text[2048];
    struct sl_location chain[8];
    struct sl_symcache_variable variable;
    struct sl_buf out = {0};
    uint32_t first, count;
    assert_true(sl_symcache_lookup(cache, address, chain, 8) > 0);
    count = sl_symcache_variables(cache, chain[0].function, &first);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(sl_symcache_variable(cache, first + i, &variable));
        sl_buf_cstr(&out, i ? "; " : "");
        sl_symcache_string(cache, variable.name, &out);
        sl_buf_cstr(&out, ":");
        sl_symcache_string(cache, variable.type, &out);
    }
    assert_true(out.size < sizeof text);
    snprintf(text, sizeof text, "%.*s", (int)out.size, out.data ? (const char *)out.data : "");
    sl_buf_free(&out);
    return text;
}

static void expect_variables(const char *file, const char *function, const char *expected)
{
    struct sl_bytes bytes = fixture_read(file);
    struct sl_object *object = open_bytes(bytes);
    struct converted with, without;
    convert_variables(&with, object, NULL);
    convert(&without, object);
    assert_string_equal(variables_at(&with.cache, symbol_address(object, function)), expected);
    assert_string_equal(variables_at(&without.cache, symbol_address(object, function)), "");
    sl_buf_free(&with.file);
    sl_buf_free(&without.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

static const char c_source[] =
    "struct point { int x; };\n"
    "extern int elsewhere;\n"
    "int f(const struct point *p, int (*call)(char *restrict, ...), int n)\n"
    "{\n"
    "    extern int elsewhere;\n"
    "    static _Atomic long counter;\n"
    "    int vla[n], flexible[][2] = {{1, 2}};\n"
    "    volatile char *const *q = 0;\n"
    "    struct inner { int (*method)(int hidden); union { int u; }; } in = {0};\n"
    "    for (int i = 0; i < n; i++) { long n = i; vla[0] += n; }\n"
    "    return vla[0] + counter + flexible[0][0] + (q != 0) + elsewhere + in.u + call(0) + p->x;\n"
    "}\n"
    "int elsewhere;\n"
    "int main(void) { return 0; }\n";

TEST(types_are_written_as_in_c)
{
    fixture_write("v.c", c_source, sizeof c_source - 1);
    for (unsigned version = 3; version <= 5; version++) {
        char command[128];
        snprintf(command, sizeof command, "gcc -g -gdwarf-%u -O0 -o v v.c", version);
        fixture_run(command);
        /* of the two called `n` the inner one is the last; what is declared only is none */
        expect_variables(
            "v", "f",
            version < 5 ? "call:int(*)(char* restrict, ...); counter:long int; flexible:int[1][2]; i:int; in:inner; "
                          "n:long int; p:const point*; q:volatile char* const*; vla:int[]"
                        : "call:int(*)(char* restrict, ...); counter:_Atomic long int; flexible:int[1][2]; "
                          "i:int; in:inner; n:long int; p:const point*; q:volatile char* const*; vla:int[]");
    }
}

TEST(fortran_array_bounds_are_shown)
{
    static const char fortran[] = "subroutine s(n)\n"
                                  "  integer(kind=4) :: n\n"
                                  "  real(kind=8) :: a(10), b(-1:1, 2)\n"
                                  "  a(1) = n\n"
                                  "  b(0, 1) = a(1)\n"
                                  "  if (b(0, 1) > 3) stop 1\n"
                                  "end subroutine\n"
                                  "program p\n"
                                  "  call s(1)\n"
                                  "end program\n";
    fixture_write("a.f90", fortran, sizeof fortran - 1);
    fixture_run("gfortran -g -O0 -o fortran a.f90");
    expect_variables("fortran", "s_", "a:real(kind=8)[10]; b:real(kind=8)[3][2]; n:integer(kind=4)");
}

/* Names and types in a file that several programs share; without it they are not known. */
TEST(types_of_a_supplementary_file_are_read)
{
    static const char source[] =
        "#include <stdio.h>\n#include <netinet/in.h>\nstruct first { int x; };\nstruct second { struct first *f; };\n"
        "int f(struct second *common_parameter) { struct first *common_variable = "
        "common_parameter->f; return common_variable->x; }\n"
        "int main(void) { return 0; }\n";
    fixture_write("s.c", source, sizeof source - 1);
    fixture_run("gcc -g -gdwarf-4 -fno-eliminate-unused-debug-types -o s1 s.c && cp s1 s2 && dwz -m common s1 s2");
    struct sl_bytes bytes = fixture_read("s1"), shared = fixture_read("common");
    struct sl_object *object = open_bytes(bytes), *common = open_bytes(shared);
    struct sl_companions companions = {.dwz = common};
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .variables = true};
    struct converted with = {{0}}, without;
    struct sl_error error = {0};
    convert_variables(&without, object, NULL);
    if (sl_symcache_convert(object, &companions, &options, NULL, &with.file, &error) != SL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&with.file), &with.cache, &error), SL_OK);
    uint64_t f = symbol_address(object, "f");
    assert_string_equal(variables_at(&with.cache, f), "common_parameter:second*; common_variable:first*");
    assert_null(strstr(variables_at(&without.cache, f), "second"));
    sl_buf_free(&with.file);
    sl_buf_free(&without.file);
    sl_object_close(common);
    sl_object_close(object);
    free((void *)shared.data);
    free((void *)bytes.data);
}

/* One function at the begin of .text, and these entries below it, behind it others. */
#define BY_HAND(inside, behind)                                                                                        \
    ".text\n.globl f\n.type f, @function\nf: nop\nnop\n.size f, 2\n"                                                   \
    ".section .debug_abbrev\n"                                                                                         \
    ".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11, 1\n.uleb128 0, 0\n"                   /* unit: low_pc */                \
    ".uleb128 2, 0x2e\n.byte 1\n.uleb128 3, 8, 0x11, 1, 0x12, 0x0b\n.uleb128 0, 0\n" /* subprogram */                  \
    ".uleb128 3, 0x34\n.byte 0\n.uleb128 3, 8, 0x49, 0x13\n.uleb128 0, 0\n"          /* variable: name, type */        \
    ".uleb128 4, 0x34\n.byte 0\n.uleb128 3, 8\n.uleb128 0, 0\n"                      /* variable: name */              \
    ".uleb128 5, 0x34\n.byte 0\n.uleb128 3, 8, 0x49, 0x20\n.uleb128 0, 0\n"          /* ... type by signature */       \
    ".uleb128 6, 0x0f\n.byte 0\n.uleb128 0x49, 0x13\n.uleb128 0, 0\n"                /* pointer */                     \
    ".uleb128 7, 0x0f\n.byte 0\n.uleb128 0, 0\n"                                     /* pointer to nothing */          \
    ".uleb128 8, 0x0f\n.byte 0\n.uleb128 3, 8, 0x49, 0x13\n.uleb128 0, 0\n"          /* pointer with a name */         \
    ".uleb128 9, 0x1f\n.byte 0\n.uleb128 0x49, 0x13\n.uleb128 0, 0\n"                /* pointer to member */           \
    ".uleb128 10, 0x0b\n.byte 1\n.uleb128 0, 0\n"                                    /* block */                       \
    ".uleb128 11, 0x15\n.byte 1\n.uleb128 0, 0\n"                                    /* function type */               \
    ".uleb128 12, 0x05\n.byte 0\n.uleb128 3, 8\n.uleb128 0, 0\n"                     /* parameter: name */             \
    ".uleb128 13, 0x34\n.byte 0\n.uleb128 0x31, 0x13\n.uleb128 0, 0\n"               /* variable of another */         \
    ".uleb128 0\n"                                                                                                     \
    ".section .debug_info\n"                                                                                           \
    "u: .long end - begin\nbegin: .short 4\n.long 0\n.byte 8\n"                                                        \
    ".uleb128 1\n.quad f\n"                                                                                            \
    ".uleb128 2\n.asciz \"f\"\n.quad f\n.byte 2\n" inside ".byte 0\n" behind ".byte 0\nend:\n"

static void expect_by_hand(const char *assembly, size_t size, const char *expected)
{
    fixture_write("h.s", assembly, size);
    fixture_run("gcc -nostdlib -static -Wl,-e,f -o h h.s");
    expect_variables("h", "f", expected);
}

TEST(unresolvable_types_are_left_out)
{
    static const char assembly[] =
        BY_HAND(".uleb128 3\n.asciz \"loop\"\n.long one - u\n"
                ".uleb128 3\n.asciz \"outside\"\n.long 0x7fffffff\n"
                ".uleb128 3\n.asciz \"inside_header\"\n.long 1\n"
                ".uleb128 5\n.asciz \"signature\"\n.quad 7\n"
                ".uleb128 4\n.asciz \"untyped\"\n"
                ".uleb128 3\n.asciz \"nothing\"\n.long nothing - u\n"
                ".uleb128 3\n.asciz \"named\"\n.long named - u\n"
                ".uleb128 3\n.asciz \"member\"\n.long member - u\n"
                ".uleb128 3\n.asciz \"function\"\n.long function - u\n"
                ".uleb128 3\n.asciz \"\"\n.long named - u\n"
                ".uleb128 13\n.long block - u\n"
                ".uleb128 10\nblock: .uleb128 3\n.asciz \"deep\"\n.long nothing - u\n.byte 0\n",
                "one: .uleb128 6\n.long two - u\ntwo: .uleb128 6\n.long one - u\n"
                "nothing: .uleb128 7\n"
                "named: .uleb128 8\n.asciz \"&str\"\n.long nothing - u\n"
                "member: .uleb128 9\n.long nothing - u\n"
                "function: .uleb128 11\n.uleb128 12\n.asciz \"of_the_type\"\n.byte 0\n");
    expect_by_hand(assembly, sizeof assembly - 1,
                   "deep:void*; function:void(void); inside_header:<unknown>; loop:<unknown>**; "
                   "member:<not implemented>; named:&str; nothing:void*; outside:<unknown>; signature:<unknown>; "
                   "untyped:void");
}

/* A chain has an end where nobody would follow it, and a function no more variables than a name may be long. */
TEST(endless_types_and_variable_lists_are_limited)
{
    static const char chain[] = BY_HAND(".uleb128 3\n.asciz \"v\"\n.long one - u\n",
                                        "one:\n.rept 200\n.uleb128 6\n.long . + 4 - u\n.endr\n.uleb128 7\n");
    static const char crowd[] =
        BY_HAND(".set n, 0\n.rept 9000\n.uleb128 3\n.ascii \"v\"\n.byte 48 + n % 10, 48 + n / 10 % "
                "10, 48 + n / 100 % 10, 48 + n / 1000\n.byte 0\n.long one - u\n.set n, n + 1\n"
                ".endr\n",
                "one: .uleb128 7\n");
    char expected[128] = "v:<unknown>";
    memset(expected + strlen(expected), '*', 64);
    expect_by_hand(chain, sizeof chain - 1, expected);
    fixture_write("h.s", crowd, sizeof crowd - 1);
    fixture_run("gcc -nostdlib -static -Wl,-e,f -o h h.s");
    struct sl_bytes bytes = fixture_read("h");
    struct sl_object *object = open_bytes(bytes);
    struct sl_location chain_at_f[2];
    struct converted c;
    uint32_t first;
    convert_variables(&c, object, NULL);
    assert_int_equal(sl_symcache_lookup(&c.cache, symbol_address(object, "f"), chain_at_f, 2), 1);
    assert_int_equal(sl_symcache_variables(&c.cache, chain_at_f[0].function, &first),
                     SL_MAX_NAME / strlen("v0000void*"));
    sl_buf_free(&c.file);
    sl_object_close(object);
    free((void *)bytes.data);
}

/* Of this program: the same file from any number of threads, and nothing worse than no variables from a damaged one. */
TEST(threads_give_the_same_variables_and_damage_is_harmless)
{
    struct sl_mapping mapping;
    struct sl_object *object;
    struct converted one, several;
    struct sl_symcache_variable variable;
    struct sl_symcache damaged;
    uint32_t first, total = 0;
    assert_int_equal(sl_map_file("/proc/self/exe", &mapping, NULL), SL_OK);
    assert_int_equal(sl_object_open(mapping.bytes, NULL, &object, NULL), SL_OK);
    convert_variables(&one, object, NULL);
    for (unsigned workers = 2; workers <= PARALLEL_MAX; workers++) {
        struct sl_parallel parallel = parallel_of(workers);
        convert_variables(&several, object, &parallel);
        assert_true(sl_str_equal(sl_buf_view(&one.file), sl_buf_view(&several.file)));
        sl_buf_free(&several.file);
    }
    for (size_t at = 128; at < one.file.size; at += 1 + one.file.size / 5000) {
        struct sl_error error;
        one.file.data[at] ^= 0x5A;
        if (sl_symcache_open(sl_buf_bytes(&one.file), &damaged, &error) == SL_OK) {
            assert_int_equal(sl_symcache_verify(&damaged, &error), SL_MALFORMED);
            for (uint32_t f = 0; f < 200; f++) {
                uint32_t count = sl_symcache_variables(&damaged, f, &first);
                for (uint32_t i = 0; i < count && i < 4; i++)
                    total += sl_symcache_variable(&damaged, first + i, &variable);
            }
        }
        one.file.data[at] ^= 0x5A;
    }
    assert_true(total > 1000);
    assert_int_equal(sl_symcache_variables(&one.cache, UINT32_MAX, &first), 0);
    assert_false(sl_symcache_variable(&one.cache, UINT32_MAX, &variable));
    sl_buf_free(&one.file);
    sl_object_close(object);
    sl_unmap(&mapping);
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
