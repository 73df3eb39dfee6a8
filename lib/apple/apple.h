/* Crash reports of Apple's systems: the text of ReportCrash and PLCrashReporter, and the JSON of `.ips` files since macOS 12
 * and iOS 15 ("Interpreting the JSON format of a crash report", developer.apple.com). Also reports of processes that have not
 * crashed: diagnostics of MetricKit, sampling reports (samples.h) and stackshots.
 *
 * The reader detects the format. It skips fields, frames and images that are invalid and reads the rest; bytes that are not
 * UTF-8 become U+FFFD. Everything allocated in the arena is proportional to the file size. */
#pragma once

#include "crash/crash.h"

struct sl_apple_options {
    /* True: frames keep the function, file and line that the report gives. False: those of text reports are dropped; those of JSON reports
     * are kept, without the offset of the address in the function. */
    bool names_from_report;
    /* True: the system in a text report is split into name, version and build; false: only if it is Mac OS X. JSON is always split. */
    bool split_os_version;
    /* True: `details` has a line for each cause in the report: the exception and its reason, the application's message, the address, and
     * why the system ended the process. False: only the first one that the report has. */
    bool all_causes;
};

/* Name of the thread that readers add for the backtrace of the last exception, the stack where it was thrown. */
#define SL_APPLE_LAST_EXCEPTION "Last Exception Backtrace"

/* True if a text looks like a crash report: its first 20,000 lines have a list of images, or a thread's heading and its first frame. */
bool sl_apple_is_text(struct sl_str text);
/* True if a text begins with `{` and looks like MetricKit diagnostics. */
bool sl_apple_is_metrickit(struct sl_str text);

/* Reads a report into `crash`, whose texts may point into `bytes`. SL_MALFORMED with the reason if it is not a crash report,
 * SL_UNSUPPORTED "unsupported apple report type <bug_type>" for other reports, SL_BUSY if out of memory. Pure
 * function. */
enum sl_code sl_apple_read(struct sl_bytes bytes, const struct sl_apple_options *options, struct sl_arena *arena,
                           struct sl_crash *crash, struct sl_error *error);
