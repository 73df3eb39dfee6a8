#include "base/spill.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

enum { FIRST = 64 * 1024, IN_MEMORY = 16 << 20 };

static bool move_to_file(struct sl_spill *s, size_t size, const char *directory)
{
    int fd = sl_unlinked_file(directory);
    if (fd < 0)
        return false;
    void *data = posix_fallocate(fd, 0, (off_t)size) == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                                          : MAP_FAILED;
    if (data == MAP_FAILED) {
        close(fd);
        return false;
    }
    if (s->data) {
        memcpy(data, s->data, s->capacity);
        munmap(s->data, s->capacity);
    }
    *s = (struct sl_spill){data, size, true, fd};
    return true;
}

bool sl_spill_reserve(struct sl_spill *s, size_t size, const char *directory)
{
    if (size <= s->capacity)
        return true;
    size_t wanted = s->capacity + s->capacity / 2;
    wanted = wanted < size ? size : wanted;
    if (wanted > SIZE_MAX / 2)
        return false;
    wanted = (wanted + FIRST - 1) / FIRST * FIRST;
    if (!s->in_file && directory && wanted > IN_MEMORY)
        return move_to_file(s, wanted, directory);
    if (s->in_file && posix_fallocate(s->fd, (off_t)s->capacity, (off_t)(wanted - s->capacity)) != 0)
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
    if (s->in_file)
        close(s->fd);
    *s = (struct sl_spill){0};
}
