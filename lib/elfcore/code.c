/* Memory that a core leaves out because the files of modules have it. */
#include "elfcore/impl.h"

#include "object/stored.h"

/* Sets `*bias` to how much higher the file was mapped than its program headers say. `address` is where its first byte was mapped, so the
 * segment with the lowest offset decides. False if the file has no segments with contents. */
static bool find_bias(const struct sl_object *file, uint64_t address, uint64_t *bias)
{
    struct sl_load_header header;
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; sl_object_load_header(file, i, &header); i++)
        if (header.file_size && header.offset < lowest) {
            lowest = header.offset;
            *bias = address - (header.address - header.offset);
        }
    return lowest != UINT64_MAX;
}

/* Adds a segment of the file to the dump's memory, unless it is writable: a program can have changed such memory, so the file does not say
 * what was there. */
static void add_segment(struct sl_minidump *dump, const struct sl_object *file, const struct sl_load_header *header,
                        uint64_t bias)
{
    const struct sl_minidump_memory memory = {bias + header->address,
                                              sl_bytes_part(sl_object_file(file), header->offset, header->file_size)};
    if (!(header->flags & PF_W) && memory.bytes.size && memory.address + memory.bytes.size > memory.address)
        dump->file_memory[dump->file_memory_count++] = memory;
}

bool sl_elfcore_add_file(struct sl_elfcore *core, uint64_t address, struct sl_object *file, struct sl_arena *arena)
{
    struct sl_minidump *dump = &core->dump;
    struct sl_stored_parts parts;
    struct sl_load_header header;
    uint64_t bias;
    if (!sl_object_stored_parts(file, &parts) || !parts.has_code || !find_bias(file, address, &bias))
        return true;
    struct sl_minidump_memory *all =
        SL_ARENA_ARRAY(arena, struct sl_minidump_memory, dump->file_memory_count + MAX_HEADERS);
    if (!all)
        return false;
    if (dump->file_memory_count)
        memcpy(all, dump->file_memory, dump->file_memory_count * sizeof *all);
    dump->file_memory = all;
    for (size_t i = 0; i < MAX_HEADERS && sl_object_load_header(file, i, &header); i++)
        add_segment(dump, file, &header, bias);
    sl_minidump_sort_memory(dump);
    return true;
}
