/* Files that refer to their own parts again and again, with a budget of few steps: what is read once fits in, what is read for
 * every reference does not. */
#include "../check.h"

#include "base/buf.h"
#include "object/object.h"

enum { STEPS = 40000, PARTS = 300, HEADER = 64, SEGMENT = 56, SECTION = 64, SYMBOL = 24 };
enum { PT_NOTE = 4, SHT_PROGBITS = 1, SHT_SYMTAB = 2, SHT_STRTAB = 3, SHT_RELA = 4 };

static void put(struct sl_buf *file, const uint64_t *words, const char *widths)
{
    for (; *widths; widths++, words++)
        for (int i = 0; i < *widths - '0'; i++)
            sl_buf_u8(file, (uint8_t)(*words >> 8 * i));
}

static void put_section(struct sl_buf *file, uint32_t name, uint32_t kind, uint64_t at, uint64_t size, uint32_t link,
                        uint32_t info)
{
    put(file, (uint64_t[]){name, kind, 4, 0, at, size, link, info, 1, 0}, "4488884488");
}

/* The header of a file whose tables come at once behind it. */
static void put_header(struct sl_buf *file, uint16_t kind, uint16_t segments, uint16_t sections, uint16_t names)
{
    sl_buf_add(file,
               "\x7f"
               "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
               16);
    put(file,
        (uint64_t[]){kind, 62, 1, 0, segments ? HEADER : 0, sections ? HEADER + segments * SEGMENT : 0, 0, HEADER},
        "22488842");
    put(file, (uint64_t[]){segments ? SEGMENT : 0, segments, SECTION, sections, names}, "22222");
}

/* Opens the file, and reads its symbols and a section, with `steps`. */
static enum sl_code read_with(struct sl_buf *file, uint64_t steps, struct sl_error *error)
{
    struct sl_budget budget;
    struct sl_object_limits limits = {.budget = &budget};
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    struct sl_bytes section;
    size_t count;
    sl_budget_init(&budget, 0);
    atomic_store(&budget.steps, (int64_t)steps);
    enum sl_code code = sl_object_open(sl_buf_bytes(file), &limits, &object, error);
    if (code != SL_OK)
        return code;
    sl_object_section(object, "debug_info", &section, NULL);
    code = sl_object_symbols(object, &arena, &symbols, &count, error);
    sl_arena_free(&arena);
    sl_object_close(object);
    return code;
}

static void is_refused_for_its_work(struct sl_buf *(*make)(size_t references))
{
    struct sl_error error = {0};
    struct sl_buf *file = make(1);
    assert_int_equal(read_with(file, STEPS, &error), SL_OK);
    sl_buf_free(file);
    file = make(PARTS);
    assert_int_equal(read_with(file, STEPS, &error), SL_MALFORMED);
    assert_memory_equal(error.message, "reading the file needs more work than allowed for a file of", 59);
    assert_int_equal(read_with(file, 1000 * STEPS, &error), SL_OK);
    sl_buf_free(file);
}

static struct sl_buf built;

static struct sl_buf *segments_over_one_list_of_notes(size_t references)
{
    built = (struct sl_buf){0};
    uint64_t at = HEADER + references * SEGMENT, size = PARTS * 12;
    put_header(&built, 2, (uint16_t)references, 0, 0);
    for (size_t i = 0; i < references; i++)
        put(&built, (uint64_t[]){PT_NOTE, 4, at, 0, 0, size, size, 4}, "44888888");
    for (size_t i = 0; i < PARTS; i++)
        put(&built, (uint64_t[]){0, 0, 1}, "444");
    return &built;
}

TEST(shared_notes_are_refused_for_their_work)
{
    is_refused_for_its_work(segments_over_one_list_of_notes);
}

static struct sl_buf *sections_named_by_one_text(size_t references)
{
    built = (struct sl_buf){0};
    uint64_t at = HEADER + (references + 1) * SECTION, size = 10 * PARTS;
    put_header(&built, 2, 0, (uint16_t)(references + 1), 0);
    put_section(&built, 0, SHT_STRTAB, at, size + 1, 0, 0);
    for (size_t i = 0; i < references; i++)
        put_section(&built, (uint32_t)i, SHT_PROGBITS, at, 1, 0, 0);
    sl_buf_fill(&built, 'n', size);
    sl_buf_u8(&built, 0);
    return &built;
}

TEST(shared_section_names_are_refused_for_their_work)
{
    is_refused_for_its_work(sections_named_by_one_text);
}

static struct sl_buf *symbols_named_by_one_text(size_t references)
{
    built = (struct sl_buf){0};
    enum { TEXT = 10 * PARTS };
    uint64_t at = HEADER + 3 * SECTION, symbols = at + TEXT + 1;
    put_header(&built, 2, 0, 3, 0);
    put_section(&built, TEXT, SHT_STRTAB, at, TEXT + 1, 0, 0);
    put_section(&built, TEXT, SHT_PROGBITS, at, 1, 0, 0);
    put_section(&built, TEXT, SHT_SYMTAB, symbols, references * SYMBOL, 0, 0);
    sl_buf_fill(&built, 'n', TEXT);
    sl_buf_u8(&built, 0);
    for (size_t i = 0; i < references; i++)
        put(&built, (uint64_t[]){i, 2, 0, 1, i, 1}, "411288");
    return &built;
}

TEST(shared_symbol_names_are_refused_for_their_work)
{
    is_refused_for_its_work(symbols_named_by_one_text);
}

static struct sl_buf *relocations_of_one_section(size_t references)
{
    built = (struct sl_buf){0};
    static const char names[] = "\0.debug_info";
    uint64_t at = HEADER + (references + 2) * SECTION, entries = at + sizeof names + 8;
    put_header(&built, 1, 0, (uint16_t)(references + 2), 0);
    put_section(&built, 0, SHT_STRTAB, at, sizeof names, 0, 0);
    put_section(&built, 1, SHT_PROGBITS, at + sizeof names, 8, 0, 0);
    for (size_t i = 0; i < references; i++)
        put_section(&built, 0, SHT_RELA, entries, PARTS * SYMBOL, 0, 1);
    sl_buf_add(&built, names, sizeof names);
    sl_buf_fill(&built, 0, 8);
    for (size_t i = 0; i < PARTS; i++)
        put(&built, (uint64_t[]){0, 1, i}, "888");
    return &built;
}

TEST(shared_relocations_are_refused_for_their_work)
{
    is_refused_for_its_work(relocations_of_one_section);
}
