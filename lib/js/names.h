/* Display names of JavaScript frames: functions, files and modules. Pure functions. */
#pragma once

#include "base/buf.h"

/* Returns the path without its host: the part after a leading `~`, or from the first slash after `://` on (everything after
 * `://` if no slash follows), or the whole path. */
struct sl_str sl_js_strip_hostname(struct sl_str path);

/* Returns the URL without the parameters that React Native's packager appends to it after `//&`
 * ("http://host/index.bundle//&platform=ios&dev=true"), which are no part of its path; those after `?` stay. A view of `url`. */
struct sl_str sl_js_without_parameters(struct sl_str url);

/* Returns the part that the script, map and source of one path share: the path without host, query, fragment and the file
 * suffixes of those three. A path without a slash only loses its host. A view of `path`. */
struct sl_str sl_js_stem(struct sl_str path);

/* Returns the module name of a file: its path without host, query, extension, hashes, and leading folders like `static`, `build`,
 * `node_modules` or `v1.0`, which say nothing about the module. A view of `path`, possibly empty. */
struct sl_str sl_js_module(struct sl_str path);

/* Display name of a source. Views of the arguments of sl_js_file(). */
struct sl_js_file {
    struct sl_str name;
    struct sl_str module; /* data NULL = none */
};

/* Returns name and module of a file as clients show them: those of bundlers' URLs (webpack:, turbopack:) are made readable. `source`: the
 * name in the source map, not empty. `abs_path`: that name joined to the URL of its map. `module`: the frame's module as received, data
 * NULL = none; it is kept if no other is found. */
struct sl_js_file sl_js_file(struct sl_str source, struct sl_str abs_path, struct sl_str module);

/* What the source map tells about the function that contains a position. */
enum sl_js_function_kind {
    SL_JS_FUNCTION_UNKNOWN, /* outside of all functions, or no information */
    SL_JS_FUNCTION_ANONYMOUS,
    SL_JS_FUNCTION_NAMED,
};

struct sl_js_function_hints {
    enum sl_js_function_kind kind;
    struct sl_str scope;    /* name of the scope, for SL_JS_FUNCTION_NAMED */
    struct sl_str token;    /* name of the token at the position; empty = none */
    struct sl_str caller;   /* name of the token in the calling frame; empty = none */
    struct sl_str function; /* the frame's name as received; data NULL = none */
};

/* Appends the function name of a frame: normally the scope's. `<anonymous>` and webpack's wrappers are replaced by the token at the call in
 * the calling frame, else by the name received. Consecutive equal parts of the name are counted: `a.b.b.f` becomes `a.{b#2}.f`. */
void sl_js_function_name(const struct sl_js_function_hints *clues, struct sl_buf *out);
