/* Conversions with less memory than they need: SL_UNSUPPORTED, and what was taken from malloc stays near the limit. */
#include "../check.h"

#include "breakpad/breakpad.h"
#include "dwarf/dwarf.h"
#include "symcache/symcache.h"

#include <malloc.h>

static size_t live, peak; /* bytes of malloc */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static void *counted(void *memory)
{
    live += malloc_usable_size(memory);
    peak = live > peak ? live : peak;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    size_t before = malloc_usable_size(memory);
    void *grown = __real_realloc(memory, size);
    if (!grown)
        return NULL;
    live -= before;
    return counted(grown);
}

void __wrap_free(void *memory)
{
    live -= malloc_usable_size(memory);
    __real_free(memory);
}

static bool take_text(void *arg, struct sl_str text)
{
    (void)arg, (void)text;
    return true;
}

static enum sl_code to_symcache(struct sl_object *object, struct sl_error *error)
{
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    struct sl_buf out = {0};
    enum sl_code code = sl_symcache_convert(object, NULL, &options, NULL, &out, error);
    sl_buf_free(&out);
    return code;
}

static enum sl_code to_breakpad(struct sl_object *object, struct sl_error *error)
{
    struct sl_breakpad_options options = {.budget = sl_object_budget(object), .inlines = true};
    struct sl_breakpad_output output = {take_text, NULL};
    struct sl_breakpad_writer *w = sl_breakpad_writer_new(&options);
    enum sl_code code = sl_object_read_functions(object, NULL, NULL, sl_breakpad_writer_sink(w), error);
    if (code == SL_OK)
        code = sl_breakpad_writer_finish(w, &output, error);
    sl_breakpad_writer_free(w);
    return code;
}

static enum sl_code convert(struct sl_bytes file, uint64_t memory,
                            enum sl_code (*to)(struct sl_object *object, struct sl_error *error), size_t *most,
                            struct sl_error *error)
{
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object;
    sl_budget_init(&budget, file.size);
    sl_budget_limit(&budget, memory, NULL, NULL);
    size_t before = peak = live;
    enum sl_code code = sl_object_open(file, &limits, &object, error);
    if (code == SL_OK) {
        code = to(object, error);
        sl_object_close(object);
    }
    *most = peak - before;
    assert_int_equal(live, before);
    assert_true(budget.memory == (memory ? (int64_t)memory : INT64_MAX)); /* what was taken was given back */
    return code;
}

/* With a half and an eighth of what it takes. */
static void ends_at_its_limit(struct sl_bytes file,
                              enum sl_code (*to)(struct sl_object *object, struct sl_error *error))
{
    enum { ASIDE = 384 << 10 }; /* fixed scratch of readers and writers */
    struct sl_error error;
    size_t whole, most;
    assert_int_equal(convert(file, 0, to, &whole, &error), SL_OK);
    assert_true(whole > 16 * ASIDE);
    for (size_t part = 2; part <= 8; part *= 4) {
        assert_int_equal(convert(file, whole / part, to, &most, &error), SL_UNSUPPORTED);
        assert_memory_equal(error.message, "reading the file needs more than ", 33);
        assert_true(most <= whole / part + ASIDE);
    }
}

/* Functions of a few lines and inlined calls each; with `jumps` they do not come in the order of their addresses. */
static struct sl_buf breakpad_file(bool jumps)
{
    struct sl_buf file = {0};
    sl_buf_cstr(&file, "MODULE Linux x86_64 000000000000000000000000000000000 a\nFILE 0 a.c\n");
    for (unsigned i = 0; i < 3000; i++)
        sl_buf_printf(&file, "INLINE_ORIGIN %u inlined%u\n", i, i);
    for (unsigned i = 0; i < 60000; i++) {
        unsigned at = 0x1000 + 64 * (jumps ? i ^ 1 : i);
        sl_buf_printf(&file, "FUNC %x 40 0 f%u\nINLINE 0 %u 0 %u %x 8\n", at, i, i % 1000, i % 3000, at + 4);
        for (unsigned line = 0; line < 4; line++)
            sl_buf_printf(&file, "%x 10 %u 0\n", at + 16 * line, i + line);
    }
    assert_false(file.failed);
    return file;
}

TEST(symcache_conversion_ends_at_its_memory_limit)
{
    for (int jumps = 0; jumps < 2; jumps++) {
        struct sl_buf file = breakpad_file(jumps);
        ends_at_its_limit(sl_buf_bytes(&file), to_symcache);
        sl_buf_free(&file);
    }
}

TEST(breakpad_conversion_ends_at_its_memory_limit)
{
    struct sl_buf file = breakpad_file(false);
    ends_at_its_limit(sl_buf_bytes(&file), to_breakpad);
    sl_buf_free(&file);
}
