/* Pushes the metrics: DogStatsD datagrams over UDP or a Unix socket, every ten seconds.
 *
 *     crash.responses.status_code:2|c|#route:/symbolicate,method:POST,status:200
 *     crash.requests.duration:12.5:3.25|d|#route:/symbolicate
 *
 * Of a counter the increase since the last push is sent, of a gauge the value, of a histogram the observed values (durations in
 * milliseconds): at most a thousand per series and push, with their sample rate. If there is no connection, a new one is tried every
 * thirty seconds; datagrams that cannot be sent are dropped silently. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"

struct statsd_options {
    const char *server; /* "host:port", "[address]:port" or "unix:/path"; NULL = push nothing */
    const char *prefix; /* put before each name, with a dot; empty = none */
    const char *tags;   /* added to each line: "a:b,c:d"; empty = none. Must outlive statsd_run */
    bool tagged;        /* false: send no tags at all */
    /* also push metrics under the names of Mozilla's services: without the prefix, with a tag `host` */
    bool mozilla_names;
    const char *host; /* value of the tag `host` */
};

/* Sets the options; if there is a server, histograms store their values from now on. Call it before other threads exist. */
void statsd_init(const struct statsd_options *options);

/* The function of a fiber: pushes the metrics every ten seconds until the fiber's group is cancelled, and once more then. Returns at once
 * without a server. */
void statsd_run(void *unused) SL_SUSPENDS;

/* Appends "name:value", with a comma before it if it is not the first tag. Characters that would end a tag (',', '|', '#', blanks, control
 * characters) become '_'. */
void statsd_add_tag(struct sl_buf *tags, struct sl_str name, struct sl_str value);
