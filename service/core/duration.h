/* Durations and sizes as written in the configuration, cache files and messages. */
#pragma once

#include "base/buf.h"

/* Parses "1h 30m", "7days", "100ms" and sets `*ns` to the nanoseconds; "0" is allowed without a unit. False when the text is no duration
 * or overflows. */
bool duration_parse(struct sl_str text, uint64_t *ns);

/* Writes the exact form: non-zero parts joined by blanks, "4m 33s", "1day", "0s". */
void duration_format(uint64_t ns, struct sl_buf *out);

/* Writes the short form for error messages, "200ms", "300s" or "1.5s". It is one number, in the largest of the units s, ms, µs and ns in
 * which it is at least 1. */
void duration_format_short(uint64_t ns, struct sl_buf *out);

/* Parses "64KiB", "1GiB", "512 MB", or plain bytes. False when the text is no size or overflows; `*bytes` may then have been changed. */
bool size_parse(struct sl_str text, uint64_t *bytes);

#define DURATION_MS(ns) ((ns) / 1000000u)
#define DURATION_NEVER  UINT64_MAX /* a time limit that never passes (null in the configuration) */
