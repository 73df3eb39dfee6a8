/* Finds the pclntab of a Go program (package debug/gosym of Go's library; cmd/link, "pclntab"). */
#include "object/impl.h"

enum { HEADER = 8, SMALLEST_TABLE = 64, TABLE_ALIGNMENT = 8 };

/* True if a header of a pclntab begins here: magic u32 (of Go 1.2, 1.16, 1.18, 1.20), two zeros, the quantum of
 * instruction addresses, the size of a pointer. */
static bool is_header(struct sl_bytes bytes, bool big_endian)
{
    static const uint32_t magics[] = {0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1};
    if (bytes.size < HEADER || bytes.data[4] || bytes.data[5])
        return false;
    struct sl_reader r = sl_reader(bytes, big_endian);
    uint32_t magic = sl_read_u32(&r);
    uint8_t quantum = bytes.data[6], pointer = bytes.data[7];
    bool known = false;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        known = known || magic == magics[i];
    return known && (quantum == 1 || quantum == 2 || quantum == 4) && (pointer == 4 || pointer == 8);
}

/* Searches the segments for the header of a pclntab. Sets `*table`, from there to the end of the segment, and `*address`; false if there is
 * none. The highest byte of all magics is 0xFF, so other positions are skipped at once. Segments of real programs share no bytes of the
 * file; where they do in a crafted one, no more bytes are read than the file has. */
static bool scan(const struct sl_object *object, struct sl_bytes *table, uint64_t *address)
{
    struct sl_segment s;
    size_t high = object->info.big_endian ? 0 : 3, left = object->bytes.size;
    for (size_t i = 0; sl_object_segment(object, i, &s) && s.bytes.size <= left; left -= s.bytes.size, i++)
        for (size_t at = 0; at + SMALLEST_TABLE < s.bytes.size; at += TABLE_ALIGNMENT)
            if (s.bytes.data[at + high] == 0xFF && is_header(sl_bytes_from(s.bytes, at), object->info.big_endian)) {
                *table = sl_bytes_from(s.bytes, at);
                *address = s.address + at;
                return true;
            }
    return false;
}

/* True if the object may be a Go program whose pclntab has no section of its own:
 *  - an ELF file with another section of Go (not linked by Go's linker) or without section headers (stripped), but not an object file,
 *    which is not linked and has no pclntab yet;
 *  - a PE file with a .symtab section, which Go's linker adds to all PE files, also without symbols. */
static bool may_lack_section(struct sl_object *object)
{
    static const char *const elf_signs[] = {"go.buildinfo", "note.go.buildid"};
    struct sl_section_info section;
    struct sl_bytes bytes;
    if (object->info.format == SL_FORMAT_ELF) {
        bool found = !sl_object_section_info(object, 0, &section); /* no sections */
        for (size_t i = 0; i < sizeof elf_signs / sizeof *elf_signs; i++)
            found = found || sl_object_section(object, elf_signs[i], &bytes, NULL);
        return found && object->info.kind != SL_KIND_REL;
    }
    bool found = false;
    for (size_t i = 0; object->info.format == SL_FORMAT_PE && sl_object_section_info(object, i, &section); i++)
        found = found || sl_str_equal(section.name, SL_STR(".symtab"));
    return found;
}

bool sl_object_go_table(struct sl_object *object, struct sl_bytes *table, uint64_t *address)
{
    return sl_object_section(object, "gopclntab", table, address) ||
           sl_object_section(object, "data.rel.ro.gopclntab", table, address) ||
           (may_lack_section(object) && scan(object, table, address));
}

bool object_has_go_table(struct sl_object *object)
{
    struct sl_bytes table;
    uint64_t address;
    return sl_object_go_table(object, &table, &address);
}
