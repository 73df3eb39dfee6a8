/* The symbfile reader on hostile bytes, in pieces; the index of what it gives; the extraction from hostile executables. */
#include "symbfile/extract.h"
#include "symbfile/fileid.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- what is read is written, and then read again ---- */
struct rewriting {
    struct sl_symbfile_sink sink;
    struct sl_symbfile_tree_sink trees;
    struct sl_symbfile_writer *writer; /* NULL: records are only counted */
    struct sl_buf out;
    uint64_t records;
};

static enum sl_code append(void *arg, struct sl_bytes bytes, struct sl_error *error)
{
    (void)error;
    sl_buf_add(arg, bytes.data, bytes.size);
    return SL_OK;
}

static enum sl_code on_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range,
                             struct sl_error *error)
{
    struct rewriting *r = (struct rewriting *)sink;
    enum sl_code code = r->writer ? sl_symbfile_write_range(r->writer, range, error) : SL_OK;
    r->records += code == SL_OK;
    return code;
}

static enum sl_code on_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    struct rewriting *r = (struct rewriting *)sink;
    enum sl_code code = r->writer ? sl_symbfile_write_pad(r->writer, pad, error) : SL_OK;
    r->records += code == SL_OK;
    return code;
}

static enum sl_code on_tree(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                            struct sl_error *error)
{
    struct rewriting *r = (struct rewriting *)((char *)sink - offsetof(struct rewriting, trees));
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < count && code == SL_OK; i++)
        code = on_range(&r->sink, &ranges[i], error);
    return code;
}

static void rewriting_begin(struct rewriting *r)
{
    *r = (struct rewriting){.sink = {.range = on_range, .pad = on_pad}, .trees = {on_tree}};
    r->writer = sl_symbfile_writer_new(append, &r->out, NULL);
}

static void rewriting_end(struct rewriting *r)
{
    struct rewriting again = {.sink = r->sink};
    struct sl_error error;
    if (sl_symbfile_writer_finish(r->writer, &error) == SL_OK)
        if (sl_symbfile_read(sl_buf_bytes(&r->out), &again.sink, &error) != SL_OK || again.records != r->records)
            __builtin_trap();
    sl_symbfile_writer_free(r->writer);
    sl_buf_free(&r->out);
}

static void read_symbfile(const uint8_t *data, size_t size)
{
    struct sl_symbfile_builder *builder = sl_symbfile_builder_new(-1);
    struct sl_symbfile_reader *reader = sl_symbfile_reader_new(sl_symbfile_builder_sink(builder));
    struct sl_buf out = {0};
    size_t step = size % 61 + 1;
    enum sl_code code = SL_OK;
    for (size_t at = 0; at < size && code == SL_OK; at += step)
        code = sl_symbfile_reader_feed(reader, (struct sl_bytes){data + at, size - at < step ? size - at : step}, NULL);
    if (code == SL_OK)
        sl_symbfile_reader_finish(reader, NULL);
    struct sl_symbfile_index index;
    if (sl_symbfile_builder_finish(builder, &out, NULL) == SL_OK) {
        if (sl_symbfile_index_open(sl_buf_bytes(&out), &index, NULL) != SL_OK ||
            sl_symcache_verify(&index.ranges, NULL) != SL_OK || sl_symcache_verify(&index.pads, NULL) != SL_OK)
            __builtin_trap(); /* what was written cannot be read */
        struct sl_location chain[16];
        for (uint64_t i = 0; i < 64; i++) {
            sl_symbfile_lookup_range(&index, index.base + i * 7, chain, 16);
            sl_symbfile_lookup_pad(&index, index.base + i, chain, 16);
        }
    }
    struct rewriting r;
    rewriting_begin(&r);
    sl_symbfile_read((struct sl_bytes){data, size}, &r.sink, NULL);
    rewriting_end(&r);
    sl_symbfile_builder_free(builder);
    sl_symbfile_reader_free(reader);
    sl_buf_free(&out);
}

static void extract(const uint8_t *data, size_t size)
{
    struct sl_symbfile_image *image;
    struct sl_object *object;
    struct sl_symbfile_extraction extraction;
    struct rewriting r;
    struct sl_bytes bytes = {data, size};
    if (sl_object_open(bytes, NULL, &object, NULL) != SL_OK)
        return;
    if (sl_symbfile_image_open(object, &image, NULL) == SL_OK) {
        rewriting_begin(&r);
        sl_symbfile_extract(object, image, NULL, NULL, &r.trees, &extraction, NULL);
        rewriting_end(&r);
        sl_symbfile_image_close(image);
    }
    sl_object_close(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_file_id id;
    struct sl_symbfile_index index;
    uint8_t *copy = __builtin_malloc(size + 8);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (size >= 4 && memcmp(data, "\177ELF", 4) == 0)
        extract(data, size);
    else
        read_symbfile(data, size);
    sl_symbfile_index_open((struct sl_bytes){copy, size}, &index, NULL);
    sl_file_id_parse_any((struct sl_str){(const char *)data, size < 64 ? size : 64}, &id);
    __builtin_free(copy);
    return 0;
}
