/* Parts of the layer behind the disk that need no server: what Redis's URLs say, and packed contents, whole and damaged. */
#include <fcntl.h>
#include <unistd.h>

#include "../check.h"

#include "cache/shared.h"
#include "redis/redis.h"

TEST(redis_urls_are_parsed)
{
    static const struct {
        const char *url, *host, *port, *user, *password;
        unsigned database;
    } good[] = {
        {"redis://host", "host", "6379", "", "", 0},
        {"redis://host:1234/7", "host", "1234", "", "", 7},
        {"redis://:p@ss@host", "host", "6379", "", "p@ss", 0},
        {"redis://user:p:q@host:1/", "host", "1", "user", "p:q", 0},
        {"redis://us%40er:p%2F%3a%25@host/3", "host", "6379", "us@er", "p/:%", 3},
        {"redis://u:100%@host", "host", "6379", "u", "100%", 0},
        {"redis://[::1]:99/2?x=y", "::1", "99", "", "", 2},
        {"rediss://u:p@host", "host", "6379", "u", "p", 0},
        {"redis://[fe80::1]", "fe80::1", "6379", "", "", 0},
    };
    static const char *const bad[] = {"redis://",
                                      "rediss://",
                                      "redis://:6379",
                                      "redis://host:",
                                      "redis://host:x",
                                      "redis://host/x",
                                      "http://host",
                                      "redis://[::1",
                                      "redis://[::1]x",
                                      "redis://host/1/2",
                                      "unix://relative",
                                      "redis://u:p@",
                                      "redis://u:p%00q@host",
                                      "",
                                      "redis://host:99999999"};
    struct redis_options o;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(redis_url_parse(good[i].url, &o, NULL), SL_OK);
        assert_int_equal(o.tls, good[i].url[5] == 's');
        assert_string_equal(o.host, good[i].host);
        assert_string_equal(o.port, good[i].port);
        assert_string_equal(o.user, good[i].user);
        assert_string_equal(o.password, good[i].password);
        assert_int_equal(o.database, good[i].database);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (redis_url_parse(bad[i], &o, NULL) == SL_OK)
            fail_msg("%s", bad[i]);
    assert_int_equal(redis_url_parse("unix:///run/redis.sock", &o, NULL), SL_OK);
    assert_string_equal(o.socket, "/run/redis.sock");
}

static enum sl_code unpack(const uint8_t *data, size_t size, uint64_t max)
{
    char path[] = "/tmp/symloom-unpack-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    struct unpack_job u = {.packed = {data, size}, .fd = fd, .max_size = max};
    unpack_run(&u);
    /* Whatever is accepted is right. */
    static uint8_t back[(1 << 20) + 1], zeros[1 << 20];
    if (u.code == SL_OK) {
        assert_int_equal(pread(fd, back, sizeof back, 0), sizeof zeros);
        assert_memory_equal(back, zeros, sizeof zeros);
    }
    close(fd);
    return u.code;
}

TEST(hostile_zstd_frames_are_refused)
{
    static uint8_t zeros[1 << 20];
    struct pack_job p = {.contents = {zeros, sizeof zeros}, .max_packed = UINT64_MAX};
    pack_run(&p);
    assert_non_null(p.packed.bytes.data);
    size_t size = p.packed.bytes.size;
    assert_true(size > 8 && size < 1024);
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, p.packed.bytes.data, size);
    sl_unmap(&p.packed);
    assert_int_equal(unpack(copy, size, sizeof zeros), SL_OK);
    assert_int_equal(unpack(copy, size, sizeof zeros - 1), SL_MALFORMED);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(unpack(copy, cut, sizeof zeros), SL_MALFORMED);
    size_t refused = 0;
    for (size_t bit = 0; bit < size * 8; bit++) { /* the checksum sees what the format does not */
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refused += unpack(copy, size, sizeof zeros) == SL_MALFORMED;
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > size * 6);
    copy[size] = 0;
    assert_int_equal(unpack(copy, size + 1, sizeof zeros), SL_MALFORMED);
    free(copy);
    p = (struct pack_job){.contents = {zeros, sizeof zeros}, .max_packed = 10};
    pack_run(&p);
    assert_null(p.packed.bytes.data);
    assert_true(p.too_large);
}
