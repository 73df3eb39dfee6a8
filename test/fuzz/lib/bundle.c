/* Source bundles, manifests, line mappings, texts: the first byte of the input says which of them the rest is. What is found
 * must be found again, and lines must lie in their text. */
#include <stdlib.h>

#include "source/bundle.h"
#include "source/context.h"
#include "source/il2cpp.h"
#include "source/text.h"
#include "source/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT = 1 << 20 };

static void read_file(const struct sl_bundle *bundle, const struct sl_bundle_file *file)
{
    struct sl_buf text = {0}, url = {0};
    const struct sl_bundle_file *found = sl_bundle_by_path(bundle, file->path);
    if (file->path.size && (!found || !sl_str_equal(found->path, file->path)))
        abort();
    found = sl_bundle_by_url(bundle, file->url);
    if (file->url.size && (!found || !sl_str_equal(found->url, file->url)))
        abort();
    if (sl_bundle_read(bundle, file, MAX_TEXT, &text, NULL) == SL_OK && text.size > MAX_TEXT)
        abort();
    sl_bundle_link(bundle, file->path, &url);
    sl_buf_free(&text);
    sl_buf_free(&url);
}

static void read_bundle(struct sl_bytes bytes)
{
    struct sl_bundle *bundle;
    struct sl_error error = {0};
    if (sl_bundle_open(bytes, NULL, &bundle, &error) != SL_OK) {
        if (!error.message[0])
            abort();
        return;
    }
    for (size_t i = 0; i < sl_bundle_count(bundle); i++)
        read_file(bundle, sl_bundle_file(bundle, i));
    sl_bundle_close(bundle);
}

static void read_manifest(struct sl_bytes manifest)
{
    struct sl_buf file = {0};
    struct sl_zip_writer writer = {.out = &file};
    sl_zip_add(&writer, SL_STR("a"), (struct sl_bytes){(const uint8_t *)"text\n", 5});
    sl_zip_add(&writer, SL_STR("manifest.json"), manifest);
    if (sl_zip_finish(&writer, NULL) == SL_OK)
        read_bundle(sl_buf_bytes(&file));
    sl_buf_free(&file);
}

static void read_lines(struct sl_bytes bytes)
{
    struct sl_il2cpp *map;
    struct sl_str file;
    uint32_t line;
    if (sl_il2cpp_open(bytes, NULL, &map, NULL) != SL_OK)
        return;
    for (uint32_t i = 0; i < 100; i++)
        if (sl_il2cpp_lookup(map, SL_STR("a.cpp"), i, &file, &line) && file.size && !file.data)
            abort();
    sl_il2cpp_close(map);
}

static void check_lines(struct sl_str text, const struct sl_str *lines, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct sl_buf out = {0};
        if (lines[i].data < text.data || lines[i].data + lines[i].size > text.data + text.size)
            abort();
        sl_context_trim(&out, lines[i], i * 70);
        if (!sl_str_is_utf8(sl_buf_view(&out)) || out.size > 160)
            abort();
        sl_buf_free(&out);
    }
}

static void note(void *arg, uint32_t line, struct sl_str file, uint32_t number)
{
    uint32_t *last = arg;
    (void)file, (void)number;
    if (line < *last)
        abort();
    *last = line;
}

static void read_text(struct sl_bytes bytes)
{
    struct sl_buf scratch = {0};
    struct sl_str text;
    uint32_t last = 0;
    if (sl_text_decode(bytes, &scratch, &text)) {
        struct sl_context_cursor cursor = sl_context_cursor(text);
        struct sl_context context;
        if (!sl_str_is_utf8(text))
            abort();
        for (uint64_t line = 1; line < 200 && sl_context_at(&cursor, line, &context); line++) {
            check_lines(text, context.before, context.before_count);
            check_lines(text, &context.line, 1);
            check_lines(text, context.after, context.after_count);
        }
        sl_il2cpp_scan(text, note, &last);
    }
    sl_buf_free(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct sl_bytes) = {read_bundle, read_manifest, read_lines, read_text};
    if (size < 2)
        return 0;
    struct sl_bytes rest = {data + 1, size - 1};
    readers[data[0] % 4](rest);
    return 0;
}
