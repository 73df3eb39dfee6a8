/* `symloom inspect` for source maps: debug id, totals, sources. */
#include "cli/inspect/inspect.h"

#include "js/smcache.h"
#include "js/sourcemap.h"

struct sourcemap_summary {
    struct sl_sourcemap map;
    struct sl_error problem; /* code SL_OK: no problem */
    /* totals: sources; sources whose text the map contains; names; mappings; lines of the script that have mappings */
    uint64_t sources, contents, names, tokens, lines;
    uint64_t ignored;    /* sources in the ignore list */
    bool *ignores;       /* per source: it is in the ignore list; NULL without such a list */
    bool functions;      /* has Metro's function maps */
    bool scopes;         /* has the `scopes` proposed for ECMA-426 */
    uint32_t bad_scopes; /* the first malformed item of `scopes`, counted from 1; 0: none */
};

/* True if the text looks like a source map: a JSON object with "mappings" or "sections". */
static bool is_sourcemap(struct sl_str text)
{
    struct sl_str guard;
    /* servers put a line such as )]}' before the JSON, so that the file cannot be run as a script */
    if (text.size && memchr(")]}'", text.data[0], 4))
        sl_str_next_line(&text, &guard);
    if (sl_str_starts(text, SL_STR("\xEF\xBB\xBF")))
        text = (struct sl_str){text.data + 3, text.size - 3};
    text = sl_str_trimmed(text);
    return sl_str_starts(text, SL_STR("{")) &&
           (memmem(text.data, text.size, "\"mappings\"", 10) || memmem(text.data, text.size, "\"sections\"", 10));
}

/* ---- reading ---- */

/* Counts the mappings, and the lines of the script that have some. Stops at the first damaged mapping, and sets s->problem. */
static void count_tokens(struct sourcemap_summary *s)
{
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    uint32_t line = 0;
    sl_sourcemap_tokens(&s->map, &tokens);
    while (sl_sourcemap_batch(&tokens, &batch, &s->problem) == SL_OK && batch.count)
        for (uint32_t i = 0; i < batch.count; i++) {
            /* 1 for the first mapping and for each with another line than the one before: mappings are sorted by line */
            s->lines += !s->tokens++ || batch.line[i] != line;
            line = batch.line[i];
        }
}

/* Returns how many texts of a list of the source map, such as `sourcesContent`, are not null. */
static uint64_t count_texts(const struct sourcemap_summary *s, const struct sl_sourcemap_part *part,
                            enum sl_sourcemap_list list)
{
    struct sl_sourcemap_texts texts;
    struct sl_buf scratch = {0};
    uint64_t count = 0;
    bool null, good = sl_sourcemap_texts(&s->map, part, list, &texts);
    while (good && sl_sourcemap_text(&texts, &scratch, &null)) {
        count += !null;
        sl_buf_clear(&scratch);
    }
    sl_buf_free(&scratch);
    return count;
}

/* Sets s->ignores and s->ignored by the map's ignore list (`ignoreList`), each source once; numbers without a source are skipped. */
static void mark_ignored(struct sourcemap_summary *s, struct sl_arena *arena)
{
    uint64_t source;
    s->ignores = s->map.ignored ? SL_ARENA_ARRAY(arena, bool, s->sources + 1) : NULL;
    for (uint32_t at = 0; s->ignores && sl_sourcemap_ignored(&s->map, &at, &source);) {
        if (source >= s->sources)
            continue;
        s->ignored += !s->ignores[source];
        s->ignores[source] = true;
    }
}

/* Finds out whether `scopes` is malformed by converting the map to a look-up table, as for symbolication: sets s->bad_scopes, but
 * not if the map cannot be converted for another reason. */
static void check_scopes(struct sourcemap_summary *s, struct sl_str text)
{
    const struct sl_smcache_options options = {0};
    struct sl_budget budget;
    struct sl_buf table = {0};
    struct sl_smcache cache;
    struct sl_error ignored;
    sl_budget_init(&budget, text.size);
    /* "": there is no script */
    if (sl_smcache_write(SL_STR(""), text, &options, &budget, &table, &ignored) == SL_OK &&
        sl_smcache_open(sl_buf_bytes(&table), &cache, &ignored) == SL_OK)
        s->bad_scopes = cache.bad_scopes;
    sl_buf_free(&table);
}

/* Fills the summary. False if the text is JSON that is not a source map: it has neither mappings nor sections. A text that cannot be read
 * counts as a damaged source map: s->problem is set. */
static bool summarise(struct sl_str text, struct sl_arena *arena, struct sourcemap_summary *s)
{
    bool mapped = false;
    *s = (struct sourcemap_summary){.problem.code = SL_OK};
    if (sl_sourcemap_read(text, arena, &s->map, NULL, &s->problem) != SL_OK)
        return true;
    for (size_t i = 0; i < s->map.part_count; i++) {
        const struct sl_sourcemap_part *part = &s->map.parts[i];
        s->sources += part->counts[SL_SOURCEMAP_SOURCES];
        s->names += part->counts[SL_SOURCEMAP_NAMES];
        s->contents += count_texts(s, part, SL_SOURCEMAP_CONTENTS);
        s->functions |= part->functions && !s->map.indexed; /* in a map with sections they are not used */
        mapped |= part->mappings != 0;
        s->scopes |= part->scopes || part->has_bad_scopes;
    }
    mark_ignored(s, arena);
    count_tokens(s);
    if (s->scopes)
        check_scopes(s, text);
    return mapped || s->map.indexed;
}

/* ---- sources ---- */

/* Lists the sources of one section of the map, as JSON (`w`) or, if that is NULL, as text (`out`): whether the map contains the source's
 * text ("embedded"), and whether it is in the ignore list. `first`: index of the section's first source in the whole map. */
static void list_part(const struct sourcemap_summary *s, const struct sl_sourcemap_part *part, uint64_t first,
                      struct sl_json_writer *w, struct sl_buf *out)
{
    struct sl_sourcemap_texts sources, contents;
    struct sl_buf name = {0}, content = {0};
    bool null, none; /* null: the source has no path, an empty one is shown; none: the map lacks its text */
    if (!sl_sourcemap_texts(&s->map, part, SL_SOURCEMAP_SOURCES, &sources) ||
        !sl_sourcemap_texts(&s->map, part, SL_SOURCEMAP_CONTENTS, &contents))
        return;
    for (uint64_t i = first; sl_sourcemap_text(&sources, &name, &null); i++) {
        bool here = sl_sourcemap_text(&contents, &content, &none) && !none;
        bool ignored = s->ignores && s->ignores[i];
        if (w) {
            sl_json_begin_object(w);
            sl_json_member_str(w, "path", sl_buf_view(&name));
            sl_json_member_boolean(w, "embedded", here);
            sl_json_member_boolean(w, "ignored", ignored);
            sl_json_end_object(w);
        } else {
            sl_buf_printf(out, "  %-8s  %s", here ? "embedded" : "missing", ignored ? "(ignored) " : "");
            output_put_safe(out, sl_buf_view(&name));
            sl_buf_u8(out, '\n');
        }
        sl_buf_clear(&name);
        sl_buf_clear(&content);
    }
    sl_buf_free(&name);
    sl_buf_free(&content);
}

/* Lists the sources of all sections of the map, as JSON (`w`) or, if that is NULL, as text (`out`). */
static void list_all(const struct sourcemap_summary *s, struct sl_json_writer *w, struct sl_buf *out)
{
    uint64_t first = 0;
    for (size_t i = 0; i < s->map.part_count; i++) {
        list_part(s, &s->map.parts[i], first, w, out);
        first += s->map.parts[i].counts[SL_SOURCEMAP_SOURCES];
    }
}

/* ---- showing ---- */

/* Writes what a source map contains as a JSON object. */
static void sourcemap_json(const char *path, size_t size, const char *id, const struct sourcemap_summary *s, bool list,
                           struct sl_json_writer *w)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {{"sections", s->map.indexed ? s->map.part_count : 0},
                  {"sources", s->sources},
                  {"embedded", s->contents},
                  {"ignored", s->ignored},
                  {"names", s->names},
                  {"mappings", s->tokens},
                  {"lines", s->lines}};
    sl_json_begin_object(w);
    sl_json_member_or_null(w, "path", sl_str(path));
    sl_json_member_u64(w, "size", size);
    sl_json_member_or_null(w, "type", sl_str("sourcemap"));
    sl_json_member_or_null(w, "debug_id", sl_str(id));
    sl_json_member_object(w, "counts");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        sl_json_member_u64(w, counts[i].name, counts[i].count);
    sl_json_end_object(w);
    sl_json_member_boolean(w, "has_functions", s->functions);
    sl_json_member_boolean(w, "has_scopes", s->scopes && !s->bad_scopes);
    sl_json_put_key(w, "malformed_scopes_item");
    if (s->bad_scopes)
        sl_json_put_u64(w, s->bad_scopes);
    else
        sl_json_put_null(w);
    sl_json_member_boolean(w, "is_usable", s->problem.code == SL_OK);
    sl_json_member_or_null(w, "problem", sl_str(s->problem.code == SL_OK ? NULL : s->problem.message));
    if (list) {
        sl_json_member_array(w, "sources");
        list_all(s, w, NULL);
        sl_json_end_array(w);
    }
    sl_json_end_object(w);
}

static void put_count(struct sl_buf *out, uint64_t count, const char *what)
{
    sl_buf_printf(out, "%llu %s%s", (unsigned long long)count, what, count == 1 ? "" : "s");
}

/* Appends what a source map contains as text: format, debug id, totals, whether it is usable. With `list`, its sources follow. */
static void sourcemap_print(const char *path, size_t size, const char *id, const struct sourcemap_summary *s, bool list,
                            struct sl_buf *out)
{
    inspect_put_head(out, path, "sourcemap", size);
    if (s->map.indexed) {
        sl_buf_cstr(out, ", ");
        put_count(out, s->map.part_count, "section");
    }
    if (s->functions)
        sl_buf_cstr(out, ", with function maps");
    if (s->scopes && !s->bad_scopes)
        sl_buf_cstr(out, ", with scopes");
    else if (s->scopes)
        sl_buf_printf(out, ", with malformed scopes (item %u)", s->bad_scopes);
    sl_buf_printf(out, "\n  Debug ID     %s\n  Counts       ", id ? id : "none");
    put_count(out, s->sources, "source");
    sl_buf_printf(out, " (%llu embedded, %llu ignored), ", (unsigned long long)s->contents,
                  (unsigned long long)s->ignored);
    put_count(out, s->names, "name");
    sl_buf_cstr(out, ", ");
    put_count(out, s->tokens, "mapping");
    sl_buf_cstr(out, " of ");
    put_count(out, s->lines, "line");
    bool usable = s->problem.code == SL_OK; /* then the message is empty */
    sl_buf_printf(out, "\n  Usable       %s%s%s\n", usable ? "yes" : "no (", s->problem.message, usable ? "" : ")");
    if (list)
        list_all(s, NULL, out);
}

/* Shows the summary of a source map: as JSON, as one line with --check, or as text. */
static void sourcemap_show(const struct inspected_file *file, const struct sourcemap_summary *s)
{
    const struct sl_debug_id *id = &s->map.debug_id;
    char text[SL_DEBUG_ID_TEXT];
    bool has_id = !sl_debug_id_is_nil(id), usable = s->problem.code == SL_OK;
    bool list = option_given(file->options, "files") || option_given(file->options, "sources");
    sl_debug_id_format(id, text);
    if (file->w)
        sourcemap_json(file->path, file->bytes.size, has_id ? text : NULL, s, list, file->w);
    else if (option_given(file->options, "check"))
        inspect_put_usable(file->out, file->path, usable ? NULL : s->problem.message);
    else
        sourcemap_print(file->path, file->bytes.size, has_id ? text : NULL, s, list, file->out);
}

/* Shows a JavaScript source map; false, showing nothing, if the file is none. With --id, one without debug id is never shown. */
bool inspect_sourcemap(struct inspected_file *file)
{
    struct sl_str text = {(const char *)file->bytes.data, file->bytes.size};
    struct sl_arena arena = {0};
    struct sourcemap_summary summary;
    bool is_map = is_sourcemap(text) && summarise(text, &arena, &summary);
    if (is_map) {
        const struct sl_debug_id *id = &summary.map.debug_id;
        file->other_id = file->wanted && (sl_debug_id_is_nil(id) || !sl_debug_id_equal(file->wanted, id));
        file->unusable = summary.problem.code != SL_OK;
        if (!file->other_id)
            sourcemap_show(file, &summary);
    }
    sl_arena_free(&arena);
    return is_map;
}
