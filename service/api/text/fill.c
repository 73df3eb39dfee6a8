/* Splits a text with stack traces into pieces (frames and what is between), groups frames to stacks, makes the look-up of native frames. */
#include "api/text/work.h"

#include "base/grow.h"
#include "base/json_write.h"
#include "base/map.h"
#include "crash/crash.h"

enum { MAX_LINES = 200000, MAX_FRAMES = 50000 };

/* Module index of a frame that has no module: native_prepare does not search one by the address, as it would with NATIVE_NO_MODULE. No
 * module has this index. */
#define NO_SUCH_MODULE (NATIVE_NO_MODULE - 1)

/* ---- pieces and stacks ---- */

struct text_filling {
    struct text_work *work;
    struct sl_arena *arena;
    const char *line;  /* the current line */
    const char *plain; /* since the last frame: the first line that belongs to no stack; NULL: there is none */
    bool is_apart;     /* since the last frame there was a line that ends its stack */
};

/* Marks the last frame as one whose caller is not the next frame, as something stands between the two. */
static void set_apart(const struct text_filling *f)
{
    if (f->work->item_count)
        f->work->items[f->work->item_count - 1].is_apart = true;
}

/* True for lines that say what happened, such as "ERROR: ...": titles of the stack below, even if other lines follow before the frames. */
static bool is_headline(struct sl_str line)
{
    static const struct sl_str words[] = {SL_STR("ERROR: "), SL_STR("received signal "),
                                          SL_STR("terminated with signal ")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(line.data, line.size, words[i].data, words[i].size))
            return true;
    return sl_str_starts(line, SL_STR("signal ")) || sl_str_starts(line, SL_STR("TID ")) ||
           sl_str_starts(line, SL_STR("Thread "));
}

/* True for a line without a frame that may stand among the frames of a stack and does not end it: "... 3 more",
 * "at Array.map (<anonymous>)", or a numbered frame in an unknown form, "#3 ...". */
static bool is_inside(struct sl_str line)
{
    struct sl_str trimmed = sl_str_trimmed(line);
    const char *at = trimmed.size ? memmem(trimmed.data, trimmed.size, "at ", 3) : NULL;
    bool call = at && (at == trimmed.data || sl_is_blank(at[-1])) &&
                memchr(at, '(', (size_t)(trimmed.data + trimmed.size - at));
    return call || sl_str_starts(trimmed, SL_STR("... ")) || sl_str_starts(trimmed, SL_STR("#"));
}

/* Handles a line without frames. If it may stand among frames (is_inside), it extends the last stack. The first line that may not ends the
 * last stack (is_apart); the title of the next stack is searched from there on (f->plain). Further lines up to the next frame change
 * nothing. */
static void note_plain_line(struct text_filling *f, struct sl_str line)
{
    /* with is_apart the stack has ended already, so the line is treated like an empty one */
    struct sl_str trimmed = f->is_apart ? (struct sl_str){NULL, 0} : sl_str_trimmed(line);
    if (!trimmed.size || sl_text_is_in_report(f->work->reader)) /* lines of Apple's JSON reports are no titles */
        return;
    bool inside = is_inside(trimmed);
    if (inside && f->work->stack_count) {
        f->work->stacks[f->work->stack_count - 1].end = line.data + line.size;
        return;
    }
    f->plain = f->plain ? f->plain : line.data;
    f->is_apart = !inside;
}

/* Returns the title of a stack, from the lines between `begin` and its first frame at `end`: the last line that says what happened
 * (is_headline), or else the last one. Empty lines and lines that may stand among frames (is_inside) do not count. Empty if there is
 * none. */
static struct sl_str find_title(const char *begin, const char *end)
{
    struct sl_str rest = {begin, begin ? (size_t)(end - begin) : 0}, line, title = {NULL, 0};
    bool has_headline = false;
    while (rest.size && sl_str_next_line(&rest, &line)) {
        struct sl_str trimmed = sl_str_trimmed(line);
        bool headline = trimmed.size && is_headline(trimmed);
        if (!trimmed.size || (has_headline && !headline) || is_inside(trimmed))
            continue;
        title = trimmed;
        has_headline = headline;
    }
    return title;
}

static bool is_frame(const struct sl_text_piece *piece)
{
    return piece->kind == SL_TEXT_NATIVE || piece->kind == SL_TEXT_SCRIPT || piece->kind == SL_TEXT_JAVA;
}

/* Begins a stack if the frame cannot belong to the last one: it is the first frame of a native stack, is of another kind (native, script,
 * JVM) than the last stack, or there was a line that ended that. False when out of memory. */
static bool begin_stack_if_needed(struct text_filling *f, const struct sl_text_piece *piece)
{
    struct text_work *work = f->work;
    const struct text_stack *last = work->stack_count ? &work->stacks[work->stack_count - 1] : NULL;
    bool first = piece->kind == SL_TEXT_NATIVE && piece->native.is_first;
    if (last && !first && !f->is_apart && work->items[last->first].piece.kind == piece->kind)
        return true;
    if (!sl_grow_in_arena(f->arena, &work->stacks, &work->stack_capacity, work->stack_count + 1, sizeof *work->stacks))
        return false;
    work->stacks[work->stack_count++] =
        (struct text_stack){.first = work->item_count, .title = find_title(f->plain, f->line), .begin = f->plain};
    return true;
}

/* Stores a piece of the text that is a frame or replaces markup; a frame also becomes the last one of its stack. `source` is the piece as
 * it stands in the text. False when out of memory. */
static bool add_item(struct text_filling *f, const struct sl_text_piece *piece, struct sl_str source)
{
    struct text_work *work = f->work;
    if (is_frame(piece) && !begin_stack_if_needed(f, piece))
        return false;
    if (!sl_grow_in_arena(f->arena, &work->items, &work->item_capacity, work->item_count + 1, sizeof *work->items))
        return false;
    struct text_item *item = &work->items[work->item_count++];
    *item = (struct text_item){.piece = *piece, .source = source};
    if (!is_frame(piece))
        return true;
    item->stack = (uint32_t)work->stack_count - 1;
    item->frame = (uint32_t)work->stacks[item->stack].count++;
    work->js_frames += piece->kind == SL_TEXT_SCRIPT;
    work->jvm_frames += piece->kind == SL_TEXT_JAVA;
    work->stacks[item->stack].end = source.data + source.size;
    f->plain = NULL;
    f->is_apart = false;
    return true;
}

/* True for "at eval (eval at f (c.js:1:23), ...": the position is where f called `eval`, not where it called the function of the frame
 * before, which the code inside `eval` called. */
static bool is_of_eval(const struct sl_text_piece *piece)
{
    return piece->kind == SL_TEXT_SCRIPT && piece->js.of_eval;
}

/* True if the piece of the text is to be written in another way, and so stored: text that replaces markup, or a frame of a format that the
 * request wants. All else is copied as it is. Of a command's text, frames of scripts and the JVM are copied if the command has no files for
 * them. If the answer is text, those of the JVM are copied here too: they are rewritten line by line when the text is written
 * (local_text.trace). */
static bool is_wanted(const struct text_work *work, const struct sl_text_piece *piece)
{
    const struct local_text *local = work->local;
    bool is_copied = local && ((piece->kind == SL_TEXT_SCRIPT && !local->files) ||
                               (piece->kind == SL_TEXT_JAVA && (work->wants_text || !local->files)));
    /* work->only: the one format that the request wants; SL_TEXT_PLAIN: it wants all */
    return piece->kind == SL_TEXT_MADE ||
           (piece->kind != SL_TEXT_COPY && !is_copied && (work->only == SL_TEXT_PLAIN || work->only == piece->format));
}

/* Splits a line into frames and the text between them, and stores what is to be written in another way (is_wanted). False when out of
 * memory. */
static bool read_line(struct text_filling *f, struct sl_str line)
{
    struct sl_text_piece piece;
    struct sl_str rest = line;
    const char *begin = line.data;
    bool plain = true;
    f->line = line.data;
    while (sl_text_next(f->work->reader, &rest, &piece)) {
        if (!is_wanted(f->work, &piece) || is_of_eval(&piece))
            set_apart(f); /* so the next frame does not count as the caller of the last one */
        if (is_wanted(f->work, &piece)) {
            plain = false;
            if (!add_item(f, &piece, (struct sl_str){begin, (size_t)(rest.data - begin)}))
                return false;
        }
        begin = rest.data;
    }
    if (plain)
        note_plain_line(f, line);
    return !f->work->reader->out_of_memory;
}

/* Reads the text, and stores the frames and other pieces that are to be written in another way. Lines beyond MAX_LINES and frames beyond
 * MAX_FRAMES are copied as they are. A command's text has no such limits, as commands pass a long text in several parts. False when out of
 * memory. */
static bool read_pieces(struct text_work *work, struct sl_arena *arena)
{
    struct text_filling f = {.work = work, .arena = arena};
    struct sl_str text = work->parts[TEXT_TEXT], line;
    /* frame_count: the frames that the reader has read so far */
    work->reader->max_frames = work->local ? UINT64_MAX : work->reader->frame_count + MAX_FRAMES;
    sl_text_part(work->reader); /* tells the reader that a new part of the text begins */
    for (size_t lines = 0; (work->local || lines < MAX_LINES) && sl_text_next_line(&text, &line); lines++)
        if (!read_line(&f, line))
            return false;
    return true;
}

/* ---- modules ---- */

/* Guesses the type of a module by the suffix of its name; the default is ELF. */
static enum object_type type_of(struct sl_str name)
{
    static const struct {
        struct sl_str end;
        enum object_type type;
    } types[] = {{SL_STR(".dll"), OBJECT_PE},
                 {SL_STR(".exe"), OBJECT_PE},
                 {SL_STR(".pdb"), OBJECT_PE},
                 {SL_STR(".dylib"), OBJECT_MACHO},
                 {SL_STR(".wasm"), OBJECT_WASM}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (name.size > types[i].end.size &&
            sl_str_equal_nocase((struct sl_str){name.data + name.size - types[i].end.size, types[i].end.size},
                                types[i].end))
            return types[i].type;
    return OBJECT_ELF;
}

/* Sets the ids of a module from hex digits: those of a Mach-O or PE file are its debug id, those of any other its build id, from which its
 * debug id is made too. The module stays without ids if `hex` is empty or invalid. False when out of memory. */
static bool set_ids(struct object_id *id, struct sl_str hex, struct sl_arena *arena)
{
    uint8_t bytes[64]; /* the debug id only needs the first 16 */
    size_t count = 0;
    if (!hex.size)
        return true;
    if (id->type == OBJECT_MACHO || id->type == OBJECT_PE) {
        id->has_debug_id = sl_debug_id_parse(hex, &id->debug_id);
        return true;
    }
    for (size_t i = 0; i + 1 < hex.size && count < sizeof bytes; i += 2) {
        int high = sl_hex_digit(hex.data[i]), low = sl_hex_digit(hex.data[i + 1]);
        if (high < 0 || low < 0)
            return true;
        bytes[count++] = (uint8_t)(high << 4 | low);
    }
    id->has_debug_id = true;
    id->code_id = sl_code_id_normalise(arena, hex);
    id->debug_id = sl_debug_id_from_build_id((struct sl_bytes){bytes, count}, false); /* false: little-endian */
    return id->code_id.data != NULL;
}

struct module_filling { /* the values of the maps are an index + 1, or SIZE_MAX if the key is ambiguous */
    struct text_work *work;
    struct sl_map by_id, by_name; /* modules of the form, by code id and by file name: index in native.modules */
    struct sl_map ids_by_name;    /* modules of the text that have an id, by file name: index in reader->modules */
};

/* Adds the index of a module under a key, unless the key is empty. The map has index + 1, as NULL stands for an absent key. If the key has
 * an index already, the new one replaces it if `replace`, else the key becomes ambiguous (SIZE_MAX). False when out of memory. */
static bool add_key(struct sl_map *map, struct sl_str key, size_t index, bool replace)
{
    bool made;
    void **slot = key.size ? sl_map_find_or_add(map, key, &made) : NULL;
    if (!key.size)
        return true;
    if (slot)
        *slot = (void *)(uintptr_t)(made || replace ? index + 1 : SIZE_MAX);
    return slot != NULL;
}

/* Returns the index under a key; SIZE_MAX if there is none or the key is ambiguous. */
static size_t find_key(const struct sl_map *map, struct sl_str key)
{
    size_t index = key.size ? (uintptr_t)sl_map_get(map, key) : 0;
    return index && index != SIZE_MAX ? index - 1 : SIZE_MAX;
}

/* Indexes the modules of the form's part `modules` by code id and by file name; those modules of the text that have an id, by file name
 * (up to first_mapped: map_sent has added the ones behind). Of several with the same code id the last one counts. A file name of several
 * modules is ambiguous, unless the request wants the newest, or they are of the text and have the same id. False when out of memory. */
static bool index_modules(struct module_filling *m)
{
    struct native_request *native = &m->work->native;
    for (size_t i = 0; i < m->work->sent_count; i++) {
        const struct object_id *id = native->modules[i].id;
        struct sl_str name = sl_crash_file_name(id->code_file.size ? id->code_file : id->debug_file);
        if (!add_key(&m->by_id, id->code_id, i, true) || !add_key(&m->by_name, name, i, m->work->guess == GUESS_NEWEST))
            return false;
    }
    for (size_t i = 0; i < m->work->first_mapped; i++) {
        const struct sl_text_module *module = &m->work->reader->modules[i];
        size_t other = module->id.size ? find_key(&m->ids_by_name, sl_crash_file_name(module->name)) : SIZE_MAX;
        bool same = other != SIZE_MAX && sl_str_equal(m->work->reader->modules[other].id, module->id);
        if (module->id.size && !same &&
            !add_key(&m->ids_by_name, sl_crash_file_name(module->name), i, m->work->guess == GUESS_NEWEST))
            return false;
    }
    return true;
}

/* Returns the module from which a module of the text takes its id. A module without an id takes it from the only module of the text that
 * has the same file name and an id. If there is no such module, or the module has an id, returns the module itself. */
static const struct sl_text_module *module_with_id(const struct module_filling *m, const struct sl_text_module *module)
{
    size_t same = module->id.size ? SIZE_MAX : find_key(&m->ids_by_name, sl_crash_file_name(module->name));
    return same == SIZE_MAX ? module : &m->work->reader->modules[same];
}

/* Adds module number `index` of the text to the modules to look up, with the id of the module `with_id` (see module_with_id). If that
 * has none, asks the command for the id, by the module's name. If the command does not know it either, adds the module to the list
 * `unknown`, whose ids text_guess_ids searches later. False when out of memory. */
static bool add_module(struct module_filling *m, size_t index, const struct sl_text_module *with_id)
{
    static const struct native_upload no_upload;
    struct text_work *work = m->work;
    struct native_request *native = &work->native;
    struct sl_str name = work->reader->modules[index].name, hex = with_id->id;
    struct object_id *id = SL_ARENA_NEW(native->arena, struct object_id);
    if (!id)
        return false;
    id->type = with_id->is_macho ? OBJECT_MACHO : type_of(name);
    bool good = set_ids(id, hex, native->arena);
    bool guessed = !hex.size && text_find_id(work, name, id);
    id->code_file = name;
    id->debug_file = sl_crash_file_name(name);
    if (!hex.size && !guessed)
        work->unknown[work->unknown_count++] = (struct text_unknown){id, (uint32_t)native->module_count};
    work->module_of[index] = (uint32_t)native->module_count;
    native->modules[native->module_count++] =
        (struct native_module){.id = id, .upload = &no_upload, .guessed = guessed};
    return good;
}

/* Sets module_of for module number `index` of the text: to the module of the form's part `modules` with the same code id or, without an id
 * in the text, with the same file name; if there is none, to a new module. False when out of memory. */
static bool fill_module(struct module_filling *m, size_t index)
{
    const struct sl_text_module *module = &m->work->reader->modules[index];
    const struct sl_text_module *with_id = module_with_id(m, module);
    struct sl_str id = with_id->id;
    struct sl_str code_id = id.size ? sl_code_id_normalise(m->work->native.arena, id) : SL_STR("");
    size_t sent = id.size ? find_key(&m->by_id, code_id) : SIZE_MAX;
    if (!code_id.data) /* out of memory */
        return false;
    if (sent == SIZE_MAX && !id.size)
        sent = find_key(&m->by_name, sl_crash_file_name(module->name));
    if (sent == SIZE_MAX)
        return add_module(m, index, with_id);
    m->work->module_of[index] = (uint32_t)sent;
    return true;
}

/* Tells the reader of the text at which addresses the modules of the form's part `modules` were loaded, so that it finds them for absolute
 * addresses of frames. False when out of memory. */
static bool map_sent(struct text_work *work)
{
    struct native_request *native = &work->native;
    work->sent_count = native->module_count;
    work->first_mapped = work->reader->module_count;
    /* sorting fills in sizes that were not sent; native_prepare sorts again, when the modules of the text are added */
    if (!native_sort_modules(native))
        return false;
    for (size_t i = 0; i < native->module_count; i++) {
        const struct native_module *module = &native->modules[i];
        if (!sl_text_map_module(work->reader, module->image_address, module->image_size))
            return false;
    }
    return true;
}

/* Makes the list of modules to look up: those of the form's part `modules`, then those of the text. False when out of memory. */
static bool fill_modules(struct text_work *work)
{
    struct module_filling m = {.work = work};
    struct native_request *native = &work->native;
    if (!map_sent(work))
        return false;
    size_t most = native->module_count + work->reader->module_count + 1; /* + 1: never an empty array */
    struct native_module *all = SL_ARENA_ARRAY(native->arena, struct native_module, most);
    work->module_of = SL_ARENA_ARRAY(native->arena, uint32_t, work->reader->module_count + 1);
    work->unknown = SL_ARENA_ARRAY(native->arena, struct text_unknown, most);
    if (!all || !work->module_of || !work->unknown)
        return false;
    if (native->module_count)
        memcpy(all, native->modules, native->module_count * sizeof *all);
    native->modules = all;
    bool good = index_modules(&m);
    for (size_t i = 0; good && i < work->first_mapped; i++)
        good = fill_module(&m, i);
    /* the modules that map_sent has added to the reader: one for each of the form's part `modules`, in the same order */
    for (size_t i = work->first_mapped; i < work->reader->module_count; i++)
        work->module_of[i] = (uint32_t)(i - work->first_mapped);
    sl_map_free(&m.by_id);
    sl_map_free(&m.by_name);
    sl_map_free(&m.ids_by_name);
    return good;
}

/* ---- frames of native code ---- */

/* Makes the frame to look up from one that has function, file and line in the text already: with NO_SUCH_MODULE it is not looked up, and
 * the answer has the names of the text. False when out of memory. */
static bool fill_named_frame(const struct text_work *work, const struct sl_text_frame *text, struct native_frame *frame)
{
    struct sl_str *texts = SL_ARENA_ARRAY(work->native.arena, struct sl_str, 3);
    /* is_exact: the address stays as it is; 1 is not subtracted as from a return address */
    *frame = (struct native_frame){.address = text->absolute, .module = NO_SUCH_MODULE, .is_exact = true};
    frame->texts = texts;
    if (!texts)
        return false;
    frame->has_text = 1 << SENT_FUNCTION; /* `texts` has those of the bits that are set, lowest bit first */
    texts[0] = text->symbol;
    if (!text->path.size)
        return true;
    frame->has_text |= 1 << SENT_FILENAME | 1 << SENT_ABS_PATH;
    texts[1] = sl_crash_file_name(text->path);
    texts[2] = text->path;
    frame->line = text->line;
    frame->has_line = text->line > 0;
    return true;
}

/* Makes the frame that native_run looks up. If the module is known, the address is relative to it, and 1 is subtracted from a return
 * address here, so that it lies in the call (`is_exact`: native_run must not do so too). Else it stays absolute, and native_run subtracts
 * (`adjust`). A frame given as symbol and offset gets its address in text_locate, when the symbol is found. False when out of memory. */
static bool fill_frame(struct text_work *work, struct sl_text_frame *text, struct native_frame *frame)
{
    if (text->is_named)
        return fill_named_frame(work, text, frame);
    sl_text_resolve(work->reader, text);
    work->native.wants_columns |= text->format == SL_TEXT_MARKUP; /* others are written without columns */
    bool has_module = text->base != SL_TEXT_ABSOLUTE && text->module != SL_TEXT_NO_MODULE;
    uint32_t module = has_module ? work->module_of[text->module] : NATIVE_NO_MODULE;
    bool of_symbol = text->base == SL_TEXT_OF_SYMBOL; /* given as symbol and offset */
    *frame = (struct native_frame){
        .address =
            of_symbol ? text->absolute : text->address - (has_module && text->is_return && text->address ? 1 : 0),
        /* not NATIVE_NO_MODULE: native_prepare would search a module by the address */
        .module = module == NATIVE_NO_MODULE ? NO_SUCH_MODULE : module,
        .of_file = text->base == SL_TEXT_OF_FILE, /* an address as linked in the file */
        .undefined = of_symbol,                   /* no address in the module, until text_locate finds the symbol */
        .is_exact = has_module || !text->is_return,
        .adjust = !has_module && text->is_return ? SL_BOOL_TRUE : SL_BOOL_ABSENT,
    };
    if (of_symbol && has_module)
        work->native.locate = text_locate;
    if (!text->symbol.size)
        return true;
    struct sl_str *symbol = SL_ARENA_NEW(work->native.arena, struct sl_str);
    if (symbol)
        *symbol = text->symbol;
    frame->texts = symbol; /* the answer shows the symbol of the text if none is found */
    frame->has_text = 1 << SENT_FUNCTION;
    return symbol != NULL;
}

/* Makes a trace for native_run of each native stack, and prepares that request. Of stacks of scripts and of the JVM it only sets `trace`,
 * the index that the stack's trace will have in the request to the API for scripts or the JVM. False when out of memory. */
static bool fill_traces(struct text_work *work)
{
    struct native_request *native = &work->native;
    struct native_frame *frames = SL_ARENA_ARRAY(native->arena, struct native_frame, work->item_count + 1);
    native->traces = SL_ARENA_ARRAY(native->arena, struct native_trace, work->stack_count + 1);
    uint32_t others[2] = {0, 0}; /* traces of scripts and of the JVM so far */
    if (!frames || !native->traces)
        return false;
    native->trace_count = native->frame_count = 0;
    for (size_t i = 0; i < work->item_count; i++) {
        struct text_item *item = &work->items[i];
        struct text_stack *stack = &work->stacks[item->stack];
        if (!is_frame(&item->piece))
            continue;
        bool is_native = item->piece.kind == SL_TEXT_NATIVE;
        if (!item->frame && !is_native) /* number 0: the first frame of its stack */
            stack->trace = others[item->piece.kind == SL_TEXT_JAVA]++;
        if (!is_native)
            continue;
        if (!item->frame) {
            stack->trace = (uint32_t)native->trace_count++;
            native->traces[stack->trace] = (struct native_trace){.frames = &frames[native->frame_count]};
        }
        if (!fill_frame(work, &item->piece.native, &frames[native->frame_count++]))
            return false;
        native->traces[stack->trace].frame_count++;
    }
    if (!native_prepare(native))
        return false;
    /* NO_SUCH_MODULE was for native_prepare only: other code does not know it */
    for (size_t i = 0; i < native->frame_count; i++)
        if (frames[i].module == NO_SUCH_MODULE)
            frames[i].module = NATIVE_NO_MODULE;
    return true;
}

/* ---- the parts of the form ---- */

enum text_module_list { LIST_NATIVE, LIST_JS, LIST_JVM, MODULE_LISTS };

/* Returns the list to which an element of the form's part `modules` belongs, by its member "type". Any type but "sourcemap", "proguard" and
 * "source" is one of native code; so is an element that is no object, which is refused later. `element` is a copy of the part's reader,
 * which stays before the element. */
static enum text_module_list list_of(struct sl_json element)
{
    enum text_module_list list = LIST_NATIVE;
    struct sl_str key, type;
    if (!sl_json_object(&element))
        return list;
    while (sl_json_next(&element, &key)) {
        bool is_type = sl_str_equal(key, SL_STR("type")) && sl_json_peek(&element) == SL_JSON_STRING;
        if (!is_type)
            sl_json_skip(&element);
        else if (!sl_json_string(&element, &type))
            break; /* malformed, which is refused when the element itself is read, or out of memory */
        else if (sl_str_equal(type, SL_STR("sourcemap")))
            list = LIST_JS;
        else if (sl_str_equal(type, SL_STR("proguard")) || sl_str_equal(type, SL_STR("source")))
            list = LIST_JVM;
    }
    return list;
}

/* Splits the JSON array in the form's part `modules` into three JSON arrays: modules of native code, source maps, and mappings and sources
 * of the JVM. An array without elements stays an empty text. False if the part is not one valid array. */
static bool sort_modules(struct sl_str part, struct sl_arena *arena, struct sl_buf lists[MODULE_LISTS])
{
    struct sl_json j = sl_json(part, arena, false); /* false: strict JSON, without comments */
    struct sl_str key, value;
    if (!sl_json_array(&j))
        return false;
    while (sl_json_next(&j, &key)) {
        sl_json_peek(&j); /* moves to the value */
        struct sl_buf *list = &lists[list_of(j)];
        if (!sl_json_value(&j, &value))
            return false;
        sl_buf_u8(list, list->size ? ',' : '[');
        sl_buf_str(list, value);
    }
    for (int i = 0; i < MODULE_LISTS; i++)
        if (lists[i].size)
            sl_buf_u8(&lists[i], ']');
    return sl_json_end(&j);
}

/* Reads the parts for native code (modules, sources, options, scraping): joins them to a body of POST /symbolicate without stacks, and
 * lets native_read read that. Modules of scripts and of the JVM are kept as lists for requests.c, which also reads the part `source`.
 * False: `failure` is set; "out of memory" is what it said before the call. */
static bool read_parts(struct job *job, struct text_work *work, struct json_failure *failure)
{
    struct sl_buf lists[MODULE_LISTS] = {{0}, {0}, {0}}, body = {0}; /* modules of native code, scripts, the JVM */
    struct sl_json_writer w = sl_json_writer(&body);
    bool good = !work->parts[TEXT_MODULES].data || sort_modules(work->parts[TEXT_MODULES], &job->arena, lists);
    if (!good)
        *failure = (struct json_failure){400, "the part `modules` is not a JSON array of modules"};
    sl_json_begin_object(&w);
    if (lists[0].size)
        sl_json_member_raw(&w, "modules", sl_buf_view(&lists[0]));
    text_put_part(&w, "sources", work->parts[TEXT_SOURCES]);
    text_put_part(&w, "options", work->parts[TEXT_OPTIONS]);
    text_put_part(&w, "scraping", work->parts[TEXT_SCRAPING]);
    sl_json_member_raw(&w, "stacktraces", SL_STR("[]"));
    sl_json_end_object(&w);
    work->js_modules = sl_buf_move_to_arena(&lists[1], &job->arena);
    work->jvm_modules = sl_buf_move_to_arena(&lists[2], &job->arena);
    sl_buf_free(&lists[0]);
    struct sl_str json = sl_buf_move_to_arena(&body, &job->arena);
    good = good && json.data && native_read(&work->native, json, job->config, failure);
    if (!good)
        return false;
    if (work->wants_text) /* the text has no place for source lines */
        work->native.options.apply_source_context = SL_BOOL_FALSE;
    work->native.options.caller_first = false; /* stacks in texts begin with the callee */
    *failure = json_no_memory;                 /* the only failure from here on */
    work->native.files = work->files.items;
    work->native.file_count = work->files.count;
    return native_add_configured(&work->native, job->config); /* does so only if `options` ask for that */
}

bool text_fill(struct job *job, struct text_work *work, struct json_failure *failure)
{
    if (!read_parts(job, work, failure))
        return false;
    *failure = json_no_memory; /* the only failure from here on */
    return read_pieces(work, &job->arena) && fill_modules(work) && fill_traces(work);
}
