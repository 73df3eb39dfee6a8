/* Conversions with fewer steps of work than they need, for every format: the whole symcache, one that says that it is a part, or
 * none; never one with less in it that says nothing. */
#include "../fixture.h"

#include <string.h>

#include "object/object.h"
#include "symcache/symcache.h"

static const char source[] = "static inline __attribute__((always_inline)) int inner(int x) { return x * x; }\n"
                             "int outer(int x) { return inner(x) + 1; }\n"
                             "int entry(int x) { return outer(x) + inner(x + 2); }\n";

#define CLANG "clang-14 -w -O1 -ffreestanding "

static int make_fixtures(void **state)
{
    static char text[256 << 10];
    size_t size = (size_t)snprintf(
        text, sizeof text,
        "MODULE Linux x86_64 0123456789ABCDEF0123456789ABCDEF0 a\nFILE 0 a.c\nINLINE_ORIGIN 0 inner\n");
    if (fixture_begin(state) != 0)
        return -1;
    for (unsigned i = 0; i < 2000; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "FUNC %x 40 0 f%u\nINLINE 0 3 0 0 %x 10\n%x 40 7 0\n",
                                 64 * i, i, 64 * i + 16, 64 * i);
    fixture_write("breakpad", text, size);
    fixture_write("a.c", source, sizeof source - 1);
    fixture_run("cc -gdwarf-5 -O1 -shared -fPIC -nostdlib -o elf a.c && " CLANG
                "--target=x86_64-apple-macos11 -g -gdwarf-4 -c -o macho a.c && " CLANG
                "--target=wasm32 -g -c -o a.o a.c && wasm-ld-14 --no-entry --export-all -o wasm a.o && " CLANG
                "--target=x86_64-pc-windows-msvc -g -gcodeview -fno-builtin -c -o a.obj a.c && "
                "lld-link-14 /nodefaultlib /noentry /dll /debug /pdb:pdb /out:a.dll a.obj /export:entry");
    return 0;
}

/* At most `steps`. */
static enum sl_code convert_with(struct sl_bytes file, int64_t steps, struct sl_buf *out, struct sl_error *error)
{
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object;
    sl_budget_init(&budget, file.size);
    atomic_store(&budget.steps, steps);
    enum sl_code code = sl_object_open(file, &limits, &object, error);
    if (code != SL_OK)
        return code;
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    sl_buf_clear(out);
    code = sl_symcache_convert(object, NULL, &options, NULL, out, error);
    sl_object_close(object);
    return code;
}

static bool is_partial(const struct sl_buf *out)
{
    struct sl_symcache cache;
    assert_int_equal(sl_symcache_open(sl_buf_bytes(out), &cache, NULL), SL_OK);
    return sl_symcache_is_partial(&cache);
}

static void less_work_is_told(const char *format)
{
    enum { STEP = 997, MAX_VALUE = 1 << 24 };
    struct sl_bytes file = fixture_read(format);
    struct sl_buf whole = {0}, out = {0};
    struct sl_error error;
    unsigned refused = 0;
    enum sl_code code;
    assert_int_equal(convert_with(file, MAX_VALUE, &whole, &error), SL_OK);
    assert_false(is_partial(&whole));
    for (int64_t steps = 0, good = 0; good < 8; steps += steps < 64 * STEP ? STEP : steps / 8) {
        code = convert_with(file, steps, &out, &error);
        good += code == SL_OK;
        refused += code != SL_OK;
        if (code == SL_OK && !is_partial(&out)) {
            assert_int_equal(out.size, whole.size);
            assert_memory_equal(out.data, whole.data, whole.size);
        } else if (code != SL_OK) {
            assert_int_equal(code, SL_MALFORMED);
            assert_memory_equal(error.message, "reading the file needs more work than allowed for a file of ", 60);
        }
    }
    assert_true(refused > 0);
    sl_buf_free(&whole);
    sl_buf_free(&out);
    free((void *)file.data);
}

#define LESS_WORK_IS_TOLD(format)                                                                                      \
    TEST_NAMED(less_work_is_told_##format, "less work is told: " #format)                                              \
    {                                                                                                                  \
        less_work_is_told(#format);                                                                                    \
    }
LESS_WORK_IS_TOLD(elf)
LESS_WORK_IS_TOLD(macho)
LESS_WORK_IS_TOLD(wasm)
LESS_WORK_IS_TOLD(pdb)
LESS_WORK_IS_TOLD(breakpad)

/* What could not be read is told, with the first of it. */
static void gaps_of(struct sl_bytes file, size_t units, const char *message)
{
    struct sl_object *object;
    struct sl_buf out = {0};
    struct sl_symcache_gaps gaps;
    assert_int_equal(sl_object_open(file, NULL, &object, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .gaps = &gaps};
    assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
    assert_true(is_partial(&out));
    assert_int_equal(gaps.units, units);
    if (message)
        assert_string_equal(gaps.first.message, message);
    sl_object_close(object);
    sl_buf_free(&out);
}

TEST(malformed_line_is_reported_with_its_offset)
{
    static const char text[] = "MODULE Linux x86_64 0123456789ABCDEF0123456789ABCDEF0 a\nFILE 0 a.c\n"
                               "FUNC 10 10 0 good\n10 10 1 0\nFUNC zz 10 0 bad\nFUNC 30 10 0 f\nyy 10 1 0\n";
    gaps_of((struct sl_bytes){(const uint8_t *)text, sizeof text - 1}, 2,
            "invalid line at offset 95 of the Breakpad file");
}

TEST(missing_module_is_reported_by_name)
{
    struct sl_bytes file = fixture_read("pdb");
    static const char name[] = "a.obj";
    uint8_t *at = memmem(file.data, file.size, name, sizeof name); /* of the first module */
    assert_non_null(at);
    while (at > file.data && memcmp(at - 1, "\0", 1) != 0)
        at--;
    memset(at - 64 + 36, 0xFE, 4); /* size of its symbols */
    gaps_of(file, 1, "cannot read the symbols of module number 0 in the PDB");
    free((void *)file.data);
}

/* Names of sections in a section that is not there: symbols are left. */
TEST(file_with_missing_parts_is_reported)
{
    enum { NAMES_INDEX = 62 };
    struct sl_bytes file = fixture_read("elf");
    ((uint8_t *)file.data)[NAMES_INDEX] = 0xF0;
    gaps_of(file, 0, NULL);
    free((void *)file.data);
}

TEST_FILE(.begin = make_fixtures, .end = fixture_end);
