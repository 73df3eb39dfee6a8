/* Keeps track of failing sources, and decides which cached failures are fetched again. */
#include "origin/failures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "core/loop.h"
#include "origin/impl.h"

enum {
    PROBE_MS = 30000,     /* while a source fails, one request per interval (a probe) finds out if it works again */
    HURRIED_MS = 5000,    /* minimum time from a failure to a probe while a client waits (origin_hurry_probe) */
    LONGEST_MS = 3600000, /* maximum of struct failing.pause_ms, the interval between recoveries */
    MANY = 8,             /* failures in a row that are an outage, not a problem of one file */
    MAX_SOURCES = 4096,
    NAME_BYTES = 512
};
#define MS_NS INT64_C(1000000)

enum failure_kind { UNREACHABLE, REFUSED, FAILURE_KINDS };

struct failing {
    bool is_failing;
    unsigned in_a_row;     /* failures since the last response */
    uint64_t since_ms;     /* time of the first of these failures */
    bool is_outage;        /* many failures in a row, or failures for a long time */
    int64_t last_ns;       /* wall clock, like all *_ns */
    int64_t recovered_ns;  /* last recovery: failures before it are invalid; 0 = never */
    uint64_t recovered_ms; /* the same on the loop's clock */
    uint64_t pause_ms;     /* minimum interval until the next recovery from failures that are no outage */
    uint64_t due_ms;       /* time of the next probe */
    int64_t probe_ns;      /* time of the last probe, */
    uint64_t probe_file;   /* and hash of its file's location */
};

struct failing_source {
    struct failing kinds[FAILURE_KINDS];
};

static struct {
    struct sl_map map;
    size_t failing; /* how many sources fail at present; one that fails in both kinds counts twice */
} known;

static int64_t wall_ns(void)
{
    return (int64_t)clock_wall_us() * 1000;
}

/* ---- names ---- */

/* Returns the scheme and host of a location, "https://example.com"; empty if it is not a URL. */
static struct sl_str get_root(struct sl_str location)
{
    const char *scheme = memmem(location.data, location.size, "://", 3);
    const char *authority = scheme ? scheme + 3 : NULL;
    size_t rest = authority ? location.size - (size_t)(authority - location.data) : 0;
    const char *end = rest ? memchr(authority, '/', rest) : NULL;
    return (struct sl_str){location.data, !authority ? 0 : end ? (size_t)(end - location.data) : location.size};
}

/* Returns the name that identifies a source here, "<id>\n<scheme and host>", truncated if it is too long. */
static struct sl_str source_name(struct sl_str source, struct sl_str location, char out[NAME_BYTES])
{
    struct sl_str root = location.size ? get_root(location) : (struct sl_str){"", 0};
    int size = snprintf(out, NAME_BYTES, SL_STR_FMT "\n" SL_STR_FMT, SL_STR_ARG(source), SL_STR_ARG(root));
    return (struct sl_str){out, size < 0 ? 0 : size < NAME_BYTES ? (size_t)size : NAME_BYTES - 1};
}

void origin_failures_clear(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&known.map, e));)
        free(e->value);
    sl_map_free(&known.map);
    known.failing = 0;
}

/* Adds a source without failures; forgets all others if there are too many. NULL when out of memory. */
static struct failing_source *add_source(struct sl_str name)
{
    if (known.map.count >= MAX_SOURCES) /* requests can name any number of sources; failing ones are added again */
        origin_failures_clear();
    return sl_map_add(&known.map, name, sizeof(struct failing_source), NULL);
}

/* ---- states ---- */

/* True if the code is a failure of the source: REFUSED if it denied access, otherwise UNREACHABLE. Other codes are about the
 * file, or about this service. */
static bool classify_failure(enum sl_code code, enum failure_kind *kind)
{
    *kind = code == SL_PERMISSION_DENIED ? REFUSED : UNREACHABLE;
    return code == SL_PERMISSION_DENIED || code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT;
}

bool origin_is_failure(enum sl_code code)
{
    enum failure_kind kind;
    return classify_failure(code, &kind);
}

/* Marks the source as failing; the first failure sets the time of the next probe. */
static void begin_to_fail(struct failing *f, uint64_t due_ms)
{
    known.failing += !f->is_failing;
    f->due_ms = f->is_failing ? f->due_ms : due_ms;
    f->is_failing = true;
}

/* Counts a failure. Many in a row, or failures for a whole PROBE_MS, make an outage: then the next response shows that all
 * earlier failures are outdated. */
static void count_failure(struct failing *f)
{
    uint64_t now = loop_now_ms();
    begin_to_fail(f, now + PROBE_MS); /* the time of the next probe, if this is the first failure */
    f->since_ms = f->in_a_row ? f->since_ms : now;
    f->in_a_row++;
    f->is_outage = f->is_outage || f->in_a_row >= MANY || (f->in_a_row > 1 && now - f->since_ms >= PROBE_MS);
    f->last_ns = wall_ns();
}

/* Records a response: failures before it are invalid and may be retried at once. If files go on failing although the source
 * responds, the failures are about these files: then each further recovery must wait twice as long, up to LONGEST_MS. f->pause_ms is that
 * wait, counted from the last recovery; if the source had an outage, PROBE_MS is enough. */
static void record_recovery(struct failing *f)
{
    /* UINT64_MAX: no recovery so far */
    uint64_t now = loop_now_ms(), since = f->recovered_ns ? now - f->recovered_ms : UINT64_MAX;
    f->in_a_row = 0;
    /* too soon after the last recovery: cached failures stay valid */
    if (!f->is_failing || since < (f->is_outage || !f->pause_ms ? (uint64_t)PROBE_MS : f->pause_ms))
        return;
    /* files have failed again soon after a recovery */
    bool is_again = !f->is_outage && f->pause_ms && since < 2 * f->pause_ms;
    f->pause_ms = !is_again ? (uint64_t)PROBE_MS : f->pause_ms < LONGEST_MS / 2 ? 2 * f->pause_ms : LONGEST_MS;
    f->is_failing = f->is_outage = false;
    f->recovered_ms = now;
    f->recovered_ns = wall_ns();
    known.failing--;
}

void origin_record_result(struct sl_str source, struct sl_str location, enum sl_code code)
{
    char text[NAME_BYTES];
    enum failure_kind kind;
    bool failed = classify_failure(code, &kind),
         answered = code == SL_OK || code == SL_NOT_FOUND || code == SL_MALFORMED;
    if (!failed && (!answered || !known.map.count)) /* about this service, or no source has failed yet */
        return;
    struct sl_str name = source_name(source, location, text);
    struct failing_source *s = sl_map_get(&known.map, name);
    if (!s && failed)
        s = add_source(name);
    if (!s)
        return;
    if (failed)
        count_failure(&s->kinds[kind]);
    if (answered || kind == REFUSED) /* a refusal is a response */
        record_recovery(&s->kinds[UNREACHABLE]);
    if (answered)
        record_recovery(&s->kinds[REFUSED]);
}

/* Returns the state to which a cached failure of `made_ns` belongs; NULL when out of memory. A failure newer than the last recovery marks
 * the source as failing, as another process, or this one before its last start, may have cached it: a probe is due PROBE_MS after it. */
static struct failing *find_failing(struct sl_str source, struct sl_str location, enum failure_kind kind,
                                    int64_t made_ns)
{
    char text[NAME_BYTES];
    struct sl_str name = source_name(source, location, text);
    struct failing_source *s = sl_map_get(&known.map, name);
    if (!s && !(s = add_source(name)))
        return NULL;
    struct failing *f = &s->kinds[kind];
    int64_t age_ms = (wall_ns() - made_ns) / MS_NS;
    /* a negative age: the clock was set back */
    uint64_t left_ms = age_ms < 0 ? PROBE_MS : age_ms < PROBE_MS ? (uint64_t)(PROBE_MS - age_ms) : 0;
    if (made_ns >= f->recovered_ns) {
        begin_to_fail(f, loop_now_ms() + left_ms);
        f->last_ns = made_ns > f->last_ns ? made_ns : f->last_ns;
    }
    return f;
}

/* True if a file whose failure was cached at `made_ns` should be fetched again: the source has recovered after that time, this file was
 * chosen as the probe after that time, or a probe is due, which this file becomes. One probe is made per PROBE_MS, so that clients do not
 * wait for a dead host. */
bool origin_should_retry(struct sl_str source, struct sl_str location, enum sl_code code, int64_t made_ns)
{
    enum failure_kind kind;
    struct failing *f = classify_failure(code, &kind) ? find_failing(source, location, kind, made_ns) : NULL;
    uint64_t now = loop_now_ms(), file = f && location.size ? sl_hash(location.data, location.size) : 0;
    if (!f)
        return false;
    if (made_ns < f->recovered_ns || (f->probe_file == file && made_ns < f->probe_ns))
        return true;
    if (now < f->due_ms)
        return false;
    f->due_ms = now + PROBE_MS;
    f->probe_ns = wall_ns();
    f->probe_file = file;
    return true;
}

void origin_hurry_probe(struct sl_str source, struct sl_str location)
{
    char text[NAME_BYTES];
    struct failing_source *s = known.failing ? sl_map_get(&known.map, source_name(source, location, text)) : NULL;
    struct failing *f = s ? &s->kinds[UNREACHABLE] : NULL; /* not REFUSED: the source responds, but denies access */
    uint64_t now = loop_now_ms();
    if (f && f->is_failing && f->due_ms > now && wall_ns() - f->last_ns >= HURRIED_MS * MS_NS)
        f->due_ms = now;
}

/* Counts only if the file was fetched after the last failure that this process knows. */
void origin_note_success(struct sl_str source, struct sl_str location, int64_t made_ns)
{
    char text[NAME_BYTES];
    struct failing_source *s = known.failing ? sl_map_get(&known.map, source_name(source, location, text)) : NULL;
    bool any = false;
    for (size_t i = 0; s && i < FAILURE_KINDS; i++)
        if (s->kinds[i].is_failing && s->kinds[i].last_ns < made_ns) {
            record_recovery(&s->kinds[i]);
            any = true;
        }
    if (any)
        health_note_success(source);
}
