#include <llvm-c/Disassembler.h>
#include <stdlib.h>
#include <threads.h>

#include "disasm/impl.h"

enum { MAX_TEXT = 512, LONGEST = 4 }; /* bytes of text and of the longest instruction */

/* Features for everything that LLVM can decode. ARM has no feature "all", and version 8 removed the encodings of most
 * coprocessors that version 7 has; so an encoding that is invalid in one version is tried in the other. */
static const struct disasm_target {
    const char *triple, *features;
} aarch64 = {"aarch64-linux-gnu", "+all"},
  arm[2][2] = {
#define ARM_8                                                                                                          \
    "+v8.6a,+neon,+fp-armv8,+crypto,+dotprod,+fullfp16,+fp16fml,+bf16,+i8mm,+mp,+virtualization,+trustzone,"           \
    "+hwdiv,+hwdiv-arm,+dsp,+crc,+ras,+sb,+perfmon"
#define ARM_7 "+neon,+vfp4,+fp16,+mp,+virtualization,+trustzone,+hwdiv,+hwdiv-arm,+dsp,+perfmon"
      {{"thumbv8a-linux-gnueabihf", ARM_8}, {"thumbv7a-linux-gnueabihf", ARM_7}},
      {{"armv8a-linux-gnueabihf", ARM_8}, {"armv7a-linux-gnueabihf", ARM_7}},
};

/* LLVM's functions for its AArch64 and ARM targets. llvm-c/Target.h declares them too, but references all targets of LLVM. */
void LLVMInitializeAArch64TargetInfo(void);
void LLVMInitializeAArch64TargetMC(void);
void LLVMInitializeAArch64Disassembler(void);
void LLVMInitializeARMTargetInfo(void);
void LLVMInitializeARMTargetMC(void);
void LLVMInitializeARMDisassembler(void);

struct llvm {
    bool is_aarch64;
    LLVMDisasmContextRef contexts[2][2]; /* [is A32][is version 7], created on first use; AArch64 uses [0][0] */
    struct disasm_line *line;            /* the line being read */
};

/* Registers LLVM's AArch64 and ARM targets; called once for the process. */
static void llvm_initialize(void)
{
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64Disassembler();
    LLVMInitializeARMTargetInfo();
    LLVMInitializeARMTargetMC();
    LLVMInitializeARMDisassembler();
}

/* Callback of LLVM, which asks for the symbols of operands: this shows which of them are branch targets. Returns no name. */
static const char *record_target(void *arg, uint64_t value, uint64_t *type, uint64_t pc, const char **name)
{
    struct llvm *llvm = arg;
    (void)pc;
    if (*type == LLVMDisassembler_ReferenceType_In_Branch) {
        llvm->line->has_target = true;
        llvm->line->target = value;
    }
    *type = LLVMDisassembler_ReferenceType_InOut_None;
    *name = NULL;
    return NULL;
}

/* Appends LLVM's text in one line: tabs become blanks, white space at both ends is removed. */
static void llvm_put_text(struct sl_buf *out, struct sl_str text)
{
    bool first = true;
    while (text.size && (text.data[text.size - 1] == '\n' || sl_is_blank(text.data[text.size - 1])))
        text.size--;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i] == '\t' || text.data[i] == '\n' ? ' ' : text.data[i];
        if (!(first && c == ' '))
            sl_buf_u8(out, (uint8_t)c);
        first = first && c == ' ';
    }
}

/* Writes ADRP as "adrp x0, 0x1000". LLVM's text is "adrp x0, 0 // 0x1000", with the page's address in a comment. */
static void llvm_put_page(struct sl_buf *out, struct sl_str text)
{
    const char *comma = memchr(text.data, ',', text.size);
    const char *comment = memmem(text.data, text.size, "// 0x", 5);
    if (!comma || !comment || comment < comma) {
        llvm_put_text(out, text);
        return;
    }
    llvm_put_text(out, (struct sl_str){text.data, (size_t)(comma - text.data)});
    sl_buf_cstr(out, ", ");
    /* 3: without the `// ` */
    llvm_put_text(out, (struct sl_str){comment + 3, (size_t)(text.data + text.size - comment) - 3});
}

/* Writes ADR with the absolute address, "adr x0, 0x100c". LLVM's text has the distance, "adr x0, #12". */
static void llvm_put_address(struct disasm_line *line, struct sl_str text, uint64_t address)
{
    const char *number = memmem(text.data, text.size, ", #", 3);
    if (!number) {
        llvm_put_text(&line->text, text);
        return;
    }
    llvm_put_text(&line->text, (struct sl_str){text.data, (size_t)(number - text.data)});
    line->has_target = true;
    line->target = address + (uint64_t)strtoll(number + 3, NULL, 0);
    sl_buf_printf(&line->text, ", 0x%llx", (unsigned long long)line->target);
}

/* Returns LLVM's decoder, created at its first use; NULL if LLVM cannot create it. For ARM: `is_arm` A32 rather than Thumb, `is_older`
 * version 7 rather than 8. */
static LLVMDisasmContextRef get_context(struct llvm *llvm, bool is_arm, bool is_older)
{
    LLVMDisasmContextRef *context = &llvm->contexts[is_arm][is_older];
    const struct disasm_target *target = llvm->is_aarch64 ? &aarch64 : &arm[is_arm][is_older];
    if (!*context) { /* "": no particular processor */
        *context = LLVMCreateDisasmCPUFeatures(target->triple, "", target->features, llvm, 0, NULL, record_target);
        if (*context)
            LLVMSetDisasmOptions(*context, LLVMDisassembler_Option_PrintImmHex);
    }
    return *context;
}

/* Decodes an instruction into `text`; for ARM with the features of version 8, then with those of version 7. Returns its size, 0 if it is
 * invalid. */
static size_t llvm_decode(struct llvm *llvm, enum sl_code_isa isa, struct sl_bytes bytes, uint64_t address,
                          char text[MAX_TEXT])
{
    uint8_t copy[LONGEST]; /* LLVM wants bytes that are not const */
    size_t size = bytes.size < LONGEST ? bytes.size : LONGEST;
    bool is_arm = isa == SL_ISA_ARM && !llvm->is_aarch64;
    memcpy(copy, bytes.data, size);
    for (int older = 0; older <= !llvm->is_aarch64; older++) { /* once for AArch64, at most twice for ARM */
        LLVMDisasmContextRef context = get_context(llvm, is_arm, older);
        size_t read = context ? LLVMDisasmInstruction(context, copy, size, address, text, MAX_TEXT) : 0;
        if (read && read <= size)
            return read;
        llvm->line->has_target = false; /* the failed attempt may have set it */
    }
    return 0;
}

/* Implements disasm_engine.read: decodes an instruction, and rewrites the texts of ADR and ADRP, in which LLVM prints a distance instead of
 * an address. */
static size_t llvm_read(void *state, enum sl_code_isa isa, struct sl_bytes bytes, uint64_t address,
                        struct disasm_line *line)
{
    struct llvm *llvm = state;
    char text[MAX_TEXT];
    llvm->line = line;
    size_t read = llvm_decode(llvm, isa, bytes, address, text);
    if (!read)
        return 0;
    struct sl_str whole = sl_str(text);
    if (sl_str_starts(whole, SL_STR("\tadrp\t")))
        llvm_put_page(&line->text, whole);
    else if (llvm->is_aarch64 && sl_str_starts(whole, SL_STR("\tadr\t"))) /* ARM's is not relative to `address` */
        llvm_put_address(line, whole, address);
    else
        llvm_put_text(&line->text, whole);
    return read;
}

/* Implements disasm_engine.close: frees the state. */
static void llvm_close(void *state)
{
    struct llvm *llvm = state;
    for (int i = 0; i < 4; i++)
        if (llvm->contexts[i / 2][i % 2])
            LLVMDisasmDispose(llvm->contexts[i / 2][i % 2]);
    free(llvm);
}

bool disasm_llvm_open(bool is_aarch64, struct disasm_engine *engine)
{
    static once_flag once = ONCE_FLAG_INIT;
    struct llvm *llvm = calloc(1, sizeof *llvm);
    if (!llvm)
        return false;
    call_once(&once, llvm_initialize);
    llvm->is_aarch64 = is_aarch64;
    *engine = (struct disasm_engine){llvm, llvm_read, llvm_close};
    /* makes one context now, so that a lack of memory or an LLVM without this target shows here */
    if (get_context(llvm, false, false))
        return true;
    free(llvm);
    return false;
}
