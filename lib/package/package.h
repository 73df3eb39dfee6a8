/* Packages: archives of files as distributions and build servers publish them.
 *
 *     deb, ddeb   an ar archive (deb(5)) with control.tar.* and data.tar.*; the members are those of data.tar.*
 *     rpm         lead, two headers, then a cpio archive (RPM file format, "Package File Format" of the LSB)
 *     tar, cpio   by themselves
 *     zip         APPNOTE.TXT 6.3.10
 *
 * tar and cpio archives may be compressed by gzip, xz, zstd or bzip2. libarchive reads tar and cpio; decompression is done
 * here, because a package that was compressed in independent blocks (`xz -T`, `pzstd`) can be read from the block that holds
 * a member.
 *
 * Everything is read from memory, nothing is written, no member's path is ever opened. Packages inside of packages are not
 * entered. Pure: any thread. */
#pragma once

#include "base/budget.h"
#include "base/bytes.h"
#include "base/error.h"

enum sl_package_kind {
    SL_PACKAGE_NONE,
    SL_PACKAGE_DEB,
    SL_PACKAGE_RPM,
    SL_PACKAGE_TAR,
    SL_PACKAGE_CPIO,
    SL_PACKAGE_ZIP,
    SL_PACKAGE_KINDS
};
const char *sl_package_kind_name(enum sl_package_kind kind); /* "deb" ...; "file" for SL_PACKAGE_NONE */

/* Recognises a package by its content; decompresses at most its first 512 bytes. SL_PACKAGE_NONE: it is none. */
enum sl_package_kind sl_package_detect(struct sl_bytes bytes);

/* True if the bytes are the beginning of a file compressed by gzip, xz, zstd or bzip2. Only sl_package_detect() can say whether there is a
 * package in it, and it needs more of the file. */
bool sl_package_is_compressed(struct sl_bytes bytes);

enum { SL_PACKAGE_MAX_PATH = 4096 };

struct sl_package_member { /* a regular file */
    struct sl_str path;    /* begins with '/', has no "." and ".." components and no control characters; valid UTF-8 */
    uint64_t size;         /* bytes, as the package says; the visitor never gets more */
    uint64_t offset;       /* of its header in the uncompressed archive, or in the ZIP file: for sl_package_walk */
    uint32_t mode;         /* permission bits */
};

/* What a visitor wants next: to read on, to skip the rest of the member, to end the walk. */
enum sl_package_choice { SL_PACKAGE_READ, SL_PACKAGE_SKIP, SL_PACKAGE_STOP };

struct sl_package_visitor {
    void *arg;
    /* Called before the contents of a member. */
    enum sl_package_choice (*begin)(void *arg, const struct sl_package_member *member);
    /* Called with the contents of a member in several parts, in order, which are together as long as its size. */
    enum sl_package_choice (*piece)(void *arg, struct sl_bytes piece);
    /* Called after all contents of a member that was not skipped. */
    enum sl_package_choice (*end)(void *arg);
};

struct sl_package_limits {
    struct sl_budget *budget; /* limits work; grows with the decompressed bytes. NULL: no limit */
    /* most decompressed bytes per compressed byte; checked only after 256 MiB were decompressed. 0 = 1000 */
    uint64_t max_ratio;
};

/* Calls the visitor for the package's regular files in their order, from the member whose header is at `offset` (0: all).
 * Leaves out links, devices, directories, and files whose path has "..". SL_OK at the end and when the visitor stops.
 * SL_MALFORMED: the package is damaged or its contents exceed max_ratio; the visitor got what came before. SL_UNSUPPORTED: the package
 * is encrypted or needs more memory than a limit. SL_BUSY: out of memory. Also the error of the budget. */
enum sl_code sl_package_walk(struct sl_bytes file, uint64_t offset, const struct sl_package_visitor *visitor,
                             const struct sl_package_limits *limits, struct sl_error *error);

/* True if sl_package_walk() reaches an offset without decompressing all that is in front of it: the package is a ZIP file, is not
 * compressed, or is compressed in several blocks. */
bool sl_package_is_seekable(struct sl_bytes file);

/* What a package was built from: `Source` and `Version` of deb(5), SOURCERPM of RPM; for a source package itself, its own name. */
enum { SL_PACKAGE_NAME = 256 };
struct sl_package_source {
    char text[SL_PACKAGE_NAME]; /* name, a blank, version: "bash 5.2.15-2"; NUL-terminated; empty: unknown */
};
/* Reads what a package was built from, from its control data. `file_name` is the package's name, for source archives of Debian
 * ("foo_1.2.orig.tar.xz", "foo_1.2-3.debian.tar.xz"). */
void sl_package_source(struct sl_bytes file, struct sl_str file_name, struct sl_package_source *source);

/* True if a member with this path is a source text that debuggers may ask for, by its extension or its folder. */
bool sl_package_is_source_path(struct sl_str path);
