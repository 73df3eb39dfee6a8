/* Writes a core file with only the memory that reading it and walking its stacks need. Each memory segment is cut into several, those whose
 * bytes are written and those without bytes:
 *
 *     before   LOAD 0x7000..0x47000, all of it in the file, stack pointer 0x45120
 *     after    LOAD 0x7000..0x44000, nothing in the file      LOAD 0x44000..0x47000, 0x3000 bytes */
#include "elfcore/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/order.h"

enum {
    PAGE = 4096,
    MAX_STACK = 16 << 20,
    BELOW_STACK = 1024, /* kept below the stack pointer: leaf functions of x86-64 use 128 bytes there */
    NO_COUNT = 0xFFFF,  /* e_phnum if section header 0 has the number of program headers (PN_XNUM) */
};

struct trimmed_segment {         /* a segment of the new core */
    struct core_segment segment; /* with its offset in the new file */
    struct sl_bytes bytes;       /* empty: absent */
};

struct trim {
    struct core_reader *c;
    int fd;
    struct core_range *kept; /* sorted, without overlaps, whole pages */
    size_t kept_count;
    struct sl_arena_array segments;
};

/* ---- what is kept ---- */

/* Adds a range to the memory that the new core keeps. */
static void keep(struct core_reader *c, uint64_t address, uint64_t size)
{
    struct core_range *range = size ? sl_arena_array_add(c->touched) : NULL;
    c->out_of_memory |= size && !range;
    if (range)
        *range = (struct core_range){address, size};
}

/* Keeps the stack of each thread, and the whole image of [vdso], which unwinding through signal handlers may need. */
static void keep_stacks(struct core_reader *c)
{
    const struct sl_minidump *dump = &c->core->dump;
    struct sl_walk_numbers numbers;
    sl_walk_numbers(dump->family, &numbers);
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        const struct sl_minidump_memory *stack = &dump->threads[i].stack;
        if (!stack->bytes.size) /* no registers, or the core lacks the memory at the stack pointer */
            continue;
        uint64_t at = dump->threads[i].initial->value[numbers.sp];
        /* also some bytes below the stack pointer, which leaf functions use */
        uint64_t begin = at - stack->address > BELOW_STACK ? at - BELOW_STACK : stack->address;
        uint64_t left = stack->address + stack->bytes.size - begin;
        keep(c, begin, left < MAX_STACK ? left : MAX_STACK);
    }
    if (c->core->vdso.size)
        for (size_t i = 0; i < dump->memory_count; i++)
            if (dump->memory[i].bytes.data == c->core->vdso.data)
                keep(c, dump->memory[i].address, c->core->vdso.size);
}

/* Keeps the instruction at which the process crashed, if the core has it: by default the kernel leaves out code that is in files
 * (core(5)). */
static void keep_instruction(struct core_reader *c)
{
    enum { LONGEST_INSTRUCTION = 16 };
    const struct sl_minidump *dump = &c->core->dump;
    struct sl_walk_numbers numbers;
    sl_walk_numbers(dump->family, &numbers);
    for (size_t i = 0; i < dump->crash.thread_count; i++)
        if (dump->crash.threads[i].requesting == SL_REQUESTING_THREAD_YES && dump->threads[i].initial)
            core_memory(c, dump->threads[i].initial->value[numbers.pc],
                        LONGEST_INSTRUCTION); /* adds it to c->touched */
}

SL_ORDER_BY(range_by_address, struct core_range, address, size)

/* Rounds the ranges to whole pages and joins those that overlap or touch. */
static void join_kept(struct trim *t, size_t count)
{
    if (count)
        qsort(t->kept, count, sizeof *t->kept, range_by_address);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = t->kept[i].address & ~(uint64_t)(PAGE - 1);
        uint64_t end = (t->kept[i].address + t->kept[i].size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        struct core_range *last = t->kept_count ? &t->kept[t->kept_count - 1] : NULL;
        if (last && begin <= last->address + last->size) {
            if (end > last->address + last->size)
                last->size = end - last->address;
        } else if (end > begin) {
            t->kept[t->kept_count++] = (struct core_range){begin, end - begin};
        }
    }
}

/* ---- segments of the new core ---- */

/* Adds a segment to the new core with these contents, which may be shorter than they were. Its offset in the file is set later. Lack of
 * memory is recorded in t->c->out_of_memory. */
static void add_segment(struct trim *t, struct core_segment segment, struct sl_bytes bytes)
{
    struct trimmed_segment *added = sl_arena_array_add(&t->segments);
    t->c->out_of_memory |= !added;
    segment.file_size = bytes.size;
    if (added)
        *added = (struct trimmed_segment){segment, bytes};
}

/* Adds the part [begin, end) of a memory segment as a segment of the new core, with or without its bytes; nothing if it is empty. */
static void add_part(struct trim *t, const struct core_segment *s, uint64_t begin, uint64_t end, bool is_kept)
{
    struct core_segment part = *s;
    struct sl_bytes bytes = sl_bytes_part(t->c->bytes, s->offset, s->file_size);
    part.address = begin;
    part.memory_size = end - begin;
    bytes = sl_bytes_part(bytes, begin - s->address, is_kept ? end - begin : 0);
    if (end > begin)
        add_segment(t, part, bytes);
}

/* Cuts a memory segment where kept ranges begin and end, and adds the parts. */
static void cut_segment(struct trim *t, const struct core_segment *s)
{
    uint64_t at = s->address, end = s->address + s->memory_size;
    if (end < at)
        return;
    size_t i = SL_PARTITION_POINT(k, 0, t->kept_count, t->kept[k].address + t->kept[k].size <= at);
    for (; i < t->kept_count && t->kept[i].address < end; i++) {
        uint64_t first = t->kept[i].address > at ? t->kept[i].address : at;
        uint64_t beyond = t->kept[i].address + t->kept[i].size < end ? t->kept[i].address + t->kept[i].size : end;
        add_part(t, s, at, first, false); /* without its bytes */
        add_part(t, s, first, beyond, true);
        at = beyond;
    }
    add_part(t, s, at, end, false);
}

/* Lists the segments that the smaller core has: all notes, and the parts of memory that a stack trace needs. */
static void list_segments(struct trim *t)
{
    const struct core_reader *c = t->c;
    for (size_t i = 0; i < c->segment_count; i++) {
        const struct core_segment *s = &c->segments[i];
        if (s->type == PT_NOTE)
            add_segment(t, *s, sl_bytes_part(c->bytes, s->offset, s->file_size));
        else if (s->type == PT_LOAD)
            cut_segment(t, s);
    }
}

/* ---- writing ---- */

static void put_number(struct sl_buf *out, const struct core_reader *c, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(out, (uint8_t)(value >> 8 * (c->core->dump.big_endian ? size - 1 - i : i)));
}

static void put_word(struct sl_buf *out, const struct core_reader *c, uint64_t value)
{
    put_number(out, c, value, c->is_wide ? 8 : 4);
}

/* Writes the ELF header. If the number of program headers does not fit, `sections` is the offset of a section header that has it in
 * sh_info; otherwise `sections` is 0. */
static void put_header(struct sl_buf *out, const struct core_reader *c, size_t count, uint64_t sections)
{
    size_t size = c->is_wide ? 64 : 52; /* of an ELF header */
    sl_buf_add(out, c->bytes.data, 16); /* e_ident as in the core */
    put_number(out, c, ET_CORE, 2);
    put_number(out, c, c->machine, 2);
    put_number(out, c, 1, 4); /* version */
    put_word(out, c, 0);      /* entry */
    put_word(out, c, size);   /* the program headers follow this header */
    put_word(out, c, sections);
    sl_buf_add(out, sl_bytes_part(c->bytes, c->is_wide ? 48 : 36, 4).data, 4); /* flags */
    put_number(out, c, size, 2);
    put_number(out, c, core_header_size(c), 2);
    put_number(out, c, sections ? NO_COUNT : count, 2);
    put_number(out, c, sections ? (c->is_wide ? 64 : 40) : 0, 2); /* size of a section header */
    put_number(out, c, sections ? 1 : 0, 2);                      /* their number */
    put_number(out, c, 0, 2);                                     /* index of the section of names */
}

/* Writes a program header (gABI, "Program Header"): `flags` stand second in 64-bit files and next to last in 32-bit ones. The physical
 * address is not used: 0. */
static void put_segment(struct sl_buf *out, const struct core_reader *c, const struct core_segment *s)
{
    put_number(out, c, s->type, 4);
    if (c->is_wide)
        put_number(out, c, s->flags, 4);
    put_word(out, c, s->offset);
    put_word(out, c, s->address);
    put_word(out, c, 0);
    put_word(out, c, s->file_size);
    put_word(out, c, s->memory_size);
    if (!c->is_wide)
        put_number(out, c, s->flags, 4);
    put_word(out, c, s->alignment);
}

/* Writes the section header that counts the program headers. */
static void put_section(struct sl_buf *out, const struct core_reader *c, size_t count)
{
    size_t before = c->is_wide ? 44 : 28, size = c->is_wide ? 64 : 40;
    sl_buf_fill(out, 0, before);
    put_number(out, c, count, 4);
    sl_buf_fill(out, 0, size - before - 4);
}

/* Gives each segment its offset in the file: notes follow the headers, memory begins at a page. False if the segments have more than `most`
 * bytes. */
static bool place_segments(struct trimmed_segment *segments, size_t count, uint64_t at, size_t most)
{
    for (size_t i = 0; i < count; i++) {
        if (segments[i].bytes.size > most)
            return false;
        most -= segments[i].bytes.size;
        if (segments[i].segment.type == PT_LOAD && segments[i].bytes.size)
            at = (at + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        else
            at = (at + 7) & ~UINT64_C(7); /* 8 bytes: the largest alignment of notes */
        segments[i].segment.offset = at;
        at += segments[i].bytes.size;
    }
    return true;
}

/* Writes the smaller core: headers, then contents. SL_BUSY if out of memory, SL_INTERNAL if writing fails. SL_MALFORMED if segments share
 * bytes of the file so often that the smaller core would be larger than the core: programs that write cores never do so. */
static enum sl_code write_core(struct trim *t, struct sl_error *error)
{
    const struct core_reader *c = t->c;
    size_t count = t->segments.count;
    struct trimmed_segment *segments = sl_arena_array_finish(&t->segments);
    struct sl_buf head = {.budget = c->arena->budget};
    /* e_phnum has 16 bits: a count of 0xFFFF or more stands in section header 0 (64 bytes in a 64-bit core) */
    bool is_counted = count < NO_COUNT;
    uint64_t headers = (c->is_wide ? 64 : 52) + count * core_header_size(c); /* ELF header and program headers */
    if (!segments)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!place_segments(segments, count, headers + (is_counted ? 0 : 64), c->bytes.size))
        return sl_fail(error, SL_MALFORMED, "the segments of the core share bytes, so a smaller core would be larger");
    put_header(&head, c, count, is_counted ? 0 : headers);
    for (size_t i = 0; i < count; i++)
        put_segment(&head, c, &segments[i].segment);
    if (!is_counted)
        put_section(&head, c, count);
    bool good = !head.failed && sl_write_all_at(t->fd, sl_buf_bytes(&head), 0);
    for (size_t i = 0; good && i < count; i++)
        good = sl_write_all_at(t->fd, segments[i].bytes, segments[i].segment.offset);
    enum sl_code code = good          ? SL_OK
                        : head.failed ? sl_fail(error, SL_BUSY, "out of memory")
                                      : sl_fail_errno(error, errno, "cannot write the core file");
    sl_buf_free(&head);
    return code;
}

enum sl_code sl_elfcore_trim(struct sl_bytes bytes, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_elfcore core;
    struct sl_arena_array touched = {.arena = &arena, .item = sizeof(struct core_range)};
    struct core_reader c = {.core = &core, .arena = &arena, .bytes = bytes, .touched = &touched};
    struct trim t = {.c = &c, .fd = fd, .segments = {.arena = &arena, .item = sizeof(struct trimmed_segment)}};
    enum sl_code code = core_read(&c, error);
    if (code == SL_OK) {
        keep_stacks(&c);
        keep_instruction(&c);
    }
    size_t count = touched.count;
    if (code == SL_OK && (c.out_of_memory || !(t.kept = sl_arena_array_finish(&touched))))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK) {
        join_kept(&t, count);
        list_segments(&t);
        code = c.out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : write_core(&t, error);
    }
    sl_arena_array_discard(&touched);
    sl_arena_array_discard(&t.segments);
    sl_arena_free(&arena);
    return code;
}
