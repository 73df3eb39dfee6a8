/* Names of functions with their types, in PDB files written by hand. */
#include "hand.h"

/* Many small entries that name the same large text may not cost more than their number. */
TEST(shared_name_text_is_limited)
{
    enum { FILES = 40000, TEXT = 1 << 20 };
    struct image image = {.page_size = 4096};
    struct sl_buf file = {0};
    struct dump dump;
    sl_buf_fill(&image.names, 'x', TEXT);
    for (uint32_t i = 0; i < FILES; i++) {
        sl_buf_u32(&image.modules[0].checksums, i % 1000); /* nothing ends there */
        sl_buf_u32(&image.modules[0].checksums, 0);
    }
    image_procedure(&image, 0, "f", 0, 16, 0);
    image_end(&image, 0, S_END);
    image_write(&image, &file);
    dump_init(&dump);
    assert_int_equal(dump_file(&dump, sl_buf_bytes(&file), NULL), SL_MALFORMED);
    dump_free(&dump);
    sl_buf_free(&file);
    image_free(&image);
}

TEST(function_names_show_types)
{
    struct image image = {0};
    uint32_t list = argument_list(&image, T_INT4), none = argument_list(&image, 0);
    uint32_t class = image_type(&image, 0x1504, "hhwwwhs", 0, 0, 0, 0, 0, 8, "C<int,char>");
    uint32_t constant = image_type(&image, 0x1001, "wh", class, 1);
    uint32_t this = image_type(&image, 0x1002, "ww", class, 0x1040C);
    uint32_t const_this = image_type(&image, 0x1002, "ww", constant, 0x1040C);
    uint32_t plain = image_type(&image, 0x1009, "wwwbbhww", T_INT4, class, this, 0, 0, 1, list, 0);
    uint32_t of_const = image_type(&image, 0x1009, "wwwbbhww", T_INT4, class, const_this, 0, 0, 1, list, 0);
    uint32_t of_none = image_type(&image, 0x1009, "wwwbbhww", T_INT4, class, 0, 0, 0, 1, list, 0);
    uint32_t receiver = image_type(&image, 0x1009, "wwwbbhww", T_INT4, class, class, 0, 0, 1, list, 0);
    uint32_t alone = image_type(&image, 0x1009, "wwwbbhww", T_INT4, class, class, 0, 0, 0, none, 0);
    uint32_t array = image_type(&image, 0x1503, "wwhs", T_INT4, T_INT4, 12, "");
    uint32_t arrays = image_type(&image, 0x1503, "wwhs", array, T_INT4, 36, "");
    uint32_t reference = image_type(&image, 0x1002, "ww", constant, 0x1002C);
    uint32_t method = image_type(&image, 0x1002, "ww", of_const, 0x1006C);
    uint32_t rvalue = image_type(&image, 0x1002, "ww", class, 0x1008C);
    uint32_t member = image_type(&image, 0x1201, "wwwwww", 5, arrays, reference, method, rvalue, constant);
    uint32_t many = image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 4, member);
    uint32_t missing = procedure_type(&image, 0x7000), strange = procedure_type(&image, none);
    const struct {
        const char *name;
        uint32_t type;
    } procedures[] = {
        {"plain", plain}, {"constant", of_const}, {"static", of_none},  {"rust", receiver},        {"alone", alone},
        {"many", many},   {"missing", missing},   {"strange", strange}, {"not a function", class}, {"", plain}};
    for (uint32_t i = 0; i < sizeof procedures / sizeof *procedures; i++) {
        image_procedure(&image, 0, procedures[i].name, i * 16, 16, procedures[i].type);
        image_end(&image, 0, S_END);
    }
    expect(&image, "plain(int) 1000+10 []\nconstant(int) const 1010+10 []\nstatic(int) 1020+10 []\n"
                   "rust(C<int,char>, int) 1030+10 []\nalone(C<int,char>) 1040+10 []\n"
                   "many(int[3][3], C<int,char> const&, int (C<int,char>::*)(int), C<int,char>&&, const C<int,char>) "
                   "1050+10 []\nmissing(<missing type 0x7000>) 1060+10 []\n"
                   "strange(<unimplemented type kind 0x1201>) 1070+10 []\nnot a function 1080+10 []\n"
                   "<name omitted>(int) 1090+10 []\n");
    image_free(&image);
}

/* The records that Microsoft's compilers write since 2021, with more room for properties and any number of members. */
TEST(records_since_2021_are_read)
{
    enum { DECLARED = 0x80, UNIQUE = 0x200 };
    struct image image = {0};
    uint32_t class = image_type(&image, 0x1608, "wwwwhwhs", 0x10000, 0, 0, 0, 0x8003, 70000, 8, "C");
    uint32_t interface = image_type(&image, 0x160B, "wwwwhhs", 0, 0, 0, 0, 1, 8, "I");
    uint32_t structure = image_type(&image, 0x1609, "wwwwhhss", DECLARED | UNIQUE, 0, 0, 0, 0, 0, "S", ".?AUS@@");
    uint32_t choice = image_type(&image, 0x160A, "wwhhs", DECLARED, 0, 0, 0, "U");
    image_type(&image, 0x1609, "wwwwhhss", UNIQUE, 0, 0, 0, 3, 12, "S", ".?AUS@@");
    image_type(&image, 0x160A, "wwhhs", 0, 0, 2, 8, "U");
    uint32_t structures = image_type(&image, 0x1503, "wwhs", structure, T_INT4, 36, "");
    uint32_t choices = image_type(&image, 0x1503, "wwhs", choice, T_INT4, 16, "");
    uint32_t list = image_type(&image, 0x1201, "wwwww", 4, class, interface, structures, choices);
    image_procedure(&image, 0, "f", 0, 16, image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 4, list));
    image_end(&image, 0, S_END);
    expect(&image, "f(C, I, S[3], U[2]) 1000+10 []\n");
    image_free(&image);
}

/* Elements of arrays are declared more often than not; sizes are those of the definition with the same unique name. */
TEST(arrays_of_declared_types_get_the_defined_size)
{
    enum { DECLARED = 0x80, UNIQUE = 0x200 };
    struct image image = {0};
    uint32_t s = image_type(&image, 0x1505, "hhwwwhss", 0, DECLARED | UNIQUE, 0, 0, 0, 0, "S", ".?AUS@@");
    uint32_t u = image_type(&image, 0x1506, "hhwhs", 0, DECLARED, 0, 0, "U");
    uint32_t e = image_type(&image, 0x1507, "hhwws", 0, DECLARED, 0, 0, "E");
    uint32_t lost = image_type(&image, 0x1505, "hhwwwhs", 0, DECLARED, 0, 0, 0, 0, "lost");
    image_type(&image, 0x1505, "hhwwwhss", 0, UNIQUE, 0, 0, 0, 7, "S", ".?AUS@other@@");
    image_type(&image, 0x1505, "hhwwwhss", 0, UNIQUE, 0, 0, 0, 12, "S", ".?AUS@@");
    image_type(&image, 0x1506, "hhwhs", 0, 0, 0, 8, "U");
    image_type(&image, 0x1507, "hhwws", 0, 0, T_INT4, 0, "E");
    uint32_t modified = image_type(&image, 0x1001, "wh", s, 1);
    uint32_t arguments = image_type(
        &image, 0x1201, "wwwwww", 5, image_type(&image, 0x1503, "wwhs", modified, T_INT4, 36, ""),
        image_type(&image, 0x1503, "wwhs", u, T_INT4, 32, ""), image_type(&image, 0x1503, "wwhs", e, T_INT4, 20, ""),
        image_type(&image, 0x1503, "wwhs", lost, T_INT4, 20, ""), T_INT4);
    image_procedure(&image, 0, "f", 0x10, 16, image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 5, arguments));
    image_end(&image, 0, S_END);
    expect(&image, "f(const S[3], U[4], E[5], lost[], int) 1010+10 []\n");
    image_free(&image);
}

TEST(nullptr_types_are_named)
{
    enum { T_NULLPTR = 0x103 };
    struct image image = {0};
    uint32_t constant = image_type(&image, 0x1001, "wh", T_NULLPTR, 1);
    uint32_t reference = image_type(&image, 0x1002, "ww", constant, 0x1002C);
    uint32_t arguments = image_type(&image, 0x1201, "wwww", 3, T_NULLPTR, constant, reference);
    image_procedure(&image, 0, "f", 0x10, 16, image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 3, arguments));
    image_end(&image, 0, S_END);
    expect(&image, "f(std::nullptr_t, const std::nullptr_t, std::nullptr_t const&) 1010+10 []\n");
    image_free(&image);
}

TEST(circular_types_end)
{
    struct image image = {0};
    /* a pointer to itself; a list of functions that take that list; a modifier of itself; an array of itself */
    uint32_t pointer = image_type(&image, 0x1002, "ww", 0x1000, 0x1000C);
    uint32_t list = image_type(&image, 0x1201, "www", 2, 0x1002, 0x1002);
    uint32_t function = image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 2, list);
    uint32_t modifier = image_type(&image, 0x1001, "wh", 0x1003, 1);
    uint32_t array = image_type(&image, 0x1503, "wwhs", 0x1004, T_INT4, 8, "");
    const uint32_t types[] = {pointer, function, modifier, array};
    for (uint32_t i = 0; i < 4; i++) {
        image_procedure(&image, 0, "f", i * 16, 16, i == 1 ? types[i] : procedure_type(&image, types[i]));
        image_end(&image, 0, S_END);
    }
    expect(&image, "f 1000+10 []\nf 1010+10 []\nf 1020+10 []\nf 1030+10 []\n");
    image_free(&image);
}

/* Nobody reads so many arguments: the name stands alone. */
TEST(long_argument_lists_are_left_out)
{
    enum { COUNT = 16000 };
    struct image image = {0};
    struct sl_buf *types = &image.types;
    uint32_t list = image_type(&image, 0x1201, "w", COUNT);
    uint16_t size = 2 + 4 + 4 * COUNT;
    assert_true(types->size >= 8);
    memcpy(types->data + types->size - 8, &size, 2);
    for (size_t i = 0; i < COUNT; i++)
        sl_buf_u32(types, T_INT4);
    uint32_t function = image_type(&image, 0x1008, "wbbhw", T_VOID, 0, 0, 0, list);
    image_procedure(&image, 0, "f", 0, 16, function);
    image_end(&image, 0, S_END);
    expect(&image, "f 1000+10 []\n");
    image_free(&image);
}

/* Types and ids that link-time optimisation left in other modules. */
TEST(cross_module_references_are_resolved)
{
    static const uint8_t inlined[] = {0x0C, 0x04, 0x04};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t type = procedure_type(&image, T_INT4);
    uint32_t id = image_id(&image, 0x1601, "wws", 0, type, "from_b");
    struct sl_buf *imports = &image.modules[0].imports, *exports = &image.modules[1].exports;
    uint32_t unused[] = {image_text(&image, "no such module"), 1, 5};
    sl_buf_add(imports, unused, sizeof unused);
    uint32_t used[] = {image_text(&image, "c:\\b.OBJ"), 2, 0x77, 0x42};
    sl_buf_add(imports, used, sizeof used);
    put_pair(exports, 0x50, 0x1005);
    put_pair(exports, 0x42, id);
    uint32_t cross = UINT32_C(1) << 31 | 1 << 20 | 1, lost = UINT32_C(1) << 31 | 1 << 20;
    image_inlinee(&image, 0, cross, a, 7);
    image_inlinee(&image, 0, lost, a, 7);
    image_procedure(&image, 0, "f", 0, 16, 0);
    image_site(&image, 0, cross, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_site(&image, 0, lost, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    expect(&image, "f 1000+10 [1000+10 ?:0] { from_b(int) 1004+4 [1004+4 a.c:7] }\n");
    image_free(&image);
}
