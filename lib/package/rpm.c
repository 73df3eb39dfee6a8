/* RPM packages (LSB, "Package File Format"): a lead of 96 bytes, the header of signatures, the header, the payload.
 *
 *     header    8e ad e8 01 | 4 zero bytes | u32 entries | u32 bytes of data | entries of 16 bytes | data
 *     entry     u32 tag | u32 type | u32 offset in the data | u32 count                      big-endian
 *
 * The header of signatures is padded to 8 bytes. */
#include <stdio.h>

#include "package/impl.h"

enum {
    LEAD = 96,
    HEADER = 16,
    ENTRY = 16,
    TYPE_STRING = 6,
    TAG_NAME = 1000,
    TAG_VERSION = 1001,
    TAG_RELEASE = 1002,
    TAG_SOURCERPM = 1044
};

/* Reads the header at offset `at`: sets `*entries` and `*data` to its parts and `*end` to the offset behind it. False if it is damaged. */
static bool read_header(struct sl_bytes file, uint64_t at, struct sl_bytes *entries, struct sl_bytes *data,
                        uint64_t *end)
{
    struct sl_reader r = sl_reader(file, true);
    sl_reader_seek(&r, at);
    uint32_t magic = sl_read_u32(&r);
    sl_reader_skip(&r, 4); /* reserved */
    uint64_t count = sl_read_u32(&r), size = sl_read_u32(&r);
    *entries = sl_read_bytes(&r, count * ENTRY);
    *data = sl_read_bytes(&r, size);
    *end = at + HEADER + count * ENTRY + size;
    return !r.failed && magic == 0x8EADE801;
}

/* Finds the header with name and version, behind the header of signatures, and its end. False if one of the two is damaged. */
static bool find_header(struct sl_bytes file, struct sl_bytes *entries, struct sl_bytes *data, uint64_t *end)
{
    uint64_t behind;
    return read_header(file, LEAD, entries, data, &behind) &&
           read_header(file, (behind + 7) & ~UINT64_C(7), entries, data, end);
}

struct sl_bytes rpm_payload(struct sl_bytes file)
{
    struct sl_bytes entries, data;
    uint64_t end;
    return find_header(file, &entries, &data, &end) ? sl_bytes_from(file, end) : (struct sl_bytes){NULL, 0};
}

/* Returns the string with a tag in a header; empty if there is none. */
static struct sl_str find_text(struct sl_bytes entries, struct sl_bytes data, uint32_t tag)
{
    struct sl_reader r = sl_reader(entries, true);
    while (sl_reader_left(&r) >= ENTRY) {
        uint32_t own = sl_read_u32(&r), type = sl_read_u32(&r), offset = sl_read_u32(&r);
        sl_reader_skip(&r, 4); /* number of values */
        if (own == tag && type == TYPE_STRING)
            return sl_cstr_at(data, offset);
    }
    return (struct sl_str){NULL, 0};
}

/* Sets name and version by the file name of a source RPM: "bash-5.2-1.src.rpm" becomes "bash 5.2-1". The version begins after the last
 * hyphen but one. Other names leave `source` empty. */
static void set_by_file_name(struct sl_str name, struct sl_package_source *source)
{
    static const char *const endings[] = {".src.rpm", ".nosrc.rpm"};
    for (size_t i = 0; i < 2; i++)
        if (sl_str_ends(name, sl_str(endings[i])))
            name.size -= strlen(endings[i]);
    size_t hyphens = 0, at = name.size;
    while (at > 0 && (hyphens += name.data[at - 1] == '-') < 2) /* back to the last hyphen but one */
        at--;
    if (at > 1 && name.size < SL_PACKAGE_NAME) /* `at` is behind the hyphen; 0: there are not two hyphens */
        snprintf(source->text, sizeof source->text, "%.*s " SL_STR_FMT, (int)at - 1, name.data,
                 SL_STR_ARG(((struct sl_str){name.data + at, name.size - at})));
}

/* Sets name and version of the source package from the file name of its source RPM. For a package that names no source RPM, takes the
 * package's own name, version and release. Leaves `source` empty if the header is damaged or the text would be too long. */
void rpm_source(struct sl_bytes file, struct sl_package_source *source)
{
    struct sl_bytes entries, data;
    uint64_t end;
    if (!find_header(file, &entries, &data, &end))
        return;
    struct sl_str from = find_text(entries, data, TAG_SOURCERPM), name = find_text(entries, data, TAG_NAME),
                  version = find_text(entries, data, TAG_VERSION), release = find_text(entries, data, TAG_RELEASE);
    if (from.size)
        set_by_file_name(from, source);
    else if (name.size && name.size + version.size + release.size < SL_PACKAGE_NAME - 3) /* blank, hyphen, NUL */
        snprintf(source->text, sizeof source->text, SL_STR_FMT " " SL_STR_FMT "-" SL_STR_FMT, SL_STR_ARG(name),
                 SL_STR_ARG(version), SL_STR_ARG(release));
}
