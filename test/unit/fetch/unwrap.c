/* Compressed files are recognised by their first bytes and opened once. */
#include "support.h"

#include "source/zip.h"

#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

enum { SIZE = 100000 };
static uint8_t contents[SIZE];

static enum sl_code unwrap(const void *data, size_t size, uint64_t max_size, struct sl_buf *out, struct sl_error *error)
{
    int fd = empty_file();
    assert_int_equal(write(fd, data, size), size);
    error->message[0] = '\0';
    enum sl_code code = fetch_unwrap(fd, max_size, error);
    read_file(fd, out);
    close(fd);
    return code;
}

static void expect(const void *data, size_t size, const void *inner, size_t inner_size)
{
    struct sl_buf out = {0};
    struct sl_error error;
    if (unwrap(data, size, SIZE, &out, &error) != SL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(out.size, inner_size);
    assert_memory_equal(out.data, inner, inner_size);
    sl_buf_free(&out);
}

/* `message` NULL: any that is not empty. */
static void expect_malformed(const void *data, size_t size, uint64_t max_size, const char *message)
{
    struct sl_buf out = {0};
    struct sl_error error;
    assert_int_equal(unwrap(data, size, max_size, &out, &error), SL_MALFORMED);
    if (message)
        assert_string_equal(error.message, message);
    else
        assert_true(error.message[0] != '\0');
    sl_buf_free(&out);
}

/* Every beginning of a wrapped file is malformed, as is one with a byte changed that is under a checksum. */
static void expect_cuts_malformed(const struct sl_buf *file)
{
    for (size_t size = file->size / 7; size < file->size; size += file->size / 5)
        expect_malformed(file->data, size, SIZE, NULL);
}

/* ---- streams ---- */
static void deflated(const void *data, size_t size, int bits, int level, struct sl_buf *out)
{
    assert_true(sl_buf_reserve(out, size + size / 8 + 1024));
    z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)size};
    z.next_out = out->data + out->size;
    z.avail_out = (uInt)(out->capacity - out->size);
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size += z.total_out;
    deflateEnd(&z);
}

TEST(gzip_and_zlib_are_unpacked)
{
    static const int levels[] = {1, 6, 9};
    static const uint8_t second[] = {0x01, 0x9C, 0xDA};
    struct sl_buf file = {0};
    for (size_t i = 0; i < 3; i++) {
        sl_buf_clear(&file);
        deflated(contents, SIZE, MAX_WBITS, levels[i], &file);
        assert_int_equal(file.data[1], second[i]);
        expect(file.data, file.size, contents, SIZE);
        expect_cuts_malformed(&file);
    }
    sl_buf_clear(&file);
    deflated(contents, SIZE, MAX_WBITS, 5, &file); /* 78 5E is not taken for a wrapper */
    assert_int_equal(file.data[1], 0x5E);
    expect(file.data, file.size, file.data, file.size);

    sl_buf_clear(&file);
    deflated(contents, 40000, 16 + MAX_WBITS, 6, &file);
    expect_cuts_malformed(&file);
    deflated(contents + 40000, SIZE - 40000, 16 + MAX_WBITS, 6, &file); /* a second member */
    expect(file.data, file.size, contents, SIZE);
    expect_malformed(file.data, file.size, SIZE - 1, "Maximum file size exceeded");
    struct sl_buf twice = {0}; /* once, not recursively */
    deflated(file.data, file.size, 16 + MAX_WBITS, 6, &twice);
    expect(twice.data, twice.size, file.data, file.size);
    sl_buf_free(&twice);
    sl_buf_free(&file);
}

TEST(zstd_is_unpacked)
{
    struct sl_buf file = {0};
    assert_true(sl_buf_reserve(&file, 2 * ZSTD_compressBound(SIZE)));
    file.size = ZSTD_compress(file.data, file.capacity, contents, 50000, 3);
    expect_cuts_malformed(&file);
    file.size += ZSTD_compress(file.data + file.size, file.capacity - file.size, contents + 50000, SIZE - 50000, 3);
    expect(file.data, file.size, contents, SIZE);
    expect_malformed(file.data, file.size, 10, "Maximum file size exceeded");
    sl_buf_free(&file);
}

TEST(xz_is_unpacked)
{
    struct sl_buf file = {0};
    assert_true(sl_buf_reserve(&file, lzma_stream_buffer_bound(SIZE)));
    assert_int_equal(
        lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, contents, SIZE, file.data, &file.size, file.capacity),
        LZMA_OK);
    expect(file.data, file.size, contents, SIZE);
    expect_cuts_malformed(&file);
    expect_malformed(file.data, file.size, 10, "Maximum file size exceeded");
    file.data[file.size / 2] ^= 1;
    expect_malformed(file.data, file.size, SIZE, NULL);
    sl_buf_free(&file);
}

/* ---- zip ---- */
enum { BZIP2 = 12, METHOD_AT = 8, FLAGS_AT = 6, ENTRY_METHOD_AT = 10, ENTRY_FLAGS_AT = 8 };

/* Two bytes of each local header and each entry of the directory. */
static void patch_headers(struct sl_buf *out, size_t local_at, size_t entry_at, uint16_t value)
{
    static const uint8_t local[] = {'P', 'K', 3, 4}, entry[] = {'P', 'K', 1, 2};
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    for (size_t i = 0; i + 30 < out->size; i++) {
        bool is_local = memcmp(out->data + i, local, sizeof local) == 0;
        if (is_local || memcmp(out->data + i, entry, sizeof entry) == 0)
            memcpy(out->data + i + (is_local ? local_at : entry_at), bytes, sizeof bytes);
    }
}

static void zipped(unsigned members, struct sl_buf *out)
{
    char name[32];
    out->size = 0;
    struct sl_zip_writer writer = {.out = out};
    for (unsigned i = 0; i < members; i++) {
        snprintf(name, sizeof name, "../%u.pdb", i);
        sl_zip_add(&writer, sl_str(name), (struct sl_bytes){contents, SIZE});
    }
    assert_int_equal(sl_zip_finish(&writer, NULL), SL_OK);
}

/* One member as it is, with a given checksum. */
static void zip_stored(uint32_t crc, struct sl_buf *out)
{
    out->size = 0;
    for (int i = 0; i < 2; i++) { /* the local header, the directory */
        size_t at = out->size;
        sl_buf_add(out, i ? "PK\1\2\24\0" : "PK\3\4", i ? 6 : 4);
        sl_buf_add(out, "\24\0\0\0\0\0\0\0\0\0", 10);
        sl_buf_u32(out, crc);
        sl_buf_u32(out, SIZE);
        sl_buf_u32(out, SIZE);
        sl_buf_u16(out, 1);
        sl_buf_u16(out, 0);
        if (i)
            sl_buf_add(out, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 14); /* comment, disk, attributes, offset */
        sl_buf_u8(out, 'a');
        if (!i) {
            sl_buf_add(out, contents, SIZE);
        } else {
            size_t size = out->size - at;
            sl_buf_add(out, "PK\5\6\0\0\0\0\1\0\1\0", 12);
            sl_buf_u32(out, (uint32_t)size);
            sl_buf_u32(out, (uint32_t)at);
            sl_buf_u16(out, 0);
        }
    }
}

/* The time limit holds while decoding, whatever the format. */
TEST(unpacking_ends_at_the_timeout)
{
    struct sl_buf files[4] = {0}, out = {0};
    deflated(contents, SIZE, MAX_WBITS, 6, &files[0]);
    deflated(contents, SIZE, 16 + MAX_WBITS, 6, &files[1]);
    zipped(1, &files[2]);
    assert_true(sl_buf_reserve(&files[3], ZSTD_compressBound(SIZE)));
    files[3].size = ZSTD_compress(files[3].data, files[3].capacity, contents, SIZE, 3);
    for (size_t i = 0; i < 4; i++) {
        struct sl_error error = {.message = ""};
        struct decode_limits limits = {.max_size = SIZE, .until_ns = clock_mono_ns(), .timeout_ns = 1500 * MS_NS};
        int fd = empty_file();
        assert_int_equal(write(fd, files[i].data, files[i].size), files[i].size);
        assert_int_equal(unwrap_file(fd, &limits, &error), SL_TIMEOUT);
        assert_string_equal(error.message, "1.5s");
        assert_int_equal(error.duration_ns, 1500 * MS_NS);
        read_file(fd, &out); /* left as it was */
        assert_int_equal(out.size, files[i].size);
        limits.until_ns = UINT64_MAX;
        assert_int_equal(unwrap_file(fd, &limits, &error), SL_OK);
        read_file(fd, &out);
        assert_int_equal(out.size, SIZE);
        close(fd);
        sl_buf_free(&files[i]);
    }
    sl_buf_free(&out);
}

TEST(single_file_zip_is_unpacked)
{
    struct sl_buf file = {0};
    zipped(1, &file);
    expect(file.data, file.size, contents, SIZE);
    expect_cuts_malformed(&file);
    expect_malformed(file.data, file.size, SIZE - 1, "Maximum file size exceeded");
    uint32_t crc = (uint32_t)crc32(0, contents, SIZE);
    zip_stored(crc, &file);
    expect(file.data, file.size, contents, SIZE);
    zip_stored(crc ^ 1, &file);
    expect_malformed(file.data, file.size, SIZE, NULL);
    zipped(2, &file);
    expect_malformed(file.data, file.size, SIZE, "ZipArchive contains more than one symbol file");
    zipped(1, &file);
    patch_headers(&file, METHOD_AT, ENTRY_METHOD_AT, BZIP2);
    expect_malformed(file.data, file.size, SIZE, "Compression method not supported");
    zipped(1, &file);
    patch_headers(&file, FLAGS_AT, ENTRY_FLAGS_AT, 1);
    expect_malformed(file.data, file.size, SIZE, "Password required to decrypt file");
    expect_malformed("PK\3\4", 4, SIZE, NULL);
    sl_buf_free(&file);
}

/* ---- cabinets (MS-CAB): one folder, all files at its begin, blocks of at most 32768 bytes ---- */
enum { CAB_STORED, CAB_MSZIP };

static void cabinet(unsigned files, unsigned method, const char *name, struct sl_buf *out)
{
    enum { BLOCK = 32768, HEADER = 36, FOLDER = 8 };
    unsigned blocks = (SIZE + BLOCK - 1) / BLOCK;
    size_t entry = 16 + strlen(name) + 1;
    sl_buf_clear(out);
    sl_buf_cstr(out, "MSCF");
    sl_buf_fill(out, 0, 12); /* reserved, size (set below), reserved */
    sl_buf_u32(out, HEADER + FOLDER);
    sl_buf_u32(out, 0);
    sl_buf_u16(out, 0x0103);
    sl_buf_u16(out, 1);
    sl_buf_u16(out, (uint16_t)files);
    sl_buf_fill(out, 0, 6);
    sl_buf_u32(out, (uint32_t)(HEADER + FOLDER + files * entry));
    sl_buf_u16(out, (uint16_t)blocks);
    sl_buf_u16(out, (uint16_t)method);
    for (unsigned i = 0; i < files; i++) {
        sl_buf_u32(out, SIZE);
        sl_buf_fill(out, 0, 6);
        sl_buf_u16(out, 0x5000);
        sl_buf_u16(out, 0);
        sl_buf_u16(out, 0xA0); /* the name is UTF-8, or so it says */
        sl_buf_add(out, name, strlen(name) + 1);
    }
    for (size_t at = 0; at < SIZE; at += BLOCK) {
        size_t size = SIZE - at < BLOCK ? SIZE - at : BLOCK;
        struct sl_buf data = {0};
        if (method == CAB_MSZIP) {
            sl_buf_cstr(&data, "CK");
            deflated(contents + at, size, -MAX_WBITS, 6, &data);
        } else {
            sl_buf_add(&data, contents + at, size);
        }
        sl_buf_u32(out, 0); /* no checksum */
        sl_buf_u16(out, (uint16_t)data.size);
        sl_buf_u16(out, (uint16_t)size);
        sl_buf_add(out, data.data, data.size);
        sl_buf_free(&data);
    }
    uint32_t size = (uint32_t)out->size;
    memcpy(out->data + 8, &size, 4);
}

TEST(cabinets_are_unpacked)
{
    struct sl_buf file = {0};
    static const char *const names[] = {"crash.pdb", "../crash.pdb", "\xFF\xFE\x80.pdb", ""};
    for (size_t i = 0; i < 3; i++)
        for (unsigned method = CAB_STORED; method <= CAB_MSZIP; method++) {
            cabinet(1, method, names[i], &file);
            expect(file.data, file.size, contents, SIZE);
            expect_cuts_malformed(&file);
            expect_malformed(file.data, file.size, SIZE - 1, "Maximum file size exceeded");
        }
    cabinet(2, CAB_MSZIP, "a", &file);
    expect_malformed(file.data, file.size, SIZE, "cab file contains more than 1 symbol file");
    cabinet(0, CAB_MSZIP, "a", &file);
    expect_malformed(file.data, file.size, SIZE, "cab file is empty");
    expect_malformed("MSCF1234", 8, SIZE, "cab file header is cut off");
    cabinet(1, 2, "a", &file); /* Quantum, which nobody reads */
    expect_malformed(file.data, file.size, SIZE, NULL);
    sl_buf_free(&file);
}

/* ---- what is left alone ---- */
TEST(other_files_are_left_alone)
{
    static const char *const files[] = {"",       "\x1F\x8B",     "\x1F\x8B\x08", "x",
                                        "SYSB\2", "MODULE Linux", "PK\5\6xxxx",   "MSC"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        expect(files[i], strlen(files[i]), files[i], strlen(files[i]));
    expect("\xFD"
           "7zXY\0\0",
           7,
           "\xFD"
           "7zXY\0\0",
           7);
}

/* Bytes of damaged wrappers are never more than an error. */
TEST(damaged_wrappers_are_errors_at_worst)
{
    struct sl_buf files[4] = {0}, out = {0};
    struct sl_error error;
    cabinet(1, CAB_MSZIP, "crash.pdb", &files[0]);
    zipped(1, &files[1]);
    deflated(contents, SIZE, 16 + MAX_WBITS, 6, &files[2]);
    cabinet(1, CAB_STORED, "crash.pdb", &files[3]);
    for (size_t f = 0; f < 4; f++)
        for (size_t i = 0; i < 400; i++) {
            size_t size = files[f].size, at = i < 200 ? i : size - 1 - (i - 200) % size;
            uint8_t before = files[f].data[at];
            files[f].data[at] ^= (uint8_t)(1u << i % 8);
            enum sl_code code = unwrap(files[f].data, size, SIZE, &out, &error);
            assert_true(code == SL_OK || code == SL_MALFORMED);
            files[f].data[at] = before;
        }
    for (size_t f = 0; f < 4; f++)
        sl_buf_free(&files[f]);
    sl_buf_free(&out);
}

static int begin_file(void **state)
{
    for (size_t i = 0; i < SIZE; i++)
        contents[i] = (uint8_t)(i * i / 700);
    return 0;
}

TEST_FILE(.begin = begin_file);
