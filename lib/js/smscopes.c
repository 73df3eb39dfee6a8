/* Functions of the script, found by parsing it, with names from the source map. A "walk" visits their scopes in order of position. */
#include "js/smwrite.h"

/* ---- the scope around a token ---- */

/* Returns the position of an offset in the script as a key: line << 32 | column. */
static uint64_t position_key(const struct script_scopes *s, uint32_t offset)
{
    struct sl_js_position position = sl_js_line_index_find(&s->places, offset);
    return (uint64_t)position.line << 32 | position.column;
}

/* Sets walk->boundary: the position where the next scope begins or the current one ends, whichever is first; UINT64_MAX after the last. */
static void set_boundary(const struct script_scopes *s, struct scope_walk *walk)
{
    const struct sl_js_scope *items = s->scopes.items;
    uint32_t begin = walk->next < s->scopes.count ? items[walk->next].start : UINT32_MAX;
    uint32_t end = walk->current != SL_JS_NONE ? items[walk->current].end : UINT32_MAX;
    bool last = begin == UINT32_MAX && end == UINT32_MAX;
    walk->boundary = last ? UINT64_MAX : position_key(s, begin < end ? begin : end);
}

/* Moves the walk past its boundary: out of the current scope, or into the next one. If one ends where the other begins, out comes first. */
static void cross_boundary(const struct script_scopes *s, struct scope_walk *walk)
{
    const struct sl_js_scope *items = s->scopes.items;
    bool ends = walk->current != SL_JS_NONE &&
                (walk->next == s->scopes.count || items[walk->current].end <= items[walk->next].start);
    walk->current = ends ? items[walk->current].outer : walk->next++;
    set_boundary(s, walk);
}

/* Makes walk->current the innermost scope at the position `key` (line << 32 | column). The keys of successive calls ascend. */
static void walk_to(const struct script_scopes *s, struct scope_walk *walk, uint64_t key)
{
    while (walk->boundary <= key && walk->boundary != UINT64_MAX)
        cross_boundary(s, walk);
}

/* Restarts both walks at the begin of the script. One finds the scope of each token; the other finds where range tokens are split. */
void smcache_rewind_scopes(struct smcache_writer *w)
{
    struct script_scopes *s = &w->script_scopes;
    s->tokens = (struct scope_walk){.current = SL_JS_NONE, .next = 0, .boundary = UINT64_MAX};
    if (s->there)
        set_boundary(s, &s->tokens);
    s->ranges = s->tokens;
}

void smcache_walk_scopes(struct smcache_writer *w, const struct sl_sourcemap_batch *b, uint32_t *scopes)
{
    struct script_scopes *s = &w->script_scopes;
    for (uint32_t i = 0; i < b->count; i++) {
        walk_to(s, &s->tokens, (uint64_t)b->line[i] << 32 | b->column[i]);
        scopes[i] = s->tokens.current == SL_JS_NONE ? 0 : s->tokens.current + 1;
    }
}

uint64_t smcache_next_boundary(struct smcache_writer *w, uint64_t key)
{
    struct script_scopes *s = &w->script_scopes;
    walk_to(s, &s->ranges, key);
    return s->ranges.boundary;
}

enum sl_code smcache_read_scopes(struct smcache_writer *w, struct sl_error *error)
{
    struct script_scopes *s = &w->script_scopes;
    struct sl_error scopes_error;
    enum sl_code code = SL_OK;
    if (w->script.size >= UINT32_MAX)
        return sl_fail(error, SL_MALFORMED, "the script is 4 GiB or larger, which is more than can be read");
    if (w->script.size && sl_str_is_utf8(w->script)) /* a script that is not UTF-8 counts as one without functions */
        code = sl_js_scopes_read(&s->scopes, w->script, w->options->partial_scopes, w->budget, &scopes_error);
    /* a syntax error is no failure: the map is of use without functions of the script */
    if (code != SL_OK && (code != SL_MALFORMED || sl_budget_exhausted(w->budget)))
        return sl_fail(error, code, "%s", scopes_error.message);
    s->there = code == SL_OK && s->scopes.count > 0;
    if (s->there && !sl_js_line_index_build(&s->places, w->script, w->budget))
        return smcache_writer_fail(w, error);
    smcache_rewind_scopes(w);
    return SL_OK;
}

void smcache_free_scopes(struct smcache_writer *w)
{
    sl_js_line_index_free(&w->script_scopes.places);
    sl_js_scopes_free(&w->script_scopes.scopes);
}

/* ---- names ---- */

struct js_scope_naming {
    struct smcache_writer *w;
    struct sl_smcache cache; /* the part of the table that is already written */
};

/* Opens the sections of the table that are written already, to look up tokens in them. Must be called again after more was written, as the
 * buffer of the file may have moved. */
static void open_written(const struct smcache_writer *w, struct sl_smcache *c)
{
    const struct sl_table_writer *t = &w->table;
    *c = (struct sl_smcache){.token_count = w->token_count,
                             .source_count = (uint32_t)w->source_count,
                             .name_count = w->name_count,
                             .block_count = w->block_count,
                             .ranges = w->ranges};
    /* the last section has no size yet: it extends to the end of the file */
    for (uint32_t i = 0; i < t->section_count; i++) {
        size_t begin = t->sections[i].offset,
               end = i + 1 < t->section_count ? begin + t->sections[i].size : t->file.size;
        c->table.sections[t->sections[i].id] = (struct sl_bytes){t->file.data + begin, end - begin};
    }
    sl_table_units(c->table.sections[SECTION_NAME_OFFSETS], c->table.sections[SECTION_NAMES], w->name_count, &c->names);
}

static bool same_original_position(const struct smcache_token *a, const struct smcache_token *b)
{
    return a->source == b->source && a->source_line == b->source_line && a->source_column == b->source_column;
}

/* Returns the map's name for the identifier `text` at offset `at` of the script; `text` itself if the map has none. Some generators place
 * the token one column before the identifier; some put the name on a token before that one, with the same source position. */
static struct sl_str original_name(void *arg, uint32_t at, struct sl_str text)
{
    const struct js_scope_naming *n = arg;
    struct sl_js_position position = sl_js_line_index_find(&n->w->script_scopes.places, at);
    struct smcache_token t, before;
    if (!smcache_find(&n->cache, position.line, position.column, &t) || (uint64_t)t.column + 1 < position.column)
        return text;
    if (t.name.size)
        return t.name;
    if (t.column > 0 && smcache_find(&n->cache, t.line, t.column - 1, &before) && same_original_position(&t, &before) &&
        before.name.size)
        return before.name;
    return text;
}

/* Returns the name of the token that begins at the last byte of a scope, which is its closing bracket: Dart's compiler puts the names of
 * functions there. Empty if no named token begins there, or if the token also covers the next byte. */
static struct sl_str closing_name(const struct js_scope_naming *n, const struct sl_js_scope *scope)
{
    const struct sl_js_line_index *places = &n->w->script_scopes.places;
    struct sl_js_position last = sl_js_line_index_find(places, scope->end - 1),
                          behind = sl_js_line_index_find(places, scope->end);
    struct smcache_token t, next;
    if (!smcache_find(&n->cache, last.line, last.column, &t) || t.column != last.column || !t.name.size)
        return (struct sl_str){NULL, 0};
    bool same =
        smcache_find(&n->cache, behind.line, behind.column, &next) && next.line == t.line && next.column == t.column;
    return same ? (struct sl_str){NULL, 0} : t.name;
}

/* Appends the name of a scope to w->functions, translated by the source map. If the map translates no part of it, the name that the map has
 * at the scope's closing bracket is appended instead, if there is one. `minified` is scratch. False when out of memory or budget. */
static bool put_name(struct js_scope_naming *n, uint32_t scope, struct sl_buf *minified)
{
    struct smcache_writer *w = n->w;
    const struct sl_js_scopes *scopes = &w->script_scopes.scopes;
    struct sl_js_naming mapped = {.original = original_name, .arg = n, .compat = w->options->compat_names},
                        as_it_is = {.compat = w->options->compat_names};
    size_t begin = w->functions.size;
    if (!sl_js_scope_name(scopes, scope, &mapped, &w->account, &w->functions))
        return false;
    struct sl_str closing = closing_name(n, &scopes->items[scope]);
    if (!closing.size)
        return true;
    sl_buf_clear(minified);
    if (!sl_js_scope_name(scopes, scope, &as_it_is, &w->account, minified) || w->functions.failed)
        return false;
    struct sl_str name = {(const char *)w->functions.data + begin, w->functions.size - begin};
    if (sl_str_equal(name, sl_buf_view(minified))) { /* the map translates nothing */
        w->functions.size = begin;
        sl_buf_str(&w->functions, closing);
    }
    return !minified->failed;
}

enum sl_code smcache_name_scopes(struct smcache_writer *w, struct sl_error *error)
{
    struct js_scope_naming n = {.w = w};
    struct sl_buf minified = {.budget = w->budget};
    bool good = true;
    if (!w->script_scopes.there)
        return SL_OK;
    open_written(w, &n.cache);
    for (uint32_t i = 0; good && i < w->script_scopes.scopes.count; i++) {
        size_t begin = w->functions.size;
        good = put_name(&n, i, &minified) && !w->functions.failed && !w->scopes.failed;
        bool anonymous = w->functions.size == begin;
        if (!anonymous)
            smcache_end_function(w);
        sl_buf_u32(&w->scopes, anonymous ? 0 : w->function_count); /* 1 + the number of the name just added */
    }
    sl_buf_free(&minified);
    return good ? SL_OK : smcache_writer_fail(w, error);
}
