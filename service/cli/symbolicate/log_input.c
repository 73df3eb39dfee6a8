/* `symloom symbolicate`: reads logs in pieces of constant size, compressed or not. UTF-16 (The Unicode Standard, section 3.10), which
 * PowerShell writes for redirected output, is converted to UTF-8, and the output back to UTF-16. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* Detects the encoding of a log by its first bytes. Without a byte order mark, four bytes of which every second one is NUL are taken for
 * ASCII characters in UTF-16. */
static void log_encoding_find(struct log_encoding *e, const uint8_t *bytes, size_t size)
{
    bool little = size >= 2 && bytes[0] == 0xFF && bytes[1] == 0xFE;
    bool big = size >= 2 && bytes[0] == 0xFE && bytes[1] == 0xFF;
    e->has_mark = little || big || (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0);
    if (!e->has_mark && size >= 4) {
        little = bytes[0] && !bytes[1] && bytes[2] && !bytes[3];
        big = !bytes[0] && bytes[1] && !bytes[2] && bytes[3];
    }
    e->units = little ? LOG_UTF16_LITTLE : big ? LOG_UTF16_BIG : LOG_BYTES;
}

/* ---- in ---- */

/* Reads the 16-bit unit at `at`, in the byte order of the log. */
static uint32_t unit_at(const struct log_encoding *e, const uint8_t *at)
{
    return e->units == LOG_UTF16_BIG ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* True if the unit is the first of a surrogate pair. */
static bool is_first_half(uint32_t unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

/* True if the unit is the second of a surrogate pair. */
static bool is_second_half(uint32_t unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* Appends a character as UTF-8. */
static void add_code(struct sl_buf *out, uint32_t code)
{
    char text[4];
    sl_buf_add(out, text, sl_utf8_encode(code, text));
}

/* Decodes the first character of the pending UTF-16 bytes to `in`. False if none are pending, or if the character needs more bytes. At the
 * `end` of the log no more can come: a single last byte, and half a surrogate pair, become U+FFFD. So does a half that stands alone
 * elsewhere. */
static bool decode_pending(struct log_encoding *e, bool end)
{
    size_t size = e->pending_in_size, used = size < 2 ? size : 2;
    uint32_t code = size < 2 ? 0xFFFD : unit_at(e, e->pending_in);
    if (!size || (!end && (size < 2 || (is_first_half(code) && size < 4))))
        return false;
    uint32_t second = is_first_half(code) && size == 4 ? unit_at(e, e->pending_in + 2) : 0;
    if (is_second_half(second)) {
        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        used = 4;
    } else if (is_first_half(code) || is_second_half(code)) {
        code = 0xFFFD;
    }
    add_code(&e->in, code);
    memmove(e->pending_in, e->pending_in + used, size - used);
    e->pending_in_size -= used;
    return true;
}

/* Appends the UTF-16 bytes as UTF-8 to e->in. The bytes of an incomplete last character wait for the next call; at the `end` of the log it
 * becomes U+FFFD. */
static void log_encoding_decode(struct log_encoding *e, const uint8_t *bytes, size_t size, bool end)
{
    for (size_t i = 0; i < size; i++) {
        e->pending_in[e->pending_in_size++] = bytes[i];
        decode_pending(e, false);
    }
    while (end && decode_pending(e, true)) {
    }
}

/* ---- out ---- */

/* Appends a 16-bit unit to e->out, in the byte order of the log. */
static void put_unit(struct log_encoding *e, uint32_t unit)
{
    bool big = e->units == LOG_UTF16_BIG;
    sl_buf_u8(&e->out, (uint8_t)(big ? unit >> 8 : unit));
    sl_buf_u8(&e->out, (uint8_t)(big ? unit : unit >> 8));
}

/* Returns the size of a UTF-8 sequence by its first byte. A byte that cannot begin one counts as a sequence of one
 * byte. */
static size_t sequence_size(uint8_t first)
{
    return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Converts the UTF-8 sequence of the pending bytes to UTF-16. Values that are no character become U+FFFD, since names from mappings and
 * source maps may be ill-formed. */
static void put_sequence(struct log_encoding *e)
{
    const uint8_t *s = e->pending_out;
    size_t size = e->pending_out_size;
    uint32_t code = size == 1 ? s[0] : size == 2 ? s[0] & 0x1Fu : size == 3 ? s[0] & 0x0Fu : s[0] & 0x07u;
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (s[i] & 0x3F);
    if (code > 0x10FFFF || (size == 1 && code > 0x7F))
        code = 0xFFFD;
    if (code < 0x10000) {
        put_unit(e, code);
    } else {
        put_unit(e, 0xD800 + ((code - 0x10000) >> 10));
        put_unit(e, 0xDC00 + ((code - 0x10000) & 0x3FF));
    }
    e->pending_out_size = 0;
}

/* Sets e->out to the UTF-8 text in the encoding of the log; before the first text goes a byte order mark if the log has one. Bytes of an
 * incomplete last sequence wait for the next call. */
static void log_encoding_encode(struct log_encoding *e, struct sl_str text)
{
    bool first = !e->began_output;
    e->began_output = true;
    sl_buf_clear(&e->out);
    if (e->units == LOG_BYTES) {
        if (first && e->has_mark)
            sl_buf_cstr(&e->out, "\xEF\xBB\xBF");
        sl_buf_str(&e->out, text);
        return;
    }
    if (first && e->has_mark)
        put_unit(e, 0xFEFF);
    for (size_t i = 0; i < text.size; i++) {
        e->pending_out[e->pending_out_size++] = (uint8_t)text.data[i];
        if (e->pending_out_size == sequence_size(e->pending_out[0]))
            put_sequence(e);
    }
}

/* Frees the buffers. */
static void log_encoding_free(struct log_encoding *e)
{
    sl_buf_free(&e->in);
    sl_buf_free(&e->out);
}

/* ---- the log ---- */

/* Bytes that are read at once. */
enum { PIECE = 64 * 1024 };

/* Compressed formats, by the first bytes of a file. */
static const struct {
    struct sl_str magic;
    enum content_coding coding;
} packings[] = {
    {{"\x1F\x8B", 2}, CODING_GZIP},
    {{"\x28\xB5\x2F\xFD", 4}, CODING_ZSTD},
};
enum { PACKINGS = sizeof packings / sizeof *packings };

/* Calls read() once and appends to the block's unused bytes. False at the end and on an error, which `*problem` then describes. */
static bool log_input_fill(struct log_input *input, const char **problem)
{
    size_t unused = input->left.size;
    ssize_t n;
    memmove(input->block, input->left.data, unused);
    do
        n = read(input->fd, input->block + unused, PIECE - unused);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        *problem = strerror(errno);
    input->left = (struct sl_bytes){input->block, unused + (n > 0 ? (size_t)n : 0)};
    return n > 0;
}

/* True if the bytes begin with the magic number, or are too few but equal its beginning. */
static bool may_begin(struct sl_bytes bytes, struct sl_str magic)
{
    return memcmp(bytes.data, magic.data, bytes.size < magic.size ? bytes.size : magic.size) == 0;
}

/* Allocates the block, reads the first bytes and detects compression. False with `*problem` set: a read error or out of memory. Reads on
 * only while the bytes can be the beginning of a magic number: the writer of a pipe may wait for the answer to its first line. */
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

/* Reads bytes of a log that is not compressed; 0 at the end or with a `*problem`. */
static size_t read_plain(struct log_input *input, void *data, size_t capacity, const char **problem)
{
    if (!input->left.size && (input->ended || !log_input_fill(input, problem)))
        return 0;
    size_t size = input->left.size < capacity ? input->left.size : capacity;
    memcpy(data, input->left.data, size);
    input->left = sl_bytes_from(input->left, size);
    return size;
}

/* Reads bytes of a compressed log, decompressed; 0 at the end or with a `*problem`. */
static size_t read_packed(struct log_input *input, void *data, size_t capacity, const char **problem)
{
    struct sl_buf *out = &input->unpacked;
    sl_buf_clear(out);
    while (!out->size) {
        enum sl_code code = decoder_run(input->decoder, &input->left, out, capacity < PIECE ? capacity : PIECE);
        if (code != SL_OK || out->failed) {
            *problem = code == SL_MALFORMED ? "the compressed input is damaged" : "out of memory";
            return 0;
        }
        if (!out->size && (input->ended || !log_input_fill(input, problem))) {
            if (!*problem && !decoder_ended(input->decoder))
                *problem = "the compressed input ends early";
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

/* Reads bytes of the log, decompressed if need be, in the log's encoding; 0 at the end or with a `*problem`. */
static size_t read_bytes(struct log_input *input, void *data, size_t capacity, const char **problem)
{
    return input->decoder ? read_packed(input, data, capacity, problem) : read_plain(input, data, capacity, problem);
}

/* Copies up to `capacity` bytes of decoded text (UTF-8) from e->in to `data` and returns their number. */
static size_t copy_decoded(struct log_encoding *e, void *data, size_t capacity)
{
    size_t size = e->in.size - e->in_at < capacity ? e->in.size - e->in_at : capacity;
    memcpy(data, e->in.data + e->in_at, size);
    e->in_at += size;
    if (e->in_at == e->in.size) {
        sl_buf_clear(&e->in);
        e->in_at = 0;
    }
    return size;
}

/* Reads up to PIECE bytes and appends them to e->in as UTF-8, without a byte order mark. The first call reads until the encoding can be
 * detected. False at the end or with a `*problem`. */
static bool read_piece(struct log_input *input, const char **problem)
{
    static uint8_t piece[PIECE];
    struct log_encoding *e = &input->encoding;
    size_t size = read_bytes(input, piece, sizeof piece, problem), more = size, mark = 0;
    if (!e->known) {
        /* go on to four bytes only if the first two may be a byte order mark (0xEF or above) or UTF-16 (one of them is NUL) */
        while (more && size < 4 && (size < 2 || piece[0] >= 0xEF || !piece[0] || !piece[1])) {
            more = read_bytes(input, piece + size, sizeof piece - size, problem);
            size += more;
        }
        e->known = true;
        log_encoding_find(e, piece, size);
        mark = !e->has_mark ? 0 : e->units == LOG_BYTES ? 3 : 2; /* bytes of the byte order mark, to be skipped */
    }
    if (e->units == LOG_BYTES)
        sl_buf_add(&e->in, piece + mark, size - mark);
    else
        log_encoding_decode(e, piece + mark, size - mark, size == 0); /* size 0: the end of the log */
    if (e->in.failed)
        *problem = "out of memory";
    return size && !e->in.failed;
}

size_t log_input_read(struct log_input *input, void *data, size_t capacity, const char **problem)
{
    struct log_encoding *e = &input->encoding;
    if (!input->begun && !log_input_begin(input, problem))
        return 0;
    for (bool more = true; !e->in.size && more;) {
        if (e->known && e->units == LOG_BYTES) /* nothing to decode: read to the caller's memory */
            return read_bytes(input, data, capacity, problem);
        more = read_piece(input, problem);
    }
    return e->in.failed || !e->in.size ? 0 : copy_decoded(e, data, capacity);
}

struct sl_str log_input_encode(struct log_input *input, struct sl_str text, bool to_file, bool *ok)
{
    struct log_encoding *e = &input->encoding;
    bool keeps_encoding = to_file || !isatty(STDOUT_FILENO);
    *ok = true;
    /* bytes need no conversion, only a byte order mark before the first ones */
    if (!text.size || !keeps_encoding || (e->units == LOG_BYTES && (!e->has_mark || e->began_output)))
        return text;
    log_encoding_encode(e, text);
    *ok = !e->out.failed;
    return sl_buf_view(&e->out);
}

void log_input_end(struct log_input *input)
{
    decoder_free(input->decoder);
    sl_buf_free(&input->unpacked);
    log_encoding_free(&input->encoding);
    free(input->block);
    if (input->opened) /* not standard input */
        close(input->fd);
}
