/* Logging: levels per module, three formats (LOG_AUTO chooses), fields, and a writer thread, so that a blocked pipe never blocks
 * the loop.
 *
 *     log_info("fetch", "downloaded", LOG_STR("source", id), LOG_U64("bytes", n));
 *
 *     simplified  2027-01-31T12:00:00.000000Z  INFO fetch: downloaded source=acme bytes=7
 *     pretty      the same with local time and colours, the fields on a second line
 *     JSON        {"timestamp":"2027-01-31T12:00:00.000000Z","level":"INFO","target":"fetch","message":"downloaded",
 *                  "source":"acme","bytes":7}
 *
 * Thread safe. Control bytes and invalid UTF-8 are escaped in every format. Never log a secret value; log URLs by LOG_URL,
 * which drops user info and query. One call site writes at most ten lines a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };
enum log_format { LOG_AUTO, LOG_PRETTY, LOG_SIMPLIFIED, LOG_JSON };

struct log_field {
    const char *key; /* NULL ends the list */
    enum { LOG_FIELD_STR, LOG_FIELD_U64, LOG_FIELD_I64, LOG_FIELD_DOUBLE, LOG_FIELD_URL, LOG_FIELD_BOOL } type;
    struct sl_str str;
    union {
        uint64_t u64;
        int64_t i64;
        double number;
        bool boolean;
    };
};

#define LOG_STR(k, s)    ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .str = sl_str(s)})
#define LOG_SLSTR(k, s)  ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .str = (s)})
#define LOG_U64(k, v)    ((struct log_field){.key = (k), .type = LOG_FIELD_U64, .u64 = (v)})
#define LOG_I64(k, v)    ((struct log_field){.key = (k), .type = LOG_FIELD_I64, .i64 = (v)})
#define LOG_DOUBLE(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_DOUBLE, .number = (v)})
#define LOG_BOOL(k, v)   ((struct log_field){.key = (k), .type = LOG_FIELD_BOOL, .boolean = (v)})
#define LOG_URL(k, s)    ((struct log_field){.key = (k), .type = LOG_FIELD_URL, .str = sl_str(s)})
#define LOG_ERR(e)       ((struct log_field){.key = "error", .type = LOG_FIELD_STR, .str = sl_str((e)->message)})

struct log_site { /* state of the rate limit of one call site */
    uint64_t second;
    uint32_t count, suppressed;
};

/* Sets the levels from a text like "info" or "info,fetch=debug,cache=trace". False, and nothing is changed, if the text is of neither
 * form. */
bool log_set_levels(const char *levels);
/* Sets the format of all lines. */
void log_set_format(enum log_format format);
bool log_set_file(const char *path, struct sl_error *error); /* NULL = stderr (for JSON: stdout) */
/* Sets the file for lines of the module `access`; NULL = they go where all other lines go. */
bool log_set_access_file(const char *path, struct sl_error *error);
void log_reopen(void); /* opens the files again by their paths, after a rotation */
/* A line of level ERROR, as JSON, and the place in the source that has logged it. */
struct log_report {
    const char *module, *message, *file;
    int line;
    struct sl_str json; /* an object, without line end */
};
/* Registers a function that is called with every line of level ERROR, on the thread that logs it; NULL = none. It must not log. */
void log_on_error(void (*callback)(const struct log_report *report));
/* Writes an access log line that the caller has formatted, with its line end, to the destination of the module `access`. */
void log_access_line(struct sl_str line);
/* True if lines of this level are written for the module. */
bool log_enabled(enum log_level level, const char *module);
/* Writes a line, without a check of its level: call it by the macros below. `site` NULL: no rate limit. Adds the request id of the running
 * fiber, or of the thread, as the field `req`. */
void log_write(struct log_site *site, enum log_level level, const char *module, const char *file, int line,
               const char *message, const struct log_field *fields);
/* Sets the request id for this thread's lines outside of fibers. Not copied: it must live until the next call. */
void log_set_request_id(struct sl_str id);
struct sl_str log_request_id(void); /* the request id that a line logged now would have; may be empty */
/* For the crash report; both are async-signal-safe. */
int log_report_fd(void);   /* descriptor of `logging.file`; -1 = none */
void log_last_lines(void); /* writes lines that are still in memory */
void log_start(void);      /* starts the writer thread; before that, lines are written directly */
void log_flush(void);      /* waits until everything logged so far is written */
void log_stop(void);       /* waits for the writer, but only briefly for a pipe that nobody reads */

#define LOG_AT(lvl, module, message, ...)                                                                              \
    do {                                                                                                               \
        static struct log_site log_site_;                                                                              \
        if (log_enabled((lvl), (module)))                                                                              \
            log_write(&log_site_, (lvl), (module), __FILE__, __LINE__, (message),                                      \
                      (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}});                            \
    } while (0)
#define log_error(module, ...) LOG_AT(LOG_ERROR, module, __VA_ARGS__)
#define log_warn(module, ...)  LOG_AT(LOG_WARN, module, __VA_ARGS__)
#define log_info(module, ...)  LOG_AT(LOG_INFO, module, __VA_ARGS__)
#define log_debug(module, ...) LOG_AT(LOG_DEBUG, module, __VA_ARGS__)
#define log_trace(module, ...) LOG_AT(LOG_TRACE, module, __VA_ARGS__)
