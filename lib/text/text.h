/* Stacks in any text: logs, pasted reports, the output of debuggers. The reader takes a text line by line and splits each line
 * into pieces, which together are the line:
 *
 *     "12:01 app: ERROR\n"                               ──▶ a piece without frame
 *     "12:01 app:     #0 0x5626e022f314  (/tmp/a+0x1314)\n" ──▶ a piece with a frame: file address 0x1314 of /tmp/a
 *     "{{{pc:0x1000}}} and {{{pc:0x2000}}}\n"            ──▶ a frame, " and ", a frame, "\n"
 *
 * The caller looks up the frames and writes the text again: pieces without frame as they are, frames by sl_text_write() (native
 * code), sl_js_stack_write() or lib/jvm/trace.h. A frame for which no names are found is written as it was, so a text in which none
 * are found stays the same, byte for byte. (Exception: elements of LLVM's markup are always replaced.)
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
    SL_TEXT_SANITIZER, /* reports of AddressSanitizer, ThreadSanitizer and the like */
    SL_TEXT_GLIBC,     /* backtrace_symbols(3) */
    SL_TEXT_ANDROID,   /* tombstones (debuggerd) */
    SL_TEXT_HS_ERR,    /* fatal errors of the JVM: hs_err_pid*.log */
    SL_TEXT_SYSTEMD,   /* systemd-coredump: journal and `coredumpctl info` */
    SL_TEXT_GDB,
    SL_TEXT_EU_STACK,
    SL_TEXT_RUST,
    SL_TEXT_WINDOWS,   /* WinDbg and others: module!symbol+0x1, module+0x1; .NET's native code */
    SL_TEXT_APPLE,     /* frames of crash reports, as text or in `.ips` files */
    SL_TEXT_ADDRESSES, /* bare addresses, as "0x401106" or "#1: 0x401106 (main+0x3)", and lines "module + 0x1" */
    SL_TEXT_JS,
    SL_TEXT_JVM,
    /* formats whose frames have function and source line already: recognised, never changed */
    SL_TEXT_GO,
    SL_TEXT_DOTNET,
    SL_TEXT_PYTHON,
    SL_TEXT_FORMATS
};

/* Returns the format's name in answers ("asan", "glibc"), NULL for SL_TEXT_PLAIN. */
const char *sl_text_format_name(enum sl_text_format format);
/* Parses the name of a format as sl_text_format_name() returns it; false if it is unknown. */
bool sl_text_format_parse(struct sl_str name, enum sl_text_format *format);

/* What the address of a frame counts from. */
enum sl_text_base {
    SL_TEXT_ABSOLUTE,  /* from 0: it is an address in the process */
    SL_TEXT_OF_FILE,   /* from 0 of the file's segments: it is a p_vaddr */
    SL_TEXT_OF_IMAGE,  /* from the address at which the module was loaded */
    SL_TEXT_OF_SYMBOL, /* from the address of the symbol that the frame names */
};

#define SL_TEXT_NO_MODULE UINT32_MAX

struct sl_text_frame { /* a frame of native code; texts are views of the line */
    enum sl_text_format format;
    enum sl_text_base base;
    bool is_return; /* `address` is a return address: the call is just before it */
    bool is_first;  /* the first frame of its stack */
    bool is_named;  /* the text has the source line (for Rust: the function) already: not looked up, stays as it is */
    uint64_t address;
    uint64_t absolute;    /* the same address in the process; 0: unknown */
    uint32_t module;      /* index in sl_text.modules, or SL_TEXT_NO_MODULE */
    struct sl_str symbol; /* the name that the text has; may be empty */
    struct sl_str path;   /* source path that the text has (empty: none), with `line` (0: none) */
    uint32_t line;
    /* The input line in four parts: `stem` before the names, `cut` (may be empty) that the names replace, `tail`, and the line end. */
    struct sl_str stem, cut, tail, end;
    struct sl_str head;        /* the beginning of `stem` that added lines repeat: log prefix and indent */
    struct sl_str number;      /* the frame's number as the text has it; empty in formats that have none */
    struct sl_str shown;       /* the address as the text has it; markup: the element's tag ("pc") */
    struct sl_str module_name; /* markup: name of the frame's module */
    bool is_json;              /* the frame is a JSON object of Apple's `.ips`; `cut` is its closing brace */
    struct {                   /* is_json: the image that the frame names by its number in the report */
        uint32_t report;       /* number of the report */
        uint32_t index;        /* number of the image in the report */
        uint32_t first;        /* index of the report's first image in sl_text_ips.images */
    } image;
};

struct sl_text_piece {
    enum {
        SL_TEXT_COPY,   /* text to copy */
        SL_TEXT_NATIVE, /* a frame of native code */
        SL_TEXT_SCRIPT, /* a frame of JavaScript */
        SL_TEXT_JAVA,   /* a frame of the JVM */
        SL_TEXT_MADE,   /* text to write in place of input: a line about a module that markup lists */
    } kind;
    struct sl_str text; /* a view of the input; SL_TEXT_MADE: the text to write instead, valid until sl_text_part() */
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
    uint64_t bias;      /* address in the process minus address in the file, from a frame with both; if has_bias */
    bool has_bias;
    bool is_macho;      /* listed by an Apple crash report: `id` is the UUID of a Mach-O file */
    uint32_t markup_id; /* 1 + the module's number in {{{module}}} markup; 0: not from markup */
};

struct sl_text_range {   /* addresses of a process that belong to a module */
    uint64_t start, end; /* `end` is behind the last one */
    uint64_t value;      /* the address in the module that is mapped at `start` */
    uint32_t module;     /* index in sl_text.modules */
    bool of_file;        /* `value` is an address in the file (p_vaddr), else an offset from the load address */
};

/* ---- private: Apple's reports as JSON (ips.c) ---- */

struct sl_text_ips_object { /* members read so far of the innermost open JSON object; texts are in sl_text.made */
    bool is_flat;           /* it contains no objects or arrays */
    bool has_offset, has_index, has_line, has_base;
    uint64_t offset, index, line, base;
    struct sl_str symbol, file, uuid, path, name;
};

struct sl_text_ips_image {
    uint32_t report, module; /* module: index in sl_text.modules; SL_TEXT_NO_MODULE: it has no id */
};

struct sl_text_ips {
    bool follows_header;  /* the line before was the first line of a report, a JSON object of its own */
    uint64_t depth;       /* number of open objects and arrays; 0: the text is in no report */
    uint32_t report;      /* number of the current report, from 1 */
    uint32_t first_image; /* index in `images` of the current report's first image */
    uint32_t frame;       /* number of frames read so far from the current stack, a JSON array */
    struct sl_str key;    /* member name whose value comes next */
    struct sl_text_ips_object object;
    struct sl_text_ips_image *images; /* of all reports since sl_text_part() */
    size_t image_count, image_capacity;
};

struct sl_text {
    struct sl_arena arena;
    struct sl_text_module *modules;
    size_t module_count, module_capacity;
    uint64_t counts[SL_TEXT_FORMATS]; /* frames of each format so far */
    uint64_t max_frames; /* limit, set by the caller; further frames become text to copy; UINT64_MAX: none */
    /* private from here on */
    struct sl_map by_name;        /* name and id -> index + 1 in `modules` */
    struct sl_map by_number;      /* markup's number of a module -> index + 1, since the last {{{reset}}} */
    struct sl_arena numbers;      /* keys of `by_number` */
    struct sl_text_range *ranges; /* sorted, not overlapping */
    size_t range_count, range_capacity;
    uint64_t frame_count, number_count;
    enum sl_text_format last; /* format of the line before */
    size_t prefix;            /* size of the log prefix in front of the last frame */
    bool has_markup;          /* the text has listed modules as markup since the last {{{reset}}} */
    bool in_module_line;      /* `pending` holds an unfinished line */
    bool in_parts;            /* the rest of the line is the next of several lines that are quoted in one, "a\\nb" */
    struct sl_arena made;     /* texts of pieces, until sl_text_part() */
    struct sl_buf pending;    /* the line that replaces {{{module}}} and {{{mmap}}}; further mappings are appended */
    uint32_t markup_module, markup_ranges; /* the module of `pending`, and how many mappings it lists */
    struct sl_text_ips ips;
    bool out_of_memory;
};

void sl_text_begin(struct sl_text *text);
void sl_text_end(struct sl_text *text);

/* Begins another part of a text that is read in parts: frees the texts of SL_TEXT_MADE pieces returned so far. A JSON report that is not
 * complete is given up, so split texts between reports (sl_text_complete_size). */
void sl_text_part(struct sl_text *text);

/* True if the line that was read last is part of an Apple report in JSON that is not complete yet. */
static inline bool sl_text_is_in_report(const struct sl_text *text)
{
    return text->ips.depth || text->ips.follows_header;
}

/* For a caller that reads a text in parts: returns how many bytes of `text` can be the next part. `text` must have whole lines. Returns its
 * full size or, if it ends within an Apple report in JSON, the size of what is before that report. Linear in the text. */
size_t sl_text_complete_size(struct sl_str text);

/* In longer lines no frames are looked for, except in Apple's reports in JSON. */
enum { SL_TEXT_MAX_LINE = 16 * 1024 };

/* Removes the next line from `*rest`. `*line` includes the line end, which the last line may lack. False at the end of the text. */
bool sl_text_next_line(struct sl_str *rest, struct sl_str *line);

/* Removes the next piece from `*rest`, the rest of one line with its line end (LF or CR LF, absent in the last line). It may first return a
 * piece of kind SL_TEXT_MADE, for which nothing is removed. False when nothing is left. When out of memory, sets `out_of_memory`, and from
 * then on returns lines as text to copy. */
bool sl_text_next(struct sl_text *text, struct sl_str *rest, struct sl_text_piece *piece);

/* True if the reader stores three quarters of the modules or mappings that it can; those beyond its limit are ignored. A caller that
 * streams the logs of many programs should then, before its next part, call sl_text_end() and sl_text_begin(), so that modules of later
 * programs are stored. Not while `in_module_line` is set: the text in `pending` would be lost. */
bool sl_text_is_nearly_full(const struct sl_text *text);

/* Appends the line about a module listed as markup, if the reader still keeps it because further mappings of the module might follow.
 * Call at the end of the text, and before a pause in a stream. */
void sl_text_flush(struct sl_text *text, struct sl_buf *out);

/* Finds the module that contains an address of the process, by the mappings that the text has listed so far. `*value` is the address in
 * the module: if `*of_file` one of the file (p_vaddr), else an offset from its load address. False if no module contains it. */
bool sl_text_find(const struct sl_text *text, uint64_t address, uint32_t *module, uint64_t *value, bool *of_file);

/* Adds a module that the caller knows and the text does not name: it is loaded at `address` (0: unknown) and has `size` bytes (0: it
 * extends to the end of the address space). Its index is module_count before the call. False when out of memory. */
bool sl_text_map_module(struct sl_text *text, uint64_t address, uint64_t size);

/* Sets the module of a frame, and its address there, by the modules and mappings that the text lists: for frames that have only an
 * address of the process or "symbol + offset". The frame stays as it is if none fits. Call it when the whole text, or the part that is
 * to be written, was read, because lists often follow the stacks. */
void sl_text_resolve(const struct sl_text *text, struct sl_text_frame *frame);

/* ---- rewrite.c: native frames with names ---- */

struct sl_text_call {       /* a function at the address of a frame */
    struct sl_str function; /* not empty */
    struct sl_str path;     /* of the source file; empty: unknown */
    uint64_t line, column;  /* 0: unknown; the column is only written by formats whose tools do */
    uint64_t offset; /* distance of the frame's address from the start of the outermost function; valid if has_offset */
    bool has_offset;
};

/* Appends the frame with the `count` calls at its address, innermost first. With count 0 the line is written as it was, but its frame
 * number may be raised, and braces of markup become square brackets. `*shift`, which the function updates, is how many lines inlined calls
 * have added to the stack so far, for formats that number inlined calls; 0 before the first frame of a text. */
void sl_text_write(const struct sl_text_frame *frame, const struct sl_text_call *calls, size_t count, uint64_t *shift,
                   struct sl_buf *out);
