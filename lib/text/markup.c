/* LLVM's Symbolizer Markup Format (llvm.org/docs/SymbolizerMarkupFormat.html), written as `llvm-symbolizer --filter-markup` writes
 * it. Elements:
 *
 *     {{{reset}}}                             all modules are gone
 *     {{{module:0:libc.so:elf:ab12}}}         module number, name, type, build id
 *     {{{mmap:0x1000:0x2000:load:0:rx:0x0}}}  address, size, type, module number, flags, address in the module
 *     {{{bt:1:0x1010:ra}}}                    frame of a stack: number, address, `ra` (return address) or `pc`
 *     {{{pc:0x1010}}}, {{{data:0x1010}}}      an address
 *     {{{symbol:_Z1fv}}}                      a mangled name
 *
 * The first three are contextual. A line with `module` and the lines with its `mmap` elements that follow become one line,
 * "[[[ELF module #0x0 "libc.so"; BuildID=ab12 [0x1000-0x2fff](rx)]]]"; what follows a contextual element in its line is dropped. */
#include "text/impl.h"

/* MAX_PENDING: bytes of a line about a module, after which another is begun. MAX_NUMBERS: module numbers that are remembered. */
enum { MAX_FIELDS = 8, MAX_PENDING = 64 * 1024, MAX_NUMBERS = 100000 };

struct element {
    struct sl_str whole;              /* with braces */
    struct sl_str fields[MAX_FIELDS]; /* between braces and colons; the first is the tag */
    unsigned count;
};

/* Finds the first element in the text and splits it into fields; those beyond MAX_FIELDS are ignored. False if there is none. */
static bool find_element(struct sl_str text, struct element *e)
{
    const char *open = text.size ? memmem(text.data, text.size, "{{{", 3) : NULL, *end = text.data + text.size;
    const char *close = open ? memmem(open + 3, (size_t)(end - open - 3), "}}}", 3) : NULL;
    if (!close)
        return false;
    *e = (struct element){.whole = sl_scan_between(open, close + 3)};
    for (const char *at = open + 3; e->count < MAX_FIELDS; at++) {
        const char *colon = memchr(at, ':', (size_t)(close - at));
        e->fields[e->count++] = sl_scan_between(at, colon ? colon : close);
        if (!colon)
            break;
        at = colon;
    }
    return true;
}

/* True if the element has this tag and at least `fields` fields, of which the tag is the first. */
static bool is_tag(const struct element *e, struct sl_str tag, unsigned fields)
{
    return sl_str_equal(e->fields[0], tag) && e->count >= fields;
}

/* Reads "0x1010", or decimal digits. */
static bool read_number(struct sl_str text, uint64_t *value)
{
    struct sl_scan s = sl_scan(text);
    return (sl_scan_0x(&s, value) && s.at == s.end) || sl_parse_u64(text, value);
}

/* ---- contextual elements ---- */

/* Returns the index in t->modules of the module to which the markup gave this number; SL_TEXT_NO_MODULE if there is none. */
static uint32_t module_numbered(const struct sl_text *t, uint64_t number)
{
    size_t index = (uintptr_t)sl_map_get(&t->by_number, (struct sl_str){(const char *)&number, sizeof number});
    return index ? (uint32_t)index - 1 : SL_TEXT_NO_MODULE;
}

/* Remembers which module has this number in the markup. Once MAX_NUMBERS numbers are known, further ones are ignored. */
static void number_module(struct sl_text *t, uint64_t number, uint32_t module)
{
    if (t->number_count++ >= MAX_NUMBERS)
        return;
    /* the map stores one more than the module's index, as 0 means that there is none */
    const char *copy = sl_arena_strndup(&t->numbers, (const char *)&number, sizeof number);
    if (!copy || !sl_map_put(&t->by_number, (struct sl_str){copy, sizeof number}, (void *)(uintptr_t)(module + 1)))
        t->out_of_memory = true;
}

/* Begins, in t->pending, the line that replaces the elements about a module; `before` is the text in front of the first. The line stays
 * open, as mappings of the module that follow are added to it. */
static void begin_module_line(struct sl_text *t, const struct sl_text_module *m, struct sl_str before)
{
    sl_buf_str(&t->pending, before);
    sl_buf_cstr(&t->pending, "[[[ELF module #0x");
    sl_buf_number_hex(&t->pending, m->markup_id - 1, ' '); /* stored plus 1, as 0 means that it has no number */
    sl_buf_u8(&t->pending, '"');
    sl_buf_str(&t->pending, m->name);
    sl_buf_cstr(&t->pending, "\"; ");
    t->in_module_line = true;
}

struct sl_str sl_text_end_module_line(struct sl_text *t)
{
    if (!t->in_module_line)
        return (struct sl_str){NULL, 0};
    sl_buf_cstr(&t->pending, "]]]\n");
    t->out_of_memory |= t->pending.failed;
    struct sl_str view = sl_buf_view(&t->pending);
    const char *copy = sl_arena_strndup(&t->made, view.data, view.size);
    t->in_module_line = false;
    t->out_of_memory |= !copy;
    view.data = copy;
    view.size = copy ? view.size : 0;
    sl_buf_clear(&t->pending);
    return view;
}

/* Reads {{{module:NUMBER:NAME:elf:BUILD_ID}}}, and begins the line that replaces it. `before` is the text in front of the element; `*made`
 * becomes the finished line about the last module, if one was open. False for other elements. */
static bool read_module(struct sl_text *t, const struct element *e, struct sl_str before, struct sl_str *made)
{
    uint64_t number;
    /* at least 5 fields with the tag; the number is stored plus 1 in 32 bits */
    if (!is_tag(e, SL_STR("module"), 5) || !read_number(e->fields[1], &number) || number >= UINT32_MAX - 1 ||
        !sl_str_equal(e->fields[3], SL_STR("elf")))
        return false;
    uint32_t index = sl_text_module(t, e->fields[2], e->fields[4]);
    if (index == SL_TEXT_NO_MODULE)
        return false;
    *made = sl_text_end_module_line(t);
    struct sl_text_module *m = &t->modules[index];
    m->markup_id = (uint32_t)number + 1;
    if (module_numbered(t, number) != index) /* the number is new, or was given to another module before */
        number_module(t, number, index);
    begin_module_line(t, m, before);
    sl_buf_cstr(&t->pending, "BuildID=");
    sl_buf_str(&t->pending, m->id);
    t->markup_module = index;
    t->markup_ranges = 0;
    return true;
}

/* Reads {{{mmap:ADDRESS:SIZE:load:MODULE:FLAGS:ADDRESS_IN_MODULE}}} and adds the range. Extends the open line about the module in
 * t->pending; if that is about another module or too long, `*made` becomes that line, finished, and another is begun. False for other
 * elements. */
static bool read_mapping(struct sl_text *t, const struct element *e, struct sl_str before, struct sl_str *made)
{
    uint64_t start, size, number, value;
    /* at least 7 fields with the tag; start + size < start: the range wraps around */
    if (!is_tag(e, SL_STR("mmap"), 7) || !read_number(e->fields[1], &start) || !read_number(e->fields[2], &size) ||
        !sl_str_equal(e->fields[3], SL_STR("load")) || !read_number(e->fields[4], &number) ||
        !read_number(e->fields[6], &value) || !size || start + size < start || number >= UINT32_MAX - 1)
        return false;
    uint32_t module = module_numbered(t, number);
    if (module == SL_TEXT_NO_MODULE)
        return false;
    bool continues = t->in_module_line && t->markup_module == module && t->pending.size < MAX_PENDING;
    if (!continues) { /* "[[[ELF module #0x0 "libc.so"; adds [0x3000-0x3fff](rw)]]]" */
        *made = sl_text_end_module_line(t);
        begin_module_line(t, &t->modules[module], before);
        sl_buf_cstr(&t->pending, "adds");
        t->markup_module = module;
        t->markup_ranges = 0;
    }
    sl_buf_printf(&t->pending, "%s[0x%llx-0x%llx](", t->markup_ranges++ ? "," : " ", (unsigned long long)start,
                  (unsigned long long)(start + size - 1));
    sl_buf_str(&t->pending, e->fields[5]);
    sl_buf_u8(&t->pending, ')');
    sl_text_add_range(t, &(struct sl_text_range){start, start + size, value, module, true});
    return true;
}

/* Reads {{{reset}}}: the modules known so far are no longer loaded. `*made` becomes the open line about a module and a line "[[[reset]]]";
 * empty if no `module` or `mmap` element came since the last reset. False for other elements. */
static bool read_reset(struct sl_text *t, const struct element *e, struct sl_str before, struct sl_str *made)
{
    struct sl_buf line = {0};
    if (!is_tag(e, SL_STR("reset"), 1))
        return false;
    if (!t->has_markup) {
        *made = (struct sl_str){NULL, 0};
        return true;
    }
    sl_buf_str(&line, sl_text_end_module_line(t));
    sl_buf_str(&line, before);
    sl_buf_cstr(&line, "[[[reset]]]\n");
    *made = sl_buf_move_to_arena(&line, &t->made);
    t->out_of_memory |= !made->data;
    sl_map_free(&t->by_number);
    sl_arena_free(&t->numbers);
    t->number_count = 0;
    t->range_count = 0;
    t->has_markup = false;
    return true;
}

/* ---- frames ---- */

/* Makes a frame of an element with an address: names replace the whole element. A return address is looked up one byte before, within the
 * call instruction. */
static void set_frame(struct sl_text *t, const struct element *e, uint64_t address, bool is_return,
                      struct sl_text_frame *f)
{
    bool of_file;
    f->format = SL_TEXT_MARKUP;
    f->absolute = address - (is_return && address ? 1 : 0);
    f->address = f->absolute;
    f->shown = e->fields[0]; /* the tag, such as "pc" */
    /* the parts of the frame's text: nothing before (`stem`) and behind (`tail`) the element, which names replace (`cut`) */
    f->stem = f->head = sl_scan_between(e->whole.data, e->whole.data);
    f->cut = e->whole;
    f->tail = f->end = sl_scan_between(e->whole.data + e->whole.size, e->whole.data + e->whole.size);
    if (sl_text_find(t, f->absolute, &f->module, &f->address, &of_file))
        f->base = of_file ? SL_TEXT_OF_FILE : SL_TEXT_OF_IMAGE;
    if (f->module != SL_TEXT_NO_MODULE)
        f->module_name = t->modules[f->module].name;
}

/* Reads {{{bt:N:ADDRESS}}}, {{{pc:ADDRESS}}}, {{{data:ADDRESS}}} or {{{symbol:NAME}}} as a frame. The address of `bt` is a return address
 * unless a field `pc` follows, that of `pc` only if a field `ra` follows. False for other elements. */
static bool read_frame(struct sl_text *t, const struct element *e, struct sl_text_frame *f)
{
    uint64_t address, number;
    *f = (struct sl_text_frame){.module = SL_TEXT_NO_MODULE};
    if (is_tag(e, SL_STR("bt"), 3) && read_number(e->fields[1], &number) && read_number(e->fields[2], &address)) {
        bool exact = e->count > 3 && sl_str_equal(e->fields[3], SL_STR("pc"));
        f->number = e->fields[1];
        f->is_first = number == 0;
        set_frame(t, e, address, !exact, f);
        return true;
    }
    if (is_tag(e, SL_STR("pc"), 2) && read_number(e->fields[1], &address)) {
        set_frame(t, e, address, e->count > 2 && sl_str_equal(e->fields[2], SL_STR("ra")), f);
        return true;
    }
    if (is_tag(e, SL_STR("data"), 2) && read_number(e->fields[1], &address)) {
        set_frame(t, e, address, false, f);
        return true;
    }
    if (!is_tag(e, SL_STR("symbol"), 2) || e->count != 2)
        return false;
    set_frame(t, e, 0, false, f); /* it has a name, no address */
    f->symbol = e->fields[1];
    f->module = SL_TEXT_NO_MODULE;
    return true;
}

/* ---- lines ---- */

/* If a contextual element (module, mmap, reset) comes before any frame in the rest of the line, removes the rest and returns true. `piece`
 * then replaces it: the line about a module that this element has finished, or mostly nothing, as that line is still open. Else returns
 * false. */
static bool read_context(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    struct element e;
    struct sl_text_frame frame;
    struct sl_str made = {NULL, 0}, text = *rest;
    while (find_element(text, &e)) {
        struct sl_str before = sl_scan_between(rest->data, e.whole.data);
        if (read_module(t, &e, before, &made) || read_mapping(t, &e, before, &made) ||
            read_reset(t, &e, before, &made)) {
            t->has_markup |= !is_tag(&e, SL_STR("reset"), 1);
            *piece = (struct sl_text_piece){.kind = SL_TEXT_MADE, .text = made, .format = SL_TEXT_MARKUP};
            rest->data += rest->size;
            rest->size = 0;
            return true;
        }
        if (read_frame(t, &e, &frame)) /* LLVM looks further; a line with both is never written by a program */
            return false;
        text = sl_scan_between(e.whole.data + e.whole.size, text.data + text.size);
    }
    return false;
}

bool sl_text_next_markup(struct sl_text *t, struct sl_str *rest, struct sl_text_piece *piece)
{
    struct element e;
    if (read_context(t, rest, piece))
        return true;
    if (t->in_module_line) { /* another line follows, so the line about a module is complete: it comes first */
        *piece = (struct sl_text_piece){.kind = SL_TEXT_MADE, .text = sl_text_end_module_line(t)};
        return true;
    }
    struct sl_str text = *rest;
    while (find_element(text, &e)) {
        if (!read_frame(t, &e, &piece->native)) {
            text = sl_scan_between(e.whole.data + e.whole.size, text.data + text.size);
            continue;
        }
        piece->format = SL_TEXT_MARKUP;
        if (e.whole.data > rest->data) {
            piece->kind = SL_TEXT_COPY;
            piece->text = sl_scan_between(rest->data, e.whole.data);
        } else {
            piece->kind = SL_TEXT_NATIVE;
            piece->text = e.whole;
        }
        *rest = sl_scan_between(piece->text.data + piece->text.size, rest->data + rest->size);
        return true;
    }
    *piece = (struct sl_text_piece){.kind = SL_TEXT_COPY, .text = *rest};
    rest->data += rest->size;
    rest->size = 0;
    return true;
}
