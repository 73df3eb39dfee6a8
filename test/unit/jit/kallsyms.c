/* The kernel's symbols: where functions end, also at the end of the address space. */
#include "../check.h"

#include "jit/jit.h"

static void read_symbols(const char *text, struct sl_jit_code *code)
{
    struct sl_bytes file = {(const uint8_t *)text, strlen(text)};
    struct sl_budget budget;
    struct sl_error error;
    sl_budget_init(&budget, file.size);
    assert_int_equal(sl_jit_read_kallsyms(file, code, &budget, &error), SL_OK);
}

static void check_one(const struct sl_jit_function *f, uint64_t address, uint64_t size, const char *name)
{
    assert_int_equal(f->address, address);
    assert_int_equal(f->size, size);
    assert_true(sl_str_equal(f->name, sl_str(name)));
}

TEST(functions_end_where_the_next_begins)
{
    struct sl_jit_code code = {0};
    read_symbols("ffffffff81000100 T second\nffffffff81000000 t first\nffffffff81000000 T alias\n"
                 "ffffffff81000080 D data\nffffffffa0000010 t last\t[module]\n",
                 &code);
    assert_int_equal(code.count, 3);
    check_one(&code.functions[0], 0xffffffff81000000, 0x100, "first");
    check_one(&code.functions[1], 0xffffffff81000100, 0x1effff10, "second");
    check_one(&code.functions[2], 0xffffffffa0000010, 0xff0, "last\t[module]");
    sl_jit_free(&code);
}

TEST(last_function_ends_with_its_page)
{
    static const uint64_t last[] = {0xfffffffffffff000, 0xfffffffffffff010, 0xfffffffffffffffe};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        struct sl_jit_code code = {0};
        char text[100];
        snprintf(text, sizeof text, "ffffffff81000000 T first\n%llx t last\n", (unsigned long long)last[i]);
        read_symbols(text, &code);
        assert_int_equal(code.count, 2);
        check_one(&code.functions[1], last[i], UINT64_MAX - last[i], "last");

        struct sl_buf file = {0};
        struct sl_breakpad_options options = {
            .os = SL_STR("Linux"), .arch = SL_STR("x86_64"), .name = SL_STR("kernel")};
        struct sl_error error;
        size_t count;
        uint64_t begin = code.functions[0].address, end = code.functions[1].address + code.functions[1].size;
        assert_int_equal(sl_jit_write(&code, begin, end, &options, &file, &count, &error), SL_OK);
        assert_int_equal(count, 2);
        sl_buf_free(&file);
        sl_jit_free(&code);
    }
}
