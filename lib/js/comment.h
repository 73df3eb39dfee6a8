/* Finds the source map of a script: comments in its text, and the references in them.
 *
 *     //# sourceMappingURL=app.js.map
 *     //# debugId=2f259f80-58b7-44cb-d7cd-de1505e7e718
 *
 * A reference is a data URL that contains the map, or a path that is joined to the script's own path (ECMA-426, section 9.4, and
 * the additional forms that bundlers write). Pure functions; text is UTF-8, is copied byte by byte and is never percent-encoded. */
#pragma once

#include "base/buf.h"
#include "id/id.h"

/* Finds the last comment `//# sourceMappingURL=` or `//@ sourceMappingURL=` of a script (ECMA-426, 11.1.2.1). Such text inside
 * strings, templates, regular expressions and other comments does not count. `*reference` is a view of the value, without query
 * and fragment unless it is a data URL. Without such a comment: false, and an empty text. */
bool sl_js_map_comment(struct sl_str script, struct sl_str *reference);

/* Finds the last comment `//# debugId=` of a script. False when there is none, or when its value is not a debug id. */
bool sl_js_debug_id_comment(struct sl_str script, struct sl_debug_id *id);

/* True for bytecode of Hermes, which stands in the place of a script's text and names no map. */
bool sl_js_is_bytecode(struct sl_str script);

/* True for a data URL, which contains the map itself. */
bool sl_js_is_data_url(struct sl_str reference);

/* Appends the decoded body of a data URL (WHATWG Fetch, "data: URL processor"; the media type is ignored). False when it is
 * malformed or not UTF-8, or when memory is exhausted (`out->failed`). */
bool sl_js_data_url(struct sl_str url, struct sl_buf *out);

/* Appends the reference resolved against `base`: unchanged if it has a scheme, else joined to the directory of `base`. */
void sl_js_join(struct sl_str base, struct sl_str reference, struct sl_buf *out);
