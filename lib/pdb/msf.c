/* Reads the multi-stream file (MSF), a small file system of pages.
 *
 *     superblock ─▶ pages of the page list ─▶ pages of the directory ─▶ per stream: size, page numbers */
#include "pdb/impl.h"

enum { MAGIC_SIZE = 32, SUPERBLOCK = 52, NO_STREAM_SIZE = 0xFFFFFFFF };
/* Page sizes from 256 bytes to 8 MiB, as logarithms. */
enum { MIN_PAGE_SHIFT = 8, MAX_PAGE_SHIFT = 23 };

enum sl_code msf_invalid(const struct msf *msf, const struct sl_budget *budget, struct sl_error *error,
                         const char *what)
{
    return *msf->no_memory ? sl_budget_fail(budget, error) : sl_fail(error, SL_MALFORMED, "invalid pdb file: %s", what);
}

/* Returns the number of pages of a stream of `size` bytes; 0 for an absent one, whose size is NO_STREAM_SIZE. */
static uint32_t count_pages(const struct msf *msf, uint32_t size)
{
    return size == (uint32_t)NO_STREAM_SIZE
               ? 0
               : (uint32_t)(((uint64_t)size + (1u << msf->page_shift) - 1) >> msf->page_shift);
}

/* Makes a stream of `size` bytes of a list of pages; sets s->flat if the pages are contiguous in the file. False if a page is outside the
 * file. */
static bool set_pages(const struct msf *msf, const uint32_t *pages, uint32_t size, struct msf_stream *s)
{
    uint32_t count = count_pages(msf, size), page_size = 1u << msf->page_shift;
    bool together = count > 0;
    *s = (struct msf_stream){msf, pages, size, NULL};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)pages[i] << msf->page_shift, need = page_size;
        if (i == count - 1) /* the last page of the stream may be cut at the end of the file */
            need = size - (uint64_t)i * page_size;
        /* page 0 is the superblock */
        if (pages[i] == 0 || pages[i] > msf->page_count || at > msf->file.size || need > msf->file.size - at)
            return false;
        together = together && pages[i] - pages[0] == i;
    }
    if (together)
        s->flat = msf->file.data + ((uint64_t)pages[0] << msf->page_shift);
    return true;
}

/* Finds stream `index`. False, with `*s` empty, if it is absent or a page of it is outside the file. Stream 0, an old copy of the
 * directory, counts as absent: set_streams() did not check its size. */
bool msf_stream(const struct msf *msf, uint32_t index, struct msf_stream *s)
{
    *s = (struct msf_stream){.msf = msf};
    if (index == 0 || index == NO_STREAM || index >= msf->stream_count || msf->sizes[index] == (uint32_t)NO_STREAM_SIZE)
        return false;
    if (set_pages(msf, msf->pages + msf->first[index], msf->sizes[index], s))
        return true;
    *s = (struct msf_stream){.msf = msf};
    return false;
}

/* Returns part of a stream: a view of the file if all pages of the stream, or at least those of the part, are contiguous; else a copy in
 * the arena. False if the part is outside the stream, or when out of memory, which is recorded. */
bool msf_view(const struct msf_stream *s, uint64_t offset, uint64_t size, struct sl_arena *arena,
              struct sl_bytes *bytes)
{
    *bytes = (struct sl_bytes){NULL, 0};
    if (offset > s->size || size > s->size - offset)
        return false;
    if (size == 0)
        return true;
    if (s->flat) {
        *bytes = (struct sl_bytes){s->flat + offset, (size_t)size};
        return true;
    }
    unsigned shift = s->msf->page_shift;
    const uint8_t *file = s->msf->file.data;
    uint64_t page = offset >> shift, last = (offset + size - 1) >> shift;
    uint64_t within = offset & ((1u << shift) - 1);
    const uint8_t *begin = file + ((uint64_t)s->pages[page] << shift) + within;
    uint64_t next = page; /* last page that is contiguous with the first */
    while (next < last && s->pages[next + 1] == s->pages[next] + 1)
        next++;
    if (next == last) {
        *bytes = (struct sl_bytes){begin, (size_t)size};
        return true;
    }
    uint8_t *copy = sl_arena_alloc(arena, (size_t)size, 8);
    if (!copy) {
        *s->msf->no_memory = true;
        return false;
    }
    for (uint64_t done = 0; done < size; page++, within = 0) {
        uint64_t part = (1u << shift) - within; /* up to the end of the page */
        if (part > size - done)
            part = size - done;
        memcpy(copy + done, file + ((uint64_t)s->pages[page] << shift) + within, (size_t)part);
        done += part;
    }
    *bytes = (struct sl_bytes){copy, (size_t)size};
    return true;
}

/* Returns `count` little-endian numbers as an array in host order; NULL if the bytes are fewer, or when out of memory, which is
 * recorded. */
static uint32_t *words(struct msf *msf, struct sl_bytes bytes, size_t count, struct sl_arena *arena)
{
    uint32_t *out = SL_ARENA_ARRAY(arena, uint32_t, count + 1);
    struct sl_reader r = sl_reader(bytes, false);
    if (!out)
        *msf->no_memory = true;
    for (size_t i = 0; out && i < count; i++)
        out[i] = sl_read_u32(&r);
    return out && !r.failed ? out : NULL;
}

/* Sets the sizes and page lists of all streams by the directory: number of streams, sizes, page numbers. False if it is too short, or if
 * the streams together have more than twice the pages of the file. Streams of real files share no pages; reading the same pages in many
 * streams would cost far more than the file's size justifies. Stream 0 is not counted: it is an old copy of the directory, whose pages
 * others may use. */
static bool set_streams(struct msf *msf, const uint32_t *directory, size_t count, struct sl_arena *arena)
{
    uint64_t pages = 0, own = 0; /* own: without stream 0 */
    if (count < 1 || directory[0] > count - 1)
        return false;
    msf->stream_count = directory[0];
    msf->sizes = directory + 1;
    msf->pages = directory + 1 + msf->stream_count;
    msf->first = SL_ARENA_ARRAY(arena, uint32_t, msf->stream_count + 1);
    if (!msf->first) {
        *msf->no_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < msf->stream_count; i++) {
        msf->first[i] = (uint32_t)pages;
        pages += count_pages(msf, msf->sizes[i]);
        own += i ? count_pages(msf, msf->sizes[i]) : 0;
        if (pages > count - 1 - msf->stream_count)
            return false;
    }
    return own <= 2 * ((msf->file.size >> msf->page_shift) + 1);
}

/* Reads the superblock: magic, page size, free page map, number of pages, size of the directory, a reserved word, page numbers of the page
 * list. Then reads the page list, which has the page numbers of the directory, and at last the directory. */
enum sl_code msf_open(struct sl_bytes file, struct sl_arena *arena, struct msf *msf, struct sl_error *error)
{
    struct sl_reader r = sl_reader(file, false);
    *msf = (struct msf){.file = file, .no_memory = SL_ARENA_NEW(arena, _Atomic bool)};
    if (!msf->no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_reader_skip(&r, MAGIC_SIZE);
    uint32_t page_size = sl_read_u32(&r);
    sl_read_u32(&r); /* free page map */
    msf->page_count = sl_read_u32(&r);
    uint32_t size = sl_read_u32(&r);
    sl_read_u32(&r); /* reserved */
    while (msf->page_shift < MAX_PAGE_SHIFT && page_size > 1u << msf->page_shift)
        msf->page_shift++;
    if (r.failed || page_size != 1u << msf->page_shift || msf->page_shift < MIN_PAGE_SHIFT)
        return msf_invalid(msf, arena->budget, error, "bad page size");
    if (size > file.size || size == (uint32_t)NO_STREAM_SIZE)
        return msf_invalid(msf, arena->budget, error, "directory is larger than the file");

    struct msf_stream stream;
    struct sl_bytes bytes = {NULL, 0};
    /* list_size: bytes of the page list, which has the number of each page of the directory; roots: number of pages of the list itself */
    uint32_t list_size = count_pages(msf, size) * 4, roots = count_pages(msf, list_size);
    uint32_t *root = words(msf, sl_bytes_slice(file, SUPERBLOCK, (uint64_t)roots * 4, NULL), roots, arena);
    if (!root || !set_pages(msf, root, list_size, &stream) || !msf_all(&stream, arena, &bytes))
        return msf_invalid(msf, arena->budget, error, "list of directory pages extends beyond the file");
    uint32_t *list = words(msf, bytes, list_size / 4, arena);
    if (!list || !set_pages(msf, list, size, &stream) || !msf_all(&stream, arena, &bytes))
        return msf_invalid(msf, arena->budget, error, "directory extends beyond the file");
    uint32_t *directory = words(msf, bytes, size / 4, arena);
    if (!directory || !set_streams(msf, directory, size / 4, arena))
        return msf_invalid(msf, arena->budget, error, "bad stream directory");
    return SL_OK;
}
