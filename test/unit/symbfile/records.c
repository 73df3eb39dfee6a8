#include "records.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

static void print_text(struct sl_buf *out, struct sl_symbfile_text t)
{
    if (t.str.data)
        sl_buf_printf(out, "[" SL_STR_FMT "]", SL_STR_ARG(t.str));
    else
        sl_buf_cstr(out, "-");
}

static enum sl_code on_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *r, struct sl_error *error)
{
    (void)error;
    struct sl_buf *out = &((struct collector *)sink)->text;
    sl_buf_printf(out, "range %llx +%x d%u " SL_STR_FMT " ", (unsigned long long)r->va, r->length, r->depth,
                  SL_STR_ARG(r->function.str));
    print_text(out, r->file);
    sl_buf_cstr(out, " call ");
    print_text(out, r->call_file);
    sl_buf_printf(out, ":%u {", r->call_line);
    for (size_t i = 0; i < r->line_count; i++)
        sl_buf_printf(out, "%s+%x:%u", i ? " " : "", r->lines[i].offset, r->lines[i].line);
    sl_buf_cstr(out, "}\n");
    return SL_OK;
}

static enum sl_code on_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *p, struct sl_error *error)
{
    (void)error;
    struct sl_buf *out = &((struct collector *)sink)->text;
    sl_buf_printf(out, "pad %llx", (unsigned long long)p->va);
    for (size_t i = 0; i < p->count; i++) {
        sl_buf_printf(out, " " SL_STR_FMT, SL_STR_ARG(p->frames[i].function.str));
        print_text(out, p->frames[i].file);
        sl_buf_printf(out, ":%u", p->frames[i].line);
    }
    sl_buf_u8(out, '\n');
    return SL_OK;
}

void collector_init(struct collector *collector)
{
    *collector = (struct collector){.sink = {.range = on_range, .pad = on_pad}};
}

const char *collector_text(struct collector *collector)
{
    sl_buf_u8(&collector->text, 0);
    collector->text.size--;
    return (const char *)collector->text.data;
}

struct sl_bytes from_hex(const char *hex)
{
    size_t size = 0;
    uint8_t *bytes = malloc(strlen(hex) / 2 + 1);
    for (; bytes && *hex; hex++) {
        char pair[3] = {hex[0], hex[0] == ' ' ? 0 : hex[1], 0};
        if (hex[0] == ' ')
            continue;
        bytes[size++] = (uint8_t)strtoul(pair, NULL, 16);
        hex++;
    }
    return (struct sl_bytes){bytes, size};
}

struct sl_symbfile_text text(const char *s)
{
    return (struct sl_symbfile_text){{s, s ? strlen(s) : 0}, SL_SYMBFILE_INLINE};
}

const struct sl_symbfile_range *golden_ranges(void)
{
    static const struct sl_symbfile_line main_lines[] = {{0, 38}, {8, 39}, {0x18, 41}}, d_inline[] = {{0, 23}},
                                         a[] = {{0, 18}, {8, 19}, {12, 20}}, b[] = {{0, 14}, {8, 15}, {12, 16}},
                                         c[] = {{0, 10}, {8, 11}, {12, 12}},
                                         d[] = {{0, 6}, {4, 7}, {12, 6}, {16, 7}, {20, 8}};
    static struct sl_symbfile_range ranges[GOLDEN_RANGES];
    struct sl_symbfile_text file = text(GOLDEN_FILE), none = text(NULL);
    struct sl_symbfile_range all[GOLDEN_RANGES] = {
        {0x640, 0x24, 0, text("main"), file, none, 0, main_lines, 3},
        {0x64c, 0xc, 1, text("a_inline"), none, file, 40, NULL, 0},
        {0x64c, 0xc, 2, text("b_inline"), none, file, 35, NULL, 0},
        {0x64c, 0xc, 3, text("c_inline"), none, file, 31, NULL, 0},
        {0x64c, 0xc, 4, text("d_inline"), file, file, 27, d_inline, 1},
        {0x7f0, 0x14, 0, text("a"), file, none, 0, a, 3},
        {0x7d4, 0x14, 0, text("b"), file, none, 0, b, 3},
        {0x7c0, 0x14, 0, text("c"), file, none, 0, c, 3},
        {0x7a0, 0x1c, 0, text("d"), file, none, 0, d, 5},
    };
    memcpy(ranges, all, sizeof all);
    return ranges;
}

enum sl_code append_output(void *buf, struct sl_bytes bytes, struct sl_error *error)
{
    (void)error;
    sl_buf_add(buf, bytes.data, bytes.size);
    return SL_OK;
}

void sha256_hex(struct sl_bytes bytes, char out[65])
{
    uint8_t digest[32];
    SHA256(bytes.data, bytes.size, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
