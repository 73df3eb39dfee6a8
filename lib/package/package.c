/* Recognises packages and calls the reader of each kind. */
#include <stdio.h>

#include "object/ar.h"
#include "package/impl.h"

const char *sl_package_kind_name(enum sl_package_kind kind)
{
    static const char *const names[SL_PACKAGE_KINDS] = {"file", "deb", "rpm", "tar", "cpio", "zip"};
    return names[kind];
}

/* ---- recognition ---- */

static bool is_deb(struct sl_bytes bytes)
{
    return bytes.size >= 21 && memcmp(bytes.data, "!<arch>\ndebian-binary", 21) == 0;
}

/* True if the 512 bytes are the header of a tar member: its field chksum has the sum of all its bytes in octal digits, with those of the
 * field itself counted as blanks (POSIX, pax). */
static bool is_tar_header(struct sl_bytes block)
{
    enum { BLOCK = 512, SUM_AT = 148, SUM_SIZE = 8 };
    uint32_t sum = 0, wanted = 0;
    if (block.size < BLOCK || block.data[0] == 0) /* a member without name: the end of an archive */
        return false;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_SIZE ? ' ' : block.data[i];
    size_t at = SUM_AT;
    while (at < SUM_AT + SUM_SIZE && block.data[at] == ' ')
        at++;
    for (; at < SUM_AT + SUM_SIZE && block.data[at] >= '0' && block.data[at] <= '7'; at++)
        wanted = wanted * 8 + (uint32_t)(block.data[at] - '0');
    return sum == wanted;
}

static bool is_cpio(struct sl_bytes bytes)
{
    return bytes.size >= 6 && (memcmp(bytes.data, "070701", 6) == 0 || memcmp(bytes.data, "070702", 6) == 0 ||
                               memcmp(bytes.data, "070707", 6) == 0);
}

static enum sl_package_kind detect_archive(struct sl_bytes bytes)
{
    return is_tar_header(bytes) ? SL_PACKAGE_TAR : is_cpio(bytes) ? SL_PACKAGE_CPIO : SL_PACKAGE_NONE;
}

enum sl_package_kind sl_package_detect(struct sl_bytes bytes)
{
    static const uint8_t rpm[] = {0xED, 0xAB, 0xEE, 0xDB};
    if (is_deb(bytes))
        return SL_PACKAGE_DEB;
    if (bytes.size >= 4 && memcmp(bytes.data, rpm, 4) == 0)
        return SL_PACKAGE_RPM;
    if (bytes.size >= 4 && memcmp(bytes.data, "PK\3\4", 4) == 0)
        return SL_PACKAGE_ZIP;
    if (coding_detect(bytes) == CODING_STORED)
        return detect_archive(bytes);
    const struct sl_package_limits limits = {.budget = NULL};
    struct sl_error error;
    struct sl_bytes piece = {NULL, 0};
    struct stream *stream = stream_open(bytes, 0, &limits, &error);
    bool good = stream && stream_next(stream, &piece, &error) == SL_OK; /* the first bytes are enough */
    enum sl_package_kind kind = good ? detect_archive(piece) : SL_PACKAGE_NONE;
    stream_close(stream);
    return kind;
}

bool sl_package_is_compressed(struct sl_bytes bytes)
{
    return coding_detect(bytes) != CODING_STORED;
}

/* ---- reading ---- */

/* Returns the part of the file that is the archive of the package's files; data NULL if there is none that can be read. */
static struct sl_bytes find_payload(struct sl_bytes file, enum sl_package_kind kind)
{
    return kind == SL_PACKAGE_DEB ? deb_payload(file) : kind == SL_PACKAGE_RPM ? rpm_payload(file) : file;
}

enum sl_code sl_package_walk(struct sl_bytes file, uint64_t offset, const struct sl_package_visitor *visitor,
                             const struct sl_package_limits *limits, struct sl_error *error)
{
    enum sl_package_kind kind = sl_package_detect(file);
    struct sl_bytes payload = find_payload(file, kind);
    if (kind == SL_PACKAGE_NONE)
        return sl_fail(error, SL_MALFORMED, "the file is not a package");
    if (kind == SL_PACKAGE_ZIP)
        return zip_walk(file, offset, visitor, limits, error);
    if (!payload.data)
        return sl_fail(error, SL_MALFORMED, "the %s package has no archive of files", sl_package_kind_name(kind));
    if (!payload.size) /* a package without files */
        return SL_OK;
    return archive_walk(payload, offset, visitor, limits, error);
}

bool sl_package_is_seekable(struct sl_bytes file)
{
    enum sl_package_kind kind = sl_package_detect(file);
    struct sl_bytes payload = find_payload(file, kind);
    return kind == SL_PACKAGE_ZIP || (payload.size && stream_is_seekable(payload));
}

/* ---- what it was built from ---- */

/* Sets name and version by the file name of a source archive of Debian: "<name>_<version>.orig.tar.xz",
 * "<name>_<version>.orig-<part>.tar.gz", "<name>_<version>.tar.xz", "<name>_<version>.debian.tar.xz". */
static void set_by_archive_name(struct sl_str name, struct sl_package_source *source)
{
    /* ".tar." is the last, because names with the others have it, too */
    static const char *const ends[] = {".orig.", ".orig-", ".debian.tar.", ".tar."};
    const char *sign = name.size ? memchr(name.data, '_', name.size) : NULL;
    if (!sign)
        return;
    struct sl_str version = {sign + 1, name.size - (size_t)(sign - name.data) - 1};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = version.size ? memmem(version.data, version.size, ends[i], strlen(ends[i])) : NULL;
        if (!end || name.size >= SL_PACKAGE_NAME) /* too long for source->text */
            continue;
        snprintf(source->text, sizeof source->text, "%.*s %.*s", (int)(sign - name.data), name.data,
                 (int)(end - version.data), version.data);
        return;
    }
}

void sl_package_source(struct sl_bytes file, struct sl_str file_name, struct sl_package_source *source)
{
    source->text[0] = '\0';
    switch (sl_package_detect(file)) {
    case SL_PACKAGE_DEB: deb_source(file, source); break;
    case SL_PACKAGE_RPM: rpm_source(file, source); break;
    case SL_PACKAGE_TAR: set_by_archive_name(file_name, source); break;
    default: break;
    }
    for (char *at = source->text; *at; at++) /* no control characters */
        *at = (unsigned char)*at < ' ' ? '?' : *at;
}
