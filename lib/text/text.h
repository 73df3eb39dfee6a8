/* Stacks in any text: logs, pasted reports, the output of debuggers. The reader takes a text line by line and splits each line
 * into pieces, which together are the line:
 *
 *     "12:01 app: ERROR\n"                               ──▶ a piece without frame
 *     "12:01 app:     #0 0x5626e022f314  (/tmp/a+0x1314)\n" ──▶ a piece with a frame: file address 0x1314 of /tmp/a
 *     "{{{pc:0x1000}}} and {{{pc:0x2000}}}\n"            ──▶ a frame, " and ", a frame, "\n"
 *
 * The caller looks up the frames and writes the text again: pieces without frame as they are, frames by sl_text_write() (native
 * code), sl_js_stack_write() or lib/jvm/trace.h. A frame that was not found is written as it was, so a text in which nothing is
 * found stays the same, byte for byte.
 *
 * Reading is linear in the text. The reader keeps modules and mappings that the text lists, in an arena of its own; their number
 * is limited, so a text of any length needs constant memory. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "js/stack.h"
#include "jvm/trace.h"

enum sl_text_format {
    SL_TEXT_PLAIN,
    SL_TEXT_MARKUP,    /* LLVM's Symbolizer Markup Format */
    SL_TEXT_SANITIZER, /* reports of AddressSanitizer and its relatives */
    SL_TEXT_GLIBC,     /* backtrace_symbols(3) */
    SL_TEXT_ANDROID,   /* tombstones (debuggerd) */
    SL_TEXT_HS_ERR,    /* fatal errors of the JVM: hs_err_pid*.log */
    SL_TEXT_SYSTEMD,   /* systemd-coredump: journal and `coredumpctl info` */
    SL_TEXT_GDB,
    SL_TEXT_EU_STACK,
    SL_TEXT_RUST,
    SL_TEXT_WINDOWS,   /* WinDbg and others: module!symbol+0x1, module+0x1; .NET's native code */
    SL_TEXT_APPLE,     /* frames of crash reports, as text or in `.ips` files */
    SL_TEXT_ADDRESSES, /* lines that begin with an address, or are "module + 0x1" */
    SL_TEXT_JS,
    SL_TEXT_JVM,
    /* formats that have all names already: recognised, never changed */
    SL_TEXT_GO,
    SL_TEXT_DOTNET,
    SL_TEXT_PYTHON,
    SL_TEXT_FORMATS
};

/* Returns the format's name in answers ("asan", "glibc"), NULL for SL_TEXT_PLAIN. */
const char *sl_text_format_name(enum sl_text_format format);
/* Parses such a name; false if it is unknown. */
bool sl_text_format_parse(struct sl_str name, enum sl_text_format *format);

/* What the address of a frame counts from. */
enum sl_text_base {
    SL_TEXT_ABSOLUTE,  /* nothing: an address in the process */
    SL_TEXT_OF_FILE,   /* an address in the file's own segments (p_vaddr) */
    SL_TEXT_OF_IMAGE,  /* where the module was loaded */
    SL_TEXT_OF_SYMBOL, /* the symbol `symbol` of the module */
};

#define SL_TEXT_NO_MODULE UINT32_MAX

struct sl_text_frame { /* a frame of native code; texts are views of the line */
    enum sl_text_format format;
    enum sl_text_base base;
    bool is_return; /* `address` is a return address: the call is just before it */
    bool is_first;  /* the first frame of its stack */
    bool is_named; /* the text has `symbol`, `path` and `line` already: the frame is not looked up and stays as it is */
    uint64_t address;
    uint64_t absolute;    /* the same address in the process; 0: unknown */
    uint32_t module;      /* index in sl_text.modules; SL_TEXT_NO_MODULE */
    struct sl_str symbol; /* the name that the text has; may be empty */
    struct sl_str path;   /* of the source, if is_named */
    uint32_t line;        /* likewise */
    /* The line, in four contiguous parts: `cut` is what names replace (may be empty). */
    struct sl_str stem, cut, tail, end;
    struct sl_str head;        /* the beginning of `stem` that added lines repeat: log prefix and indent */
    struct sl_str number;      /* sanitizers, markup: the frame's number in the text */
    struct sl_str shown;       /* the address as the text has it; markup: the name of the element */
    struct sl_str module_name; /* markup: of its module */
    bool is_json;              /* Apple's `.ips`: the piece is the brace that ends the frame's object */
    struct {
        uint32_t report, index,
            first; /* is_json: the image: its report, its number there, index of the report's first image */
    } image;
};

struct sl_text_piece {
    enum { SL_TEXT_COPY, SL_TEXT_NATIVE, SL_TEXT_SCRIPT, SL_TEXT_JAVA, SL_TEXT_MADE } kind;
    struct sl_str text; /* the piece as it is; SL_TEXT_MADE: what replaces it, valid until sl_text_part() */
    enum sl_text_format format;
    union {
        struct sl_text_frame native;
        struct sl_js_stack_frame js;
        struct sl_jvm_trace_frame jvm;
    };
};

struct sl_text_module { /* a module as the text names it; texts are in the reader's arena */
    struct sl_str name; /* path or name; may be empty */
    struct sl_str id;   /* hex digits of the build id or UUID; empty: the text has none */
    uint64_t base;      /* where it was loaded; 0: unknown */
    uint64_t size;      /* 0: unknown */
    uint64_t bias;      /* an address of the process minus that of the file, as a frame has shown; valid if has_bias */
    bool has_bias;
    bool is_macho;      /* a list of Apple's reports has it: its id is a UUID */
    uint32_t markup_id; /* markup: its number + 1; 0: not from markup */
};

struct sl_text_range {   /* addresses of a process that belong to a module */
    uint64_t start, end; /* `end` is behind the last one */
    uint64_t value;      /* address at `start` in the module: of the file (markup) or the image (mappings) */
    uint32_t module;
    bool of_file;
};

/* ---- private: Apple's reports as JSON (ips.c) ---- */

struct sl_text_ips_object { /* members of the innermost object so far; texts are in the arena of the part */
    bool is_flat;           /* it has no objects or arrays */
    bool has_offset, has_index, has_line, has_base;
    uint64_t offset, index, line, base;
    struct sl_str symbol, file, uuid, path, name;
};

struct sl_text_ips_image {
    uint32_t report, module; /* module: index in sl_text.modules; SL_TEXT_NO_MODULE: it has no id */
};

struct sl_text_ips {
    bool follows_header;  /* the line before is the header of a report */
    uint64_t depth;       /* of open objects and arrays; 0: the text is in no report */
    uint32_t report;      /* number of the current report, from 1 */
    uint32_t first_image; /* index of its first image */
    uint32_t frame;       /* frames of the current array so far */
    struct sl_str key;    /* of the next value */
    struct sl_text_ips_object object;
    struct sl_text_ips_image *images; /* of all reports of the part */
    size_t image_count, image_capacity;
};

struct sl_text {
    struct sl_arena arena;
    struct sl_text_module *modules;
    size_t module_count, module_capacity;
    uint64_t counts[SL_TEXT_FORMATS]; /* frames of each format so far */
    uint64_t max_frames;              /* set after sl_text_begin(): further frames are copied; UINT64_MAX: no limit */
    /* private from here on */
    struct sl_map by_name;        /* name and id -> index + 1 in `modules` */
    struct sl_map by_number;      /* markup's number of a module -> index + 1, since the last {{{reset}}} */
    struct sl_arena numbers;      /* keys of `by_number` */
    struct sl_text_range *ranges; /* sorted, not overlapping */
    size_t range_count, range_capacity;
    uint64_t frame_count, number_count;
    enum sl_text_format last; /* format of the line before */
    size_t prefix;            /* bytes in front of the last frame */
    bool has_markup, in_module_line;
    bool in_parts;         /* the rest of the line is the next of several lines that are quoted in one, "a\\nb" */
    struct sl_arena made;  /* texts of pieces */
    struct sl_buf pending; /* markup: the line about a module, which its mappings extend */
    uint32_t markup_module, markup_ranges; /* of that line */
    struct sl_text_ips ips;
    bool out_of_memory;
};

void sl_text_begin(struct sl_text *text);
void sl_text_end(struct sl_text *text);

/* Begins another part of the same text: frees what replaces pieces of the last one. A report as JSON ends there: parts should contain
 * whole reports. */
void sl_text_part(struct sl_text *text);

/* True if the line that was read last is part of a report as JSON that goes on. */
static inline bool sl_text_is_in_report(const struct sl_text *text)
{
    return text->ips.depth || text->ips.follows_header;
}

/* Returns how many bytes of the text, whole lines, can be read as a part: all, or those in front of a report as JSON that is not
 * complete. Linear in the text. */
size_t sl_text_complete_size(struct sl_str text);

/* Longer lines hold no frame, except in reports as JSON. */
enum { SL_TEXT_MAX_LINE = 16 * 1024 };

/* Removes the next line from `*rest` and returns it with its line end, which the last one may lack; false at the end. */
bool sl_text_next_line(struct sl_str *rest, struct sl_str *line);

/* Removes the next piece from `*rest`, the rest of one line with its line end (LF or CR LF, absent in the last one). False when
 * nothing is left. Sets `out_of_memory`, and copies from then on. */
bool sl_text_next(struct sl_text *text, struct sl_str *rest, struct sl_text_piece *piece);

/* True if three quarters of the modules or mappings are listed that the reader stores; more than it stores are ignored. When a caller that
 * streams the logs of many programs begins a part, it should then call sl_text_end() and sl_text_begin(), so that the programs that
 * come later are found. Not while `in_module_line` is set: the line would be lost. */
bool sl_text_is_nearly_full(const struct sl_text *text);

/* Call at the end of the text and before a pause: appends what the reader still has to write (markup). */
void sl_text_flush(struct sl_text *text, struct sl_buf *out);

/* Finds the module that contains an address of the process, by the mappings that the text has listed so far; `*value` is the
 * address in the module, of the file or of the image. False if none contains it. */
bool sl_text_find(const struct sl_text *text, uint64_t address, uint32_t *module, uint64_t *value, bool *of_file);

/* Adds a module that the text does not name, with its addresses in the process (size 0: up to the end; an address of 0: unknown).
 * Its index is the number of modules so far. False when out of memory. */
bool sl_text_map_module(struct sl_text *text, uint64_t address, uint64_t size);

/* Makes a frame with an absolute address, or with an address after a symbol, one of a module where what the text has listed
 * allows it. Call it when the whole text, or the part that is to be written, was read. */
void sl_text_resolve(const struct sl_text *text, struct sl_text_frame *frame);

/* ---- rewrite.c: native frames with names ---- */

struct sl_text_call {       /* a function at the address of a frame */
    struct sl_str function; /* not empty */
    struct sl_str path;     /* of the source file; empty: unknown */
    uint64_t line, column;  /* 0: unknown; the column is only written by formats whose tools do */
    uint64_t offset;        /* of the address in the outermost function; valid if has_offset */
    bool has_offset;
};

/* Appends the frame with the `count` calls at its address, innermost first; none: as it was. `*shift` is how many lines inlined
 * calls have added to the stack so far, for formats that number them; 0 before the first frame of a text. */
void sl_text_write(const struct sl_text_frame *frame, const struct sl_text_call *calls, size_t count, uint64_t *shift,
                   struct sl_buf *out);
