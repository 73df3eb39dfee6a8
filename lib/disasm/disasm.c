#include "disasm/impl.h"

enum { SHOWN = 16 }; /* bytes of what is no instruction */

static bool is_x86(enum sl_cpu_family family)
{
    return family == SL_CPU_X86 || family == SL_CPU_X86_64;
}

const char *sl_disasm_arch(enum sl_arch arch)
{
    switch (sl_arch_family(arch)) {
    case SL_CPU_X86: return "i686";
    case SL_CPU_X86_64: return "x86_64";
    case SL_CPU_ARM: return "arm";
    case SL_CPU_ARM64:
    case SL_CPU_ARM64_32: return "aarch64";
    default: return NULL;
    }
}

const char *sl_disasm_syntax(enum sl_arch arch)
{
    return is_x86(sl_arch_family(arch)) ? "Intel" : "ARM";
}

unsigned sl_disasm_step(enum sl_arch arch)
{
    enum sl_cpu_family family = sl_arch_family(arch);
    return is_x86(family) ? 1 : family == SL_CPU_ARM ? 2 : 4;
}

static bool engine_open(enum sl_arch arch, struct disasm_engine *engine)
{
    enum sl_cpu_family family = sl_arch_family(arch);
    return is_x86(family) ? disasm_x86_open(family == SL_CPU_X86_64, engine)
                          : disasm_llvm_open(family != SL_CPU_ARM, engine);
}

/* .byte 0x06 0x07 # Invalid instruction 0607: why */
static void put_invalid(struct sl_bytes bytes, const char *why, struct sl_buf *out)
{
    size_t count = bytes.size < SHOWN ? bytes.size : SHOWN;
    sl_buf_clear(out);
    sl_buf_cstr(out, ".byte");
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(out, " 0x%02x", bytes.data[i]);
    sl_buf_cstr(out, " # Invalid instruction ");
    for (size_t i = 0; i < count; i++)
        sl_buf_printf(out, "%02x", bytes.data[i]);
    sl_buf_printf(out, ": %s", why ? why : "not a known instruction");
}

static void put_name(const struct sl_disasm_reader *reader, uint64_t target, struct sl_buf *out)
{
    size_t before = out->size;
    sl_buf_cstr(out, " <");
    size_t named = out->size;
    reader->name(reader->arg, target, out);
    if (out->size == named)
        out->size = before;
    else
        sl_buf_u8(out, '>');
}

enum sl_code sl_disasm(const struct sl_disasm_code *code, const struct sl_disasm_reader *reader, uint64_t *decoded,
                       struct sl_error *error)
{
    struct disasm_engine engine;
    struct disasm_line line = {.why = NULL};
    unsigned step = sl_disasm_step(code->arch);
    uint64_t at = 0;
    bool good = true;
    if (!sl_disasm_arch(code->arch))
        return sl_fail(error, SL_UNSUPPORTED, "no disassembler for %s", sl_arch_name(code->arch));
    if (!engine_open(code->arch, &engine))
        return sl_fail(error, SL_BUSY, "out of memory");
    while (good && at < code->size && at < code->bytes.size) {
        struct sl_bytes rest = {code->bytes.data + at, code->bytes.size - at};
        sl_buf_clear(&line.text);
        line.has_target = false;
        line.why = NULL;
        size_t size = engine.read(engine.state, rest, code->address + at, &line);
        if (!size) {
            size = step < rest.size ? step : rest.size;
            put_invalid((struct sl_bytes){rest.data, size}, line.why, &line.text);
        } else if (line.has_target && reader->name) {
            put_name(reader, line.target, &line.text);
        }
        good = !line.text.failed && reader->line(reader->arg, at, sl_buf_view(&line.text));
        at += size;
    }
    engine.close(engine.state);
    sl_buf_free(&line.text);
    *decoded = at;
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}
