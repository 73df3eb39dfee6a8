/* Memory that the dump holds, and the part that is a thread's stack. */
#include "minidump/impl.h"

#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* Orders regions by address, those with the same address by size. */
SL_ORDER_BY(by_address, struct sl_minidump_memory, address, bytes.size)

/* Returns false for a region that is empty, outside of the file or wraps around the address space. */
static bool is_region(const struct sl_minidump_memory *memory)
{
    return memory->bytes.data && memory->bytes.size && memory->address + memory->bytes.size > memory->address;
}

/* Reads MINIDUMP_MEMORY64_LIST, whose contents are contiguous in the file. False if the dump has no such list, or if any region is invalid:
 * none is used then. */
static bool read_long_list(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r = dump_stream_reader(dump, STREAM_MEMORY64_LIST);
    uint64_t count = sl_read_u64(&r), rva = sl_read_u64(&r);
    if (r.failed || count > sl_reader_left(&r) / 16) /* an entry: address and size, 8 bytes each */
        return false;
    dump->memory = dump_alloc(d, count, sizeof *dump->memory);
    for (uint64_t i = 0; dump->memory && i < count; i++) {
        uint64_t address = sl_read_u64(&r), size = sl_read_u64(&r);
        dump->memory[i] = (struct sl_minidump_memory){address, sl_bytes_slice(dump->bytes, rva, size, NULL)};
        if (!is_region(&dump->memory[i]))
            return false;
        rva += size; /* cannot overflow: is_region() is false for bytes outside of the file */
    }
    dump->memory_count = count;
    return true;
}

/* Reads MINIDUMP_MEMORY_LIST. Left out are regions that are invalid, or at file offset 0, where the header is. */
static void read_list(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r;
    uint32_t rva;
    size_t count = dump_list(dump, STREAM_MEMORY_LIST, 16, &r); /* 16: u64 address, u32 size, u32 file offset */
    dump->memory = dump_alloc(d, count, sizeof *dump->memory);
    for (size_t i = 0; dump->memory && i < count; i++) {
        struct sl_minidump_memory *memory = &dump->memory[dump->memory_count];
        memory->address = sl_read_u64(&r);
        memory->bytes = dump_location(dump, &r, &rva);
        dump->memory_count += rva && is_region(memory); /* else the next entry takes its place */
    }
}

/* Lists the memory regions, sorted by address and without overlaps. The list of full dumps is used if it is valid, else the short one. */
void dump_read_memory(struct dump_reader *d)
{
    if (!read_long_list(d))
        read_list(d);
    sl_minidump_sort_memory(d->dump);
}

/* Sorts regions by address and drops those that begin within the one before, so that find_region() only has to look at the last region that
 * begins at or before an address. Returns how many are left. */
static size_t sort_regions(struct sl_minidump_memory *regions, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(regions, count, sizeof *regions, by_address);
    for (size_t i = 0; i < count; i++) {
        const struct sl_minidump_memory *last = kept ? &regions[kept - 1] : NULL;
        if (!last || regions[i].address - last->address >= last->bytes.size)
            regions[kept++] = regions[i];
    }
    return kept;
}

void sl_minidump_sort_memory(struct sl_minidump *dump)
{
    dump->memory_count = sort_regions(dump->memory, dump->memory_count);
    dump->file_memory_count = sort_regions(dump->file_memory, dump->file_memory_count);
}

/* Returns the region that contains the address; NULL if there is none. The regions are sorted and do not overlap. */
static const struct sl_minidump_memory *find_region(const struct sl_minidump_memory *regions, size_t count,
                                                    uint64_t address)
{
    size_t beyond = SL_COUNT_UP_TO(regions, count, address, address);
    const struct sl_minidump_memory *last = beyond ? &regions[beyond - 1] : NULL;
    return last && address - last->address < last->bytes.size ? last : NULL;
}

const struct sl_minidump_memory *sl_minidump_memory_at(const struct sl_minidump *dump, uint64_t address)
{
    const struct sl_minidump_memory *found = find_region(dump->memory, dump->memory_count, address);
    return found ? found : find_region(dump->file_memory, dump->file_memory_count, address);
}

bool dump_memory_read(const struct sl_minidump *dump, uint64_t address, unsigned size, uint64_t *value)
{
    const struct sl_minidump_memory *memory = sl_minidump_memory_at(dump, address);
    struct sl_reader r = dump_make_reader(dump, memory ? memory->bytes : (struct sl_bytes){NULL, 0});
    if (memory)
        sl_reader_seek(&r, address - memory->address);
    *value = sl_read_uint(&r, size);
    return !r.failed;
}

/* ---- start of a walk ---- */

static bool read_anywhere(const void *arg, uint64_t address, unsigned size, uint64_t *value)
{
    return dump_memory_read(arg, address, size, value);
}

/* True if the eight bytes at the address are in this region. */
static bool holds_word(const struct sl_minidump_memory *memory, uint64_t address)
{
    bool inside;
    sl_bytes_slice(memory->bytes, address - memory->address, sizeof(uint64_t), &inside);
    return inside && address >= memory->address;
}

/* The stack is the memory that the dump gives for the thread; if the stack pointer is not in it, the region that contains the pointer. */
void sl_minidump_start(const struct sl_minidump *dump, size_t thread, struct sl_registers *registers,
                       struct sl_walk_stack *stack)
{
    const struct sl_minidump_memory *memory = &dump->threads[thread].stack, *other;
    struct sl_walk_numbers numbers;
    if (dump->threads[thread].initial)
        *registers = *dump->threads[thread].initial;
    else
        dump_context_read(dump, &dump->threads[thread], registers);
    sl_walk_numbers(dump->threads[thread].family, &numbers); /* cannot fail for a thread that is walked */
    uint64_t sp = registers->value[numbers.sp];
    if (!holds_word(memory, sp) && (other = sl_minidump_memory_at(dump, sp)))
        memory = other;
    *stack = (struct sl_walk_stack){memory->address, memory->bytes, read_anywhere, dump};
}

struct sl_walk_target sl_minidump_target(const struct sl_minidump *dump, size_t thread)
{
    return (struct sl_walk_target){
        .family = dump->threads[thread].family,
        .is_windows = dump->os == SL_MINIDUMP_WINDOWS,
        .is_ios = dump->os == SL_MINIDUMP_IOS,
        .big_endian = dump->big_endian,
        .address_mask = dump->address_mask,
    };
}
