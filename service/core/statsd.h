/* Pushes the metrics: DogStatsD datagrams over UDP or a Unix socket, every ten seconds.
 *
 *     crash.responses.status_code:2|c|#route:/symbolicate,method:POST,status:200
 *     crash.requests.duration:12.5:3.25|d|#route:/symbolicate
 *
 * Counters send their increase since the last push, gauges their value, histograms their single values (durations in
 * milliseconds): at most a thousand per series and period, sent with their sample rate. An absent server is tried again every
 * thirty seconds; datagrams that cannot be sent are dropped silently. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"

struct statsd_options {
    const char *server; /* "host:port", "[address]:port" or "unix:/path" */
    const char *prefix; /* of all names */
    const char *tags;   /* of all values: "a:b,c:d"; empty = none. Must outlive statsd_run */
    bool tagged;        /* false: send no tags at all */
    bool mozilla_names; /* also push Mozilla's names: without the prefix, and with a tag of the host */
    const char *host;   /* value of that tag */
};

/* Starts recording values of histograms. Before other threads exist. */
void statsd_init(const struct statsd_options *options);

/* Pushes until the group is cancelled, and once more then. Returns at once without a server. */
void statsd_run(void *unused) SL_SUSPENDS;

/* Appends "name:value"; commas, bars and blanks, which tags cannot have, are replaced. */
void statsd_add_tag(struct sl_buf *tags, struct sl_str name, struct sl_str value);
