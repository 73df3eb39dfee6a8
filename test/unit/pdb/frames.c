/* Frame data, record by record. */
#include "image.h"

#include "pdb/pdb.h"

static void put_fpo(struct image *image, uint32_t start, uint32_t size, uint32_t locals, uint16_t params, uint16_t bits)
{
    struct sl_buf *out = &image->streams[IMAGE_FPO];
    sl_buf_u32(out, start);
    sl_buf_u32(out, size);
    sl_buf_u32(out, locals);
    sl_buf_u16(out, params);
    sl_buf_u16(out, bits);
}

static void put_frame(struct image *image, uint32_t start, uint32_t size, uint16_t prolog, const char *program)
{
    struct sl_buf *out = &image->streams[IMAGE_FRAMES];
    const uint32_t words[] = {start, size, 0x10, 8, 0x20, program ? image_text(image, program) : 0xFFFFFF};
    for (size_t i = 0; i < 6; i++)
        sl_buf_u32(out, words[i]);
    sl_buf_u16(out, prolog);
    sl_buf_u16(out, 12);
    sl_buf_u32(out, 4);
}

static bool append(void *arg, const struct sl_pdb_frame *f)
{
    sl_buf_printf(arg, "%u %x+%x %x %x %x %x %x %d " SL_STR_FMT "\n", f->type, f->start, f->size, f->prolog, f->params,
                  f->saved, f->locals, f->max_stack, f->uses_base_pointer, SL_STR_ARG(f->program));
    return true;
}

static bool refuse(void *arg, const struct sl_pdb_frame *f)
{
    (void)arg, (void)f;
    return false;
}

/* The records of the image, which is freed. */
static void expect(struct image *image, const char *records)
{
    struct sl_buf file = {0}, text = {0};
    struct sl_arena arena = {0};
    struct sl_pdb *pdb;
    struct sl_pdb_info info;
    image_write(image, &file);
    assert_int_equal(sl_pdb_open(sl_buf_bytes(&file), &arena, NULL, &pdb, &info, NULL), SL_OK);
    assert_int_equal(sl_pdb_frames(pdb, append, &text, NULL), *records ? SL_OK : SL_NOT_FOUND);
    assert_int_equal(sl_pdb_frames(pdb, refuse, NULL, NULL), *records ? SL_CANCELLED : SL_NOT_FOUND);
    sl_buf_u8(&text, 0);
    assert_string_equal((char *)text.data, records);
    sl_arena_free(&arena);
    sl_buf_free(&text);
    sl_buf_free(&file);
    image_free(image);
}

TEST(fpo_and_frame_data_become_rules)
{
    struct image image = {.scattered = true};
    put_fpo(&image, 0x1000, 0x10, 4, 2, 0x0305);          /* prologue 5, 3 registers */
    put_fpo(&image, 0x1020, 0x10, 0, 0, 0xC000 | 0x1000); /* standard, ebp is used */
    put_fpo(&image, 0x1040, 0x10, 0, 0, 0);
    put_frame(&image, 0x1020, 0x18, 3, "$T0 .raSearch =");
    put_frame(&image, 0x1030, 0x10, 3, "$T0 .raSearch =");
    expect(&image, "0 1000+10 5 8 c 10 0 0 \n4 1020+18 3 8 c 10 20 0 $T0 .raSearch =\n"
                   "4 1030+10 3 8 c 10 20 0 $T0 .raSearch =\n0 1040+10 0 0 0 0 0 0 \n");
    expect(&(struct image){0}, "");
}

TEST(records_without_effect_are_dropped)
{
    struct image image = {0};
    put_fpo(&image, 0x1000, 0x10, 0, 0, 0xD002);
    put_fpo(&image, 0x1000, 0x10, 9, 0, 0xD002); /* once more */
    put_fpo(&image, 0x2000, 0, 0, 0, 0);
    put_fpo(&image, 0x2000, 0x80000000, 0, 0, 0);
    put_fpo(&image, 0xFFFFFFF0, 0x20, 0, 0, 0);
    sl_buf_u32(&image.streams[IMAGE_FPO], 0x3000); /* cut off */
    put_frame(&image, 0x4000, 0x10, 0, NULL);
    expect(&image, "3 1000+10 2 0 0 0 0 1 \n");
}

TEST(frame_records_follow_omap)
{
    struct image image = {.has_omap = true};
    put_fpo(&image, 0x1000, 0x10, 0, 0, 4); /* as a whole */
    put_fpo(&image, 0x1100, 0x10, 0, 0, 4); /* its body somewhere else */
    put_fpo(&image, 0x1200, 0x10, 0, 0, 4); /* gone */
    const uint32_t omap[][2] = {{0x1000, 0x5000}, {0x1100, 0x6000}, {0x1104, 0x7000}, {0x1200, 0}};
    for (size_t i = 0; i < 4; i++) {
        sl_buf_u32(&image.streams[IMAGE_OMAP_FROM], omap[i][0]);
        sl_buf_u32(&image.streams[IMAGE_OMAP_FROM], omap[i][1]);
    }
    expect(&image, "0 5000+10 4 0 0 0 0 0 \n0 6000+4 4 0 0 0 0 0 \n0 7000+c 0 0 0 0 0 0 \n");
}
