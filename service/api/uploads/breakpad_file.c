/* Stores a Breakpad file that came through another API in the store of Mozilla's symbol server: packs it into a ZIP archive and stores that
 * like an uploaded one, so that the same checks apply. */
#include "api/breakpad_file.h"

#include <errno.h>
#include <zlib.h>

#include "api/uploads/uploads.h"
#include "cache/cache.h"
#include "core/pool.h"

enum { KEY_PARTS = 3, HEAD_READ = 4096 };

/* Makes the key of a Breakpad file, "<debug file>/<ID>/<file>.sym", from its first line, "MODULE <os> <cpu> <ID> <debug file>". The name of
 * the debug file may contain blanks; ".pdb" at its end is not part of <file>. */
static enum sl_code read_module_line(struct sl_str text, struct sl_arena *arena, struct sl_str *key,
                                     struct sl_error *error)
{
    struct sl_str words[5] = {{NULL, 0}}, parts[KEY_PARTS];
    size_t at = 0, end = 0;
    text.size = text.size < HEAD_READ ? text.size : HEAD_READ; /* no line end is searched behind that */
    while (end < text.size && text.data[end] != '\n' && text.data[end] != '\r')
        end++;
    for (int i = 0; i < 5; i++) {
        size_t begin = at;
        while (at < end && (i == 4 || text.data[at] != ' ')) /* word 4 goes on to the end of the line */
            at++;
        words[i] = (struct sl_str){text.data + begin, at - begin};
        at += at < end; /* skips the blank */
    }
    struct sl_buf file = {0};
    struct sl_str stem = words[4];
    if (!sl_str_equal(words[0], SL_STR("MODULE")) || !stem.size)
        return sl_fail(error, SL_MALFORMED, "the file does not begin with a MODULE line of Breakpad");
    if (sl_str_ends(stem, SL_STR(".pdb")))
        stem.size -= 4;
    sl_buf_str(&file, stem);
    sl_buf_cstr(&file, ".sym");
    parts[0] = words[4];
    parts[1] = words[3];
    parts[2] = sl_buf_move_to_arena(&file, arena);
    if (parts[2].data && uploads_make_key(arena, parts, key))
        return SL_OK;
    /* if uploads_make_key has failed, a size other than 0 says that memory was short */
    return !parts[2].data || key->size
               ? sl_fail(error, SL_BUSY, "out of memory")
               : sl_fail(error, SL_MALFORMED,
                         "the MODULE line has no hexadecimal id, or a file name that the store does not allow");
}

/* ---- the archive (PKWARE's APPNOTE, 4.3) ---- */

struct packing {
    struct sl_bytes file; /* the Breakpad file */
    struct sl_str key;    /* its name in the archive */
    struct cache_tmp tmp; /* the archive */
};

/* Returns the CRC-32 of the bytes. zlib takes sizes of 32 bits, so it gets at most 1 GiB at once. */
static uint32_t checksum(struct sl_bytes bytes)
{
    uLong crc = crc32(0, Z_NULL, 0);
    for (size_t at = 0; at < bytes.size;) {
        size_t left = bytes.size - at, size = left < 1u << 30 ? left : 1u << 30;
        crc = crc32(crc, bytes.data + at, (uInt)size);
        at += size;
    }
    return (uint32_t)crc;
}

/* Appends the fields from "version needed to extract" to the length of extra fields, which are the same in the local header of a file and
 * in its entry in the central directory. */
static void put_common(struct sl_buf *out, const struct packing *p, uint32_t crc)
{
    enum { VERSION = 10 };
    sl_buf_u16(out, VERSION); /* 1.0 */
    sl_buf_fill(out, 0, 8);   /* flags, compression method 0 (stored), time, date */
    sl_buf_u32(out, crc);
    sl_buf_u32(out, (uint32_t)p->file.size); /* compressed size: the same, as the file is not compressed */
    sl_buf_u32(out, (uint32_t)p->file.size);
    sl_buf_u16(out, (uint16_t)p->key.size);
    sl_buf_u16(out, 0); /* bytes of extra fields */
}

/* Pool work: writes a ZIP archive with the Breakpad file, not compressed, to a new temporary file. */
static enum sl_code pack(void *arg, struct sl_error *error)
{
    struct packing *p = arg;
    struct sl_buf head = {0}, end = {0};
    uint32_t crc = checksum(p->file);
    sl_buf_u32(&head, 0x04034B50); /* signature of a local file header */
    put_common(&head, p, crc);
    sl_buf_str(&head, p->key);
    sl_buf_u32(&end, 0x02014B50); /* signature of an entry in the central directory */
    sl_buf_u16(&end, 10);         /* version of the writer */
    put_common(&end, p, crc);
    sl_buf_fill(&end, 0, 14); /* comment, disk, attributes, offset of the header */
    sl_buf_str(&end, p->key);
    uint32_t directory = (uint32_t)end.size;
    sl_buf_u32(&end, 0x06054B50); /* signature of the end of the central directory */
    sl_buf_fill(&end, 0, 4);      /* numbers of disks */
    sl_buf_u16(&end, 1);          /* entries on this disk */
    sl_buf_u16(&end, 1);          /* entries in all */
    sl_buf_u32(&end, directory);  /* size of the central directory, and its offset */
    sl_buf_u32(&end, (uint32_t)(head.size + p->file.size));
    sl_buf_u16(&end, 0); /* size of the archive's comment */
    enum sl_code code = SL_OK;
    if (head.failed || end.failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if ((code = cache_tmp_create(&p->tmp, true, error)) == SL_OK && /* true: a file without a name */
             !(sl_write_all(p->tmp.fd, sl_buf_bytes(&head)) && sl_write_all(p->tmp.fd, p->file) &&
               sl_write_all(p->tmp.fd, sl_buf_bytes(&end))))
        code = store_fail_write(error, errno, "the disk");
    sl_buf_free(&head);
    sl_buf_free(&end);
    return code;
}

/* ---- storing ---- */

struct directory_listing_job {
    struct archive *archive;
    int entries;  /* file of archive_list_directory */
    bool is_read; /* archive_read_directory succeeded */
};

/* Pool work: reads the listed directory. */
static void read_listing(void *arg)
{
    struct directory_listing_job *listing = arg;
    listing->is_read = archive_read_directory(listing->archive, listing->entries);
}

/* Reads the directory of the archive, which must have one file to store; it has none if the file's name is one of those that uploads
 * ignore. SL_BUSY or SL_MALFORMED, with the text of the failure, if not. */
static enum sl_code read_directory(struct archive *archive, struct sl_error *error)
{
    struct directory_listing_job listing = {.archive = archive};
    struct sl_str why = SL_STR("the file name in the MODULE line is not that of a symbol file");
    if (archive_list_directory(archive, &listing.entries)) {
        enum sl_code code = pool_run(POOL_CONVERT, read_listing, &listing, error);
        close(listing.entries);
        if (code != SL_OK)
            return code;
    }
    if (listing.is_read && archive->count == 1)
        return SL_OK;
    if (archive->failure.text.size)
        why = archive->failure.text;
    return sl_fail(error, archive->failure.status >= 500 ? SL_BUSY : SL_MALFORMED, SL_STR_FMT, SL_STR_ARG(why));
}

/* Checks and stores the only file of the archive. `*same`: the store has it already. For a file with a forbidden text the result is
 * SL_MALFORMED, as the APIs that use this have no error of their own for it. */
static enum sl_code publish_archive(struct archive *archive, bool *same, struct sl_error *error)
{
    struct member_job check = {.archive = archive};
    enum sl_code code = read_directory(archive, error);
    if (code == SL_OK) {
        check.member = &archive->members[0];
        member_check(&check);
        code = check.code;
        if (code != SL_OK)
            *error = check.error;
    }
    if (code == SL_OK)
        code = uploads_publish(archive, STORE_REGULAR, error);
    *same = code == SL_OK && archive->members[0].skipped;
    return code == SL_PERMISSION_DENIED
               ? sl_fail(error, SL_MALFORMED, "the file contains a text that mozilla.store.disallowed_snippets forbids")
               : code;
}

enum sl_code uploads_store_breakpad_file(const struct config *config, struct sl_bytes file, struct sl_arena *arena,
                                         bool *same, struct sl_error *error)
{
    struct packing packing = {.file = file, .tmp = {.fd = -1}};
    struct sl_mapping mapping = {{NULL, 0}, 0};
    /* sizes and offsets in an archive have 32 bits; its headers take less than HEAD_READ bytes */
    if (file.size > UINT32_MAX - HEAD_READ)
        return sl_fail(error, SL_MALFORMED, "the Breakpad file is larger than 4 GiB");
    enum sl_code code =
        read_module_line((struct sl_str){(const char *)file.data, file.size}, arena, &packing.key, error);
    if (code == SL_OK)
        code = pool_call(POOL_IO | POOL_HEAVY, pack, &packing, error);
    if (code == SL_OK)
        code = pool_map_fd(packing.tmp.fd, &mapping, error);
    if (code == SL_OK) {
        struct archive archive = {.arena = arena,
                                  .config = &config->mozilla.store,
                                  .filename = SL_STR("symbols.zip"), /* uploads must end in ".zip" */
                                  .body = mapping,
                                  .fd = packing.tmp.fd,
                                  .bytes = mapping.bytes};
        code = publish_archive(&archive, same, error);
        pool_unmap(&mapping);
    }
    if (packing.tmp.fd >= 0)
        cache_tmp_discard(&packing.tmp);
    return code;
}
