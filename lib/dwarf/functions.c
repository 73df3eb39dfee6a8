/* The walk over a unit's entries: subprograms with code, their inlined calls, their lines. */
#include "dwarf/impl.h"

#include <stdlib.h>

struct entry {
    const struct abbrev *abbrev;
    uint64_t offset, sibling; /* sibling: absolute, 0 = none */
    bool declaration;
    struct attribute low_pc, high_pc, ranges, name, linkage, call_file, call_line;
    struct reference origin;
};

struct frame {              /* an open entry with children */
    uint32_t depth;         /* inline depth of its children */
    uint32_t first_pending; /* of a subprogram: its ranges in worker->pending */
    uint32_t pending_count;
    uint32_t first_inlinee;
    struct sl_str name;
    enum sl_language language;
    bool subprogram; /* opened here: emitted when the frame closes */
    bool code;       /* inlinees below belong to a function with code */
};

struct walk {
    struct dwarf_reader *reader;
    struct dwarf_worker *w;
    const struct dwarf_unit *unit;
    struct sl_arena *arena;
    size_t height;
};

static bool read_entry(struct walk *walk, struct sl_reader *r, struct entry *e)
{
    const struct dwarf_unit *unit = walk->unit;
    const struct abbrev_step *step = &unit->abbrevs->steps[e->abbrev->first_step];
    const struct abbrev_step *end = step + e->abbrev->step_count;
    e->sibling = 0;
    e->declaration = false;
    e->low_pc.form = e->high_pc.form = e->ranges.form = e->name.form = e->linkage.form = 0;
    e->call_file.form = e->call_line.form = 0;
    e->origin.file = NULL;
    for (; step < end; step++) {
        struct attribute a;
        if (step->op == STEP_SKIP) {
            if ((uint64_t)step->value > sl_reader_left(r))
                return false;
            r->at += step->value;
            continue;
        }
        if (step->op != STEP_READ) {
            if (!dwarf_skip_step(r, unit, step))
                return false;
            continue;
        }
        if (!dwarf_read_form(r, unit, step->form, step->value, &a))
            return false;
        switch (step->attribute) {
        case DW_AT_sibling: {
            struct reference to = dwarf_reference(unit, &a);
            e->sibling = to.file == unit->file ? to.offset : 0;
            break;
        }
        case DW_AT_declaration: e->declaration = a.value != 0; break;
        case DW_AT_low_pc: e->low_pc = a; break;
        case DW_AT_high_pc: e->high_pc = a; break;
        case DW_AT_ranges: e->ranges = a; break;
        case DW_AT_name: e->name = a; break;
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name: e->linkage = a; break;
        case DW_AT_call_file: e->call_file = a; break;
        case DW_AT_call_line: e->call_line = a; break;
        case DW_AT_abstract_origin:
        case DW_AT_specification: e->origin = dwarf_reference(unit, &a); break;
        }
    }
    return true;
}

static const struct sl_symbol *symbol_at(const struct symbol_index *index, uint64_t address)
{
    if (!index->slots)
        return NULL;
    for (size_t i = (size_t)(address * 0x9E3779B97F4A7C15u >> 24) & index->mask;; i = (i + 1) & index->mask) {
        if (!index->slots[i])
            return NULL;
        const struct sl_symbol *symbol = &index->symbols[index->slots[i] - 1];
        if (symbol->address == address)
            return symbol;
    }
}

static struct sl_str entry_name(struct walk *walk, const struct entry *e, enum sl_language *language)
{
    struct sl_str name = {NULL, 0};
    if (e->origin.file)
        name = dwarf_name_of(walk->w, walk->unit, e->origin, language);
    if (e->linkage.form)
        return dwarf_text(walk->unit, &e->linkage);
    if (e->name.form) {
        struct sl_str own = dwarf_text(walk->unit, &e->name);
        return own.size ? own : name;
    }
    return name;
}

static struct frame *push_frame(struct walk *walk)
{
    struct dwarf_worker *w = walk->w;
    if (!dwarf_grow(&w->frames, &w->frame_capacity, walk->height + 1, sizeof *w->frames))
        return NULL;
    struct frame *frame = &w->frames[walk->height];
    if (walk->height)
        *frame = w->frames[walk->height - 1];
    else
        *frame = (struct frame){0};
    frame->subprogram = false;
    walk->height++;
    return frame;
}

static bool open_subprogram(struct walk *walk, const struct entry *e, struct frame *frame)
{
    struct dwarf_worker *w = walk->w;
    size_t count = e->declaration ? 0 : dwarf_ranges(w, walk->unit, &e->ranges, &e->low_pc, &e->high_pc);
    frame->subprogram = frame->code = count > 0;
    frame->depth = 0;
    if (!count)
        return true;
    uint64_t load = walk->reader->load_address, lowest = UINT64_MAX;
    frame->first_pending = (uint32_t)w->pending_count;
    frame->first_inlinee = (uint32_t)w->inlinee_count;
    if (!dwarf_grow(&w->pending, &w->pending_capacity, w->pending_count + count, sizeof *w->pending))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (w->ranges[i].begin < load)
            continue;
        struct range range = {w->ranges[i].begin - load, w->ranges[i].end - load};
        lowest = range.begin < lowest ? range.begin : lowest;
        w->pending[w->pending_count++] = range;
    }
    frame->pending_count = (uint32_t)w->pending_count - frame->first_pending;
    frame->language = walk->unit->language;
    frame->name = entry_name(walk, e, &frame->language);
    const struct sl_symbol *symbol =
        walk->unit->is_dart || !frame->pending_count ? NULL : symbol_at(&walk->reader->symbols, lowest);
    if (symbol && symbol->name.size)
        frame->name = symbol->name;
    return true;
}

static uint32_t as_u32(const struct attribute *a, uint32_t absent)
{
    return !a->form ? absent : a->value > UINT32_MAX - 1 ? absent : (uint32_t)a->value;
}

static bool add_inlinee(struct walk *walk, const struct entry *e, struct frame *frame)
{
    struct dwarf_worker *w = walk->w;
    if (!frame->code)
        return true;
    size_t count = dwarf_ranges(w, walk->unit, &e->ranges, &e->low_pc, &e->high_pc);
    if (!count)
        return true;
    if (frame->depth < SL_MAX_INLINE_DEPTH &&
        dwarf_grow(&w->inlinees, &w->inlinee_capacity, w->inlinee_count + count, sizeof *w->inlinees)) {
        uint64_t load = walk->reader->load_address;
        enum sl_language language = frame->language;
        struct sl_str name = entry_name(walk, e, &language);
        for (size_t i = 0; i < count; i++)
            if (w->ranges[i].begin >= load)
                w->inlinees[w->inlinee_count++] = (struct sl_flat_inlinee){
                    .address = w->ranges[i].begin - load,
                    .size = w->ranges[i].end - w->ranges[i].begin,
                    .name = name,
                    .language = language,
                    .depth = frame->depth,
                    .call_file = as_u32(&e->call_file, SL_NO_FILE),
                    .call_line = as_u32(&e->call_line, 0),
                };
        frame->language = language;
    }
    frame->depth++;
    return true;
}

/* Line records of [begin, end), relative, from every sequence that overlaps it, clipped. */
static size_t lines_of(struct walk *walk, struct range range)
{
    struct dwarf_worker *w = walk->w;
    const struct line_table *t = &w->lines;
    uint64_t load = walk->reader->load_address, begin = range.begin + load, end = range.end + load;
    size_t low = 0, high = t->sequence_count, count = 0;
    while (low < high) { /* first sequence that starts behind the range */
        size_t middle = low + (high - low) / 2;
        if (t->sequences[middle].start < end)
            low = middle + 1;
        else
            high = middle;
    }
    size_t first = low;
    while (first && t->sequences[first - 1].end > begin)
        first--;
    for (; first < low; first++) {
        const struct sequence *s = &t->sequences[first];
        const struct row *rows = t->rows + s->first;
        size_t a = 0, b = s->count;
        while (a < b) { /* last row at or before begin */
            size_t middle = a + (b - a) / 2;
            if (rows[middle].address <= begin)
                a = middle + 1;
            else
                b = middle;
        }
        for (size_t i = a ? a - 1 : 0; i < s->count && rows[i].address < end; i++) {
            uint64_t start = rows[i].address < begin ? begin : rows[i].address;
            uint64_t stop = i + 1 < s->count ? rows[i + 1].address : s->end;
            stop = stop > end ? end : stop;
            if (count && w->function_lines[count - 1].address + w->function_lines[count - 1].size + load > start)
                start = w->function_lines[count - 1].address + w->function_lines[count - 1].size + load;
            if (start >= stop)
                continue;
            if (!dwarf_grow(&w->function_lines, &w->function_line_capacity, count + 1, sizeof *w->function_lines))
                return count;
            w->function_lines[count++] = (struct sl_line){start - load, stop - start, rows[i].file, rows[i].line};
        }
    }
    return count;
}

static size_t select_inlinees(struct dwarf_worker *w, const struct frame *frame, struct range range)
{
    size_t count = 0, all = w->inlinee_count - frame->first_inlinee;
    if (!dwarf_grow(&w->selected, &w->selected_capacity, all, sizeof *w->selected))
        return 0;
    for (size_t i = frame->first_inlinee; i < w->inlinee_count; i++)
        if (w->inlinees[i].address >= range.begin && w->inlinees[i].address < range.end)
            w->selected[count++] = w->inlinees[i];
    return count;
}

static bool close_subprogram(struct walk *walk, const struct frame *frame)
{
    struct dwarf_worker *w = walk->w;
    for (uint32_t i = 0; i < frame->pending_count; i++) {
        struct range range = w->pending[frame->first_pending + i];
        struct sl_function function = {
            .address = range.begin,
            .size = range.end - range.begin,
            .name = frame->name,
            .language = frame->language,
        };
        const struct sl_flat_inlinee *inlinees = w->inlinees ? w->inlinees + frame->first_inlinee : NULL;
        size_t inlinee_count = w->inlinee_count - frame->first_inlinee;
        if (frame->pending_count > 1) {
            inlinee_count = select_inlinees(w, frame, range);
            inlinees = w->selected;
        }
        size_t line_count = lines_of(walk, range);
        if (!sl_assemble(&w->assembler, walk->arena, &function, inlinees, inlinee_count, w->function_lines,
                         line_count) ||
            !dwarf_grow(&w->functions, &w->function_capacity, w->function_count + 1, sizeof *w->functions))
            return false;
        w->functions[w->function_count++] = function;
    }
    w->pending_count = frame->first_pending;
    w->inlinee_count = frame->first_inlinee;
    return true;
}

/* Handles one entry; `*jump` becomes true if its children are to be jumped over. */
static bool visit(struct walk *walk, struct entry *e, bool *jump)
{
    bool children = e->abbrev->children;
    bool leaf = e->abbrev->kind == KIND_LEAF_TYPE || (e->abbrev->kind == KIND_SUBPROGRAM && e->declaration);
    *jump = leaf && children && e->sibling > e->offset;
    if (*jump || (!children && e->abbrev->kind != KIND_SUBPROGRAM && e->abbrev->kind != KIND_INLINED))
        return true;
    if (walk->height >= MAX_DIE_DEPTH)
        return false;
    struct frame *frame = push_frame(walk);
    if (!frame)
        return false;
    bool ok = true;
    if (e->abbrev->kind == KIND_SUBPROGRAM)
        ok = open_subprogram(walk, e, frame);
    else if (e->abbrev->kind == KIND_INLINED)
        ok = add_inlinee(walk, e, frame);
    if (ok && !children) {
        struct frame closing = walk->w->frames[--walk->height];
        if (closing.subprogram)
            ok = close_subprogram(walk, &closing);
    }
    return ok;
}

static bool walk_unit(struct walk *walk)
{
    const struct dwarf_unit *unit = walk->unit;
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    struct entry e;
    sl_reader_seek(&r, unit->header->die);
    while (r.at < r.end) {
        e.offset = sl_reader_offset(&r);
        uint64_t code = sl_read_uleb(&r);
        if (r.failed)
            return false;
        if (code == 0) {
            if (walk->height == 0)
                continue; /* padding behind the root */
            struct frame closing = walk->w->frames[--walk->height];
            if (closing.subprogram && !close_subprogram(walk, &closing))
                return false;
            if (walk->height == 0)
                return true;
            continue;
        }
        bool jump;
        e.abbrev = abbrev_find(unit->abbrevs, code);
        if (!e.abbrev || !read_entry(walk, &r, &e) || !visit(walk, &e, &jump))
            return false;
        if (jump && e.sibling > sl_reader_offset(&r))
            sl_reader_seek(&r, e.sibling);
        else if (jump && !push_frame(walk))
            return false;
        if (r.failed)
            return false;
        if (walk->height == 0)
            return true;
    }
    return walk->height == 0;
}

bool dwarf_read_functions(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                          struct sl_arena *arena)
{
    struct walk walk = {reader, w, unit, arena, 0};
    w->function_count = w->inlinee_count = w->pending_count = 0;
    w->name_count = 0;
    w->name_generation++;
    bool ok = walk_unit(&walk);
    /* What was open when reading stopped still has its ranges and the lines. */
    while (walk.height) {
        struct frame closing = w->frames[--walk.height];
        if (closing.subprogram && !close_subprogram(&walk, &closing))
            break;
    }
    return ok;
}

void dwarf_worker_free(struct dwarf_worker *w)
{
    for (size_t i = 0; i < ABBREV_TABLES; i++)
        abbrev_table_free(&w->tables[i]);
    sl_assembler_free(&w->assembler);
    free(w->lines.rows);
    free(w->lines.sequences);
    free(w->lines.files);
    free(w->ranges);
    free(w->inlinees);
    free(w->selected);
    free(w->function_lines);
    free(w->functions);
    free(w->pending);
    free(w->frames);
    free(w->names);
}
