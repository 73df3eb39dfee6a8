/* .ARM.exidx and .ARM.extab: hand-made words, and what a compiler makes, whose .debug_frame says the same. Code begins at
 * 0x1000 and ends at 0x1800. */
#include "cache.h"

#include "../fixture.h"

enum { EM_ARM = 40, INDEX = 0x3000, TABLE = 0x4000, CANNOT = 1 };

#define CODE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* A distance of 31 bits. */
static uint32_t distance(uint32_t from, uint32_t to)
{
    return (to - from) & 0x7FFFFFFF;
}

struct function {
    uint32_t start, content; /* as it is in the index, but for places in the table */
    bool in_table;           /* content: offset there */
};

static struct sl_buf image(const struct function *functions, size_t count, struct sl_bytes table, bool big_endian)
{
    static const uint8_t code[0x800];
    struct sl_buf index = {0};
    for (size_t i = 0; i < count; i++) {
        const struct function *f = &functions[i];
        uint32_t at = INDEX + 8 * (uint32_t)i;
        put_number(&index, distance(at, f->start), 4, big_endian);
        put_number(&index, f->in_table ? distance(at + 4, TABLE + f->content) : f->content, 4, big_endian);
    }
    const struct image_section sections[] = {
        {".text", 0x1000, {code, sizeof code}}, {".ARM.exidx", INDEX, buf_bytes(&index)}, {".ARM.extab", TABLE, table}};
    struct sl_buf file = elf_image(EM_ARM, 4, big_endian, sections, 3);
    sl_buf_free(&index);
    return file;
}

/* Instructions as the second standard routine has them: 0x81, how many words more, the rest. */
static struct sl_buf long_form(const uint8_t *code, size_t size, bool big_endian)
{
    struct sl_buf bytes = {0}, words = {0};
    sl_buf_u8(&bytes, 0x81);
    sl_buf_u8(&bytes, (uint8_t)((size + 1) / 4));
    sl_buf_add(&bytes, code, size);
    while (bytes.size % 4)
        sl_buf_u8(&bytes, 0xB0);
    struct sl_reader r = sl_reader(buf_bytes(&bytes), true);
    while (sl_reader_left(&r))
        put_number(&words, sl_read_u32(&r), 4, big_endian);
    sl_buf_free(&bytes);
    return words;
}

/* What one function at 0x1000 with these instructions says, as records; and its cache must be readable. */
static void expect_rules(const uint8_t *code, size_t size, const char *rules)
{
    char records[256];
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct sl_buf table = long_form(code, size, big_endian);
        const struct function f = {0x1000, 0, true};
        snprintf(records, sizeof records, *rules ? "STACK CFI INIT 1000 800 %s\n" : "%s", rules);
        struct sl_buf file = image(&f, 1, buf_bytes(&table), big_endian), cache = cache_of(buf_bytes(&file), NULL);
        open_cache(&cache); /* fails if a rule cannot be read again */
        sl_buf_free(&cache);
        expect(file, records);
        sl_buf_free(&table);
    }
}

TEST(stack_pointer_adjustments_are_read)
{
    expect_rules(CODE(0xB0), ".cfa: sp 0 + .ra: lr");
    expect_rules(CODE(0x00), ".cfa: sp 4 + .ra: lr");
    expect_rules(CODE(0x3F, 0x3F, 0x41), ".cfa: sp 504 + .ra: lr");
    expect_rules(CODE(0xB2, 0x00), ".cfa: sp 516 + .ra: lr");
    expect_rules(CODE(0xB2, 0xE1, 0x08), ".cfa: sp 5000 + .ra: lr");
    expect_rules(CODE(0x9B, 0x41), ".cfa: r11 -8 + .ra: lr");
    expect_rules(CODE(0x01, 0xB0, 0x3F), ".cfa: sp 8 + .ra: lr"); /* nothing behind the end */
}

TEST(popped_registers_are_restored)
{
    expect_rules(CODE(0x84, 0x81), ".cfa: sp 12 + r4: .cfa -12 + ^ r11: .cfa -8 + ^ .ra: .cfa -4 + ^");
    expect_rules(CODE(0xA1), ".cfa: sp 8 + r4: .cfa -8 + ^ r5: .cfa -4 + ^ .ra: lr");
    expect_rules(CODE(0xA8), ".cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^");
    expect_rules(CODE(0xB1, 0x05, 0x88, 0x00), /* r0, r2, pc */
                 ".cfa: sp 12 + r0: .cfa -12 + ^ r2: .cfa -8 + ^ .ra: .cfa -4 + ^");
    /* where pc was saved too, that is where the caller goes on */
    expect_rules(CODE(0x8C, 0x00), ".cfa: sp 8 + lr: .cfa -8 + ^ .ra: .cfa -4 + ^");
    /* what was popped before the stack pointer came from a register does not lie around the CFA */
    expect_rules(CODE(0xA0, 0x97, 0xA8 | 1), ".cfa: r7 12 + r4: .cfa -12 + ^ r5: .cfa -8 + ^ .ra: .cfa -4 + ^");
    expect_rules(CODE(0xB1, 0x01, 0x97, 0xA8), ".cfa: r7 8 + r0: sp 0 + ^ r4: .cfa -8 + ^ .ra: .cfa -4 + ^");
    /* the stack pointer itself was saved: r4, sp, lr */
    expect_rules(CODE(0x86, 0x01), ".cfa: sp 4 + ^ r4: sp 0 + ^ .ra: sp 8 + ^");
}

/* Vector registers have no names in records, but their room counts. */
TEST(popped_vector_registers_move_the_stack_pointer)
{
    static const struct {
        uint8_t code[2];
        size_t size;
        unsigned bytes;
    } rows[] = {{{0xB3, 0x81}, 2, 20}, {{0xB9}, 1, 20},     {{0xC9, 0x81}, 2, 16}, {{0xC8, 0x0F}, 2, 128},
                {{0xD7}, 1, 64},       {{0xC1}, 1, 16},     {{0xC6, 0xA0}, 2, 8},  {{0xC7, 0x0F}, 2, 16},
                {{0xB4}, 1, 4},        {{0xB5, 0xB0}, 2, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char rules[64];
        snprintf(rules, sizeof rules, ".cfa: sp %u + .ra: lr", rows[i].bytes);
        expect_rules(rows[i].code, rows[i].size, rules);
    }
}

TEST(inexpressible_instructions_are_left_out)
{
    static const uint8_t codes[][8] = {
        {0x80, 0x00}, /* refuses */
        {0x9D},       /* reserved from here on */
        {0x9F},
        {0xB1, 0x00},
        {0xB1, 0x10},
        {0xB6},
        {0xC7, 0x00},
        {0xCA},
        {0xD8},
        {0xE0},
        {0xC8, 0x8F},                         /* no d24 to d39 */
        {0xA3, 0x97},                         /* the stack pointer from a register that was popped */
        {0x82, 0x00, 0xA0},                   /* registers behind what the stack pointer became */
        {0xB2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, /* more than 32 bits */
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        expect_rules(codes[i], sizeof codes[i], "");
}

TEST(index_entries_are_read)
{
    /* the third standard routine, with one word; a routine of a language, with none */
    static const uint8_t table[] = {0x01, 0x00, 0x01, 0x82, 0xB0, 0xB0, 0xB0, 0xB0,
                                    0x10, 0,    0,    0,    0xB0, 0xB0, 0xA8, 0x00};
    const struct function functions[] = {
        {0x1000, 0x80A8B0B0, false}, {0x1011, CANNOT, false}, /* in Thumb code */
        {0x1020, 0, true},           {0x1030, 8, true},
        {0x1040, 0x81A8B0B0, false}, /* only the first routine's are in the index */
        {0x1050, 0x1000, true},      /* outside */
        {0x1060, 0x80B0B0B0, false},
    };
    struct sl_buf file = image(functions, 7, (struct sl_bytes){table, sizeof table}, false);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_OK);
    assert_string_equal((char *)r.text.data, "STACK CFI INIT 1000 10 .cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\n"
                                             "STACK CFI INIT 1020 10 .cfa: sp 12 + .ra: lr\n"
                                             "STACK CFI INIT 1030 10 .cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\n"
                                             "STACK CFI INIT 1060 7a0 .cfa: sp 0 + .ra: lr\n");
    assert_int_equal(r.skipped, 2);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}

TEST(debug_frame_wins_over_exception_tables)
{
    /* FDEs for 0x1010 to 0x1020, 0x1018 to 0x1028, 0x1040 to 0x1800 */
    static const uint16_t spans[][2] = {{0x1018, 0x10}, {0x1010, 0x10}, {0x1040, 0x7C0}};
    struct sl_buf frames = {0}, index = {0};
    sl_buf_add(&frames, "\x0C\0\0\0\xFF\xFF\xFF\xFF\3\0\1\x7C\x0E\x0C\x0D\x08", 16); /* CIE: CFA sp+8 */
    for (size_t i = 0; i < 3; i++) {
        const uint32_t words[] = {12, 0, spans[i][0], spans[i][1]};
        for (size_t k = 0; k < 4; k++)
            sl_buf_u32(&frames, words[k]);
    }
    const uint32_t functions[][2] = {{0x1000, 0x80A8B0B0}, {0x1030, 0x8000B0B0}, {0x1800, CANNOT}};
    for (uint32_t i = 0; i < 3; i++) {
        sl_buf_u32(&index, distance(INDEX + 8 * i, functions[i][0]));
        sl_buf_u32(&index, functions[i][1]);
    }
    const struct image_section sections[] = {{".debug_frame", 0, buf_bytes(&frames)},
                                             {".ARM.exidx", INDEX, buf_bytes(&index)}};
    expect(elf_image(EM_ARM, 4, false, sections, 2),
           "STACK CFI INIT 1018 10 .cfa: sp 8 + .ra: lr\n"
           "STACK CFI INIT 1010 10 .cfa: sp 8 + .ra: lr\n"
           "STACK CFI INIT 1040 7c0 .cfa: sp 8 + .ra: lr\n"
           "STACK CFI INIT 1000 10 .cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\n"
           "STACK CFI INIT 1028 8 .cfa: sp 8 + r4: .cfa -8 + ^ .ra: .cfa -4 + ^\n"
           "STACK CFI INIT 1030 10 .cfa: sp 4 + .ra: lr\n");
    sl_buf_free(&frames);
    sl_buf_free(&index);
}

/* Many functions that name the same long instructions. */
TEST(work_is_bounded_by_the_size_of_the_file)
{
    enum { FUNCTIONS = 0x800 / 2 };
    struct function functions[FUNCTIONS];
    uint8_t code[1022];
    static const uint8_t pops[] = {0x85, 0xFF, 0xB1, 0x0F}; /* r4 to r12 and lr, r0 to r3 */
    for (size_t i = 0; i < sizeof code; i++)
        code[i] = pops[i % sizeof pops];
    struct sl_buf table = long_form(code, sizeof code, false);
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        functions[i] = (struct function){0x1000 + 2 * i, 0, true};
    struct sl_buf file = image(functions, FUNCTIONS, buf_bytes(&table), false);
    struct records r = records_of(buf_bytes(&file));
    assert_int_equal(r.code, SL_MALFORMED);
    assert_memory_equal(r.error.message, "reading the file needs more work than allowed for a file of", 59);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
    sl_buf_free(&table);
}

/* Whatever they say, nothing outside of the file is read, and no range is empty or upside down. */
TEST(damaged_tables_stay_within_bounds)
{
    enum { FUNCTIONS = 8 };
    struct function functions[FUNCTIONS];
    struct sl_buf table = {0};
    uint32_t seed = 1;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        static const uint8_t code[] = {0x9B, 0x41, 0x84, 0x81, 0xB2, 0xE1, 0x08,
                                       0xC9, 0x81, 0xB1, 0x05, 0xB0, 0xB0, 0xB0};
        struct sl_buf words = long_form(code, sizeof code, false);
        functions[i] = (struct function){0x1000 + 16 * i, (uint32_t)table.size, true};
        sl_buf_add(&table, words.data, words.size);
        sl_buf_free(&words);
    }
    struct sl_buf file = image(functions, FUNCTIONS, buf_bytes(&table), false);
    uint8_t *copy = malloc(file.size);
    const size_t begin = 52 + 0x800, size = 8 * FUNCTIONS + table.size; /* behind the header and the code */
    for (unsigned round = 0; round < 4000; round++) {
        memcpy(copy, file.data, file.size);
        for (unsigned i = 0; i < 1 + round % 4; i++) {
            seed = seed * 1664525 + 1013904223;
            copy[begin + (seed >> 8) % size] = (uint8_t)(seed >> 24);
        }
        struct records r = records_of((struct sl_bytes){copy, file.size});
        unsigned long long at, length;
        for (const char *line = (char *)r.text.data; (line = strstr(line, "INIT ")); line++) {
            assert_int_equal(sscanf(line, "INIT %llx %llx", &at, &length), 2);
            assert_true(length > 0 && at + length <= (1ull << 32));
        }
        sl_buf_free(&r.text);
    }
    free(copy);
    sl_buf_free(&file);
    sl_buf_free(&table);
}

/* ---- what a compiler makes ---- */

static const char source[] =
    "extern \"C\" void use(void *);\n"
    "extern \"C\" int leaf(int a) { return a * 3; }\n"
    "extern \"C\" int small(int a) { use(&a); return a + 1; }\n"
    "extern \"C\" int large(int a) { char room[5000]; use(room); return room[a]; }\n"
    "extern \"C\" int dynamic(int a) { void *room = __builtin_alloca(a); use(room); return a; }\n"
    "extern \"C\" double vectors(double a, double b) { use(&a); double c = a * b; use(&c); return b + c * a; }\n"
    "extern \"C\" int many(int a, int b, int c, int d)\n"
    "{ int e = a * b, f = b * c, g = c * d, h = d * a; use(&a); return e + f * g - h + a + b + c + d; }\n";

struct said {
    char cfa[32], saved[16][48]; /* by register: r4 to r14; `ra` is 14 */
};

/* Takes the rules of a record over. */
static void take_rules(struct said *s, char *rules)
{
    char *target = NULL, *save = NULL;
    size_t room = 0;
    for (char *token = strtok_r(rules, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
        size_t size = strlen(token);
        if (token[size - 1] != ':') {
            assert_non_null(target);
            assert_true(strlen(target) + size + 2 < room);
            strcat(strcat(target, " "), token);
            continue;
        }
        bool is_cfa = strcmp(token, ".cfa:") == 0;
        unsigned reg = strcmp(token, ".ra:") == 0 ? 14 : (unsigned)strtoul(token + 1, NULL, 10);
        target = is_cfa ? s->cfa : s->saved[reg % 16];
        room = is_cfa ? sizeof s->cfa : sizeof s->saved[0];
        target[0] = '\0';
    }
}

/* What the records say behind the prologue of the function that begins at `start`. */
static struct said said_of(struct records *r, uint64_t start)
{
    struct said s = {0};
    bool is_inside = false;
    char *text = strdup((char *)r->text.data), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long long at, size;
        int skip = 0;
        if (sscanf(line, "STACK CFI INIT %llx %llx %n", &at, &size, &skip) == 2)
            is_inside = at == start;
        else
            sscanf(line, "STACK CFI %llx %n", &at, &skip);
        if (is_inside)
            take_rules(&s, line + skip);
    }
    free(text);
    return s;
}

static struct records records_of_file(const char *name)
{
    struct sl_bytes bytes = fixture_read(name);
    struct records r = records_of(bytes);
    if (r.code != SL_OK)
        fail_msg("%s: %s", name, r.error.message);
    free((void *)bytes.data);
    return r;
}

/* The same functions from both tables; `readelf` says which functions there are. */
static void compare(const char *options)
{
    char command[640];
    snprintf(command, sizeof command,
             "clang-14 --target=armv7-linux-gnueabihf -c -g -fPIC -fno-exceptions -funwind-tables %s a.cc && "
             "ld.lld-14 -shared --unresolved-symbols=ignore-all -o dwarf.so a.o && "
             "llvm-objcopy-14 --strip-debug dwarf.so index.so && readelf -u index.so | "
             "sed -n '/cantunwind/d; s/^0x\\([0-9a-f]*\\) <.*/\\1/p' >functions",
             options);
    fixture_run(command);
    struct sl_bytes functions = fixture_read("functions");
    struct records dwarf = records_of_file("dwarf.so"), index = records_of_file("index.so");
    size_t count = 0;
    struct sl_reader r = sl_reader(functions, false);
    for (char line[32]; sl_reader_left(&r); count++) {
        size_t size = 0;
        for (uint8_t c; (c = sl_read_u8(&r)) != '\n' && size < sizeof line - 1;)
            line[size++] = (char)c;
        line[size] = '\0';
        uint64_t start = strtoull(line, NULL, 16);
        struct said expected = said_of(&dwarf, start), is = said_of(&index, start);
        assert_true(expected.cfa[0]);
        assert_string_equal(is.cfa, expected.cfa);
        for (size_t i = 0; i < 16; i++)
            assert_string_equal(is.saved[i], expected.saved[i]);
    }
    assert_int_equal(count, 6);
    assert_int_equal(index.skipped, 0);
    sl_buf_free(&dwarf.text);
    sl_buf_free(&index.text);
    free((void *)functions.data);
}

TEST(compiled_tables_agree_with_call_frames)
{
    fixture_write("a.cc", source, sizeof source - 1);
    compare("-O2 -marm");
    compare("-O2 -mthumb");
    compare("-O2 -marm -fno-omit-frame-pointer");
    compare("-O0 -mthumb");
}

TEST_FILE(.begin = fixture_begin, .end = fixture_end);
