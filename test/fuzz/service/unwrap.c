/* Files that arrive compressed: all wrappers, at most 16 MiB of output. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fetch/fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LIMIT = 16 << 20 };
    struct sl_error error = {.message = ""};
    struct stat st;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    enum sl_code code = fetch_unwrap(fd, LIMIT, &error);
    if (code != SL_OK && code != SL_MALFORMED)
        abort();
    if (code == SL_OK && size <= LIMIT && (fstat(fd, &st) != 0 || st.st_size > LIMIT))
        abort();
    if (code == SL_MALFORMED && !error.message[0])
        abort();
    close(fd);
    return 0;
}
