/* Searches files in the symbol sources for debuginfod requests, and repeats a search while a source cannot answer. */
#include "api/debuginfod/debuginfod.h"

#include "core/loop.h"
#include "origin/failures.h"

/* Pauses between attempts. They can be short, because an attempt mostly costs a few look-ups in memory: a source that failed is not asked
 * again in each (origin/failures.h). */
enum { FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 2000 };

/* Each request that pauses between attempts keeps a fiber. If so many pause, further ones fail at once: fibers must be left for others. */
enum { MAX_PAUSING = 4000 };
static size_t pausing_requests; /* requests that wait now */

struct bounded_attempt { /* an attempt in a fiber of its own, which a deadline cancels */
    struct debuginfod_request *request;
    debuginfod_attempt *attempt;
    void *arg;
    enum sl_code code; /* result */
};

static void run_attempt(void *arg)
{
    struct bounded_attempt *b = arg;
    b->code = b->attempt(b->request, b->arg);
}

static uint64_t time_left_ms(const struct debuginfod_request *r)
{
    uint64_t now = loop_now_ms();
    return r->end_ms > now ? r->end_ms - now : 0;
}

/* Makes one attempt in a fiber of its own, which is cancelled at r->end_ms, and returns its result. SL_BUSY if no fiber is available, or if
 * the fiber was cancelled at that time. */
static enum sl_code attempt_once(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg)
{
    struct bounded_attempt b = {.request = r, .attempt = attempt, .arg = arg, .code = SL_BUSY};
    struct fiber_group group;
    uint64_t left = time_left_ms(r);
    fiber_group_init(&group, fiber_group_current());
    fiber_group_deadline(&group, left ? left : 1); /* a first attempt is made even if requests may not wait */
    fiber_start_admitted(&group, run_attempt, &b);
    fiber_group_wait(&group);
    /* only the attempt's fiber was cancelled, not the request's: the time is up */
    return b.code == SL_CANCELLED && !fiber_cancelled() ? SL_BUSY : b.code;
}

enum sl_code debuginfod_retry(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg)
{
    for (uint64_t pause = FIRST_PAUSE_MS;; pause = pause < LONGEST_PAUSE_MS / 2 ? 2 * pause : LONGEST_PAUSE_MS) {
        enum sl_code code = attempt_once(r, attempt, arg);
        uint64_t left = time_left_ms(r);
        if (code != SL_BUSY || !left)
            return code;
        if (pausing_requests >= MAX_PAUSING) /* each would keep a fiber while it pauses */
            return code;
        fiber_set_wait_reason("symbol sources");
        pausing_requests++;
        bool going = fiber_sleep(pause < left ? pause : left);
        pausing_requests--;
        if (!going)
            return SL_CANCELLED;
    }
}

/* ---- files ---- */

void debuginfod_release_file(struct debuginfod_file *file)
{
    cache_release(file->found.item);
    file->found.item = NULL;
}

/* Returns the result of a search as a debuginfod_attempt returns it: SL_BUSY if a later search may find a (better) file, SL_UNSUPPORTED if
 * the best file is larger than the client accepts. */
static enum sl_code judge(const struct search_result *found)
{
    return found->code == SL_CANCELLED                  ? SL_CANCELLED
           : found->is_too_large                        ? SL_UNSUPPORTED
           : found->undecided || found->code == SL_BUSY ? SL_BUSY
           : found->code == SL_OK                       ? SL_OK
                                                        : SL_NOT_FOUND;
}

void debuginfod_hurry(const struct candidate_list *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (search_is_passing(candidates->items[i].download))
            origin_hurry_probe(candidates->items[i].source, candidates->items[i].location);
}

/* Searches a file of the object format `type`: first only at the usual locations (the "narrow" targets); then everywhere, unless the file
 * found is the best that there can be. */
static enum sl_code search_type(struct debuginfod_request *r, struct debuginfod_file *file, enum object_type type)
{
    bool is_debug = file->purpose == PURPOSE_DEBUG_FILE;
    struct object_id id = r->id;
    id.type = type;
    debuginfod_release_file(file);
    search_find(&r->where, is_debug ? &search_narrow_debug_file_target : &search_narrow_code_file_target, &id,
                &file->found);
    enum sl_code code = judge(&file->found);
    if (code == SL_CANCELLED || code == SL_UNSUPPORTED || (code == SL_OK && file->found.is_best))
        return code;
    debuginfod_release_file(file);
    search_find(&r->where, is_debug ? &search_debug_file_target : &search_code_file_target, &id, &file->found);
    return judge(&file->found);
}

/* A debuginfod_attempt, whose `arg` is a struct debuginfod_file: searches an ELF file, then a WASM module, as build ids of both have the
 * same form. */
enum sl_code debuginfod_find_file(struct debuginfod_request *r, void *arg)
{
    struct debuginfod_file *file = arg;
    enum sl_code code = search_type(r, file, OBJECT_ELF);
    if (code == SL_NOT_FOUND)
        code = search_type(r, file, OBJECT_WASM);
    if (code == SL_BUSY) /* the client waits: ask sources that failed again soon */
        debuginfod_hurry(&file->found.candidates);
    return code;
}

/* True if the result of a finished search for the file is cached, and the file is the best that there can be. Does not suspend. */
static bool peek(struct debuginfod_request *r, struct debuginfod_file *file)
{
    const struct search_target *use =
        file->purpose == PURPOSE_DEBUG_FILE ? &search_narrow_debug_file_target : &search_narrow_code_file_target;
    if (search_peek(&r->where, use, &r->id, &file->found) && judge(&file->found) == SL_OK && file->found.is_best)
        return true;
    debuginfod_release_file(file);
    return false;
}

enum sl_code debuginfod_get_file(struct debuginfod_request *r, enum purpose purpose, struct debuginfod_file *file)
{
    *file = (struct debuginfod_file){.purpose = purpose};
    bool is_cached = peek(r, file); /* before `list` is cleared, without which cached results are not found */
    if (r->where.max_size)
        r->where.list = 0; /* do not cache the result of this search: other requests may accept larger files */
    enum sl_code code = is_cached ? SL_OK : debuginfod_retry(r, debuginfod_find_file, file);
    if (code == SL_BUSY && file->found.code == SL_OK && file->found.item)
        code = SL_OK; /* the source that may have a better file did not answer in time: take what was found */
    if (code != SL_OK)
        debuginfod_release_file(file);
    return code;
}
