/* Finds `runtime.moduledata`, the runtime's own data about the program: words of a pointer's size. The first words are the address of
 * the table and the slices of its parts:
 *
 *     0 header   1 names   4 units' files   ...   22 start of the code   ...   38 or 40 trees of inlined calls
 *
 * Nothing refers to it, so it is searched for by its first words. Position-independent programs have its pointers in relocations. */
#include "go/impl.h"

enum {
    WORD_HEADER = 0,
    WORD_NAMES = 1,
    WORD_CUS = 4,
    WORD_TEXT = 22,
    WORD_TREES_118 = 38,
    WORD_TREES_120 = 40,
    WORDS,
    MAX_CANDIDATES = 4, /* relocations with the table's address that are tried */
    RELOCATION = 24,    /* bytes of Elf64_Rela */
};

struct go_module_data {
    uint64_t words[WORDS];
};

/* True if the words are those of moduledata: they have the addresses of the table's header and parts. Then sets the table's `text`, and
 * `tree_base` if that address is in the file. */
static bool accept_words(struct go_table *t, const struct go_module_data *m)
{
    uint64_t trees = m->words[t->version >= GO_120 ? WORD_TREES_120 : WORD_TREES_118];
    if (m->words[WORD_HEADER] != t->address || m->words[WORD_NAMES] != t->address + t->names_at ||
        m->words[WORD_CUS] != t->address + t->cus_at)
        return false;
    t->text = m->words[WORD_TEXT];
    if (sl_object_at(t->object, trees - sl_object_info(t->object)->load_address).size)
        t->tree_base = trees;
    return true;
}

static void read_words(const struct go_table *t, struct sl_bytes bytes, struct go_module_data *m)
{
    struct sl_reader r = sl_reader(bytes, t->big_endian);
    for (size_t i = 0; i < WORDS; i++)
        m->words[i] = sl_read_uint(&r, t->pointer_size);
}

static uint64_t pointer_at(const struct go_table *t, const uint8_t *at)
{
    struct sl_reader r = sl_reader((struct sl_bytes){at, t->pointer_size}, t->big_endian);
    return sl_read_uint(&r, t->pointer_size);
}

/* Searches the data segments of the file for the first words of moduledata. Segments of programs do not share bytes of the file; where they
 * do in a hostile file, no more bytes are read than the file has. False if it is not found. */
static bool find_in_data(struct go_table *t)
{
    struct sl_segment s;
    struct go_module_data m;
    size_t left = sl_object_file(t->object).size;
    for (size_t i = 0; sl_object_segment(t->object, i, &s) && s.bytes.size <= left; left -= s.bytes.size, i++) {
        size_t step = t->pointer_size, last = s.bytes.size < WORDS * step ? 0 : s.bytes.size - WORDS * step + 1;
        if (s.executable)
            continue;
        for (size_t at = 0; at < last; at += step) {
            if (pointer_at(t, s.bytes.data + at) != t->address)
                continue;
            read_words(t, sl_bytes_from(s.bytes, at), &m);
            if (accept_words(t, &m))
                return true;
        }
    }
    return false;
}

/* Takes the words at `address` for moduledata, with those that relocations of a 64-bit ELF file set: {address, type, value}. False if they
 * are not moduledata. */
static bool read_relocated(struct go_table *t, struct sl_bytes relocations, uint64_t address)
{
    struct go_module_data m;
    read_words(t, sl_object_at(t->object, address - sl_object_info(t->object)->load_address), &m);
    struct sl_reader r = sl_reader(relocations, t->big_endian);
    while (sl_reader_left(&r) >= RELOCATION) {
        uint64_t at = sl_read_u64(&r) - address;
        sl_read_u64(&r);
        uint64_t value = sl_read_u64(&r);
        if (at < sizeof m.words && at % 8 == 0)
            m.words[at / 8] = value;
    }
    return accept_words(t, &m);
}

/* Finds the first word of moduledata by the relocation that sets it to the table's address. Only a few are tried: each attempt reads all
 * relocations. False if it is not found. */
static bool find_in_relocations(struct go_table *t)
{
    struct sl_bytes relocations;
    const struct sl_object_info *info = sl_object_info(t->object);
    size_t candidates = 0;
    if (info->format != SL_FORMAT_ELF || t->pointer_size != 8 ||
        !sl_object_section(t->object, "rela.dyn", &relocations, NULL))
        return false;
    struct sl_reader r = sl_reader(relocations, t->big_endian);
    while (sl_reader_left(&r) >= RELOCATION && candidates < MAX_CANDIDATES) {
        uint64_t address = sl_read_u64(&r);
        sl_read_u64(&r); /* symbol and type */
        if (sl_read_u64(&r) == t->address && ++candidates && read_relocated(t, relocations, address))
            return true;
    }
    return false;
}

void go_module_find(struct go_table *t)
{
    if (!find_in_data(t))
        find_in_relocations(t);
}
