/* Header, program headers and memory of a core, and the order of reading. */
#include "elfcore/impl.h"

#include <stdio.h>

enum { EI_CLASS = 4, EI_DATA = 5, CLASS_64 = 2, DATA_BIG = 2, PN_XNUM = 0xFFFF };

/* ---- numbers ---- */

struct sl_reader core_make_reader(const struct core_reader *c, struct sl_bytes bytes)
{
    return sl_reader(bytes, c->core->dump.big_endian);
}

uint64_t core_read_word(const struct core_reader *c, struct sl_reader *r)
{
    return c->is_wide ? sl_read_u64(r) : sl_read_u32(r);
}

size_t core_header_size(const struct core_reader *c)
{
    return c->is_wide ? 56 : 32;
}

struct core_segment core_read_segment(const struct core_reader *c, struct sl_reader *r)
{
    struct core_segment s = {.type = sl_read_u32(r)};
    if (c->is_wide)
        s.flags = sl_read_u32(r);
    s.offset = core_read_word(c, r);
    s.address = core_read_word(c, r);
    core_read_word(c, r); /* physical address */
    s.file_size = core_read_word(c, r);
    s.memory_size = core_read_word(c, r);
    if (!c->is_wide)
        s.flags = sl_read_u32(r);
    s.alignment = core_read_word(c, r);
    return s;
}

/* ---- memory ---- */

struct sl_bytes core_memory(struct core_reader *c, uint64_t address, uint64_t size)
{
    const struct sl_minidump_memory *memory = sl_minidump_memory_at(&c->core->dump, address);
    if (!memory)
        return (struct sl_bytes){NULL, 0};
    struct sl_bytes part = sl_bytes_part(memory->bytes, address - memory->address, size);
    /* sl_elfcore_trim keeps the memory that was read */
    struct core_range *range = c->touched ? sl_arena_array_add(c->touched) : NULL;
    c->out_of_memory |= c->touched && !range;
    if (range)
        *range = (struct core_range){address, part.size};
    return part;
}

struct sl_str core_text(struct core_reader *c, struct sl_bytes bytes)
{
    size_t most = bytes.size < MAX_NAME ? bytes.size : MAX_NAME;
    struct sl_str text = {(const char *)bytes.data, most ? strnlen((const char *)bytes.data, most) : 0};
    struct sl_buf copy = {.budget = c->arena->budget};
    if (!text.size)
        return SL_STR("");
    if (sl_str_is_utf8(text))
        return text;
    if (!sl_budget_charge(&c->budget, text.size)) /* several modules may share the bytes, and each gets a copy */
        return SL_STR("");
    sl_buf_utf8(&copy, text);
    text = sl_buf_move_to_arena(&copy, c->arena);
    c->out_of_memory |= !text.data;
    return text;
}

/* Lists the memory of the PT_LOAD segments. Of a segment that a truncated file holds in part only that part is listed. */
static void read_memory(struct core_reader *c)
{
    struct sl_minidump *dump = &c->core->dump;
    /* + 1: NULL only when out of memory */
    dump->memory = SL_ARENA_ARRAY(c->arena, struct sl_minidump_memory, c->segment_count + 1);
    c->out_of_memory |= !dump->memory;
    for (size_t i = 0; dump->memory && i < c->segment_count; i++) {
        const struct core_segment *s = &c->segments[i];
        /* a core does not hold all memory of a segment: file_size is less for pages that the kernel left out */
        uint64_t size = s->file_size < s->memory_size ? s->file_size : s->memory_size;
        if (s->type != PT_LOAD || !size || s->address + size < s->address)
            continue;
        struct sl_bytes bytes = sl_bytes_part(c->bytes, s->offset, size);
        c->core->missing += size - bytes.size;
        if (bytes.size)
            dump->memory[dump->memory_count++] = (struct sl_minidump_memory){s->address, bytes};
    }
    sl_minidump_sort_memory(dump);
}

bool core_auxv(const struct core_reader *c, uint64_t type, uint64_t *value)
{
    struct sl_reader r = core_make_reader(c, c->auxv);
    for (;;) {
        uint64_t found = core_read_word(c, &r);
        *value = core_read_word(c, &r);
        if (r.failed || !found)
            return false;
        if (found == type)
            return true;
    }
}

/* ---- the header ---- */

bool sl_elfcore_is(struct sl_bytes bytes)
{
    struct sl_reader r = sl_reader(bytes, bytes.size > EI_DATA && bytes.data[EI_DATA] == DATA_BIG);
    /* 20: up to the end of e_machine */
    if (bytes.size < 20 || memcmp(bytes.data,
                                  "\x7F"
                                  "ELF",
                                  4) != 0)
        return false;
    sl_reader_seek(&r, 16);
    return sl_read_u16(&r) == ET_CORE;
}

/* Returns the number of program headers. More than 65,534 are counted by sh_info of the first section header. */
static uint64_t count_segments(const struct core_reader *c, uint64_t sections, uint16_t count)
{
    struct sl_reader r = core_make_reader(c, c->bytes);
    if (count != PN_XNUM)
        return count;
    sl_reader_seek(&r, sections);
    sl_reader_skip(&r, c->is_wide ? 44 : 28); /* to sh_info */
    return sl_read_u32(&r);
}

/* Reads the program headers, as many as the file has, but at most MAX_MAPPINGS + 16. Lack of memory is recorded in c->out_of_memory. */
static void read_segments(struct core_reader *c, uint64_t offset, uint16_t entry_size, uint64_t count)
{
    struct sl_reader r = core_make_reader(c, sl_bytes_from(c->bytes, offset));
    size_t left = entry_size < core_header_size(c) ? 0 : sl_reader_left(&r) / entry_size;
    count = count < left ? count : left;
    count = count < MAX_MAPPINGS + 16 ? count : MAX_MAPPINGS + 16; /* 16: segments other than memory, such as notes */
    c->segments = SL_ARENA_ARRAY(c->arena, struct core_segment, count + 1); /* + 1: NULL only when out of memory */
    c->out_of_memory |= !c->segments;
    for (; c->segments && c->segment_count < count; c->segment_count++) {
        sl_reader_seek(&r, c->segment_count * entry_size);
        c->segments[c->segment_count] = core_read_segment(c, &r);
    }
}

/* Reads the ELF header and the program headers behind it. A core of an unknown processor is read too: its modules are listed, its threads
 * have no registers. */
static enum sl_code read_header(struct core_reader *c, struct sl_error *error)
{
    struct sl_minidump *dump = &c->core->dump;
    if (!sl_elfcore_is(c->bytes))
        return sl_fail(error, SL_MALFORMED, "not an ELF core file");
    c->is_wide = c->bytes.data[EI_CLASS] == CLASS_64;
    dump->big_endian = c->bytes.data[EI_DATA] == DATA_BIG;
    struct sl_reader r = core_make_reader(c, c->bytes);
    /* e_machine; before it are e_ident (16 bytes) and e_type */
    sl_reader_seek(&r, 18);
    c->machine = sl_read_u16(&r);
    sl_reader_skip(&r, 4);
    core_read_word(c, &r); /* entry */
    uint64_t headers = core_read_word(c, &r), sections = core_read_word(c, &r);
    /* e_flags and e_ehsize */
    sl_reader_skip(&r, 6);
    uint16_t entry_size = sl_read_u16(&r), count = sl_read_u16(&r);
    if (r.failed)
        return sl_fail(error, SL_MALFORMED, "the core file ends inside its header");
    c->cpu = core_find_cpu(c->machine, c->is_wide);
    dump->crash.system.arch = c->cpu ? c->cpu->arch : SL_ARCH_UNKNOWN;
    dump->family = c->cpu ? sl_arch_family(c->cpu->arch) : SL_CPU_UNKNOWN;
    dump->cpu = c->machine;
    if (!c->cpu || !c->cpu->registers)
        dump->unread_processor = c->cpu ? sl_arch_name(c->cpu->arch) : "unknown";
    read_segments(c, headers, entry_size, count_segments(c, sections, count));
    return SL_OK;
}

/* ---- the crash ---- */

/* Only these signals have the address of a fault, and only if the kernel sent them (sigaction(2)); for others si_addr is another
 * member of a union. */
static bool has_address(const struct core_reader *c)
{
    enum { ILL = 4, TRAP = 5, BUS = 7, FPE = 8, SEGV = 11 };
    bool is_fault = c->signal == ILL || c->signal == TRAP || c->signal == BUS || c->signal == FPE || c->signal == SEGV;
    return c->has_siginfo && is_fault && (int32_t)c->si_code > 0;
}

/* Describes the signal: "SIGSEGV / SEGV_MAPERR / 0x0"; signals without an address as "SIGABRT / SI_TKILL". */
static void describe_crash(struct core_reader *c)
{
    struct sl_minidump *dump = &c->core->dump;
    struct sl_buf text = {.budget = c->arena->budget};
    dump->crash.reason = SL_STR("");
    dump->crash.assertion = SL_STR("");
    if (!(dump->crash.crashed = c->signal != 0))
        return;
    struct sl_str name = sl_minidump_signal_text(c->signal, c->si_code, c->arena);
    if (name.data)
        sl_buf_str(&text, name);
    else
        sl_buf_printf(&text, "signal %u", c->signal);
    if (has_address(c)) {
        dump->crash_address = c->fault_address;
        sl_buf_printf(&text, " / 0x%llx", (unsigned long long)c->fault_address);
    }
    /* an exception is a signal with an address: crash_address is valid only then */
    dump->has_exception = dump->has_signal = has_address(c);
    dump->signal = c->signal;
    dump->signal_code = c->si_code;
    dump->crash.reason = sl_buf_move_to_arena(&text, c->arena);
    c->out_of_memory |= !dump->crash.reason.data;
}

/* Sets the stack of each thread: the memory region that its stack pointer is in. */
static void find_stacks(struct core_reader *c)
{
    struct sl_minidump *dump = &c->core->dump;
    struct sl_walk_numbers numbers;
    sl_walk_numbers(dump->family, &numbers);
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        struct sl_minidump_thread *thread = &dump->threads[i];
        const struct sl_minidump_memory *memory =
            thread->initial ? sl_minidump_memory_at(dump, thread->initial->value[numbers.sp]) : NULL;
        if (memory)
            thread->stack = *memory;
    }
}

/* Hands the lists of threads over to the dump and finds the stack of each. Lack of memory is recorded in c->out_of_memory. */
static void finish_threads(struct core_reader *c)
{
    struct sl_minidump *dump = &c->core->dump;
    dump->crash.thread_count = c->threads.count;
    dump->crash.threads = sl_arena_array_finish(&c->threads);
    dump->threads = sl_arena_array_finish(&c->more_threads);
    c->out_of_memory |= !dump->crash.threads || !dump->threads;
    if (!c->out_of_memory)
        find_stacks(c);
}

/* ---- reading ---- */

/* Sets what every core file of Linux has in common and prepares empty lists. */
static void begin(struct core_reader *c)
{
    *c->core = (struct sl_elfcore){.dump = {.bytes = c->bytes, .os = SL_MINIDUMP_LINUX}};
    c->core->name = c->core->command_line = SL_STR("");
    c->core->dump.crash.format = SL_FORMAT_ELF;
    c->core->dump.crash.system = (struct sl_crash_system){SL_STR("Linux"), SL_STR(""), SL_STR(""), SL_STR(""), 0};
    c->core->dump.os_text = c->core->dump.cpu_text = SL_STR("");
    sl_budget_init(&c->budget, c->bytes.size);              /* work in proportion to the file */
    sl_budget_limit(&c->budget, c->bytes.size, NULL, NULL); /* at most as much memory as the file has bytes */
    c->threads = (struct sl_arena_array){.arena = c->arena, .item = sizeof(struct sl_crash_thread)};
    c->more_threads = (struct sl_arena_array){.arena = c->arena, .item = sizeof(struct sl_minidump_thread)};
    c->modules = (struct sl_arena_array){.arena = c->arena, .item = sizeof(struct sl_crash_module)};
    c->packages = (struct sl_arena_array){.arena = c->arena, .item = sizeof(struct sl_elfcore_package)};
}

/* Frees the memory of the lists after a failure. Returns `code`. */
static enum sl_code discard(struct core_reader *c, enum sl_code code)
{
    sl_arena_array_discard(&c->threads);
    sl_arena_array_discard(&c->more_threads);
    sl_arena_array_discard(&c->modules);
    sl_arena_array_discard(&c->packages);
    return code;
}

enum sl_code core_open(struct core_reader *c, struct sl_error *error)
{
    begin(c);
    return read_header(c, error);
}

enum sl_code core_read(struct core_reader *c, struct sl_error *error)
{
    enum sl_code code = core_open(c, error);
    if (code != SL_OK)
        return discard(c, code);
    if (!c->out_of_memory)
        read_memory(c);
    if (!c->out_of_memory)
        core_read_notes(c);
    if (!c->out_of_memory && !c->threads.count)
        return discard(c, sl_fail(error, SL_MALFORMED,
                                  "the core file has no threads: its notes are missing or lie beyond its end"));
    if (!c->out_of_memory)
        core_read_modules(c);
    if (!c->out_of_memory)
        core_list_mappings(c);
    if (!c->out_of_memory)
        describe_crash(c);
    if (!c->out_of_memory)
        finish_threads(c);
    return c->out_of_memory ? discard(c, sl_budget_fail(c->arena->budget, error)) : SL_OK;
}

enum sl_code sl_elfcore_read(struct sl_bytes bytes, struct sl_arena *arena, struct sl_elfcore *core,
                             struct sl_error *error)
{
    struct core_reader c = {.core = core, .arena = arena, .bytes = bytes};
    return core_read(&c, error);
}
