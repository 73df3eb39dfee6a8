/* Reads .debug_frame and .eh_frame: finds CIEs and FDEs; program.c runs their instructions.
 *
 *     length  id  ...      id: marks a CIE (data shared by FDEs), or locates the CIE of an FDE
 *
 * In .eh_frame the id of a CIE is 0, and that of an FDE the distance back to its CIE. In .debug_frame the id of a CIE is all
 * ones, and that of an FDE the offset of its CIE in the section. */
#include "unwind/dwarf.h"

#include <stdlib.h>

enum {
    DW_EH_PE_absptr = 0x00,
    DW_EH_PE_uleb128 = 0x01,
    DW_EH_PE_udata2 = 0x02,
    DW_EH_PE_udata4 = 0x03,
    DW_EH_PE_udata8 = 0x04,
    DW_EH_PE_sleb128 = 0x09,
    DW_EH_PE_sdata2 = 0x0A,
    DW_EH_PE_sdata4 = 0x0B,
    DW_EH_PE_sdata8 = 0x0C,
    DW_EH_PE_pcrel = 0x10,
    DW_EH_PE_aligned = 0x50,
    DW_EH_PE_omit = 0xFF,
    MAX_ARENA = 4 << 20, /* the arena of rule programs is emptied before the next FDE when it has more bytes */
};

struct unwind_fde_entry {  /* a CIE or an FDE */
    uint64_t offset;       /* in the section */
    uint64_t next;         /* offset of the entry after it */
    struct sl_reader body; /* the bytes after the id */
    bool is_cie;           /* else an FDE */
    bool is_end;           /* a terminator: an entry with length 0 */
    uint64_t cie_offset;   /* FDE: offset of its CIE in the section */
};

/* ---- pointers ---- */

/* Reads a value in one of the formats DW_EH_PE_absptr to DW_EH_PE_sdata8: the low four bits of a pointer encoding. Another format sets
 * r->failed. */
static uint64_t read_value(struct sl_reader *r, unsigned format, unsigned address_size)
{
    switch (format) {
    case DW_EH_PE_absptr: return sl_read_uint(r, address_size);
    case DW_EH_PE_uleb128: return sl_read_uleb(r);
    case DW_EH_PE_udata2: return sl_read_u16(r);
    case DW_EH_PE_udata4: return sl_read_u32(r);
    case DW_EH_PE_udata8: return sl_read_u64(r);
    case DW_EH_PE_sleb128: return (uint64_t)sl_read_sleb(r);
    case DW_EH_PE_sdata2: return (uint64_t)(int16_t)sl_read_u16(r);
    case DW_EH_PE_sdata4: return (uint64_t)(int32_t)sl_read_u32(r);
    case DW_EH_PE_sdata8: return sl_read_u64(r);
    default: r->failed = true; return 0;
    }
}

/* Returns the lowest `size` bytes of the value. */
static uint64_t truncate_to(uint64_t value, unsigned size)
{
    return size < 8 ? value & ((UINT64_C(1) << (8 * size)) - 1) : value;
}

/* A pointer may be relative to its own position, which is computed from r->at: so `r` must point into f->bytes. */
bool frames_pointer(const struct cfi_section_data *frames, struct sl_reader *r, uint8_t encoding, unsigned address_size,
                    uint64_t *value)
{
    uint64_t position = frames->address + (uint64_t)(r->at - frames->bytes.data);
    unsigned base = encoding & 0x70;
    if (base == DW_EH_PE_aligned) {
        sl_reader_skip(r, -position & (address_size - 1));
        encoding = DW_EH_PE_absptr;
        base = 0;
    }
    *value = read_value(r, encoding & 0x0F, address_size);
    if (base == DW_EH_PE_pcrel)
        *value += position;
    *value = truncate_to(*value, address_size);
    /* 0x80 is DW_EH_PE_indirect */
    return !r->failed && !(encoding & 0x80) && (base == 0 || base == DW_EH_PE_pcrel);
}

/* ---- entries ---- */

/* Reads the header of the CIE or FDE at an offset of the section. False if it extends beyond the end of the section. */
static bool dwarf_read_entry(const struct cfi_section_data *f, uint64_t offset, struct unwind_fde_entry *e)
{
    struct sl_reader r = sl_reader(f->bytes, f->big_endian);
    sl_reader_seek(&r, offset);
    uint64_t length = sl_read_u32(&r);
    bool is_64bit = length == 0xFFFFFFFF;
    if (is_64bit)
        length = sl_read_u64(&r);
    *e = (struct unwind_fde_entry){.offset = offset, .is_end = length == 0}; /* length 0: a terminator */
    uint64_t begin = sl_reader_offset(&r);
    struct sl_bytes contents = sl_read_bytes(&r, length);
    if (r.failed)
        return false;
    e->next = begin + length;
    e->body = (struct sl_reader){contents.data, contents.data, contents.data + contents.size, f->big_endian, false};
    if (e->is_end)
        return true;
    /* in .eh_frame the id has four bytes, even if the length has more */
    bool wide = is_64bit && !f->is_eh;
    uint64_t id = wide ? sl_read_u64(&e->body) : sl_read_u32(&e->body);
    e->is_cie = id == (f->is_eh ? 0 : wide ? UINT64_MAX : UINT32_MAX);
    e->cie_offset = f->is_eh ? begin - id : id; /* in .eh_frame it is a distance backwards from the id itself */
    return true;
}

/* Reads the augmentation data of a CIE: for each letter of the augmentation string behind `z` one item: R the encoding of pointers in FDEs,
 * L that of their LSDA pointers, P the personality routine. S (signal frame), B and G have no item. False for an unknown letter, because
 * the size of its item is unknown. */
static bool read_augmentation(const struct cfi_section_data *f, struct cie *cie, struct sl_str letters,
                              struct sl_reader *r)
{
    uint64_t ignored;
    for (size_t i = 1; i < letters.size; i++) /* letter 0 is `z` */
        switch (letters.data[i]) {
        case 'R': cie->pointer_encoding = sl_read_u8(r); break;
        case 'L': sl_read_u8(r); break;
        case 'P': {
            uint8_t encoding = sl_read_u8(r);
            if (encoding !=
                DW_EH_PE_omit) /* the pointer is only skipped, so any kind will do; r->failed if it is cut off */
                frames_pointer(f, r, encoding, cie->address_size, &ignored);
            break;
        }
        case 'S': cie->signal_frame = true; break;
        case 'B': /* return addresses are signed with key B */
        case 'G': /* the stack is tagged (MTE) */ break;
        default: return false;
        }
    return !r->failed;
}

static bool is_address_size(unsigned size)
{
    return size == 2 || size == 4 || size == 8;
}

/* Reads a CIE and runs its instructions. False if it is malformed or of an unknown version. */
static bool read_cie(const struct cfi_section_data *f, const struct unwind_fde_entry *e, struct cie *cie,
                     struct unwind_builder *b)
{
    struct sl_reader r = e->body;
    uint8_t version = sl_read_u8(&r);
    struct sl_str letters = sl_read_cstr(&r);
    cie->address_size = f->pointer_size;
    cie->segment_size = 0;
    cie->pointer_encoding = DW_EH_PE_absptr;
    cie->signal_frame = false;
    if (version != 1 && version != 3 && version != 4)
        return false;
    if (version == 4) {
        cie->address_size = sl_read_u8(&r);
        cie->segment_size = sl_read_u8(&r);
    }
    if (sl_str_equal(letters, SL_STR("eh"))) /* GCC 2 stored a pointer to an exception table here */
        sl_reader_skip(&r, cie->address_size);
    cie->code_alignment = sl_read_uleb(&r);
    cie->data_alignment = sl_read_sleb(&r);
    cie->return_register = version == 1 ? sl_read_u8(&r) : sl_read_uleb(&r);
    cie->has_augmentation_data = letters.size && letters.data[0] == 'z';
    if (r.failed || !is_address_size(cie->address_size) || cie->segment_size > 8)
        return false;
    if (cie->has_augmentation_data) {
        uint64_t size = sl_read_uleb(&r);
        struct sl_reader data = r;
        sl_read_bytes(&r, size);
        data.end = r.at;
        if (r.failed || !read_augmentation(f, cie, letters, &data))
            return false;
    } else if (letters.size && !sl_str_equal(letters, SL_STR("eh"))) {
        return false; /* an unknown augmentation without `z`: its size is unknown */
    }
    cie->instructions = sl_read_bytes(&r, sl_reader_left(&r));
    return program_begin(f, cie, b);
}

/* Marks `cie` as not read. `usable` is cleared too, because a damaged FDE may name UINT64_MAX as the offset of its CIE. */
static void forget_cie(struct cie *cie)
{
    cie->offset = UINT64_MAX;
    cie->usable = false;
}

/* Fills `cie` with the CIE at an offset of the section; nothing to do if `cie` has it from the previous FDE, as is usual. False if the CIE
 * is malformed. */
static bool find_cie(const struct cfi_section_data *f, uint64_t offset, struct cie *cie, struct unwind_builder *b)
{
    struct unwind_fde_entry e;
    if (b->arena.used > MAX_ARENA) { /* the CIE's rules may point into the arena, so it must be read again */
        sl_arena_reset(&b->arena);
        forget_cie(cie);
    }
    if (cie->offset == offset)
        return cie->usable;
    cie->offset = offset;
    cie->usable = offset < f->bytes.size && dwarf_read_entry(f, offset, &e) && e.is_cie && read_cie(f, &e, cie, b);
    return cie->usable;
}

/* True if the linker removed the code of the function: then it sets the FDE's start address to all ones, or to a small number, which is
 * below the load address. */
static bool is_dropped(const struct cfi_section_data *f, const struct cie *cie, const struct fde *fde)
{
    return fde->start == truncate_to(UINT64_MAX, cie->address_size) || fde->start < f->load_address;
}

/* Reads an FDE and passes its rules to the builder. False if it or its CIE is malformed. An FDE of no code, or of code that the linker
 * removed, is no error and gives no rules. */
static bool read_fde(const struct cfi_section_data *f, const struct unwind_fde_entry *e, struct cie *cie,
                     struct unwind_builder *b)
{
    struct fde fde;
    uint64_t size;
    struct sl_reader r = e->body;
    if (!find_cie(f, e->cie_offset, cie, b))
        return false;
    sl_reader_skip(&r, cie->segment_size);
    if (!frames_pointer(f, &r, cie->pointer_encoding, cie->address_size, &fde.start) ||
        !frames_pointer(f, &r, cie->pointer_encoding & 0x0F, cie->address_size, &size) || /* a size is not relative */
        __builtin_add_overflow(fde.start, size, &fde.end))
        return false;
    if (cie->has_augmentation_data)
        sl_reader_skip(&r, sl_read_uleb(&r));
    if (r.failed)
        return false;
    if (is_dropped(f, cie, &fde) || size == 0)
        return true;
    fde.instructions = sl_read_bytes(&r, sl_reader_left(&r));
    /* b->ra is the register with the return address at function entry, on CPUs where calls set one; `.ra` itself if there is none */
    bool in_register =
        has_return_register(b->family) &&
        sl_unwind_register_name(b->family, cie->return_register < SL_UNWIND_NAMED ? (unsigned)cie->return_register
                                                                                  : SL_UNWIND_NAMED) != NULL;
    b->ra = in_register ? (uint16_t)cie->return_register : SL_UNWIND_RA;
    b->signal_frame = cie->signal_frame;
    bool ok = program_run(f, cie, &fde, b);
    b->signal_frame = false; /* other tables, which do not set it, may be read next */
    return ok;
}

enum sl_code frames_read(const struct cfi_section_data *f, struct unwind_builder *b)
{
    struct unwind_fde_entry e;
    uint64_t offset = 0;
    struct cie *cie = malloc(sizeof *cie);
    if (!cie)
        return b->code = sl_fail(b->error, SL_BUSY, "out of memory");
    forget_cie(cie);
    while (b->code == SL_OK && offset < f->bytes.size) {
        if (!dwarf_read_entry(f, offset, &e)) {
            if (f->bytes.size - offset >= 4) /* fewer bytes are padding */
                b->code = sl_fail(b->error, SL_MALFORMED,
                                  "%s: the entry at offset 0x%llx extends beyond the end of the section",
                                  f->is_eh ? "eh_frame" : "debug_frame", (unsigned long long)offset);
            break;
        }
        builder_spend(b, 1);
        /* a CIE is read when an FDE needs it; a terminator is skipped, and reading goes on behind it */
        if (!e.is_end && !e.is_cie && !read_fde(f, &e, cie, b))
            b->sink->skipped++;
        offset = e.next;
    }
    free(cie);
    return b->code;
}

enum sl_code frames_read_at(const struct cfi_section_data *f, uint64_t offset, struct unwind_builder *b)
{
    struct unwind_fde_entry e;
    struct cie *cie = malloc(sizeof *cie);
    if (!cie)
        return b->code = sl_fail(b->error, SL_BUSY, "out of memory");
    forget_cie(cie);
    if (offset >= f->bytes.size || !dwarf_read_entry(f, offset, &e) || e.is_end || e.is_cie || !read_fde(f, &e, cie, b))
        b->sink->skipped++;
    free(cie);
    return b->code;
}
