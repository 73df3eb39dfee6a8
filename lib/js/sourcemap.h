/* Source map reader (ECMA-426; Google's proposal, revision 3; Metro's additions): maps positions of a generated script to
 * positions of its original files.
 *
 *     {"version": 3, "sources": [...], "sourceRoot": "...", "sourcesContent": [...], "names": [...], "mappings": "AAAA;..."}
 *     {"version": 3, "sections": [{"offset": {"line": 0, "column": 0}, "map": {...}}, ...]}
 *
 * sl_sourcemap_read() walks the document once, checks it and records the offsets of its parts: one part for a plain map, one for
 * each map in an index map (nested ones included). Contents are decoded from the text on demand: lists string by string,
 * mappings in batches of tokens. So a map costs only a few words of memory for each part. Everything is pure and linear.
 *
 * A malformed document is SL_MALFORMED. A malformed segment of the mappings is skipped (ECMA-426); malformed `rangeMappings`
 * discard the ranges. Unused members (`version`, `file` ...) may be anything. Lines and columns are 0-based, columns in UTF-16
 * code units. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "id/id.h"

enum sl_sourcemap_list {
    SL_SOURCEMAP_SOURCES, /* names, with the part's sourceRoot in front */
    SL_SOURCEMAP_CONTENTS,
    SL_SOURCEMAP_NAMES,
    SL_SOURCEMAP_LISTS,
};

/* A plain map, or one of the maps in an index map. */
struct sl_sourcemap_part {
    uint32_t line, column;               /* where in the generated script its positions begin */
    uint32_t counts[SL_SOURCEMAP_LISTS]; /* lengths of the lists */
    /* offsets in the text; 0 = absent */
    uint32_t lists[SL_SOURCEMAP_LISTS], root, mappings, ranges, scopes, functions;
    uint32_t first_content; /* index in sl_sourcemap_contents.places of its first content */
    bool has_bad_scopes;    /* `scopes` is not a string */
};

/* Receives the contents of the sources, which are most of a map, while it is read. */
struct sl_sourcemap_contents {
    struct sl_buf *text; /* contents are appended to it */
    /* for each entry of sourcesContent: u32 offset in the appended text, u32 size or SL_SOURCEMAP_NO_CONTENT */
    struct sl_buf places;
};
enum { SL_SOURCEMAP_NO_CONTENT = UINT32_MAX };

struct sl_sourcemap {
    struct sl_str text;
    struct sl_arena *arena;          /* holds strings with escapes */
    struct sl_sourcemap_part *parts; /* in order of their beginnings */
    size_t part_count;
    bool indexed;
    uint32_t ignored;            /* offset of the ignore list; 0 = none */
    struct sl_debug_id debug_id; /* nil if absent */
};

/* Reads the document. `text` must outlive `map`, and so must the arena. Fills `contents` unless it is NULL. SL_MALFORMED; SL_UNSUPPORTED
 * for more than 4 GiB, or too many sources or names; the codes of sl_budget_fail() when out of memory. */
enum sl_code sl_sourcemap_read(struct sl_str text, struct sl_arena *arena, struct sl_sourcemap *map,
                               struct sl_sourcemap_contents *contents, struct sl_error *error);

/* ---- lists ---- */

struct sl_sourcemap_texts { /* private */
    struct sl_json json;
    struct sl_str root;
    bool there;
};

/* Starts reading a list of strings of one map: `sources`, `sourcesContent` or `names`. False when out of memory. */
bool sl_sourcemap_texts(const struct sl_sourcemap *map, const struct sl_sourcemap_part *part,
                        enum sl_sourcemap_list list, struct sl_sourcemap_texts *texts);

/* Appends the next string or number of the list to `out`, a source with the sourceRoot in front; `*null` is true for any other entry. False
 * after the last one. */
bool sl_sourcemap_text(struct sl_sourcemap_texts *texts, struct sl_buf *out, bool *null);

/* Sets `*source` to the index of the next source that the generator marked to be ignored (`ignoreList`, `x_google_ignoreList`). `*at` keeps
 * the place in that list: start with 0. False after the last one. */
bool sl_sourcemap_ignored(const struct sl_sourcemap *map, uint32_t *at, uint64_t *source);

/* ---- tokens ---- */

enum { SL_SOURCEMAP_BATCH = 64 };

struct sl_sourcemap_batch { /* one array per field */
    uint32_t count;
    uint32_t line[SL_SOURCEMAP_BATCH], column[SL_SOURCEMAP_BATCH]; /* in the generated script */
    uint32_t source[SL_SOURCEMAP_BATCH]; /* UINT32_MAX: no source; then source_line and source_column are meaningless */
    uint32_t source_line[SL_SOURCEMAP_BATCH], source_column[SL_SOURCEMAP_BATCH];
    uint32_t name[SL_SOURCEMAP_BATCH]; /* UINT32_MAX: none */
    bool range[SL_SOURCEMAP_BATCH];    /* a range: up to the next token, positions map character by character */
};

struct sl_sourcemap_tokens { /* private */
    const struct sl_sourcemap *map;
    const uint8_t *at, *end, *ranges_at, *ranges_end;
    size_t next_part;
    uint32_t first_source, first_name; /* of the part; sources and names are numbered across all parts */
    uint32_t source_count, name_count, next_source, next_name;
    uint32_t line;
    int64_t column, source, source_line, source_column, name; /* running sums, possibly invalid positions */
    uint32_t line_tokens;                                     /* tokens of the line so far */
    uint32_t range; /* index of the next range token in the line; UINT32_MAX = none */
    bool has_ranges;
    bool has_source;   /* some token has a source */
    bool bad;          /* a segment was malformed */
    uint32_t bad_line; /* approximate position of the first malformed segment */
    int64_t bad_column;
};

/* Starts reading the tokens of a map. */
void sl_sourcemap_tokens(const struct sl_sourcemap *map, struct sl_sourcemap_tokens *tokens);

/* Reads the next tokens in file order, which is not always sorted; `batch->count` is 0 after the last one. Malformed segments are skipped.
 * SL_MALFORMED if a segment was malformed and no token has a source, or if there are too many lines. SL_BUSY when out of memory. */
enum sl_code sl_sourcemap_batch(struct sl_sourcemap_tokens *tokens, struct sl_sourcemap_batch *batch,
                                struct sl_error *error);
