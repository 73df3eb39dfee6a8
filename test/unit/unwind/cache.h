/* CFI caches of files, and their text. */
#pragma once

#include "image.h"

#include "unwind/cfi.h"

static inline struct sl_buf cache_of(struct sl_bytes file, const struct sl_parallel *parallel)
{
    struct sl_buf out = {0};
    struct sl_object *object;
    struct sl_error error = {0};
    if (sl_object_open(file, NULL, &object, &error) != SL_OK ||
        sl_cfi_convert(object, parallel, &out, NULL, &error) != SL_OK)
        fail_msg("%s", error.message);
    sl_object_close(object);
    return out;
}

static inline struct sl_cfi open_cache(const struct sl_buf *file)
{
    struct sl_cfi cfi;
    struct sl_error error = {0};
    if (sl_cfi_open(sl_buf_bytes(file), &cfi, &error) != SL_OK || sl_cfi_read(&cfi, NULL, &error) != SL_OK)
        fail_msg("%s", error.message);
    return cfi;
}

/* A symbol file of these records, as bytes that reading past the end of is noticed. Free. */
static inline struct sl_buf symbol_file(const char *arch, const char *records)
{
    struct sl_buf file = {0};
    sl_buf_printf(&file, "MODULE Linux %s 3249D99D0C4049318610F4E4FB0B69360 x\n%s", arch, records);
    return file;
}

static inline struct sl_buf cache_of_records(const char *arch, const char *records)
{
    struct sl_buf file = symbol_file(arch, records), cache = cache_of(buf_bytes(&file), NULL);
    sl_buf_free(&file);
    return cache;
}

/* Terminated. Free. */
static inline struct sl_buf text_of_cache(const struct sl_buf *file)
{
    struct sl_buf out = {0};
    struct sl_unwind_text text;
    struct sl_cfi cfi = open_cache(file);
    sl_unwind_text_init_family(&text, cfi.family);
    text.write = append_text;
    text.arg = &out;
    assert_int_equal(sl_cfi_read(&cfi, &text.sink, NULL), SL_OK);
    sl_unwind_text_free(&text);
    sl_buf_u8(&out, 0);
    assert_false(out.failed);
    return out;
}
