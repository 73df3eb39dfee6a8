/* Reading source maps (ECMA-426; Google's proposal, revision 3; Metro's additions): which place of an original file each place of
 * a generated script comes from.
 *
 *     {"version": 3, "sources": [...], "sourceRoot": "...", "sourcesContent": [...], "names": [...], "mappings": "AAAA;..."}
 *     {"version": 3, "sections": [{"offset": {"line": 0, "column": 0}, "map": {...}}, ...]}
 *
 * sl_sourcemap_read() walks the document once, checks it and notes where the parts are that it is made of: one, or of an index map
 * (with others within) every map in it. What is in them is read from the text where it is wanted: lists of texts one by one, the
 * mappings in batches of tokens. So a map costs no more memory than a few words for each of its parts. All is pure and linear.
 *
 * A document that is not as it should be is SL_MALFORMED; segments of its mappings that have an error cost themselves (ECMA-426), and
 * malformed `rangeMappings` the ranges. What is not used (`version`, `file` ...) may be anything. Lines and columns are 0-based, columns
 * in UTF-16 code units. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "id/id.h"

enum sl_sourcemap_list {
    SL_SOURCEMAP_SOURCES, /* names, behind the part's root */
    SL_SOURCEMAP_CONTENTS,
    SL_SOURCEMAP_NAMES,
    SL_SOURCEMAP_LISTS,
};

struct sl_sourcemap_part {
    uint32_t line, column;               /* where it begins in the generated script */
    uint32_t counts[SL_SOURCEMAP_LISTS]; /* entries of the lists */
    /* Offsets in the text; 0 = not there. */
    uint32_t lists[SL_SOURCEMAP_LISTS], root, mappings, ranges, scopes, functions;
    uint32_t first_content; /* the row of its first content, where they are collected */
    bool has_bad_scopes;    /* `scopes` is no text */
};

/* Contents of the sources, which are most of a map, as they come by: so they are looked at but once. */
struct sl_sourcemap_contents {
    struct sl_buf *text; /* appended to */
    struct sl_buf
        places; /* for each entry of the lists, u32 where it begins in what was appended, u32 its size; size NONE: null */
};
enum { SL_SOURCEMAP_NO_CONTENT = UINT32_MAX };

struct sl_sourcemap {
    struct sl_str text;
    struct sl_arena *arena;          /* for texts with escapes */
    struct sl_sourcemap_part *parts; /* in the order of where they begin */
    size_t part_count;
    bool indexed;
    uint32_t ignored;            /* offset of the list of ignored sources; 0 = none */
    struct sl_debug_id debug_id; /* nil without one */
};

/* `text` is kept, and lives as long as the arena does. `contents` is filled, unless NULL. SL_MALFORMED, or SL_BUSY. */
enum sl_code sl_sourcemap_read(struct sl_str text, struct sl_arena *arena, struct sl_sourcemap *map,
                               struct sl_sourcemap_contents *contents, struct sl_error *error);

/* ---- lists ---- */

struct sl_sourcemap_texts { /* private */
    struct sl_json json;
    struct sl_str root;
    bool there;
};

/* The texts of a list of one part. False when out of memory. */
bool sl_sourcemap_texts(const struct sl_sourcemap *map, const struct sl_sourcemap_part *part,
                        enum sl_sourcemap_list list, struct sl_sourcemap_texts *texts);

/* Appends the next text to `out`; `*null` when the list has none there. False behind the last one. */
bool sl_sourcemap_text(struct sl_sourcemap_texts *texts, struct sl_buf *out, bool *null);

/* The next source that the generator marked as of no interest (`ignoreList`, `x_google_ignoreList`), by its place among those of
 * the first part. Begins with `*at` 0; false behind the last one. */
bool sl_sourcemap_ignored(const struct sl_sourcemap *map, uint32_t *at, uint64_t *source);

/* ---- tokens ---- */

enum { SL_SOURCEMAP_BATCH = 64 };

struct sl_sourcemap_batch { /* column by column */
    uint32_t count;
    uint32_t line[SL_SOURCEMAP_BATCH], column[SL_SOURCEMAP_BATCH]; /* in the generated script */
    uint32_t source[SL_SOURCEMAP_BATCH]; /* UINT32_MAX: of no source; the line and column mean nothing */
    uint32_t source_line[SL_SOURCEMAP_BATCH], source_column[SL_SOURCEMAP_BATCH];
    uint32_t name[SL_SOURCEMAP_BATCH]; /* UINT32_MAX: none */
    bool range[SL_SOURCEMAP_BATCH]; /* what follows goes on line by line and column by column, up to the next token */
};

struct sl_sourcemap_tokens { /* private */
    const struct sl_sourcemap *map;
    const uint8_t *at, *end, *ranges_at, *ranges_end;
    size_t next_part;
    uint32_t first_source, first_name; /* of the part; those of all parts are numbered through */
    uint32_t source_count, name_count, next_source, next_name;
    uint32_t line;
    int64_t column, source, source_line, source_column, name; /* sums, which may be no positions */
    uint32_t line_tokens;                                     /* of the line so far */
    uint32_t range; /* the number of the next of them that is a range; UINT32_MAX = none */
    bool has_ranges;
    bool has_source;   /* some token has one */
    bool bad;          /* a segment had an error */
    uint32_t bad_line; /* where the first of these is, about */
    int64_t bad_column;
};

void sl_sourcemap_tokens(const struct sl_sourcemap *map, struct sl_sourcemap_tokens *tokens);

/* The next tokens, as they are written: not always in order. None behind the last one. Segments with an error cost themselves;
 * SL_MALFORMED when no token has a source, and there were some. Or SL_BUSY. */
enum sl_code sl_sourcemap_batch(struct sl_sourcemap_tokens *tokens, struct sl_sourcemap_batch *batch,
                                struct sl_error *error);
