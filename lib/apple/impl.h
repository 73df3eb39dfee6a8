/* Inside of lib/apple: which format it is (apple.c), the lines of texts (line.c), their sections (text.c), JSON (ips.c), and
 * what both say of the system and the time (system.c). */
#pragma once

#include "apple/apple.h"
#include "base/buf.h"
#include "base/json.h"

struct apple_header { /* the first line of `.ips` files; data NULL = not there */
    struct sl_str timestamp, os_version, bug_type;
};

/* What may still be made of a report: short texts can stand for things that are not. */
struct apple_room {
    uint64_t left; /* bytes */
    bool used_up;  /* something did not fit */
};

/* What one takes in the end, together with what callers make of it, in bytes; of a frame what is beyond the 96 that each may. */
enum { ROOM_OF_IMAGE = 448, ROOM_OF_THREAD = 176, ROOM_OF_FRAME = 72, ROOM_OF_REGISTER = 96, ROOM_OF_LABEL = 48 };

/* Another item, zeroed; NULL when there is no room for it, or no memory. */
void *apple_add(struct sl_arena_array *items, struct apple_room *room, size_t cost);

/* ---- text.c, ips.c: readers of one format ---- */

/* `header` fills in what the text does not say. False when out of memory or room. */
bool apple_read_text(struct sl_str text, const struct apple_header *header, const struct sl_apple_options *options,
                     struct sl_arena *arena, struct apple_room *room, struct sl_crash *crash);

/* `body` is one JSON object with arrays `threads` and `usedImages`. False when it is malformed, or out of memory or room: see
 * `*failed`. */
bool apple_read_ips(struct sl_str body, const struct apple_header *header, const struct sl_apple_options *options,
                    struct sl_arena *arena, struct apple_room *room, struct sl_crash *crash, struct sl_json *failed);

/* ---- metrickit.c ---- */

/* False when it is malformed, at `*problem_at` counted from 1, or (0) out of memory or room. */
bool apple_read_metrickit(struct sl_str text, struct sl_arena *arena, struct apple_room *room, struct sl_crash *crash,
                          size_t *problem_at);

/* ---- stackshot.c ---- */

/* Whether the object has what a stackshot has. */
bool apple_is_stackshot(struct sl_str object, struct sl_arena *arena);

/* The threads of the process that was in front. As apple_read_ips(). */
bool apple_read_stackshot(struct sl_str body, const struct apple_header *header, struct sl_arena *arena,
                          struct apple_room *room, struct sl_crash *crash, struct sl_json *failed);

/* ---- samples_crash.c ---- */

/* The stacks of the process that a report of samples is about. SL_MALFORMED, SL_BUSY; `room->used_up` of the latter. */
enum sl_code apple_read_samples(struct sl_str text, const struct apple_header *header,
                                const struct sl_apple_options *options, struct sl_arena *arena, struct apple_room *room,
                                struct sl_crash *crash, struct sl_error *error);

/* ---- cause.c: why the process ended ---- */

/* Whether exception codes are numbers alone: "0x1, 0x10", and not "KERN_INVALID_ADDRESS at 0x10". */
bool apple_codes_are_raw(struct sl_str codes);

struct apple_termination {            /* data NULL = not known */
    struct sl_str domain, code, rest; /* "FRONTBOARD", "2343432205", what follows it */
};
/* "FRONTBOARD 2343432205", "Namespace SIGNAL, Code 11 Segmentation fault: 11", "CODESIGNING, Code 0x2". */
struct apple_termination apple_termination_parse(struct sl_str text);

struct apple_causes {
    struct sl_str exception, reason; /* "NSRangeException" and its words */
    struct sl_str information, message, subtype, codes;
    struct apple_termination termination;
    struct sl_str explanation; /* of the termination */
};
/* Writes all causes that are there, a line each; nothing when there are none. */
void apple_put_causes(const struct apple_causes *causes, struct sl_buf *out);

/* ---- system.c ---- */

/* "2019-01-09 17:42:22.075 +0000" as seconds since 1970, UTC, without the fraction. */
bool apple_time(struct sl_str text, int64_t *seconds);

/* "Mac OS X 10.14.0 (18A391)"; all of it is the name unless it is of that form, or `split` and of the form
 * "<name> <version> (<build>)". */
void apple_os(struct sl_str text, bool split, struct sl_crash_system *system);

/* "macOS" of "Mac OS X" and the like. */
struct sl_str apple_os_name(struct sl_str name);

/* "X86-64 (Native)": what its first word says. */
enum sl_arch apple_arch(struct sl_str code_type);

/* "usedImages" and "Binary Images" name modules by their UUID; false when it is none. */
bool apple_module_id(struct sl_str uuid, struct sl_arena *arena, struct sl_crash_module *module);

/* ---- line.c: the grammar of lines; each says whether the line is one ---- */

static inline struct sl_str apple_behind(struct sl_str text, size_t size)
{
    return (struct sl_str){text.data + size, text.size - size};
}

enum apple_number { APPLE_NONE, APPLE_NUMBER, APPLE_TOO_LARGE };

/* Takes the decimal digits that `rest` begins with. */
enum apple_number apple_take_number(struct sl_str *rest, uint64_t *value);

struct apple_thread_line {
    uint64_t number;
    bool fits; /* else the number is too large for anything */
    bool crashed;
    struct sl_str name; /* size 0 = none */
};
bool apple_thread_header(struct sl_str line, struct apple_thread_line *thread);
bool apple_thread_name(struct sl_str line, struct apple_thread_line *thread);
bool apple_registers_header(struct sl_str line);

/* The next register of a line, which `rest` then is behind; one whose value is too large is passed over. False when there is
 * no more. */
bool apple_next_register(struct sl_str *rest, struct sl_crash_register *reg);

/* The next address of a list of addresses, with or without brackets; false at its end. */
bool apple_next_address(struct sl_str *rest, uint64_t *address);

struct apple_frame_line {
    struct sl_crash_frame frame;
    bool fits; /* else the address is too large */
};
bool apple_frame_line(struct sl_str line, struct apple_frame_line *frame);

struct apple_image_line {
    uint64_t begin, end; /* the last byte; `begin` when it is not known */
    bool fits;           /* else an address is too large */
    struct sl_str name, uuid, path;
};
bool apple_image_line(struct sl_str line, struct apple_image_line *image);

bool apple_key_value(struct sl_str line, struct sl_str *key, struct sl_str *value);
