/* Reports on stderr, after the output, what a command did not find, so that an answer without names is never silent:
 *
 *     warning: no symbols for 2 of 3 modules on the stack: app (7F83..), libc.so.6; searched ./symbols; failed:
 *     symbols.example.org: connection refused; run with -f full -d to see every location
 *     warning: 3 of 9 frames resolved; no source map for app.js; searched ./dist; ...
 *
 * (each is a single line). One report serves programs, JavaScript and the JVM; only their `struct missing_words` differ. The order of
 * calls:
 *
 *     missing_init ─▶ missing_add_location, missing_failure, missing_add, missing_count, in any order ─▶ missing_print ─▶ missing_free
 *
 * locator_describe (locator/locator.h) adds the locations and failures of an open `struct locator`. All texts are copied. Running out of
 * memory shortens the line and is not an error. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "cli/options.h"

struct missing_words {
    const char *wanted; /* what was looked for: "symbols", "source map", "mapping" */
    const char *unit;   /* what missing_count counts, in the plural: "modules on the stack", "frames" */
    bool counts_found;  /* true: begins with "3 of 9 frames resolved"; false: with "no symbols for 6 of 9 modules" */
    const char *advice; /* what to do next, an imperative: "run with ..."; may be NULL */
    const char *no_location; /* replaces `advice` when nothing was searched: "nowhere to search: pass --symbols ..." */
};

struct missing_item {
    struct sl_str key, text;
};

struct missing_list { /* texts to show; each key occurs once */
    struct sl_map known;
    struct missing_item *items;
    size_t count, capacity;
};

struct missing_report {
    const struct missing_words *words;
    struct sl_arena arena;
    struct missing_list things, found, locations, failures; /* things: what was not found; found: what was */
    size_t missing, total;                                  /* sums of what missing_count added */
    bool advised;                                           /* the user already follows `words->advice`: leave it out */
};

void missing_init(struct missing_report *report, const struct missing_words *words); /* `words` is not copied */
void missing_free(struct missing_report *report);

/* Adds a module, script or mapping that was not found, by name and id (data NULL: it has none); the line lists it. False when it was added
 * before, or out of memory. */
bool missing_add(struct missing_report *report, struct sl_str name, struct sl_str id);
/* Records a module, script or mapping that was found; the line does not list it. False when it was recorded before, so that the caller
 * counts it once. */
bool missing_found(struct missing_report *report, struct sl_str name, struct sl_str id);
/* Adds to the counts: `total` units were looked up, `missing` of them without success. */
void missing_count(struct missing_report *report, size_t missing, size_t total);
/* Adds a location that was searched: a path or URL as the user wrote it, without secrets. */
void missing_add_location(struct missing_report *report, struct sl_str location);
/* Adds a location or file that could not be used, and why. Only the first failure of each location is kept: false for a later one, or when
 * out of memory. */
bool missing_failure(struct missing_report *report, struct sl_str location, struct sl_str why);
/* Copies the failures of another report. */
void missing_add_failures(struct missing_report *report, const struct missing_report *from);

bool missing_is_any(const struct missing_report *report); /* true if something was not found */
/* Appends the warning, one line with its line end; nothing when nothing is missing. */
void missing_put(const struct missing_report *report, struct sl_buf *out);
/* Flushes standard output, then writes the warning to stderr; nothing if --quiet is given, or standard output cannot be written. */
void missing_print(const struct missing_report *report, const struct options *o);
/* Returns `status`, or 3 if --fail-on-missing is given, something is missing and `status` is 0. */
int missing_status(const struct missing_report *report, const struct options *o, int status);
