/* Asks the sources, and waits while one of them cannot answer. */
#include "api/debuginfod/debuginfod.h"

#include "core/loop.h"
#include "origin/failures.h"

/* Pauses between attempts: a source is asked again by rules of its own (origin/failures.h), so an attempt mostly costs a few look-ups in
 * memory. */
enum { FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 2000 };

/* Requests that wait between attempts keep a fiber each; beyond this number they fail at once, so that fibers are left for others. */
enum { MAX_PAUSING = 4000 };
static size_t pausing_requests; /* requests that wait now */

struct bounded_attempt {
    struct debuginfod_request *request;
    debuginfod_attempt *attempt;
    void *arg;
    enum sl_code code;
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

/* Makes one attempt in a fiber that is cancelled at r->end_ms. SL_BUSY if no fiber is available, or if that time cancelled it. */
static enum sl_code attempt_once(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg)
{
    struct bounded_attempt b = {r, attempt, arg, SL_BUSY};
    struct fiber_group group;
    uint64_t left = time_left_ms(r);
    fiber_group_init(&group, fiber_group_current());
    fiber_group_deadline(&group, left ? left : 1); /* a first attempt is made even if requests may not wait */
    fiber_start_admitted(&group, run_attempt, &b);
    fiber_group_wait(&group);
    return b.code == SL_CANCELLED && !fiber_cancelled() ? SL_BUSY : b.code;
}

enum sl_code debuginfod_retry(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg)
{
    for (uint64_t pause = FIRST_PAUSE_MS;; pause = pause < LONGEST_PAUSE_MS / 2 ? 2 * pause : LONGEST_PAUSE_MS) {
        enum sl_code code = attempt_once(r, attempt, arg);
        uint64_t left = time_left_ms(r);
        if (code != SL_BUSY || !left)
            return code;
        if (pausing_requests >= MAX_PAUSING)
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

/* Sums up a search: whether its result is final. */
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

/* Searches for files of the type: first where such a file usually is, then, unless that has the best file there can be,
 * everywhere. */
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

/* Asks for ELF files, then for WASM modules, which have ids of the same form. */
enum sl_code debuginfod_find_file(struct debuginfod_request *r, void *arg)
{
    struct debuginfod_file *file = arg;
    enum sl_code code = search_type(r, file, OBJECT_ELF);
    if (code == SL_NOT_FOUND)
        code = search_type(r, file, OBJECT_WASM);
    if (code == SL_BUSY)
        debuginfod_hurry(&file->found.candidates);
    return code;
}

/* True if the cache of finished searches has the file, which needs no fiber. */
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
    bool is_cached = peek(r, file);
    if (r->where.max_size)
        r->where.list = 0; /* other requests want other sizes */
    enum sl_code code = is_cached ? SL_OK : debuginfod_retry(r, debuginfod_find_file, file);
    if (code == SL_BUSY && file->found.code == SL_OK && file->found.item)
        code = SL_OK; /* a lesser file */
    if (code != SL_OK)
        debuginfod_release_file(file);
    return code;
}
