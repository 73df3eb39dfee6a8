/* `symloom symbolicate`: JavaScript stacks, with scripts and source maps of local directories. */
#include "cli/symbolicate/artifacts.h"
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/map.h"
#include "cli/file_walk.h"
#include "js/comment.h"
#include "js/smcache.h"
#include "js/stack.h"

/* MAX_FILES: files that are indexed, since a directory may be `/`. MAX_HELD: bytes of a stack that is not complete. PAUSE_MS: a stack
 * counts as complete when no input has come for so long. */
enum { MAX_FILES = 200000, BLOCK = 64 * 1024, MAX_HELD = 1024 * 1024, PAUSE_MS = 100 };

struct symbolicate_script { /* a script, by its URL in the stack */
    struct sl_str url, base;
    bool mapped;
    struct sl_buf table;
    struct sl_smcache cache;
};

struct stack_frame {
    struct sl_js_stack_frame text;
    bool is_hidden;             /* its source map marks the function as hidden */
    struct stack_frame *caller; /* of an inlined call: the frame it was inlined into */
};

struct stack_line { /* a line, or a part of it that holds one frame */
    struct sl_str text;
    bool is_frame, is_mapped, is_last;
    struct stack_frame frame;
};

struct script_symbolication {
    struct sl_arena arena;
    const char **files;    /* local scripts and maps, sorted by path */
    struct sl_map by_name; /* file name -> 1 + index of the first such file */
    size_t *same_name;     /* per file: 1 + index of the next file of the same name; 0: none */
    size_t file_count, file_capacity, script_count;
    struct missing_report *missing;
    struct sl_map by_url;  /* URL -> struct symbolicate_script */
    struct sl_arena texts; /* texts of the current lines */
    struct stack_line *lines;
    size_t line_count, line_capacity;
    struct output_file *file; /* NULL: standard output */
    struct log_input *input;  /* source of the lines; NULL: the whole stack is in memory */
    bool failed;              /* the output cannot be written any more */
};

/* ---- files ---- */

/* Lists the scripts and source maps at or below `path`. A file that is named itself is listed whatever its name is. False when out of
 * memory. */
static bool find_scripts(struct script_symbolication *s, const char *path)
{
    struct file_walk walk;
    file_walk_open(&walk, path);
    bool good = walk.fts != NULL;
    for (const FTSENT *entry; good && s->file_count < MAX_FILES && (entry = file_walk_next(&walk));) {
        bool is_map = path_is_map(entry->fts_path);
        if (entry->fts_level != 0 && !path_is_script(entry->fts_path) && !is_map)
            continue;
        s->script_count += !is_map;
        char *copy = sl_arena_strndup(&s->arena, entry->fts_path, strlen(entry->fts_path));
        good = copy && sl_grow(&s->files, &s->file_capacity, s->file_count + 1, sizeof *s->files);
        if (good)
            s->files[s->file_count++] = copy;
    }
    file_walk_close(&walk);
    return good;
}

/* Indexes the files by name. Goes backwards, so that the list of a name is in the order of the files. False when out of memory. */
static bool index_files(struct script_symbolication *s)
{
    s->same_name = calloc(s->file_count + 1, sizeof *s->same_name);
    for (size_t i = s->file_count; s->same_name && i-- > 0;) {
        void **first = sl_map_find_or_add(&s->by_name, path_file_name(sl_str(s->files[i])), NULL);
        if (!first)
            return false;
        s->same_name[i] = (uintptr_t)*first;
        *first = (void *)(uintptr_t)(i + 1);
    }
    return s->same_name;
}

/* The local file whose path has the longest common end with the URL plus `end` (".map" or ""); NULL unless at least the file name is
 * equal. An empty URL matches the only script. */
static const char *get_file_name(const struct script_symbolication *s, struct sl_str url, const char *end)
{
    struct sl_buf buf = {0};
    const char *best = NULL;
    size_t most = 0;
    put_url_path(url, &buf);
    sl_buf_cstr(&buf, end);
    struct sl_str path = sl_buf_view(&buf);
    for (size_t i = 0; i < s->file_count && !url.size; i++)
        if (path_is_map(s->files[i]) == (*end != 0) && (s->script_count ? s->script_count : s->file_count) == 1)
            best = s->files[i];
    size_t next = url.size ? (uintptr_t)sl_map_get(&s->by_name, path_file_name(path)) : 0;
    for (; next; next = s->same_name[next - 1]) {
        size_t parts = path_common_parts(path, sl_str(s->files[next - 1]));
        if (parts > most) {
            most = parts;
            best = s->files[next - 1];
        }
    }
    sl_buf_free(&buf);
    return best;
}

/* ---- source maps ---- */

/* Maps the source map beside the script: at its `reference` (sourceMappingURL), by the reference's file name, or as X.js.map. */
static enum sl_code map_beside(const char *path, struct sl_str reference, struct sl_mapping *mapping,
                               struct sl_error *error)
{
    struct sl_str last = path_file_name(reference), directory = sl_str(path);
    directory.size -= path_file_name(directory).size;
    const struct sl_str names[] = {reference, last, {NULL, 0}};
    for (size_t i = 0; i < 3; i++) {
        struct sl_buf name = {0};
        if (names[i].size) {
            sl_buf_str(&name, directory);
            sl_buf_str(&name, names[i]);
        } else {
            sl_buf_cstr(&name, path);
            sl_buf_cstr(&name, ".map");
        }
        sl_buf_u8(&name, 0);
        enum sl_code code = name.failed ? SL_BUSY : map_file((const char *)name.data, mapping, error);
        sl_buf_free(&name);
        if (code == SL_OK || code == SL_BUSY)
            return code;
    }
    if (last.size)
        return sl_fail(error, SL_NOT_FOUND, "its source map, %.*s, was not found beside it",
                       (int)(last.size < 200 ? last.size : 200), last.data);
    return sl_fail(error, SL_NOT_FOUND, "it names no source map, and there is none beside it");
}

/* Builds the look-up table of a script and its source map. */
static enum sl_code make_table(struct symbolicate_script *script, struct sl_str text, struct sl_str map,
                               struct sl_error *error)
{
    const struct sl_smcache_options options = {0};
    struct sl_budget budget;
    sl_budget_init(&budget, text.size + map.size);
    enum sl_code code = sl_smcache_write(text, map, &options, &budget, &script->table, error);
    return code == SL_OK ? sl_smcache_open(sl_buf_bytes(&script->table), &script->cache, error) : code;
}

/* Reads the source map that the script names: in a data URL, or a file beside it. Sources in the map are relative to the map's URL, which
 * becomes `script->base`. */
static enum sl_code read_map(struct script_symbolication *s, struct symbolicate_script *script, const char *path,
                             struct sl_str text, struct sl_error *error)
{
    struct sl_str reference = {NULL, 0};
    struct sl_buf decoded = {0}, base = {0};
    struct sl_mapping mapping = {0};
    enum sl_code code = SL_OK;
    bool there = sl_js_map_comment(text, &reference);
    if (there && sl_js_is_data_url(reference)) {
        code = sl_js_data_url(reference, &decoded)
                   ? make_table(script, text, sl_buf_view(&decoded), error)
                   : sl_fail(error, SL_MALFORMED, "the data URL of its source map is malformed");
        sl_buf_free(&decoded);
        return code;
    }
    if (there)
        sl_js_join(script->base, reference, &base);
    else
        sl_buf_str(&base, script->base);
    script->base = sl_buf_move_to_arena(&base, &s->arena);
    code = map_beside(path, reference, &mapping, error);
    if (code == SL_OK)
        code = make_table(script, text, (struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size}, error);
    sl_unmap(&mapping);
    return code;
}

/* Finds the script and its source map. Without one, the script's frames stay unchanged. */
static void read_script(struct script_symbolication *s, struct symbolicate_script *script)
{
    struct sl_mapping mapping = {0};
    struct sl_error error = {0};
    script->base = url_without_parameters(script->url);
    const char *path = get_file_name(s, script->url, ""), *map = path ? NULL : get_file_name(s, script->url, ".map");
    if (!path && !map)
        return;
    enum sl_code code = map_file(path ? path : map, &mapping, &error);
    struct sl_str text = {(const char *)mapping.bytes.data, mapping.bytes.size};
    if (code == SL_OK && map)
        code = make_table(script, SL_STR(""), text, &error);
    else if (code == SL_OK) /* of Hermes bytecode only the file name matters */
        code = read_map(s, script, path, sl_str_starts(text, SL_STR("\xC6\x1F\xBC\x03")) ? SL_STR("") : text, &error);
    sl_unmap(&mapping);
    script->mapped = code == SL_OK;
    if (code == SL_OK && script->cache.bad_scopes)
        print_note("warning: %s: item %u of `scopes` in the source map is malformed; function names do not use it\n",
                   path ? path : map, script->cache.bad_scopes);
    if (code != SL_OK)
        report_file_error(path ? path : map, code, &error);
}

/* The script of a URL, read at its first use; NULL when out of memory. */
static const struct symbolicate_script *find_script(struct script_symbolication *s, struct sl_str url)
{
    struct symbolicate_script *script = sl_map_get(&s->by_url, url);
    if (script)
        return script;
    const char *copy = sl_arena_strndup(&s->arena, url.data, url.size); /* lines are freed */
    script = copy ? SL_ARENA_NEW(&s->arena, struct symbolicate_script) : NULL;
    if (!script || !sl_map_put(&s->by_url, (struct sl_str){copy, url.size}, script))
        return NULL;
    script->url = (struct sl_str){copy, url.size};
    read_script(s, script);
    return script;
}

/* ---- the stack ---- */

/* Splits the text into lines, and lines with several frames into parts. False when out of memory. */
static bool split_lines(struct script_symbolication *s, struct sl_str text)
{
    for (size_t at = 0, size; at < text.size; at += size) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size = newline ? (size_t)(newline + 1 - text.data) - at : text.size - at;
        struct sl_str rest = {text.data + at, size}, part;
        while (sl_js_stack_part(&rest, &part)) {
            if (!sl_grow_zeroed(&s->lines, &s->line_capacity, s->line_count + 1, sizeof *s->lines))
                return false;
            struct stack_line *line = &s->lines[s->line_count++];
            line->text = part;
            line->is_mapped = line->is_last = line->frame.is_hidden = false;
            line->frame.caller = NULL;
            line->is_frame = sl_js_stack_frame(part, &line->frame.text);
        }
    }
    if (s->line_count)
        s->lines[s->line_count - 1].is_last = true;
    return true;
}

/* The URL of a frame as sl_js_stack_put_url() has it; data NULL when out of memory. */
static struct sl_str plain_url(struct script_symbolication *s, struct sl_str url)
{
    if (!url.size || (!memchr(url.data, '\\', url.size) && !memchr(url.data, '\033', url.size)))
        return url;
    struct sl_buf out = {0};
    sl_js_stack_put_url(url, &out);
    return sl_buf_move_to_arena(&out, &s->texts);
}

/* Drops the first `skipped` characters of the text, escapes the rest like the frame's line, and frees `text`. Data NULL when out of
 * memory. */
static struct sl_str escaped(struct script_symbolication *s, const struct sl_js_stack_frame *frame, struct sl_buf *text,
                             size_t skipped)
{
    struct sl_buf out = {.failed = text->failed};
    struct sl_str view = sl_buf_view(text);
    if (view.size > skipped)
        sl_js_stack_escape(frame, (struct sl_str){view.data + skipped, view.size - skipped}, &out);
    sl_buf_free(text);
    return sl_buf_move_to_arena(&out, &s->texts);
}

/* Replaces the frame's position by the original one. `caller`: the name of the token at the call site in the calling frame. False when
 * out of memory. */
static bool put_original_position(struct script_symbolication *s, const struct symbolicate_script *script,
                                  const struct sl_smcache_position *position, struct sl_str caller,
                                  struct stack_frame *stack_frame)
{
    struct sl_js_stack_frame *frame = &stack_frame->text;
    struct sl_str url = plain_url(s, frame->url);
    struct sl_buf function = {0}, path = {0};
    const struct sl_js_function_hints clues = {
        .kind = position->kind,
        .scope = position->function,
        .token = position->name,
        .caller = caller,
        .function = {frame->function.size ? frame->function.data : NULL, frame->function.size},
    };
    sl_js_function_name(&clues, &function);
    struct sl_str source = sl_smcache_source(&script->cache, position->source);
    if (source.size && url.size)
        sl_js_join(script->base, source, &path);
    else
        sl_buf_str(&path, url.size ? url : source);
    bool is_named = frame->function.size || position->kind != SL_JS_FUNCTION_UNKNOWN || position->inlined;
    if (is_named)
        frame->function = escaped(s, frame, &function, 0);
    bool has_drive = url.size > 1 && url.data[1] == ':' && path.size > 2 && path.data[0] == '/' && path.data[2] == ':';
    frame->url = escaped(s, frame, &path, has_drive); /* "/C:/a" */
    frame->line = position->line + 1;
    frame->column = position->column + 1;
    stack_frame->is_hidden = position->is_hidden;
    sl_buf_free(&function);
    return frame->url.data && (!is_named || frame->function.data);
}

/* Whether the text ends with a line end, so that another line can follow it. */
static bool ends_line(struct sl_str text)
{
    return sl_str_ends(text, SL_STR("\n"));
}

/* Turns a copy of the frame into one of an inlined function: drops `async`, `new` and the text after the frame. */
static void make_inlined(struct stack_frame *frame)
{
    static const struct sl_str async = SL_STR("async "), crlf = SL_STR("\r\n");
    struct sl_js_stack_frame *text = &frame->text;
    if (sl_str_ends(text->before, async))
        text->before.size -= async.size;
    text->constructor = false;
    text->function = (struct sl_str){NULL, 0};
    text->behind = text->escapes ? SL_STR("") : sl_str_ends(text->behind, crlf) ? crlf : SL_STR("\n");
}

/* Writes the original position into the line's frame. Where calls were inlined there, adds a frame for each caller, if
 * the line can be repeated. False when out of memory. */
static bool put_positions(struct script_symbolication *s, const struct symbolicate_script *script,
                          struct sl_smcache_position position, struct sl_str caller, struct stack_line *line)
{
    const struct stack_frame as_it_was = line->frame;
    const struct sl_js_stack_frame *text = &as_it_was.text;
    struct stack_frame *frame = &line->frame;
    struct sl_str none = {NULL, 0};
    bool repeats = !text->of_eval && (text->escapes || ends_line(text->behind) || line->is_last);
    if (position.inlined && !repeats) { /* the line's name is that of the enclosing function */
        frame->text.function = none;
        return put_original_position(s, script, &position, none, frame);
    }
    for (struct sl_smcache_position outer = position; sl_smcache_caller(&script->cache, &outer); position = outer) {
        make_inlined(frame);
        frame->caller = SL_ARENA_NEW(&s->texts, struct stack_frame);
        if (!put_original_position(s, script, &position, none, frame) || !frame->caller)
            return false;
        frame = frame->caller;
        *frame = as_it_was;
    }
    return put_original_position(s, script, &position, caller, frame);
}

/* Maps the line's frame. `*caller` is the name of the token at the call site in the calling frame; it becomes the one of this frame.
 * False when out of memory. */
static bool map_frame(struct script_symbolication *s, struct stack_line *line, struct sl_str *caller)
{
    const struct sl_js_stack_frame *frame = &line->frame.text;
    struct sl_str url = plain_url(s, frame->url), before = *caller;
    const struct symbolicate_script *script = url.data ? find_script(s, url) : NULL;
    struct sl_smcache_position position;
    *caller = (struct sl_str){NULL, 0};
    if (!script)
        return false;
    uint32_t column = frame->column ? frame->column - 1 : 0;
    if (!script->mapped || !sl_smcache_lookup(&script->cache, frame->line - 1, column, &position))
        return true;
    line->is_mapped = true;
    if (!frame->of_eval)
        *caller = position.name;
    return put_positions(s, script, position, before, line);
}

/* Whether the script is built into Node.js, Deno or Bun: it has no source map, so a frame of it is not reported as missing one. */
static bool is_of_engine(struct sl_str url)
{
    return sl_str_starts(url, SL_STR("node:")) || sl_str_starts(url, SL_STR("internal/")) ||
           sl_str_starts(url, SL_STR("deno:")) || sl_str_starts(url, SL_STR("ext:")) ||
           sl_str_starts(url, SL_STR("bun:"));
}

/* Counts the frame for the report, and notes why it was not mapped. */
static void count_frame(struct script_symbolication *s, const struct stack_line *line)
{
    enum { MAX_NAMED = 1000 };
    if (line->is_mapped) {
        missing_count(s->missing, 0, 1);
        return;
    }
    struct sl_str url = plain_url(s, line->frame.text.url);
    if (is_of_engine(url))
        return;
    missing_count(s->missing, 1, 1);
    const struct symbolicate_script *script = find_script(s, url);
    if (!script)
        return;
    struct sl_buf path = {0};
    put_url_path(url, &path);
    struct sl_str name = path_file_name(sl_buf_view(&path));
    if (script->mapped)
        missing_failure(s->missing, name, SL_STR("its source map does not cover some positions"));
    else if (s->missing->things.count < MAX_NAMED)
        missing_add(s->missing, name, (struct sl_str){NULL, 0});
    sl_buf_free(&path);
}

/* Maps the frames of the lines, from the last to the first: callers follow their callees in the text, and the callee's name depends on the
 * token in the caller. False when out of memory. */
static bool map_lines(struct script_symbolication *s)
{
    struct sl_str caller = {NULL, 0};
    for (size_t i = s->line_count; i-- > 0;) {
        if (!s->lines[i].is_frame)
            caller = (struct sl_str){NULL, 0};
        else if (!map_frame(s, &s->lines[i], &caller))
            return false;
    }
    return true;
}

/* Whether the line holds nothing but the frame. */
static bool is_alone(const struct sl_js_stack_frame *frame)
{
    struct sl_str before = frame->before;
    if (frame->escapes && before.size) { /* after an escaped `\n` */
        const char *newline = memchr(before.data, 'n', before.size);
        size_t skipped = newline ? (size_t)(newline + 1 - before.data) : 0;
        before = (struct sl_str){before.data + skipped, before.size - skipped};
    }
    before = sl_str_trimmed(before);
    return !sl_str_trimmed(frame->behind).size &&
           (!before.size || sl_str_equal(before, SL_STR("at")) || sl_str_equal(before, SL_STR("at async")));
}

/* Whether both frames are in the same function of the same file. */
static bool is_same_function(const struct sl_js_stack_frame *a, const struct sl_js_stack_frame *b)
{
    return sl_str_equal(a->function, b->function) && sl_str_equal(a->url, b->url);
}

/* Writes the frames of a line. A hidden frame is left out if its caller's frame follows; when both are of the same function (an outlined
 * part of it), the caller's frame gets the position of the hidden one. */
static void write_stack_line(struct stack_line *line, struct stack_line *next, struct sl_buf *out)
{
    if (!line->is_mapped) {
        sl_buf_str(out, line->text);
        return;
    }
    for (struct stack_frame *frame = &line->frame; frame; frame = frame->caller) {
        struct stack_frame *caller = frame->caller ? frame->caller : next && next->is_mapped ? &next->frame : NULL;
        if (!frame->is_hidden || !caller || !is_alone(&frame->text)) {
            sl_js_stack_write(&frame->text, out);
        } else if (is_same_function(&frame->text, &caller->text)) {
            caller->text.line = frame->text.line;
            caller->text.column = frame->text.column;
        }
    }
}

bool scripts_put(struct script_symbolication *s, struct sl_str lines, struct sl_buf *out)
{
    s->line_count = 0;
    bool good = split_lines(s, lines) && map_lines(s);
    for (size_t i = 0; i < s->line_count && good; i++) {
        if (s->lines[i].is_frame)
            count_frame(s, &s->lines[i]);
        write_stack_line(&s->lines[i], i + 1 < s->line_count ? &s->lines[i + 1] : NULL, out);
    }
    sl_arena_free(&s->texts);
    return good && !out->failed;
}

/* Symbolicates and writes the lines. False when out of memory. */
static bool write_lines(struct script_symbolication *s, struct sl_str lines)
{
    struct sl_buf out = {0};
    bool good = scripts_put(s, lines, &out);
    struct sl_str text = sl_buf_view(&out);
    if (good && s->input)
        text = log_input_encode(s->input, text, s->file != NULL, &good);
    if (good && text.size)
        s->failed |= !(s->file ? output_file_write(s->file, text) : output_write(text));
    sl_buf_free(&out);
    return good;
}

/* ---- a stream ---- */

size_t scripts_complete_size(struct sl_str text)
{
    struct sl_js_stack_frame frame;
    const char *newline = text.size ? memrchr(text.data, '\n', text.size) : NULL;
    while (newline) {
        size_t end = (size_t)(newline + 1 - text.data);
        newline = memrchr(text.data, '\n', end - 1);
        size_t begin = newline ? (size_t)(newline + 1 - text.data) : 0;
        if (!sl_js_stack_frame((struct sl_str){text.data + begin, end - begin}, &frame))
            return end;
    }
    return 0;
}

/* Writes the held lines that are complete; when the input pauses or too much is held, all whole lines; at the end, everything. */
static bool write_held(struct script_symbolication *s, struct sl_buf *held, const struct log_input *input, bool end)
{
    const char *data = (const char *)held->data, *newline = memrchr(data, '\n', held->size);
    size_t size = end ? held->size : scripts_complete_size(sl_buf_view(held));
    if (!end && newline && (held->size - size > MAX_HELD || !log_input_waits(input, PAUSE_MS)))
        size = (size_t)(newline + 1 - data);
    else if (!end && !newline && held->size > MAX_HELD)
        size = held->size; /* too long for a frame */
    bool good = !size || write_lines(s, (struct sl_str){data, size});
    memmove(held->data, held->data + size, held->size - size);
    held->size -= size;
    if (size && !s->file && !end)
        s->failed |= !output_flush();
    return good;
}

/* Symbolicates a log while it is read. Returns a status. */
static int stream_file(struct script_symbolication *s, const char *path)
{
    struct log_input input;
    struct sl_buf held = {0};
    const char *problem = NULL;
    bool good = true;
    if (!log_input_open(&input, path))
        return report_error(1, path, strerror(errno));
    s->input = &input;
    for (bool end = false; good && !end && !s->failed;) {
        good = sl_buf_reserve(&held, BLOCK);
        size_t n = good ? log_input_read(&input, held.data + held.size, BLOCK, &problem) : 0;
        held.size += n;
        end = n == 0;
        good = good && (!held.size || write_held(s, &held, &input, end));
    }
    sl_buf_free(&held);
    s->input = NULL;
    log_input_end(&input);
    if (!good)
        return report_no_memory();
    return problem ? report_error(1, path, problem) : 0;
}

const struct missing_words missing_maps = {
    .wanted = "source map",
    .unit = "frames",
    .counts_found = true,
    .advice = "pass --symbols with the scripts and source maps of the same build",
};

static void scripts_end(struct script_symbolication *s)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&s->by_url, e));)
        if (e->value)
            sl_buf_free(&((struct symbolicate_script *)e->value)->table);
    sl_map_free(&s->by_url);
    sl_map_free(&s->by_name);
    free(s->same_name);
    free(s->lines);
    free(s->files);
    sl_arena_free(&s->texts);
    sl_arena_free(&s->arena);
}

/* Lists and indexes the scripts and source maps at or below the paths. False when out of memory. */
static bool scripts_begin(struct script_symbolication *s, const char *const *paths, size_t path_count)
{
    bool good = true;
    for (size_t i = 0; i < path_count; i++)
        good = good && find_scripts(s, paths[i]);
    good = good && index_files(s);
    for (size_t i = 0; i < path_count; i++)
        missing_add_location(s->missing, sl_str(paths[i]));
    return good;
}

struct script_symbolication *scripts_open(const char *const *paths, size_t path_count, struct missing_report *missing)
{
    struct script_symbolication *s = calloc(1, sizeof *s);
    if (s)
        s->missing = missing;
    if (s && scripts_begin(s, paths, path_count))
        return s;
    scripts_close(s);
    return NULL;
}

void scripts_close(struct script_symbolication *s)
{
    if (s)
        scripts_end(s);
    free(s);
}

int symbolicate_scripts(const char *path, const struct sl_str *stack, const char *const *paths, size_t path_count,
                        const char *output, struct missing_report *missing)
{
    struct script_symbolication s = {.missing = missing};
    struct output_file file;
    struct sl_error error = {0};
    int status = scripts_begin(&s, paths, path_count) ? 0 : report_no_memory();
    if (!status && output && output_file_open(&file, output, &error) == SL_OK)
        s.file = &file;
    else if (!status && output)
        status = report_error(1, output, error.message);
    if (!status && !stack)
        status = stream_file(&s, path);
    else if (!status && !write_lines(&s, *stack))
        status = report_no_memory();
    if (s.file && output_file_close(&file, status == 0, &error) != SL_OK && !status)
        status = report_error(1, output, error.message);
    scripts_end(&s);
    return status;
}
