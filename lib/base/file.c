#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets and returns the error for errno: "cannot open /a: ...". Lack of descriptors or memory is SL_BUSY: a later call may succeed. */
static enum sl_code fail_errno(struct sl_error *error, const char *what, const char *path)
{
    int number = errno;
    enum sl_code code = number == ENOENT || number == ENOTDIR ? SL_NOT_FOUND
                        : number == EACCES || number == EPERM ? SL_PERMISSION_DENIED
                                                              : SL_INTERNAL;
    if (number == EMFILE || number == ENFILE)
        return sl_fail(error, SL_BUSY, "out of file descriptors: raise the limit of open files (ulimit -n)");
    if (number == ENOMEM)
        return sl_fail(error, SL_BUSY, "out of memory");
    return sl_fail(error, code, "cannot %s %s: %s", what, path, strerror(number));
}

int sl_fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

/* Maps the open regular file `fd`, which stays open, read-only and shared. SL_INTERNAL if it is no regular file. */
enum sl_code sl_map_fd(int fd, struct sl_mapping *mapping, struct sl_error *error)
{
    /* an empty file cannot be mapped: its bytes are an empty string, and `mapped` is 0 so that nothing is unmapped */
    *mapping = (struct sl_mapping){{(const uint8_t *)"", 0}, 0};
    struct stat st;
    if (sl_fstat(fd, &st) != 0)
        return fail_errno(error, "read", "the file");
    if (!S_ISREG(st.st_mode))
        return sl_fail(error, SL_INTERNAL, "cannot map the file: it is not a regular file");
    if (st.st_size == 0)
        return SL_OK;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return fail_errno(error, "map", "the file");
    *mapping = (struct sl_mapping){{data, (size_t)st.st_size}, (size_t)st.st_size};
    return SL_OK;
}

enum sl_code sl_map_file(const char *path, struct sl_mapping *mapping, struct sl_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO would wait for its writer */
    if (fd < 0)
        return fail_errno(error, "open", path);
    enum sl_code code = sl_map_fd(fd, mapping, error);
    close(fd);
    return code;
}

void sl_unmap(struct sl_mapping *mapping)
{
    if (mapping->mapped)
        munmap((void *)mapping->bytes.data, mapping->mapped);
    *mapping = (struct sl_mapping){{NULL, 0}, 0};
}

/* Touching a page makes Linux map the pages around it, too ("fault-around"): 64 KiB, or since 6.18 the whole cached folio. Dropped ranges
 * are rounded outwards to this size, so that these pages are dropped as well. */
enum { FAULT_AROUND = 2 << 20 };

void sl_mapping_drop(const struct sl_mapping *mapping, size_t offset, size_t size)
{
    if (offset > mapping->mapped || size > mapping->mapped - offset)
        return;
    uintptr_t data = (uintptr_t)mapping->bytes.data, mask = ~(uintptr_t)(FAULT_AROUND - 1);
    /* rounded outwards, within the mapping, to include the pages that Linux has mapped around those that were read */
    uintptr_t begin = (data + offset) & mask, end = (data + offset + size + FAULT_AROUND - 1) & mask;
    begin = begin > data ? begin : data;
    end = end < data + mapping->mapped ? end : data + mapping->mapped;
    if (size)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* A kernel without preemption in system calls, as on servers, lets nothing else run on the processor during a call. So no call writes more
 * bytes than this. */
enum { MAX_WRITE = 64 * 1024 };

/* Returns how many of `size` bytes the next call of write() gets. */
static size_t next_write_size(size_t size)
{
    return size < MAX_WRITE ? size : MAX_WRITE;
}

bool sl_write_all(int fd, struct sl_bytes bytes)
{
    while (bytes.size) {
        ssize_t n = write(fd, bytes.data, next_write_size(bytes.size));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
    return true;
}

/* Writes all of `bytes` at `offset` of the file. False: see errno. */
bool sl_write_all_at(int fd, struct sl_bytes bytes, uint64_t offset)
{
    while (bytes.size) {
        ssize_t n = pwrite(fd, bytes.data, next_write_size(bytes.size), (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes.data += n;
        bytes.size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

enum { HOLE = 4096 }; /* size of a block that may become a hole in a file */

/* Returns the size of the blocks of zeros at the beginning of `bytes`, whose first byte is for offset `at` of the file; 0 if there are none
 * or `at` is not the begin of a block. */
static size_t count_zeros(struct sl_bytes bytes, uint64_t at)
{
    static const uint8_t zeros[HOLE];
    size_t size = 0;
    while (at % HOLE == 0 && bytes.size - size >= HOLE && memcmp(bytes.data + size, zeros, HOLE) == 0)
        size += HOLE;
    return size;
}

/* Returns how many bytes come before the next block of zeros; `at` is the offset of the first byte in the file. */
static size_t count_data(struct sl_bytes bytes, uint64_t at)
{
    size_t size = HOLE - at % HOLE; /* up to the begin of a block */
    while (size < bytes.size && !count_zeros(sl_bytes_part(bytes, size, HOLE), at + size))
        size += HOLE;
    return size < bytes.size ? size : bytes.size;
}

bool sl_write_sparse(int fd, struct sl_bytes bytes)
{
    /* a pipe or socket has no position, so it gets the zeros as well */
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        return sl_write_all(fd, bytes);
    while (bytes.size) {
        size_t size = count_zeros(bytes, (uint64_t)at); /* if not 0, these are skipped instead of written */
        /* else the bytes up to the next block of zeros are written */
        if (!size && !sl_write_all(fd, sl_bytes_part(bytes, 0, size = count_data(bytes, (uint64_t)at))))
            return false;
        at += (off_t)size;
        bytes = sl_bytes_from(bytes, size);
        /* moving the position past zeros makes a hole; at the end ftruncate() gives the file its size if it ends with a hole */
        if (lseek(fd, at, SEEK_SET) < 0 || (!bytes.size && ftruncate(fd, at) != 0))
            return false;
    }
    return true;
}

void sl_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

int sl_unlinked_file(const char *directory)
{
    char path[1024];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || snprintf(path, sizeof path, "%s/tmp-XXXXXX", directory) >= (int)sizeof path)
        return fd;                  /* -1 with the errno of open() if the path is too long */
    fd = mkostemp(path, O_CLOEXEC); /* for file systems without O_TMPFILE */
    if (fd >= 0)
        unlink(path);
    return fd;
}
