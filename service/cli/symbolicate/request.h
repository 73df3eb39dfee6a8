/* Requests and events, for people: what request.c and event.c share. Private to this folder. */
#pragma once

#include "api/local_request.h"
#include "base/grow.h"
#include "base/json.h"
#include "cli/symbolicate/sentry.h"
#include "cli/symbolicate/symbolicate.h"

struct event_options { /* instead of what the event says; NULL: that */
    const char *platform, *release, *dist;
    const struct sentry_project *project; /* whose artifacts count */
};

/* Appends the body of a request for the frames of an event of Sentry. SL_MALFORMED: it is no JSON object; SL_UNSUPPORTED: of a
 * platform that nobody knows; SL_NOT_FOUND: it has no frames that can be used; SL_BUSY. */
enum sl_code event_request(struct sl_str text, const struct event_options *options, struct sl_arena *arena,
                           enum local_request_kind *kind, struct sl_buf *body, struct sl_error *error);
