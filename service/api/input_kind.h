/* What people give to `symloom symbolicate` and to the page, by the looks of it. */
#pragma once

#include "base/bytes.h"

enum input_kind {
    INPUT_UNKNOWN,
    INPUT_MINIDUMP,
    INPUT_APPLE,
    INPUT_TRACE, /* of a JVM: any text may have frames of one, see sl_jvm_trace_frame */
    INPUT_JSSTACK,
    INPUT_REQUEST,
    INPUT_EVENT,
    INPUT_MOZILLA, /* a request of Firefox */
    INPUT_PROFILE, /* of the Firefox Profiler */
    INPUT_ADDRESSES,
};

/* The name of a kind as --type has it; NULL: it has none. */
const char *input_kind_name(enum input_kind kind);

/* The kind that has this name; false when none has. */
bool input_kind_parse(const char *name, enum input_kind *kind);

/* Never INPUT_TRACE or INPUT_ADDRESSES. */
enum input_kind input_kind_of(struct sl_bytes bytes);

/* ---- input_unread.c ---- */

/* What to do with an input of a kind that is read in another way; NULL: nobody knows what it is. */
const char *input_advice(struct sl_bytes bytes);
/* "a minidump": what the file at the path is if it is itself a crash, and no symbols; else NULL. */
const char *input_crash_kind(struct sl_bytes bytes, const char *path);

/* What a file looks like that is of a known kind and not read: "a tombstone of Android"; NULL: it is none of these. */
const char *input_unread_kind(struct sl_bytes bytes);
/* Likewise a stack as text that names its functions itself, so that nothing is to be done for it: "a stack of Go". */
const char *input_named_kind(struct sl_bytes bytes);
/* Whether that is an exception of .NET, whose frames look like those of a JVM. */
bool input_is_dotnet(struct sl_str text);
/* Likewise a report of Apple's, by the message about it, which ends with the number of its type. */
const char *input_unread_report(struct sl_str message);
