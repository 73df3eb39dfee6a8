/* Crash reports of Apple's systems: the text of ReportCrash and PLCrashReporter, and the JSON of `.ips` files since macOS 12
 * and iOS 15 ("Interpreting the JSON format of a crash report", developer.apple.com).
 *
 * Which of them a file is, is found out. A field, frame or image that makes no sense is passed over and the rest is read;
 * bytes that are no UTF-8 become U+FFFD. All that is taken of the arena is in proportion to the file. */
#pragma once

#include "crash/crash.h"

struct sl_apple_options {   /* of texts; JSON reports have both */
    bool names_from_report; /* frames keep function, file and line of the report */
    bool split_os_version;  /* into name, version and build, of every system and not of "Mac OS X" alone */
};

/* Reads a report; `bytes` must outlive `crash`, which is filled. SL_MALFORMED with what is wrong when it is no crash report,
 * SL_UNSUPPORTED "unsupported apple report type <bug_type>" when it is a report of something else, SL_BUSY. Pure. */
enum sl_code sl_apple_read(struct sl_bytes bytes, const struct sl_apple_options *options, struct sl_arena *arena,
                           struct sl_crash *crash, struct sl_error *error);
