/* A form with an archive of symbols from hostile hands: its parts, the directory of the archive, every member, and what symbol
 * files say of themselves. */
#include "api/uploads/uploads.h"

#include <stdlib.h>
#include <unistd.h>

#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum sl_code on_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    struct archive *archive = arg;
    (void)error;
    archive->filename = name;
    archive->bytes.size = 0;
    return SL_OK;
}

static enum sl_code on_data(void *arg, struct sl_bytes piece, struct sl_error *error)
{
    struct archive *archive = arg;
    (void)error;
    if (archive->bytes.size && piece.data != archive->bytes.data + archive->bytes.size)
        abort(); /* pieces follow one another */
    if (!archive->bytes.size)
        archive->bytes.data = piece.data;
    archive->bytes.size += piece.size;
    return SL_OK;
}

static void check_member(struct archive *archive, struct archive_member *member)
{
    struct member_job job = {.archive = archive, .member = member, .arena = archive->arena};
    struct sl_buf text = {0}, info = {0};
    struct sl_str again, names[2];
    struct sl_error error;
    if (!uploads_normalize_key(archive->arena, member->key, &again) || !sl_str_equal(again, member->key))
        abort(); /* it becomes the name of a file */
    member_check(&job);
    if (job.code == SL_OK && member->used > member->entry->packed)
        abort();
    if (job.code == SL_OK && sl_zip_read(&archive->zip, member->entry, 1 << 20, &text, &error) == SL_OK &&
        codeinfo_read(sl_buf_view(&text), member->key, archive->arena, &info, names) &&
        memchr(names[0].data, '\0', names[0].size))
        abort();
    sl_buf_free(&text);
    sl_buf_free(&info);
}

static void read_archive(struct archive *archive)
{
    int entries;
    bool good = archive_list_directory(archive, &entries);
    if (good) {
        good = archive_read_directory(archive, entries);
        close(entries);
    }
    if (good == (archive->failure.status != 0))
        abort(); /* a failure without a reason, or the reverse */
    for (size_t i = 0; good && i < archive->count; i++)
        if (archive->members[i].entry->size < 1 << 20)
            check_member(archive, &archive->members[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config *config;
    struct value_problems problems = {0};
    struct sl_arena arena = {0};
    struct sl_bytes body = {data, size};
    struct sl_error error;
    if (!config && config_load(NULL, &config, &problems, NULL) != SL_OK)
        abort();
    struct archive archive = {
        .arena = &arena, .config = &config->mozilla.store, .fd = -1, .body.bytes = body, .bytes = body};
    const struct multipart_callbacks callbacks = {.begin = on_begin, .data = on_data, .arg = &archive};
    struct multipart *form = multipart_new(&arena, SL_STR("B"), &callbacks);
    archive.filename = SL_STR("x.zip");
    if (size && data[0] == '-') { /* else the archive itself */
        archive.bytes.size = 0;
        if (multipart_feed(form, body, &error) == SL_OK && multipart_finish(form, &error) == SL_OK)
            read_archive(&archive);
    } else {
        read_archive(&archive);
    }
    sl_arena_free(&arena);
    return 0;
}
