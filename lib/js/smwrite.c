/* Writes a source map as a look-up table; the texts of the sources, which are most of it, come first. */
#include "js/smwrite.h"

#include <stdlib.h>

#include "base/map.h"

/* Returns the size of the section TEXT while it is written: it is the first one, so it extends to the end of the file. */
static size_t text_size(const struct smcache_writer *w)
{
    return w->table.file.size - w->table.sections[SECTION_TEXT - 1].offset;
}

static bool has_memory(const struct smcache_writer *w)
{
    return !w->table.file.failed && !w->lines.failed;
}

/* ---- sources ---- */

/* Adds the source whose name was just appended to TEXT at `offset`, and returns its record. In an index map (w->numbers set) sources with
 * equal names share a record: `records` maps names to records, w->numbers[number] becomes the record, and a second copy of the name is
 * removed. NULL when out of memory. */
static struct source_record *add_source(struct smcache_writer *w, struct sl_map *records, size_t number,
                                        uint32_t offset)
{
    uint32_t size = (uint32_t)(text_size(w) - offset);
    size_t record = w->source_count;
    if (w->numbers) {
        /* SECTION_TEXT - 1: numbers of sections count from 1, and TEXT was begun first */
        const char *name = (const char *)w->table.file.data + w->table.sections[SECTION_TEXT - 1].offset + offset;
        const char *key = sl_arena_strndup(w->map->arena, name, size);
        void **slot = key ? sl_map_find_or_add(records, (struct sl_str){key, size}, NULL) : NULL;
        if (!slot)
            return NULL;
        if (*slot) /* the values in `records` are 1 + the record; NULL: the name is new */
            record = (size_t)(uintptr_t)*slot - 1;
        *slot = (void *)(uintptr_t)(record + 1);
        w->numbers[number] = (uint32_t)record;
    }
    if (record < w->source_count) {
        w->table.file.size -= size;
        return &w->sources[record];
    }
    if (!sl_account_grow(&w->account, &w->sources, &w->source_capacity, record + 1, sizeof *w->sources))
        return NULL;
    w->sources[record] = (struct source_record){.name = offset, .name_size = size, .content_size = NO_CONTENT};
    w->source_count++;
    return &w->sources[record];
}

/* Writes the names of the sources of one part (the map, or one map of an index map) and makes their records. `first` is the number of its
 * first source among those of all parts; `records` finds the records of earlier sources by their names, in an index map. As each name
 * repeats the source root, the budget is charged four steps for each byte of it. */
static enum sl_code put_names_of_sources(struct smcache_writer *w, const struct sl_sourcemap_part *part, size_t first,
                                         struct sl_map *records, struct sl_error *error)
{
    struct sl_sourcemap_texts texts;
    bool null; /* not used: a source that is null gets a record, too */
    if (!sl_sourcemap_texts(w->map, part, SL_SOURCEMAP_SOURCES, &texts))
        return smcache_writer_fail(w, error);
    for (uint32_t offset = (uint32_t)text_size(w); sl_sourcemap_text(&texts, &w->table.file, &null);
         offset = (uint32_t)text_size(w)) {
        if (text_size(w) > UINT32_MAX)
            return sl_fail(error, SL_UNSUPPORTED,
                           "source map: names and contents of its sources are larger than 4 GiB together");
        uint32_t copied = texts.root.size < UINT32_MAX / 8 ? (uint32_t)texts.root.size * 4 + 1 : UINT32_MAX;
        if (!has_memory(w) || !sl_account_spend(&w->account, copied) || !add_source(w, records, first++, offset))
            return smcache_writer_fail(w, error);
    }
    return SL_OK;
}

/* Counts the line feeds in the LINES_STEP bytes at `text`. Sixteen counters of one byte let the compiler use SIMD instructions; after 128
 * additions to each, before they can overflow, they are summed up. */
static uint32_t count_lines(const uint8_t *text)
{
    enum { LANES = 16, ROUND = LANES * 128 };
    uint32_t lines = 0;
    for (unsigned round = 0; round < LINES_STEP; round += ROUND) {
        uint8_t lanes[LANES] = {0};
        for (unsigned i = round; i < round + ROUND; i += LANES)
            for (unsigned lane = 0; lane < LANES; lane++)
                lanes[lane] += text[i + lane] == '\n';
        for (unsigned lane = 0; lane < LANES; lane++)
            lines += lanes[lane];
    }
    return lines;
}

/* Appends the rows of LINES for the text of a source: after each LINES_STEP bytes but the last, the number of line feeds so far. */
static void put_lines(struct smcache_writer *w, struct source_record *record)
{
    const uint8_t *text = w->table.file.data + w->table.sections[SECTION_TEXT - 1].offset + record->content;
    uint32_t lines = 0;
    record->lines = (uint32_t)(w->lines.size / 4);
    for (uint32_t at = 0; record->content_size - at > LINES_STEP; at += LINES_STEP) {
        lines += count_lines(text + at);
        sl_buf_u32(&w->lines, lines);
    }
}

/* Records where in TEXT the contents of the sources of one part are (the map, or one map of an index map): they were written there while
 * the map was read. `first` is the number of the part's first source. Contents without a source in `sources` are not used. */
static enum sl_code put_contents(struct smcache_writer *w, const struct sl_sourcemap_part *part, size_t first,
                                 struct sl_error *error)
{
    const uint32_t *counts = part->counts;
    uint32_t count = counts[SL_SOURCEMAP_CONTENTS] < counts[SL_SOURCEMAP_SOURCES] ? counts[SL_SOURCEMAP_CONTENTS]
                                                                                  : counts[SL_SOURCEMAP_SOURCES];
    for (uint32_t i = 0; i < count; i++) {
        /* u32 offset in TEXT, u32 size */
        const uint8_t *place = w->contents.places.data + 8 * ((size_t)part->first_content + i);
        uint32_t size = sl_table_u32(place + 4);
        if (size == SL_SOURCEMAP_NO_CONTENT)
            continue;
        struct source_record *record = &w->sources[w->numbers ? w->numbers[first + i] : first + i];
        record->content = sl_table_u32(place);
        record->content_size = size;
        put_lines(w, record);
        if (!has_memory(w) || !sl_account_spend(&w->account, 1))
            return smcache_writer_fail(w, error);
    }
    return SL_OK;
}

/* Writes names and contents of the sources of all parts: the map, or the maps of an index map. Sets w->ranges if one has ranges. */
static enum sl_code put_parts(struct smcache_writer *w, struct sl_map *records, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    size_t first = 0;
    for (size_t i = 0; code == SL_OK && i < w->map->part_count; i++) {
        const struct sl_sourcemap_part *part = &w->map->parts[i];
        code = put_names_of_sources(w, part, first, records, error);
        if (code == SL_OK)
            code = put_contents(w, part, first, error);
        first += part->counts[SL_SOURCEMAP_SOURCES];
        w->ranges |= part->ranges != 0;
    }
    return code;
}

/* Writes names and texts of the sources (TEXT), their records (SOURCES), and the numbers of lines (LINES). An index map may name one source
 * in several of its maps: w->numbers then maps each to the record they share. */
static enum sl_code put_sources(struct smcache_writer *w, struct sl_error *error)
{
    struct sl_buf *file = &w->table.file;
    struct sl_map records = {.budget = w->budget};
    size_t count = 0;
    for (size_t i = 0; i < w->map->part_count; i++)
        count += w->map->parts[i].counts[SL_SOURCEMAP_SOURCES];
    if (w->map->indexed && !(w->numbers = sl_account_alloc(&w->account, count, sizeof *w->numbers)))
        return smcache_writer_fail(w, error);
    enum sl_code code = put_parts(w, &records, error); /* after an error the caller discards what is written below */
    sl_map_free(&records);
    sl_table_section(&w->table, SECTION_SOURCES);
    for (size_t i = 0; i < w->source_count; i++) {
        const struct source_record *s = &w->sources[i];
        const uint32_t words[] = {s->name, s->name_size, s->content, s->content_size, s->lines};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            sl_buf_u32(file, words[k]);
    }
    sl_table_section(&w->table, SECTION_LINES);
    sl_buf_str(file, sl_buf_view(&w->lines));
    sl_buf_free(&w->lines);
    return code;
}

/* ---- names ---- */

/* Writes the `names` of the map, or of all maps of an index map, one after the other, and the offsets at which they begin and end. Fails
 * when out of memory or budget. */
static enum sl_code put_names(struct smcache_writer *w, struct sl_error *error)
{
    struct sl_buf offsets = {.budget = w->budget}, *file = &w->table.file;
    struct sl_sourcemap_texts texts;
    bool good = true, null; /* null is not used: a name that is null becomes an empty one */
    sl_table_section(&w->table, SECTION_NAMES);
    size_t begin = file->size;
    sl_buf_u32(&offsets, 0);
    for (size_t i = 0; good && i < w->map->part_count; i++) {
        good = sl_sourcemap_texts(w->map, &w->map->parts[i], SL_SOURCEMAP_NAMES, &texts);
        while (good && sl_sourcemap_text(&texts, file, &null)) {
            sl_buf_u32(&offsets, (uint32_t)(file->size - begin));
            w->name_count++;
            good = !offsets.failed && !file->failed && sl_account_spend(&w->account, 1);
        }
    }
    w->table.too_large |= file->size - begin > UINT32_MAX;
    sl_table_section(&w->table, SECTION_NAME_OFFSETS);
    sl_buf_str(file, sl_buf_view(&offsets));
    file->failed |= offsets.failed;
    sl_buf_free(&offsets);
    return good ? SL_OK : smcache_writer_fail(w, error);
}

/* ---- functions ---- */

/* Reads where functions are: from x_facebook_sources of a map that is no index map, else by parsing the script. */
static enum sl_code read_functions(struct smcache_writer *w, struct sl_error *error)
{
    bool has_map = !w->map->indexed && w->map->part_count && w->map->parts[0].functions;
    sl_buf_u32(&w->function_offsets, 0); /* the first name begins there; the others follow in smcache_end_function() */
    return has_map ? smcache_read_functions(w, error) : smcache_read_scopes(w, error);
}

/* Writes the names of functions, and for each scope 1 + the number of its name. With a function map (x_facebook_sources) tokens refer to
 * names directly, so that each name gets one scope, with its own number. */
static enum sl_code put_functions(struct smcache_writer *w, struct sl_error *error)
{
    struct sl_table_writer *t = &w->table;
    enum sl_code code = smcache_name_scopes(w, error); /* after an error the caller discards what is written below */
    for (uint32_t i = 0; w->function_map.firsts && i < w->function_count; i++)
        sl_buf_u32(&w->scopes, i + 1);
    t->too_large |= w->functions.size > UINT32_MAX;
    t->file.failed |= w->functions.failed || w->function_offsets.failed || w->scopes.failed;
    sl_table_section(t, SECTION_FUNCTIONS);
    sl_buf_str(&t->file, sl_buf_view(&w->functions));
    sl_table_section(t, SECTION_FUNCTION_OFFSETS);
    sl_buf_str(&t->file, sl_buf_view(&w->function_offsets));
    sl_table_section(t, SECTION_SCOPES);
    sl_buf_str(&t->file, sl_buf_view(&w->scopes));
    return code;
}

/* ---- the file ---- */

/* Fills the fields of the header that the table writer does not know. */
static void put_header(struct smcache_writer *w)
{
    struct sl_table_writer *t = &w->table;
    sl_table_put(t, AT_FLAGS, w->ranges ? FLAG_RANGES : 0, 4);
    sl_table_put(t, AT_SOURCES, w->source_count, 4);
    sl_table_put(t, AT_NAMES, w->name_count, 4);
    sl_table_put(t, AT_BLOCKS, w->block_count, 4);
    sl_table_put(t, AT_TOKENS, w->token_count, 8);
    sl_table_put(t, AT_BAD_SCOPES, w->originals.bad_item, 4);
}

/* Reads the map; the contents go directly into the TEXT section. */
static enum sl_code read_map(struct smcache_writer *w, struct sl_str text, struct sl_arena *arena,
                             struct sl_sourcemap *map, struct sl_error *error)
{
    if (!sl_table_writer_init(&w->table, &smcache_format, NULL, w->budget)) /* NULL: uses no other threads */
        return smcache_writer_fail(w, error);
    sl_table_section(&w->table, SECTION_TEXT);
    sl_buf_reserve(&w->table.file, text.size); /* the result is about as large as the map */
    return sl_sourcemap_read(text, arena, map, &w->contents, error);
}

/* Writes all sections and moves the file to `out`. The order matters: tokens need the numbers of sources and scopes, and the names of
 * functions are looked up in the tokens. SL_UNSUPPORTED if the table would be too large; else an error of memory, budget or the map. */
static enum sl_code put_sections(struct smcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    enum sl_code code = put_sources(w, error);
    if (code == SL_OK)
        code = put_names(w, error);
    if (code == SL_OK)
        code = read_functions(w, error);
    if (code == SL_OK)
        code = smcache_put_tokens(w, error);
    if (code == SL_OK)
        code = put_functions(w, error);
    if (code == SL_OK)
        code = smcache_read_originals(w, error);
    if (code == SL_OK && w->originals.there && !smcache_put_originals(w))
        code = smcache_writer_fail(w, error);
    if (code != SL_OK || w->table.file.failed)
        return code != SL_OK ? code : smcache_writer_fail(w, error);
    put_header(w);
    if (sl_table_finish(&w->table, out))
        return SL_OK;
    return w->table.too_large
               ? sl_fail(error, SL_UNSUPPORTED, "source map: its look-up table would need offsets of more than 32 bits")
               : smcache_writer_fail(w, error);
}

enum sl_code sl_smcache_write(struct sl_str script, struct sl_str text, const struct sl_smcache_options *options,
                              struct sl_budget *budget, struct sl_buf *out, struct sl_error *error)
{
    struct sl_arena arena = {.budget = budget};
    struct sl_sourcemap map;
    struct smcache_writer w = {
        .script = script, .map = &map, .options = options, .budget = budget, .account.budget = budget};
    struct sl_buf *bufs[] = {&w.lines,  &w.keys,           &w.places, &w.functions, &w.function_offsets,
                             &w.scopes, &w.contents.places};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        bufs[i]->budget = budget;
    w.contents.text = &w.table.file; /* texts of sources are written to the file while the map is read */
    enum sl_code code = read_map(&w, text, &arena, &map, error);
    if (code == SL_OK)
        code = put_sections(&w, out, error);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        sl_buf_free(bufs[i]);
    sl_buf_free(&w.table.file);
    smcache_free_scopes(&w);
    smcache_free_originals(&w);
    free(w.function_map.firsts);
    free(w.function_map.starts);
    free(w.sources);
    free(w.numbers);
    sl_account_release(&w.account);
    sl_arena_free(&arena);
    return code;
}
