#include "image.h"

#include <string.h>

void image_free(struct image *image)
{
    for (size_t i = 0; i < IMAGE_STREAMS; i++)
        sl_buf_free(&image->streams[i]);
    for (size_t i = 0; i < 2; i++) {
        struct image_module *m = &image->modules[i];
        struct sl_buf *parts[] = {&m->symbols, &m->checksums, &m->lines, &m->inlinees, &m->imports, &m->exports};
        for (size_t j = 0; j < 6; j++)
            sl_buf_free(parts[j]);
    }
    sl_buf_free(&image->names);
    sl_buf_free(&image->types);
    sl_buf_free(&image->ids);
}

static void put_fields(struct sl_buf *out, const char *format, va_list args)
{
    for (; *format; format++) {
        switch (*format) {
        case 'w': sl_buf_u32(out, va_arg(args, uint32_t)); break;
        case 'h': sl_buf_u16(out, (uint16_t)va_arg(args, int)); break;
        case 'b': sl_buf_u8(out, (uint8_t)va_arg(args, int)); break;
        case 's': {
            const char *text = va_arg(args, const char *);
            sl_buf_add(out, text, strlen(text) + 1);
            break;
        }
        default: fail();
        }
    }
}

static void put_record(struct sl_buf *out, uint16_t kind, const struct sl_buf *data)
{
    size_t size = 2 + data->size, padded = (size + 2 + 3) / 4 * 4 - 2;
    sl_buf_u16(out, (uint16_t)padded);
    sl_buf_u16(out, kind);
    sl_buf_add(out, data->data, data->size);
    sl_buf_fill(out, 0, padded - size);
}

uint32_t image_text(struct image *image, const char *text)
{
    if (!image->names.size)
        sl_buf_u8(&image->names, 0);
    uint32_t at = (uint32_t)image->names.size;
    sl_buf_add(&image->names, text, strlen(text) + 1);
    return at;
}

uint32_t image_type(struct image *image, uint16_t leaf, const char *format, ...)
{
    struct sl_buf data = {0};
    va_list args;
    va_start(args, format);
    put_fields(&data, format, args);
    va_end(args);
    put_record(&image->types, leaf, &data);
    sl_buf_free(&data);
    return 0x1000 + image->type_count++;
}

uint32_t image_id(struct image *image, uint16_t leaf, const char *format, ...)
{
    struct sl_buf data = {0};
    va_list args;
    va_start(args, format);
    put_fields(&data, format, args);
    va_end(args);
    put_record(&image->ids, leaf, &data);
    sl_buf_free(&data);
    return 0x1000 + image->id_count++;
}

uint32_t image_file(struct image *image, unsigned module, const char *path)
{
    struct sl_buf *out = &image->modules[module].checksums;
    uint32_t at = (uint32_t)out->size;
    sl_buf_u32(out, image_text(image, path));
    sl_buf_u8(out, 1); /* a checksum of one byte, to be stepped over */
    sl_buf_u8(out, 1);
    sl_buf_u8(out, 0xAA);
    sl_buf_align(out, 4);
    return at;
}

void image_symbol(struct sl_buf *symbols, uint16_t kind, const char *format, ...)
{
    struct sl_buf data = {0};
    va_list args;
    va_start(args, format);
    put_fields(&data, format, args);
    va_end(args);
    put_record(symbols, kind, &data);
    sl_buf_free(&data);
}

void image_procedure(struct image *image, unsigned module, const char *name, uint32_t offset, uint32_t size,
                     uint32_t type)
{
    image_symbol(&image->modules[module].symbols, 0x1110, "wwwwwwwwhbs", 0, 0, 0, size, 0, 0, type, offset, 1, 0, name);
}

void image_inlinee(struct image *image, unsigned module, uint32_t id, uint32_t file, uint32_t line)
{
    struct sl_buf *out = &image->modules[module].inlinees;
    if (!out->size)
        sl_buf_u32(out, 0);
    sl_buf_u32(out, id);
    sl_buf_u32(out, file);
    sl_buf_u32(out, line);
}

void image_site(struct image *image, unsigned module, uint32_t id, const void *annotations, size_t size)
{
    struct sl_buf data = {0};
    sl_buf_fill(&data, 0, 8);
    sl_buf_u32(&data, id);
    sl_buf_add(&data, annotations, size);
    put_record(&image->modules[module].symbols, 0x114D, &data);
    sl_buf_free(&data);
}

void image_end(struct image *image, unsigned module, uint16_t kind)
{
    image_symbol(&image->modules[module].symbols, kind, "");
}

static void subsection(struct sl_buf *out, uint32_t kind, const struct sl_buf *data)
{
    if (!data->size)
        return;
    sl_buf_u32(out, kind);
    sl_buf_u32(out, (uint32_t)data->size);
    sl_buf_add(out, data->data, data->size);
    sl_buf_align(out, 4);
}

void image_lines(struct image *image, unsigned module, uint32_t offset, uint32_t size, uint32_t file,
                 const uint32_t (*lines)[2], size_t count)
{
    struct sl_buf data = {0};
    sl_buf_u32(&data, offset);
    sl_buf_u16(&data, 1);
    sl_buf_u16(&data, 0);
    sl_buf_u32(&data, size);
    sl_buf_u32(&data, file);
    sl_buf_u32(&data, (uint32_t)count);
    sl_buf_u32(&data, (uint32_t)(12 + count * 8));
    for (size_t i = 0; i < count; i++) {
        sl_buf_u32(&data, lines[i][0]);
        sl_buf_u32(&data, lines[i][1] | 0x80000000);
    }
    subsection(&image->modules[module].lines, 0xF2, &data);
    sl_buf_free(&data);
}

/* ---- the streams that the parts make ---- */

static void write_types(struct sl_buf *out, const struct sl_buf *records, uint32_t count)
{
    sl_buf_clear(out);
    sl_buf_u32(out, 20040203);
    sl_buf_u32(out, 56);
    sl_buf_u32(out, 0x1000);
    sl_buf_u32(out, 0x1000 + count);
    sl_buf_u32(out, (uint32_t)records->size);
    sl_buf_fill(out, 0, 56 - 20);
    sl_buf_add(out, records->data, records->size);
}

static void write_info(struct image *image)
{
    struct sl_buf *out = &image->streams[IMAGE_INFO];
    static const char names[] = "/names\0srcsrv\0sourcelink$1";
    uint32_t count = image->has_links ? 3 : image->has_srcsrv ? 2 : 1;
    sl_buf_clear(out);
    sl_buf_u32(out, 20000404);
    sl_buf_u32(out, 0);
    sl_buf_u32(out, 1);
    for (uint8_t i = 0; i < 16; i++)
        sl_buf_u8(out, (uint8_t)(0x10 + i));
    sl_buf_u32(out, sizeof names);
    sl_buf_add(out, names, sizeof names);
    sl_buf_u32(out, count);
    sl_buf_u32(out, 8);
    sl_buf_u32(out, 1);
    sl_buf_u32(out, (1u << count) - 1);
    sl_buf_u32(out, 0);
    sl_buf_u32(out, 0);
    sl_buf_u32(out, IMAGE_NAMES);
    sl_buf_u32(out, 7);
    sl_buf_u32(out, IMAGE_SRCSRV);
    sl_buf_u32(out, 14);
    sl_buf_u32(out, IMAGE_LINKS);
}

static void write_names(struct image *image)
{
    struct sl_buf *out = &image->streams[IMAGE_NAMES];
    sl_buf_clear(out);
    sl_buf_u32(out, 0xEFFEEFFE);
    sl_buf_u32(out, 1);
    sl_buf_u32(out, (uint32_t)image->names.size);
    sl_buf_add(out, image->names.data, image->names.size);
}

static void section_header(struct sl_buf *out, uint32_t address, uint32_t flags)
{
    sl_buf_fill(out, 'x', 8);
    sl_buf_u32(out, 0x1000);
    sl_buf_u32(out, address);
    sl_buf_fill(out, 0, 20);
    sl_buf_u32(out, flags);
}

static void write_sections(struct image *image)
{
    sl_buf_clear(&image->streams[IMAGE_SECTIONS]);
    section_header(&image->streams[IMAGE_SECTIONS], 0x1000, 0x60000020);
    section_header(&image->streams[IMAGE_SECTIONS], 0x2000, 0x40000040);
    sl_buf_clear(&image->streams[IMAGE_ORIGINAL]);
    section_header(&image->streams[IMAGE_ORIGINAL], 0x1000, 0x60000020);
}

struct module_sizes {
    uint32_t symbols, c13;
};

static struct module_sizes write_module(struct sl_buf *out, const struct image_module *m)
{
    sl_buf_clear(out);
    sl_buf_u32(out, 4);
    sl_buf_add(out, m->symbols.data, m->symbols.size);
    struct module_sizes sizes = {.symbols = (uint32_t)out->size};
    subsection(out, 0xF4, &m->checksums);
    sl_buf_add(out, m->lines.data, m->lines.size);
    subsection(out, 0xF6, &m->inlinees);
    subsection(out, 0xF7, &m->imports);
    subsection(out, 0xF8, &m->exports);
    sizes.c13 = (uint32_t)out->size - sizes.symbols;
    sl_buf_u32(out, 0);
    return sizes;
}

static void module_entry(struct sl_buf *out, uint16_t stream, const struct module_sizes *sizes, const char *name)
{
    sl_buf_fill(out, 0, 34);
    sl_buf_u16(out, stream);
    sl_buf_u32(out, sizes->symbols);
    sl_buf_u32(out, 0);
    sl_buf_u32(out, sizes->c13);
    sl_buf_fill(out, 0, 16);
    sl_buf_add(out, name, strlen(name) + 1);
    sl_buf_add(out, name, strlen(name) + 1);
    sl_buf_align(out, 4);
}

static void write_debug(struct image *image)
{
    struct sl_buf modules = {0}, *out = &image->streams[IMAGE_DEBUG];
    struct module_sizes a = write_module(&image->streams[IMAGE_MODULE_A], &image->modules[0]);
    struct module_sizes b = write_module(&image->streams[IMAGE_MODULE_B], &image->modules[1]);
    module_entry(&modules, IMAGE_MODULE_A, &a, "C:\\A.obj");
    module_entry(&modules, IMAGE_MODULE_B, &b, "C:\\B.obj");
    sl_buf_clear(out);
    sl_buf_u32(out, 0xFFFFFFFF);
    sl_buf_u32(out, 19990903);
    sl_buf_u32(out, 3); /* age */
    sl_buf_fill(out, 0, 8);
    sl_buf_u16(out, IMAGE_PUBLICS);
    sl_buf_u16(out, 0);
    sl_buf_u32(out, (uint32_t)modules.size);
    sl_buf_fill(out, 0, 20);
    sl_buf_u32(out, 22); /* debug header */
    sl_buf_fill(out, 0, 6);
    sl_buf_u16(out, 0x8664);
    sl_buf_u32(out, 0);
    sl_buf_add(out, modules.data, modules.size);
    for (unsigned i = 0; i < 11; i++)
        sl_buf_u16(out, i == 5                                                ? IMAGE_SECTIONS
                        : i == 0                                              ? IMAGE_FPO
                        : i == 9                                              ? IMAGE_FRAMES
                        : i == 3 && image->has_omap                           ? IMAGE_OMAP_TO
                        : i == 4 && image->has_omap                           ? IMAGE_OMAP_FROM
                        : i == 10 && image->has_omap && !image->same_sections ? IMAGE_ORIGINAL
                                                                              : 0xFFFF);
    sl_buf_free(&modules);
}

/* ---- the container ---- */

struct pages {
    struct sl_buf *file;
    unsigned size;
    bool scattered;
    uint32_t next;
};

static uint32_t page_count(const struct pages *p, size_t size)
{
    return (uint32_t)((size + p->size - 1) / p->size);
}

/* Writes a stream and appends the numbers of its pages; scattered ones go backwards. */
static void put_stream(struct pages *p, const struct sl_buf *stream, struct sl_buf *numbers)
{
    uint32_t count = page_count(p, stream->size);
    sl_buf_fill(p->file, 0, (size_t)count * p->size);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t page = p->next + (p->scattered ? count - 1 - i : i);
        size_t at = (size_t)i * p->size, left = stream->size - at;
        memcpy(p->file->data + (size_t)page * p->size, stream->data + at, left < p->size ? left : p->size);
        sl_buf_u32(numbers, page);
    }
    p->next += count;
}

static void set_u32(struct sl_buf *file, size_t at, uint32_t value)
{
    memcpy(file->data + at, &value, 4);
}

void image_write(struct image *image, struct sl_buf *file)
{
    struct pages p = {file, image->page_size ? image->page_size : 512, image->scattered, 3};
    struct sl_buf numbers = {0}, directory = {0}, list = {0}, roots = {0};
    write_types(&image->streams[IMAGE_TYPES], &image->types, image->type_count);
    write_types(&image->streams[IMAGE_IDS], &image->ids, image->id_count);
    write_names(image);
    write_sections(image);
    write_info(image);
    write_debug(image);
    sl_buf_clear(file);
    sl_buf_fill(file, 0, (size_t)3 * p.size);
    sl_buf_u32(&directory, IMAGE_STREAMS);
    for (size_t i = 0; i < IMAGE_STREAMS; i++) {
        sl_buf_u32(&directory, (uint32_t)image->streams[i].size);
        put_stream(&p, &image->streams[i], &numbers);
    }
    sl_buf_add(&directory, numbers.data, numbers.size);
    put_stream(&p, &directory, &list);
    put_stream(&p, &list, &roots);
    memcpy(file->data,
           "Microsoft C/C++ MSF 7.00\r\n\x1a"
           "DS\0\0\0",
           32);
    set_u32(file, 32, p.size);
    set_u32(file, 36, 1);
    set_u32(file, 40, p.next);
    set_u32(file, 44, (uint32_t)directory.size);
    memcpy(file->data + 52, roots.data, roots.size);
    sl_buf_free(&numbers);
    sl_buf_free(&directory);
    sl_buf_free(&list);
    sl_buf_free(&roots);
}
