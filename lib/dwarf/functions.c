/* Walks a unit's entries: reads subprograms with code, their inlined calls and lines. */
#include "dwarf/impl.h"
#include "base/search.h"

#include <stdlib.h>

/* The cost of the work, charged to the budget: steps for one of each, and bytes of a unit that cost one step. */
enum { STEPS_PER_SEQUENCE = 2, STEPS_PER_LINE = 16, STEPS_PER_INLINEE = 64, STEPS_PER_FUNCTION = 8 };
enum { BYTES_PER_STEP = 4 };

struct dwarf_function_entry {
    struct attribute attributes[SLOT_COUNT]; /* form 0 = absent */
};

/* A subprogram or inlined call whose children are being read; worker->frames is the stack of them, and the first one is the root entry.
 * Other open entries, such as lexical blocks, get no frame: `plain` counts them. */
struct dwarf_frame {
    uint32_t plain;         /* open entries below it that have no frame */
    uint32_t depth;         /* inline depth of its children */
    uint32_t first_pending; /* first of a subprogram's ranges in worker->pending */
    uint32_t pending_count; /* number of these ranges */
    uint32_t first_inlinee; /* first of a subprogram's inlined calls in worker->inlinees */
    uint32_t variables;     /* number of its list of variables, set when the frame closes */
    struct sl_str name;
    enum sl_language language;
    bool subprogram; /* a subprogram with code: emitted when the frame closes */
    bool code;       /* inlined calls below belong to a function with code; if false they are skipped */
    bool gathers;    /* variables below belong to this frame (struct dwarf_variable_list) */
};

struct dwarf_function_walk {
    struct dwarf_reader *reader;
    struct dwarf_worker *w;
    const struct dwarf_unit *unit;
    struct sl_arena *arena;
    size_t height;              /* number of frames */
    size_t depth;               /* open entries */
    struct zero_claims *claims; /* not NULL: only count the subprograms at address 0 here, emit nothing */
};

/* Runs the steps of the abbreviation: stores each wanted attribute in its slot of `e` and skips the others. The reader ends behind the
 * entry. False if the entry reaches past the end of the unit or has an unknown form, or if the budget is used up. */
static bool dwarf_functions_read_entry(const struct dwarf_function_walk *walk, const struct abbrev *abbrev,
                                       struct sl_reader *r, struct dwarf_function_entry *e)
{
    const struct abbrev_step *step = &walk->unit->abbrevs->steps[abbrev->first_step];
    const struct abbrev_step *end = step + abbrev->step_count;
    if (!sl_account_spend(&walk->w->account, abbrev->step_count)) /* attributes may take no bytes */
        return false;
    for (unsigned i = 0; i < SLOT_COUNT; i++)
        e->attributes[i].form = 0;
    for (; step < end; step++) {
        static const uint8_t sizes[] = {[READ_1] = 1, [READ_2] = 2, [READ_4] = 4, [READ_8] = 8};
        struct attribute *a = &e->attributes[step->slot];
        if (step->op == STEP_SKIP) {
            if ((uint64_t)step->value > sl_reader_left(r))
                return false;
            r->at += step->value;
            continue;
        }
        if (step->op != STEP_READ) {
            if (!dwarf_skip_step(r, walk->unit, step))
                return false;
            continue;
        }
        if (step->read == READ_ULEB) {
            a->value = dwarf_uleb(r);
            a->form = step->form;
            if (r->failed)
                return false;
            continue;
        }
        if (step->read == READ_FORM) {
            if (!dwarf_read_form(r, walk->unit, step->form, step->value, a))
                return false;
            continue;
        }
        if (sizes[step->read] > sl_reader_left(r))
            return false;
        /* READ_CONSTANT has size 0: its value is in the abbreviation, so `value` stays as it is */
        uint64_t value = (uint64_t)step->value;
        switch (step->read) {
        case READ_1: value = r->at[0]; break;
        case READ_2: value = dwarf_load_2(r->at); break;
        case READ_4: value = dwarf_load_4(r->at); break;
        case READ_8: value = dwarf_load_8(r->at); break;
        }
        r->at += sizes[step->read];
        a->value = value;
        a->form = step->form;
    }
    return true;
}

/* Returns the name of a subprogram or inlined call: its own linkage name, else its own name, else that of the entry it refers to.
 * `*language` changes only if that entry is in a unit of another language. */
static struct entry_name entry_name(struct dwarf_function_walk *walk, const struct dwarf_function_entry *e,
                                    enum sl_language *language)
{
    const struct attribute *a = e->attributes;
    struct entry_name name = {{NULL, 0}, false};
    if (a[SLOT_ORIGIN].form) /* even if the entry has a name of its own: it sets `*language` */
        name = dwarf_find_name(walk->w, walk->unit, dwarf_reference(walk->unit, &a[SLOT_ORIGIN]), language);
    if (a[SLOT_LINKAGE].form)
        return (struct entry_name){.text = dwarf_linkage_name(walk->w, walk->unit, &a[SLOT_LINKAGE]), .linkage = true};
    if (a[SLOT_NAME].form) {
        struct sl_str own = dwarf_text(&walk->w->account, walk->unit, &a[SLOT_NAME]);
        return own.size ? (struct entry_name){.text = own, .linkage = false} : name;
    }
    return name;
}

/* Pushes a frame, which inherits `depth` (of inlining), `language` and `code` (inside of a function with code) of the top frame; there is
 * always one, the root's. NULL when out of memory. */
static struct dwarf_frame *push_frame(struct dwarf_function_walk *walk)
{
    struct dwarf_worker *w = walk->w;
    if (!sl_account_grow(&w->account, &w->frames, &w->frame_capacity, walk->height + 1, sizeof *w->frames))
        return NULL;
    struct dwarf_frame *frame = &w->frames[walk->height];
    *frame = w->frames[walk->height - 1];
    frame->plain = 0; /* open entries in it that have no frame of their own */
    frame->subprogram = frame->gathers = false;
    walk->height++;
    return frame;
}

/* The linker gives dropped code the address 0, where live code may lie, too. Removes ranges at 0 from worker->ranges unless this subprogram
 * is the live one; returns the new count. With walk->claims (struct zero_claims) the subprogram is also counted there. */
static size_t remove_dropped_ranges(struct dwarf_function_walk *walk, const struct dwarf_function_entry *e,
                                    size_t count)
{
    struct dwarf_range *ranges = walk->w->ranges;
    size_t at_zero = 0, kept = 0;
    uint64_t end = 0; /* of the longest range at 0 */
    for (size_t i = 0; i < count; i++) {
        at_zero += ranges[i].begin == 0;
        end = ranges[i].begin == 0 && ranges[i].end > end ? ranges[i].end : end;
    }
    if (!at_zero)
        return count;
    enum sl_language language = walk->unit->language;
    bool is_live = dwarf_is_at_zero(walk->reader, walk->w, entry_name(walk, e, &language));
    if (walk->claims) {
        walk->claims->count++;
        walk->claims->end = is_live && end > walk->claims->end ? end : walk->claims->end;
    }
    for (size_t i = 0; i < count; i++)
        if (is_live || ranges[i].begin)
            ranges[kept++] = ranges[i];
    return kept;
}

/* Opens a subprogram: its ranges wait in worker->pending until its frame closes, because its inlined calls are only known then. Also
 * returns true for a subprogram without live code, which is not emitted. False when out of memory or budget. */
static bool open_subprogram(struct dwarf_function_walk *walk, const struct dwarf_function_entry *e,
                            struct dwarf_frame *frame)
{
    struct dwarf_worker *w = walk->w;
    const struct attribute *a = e->attributes;
    bool declaration = a[SLOT_DECLARATION].form && a[SLOT_DECLARATION].value;
    size_t count = declaration ? 0 : dwarf_ranges(w, walk->unit, &a[SLOT_RANGES], &a[SLOT_LOW_PC], &a[SLOT_HIGH_PC]);
    /* GNU as also writes entries for functions of other files, which have no lines here */
    if (walk->unit->is_assembler)
        count = dwarf_ranges_with_lines(w, count);
    if (walk->reader->main.code_at_zero)
        count = remove_dropped_ranges(walk, e, count);
    if (walk->claims)
        count = 0; /* only counted, not emitted */
    frame->subprogram = frame->code = count > 0;
    frame->depth = 0;
    if (!count)
        return true;
    uint64_t load = walk->reader->load_address, entry = 0;
    bool all_repeated = true;
    frame->first_pending = (uint32_t)w->pending_count;
    frame->first_inlinee = (uint32_t)w->inlinee_count;
    if (!sl_account_spend(&w->account, STEPS_PER_FUNCTION * (uint64_t)count) ||
        !sl_account_grow(&w->account, &w->pending, &w->pending_capacity, w->pending_count + count,
                         sizeof *w->pending) ||
        !sl_account_grow(&w->account, &w->covered, &w->covered_capacity, w->covered_count + count, sizeof *w->covered))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (w->ranges[i].begin < load)
            continue; /* not in the image */
        struct dwarf_range range = {w->ranges[i].begin - load, w->ranges[i].end - load};
        if (w->pending_count == frame->first_pending)
            entry = range.begin; /* compilers list the range with the entry point first */
        all_repeated = all_repeated &&
                       dwarf_has_range(&walk->reader->ranges, dwarf_range_key(range.begin, range.end - range.begin));
        w->pending[w->pending_count++] = w->covered[w->covered_count++] = range;
    }
    if (all_repeated) { /* code folding made this function share its code with one that was emitted before */
        w->pending_count = frame->first_pending;
        frame->subprogram = frame->code = false;
        return true;
    }
    frame->pending_count = (uint32_t)w->pending_count - frame->first_pending;
    frame->language = walk->unit->language;
    struct entry_name name = entry_name(walk, e, &frame->language);
    /* the Dart VM's mangling is lossy: in its units the name of DWARF is better than a symbol that contains it */
    frame->name = walk->unit->is_dart || !frame->pending_count
                      ? name.text
                      : dwarf_symbol_name(&walk->reader->symbols, entry, name, frame->language);
    return true;
}

/* Returns the value of an attribute; `absent` if the entry does not have it, or its value needs more than 32 bits. */
static uint32_t as_u32(const struct attribute *a, uint32_t absent)
{
    return !a->form ? absent : a->value > UINT32_MAX - 1 ? absent : (uint32_t)a->value;
}

/* Adds an inlined call to worker->inlinees, once for each of its ranges, and sets depth and language of `frame` for the calls inside it. A
 * call deeper than SL_MAX_INLINE_DEPTH is left out, but calls below it are deeper still. False when out of memory or budget. */
static bool add_inlinee(struct dwarf_function_walk *walk, const struct dwarf_function_entry *e,
                        struct dwarf_frame *frame)
{
    struct dwarf_worker *w = walk->w;
    const struct attribute *a = e->attributes;
    size_t count = dwarf_ranges(w, walk->unit, &a[SLOT_RANGES], &a[SLOT_LOW_PC], &a[SLOT_HIGH_PC]);
    if (!count) /* without code: the calls inside it get its depth */
        return true;
    if (!sl_account_spend(&w->account, STEPS_PER_INLINEE * (uint64_t)count) ||
        !sl_account_grow(&w->account, &w->inlinees, &w->inlinee_capacity, w->inlinee_count + count,
                         sizeof *w->inlinees))
        return false;
    if (frame->depth <= SL_MAX_INLINE_DEPTH) {
        uint64_t load = walk->reader->load_address;
        enum sl_language language = frame->language;
        struct sl_str name = entry_name(walk, e, &language).text;
        uint32_t call_line = as_u32(&a[SLOT_CALL_LINE], 0);
        if (w->positions)
            call_line = sl_position(call_line, as_u32(&a[SLOT_CALL_COLUMN], 0));
        for (size_t i = 0; i < count; i++)
            if (w->ranges[i].begin >= load) /* else not in the image */
                w->inlinees[w->inlinee_count++] = (struct sl_flat_inlinee){
                    .address = w->ranges[i].begin - load,
                    .size = w->ranges[i].end - w->ranges[i].begin,
                    .name = name,
                    .language = language,
                    .depth = frame->depth,
                    .call_file = as_u32(&a[SLOT_CALL_FILE], SL_NO_FILE),
                    .call_line = call_line,
                };
        frame->language = language;
    }
    frame->depth++;
    return true;
}

/* Copies the lines of a range (relative to the load address) into worker->function_lines, clipped to the range, from the sequences that
 * overlap it. Sequences and functions may overlap, so all rows visited are charged. False when out of memory or budget. */
static bool copy_lines(struct dwarf_worker *w, uint64_t load, struct dwarf_range range, size_t *line_count)
{
    const struct dwarf_line_table *t = &w->lines;
    uint64_t begin = range.begin + load, end = range.end + load;
    size_t count = 0;
    /* first sequence that starts after the range */
    size_t low = SL_PARTITION_POINT(middle, 0, t->sequence_count, t->sequences[middle].start < end);
    size_t first = low; /* goes back while the sequence before it reaches into the range */
    while (first && t->sequences[first - 1].end > begin)
        first--;
    for (; first < low; first++) {
        const struct sequence *s = &t->sequences[first];
        const struct dwarf_row *rows = t->rows + s->first;
        /* first row after `begin`; the one before it covers `begin` */
        size_t a = SL_PARTITION_POINT(middle, 0, s->count, rows[middle].address <= begin);
        size_t i = a ? a - 1 : 0;
        for (; i < s->count && rows[i].address < end; i++) {
            uint64_t start = rows[i].address < begin ? begin : rows[i].address;
            uint64_t stop = i + 1 < s->count ? rows[i + 1].address : s->end;
            stop = stop > end ? end : stop;
            /* sequences may overlap: a line begins where the one before ends */
            if (count && w->function_lines[count - 1].address + w->function_lines[count - 1].size + load > start)
                start = w->function_lines[count - 1].address + w->function_lines[count - 1].size + load;
            if (start >= stop)
                continue;
            if (count == w->function_line_capacity &&
                !sl_account_grow(&w->account, &w->function_lines, &w->function_line_capacity, count + 1,
                                 sizeof *w->function_lines))
                return false;
            w->function_lines[count++] = (struct sl_line){start - load, stop - start, rows[i].file, rows[i].line};
        }
        if (!sl_account_spend(&w->account, STEPS_PER_SEQUENCE + (uint64_t)(i - (a ? a - 1 : 0)) * STEPS_PER_LINE))
            return false;
    }
    *line_count = count;
    return true;
}

/* Sorts the inlined calls of a function by address into worker->by_address; the sort is stable. False when out of memory or budget. */
static bool order_inlinees(struct dwarf_worker *w, const struct dwarf_frame *frame)
{
    size_t count = w->inlinee_count - frame->first_inlinee;
    const struct sl_flat_inlinee *inlinees = w->inlinees + frame->first_inlinee;
    if (!count)
        return true;
    if (!sl_account_spend(&w->account, count) ||
        !sl_account_grow(&w->account, &w->order, &w->order_capacity, 2 * count, sizeof *w->order) ||
        !sl_account_grow(&w->account, &w->by_address, &w->by_address_capacity, count, sizeof *w->by_address))
        return false;
    for (size_t i = 0; i < count; i++)
        w->order[i] = (struct sl_ordered){.key = inlinees[i].address, .index = (uint32_t)i};
    sl_order(w->order, w->order + count, count); /* the second half is scratch memory for the sort */
    for (size_t i = 0; i < count; i++)
        w->by_address[i] = inlinees[w->order[i].index];
    return true;
}

/* Returns the index in worker->by_address of the first call at or after `address`. */
static size_t first_inlinee_at(const struct dwarf_worker *w, size_t count, uint64_t address)
{
    return SL_PARTITION_POINT(middle, 0, count, w->by_address[middle].address < address);
}

/* If no row covers the start of a function with inlined calls, adds a line without file there: calls are kept only where there are lines,
 * and the start of a block in a section of its own may have no row. False when out of memory or budget. */
static bool add_head_line(struct dwarf_worker *w, const struct sl_function *function, size_t *line_count)
{
    struct sl_line *lines = w->function_lines;
    uint64_t end = *line_count ? lines[0].address : function->address + function->size;
    if (end == function->address)
        return true;
    if (!sl_account_spend(&w->account, *line_count) ||
        !sl_account_grow(&w->account, &w->function_lines, &w->function_line_capacity, *line_count + 1,
                         sizeof *w->function_lines))
        return false;
    lines = w->function_lines;
    memmove(lines + 1, lines, *line_count * sizeof *lines);
    lines[0] = (struct sl_line){function->address, end - function->address, SL_NO_FILE, 0};
    ++*line_count;
    return true;
}

bool dwarf_add_function(struct dwarf_reader *reader, struct dwarf_worker *w, struct sl_arena *arena,
                        struct sl_function *function, const struct sl_flat_inlinee *inlinees, size_t inlinee_count)
{
    struct dwarf_range range = {function->address, function->address + function->size};
    size_t line_count;
    if (!sl_account_grow(&w->account, &w->functions, &w->function_capacity, w->function_count + 1,
                         sizeof *w->functions) ||
        !copy_lines(w, reader->load_address, range, &line_count) ||
        (inlinee_count && !add_head_line(w, function, &line_count)))
        return false;
    if (!sl_assemble(&w->assembler, arena, function, inlinees, inlinee_count, w->function_lines, line_count)) {
        w->account.failed = true;
        return false;
    }
    w->functions[w->function_count++] = *function;
    return true;
}

/* Emits the subprogram once per range, each with the inlined calls that begin in the range, then pops its ranges and calls from the
 * worker's stacks. False when out of memory or budget. */
static bool close_subprogram(struct dwarf_function_walk *walk, const struct dwarf_frame *frame)
{
    struct dwarf_worker *w = walk->w;
    size_t all = w->inlinee_count - frame->first_inlinee;
    if (frame->pending_count > 1 && !order_inlinees(w, frame))
        return false;
    for (uint32_t i = 0; i < frame->pending_count; i++) {
        struct dwarf_range range = w->pending[frame->first_pending + i];
        struct sl_function function = {
            .address = range.begin,
            .size = range.end - range.begin,
            .name = frame->name,
            .language = frame->language,
            .variables = frame->variables,
        };
        const struct sl_flat_inlinee *inlinees = w->inlinees ? w->inlinees + frame->first_inlinee : NULL;
        size_t inlinee_count = all;
        if (frame->pending_count > 1 && all) { /* several ranges: only the calls that begin in this one */
            size_t first = first_inlinee_at(w, all, range.begin);
            inlinees = w->by_address + first;
            inlinee_count = first_inlinee_at(w, all, range.end) - first;
        }
        if (!dwarf_add_function(walk->reader, w, walk->arena, &function, inlinees, inlinee_count))
            return false;
    }
    w->pending_count = frame->first_pending;
    w->inlinee_count = frame->first_inlinee;
    return true;
}

/* Closes the innermost entry of the stack: stores its list of variables and, for a subprogram with code, emits its functions. False when
 * out of memory or budget. */
static bool close_frame(struct dwarf_function_walk *walk)
{
    struct dwarf_worker *w = walk->w;
    struct dwarf_frame *top = &w->frames[--walk->height];
    if (top->gathers)
        top->variables = variables_close(w);
    return !top->subprogram || close_subprogram(walk, top);
}

/* Enters the children of an entry that needs no struct dwarf_frame of its own, such as a lexical block: it is only counted in the innermost
 * frame. False if entries are nested too deep. */
static bool open_plain(struct dwarf_function_walk *walk)
{
    if (walk->depth >= MAX_DIE_DEPTH)
        return false;
    walk->w->frames[walk->height - 1].plain++;
    walk->depth++;
    return true;
}

/* Opens an entry without code. It gets a frame only inside a function with code: the frame keeps inlined calls below the entry from being
 * added to that function. Elsewhere it is only counted. False if entries are nested too deep, or when out of memory or budget. */
static inline bool open_without_code(struct dwarf_function_walk *walk)
{
    if (!walk->w->frames[walk->height - 1].code)
        return open_plain(walk);
    struct dwarf_frame *frame = walk->depth < MAX_DIE_DEPTH ? push_frame(walk) : NULL;
    if (!frame)
        return false;
    frame->code = false;
    frame->depth = 0; /* a function with code below it has its own calls */
    walk->depth++;
    return true;
}

/* Pushes a frame for an entry that may have code; closes it at once if the entry has no children. False if too deep, or out of memory. */
static bool open_code(struct dwarf_function_walk *walk, const struct abbrev *abbrev,
                      const struct dwarf_function_entry *e)
{
    bool subprogram = abbrev->kind == KIND_SUBPROGRAM;
    size_t first_call = walk->w->inlinee_count; /* where add_inlinee() adds the ranges of the call */
    struct dwarf_frame *frame = walk->depth < MAX_DIE_DEPTH ? push_frame(walk) : NULL;
    if (!frame || !(subprogram ? open_subprogram(walk, e, frame) : add_inlinee(walk, e, frame)))
        return false;
    if (walk->w->variables && frame->code) {
        frame->gathers = true; /* variables below go to the list that is opened here */
        if (!variables_open(walk->w, first_call))
            return false;
    }
    if (!abbrev->children)
        return close_frame(walk);
    walk->depth++;
    return true;
}

/* Skips the children of an entry by its DW_AT_sibling. Enters them if that is invalid (it must lead forward), or if a subprogram is no
 * declaration: its abbreviation has DW_AT_declaration, but the value is false. False if it can do neither. */
static bool jump(struct dwarf_function_walk *walk, const struct abbrev *abbrev, const struct dwarf_function_entry *e,
                 struct sl_reader *r)
{
    const struct attribute *declaration = &e->attributes[SLOT_DECLARATION];
    if (abbrev->kind == KIND_SUBPROGRAM && !(declaration->form && declaration->value))
        return open_without_code(walk);
    struct reference to = dwarf_reference(walk->unit, &e->attributes[SLOT_SIBLING]);
    if (to.file != walk->unit->file || to.offset <= sl_reader_offset(r))
        return open_plain(walk);
    sl_reader_seek(r, to.offset);
    return !r->failed;
}

/* Returns the position behind the attributes of an entry; NULL if they reach past `end`. The frequent forms, ULEB and blocks of less than
 * 128 bytes, are skipped here, all others by dwarf_skip_rare_form. */
static const uint8_t *skip_entry(const struct dwarf_unit *unit, const struct abbrev *abbrev, const uint8_t *at,
                                 const uint8_t *end)
{
    if (abbrev->lead > (size_t)(end - at))
        return NULL;
    at += abbrev->lead;
    const struct skip_step *step = &unit->abbrevs->skips[abbrev->first_skip];
    for (uint32_t i = 0; i < abbrev->skip_count; i++, step++) {
        if (step->op == STEP_ULEB) {
            while (at < end && (*at & 0x80))
                at++;
            at = at < end ? at + 1 : NULL;
        } else if (step->op == STEP_BLOCK && at < end && *at < 0x80 && *at < end - at) {
            at += *at + 1;
        } else {
            at = dwarf_skip_rare_form(unit, step, at, end);
        }
        if (!at || step->then > (size_t)(end - at))
            return NULL;
        at += step->then;
    }
    return at;
}

/* Reads a variable into the list of the enclosing function, if that has one (`gathers`), or opens a scope, such as a class or namespace:
 * variables below a scope do not belong to the enclosing function. False if the entry cannot be read. */
static bool visit_variable(struct dwarf_function_walk *walk, const struct abbrev *abbrev, struct sl_reader *r)
{
    struct dwarf_frame *frame = &walk->w->frames[walk->height - 1];
    uint32_t depth = frame->depth;
    bool code = frame->code;
    if (abbrev->kind == KIND_SCOPE || !frame->gathers)
        r->at = skip_entry(walk->unit, abbrev, r->at, r->end);
    else if (!variables_add(walk->w, walk->unit, abbrev, r))
        return false;
    if (!r->at || !abbrev->children)
        return r->at;
    if (!open_without_code(walk))
        return false;
    frame = &walk->w->frames[walk->height - 1];
    frame->code = code; /* unlike variables, inlined calls below a scope do belong to the enclosing function */
    frame->depth = depth;
    return true;
}

/* Handles an entry that skip_entries stopped at. Inlined calls outside of a function with code are skipped. False if the entry cannot be
 * read. */
static bool visit(struct dwarf_function_walk *walk, const struct abbrev *abbrev, struct sl_reader *r,
                  struct dwarf_function_entry *e)
{
    if (abbrev->walk > WALK_CODE) /* WALK_VARIABLE or WALK_SCOPE */
        return visit_variable(walk, abbrev, r);
    if (abbrev->kind == KIND_INLINED && !walk->w->frames[walk->height - 1].code) {
        r->at = skip_entry(walk->unit, abbrev, r->at, r->end);
        return r->at && (!abbrev->children || open_plain(walk));
    }
    if (!dwarf_functions_read_entry(walk, abbrev, r, e))
        return false;
    return abbrev->walk == WALK_CODE ? open_code(walk, abbrev, e) : jump(walk, abbrev, e, r);
}

/* State of skipping entries: the position, and the number of open entries without a frame (`plain`), which is at most `limit`. */
struct dwarf_skip_state {
    const uint8_t *at, *end;
    uint32_t plain, limit;
    bool code; /* inside a function with code */
};

/* Skips entries that struct quick_abbrev describes, and ends of child lists while `plain` is not 0. Stops at any other entry. False if an
 * entry reaches past the end of the unit. */
static bool skip_common_entries(struct dwarf_skip_state *p, const struct quick_abbrev *quick, size_t count)
{
    const uint8_t *data = p->at;
    size_t at = 0, size = (size_t)(p->end - p->at);
    uint32_t plain = p->plain;
    /* only inside of a function with code do subprograms without code need a frame (open_without_code); else they are skipped, too */
    unsigned simple = p->code ? QUICK_SKIP : QUICK_NOCODE;
    while (at + 2 < size) { /* a code has one or two bytes here */
        unsigned code = data[at], two = 0;
        if (code & 0x80) {
            code = (code & 0x7F) | (unsigned)data[at + 1] << 7;
            two = 1;
        }
        if (code >= count || code >= 1u << 14) /* the code has a third byte: its second one set bit 14 */
            break;
        struct quick_abbrev q = quick[code];
        if (q.op > simple && (q.op == QUICK_OTHER || q.op == QUICK_NOCODE))
            break;
        if (plain + (uint32_t)q.open > p->limit) /* too deep, or the sum wraps: a list ends while `plain` is 0 */
            break;
        size_t next = at + 1 + two + q.lead;
        if (q.op == QUICK_BLOCK) {
            if (next >= size || data[next] >= 0x80)
                break;
            next += 1 + data[next] + q.then;
        } else if (q.op == QUICK_ULEB) {
            while (next < size && data[next] >= 0x80)
                next++;
            next += 1 + q.then;
        }
        if (next > size)
            return false;
        at = next;
        plain += (uint32_t)q.open;
    }
    p->at = data + at;
    p->plain = plain;
    return true;
}

/* Reads an abbreviation code and moves the position past it. */
static bool read_code(struct dwarf_skip_state *p, uint64_t *code)
{
    struct sl_reader r = sl_reader((struct sl_bytes){p->at, (size_t)(p->end - p->at)}, false);
    *code = dwarf_uleb(&r);
    p->at = r.at;
    return !r.failed;
}

/* Skips entries up to one that must be handled, sets `*found` to its abbreviation (NULL: the children of the top frame end here), and
 * returns the position of its attributes. NULL if the entries cannot be read. */
static const uint8_t *skip_entries(struct dwarf_function_walk *walk, const uint8_t *at, const uint8_t *end,
                                   const struct abbrev **found)
{
    const struct dwarf_unit *unit = walk->unit;
    struct dwarf_frame *frame = &walk->w->frames[walk->height - 1];
    /* walk->depth without the entries that `plain` counts: so many more may be opened in this frame */
    uint32_t limit = (uint32_t)(MAX_DIE_DEPTH - (walk->depth - frame->plain));
    struct dwarf_skip_state p = {at, end, frame->plain, limit, frame->code};
    uint64_t code;
    *found = NULL;
    for (bool stop = false; !stop;) {
        if (!skip_common_entries(&p, unit->abbrevs->quick, unit->abbrevs->dense_count) || !read_code(&p, &code))
            return NULL;
        if (code == 0) {
            stop = p.plain == 0; /* it ends the children of the top frame, else of an entry without frame */
            p.plain -= !stop;
            continue;
        }
        const struct abbrev *abbrev = abbrev_find(unit->abbrevs, code);
        if (!abbrev)
            return NULL;
        stop = abbrev->walk > WALK_NOCODE; /* must be read */
        if (!stop) {
            p.at = skip_entry(unit, abbrev, p.at, p.end);
            /* such an entry needs a frame inside of a function with code (open_without_code) */
            stop = abbrev->walk == WALK_NOCODE && abbrev->children && p.code;
            if (!p.at || (!stop && abbrev->children && p.plain++ >= p.limit)) /* damaged, or too deep */
                return NULL;
        }
        *found = stop ? abbrev : NULL;
    }
    walk->depth = walk->depth - frame->plain + p.plain;
    frame->plain = p.plain;
    return p.at;
}

/* Skips the attributes of the root entry and returns the position behind them; NULL if they cannot be read. `*children` tells whether the
 * root has children. */
static const uint8_t *enter_root(struct dwarf_function_walk *walk, struct sl_reader *r, bool *children)
{
    uint64_t code = 0;
    while (code == 0 && r->at < r->end) /* padding before the root */
        code = sl_read_uleb(r);
    const struct abbrev *root = r->failed ? NULL : abbrev_find(walk->unit->abbrevs, code);
    *children = root && root->children;
    return root ? skip_entry(walk->unit, root, r->at, r->end) : NULL;
}

/* Walks the entries below the root: skips to the next one that must be handled, handles it, until the root's children end. False if the
 * entries cannot be read to their end. */
static bool walk_unit(struct dwarf_function_walk *walk)
{
    const struct dwarf_unit *unit = walk->unit;
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    const struct abbrev *abbrev;
    struct dwarf_function_entry e;
    bool children;
    sl_reader_seek(&r, unit->header->die);
    const uint8_t *at = enter_root(walk, &r, &children);
    if (!children)
        return at != NULL;
    while ((at = skip_entries(walk, at, r.end, &abbrev))) {
        r.at = at;
        if (!abbrev) {
            if (walk->height == 1) /* the end of the root's children */
                return true;
            walk->depth--;
            if (!close_frame(walk))
                return false;
        } else if (!(abbrev->walk == WALK_NOCODE ? open_without_code(walk) : visit(walk, abbrev, &r, &e))) {
            return false;
        }
        at = r.at;
    }
    return false;
}

/* Empties the worker and walks all entries of the unit. False if the walk stopped before the end of the unit: what was read until then is
 * kept. */
static bool dwarf_functions_read_all(struct dwarf_function_walk *walk)
{
    struct dwarf_worker *w = walk->w;
    const struct dwarf_unit *unit = walk->unit;
    bool variables = w->variables && !walk->claims; /* `claims` only counts subprograms at address 0 */
    w->assembler.account.budget = w->account.budget;
    w->function_count = w->inlinee_count = w->pending_count = w->covered_count = 0;
    w->name_count = 0;
    sl_id_table_clear(&w->name_table);
    /* Many skeletons may name one split unit, which is then read for each: so every walk is charged. */
    if (!sl_account_spend(&w->account, (unit->header->end - unit->header->offset) / BYTES_PER_STEP) ||
        !sl_account_grow(&w->account, &w->frames, &w->frame_capacity, 1, sizeof *w->frames))
        return false;
    w->frames[0] = (struct dwarf_frame){0}; /* the root, which walk->height counts already */
    if (variables)
        variables_begin(w, walk->arena);
    bool ok = walk_unit(walk);
    /* Entries that were open when reading stopped still have ranges and lines. */
    while (walk->height > 1 && !w->account.failed && close_frame(walk))
        continue;
    if (variables)
        variables_end(w);
    return ok && !w->account.failed;
}

bool dwarf_read_functions(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                          struct sl_arena *arena)
{
    struct dwarf_function_walk walk = {reader, w, unit, arena, 1, 0, NULL};
    return dwarf_functions_read_all(&walk);
}

bool dwarf_find_zero(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                     struct sl_arena *arena, struct zero_claims *claims)
{
    struct dwarf_function_walk walk = {reader, w, unit, arena, 1, 0, claims};
    *claims = (struct zero_claims){0, 0};
    return dwarf_functions_read_all(&walk);
}
