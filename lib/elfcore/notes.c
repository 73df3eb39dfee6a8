/* Notes of a core: struct elf_prstatus and elf_prpsinfo of linux/elfcore.h, siginfo_t, and the lists that other files read. */
#include "elfcore/impl.h"

enum {
    NT_PRSTATUS = 1,
    NT_PRPSINFO = 3,
    NT_AUXV = 6,
    NT_SIGINFO = 0x53494749,
    NT_FILE = 0x46494C45,
    NT_ARM_PAC_MASK = 0x406,
    EM_MIPS = 8,
};

/* Moves over the padding that follows `size` bytes. At the end of a truncated segment there may be none. */
static void skip_padding(struct sl_reader *r, uint64_t size, uint64_t alignment)
{
    uint64_t padding = -size & (alignment - 1);
    sl_reader_skip(r, padding < sl_reader_left(r) ? padding : sl_reader_left(r));
}

bool core_next_note(struct sl_reader *r, uint64_t alignment, struct core_note *note)
{
    uint64_t unit = alignment == 8 ? 8 : 4;
    uint32_t name_size = sl_read_u32(r), size = sl_read_u32(r);
    note->type = sl_read_u32(r);
    struct sl_bytes name = sl_read_bytes(r, name_size);
    if (r->failed)
        return false;
    skip_padding(r, 12 + (uint64_t)name_size, unit);
    size_t left = sl_reader_left(r);
    note->name = (struct sl_str){(const char *)name.data, strnlen((const char *)name.data, name.size)};
    note->contents = sl_read_bytes(r, size < left ? size : left);
    skip_padding(r, size, unit);
    return true;
}

/* ---- threads ---- */

/* MIPS numbers many signals differently (signal(7)); returns the number that all others use. */
static uint32_t usual_signal(const struct core_reader *c, uint32_t signal)
{
    static const uint8_t mips[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  7,  11, 31, 13, 14, 15,
                                   10, 12, 17, 30, 28, 23, 29, 19, 20, 18, 21, 22, 26, 27, 24, 25};
    return c->machine == EM_MIPS && signal < sizeof mips ? mips[signal] : signal;
}

/* Adds a thread by its struct elf_prstatus: the signal is at 12, the id at 32, the registers at 112; in 32-bit cores the id is at 24, the
 * registers at 72. The kernel writes the crashed thread before all others. */
static void read_status(struct core_reader *c, struct sl_bytes contents)
{
    struct sl_reader r = core_make_reader(c, contents);
    if (c->threads.count == MAX_THREADS)
        return;
    sl_reader_seek(&r, 12);
    uint32_t signal = sl_read_u16(&r); /* pr_cursig */
    sl_reader_seek(&r, c->is_wide ? 32 : 24);
    uint32_t id = sl_read_u32(&r);
    struct sl_crash_thread *thread = r.failed ? NULL : sl_arena_array_add(&c->threads);
    struct sl_minidump_thread *more = thread ? sl_arena_array_add(&c->more_threads) : NULL;
    c->out_of_memory |= !r.failed && !more;
    if (!more)
        return;
    bool is_first = c->threads.count == 1;
    *thread = (struct sl_crash_thread){
        .id = id, .has_id = true, .requesting = is_first ? SL_REQUESTING_THREAD_YES : SL_REQUESTING_THREAD_NO};
    more->family = c->core->dump.family;
    if (is_first && !c->has_siginfo)         /* siginfo_t has the signal, too, with more about it */
        c->signal = usual_signal(c, signal); /* MIPS has other numbers */
    if (c->cpu && c->cpu->registers)
        more->is_walked = core_set_registers(c, sl_bytes_from(contents, c->is_wide ? 112 : 72), thread, more);
}

/* Reads the siginfo_t of the first thread, the one that the signal ended; its note comes before the second thread's. */
static void read_signal(struct core_reader *c, struct sl_bytes contents)
{
    struct sl_reader r = core_make_reader(c, contents);
    if (c->has_siginfo || c->threads.count > 1)
        return;
    uint32_t signal = sl_read_u32(&r), second = sl_read_u32(&r), third = sl_read_u32(&r);
    if (c->is_wide)
        sl_reader_skip(&r, 4); /* padding */
    uint64_t address = core_read_word(c, &r);
    if (r.failed)
        return;
    c->has_siginfo = true;
    c->signal = usual_signal(c, signal);                 /* MIPS has other numbers */
    c->si_code = c->machine == EM_MIPS ? second : third; /* elsewhere si_errno comes first */
    c->fault_address = address;
}

/* ---- the process ---- */

/* Reads struct elf_prpsinfo; of several the first counts. Its three sizes follow from those of `unsigned long` and of uid_t. */
static void read_process(struct core_reader *c, struct sl_bytes contents)
{
    static const struct {
        uint16_t size, pid, name;
    } layouts[] = {{124, 12, 28}, {128, 16, 32}, {136, 24, 40}}; /* 32-bit: uid_t of 16, of 32 bits; 64-bit */
    struct sl_elfcore *core = c->core;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (contents.size != layouts[i].size || core->dump.has_process_id)
            continue;
        struct sl_reader r = core_make_reader(c, contents);
        sl_reader_seek(&r, layouts[i].pid);
        core->dump.process_id = sl_read_u32(&r);
        core->dump.has_process_id = true;
        /* pr_fname has 16 bytes, pr_psargs after it 80 */
        core->name = core_text(c, sl_bytes_part(contents, layouts[i].name, 16));
        core->command_line = sl_str_trimmed(core_text(c, sl_bytes_part(contents, layouts[i].name + 16u, 80)));
    }
}

/* Reads struct user_pac_mask of AArch64: the bits of addresses that hold authentication codes are the ones from the lowest bit of
 * insn_mask on. */
static void read_pac_mask(struct core_reader *c, struct sl_bytes contents)
{
    struct sl_reader r = core_make_reader(c, contents);
    sl_reader_skip(&r, 8); /* data_mask */
    uint64_t mask = sl_read_u64(&r);
    if (!r.failed && mask)
        c->core->dump.address_mask = (mask & -mask) - 1;
}

/* Reads one note. The types of "CORE" and "LINUX" notes overlap, so that both name and type are compared; other notes are ignored. */
static void read_note(struct core_reader *c, const struct core_note *note)
{
    bool is_linux = sl_str_equal(note->name, SL_STR("LINUX"));
    if (is_linux && note->type == NT_ARM_PAC_MASK && c->core->dump.family == SL_CPU_ARM64)
        read_pac_mask(c, note->contents);
    if (!sl_str_equal(note->name, SL_STR("CORE")))
        return;
    switch (note->type) {
    case NT_PRSTATUS: read_status(c, note->contents); break;
    case NT_PRPSINFO: read_process(c, note->contents); break;
    case NT_SIGINFO: read_signal(c, note->contents); break;
    case NT_AUXV: c->auxv = note->contents; break;
    case NT_FILE: c->files = note->contents; break;
    default: break;
    }
}

/* Reads the notes of all PT_NOTE segments, at most MAX_NOTES bytes of them, until memory runs out. */
void core_read_notes(struct core_reader *c)
{
    /* segments of one file do not overlap, so that all notes together are at most as long as the file */
    uint64_t left = c->bytes.size < MAX_NOTES ? c->bytes.size : MAX_NOTES;
    struct core_note note;
    for (size_t i = 0; i < c->segment_count; i++) {
        const struct core_segment *segment = &c->segments[i];
        if (segment->type != PT_NOTE)
            continue;
        struct sl_bytes bytes = sl_bytes_part(c->bytes, segment->offset, segment->file_size);
        bytes.size = bytes.size < left ? bytes.size : (size_t)left;
        left -= bytes.size;
        struct sl_reader r = core_make_reader(c, bytes);
        while (sl_reader_left(&r) && !c->out_of_memory && core_next_note(&r, segment->alignment, &note))
            read_note(c, &note);
    }
}
