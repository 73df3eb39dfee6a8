/* Makes a file of one member of a package (converter_package_member). */
#include "base/file.h"
#include "object/object.h"
#include "package/package.h"
#include "scan/converters.h"

#include <errno.h>
#include <stdlib.h>

enum { DETECT_BYTES = 64 };

struct extracting {
    const struct package_member_options *options;
    struct package_member_result *result;
    struct sl_str path; /* of the wanted member */
    int out, prefetch;  /* files; prefetch -1: none */
    bool is_wanted;     /* the current member is the wanted one */
    bool found;
    uint64_t written; /* of the current member */
    uint64_t prefetched_bytes;
    struct prefetched_member current;
    enum sl_code code;
    struct sl_error *error;
};

static enum sl_package_choice stop(struct extracting *e, enum sl_code code)
{
    e->code = code;
    return SL_PACKAGE_STOP;
}

/* True if a member in front of the wanted one is written to INPUT_SCRATCH: if there is room, and its path may be that of a debug file. */
static bool may_prefetch(const struct extracting *e, const struct sl_package_member *member)
{
    return e->prefetch >= 0 && e->result->count < MAX_PREFETCHED_MEMBERS && member->size >= DETECT_BYTES &&
           member->size <= e->options->max_prefetched_size &&
           member->size <= e->options->prefetch_bytes - e->prefetched_bytes;
}

/* Called at each member: decides whether to write it, to skip it, or to stop. The wanted one must be at its recorded offset with its
 * recorded path and size; members in front of it may be written to the prefetch file. */
static enum sl_package_choice begin_member(void *arg, const struct sl_package_member *member)
{
    struct extracting *e = arg;
    e->written = 0;
    e->is_wanted = member->offset == e->options->offset;
    if (!e->is_wanted) {
        /*  Members come in the order of their offsets: the wanted one would have come before. */
        if (member->offset > e->options->offset)
            return stop(e, sl_fail(e->error, SL_NOT_FOUND, "the package has no file at its recorded place"));
        e->current = (struct prefetched_member){member->offset, member->size, e->prefetched_bytes};
        return may_prefetch(e, member) ? SL_PACKAGE_READ : SL_PACKAGE_SKIP;
    }
    if (!sl_str_equal(member->path, e->path) || member->size != e->options->size)
        return stop(e, sl_fail(e->error, SL_NOT_FOUND, "the package has another file at the recorded place"));
    e->found = true;
    return SL_PACKAGE_READ;
}

/* Called with each piece of a member's contents: writes it to the output, or to the prefetch file if the member is not the wanted one. */
static enum sl_package_choice write_piece(void *arg, struct sl_bytes piece)
{
    struct extracting *e = arg;
    /*  The first piece shows the format: only debug files are prefetched. */
    if (!e->is_wanted && e->written == 0 && sl_format_detect(piece) == SL_FORMAT_UNKNOWN)
        return SL_PACKAGE_SKIP;
    uint64_t at = e->is_wanted ? e->written : e->current.at + e->written;
    if (!sl_write_all_at(e->is_wanted ? e->out : e->prefetch, piece, at)) {
        if (e->is_wanted)
            return stop(e, sl_fail_errno(e->error, errno, "cannot write a file of a package"));
        e->prefetch = -1; /* the wanted member may still find space */
        return SL_PACKAGE_SKIP;
    }
    e->written += piece.size;
    return SL_PACKAGE_READ;
}

/* Called behind the last byte of a member. A prefetched one is listed only now, as it is complete. */
static enum sl_package_choice end_member(void *arg)
{
    struct extracting *e = arg;
    if (e->is_wanted)
        return SL_PACKAGE_STOP;
    e->result->members[e->result->count++] = e->current;
    e->prefetched_bytes += e->current.size;
    return SL_PACKAGE_READ;
}

/* Makes a file of one member of a package, and writes debug files in front of it to INPUT_SCRATCH (result->members lists
 * them): one request for a file of a package is often followed by one for another file of that package. */
static enum sl_code extract_member(struct conversion *conversion, const struct converter_call *call, void *result,
                                   struct sl_error *error)
{
    const struct converter_input *scratch = converter_input(call, INPUT_SCRATCH);
    struct sl_bytes path = converter_input_bytes(call, INPUT_NAME);
    struct extracting e = {.options = converter_options(call),
                           .result = result,
                           .path = {(const char *)path.data, path.size},
                           .out = call->out,
                           .prefetch = -1,
                           .error = error};
    const struct sl_package_visitor visitor = {&e, begin_member, write_piece, end_member};
    const struct sl_package_limits limits = {&conversion->budget, e.options->max_ratio};
    struct sl_bytes file = converter_input_bytes(call, INPUT_FILE);
    /* Only what has to be decompressed anyway: a seekable package can be read at the wanted member. */
    bool prefetches = scratch && e.options->prefetch_bytes && !sl_package_is_seekable(file);
    if (prefetches)
        e.prefetch = scratch->fd;
    /*  A seekable package is entered at the member; otherwise the walk starts at the first byte. */
    enum sl_code code = sl_package_walk(file, prefetches ? 0 : e.options->offset, &visitor, &limits, error);
    if (code == SL_OK)
        code = e.code;
    if (code == SL_OK && !e.found)
        code = sl_fail(error, SL_NOT_FOUND, "the package has no file at its recorded place");
    return code;
}

/* Members are read from INPUT_SCRATCH; places beyond its end give an error then. */
static bool check_result(const void *result)
{
    const struct package_member_result *found = result;
    bool good = found->count <= MAX_PREFETCHED_MEMBERS;
    for (uint32_t i = 0; good && i < found->count; i++)
        good = found->members[i].size <= INT64_MAX / MAX_PREFETCHED_MEMBERS && found->members[i].at <= INT64_MAX / 2;
    return good;
}

const struct converter converter_package_member = {"package_member", sizeof(struct package_member_options),
                                                   sizeof(struct package_member_result), extract_member, check_result};
