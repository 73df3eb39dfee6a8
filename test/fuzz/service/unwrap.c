/* Files that arrive compressed: all wrappers, at most 16 MiB of output; and the member "a" of an archive of many. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fetch/fetch.h"
#include "fetch/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20 };

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

static void expect(enum sl_code code, const struct sl_error *error, int fd, size_t size)
{
    struct stat st;
    if (code == SL_OK && size <= LIMIT && (fstat(fd, &st) != 0 || st.st_size > LIMIT))
        abort();
    if (code != SL_OK && !error->message[0])
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_error error = {.message = ""};
    int fd = file_of(data, size);
    enum sl_code code = fetch_unwrap(fd, LIMIT, &error);
    if (code != SL_OK && code != SL_MALFORMED)
        abort();
    expect(code, &error, fd, size);
    fd = file_of("", 0);
    struct unpack_result result;
    const struct unpack_call call = {.in = {data, size},
                                     .options = {.format = UNPACK_TAR, .max_size = LIMIT, .max_ratio = 1000},
                                     .member = SL_STR("a"),
                                     .out = fd};
    code = unpack_bytes(&call, &result, &error);
    if (code != SL_OK && code != SL_MALFORMED && code != SL_NOT_FOUND)
        abort();
    expect(code, &error, fd, size);
    return 0;
}
