/* Source Link rules: map the path of a source file to the URL of its text.
 *
 * A rule is a pattern and a URL. A pattern that ends in `*` is a prefix, any other is exact; both are compared ignoring case, code
 * point by code point. Exact rules take precedence over prefixes, longer prefixes over shorter ones. The part of the path after the
 * prefix replaces every `*` of the URL, with `\` as `/`, percent-encoded. A rule may be wrong: generated files match, too, but their
 * URLs do not exist. Format: "Source Link" of the Portable PDB Format Specification v1.0, and the Source Link JSON schema.
 *
 * Stored rules are used in place, without parsing:
 *
 *     u32 number of exact rules, u32 number of prefixes, u32 size of the text
 *     per rule: u32 offset and u32 size of the lower-cased pattern in the text, u32 offset and u32 size of the URL, u32
 *               longest other prefix that this one begins with: its index among the prefixes, + 1 (0 = none)
 *     text
 *
 * Little-endian; exact rules, then prefixes, each in byte order of their patterns. The rule `C:\src\*` -> `https://x/raw:*`:
 *
 *     00000000 01000000 16000000                     0 exact rules, 1 prefix, 22 bytes of text
 *     00000000 07000000 07000000 0F000000 00000000   pattern at 0, 7 bytes; URL at 7, 15 bytes; no shorter prefix
 *     "c:\src\" "https://x/raw:*"
 *
 * It maps `C:\src\a b.cs` to `https://x/raw:a%20b.cs`. */
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

/* Appends the rules in their stored form to `out`; nothing if there are none. Of rules whose patterns differ only by case, the one whose
 * pattern is the greatest in byte order is kept; of equal patterns, the last. SL_MALFORMED for more than SL_PPDB_MAX_LINKS rules. Memory
 * is charged to the budget of `out`; SL_BUSY if it runs out. */
enum sl_code sl_ppdb_links_build(const struct sl_ppdb_link *rules, size_t count, struct sl_buf *out,
                                 struct sl_error *error);

/* Parses `{"documents": {"<pattern>": "<url>", ...}}` into the arena; other members are ignored. Byte order marks, comments
 * and trailing commas are accepted. SL_MALFORMED if it is no such JSON; SL_BUSY when out of memory. */
enum sl_code sl_ppdb_links_parse(struct sl_str json, struct sl_arena *arena, struct sl_ppdb_link **rules, size_t *count,
                                 struct sl_error *error);

/* Opens stored rules; `links` points into `bytes`. False, without rules, if they are damaged. Empty bytes are no rules. */
bool sl_ppdb_links_open(struct sl_bytes bytes, struct sl_ppdb_links *links);

/* Appends the URL of `path` to `url`; NULL only checks whether a rule matches. False when no rule matches, when the URL would exceed
 * 64 KiB, or when out of memory. */
bool sl_ppdb_links_resolve(const struct sl_ppdb_links *links, struct sl_str path, struct sl_buf *url);
