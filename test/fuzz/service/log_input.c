/* Logs read piece by piece, packed or not: what is neither packed nor in UTF-16 comes as it is, whatever the room; other text is the
 * same with any room, as is its problem, and what comes of UTF-16 is UTF-8. The first byte says how large that is. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/symbolicate/symbolicate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_OUTPUT = 1 << 22, ROOM = 1 << 16 };

static void must(bool good)
{
    if (!good)
        abort();
}

static const char *read_all(int fd, size_t room, struct sl_buf *out, bool *is_encoded)
{
    static uint8_t piece[ROOM];
    struct log_input input = {.fd = fd};
    const char *problem = NULL;
    must(lseek(fd, 0, SEEK_SET) == 0);
    for (size_t got; out->size < MAX_OUTPUT && (got = log_input_read(&input, piece, room, &problem));) {
        must(got <= room);
        sl_buf_add(out, piece, got);
    }
    *is_encoded = input.encoding.units != LOG_BYTES || input.encoding.has_mark;
    log_input_end(&input);
    return problem;
}

static bool is_packed(struct sl_str text)
{
    return sl_str_starts(text, SL_STR("\x1F\x8B")) || sl_str_starts(text, SL_STR("\x28\xB5\x2F\xFD"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct sl_buf whole = {0}, pieces = {0};
    if (!size)
        return 0;
    if (fd < 0)
        must((fd = memfd_create("log", 0)) >= 0);
    struct sl_str text = {(const char *)data + 1, size - 1};
    must(ftruncate(fd, 0) == 0 && pwrite(fd, text.data, text.size, 0) == (ssize_t)text.size);
    bool is_encoded;
    const char *problem = read_all(fd, ROOM, &whole, &is_encoded);
    const char *again = read_all(fd, 1 + (size_t)data[0] * 16, &pieces, &is_encoded);
    if (!is_packed(text) && is_encoded) {
        must(!problem && !again && sl_str_equal(sl_buf_view(&whole), sl_buf_view(&pieces)));
        must(sl_str_starts(text, SL_STR("\xEF\xBB\xBF")) || sl_str_is_utf8(sl_buf_view(&whole)));
    } else if (!is_packed(text)) {
        must(!problem && !again);
        must(sl_str_equal(sl_buf_view(&whole), text) && sl_str_equal(sl_buf_view(&pieces), text));
    } else if (whole.size < MAX_OUTPUT && pieces.size < MAX_OUTPUT) {
        must(!problem == !again);
        must(problem || sl_str_equal(sl_buf_view(&whole), sl_buf_view(&pieces)));
    }
    sl_buf_free(&whole);
    sl_buf_free(&pieces);
    return 0;
}
