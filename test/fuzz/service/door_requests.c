/* Bodies of upload doors from hostile hands: what sym_upload says of a file, which is not quite JSON, and which chunks sentry-cli wants
 * to be joined. */
#include "api/sentry/sentry.h"
#include "api/sym_upload/sym_upload.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(struct sl_str text, struct sl_str body)
{
    if (text.data && (text.data < body.data || text.data + text.size > body.data + body.size))
        abort(); /* texts are views of the body */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str body = {(const char *)data, size};
    struct symbol_description told;
    struct sl_arena arena = {0};
    struct assembly_file *files;
    const char *problem;
    size_t count;
    symbol_description_read(body, &told);
    check_view(told.debug_file, body);
    check_view(told.debug_id, body);
    check_view(told.type, body);
    if (sentry_read_files(body, &arena, &files, &count, &problem))
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < files[i].chunk_count; j++)
                if (!sentry_is_sha1(files[i].chunks[j]) || !sentry_chunk_name(&arena, files[i].chunks[j]).data)
                    abort(); /* it becomes the name of a file */
    sl_arena_free(&arena);
    return 0;
}
