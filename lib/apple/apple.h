/* Crash reports of Apple's systems: the text of ReportCrash and PLCrashReporter, and the JSON of `.ips` files since macOS 12
 * and iOS 15 ("Interpreting the JSON format of a crash report", developer.apple.com). Also diagnostics of MetricKit, reports of
 * samples (samples.h) and stackshots, whose processes have not crashed.
 *
 * Which of them a file is, is found out. A field, frame or image that makes no sense is passed over and the rest is read;
 * bytes that are no UTF-8 become U+FFFD. All that is taken of the arena is in proportion to the file. */
#pragma once

#include "crash/crash.h"

struct sl_apple_options {
    bool names_from_report; /* texts (JSON always): frames keep function, file and line of the report */
    bool split_os_version;  /* likewise: into name, version and build, of every system and not of "Mac OS X" alone */
    /* `details` has a line for each cause that the report names: the exception and its reason, what the application said, the
     * address, and why the system ended the process. Else only the first of them, as other readers have it. */
    bool all_causes;
};

/* The name of the thread that is no thread's own stack but where the last exception was thrown. */
#define SL_APPLE_LAST_EXCEPTION "Last Exception Backtrace"

/* Whether a text looks like a report: a list of images, or a thread and its first frame. */
bool sl_apple_is_text(struct sl_str text);
/* Whether a text, which begins with `{`, looks like diagnostics of MetricKit. */
bool sl_apple_is_metrickit(struct sl_str text);

/* Reads a report; `bytes` must outlive `crash`, which is filled. SL_MALFORMED with what is wrong when it is no crash report,
 * SL_UNSUPPORTED "unsupported apple report type <bug_type>" when it is a report of something else, SL_BUSY. Pure. */
enum sl_code sl_apple_read(struct sl_bytes bytes, const struct sl_apple_options *options, struct sl_arena *arena,
                           struct sl_crash *crash, struct sl_error *error);
