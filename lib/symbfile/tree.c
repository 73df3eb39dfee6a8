/* Converts functions with inlined calls, as readers of debug information give them, to records of a symbfile. */
#include "symbfile/tree.h"

#include "base/account.h"
#include "function/path.h"

#include <stdlib.h>

struct tree_row { /* a row of a line table: valid from `start` to the next row */
    uint64_t start;
    uint32_t file, line;
};

void tree_maker_free(struct tree_maker *m)
{
    names_free(&m->names);
    free(m->ranges);
    free(m->rows);
    sl_account_release(&m->account);
}

/* Builds the full path of a file of the batch and stores it in m->paths. Sets account.failed when out of memory. */
static void make_path(struct tree_maker *m, uint32_t file)
{
    const struct sl_file *f = &m->batch->files[file];
    struct sl_buf path = {.budget = m->account.budget};
    sl_path_full(&path, f->comp_dir, f->directory, f->name);
    char *copy = sl_arena_strndup(m->arena, (const char *)path.data, path.size);
    m->account.failed |= !copy || path.failed;
    m->paths[file] = (struct sl_str){copy ? copy : "", path.size}; /* "": not NULL, so that it is not made again */
    sl_buf_free(&path);
}

/* Returns the full path of a file of the batch, made at its first use; absent if it is empty or there is no such file. */
static inline struct sl_symbfile_text get_path(struct tree_maker *m, uint32_t file)
{
    struct sl_symbfile_text text = {.ref = SL_SYMBFILE_INLINE};
    if (file >= m->batch->file_count)
        return text;
    if (!m->paths[file].data)
        make_path(m, file);
    if (m->paths[file].size)
        text.str = m->paths[file];
    return text;
}

static uint64_t tree_end_address(uint64_t start, uint64_t size)
{
    return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* ---- rows: lines of a function outside of its inlined calls ---- */
/* Adds a row for a line unless the last one has the same start or the same file and line. A line with number 0 (unknown) gets no row. The
 * rows of the current function are m->rows[first..*count). */
static inline void add_row(struct tree_maker *m, size_t first, size_t *count, uint64_t start,
                           const struct sl_line *line)
{
    const struct tree_row *last = *count > first ? &m->rows[*count - 1] : NULL;
    if (!line->line || (last && (last->start == start || (last->file == line->file && last->line == line->line))))
        return;
    if (sl_account_grow(&m->account, &m->rows, &m->row_capacity, *count + 1, sizeof *m->rows))
        m->rows[(*count)++] = (struct tree_row){start, line->file, line->line};
}

/* Adds a row at the start of each part of a line's code [at, end) that lies outside of inlined calls: rows have no end, so a row starts
 * again behind each call. `child` is the index of the first inlined call that may overlap the code; first, count: see add_row(). */
static void add_gaps(struct tree_maker *m, const struct sl_function *f, const struct sl_line *line, uint64_t at,
                     uint64_t end, uint32_t child, size_t first, size_t *count)
{
    for (uint32_t c = child; at < end; c++) {
        bool inlined = c < f->inlinee_count && f->inlinees[c].address < end;
        if (!inlined || f->inlinees[c].address > at)
            add_row(m, first, count, at, line);
        if (!inlined)
            break;
        at = tree_end_address(f->inlinees[c].address, f->inlinees[c].size);
    }
}

/* Returns the end of a line's range; a line without a size covers one byte. */
static inline uint64_t line_end(const struct sl_line *line)
{
    return tree_end_address(line->address, line->size ? line->size : 1);
}

/* Adds the rows of the function's code in [low, high), without the code of its inlined calls, to m->rows at index
 * `first`; returns their number. */
static size_t own_rows(struct tree_maker *m, const struct sl_function *f, uint64_t low, uint64_t high, size_t first)
{
    size_t count = first;
    uint32_t child = 0;
    for (const struct sl_line *line = f->lines, *last = line + f->line_count; line < last; line++) {
        uint64_t at = line->address, end = line_end(line);
        at = at < low ? low : at;
        end = end > high ? high : end;
        if (!f->inlinee_count) { /* the common case */
            if (at < end)
                add_row(m, first, &count, at, line);
            continue;
        }
        while (child < f->inlinee_count && tree_end_address(f->inlinees[child].address, f->inlinees[child].size) <= at)
            child++;
        add_gaps(m, f, line, at, end, child, first, &count);
    }
    return count - first;
}

/* ---- records ---- */
/* Appends a record of the code [start, end) of `f`, which is inlined `depth` times; m->rows[first_row .. first_row + row_count) are its
 * lines, all in one file. */
static void add_range(struct tree_maker *m, const struct sl_function *f, uint32_t depth, uint64_t start, uint64_t end,
                      size_t first_row, size_t row_count)
{
    static const struct sl_symbfile_text none = {.ref = SL_SYMBFILE_INLINE};
    struct sl_symbfile_line *lines = sl_arena_alloc(m->arena, row_count * sizeof *lines, _Alignof(struct sl_line));
    if ((row_count && !lines) ||
        !sl_account_grow(&m->account, &m->ranges, &m->capacity, m->count + 1, sizeof *m->ranges)) {
        m->account.failed = true;
        return;
    }
    for (size_t i = 0; i < row_count; i++)
        lines[i] =
            (struct sl_symbfile_line){(uint32_t)(m->rows[first_row + i].start - start), m->rows[first_row + i].line};
    struct sl_symbfile_range *r = &m->ranges[m->count++];
    *r = (struct sl_symbfile_range){
        .va = m->load_address + start,
        .length = end - start > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - start),
        .depth = depth,
        .function = {names_readable(&m->names, f->name), SL_SYMBFILE_INLINE},
        .file = row_count ? get_path(m, m->rows[first_row].file) : none,
        .call_file = depth ? get_path(m, f->call_file) : none,
        .call_line = depth ? f->call_line : 0,
        .lines = lines,
        .line_count = row_count,
    };
}

/* Adds the records of the code [low, high) of a function and of its inlined calls to m->ranges. A record has one file only, so the function
 * is split where the file of its rows changes; each part is followed by the inlined calls inside it. m->rows is used from index `first` on.
 * Returns false and adds nothing if neither the function nor its calls have rows. */
static bool tree_emit(struct tree_maker *m, const struct sl_function *f, uint32_t depth, uint64_t low, uint64_t high,
                      size_t first)
{
    uint64_t start = f->address < low ? low : f->address, end = tree_end_address(f->address, f->size);
    end = end > high ? high : end;
    if (start >= end || m->account.failed || depth > SL_SYMBFILE_MAX_DEPTH)
        return false;
    /* inner: the rows of inlined calls are stored behind those of the function */
    size_t last = first + own_rows(m, f, start, end, first), inner = last, before = m->count;
    bool has_rows = first < last;
    for (size_t next; first <= last; first = next) {              /* once if there are no rows: first == last */
        if (!sl_account_spend(&m->account, f->inlinee_count + 1)) /* each part visits all inlined calls */
            return false;
        for (next = first + 1; next < last && m->rows[next].file == m->rows[first].file; next++)
            continue;
        uint64_t part_end = next < last ? m->rows[next].start : end;
        if (f->name.size) /* a function without name has no record, but its inlined calls may have */
            add_range(m, f, depth, start, part_end, first, first < last ? next - first : 0);
        for (uint32_t i = 0; i < f->inlinee_count; i++)
            has_rows |= tree_emit(m, &f->inlinees[i], depth + 1, start, part_end, inner);
        start = part_end;
        if (next >= last)
            break;
    }
    if (!has_rows)
        m->count = before;
    return has_rows;
}

const struct tree_list *tree_maker_convert(struct tree_maker *m, const struct sl_function_batch *batch,
                                           struct sl_arena *arena)
{
    struct tree_list *list = SL_ARENA_NEW(arena, struct tree_list);
    m->batch = batch;
    m->arena = arena;
    m->count = 0;
    m->paths = SL_ARENA_ARRAY(arena, struct sl_str, batch->file_count + 1);
    m->account.failed |= !list || !m->paths;
    names_clear_recent(&m->names); /* it finds names by address, and the last batch's memory may have other names now */
    for (size_t i = 0; i < batch->function_count && !m->account.failed; i++) {
        const struct sl_function *f = &batch->functions[i];
        /* code that the linker dropped is at 0 or 1 */
        if (f->size && m->load_address + f->address > 1)
            tree_emit(m, f, 0, f->address, tree_end_address(f->address, f->size), 0);
    }
    m->account.failed |= m->names.failed;
    /* + 1: never 0 bytes */
    struct sl_symbfile_range *copy =
        m->account.failed ? NULL
                          : sl_arena_alloc(arena, m->count * sizeof *copy + 1, _Alignof(struct sl_symbfile_range));
    m->account.failed |= !copy;
    if (m->account.failed)
        return NULL;
    if (m->count)
        memcpy(copy, m->ranges, m->count * sizeof *copy);
    *list = (struct tree_list){copy, m->count};
    return list;
}
