/* Stacks of every processor, walked with tables that say anything. Of the input:
 *
 *     byte      the processor, and the lowest bit of it what the rest is: a CFI cache, or records of a symbol file
 *     byte      bits: Windows, iOS, big-endian memory, frame pointers first, no rules, no symbols, as Symbolicator
 *     16 bytes  of registers: the stack's address and a word, or in the upper half an address in the module
 *     u16       bytes of the stack, and these
 *     the rest  what the rules are made of
 *
 * A walk must end, its frames must be in the arena, and each after the first must come from a method. */
#include <stdlib.h>

#include "object/object.h"
#include "unwind/cfi_format.h"
#include "unwind/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STACK = 0x8000, MODULE = 0x1000, MODULE_SIZE = 0x4000, REGISTER_BYTES = 16, MAX_ASKED = 4 };

static const struct processor {
    enum sl_cpu_family family;
    const char *name; /* in symbol files */
} processors[] = {{SL_CPU_X86, "x86"},         {SL_CPU_X86_64, "x86_64"}, {SL_CPU_ARM, "arm"},
                  {SL_CPU_ARM64, "arm64"},     {SL_CPU_MIPS, "mips"},     {SL_CPU_MIPS64, "mips64"},
                  {SL_CPU_RISCV64, "riscv64"}, {SL_CPU_RISCV, "riscv"}};

static bool is_covered(const struct sl_walk_symbols *symbols, uint64_t address)
{
    (void)symbols;
    return address & 0x100;
}

static bool is_same_function(const struct sl_walk_symbols *symbols, uint64_t a, uint64_t b)
{
    (void)symbols;
    return a >> 8 == b >> 8;
}

/* The rules behind a header that is right, so that what follows is reached. */
static struct sl_buf mended_cache(struct sl_bytes bytes)
{
    struct sl_buf out = {0};
    sl_buf_add(&out, bytes.data, bytes.size);
    if (out.failed || out.size < CFI_HEADER_SIZE)
        return out;
    memcpy(out.data, cfi_format.magic, 4);
    memcpy(out.data + 4, &cfi_format.major, 2);
    uint32_t sections = out.data[CFI_AT_SECTION_COUNT] % (SL_TABLE_MAX_SECTIONS + 1);
    memcpy(out.data + CFI_AT_SECTION_COUNT, &sections, sizeof sections);
    size_t head = SL_TABLE_HEAD_SIZE(CFI_HEADER_SIZE, (size_t)sections);
    if (head > out.size)
        return out;
    uint64_t hash = sl_table_head_hash(&cfi_format, out.data, head);
    memcpy(out.data + CFI_HEADER_SIZE - sizeof hash, &hash, sizeof hash);
    return out;
}

static struct sl_buf cache_of_records(const struct processor *processor, struct sl_bytes records)
{
    struct sl_buf file = {0}, out = {0};
    struct sl_object *object;
    sl_buf_printf(&file, "MODULE Linux %s 3249D99D0C4049318610F4E4FB0B69360 x\n", processor->name);
    sl_buf_add(&file, records.data, records.size);
    if (!file.failed && sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL) == SL_OK) {
        sl_cfi_convert(object, NULL, &out, NULL, NULL);
        sl_object_close(object);
    }
    sl_buf_free(&file);
    return out;
}

static struct sl_registers take_registers(struct sl_reader *r, const struct processor *processor)
{
    struct sl_registers registers = {.valid = 0};
    struct sl_walk_numbers numbers;
    unsigned word = sl_cpu_pointer_size(processor->family);
    uint8_t places[REGISTER_BYTES];
    for (size_t i = 0; i < REGISTER_BYTES; i++)
        places[i] = sl_read_u8(r);
    for (unsigned i = 0; i < 40; i++) {
        unsigned place = places[i % REGISTER_BYTES];
        sl_registers_set(&registers, i, place < 128 ? STACK + place * word : MODULE + (place - 128) * 16 + i);
    }
    sl_walk_numbers(processor->family, &numbers);
    sl_registers_set(&registers, numbers.sp, STACK + (places[0] & 15) * word);
    sl_registers_set(&registers, numbers.pc, MODULE + places[1] * 16u);
    return registers;
}

static void run(struct sl_walk *walk, struct sl_walk_module *module, const struct sl_cfi *cfi,
                const struct sl_walk_symbols *symbols)
{
    size_t index, asked = 0;
    enum sl_walk_need need;
    while (walk && (need = sl_walk_run(walk, &index)) != SL_WALK_DONE) {
        if (index || asked++ == MAX_ASKED)
            abort(); /* there is one module, which is asked for twice at most */
        if (need == SL_WALK_NEED_CFI)
            sl_walk_set_cfi(module, cfi);
        else
            sl_walk_set_symbols(module, symbols);
    }
    if (!walk || !walk->frame_count || walk->frame_count > SL_WALK_MAX_FRAMES)
        abort();
    for (size_t i = 0; i < walk->frame_count; i++)
        if ((walk->frames[i].trust == SL_TRUST_CONTEXT) != !i || walk->frames[i].trust == SL_TRUST_NONE)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sl_walk_symbols symbols = {is_covered, is_same_function};
    struct sl_reader r = sl_reader((struct sl_bytes){data, size}, false);
    unsigned kind = sl_read_u8(&r), bits = sl_read_u8(&r);
    const struct processor *processor = &processors[(kind >> 1) % (sizeof processors / sizeof *processors)];
    struct sl_walk_target target = {.family = processor->family,
                                    .is_windows = bits & 1,
                                    .is_ios = bits & 2,
                                    .big_endian = bits & 4,
                                    .frame_pointer_first = bits & 8,
                                    .compat = bits & 64};
    struct sl_walk_module module = {.base = MODULE, .size = MODULE_SIZE};
    struct sl_range_piece piece = {MODULE, MODULE + MODULE_SIZE - 1, 0};
    const struct sl_range_map map = {&piece, 1};
    struct sl_registers registers = take_registers(&r, processor);
    struct sl_walk_stack stack = {.address = STACK, .bytes = sl_read_bytes(&r, sl_read_u16(&r))};
    if (r.failed)
        return 0;
    struct sl_bytes rest = sl_read_bytes(&r, sl_reader_left(&r));
    struct sl_buf file = kind & 1 ? mended_cache(rest) : cache_of_records(processor, rest);
    struct sl_arena arena = {0};
    struct sl_cfi cfi;
    bool has_rules = sl_cfi_open(sl_buf_bytes(&file), &cfi, NULL) == SL_OK && !(bits & 16);
    run(sl_walk_new(&arena, &target, &module, &map, &registers, &stack), &module, has_rules ? &cfi : NULL,
        bits & 32 ? NULL : &symbols);
    sl_arena_free(&arena);
    sl_buf_free(&file);
    return 0;
}
