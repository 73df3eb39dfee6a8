#include "base/spill.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STEP = 64 * 1024,     /* sizes are multiples of this */
    IN_MEMORY = 16 << 20, /* larger arrays move into the file */
};
static const uint64_t part_size = UINT64_C(1) << 38; /* bytes of the file for each array; what is not used is a hole */

void sl_spill_into(struct sl_spill *s, int fd, unsigned part)
{
    s->may_spill = true;
    s->fd = fd;
    s->offset = part * part_size;
}

/* Allocates `size` bytes of the file, maps them and copies the array there. False if there is no disk space or memory; the array is then
 * unchanged. */
static bool move_to_file(struct sl_spill *s, size_t size)
{
    void *data = posix_fallocate(s->fd, (off_t)s->offset, (off_t)size) == 0
                     ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)s->offset)
                     : MAP_FAILED;
    if (data == MAP_FAILED)
        return false;
    if (s->data) {
        memcpy(data, s->data, s->capacity);
        munmap(s->data, s->capacity);
    }
    s->data = data;
    s->capacity = size;
    s->in_file = true;
    return true;
}

bool sl_spill_reserve(struct sl_spill *s, size_t size)
{
    if (size <= s->capacity)
        return true;
    size_t wanted = s->capacity + s->capacity / 2;
    wanted = wanted < size ? size : wanted;
    /* an array has `part_size` bytes of the file, and stays far from the part of the next one */
    if (wanted > SIZE_MAX / 2 || (s->may_spill && wanted > part_size / 2))
        return false;
    wanted = (wanted + STEP - 1) / STEP * STEP;
    if (!s->in_file && s->may_spill && wanted > IN_MEMORY)
        return move_to_file(s, wanted);
    if (s->in_file && posix_fallocate(s->fd, (off_t)(s->offset + s->capacity), (off_t)(wanted - s->capacity)) != 0)
        return false;
    void *data = s->data ? mremap(s->data, s->capacity, wanted, MREMAP_MAYMOVE)
                         : mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    s->data = data;
    s->capacity = wanted;
    return true;
}

void sl_spill_drop_pages(const struct sl_spill *s)
{
    if (s->in_file)
        madvise(s->data, s->capacity, MADV_DONTNEED);
}

void sl_spill_free(struct sl_spill *s)
{
    if (s->data)
        munmap(s->data, s->capacity);
    *s = (struct sl_spill){0};
}
