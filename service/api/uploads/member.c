/* Members of an uploaded archive: checks them, and later writes them to files as the store keeps them. Converters (conversion/archives.h)
 * do both, as the archive is not trusted. */
#include "api/uploads/uploads.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/pool.h"

enum { HEAD_MAX = 8 << 10 };

/* Makes a converter's call with the archive as its input: as a file, or as bytes if the archive is only in memory. */
static struct converter_call make_call(const struct member_job *job, struct sl_bytes options)
{
    const struct archive *archive = job->archive;
    struct converter_call call = {.options = options, .out = -1};
    if (archive->fd >= 0)
        converter_add_file(&call, INPUT_FILE, archive->fd);
    else
        converter_add_bytes(&call, INPUT_FILE, archive->bytes);
    return call;
}

/* Returns where the archive lies in the converter's input: somewhere in the file of the request's body, or, if the archive is only in
 * memory, all of the bytes. */
static struct archive_window window_of_input(const struct member_job *job)
{
    return job->archive->fd >= 0 ? archive_window_of(job->archive)
                                 : (struct archive_window){0, job->archive->bytes.size};
}

/* Describes a conversion of the member: its limits of time are computed from the larger of the member's compressed and decompressed
 * sizes. */
static struct conversion_description about_member(const struct member_job *job)
{
    const struct sl_zip_entry *entry = job->member->entry;
    uint64_t size = entry->packed > entry->size ? entry->packed : entry->size;
    /* + 1 for empty members, as conversion_run takes a size of 0 for that of the whole input */
    return (struct conversion_description){.size = size + 1, .location = job->member->key};
}

/* ---- checking ---- */

/* Stores the result of the converter that has checked the member: its md5 and `used`. If the member contains a text that the
 * configuration forbids, sets job->code to SL_PERMISSION_DENIED, and job->snippet to the text. The result is not trusted: `used` is
 * limited, the text's index is checked. */
static void take_check(struct member_job *job, const struct member_check_result *result)
{
    const struct config_store *config = job->archive->config;
    memcpy(job->member->md5, result->md5, sizeof job->member->md5);
    job->member->used = result->used < job->member->entry->packed ? result->used : job->member->entry->packed;
    if (job->code != SL_OK || !result->is_forbidden)
        return;
    job->code = sl_fail(&job->error, SL_PERMISSION_DENIED, "the file contains a text that is not allowed");
    if (result->text < config->disallowed_snippet_count)
        job->snippet = config->disallowed_snippets[result->text];
    else
        job->code = sl_fail(&job->error, SL_INTERNAL,
                            "the process that checks an archive member for forbidden texts gave an "
                            "invalid answer");
}

/* Has a converter decompress the member, compute its MD5, and search it for the texts in disallowed_snippets, if scan_contents is set. */
void member_check(struct member_job *job)
{
    const struct config_store *config = job->archive->config;
    /* for the converter: where the archive lies in its input, and the member's entry in the ZIP directory */
    const struct member_check_options options = {window_of_input(job),
                                                 archive_pack_entry(&job->archive->zip, job->member->entry)};
    struct conversion_description about = about_member(job);
    struct converter_call call = make_call(job, CONVERTER_OPTIONS(options));
    struct member_check_result result;
    struct sl_buf texts = {0};
    for (size_t i = 0; config->scan_contents && i < config->disallowed_snippet_count; i++)
        archive_put_text(&texts, config->disallowed_snippets[i]);
    if (texts.size)
        converter_add_bytes(&call, INPUT_TEXTS, sl_buf_bytes(&texts));
    job->code = texts.failed ? sl_fail(&job->error, SL_BUSY, "out of memory")
                             : conversion_run(&about, &converter_member_check, &call, &result, &job->error);
    if (!texts.failed) /* `result` is set: conversion_run sets it to zero if the converter did not run */
        take_check(job, &result);
    sl_buf_free(&texts);
}

/* ---- writing ---- */

/* Makes the options of the converter that writes the member to a file: decompressed or, for one that is stored compressed, as a gzip file
 * with a header of the store, which contains the original size and MD5. */
static struct member_write_options make_write_options(const struct member_job *job)
{
    const struct archive_member *member = job->member;
    struct member_write_options options = {window_of_input(job), archive_pack_entry(&job->archive->zip, member->entry)};
    _Static_assert(STORE_GZIP_HEADER_SIZE <= sizeof options.head, "the header fits");
    options.used = member->used; /* bytes that the compressed data takes in the archive */
    if (member->is_packed) {
        options.head_size = STORE_GZIP_HEADER_SIZE;
        store_gzip_header_write(member->entry->size, member->md5, options.head);
    }
    return options;
}

/* Pool work: creates the temporary file of the member. */
static enum sl_code create_work(void *arg, struct sl_error *error)
{
    return store_tmp_file_create(&((struct member_job *)arg)->work, error);
}

/* Has a converter write the member to the temporary file, and sets meta.size to that file's size. */
static enum sl_code write_contents(struct member_job *job)
{
    const struct member_write_options options = make_write_options(job);
    struct conversion_description about = about_member(job);
    struct converter_call call = make_call(job, CONVERTER_OPTIONS(options));
    struct stat st;
    call.out = job->work.fd;
    enum sl_code code = conversion_run(&about, &converter_member_write, &call, NULL, &job->error);
    if (code == SL_OK && fstat(job->work.fd, &st) != 0)
        code = sl_fail_errno(&job->error, errno, "cannot write to the upload store");
    if (code == SL_OK)
        job->meta.size = (uint64_t)st.st_size;
    return code;
}

/* ---- metadata of a symbol file ---- */

/* Pool work: reads the metadata of a symbol file from `job->head`, which has the beginning of the decompressed file. */
static enum sl_code take_head(void *arg, struct sl_error *error)
{
    struct member_job *job = arg;
    char head[HEAD_MAX];
    ssize_t size = pread(job->head, head, sizeof head, 0);
    if (size < 0)
        return sl_fail_errno(error, errno, "cannot read the beginning of a symbol file");
    /* false is no failure: a file without metadata is stored too */
    codeinfo_read((struct sl_str){head, (size_t)size}, job->member->key, job->arena, &job->info, job->names);
    return job->info.failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Reads the metadata of a symbol file: has a converter write the first HEAD_MAX bytes, decompressed (head_size 0: no gzip header), to a
 * file in memory. A file without metadata is stored nevertheless, so of the errors in reading it only SL_BUSY and SL_CANCELLED are
 * returned. */
static enum sl_code read_info(struct member_job *job)
{
    struct member_write_options options = make_write_options(job);
    struct conversion_description about = about_member(job);
    options.head_size = 0;
    options.max_output = HEAD_MAX;
    struct converter_call call = make_call(job, CONVERTER_OPTIONS(options));
    call.out = job->head = conversion_new_output("head");
    if (job->head < 0)
        return sl_fail_errno(&job->error, errno, "cannot create a file in memory");
    enum sl_code code = conversion_run(&about, &converter_member_write, &call, NULL, &job->error);
    if (code == SL_OK)
        code = pool_call(POOL_IO, take_head, job, &job->error);
    close(job->head);
    return code == SL_BUSY || code == SL_CANCELLED ? code : SL_OK;
}

void member_write(struct member_job *job)
{
    const struct archive_member *member = job->member;
    job->meta = (struct store_meta){.is_packed = member->is_packed, .original_size = member->entry->size};
    memcpy(job->meta.md5, member->md5, sizeof job->meta.md5);
    job->meta.has_original = true;
    job->code = pool_call(POOL_IO, create_work, job, &job->error);
    if (job->code != SL_OK)
        return;
    job->code = write_contents(job);
    if (job->code == SL_OK && sl_str_ends(member->key, SL_STR(".sym")))
        job->code = read_info(job);
}
