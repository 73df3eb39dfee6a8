/* Dumps as tests need them: streams one behind the other, the directory at the end. */
#pragma once

#include "../check.h"

#include "minidump/minidump.h"

enum { WRITER_STREAMS = 24 };
enum { LINUX = 0x8201, ANDROID = 0x8203, MACOS = 0x8101, WINDOWS = 2, SOLARIS = 0x8202 };
enum { X86 = 0, AMD64 = 9, ARM64 = 12, PPC = 3 };

struct writer {
    struct sl_buf b;
    bool big_endian;
    uint32_t version, timestamp;
    struct {
        uint32_t type, rva, size;
    } streams[WRITER_STREAMS];
    size_t count;
};

static inline void put(struct writer *w, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(&w->b, (uint8_t)(value >> 8 * (w->big_endian ? size - 1 - i : i)));
}

static inline void put_u32(struct writer *w, uint32_t value)
{
    put(w, value, 4);
}
static inline void put_u64(struct writer *w, uint64_t value)
{
    put(w, value, 8);
}

static inline uint32_t here(const struct writer *w)
{
    return (uint32_t)w->b.size;
}

/* Overwrites a number. */
static inline void put_at(struct writer *w, uint32_t at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        w->b.data[at + i] = (uint8_t)(value >> 8 * (w->big_endian ? size - 1 - i : i));
}

static inline void put_location(struct writer *w, uint32_t size, uint32_t rva)
{
    put_u32(w, size);
    put_u32(w, rva);
}

/* Text of ASCII as the file has it; its place. */
static inline uint32_t put_string(struct writer *w, const char *text)
{
    uint32_t at = here(w);
    put_u32(w, 2 * (uint32_t)strlen(text));
    for (; *text; text++)
        put(w, (uint8_t)*text, 2);
    return at;
}

static inline uint32_t put_string8(struct writer *w, const char *text)
{
    uint32_t at = here(w);
    put_u32(w, (uint32_t)strlen(text));
    sl_buf_add(&w->b, text, strlen(text) + 1);
    return at;
}

static inline void writer_begin(struct writer *w, bool big_endian)
{
    *w = (struct writer){.big_endian = big_endian, .version = 0xA793, .timestamp = 1521713273};
    sl_buf_fill(&w->b, 0, 32);
}

/* A stream begins, or ends, here. */
static inline void stream_begin(struct writer *w, uint32_t type)
{
    assert_true(w->count < WRITER_STREAMS);
    w->streams[w->count].type = type;
    w->streams[w->count].rva = here(w);
}
static inline void stream_end(struct writer *w)
{
    w->streams[w->count].size = here(w) - w->streams[w->count].rva;
    w->count++;
}

static inline void put_system(struct writer *w, uint16_t cpu, uint32_t platform, uint32_t major, uint32_t minor,
                              uint32_t build, const char *service_pack)
{
    uint32_t text = put_string(w, service_pack);
    stream_begin(w, 7);
    put(w, cpu, 2);
    put(w, 0, 6);
    put_u32(w, major);
    put_u32(w, minor);
    put_u32(w, build);
    put_u32(w, platform);
    put_u32(w, text);
    sl_buf_fill(&w->b, 0, 28);
    stream_end(w);
}

struct wanted_thread {
    uint32_t id;
    uint64_t stack;
    uint32_t stack_size, stack_rva, context_size, context_rva;
};

static inline void put_threads(struct writer *w, const struct wanted_thread *threads, uint32_t count)
{
    stream_begin(w, 3);
    put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        put_u32(w, threads[i].id);
        sl_buf_fill(&w->b, 0, 20);
        put_u64(w, threads[i].stack);
        put_location(w, threads[i].stack_size, threads[i].stack_rva);
        put_location(w, threads[i].context_size, threads[i].context_rva);
    }
    stream_end(w);
}

struct wanted_module {
    uint64_t base;
    uint32_t size, timestamp;
    uint32_t name_rva, codeview_size, codeview_rva;
};

static inline void put_modules(struct writer *w, const struct wanted_module *modules, uint32_t count)
{
    stream_begin(w, 4);
    put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        put_u64(w, modules[i].base);
        put_u32(w, modules[i].size);
        put_u32(w, 0);
        put_u32(w, modules[i].timestamp);
        put_u32(w, modules[i].name_rva);
        sl_buf_fill(&w->b, 0, 52);
        put_location(w, modules[i].codeview_size, modules[i].codeview_rva);
        sl_buf_fill(&w->b, 0, 24);
    }
    stream_end(w);
}

struct wanted_exception {
    uint32_t thread_id, code, flags;
    uint64_t address;
    uint32_t parameter_count;
    uint64_t parameters[3];
    uint32_t context_size, context_rva;
};

static inline void put_exception(struct writer *w, const struct wanted_exception *e)
{
    stream_begin(w, 6);
    put_u32(w, e->thread_id);
    put_u32(w, 0);
    put_u32(w, e->code);
    put_u32(w, e->flags);
    put_u64(w, 0);
    put_u64(w, e->address);
    put_u32(w, e->parameter_count);
    put_u32(w, 0);
    for (unsigned i = 0; i < 15; i++)
        put_u64(w, i < 3 ? e->parameters[i] : 0);
    put_location(w, e->context_size, e->context_rva);
    stream_end(w);
}

/* Directory and header. */
static inline struct sl_bytes writer_end(struct writer *w)
{
    uint32_t directory = here(w);
    for (size_t i = 0; i < w->count; i++) {
        put_u32(w, w->streams[i].type);
        put_location(w, w->streams[i].size, w->streams[i].rva);
    }
    put_at(w, 0, 0x504D444D, 4);
    put_at(w, 4, w->version, 4);
    put_at(w, 8, w->count, 4);
    put_at(w, 12, directory, 4);
    put_at(w, 20, w->timestamp, 4);
    assert_false(w->b.failed);
    return sl_buf_bytes(&w->b);
}

/* Registers of amd64: the number of each in its value. */
static inline uint32_t put_amd64_context(struct writer *w, uint64_t rsp)
{
    uint32_t at = here(w);
    sl_buf_fill(&w->b, 0, 1232);
    put_at(w, at + 48, 0x10000B, 4);
    for (unsigned i = 0; i < 17; i++)
        put_at(w, at + 120 + 8 * i, i == 4 ? rsp : 0x100 + i, 8);
    return at;
}

/* ---- reading ---- */

static struct sl_arena arena;
static struct sl_minidump dump;
static struct writer writer;

/* A dump of a system, in place of the last one. */
static inline void begin(uint16_t cpu, uint32_t platform, bool big_endian)
{
    sl_buf_free(&writer.b);
    writer_begin(&writer, big_endian);
    put_system(&writer, cpu, platform, 10, 0, 14393, "");
}

static inline int forget(void **state)
{
    sl_arena_free(&arena);
    sl_buf_free(&writer.b);
    return 0;
}

static inline void expect_read(struct writer *w)
{
    struct sl_error error = {0};
    sl_arena_free(&arena);
    if (sl_minidump_read(writer_end(w), &arena, &dump, &error) != SL_OK)
        fail_msg("%s", error.message);
}

static inline void expect_failure(struct sl_bytes bytes, const char *message)
{
    struct sl_error error = {0};
    sl_arena_free(&arena);
    assert_int_equal(sl_minidump_read(bytes, &arena, &dump, &error), SL_MALFORMED);
    assert_string_equal(error.message, message);
}

#define expect_text(text, wanted) expect_text_at(text, wanted, __FILE__, __LINE__)
static inline void expect_text_at(struct sl_str text, const char *wanted, const char *file, int line)
{
    if (wanted ? !text.data || !sl_str_equal(text, sl_str(wanted)) : text.data != NULL) {
        print_error("\"" SL_STR_FMT "\" instead of \"%s\"\n", SL_STR_ARG(text), wanted ? wanted : "(nothing)");
        _fail(file, line);
    }
}
