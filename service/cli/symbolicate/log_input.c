/* `symloom symbolicate`: logs, as they are or packed, in as much memory as a piece of them takes. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 };

static const struct {
    struct sl_str magic;
    enum content_coding coding;
} packings[] = {
    {{"\x1F\x8B", 2}, CODING_GZIP},
    {{"\x28\xB5\x2F\xFD", 4}, CODING_ZSTD},
};
enum { PACKINGS = sizeof packings / sizeof *packings };

/* Adds what can be read now to what is left in the block. False at the end. */
static bool log_input_fill(struct log_input *input, const char **problem)
{
    size_t kept = input->left.size;
    ssize_t n;
    memmove(input->block, input->left.data, kept);
    do
        n = read(input->fd, input->block + kept, PIECE - kept);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        *problem = strerror(errno);
    input->left = (struct sl_bytes){input->block, kept + (n > 0 ? (size_t)n : 0)};
    return n > 0;
}

/* Whether what has come so far may become this. */
static bool may_begin(struct sl_bytes bytes, struct sl_str magic)
{
    return memcmp(bytes.data, magic.data, bytes.size < magic.size ? bytes.size : magic.size) == 0;
}

/* Looks whether it is packed: at no more than it needs, as somebody may wait for the answer to a line. */
static bool log_input_begin(struct log_input *input, const char **problem)
{
    input->begun = true;
    input->block = malloc(PIECE);
    if (!input->block) {
        *problem = "out of memory";
        return false;
    }
    input->left.data = input->block;
    input->ended = !log_input_fill(input, problem);
    for (size_t i = 0; i < PACKINGS; i++) {
        while (!input->ended && input->left.size < packings[i].magic.size && may_begin(input->left, packings[i].magic))
            input->ended = !log_input_fill(input, problem);
        if (input->left.size < packings[i].magic.size || !may_begin(input->left, packings[i].magic))
            continue;
        if (!(input->decoder = decoder_new(packings[i].coding, ZSTD_WINDOW_FILES)))
            *problem = "out of memory";
        return input->decoder;
    }
    return !*problem;
}

static size_t read_plain(struct log_input *input, void *data, size_t room, const char **problem)
{
    if (!input->left.size && (input->ended || !log_input_fill(input, problem)))
        return 0;
    size_t size = input->left.size < room ? input->left.size : room;
    memcpy(data, input->left.data, size);
    input->left = sl_bytes_from(input->left, size);
    return size;
}

static size_t read_packed(struct log_input *input, void *data, size_t room, const char **problem)
{
    struct sl_buf *out = &input->unpacked;
    sl_buf_clear(out);
    while (!out->size) {
        enum sl_code code = decoder_run(input->decoder, &input->left, out, room < PIECE ? room : PIECE);
        if (code != SL_OK || out->failed) {
            *problem = code == SL_MALFORMED ? "what it is packed in is damaged" : "out of memory";
            return 0;
        }
        if (!out->size && (input->ended || !log_input_fill(input, problem))) {
            if (!*problem && !decoder_ended(input->decoder))
                *problem = "what it is packed in ends too early";
            return 0;
        }
    }
    memcpy(data, out->data, out->size);
    return out->size;
}

bool log_input_open(struct log_input *input, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    *input = (struct log_input){.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)};
    input->opened = !standard && input->fd >= 0;
    return input->fd >= 0;
}

bool log_input_waits(const struct log_input *input, int ms)
{
    struct pollfd poller = {.fd = input->fd, .events = POLLIN};
    return poll(&poller, 1, ms) > 0;
}

size_t log_input_read(struct log_input *input, void *data, size_t room, const char **problem)
{
    if (!input->begun && !log_input_begin(input, problem))
        return 0;
    return input->decoder ? read_packed(input, data, room, problem) : read_plain(input, data, room, problem);
}

void log_input_end(struct log_input *input)
{
    decoder_free(input->decoder);
    sl_buf_free(&input->unpacked);
    free(input->block);
    if (input->opened)
        close(input->fd);
}
