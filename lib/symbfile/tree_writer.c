/* Converts segments, each with its call chain, to a stream of functions with inlined calls. */
#include "symbfile/tree_writer.h"

#include "base/grow.h"

#include <stdlib.h>

/* MAX_OPEN: length of the longest call chain. BATCH_NODES: number of functions after which they are passed on as a batch, to bound
 * memory. */
enum { MAX_OPEN = SL_SYMBFILE_MAX_DEPTH + 1, BATCH_NODES = 16384 };

/* Size of the nameless function around all others (under_root): larger than any address of a symcache, so that it contains them. */
static const uint64_t root_size = UINT64_MAX / 2;

/* A function, or a call inlined in one, to which the last segment belongs. It is open, and grows, as long as the next segment follows
 * without a gap and has it in its call chain, too; else it is closed. */
struct tree_function {
    uint64_t start;
    struct inline_chain_link link; /* this function in the call chain of the last segment */
    uint32_t call_file, call_line;
    struct sl_line *lines;
    struct sl_function *children; /* closed calls that are inlined in it */
    size_t line_count, line_capacity, child_count, child_capacity;
};

struct tree_writer {
    struct sl_function_sink *sink;
    struct sl_str *const *texts;
    bool under_root;
    struct tree_function open[MAX_OPEN]; /* outermost first */
    size_t height;                       /* number of open functions */
    size_t opened;                       /* number of functions and inlined calls so far */
    uint64_t end;                        /* end of the last segment */
    /* the current batch */
    struct sl_arena arena;
    struct sl_account account;
    struct tree_function roots; /* its children are the closed outermost functions, its lines (under_root) their code */
    size_t nodes;               /* number of closed functions and inlined calls */
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

static void free_open_function(struct tree_function *function)
{
    free(function->lines);
    free(function->children);
}

void tree_writer_free(struct tree_writer *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < MAX_OPEN; i++)
        free_open_function(&f->open[i]);
    free_open_function(&f->roots);
    sl_arena_free(&f->arena);
    free(f->files);
    free(f->local);
    free(f->used);
    sl_account_release(&f->account);
    free(f);
}

/* Returns the index of a file in the batch by the id of its text; adds it if it is new. SL_NO_FILE for FOREST_NO_TEXT and, with
 * account.failed set, when out of memory. */
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

/* Adds a line to an open function; if it directly follows the last one and has the same file and number, extends that one instead. */
static void tree_writer_add_line(struct tree_writer *f, struct tree_function *function, struct sl_line line)
{
    struct sl_line *last = function->line_count ? &function->lines[function->line_count - 1] : NULL;
    if (last && last->address + last->size == line.address && last->file == line.file && last->line == line.line)
        last->size += line.size;
    else if (sl_account_grow(&f->account, &function->lines, &function->line_capacity, function->line_count + 1,
                             sizeof *function->lines))
        function->lines[function->line_count++] = line;
}

/* Adds a closed function or call to the one around it. Sets account.failed when out of memory. */
static void add_child(struct tree_writer *f, struct tree_function *function, const struct sl_function *child)
{
    if (sl_account_grow(&f->account, &function->children, &function->child_capacity, function->child_count + 1,
                        sizeof *function->children))
        function->children[function->child_count++] = *child;
}

/* Copies an array of `size` bytes to the arena. NULL if it is empty or, with account.failed set, when out of memory. */
static void *tree_writer_copy(struct tree_writer *f, const void *items, size_t size)
{
    void *to = size ? sl_arena_alloc(&f->arena, size, _Alignof(max_align_t)) : NULL;
    f->account.failed |= size && !to;
    if (to)
        memcpy(to, items, size);
    return to;
}

/* Closes the innermost open function: makes a struct sl_function of it, and adds that to the function around it, or to the batch if it is
 * an outermost one. Sets account.failed when out of memory. */
static void close_innermost(struct tree_writer *f)
{
    struct tree_function *innermost = &f->open[--f->height];
    struct sl_function function = {
        .address = innermost->start,
        .size = f->end - innermost->start,
        .name = (*f->texts)[innermost->link.function],
        .lines = tree_writer_copy(f, innermost->lines, innermost->line_count * sizeof *innermost->lines),
        .line_count = (uint32_t)innermost->line_count,
        .inlinees = tree_writer_copy(f, innermost->children, innermost->child_count * sizeof *innermost->children),
        .inlinee_count = (uint32_t)innermost->child_count,
        .call_file = innermost->call_file,
        .call_line = innermost->call_line,
    };
    if (f->account.failed)
        return;
    add_child(f, f->height ? &f->open[f->height - 1] : &f->roots, &function);
    /* The functions are calls inlined in the nameless root, and where an inlined call covers code its caller must have a line
     * (function/function.h): the root gets one over the code of this function, without file and number. */
    if (f->height == 0 && f->under_root)
        tree_writer_add_line(f, &f->roots, (struct sl_line){function.address, function.size, SL_NO_FILE, 0});
    f->nodes++;
}

/* Opens a function at `start`, inlined in the innermost open one. `link` is the function in the segment's call chain. `caller` is the link
 * in front of it, which has the file and line of the call; NULL for an outermost function. */
static void open_call(struct tree_writer *f, uint64_t start, const struct inline_chain_link *link,
                      const struct inline_chain_link *caller)
{
    struct tree_function *function = &f->open[f->height++];
    f->opened++;
    function->start = start;
    function->link = *link;
    function->call_file = caller ? local_file(f, caller->file) : SL_NO_FILE;
    function->call_line = caller ? caller->line : 0;
    function->line_count = function->child_count = 0;
}

/* Passes the closed functions to the sink as a batch and starts a new batch; no function may be open. Only entries of `local` that were
 * used are cleared: there may be many texts. */
static enum sl_code tree_writer_flush(struct tree_writer *f, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    struct sl_function root = {
        /* with under_root: the nameless function in which all others are inlined */
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
    if (batch.function_count) { /* both steps on this thread, as worker 0 */
        f->sink->prepare(f->sink, &batch, &f->arena, 0);
        code = f->sink->consume(f->sink, &batch, error);
    }
    for (size_t i = 0; i < f->file_count; i++)
        f->local[f->used[i]] = 0;
    f->file_count = f->nodes = f->roots.child_count = f->roots.line_count = 0;
    sl_arena_free(&f->arena);
    return code;
}

/* Compares the open functions with a segment's call chain, both outermost first. Returns how many of the open ones the segment continues:
 * it stops at the first that is another function or is called at another place. 0 if there is a gap before the segment. */
static size_t count_continued(const struct tree_writer *f, uint64_t start, const struct inline_chain_link *chain,
                              size_t count)
{
    size_t same = 0;
    if (f->end != start)
        return 0;
    while (same < f->height && same < count && f->open[same].link.function == chain[same].function) {
        const struct inline_chain_link *was = &f->open[same].link, *now = &chain[same];
        same++;
        if (was->file != now->file || was->line != now->line)
            break; /* another call site: deeper functions are other calls */
    }
    return same;
}

enum sl_code tree_writer_add(struct tree_writer *f, uint64_t start, uint64_t end, const struct inline_chain_link *chain,
                             size_t count, struct sl_error *error)
{
    size_t same = count_continued(f, start, chain, count);
    while (f->height > same)
        close_innermost(f);
    /* only if no function is open: flushing frees the arena, which has the lines of the calls inlined in an open function */
    if (f->height == 0 && f->nodes >= BATCH_NODES) {
        enum sl_code code = tree_writer_flush(f, error);
        if (code != SL_OK)
            return code;
    }
    while (f->height < count)
        open_call(f, start, &chain[f->height], f->height ? &chain[f->height - 1] : NULL);
    for (size_t i = 0; i < count; i++) {
        f->open[i].link = chain[i];
        tree_writer_add_line(f, &f->open[i],
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
        close_innermost(f);
    return tree_writer_flush(f, error);
}
