/* Requests and events: shared by request.c and event.c. Private to this folder. */
#pragma once

#include "api/local_request.h"
#include "base/grow.h"
#include "base/json.h"
#include "cli/symbolicate/sentry.h"
#include "cli/symbolicate/symbolicate.h"

struct event_options { /* override the event's values; NULL: use those */
    const char *platform, *release, *dist;
    const struct sentry_project *project; /* whose artifacts are used */
};

/* Appends a request body for the frames of a Sentry event. SL_MALFORMED: no JSON object; SL_UNSUPPORTED: an unknown platform;
 * SL_NOT_FOUND: no usable frames; SL_BUSY. */
enum sl_code event_request(struct sl_str text, const struct event_options *options, struct sl_arena *arena,
                           enum local_request_kind *kind, struct sl_buf *body, struct sl_error *error);
