/* Source links: rules that say at which URL the source of a build path is (Source Link file format: {"documents":
 * {"<pattern>": "<URL>"}}; the manifest of a source bundle has the same under "source_links").
 *
 * A pattern is a whole path or, with a star at its end, the beginning of one; compared without case. The star of the URL
 * stands for the rest of the path, whose separators become slashes and whose other characters are percent-encoded
 * (RFC 3986, 3.3). A rule is a claim and not a fact: what it leads to need not exist. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "source/json.h"

enum { SL_LINKS_MAX_RULES = 100000 };

struct sl_links {
    struct sl_link_rule *rules; /* in the order they are tried */
    size_t count;
};

/* Reads {"documents": {...}} into the arena; `json` must outlive the links. A byte order mark, comments and trailing commas
 * are accepted. SL_MALFORMED "invalid source link JSON: ...". */
enum sl_code sl_links_parse(struct sl_str json, struct sl_arena *arena, struct sl_links *links, struct sl_error *error);

/* Reads the object of rules that `json` stands at; values that are no text are ignored. `normalise`: backslashes of the
 * patterns become slashes. Failures are those of the reader. */
void sl_links_read(struct sl_json *json, struct sl_arena *arena, bool normalise, struct sl_links *links);

/* Appends the URL of `path`; false when no rule matches (or memory is out: `url->failed`). */
bool sl_links_resolve(const struct sl_links *links, struct sl_str path, struct sl_buf *url);
