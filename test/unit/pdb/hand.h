/* What the tests of hand-made files share. */
#pragma once

#include "dump.h"
#include "image.h"

#include <string.h>

enum { S_END = 0x0006, S_SEPCODE = 0x1132, S_INLINESITE_END = 0x114E, S_BLOCK32 = 0x1103, S_PUB32 = 0x110E };
enum { T_VOID = 0x03, T_INT4 = 0x74, T_PVOID64 = 0x603 };

static inline void expect(struct image *image, const char *text)
{
    struct dump dump;
    struct sl_buf file = {0};
    struct sl_error error = {0};
    dump_init(&dump);
    image_write(image, &file);
    enum sl_code code = dump_file(&dump, sl_buf_bytes(&file), &error);
    if (code != SL_OK)
        print_message("%s\n", error.message);
    assert_int_equal(code, SL_OK);
    sl_buf_u8(&dump.out, 0);
    assert_string_equal((char *)dump.out.data, text);
    sl_buf_free(&file);
    dump_free(&dump);
}

static inline uint32_t argument_list(struct image *image, uint32_t type)
{
    return type ? image_type(image, 0x1201, "ww", 1, type) : image_type(image, 0x1201, "w", 0);
}

/* void (type) */
static inline uint32_t procedure_type(struct image *image, uint32_t type)
{
    uint32_t list = argument_list(image, type);
    return image_type(image, 0x1008, "wbbhw", T_VOID, 0, 0, type ? 1 : 0, list);
}

static inline void put_pair(struct sl_buf *out, uint32_t a, uint32_t b)
{
    sl_buf_u32(out, a);
    sl_buf_u32(out, b);
}
