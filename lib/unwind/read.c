/* sl_unwind_read(): finds the tables with unwind information of an object and decides which of them are read, in which order. */
#include "unwind/impl.h"

/* Opens .eh_frame (`is_eh`) or .debug_frame; its bytes are empty if the file has none. `swapped` is set for __eh_frame of Apple's 32-bit
 * x86, which exchanges the numbers of esp and ebp. */
static struct cfi_section_data open_frames(struct sl_object *object, bool is_eh)
{
    const struct sl_object_info *info = sl_object_info(object);
    enum sl_cpu_family family = sl_arch_family(info->arch);
    struct cfi_section_data frames = {
        .load_address = info->load_address,
        .pointer_size = sl_cpu_pointer_size(family),
        .big_endian = info->big_endian,
        .is_eh = is_eh,
        .swapped = is_eh && info->format == SL_FORMAT_MACHO && family == SL_CPU_X86,
    };
    /* in relocatable files the addresses in .eh_frame are not yet relocated */
    if ((!is_eh || info->kind != SL_KIND_REL) &&
        sl_object_section(object, is_eh ? "eh_frame" : "debug_frame", &frames.bytes, &frames.address))
        frames.address += info->load_address;
    return frames;
}

/* Called after a table was read: true if the next table is to be read too. So it is after a malformed table; its SL_MALFORMED moves from
 * b->code to `*first`, to be reported at the end. Other failures, also of the work budget, stop the reading and stay in b->code. */
static bool goes_on(struct unwind_builder *b, enum sl_code *first)
{
    if ((b->code != SL_OK && b->code != SL_MALFORMED) || sl_budget_exhausted(b->account.budget))
        return false;
    *first = *first == SL_OK ? b->code : *first;
    b->code = SL_OK;
    return true;
}

/* Reads .debug_frame, then Apple's compact encodings (which name FDEs of __eh_frame) or all of .eh_frame, then ARM's tables. ARM's are
 * valid only at calls, so they are used only for code that no other table covers. A damaged table does not keep the next one from being
 * read; the first such error is returned at the end. */
static enum sl_code read_dwarf(struct sl_object *object, struct unwind_builder *b)
{
    const struct sl_object_info *info = sl_object_info(object);
    struct cfi_section_data debug = open_frames(object, false), eh = open_frames(object, true);
    struct sl_bytes compact;
    enum sl_code first = SL_OK;
    bool has_ehabi = info->format == SL_FORMAT_ELF && b->family == SL_CPU_ARM && info->kind != SL_KIND_REL;
    b->keeps_spans = has_ehabi; /* record which code the first two tables cover, for ehabi_read() */
    frames_read(&debug, b);
    if (!goes_on(b, &first))
        return b->code;
    if (info->format == SL_FORMAT_MACHO && info->kind != SL_KIND_REL &&
        sl_object_section(object, "unwind_info", &compact, NULL))
        compact_read(object, compact, &eh, b);
    else
        frames_read(&eh, b);
    if (has_ehabi && goes_on(b, &first))
        ehabi_read(object, b);
    if (b->code == SL_OK)
        b->code = first;
    return b->code;
}

/* Reads the tables of the object's format. A PE file may have DWARF sections from GCC; they are read if its exception directory gives no
 * rules. */
static enum sl_code read_tables(struct sl_object *object, struct unwind_builder *b)
{
    switch (sl_format_traits(sl_object_info(object)->format)->unwind) {
    case SL_UNWIND_NONE: return SL_OK;
    case SL_UNWIND_DWARF: return read_dwarf(object, b);
    case SL_UNWIND_PE:
        if ((b->family == SL_CPU_X86_64 || b->family == SL_CPU_ARM64) && (pe_read(object, b) != SL_OK || b->emitted))
            return b->code;
        return read_dwarf(object, b);
    case SL_UNWIND_PDB: return pdb_read(object, b);
    case SL_UNWIND_BREAKPAD: return breakpad_stack_read(object, b);
    }
    return SL_OK;
}

/* Reads all tables of the object with unwind information; the builder passes their rules to the sink. SL_NOT_FOUND if there are none;
 * SL_MALFORMED if one is damaged, after all were read; SL_BUSY when out of memory; or the code with which the sink refused a rule. */
enum sl_code sl_unwind_read(struct sl_object *object, struct sl_unwind_sink *sink, struct sl_error *error)
{
    struct unwind_builder b;
    if (!builder_init(&b, sink, sl_arch_family(sl_object_info(object)->arch), sl_object_budget(object), error))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = read_tables(object, &b);
    if (code == SL_OK)
        code = sl_object_status(object, error); /* fails if memory was short for inflating a section */
    if (code == SL_OK && !b.emitted)
        code = sl_fail(error, SL_NOT_FOUND, "the file has no unwind information");
    builder_free(&b);
    return code;
}
