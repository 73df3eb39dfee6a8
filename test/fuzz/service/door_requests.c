/* Bodies of upload doors from hostile hands: what sym_upload says of a file, which is not quite JSON, and which chunks sentry-cli wants
 * to be joined; and the messages of Pyroscope's clients. */
#include "api/pyroscope/pyroscope.h"
#include "api/sentry/sentry.h"
#include "api/sym_upload/sym_upload.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(struct sl_str text, struct sl_str body)
{
    if (text.data && (text.data < body.data || text.data + text.size > body.data + body.size))
        abort(); /* texts are views of the body */
}

/* Reads the body as each message, and writes what it says into a list and a record. */
static void check_connect(struct sl_bytes body, bool is_json, bool has_file)
{
    struct sl_arena arena = {0};
    struct sl_error error;
    struct sl_buf list = {0}, record = {0};
    struct debuginfo_object object = {.state = DEBUGINFO_RUNNING}, again;
    if (debuginfo_read(body, is_json, has_file, &arena, &object.file, &error) == SL_OK) {
        debuginfo_write_list(is_json, &object, 1, &list);
        debuginfo_write_record(&object, &record);
        if (debuginfo_read_record(sl_buf_view(&record), &arena, &again) != SL_OK || again.file.type != object.file.type)
            abort();
    }
    sl_buf_free(&list);
    sl_buf_free(&record);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str body = {(const char *)data, size};
    struct symbol_description told;
    struct sl_arena arena = {0};
    struct assembly_file *files;
    const char *problem;
    size_t count;
    struct sentry_release release;
    sentry_read_release(body, &arena, &release, &problem);
    symbol_description_read(body, &told);
    check_view(told.debug_file, body);
    check_view(told.debug_id, body);
    check_view(told.type, body);
    if (sentry_read_files(body, &arena, &files, &count, &problem))
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < files[i].chunk_count; j++)
                if (!sentry_is_sha1(files[i].chunks[j]) || !sentry_chunk_name(&arena, files[i].chunks[j]).data)
                    abort(); /* it becomes the name of a file */
    for (int i = 0; i < 4; i++)
        check_connect((struct sl_bytes){data, size}, i & 1, i & 2);
    sl_arena_free(&arena);
    return 0;
}
