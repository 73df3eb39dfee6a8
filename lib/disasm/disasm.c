#include "disasm/impl.h"

#include "base/bytes.h"
#include "base/search.h"

enum { SHOWN = 16 }; /* maximum of invalid bytes shown */

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

unsigned sl_disasm_step(enum sl_arch arch, enum sl_code_isa isa)
{
    enum sl_cpu_family family = sl_arch_family(arch);
    return is_x86(family) ? 1 : family == SL_CPU_ARM && isa != SL_ISA_ARM ? 2 : 4;
}

enum sl_code_isa sl_disasm_isa_at(const struct sl_mapping_symbol *mapping_symbols, size_t count, uint64_t address)
{
    size_t before = SL_COUNT_UP_TO(mapping_symbols, count, address, address);
    return before ? mapping_symbols[before - 1].isa : SL_ISA_DEFAULT;
}

static bool engine_open(enum sl_arch arch, struct disasm_engine *engine)
{
    enum sl_cpu_family family = sl_arch_family(arch);
    return is_x86(family) ? disasm_x86_open(family == SL_CPU_X86_64, engine)
                          : disasm_llvm_open(family != SL_CPU_ARM, engine);
}

/* Replaces the text of the line by ".byte 0x06 0x07 # Invalid instruction 0607: why", with at most SHOWN bytes. */
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

/* Appends " <name>" of a branch target, if the caller knows one. */
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

/* Writes data as ".word 0x00001234", in smaller units at the end; returns the size of the unit. */
static size_t put_data(struct sl_bytes bytes, struct sl_buf *out)
{
    static const char *const names[] = {".byte", ".byte", ".short", ".short", ".word"};
    static const unsigned sizes[] = {1, 1, 2, 2, 4};
    unsigned most = bytes.size < 4 ? (unsigned)bytes.size : 4, size = sizes[most];
    struct sl_reader r = sl_reader(bytes, false);
    uint32_t value = size == 4 ? sl_read_u32(&r) : size == 2 ? sl_read_u16(&r) : sl_read_u8(&r);
    sl_buf_printf(out, "%s 0x%0*x", names[most], 2 * (int)size, value);
    return size;
}

/* ---- lines ---- */

struct disasm_run {
    const struct sl_disasm_code *code;
    const struct sl_disasm_reader *reader;
    struct disasm_engine engine;
    struct disasm_line line;
    size_t next_symbol; /* number of mapping symbols at or before the current address: index of the next one */
};

/* Returns the instruction set at the address, according to the last mapping symbol at or before it; SL_ISA_DEFAULT if there is none.
 * Addresses must ascend from call to call. */
static enum sl_code_isa next_isa(struct disasm_run *run, uint64_t address)
{
    const struct sl_disasm_code *code = run->code;
    while (run->next_symbol < code->mapping_symbol_count && code->mapping_symbols[run->next_symbol].address <= address)
        run->next_symbol++;
    return run->next_symbol ? code->mapping_symbols[run->next_symbol - 1].isa : SL_ISA_DEFAULT;
}

/* Makes the line for the bytes at offset `at`: an instruction with the name of its branch target, data, or invalid bytes. Returns the
 * number of bytes that the line covers. */
static size_t read_line(struct disasm_run *run, uint64_t at)
{
    const struct sl_disasm_code *code = run->code;
    struct sl_bytes rest = {code->bytes.data + at, code->bytes.size - at};
    uint64_t address = code->address + at;
    enum sl_code_isa isa = next_isa(run, address);
    if (isa == SL_ISA_DATA) {
        /* data end at the next mapping symbol, if there is one within the bytes */
        bool ends = run->next_symbol < code->mapping_symbol_count &&
                    code->mapping_symbols[run->next_symbol].address - address < rest.size;
        rest.size = ends ? (size_t)(code->mapping_symbols[run->next_symbol].address - address) : rest.size;
        return put_data(rest, &run->line.text);
    }
    size_t size = run->engine.read(run->engine.state, isa, rest, address, &run->line);
    if (size) {
        if (run->line.has_target && run->reader->name)
            put_name(run->reader, run->line.target, &run->line.text);
        return size;
    }
    unsigned step = sl_disasm_step(code->arch, isa);
    rest.size = step < rest.size ? step : rest.size;
    put_invalid(rest, run->line.why, &run->line.text);
    return rest.size;
}

enum sl_code sl_disasm(const struct sl_disasm_code *code, const struct sl_disasm_reader *reader, uint64_t *decoded,
                       struct sl_error *error)
{
    struct disasm_run run = {.code = code, .reader = reader};
    uint64_t at = 0;
    bool good = true;
    if (!sl_disasm_arch(code->arch))
        return sl_fail(error, SL_UNSUPPORTED, "there is no disassembler for the architecture %s",
                       sl_arch_name(code->arch));
    if (!engine_open(code->arch, &run.engine))
        return sl_fail(error, SL_BUSY, "out of memory");
    /* starts behind the mapping symbols before this code: they are those of the whole file */
    run.next_symbol = SL_COUNT_UP_TO(code->mapping_symbols, code->mapping_symbol_count, address, code->address);
    while (good && at < code->size && at < code->bytes.size) {
        sl_buf_clear(&run.line.text);
        run.line.has_target = false;
        run.line.why = NULL;
        size_t size = read_line(&run, at);
        good = !run.line.text.failed && reader->line(reader->arg, at, sl_buf_view(&run.line.text));
        at += size;
    }
    run.engine.close(run.engine.state);
    sl_buf_free(&run.line.text);
    *decoded = at;
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}
