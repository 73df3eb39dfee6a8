/* Programs of the Go compiler without DWARF: what their tables say is what the DWARF of the same program says. */
#include "../fixture.h"
#include "../object/debug_file.h"

#include "go/go.h"

/* No imports: the runtime alone is what the linker adds. */
static const char program[] = "package main\n"
                              "type counter struct{ n int }\n"
                              "func (c *counter) add(by int) int {\n"
                              "\tc.n += by\n"
                              "\tif c.n > 1<<20 {\n"
                              "\t\tprintln(\"many\")\n"
                              "\t}\n"
                              "\treturn c.n\n"
                              "}\n"
                              "func twice(c *counter, by int) int {\n"
                              "\treturn c.add(by) +\n"
                              "\t\tc.add(by+1)\n"
                              "}\n"
                              "//go:noinline\n"
                              "func work(c *counter, n int) (total int) {\n"
                              "\tfor i := 0; i < n; i++ {\n"
                              "\t\ttotal += twice(c, i)\n"
                              "\t}\n"
                              "\treturn\n"
                              "}\n"
                              "func main() {\n"
                              "\tprintln(work(&counter{}, 3))\n"
                              "}\n";

#define GO "HOME=$PWD GOFLAGS=-modcacherw GO111MODULE=off CGO_ENABLED=0 "

static int begin(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("main.go", program, strlen(program));
    return 0;
}

struct module {
    struct sl_mapping mapping;
    struct sl_object *object;
    struct converted made;
};

static void open_module(struct module *m, const char *name)
{
    char path[160];
    struct sl_error error = {0};
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    if (sl_map_file(path, &m->mapping, &error) != SL_OK)
        fail_msg("%s: %s", name, error.message);
    m->object = open_bytes(m->mapping.bytes);
    convert(&m->made, m->object);
}

static void close_module(struct module *m)
{
    sl_buf_free(&m->made.file);
    sl_object_close(m->object);
    sl_unmap(&m->mapping);
}

/* [start, end) of a function; the test fails without it. */
static void function_named(const struct sl_symcache *cache, const char *name, uint64_t *start, uint64_t *end)
{
    struct sl_symcache_function f;
    struct sl_symcache_cursor cursor;
    struct sl_buf text = {0};
    *start = UINT64_MAX;
    for (uint32_t i = 0; *start == UINT64_MAX && sl_symcache_function(cache, i, &f); i++) {
        sl_buf_clear(&text);
        sl_symcache_string(cache, f.name, &text);
        if (f.entry != UINT64_MAX && sl_str_equal(sl_buf_view(&text), sl_str(name)))
            *start = f.entry;
    }
    sl_buf_free(&text);
    if (*start == UINT64_MAX)
        fail_msg("no function %s", name);
    for (sl_symcache_first(cache, &cursor); sl_symcache_next(cache, &cursor);)
        if (cursor.address > *start && cursor.hole) {
            *end = cursor.address;
            return;
        }
    *end = *start + 1;
}

/* Whether there is code in main.work that two calls are inlined at. */
static void has_the_chain(const struct sl_symcache *cache)
{
    uint64_t start, end;
    size_t inner = 0, second = 0;
    function_named(cache, "main.work", &start, &end);
    for (uint64_t at = start; at < end; at++) {
        const char *chain = chain_at(cache, at);
        inner += strstr(chain, "main.(*counter).add:4@") == chain && strstr(chain, "/main.go main.twice:11@") &&
                 strstr(chain, "/main.go main.work:17@");
        second += strstr(chain, "main.twice:12@") && strstr(chain, "main.(*counter).add:") == chain;
    }
    assert_true(inner > 0);
    assert_true(second > 0);
}

/* Every byte of the runtime and of the program, but where the tables and DWARF differ by themselves: wrappers, and padding. */
TEST(pclntab_agrees_with_dwarf)
{
    struct module full, bare;
    fixture_run(GO "go build -o full main.go && " GO "go build -ldflags='-s -w' -o bare main.go");
    open_module(&full, "full");
    open_module(&bare, "bare");
    assert_true(sl_object_info(full.object)->features.has_debug_info);
    assert_false(sl_object_info(bare.object)->features.has_debug_info);
    assert_true(sl_object_info(bare.object)->features.has_symbols);
    /* symbols of its assembler's functions have a suffix more */
    uint64_t exit = symbol_address(full.object, "runtime.goexit.abi0");
    assert_ptr_equal(strstr(chain_at(&full.made.cache, exit), "runtime.goexit:"), chain_at(&full.made.cache, exit));
    size_t addresses = 0, same = 0;
    char expected[4096];
    uint64_t start, end;
    struct sl_bytes text;
    has_the_chain(&bare.made.cache);
    function_named(&bare.made.cache, "main.work", &start, &end);
    for (uint64_t at = start; at < end; at++) {
        snprintf(expected, sizeof expected, "%s", chain_at(&full.made.cache, at));
        assert_string_equal(chain_at(&bare.made.cache, at), expected);
    }
    assert_true(sl_object_section(bare.object, "text", &text, &start));
    for (uint64_t at = start; at < start + text.size; at += 3) {
        snprintf(expected, sizeof expected, "%s", chain_at(&full.made.cache, at));
        same += strcmp(chain_at(&bare.made.cache, at), expected) == 0;
        addresses++;
    }
    print_message("%zu of %zu addresses as DWARF has them\n", same, addresses);
    assert_true(same * 1000 >= addresses * 995);
    close_module(&full);
    close_module(&bare);
}

/* Position-independent: pointers are in relocations, or nowhere but in the program's headers. */
TEST(other_go_program_kinds_are_read)
{
    static const struct {
        const char *name, *command;
        enum sl_format format;
    } programs[] = {
        {"pie", GO "go build -buildmode=pie -ldflags='-s -w' -o pie main.go", SL_FORMAT_ELF},
        {"x86", GO "GOARCH=386 go build -ldflags='-s -w' -o x86 main.go", SL_FORMAT_ELF},
        {"windows.exe", GO "GOOS=windows go build -ldflags='-s -w' -o windows.exe main.go", SL_FORMAT_PE},
        {"darwin", GO "GOOS=darwin go build -ldflags='-s -w' -o darwin main.go", SL_FORMAT_MACHO},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct module m;
        fixture_run(programs[i].command);
        open_module(&m, programs[i].name);
        assert_int_equal(sl_object_info(m.object)->format, programs[i].format);
        assert_true(sl_object_info(m.object)->features.has_symbols);
        has_the_chain(&m.made.cache);
        close_module(&m);
    }
}

TEST(damaged_programs_never_crash)
{
    struct sl_bytes bytes = fixture_read("bare"), table;
    struct sl_object *object = open_bytes(bytes);
    uint64_t address;
    assert_true(sl_object_go_table(object, &table, &address));
    struct sl_buf small = {0}; /* headers as they are, the table's first functions */
    sl_buf_add(&small, bytes.data, bytes.size);
    for (unsigned round = 0; round < 40; round++) {
        size_t at = (size_t)(table.data - bytes.data) + round * 1237 % 65536;
        small.data[at] ^= (uint8_t)(1 + round);
        read_all_of(sl_buf_bytes(&small));
    }
    sl_buf_free(&small);
    sl_object_close(object);
    free((void *)(uintptr_t)bytes.data);
}

TEST_FILE(.begin = begin, .end = fixture_end);
