/* Crash reports of Apple's systems: the text of ReportCrash and PLCrashReporter, and the JSON of `.ips` files since macOS 12
 * and iOS 15 ("Interpreting the JSON format of a crash report", developer.apple.com). Also reports of processes that have not
 * crashed: diagnostics of MetricKit, sampling reports (samples.h) and stackshots.
 *
 * The reader detects the format. It skips fields, frames and images that are invalid and reads the rest; bytes that are not
 * UTF-8 become U+FFFD. Everything allocated in the arena is proportional to the file size. */
#pragma once

#include "crash/crash.h"

struct sl_apple_options {
    bool names_from_report; /* text reports (JSON always): frames keep the report's function, file and line */
    bool split_os_version;  /* text reports (JSON always): splits name, version and build of any system */
    /* True: `details` has a line for each cause in the report: the exception and its reason, the application's
     * message, the address, and why the system ended the process. False: only the first of them, as other readers
     * do. */
    bool all_causes;
};

/* Name of the pseudo-thread with the stack where the last exception was thrown. */
#define SL_APPLE_LAST_EXCEPTION "Last Exception Backtrace"

/* True if a text looks like a report: it has a list of images, or a thread and its first frame. */
bool sl_apple_is_text(struct sl_str text);
/* True if a text that begins with `{` looks like MetricKit diagnostics. */
bool sl_apple_is_metrickit(struct sl_str text);

/* Reads a report into `crash`, which refers to `bytes`. SL_MALFORMED with the reason if it is not a crash report,
 * SL_UNSUPPORTED "unsupported apple report type <bug_type>" for other reports, SL_BUSY if out of memory. Pure
 * function. */
enum sl_code sl_apple_read(struct sl_bytes bytes, const struct sl_apple_options *options, struct sl_arena *arena,
                           struct sl_crash *crash, struct sl_error *error);
