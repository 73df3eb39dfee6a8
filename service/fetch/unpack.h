/* Decompression of files: HTTP's content codings, and the formats in which compressed symbol files come (zip, CAB, ...). It depends only on
 * its arguments, not on a clock, configuration or other file, so it can run in any thread or process. Standards: gzip RFC 1952 (several
 * members), zlib RFC 1950, zstd RFC 8878 (all frames), brotli RFC 7932, xz, ZIP (APPNOTE.TXT 6.3.10), cabinets (MS-CAB), tar (POSIX ustar
 * and pax, GNU). */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "core/fiber.h"

enum unpack_format {
    UNPACK_NONE,
    UNPACK_BR,
    UNPACK_GZIP,
    UNPACK_DEFLATE, /* a zlib stream */
    UNPACK_ZSTD,
    UNPACK_XZ,
    UNPACK_ZIP, /* must have exactly one member, whose name is ignored */
    UNPACK_CAB, /* must have exactly one file, whose name is ignored */
    UNPACK_TAR, /* one member is wanted, by its name */
    UNPACK_FORMATS,
};

struct unpack_options { /* plain data */
    enum unpack_format format;
    uint64_t max_size;  /* bytes of output */
    uint64_t max_ratio; /* limit of output to input; checked from 256 MiB of output on */
    bool for_core; /* output that begins like a core file may have any ratio; beyond max_size it is SL_UNSUPPORTED */
};

struct unpack_result { /* plain data */
    bool over_limit;   /* it failed because a limit of the options was exceeded: the file may be undamaged */
};

struct unpack_call {
    struct sl_bytes in;
    struct unpack_options options;
    struct sl_str member; /* UNPACK_TAR: name of the wanted member */
    int out;              /* descriptor that the output is written to, from its current offset on */
    /* Called for each piece of at most 256 KiB of output: false ends the call with SL_CANCELLED. NULL = not called. */
    bool (*may_continue)(void *arg);
    void *arg;
};

/* Decompresses `call->in`. SL_MALFORMED: damaged, or over a limit of the options (with for_core, SL_UNSUPPORTED beyond max_size);
 * SL_NOT_FOUND: the archive has no such member; SL_BUSY: out of memory; SL_INTERNAL: `out` cannot be written; SL_CANCELLED: may_continue
 * returned false. Blocks, so it is for pool threads. */
enum sl_code unpack_bytes(const struct unpack_call *call, struct unpack_result *result, struct sl_error *error);

/* Returns the compressed format that a file has by its first bytes (six are enough); UNPACK_NONE if it has none of these, or fewer than 4
 * bytes. */
enum unpack_format unpack_detect(struct sl_bytes head);

/* ---- who runs it ---- */

/* unpack_set_runner sets a function that has unpack_bytes called in a worker process instead of on a pool thread. It unpacks the file `in`,
 * from its beginning, into the empty file `out`. `time_ns` limits the CPU time (UINT64_MAX = no limit): beyond it SL_TIMEOUT. */
struct unpack_request {
    struct unpack_options options;
    struct sl_str member;
    int in, out;
    uint64_t time_ns;
    struct unpack_result result; /* out */
};
typedef enum sl_code unpack_runner(struct unpack_request *request, struct sl_error *error) SL_SUSPENDS;
void unpack_set_runner(unpack_runner *runner); /* loop thread; NULL = a pool thread */
