/* What a script says of its source map: comments in its text, and the references in them.
 *
 *     //# sourceMappingURL=app.js.map
 *     //# debugId=2f259f80-58b7-44cb-d7cd-de1505e7e718
 *
 * A reference is a data URL that holds the map, or a path that is joined to the script's own (ECMA-426, section 9.4, and what
 * bundlers write beyond it). Pure functions; texts are UTF-8 and pass byte by byte, nothing is percent-encoded. */
#pragma once

#include "base/buf.h"
#include "id/id.h"

/* The last comment `//# sourceMappingURL=` or `//@ sourceMappingURL=` of a script (ECMA-426, 11.1.2.1), which is none inside of
 * strings, templates, regular expressions and other comments: a view of its value, without query and fragment
 * unless it is a data URL. False, and no text, when there is none. */
bool sl_js_map_comment(struct sl_str script, struct sl_str *reference);

/* The last `//# debugId=` of a script that is one. False when there is none, or its value is no debug id. */
bool sl_js_debug_id_comment(struct sl_str script, struct sl_debug_id *id);

/* Whether a reference holds its content itself. */
bool sl_js_is_data_url(struct sl_str reference);

/* Appends what a data URL holds (WHATWG Fetch, "data: URL processor"; the media type does not matter). False when it is none, or
 * not UTF-8, or memory is out (`out->failed`). */
bool sl_js_data_url(struct sl_str url, struct sl_buf *out);

/* Appends the reference as seen from `base`: as it is when it has a scheme, else joined to the directory of `base`. */
void sl_js_join(struct sl_str base, struct sl_str reference, struct sl_buf *out);
