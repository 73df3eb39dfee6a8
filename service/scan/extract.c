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
    int out, prefetch;  /* descriptors of the output and of INPUT_SCRATCH; -1: nothing is prefetched (any more) */
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

/* True if a member in front of the wanted one may be written to INPUT_SCRATCH: it is not too small for a debug file, and within the
 * limits. */
static bool may_prefetch(const struct extracting *e, const struct sl_package_member *member)
{
    return e->prefetch >= 0 && e->result->count < MAX_PREFETCHED_MEMBERS && member->size >= DETECT_BYTES &&
           member->size <= e->options->max_prefetched_size &&
           member->size <= e->options->prefetch_bytes - e->prefetched_bytes;
}

/* Called at each member: decides whether to write it, to skip it, or to stop. The member at the wanted offset must have the wanted path and
 * size; members in front of it may be written to INPUT_SCRATCH. */
static enum sl_package_choice begin_member(void *arg, const struct sl_package_member *member)
{
    struct extracting *e = arg;
    e->written = 0;
    e->is_wanted = member->offset == e->options->offset;
    if (!e->is_wanted) {
        /* Members come in the order of their offsets: the wanted one would have come before. */
        if (member->offset > e->options->offset)
            return stop(e,
                        sl_fail(e->error, SL_NOT_FOUND, "the package has no file at the offset that the index states"));
        e->current = (struct prefetched_member){member->offset, member->size, e->prefetched_bytes};
        return may_prefetch(e, member) ? SL_PACKAGE_READ : SL_PACKAGE_SKIP;
    }
    if (!sl_str_equal(member->path, e->path) || member->size != e->options->size)
        return stop(
            e, sl_fail(e->error, SL_NOT_FOUND, "the package has another file at the offset that the index states"));
    e->found = true;
    return SL_PACKAGE_READ;
}

/* Called with each piece of a member's contents: writes it to the output or, if the member is not the wanted one, to INPUT_SCRATCH. */
static enum sl_package_choice write_piece(void *arg, struct sl_bytes piece)
{
    struct extracting *e = arg;
    /* The first piece shows the format: only debug files are prefetched. */
    if (!e->is_wanted && e->written == 0 && sl_format_detect(piece) == SL_FORMAT_UNKNOWN)
        return SL_PACKAGE_SKIP;
    uint64_t at = e->is_wanted ? e->written : e->current.at + e->written;
    if (!sl_write_all_at(e->is_wanted ? e->out : e->prefetch, piece, at)) {
        if (e->is_wanted)
            return stop(e, sl_fail_errno(e->error, errno, "cannot write a file of a package"));
        e->prefetch = -1; /* no more prefetching: the space that is left is for the wanted member */
        return SL_PACKAGE_SKIP;
    }
    e->written += piece.size;
    return SL_PACKAGE_READ;
}

/* Called after the last byte of a member: stops after the wanted one. A prefetched one is added to the result, as it is complete now. */
static enum sl_package_choice end_member(void *arg)
{
    struct extracting *e = arg;
    if (e->is_wanted)
        return SL_PACKAGE_STOP;
    e->result->members[e->result->count++] = e->current;
    e->prefetched_bytes += e->current.size;
    return SL_PACKAGE_READ; /* goes on with the next member */
}

/* Writes one member of a package to the output, and debug files in front of it to INPUT_SCRATCH (result->members lists them): one
 * request for a file of a package is often followed by one for another file of that package. */
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
    /* Only members that have to be decompressed anyway are prefetched: a seekable package is read at the wanted member. */
    bool prefetches = scratch && e.options->prefetch_bytes && !sl_package_is_seekable(file);
    if (prefetches)
        e.prefetch = scratch->fd;
    /* Visits the members from the wanted one on or, to prefetch those in front of it, all. */
    enum sl_code code = sl_package_walk(file, prefetches ? 0 : e.options->offset, &visitor, &limits, error);
    if (code == SL_OK)
        code = e.code;
    if (code == SL_OK && !e.found)
        code = sl_fail(error, SL_NOT_FOUND, "the package has no file at the offset that the index states");
    return code;
}

/* False if the result has values that a converter does not produce, so that sums of sizes and offsets cannot overflow. That members lie
 * within INPUT_SCRATCH is checked when they are read (copy_member). */
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
