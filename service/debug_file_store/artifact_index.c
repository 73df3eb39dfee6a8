/* Reads the release of an uploaded artifact bundle and the debug ids of its files, by which it is found. */
#include "debug_file_store/converters.h"

#include <stdio.h>
#include <stdlib.h>

#include "source/bundle.h"

enum { MAX_IDS = 20000 };

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(((struct sl_debug_id *)0)->uuid));
}

/* Appends the debug ids of the bundle's files as lines of hex digits, sorted, each once. SL_MALFORMED if there are more than MAX_IDS. */
static enum sl_code write_ids(struct conversion *conversion, const struct sl_bundle *bundle, struct sl_buf *lines,
                              struct sl_error *error)
{
    struct sl_arena arena = {.budget = &conversion->budget};
    size_t count = sl_bundle_count(bundle), found = 0;
    uint8_t(*ids)[16] = sl_arena_zalloc(&arena, count + 1, sizeof *ids); /* + 1: never empty */
    enum sl_code code = ids ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; ids && i < count; i++) {
        const struct sl_bundle_file *file = sl_bundle_file(bundle, i);
        if (sl_debug_id_has_uuid(&file->debug_id))
            memcpy(ids[found++], file->debug_id.uuid, sizeof *ids);
    }
    if (ids)
        qsort(ids, found, sizeof *ids, by_id);
    for (size_t i = 0, written = 0; ids && code == SL_OK && i < found; i++) {
        if (i && memcmp(ids[i], ids[i - 1], sizeof *ids) == 0)
            continue;
        sl_buf_hex(lines, ids[i], sizeof *ids);
        sl_buf_u8(lines, '\n');
        if (++written > MAX_IDS)
            code = sl_fail(error, SL_MALFORMED, "the artifact bundle has more than %d debug ids, which is the limit",
                           MAX_IDS);
    }
    sl_arena_free(&arena);
    return code;
}

/* Copies a text of the manifest; one that is too long is left out (`out` stays empty). */
static void copy_attribute(struct sl_str text, char *out, size_t size)
{
    if (text.size < size)
        snprintf(out, size, SL_STR_FMT, SL_STR_ARG(text));
}

/* The converter's function: writes the debug ids of the files in a bundle, one a line, sorted, each once. The result has the release and
 * distribution that the bundle's manifest names. */
static enum sl_code index_artifacts(struct conversion *conversion, const struct converter_call *call, void *result,
                                    struct sl_error *error)
{
    struct artifact_index_result *found = result;
    struct sl_bundle *bundle;
    struct sl_buf lines = {0};
    enum sl_code code = sl_bundle_open(converter_input_bytes(call, INPUT_FILE), &conversion->budget, &bundle, error);
    if (code != SL_OK)
        return code;
    const struct sl_bundle_attributes *attributes = sl_bundle_attributes(bundle);
    copy_attribute(attributes->release, found->release, sizeof found->release);
    copy_attribute(attributes->dist, found->dist, sizeof found->dist);
    code = write_ids(conversion, bundle, &lines, error);
    sl_bundle_close(bundle);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &lines, error);
    sl_buf_free(&lines);
    return code;
}

/* Checks the result, which a worker process has sent and which is not trusted. */
static bool check_result(const void *result)
{
    const struct artifact_index_result *found = result;
    return converter_text_is_valid(found->release, sizeof found->release) &&
           converter_text_is_valid(found->dist, sizeof found->dist);
}

const struct converter converter_artifact_index = {"artifact_index", 0, sizeof(struct artifact_index_result),
                                                   index_artifacts, check_result};
