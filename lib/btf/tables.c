/* Reads the headers of .BTF and .BTF.ext, the types, and the records of functions and lines. The magic of each section gives its byte
 * order. */
#include "btf/impl.h"

#include <stdlib.h>

enum {
    MAGIC = 0xEB9F,
    MAGIC_SWAPPED = 0x9FEB,
    VERSION = 1,
    HEADER = 24, /* bytes of either header that are read here */
    KIND_FUNC = 12,
    FUNCTION_RECORD = 8,
    LINE_RECORD = 16,
    LINE_SHIFT = 10, /* the lower bits are the column */
    STEPS_PER_SECTION = 2,
    /* For each byte of text that is read beyond the size of the string table, which shows that texts overlap. */
    STEPS_PER_OVERLAP = 16,
};

/* For each BTF_KIND: `fixed` bytes after the 12-byte header of a type, and `each` bytes for each of its members. Kinds that are not listed
 * have neither. Of kinds above the last the size is unknown. */
static const struct {
    uint8_t fixed, each;
} kinds[] = {
    [1] = {4, 0},  [3] = {12, 0}, [4] = {0, 12},  [5] = {0, 12}, [6] = {0, 8},
    [13] = {0, 8}, [14] = {4, 0}, [15] = {0, 12}, [17] = {4, 0}, [19] = {0, 12},
};

/* Counts a damaged part that is left out; the first one is kept as an error to show. */
#define SKIP(tables, ...)                                                                                              \
    do {                                                                                                               \
        if (!(tables)->skipped++)                                                                                      \
            sl_fail(&(tables)->first_skipped, SL_MALFORMED, __VA_ARGS__);                                              \
    } while (0)

/* Checks the header of a section. `*parts` becomes the bytes after the header, from which the offsets in the header count. `*r` is left in
 * the header at the offsets and sizes (u32 each) of the section's parts. False, with the section counted as skipped, if it is invalid. */
static bool open_section(struct btf_tables *t, const char *name, struct sl_bytes section, struct sl_bytes *parts,
                         struct sl_reader *r)
{
    *r = sl_reader(section, sl_object_info(t->object)->big_endian);
    uint16_t magic = sl_read_u16(r);
    if (magic == MAGIC_SWAPPED)
        r->big_endian = !r->big_endian;
    uint8_t version = sl_read_u8(r);
    sl_read_u8(r); /* flags */
    uint32_t header = sl_read_u32(r);
    if (r->failed || (magic != MAGIC && magic != MAGIC_SWAPPED) || header < HEADER || header > section.size) {
        SKIP(t, "invalid header of section .%s", name);
        return false;
    }
    if (version != VERSION) {
        SKIP(t, "unsupported version %u of section .%s", version, name);
        return false;
    }
    *parts = sl_bytes_from(section, header);
    return true;
}

/* Reads the offset and size of the next part from the header and returns its bytes. A part that extends beyond the section is counted as
 * skipped, and the result is empty. */
static struct sl_bytes read_part(struct btf_tables *t, struct sl_bytes parts, struct sl_reader *r, const char *what)
{
    bool inside;
    uint32_t offset = sl_read_u32(r), size = sl_read_u32(r);
    struct sl_bytes part = sl_bytes_slice(parts, offset, size, &inside);
    if (!inside)
        SKIP(t, "%s extend beyond it", what);
    return part;
}

/* Fills t->names, by type number: the offset of the name of a type of kind FUNC, 0 for others. Records of types have different sizes, so
 * reading ends at the first unknown or truncated one; functions whose type comes later stay without a name. */
static void read_types(struct btf_tables *t, struct sl_bytes types, bool big_endian)
{
    struct sl_reader r = sl_reader(types, big_endian);
    uint32_t name = 0; /* type 0 is void */
    for (;;) {         /* adds the name of the type before, then reads the next type */
        if (!sl_account_grow(&t->account, &t->names, &t->type_capacity, t->type_count + 1, sizeof *t->names))
            return;
        t->names[t->type_count++] = name;
        if (!sl_reader_left(&r))
            return;
        name = sl_read_u32(&r);
        uint32_t info = sl_read_u32(&r), kind = info >> 24 & 0x1F, members = info & 0xFFFF;
        sl_read_u32(&r); /* size or type */
        if (!r.failed && kind >= sizeof kinds / sizeof *kinds) {
            SKIP(t, "type %zu of section .BTF has unknown kind %u", t->type_count, kind);
            return;
        }
        if (!r.failed)
            sl_reader_skip(&r, kinds[kind].fixed + (uint64_t)kinds[kind].each * members);
        if (r.failed) {
            SKIP(t, "type %zu of section .BTF extends beyond it", t->type_count);
            return;
        }
        name = kind == KIND_FUNC ? name : 0;
    }
}

/* If no text is read twice, all texts together are not larger than the table. Text beyond that costs steps of the budget: records of a
 * hostile file may all refer to one long text. */
struct sl_str btf_text(struct btf_tables *t, uint32_t offset)
{
    struct sl_str text = sl_account_read_name(&t->account, t->strings, offset);
    t->text_size += text.size;
    if (t->text_size > t->strings.size && !sl_account_spend(&t->account, (uint32_t)text.size * STEPS_PER_OVERLAP))
        text.size = 0;
    t->account.failed = t->account.failed || (!text.size && sl_budget_exhausted(t->account.budget));
    return text;
}

/* Fills t->sections, and t->by_name, which finds them by name: records of .BTF.ext refer to sections by name. account.failed if memory or
 * budget is exhausted. */
static void index_sections(struct btf_tables *t)
{
    struct sl_section_info info;
    t->by_name.budget = t->account.budget;
    for (size_t i = 0; !t->account.failed && sl_object_section_info(t->object, i, &info); i++) {
        bool is_new;
        void **slot = sl_map_find_or_add(&t->by_name, info.name, &is_new);
        /* steps for the section and for hashing its name */
        t->account.failed = !slot ||
                            !sl_account_spend(&t->account, STEPS_PER_SECTION + (uint32_t)(info.name.size / 8)) ||
                            !sl_account_grow(&t->account, &t->sections, &t->section_capacity, t->section_count + 1,
                                             sizeof *t->sections);
        if (!t->account.failed && is_new) {
            t->sections[t->section_count++] = (struct btf_section){info, false};
            *slot = (void *)(uintptr_t)t->section_count; /* its index plus 1 */
        } else if (!t->account.failed) {
            t->sections[(uintptr_t)*slot - 1].is_double = true;
        }
    }
}

/* Returns the section whose name is at `offset` of the string table; NULL, counted as skipped, if there is none or more than one. */
static const struct sl_section_info *find_section(struct btf_tables *t, uint32_t offset)
{
    struct sl_str name = btf_text(t, offset);
    uintptr_t index = name.size ? (uintptr_t)sl_map_get(&t->by_name, name) : 0;
    if (index && !t->sections[index - 1].is_double)
        return &t->sections[index - 1].info;
    SKIP(t, "section .BTF.ext refers to section \"" SL_STR_FMT "\" that is %s", SL_STR_ARG(name),
         index ? "present more than once" : "missing");
    return NULL;
}

/* Adds `count` records of `size` bytes each for code of one section; newer versions may have longer records, whose additional bytes are
 * ignored. A function record refers to a type, from which its name is taken; a line record refers to a path. Line 0 marks code without a
 * line: its path is not used. Stops at the first record beyond the section. */
static void read_records(struct btf_tables *t, struct sl_reader *r, uint32_t count, uint32_t size,
                         const struct sl_section_info *section, bool are_lines)
{
    struct btf_records *list = are_lines ? &t->lines : &t->functions;
    uint64_t begin = section->address - sl_object_info(t->object)->load_address;
    bool good = begin <= UINT64_MAX - section->size; /* false: no address of the section can be used */
    t->account.failed = t->account.failed || !sl_account_grow(&t->account, &list->items, &list->capacity,
                                                              list->count + count, sizeof *list->items);
    for (uint32_t i = 0; i < count && good && !t->account.failed; i++) {
        struct sl_reader record = sl_reader(sl_read_bytes(r, size), r->big_endian);
        uint32_t offset = sl_read_u32(&record), value = sl_read_u32(&record), line = 0;
        if (are_lines) {
            sl_read_u32(&record); /* the text of the line */
            line = sl_read_u32(&record) >> LINE_SHIFT;
        } else {
            value = value < t->type_count ? t->names[value] : 0;
        }
        good = offset < section->size;
        if (good)
            list->items[list->count++] =
                (struct btf_record){begin + offset, begin + section->size, line || !are_lines ? value : 0, line};
    }
    if (!good)
        SKIP(t, "section .BTF.ext has %s beyond the end of section \"" SL_STR_FMT "\"",
             are_lines ? "lines" : "functions", SL_STR_ARG(section->name));
}

/* Reads func_info (or with `are_lines` line_info): the size of a record, then for each section its name, the number of its records, and the
 * records. The records of a section that is not found are skipped. */
static void read_infos(struct btf_tables *t, struct sl_bytes part, bool big_endian, bool are_lines)
{
    struct sl_reader r = sl_reader(part, big_endian);
    if (!part.size)
        return;
    uint32_t size = sl_read_u32(&r);
    if (r.failed || size < (are_lines ? LINE_RECORD : FUNCTION_RECORD)) {
        SKIP(t, "records of section .BTF.ext are too small");
        return;
    }
    while (sl_reader_left(&r) && !t->account.failed) {
        uint32_t name = sl_read_u32(&r), count = sl_read_u32(&r);
        if (r.failed || count > sl_reader_left(&r) / size) {
            SKIP(t, "%s extend beyond section .BTF.ext", are_lines ? "lines" : "functions");
            return;
        }
        struct sl_reader group = r;
        sl_reader_skip(&r, (uint64_t)count * size);
        const struct sl_section_info *section = find_section(t, name);
        if (section)
            read_records(t, &group, count, size, section, are_lines);
    }
}

enum sl_code btf_tables_open(struct btf_tables *t, struct sl_object *object, struct sl_error *error)
{
    struct sl_bytes btf, ext, parts;
    struct sl_reader r;
    struct sl_budget *budget = sl_object_budget(object);
    *t = (struct btf_tables){.object = object, .account.budget = budget};
    if (!sl_object_section(object, "BTF.ext", &ext, NULL) || !sl_object_section(object, "BTF", &btf, NULL))
        return sl_fail(error, SL_NOT_FOUND, "the object does not have both of the sections .BTF and .BTF.ext");
    if (open_section(t, "BTF", btf, &parts, &r)) {
        struct sl_bytes types = read_part(t, parts, &r, "the types of section .BTF");
        t->strings = read_part(t, parts, &r, "the strings of section .BTF");
        read_types(t, types, r.big_endian);
    }
    if (t->strings.size && open_section(t, "BTF.ext", ext, &parts, &r)) { /* without strings no section can be found */
        struct sl_bytes functions = read_part(t, parts, &r, "the functions of section .BTF.ext");
        struct sl_bytes lines = read_part(t, parts, &r, "the lines of section .BTF.ext");
        index_sections(t);
        read_infos(t, functions, r.big_endian, false);
        read_infos(t, lines, r.big_endian, true);
    }
    return t->account.failed ? sl_budget_fail(budget, error) : SL_OK;
}

/* Frees the tables' arrays and uncharges them from the budget. The strings and names are views of the object. */
void btf_tables_close(struct btf_tables *t)
{
    free(t->names);
    free(t->sections);
    sl_map_free(&t->by_name);
    free(t->functions.items);
    free(t->lines.items);
    sl_account_release(&t->account);
}
