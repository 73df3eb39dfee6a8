/* Cores of every processor: registers, signal, process, memory, modules; files that lie or end early. */
#include "writer.h"

#include "minidump/analysis.h"
#include "minidump/build.h"

#include <unistd.h>

static struct sl_elfcore read_core(const struct sl_buf *file, struct sl_arena *arena)
{
    struct sl_elfcore core;
    struct sl_error error = {0};
    if (sl_elfcore_read(sl_buf_bytes(file), arena, &core, &error) != SL_OK)
        fail_msg("%s", error.message);
    return core;
}

static uint64_t shown(const struct sl_elfcore *core, const char *name)
{
    const struct sl_crash_thread *thread = &core->dump.crash.threads[0];
    for (size_t i = 0; i < thread->register_count; i++)
        if (sl_str_equal(thread->registers[i].name, sl_str(name)))
            return thread->registers[i].value;
    fail_msg("no register %s", name);
    return 0;
}

/* Registers count up from 0x100 in the order of the kernel's struct. */
TEST(registers_of_each_processor_are_read)
{
    static const struct {
        uint16_t machine;
        bool wide, big_endian;
        size_t count;
        enum sl_cpu_family family;
        const char *pc_name, *sp_name, *other;
        unsigned pc, sp, other_at;
    } rows[] = {
        {EM_X86_64, true, false, 27, SL_CPU_X86_64, "rip", "rsp", "rbx", 16, 19, 5},
        {EM_386, false, false, 17, SL_CPU_X86, "eip", "esp", "ebp", 12, 15, 5},
        {EM_AARCH64, true, false, 34, SL_CPU_ARM64, "pc", "sp", "lr", 32, 31, 30},
        {EM_AARCH64, true, true, 34, SL_CPU_ARM64, "pc", "sp", "fp", 32, 31, 29},
        {EM_ARM, false, false, 18, SL_CPU_ARM, "pc", "sp", "fp", 15, 13, 11},
        {EM_MIPS, false, true, 45, SL_CPU_MIPS, "pc", "sp", "ra", 40, 35, 37},
        {EM_RISCV, true, false, 32, SL_CPU_RISCV64, "pc", "sp", "t6", 0, 2, 31},
        {EM_RISCV, false, false, 32, SL_CPU_RISCV, "pc", "sp", "s0", 0, 2, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer w = {.machine = rows[i].machine, .wide = rows[i].wide, .big_endian = rows[i].big_endian};
        struct sl_arena arena = {0};
        struct sl_registers registers;
        struct sl_walk_stack stack;
        struct sl_walk_numbers numbers;
        put_thread(&w, 7, 11, 0x100, rows[i].count);
        sl_buf_fill(add_memory(&w, 0x100, 0x1000, READ | WRITE), 's', 0x1000);
        struct sl_buf file = finish(&w);
        struct sl_elfcore core = read_core(&file, &arena);
        assert_int_equal(core.dump.family, rows[i].family);
        assert_int_equal(core.dump.crash.thread_count, 1);
        assert_int_equal(shown(&core, rows[i].pc_name), 0x100 + rows[i].pc);
        assert_int_equal(shown(&core, rows[i].sp_name), 0x100 + rows[i].sp);
        assert_int_equal(shown(&core, rows[i].other), 0x100 + rows[i].other_at);
        assert_true(core.dump.threads[0].is_walked);
        sl_minidump_start(&core.dump, 0, &registers, &stack);
        assert_true(sl_walk_numbers(rows[i].family, &numbers));
        assert_int_equal(registers.value[numbers.pc], 0x100 + rows[i].pc);
        assert_int_equal(stack.address, 0x100);
        assert_int_equal(stack.bytes.size, 0x1000);
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

/* Registers that are too short, and those of an unknown processor: threads without stacks. */
TEST(threads_without_usable_registers_have_no_stack)
{
    struct writer w = {.machine = EM_X86_64, .wide = true};
    struct sl_arena arena = {0};
    put_thread(&w, 7, 6, 0, 10);
    struct sl_buf file = finish(&w);
    struct sl_elfcore core = read_core(&file, &arena);
    assert_false(core.dump.threads[0].is_walked);
    assert_null(core.dump.unread_processor);
    sl_buf_free(&file);
    w.machine = 258;
    put_thread(&w, 7, 6, 0, 45);
    file = finish(&w);
    core = read_core(&file, &arena);
    assert_false(core.dump.threads[0].is_walked);
    assert_string_equal(core.dump.unread_processor, "loongarch64");
    sl_buf_free(&file);
    sl_arena_free(&arena);
}

static struct sl_buf signal_info(const struct writer *w, uint32_t signal, uint32_t second, uint32_t third,
                                 uint64_t address)
{
    struct sl_buf b = {0};
    put(&b, w, signal, 4);
    put(&b, w, second, 4);
    put(&b, w, third, 4);
    if (w->wide)
        put(&b, w, 0, 4);
    put_word(&b, w, address);
    sl_buf_fill(&b, 0, 128 - b.size);
    return b;
}

/* si_errno comes before si_code, on MIPS behind it; MIPS has numbers of its own for signals. */
TEST(the_signal_is_described)
{
    static const struct {
        uint16_t machine;
        bool wide, big_endian;
        uint32_t signal, second, third;
        uint64_t address;
        const char *reason;
    } rows[] = {
        {EM_X86_64, true, false, 11, 0, 1, 0, "SIGSEGV / SEGV_MAPERR / 0x0"},
        {EM_X86_64, true, false, 11, 0, 0x80, 0, "SIGSEGV / SI_KERNEL / 0x0"},
        {EM_X86_64, true, false, 6, 0, (uint32_t)-6, 0x3E800001234, "SIGABRT / SI_TKILL"},
        {EM_X86_64, true, false, 8, 0, 1, 0x401000, "SIGFPE / FPE_INTDIV / 0x401000"},
        {EM_386, false, false, 11, 0, 2, 0xFFFF0000, "SIGSEGV / SEGV_ACCERR / 0xffff0000"},
        {EM_X86_64, true, false, 34, 0, 0, 0, "signal 34"},
        {EM_MIPS, false, true, 10, 1, 0, 0x1001, "SIGBUS / BUS_ADRALN / 0x1001"},
        {EM_X86_64, true, false, 0, 0, 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer w = {.machine = rows[i].machine, .wide = rows[i].wide, .big_endian = rows[i].big_endian};
        struct sl_arena arena = {0};
        put_thread(&w, 7, 0, 0, 45);
        put_note(&w.notes, &w, "CORE", 0x53494749,
                 signal_info(&w, rows[i].signal, rows[i].second, rows[i].third, rows[i].address));
        put_thread(&w, 8, 5, 0, 45);
        struct sl_buf file = finish(&w);
        struct sl_elfcore core = read_core(&file, &arena);
        assert_true(sl_str_equal(core.dump.crash.reason, sl_str(rows[i].reason)));
        assert_int_equal(core.dump.crash.crashed, *rows[i].reason != 0);
        assert_int_equal(core.dump.crash.threads[0].requesting, SL_REQUESTING_THREAD_YES);
        assert_int_equal(core.dump.crash.threads[1].requesting, SL_REQUESTING_THREAD_NO);
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

TEST(the_process_is_named)
{
    static const struct {
        size_t size, pid, name;
        bool wide;
    } rows[] = {{136, 24, 40, true}, {124, 12, 28, false}, {128, 16, 32, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer w = {.machine = rows[i].wide ? EM_X86_64 : EM_386, .wide = rows[i].wide};
        struct sl_arena arena = {0};
        struct sl_buf b = {0};
        put_thread(&w, 7, 11, 0, 27);
        sl_buf_fill(&b, 0, rows[i].pid);
        put(&b, &w, 4711, 4);
        sl_buf_fill(&b, 0, rows[i].name - b.size);
        sl_buf_add(&b, "server\0\0\0\0\0\0\0\0\0\0./server -v \xFF ", 16 + 14);
        sl_buf_fill(&b, 0, rows[i].size - b.size);
        put_note(&w.notes, &w, "CORE", 3, b);
        struct sl_buf file = finish(&w);
        struct sl_elfcore core = read_core(&file, &arena);
        assert_int_equal(core.dump.process_id, 4711);
        assert_true(sl_str_equal(core.name, SL_STR("server")));
        assert_true(sl_str_equal(core.command_line, SL_STR("./server -v \xEF\xBF\xBD")));
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

/* Checks the modules: address, size, name, first letter of the id (0: none). */
struct expected_module {
    uint64_t address, size;
    const char *name;
    char id;
};
static void expect_modules(const struct sl_elfcore *core, const struct expected_module *rows, size_t count)
{
    assert_int_equal(core->dump.crash.module_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct sl_crash_module *module = &core->dump.crash.modules[i];
        char id[3];
        snprintf(id, sizeof id, "%02x", (unsigned)rows[i].id);
        assert_int_equal(module->address, rows[i].address);
        assert_int_equal(module->size, rows[i].size);
        assert_true(sl_str_equal(module->code_file, sl_str(rows[i].name)));
        assert_int_equal(module->code_id.size, rows[i].id ? 40 : 0);
        if (rows[i].id)
            assert_memory_equal(module->code_id.data, id, 2);
    }
}

/* Mappings of a file are one module; a file that is only read is none; a second copy is a second module; a header that is no ELF
 * header gives no id. */
TEST(mapped_files_become_modules)
{
    struct writer w = {.machine = EM_X86_64, .wide = true};
    struct sl_arena arena = {0};
    static const struct mapping_row rows[] = {
        {0x10000, 0x11000, 0, "/lib/a.so"},
        {0x11000, 0x12000, 1, "/lib/a.so"},
        {0x20000, 0x21000, 0, "/usr/share/data"},
        {0x30000, 0x31000, 0, "/lib/garbage.so (deleted)"},
        {0x31000, 0x32000, 1, "/lib/garbage.so (deleted)"},
        {0x50000, 0x51000, 0, "/lib/a.so"},
        {0x51000, 0x52000, 1, "/lib/a.so"},
    };
    put_thread(&w, 7, 11, 0, 27);
    put_files(&w, rows, sizeof rows / sizeof *rows);
    put_image(add_memory(&w, 0x10000, 0x1000, READ), &w, 0x1000, 'a');
    add_memory(&w, 0x11000, 0x1000, READ | EXECUTE);
    add_memory(&w, 0x20000, 0x1000, READ);
    sl_buf_fill(add_memory(&w, 0x30000, 0x1000, READ), 'g', 0x1000);
    add_memory(&w, 0x31000, 0x1000, READ | EXECUTE);
    put_image(add_memory(&w, 0x50000, 0x1000, READ), &w, 0x1000, 'a');
    add_memory(&w, 0x51000, 0x1000, READ | EXECUTE);
    struct sl_buf file = finish(&w);
    struct sl_elfcore core = read_core(&file, &arena);
    static const struct expected_module expected[] = {{0x10000, 0x2000, "/lib/a.so", 'a'},
                                                      {0x30000, 0x2000, "/lib/garbage.so", 0},
                                                      {0x50000, 0x2000, "/lib/a.so", 'a'}};
    expect_modules(&core, expected, 3);
    assert_int_equal(core.dump.crash.modules[0].debug_id.uuid[0], 'a');
    sl_arena_free(&arena);
    sl_buf_free(&file);
}

/* Adds the auxiliary vector: pairs of type and value. */
static void put_auxv(struct writer *w, const uint64_t *pairs, size_t count)
{
    struct sl_buf b = {0};
    for (size_t i = 0; i < 2 * count; i++)
        put_word(&b, w, pairs[i]);
    put_note(&w->notes, w, "CORE", 6, b);
}

/* Memory of a program at 0x10000 with its dynamic section at 0x12000, r_debug at 0x12100 and two link_maps. */
static void put_link_map(struct writer *w, bool has_headers)
{
    unsigned word = w->wide ? 8 : 4;
    struct sl_buf *data;
    const uint64_t auxv[] = {3, 0x10000 + (w->wide ? 64 : 52), 5, 3, 9, 0x11000, 31, 0x12300};
    put_auxv(w, auxv, 4);
    if (has_headers) {
        data = add_memory(w, 0x10000, 0x1000, READ);
        put_header(data, w, 3, 3);
        put_segment(data, w, 6, READ, word == 8 ? 64 : 52, word == 8 ? 64 : 52, 0, 0);
        put_segment(data, w, 1, READ, 0, 0, 0x3000, 0x3000);
        put_segment(data, w, 2, READ, 0x2000, 0x2000, 0x100, 0x100);
        sl_buf_align(data, WRITER_BYTES);
    } else {
        add_memory(w, 0x10000, 0x1000, READ);
    }
    add_memory(w, 0x11000, 0x1000, READ | EXECUTE);
    data = add_memory(w, 0x12000, 0x1000, READ | WRITE);
    const uint64_t words[] = {5, 1, 21, 0x12100, 0, 0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        put_word(data, w, words[i]);
    sl_buf_fill(data, 0, 0x100 - data->size);
    put_word(data, w, 1);
    put_word(data, w, 0x12200);
    sl_buf_fill(data, 0, 0x200 - data->size);
    const uint64_t maps[] = {0x10000, 0x12300 + 6, 0x12000, 0x12200 + 4 * word, 0x20000, 0x12310, 0x20800, 0x12200};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) /* the second leads back to the first: a cycle */
        put_word(data, w, maps[i]);
    sl_buf_fill(data, 0, 0x300 - data->size);
    sl_buf_add(data, "./prog\0\0\0\0\0\0\0\0\0\0/lib/b.so\0", 26);
    sl_buf_align(data, WRITER_BYTES);
    put_image(add_memory(w, 0x20000, 0x1000, READ), w, 0x1000, 'b');
    add_memory(w, 0x21000, 0x1000, READ | EXECUTE);
}

TEST(modules_come_from_the_link_map_without_a_list_of_files)
{
    for (int i = 0; i < 4; i++) {
        struct writer w = {.machine = i & 1 ? EM_ARM : EM_X86_64, .wide = !(i & 1)};
        struct sl_arena arena = {0};
        put_thread(&w, 7, 11, 0, 27);
        put_link_map(&w, i < 2);
        struct sl_buf file = finish(&w);
        struct sl_elfcore core = read_core(&file, &arena);
        assert_true(core.dump.crash.module_count >= 2);
        assert_true(sl_str_equal(core.dump.crash.modules[0].code_file, SL_STR("./prog")));
        assert_int_equal(core.dump.crash.modules[0].address, 0x10000);
        assert_int_equal(core.dump.crash.modules[0].size, 0x3000);
        assert_ptr_equal(core.dump.main_module, &core.dump.crash.modules[0]);
        const struct sl_crash_module *library = sl_minidump_module_at(&core.dump, 0x21000);
        assert_non_null(library);
        assert_true(sl_str_equal(library->code_file, SL_STR("/lib/b.so")));
        assert_int_equal(library->code_id.size, 40);
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

/* Package notes: a JSON object counts, anything else does not. */
TEST(package_notes_are_read)
{
    static const char *const texts[] = {"{\"type\":\"deb\",\"name\":\"a\"}", "{\"type\":", "[1]", ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct writer w = {.machine = EM_X86_64, .wide = true};
        struct sl_arena arena = {0};
        struct sl_buf notes = {0}, text = {0};
        static const struct mapping_row row = {0x10000, 0x12000, 0, "/lib/a.so"};
        sl_buf_add(&text, texts[i], strlen(texts[i]) + 1);
        put_thread(&w, 7, 11, 0, 27);
        put_files(&w, &row, 1);
        put_note(&notes, &w, "FDO", 0xCAFE1A7E, text);
        struct sl_buf *image = add_memory(&w, 0x10000, 0x2000, READ | EXECUTE);
        put_header(image, &w, 3, 2);
        put_segment(image, &w, 1, READ | EXECUTE, 0, 0, 0x2000, 0x2000);
        put_segment(image, &w, 4, READ, 64 + 112, 64 + 112, notes.size, notes.size);
        sl_buf_str(image, sl_buf_view(&notes));
        sl_buf_free(&notes);
        struct sl_buf file = finish(&w);
        struct sl_elfcore core = read_core(&file, &arena);
        assert_int_equal(core.package_count, i == 0);
        if (!i) {
            assert_int_equal(core.packages[0].address, 0x10000);
            assert_true(sl_str_equal(core.packages[0].json, sl_str(texts[0])));
        }
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

/* Every beginning of a core is read as far as it goes, or refused. */
TEST(truncated_cores_give_what_is_left)
{
    struct writer w = {.machine = EM_X86_64, .wide = true};
    put_thread(&w, 7, 11, 0x12000, 27);
    put_link_map(&w, true);
    struct sl_buf file = finish(&w);
    for (size_t size = 0; size <= file.size; size += size < 0x800 ? 1 : 0x123) {
        struct sl_arena arena = {0};
        struct sl_elfcore core;
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, file.data, size);
        enum sl_code code = sl_elfcore_read((struct sl_bytes){copy, size}, &arena, &core, NULL);
        assert_true(code == SL_OK || code == SL_MALFORMED);
        if (code == SL_OK)
            assert_true(core.missing <= file.size - size);
        sl_arena_free(&arena);
        free(copy);
    }
    sl_buf_free(&file);
}

/* A smaller core has the same threads and modules, and the memory from the stack pointer on. */
TEST(trimmed_cores_read_the_same)
{
    for (int has_headers = 0; has_headers < 2; has_headers++) {
        struct writer w = {.machine = EM_X86_64, .wide = true};
        struct sl_arena arena = {0};
        struct sl_error error;
        struct sl_mapping mapping;
        put_thread(&w, 7, 11, 0x90000 - 19, 27); /* rsp is the 20th */
        put_link_map(&w, has_headers);
        sl_buf_fill(add_memory(&w, 0x40000, 0x80000, READ | WRITE), 's', 0x80000);
        struct sl_buf file = finish(&w);
        int fd = sl_unlinked_file("/tmp");
        assert_true(fd >= 0);
        assert_int_equal(sl_elfcore_trim(sl_buf_bytes(&file), fd, &error), SL_OK);
        assert_int_equal(sl_map_fd(fd, &mapping, &error), SL_OK);
        close(fd);
        assert_true(mapping.bytes.size < file.size - 0x40000);
        struct sl_elfcore before = read_core(&file, &arena), after;
        assert_int_equal(sl_elfcore_read(mapping.bytes, &arena, &after, &error), SL_OK);
        assert_int_equal(after.dump.crash.module_count, before.dump.crash.module_count);
        for (size_t i = 0; i < before.dump.crash.module_count; i++) {
            const struct sl_crash_module *a = &before.dump.crash.modules[i], *b = &after.dump.crash.modules[i];
            assert_true(a->address == b->address && a->size == b->size && sl_str_equal(a->code_file, b->code_file) &&
                        sl_str_equal(a->code_id, b->code_id));
        }
        assert_int_equal(after.dump.threads[0].stack.address + after.dump.threads[0].stack.bytes.size, 0xC0000);
        assert_true(after.dump.threads[0].stack.address <= 0x90000 - 128);
        assert_int_equal(after.missing, 0);
        sl_unmap(&mapping);
        sl_arena_free(&arena);
        sl_buf_free(&file);
    }
}

/* Other files are no cores. */
TEST(only_elf_cores_are_cores)
{
    struct writer w = {.machine = EM_X86_64, .wide = true};
    struct sl_error error;
    struct sl_arena arena = {0};
    struct sl_elfcore core;
    struct sl_buf program = {0};
    put_header(&program, &w, 3, 0);
    assert_false(sl_elfcore_is(sl_buf_bytes(&program)));
    assert_int_equal(sl_elfcore_read(sl_buf_bytes(&program), &arena, &core, &error), SL_MALFORMED);
    assert_string_equal(error.message, "not an ELF core file");
    struct sl_buf file = finish(&w);
    assert_true(sl_elfcore_is(sl_buf_bytes(&file)));
    assert_int_equal(sl_elfcore_read(sl_buf_bytes(&file), &arena, &core, &error), SL_MALFORMED);
    assert_memory_equal(error.message, "the core file has no threads", 28);
    sl_buf_free(&file);
    sl_buf_free(&program);
    sl_arena_free(&arena);
}

/* A core of a library whose code is at 0x11000, without the code. The thread is at 0x11010, and its rdi is 0x1100E. */
static struct sl_buf core_without_code(struct writer *w)
{
    static const struct mapping_row rows[] = {{0x10000, 0x11000, 0, "/lib/x.so"}, {0x11000, 0x12000, 1, "/lib/x.so"}};
    put_thread(w, 7, 11, 0x11000, 27);
    put_note(&w->notes, w, "CORE", 0x53494749, signal_info(w, 11, 0, 1, 0x1100E));
    put_files(w, rows, 2);
    put_image(add_memory(w, 0x10000, 0x1000, READ), w, 0x1000, 1);
    add_memory(w, 0x11000, 0x1000, READ | EXECUTE);
    return finish(w);
}

/* The file of the library, with `mov eax, [rdi]` where the thread crashed. */
static struct sl_buf library(const struct writer *w)
{
    struct sl_buf file = {0};
    put_image(&file, w, 0x1000, 1);
    sl_buf_fill(&file, 0x90, 0x10);
    sl_buf_cstr(&file, "\x8b\x07");
    sl_buf_fill(&file, 0x90, 0x1000 - 0x12);
    return file;
}

TEST(code_that_the_core_lacks_is_read_from_the_file)
{
    struct writer w = {.machine = EM_X86_64, .wide = true};
    struct sl_arena arena = {0};
    struct sl_minidump_analysis analysis;
    struct sl_object *object;
    struct sl_error error;
    struct sl_buf bytes = core_without_code(&w), file = library(&w);
    struct sl_elfcore core = read_core(&bytes, &arena);
    assert_true(core.dump.has_exception);
    assert_int_equal(core.dump.mapping_count, 2);
    assert_true(sl_str_equal(core.dump.mappings[1].access, SL_STR("r-xp")));
    assert_int_equal(sl_minidump_analyse(&core.dump, &arena, &analysis, &error), SL_OK);
    assert_true(analysis.has_exception);
    assert_false(analysis.has_instruction);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, &error), SL_OK);
    assert_true(sl_elfcore_add_file(&core, 0x10000, object, &arena));
    assert_true(sl_elfcore_add_file(&core, 0x10000, object, &arena)); /* the same again changes nothing */
    assert_int_equal(core.dump.file_memory_count, 2);
    assert_int_equal(sl_minidump_analyse(&core.dump, &arena, &analysis, &error), SL_OK);
    assert_string_equal(analysis.effects.text, "mov eax, dword [rdi]");
    assert_int_equal(analysis.effects.accesses[0].address, 0x1100E);
    assert_int_equal(analysis.inconsistencies, 0);
    /* what the core has precedes the file: a debugger may have changed it */
    assert_ptr_equal(sl_minidump_memory_at(&core.dump, 0x10000), &core.dump.memory[0]);
    assert_int_equal(sl_minidump_memory_at(&core.dump, 0x11010)->address, 0x11000);
    assert_null(sl_minidump_memory_at(&core.dump, 0x12000));
    sl_object_close(object);
    sl_arena_free(&arena);
    sl_buf_free(&bytes);
    sl_buf_free(&file);
}

/* A segment that the program may write to, and one whose contents are only in the program and not in its debug file. */
TEST(segments_that_do_not_say_what_was_in_memory_are_not_used)
{
    enum { FLAGS = 64 + 56 + 4, FILE_SIZE = 64 + 56 + 32 };
    for (size_t i = 0; i < 2; i++) {
        struct writer w = {.machine = EM_X86_64, .wide = true};
        struct sl_arena arena = {0};
        struct sl_object *object;
        struct sl_error error;
        struct sl_buf bytes = core_without_code(&w), file = library(&w);
        struct sl_elfcore core = read_core(&bytes, &arena);
        if (i)
            memset(file.data + FILE_SIZE, 0, 8);
        else
            file.data[FLAGS] = READ | WRITE | EXECUTE;
        assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, &error), SL_OK);
        assert_true(sl_elfcore_add_file(&core, 0x10000, object, &arena));
        assert_null(sl_minidump_memory_at(&core.dump, 0x11010));
        sl_object_close(object);
        sl_arena_free(&arena);
        sl_buf_free(&bytes);
        sl_buf_free(&file);
    }
}
