/* Out of memory at every single allocation of a conversion: the whole file or SL_BUSY, never a file with less in it. */
#include "../fixture.h"

#include "symcache/symcache.h"

static size_t allocations, failing; /* since the count began; the one that fails, 0 = none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    return ++allocations == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

static const char source[] =
    "static inline __attribute__((always_inline)) int twice(volatile int *p) { return *p * 2; }\n"
    "static inline __attribute__((always_inline)) int more(volatile int *p)\n"
    "{ if (*p > 3) return twice(p); return twice(p) + *p; }\n"
    "__attribute__((noinline)) int f(volatile int *p) { return more(p) + twice(p); }\n"
    "__attribute__((noinline)) int g(volatile int *p) { return more(p) - f(p); }\n"
    "__attribute__((noinline)) int h(int (*call)(const char *, int[3]), char (*text)[4]) { return call(*text, 0); }\n"
    "int main(int c, char **v) { (void)v; volatile int x = c; return f(&x) + g(&x) + h(0, 0); }\n";

static bool variables; /* functions are to have theirs */

/* Converts the file; allocations are counted from where the object is open. */
static enum sl_code convert(struct sl_bytes bytes, size_t fail_at, struct sl_buf *out)
{
    struct sl_object *object;
    struct sl_error error = {0};
    failing = 0;
    assert_int_equal(sl_object_open(bytes, NULL, &object, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .variables = variables};
    allocations = 0;
    failing = fail_at;
    enum sl_code code = sl_symcache_convert(object, NULL, &options, NULL, out, &error);
    failing = 0;
    if (code != SL_OK)
        assert_string_equal(error.message, "out of memory");
    sl_object_close(object);
    return code;
}

static void all_or_busy(const char *compile)
{
    struct sl_buf whole = {0};
    fixture_write("a.c", source, sizeof source - 1);
    fixture_run(compile);
    struct sl_bytes bytes = fixture_read("a.elf");
    assert_int_equal(convert(bytes, 0, &whole), SL_OK);
    size_t count = allocations, busy = 0;
    assert_true(count > 20);
    for (size_t n = 1; n <= count; n++) {
        struct sl_buf out = {0};
        enum sl_code code = convert(bytes, n, &out);
        if (code == SL_OK && !sl_str_equal(sl_buf_view(&whole), sl_buf_view(&out)))
            fail_msg("another file after allocation %zu failed", n);
        if (code != SL_OK && code != SL_BUSY)
            fail_msg("%s after allocation %zu failed", sl_code_name(code), n);
        busy += code == SL_BUSY;
        sl_buf_free(&out);
    }
    assert_true(busy * 2 > count);
    sl_buf_free(&whole);
    free((void *)bytes.data);
}

TEST(dwarf_5_without_memory_gives_all_or_busy)
{
    all_or_busy("cc -O2 -gdwarf-5 a.c -o a.elf");
}

TEST(dwarf_4_without_memory_gives_all_or_busy)
{
    all_or_busy("cc -O2 -gdwarf-4 a.c -o a.elf");
}

TEST(variables_without_memory_give_all_or_busy)
{
    variables = true;
    all_or_busy("cc -O2 -gdwarf-5 a.c -o a.elf");
    variables = false;
}

TEST_FILE(.begin = fixture_begin, .end = fixture_end);
