/* Requests and events: shared by request.c and event.c. Private to this folder. */
#pragma once

#include "api/local_request.h"
#include "base/grow.h"
#include "base/json.h"
#include "cli/symbolicate/sentry.h"
#include "cli/symbolicate/symbolicate.h"

struct event_options {
    const char *platform, *release, *dist; /* replace the event's values; NULL: keep the event's */
    const struct sentry_project *project;  /* has the scripts and source maps of JavaScript events, if it is online */
};

/* Appends to `body` a request for the frames of a Sentry event, and sets its `*kind`. SL_MALFORMED: no JSON object; SL_UNSUPPORTED: an
 * unknown platform; SL_NOT_FOUND: no usable frames, or no images of a native event; SL_BUSY: out of memory. */
enum sl_code event_request(struct sl_str text, const struct event_options *options, struct sl_arena *arena,
                           enum local_request_kind *kind, struct sl_buf *body, struct sl_error *error);
