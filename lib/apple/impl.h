/* Private to lib/apple.
 *
 *     apple.c      detects the format                 samples.c, samples_row.c, samples_write.c   sampling reports
 *     line.c       grammar of lines in texts          samples_crash.c   stacks of sampling reports as threads of a crash
 *     text.c       sections of text reports           metrickit.c       MetricKit diagnostics
 *     ips.c        JSON reports                       stackshot.c       stackshots
 *     cause.c      why the process ended              system.c          system, time and module ids */
#pragma once

#include "apple/apple.h"
#include "base/buf.h"
#include "base/json.h"

struct apple_header { /* the first line of `.ips` files; data NULL = absent */
    struct sl_str timestamp, os_version, bug_type;
};

/* Limits the memory that the results of one report take: a short text can expand to large results. */
struct apple_budget {
    uint64_t left; /* bytes that may still be used */
    bool used_up;  /* true after something did not fit */
};

/* Bytes that one item takes from the budget of its report: the size of the item and an estimate of what callers allocate for it. A label is
 * a line of a text report that only names a thread. */
enum { COST_PER_IMAGE = 448, COST_PER_THREAD = 176, COST_PER_FRAME = 72, COST_PER_REGISTER = 96, COST_PER_LABEL = 48 };

/* Appends a zeroed item to `items` and takes `cost` bytes from `budget`; returns NULL if fewer are left or memory is short. */
void *apple_add(struct sl_arena_array *items, struct apple_budget *budget, size_t cost);

/* ---- text.c, ips.c: readers of one format ---- */

/* Reads a text report into `crash`. `header` provides the time and system if the text lacks them. Returns false if memory is short or the
 * budget is used up. */
bool apple_read_text(struct sl_str text, const struct apple_header *header, const struct sl_apple_options *options,
                     struct sl_arena *arena, struct apple_budget *budget, struct sl_crash *crash);

/* Reads `body`, one JSON object with arrays `threads` and `usedImages`, into `crash`. `header` provides the time and system if the body
 * lacks them. Returns false with the reason in `*failed`: malformed, or `failed->busy` if memory is short or the budget is used up. */
bool apple_read_ips(struct sl_str body, const struct apple_header *header, const struct sl_apple_options *options,
                    struct sl_arena *arena, struct apple_budget *budget, struct sl_crash *crash,
                    struct sl_json *failed);

/* ---- metrickit.c ---- */

/* Reads a MetricKit payload into `crash`. Returns false if the text is malformed (`*problem_at` is the position, counted from 1), or if
 * memory is short or the budget is used up (`*problem_at` is 0). */
bool apple_read_metrickit(struct sl_str text, struct sl_arena *arena, struct apple_budget *budget,
                          struct sl_crash *crash, size_t *problem_at);

/* ---- stackshot.c ---- */

/* True if the JSON object has the members `processByPid` and `binaryImages` of a stackshot, and is not the report of a kernel panic. */
bool apple_is_stackshot(struct sl_str object, struct sl_arena *arena);

/* Reads the threads of the frontmost process into `crash`; of the first process that is not the kernel if none is frontmost. Returns false
 * with the reason in `*failed`: malformed, or `failed->busy` if memory is short or the budget is used up. */
bool apple_read_stackshot(struct sl_str body, const struct apple_header *header, struct sl_arena *arena,
                          struct apple_budget *budget, struct sl_crash *crash, struct sl_json *failed);

/* ---- samples_crash.c ---- */

/* Reads the stacks of the sampling report's target process. SL_MALFORMED if the report has no rows or no process with threads; SL_BUSY if
 * out of memory or, with `budget->used_up`, because the budget is used up. */
enum sl_code apple_read_samples(struct sl_str text, const struct apple_header *header,
                                const struct sl_apple_options *options, struct sl_arena *arena,
                                struct apple_budget *budget, struct sl_crash *crash, struct sl_error *error);

/* ---- cause.c: why the process ended ---- */

/* True if exception codes are only numbers, like "0x1, 0x10"; false for "KERN_INVALID_ADDRESS at 0x10". */
bool apple_codes_are_raw(struct sl_str codes);

struct apple_termination {            /* data NULL = unknown */
    struct sl_str domain, code, rest; /* "FRONTBOARD", "2343432205", the text after them */
};
/* Splits the reason of a termination into domain, code and the rest: "FRONTBOARD 2343432205" (without rest), "Namespace SIGNAL, Code 11
 * Segmentation fault: 11" or "CODESIGNING, Code 0x2". Parts that the text lacks stay empty. */
struct apple_termination apple_termination_parse(struct sl_str text);

struct apple_causes {
    struct sl_str exception, reason; /* "NSRangeException" and its message */
    struct sl_str information, message, subtype, codes;
    struct apple_termination termination;
    struct sl_str explanation; /* a sentence of the report about the termination */
};
/* Writes each cause that is set on a line of its own. Codes that are only numbers, which few can read, are written only if there is nothing
 * else; a termination by a signal, without an explanation, only if there is no other cause and all codes are zero. */
void apple_put_causes(const struct apple_causes *causes, struct sl_buf *out);

/* ---- system.c ---- */

/* Converts "2019-01-09 17:42:22.075 +0000" to seconds since 1970, UTC, without the fraction. False if malformed. */
bool apple_time(struct sl_str text, int64_t *seconds);

/* Splits "Mac OS X 10.14.0 (18A391)" and, if `split`, any "<name> <version> (<build>)" into the three texts of `system`. Otherwise the
 * whole text becomes the name. */
void apple_os(struct sl_str text, bool split, struct sl_crash_system *system);

/* Returns the present name of a system, such as "macOS" for "Mac OS X"; an unknown name is returned as it is. */
struct sl_str apple_os_name(struct sl_str name);

/* Returns the architecture that the first word of a code type like "X86-64 (Native)" names; SL_ARCH_UNKNOWN if none. */
enum sl_arch apple_arch(struct sl_str code_type);

/* Sets the debug id and code id of a module from its UUID in "usedImages" or "Binary Images"; returns false if that is not a UUID. Returns
 * true with `module->code_id.data` NULL if out of memory. */
bool apple_module_id(struct sl_str uuid, struct sl_arena *arena, struct sl_crash_module *module);

/* ---- line.c: the grammar of lines; each function returns false if the line is of another form ---- */

/* Returns the text without its first `size` bytes; there must be so many. */
static inline struct sl_str apple_skip(struct sl_str text, size_t size)
{
    return (struct sl_str){text.data + size, text.size - size};
}

enum apple_number { APPLE_NONE, APPLE_NUMBER, APPLE_TOO_LARGE };

/* Removes the decimal digits at the beginning of `rest`. APPLE_TOO_LARGE: they were removed, but do not fit into 64 bits. */
enum apple_number apple_take_number(struct sl_str *rest, uint64_t *value);

struct apple_thread_line {
    uint64_t number;
    bool fits; /* false: the number is too large to use */
    bool crashed;
    struct sl_str name; /* size 0 = no name */
};
bool apple_thread_header(struct sl_str line, struct apple_thread_line *thread);
bool apple_thread_name(struct sl_str line, struct apple_thread_line *thread);
bool apple_registers_header(struct sl_str line);

/* Removes the next register, like "rax: 0x10", from a line; skips those whose value exceeds 64 bits. Returns false if there are no more. */
bool apple_next_register(struct sl_str *rest, struct sl_crash_register *reg);

/* Removes the next address from a list like "(0x1000 0x2000)", with or without brackets; skips those that exceed 64 bits. Returns false at
 * anything that is not an address. */
bool apple_next_address(struct sl_str *rest, uint64_t *address);

struct apple_frame_line {
    struct sl_crash_frame frame;
    bool fits; /* false: the address is too large */
};
bool apple_frame_line(struct sl_str line, struct apple_frame_line *frame);

struct apple_image_line {
    uint64_t begin, end; /* `end`: the last byte; equals `begin` if unknown */
    bool fits;           /* false: an address is too large */
    struct sl_str name, uuid, path;
};
bool apple_image_line(struct sl_str line, struct apple_image_line *image);

/* Splits "Key: value" at the first colon; the value may contain more. Returns false without a colon. */
bool apple_key_value(struct sl_str line, struct sl_str *key, struct sl_str *value);
