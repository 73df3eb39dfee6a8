/* The metrics, pushed: DogStatsD datagrams over UDP or a Unix socket, every ten seconds.
 *
 * Counters are what was added since the last time, gauges as they are, histograms their single values (durations in
 * milliseconds), of which at most a thousand a series and period are kept and sent with their rate. A server that is not
 * there is looked for again every thirty seconds; what could not be sent is lost, and nobody hears of it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"

struct statsd_options {
    const char *server; /* "host:port", "[address]:port" or "unix:/path" */
    const char *prefix; /* of all names */
    const char *tags;   /* of all values: "a:b,c:d"; empty = none. They must outlive statsd_run */
    bool tagged;        /* else none at all */
    bool mozilla_names; /* Mozilla's are sent too: without the prefix, and with a tag of the host */
    const char *host;   /* for that tag */
};

/* Values of histograms are kept from now on. Before other threads are there. */
void statsd_init(const struct statsd_options *options);

/* Sends until the group is cancelled, and once more then. Nothing to do without a server. */
void statsd_run(void *unused) SL_SUSPENDS;

/* "a" as a tag may have it: no commas, bars or blanks. Appends. */
void statsd_add_tag(struct sl_buf *tags, struct sl_str name, struct sl_str value);
