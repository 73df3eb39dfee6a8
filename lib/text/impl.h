/* Functions shared by the readers of stacks in texts. Private to this folder. */
#pragma once

#include "text/scan.h"
#include "text/text.h"

/* Returns the index in text->modules of the module with this name and id (hex digits, may be empty), which is added if it is new.
 * SL_TEXT_NO_MODULE when there are too many modules, or out of memory. */
uint32_t sl_text_module(struct sl_text *text, struct sl_str name, struct sl_str id);

/* Adds the range of addresses at which a module is mapped. Older ranges that overlap it are dropped; when too many ranges are stored, it is
 * ignored. */
void sl_text_add_range(struct sl_text *text, const struct sl_text_range *range);

/* Marks: characters without which a line cannot be a frame of some format. One pass finds which of them a line has, so that the readers of
 * formats need not look at the many lines of logs that cannot be frames. */
enum {
    HAS_HASH = 1,
    HAS_BRACKET = 1 << 1, /* "[" */
    HAS_BANG = 1 << 2,
    HAS_0X = 1 << 3,     /* "0x" */
    HAS_BRACES = 1 << 4, /* "{{{" */
    HAS_AT = 1 << 5,     /* "at " */
    HAS_PLACE = 1 << 6,  /* ":" and a digit */
    HAS_SIGN = 1 << 7,   /* "@" */
    HAS_CLOSE = 1 << 8,  /* ")" */
    HAS_QUOTE = 1 << 9,
    HAS_GO = 1 << 10,      /* ".go:" */
    HAS_SLASHES = 1 << 11, /* "://" */
    HAS_ID = 1 << 12,      /* "with build-id " or the like: "id " */
};
/* Returns the marks of a line (HAS_...). */
unsigned sl_text_marks(struct sl_str line);

/* tables.c: reads a line that lists a module or a mapping, and adds it. `marks` is sl_text_marks() of the line. True if it is such a
 * line. */
bool sl_text_read_table(struct sl_text *text, struct sl_str line, unsigned marks);

/* True for a line of gdb's `info proc mappings`; `numbers` are its start, end, size and offset in the file. */
bool sl_text_is_gdb_mapping(struct sl_scan s, uint64_t numbers[4]);

/* native.c: reads the frame of native code in a line (given without its line end). False if there is none. */
bool sl_text_read_native(struct sl_text *text, struct sl_str line, unsigned marks, struct sl_text_frame *frame);
/* True if the line is a frame of a format that has the names in the line already; sets `*format` to it. */
bool sl_text_read_named(struct sl_str line, unsigned marks, enum sl_text_format *format);

/* ips.c: removes the next piece, a frame or the text up to the next, from the rest of a line of an Apple crash report as JSON. False, and
 * nothing is removed, for any other line. */
bool sl_text_next_ips(struct sl_text *text, struct sl_str *rest, struct sl_text_piece *piece);
/* Sets the module of a frame of an Apple crash report as JSON, when the whole report was read: its list of images may follow the frames. */
void sl_text_resolve_ips(const struct sl_text *text, struct sl_text_frame *frame);

/* markup.c: removes the next piece from the rest of a line with LLVM's symbolizer markup: a frame, the text in front of one, or a whole
 * line about modules that is replaced. Returns true. */
bool sl_text_next_markup(struct sl_text *text, struct sl_str *rest, struct sl_text_piece *piece);
/* Ends the line about a module, which its mappings extend; returns it (in the arena text->made), empty if none was begun. */
struct sl_str sl_text_end_module_line(struct sl_text *text);

/* Sets the parts of a frame's line: `stem` up to `cut`, the text [cut, cut_end) that names replace, and `tail` behind it. */
static inline void sl_text_cut(struct sl_text_frame *frame, struct sl_str line, const char *cut, const char *cut_end)
{
    frame->stem = sl_scan_between(line.data, cut);
    frame->cut = sl_scan_between(cut, cut_end);
    frame->tail = sl_scan_between(cut_end, line.data + line.size);
}
