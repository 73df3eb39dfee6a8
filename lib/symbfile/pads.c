/* Finds return pads. A profiler that walks a stack finds return addresses; it subtracts one so that the address lies in the call
 * instruction, not behind it. A pad is such an address, with the functions that the call is in: the function itself and the inlined
 * calls around the call. */
#include "symbfile/pads.h"

#include "base/account.h"
#include "base/search.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>

struct sl_symbfile_pads {
    const struct sl_symbfile_image *image;
    const struct sl_symbfile_range **open; /* ranges that contain the current instruction, outermost first */
    struct sl_symbfile_frame *frames;
    size_t open_capacity, frame_capacity;
    struct sl_account account; /* charges both arrays */
};

struct sl_symbfile_pads *sl_symbfile_pads_new(const struct sl_symbfile_image *image, struct sl_budget *budget)
{
    struct sl_symbfile_pads *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->image = image;
    p->account.budget = budget;
    return p;
}

void sl_symbfile_pads_free(struct sl_symbfile_pads *p)
{
    if (!p)
        return;
    free(p->open);
    free(p->frames);
    sl_account_release(&p->account);
    free(p);
}

bool sl_symbfile_pads_supported(const struct sl_symbfile_pads *p)
{
    return p->image->family == SL_CPU_X86_64 || p->image->family == SL_CPU_ARM64;
}

/* ---- instructions ---- */
/* Decodes an instruction of x86-64. System calls and interrupts count as calls: for them, too, the CPU saves the address after the
 * instruction as the one to return to. */
static enum instruction x86_instruction(struct sl_bytes code, unsigned *length)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code.data, code.size, &instruction)))
        return INSTRUCTION_BAD;
    *length = instruction.length;
    switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_INT: return INSTRUCTION_CALL;
    default: return INSTRUCTION_OTHER;
    }
}

/* Decodes an instruction of ARM64; calls are branches with link, and system calls (Arm Architecture Reference Manual for A-profile,
 * C4.1). */
static enum instruction arm64_instruction(struct sl_bytes code, unsigned *length)
{
    static const struct {
        uint32_t mask, bits;
    } calls[] = {
        {0xFC000000, 0x94000000}, /* BL */
        {0xFFFFFC1F, 0xD63F0000}, /* BLR */
        {0xFEFFF800, 0xD63F0800}, /* BLRAA, BLRAB and their zero forms */
        {0xFFE0001F, 0xD4000001}, /* SVC */
    };
    if (code.size < 4)
        return INSTRUCTION_BAD;
    uint32_t word = (uint32_t)code.data[0] | (uint32_t)code.data[1] << 8 | (uint32_t)code.data[2] << 16 |
                    (uint32_t)code.data[3] << 24;
    *length = 4;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if ((word & calls[i].mask) == calls[i].bits)
            return INSTRUCTION_CALL;
    return INSTRUCTION_OTHER;
}

enum instruction pads_instruction(enum sl_cpu_family family, struct sl_bytes code, unsigned *length)
{
    *length = 0;
    if (!code.size)
        return INSTRUCTION_BAD;
    return family == SL_CPU_ARM64 ? arm64_instruction(code, length) : x86_instruction(code, length);
}

/* ---- return pads ---- */
/* Returns the line of the last row of the range's line table that begins at or before `va`; 0 if there is none. */
static uint32_t pads_line_at(const struct sl_symbfile_range *range, uint64_t va)
{
    const struct sl_symbfile_line *lines = range->lines;
    size_t beyond = SL_PARTITION_POINT(middle, 0, range->line_count, range->va + lines[middle].offset <= va);
    return beyond ? lines[beyond - 1].line : 0;
}

/* Reserves memory for a call chain of `count` ranges. False when out of memory. */
static bool pads_reserve(struct sl_symbfile_pads *p, size_t count)
{
    return sl_account_grow(&p->account, &p->open, &p->open_capacity, count, sizeof *p->open) &&
           sl_account_grow(&p->account, &p->frames, &p->frame_capacity, count, sizeof *p->frames);
}

/* Passes the return pad at `va` (the last byte of the call instruction at `call`) to the sink. p->open[0..height) are the ranges around the
 * call, outermost first. The innermost frame has the line of the call; every other frame has the position at which the next one was inlined
 * into it. */
static enum sl_code pads_emit(struct sl_symbfile_pads *p, size_t height, uint64_t call, uint64_t va,
                              struct sl_symbfile_sink *sink, struct sl_error *error)
{
    if (!sl_account_spend(&p->account, (uint32_t)height))
        return sl_budget_fail(p->account.budget, error);
    for (size_t i = 0; i < height; i++) {
        const struct sl_symbfile_range *range = p->open[i], *next = i + 1 < height ? p->open[i + 1] : NULL;
        if (range->depth != i)
            return SL_OK; /* the range of a depth is missing: call sites would be wrong, so no return pad is written */
        p->frames[i] = (struct sl_symbfile_frame){range->function, range->file, 0};
        if (!next) {
            p->frames[i].line = pads_line_at(range, call);
        } else {
            p->frames[i].line = next->call_line;
            if (next->call_file.str.data)
                p->frames[i].file = next->call_file;
        }
    }
    struct sl_symbfile_pad pad = {va, p->frames, height};
    return sink->pad(sink, &pad, error);
}

/* Emits the return pad of runtime.goexit, if the range is that function. Go starts each goroutine with a return address behind the first
 * instruction of goexit, so that a function that returns ends its goroutine. No call instruction leads there, so the search for calls
 * does not find this one. */
static enum sl_code emit_goexit(struct sl_symbfile_pads *p, const struct sl_symbfile_range *range,
                                struct sl_symbfile_sink *sink, struct sl_error *error)
{
    unsigned length;
    struct sl_str name = range->function.str;
    if (!sl_str_equal(name, SL_STR("runtime.goexit")) && !sl_str_equal(name, SL_STR("runtime.goexit.abi0")))
        return SL_OK;
    struct sl_bytes code = image_code(p->image, range->va, range->length);
    if (pads_instruction(p->image->family, code, &length) == INSTRUCTION_BAD)
        return SL_OK;
    p->open[0] = range;
    return pads_emit(p, 1, range->va, range->va + length - 1, sink, error);
}

/* Decodes the code of the function instruction by instruction, and emits a return pad for each call: the last byte of the call instruction,
 * which is where a profiler looks up the return address that the call leaves on the stack. Other instructions leave none. `ranges` is the
 * tree of the function and its inlined calls in pre-order; p->open is the stack of ranges that contain the current instruction. */
enum sl_code sl_symbfile_pads_of_tree(struct sl_symbfile_pads *p, const struct sl_symbfile_range *ranges, size_t count,
                                      struct sl_symbfile_sink *sink, struct sl_error *error)
{
    if (!count || !sl_symbfile_pads_supported(p))
        return SL_OK;
    if (!pads_reserve(p, count))
        return sl_budget_fail(p->account.budget, error);
    enum sl_code code = emit_goexit(p, &ranges[0], sink, error);
    struct sl_bytes text = image_code(p->image, ranges[0].va, ranges[0].length);
    uint64_t at = ranges[0].va;
    size_t height = 0, next = 0;
    while (text.size && code == SL_OK) {
        unsigned length;
        enum instruction instruction = pads_instruction(p->image->family, text, &length);
        if (instruction == INSTRUCTION_BAD || !length)
            break;
        if (!sl_account_spend(&p->account, 1))
            return sl_budget_fail(p->account.budget, error);
        if (instruction == INSTRUCTION_CALL) {
            while (next < count && ranges[next].va <= at) { /* in pre-order: the enclosing range comes first */
                while (height && p->open[height - 1]->va + p->open[height - 1]->length <= ranges[next].va)
                    height--;
                p->open[height++] = &ranges[next++];
            }
            while (height && p->open[height - 1]->va + p->open[height - 1]->length <= at)
                height--;
            if (height)
                code = pads_emit(p, height, at, at + length - 1, sink, error);
        }
        text.data += length;
        text.size -= length;
        at += length;
    }
    return code;
}
