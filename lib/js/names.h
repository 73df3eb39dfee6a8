/* What frames of scripts are called: functions, files and modules. Pure functions. */
#pragma once

#include "base/buf.h"

/* The path without its host: what is behind a leading `~`, or from the first slash behind `://` on (all behind it when there
 * is none), or all. */
struct sl_str sl_js_strip_hostname(struct sl_str path);

/* What scripts, maps and sources of one path have in common: the path without host, query, fragment and the suffixes of such
 * files. A view of `path`. */
struct sl_str sl_js_stem(struct sl_str path);

/* The module of a file: its path without host, query, extension, hashes, and the folders in front that all builds have. A view of
 * `path`, which may be empty. */
struct sl_str sl_js_module(struct sl_str path);

/* How a frame shows a source. Views of what was given. */
struct sl_js_file {
    struct sl_str name;
    struct sl_str module; /* data NULL: none */
};

/* `source`: its name in the source map, not empty; `abs_path`: what that is joined to its map's; `module`: what the frame had, data
 * NULL = none. */
struct sl_js_file sl_js_file(struct sl_str source, struct sl_str abs_path, struct sl_str module);

/* What is known of the function around a place. */
enum sl_js_function_kind {
    SL_JS_FUNCTION_UNKNOWN, /* outside of all functions, or nothing is known */
    SL_JS_FUNCTION_ANONYMOUS,
    SL_JS_FUNCTION_NAMED,
};

struct sl_js_function_clues {
    enum sl_js_function_kind kind;
    struct sl_str scope;    /* SL_JS_FUNCTION_NAMED */
    struct sl_str token;    /* the name of the token there; empty = none */
    struct sl_str caller;   /* the name of the token in the frame that called this one; empty = none */
    struct sl_str function; /* what the frame had; data NULL = nothing */
};

/* Appends the function name of a frame. Repeated parts in a row are counted: `a.b.b.f` is `a.{b#2}.f`. */
void sl_js_function_name(const struct sl_js_function_clues *clues, struct sl_buf *out);
