/* What a command did not find, as one line on stderr behind its output, so that an answer without names is never silent:
 *
 *     warning: no symbols for 2 of 3 modules on the stack: app (7F83..), libc.so.6; searched ./symbols; symbols.example.org:
 *     connection refused; run with -f full -d to see every location
 *     warning: 3 of 9 frames resolved; no source map for app.js; searched ./dist; ...
 *
 * (written as a single line). It serves every kind of input: programs, JavaScript and the JVM differ in the words of
 * `struct missing_words` alone. The order of calls:
 *
 *     missing_init ─▶ missing_place, missing_failure, missing_thing, missing_count, in any order ─▶ missing_tell ─▶ missing_free
 *
 * Places and failures of an opened `struct by_id` are added by by_id_describe (by_id/by_id.h), before it is closed. All texts are
 * copied. Running out of memory shortens the line and is no error. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "cli/options.h"

struct missing_words {
    const char *wanted;   /* what was looked for: "symbols", "source map", "mapping" */
    const char *unit;     /* what missing_count counts, in the plural: "modules on the stack", "frames" */
    bool counts_found;    /* begin with "3 of 9 frames resolved"; else with "no symbols for 6 of 9 modules" */
    const char *advice;   /* what to do next, an imperative: "run with ..."; NULL: nothing */
    const char *no_place; /* the advice instead when nothing was searched: "pass --symbols DIR or URL" */
};

struct missing_item {
    struct sl_str key, text;
};

struct missing_list { /* each key once */
    struct sl_map known;
    struct missing_item *items;
    size_t count, capacity;
};

struct missing_report {
    const struct missing_words *words;
    struct sl_arena arena;
    struct missing_list things, found, places, failures;
    size_t missing, total; /* units */
    bool advised;          /* the user has done what is advised */
};

void missing_init(struct missing_report *report, const struct missing_words *words); /* words: a constant */
void missing_free(struct missing_report *report);

/* Something that was not found: a module, script or mapping, by name and id (data NULL: it has none). False when it was told
 * before. */
bool missing_thing(struct missing_report *report, struct sl_str name, struct sl_str id);
/* Something that was found, which is not shown: false likewise. For counting each thing once. */
bool missing_found(struct missing_report *report, struct sl_str name, struct sl_str id);
/* Adds to the units: so many were looked at, and so many of these got nothing. */
void missing_count(struct missing_report *report, size_t missing, size_t total);
/* A place that was searched: a path or URL as the user knows it, without secrets. */
void missing_place(struct missing_report *report, struct sl_str place);
/* A place or file that could not be used, and why. Of several failures of one place the first counts: false for the
 * others. */
bool missing_failure(struct missing_report *report, struct sl_str place, struct sl_str why);
/* The failures of another report, which stays as it is. */
void missing_take_failures(struct missing_report *report, const struct missing_report *from);

bool missing_is_any(const struct missing_report *report);
/* Appends the line, with its line end; nothing when nothing is missing. */
void missing_put(const struct missing_report *report, struct sl_buf *out);
/* Writes out what standard output holds back, then the line on stderr; not with --quiet. */
void missing_tell(const struct missing_report *report, const struct options *o);
/* `status`, or 3 with --fail-on-missing when something is missing and `status` is 0. */
int missing_status(const struct missing_report *report, const struct options *o, int status);
