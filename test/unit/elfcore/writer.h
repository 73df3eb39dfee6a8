/* Core files for tests: header, program headers, notes, memory. */
#pragma once

#include "../check.h"

#include "base/file.h"
#include "elfcore/elfcore.h"

enum { WRITER_SEGMENTS = 16, WRITER_BYTES = 4096 };
enum { EM_386 = 3, EM_MIPS = 8, EM_ARM = 40, EM_X86_64 = 62, EM_AARCH64 = 183, EM_RISCV = 243 };
enum { READ = 4, WRITE = 2, EXECUTE = 1 };

struct writer {
    uint16_t machine;
    bool wide, big_endian;
    struct sl_buf notes;
    struct writer_segment {
        uint64_t address, size; /* in memory */
        uint32_t flags;
        struct sl_buf bytes; /* in the file */
    } segments[WRITER_SEGMENTS];
    size_t count;
};

static inline void put(struct sl_buf *out, const struct writer *w, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(out, (uint8_t)(value >> 8 * (w->big_endian ? size - 1 - i : i)));
}

static inline void put_word(struct sl_buf *out, const struct writer *w, uint64_t value)
{
    put(out, w, value, w->wide ? 8 : 4);
}

/* Appends a note; frees the contents. */
static inline void put_note(struct sl_buf *out, const struct writer *w, const char *name, uint32_t type,
                            struct sl_buf bytes)
{
    put(out, w, strlen(name) + 1, 4);
    put(out, w, bytes.size, 4);
    put(out, w, type, 4);
    sl_buf_add(out, name, strlen(name) + 1);
    sl_buf_align(out, 4);
    sl_buf_str(out, sl_buf_view(&bytes));
    sl_buf_align(out, 4);
    sl_buf_free(&bytes);
}

/* Adds a thread whose registers are `first`, `first` + 1 and so on, `count` words. */
static inline void put_thread(struct writer *w, uint32_t id, uint16_t signal, uint64_t first, size_t count)
{
    struct sl_buf b = {0};
    sl_buf_fill(&b, 0, 12);
    put(&b, w, signal, 2);
    sl_buf_fill(&b, 0, (w->wide ? 32 : 24) - 14);
    put(&b, w, id, 4);
    sl_buf_fill(&b, 0, (w->wide ? 112 : 72) - b.size);
    for (size_t i = 0; i < count; i++)
        put_word(&b, w, first + i);
    sl_buf_fill(&b, 0, 8);
    put_note(&w->notes, w, "CORE", 1, b);
}

static inline struct sl_buf *add_memory(struct writer *w, uint64_t address, uint64_t size, uint32_t flags)
{
    struct writer_segment *s = &w->segments[w->count++];
    *s = (struct writer_segment){.address = address, .size = size, .flags = flags};
    return &s->bytes;
}

static inline void put_segment(struct sl_buf *out, const struct writer *w, uint32_t type, uint32_t flags,
                               uint64_t offset, uint64_t address, uint64_t file_size, uint64_t memory_size)
{
    put(out, w, type, 4);
    if (w->wide)
        put(out, w, flags, 4);
    put_word(out, w, offset);
    put_word(out, w, address);
    put_word(out, w, 0);
    put_word(out, w, file_size);
    put_word(out, w, memory_size);
    if (!w->wide)
        put(out, w, flags, 4);
    put_word(out, w, 4);
}

/* Appends an ELF header; program headers follow it. */
static inline void put_header(struct sl_buf *out, const struct writer *w, uint16_t type, uint16_t count)
{
    const uint8_t ident[] = {0x7F, 'E', 'L', 'F', w->wide ? 2 : 1, w->big_endian ? 2 : 1, 1};
    size_t size = w->wide ? 64 : 52, begin = out->size;
    sl_buf_add(out, ident, sizeof ident);
    sl_buf_fill(out, 0, 16 - sizeof ident);
    put(out, w, type, 2);
    put(out, w, w->machine, 2);
    put(out, w, 1, 4);
    put_word(out, w, 0);
    put_word(out, w, size);
    put_word(out, w, 0);
    put(out, w, 0, 4);
    put(out, w, size, 2);
    put(out, w, w->wide ? 56 : 32, 2);
    put(out, w, count, 2);
    sl_buf_fill(out, 0, size - (out->size - begin));
}

/* Appends the first page of a library: a code segment at `code`, and a build id of 20 bytes `id`. */
static inline void put_image(struct sl_buf *out, const struct writer *w, uint64_t code, char id)
{
    struct sl_buf notes = {0}, bytes = {0};
    size_t headers = (w->wide ? 64 : 52) + 3 * (w->wide ? 56 : 32);
    sl_buf_fill(&bytes, (uint8_t)id, 20);
    put_note(&notes, w, "GNU", 3, bytes);
    put_header(out, w, 3, 3);
    put_segment(out, w, 1, READ, 0, 0, 0x1000, 0x1000);
    put_segment(out, w, 1, READ | EXECUTE, code, code, 0x1000, 0x1000);
    put_segment(out, w, 4, READ, headers, headers, notes.size, notes.size);
    sl_buf_str(out, sl_buf_view(&notes));
    sl_buf_free(&notes);
    sl_buf_align(out, WRITER_BYTES);
}

/* Returns the file and empties the writer. */
static inline struct sl_buf finish(struct writer *w)
{
    struct sl_buf out = {0};
    uint64_t at = (w->wide ? 64 : 52) + (w->count + 1) * (w->wide ? 56 : 32);
    put_header(&out, w, 4, (uint16_t)(w->count + 1));
    put_segment(&out, w, 4, 0, at, 0, w->notes.size, 0);
    at += w->notes.size;
    for (size_t i = 0; i < w->count; i++) {
        const struct writer_segment *s = &w->segments[i];
        put_segment(&out, w, 1, s->flags, at, s->address, s->bytes.size, s->size);
        at += s->bytes.size;
    }
    sl_buf_str(&out, sl_buf_view(&w->notes));
    for (size_t i = 0; i < w->count; i++) {
        sl_buf_str(&out, sl_buf_view(&w->segments[i].bytes));
        sl_buf_free(&w->segments[i].bytes);
    }
    sl_buf_free(&w->notes);
    w->count = 0;
    assert_false(out.failed);
    return out;
}

/* Adds the note NT_FILE for mappings that follow each other in `rows`: begin, end, offset in pages of 0x1000. */
struct mapping_row {
    uint64_t begin, end, page;
    const char *name;
};
static inline void put_files(struct writer *w, const struct mapping_row *rows, size_t count)
{
    struct sl_buf b = {0};
    put_word(&b, w, count);
    put_word(&b, w, 0x1000);
    for (size_t i = 0; i < count; i++) {
        put_word(&b, w, rows[i].begin);
        put_word(&b, w, rows[i].end);
        put_word(&b, w, rows[i].page);
    }
    for (size_t i = 0; i < count; i++)
        sl_buf_add(&b, rows[i].name, strlen(rows[i].name) + 1);
    put_note(&w->notes, w, "CORE", 0x46494C45, b);
}
