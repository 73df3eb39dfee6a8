#include "object/ar.h"

/* MAX_NAME: longer names are cut, because any number of members may refer to the same long name and each reads all of it. */
enum { MAGIC = 8, HEADER = 60, MAX_NAME = 1024 };

/* True if the file begins with the magic of 8 bytes. */
static bool begins(struct sl_bytes bytes, const char *magic)
{
    return bytes.size >= MAGIC && memcmp(bytes.data, magic, MAGIC) == 0;
}

bool sl_ar_detect(struct sl_bytes bytes)
{
    return begins(bytes, "!<arch>\n") || begins(bytes, "!<thin>\n");
}

void sl_ar_open(struct sl_bytes bytes, struct sl_ar *ar)
{
    *ar = (struct sl_ar){.bytes = bytes, .at = MAGIC, .thin = begins(bytes, "!<thin>\n")};
}

/* Reads the decimal number at the beginning of a field; what follows it (blanks that fill the field) is ignored. False if there is none. */
static bool read_decimal(struct sl_str text, uint64_t *value)
{
    return sl_str_take_u64(&text, value);
}

/* Returns the name at an offset of the table of names, at most MAX_NAME bytes; it ends at `/` and a newline, at a newline, or at a NUL. */
static struct sl_str name_at(struct sl_bytes names, uint64_t offset)
{
    struct sl_bytes rest = sl_bytes_part(names, offset, MAX_NAME);
    size_t size = 0;
    while (size < rest.size && rest.data[size] && rest.data[size] != '\n')
        size++;
    size -= size && size < rest.size && rest.data[size] == '\n' && rest.data[size - 1] == '/';
    return (struct sl_str){(const char *)rest.data, size};
}

/* Returns the name in the header's name field, without the `/` that ends it (GNU) and the blanks that fill the field. */
static struct sl_str short_name(struct sl_str field)
{
    while (field.size && field.data[field.size - 1] == ' ')
        field.size--;
    field.size -= field.size > 1 && field.data[field.size - 1] == '/'; /* a lone "/" is the symbol table's name */
    return field;
}

/* True for the members that are symbol tables of the archive itself. */
static bool is_index(struct sl_str name)
{
    return sl_str_equal(name, SL_STR("/")) || sl_str_equal(name, SL_STR("/SYM64")) ||
           sl_str_starts(name, SL_STR("__.SYMDEF")) || sl_str_equal(name, SL_STR("/<ECSYMBOLS>"));
}

/* Takes the first `size` bytes of the member's contents as its name (BSD archives); NULs that pad the name are dropped. False if the
 * contents are shorter. */
static bool read_long_name(struct sl_ar_member *m, uint64_t size)
{
    if (size > m->bytes.size)
        return false;
    m->name = (struct sl_str){(const char *)m->bytes.data, strnlen((const char *)m->bytes.data, (size_t)size)};
    m->bytes = sl_bytes_from(m->bytes, size);
    return true;
}

/* A name is "name/" (GNU), "/123" (the name is at this offset of the member "//") or "#1/12" (BSD: the contents begin with a name of 12
 * bytes). A thin archive contains only symbol tables and the member "//": names of other members are paths of files outside of it. */
bool sl_ar_next(struct sl_ar *ar, struct sl_ar_member *m)
{
    while (ar->at <= ar->bytes.size && ar->bytes.size - ar->at >= HEADER) {
        /* struct ar_hdr: name (16 bytes), time of change (12), owner (6), group (6), mode (8), size (10), then "`\n" */
        const char *header = (const char *)ar->bytes.data + ar->at;
        struct sl_str field = {header, 16};
        uint64_t size, number;
        if (!read_decimal((struct sl_str){header + 48, 10}, &size) || header[58] != '`' || header[59] != '\n')
            return false;
        bool is_name_table = sl_str_starts(field, SL_STR("// "));
        /* in a thin archive only the symbol tables and "//" have contents: their names begin with `/`, but not like "/123" */
        bool has_contents = !ar->thin || is_name_table || field.data[0] == '/';
        bool is_long = field.data[0] == '/' && read_decimal((struct sl_str){header + 1, 15}, &number);
        has_contents = has_contents && !(ar->thin && is_long);
        struct sl_bytes rest = sl_bytes_from(ar->bytes, ar->at + HEADER);
        if (has_contents && size > rest.size)
            return false;
        if (!read_decimal((struct sl_str){header + 16, 12}, &m->changed))
            m->changed = 0;
        m->bytes = has_contents ? sl_bytes_part(rest, 0, size) : (struct sl_bytes){NULL, 0};
        ar->at += HEADER + (has_contents ? (size_t)size + (size & 1) : 0); /* headers are at even offsets */
        if (is_name_table) {
            ar->names = m->bytes;
            continue;
        }
        m->name = is_long ? name_at(ar->names, number) : short_name(field);
        if (sl_str_starts(field, SL_STR("#1/")) &&
            (!read_decimal((struct sl_str){header + 3, 13}, &number) || !read_long_name(m, number)))
            return false;
        if (m->name.size && !is_index(m->name)) /* empty: a blank field, or the table has no name at the offset */
            return true;
    }
    return false;
}
