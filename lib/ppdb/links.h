/* Source Link rules: which URL the text of a source file has, by its path.
 *
 * A rule is a pattern and a URL. A pattern that ends in `*` is a prefix, any other is exact; both are compared without
 * case, code point by code point. Exact rules come before prefixes, longer prefixes before shorter ones. What a prefix
 * leaves of the path replaces every `*` of the URL, `\` as `/`, percent-encoded. A rule is a claim: generated files match
 * too, and their URLs do not exist. Format: "Source Link" of the Portable PDB Format Specification v1.0, and the Source
 * Link JSON schema.
 *
 * Rules are used in the form in which they are stored, without parsing:
 *
 *     u32 number of exact rules, u32 number of prefixes, u32 size of the text
 *     a rule: u32 offset and u32 size of the lower-cased pattern in the text, u32 offset and u32 size of the URL, u32
 *             number of the longest prefix that this one begins with, + 1
 *     text
 *
 * Little-endian; exact rules, then prefixes, each in byte order of their patterns. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

#define SL_PPDB_MAX_LINKS 100000u

struct sl_ppdb_link {
    struct sl_str pattern, url;
};

struct sl_ppdb_links {
    struct sl_bytes rules, text;
    uint32_t exact_count, prefix_count;
};

/* Appends the rules to `out`. Of patterns that differ only by case, the greatest in byte order counts. SL_MALFORMED when
 * there are more than SL_PPDB_MAX_LINKS. No rules: nothing is appended. Memory is that of the budget of `out`. */
enum sl_code sl_ppdb_links_build(const struct sl_ppdb_link *rules, size_t count, struct sl_buf *out,
                                 struct sl_error *error);

/* The rules of `{"documents": {"<pattern>": "<url>", ...}}`, into the arena; other members are ignored. Byte order
 * marks, comments and trailing commas are accepted. SL_MALFORMED `invalid source link JSON`. */
enum sl_code sl_ppdb_links_parse(struct sl_str json, struct sl_arena *arena, struct sl_ppdb_link **rules, size_t *count,
                                 struct sl_error *error);

/* Stored rules for use; `links` points into `bytes`. False (and no rules) when they are damaged. No bytes, no rules. */
bool sl_ppdb_links_open(struct sl_bytes bytes, struct sl_ppdb_links *links);

/* Appends the URL of `path` to `url` (may be NULL). False when no rule matches, or the URL would exceed 64 KiB. */
bool sl_ppdb_links_resolve(const struct sl_ppdb_links *links, struct sl_str path, struct sl_buf *url);
