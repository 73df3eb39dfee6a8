/* .BTF and .BTF.ext by hand, of both byte orders, and what is bad in them. */
#include "../check.h"

#include "btf/btf.h"

enum { KIND_INT = 1, KIND_STRUCT = 4, KIND_FUNC = 12, KIND_FUNC_PROTO = 13, KIND_ENUM64 = 19 };

/* Sections of code: 32 bytes at 0 and 16 behind them, as they are laid out. */
enum { FIRST_SIZE = 32, SECOND_SIZE = 16 };

static const char strings[] = "\0one\0two\0three\0xdp\0tc\0/src/a.c\0/src/b.h\0gone";
enum { ONE = 1, TWO = 5, THREE = 9, XDP = 15, TC = 19, A_C = 22, B_H = 31, GONE = 40 };

/* Offsets of what is changed in the sections. */
enum {
    BTF_VERSION = 2,
    EXT_HEADER_SIZE = 4,
    EXT_FUNCTIONS = 32, /* size of records, section, count; then {offset, type} each */
    EXT_FIRST_SECTION = EXT_FUNCTIONS + 4,
    EXT_FIRST_COUNT = EXT_FUNCTIONS + 8,
    EXT_FIRST_TYPE = EXT_FUNCTIONS + 16,
    EXT_SECOND_OFFSET = EXT_FUNCTIONS + 20,
};

struct change {
    bool of_ext;
    size_t at;
    uint8_t value; /* of the byte that is lowest in little-endian files */
};

static void put(struct sl_buf *b, bool big_endian, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(b, (uint8_t)(value >> 8 * (big_endian ? size - 1 - i : i)));
}

static void put_words(struct sl_buf *b, bool big_endian, const uint32_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(b, big_endian, words[i], 4);
}
#define PUT(b, big_endian, ...)                                                                                        \
    put_words(b, big_endian, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void put_header(struct sl_buf *b, bool big_endian, uint32_t size)
{
    put(b, big_endian, 0xEB9F, 2);
    put(b, big_endian, 1, 1);
    put(b, big_endian, 0, 1);
    put(b, big_endian, size, 4);
}

/* Types 1 to 7; functions are 3, 5 and 7. */
static struct sl_buf btf_section(bool big_endian)
{
    struct sl_buf types = {0}, b = {0};
    PUT(&types, big_endian, ONE, KIND_INT << 24, 4, 32);
    PUT(&types, big_endian, 0, KIND_FUNC_PROTO << 24 | 1, 1, TWO, 1);
    PUT(&types, big_endian, ONE, KIND_FUNC << 24 | 1, 2);
    PUT(&types, big_endian, THREE, KIND_STRUCT << 24 | 2, 8, ONE, 1, 0, TWO, 1, 32);
    PUT(&types, big_endian, TWO, KIND_FUNC << 24, 2);
    PUT(&types, big_endian, 0, 1u << 31 | KIND_ENUM64 << 24 | 1, 8, ONE, 1, 0);
    PUT(&types, big_endian, THREE, KIND_FUNC << 24, 2);
    put_header(&b, big_endian, 24);
    PUT(&b, big_endian, 0, (uint32_t)types.size, (uint32_t)types.size, sizeof strings);
    sl_buf_add(&b, types.data, types.size);
    sl_buf_add(&b, strings, sizeof strings);
    sl_buf_free(&types);
    return b;
}

static struct sl_buf ext_section(bool big_endian)
{
    struct sl_buf functions = {0}, lines = {0}, b = {0};
    PUT(&functions, big_endian, 8, XDP, 2, 0, 3, 16, 5, TC, 1, 0, 7);
    PUT(&lines, big_endian, 20, XDP, 5); /* records are larger than they need be */
    PUT(&lines, big_endian, 0, A_C, 0, 10 << 10 | 3, 0, 8, B_H, 0, 20 << 10, 0);
    PUT(&lines, big_endian, 16, A_C, 0, 11 << 10 | 1, 0, 24, A_C, 0, 11 << 10 | 9, 0);
    PUT(&lines, big_endian, 28, A_C, 0, 0, 0, TC, 1, 8, A_C, 0, 30 << 10, 0);
    put_header(&b, big_endian, 32);
    PUT(&b, big_endian, 0, (uint32_t)functions.size, (uint32_t)functions.size, (uint32_t)lines.size, 0, 0);
    sl_buf_add(&b, functions.data, functions.size);
    sl_buf_add(&b, lines.data, lines.size);
    sl_buf_free(&functions);
    sl_buf_free(&lines);
    return b;
}

struct symbol {
    const char *name;
    uint8_t section;
    uint64_t value, size;
};

static const char section_names[] = "\0xdp\0tc\0.BTF\0.BTF.ext\0.symtab\0.strtab\0";
enum { SECTIONS = 7 };

static void put_section(struct sl_buf *b, bool big_endian, const uint64_t fields[8])
{
    static const unsigned sizes[] = {4, 4, 8, 8, 8, 8, 4, 4, 8, 8};
    const uint64_t all[10] = {fields[0], fields[1], fields[2], 0, fields[3],
                              fields[4], fields[5], fields[6], 8, fields[7]};
    for (size_t i = 0; i < 10; i++)
        put(b, big_endian, all[i], sizes[i]);
}

/* A relocatable file of a BPF machine. */
static struct sl_buf bpf_object(bool big_endian, const struct sl_buf *btf, const struct sl_buf *ext,
                                const struct symbol *symbols, size_t symbol_count)
{
    struct sl_buf b = {0}, table = {0}, names = {0};
    const uint8_t ident[16] = {0x7F, 'E', 'L', 'F', 2, big_endian ? 2 : 1, 1};
    sl_buf_u8(&names, 0);
    sl_buf_fill(&table, 0, 24);
    for (size_t i = 0; i < symbol_count; i++) {
        put(&table, big_endian, names.size, 4);
        put(&table, big_endian, 0x12, 1);
        put(&table, big_endian, 0, 1);
        put(&table, big_endian, symbols[i].section, 2);
        put(&table, big_endian, symbols[i].value, 8);
        put(&table, big_endian, symbols[i].size, 8);
        sl_buf_add(&names, symbols[i].name, strlen(symbols[i].name) + 1);
    }
    const struct {
        const void *data;
        size_t size;
    } parts[] = {{NULL, FIRST_SIZE},
                 {NULL, SECOND_SIZE},
                 {btf->data, btf->size},
                 {ext->data, ext->size},
                 {table.data, table.size},
                 {names.data, names.size},
                 {section_names, sizeof section_names}};
    uint64_t at[SECTIONS], end = 64;
    for (size_t i = 0; i < SECTIONS; i++) {
        at[i] = end;
        end += parts[i].size + (-parts[i].size & 7);
    }
    sl_buf_add(&b, ident, sizeof ident);
    put(&b, big_endian, 1, 2); /* ET_REL */
    put(&b, big_endian, 247, 2);
    put(&b, big_endian, 1, 4);
    put(&b, big_endian, 0, 8);
    put(&b, big_endian, 0, 8);
    put(&b, big_endian, end, 8);
    put(&b, big_endian, 0, 4);
    const unsigned tail[6] = {64, 0, 0, 64, SECTIONS + 1, SECTIONS};
    for (size_t i = 0; i < 6; i++)
        put(&b, big_endian, tail[i], 2);
    for (size_t i = 0; i < SECTIONS; i++) {
        if (parts[i].data)
            sl_buf_add(&b, parts[i].data, parts[i].size);
        sl_buf_fill(&b, 0, at[i] + parts[i].size + (-parts[i].size & 7) - b.size);
    }
    sl_buf_fill(&b, 0, 64);
    const uint64_t headers[SECTIONS][8] = {{1, 1, 6, at[0], FIRST_SIZE, 0, 0, 0},
                                           {5, 1, 6, at[1], SECOND_SIZE, 0, 0, 0},
                                           {8, 1, 0, at[2], btf->size, 0, 0, 0},
                                           {13, 1, 0, at[3], ext->size, 0, 0, 0},
                                           {22, 2, 0, at[4], table.size, 6, 1, 24},
                                           {30, 3, 0, at[5], names.size, 0, 0, 0},
                                           {30, 3, 0, at[6], sizeof section_names, 0, 0, 0}};
    for (size_t i = 0; i < SECTIONS; i++)
        put_section(&b, big_endian, headers[i]);
    sl_buf_free(&table);
    sl_buf_free(&names);
    return b;
}

struct printer {
    struct sl_function_sink sink;
    struct sl_buf out;
};

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    struct printer *p = (struct printer *)sink;
    (void)error;
    for (size_t i = 0; i < batch->function_count; i++) {
        const struct sl_function *f = &batch->functions[i];
        sl_buf_printf(&p->out, "%llx+%llx " SL_STR_FMT, (unsigned long long)f->address, (unsigned long long)f->size,
                      SL_STR_ARG(f->name));
        for (uint32_t k = 0; k < f->line_count; k++) {
            const struct sl_line *line = &f->lines[k];
            struct sl_str file = line->file == SL_NO_FILE ? SL_STR("-") : batch->files[line->file].name;
            sl_buf_printf(&p->out, " %llx+%llx:" SL_STR_FMT ":%u", (unsigned long long)line->address,
                          (unsigned long long)line->size, SL_STR_ARG(file), line->line);
        }
        sl_buf_str(&p->out, SL_STR("\n"));
    }
    return SL_OK;
}

/* The functions as text, then what was dropped first; `change` may be NULL. */
static void expect(bool big_endian, const struct change *change, const struct symbol *symbols, size_t symbol_count,
                   enum sl_code code, const char *functions, const char *dropped)
{
    struct sl_buf btf = btf_section(big_endian), ext = ext_section(big_endian);
    if (change)
        (change->of_ext ? &ext : &btf)->data[change->at + (big_endian && change->at > 3 ? 3 : 0)] = change->value;
    struct sl_buf file = bpf_object(big_endian, &btf, &ext, symbols, symbol_count);
    struct printer p = {.sink = {.consume = consume}};
    struct sl_object *object;
    struct sl_error error = {0};
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, &error), SL_OK);
    assert_int_equal(sl_btf_read(object, &p.sink, &error), code);
    sl_buf_u8(&p.out, 0);
    assert_string_equal((char *)p.out.data, functions);
    assert_int_equal(p.sink.skipped_units != 0, dropped[0] != 0);
    assert_string_equal(p.sink.first_skipped.message, dropped);
    sl_object_close(object);
    sl_buf_free(&p.out);
    sl_buf_free(&file);
    sl_buf_free(&btf);
    sl_buf_free(&ext);
}

#define ONE_LINES   "0+10 one 0+8:/src/a.c:10 8+8:/src/b.h:20\n"
#define TWO_LINES   "10+10 two 10+c:/src/a.c:11\n"
#define THREE_LINES "20+10 three 28+8:/src/a.c:30\n"

/* Lines of several columns are one; code of line 0 has none, nor has that before the first line of its function. */
TEST(both_byte_orders_are_read)
{
    for (int big_endian = 0; big_endian < 2; big_endian++)
        expect(big_endian, NULL, NULL, 0, SL_OK, ONE_LINES TWO_LINES THREE_LINES, "");
}

/* They have the linkage names, and tell of functions that have no record. */
TEST(symbols_bound_functions)
{
    static const struct symbol symbols[] = {
        {"_Z3onei", 1, 0, 8}, {"other", 1, 8, 8}, {"alias", 1, 16, 16}, {"two", 1, 16, 16}, {"unknown", 2, 8, 8}};
    for (int big_endian = 0; big_endian < 2; big_endian++)
        expect(big_endian, NULL, symbols, 5, SL_OK, "0+8 _Z3onei 0+8:/src/a.c:10\n" TWO_LINES "20+8 three\n", "");
}

TEST(malformed_records_leave_others_readable)
{
    static const struct change version = {false, BTF_VERSION, 7}, header = {true, EXT_HEADER_SIZE, 8},
                               section = {true, EXT_FIRST_SECTION, GONE}, type = {true, EXT_FIRST_TYPE, 1},
                               offset = {true, EXT_SECOND_OFFSET, FIRST_SIZE}, count = {true, EXT_FIRST_COUNT, 200};
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        expect(big_endian, &version, NULL, 0, SL_NOT_FOUND, "", "unsupported version 7 of section .BTF");
        expect(big_endian, &header, NULL, 0, SL_NOT_FOUND, "", "invalid header of section .BTF.ext");
        expect(big_endian, &section, NULL, 0, SL_OK, THREE_LINES,
               "section .BTF.ext refers to section \"gone\" that is missing");
        expect(big_endian, &type, NULL, 0, SL_OK, TWO_LINES THREE_LINES, ""); /* not a function's: it has no name */
        expect(big_endian, &offset, NULL, 0, SL_OK,
               "0+20 one 0+8:/src/a.c:10 8+8:/src/b.h:20 10+c:/src/a.c:11\n" THREE_LINES,
               "section .BTF.ext has functions beyond the end of section \"xdp\"");
        expect(big_endian, &count, NULL, 0, SL_NOT_FOUND, "", "functions extend beyond section .BTF.ext");
    }
}
