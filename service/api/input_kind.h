/* Detects the format of an input of `symloom symbolicate` or of the page. */
#pragma once

#include "base/bytes.h"

enum input_kind {
    INPUT_UNKNOWN,
    INPUT_MINIDUMP,
    INPUT_APPLE,
    INPUT_TRACE, /* JVM stack trace; never detected, because any text may contain such frames */
    INPUT_JSSTACK,
    INPUT_TEXT,      /* text with stacks of native code, maybe others too (lib/text) */
    INPUT_REQUEST,   /* body of POST /symbolicate */
    INPUT_EVENT,     /* event of Sentry, or any other JSON object */
    INPUT_MOZILLA,   /* request of Mozilla's symbolication API */
    INPUT_PROFILE,   /* profile of the Firefox Profiler */
    INPUT_ADDRESSES, /* bare addresses; never detected */
    INPUT_CORE,      /* ELF core file */
};

/* Returns the name of the kind as a value of --type; NULL if it has no name. */
const char *input_kind_name(enum input_kind kind);

/* Parses the name of a kind, a value of --type; false if it is unknown. */
bool input_kind_parse(const char *name, enum input_kind *kind);

/* Detects the kind of an input by its content; INPUT_UNKNOWN if that is unknown. Never returns INPUT_TRACE or INPUT_ADDRESSES. */
enum input_kind input_kind_detect(struct sl_bytes bytes);

/* ---- input_unread.c ---- */

/* Returns advice for an input that another option reads ("this looks like a Java stack trace: pass --mapping FILE ..."), or that lacks what
 * symbolication needs (a report of Valgrind with frames `???` does not say where modules were loaded); else NULL. */
const char *input_advice(struct sl_bytes bytes);
/* For a file that was given as symbols: returns what it is ("a minidump") if it is really an input to symbolicate; else NULL. `path` is
 * its path, whose suffix helps in doubtful cases. */
const char *input_crash_kind(struct sl_bytes bytes, const char *path);

/* Names the format of an input that `symloom symbolicate` does not take, for messages: an object file ("an ELF file: a program or
 * library"), a file of another program ("a Java class file", "a pprof profile"), "an empty file". NULL for unknown formats, and for those
 * that it takes. Exceptions: "a core dump" for ELF core files, which it takes, so ask input_kind_detect() first; and "an Android
 * tombstone", which is symbolicated like any text with native frames. */
const char *input_unread_kind(struct sl_bytes bytes);
/* Returns the name of a text stack that has its function names already, so needs no symbolication ("a Go stack trace"); NULL
 * for other inputs. */
const char *input_named_kind(struct sl_bytes bytes);
/* True if the text contains frames of a .NET exception, which might be taken for frames of a JVM. */
bool input_is_dotnet(struct sl_str text);
/* Names the kind of an Apple report that the reader has refused ("a jetsam report"); NULL if unknown. `message` is the reader's error
 * message, which ends with the number of the report's type. */
const char *input_unread_report(struct sl_str message);
