#include "symbfile/tree_writer.h"

#include "base/grow.h"

#include <stdlib.h>

/* BATCH_NODES: functions after which a batch is passed on, to bound memory. */
enum { LEVELS = SL_SYMBFILE_MAX_DEPTH + 1, BATCH_NODES = 16384 };

/* Size of the nameless root: larger than any address of a symcache, so that it contains all functions. */
static const uint64_t root_size = UINT64_MAX / 2;

/* A function to which the last segment belongs. It is extended while segments continue it, and is closed when one does not. */
struct level {
    uint64_t start;
    struct inline_chain_link link; /* of the last segment */
    uint32_t call_file, call_line;
    struct sl_line *lines;
    struct sl_function *children;
    size_t line_count, line_capacity, child_count, child_capacity;
};

struct tree_writer {
    struct sl_function_sink *sink;
    struct sl_str *const *texts;
    bool under_root;
    struct level levels[LEVELS];
    size_t height, opened;
    uint64_t end; /* end of the last segment */
    /* the current batch */
    struct sl_arena arena;
    struct sl_account account;
    struct level roots; /* its children are the closed functions */
    size_t nodes;
    struct sl_file *files;
    uint32_t *local; /* text -> index in `files` + 1 */
    uint32_t *used;  /* texts that have an entry in `local` */
    size_t file_count, file_capacity, local_capacity, used_capacity;
};

struct tree_writer *tree_writer_new(struct sl_function_sink *sink, struct sl_str *const *texts, bool under_root,
                                    struct sl_budget *budget)
{
    struct tree_writer *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->sink = sink;
    f->texts = texts;
    f->under_root = under_root;
    f->arena.budget = f->account.budget = budget;
    return f;
}

static void level_free(struct level *level)
{
    free(level->lines);
    free(level->children);
}

void tree_writer_free(struct tree_writer *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < LEVELS; i++)
        level_free(&f->levels[i]);
    level_free(&f->roots);
    sl_arena_free(&f->arena);
    free(f->files);
    free(f->local);
    free(f->used);
    sl_account_release(&f->account);
    free(f);
}

/* Returns the index of a file in the batch; adds it if new. */
static uint32_t local_file(struct tree_writer *f, uint32_t text)
{
    if (text == FOREST_NO_TEXT)
        return SL_NO_FILE;
    if (!sl_grow_zeroed(&f->local, &f->local_capacity, (size_t)text + 1, sizeof *f->local)) {
        f->account.failed = true;
        return SL_NO_FILE;
    }
    if (f->local[text])
        return f->local[text] - 1;
    if (!sl_account_grow(&f->account, &f->files, &f->file_capacity, f->file_count + 1, sizeof *f->files) ||
        !sl_account_grow(&f->account, &f->used, &f->used_capacity, f->file_count + 1, sizeof *f->used))
        return SL_NO_FILE;
    f->files[f->file_count] = (struct sl_file){.name = (*f->texts)[text]};
    f->used[f->file_count] = text;
    f->local[text] = (uint32_t)++f->file_count;
    return f->local[text] - 1;
}

/* Adds a line, or extends the last one if it continues it. */
static void tree_writer_add_line(struct tree_writer *f, struct level *level, struct sl_line line)
{
    struct sl_line *last = level->line_count ? &level->lines[level->line_count - 1] : NULL;
    if (last && last->address + last->size == line.address && last->file == line.file && last->line == line.line)
        last->size += line.size;
    else if (sl_account_grow(&f->account, &level->lines, &level->line_capacity, level->line_count + 1,
                             sizeof *level->lines))
        level->lines[level->line_count++] = line;
}

static void add_child(struct tree_writer *f, struct level *level, const struct sl_function *child)
{
    if (sl_account_grow(&f->account, &level->children, &level->child_capacity, level->child_count + 1,
                        sizeof *level->children))
        level->children[level->child_count++] = *child;
}

/* Copies an array to the arena. NULL if it is empty or, with the account failed, when out of memory. */
static void *tree_writer_copy(struct tree_writer *f, const void *items, size_t size)
{
    void *to = size ? sl_arena_alloc(&f->arena, size, _Alignof(max_align_t)) : NULL;
    f->account.failed |= size && !to;
    if (to)
        memcpy(to, items, size);
    return to;
}

/* Makes a function of the innermost level and adds it to the level around it, or to the batch. */
static void close_level(struct tree_writer *f)
{
    struct level *level = &f->levels[--f->height];
    struct sl_function function = {
        .address = level->start,
        .size = f->end - level->start,
        .name = (*f->texts)[level->link.function],
        .lines = tree_writer_copy(f, level->lines, level->line_count * sizeof *level->lines),
        .line_count = (uint32_t)level->line_count,
        .inlinees = tree_writer_copy(f, level->children, level->child_count * sizeof *level->children),
        .inlinee_count = (uint32_t)level->child_count,
        .call_file = level->call_file,
        .call_line = level->call_line,
    };
    if (f->account.failed)
        return;
    add_child(f, f->height ? &f->levels[f->height - 1] : &f->roots, &function);
    if (f->height == 0 && f->under_root)
        tree_writer_add_line(f, &f->roots, (struct sl_line){function.address, function.size, SL_NO_FILE, 0});
    f->nodes++;
}

/* Opens an inlined call at `start`, below the levels that are open. `caller`: the link around it, NULL for an outermost function. */
static void open_level(struct tree_writer *f, uint64_t start, const struct inline_chain_link *link,
                       const struct inline_chain_link *caller)
{
    struct level *level = &f->levels[f->height++];
    f->opened++;
    level->start = start;
    level->link = *link;
    level->call_file = caller ? local_file(f, caller->file) : SL_NO_FILE;
    level->call_line = caller ? caller->line : 0;
    level->line_count = level->child_count = 0;
}

/* Passes the closed functions to the sink as a batch and starts a new one. Only entries of `local` that were used are cleared: there may
 * be many texts. */
static enum sl_code tree_writer_flush(struct tree_writer *f, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    struct sl_function root = {
        .size = root_size,
        .lines = f->roots.lines,
        .line_count = (uint32_t)f->roots.line_count,
        .inlinees = f->roots.children,
        .inlinee_count = (uint32_t)f->roots.child_count,
    };
    struct sl_function_batch batch = {
        .files = f->files,
        .file_count = f->file_count,
        .functions = f->under_root ? &root : f->roots.children,
        .function_count = f->under_root ? f->roots.child_count > 0 : f->roots.child_count,
    };
    if (f->account.failed)
        return sl_budget_fail(f->account.budget, error);
    if (batch.function_count) {
        f->sink->prepare(f->sink, &batch, &f->arena, 0);
        code = f->sink->consume(f->sink, &batch, error);
    }
    for (size_t i = 0; i < f->file_count; i++)
        f->local[f->used[i]] = 0;
    f->file_count = f->nodes = f->roots.child_count = f->roots.line_count = 0;
    sl_arena_free(&f->arena);
    return code;
}

/* Returns how many open functions the segment continues, outermost first: the same functions with the same call sites. None if there is
 * a gap before the segment. */
static size_t count_common_levels(const struct tree_writer *f, uint64_t start, const struct inline_chain_link *chain,
                                  size_t count)
{
    size_t same = 0;
    if (f->end != start)
        return 0;
    while (same < f->height && same < count && f->levels[same].link.function == chain[same].function) {
        const struct inline_chain_link *was = &f->levels[same].link, *now = &chain[same];
        same++;
        if (was->file != now->file || was->line != now->line)
            break; /* another call site: deeper functions are other calls */
    }
    return same;
}

enum sl_code tree_writer_add(struct tree_writer *f, uint64_t start, uint64_t end, const struct inline_chain_link *chain,
                             size_t count, struct sl_error *error)
{
    size_t same = count_common_levels(f, start, chain, count);
    while (f->height > same)
        close_level(f);
    /* only between functions: an open one must not lose its children */
    if (f->height == 0 && f->nodes >= BATCH_NODES) {
        enum sl_code code = tree_writer_flush(f, error);
        if (code != SL_OK)
            return code;
    }
    while (f->height < count)
        open_level(f, start, &chain[f->height], f->height ? &chain[f->height - 1] : NULL);
    for (size_t i = 0; i < count; i++) {
        f->levels[i].link = chain[i];
        tree_writer_add_line(f, &f->levels[i],
                             (struct sl_line){start, end - start, local_file(f, chain[i].file), chain[i].line});
    }
    f->end = end;
    return f->account.failed ? sl_budget_fail(f->account.budget, error) : SL_OK;
}

size_t tree_writer_node_count(const struct tree_writer *f)
{
    return f->opened;
}

enum sl_code tree_writer_finish(struct tree_writer *f, struct sl_error *error)
{
    while (f->height)
        close_level(f);
    return tree_writer_flush(f, error);
}
