#include <Zydis/Zydis.h>
#include <stdlib.h>

#include "disasm/impl.h"

enum { MAX_TEXT = 256 };

struct x86 {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

/* Returns the reason for an invalid instruction; NULL if it is not known. */
static const char *x86_why(ZyanStatus status)
{
    switch (status) {
    case ZYDIS_STATUS_NO_MORE_DATA: return "the code ends within the instruction";
    case ZYDIS_STATUS_INSTRUCTION_TOO_LONG: return "the instruction is too long";
    case ZYDIS_STATUS_BAD_REGISTER: return "invalid register";
    case ZYDIS_STATUS_ILLEGAL_LOCK: return "the instruction cannot have a lock prefix";
    default: return NULL;
    }
}

/* Records the target of a relative branch: its operand with `is_relative`. */
static void x86_target(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operands,
                       uint64_t address, struct disasm_line *line)
{
    for (uint8_t i = 0; i < instruction->operand_count_visible && !line->has_target; i++)
        line->has_target = operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[i].imm.is_relative &&
                           ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(instruction, &operands[i], address, &line->target));
}

/* Implements disasm_engine.read: appends the instruction's text in Intel's syntax; if it is invalid, sets `line->why` and returns 0. */
static size_t x86_read(void *state, enum sl_code_isa isa, struct sl_bytes bytes, uint64_t address,
                       struct disasm_line *line)
{
    const struct x86 *x86 = state;
    (void)isa;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[MAX_TEXT];
    ZyanStatus status = ZydisDecoderDecodeFull(&x86->decoder, bytes.data, bytes.size, &instruction, operands);
    if (ZYAN_SUCCESS(status))
        status = ZydisFormatterFormatInstruction(&x86->formatter, &instruction, operands,
                                                 instruction.operand_count_visible, text, sizeof text, address, NULL);
    if (!ZYAN_SUCCESS(status)) {
        line->why = x86_why(status);
        return 0;
    }
    x86_target(&instruction, operands, address, line);
    sl_buf_cstr(&line->text, text);
    return instruction.length;
}

bool disasm_x86_open(bool is_64bit, struct disasm_engine *engine)
{
    struct x86 *x86 = calloc(1, sizeof *x86);
    if (!x86)
        return false;
    ZydisDecoderInit(&x86->decoder, is_64bit ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                     is_64bit ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    ZydisFormatterInit(&x86->formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&x86->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&x86->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&x86->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE, ZYDIS_PADDING_DISABLED);
    *engine = (struct disasm_engine){x86, x86_read, free};
    return true;
}
