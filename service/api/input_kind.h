/* Detects the format of an input of `symloom symbolicate` or of the page. */
#pragma once

#include "base/bytes.h"

enum input_kind {
    INPUT_UNKNOWN,
    INPUT_MINIDUMP,
    INPUT_APPLE,
    INPUT_TRACE, /* JVM stack trace; any text may contain such frames, see sl_jvm_trace_frame */
    INPUT_JSSTACK,
    INPUT_TEXT, /* stacks of native code in text, maybe others too (lib/text) */
    INPUT_REQUEST,
    INPUT_EVENT,
    INPUT_MOZILLA, /* request of Mozilla's symbolication API */
    INPUT_PROFILE, /* profile of the Firefox Profiler */
    INPUT_ADDRESSES,
    INPUT_CORE, /* ELF core file */
};

/* Returns the name of the kind as a value of --type; NULL if it has no name. */
const char *input_kind_name(enum input_kind kind);

/* Parses such a name; false if it is unknown. */
bool input_kind_parse(const char *name, enum input_kind *kind);

/* Detects the kind by content; never returns INPUT_TRACE or INPUT_ADDRESSES. */
enum input_kind input_kind_detect(struct sl_bytes bytes);

/* ---- input_unread.c ---- */

/* Returns advice for an input that another option reads ("pass --mapping FILE ..."), or that cannot get names from what it says (a report of
 * Valgrind with frames `???`); NULL if there is none. */
const char *input_advice(struct sl_bytes bytes);
/* For files given as symbols: returns "a minidump" or the like if the file at `path` is a crash file instead; NULL if it is
 * none. */
const char *input_crash_kind(struct sl_bytes bytes, const char *path);

/* Returns what an input is that `symloom symbolicate` does not take, for messages: an object file ("an ELF file: a program or library"), a
 * file of another program ("a Java class file", "a pprof profile"), "an empty file". Also "an Android tombstone": that format has no reader,
 * but its frames are symbolicated like those of any text. NULL for unknown formats, and for those that
 * symbolicate takes except ELF core files ("a core dump"): ask input_kind_detect first. */
const char *input_unread_kind(struct sl_bytes bytes);
/* Returns the name of a text stack that has its function names already, so needs no symbolication ("a Go stack trace"); NULL
 * for other inputs. */
const char *input_named_kind(struct sl_bytes bytes);
/* True if the text is an exception of .NET, whose frames look like those of a JVM. */
bool input_is_dotnet(struct sl_str text);
/* Returns the name of an Apple report that cannot be read ("a jetsam report"), by its error message, which ends with the
 * report's type number; NULL for others. */
const char *input_unread_report(struct sl_str message);
