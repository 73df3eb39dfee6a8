/* PDB files written by hand: each rule on its own, and every kind of damage. */
#include "hand.h"

#include "symcache/symcache.h"

#include <stdlib.h>
#include <string.h>

TEST(identity_is_read)
{
    struct image image = {0};
    struct sl_buf file = {0};
    struct sl_object *object;
    char id[SL_DEBUG_ID_TEXT];
    image_write(&image, &file);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    const struct sl_object_info *info = sl_object_info(object);
    sl_debug_id_format(&info->debug_id, id);
    assert_string_equal(id, "13121110-1514-1716-1819-1a1b1c1d1e1f-3"); /* the age of the debug information counts */
    assert_int_equal(info->kind, SL_KIND_DBG);
    assert_int_equal(info->arch, SL_ARCH_X86_64);
    assert_int_equal(info->image_size, 0x3000);
    assert_true(info->features.has_debug_info && info->features.has_symbols && !info->features.has_unwind_info);
    assert_false(info->features.srcsrv_vcs.size || info->code_id.size);
    sl_object_close(object);
    sl_buf_free(&file);
    image_free(&image);
}

TEST(lines_belong_to_their_functions)
{
    static const uint32_t lines[][2] = {{0, 10}, {4, 11}, {8, 0xFEEFEE}, {12, 0xF00F00}, {16, 11}, {24, 12}};
    static const uint32_t later[][2] = {{0, 30}};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "C:\\src\\a.c"), b = image_file(&image, 0, "C:\\src\\b.c");
    image_procedure(&image, 0, "first", 0x10, 32, 0);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "second", 0x30, 16, procedure_type(&image, T_INT4));
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "bare", 0x4, 4, 0);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0x30, 16, b, later, 1);
    image_lines(&image, 0, 0x10, 32, a, lines, 6);
    /* markers lengthen the line before them; equal neighbours are one; the code before any line has none */
    expect(&image, "first 1010+20 [1010+4 a.c:10, 1014+14 a.c:11, 1028+8 a.c:12]\n"
                   "second(int) 1030+10 [1030+10 b.c:30]\n"
                   "bare 1004+4 []\n");
    image_free(&image);
}

TEST(pages_may_be_scattered)
{
    static const uint32_t lines[][2] = {{0, 1}};
    struct sl_buf text = {0};
    struct image image = {0};
    uint32_t file = image_file(&image, 0, "a.c");
    for (uint32_t i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%u", i);
        image_procedure(&image, 0, name, i * 16, 16, procedure_type(&image, T_PVOID64));
        image_end(&image, 0, S_END);
        image_lines(&image, 0, i * 16, 16, file, lines, 1);
        sl_buf_printf(&text, "%s(void*) %x+10 [%x+10 a.c:1]\n", name, 0x1000 + i * 16, 0x1000 + i * 16);
    }
    sl_buf_u8(&text, 0);
    for (unsigned shift = 8; shift <= 16; shift++)
        for (unsigned scattered = 0; scattered < 2; scattered++) {
            image.page_size = 1u << shift;
            image.scattered = scattered;
            expect(&image, (char *)text.data);
        }
    sl_buf_free(&text);
    image_free(&image);
}

TEST(inlined_calls_are_read)
{
    static const uint32_t lines[][2] = {{0, 10}, {0x40, 11}};
    /* code and line +3 +0; line +5; code +8; line +3; code +45 */
    static const uint8_t annotations[] = {0x0B, 0x03, 0x06, 0x0A, 0x03, 0x08, 0x06, 0x06, 0x03, 0x2D, 0x04, 0x05};
    static const uint8_t nested[] = {0x0C, 0x02, 0x04, 0x05, 0x08,
                                     0x0C, 0x03, 0x06, 0x00, 0x00}; /* +4 for 2; file 8; +6 for 3 */
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c"), b = image_file(&image, 0, "b.h"), c = image_file(&image, 0, "c.h");
    assert_int_equal(b, 8);
    uint32_t type = procedure_type(&image, T_INT4);
    uint32_t scope = image_id(&image, 0x1605, "ws", 0, "?A0x12345678");
    uint32_t outer = image_id(&image, 0x1601, "wws", scope, type, "outer");
    uint32_t class = image_type(&image, 0x1505, "hhwwwhs", 0, 0, 0, 0, 0, 8, "ns::klass");
    uint32_t inner = image_id(&image, 0x1602, "wws", class, type, "inner");
    uint32_t nameless = image_id(&image, 0x1605, "ws", 0, "no function");
    image_inlinee(&image, 0, inner, c, 70);
    image_inlinee(&image, 0, outer, a, 50);
    image_inlinee(&image, 0, nameless, a, 50);
    image_procedure(&image, 0, "f", 0x100, 0x80, 0);
    image_symbol(&image.modules[0].symbols, S_BLOCK32, "wwwwhs", 0, 0, 0, 0, 1, "");
    image_site(&image, 0, outer, annotations, sizeof annotations);
    image_site(&image, 0, inner, nested, sizeof nested);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    /* dropped with all they hold: no entry of the inlinee table, no name, broken or no annotations, no procedure */
    image_site(&image, 0, 0x7777, nested, sizeof nested);
    image_site(&image, 0, inner, nested, sizeof nested);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_INLINESITE_END);
    image_site(&image, 0, nameless, nested, sizeof nested);
    image_end(&image, 0, S_INLINESITE_END);
    image_site(&image, 0, inner, "\x0E\x01", 2);
    image_end(&image, 0, S_INLINESITE_END);
    image_site(&image, 0, inner, "\x03\xFF", 2);
    image_end(&image, 0, S_INLINESITE_END);
    image_site(&image, 0, inner, "\x06\x02", 2);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_site(&image, 0, inner, nested, sizeof nested);
    image_end(&image, 0, S_INLINESITE_END);
    image_lines(&image, 0, 0x100, 0x80, a, lines, 2);
    expect(&image, "f 1100+80 [1100+40 a.c:10, 1140+40 a.c:11] { "
                   "`anonymous namespace'::outer(int) 1103+3a [1103+8 a.c:50, 110b+2d a.c:55, 1138+5 a.c:58] { "
                   "ns::klass::inner(int) 1104+9 [1104+2 c.h:70, 110a+3 b.h:70] } }\n");
    image_free(&image);
}

TEST(every_annotation_opcode_is_read)
{
    static const uint8_t annotations[] = {
        0x01, 0x80, 0x80,                                           /* offset = 0x80: two bytes */
        0x02, 0x02,                                                 /* base = 2 */
        0x07, 0x01, 0x08, 0x01, 0x09, 0x05, 0x0A, 0x03, 0x0D, 0x04, /* columns, kind of range */
        0x03, 0xC0, 0x00, 0x01, 0x00,                               /* offset += 0x100: four bytes */
        0x06, 0x05, 0x0B, 0x24,                                     /* line -2; then +4 code, +1 line */
        0x06, 0x05, 0x03, 0x02,                                     /* line -2, +2 */
        0x04, 0x06,                                                 /* six bytes long */
    };
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 100);
    image_procedure(&image, 0, "f", 0, 0x400, 0);
    image_site(&image, 0, id, annotations, sizeof annotations);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    expect(&image, "f 1000+400 [1000+400 ?:0] { i 1182+c [1182+4 a.c:100, 1186+2 a.c:99, 1188+6 a.c:97] }\n");
    image_free(&image);
}

TEST(separated_code_has_its_lines)
{
    static const uint32_t hot[][2] = {{0, 10}}, cold[][2] = {{0, 20}};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c");
    image_procedure(&image, 0, "f", 0x100, 0x10, procedure_type(&image, 0));
    image_end(&image, 0, S_END);
    image_symbol(&image.modules[0].symbols, S_SEPCODE, "wwwwwwhh", 0, 0, 0x20, 0, 0x800, 0x100, 1, 1);
    image_end(&image, 0, S_END);
    image_symbol(&image.modules[0].symbols, S_SEPCODE, "wwwwwwhh", 0, 0, 0x20, 0, 0x900, 0x999, 1, 1); /* of no one */
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0x100, 0x10, a, hot, 1);
    image_lines(&image, 0, 0x800, 0x20, a, cold, 1);
    expect(&image, "f() 1100+10 [1100+10 a.c:10]\nf() 1800+20 [1800+20 a.c:20]\n");
    image_free(&image);
}

/* A procedure inside of another: the offsets of inlined calls count from the one around them. */
TEST(inlined_calls_of_nested_procedures_have_the_right_offsets)
{
    static const uint8_t inlined[] = {0x0C, 0x02, 0x04};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 7);
    image_procedure(&image, 0, "outer", 0x100, 0x10, 0);
    image_procedure(&image, 0, "inner", 0x200, 0x10, 0);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    expect(&image, "outer 1100+10 [1100+10 ?:0] { i 1104+2 [1104+2 a.c:7] }\n"
                   "inner 1200+10 [1200+10 ?:0] { i 1204+2 [1204+2 a.c:7] }\n");
    image_free(&image);
}

/* Every function has all the lines behind it, and would have a copy of them. */
TEST(functions_sharing_lines_are_limited)
{
    enum { COUNT = 60000 };
    struct image image = {.page_size = 4096};
    struct sl_buf file = {0};
    struct dump dump;
    uint32_t(*lines)[2] = malloc(COUNT * sizeof *lines);
    assert_non_null(lines);
    for (uint32_t i = 0; i < COUNT; i++) {
        lines[i][0] = i;
        lines[i][1] = i + 1;
        image_procedure(&image, 0, "f", i, COUNT - i, 0);
        image_end(&image, 0, S_END);
    }
    image_lines(&image, 0, 0, COUNT, image_file(&image, 0, "c:\\a.c"), (const uint32_t(*)[2])lines, COUNT);
    image_write(&image, &file);
    dump_init(&dump);
    assert_int_equal(dump_file(&dump, sl_buf_bytes(&file), NULL), SL_MALFORMED);
    dump_free(&dump);
    free(lines);
    sl_buf_free(&file);
    image_free(&image);
}

TEST(rearranged_code_follows_omap)
{
    static const uint32_t lines[][2] = {{0, 1}, {8, 2}, {16, 3}};
    static const uint8_t inlined[] = {0x0C, 0x04, 0x04};
    struct image image = {.has_omap = true};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 100);
    image_procedure(&image, 0, "gone", 0x80, 0x10, 0);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "moved", 0x100, 0x20, 0);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0x100, 0x20, a, lines, 3);
    image_symbol(&image.streams[IMAGE_PUBLICS], S_PUB32, "wwhs", 2, 0x100, 1, "_moved");
    image_symbol(&image.streams[IMAGE_PUBLICS], S_PUB32, "wwhs", 2, 0x80, 1, "_gone");
    struct sl_buf *omap = &image.streams[IMAGE_OMAP_FROM];
    put_pair(omap, 0x1080, 0);
    put_pair(omap, 0x1100, 0x5000);
    put_pair(omap, 0x1108, 0x4FF0); /* the middle line went before the function's beginning */
    put_pair(omap, 0x1110, 0x5010);
    sl_buf_u32(&image.streams[IMAGE_OMAP_TO], 0);
    const char *text = "moved 4ff0+8 [4ff0+8 a.c:2]\n"
                       "moved 5000+8 [5000+8 a.c:1] { i 5004+4 [5004+4 a.c:100] }\n"
                       "moved 5010+10 [5010+10 a.c:3]\n";
    expect(&image, text);

    struct sl_buf file = {0};
    struct sl_arena arena = {0};
    struct sl_object *object;
    struct sl_symbol *symbols;
    size_t count;
    image_write(&image, &file);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(symbols[0].address, 0x5000);
    assert_true(sl_str_equal(symbols[0].name, SL_STR("_moved")));
    sl_object_close(object);
    sl_arena_free(&arena);
    sl_buf_free(&file);

    image.same_sections = true;
    expect(&image, text);

    /* without the map nobody knows where the code is, unless it is where it was */
    sl_buf_clear(omap);
    expect(&image, "gone 1080+10 [1080+10 ?:0] { i 1084+4 [1084+4 a.c:100] }\nmoved 1100+20 [1100+8 a.c:1, 1108+8 "
                   "a.c:2, 1110+10 a.c:3] { i 1104+4 [1104+4 "
                   "a.c:100] }\n");
    image.same_sections = false;
    expect(&image, "");
    image_free(&image);
}

/* Blocks of one function in another order; a line and an inlined call with a call in it lie in several. */
TEST(functions_cut_up_by_omap_keep_lines_and_calls)
{
    static const uint32_t lines[][2] = {{0, 1}, {8, 2}, {24, 3}};
    static const uint8_t outer[] = {0x0C, 0x18, 0x04}, inner[] = {0x0C, 0x08, 0x0C}; /* 24 bytes from 4, 8 from 12 */
    struct image image = {.has_omap = true};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t id = image_id(&image, 0x1601, "wws", 0, 0, "outer"), id2 = image_id(&image, 0x1601, "wws", 0, 0, "inner");
    image_inlinee(&image, 0, id, a, 100);
    image_inlinee(&image, 0, id2, a, 200);
    image_procedure(&image, 0, "f", 0x100, 0x20, 0);
    image_site(&image, 0, id, outer, sizeof outer);
    image_site(&image, 0, id2, inner, sizeof inner);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0x100, 0x20, a, lines, 3);
    struct sl_buf *omap = &image.streams[IMAGE_OMAP_FROM];
    put_pair(omap, 0x1100, 0x5100);
    put_pair(omap, 0x1108, 0x5000);
    put_pair(omap, 0x1110, 0); /* was taken out */
    put_pair(omap, 0x1114, 0x5008);
    put_pair(omap, 0x1118, 0x500C); /* goes on */
    put_pair(omap, 0x1120, 0x5200);
    expect(&image, "f 5000+14 [5000+c a.c:2, 500c+8 a.c:3] { outer 5000+10 [5000+10 a.c:100] { inner 5004+4 [5004+4 "
                   "a.c:200] } }\n"
                   "f 5100+8 [5100+8 a.c:1] { outer 5104+4 [5104+4 a.c:100] }\n");
    image_free(&image);
}

/* Instrumentation: code that was put into a function is a part of it, with the lines that it was put in for, if any. */
TEST(inserted_code_belongs_to_its_function)
{
    static const uint32_t lines[][2] = {{0, 1}, {5, 2}, {8, 3}}, more[][2] = {{0, 9}};
    static const uint8_t inlined[] = {0x0C, 0x02, 0x06}; /* 2 bytes from 6 */
    struct image image = {.has_omap = true};
    uint32_t a = image_file(&image, 0, "a.c"), id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 100);
    image_procedure(&image, 0, "f", 0, 10, 0);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "g", 10, 6, 0);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0, 10, a, lines, 3);
    image_lines(&image, 0, 10, 6, a, more, 1);
    struct sl_buf *from = &image.streams[IMAGE_OMAP_FROM], *to = &image.streams[IMAGE_OMAP_TO];
    put_pair(from, 0x1000, 0x1000);
    put_pair(from, 0x1005, 0x100A); /* 5 bytes in front */
    put_pair(from, 0x100A, 0x1012); /* 3 bytes behind */
    put_pair(to, 0x1000, 0x1000);
    put_pair(to, 0x1005, 0xFFFFFFFF);
    put_pair(to, 0x100A, 0x1005);
    put_pair(to, 0x100F, 0xFFFFFFFF);
    put_pair(to, 0x1012, 0x100A);
    put_pair(to, 0x1018, 0xFFFFFFFF);
    expect(&image, "f 1000+f [1000+5 a.c:1, 100a+3 a.c:2, 100d+2 a.c:3] { i 100b+2 [100b+2 a.c:100] }\n"
                   "g 1012+6 [1012+6 a.c:9]\n");

    /* the same, but it is told what the code was put in for: no more than there is of it */
    sl_buf_clear(to);
    put_pair(to, 0x1000, 0x1000);
    put_pair(to, 0x1005, 0x1005);
    put_pair(to, 0x100A, 0x1005);
    put_pair(to, 0x100F, 0x1009);
    put_pair(to, 0x1010, 0);
    put_pair(to, 0x1012, 0x100A);
    put_pair(to, 0x1018, 0x100A); /* another copy, and beyond it nothing */
    put_pair(to, 0x101E, 0x10000000);
    expect(&image, "f 1000+10 [1000+5 a.c:1, 1005+3 a.c:2, 1008+2 a.c:3, 100a+3 a.c:2, 100d+3 a.c:3] "
                   "{ i 1006+7 [1006+2 a.c:100, 100b+2 a.c:100] }\n"
                   "g 1012+c [1012+c a.c:9]\n");

    /* "to" alone has the second function: what "from" has of it is where no image reaches */
    sl_buf_clear(from);
    put_pair(from, 0x1000, 0x1000);
    put_pair(from, 0x1005, 0x100A);
    put_pair(from, 0x1008, 0x80000000);
    sl_buf_clear(to);
    put_pair(to, 0x1000, 0x1000);
    put_pair(to, 0x1005, 0x80000000);
    put_pair(to, 0x100A, 0x1005);
    put_pair(to, 0x100D, 0x80000000);
    put_pair(to, 0x1012, 0x100A);
    put_pair(to, 0x1018, 0x80000000);
    expect(&image, "f 1000+d [1000+5 a.c:1, 100a+3 a.c:2] { i 100b+2 [100b+2 a.c:100] }\n"
                   "g 1012+6 [1012+6 a.c:9]\n");

    /* out of order, over and over, to everywhere: whatever there is, it ends */
    sl_buf_clear(to);
    for (uint32_t i = 0; i < 200; i++)
        put_pair(to, i % 3 ? 0x1000 + i : 0xF0000000 - i, i % 5 ? 0x1000 : i);
    struct sl_buf file = {0};
    struct sl_object *object;
    image_write(&image, &file);
    if (sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL) == SL_OK)
        sl_object_close(object);
    sl_buf_free(&file);
    image_free(&image);
}

/* The linker has folded two equal functions: both begin where the lines of both do. */
TEST(folded_functions_keep_their_own_lines)
{
    static const uint32_t first[][2] = {{0, 10}}, second[][2] = {{0, 20}}, third[][2] = {{0, 30}};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c");
    image_procedure(&image, 0, "one", 0x10, 16, 0);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "other", 0x30, 16, 0);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "two", 0x10, 16, 0);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "three", 0x10, 16, 0);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0x10, 16, a, first, 1);
    image_lines(&image, 0, 0x30, 16, a, third, 1);
    image_lines(&image, 0, 0x10, 16, a, second, 1);
    /* what has none of its own shares the last one's */
    expect(&image, "one 1010+10 [1010+10 a.c:10]\nother 1030+10 [1030+10 a.c:30]\ntwo 1010+10 [1010+10 a.c:20]\n"
                   "three 1010+10 [1010+10 a.c:20]\n");
    image_free(&image);
}

/* Compilers make functions without a line that call others inline. */
TEST(functions_without_lines_keep_inlined_calls)
{
    static const uint8_t inlined[] = {0x0C, 0x04, 0x04};
    struct image image = {0};
    uint32_t a = image_file(&image, 0, "a.c"), id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 100);
    image_procedure(&image, 0, "deleting", 0x10, 0x10, 0);
    image_site(&image, 0, id, inlined, sizeof inlined);
    image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_procedure(&image, 0, "bare", 0x30, 16, 0);
    image_end(&image, 0, S_END);
    expect(&image, "deleting 1010+10 [1010+10 ?:0] { i 1014+4 [1014+4 a.c:100] }\nbare 1030+10 []\n");
    image_free(&image);
}

/* 1000 calls in one another: 513 are kept, which with the function makes a chain of 514. */
TEST(inline_depth_is_limited)
{
    static const uint8_t inlined[] = {0x0C, 0x04, 0x04};
    static const uint32_t lines[][2] = {{0, 1}};
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    struct image image = {.page_size = 4096};
    uint32_t a = image_file(&image, 0, "a.c");
    uint32_t id = image_id(&image, 0x1601, "wws", 0, 0, "i");
    image_inlinee(&image, 0, id, a, 7);
    image_procedure(&image, 0, "f", 0, 16, 0);
    for (unsigned i = 0; i < 1000; i++)
        image_site(&image, 0, id, inlined, sizeof inlined);
    for (unsigned i = 0; i < 1000; i++)
        image_end(&image, 0, S_INLINESITE_END);
    image_end(&image, 0, S_END);
    image_lines(&image, 0, 0, 16, a, lines, 1);
    /* scopes without end */
    for (unsigned i = 0; i < 10000; i++)
        image_symbol(&image.modules[1].symbols, S_BLOCK32, "wwwwhs", 0, 0, 0, 0, 1, "");
    struct sl_buf file = {0}, out = {0};
    struct sl_object *object;
    struct sl_symcache cache;
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    image_write(&image, &file);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_lookup(&cache, 0x1005, chain, SL_SYMCACHE_MAX_CHAIN), 514);
    sl_object_close(object);
    sl_buf_free(&file);
    sl_buf_free(&out);
    image_free(&image);
}

TEST(source_server_streams_are_read)
{
    static const struct {
        const char *text, *vcs, *entries;
    } rows[] = {
        {"SRCSRV: ini ----\r\nVERSION=1\r\nVERCTRL=Perforce\r\nSRCSRV: variables ---\r\n\r\nSRCSRVTRG=x\r\n"
         "SRCSRV: source files ---\r\nC:\\Src\\A.c*P4*//depot/old/a.c*1\r\nC:\\Src\\A.c*P4*//depot/src/a.c*12345\r\n"
         "c:\\src\\b.h*depot/b.h*17\r\nc:\\src\\c.h*P4*depot/c.h#3\r\nSRCSRV: end "
         "----\r\nc:\\src\\d.h*P4*depot/d.h*9\r\n",
         "perforce", "depot/src/a.c 12345\ndepot/b.h 17\ndepot/c.h 3\n"},
        {"SRCSRV: ini ----\nVERSION=2\nVERCTRL=Team Foundation Server\nSRCSRV: variables ---\nSRCSRVTRG=x\n"
         "SRCSRV: source files ---\nc:\\src\\a.c*VSTF*/DevDiv/a.c*1363200\n",
         "other", "/DevDiv/a.c 1363200\n"},
        {"SRCSRV: ini ----\nVERSION=1\nVERCTRL=A Git thing\nSRCSRV: variables ---\nSRCSRVTRG=x\n"
         "SRCSRV: source files ---\nc:\\src\\a.c*a/b*c\nSRCSRV: end --\n",
         "git", ""},
        {"SRCSRV: ini ----\nVERSION=1\nSRCSRV: variables ---\nSRCSRVTRG=x\nSRCSRV: source files ---\n", "", ""},
        {"SRCSRV: ini ----\nVERSION=4\nVERCTRL=git\nSRCSRV: variables ---\nSRCSRVTRG=x\nSRCSRV: source files ---\n", "",
         ""},
        {"SRCSRV: ini ----\nVERSION=1\nVERCTRL=git\nSRCSRV: variables ---\nSRCSRV: source files ---\n", "", ""},
        {"VERSION=1\nSRCSRV: ini ----\n", "", ""},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct image image = {.has_srcsrv = true};
        struct sl_buf file = {0};
        struct sl_object *object;
        struct dump dump;
        dump_init(&dump);
        image_file(&image, 0, "c:\\src\\x\\..\\a.c");
        image_file(&image, 0, "C:\\SRC\\b.h");
        image_file(&image, 0, "c:\\src\\c.h");
        image_file(&image, 0, "c:\\src\\d.h");
        image_procedure(&image, 0, "f", 0, 16, 0);
        image_end(&image, 0, S_END);
        sl_buf_cstr(&image.streams[IMAGE_SRCSRV], rows[i].text);
        image_write(&image, &file);
        assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
        struct sl_str vcs = sl_object_info(object)->features.srcsrv_vcs;
        assert_true(sl_str_equal(vcs, sl_str(rows[i].vcs)));
        sl_object_close(object);
        assert_int_equal(dump_file(&dump, sl_buf_bytes(&file), NULL), SL_OK);
        sl_buf_u8(&dump.source_server, 0);
        assert_string_equal((char *)dump.source_server.data, rows[i].entries);
        dump_free(&dump);
        sl_buf_free(&file);
        image_free(&image);
    }
}

/* The text of an id of a symcache; "" for none. */
static void append_text(const struct sl_symcache *cache, uint32_t id, struct sl_buf *out)
{
    if (id != SL_SYMCACHE_NONE)
        sl_symcache_string(cache, id, out);
    sl_buf_u8(out, '|');
}

TEST(symcache_keeps_source_server_places)
{
    static const uint32_t lines[][2] = {{0, 10}};
    struct image image = {.has_links = true};
    struct sl_buf file = {0}, out = {0}, text = {0};
    struct sl_object *object;
    struct sl_symcache cache;
    struct sl_location chain[4];
    struct sl_symcache_origin origin;
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    static const char *const paths[] = {"C:\\src\\a.c", "C:\\src\\b.c", "D:\\c.c"};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t id = image_file(&image, 0, paths[i]);
        image_procedure(&image, 0, "f", i * 0x20, 0x20, 0);
        image_end(&image, 0, S_END);
        image_lines(&image, 0, i * 0x20, 0x20, id, lines, 1);
    }
    sl_buf_cstr(&image.streams[IMAGE_SRCSRV],
                "SRCSRV: ini --\nVERSION=1\nVERCTRL=Perforce\nSRCSRV: variables --\nSRCSRVTRG=x\n"
                "SRCSRV: source files --\nC:\\src\\a.c*P4*//depot/a.c*7\nSRCSRV: end --\n");
    sl_buf_cstr(&image.streams[IMAGE_LINKS], "{\"documents\":{\"C:\\\\src\\\\*\":\"https://host/*\",}}");
    image_write(&image, &file);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sl_symcache_lookup(&cache, 0x1000 + i * 0x20, chain, 4), 1);
        if (!sl_symcache_origin(&cache, chain[0].file, &origin)) {
            sl_buf_cstr(&text, "none");
            continue;
        }
        append_text(&cache, origin.path, &text);
        append_text(&cache, origin.revision, &text);
        append_text(&cache, origin.url, &text);
    }
    sl_buf_u8(&text, 0);
    assert_string_equal((char *)text.data, "depot/a.c|7|https://host/a.c|||https://host/b.c|none");
    assert_false(sl_symcache_origin(&cache, 99, &origin));
    sl_object_close(object);
    sl_buf_free(&file);
    sl_buf_free(&out);
    sl_buf_free(&text);
    image_free(&image);
}

TEST(unreadable_modules_are_skipped)
{
    struct image image = {0};
    struct sl_buf file = {0};
    struct sl_error error;
    struct dump dump;
    image_procedure(&image, 0, "f", 0, 16, 0);
    image_end(&image, 0, S_END);
    image_procedure(&image, 1, "g", 16, 16, 0);
    image_end(&image, 1, S_END);
    image_write(&image, &file);
    size_t page = 3;
    for (unsigned i = 0; i < IMAGE_MODULE_A; i++)
        page += (image.streams[i].size + 511) / 512;
    file.data[page * 512] = 2; /* symbols of before C13 */
    dump_init(&dump);
    assert_int_equal(dump_file(&dump, sl_buf_bytes(&file), &error), SL_OK);
    assert_int_equal(dump.functions, 1);
    assert_int_equal(dump.sink.skipped_units, 1);
    dump_free(&dump);
    sl_buf_free(&file);
    image_free(&image);
}

static void fill(struct image *image)
{
    static const uint32_t lines[][2] = {{0, 10}, {0x10, 11}};
    static const uint8_t inlined[] = {0x0C, 0x04, 0x04, 0x06, 0x04, 0x0C, 0x02, 0x08};
    uint32_t a = image_file(image, 0, "C:\\src\\a.c");
    uint32_t type = procedure_type(image, T_INT4);
    uint32_t pointer = image_type(image, 0x1002, "ww", type, 0x1040C);
    uint32_t taker = procedure_type(image, pointer);
    uint32_t id = image_id(image, 0x1601, "wws", 0, taker, "inlined");
    image_inlinee(image, 0, id, a, 100);
    for (uint32_t i = 0; i < 3; i++) {
        image_procedure(image, 0, "function", i * 0x20, 0x20, taker);
        image_site(image, 0, id, inlined, sizeof inlined);
        image_end(image, 0, S_INLINESITE_END);
        image_end(image, 0, S_END);
        image_lines(image, 0, i * 0x20, 0x20, a, lines, 2);
    }
    image_symbol(&image->streams[IMAGE_PUBLICS], S_PUB32, "wwhs", 2, 0x100, 1, "_public");
    sl_buf_cstr(&image->streams[IMAGE_SRCSRV],
                "SRCSRV: ini --\nVERSION=1\nVERCTRL=Perforce\nSRCSRV: variables --\nSRCSRVTRG=x\n"
                "SRCSRV: source files --\nC:\\src\\a.c*P4*//depot/old/a.c*1\nSRCSRV: end --\n");
    sl_buf_cstr(&image->streams[IMAGE_LINKS], "{\"documents\":{\"C:\\\\*\":\"https://host/*\"}}");
    put_pair(&image->streams[IMAGE_OMAP_FROM], 0x1000, 0x3000);
    sl_buf_u32(&image->streams[IMAGE_OMAP_TO], 0);
}

static void read_everything(struct sl_bytes file)
{
    struct sl_object *object;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    struct sl_buf out = {0};
    if (sl_object_open(file, NULL, &object, NULL) != SL_OK)
        return;
    sl_object_symbols(object, &arena, &symbols, &count, NULL);
    sl_symcache_convert(object, NULL, &options, NULL, &out, NULL);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    sl_object_close(object);
}

TEST(damaged_files_never_crash)
{
    uint32_t seed = 1;
    const unsigned every = effort(7, 1);
    for (unsigned kind = 0; kind < 4; kind++) {
        struct image image = {.page_size = 256, .scattered = kind & 1, .has_omap = kind & 2, .has_links = true};
        struct sl_buf file = {0};
        fill(&image);
        image_write(&image, &file);
        uint8_t *copy = malloc(file.size);
        assert_non_null(copy);
        for (size_t at = 32 + kind % every; at < file.size; at += every) {
            static const uint8_t values[] = {0, 1, 0x7F, 0xFF};
            seed = seed * 1664525 + 1013904223;
            memcpy(copy, file.data, file.size);
            copy[at] = values[seed >> 30];
            copy[32 + (seed >> 8) % (file.size - 32)] = (uint8_t)(seed >> 16);
            read_everything((struct sl_bytes){copy, file.size});
        }
        free(copy);
        for (size_t size = 0; size < file.size; size += 13 * every) {
            copy = malloc(size ? size : 1);
            memcpy(copy, file.data, size);
            read_everything((struct sl_bytes){copy, size});
            free(copy);
        }
        sl_buf_free(&file);
        image_free(&image);
    }
}

TEST(malformed_containers_report_the_fault)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *message;
    } rows[] = {
        {32, 0x300, "invalid pdb file: bad page size"},
        {32, 0x80, "invalid pdb file: bad page size"},
        {32, 0x1000000, "invalid pdb file: bad page size"},
        {44, 0x7FFFFFFF, "invalid pdb file: directory is larger than the file"},
        {44, 0xFFFFFFFF, "invalid pdb file: directory is larger than the file"},
        {52, 0, "invalid pdb file: list of directory pages extends beyond the file"},
        {52, 0xFFFFFFFF, "invalid pdb file: list of directory pages extends beyond the file"},
        {40, 2, "invalid pdb file: list of directory pages extends beyond the file"},
    };
    struct image image = {0};
    struct sl_buf file = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_object *object;
        struct sl_error error;
        image_write(&image, &file);
        memcpy(file.data + rows[i].at, &rows[i].value, 4);
        assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, &error), SL_MALFORMED);
        assert_string_equal(error.message, rows[i].message);
    }
    sl_buf_free(&file);
    image_free(&image);
}

/* The first stream is an old directory, of any size: what refers to it refers to nothing. */
TEST(first_stream_is_never_read)
{
    static const char text[] = "SRCSRV: ini ----\nVERSION=1\nVERCTRL=perforce\nSRCSRV: variables ---\nSRCSRVTRG=x\n"
                               "SRCSRV: source files ---\n";
    struct sl_object *object;
    struct image image = {.has_srcsrv = true};
    struct sl_buf file = {0};
    sl_buf_cstr(&image.streams[0], text);
    sl_buf_cstr(&image.streams[IMAGE_SRCSRV], text);
    for (unsigned i = 0; i < 2; i++) {
        static const uint8_t named[] = {7, 0, 0, 0, IMAGE_SRCSRV, 0, 0, 0};
        image_write(&image, &file);
        uint8_t *at = memmem(file.data, file.size, named, sizeof named);
        assert_non_null(at);
        at[4] = i ? 0 : IMAGE_SRCSRV;
        assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
        assert_int_equal(sl_object_info(object)->features.srcsrv_vcs.size, i ? 0 : strlen("perforce"));
        sl_object_close(object);
    }
    sl_buf_free(&file);
    image_free(&image);
}
