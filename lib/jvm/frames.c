/* Finds the original frames of an obfuscated frame. A "member" is one method line of the mapping; a method may have several. */
#include "jvm/members.h"

#include <stdlib.h>

#include "base/grow.h"
#include "jvm/names.h"

/* MAX_LINES: so many source lines of a member without a range become frames at most. MAX_ALTERNATIVES: a frame without a line
 * becomes at most so many methods. */
enum { MAX_LINES = 65535, MAX_ALTERNATIVES = 256 };

struct jvm_frame_search {
    const struct sl_jvm_mapper *mapper;
    struct sl_jvm_query query;     /* its line may have been replaced by that of an outline's caller */
    struct jvm_original_class own; /* original class of the frame */
    /* the extension, or else the whole name, of the file of `own`: files named after a class get this extension as well */
    struct sl_str reference;
    struct jvm_members members;
    bool without_outlines; /* leave out members that are outlines (code that R8 moved out of several methods) */
    struct sl_jvm_frames *out;
};

/* True for a "base member" of a method: one without a range of lines, or with the range 0 to 0. It holds for no particular line. */
static bool is_base(const struct jvm_member *m)
{
    return !m->end;
}

static bool has_range(const struct jvm_member *m)
{
    return m->flags & JVM_RANGE;
}

static bool range_holds(const struct jvm_member *m, uint32_t line)
{
    return m->start <= line && line <= m->end;
}

/* ---- results ---- */

bool sl_jvm_frames_add(struct sl_jvm_frames *out, const struct sl_jvm_frame *frame)
{
    if (out->limit && out->count >= out->limit)
        out->limited = true;
    else if (!sl_grow_in_arena(out->arena, &out->items, &out->capacity, out->count + 1, sizeof *out->items))
        out->busy = true;
    else
        out->items[out->count++] = *frame;
    return !out->limited && !out->busy;
}

/* Returns the original class of a member: the class from which it was inlined, else that of the frame. */
static struct jvm_original_class find_receiver(const struct jvm_frame_search *s, const struct jvm_member *m)
{
    return m->flags & JVM_INLINED_FROM_OTHER_CLASS ? jvm_original_class(s->mapper, m->receiver) : s->own;
}

/* Makes a frame of a member. `receiver`: the member's original class. Parameters are set only if signatures were asked for. */
static struct sl_jvm_frame make_frame(const struct jvm_frame_search *s, const struct jvm_member *m,
                                      const struct jvm_original_class *receiver, bool has_line, uint32_t line)
{
    struct sl_str none = {NULL, 0};
    return (struct sl_jvm_frame){.class = receiver->name,
                                 .method = jvm_text(s->mapper, m->name),
                                 .parameters = s->query.signatures ? jvm_text(s->mapper, m->arguments) : none,
                                 .has_line = has_line,
                                 .line = line,
                                 .synthesized = m->flags & JVM_SYNTHESIZED || receiver->synthesized};
}

/* Makes a frame whose file is named after its class, as if the mapping had no file names. The extension is that of s->reference, which is
 * the file of the obfuscated frame's own class. */
static struct sl_jvm_frame plain_frame(const struct jvm_frame_search *s, const struct jvm_member *m, bool has_line,
                                       uint32_t line)
{
    struct jvm_original_class receiver = find_receiver(s, m);
    struct sl_jvm_frame frame = make_frame(s, m, &receiver, has_line, line);
    sl_jvm_file_name(frame.class, s->reference, &frame.file, &frame.suffix);
    return frame;
}

/* Adds a frame whose file is named after its class, as if the mapping had no file names. */
static void add_plain(struct jvm_frame_search *s, const struct jvm_member *m, bool has_line, uint32_t line)
{
    struct sl_jvm_frame frame = plain_frame(s, m, has_line, line);
    sl_jvm_frames_add(s->out, &frame);
}

/* Adds a frame whose line was found; its file is that of the class in the mapping, if known. */
static void add_mapped(struct jvm_frame_search *s, const struct jvm_member *m, bool has_line, uint32_t line)
{
    struct jvm_original_class receiver = find_receiver(s, m);
    struct sl_jvm_frame frame = make_frame(s, m, &receiver, has_line, line);
    frame.file = receiver.file;
    frame.suffix = receiver.suffix;
    if (!receiver.file.data)
        sl_jvm_file_name(frame.class, s->reference, &frame.file, &frame.suffix);
    else if (sl_str_equal(receiver.file, SL_STR("R8$$SyntheticClass"))) /* R8's file name of classes that it made */
        frame.file = sl_jvm_outermost(frame.class);
    sl_jvm_frames_add(s->out, &frame);
}

/* Adds a frame of which only the class is known: the method keeps its obfuscated name. */
static void add_class_only(struct jvm_frame_search *s)
{
    struct sl_jvm_frame frame = {.class = s->own.name, .method = s->query.method, .has_line = true};
    frame.line = s->query.by == SL_JVM_BY_LINE ? s->query.line : 0;
    sl_jvm_file_name(frame.class, s->reference, &frame.file, &frame.suffix);
    sl_jvm_frames_add(s->out, &frame);
}

/* ---- by line ---- */

/* Adds the frames of a member without a range, in a method that has no ranges. Nothing tells which of the member's source lines is meant,
 * so each becomes a frame; only the first if there are more than MAX_LINES. Without source lines the obfuscated line is kept. */
static void add_whole(struct jvm_frame_search *s, const struct jvm_member *m)
{
    if (!(m->flags & JVM_LINE)) {
        add_mapped(s, m, true, s->query.line);
    } else if (m->last_line > m->line && m->last_line - m->line <= MAX_LINES) {
        for (uint32_t line = m->line; line < m->last_line && !s->out->limited; line++)
            add_mapped(s, m, true, line);
        add_mapped(s, m, true, m->last_line);
    } else {
        add_mapped(s, m, m->line != 0, m->line);
    }
}

/* Returns the source line for a line of the running program that is in the member's range. */
static uint32_t line_within(const struct jvm_member *m, uint32_t line)
{
    if (!(m->flags & JVM_LAST_LINE) || m->last_line == m->line)
        return m->line;
    uint64_t within = (uint64_t)m->line + (line - m->start);
    return within < UINT32_MAX ? (uint32_t)within : UINT32_MAX;
}

/* Members that match the line, collected so that their classes are prefetched before they are read. */
struct jvm_found_member {
    struct jvm_member members[8];
    size_t count;
};

/* Adds the frames of each member in the list, and empties the list. A base member, which holds for no particular line, gives frames for all
 * its source lines; any other member only gives the source line to which the query's line corresponds. */
static void add_found(struct jvm_frame_search *s, struct jvm_found_member *found)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct jvm_member *m = &found->members[i];
        if (is_base(m))
            add_whole(s, m);
        else
            add_mapped(s, m, true, line_within(m, s->query.line));
    }
    found->count = 0;
}

/* Adds the frames of the members whose range contains the line, eight at a time, so that their classes are prefetched. Members without a
 * range, or with 0 to 0, count only in methods that have no other ranges. If no member counts, adds a frame with only the class. */
static void by_line(struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    struct jvm_found_member found = {.count = 0};
    bool ranges = all.traits & JVM_RANGES, any = false;
    all.line = s->query.line;
    while (jvm_next_member(&all, &m)) {
        if (is_base(&m) && ranges)
            continue;
        if (s->without_outlines && m.flags & JVM_IS_OUTLINE) /* only what was inlined into the outline is shown */
            continue;
        if (m.flags & JVM_INLINED_FROM_OTHER_CLASS)
            jvm_prefetch(s->mapper, JVM_RECEIVERS, m.receiver);
        found.members[found.count++] = m;
        any = true;
        if (found.count == sizeof found.members / sizeof *found.members)
            add_found(s, &found);
    }
    add_found(s, &found);
    if (!any)
        add_class_only(s);
}

/* ---- without a line ---- */

/* Counts of the base members of a method: those without a range and those with the range 0 to 0. By them from_bases() decides which frames
 * a query without a line gets, and which of these show a line. */
struct bases {
    size_t with_range, without; /* with the range 0 to 0; without a range */
    bool spread;                /* one with a range covers several source lines */
    bool same_name;             /* all without a range have the same name */
    bool all_lines;             /* all without a range have a line */
    uint32_t first_name;
};

/* Counts the base members with the range 0 to 0, and notes whether one of them covers several source lines (`spread`). Counts those without
 * a range, and notes whether all of them have the same name, and whether all have a line. */
static struct bases count_bases(struct jvm_members all)
{
    struct bases b = {.same_name = true, .all_lines = true};
    struct jvm_member m;
    while (jvm_next_member(&all, &m)) {
        if (!is_base(&m))
            continue;
        if (has_range(&m)) {
            b.with_range++;
            b.spread |= m.flags & JVM_LAST_LINE && m.last_line != m.line;
            continue;
        }
        b.first_name = b.without++ ? b.first_name : m.name;
        b.same_name &= m.name == b.first_name;
        b.all_lines &= (m.flags & JVM_LINE) != 0;
    }
    return b;
}

/* Orders frames by method name, those with the same name by `order`, their former place. */
static int frames_by_method(const void *left, const void *right)
{
    const struct sl_jvm_frame *a = left, *b = right;
    int order = sl_str_compare(a->method, b->method);
    return order ? order : a->order < b->order ? -1 : a->order > b->order;
}

/* Sorts the frames from `first` on by name; frames of equal names keep their order. */
static void sort_by_method(struct sl_jvm_frames *out, size_t first)
{
    for (size_t i = first; i < out->count; i++)
        out->items[i].order = (uint32_t)(i - first);
    if (out->count > first)
        qsort(out->items + first, out->count - first, sizeof *out->items, frames_by_method);
}

/* Adds a frame for each base member: first those with the range 0 to 0, which show their line unless one of them covers several lines; then
 * those without a range, which show their line only if there is just one. Without signatures, members without a range that all have one
 * name become one frame. If they have several names and all have lines, all the added frames are sorted by name. */
static void from_bases(struct jvm_frame_search *s, const struct bases *b)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    size_t first = s->out->count, added = 0;
    while (jvm_next_member(&all, &m))
        if (is_base(&m) && has_range(&m))
            add_plain(s, &m, b->spread || m.line, b->spread ? 0 : m.line); /* several lines: the line is shown as 0 */
    for (all = s->members; jvm_next_member(&all, &m);) {
        if (!is_base(&m) || has_range(&m) || (b->same_name && !s->query.signatures && added++))
            continue;
        add_plain(s, &m, true, b->without == 1 ? m.line : 0);
    }
    if (b->without && !b->same_name && b->all_lines)
        sort_by_method(s->out, first);
}

static bool same_range(const struct jvm_member *a, const struct jvm_member *b)
{
    return a->start == b->start && a->end == b->end;
}

/* True if all members are one chain of inlined calls, the innermost first: several members, all with equal ranges. */
static bool is_one_chain(struct jvm_members all)
{
    struct jvm_member first, m;
    size_t count = 1;
    if (!jvm_next_member(&all, &first))
        return false;
    for (; jvm_next_member(&all, &m); count++)
        if (!same_range(&first, &m))
            return false;
    return count > 1;
}

static bool same_method(const struct sl_jvm_frame *a, const struct sl_jvm_frame *b)
{
    return sl_str_equal(a->method, b->method) && sl_str_equal(a->class, b->class) &&
           sl_str_equal(a->parameters, b->parameters);
}

/* True if one of the frames from `first` on has the class, method and parameters of this frame. */
static bool has_method_from(const struct sl_jvm_frames *out, size_t first, const struct sl_jvm_frame *frame)
{
    for (size_t i = first; i < out->count; i++)
        if (same_method(&out->items[i], frame))
            return true;
    return false;
}

/* Adds a frame for the outermost method, the last member, of each chain of inlined calls (adjacent members with equal ranges), as if
 * nothing had been inlined. Each method is added once, at most MAX_ALTERNATIVES in all. */
static void add_outermost(struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member last, m;
    size_t first = s->out->count;
    bool more = jvm_next_member(&all, &last);
    while (more && s->out->count - first < MAX_ALTERNATIVES) {
        more = jvm_next_member(&all, &m);
        struct sl_jvm_frame frame = plain_frame(s, &last, true, 0); /* the line is shown as 0 */
        if ((!more || !same_range(&last, &m)) && !has_method_from(s->out, first, &frame))
            sl_jvm_frames_add(s->out, &frame);
        last = m;
    }
}

/* Adds frames for an unknown line: the members without a range or with 0 to 0, if there are any; else all members if they are one chain of
 * inlined calls; else the outermost method of every chain. */
static void without_line(struct jvm_frame_search *s)
{
    struct bases b = count_bases(s->members);
    struct jvm_members all = s->members;
    struct jvm_member m;
    if (b.with_range || b.without) {
        from_bases(s, &b);
    } else if (is_one_chain(all)) {
        while (jvm_next_member(&all, &m))
            add_plain(s, &m, true, m.line);
    } else {
        add_outermost(s);
    }
}

/* Adds a frame for each member; s->members has only those that match the query's parameters or descriptor. */
static void by_parameters(struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    while (jvm_next_member(&all, &m))
        add_plain(s, &m, m.line != 0, m.line);
}

/* ---- rules ---- */

/* Returns how many innermost frames are to be removed by the rules (R8's rewriteFrame) of the members that match the query. A query by
 * parameters matches all in s->members; a query by line the base members (without a range, or with 0 to 0) and those whose range contains
 * the line. 0 unless an exception's class is known. */
static uint64_t count_removed(const struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    uint64_t removed = 0;
    if (!s->query.thrown.data || !(all.traits & JVM_HAS_EXTRAS))
        return 0;
    while (jvm_next_member(&all, &m))
        if (m.flags & JVM_EXTRAS &&
            (s->query.by == SL_JVM_BY_PARAMETERS || is_base(&m) || range_holds(&m, s->query.line)))
            removed += jvm_removed_by(s->mapper, &m, &s->query);
    return removed;
}

/* ---- outlines ---- */

/* The frame before was an outline, code that R8 moved out of this method among others. Replaces s->query.line by the line that the
 * positions of a member give for the outline's line; leaves it if none does. */
static void apply_outline(struct jvm_frame_search *s, struct sl_jvm_outline *outline)
{
    uint32_t line, asked = s->query.by == SL_JVM_BY_LINE ? s->query.line : 0;
    struct jvm_members all = s->members;
    struct jvm_member m;
    outline->is_carried_over = false;
    while (jvm_next_member(&all, &m))
        if ((is_base(&m) || range_holds(&m, asked)) && jvm_line_at(&m, outline->line, &line)) {
            s->query.line = line;
            return;
        }
}

/* Where a frame is: in no outline (code that R8 moved out of several methods), in one, or in one and in methods inlined into that. */
enum outline_part { OUTLINE_NONE, OUTLINE_WHOLE, OUTLINE_WITH_INLINED };

/* Returns whether the frame is in an outline, and if so, whether also in methods inlined into it. Of the members whose range contains its
 * line the last one, the outermost method, decides; the others are inlined into it. If the line is unknown or in no range, the first member
 * of the method decides. */
static enum outline_part choose_outline_part(const struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    bool any = false, first_is = false, last_is = false, others = false;
    if (!(all.traits & JVM_OUTLINES))
        return OUTLINE_NONE;
    for (bool first = true; jvm_next_member(&all, &m); first = false) {
        bool is_outline = m.flags & JVM_IS_OUTLINE;
        first_is |= first && is_outline;
        if (s->query.by != SL_JVM_BY_LINE || !s->query.line || !range_holds(&m, s->query.line))
            continue;
        any = true;
        last_is = is_outline;
        others |= !is_outline;
    }
    if (!any)
        return first_is ? OUTLINE_WHOLE : OUTLINE_NONE;
    return !last_is ? OUTLINE_NONE : others ? OUTLINE_WITH_INLINED : OUTLINE_WHOLE;
}

/* ---- entry points ---- */

/* For a query by parameters: restricts s->members to those with these parameters or, if there are none, with the query's descriptor. False
 * if none matches. A query by line is not restricted: true. */
static bool restrict_to_query(struct jvm_frame_search *s)
{
    struct jvm_members all = s->members;
    struct jvm_member m;
    if (s->query.by == SL_JVM_BY_LINE)
        return true;
    all.query = &s->query; /* jvm_next_member() now returns only members with the query's parameters */
    s->members = all;
    if (jvm_next_member(&all, &m))
        return true;
    s->members.by_descriptor = s->query.descriptor.data != NULL;
    all = s->members;
    return s->members.by_descriptor && jvm_next_member(&all, &m);
}

/* Adds the frames of the members, then removes as many of the innermost ones as the members' rules say. SL_JVM_CLEARED if that removes all
 * (unless a limit or lack of memory cut the frames), else SL_JVM_FRAMES. */
static enum sl_jvm_answer add_frames(struct jvm_frame_search *s)
{
    struct sl_jvm_frames *out = s->out;
    size_t first = out->count;
    uint64_t removed = count_removed(s);
    if (s->query.by == SL_JVM_BY_PARAMETERS)
        by_parameters(s);
    else if (s->query.line)
        by_line(s);
    else
        without_line(s);
    size_t made = out->count - first;
    size_t gone = removed < made ? (size_t)removed : made;
    if (gone)
        memmove(out->items + first, out->items + first + gone, (made - gone) * sizeof *out->items);
    out->count -= gone;
    return removed && gone == made && !out->limited && !out->busy ? SL_JVM_CLEARED : SL_JVM_FRAMES;
}

enum sl_jvm_answer sl_jvm_mapper_frame(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                       struct sl_jvm_outline *outline, struct sl_jvm_frames *frames)
{
    struct jvm_frame_search s = {.mapper = mapper, .query = *query, .out = frames};
    struct jvm_names names = jvm_names(mapper, query->class, query->method);
    uint32_t class, receiver;
    bool known = jvm_find_class(mapper, &names, &class, &receiver);
    bool has_members = known && jvm_find_method(mapper, &names, class, &s.members);
    bool by_members = has_members && restrict_to_query(&s);
    if (outline->is_carried_over && by_members)
        apply_outline(&s, outline);
    outline->is_carried_over = false; /* an outline concerns only the frame after it */
    if (!known)
        return SL_JVM_UNKNOWN;
    enum outline_part part = has_members ? choose_outline_part(&s) : OUTLINE_NONE;
    if (part != OUTLINE_NONE)
        *outline =
            (struct sl_jvm_outline){.is_carried_over = true, .line = query->by == SL_JVM_BY_LINE ? s.query.line : 0};
    if (part == OUTLINE_WHOLE)
        return SL_JVM_OUTLINE;
    s.without_outlines = part == OUTLINE_WITH_INLINED;
    s.own = jvm_original_class(mapper, receiver);
    s.reference = s.own.suffix.size ? s.own.suffix : s.own.file; /* other files get its extension */
    if (by_members)
        return add_frames(&s);
    add_class_only(&s); /* the mapping does not have the method, or none with the query's parameters */
    return SL_JVM_FRAMES;
}
